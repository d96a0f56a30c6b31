# SPDX-License-Identifier: Apache-2.0
"""The view at rest: its files and their attributes; generated files cannot be changed. Rule: docs/specification.md 2.1."""
import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import mmap
import os
import re
import shutil
import stat
import struct
import subprocess
import tarfile
import time

import pytest

import lkgfs_testlib as lib

FACTS = ["condition", "condition.json", "config.json", "generation", "sha256", "active", "metrics.prom"]
DOCUMENTS = ["origin", "findings", "error", "last-error", "diff"]
FS_IOC_GETFLAGS = 0x80086601
FS_IMMUTABLE_FL = 0x10


def without_comment(document):
    assert document.startswith("#"), "the first line says where to edit"
    first, _, rest = document.partition("\n")
    assert not rest.startswith("#"), "one comment line"
    return first, rest


def test_merged_document(shared):
    """Rule: docs/specification.md 2.2."""
    first, body = without_comment(shared.document())
    assert "kubelet.conf.d" in first
    assert "maxPods: 64\n" in body and "maxPods: 110" not in body
    assert "podPidsLimit: 4096\n" in body and "providerID: example://192.0.2.17\n" in body
    assert "  imagefs.available: 15%\n" in body and "  memory.available: 500Mi\n" in body
    assert body.index("authentication:") < body.index("clusterDNS:") < body.index("syncFrequency:")


def test_attributes_of_the_document(shared):
    st = os.stat(shared.path("kubelet.conf"))
    assert stat.S_ISREG(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o600
    assert (st.st_uid, st.st_gid, st.st_nlink) == (0, 0, 1)
    assert st.st_size == len(shared.read("kubelet.conf"))
    assert abs(time.time() - st.st_mtime) < 600
    assert st.st_ino == os.stat(shared.path("kubelet.conf")).st_ino
    with open(shared.path("kubelet.conf"), "rb") as file:
        assert os.fstat(file.fileno()).st_ino == st.st_ino
    names = {entry.name: entry.inode() for entry in os.scandir(shared.mountpoint)}
    assert "kubelet.conf" in names


def test_xattrs(shared):
    """Rule: docs/specification.md 2.2."""
    path = shared.path("kubelet.conf")
    assert int(os.getxattr(path, "user.lkgfs.generation")) == shared.generation()
    digest = hashlib.sha256(shared.read("kubelet.conf")).hexdigest()
    assert os.getxattr(path, "user.lkgfs.sha256").decode() == digest == shared.status("sha256").strip()
    assert b"kubelet.conf.d" in os.getxattr(path, "user.lkgfs.hint")
    assert {"user.lkgfs.generation", "user.lkgfs.sha256", "user.lkgfs.hint"} <= set(os.listxattr(path))
    with pytest.raises(OSError) as caught:
        os.getxattr(path, "user.other")
    assert caught.value.errno == errno.ENODATA


def test_lsattr_shows_i(shared):
    fd = os.open(shared.path("kubelet.conf"), os.O_RDONLY)
    try:
        flags = fcntl.ioctl(fd, FS_IOC_GETFLAGS, struct.pack("l", 0))
    finally:
        os.close(fd)
    assert struct.unpack("l", flags)[0] & FS_IMMUTABLE_FL
    assert "i" in lib.run("lsattr", shared.path("kubelet.conf"), check=True).stdout.decode().split()[0]


def refused(function, *args, **kwargs):
    assert lib.errno_name(lib.error_of(function, *args, **kwargs)) == "EPERM", (function, args)


def test_every_change_is_eperm(shared):
    path, other = shared.path("kubelet.conf"), shared.path("kubelet.conf.d", "10-eviction.conf")
    before, names = shared.read("kubelet.conf"), sorted(os.listdir(shared.mountpoint))
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND,
                  os.O_RDONLY | os.O_TRUNC):
        refused(os.open, path, flags)
    refused(os.truncate, path, 0)
    refused(os.truncate, path, len(before))
    refused(os.unlink, path)
    refused(os.rename, path, shared.path("elsewhere"))
    refused(os.rename, other, path)
    refused(os.link, path, shared.path("hardlink"))
    refused(os.chmod, path, 0o644)
    refused(os.chown, path, 1, 1)
    refused(os.utime, path, (1, 1))
    refused(os.utime, path)
    refused(os.setxattr, path, "user.mine", b"1")
    refused(os.setxattr, path, "user.lkgfs.generation", b"1")
    refused(os.removexattr, path, "user.lkgfs.generation")
    assert lib.error_of(os.mkdir, path) == errno.EEXIST
    assert lib.error_of(os.symlink, "x", path) == errno.EEXIST
    assert shared.read("kubelet.conf") == before
    assert sorted(os.listdir(shared.mountpoint)) == names
    assert os.path.exists(other)


