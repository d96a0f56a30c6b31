# SPDX-License-Identifier: Apache-2.0
"""The source directory may hang for any reason: the view is still served, and only callers of the hanging part wait."""
import contextlib
import ctypes
import errno
import faulthandler
import glob
import mmap
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import lkgfs_container as container
import lkgfs_deadfs as deadfs
import lkgfs_testlib as lib
from lkgfs_waiters import NOBODY, SOON_S, held, how_long, is_held

GETDENTS64 = 217 if os.uname().machine == "x86_64" else 61
THREADS_OF_ONE = 64 // 8


@pytest.fixture(name="dead")
def fixture_dead(mount, waiters):
    """A mount with a file system below it that stops answering; (mount, file system)."""
    os.chmod(mount.root, 0o711)
    mount.first_server = mount.child("lkgfs-fs")
    os.mkdir(mount.behind("dead"))
    fs = waiters.stack.enter_context(deadfs.DeadFs(mount.behind("dead"), ["file", "other"]))
    mount.wait_for(lambda: lib.error_of(os.stat, mount.path("dead", "file")) == 0, "the kernel believes names of directories for a second")
    assert lib.read_file(mount.path("dead", "file")) == b"content\n"
    assert waiters(lib.read_file, mount.path("dead", "file")).result() == 0, "the kernel knows that the root has no ACL now"
    assert sorted(os.listdir(mount.path("dead"))) == ["dir", "file", "other"]
    return mount, fs


def check_view(mount, pods):
    """Files of the view are served at once: cached ones and new ones."""
    for n in range(3):
        mount.drop("70-root.conf", f"maxPods: {pods + n}\n")
        times = how_long(mount.path("kubelet.conf"))
        assert f"maxPods: {pods + n}\n" in mount.document()
        assert times[len(times) * 9 // 10] < SOON_S, times[-10:]
    assert how_long(mount.vpath("status", "kubelet", "condition"))[90] < SOON_S
    assert "kubelet" in os.listdir(mount.vpath("status"))


def open_and(path, flags, function):
    """Open it while the file system is alive; return a call to make when it is dead."""
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
    faulthandler.disable()  # a killed access to a page that never arrives ends with SIGBUS
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
    """By default the kernel sends no more background requests while 32 of them are unanswered."""
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
    """Each user has a share of the threads: further calls of the same user wait for these, and other users do not wait."""
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
    """As without lkgfs: the kernel frees a killed process from waiting for a lock or a network file system; so does the file server."""
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
    """An open that succeeds after its caller has ended: its record is freed."""
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
    """A user holds a lease on a file behind the mount and does not release it when the kernel asks."""
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
    is_held(mount, 1 if flags == os.O_RDONLY else THREADS_OF_ONE)  # further readers of the same page wait in the kernel
    check_view(mount, 100)
    lib.write_file(mount.path("manifests", "new"), "x")
    if flags != os.O_RDONLY:  # an unchanged file is not opened before it is read
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


def be_told(call):
    """Make it; a SIGALRM ends what may fail with EINTR."""
    def told(*_):
        raise InterruptedError(errno.EINTR, "told")
    signal.signal(signal.SIGALRM, told)
    call()


def test_a_lease_is_interrupted_by_a_signal(mount, waiters):
    os.chmod(mount.root, 0o711)
    path = waiters.stack.enter_context(lease(mount))
    waiter = waiters(be_told, lambda: os.open(path, os.O_RDWR))
    is_held(mount, 1)
    os.kill(waiter.pid, signal.SIGALRM)
    assert waiter.result() == errno.EINTR


def test_who_waits_for_his_share_is_interrupted_by_a_signal(dead, waiters):
    """Nothing has been done for the call yet, so any signal ends it if it may fail with EINTR; stat() may not."""
    mount, fs = dead
    calls = [open_and(mount.path("dead", name), os.O_RDONLY, os.fsync) for name in ("file", "other")]  # the kernel locks each
    fs.die()
    for _ in range(THREADS_OF_ONE):
        waiters(os.stat, mount.path("dead", "file"))
    is_held(mount, THREADS_OF_ONE)
    stat = waiters(be_told, lambda: os.stat(mount.path("dead", "file")))
    is_held(mount, THREADS_OF_ONE + 1)
    told = [waiters(be_told, call) for call in calls]
    is_held(mount, THREADS_OF_ONE + 1 + len(calls))
    for waiter in (stat, *told):
        os.kill(waiter.pid, signal.SIGALRM)
    assert [waiter.result() for waiter in told] == [errno.EINTR] * len(calls)
    assert not stat.is_over()
    fs.live()
    mount.wait_for(lambda: held(mount) == 0, "everything else is answered")


@pytest.mark.parametrize("call", ["stat", "list", "create", "open", "mode", "fsync"])
def test_who_waits_for_his_share_locks_nobody_out(dead, waiters, call):
    """The kernel locks a directory for a look-up, a listing or a change, even if the caller may only search it, and a file for fsync()."""
    mount, fs = dead
    for name, mode in (("open", 0o1777), ("roots", 0o755)):
        os.mkdir(mount.behind(name))
        os.chmod(mount.behind(name), mode)
    lib.write_file(mount.behind("roots/file"), "x")
    lib.write_file(mount.behind("open/own"), "x")
    os.chown(mount.behind("open/own"), NOBODY, NOBODY)
    fd = os.open(mount.path("roots", "file"), os.O_RDONLY)
    calls = {"stat": lambda: os.stat(mount.path("roots", "absent")), "list": lambda: os.listdir(mount.path("roots")),
             "create": lambda: os.open(mount.path("open", "made"), os.O_WRONLY | os.O_CREAT),
             "open": lambda: os.open(mount.path("roots", "absent"), os.O_RDWR | os.O_CREAT),
             "mode": lambda: os.chmod(mount.path("open", "own"), 0o600), "fsync": lambda: os.fsync(fd)}
    for name in ("open/own", "roots/file"):  # make the kernel cache the path to it, with its ACLs
        assert waiters(os.stat, mount.path(name)).result() == 0
    fs.die()
    for _ in range(THREADS_OF_ONE):
        waiters(os.stat, mount.path("dead", "file"))
    is_held(mount, THREADS_OF_ONE)
    callers = [waiters(calls[call]) for _ in range(4)]

    def change():
        for name in ("open", "roots"):
            for i in range(20):
                lib.write_file(mount.path(name, f"{i}"), "x")
                os.rename(mount.path(name, f"{i}"), mount.path(name, "renamed"))
            assert "renamed" in os.listdir(mount.path(name))
        lib.write_file(mount.path("roots", "file"), "y")

    began = time.monotonic()
    assert waiters(change, uid=0).result(10) == 0
    assert time.monotonic() - began < 5
    fs.live()
    assert {caller.result() for caller in callers} <= {0, errno.EBUSY, errno.ENOENT, errno.EACCES}
    mount.wait_for(lambda: held(mount) == 0, "everything else is answered")
    os.close(fd)


# changes behind the mount

@contextlib.contextmanager
def stopped(pid):
    lib.stop_process(pid)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):  # lkgfsd may have replaced it
            os.kill(pid, signal.SIGCONT)


