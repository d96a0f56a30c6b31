# SPDX-License-Identifier: Apache-2.0
"""A host without packages boots with the system extension, as docs/platforms/images.md says it: its Butane and its cloud-init, word by word. One story,
by hand: $LKGFS_SYSEXT is the image (contrib/package/sysext/build). squashfs-tools make the next version of it."""
import os
import pathlib
import re

import pytest
import yaml

import lkgfs_testlib as lib
from inside import ETC, FILE, UNIT, all_there, denials, install_stand_in, mounts, processes, property_of, publishes, readers, served, wait_for, wait_for_others
from lkgfs_packages import of_another_build

SYSEXT = pathlib.Path(os.environ["LKGFS_SYSEXT"])
PAGE = (lib.REPOSITORY / "docs/platforms/images.md").read_text(encoding="utf-8")
BUTANE, CLOUD_INIT = (yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S))
LIBRARIES = ("libfuse3.so.3", "libyaml-0.so.2", "libjson-c.so.5")


@pytest.fixture(scope="module", name="newer")
def next_version(tmp_path_factory):
    folder = tmp_path_factory.mktemp("newer")
    lib.run("unsquashfs", "-quiet", "-no-progress", "-dest", folder / "tree", SYSEXT, check=True)
    of_another_build(folder / "tree")
    lib.run("mksquashfs", folder / "tree", folder / "lkgfs.raw", "-quiet", "-no-progress", "-all-root", check=True)
    return folder / "lkgfs.raw"


def boots_with_a_view(machine):
    """And the kubelet, which the boot starts after it, has read nothing else."""
    machine.boot()
    assert machine.run("systemctl", "is-system-running", "--wait", timeout=300).stdout == "running\n", machine.output("systemctl --failed")
    assert mounts(machine) == [ETC] and served(machine, "podPidsLimit") == "4096"
    machine.wait_until(f"cmp {FILE} /run/kubelet-stand-in/read")
    assert property_of(machine, UNIT, "NRestarts") == "0" and denials(machine) == []


def test_both_snippets_have_the_same_unit():
    unit, = (unit for unit in BUTANE["systemd"]["units"] if "contents" in unit)
    assert [file["content"] for file in CLOUD_INIT["write_files"] if file["path"].endswith(unit["name"])] == [unit["contents"]]


def test_a_host_of_images(machine):
    """It lacks the libraries that are built in."""
    machine.shell(f"for name in {' '.join(LIBRARIES)}; do rm -f /usr/lib/*/$name*; done; mkdir -p {ETC}/kubelet.conf.d", check=True)
    machine.write(f"{ETC}/kubelet.conf", f"{lib.HEADER}podPidsLimit: 1024\n")
    machine.write(f"{ETC}/kubelet.conf.d/20-pods.conf", f"{lib.HEADER}podPidsLimit: 4096\n")
    install_stand_in(machine)
    machine.write("/etc/systemd/system/kubelet.service", f"[Service]\nExecStart=/usr/bin/kubelet --config={FILE}\nRestart=always\n[Install]\nWantedBy=multi-user.target\n")
    machine.shell("systemctl daemon-reload && systemctl enable kubelet", check=True)


def test_butane(machine):
    for file in BUTANE["storage"]["files"]:
        contents = file["contents"]
        machine.write(file["path"], contents["inline"] if "inline" in contents else SYSEXT.read_bytes())
    for unit in BUTANE["systemd"]["units"]:
        if "contents" in unit:
            machine.write(f"/etc/systemd/system/{unit['name']}", unit["contents"])
        assert unit["enabled"]
        machine.shell(f"systemctl daemon-reload && systemctl enable {unit['name']}", check=True)
    machine.shut_down()
    boots_with_a_view(machine)
    publishes(machine, 61)


def test_the_next_version_takes_the_view_over(machine, newer):
    """Taken off by the refresh, or merged again: no call fails."""
    before = processes(machine)
    with readers(machine):
        machine.write("/etc/extensions/next", newer.read_bytes())
        machine.shell("mv /etc/extensions/next /etc/extensions/lkgfs.raw && systemd-sysext refresh && systemctl restart lkgfs.service", check=True)
        wait_for_others(machine, before)
    publishes(machine, 62)


def test_it_goes_on_while_no_extension_is_merged(machine):
    machine.shell("systemd-sysext unmerge && ! ls /usr/sbin/lkgfsd", check=True)
    before = processes(machine)
    with readers(machine):
        for name in ("lkgfs-fs", "lkgfs-engine", "lkgfs-notify"):
            machine.run("kill", "-KILL", str(before.pop(name)), check=True)
        wait_for(lambda: all_there(machine), "successors")
        publishes(machine, 63)
    machine.shell("systemd-sysext merge", check=True)


def test_cloud_init(machine):
    """On a host that has nothing of it any more."""
    machine.shell("systemctl stop kubelet lkgfs && systemctl disable --now lkgfs-setup systemd-sysext && "
                  "rm -r /etc/extensions /etc/lkgfs /etc/systemd/system/lkgfs-setup.service && systemctl daemon-reload", check=True)
    assert mounts(machine) == []
    raw = machine.put(SYSEXT)
    for file in CLOUD_INIT["write_files"]:
        machine.write(file["path"], file["content"])
    for command in CLOUD_INIT["runcmd"]:
        machine.shell(re.sub(r"curl -fo (\S+) https://\S+", rf"cp {raw} \1", command), check=True)
    machine.wait_until(f"findmnt {ETC} && grep -qx 'maxPods: 63' {FILE}")
    machine.shell("systemctl start kubelet", check=True)
    machine.shut_down()
    boots_with_a_view(machine)