@pytest.mark.parametrize("command", [
    "echo x > kubelet.conf", "echo x >> kubelet.conf", "echo x | tee kubelet.conf", "cp admin.conf kubelet.conf",
    "cp -f admin.conf kubelet.conf", "install -m 600 admin.conf kubelet.conf", "mv admin.conf kubelet.conf",
    "rm kubelet.conf", "rm -f kubelet.conf", "ln -sf admin.conf kubelet.conf", "sed -i s/64/65/ kubelet.conf",
    "touch kubelet.conf", "chmod 644 kubelet.conf", "chown 1:1 kubelet.conf", "truncate -s 0 kubelet.conf",
    "dd if=/dev/null of=kubelet.conf", "mv kubelet.conf x", "ln kubelet.conf x",
    "rsync admin.conf kubelet.conf", "perl -pi -e s/64/65/ kubelet.conf",
])
def test_tools_are_refused(shared, command):
    before, names = shared.read("kubelet.conf"), sorted(os.listdir(shared.mountpoint))
    result = lib.shell(command, cwd=shared.mountpoint)
    assert result.returncode != 0
    assert b"ermitted" in result.stderr, result.stderr
    assert shared.read("kubelet.conf") == before
    assert sorted(os.listdir(shared.mountpoint)) == names, "no temporary file is left behind"


def test_reading_tools(shared):
    want = shared.read("kubelet.conf")
    for command in ("cat kubelet.conf", "dd if=kubelet.conf bs=7 status=none", "head -c 100000 kubelet.conf",
                    "tail -c +1 kubelet.conf", "cp kubelet.conf /dev/stdout"):
        assert lib.shell(command, cwd=shared.mountpoint, check=True).stdout == want, command
    with open(shared.path("kubelet.conf"), "rb") as file:
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            assert mapped[:] == want
        with mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE) as mapped:
            mapped[0:1] = b"!"
        assert os.pread(file.fileno(), 10, 5) == want[5:15]
        assert os.pread(file.fileno(), 10, len(want)) == b""
        fcntl.flock(file.fileno(), fcntl.LOCK_SH)
    assert shared.read("kubelet.conf") == want


def test_permissions_for_others(shared):
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    os.chmod(shared.root, 0o755)
    for name, code in (("kubelet.conf", 1), ("status/kubelet/condition", 0), ("status/kubelet/generation", 0),
                       ("status/kubelet/origin", 1), ("status/kubelet/findings", 1), ("pki/ca.key", 1),
                       ("pki/ca.crt", 0)):
        result = lib.run("cat", shared.path(name), **nobody)
        assert result.returncode == code, name
        assert code == 0 or b"ermission denied" in result.stderr
    for tree in ("layers", "history"):
        documents = [os.path.join(folder, name) for folder, _, names in os.walk(shared.path(tree)) for name in names]
        assert documents
        for path in documents:
            assert lib.run("cat", path, **nobody).returncode != 0, path
    assert lib.run("cp", "/dev/null", shared.path("control/kubelet/sync"), **nobody).returncode != 0


def test_status_files(shared):
    """Rule: docs/specification.md 2.10."""
    directory = shared.path("status", "kubelet")
    have = sorted(os.listdir(directory))
    assert set(FACTS + DOCUMENTS) <= set(have)
    for name in have:
        st = os.stat(os.path.join(directory, name))
        data = lib.read_file(os.path.join(directory, name))
        assert st.st_size == len(data), f"size of {name} is true"
        assert (st.st_uid, st.st_gid) == (0, 0)
        assert st.st_mtime > 1.6e9, name
        if name in FACTS:
            assert stat.S_IMODE(st.st_mode) == 0o444, name
        if name in DOCUMENTS:
            assert stat.S_IMODE(st.st_mode) == 0o600, name
        assert lib.error_of(os.open, os.path.join(directory, name), os.O_WRONLY) != 0
        assert lib.error_of(os.unlink, os.path.join(directory, name)) == errno.EPERM
    assert lib.error_of(lib.write_file, os.path.join(directory, "new"), "x") == errno.EPERM
    assert lib.error_of(os.mkdir, shared.path("status", "new")) == errno.EPERM
    assert lib.error_of(os.rmdir, directory) == errno.EPERM


