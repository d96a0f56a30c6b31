# SPDX-License-Identifier: Apache-2.0
"""The package installed, upgraded, downgraded, removed and purged, also while the view is mounted and in use."""
import re

import pytest

import lkgfs_testlib as lib
from lkgfs_namespaces import ETC, NamespaceMachine

pytestmark = pytest.mark.limit(600)  # the first test that asks for a package waits for its build

VIEW = f"/{ETC}"
PROCESSES = {"lkgfsd", "lkgfs-engine", "lkgfs-fs", "lkgfs-notify"}


def version_of(machine):
    return machine.run("dpkg-query", "--show", "--showformat=${Version} ${db:Status-Status}", "lkgfs").stdout.decode()


def served(machine):
    return "\npodPidsLimit: 4096\n" in machine.read(f"{VIEW}/kubelet.conf")


def start(machine):
    machine.node()
    machine.run("systemctl", "start", "lkgfs.service", check=True)
    assert machine.mounts() == [VIEW] and served(machine), machine.shell("cat /run/stand-in/lkgfsd.log").stdout.decode()


# ---- installing ----

@pytest.fixture(scope="module", name="fresh")
def installed_machine(deb):
    machine = NamespaceMachine()
    try:
        machine.install(deb)
        yield machine
    finally:
        machine.close()


def test_manual_pages_completion_and_helper_of_mount_are_found(fresh):
    for page in ("lkgfs", "lkgfs.conf", "lkgfs-view", "lkgfs-findings", "lkgfsd", "mount.lkgfs"):
        assert fresh.run("test", "-s", fresh.shell(f"echo /usr/share/man/man?/{page}.?.gz").stdout.decode().strip()).returncode == 0, page
    assert fresh.shell("bash -n /usr/share/bash-completion/completions/lkgfs").returncode == 0
    assert fresh.exists("/sbin/mount.lkgfs")
    assert fresh.run("lkgfs", "--version", check=True).stdout.startswith(b"lkgfs ")


def test_apparmor_compiles_the_profile_where_it_is(fresh):
    parsed = fresh.run("apparmor_parser", "--skip-kernel-load", "--skip-cache", "--debug", "/etc/apparmor.d/lkgfs")
    assert parsed.returncode == 0, parsed.stderr
    assert fresh.run("apparmor_parser", "--names", "/etc/apparmor.d/lkgfs", check=True).stdout.decode().split() == [
        "lkgfs", "lkgfs-engine", "lkgfs-fs", "lkgfs-notify", "lkgfsd"]
    assert fresh.exists("/etc/apparmor.d/local/lkgfs")


@pytest.mark.parametrize("every", [False, True], ids=["as it is", "with every setting"])
def test_the_example_is_a_configuration(fresh, every):
    text = fresh.read("/etc/lkgfs/config.yaml.example")
    if every:
        text = re.sub(r"^#(?=\S)", "", text, flags=re.M)
        assert "\ncomponents:\n- name: kubelet\n" in text and "\nremote:\n" in text
    fresh.write("/etc/lkgfs/config.yaml", text)
    fresh.node()
    try:
        target = "/run/lkgfs/view" if every else VIEW
        result = fresh.run("lkgfsd", "--background", target)
        assert result.returncode == 0, result.stderr
        assert "\npodPidsLimit: 4096\n" in fresh.read(f"{target}/kubelet.conf")
        fresh.run("umount", target, check=True)
        fresh.wait_for(lambda: not fresh.processes(), "lkgfsd ends")
    finally:
        fresh.run("rm", "/etc/lkgfs/config.yaml", check=True)


def test_files_are_as_the_package_has_them(fresh):
    assert fresh.run("dpkg", "--verify", "lkgfs").stdout == b""


# ---- another version, in use ----

@pytest.mark.parametrize("way", ["upgrade", "downgrade"])
def test_another_version_takes_the_view_over_and_no_call_fails(machine, deb, newer, way):
    old, new = (deb, newer) if way == "upgrade" else (newer, deb)
    machine.install(old)
    start(machine)
    before = machine.processes()
    assert set(before) == PROCESSES
    mounted = machine.shell(f"stat --format=%d {VIEW}").stdout
    with machine.readers() as report:
        machine.install(new)
        machine.wait_for(lambda: set(machine.processes()) == PROCESSES, "no process of the old version is left")
    after = machine.processes()
    assert set(sum(before.values(), [])) & set(sum(after.values(), [])) == set(), "all of them are new"
    assert all(len(pids) == 1 for pids in after.values())
    assert machine.mounts() == [VIEW] and machine.shell(f"stat --format=%d {VIEW}").stdout == mounted
    assert "try-restart lkgfs.service" in machine.log() and not re.search(r"^stop|^restart", machine.log(), re.M)
    assert version_of(machine).split()[1] == "installed" and report["writes"] > 1
    assert machine.run("lkgfs", "status").returncode == 0


