# SPDX-License-Identifier: Apache-2.0
"""The system extension for hosts without packages: what is in it, and that a host may take it off while a view is mounted. systemd-sysext of
this machine merges it in namespaces; virtual machines of such distributions were not tried."""
import pytest

import lkgfs_testlib as lib
from lkgfs_namespaces import ETC

pytestmark = pytest.mark.limit(900)

VIEW = f"/{ETC}"


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    out = tmp_path_factory.mktemp("sysext")
    lib.run(lib.REPOSITORY / "contrib/package/sysext/build", out, timeout=600, check=True)
    made, = out.glob("lkgfs-*.raw")
    return made


@pytest.fixture(scope="module")
def files(image, tmp_path_factory):
    to = tmp_path_factory.mktemp("files") / "lkgfs"
    lib.run("unsquashfs", "-quiet", "-no-progress", "-dest", to, image, check=True)
    return to


def test_the_same_sources_make_the_same_bytes(image, tmp_path):
    lib.run(lib.REPOSITORY / "contrib/package/sysext/build", tmp_path, timeout=600, check=True)
    again, = tmp_path.glob("*.raw")
    assert again.name == image.name and again.read_bytes() == image.read_bytes()


def test_what_hosts_lack_is_built_in(files):
    assert [path.name for path in files.iterdir()] == ["usr"]
    assert (files / "usr/lib/extension-release.d/extension-release.lkgfs").read_text() == "ID=_any\nARCHITECTURE=x86-64\n"
    needed = set()
    for program in ("sbin/lkgfsd", "bin/lkgfs", "libexec/lkgfs/lkgfs-engine", "libexec/lkgfs/lkgfs-fs", "libexec/lkgfs/lkgfs-notify"):
        headers = lib.run("objdump", "-p", files / "usr" / program, check=True).stdout.decode()
        needed |= {line.split()[1].split(".so")[0] for line in headers.splitlines() if line.startswith("  NEEDED")}
    assert needed == {"libc", "libcrypto", "libsystemd", "ld-linux-x86-64"}


def test_it_is_merged_and_taken_off_while_a_view_is_mounted(machine, files):
    machine.shell("mkdir -p /run/extensions && mount --make-rshared /", check=True)  # as the mounts of a host are
    lib.run("cp", "-a", files, machine.root / "run/extensions/", check=True)
    machine.run("systemd-sysext", "merge", check=True)
    machine.run("systemd-sysusers", check=True)
    machine.node()
    machine.run("systemctl", "start", "lkgfs.service", check=True)
    assert machine.mounts() == [VIEW] and "\npodPidsLimit: 4096\n" in machine.read(f"{VIEW}/kubelet.conf")
    with machine.readers():
        machine.run("systemd-sysext", "unmerge", check=True)
        assert not machine.exists("/usr/libexec/lkgfs/lkgfs-fs")
        for name in ("lkgfs-fs", "lkgfs-engine", "lkgfs-notify"):
            before = pid_of(machine, name)
            machine.run("kill", "-KILL", str(before), check=True)
            machine.wait_for(lambda name=name, before=before: pid_of(machine, name) not in (None, before), "a successor")
        machine.write(f"{VIEW}/kubelet.conf.d/77-sysext.conf", lib.HEADER + "maxPods: 77\n")
        machine.wait_for(lambda: "\nmaxPods: 77\n" in machine.read(f"{VIEW}/kubelet.conf"), "the next engine judges")
        machine.run("systemd-sysext", "merge", check=True)
    machine.shell("kill $(cat /run/stand-in/pid)", check=True)  # whose program has no path any more, by which the stand-in knows it
    machine.wait_for(lambda: machine.mounts() == [], "it is unmounted")


def pid_of(machine, name):
    found = machine.run("pgrep", "--exact", name).stdout.decode().split()
    return int(found[-1]) if found else None