def test_facts_agree(shared):
    """Rule: docs/specification.md 2.10."""
    status, rest = shared.condition()
    assert status == "True", rest
    reason, _, message = rest.partition(": ")
    condition = json.loads(shared.status("condition.json"))
    assert (condition["status"], condition["reason"], condition["message"]) == (status, reason, message)
    assert condition["type"] == "ConfigOK" and condition["schemaVersion"] == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", condition["lastTransitionTime"])
    assert shared.status("active").strip() == "init"
    assert json.loads(shared.status("config.json"))["schemaVersion"] == 1
    assert shared.status("error").strip() == "" and shared.status("last-error").strip() == ""
    assert re.search(r'^lkgfs_generation\{component="kubelet"\} %d$' % shared.generation(),
                     shared.status("metrics.prom"), re.M)
    assert "# HELP lkgfs_generation" in shared.status("metrics.prom")


def test_origin(shared):
    lines = [line.split("\t") for line in shared.status("origin").splitlines()]
    assert all(len(line) == 5 for line in lines)
    fields = {line[0]: line for line in lines}
    pods = fields["/maxPods"]
    assert pods[1] == "64" and "20-pods.conf" in pods[2]
    assert re.search(r"kubelet\.conf\.d/20-pods\.conf:3:\d+$", pods[3])
    assert "110" in pods[4]
    assert fields["/evictionHard/imagefs.available"][4] == ""


def test_layers(shared):
    names = sorted(os.listdir(shared.path("layers", "kubelet")))
    parsed = [name for name in names if not name.endswith(".merged.yaml")]
    assert len(parsed) == 5
    assert re.fullmatch(r"\d{4}-base-.*\.yaml", parsed[0])
    assert [("10-eviction" in parsed[1]), ("20-pods" in parsed[2]), ("90-logging" in parsed[3])] == [True] * 3
    assert "-instance-" in parsed[4]
    for name in parsed:
        assert name[:-len(".yaml")] + ".merged.yaml" in names
    last = lib.read_file(shared.path("layers", "kubelet", parsed[4][:-5] + ".merged.yaml")).decode()
    _, body = without_comment(shared.document())
    assert body.strip() in last


def test_history(shared):
    generation = str(shared.generation())
    directory = shared.path("history", "kubelet", generation)
    assert {"kubelet.conf", "origin", "meta.json"} <= set(os.listdir(directory))
    meta = json.loads(lib.read_file(os.path.join(directory, "meta.json")))
    assert meta["schemaVersion"] == 1 and str(meta["generation"]) == generation
    assert meta["sha256"] == shared.status("sha256").strip()


def test_whole_tree_can_be_read_and_saved(shared, tmp_path):
    listing = lib.shell(f"find {shared.mountpoint} -type f | wc -l; grep -r maxPods {shared.mountpoint} | wc -l",
                        check=True)
    assert all(int(n) > 5 for n in listing.stdout.split())
    lib.run("tar", "-cf", tmp_path / "x.tar", "-C", shared.mountpoint, ".", check=True)
    with tarfile.open(tmp_path / "x.tar") as archive:
        for name in ("kubelet.conf", "status/kubelet/condition", "status/kubelet/origin", "pki/ca.key",
                     "kubelet.conf.d/20-pods.conf", "manifests/etcd.yaml"):
            member = archive.getmember("./" + name)
            assert archive.extractfile(member).read() == shared.read(name), name
            assert int(member.mtime) == int(os.stat(shared.path(name)).st_mtime), name
    for command in (f"cp -a {shared.mountpoint}/. {tmp_path}/cp", f"rsync -a {shared.mountpoint}/ {tmp_path}/rsync"):
        copied = lib.shell(command)  # condition.json has the time in it: with each second it is another file, and cp refuses one that it has looked at before
        assert all(b"/condition.json', as it was replaced" in line for line in copied.stderr.splitlines()) and (copied.stderr or copied.returncode == 0), copied
    for copy in ("cp", "rsync"):
        for name in ("kubelet.conf", "status/kubelet/sha256", "pki/ca.crt"):
            saved = tmp_path / copy / name
            assert saved.read_bytes() == shared.read(name)
            assert os.stat(saved).st_mode == os.stat(shared.path(name)).st_mode