def test_an_upgrade_starts_nothing_that_was_stopped(machine, deb, newer):
    machine.install(deb)
    machine.install(newer)
    assert machine.processes() == {} and machine.mounts() == []


def test_what_the_unit_does_not_run_is_named_after_an_upgrade(machine, deb, newer):
    machine.install(deb)
    machine.node()
    machine.run("lkgfsd", "--background", VIEW, check=True)
    pid = machine.processes()["lkgfsd"][0]
    with machine.readers():
        output = machine.install(newer)
    assert f"process {pid} still runs the previous version" in output
    assert served(machine) and machine.processes()["lkgfsd (deleted)"] == [pid]


def test_upgrading_by_hand_as_the_page_says(machine, deb, newer):
    """operations.md, for a view that was mounted by hand or by fstab."""
    page = (lib.REPOSITORY / "docs/operations.md").read_text(encoding="utf-8")
    commands = re.search(r"((?:    .*\n)+)", page[page.index("mounted by hand or by fstab"):])[1]
    machine.install(deb)
    machine.node()
    machine.run("mount", "-t", "lkgfs", "lkgfs", VIEW, check=True)
    with machine.readers():
        machine.install(newer)
        machine.shell("set -e\n" + commands, check=True)
        machine.wait_for(lambda: set(machine.processes()) == PROCESSES, "no process of the old version is left")
    assert machine.mounts() == [VIEW]


def test_an_unchanged_machine_without_systemd_takes_it(machines, deb, newer):
    machine = machines(systemd=False)
    machine.install(deb)
    machine.install(newer)
    machine.dpkg("--remove", "lkgfs")
    machine.dpkg("--purge", "lkgfs")
    assert machine.processes() == {}


# ---- a node that was adopted ----

START = r"""
set -e
unit=/etc/systemd/system/kubelet.service.d/20-lkgfs.conf
line=$(cat /usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf /usr/lib/systemd/system/kubelet.service | grep -m 1 '^ExecStart=/')
if [ -e $unit ]; then
        grep '^ExecStartPre=' $unit | cut -d= -f2- > /run/stand-in/before
        sh -e /run/stand-in/before
        line=$(grep '^ExecStart=/' $unit)
fi
. /var/lib/kubelet/kubeadm-flags.env
KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml
LKGFS_ARGS=
[ ! -e /run/lkgfs-kubelet.env ] || [ ! -e $unit ] || LKGFS_ARGS=$(sed s/^LKGFS_ARGS=// /run/lkgfs-kubelet.env)
for word in $(eval "echo ${line#ExecStart=}"); do
        case $word in --config=*) config=${word#*=} ;; esac
done
echo "$config $(grep '^maxPods:' "$config")" >> /run/stand-in/kubelet
"""


def kubeadm_node(machine):
    """A node of kubeadm, and a program that starts its kubelet as systemd would: what its configuration says is added to a file."""
    machine.put_tree(lib.REPOSITORY / "tests/e2e/adopt/kubeadm/tree")
    machine.shell("sed -i '$a maxPods: 50' /var/lib/kubelet/config.yaml", check=True)
    machine.write("/run/stand-in/start-kubelet", START)


def started_with(machine):
    machine.shell("rm -f /run/stand-in/kubelet; sh /run/stand-in/start-kubelet", check=True)
    return machine.read("/run/stand-in/kubelet").split()


OWN, VIEWED = "/var/lib/kubelet/config.yaml", f"{VIEW}/kubelet-config.yaml"


