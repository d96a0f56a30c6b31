# SPDX-License-Identifier: Apache-2.0
"""The RPM package installed and removed, by rpm itself with a database of its own. The libraries are no packages of RPM here."""
import pytest

from lkgfs_namespaces import ETC
from test_install import OWN, VIEWED, kubeadm_node, started_with

pytestmark = pytest.mark.limit(600)

VIEW = f"/{ETC}"


@pytest.fixture(name="rpm")
def rpm_of_a_machine(machine, rpms):
    package = machine.put(next(path for path in rpms.glob("lkgfs-*.rpm") if not path.name.endswith(".src.rpm") and "debug" not in path.name))
    machine.run("rpm", "--initdb", check=True)
    return machine, package


def test_the_rpm_package_is_installed_mounted_and_removed(rpm):
    machine, package = rpm
    machine.run("rpm", "--install", "--nodeps", package, check=True)
    assert machine.processes() == {} and machine.mounts() == [] and machine.run("systemctl", "is-enabled", "lkgfs.service").returncode == 1
    assert machine.shell("getent passwd lkgfs").returncode == 0
    assert machine.run("rpm", "--verify", "--nodeps", "lkgfs").stdout == b"", "files are as the package has them"
    machine.node()
    machine.run("systemctl", "start", "lkgfs.service", check=True)
    assert machine.mounts() == [VIEW] and "\npodPidsLimit: 4096\n" in machine.read(f"{VIEW}/kubelet.conf")
    machine.write("/etc/lkgfs/config.yaml", "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n")
    machine.run("rpm", "--erase", "lkgfs", check=True)
    assert machine.mounts() == []
    machine.wait_for(lambda: machine.processes() == {}, "no process of lkgfs is left")
    assert not machine.exists("/usr/bin/lkgfs") and machine.exists("/etc/lkgfs/config.yaml") and machine.exists("/var/lib/lkgfs")


def test_an_adopted_node_is_abandoned_when_the_rpm_package_goes(rpm):
    machine, package = rpm
    machine.run("rpm", "--install", "--nodeps", package, check=True)
    kubeadm_node(machine)
    machine.run("lkgfs", "adopt", check=True)
    assert started_with(machine) == [VIEWED, "maxPods:", "50"]
    machine.run("rpm", "--erase", "lkgfs", check=True)
    assert started_with(machine) == [OWN, "maxPods:", "50"] and machine.mounts() == []