def test_base_has_another_name(shared):
    assert shared.read("kubelet.conf.base").decode() == lib.BASE
    assert "kubelet.conf.base" in os.listdir(shared.mountpoint)
    assert ".lkgfs-fallback" not in os.listdir(shared.mountpoint)
    assert ".lv" not in os.listdir(shared.mountpoint)
    assert lib.error_of(os.stat, shared.path(".lv")) == errno.ENOENT


def test_statfs_and_mount_flags(shared):
    assert os.statvfs(shared.mountpoint).f_blocks == os.statvfs(shared.root).f_blocks
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        line = next(line for line in file if f" {shared.mountpoint} " in line)
    options = line.split()[5].split(",")
    assert "nosuid" in options and "nodev" in options
    assert "noexec" not in options and "nosymfollow" not in options
    assert "default_permissions" in line and "allow_other" in line


@contextlib.contextmanager
def source_mounted(mount, options):
    """Mount its source directory with these options."""
    tree = os.path.join(mount.root, "tree")
    os.rename(mount.source, tree)
    os.mkdir(mount.source, 0o755)
    lib.run("mount", "-t", "tmpfs", "-o", f"mode=755,{options}", "none", mount.source, check=True)
    os.close(mount.covered)
    try:
        lib.run("cp", "-a", tree + "/.", mount.source, check=True)
        mount.covered = os.open(mount.source, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        yield
    finally:
        mount.stop()
        lib.run("umount", "-l", mount.source, check=True)


@pytest.mark.parametrize("over", [True, False])
def test_what_the_mount_of_the_source_forbids(mounts, over):
    """No programs, no symlinks: neither through the view, nor through the view that replaces a dead one."""
    mount = mounts(over=over, start=False)
    with source_mounted(mount, "noexec,nosymfollow"):
        shutil.copy("/bin/true", mount.source)
        os.symlink("true", os.path.join(mount.source, "link"))

        def forbidden(directory):
            return (lib.error_of(subprocess.run, [os.path.join(directory, "true")]),
                    lib.error_of(os.open, os.path.join(directory, "link"), os.O_RDONLY))

        assert forbidden(mount.source) == (errno.EACCES, errno.ELOOP)
        mount.start()
        assert forbidden(mount.mountpoint) == (errno.EACCES, errno.ELOOP)
        assert os.readlink(mount.path("link")) == "true" and mount.condition()[0] == "True"
        for pid in (mount.process.pid, *mount.children().values()):
            lib.kill_and_wait(pid)
        mount.process.wait()
        mount.start()
        assert forbidden(mount.mountpoint) == (errno.EACCES, errno.ELOOP)
        assert "is not known" not in mount.log()


def test_nothing_is_mounted_inside(shared):
    """A submount would be writable in a container whose volume is read-only. Rule: docs/specification.md 2.8."""
    assert [line for line in lib.read_file("/proc/self/mountinfo").decode().splitlines()
            if line.split()[4].startswith(shared.mountpoint + "/")] == []


def test_creating_a_reserved_name(shared):
    for name in ("status", "control", "layers", "history"):
        assert lib.error_of(os.mkdir, shared.path(name)) == errno.EEXIST
        assert lib.error_of(os.rmdir, shared.path(name)) == errno.EPERM
        assert lib.error_of(os.rename, shared.path(name), shared.path("x")) == errno.EPERM


def test_no_o_tmpfile(shared):
    """A documented exclusion: it fails rather than pretends."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.open(os.fsencode(shared.path("manifests")), os.O_TMPFILE | os.O_RDWR, 0o600)
    assert fd == -1 and ctypes.get_errno() == errno.EOPNOTSUPP


def look_until_seen(path, count, told):
    """Look @count times, from the moment that it exists; write a byte for each refusal."""
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    end = lib.deadline()
    while count > 0 and time.monotonic() < end:
        try:
            os.stat(path)
            count -= 1
        except PermissionError:
            os.write(told, b"x")
        except FileNotFoundError:
            pass


def test_the_first_who_looks_is_not_refused():
    """The kernel knows nothing of the root at first, and it may discard what it was told then if there is a publication meanwhile."""
    for _ in range(8):
        with lib.Mount(start=False) as mount:
            os.chmod(mount.root, 0o711)
            read, write = os.pipe()
            pids = []
            for _ in range(3):
                pids.append(os.fork())
                if pids[-1] == 0:
                    try:
                        look_until_seen(mount.path("status"), 200, write)
                    finally:
                        os._exit(0)
            os.close(write)
            mount.start()
            refused = os.read(read, 100)
            os.close(read)
            for pid in pids:
                os.waitpid(pid, 0)
            assert refused == b""
