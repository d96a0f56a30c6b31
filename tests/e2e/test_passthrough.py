# SPDX-License-Identifier: Apache-2.0
"""The pass-through behaves like the directory underneath.

A generated sequence of calls is made on both and compared call by call (values, errno, attributes, contents, xattrs); then come
cases that need more than one call. Rule: docs/specification.md 2.7.
"""
import ctypes
import errno
import fcntl
import mmap
import os
import random
import select
import shutil
import signal
import socket
import stat
import struct
import time

import pytest

import lkgfs_container as container
import lkgfs_testlib as lib

LIBC = ctypes.CDLL(None, use_errno=True)
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
NAMES = ["a", "b", "c", "d", "sub", "link", "x.conf", "ü", "n" * 255]
OTHER = 65534


def renameat2(old, new, flags):
    if LIBC.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags) < 0:
        raise OSError(ctypes.get_errno(), "renameat2")


class Sequence:
    """Calls on paths below one directory; `do` makes one and returns something comparable.

    Every open is non-blocking, because a FIFO would wait; there are no devices, because the view is mounted nodev.
    """

    def __init__(self, root):
        self.root = root

    def path(self, *names):
        return os.path.join(self.root, *names)

    def describe(self, path):
        try:
            st = os.lstat(path)
        except OSError as error:
            return errno.errorcode[error.errno]
        kind = stat.S_IFMT(st.st_mode)
        size = st.st_size if kind != stat.S_IFDIR else 0
        return kind, stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, st.st_nlink, size, st.st_rdev

    def tree(self):
        found = {}
        for directory, dirs, files in os.walk(self.root):
            for name in dirs + files:
                path = os.path.join(directory, name)
                relative = os.path.relpath(path, self.root)
                content = None
                if stat.S_ISREG(os.lstat(path).st_mode):
                    content = lib.read_file(path)
                elif os.path.islink(path):
                    content = os.readlink(path)
                xattrs = {n: os.getxattr(path, n, follow_symlinks=False)
                          for n in os.listxattr(path, follow_symlinks=False)}
                found[relative] = self.describe(path), content, xattrs
        return found

    def do(self, call):
        name, args = call[0], call[1:]
        try:
            result = getattr(self, "call_" + name)(*args)
        except OSError as error:
            return errno.errorcode.get(error.errno, error.errno)
        return result

    def call_create(self, name, flags, mode, mask, data):
        old = os.umask(mask)
        try:
            fd = os.open(self.path(*name), os.O_CREAT | os.O_NONBLOCK | flags, mode)
        finally:
            os.umask(old)
        try:
            written = os.write(fd, data) if flags & (os.O_WRONLY | os.O_RDWR) else None
            return written, fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE, os.fstat(fd).st_size
        finally:
            os.close(fd)

    def call_open(self, name, flags):
        fd = os.open(self.path(*name), flags)
        try:
            return stat.S_IFMT(os.fstat(fd).st_mode)
        finally:
            os.close(fd)

    def call_read(self, name, size, offset):
        fd = os.open(self.path(*name), os.O_RDONLY | os.O_NONBLOCK)
        try:
            return os.pread(fd, size, offset)
        finally:
            os.close(fd)

    def call_pwrite(self, name, data, offset):
        fd = os.open(self.path(*name), os.O_WRONLY | os.O_NONBLOCK)
        try:
            return os.pwrite(fd, data, offset), os.fstat(fd).st_size, stat.S_IMODE(os.fstat(fd).st_mode)
        finally:
            os.close(fd)

    def call_append(self, name, data):
        fd = os.open(self.path(*name), os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        try:
            return os.write(fd, data), os.write(fd, data), os.lseek(fd, 0, os.SEEK_CUR)
        finally:
            os.close(fd)

    def call_mkdir(self, name, mode, mask):
        old = os.umask(mask)
        try:
            os.mkdir(self.path(*name), mode)
        finally:
            os.umask(old)

    def call_rmdir(self, name):
        os.rmdir(self.path(*name))

    def call_unlink(self, name):
        os.unlink(self.path(*name))

    def call_rename(self, old, new):
        os.rename(self.path(*old), self.path(*new))

    def call_renameat2(self, old, new, flags):
        renameat2(self.path(*old), self.path(*new), flags)

    def call_link(self, old, new):
        os.link(self.path(*old), self.path(*new), follow_symlinks=False)

    def call_symlink(self, target, new):
        os.symlink(target, self.path(*new))

    def call_readlink(self, name):
        return os.readlink(self.path(*name))

    def call_chmod(self, name, mode):
        os.chmod(self.path(*name), mode)

    def call_chown(self, name, uid, gid):
        os.chown(self.path(*name), uid, gid, follow_symlinks=False)

    def call_truncate(self, name, size):
        os.truncate(self.path(*name), size)

    def call_utime(self, name, ns):
        os.utime(self.path(*name), ns=(ns, ns + 1), follow_symlinks=False)
        st = os.lstat(self.path(*name))
        return st.st_atime_ns, st.st_mtime_ns

    def call_setxattr(self, name, key, value, flags):
        os.setxattr(self.path(*name), key, value, flags, follow_symlinks=False)

    def call_removexattr(self, name, key):
        os.removexattr(self.path(*name), key, follow_symlinks=False)

    def call_mknod(self, name, mode):
        os.mknod(self.path(*name), mode, os.makedev(1, 3))

    def call_listdir(self, name):
        return sorted(os.listdir(self.path(*name)))

    def call_access(self, name, mode):
        return os.access(self.path(*name), mode)

    def call_sync(self, name):
        fd = os.open(self.path(*name), os.O_RDONLY | os.O_NONBLOCK)
        try:
            os.fsync(fd)
            os.fdatasync(fd)
        finally:
            os.close(fd)

    def call_fallocate(self, name, offset, size):
        fd = os.open(self.path(*name), os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.posix_fallocate(fd, offset, size)
        finally:
            os.close(fd)

    def call_stat_slash(self, name):
        return self.describe(self.path(*name) + "/")


def random_call(rng):
    def name():
        depth = rng.choice([1, 1, 1, 2, 2, 3])
        return tuple(rng.choice(["sub", "d", "a"]) for _ in range(depth - 1)) + (rng.choice(NAMES),)

    data = bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 17, 500])))
    access = rng.choice([os.O_RDONLY, os.O_WRONLY, os.O_RDWR])
    extra = rng.choice([0, 0, os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_NOFOLLOW, os.O_DIRECTORY])
    if extra == os.O_DIRECTORY:
        access = os.O_RDONLY
    mode, mask = rng.choice([0o600, 0o644, 0o755, 0o4755, 0o2755, 0o1777, 0]), rng.choice([0, 0o022, 0o077])
    key = rng.choice(["user.a", "user.b", "user.lkgfs.x", "trusted.t", "nonsense", "user." + "k" * 200])
    return rng.choice([
        ("create", name(), (access | extra) & ~os.O_DIRECTORY, mode, mask, data),
        ("create", name(), os.O_WRONLY, 0o644, 0o022, data),
        ("open", name(), access | extra | os.O_NONBLOCK),
        ("read", name(), rng.choice([0, 10, 5000]), rng.choice([0, 3, 4096])),
        ("pwrite", name(), data, rng.choice([0, 5, 4096, 100000])),
        ("append", name(), data),
        ("mkdir", name(), mode, mask), ("mkdir", ("sub",), 0o755, 0), ("mkdir", ("d",), 0o2775, 0),
        ("rmdir", name()), ("unlink", name()), ("rename", name(), name()), ("rename", name(), name()),
        ("renameat2", name(), name(), rng.choice([0, RENAME_NOREPLACE, RENAME_EXCHANGE, 3, 64])),
        ("link", name(), name()), ("symlink", rng.choice(["a", "nowhere", "../a", "", "x" * 300]), name()),
        ("readlink", name()), ("chmod", name(), mode), ("chown", name(), rng.choice([0, 1, OTHER]), rng.choice([0, 1])),
        ("truncate", name(), rng.choice([0, 1, 1000, 1 << 20])),
        ("utime", name(), rng.choice([0, 10 ** 9, 1234567890123456789])),
        ("setxattr", name(), key, data[:100], rng.choice([0, 0, 1, 2])), ("removexattr", name(), key),
        ("mknod", name(), rng.choice([stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFREG]) | 0o600),
        ("listdir", name()), ("access", name(), rng.choice([os.R_OK, os.W_OK, os.X_OK, os.F_OK])), ("sync", name()),
        ("fallocate", name(), rng.choice([0, 100]), rng.choice([1, 5000])), ("stat_slash", name()),
        ("create", ("n" * 256,), os.O_WRONLY, 0o644, 0, b""),
    ])


