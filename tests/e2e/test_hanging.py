# SPDX-License-Identifier: Apache-2.0
"""The source directory may hang, for whatever reason: what the view shows is served all the same, and nobody waits but who asked."""
import contextlib
import errno
import faulthandler
import mmap
import os
import select
import signal
import subprocess
import sys
import time

import pytest

import lkgfs_container as container
import lkgfs_deadfs as deadfs
import lkgfs_testlib as lib

NOBODY = 65534
SOON_S = 0.010  # as long as a file of the view may take
THREADS_OF_ONE = 64 // 8


class Waiter:
    """A process that makes one call, which hangs: as another user, killed at the end."""

    def __init__(self, function, *arguments, uid=NOBODY):
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 99
            try:
                os.close(read)
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                os.write(write, b"x")
                code = lib.error_of(function, *arguments)
            finally:
                os._exit(code)
        os.close(write)
        os.read(read, 1)
        os.close(read)
        self.pidfd = os.pidfd_open(self.pid)

    def is_over(self, timeout=0.0):
        return bool(select.select([self.pidfd], [], [], timeout)[0])

    def result(self, timeout=lib.TIMEOUT_S):
        """The errno of its call, or minus the signal that ended it."""
        assert self.is_over(timeout), "it still waits"
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def close(self):
        if self.pid:
            self.kill()
            os.waitpid(self.pid, 0)
            os.close(self.pidfd)
            self.pid = 0


@pytest.fixture(name="waiters")
def fixture_waiters():
    started = []

    def start(function, *arguments, **options):
        started.append(Waiter(function, *arguments, **options))
        return started[-1]

    with contextlib.ExitStack() as stack:
        start.all = started
        start.stack = stack
        yield start
        stack.close()  # what hangs is let go first
        for waiter in started:
            waiter.close()


@pytest.fixture(name="dead")
def fixture_dead(mount, waiters):
    """A mount with a file system below it that answers nothing any more; (mount, file system)."""
    os.chmod(mount.root, 0o711)
    mount.first_server = mount.child("lkgfs-fs")
    os.mkdir(mount.behind("dead"))
    fs = waiters.stack.enter_context(deadfs.DeadFs(mount.behind("dead"), ["file", "other"]))
    mount.wait_for(lambda: lib.error_of(os.stat, mount.path("dead", "file")) == 0, "the kernel believes names of directories for a second")
    assert lib.read_file(mount.path("dead", "file")) == b"content\n"
    assert sorted(os.listdir(mount.path("dead"))) == ["dir", "file", "other"]
    return mount, fs


def how_long(path, count=100):
    """Sorted times of opening and reading it, in seconds."""
    times = []
    for _ in range(count):
        begun = time.monotonic()
        assert lib.read_file(path)
        times.append(time.monotonic() - begun)
    return sorted(times)