def threads_of(pid, name):
    """Return the directories in /proc of the threads with that name."""
    found = []
    for task in glob.glob(f"/proc/{pid}/task/*"):
        with contextlib.suppress(OSError):  # it has ended
            found += [task] if lib.read_file(f"{task}/comm") == name.encode() + b"\n" else []
    return found


def threads_poll(pid, name):
    """Return whether the threads with that name wait for an event."""
    threads = threads_of(pid, name)
    return bool(threads) and all(b"poll" in lib.read_file(f"{thread}/wchan") for thread in threads)


def test_one_dead_file_system_does_not_hide_changes_of_another(dead, waiters):
    """Only what was changed on the dead file system waits for it."""
    mount, fs = dead
    os.mkdir(mount.behind("alive"))
    container.mount("tmpfs", mount.behind("alive"), "tmpfs")
    waiters.stack.callback(container.umount, mount.behind("alive"))
    lib.write_file(mount.behind("alive", "there"), "x")
    mount.wait_for(lambda: os.path.exists(mount.path("alive", "there")), "the kernel believes names of directories for a second")
    with lib.Inotify() as watch:
        watch.add(mount.path("dead"), watch.CREATE | watch.MODIFY)
        writer = os.open(mount.behind("dead", "file"), os.O_WRONLY)
        mount.wait_for(lambda: container.write_file(mount.behind("dead", "other")) and
                       any(event[3] == "other" for event in watch.events(0.1)), "the directory is watched")
        with stopped(mount.child("lkgfs-notify")):  # it has more to report than it may wait for
            for _ in range(20):
                lib.write_file(mount.behind("dead", "other"), "x")
            mount.wait_for(lambda: threads_poll(mount.child("lkgfs-fs"), "watch-away"), "all of them are noticed")
            before = fs.waiting()
            fs.die(deadfs.LOOKUP)
            waiters.stack.callback(fs.live)
            os.close(writer)  # the change is reported, and its look-up hangs
        mount.wait_for(lambda: fs.waiting() > before, "it is looked at")
        for n in range(3):
            watch.add(mount.path("alive"), watch.CREATE)
            lib.write_file(mount.behind("alive", f"new-{n}"), "x")
            watch.wait(lambda events, n=n: any(event[3] == f"new-{n}" for event in events))
    check_view(mount, 20)


# the file server and lkgfsd while something hangs