@pytest.mark.parametrize("seed,user", [(1, 0), (2, 0), (3, 0), (4, 0), (5, OTHER), (6, OTHER), (7, OTHER)])
def test_same_as_underneath(shared, seed, user):
    rng = random.Random(seed)
    os.chmod(shared.root, 0o755)
    os.chmod(shared.path("tmp"), 0o755)
    plain = Sequence(os.path.join(shared.root, f"plain-{seed}"))
    through = Sequence(shared.path("tmp", f"through-{seed}"))
    calls = []
    for sequence in (plain, through):
        os.mkdir(sequence.root)
        os.chmod(sequence.root, 0o777)
    os.setegid(user)
    os.seteuid(user)
    try:
        for _ in range(1500):
            call = random_call(rng)
            calls.append(call)
            want, got = plain.do(call), through.do(call)
            assert got == want, (call, calls[-8:])
            for name in call[1:3]:
                if isinstance(name, tuple):
                    want, got = plain.describe(plain.path(*name)), through.describe(through.path(*name))
                    assert got == want, (call, name, calls[-8:])
    finally:
        os.seteuid(0)
        os.setegid(0)
    assert through.tree() == plain.tree()
    shutil.rmtree(through.root)
    shutil.rmtree(plain.root)


def test_setgid_and_suid(shared):
    directory = shared.path("tmp", "setgid")
    os.mkdir(directory)
    os.chown(directory, 0, 1234)
    os.chmod(directory, 0o2777)
    lib.write_file(os.path.join(directory, "f"), "x")
    os.mkdir(os.path.join(directory, "d"))
    assert os.stat(os.path.join(directory, "f")).st_gid == 1234
    assert os.stat(os.path.join(directory, "d")).st_mode & stat.S_ISGID
    path = os.path.join(directory, "suid")
    lib.write_file(path, "x")
    os.chmod(path, 0o6777)
    os.chmod(shared.root, 0o755)
    os.chmod(shared.path("tmp"), 0o755)
    lib.shell(f"echo y >> {path}", user=OTHER, group=OTHER, extra_groups=[], check=True)
    assert os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID) == 0, "a write kills setuid"