def check_view(mount, pods):
    """Files of the view, at once: what is cached, and what is new."""
    for n in range(3):
        mount.drop("70-root.conf", f"maxPods: {pods + n}\n")
        times = how_long(mount.path("kubelet.conf"))
        assert f"maxPods: {pods + n}\n" in mount.document()
        assert times[len(times) * 9 // 10] < SOON_S, times[-10:]
    assert how_long(mount.vpath("status", "kubelet", "condition"))[90] < SOON_S
    assert "kubelet" in os.listdir(mount.vpath("status"))


def held(mount):
    """What hangs, as the kernel counts it: requests without an answer."""
    control = os.path.join(mount.root, "fusectl")
    if not os.path.isdir(control):
        os.mkdir(control)
        container.mount("fusectl", control, "fusectl")
    return int(lib.read_file(f"{control}/{os.minor(os.stat(mount.mountpoint).st_dev)}/waiting"))


def is_held(mount, count):
    end = lib.deadline()
    while held(mount) < count:
        assert time.monotonic() < end, f"only {held(mount)} of {count} wait"
        time.sleep(0.01)


def open_and(path, flags, function):
    """Opened while the file system lives; the call comes when it is dead."""
    fd = os.open(path, flags)
    return lambda: function(fd)


KINDS = {
    "stat": (os.stat, "file"),
    "look up": (os.stat, "never seen"),
    "open": (os.open, "file", os.O_RDONLY),
    "truncate": (os.truncate, "file", 0),
    "list": (os.listdir, ""),
    "statfs": (os.statvfs, ""),
    "make": (os.mkdir, "new"),
    "create": (os.open, "new-file", os.O_WRONLY | os.O_CREAT),
    "remove": (os.unlink, "other"),
    "chmod": (os.chmod, "file", 0o600),
    "xattr": (os.getxattr, "file", "user.x"),
    "rename": (lambda path: os.rename(path, path + "2"), "file"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_hangs_stops_nothing(dead, waiters, kind):
    mount, fs = dead
    function, name, *rest = KINDS[kind]
    fs.die()
    for _ in range(20):
        waiters(function, mount.path("dead", name), *rest, uid=0)
    is_held(mount, 1)
    check_view(mount, 20)
    assert mount.child("lkgfs-fs") == mount.first_server, "it is not the file server that hangs"


def touch_page(fd):
    faulthandler.disable()  # who is let go from a page that never comes gets SIGBUS
    return mmap.mmap(fd, 8, prot=mmap.PROT_READ)[0]


DESCRIPTORS = {
    "read": lambda fd: os.pread(fd, 10, 0),
    "write": lambda fd: os.pwrite(fd, b"x", 0),
    "fsync": os.fsync,
    "close": os.close,
    "fallocate": lambda fd: os.posix_fallocate(fd, 0, 10),
    "mmap": touch_page,
    "splice": lambda fd: os.splice(fd, os.pipe()[1], 10),
    "sendfile": lambda fd: os.sendfile(os.open("/dev/null", os.O_WRONLY), fd, 0, 10),
    "copy_file_range": lambda fd: os.copy_file_range(fd, os.dup(fd), 10, 0, 100),
}


@pytest.mark.parametrize("kind", DESCRIPTORS)
def test_a_descriptor_that_hangs_stops_nothing(dead, waiters, kind):
    mount, fs = dead
    calls = [open_and(mount.path("dead", "file"), os.O_RDWR, DESCRIPTORS[kind]) for _ in range(20)]
    fs.die()
    for call in calls:
        waiters(call)
    is_held(mount, 1)
    check_view(mount, 40)
    assert mount.child("lkgfs-fs") == mount.first_server


def test_reads_ahead_are_not_rationed_for_all(dead, waiters):
    """The kernel asks for nothing more in the background while 32 such requests are in our hands, unless it was told otherwise."""
    mount, fs = dead
    paths = []
    for i in range(60):
        paths.append(mount.path("dead", f"n{i}"))
        os.close(os.open(paths[-1], os.O_WRONLY | os.O_CREAT))
    fs.die()
    for path in paths:
        waiters(lib.read_file, path, uid=NOBODY - len(waiters.all) % 30)
    is_held(mount, 60)
    check_view(mount, 60)


def test_one_user_does_not_stop_another_one(dead, waiters):
    """He has a share of the threads; the rest of his calls wait for those, not the others for him."""
    mount, fs = dead
    os.mkdir(mount.behind("open"), 0o777)
    os.chmod(mount.behind("open"), 0o777)
    fs.die()
    for _ in range(100):
        waiters(os.stat, mount.path("dead", "file"))
    is_held(mount, THREADS_OF_ONE)
    with container.User(NOBODY - 1) as other:
        for i in range(20):
            other.call(container.write_file, mount.path("open", f"{i}"))
            assert other.call(container.read_file, mount.path("open", f"{i}")) == b"x"
        assert len(other.call(os.listdir, mount.path("open"))) == 20
    lib.write_file(mount.path("manifests", "new"), "x")
    check_view(mount, 80)


def test_who_has_his_share_is_refused(dead, waiters):
    mount, fs = dead
    fs.die()
    all_of_them = [waiters(os.stat, mount.path("dead", "file")) for _ in range(60)]
    refused = []
    mount.wait_for(lambda: [refused.append(w) for w in all_of_them if w not in refused and w.is_over()] or len(refused) >= 25,
                   "the rest of his calls is refused")
    assert {waiter.result() for waiter in refused} == {errno.EBUSY}
    fs.live()
    others = [waiter.result() for waiter in all_of_them if waiter not in refused]
    assert others.count(0) >= 20 and set(others) <= {0, errno.EBUSY}
    assert os.stat(mount.path("dead", "file"))


def test_who_is_killed_is_let_go(dead, waiters):
    """As without us: the kernel lets a killed process go from a lock or a network file system, and so does the file server."""
    mount, fs = dead
    fs.die()
    all_of_them = [waiters(os.stat, mount.path("dead", "file")) for _ in range(20)]
    is_held(mount, 20)
    for waiter in all_of_them:
        waiter.kill()
    for waiter in all_of_them:
        assert waiter.result() == -signal.SIGKILL
    assert held(mount) == 0
    check_view(mount, 90)
    fs.live()
    mount.wait_for(lambda: lib.error_of(os.stat, mount.path("dead", "file")) == 0, "nothing of it is left")


def test_what_was_let_go_leaves_nothing(dead, waiters):
    """An open that succeeds when its caller is gone: the record is given back."""
    mount, fs = dead
    fs.die(deadfs.OPEN, deadfs.CREATE, deadfs.MKDIR)
    for function, *arguments in ((os.open, "file", os.O_RDWR), (os.mkdir, "dir/dir2"), (os.open, "new", os.O_RDWR | os.O_CREAT)):
        before = fs.waiting()
        waiter = waiters(function, mount.path("dead", arguments[0]), *arguments[1:])
        mount.wait_for(lambda before=before: fs.waiting() > before, "its call has come to the dead file system")
        waiter.kill()
        assert waiter.result() == -signal.SIGKILL
    fs.live()
    for name in ("dir/dir2", "new"):
        mount.wait_for(lambda name=name: lib.error_of(os.stat, mount.path("dead", name)) == 0, "what was begun is done")
    with container.User(NOBODY) as nobody:
        assert nobody.call(container.hold_open, mount.path("dead", "file"), os.O_RDONLY, 16384)[0] == 16384 // 8


# leases

def make_own(mount, name="own"):
    lib.write_file(mount.behind(name), "mine\n")
    os.chown(mount.behind(name), NOBODY, NOBODY)
    return mount.path(name)


@contextlib.contextmanager
def lease(mount, name="own"):
    """Somebody who holds a lease on his file behind the mount and does not give it up when he is told to."""
    make_own(mount, name)
    script = ("import fcntl, os, signal, sys\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\n"
              "fd = os.open(sys.argv[1], os.O_RDWR)\nos.setresuid(65534, 65534, 65534)\nfcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
              "print('x', flush=True)\nsys.stdin.read()\n")
    with subprocess.Popen([sys.executable, "-c", script, mount.behind(name)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as holder:
        assert holder.stdout.read(1) == b"x"
        try:
            yield mount.path(name)
        finally:
            holder.kill()


def open_and_read(path, flags):
    fd = os.open(path, flags)
    if flags == os.O_RDONLY:
        os.read(fd, 1)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_TRUNC])
def test_a_lease_stops_nobody_else(mount, waiters, flags):
    os.chmod(mount.root, 0o711)
    server = mount.child("lkgfs-fs")
    path = waiters.stack.enter_context(lease(mount))
    for _ in range(40):
        waiters(open_and_read, path, flags)
    is_held(mount, 1 if flags == os.O_RDONLY else THREADS_OF_ONE)  # who reads the same page waits in the kernel
    check_view(mount, 100)
    lib.write_file(mount.path("manifests", "new"), "x")
    if flags != os.O_RDONLY:  # what has not changed is not opened before it is read
        assert lib.error_of(os.open, path, flags | os.O_NONBLOCK) == errno.EWOULDBLOCK
    assert mount.child("lkgfs-fs") == server


def test_who_waits_for_a_lease_gets_it(mount, waiters):
    os.chmod(mount.root, 0o711)
    with lease(mount) as path:
        reader = waiters(lib.read_file, path)
        cutter = waiters(os.truncate, path, 1)
        is_held(mount, 2)
        assert not reader.is_over() and not cutter.is_over()
    assert reader.result() == 0 and cutter.result() == 0
    assert lib.read_file(mount.behind("own")) == b"m"


def wait_and_be_told(path):
    def told(*_):
        raise InterruptedError(errno.EINTR, "told")
    signal.signal(signal.SIGALRM, told)
    signal.alarm(1)
    os.open(path, os.O_RDWR)


def test_a_lease_is_interrupted_by_a_signal(mount, waiters):
    os.chmod(mount.root, 0o711)
    path = waiters.stack.enter_context(lease(mount))
    waiter = waiters(wait_and_be_told, path)
    is_held(mount, 1)
    assert waiter.result() == errno.EINTR


# the file server and lkgfsd while something hangs

def test_a_successor_does_not_hang(dead, waiters):
    mount, fs = dead
    fs.die()
    all_of_them = [waiters(os.stat, mount.path("dead", "file"), uid=NOBODY - i) for i in range(10)]
    is_held(mount, 10)
    os.kill(mount.child("lkgfs-fs"), signal.SIGKILL)  # its end may be long in coming: it waits in the kernel
    assert mount.document()
    check_view(mount, 20)
    assert mount.child("lkgfs-fs") != mount.first_server
    assert not any(waiter.is_over() for waiter in all_of_them)
    fs.live()
    assert {waiter.result() for waiter in all_of_them} == {0}


def test_stop_reload_and_restart_while_something_hangs(dead, waiters):
    mount, fs = dead
    fs.die()
    for i in range(10):
        waiters(os.stat, mount.path("dead", "file"), uid=NOBODY - i)
    is_held(mount, 10)
    mount.reload()
    check_view(mount, 30)
    mount.kill_supervisor()
    mount.start()
    check_view(mount, 40)
    begun = time.monotonic()
    assert mount.stop() == 0
    assert time.monotonic() - begun < 20


def test_a_fifo_is_nobodys_business(mount, waiters):
    os.chmod(mount.root, 0o711)
    os.mkfifo(mount.behind("fifo"))
    os.chmod(mount.behind("fifo"), 0o666)
    os.mkfifo(mount.path("fifo2"))
    os.chmod(mount.path("fifo2"), 0o666)
    for name in ("fifo", "fifo2"):
        for flags in (os.O_RDONLY, os.O_WRONLY):
            for _ in range(20):
                waiters(os.open, mount.path(name), flags, uid=NOBODY - flags)
    check_view(mount, 50)


# what was replaced

def states_of_children(pid):
    states = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{int(entry)}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                states.append(fields[0])
    return states


def test_replaced_servers_are_reaped(mount):
    """Killed, and one that hung: nothing of it stays."""
    for _ in range(3):
        mount.kill_child("lkgfs-fs")
        assert mount.document()
    for _ in range(2):
        server = mount.child("lkgfs-fs")
        lib.stop_process(server)
        assert mount.document(), "answered by its successor"
        assert mount.child("lkgfs-fs") != server
    mount.wait_for(lambda: "Z" not in states_of_children(mount.process.pid), "all of them are reaped")
    assert len(states_of_children(mount.process.pid)) == 3