def test_a_successor_does_not_hang(dead, waiters):
    mount, fs = dead
    fs.die()
    all_of_them = [waiters(os.stat, mount.path("dead", "file"), uid=NOBODY - i) for i in range(10)]
    is_held(mount, 10)
    os.kill(mount.child("lkgfs-fs"), signal.SIGKILL)  # it may take long to end: it waits in the kernel
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
    """Killed ones and one that hung: no zombie is left."""
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


def read_in_a_new_process(path):
    return subprocess.run(["cat", path], stdout=subprocess.PIPE, check=True, timeout=lib.TIMEOUT_S).stdout.decode()


@pytest.mark.parametrize("over", [True, False], ids=["over", "aside"])
def test_a_program_on_a_dead_file_system(mounts, over):
    """`match.exe` names a file on it: each process of root that opens kubelet.conf is compared with that file, and none waits."""
    mount = mounts(over=over, start=False)
    point = os.path.join(mount.root, "opt")
    os.mkdir(point)
    with deadfs.DeadFs(point) as fs:
        mount.write_config(components=[{"name": "kubelet", "match": {"unit": "", "exe": [f"{point}/file", "/usr/bin/kubelet"]}}])
        mount.start()
        document = read_in_a_new_process(mount.path("kubelet.conf"))
        server = mount.child("lkgfs-fs")
        fs.die()
        try:
            for _ in range(20):
                assert read_in_a_new_process(mount.path("kubelet.conf")) == document
            assert how_long(mount.path("kubelet.conf"))[90] < SOON_S
            assert mount.child("lkgfs-fs") == server
        finally:
            fs.close()  # otherwise the child that runs it for its version waits forever


def test_a_program_is_looked_at_before_it_starts(mounts):
    """Nobody waits long for its file system, and who starts is looked at once: what was found before counts."""
    mount = mounts(start=False)
    point, program = os.path.join(mount.root, "opt"), os.path.join(mount.root, "cat")
    os.mkdir(point)
    shutil.copy("/bin/cat", program)
    with deadfs.DeadFs(point) as fs:
        mount.write_config(components=[{"name": "kubelet", "match": {"unit": "", "exe": [f"{point}/dir/../../cat"]}}])
        mount.start()
        server = mount.child("lkgfs-fs")  # its threads have its name before they have their own
        mount.wait_for(lambda: len(threads_of(server, "lkgfs-fs")) == 1 and not threads_of(server, "program"), "it was looked at")
        fs.die()
        try:
            subprocess.run([program, mount.path("kubelet.conf")], stdout=subprocess.DEVNULL, check=True, timeout=lib.TIMEOUT_S)
            mount.wait_for(lambda: "kubelet started (pid" in mount.log(), "it is recognised")
        finally:
            fs.close()  # otherwise the child that runs it for its version waits forever


def map_file(path):
    """Return the address of its first page, which has not been read yet."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE, fd, ctypes.c_long(0))
    finally:
        os.close(fd)


def list_into(address, directory):
    """List a directory into memory whose page never arrives: the kernel keeps the directory locked meanwhile."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    ctypes.CDLL(None).syscall(GETDENTS64, fd, ctypes.c_void_p(address), 4096)


@pytest.mark.limit(200)
def test_notifiers_that_stick_are_not_joined_by_more(mounts, waiters):
    """They wait for a directory that a user keeps locked. No further one is started before one of them has ended."""
    mount, said = mounts(over=False), "notifier is not started: 4 that were killed wait in the kernel"
    os.chmod(mount.root, 0o711)
    os.mkdir(mount.behind("pub"))
    for name in ("first", "second"):
        lib.write_file(mount.behind("pub", name), "")
        os.stat(mount.path("pub", name))
    point = os.path.join(mount.root, "dead")
    os.mkdir(point)
    fs = waiters.stack.enter_context(deadfs.DeadFs(point))
    address = map_file(os.path.join(point, "file"))
    fs.die(deadfs.READ)
    lister = waiters(list_into, address, mount.path("pub"))
    mount.wait_for(fs.waiting, "the directory is locked")
    os.unlink(mount.behind("pub", "first"))
    mount.wait_for(lambda: said in mount.log(), "the bound", timeout=90)
    stuck = mount.helpers()["lkgfs-notify"]
    assert len(stuck) == 4
    mount.drop("50-more.conf", "maxPods: 71\n")  # it would have to announce this next
    mount.wait_for(lambda: "maxPods: 71" in mount.document(), "readers do not notice")
    mount.reload()
    assert mount.helpers()["lkgfs-notify"] == stuck
    fs.live()
    assert lister.result() == 0
    mount.wait_for(lambda: len(mount.helpers().get("lkgfs-notify", ())) == 1, "one again")
    assert mount.child("lkgfs-notify") not in stuck and mount.log().count(said) == 1
    with lib.Inotify() as inotify:
        wd = inotify.add(mount.path("kubelet.conf"), inotify.CLOSE_WRITE)
        mount.drop("50-more.conf", "maxPods: 72\n")
        inotify.wait(lambda events: any(e[0] == wd for e in events))