CAP_NET_RAW = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)  # the effective flag, and the capability: linux/capability.h
CHANGES = {
    "write": "printf y >> {}", "truncate": "truncate -s 1 {}", "open": ": > {}", "chown": "chown 0:1234 {}", "chmod": "chmod 6755 {}",
    "copy": "dd if=/etc/hostname of={} conv=notrunc status=none", "allocate": "fallocate -l 4096 {}"}


@pytest.mark.parametrize("who", [["setpriv", "--clear-groups", f"--reuid={OTHER}", f"--regid={OTHER}"], [], ["setpriv", "--bounding-set=-fsetid"]],
                         ids=["user", "root", "root without CAP_FSETID"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_ends_set_id_bits_and_file_capabilities(shared, change, who):
    """The same as on the file system underneath. Rule: docs/specification.md 2.7."""
    found = {}
    os.chmod(shared.root, 0o755)
    for name, behind in (("view", shared.path("tmp", "privileges")), ("plain", os.path.join(shared.root, "privileges"))):
        lib.write_file(behind, "content")
        os.chown(behind, OTHER if who and "fsetid" not in who[-1] else 0, 0)
        os.chmod(behind, 0o6777)
        plain = shared.behind("tmp", "privileges") if name == "view" else behind
        os.setxattr(plain, "security.capability", CAP_NET_RAW)
        os.chmod(os.path.dirname(behind), 0o755)
        status = lib.run(*who, "sh", "-c", CHANGES[change].format(behind)).returncode
        found[name] = (status, oct(os.stat(behind).st_mode), oct(os.stat(plain).st_mode), os.listxattr(plain))
        os.unlink(behind)
    assert found["view"] == found["plain"]


def test_an_acl_of_the_root_counts_at_once(mount, waiters):
    os.chmod(mount.root, 0o711)
    mount.wait_for(lambda: time.time() > os.stat(mount.path()).st_ctime + 2.5, "that there is none is remembered then")
    for words, seen in (((), 0), (("--modify", f"u:{OTHER}:---"), errno.EACCES), (("--remove-all",), 0)):
        if words:
            lib.run("setfacl", *words, mount.path(), check=True)
        assert waiters(os.stat, mount.path("kubelet.conf"), uid=OTHER).result() == seen, words


def test_acls(shared):
    directory = shared.path("tmp", "acl")
    os.mkdir(directory)
    lib.run("setfacl", "-m", f"u:{OTHER}:rwx", directory, check=True)
    lib.run("setfacl", "-d", "-m", f"u:{OTHER}:rw,g::r,o::-", directory, check=True)
    lib.write_file(os.path.join(directory, "f"), "x", 0o666)
    plain = os.path.join(shared.root, "acl")
    os.mkdir(plain)
    lib.run("setfacl", "-m", f"u:{OTHER}:rwx", plain, check=True)
    lib.run("setfacl", "-d", "-m", f"u:{OTHER}:rw,g::r,o::-", plain, check=True)
    lib.write_file(os.path.join(plain, "f"), "x", 0o666)
    got, want = (lib.run("getfacl", "-cn", os.path.join(d, "f"), check=True).stdout for d in (directory, plain))
    assert got == want
    os.chmod(shared.root, 0o755)
    os.chmod(shared.path("tmp"), 0o755)
    assert lib.run("cat", os.path.join(directory, "f"), user=OTHER, group=OTHER, extra_groups=[]).returncode == 0
    stranger = {"user": OTHER - 1, "group": OTHER - 1, "extra_groups": []}
    assert lib.run("cat", os.path.join(directory, "f"), **stranger).returncode != 0


def test_supplementary_groups(shared):
    path = shared.path("tmp", "grouped")
    lib.write_file(path, "x", 0o640)
    os.chown(path, 0, 4321)
    os.chmod(shared.root, 0o755)
    os.chmod(shared.path("tmp"), 0o755)
    assert lib.run("cat", path, user=OTHER, group=OTHER, extra_groups=[4321]).returncode == 0
    assert lib.run("cat", path, user=OTHER, group=OTHER, extra_groups=[]).returncode != 0


def test_unlinked_but_open(shared):
    path = shared.path("tmp", "unlinked")
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(fd, b"still here")
    os.unlink(path)
    assert os.fstat(fd).st_nlink == 0
    assert os.pread(fd, 100, 0) == b"still here"
    os.pwrite(fd, b"STILL", 0)
    assert os.pread(fd, 100, 0) == b"STILL here" and os.fstat(fd).st_size == 10
    os.ftruncate(fd, 5)
    assert os.fstat(fd).st_size == 5
    os.close(fd)
    assert "unlinked" not in os.listdir(shared.path("tmp"))


def test_locks_among_users_of_the_mount(shared):
    path = shared.path("tmp", "locked")
    lib.write_file(path, "x")
    with open(path, "r+b") as first, open(path, "r+b") as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        assert lib.error_of(fcntl.flock, second, fcntl.LOCK_EX | fcntl.LOCK_NB) == errno.EAGAIN
        fcntl.flock(first, fcntl.LOCK_UN)
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    holder = "import fcntl,sys; f=open(sys.argv[1],'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
    import subprocess  # pylint: disable=import-outside-toplevel
    with subprocess.Popen(["python3", "-c", holder, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with open(path, "r+b") as file:
            assert lib.error_of(fcntl.lockf, file, fcntl.LOCK_EX | fcntl.LOCK_NB) in (errno.EAGAIN, errno.EACCES)
            process.communicate(b"\n")
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_mmap_shared(shared):
    path = shared.path("tmp", "mapped")
    lib.write_file(path, b"0" * 8192)
    with open(path, "r+b") as file, open(path, "r+b") as other:
        with mmap.mmap(file.fileno(), 8192) as one, mmap.mmap(other.fileno(), 8192) as two:
            one[5000:5003] = b"abc"
            assert two[5000:5003] == b"abc"
            one.flush()
    assert lib.read_file(path)[5000:5003] == b"abc"
    assert lib.read_file(shared.behind("tmp", "mapped"))[5000:5003] == b"abc"


def test_sparse_files(shared):
    path = shared.path("tmp", "sparse")
    with open(path, "wb") as file:
        file.seek(50 << 20)
        file.write(b"end")
    assert os.stat(path).st_blocks * 512 < 1 << 20
    with open(path, "rb") as file:
        assert os.lseek(file.fileno(), 0, os.SEEK_DATA) >= (49 << 20)
        assert os.lseek(file.fileno(), 0, os.SEEK_HOLE) == 0


def test_fifos_and_sockets(shared):
    path = shared.path("tmp", "fifo")
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY)
    os.write(writer, b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    os.close(writer)
    directory = os.open(shared.path("tmp"), os.O_PATH)
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(f"/proc/self/fd/{directory}/sock")
        server.listen()
        client.connect(f"/proc/self/fd/{directory}/sock")
    os.close(directory)


def test_changes_behind_are_seen(shared):
    path, behind = shared.path("manifests", "new.yaml"), shared.behind("manifests", "new.yaml")
    lib.write_file(behind, "one")
    shared.wait_for(lambda: os.path.exists(path) and lib.read_file(path) == b"one")
    lib.write_file(behind, "second content")
    shared.wait_for(lambda: os.stat(path).st_size == 14 and lib.read_file(path) == b"second content")
    os.unlink(behind)
    shared.wait_for(lambda: not os.path.exists(path))


def test_changes_behind_are_relayed_to_watchers(shared):
    """Rule: docs/specification.md 2.6."""
    with lib.Inotify() as inotify:
        mask = (inotify.CREATE | inotify.MODIFY | inotify.CLOSE_WRITE | inotify.DELETE | inotify.MOVED_TO |
                inotify.MOVED_FROM | inotify.ATTRIB)
        inotify.add(shared.path("manifests"), mask)
        os.listdir(shared.path("manifests"))
        lib.write_file(shared.behind("manifests", "pod.yaml"), lib.STATIC_POD)
        inotify.wait(lambda seen: any(e[3] == "pod.yaml" for e in seen), timeout=10)
        while inotify.events(0.3):
            pass
        lib.write_file(shared.behind("manifests", "pod.yaml"), lib.STATIC_POD + "# changed\n")
        inotify.wait(lambda seen: any(e[3] == "pod.yaml" and e[1] & (inotify.MODIFY | inotify.CLOSE_WRITE)
                                      for e in seen), timeout=10)
        while inotify.events(0.3):
            pass
        os.unlink(shared.behind("manifests", "pod.yaml"))
        inotify.wait(lambda seen: any(e[3] == "pod.yaml" for e in seen), timeout=10)


def test_a_relayed_removal_leaves_the_open_file_alone(shared):
    """It is open and mapped; when the kernel is told of its removal once more, it must not drop the pages."""
    path = shared.path("manifests", "mapped.yaml")
    lib.write_file(path, lib.STATIC_POD)
    with lib.Inotify() as inotify, open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        inotify.add(shared.path("manifests"), inotify.DELETE)
        os.listdir(shared.path("manifests"))
        os.unlink(shared.behind("manifests", "mapped.yaml"))
        inotify.wait(lambda seen: any(e[3] == "mapped.yaml" for e in seen), timeout=10)
        child = os.fork()
        if child == 0:  # an access beyond the end of the file would be a SIGBUS
            os._exit(mapped[:3] != lib.STATIC_POD[:3].encode())
        assert os.waitpid(child, 0)[1] == 0
        assert os.pread(file.fileno(), 1 << 16, 0) == lib.STATIC_POD.encode()


def test_inotify_through_the_mount(shared):
    with lib.Inotify() as inotify:
        wd = inotify.add(shared.path("manifests"),
                         inotify.CREATE | inotify.CLOSE_WRITE | inotify.MOVED_TO | inotify.DELETE)
        lib.write_file(shared.path("manifests", "a"), "x")
        os.rename(shared.path("manifests", "a"), shared.path("manifests", "b"))
        os.unlink(shared.path("manifests", "b"))
        events = inotify.wait(lambda seen: any(e[1] & inotify.DELETE for e in seen))
        assert {e[0] for e in events} == {wd}
        masks = [e[1] for e in events]
        assert masks[0] & inotify.CREATE and any(m & inotify.MOVED_TO for m in masks)


def test_large_file_and_many_entries(shared):
    data = os.urandom(5 << 20)
    lib.write_file(shared.path("tmp", "large"), data)
    assert lib.read_file(shared.path("tmp", "large")) == data
    assert lib.read_file(shared.behind("tmp", "large")) == data
    directory = shared.path("tmp", "many")
    os.mkdir(directory)
    for i in range(3000):
        os.close(os.open(os.path.join(directory, f"entry-{i}"), os.O_CREAT | os.O_WRONLY))
    assert len(os.listdir(directory)) == 3000
    fd = os.open(directory, os.O_RDONLY)
    for i in range(0, 3000, 2):
        os.unlink(os.path.join(directory, f"entry-{i}"))
    assert len(os.listdir(fd)) == 1500
    os.close(fd)
    shutil.rmtree(directory)
    os.unlink(shared.path("tmp", "large"))


def test_interrupted_call(shared):
    """A signal must not leave a caller stuck in the mount: open a FIFO for reading and interrupt it."""
    path = shared.path("tmp", "blocking")
    os.mkfifo(path)
    process = lib.subprocess.Popen(["cat", path])
    select.select([], [], [], 0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(lib.TIMEOUT_S) == -signal.SIGTERM
    os.unlink(path)


def test_copy_file_range_and_sendfile(shared):
    source, target = shared.path("tmp", "from"), shared.path("tmp", "to")
    lib.write_file(source, b"0123456789" * 1000)
    with open(source, "rb") as a, open(target, "wb") as b:
        copied = 0
        while copied < 10000:
            copied += os.copy_file_range(a.fileno(), b.fileno(), 10000 - copied)
    assert lib.read_file(target) == lib.read_file(source)
    with open(shared.path("kubelet.conf"), "rb") as a, open(target, "wb") as b:
        size = os.fstat(a.fileno()).st_size
        assert os.sendfile(b.fileno(), a.fileno(), 0, size) == size
    assert lib.read_file(target) == shared.read("kubelet.conf")


def test_ioctl_is_refused_politely(shared):
    lib.write_file(shared.path("tmp", "plain"), "x")
    with open(shared.path("tmp", "plain"), "rb") as file:
        assert lib.error_of(fcntl.ioctl, file, 0x40086602, struct.pack("l", 0x10)) in (errno.ENOTTY, errno.EOPNOTSUPP,
                                                                                     errno.ENOSYS, errno.EPERM)


def test_symlinks_behind_are_relayed_and_leave_nothing(shared):
    with lib.Inotify() as inotify:
        inotify.add(shared.path("manifests"), inotify.CREATE | inotify.DELETE)
        os.symlink("pod.yaml", shared.behind("manifests", "link-behind"))
        inotify.wait(lambda seen: any(e[3] == "link-behind" and e[1] & inotify.CREATE for e in seen), timeout=10)
        os.unlink(shared.behind("manifests", "link-behind"))
        inotify.wait(lambda seen: any(e[3] == "link-behind" and e[1] & inotify.DELETE for e in seen), timeout=10)
    assert not os.path.lexists(shared.behind("manifests", "link-behind"))


def test_relay_never_touches_another_directory_of_that_name(shared):
    """A directory is moved away behind the mount while a process has it open, and another one takes its name."""
    old, away = shared.behind("manifests", "d"), shared.behind("tmp", "away")
    os.mkdir(shared.path("manifests", "d"))
    lib.write_file(os.path.join(old, "pod.yaml"), "old\n")
    here = os.open(shared.path("manifests", "d"), os.O_RDONLY | os.O_DIRECTORY)
    try:
        with lib.Inotify() as inotify:
            inotify.add(f"/proc/self/fd/{here}", inotify.CREATE | inotify.DELETE)
            inotify.add(shared.path("manifests"), inotify.CREATE)
            os.rename(old, away)
            os.mkdir(old)
            lib.write_file(os.path.join(old, "pod.yaml"), "new\n")
            os.unlink(os.path.join(away, "pod.yaml"))
            lib.write_file(os.path.join(away, "made.yaml"), "made\n")
            os.mkdir(shared.behind("manifests", "last"))  # its event comes after theirs
            inotify.wait(lambda seen: any(e[3] == "last" for e in seen), timeout=10)
            while inotify.events(0.3):
                pass
    finally:
        os.close(here)
    assert lib.read_file(os.path.join(old, "pod.yaml")) == b"new\n"
    assert sorted(os.listdir(old)) == ["pod.yaml"]


def test_mapping_through_an_append_handle(shared):
    path = shared.path("tmp", "appended")
    lib.write_file(path, "0123456789")
    fd = os.open(path, os.O_RDWR | os.O_APPEND)
    with mmap.mmap(fd, 10) as mapped:
        mapped[3] = ord("x")
        mapped.flush()
    os.write(fd, b"tail")
    os.close(fd)
    assert lib.read_file(shared.behind("tmp", "appended")) == b"012x456789tail"


def test_truncation_by_a_reader_of_a_file_that_has_rested(shared):
    """O_RDONLY | O_TRUNC truncates, even if the kernel has the pages cached and would not open the file."""
    path = shared.path("tmp", "rested")
    lib.write_file(path, "x" * 5000)
    os.utime(path, (1, 1))
    while time.time() - os.stat(path).st_ctime < 0.2:  # a file this young is always opened
        time.sleep(0.01)
    for _ in range(2):
        assert lib.read_file(path) == b"x" * 5000
    fd = os.open(path, os.O_RDONLY | os.O_TRUNC)
    assert os.fstat(fd).st_size == 0
    os.close(fd)
    assert lib.read_file(path) == b"" and os.path.getsize(shared.behind("tmp", "rested")) == 0


def test_create_over_a_name_made_behind(shared):
    """The kernel does not know the file yet: it is opened with the usual checks."""
    directory = shared.path("tmp")
    for i in range(20):
        name = f"behind-{i}"
        assert not os.path.exists(os.path.join(directory, name))
        lib.write_file(shared.behind("tmp", name), "there")
        fd = os.open(os.path.join(directory, name), os.O_CREAT | os.O_RDWR, 0o600)
        assert os.read(fd, 10) == b"there"
        os.close(fd)


def test_names_of_trusted_attributes_are_roots(mount):
    """As on a plain file system: see xattr(7)."""
    os.chmod(mount.root, 0o755)
    path = mount.path("attributes")
    lib.write_file(path, "x", 0o666)
    os.chmod(path, 0o666)
    for name in ("user.a", "trusted.b", "trusted.c"):
        os.setxattr(path, name, b"1")
    os.setxattr(path, "user.d", b"1")
    assert sorted(os.listxattr(path)) == ["trusted.b", "trusted.c", "user.a", "user.d"]
    with container.User(65534) as nobody:
        assert sorted(nobody.call(os.listxattr, path)) == ["user.a", "user.d"]


def test_who_truncates_another_ones_program_takes_its_set_id_bits(mount):
    """As on a plain file system; truncation by root keeps them."""
    os.chmod(mount.root, 0o755)
    path = mount.path("program")
    for by_root in (False, True):
        lib.write_file(path, "x")
        os.chmod(path, 0o6777)
        if by_root:
            os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))
        else:
            with container.User(65534) as nobody:
                nobody.call(lib.write_file, path, "")
        assert os.stat(path).st_size == 0 and os.stat(path).st_mode & 0o7777 == (0o6777 if by_root else 0o777)
