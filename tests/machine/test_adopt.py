# SPDX-License-Identifier: Apache-2.0
"""A node of kubeadm: from the package to a view that the kubelet reads, as README.md says it, and back. One story, on a machine of its own."""
import io
import re
import tarfile

import lkgfs_testlib as lib
from inside import ETC, STAND_IN, UNIT, denials, install_stand_in, mounts, property_of

TREE = lib.REPOSITORY / "tests/e2e/adopt/kubeadm/tree"
BASE = "/var/lib/kubelet/config.yaml"
VIEW = f"{ETC}/kubelet-config.yaml"
LIST = f"find {ETC} /etc/lkgfs /etc/systemd /etc/default /var/lib/kubelet -printf '%p %y %m %u\\n' -type f -exec sha256sum '{{}}' ';' 2> /dev/null | sort"
kept = {}
SERVES = "lkgfs status | grep -q '^kubelet: True serving generation '"  # the engine of a new lkgfsd takes a moment here


def last_config(machine):
    """The --config that the running kubelet uses, as for it the last one counts."""
    words = machine.output(f"tr '\\0' '\\n' < /proc/{property_of(machine, 'kubelet', 'MainPID')}/cmdline").splitlines()
    return [word for word in words if word.startswith("--config=")][-1].removeprefix("--config=")


def test_a_node_of_kubeadm(machine):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for path in TREE.rglob("*"):
            if path.is_file():
                tar.add(path, arcname=path.relative_to(TREE))
    machine.shell("tar -C / --no-same-owner -xf -", input=data.getvalue(), check=True)
    install_stand_in(machine)
    machine.shell("systemctl daemon-reload && systemctl enable --now kubelet", check=True)
    machine.wait_until(f"cmp {BASE} {STAND_IN}/read")
    assert last_config(machine) == BASE


def test_adopting(machine, deb):
    machine.run("dpkg", "--install", machine.put(deb), check=True)
    kept["before"] = machine.output(LIST)
    kubelet = property_of(machine, "kubelet", "MainPID")
    assert "no difference" in machine.run("lkgfs", "adopt", "--dry-run", check=True).stdout and machine.output(LIST) == kept["before"]
    machine.run("lkgfs", "adopt", check=True)
    assert mounts(machine) == [ETC] and property_of(machine, UNIT, "UnitFileState") == "enabled"
    assert property_of(machine, "kubelet", "MainPID") == kubelet, "it goes on with what it has read"
    machine.run("systemctl", "restart", "kubelet", check=True)
    assert last_config(machine) == VIEW
    machine.wait_until(f"cmp {VIEW} {STAND_IN}/read")
    assert machine.run("lkgfs", "check").returncode == 0 and machine.run("lkgfs", "status").returncode == 0


def test_a_drop_in_and_a_reboot(machine):
    machine.write(f"{ETC}/kubelet.conf.d/20-pods.conf", f"{lib.HEADER}maxPods: 42\n")
    machine.wait_until(f"grep -qx 'maxPods: 42' {VIEW}")
    assert denials(machine) == []
    assert machine.shut_down("reboot") < 60
    machine.boot()
    assert machine.run("systemctl", "is-system-running", "--wait", timeout=300).stdout == "running\n", machine.output("systemctl --failed")
    machine.wait_until(f"grep -qx 'maxPods: 42' {STAND_IN}/read")
    assert last_config(machine) == VIEW
    machine.shell(f"rm {ETC}/kubelet.conf.d/20-pods.conf && lkgfs sync", check=True)


def test_going_back(machine):
    machine.run("lkgfs", "abandon", check=True)
    assert mounts(machine) == [] and property_of(machine, UNIT, "UnitFileState") == "disabled"
    machine.run("systemctl", "restart", "kubelet", check=True)
    assert last_config(machine) == BASE
    machine.wait_until(f"cmp {BASE} {STAND_IN}/read")
    assert machine.output(LIST) == kept["before"]


def test_removing_the_package_goes_back_too(machine):
    machine.shell("lkgfs adopt && systemctl restart kubelet", check=True)
    assert last_config(machine) == VIEW
    machine.run("dpkg", "--remove", "lkgfs", check=True)
    assert mounts(machine) == []
    machine.run("systemctl", "restart", "kubelet", check=True)
    assert last_config(machine) == BASE and machine.run("systemctl", "is-system-running").stdout == "running\n"
    assert denials(machine) == []


def blocks(page, heading):
    """The indented blocks of commands below this heading."""
    text = (lib.REPOSITORY / page).read_text(encoding="utf-8")
    section = re.split(r"^## ", text[text.index(f"\n## {heading}\n") + 4:], flags=re.M)[0]
    return [re.sub("^    ", "", block, flags=re.M) for block in re.findall(r"(?:^    .*\n)+", section, re.M)]


def test_the_steps_of_the_readme_by_hand(machine, deb):
    """Beside /etc/kubernetes, from the first view to one that systemd mounts, then over it."""
    machine.run("dpkg", "--install", machine.put(deb), check=True)
    by_hand, by_systemd = blocks("README.md", "Step 1: mount beside /etc/kubernetes")
    over, = blocks("README.md", "Step 2: mount over it")
    done = machine.shell(by_hand)
    assert mounts(machine) == ["/run/lkgfs/view"] and "kubelet: True serving generation " in done.stdout, done.stdout + done.stderr
    machine.shell(f"set -e\n{by_systemd}", check=True)
    assert mounts(machine) == ["/run/lkgfs/view"] and property_of(machine, UNIT, "ActiveState") == "active"
    machine.shell("sed -i /sourceDir/d /etc/lkgfs/config.yaml; sed -i /LKGFS_MOUNTPOINT=/d /etc/default/lkgfs")
    machine.shell(f"set -e\n{over}", check=True)
    assert mounts(machine) == [ETC]
    machine.wait_until(SERVES)


def test_the_commands_for_operators(machine):
    change, editor = blocks("docs/operations.md", "Change something")[:2]
    machine.shell(f"echo KUBELET_EXTRA_ARGS=--config={VIEW} > /etc/default/kubelet && systemctl restart kubelet", check=True)
    done = machine.shell(change)
    assert "kubelet: True serving generation " in done.stdout, done.stdout + done.stderr
    machine.wait_until(f"grep -qx 'maxPods: 60' {STAND_IN}/read")
    machine.shell(f"set -e\n{editor}", check=True)
    assert machine.run("lkgfs", "check").returncode == 0
    machine.run("systemctl", "stop", "lkgfs", check=True)
    take_over = blocks("docs/operations.md", "Upgrade lkgfs")[1]
    machine.shell(f"set -e\n{take_over.splitlines()[1]}", check=True)  # mounted by hand
    machine.shell(f"set -e\n{take_over}", check=True)
    assert mounts(machine) == [ETC]
    machine.wait_until(SERVES)
    for block in blocks("docs/operations.md", "Upgrade Kubernetes")[:2]:
        done = machine.shell(f"set -e\n{block}")
        assert done.returncode == 0, done.stdout + done.stderr
    machine.wait_until(f"umount {ETC}")  # somebody may be reading just now
