# SPDX-License-Identifier: Apache-2.0
"""contrib/ansible with a real ansible-core: in a machine of namespaces with the package and a node of kubeadm."""
import json
import re

import pytest

import lkgfs_testlib as lib

pytestmark = pytest.mark.limit(900)

VIEW = "/etc/kubernetes"
ROLES = lib.REPOSITORY / "contrib/ansible"


@pytest.fixture(name="play")
def play_of_a_node(machine, deb, program):
    """Runs the role with these variables. Return: status, how many tasks changed something, output."""
    ansible = program("ansible-playbook").resolve()
    machine.put_tree(lib.REPOSITORY / "tests/e2e/adopt/kubeadm/tree")
    machine.shell("mkdir -p /opt/roles && tar -xf - -C /opt/roles", input=lib.run("tar", "-C", ROLES, "-cf", "-", "lkgfs", check=True).stdout, check=True)
    package = machine.put(deb)

    def play(**variables):
        playbook = [{"hosts": "localhost", "connection": "local", "gather_facts": False,
                     "roles": [{"role": "lkgfs", "lkgfs_package": package, "lkgfs_adopt": True, **variables}]}]
        machine.write("/opt/play.yml", json.dumps(playbook))
        result = machine.shell(f"cd /opt && ANSIBLE_ROLES_PATH=/opt/roles ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3 {ansible} "
                               "-i localhost, play.yml", timeout=300)
        text = result.stdout.decode() + result.stderr.decode()
        return result.returncode, int(re.search(r"changed=(\d+)", text)[1]), text
    return play


def names(machine):
    return machine.shell(f"ls {VIEW}/kubelet.conf.d").stdout.decode().split()


def files(machine):
    return machine.shell(f"cd {VIEW}/kubelet.conf.d && stat -c '%n %a %U' * && head -n 20 *").stdout.decode()


def served(machine, word):
    return machine.shell(f"grep '^{word}' {VIEW}/kubelet-config.yaml").stdout.decode().strip()


def test_the_role_there_again_wrong_and_back(machine, play):
    good = {"50-capacity.conf": {"maxPods": 60}, "60-eviction.conf": {"evictionHard": {"memory.available": "200Mi"}}}
    code, changed, text = play(lkgfs_drop_ins=good)
    assert code == 0 and changed > 3, text
    assert machine.mounts() == [VIEW] and served(machine, "maxPods") == "maxPods: 60"
    code, changed, text = play(lkgfs_drop_ins=good)
    assert (code, changed) == (0, 0), text
    machine.shell(f"chmod 600 {VIEW}/kubelet.conf.d/60-eviction.conf", check=True)
    before = files(machine)

    code, changed, text = play(lkgfs_drop_ins={**good, "../pki/50": {}})
    assert code != 0 and "is no name of a drop-in" in text and files(machine) == before, text
    code, changed, text = play(lkgfs_drop_ins={**good, "50-capacity.conf": {"maxPods": "sixty"}})
    assert code != 0 and "failed to validate" in text and "maxPods" in text, text
    assert files(machine) == before

    # Each is right by itself; together they are not, and what came with them goes back, too.
    code, changed, text = play(lkgfs_drop_ins={"50-capacity.conf": {"maxPods": 61}, "60-eviction.conf": None, "70-manager.conf": {"cpuManagerPolicy": "static"}})
    assert code != 0 and "cpuManagerPolicy" in text, text
    assert files(machine) == before and served(machine, "maxPods") == "maxPods: 60"

    code, changed, text = play(lkgfs_drop_ins={"50-capacity.conf": None, "60-eviction.conf": {"evictionHard": {"memory.available": "300Mi"}}})
    assert code == 0 and names(machine) == ["60-eviction.conf"], text
    assert "300Mi" in machine.read(f"{VIEW}/kubelet-config.yaml") and served(machine, "maxPods") == ""

    # A warning refuses nothing: this gate is on for good.
    code, changed, text = play(lkgfs_drop_ins={"70-gates.conf": {"featureGates": {"NodeSwap": True}}})
    assert code == 0 and "NodeSwap" in machine.read(f"{VIEW}/kubelet-config.yaml"), text