def test_an_adopted_kubelet_can_start_at_every_step_there_and_back(machine, deb):
    machine.install(deb)
    kubeadm_node(machine)
    assert started_with(machine) == [OWN, "maxPods:", "50"]
    machine.shell("printf '#!/bin/sh\nexec sh /run/stand-in/start-kubelet\n' > /run/stand-in/at-each-call; "
                  "chmod +x /run/stand-in/at-each-call; rm /run/stand-in/kubelet", check=True)
    machine.run("lkgfs", "adopt", check=True)
    assert machine.mounts() == [VIEW] and machine.run("systemctl", "is-enabled", "lkgfs.service").returncode == 0
    machine.write(f"{VIEW}/kubelet.conf.d/50-pods.conf", lib.HEADER + "maxPods: 61\n")
    assert machine.run("lkgfs", "status").returncode == 0
    there = machine.read("/run/stand-in/kubelet").splitlines()
    assert [line.split()[0] for line in there] == sorted([line.split()[0] for line in there], key=[OWN, VIEWED].index), "first its own, then the view"
    assert len(there) >= 4 and {line.split()[2] for line in there} == {"50"}
    assert started_with(machine) == [VIEWED, "maxPods:", "61"]
    machine.shell("rm /run/stand-in/kubelet", check=True)
    machine.run("lkgfs", "abandon", check=True)
    back = machine.read("/run/stand-in/kubelet").splitlines()
    assert len(back) >= 4 and {line.split()[2] for line in back} == {"61"}, "what was served stays"
    assert started_with(machine) == [OWN, "maxPods:", "61"]
    assert machine.mounts() == [] and machine.run("systemctl", "is-enabled", "lkgfs.service").returncode == 1
    assert not machine.exists("/etc/lkgfs/config.yaml") and not machine.exists("/run/lkgfs-kubelet.env")


@pytest.mark.parametrize("how", ["disabled", "deleted"])
def test_an_adopted_kubelet_can_start_without_lkgfs(machine, deb, how):
    machine.install(deb)
    kubeadm_node(machine)
    machine.run("lkgfs", "adopt", check=True)
    assert started_with(machine) == [VIEWED, "maxPods:", "50"]
    machine.run("systemctl", "stop", "lkgfs.service", check=True)
    assert machine.shell("sh /run/stand-in/start-kubelet").returncode != 0, "the gate is shut"
    machine.shell({"disabled": "touch /etc/lkgfs/disabled", "deleted": "rm /usr/bin/lkgfs"}[how], check=True)
    assert started_with(machine)[1:] == ["maxPods:", "50"]
    assert machine.mounts() == []


def test_removing_ends_views_that_others_mounted_and_that_are_in_use(machine, deb):
    machine.install(deb)
    machine.node()
    machine.run("lkgfsd", "--background", VIEW, check=True)
    machine.write("/srv/source/kubelet.conf", lib.BASE)
    machine.write("/etc/lkgfs/two.yaml", "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\nsourceDir: /srv/source\n"
                  "stateDir: /var/lib/lkgfs2\nruntimeDir: /run/lkgfs2\n")
    machine.shell("mkdir '/srv/a b' && lkgfsd --background --config /etc/lkgfs/two.yaml '/srv/a b'", check=True)
    assert machine.mounts() == [VIEW, r"/srv/a\x20b"]
    machine.shell(f"cd {VIEW}; exec 9< kubelet.conf; exec setsid -f sleep 1000 > /dev/null 2>&1", check=True)
    machine.dpkg("--remove", "lkgfs")
    assert machine.mounts() == [] and machine.processes() == {}
    assert machine.read(f"{VIEW}/kubelet.conf") == lib.BASE


def test_after_a_removal_the_history_is_still_there(machine, deb):
    machine.install(deb)
    start(machine)
    machine.shell(f"sed -i 's/^maxPods: .*/maxPods: 61/' {VIEW}/kubelet.conf.d/20-pods.conf", check=True)
    before = machine.run("lkgfs", "history", check=True).stdout
    machine.dpkg("--remove", "lkgfs")
    machine.install(deb)
    machine.run("systemctl", "start", "lkgfs.service", check=True)
    after = machine.run("lkgfs", "history", check=True).stdout
    assert {line.split()[0].strip(b"*") for line in before.splitlines()} <= {line.split()[0].strip(b"*") for line in after.splitlines()}


def test_purging_keeps_files_of_others_in_our_directory(machine, deb):
    machine.install(deb)
    machine.write("/etc/lkgfs/kubeconfig", "of the administrator\n")
    machine.dpkg("--purge", "lkgfs")
    assert machine.read("/etc/lkgfs/kubeconfig") == "of the administrator\n"
