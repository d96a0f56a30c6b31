# SPDX-License-Identifier: Apache-2.0
"""The process that parses documents and speaks TLS can do nothing else, and readers do not notice attacks on it."""
import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

import lkgfs_container as container
import lkgfs_testlib as lib
from lkgfs_inject import Injected, Killed
from test_survival import Load, check_reports, load_reader, load_status

PROT_READ, PROT_WRITE, MAP_PRIVATE, MAP_ANONYMOUS = 1, 2, 2, 0x20
CLONE_NEWUSER = 0x10000000
AF_NETLINK, AF_ALG, AF_VSOCK = 16, 38, 40
PR_SET_DUMPABLE = 4
SOURCE_FD, RUNTIME_FD, STATE_FD = 5, 6, 7
NOT_ITS_OWN = errno.EACCES if lib.ENGINE_USER_ID else errno.EROFS  # ownership is checked before read-only mounts
UP = "../" * 20
# epoll_wait() and its variants, futex()
WAITS = {"x86_64": ("232", "281", "441", "202"), "aarch64": ("22", "441", "98")}[os.uname().machine]


def proc(pid, *names):
    return pathlib.Path("/proc", str(pid), *names)


def status_of(pid):
    return dict(line.split(":\t", 1) for line in proc(pid, "status").read_text().splitlines() if ":\t" in line)


def capability_mask(*numbers):
    return sum(1 << number for number in numbers)


def idle(mount, name):
    """Return its pid once it waits for something: work in which an engine dies would be refused by the next one."""
    pid, end = mount.child(name), lib.deadline()
    while proc(pid, "syscall").read_text().split()[0] not in WAITS:
        assert time.monotonic() < end, f"{name} is never idle"
        time.sleep(0.01)
    return pid


def inject(mount, name, *arguments):
    with Injected(idle(mount, "lkgfs-engine")) as process:
        return process.call(name, *arguments)


def die_of(mount, name, call, arguments):
    """Repeat until the kernel has ended the process for the call: on a busy machine lkgfsd may kill a process that stays stopped
    for long.
    """
    for _ in range(5):
        since = len(mount.log())
        try:
            with Injected(idle(mount, name)) as process:
                assert process.call(call, *arguments) < 0  # it may die only after it is released
        except Killed as killed:
            if killed.signal == signal.SIGSYS:
                return
        end = time.monotonic() + 2
        while time.monotonic() < end:
            if "was killed by signal 31" in mount.log()[since:]:
                return
            time.sleep(0.02)
    raise lib.Failure(f"{call} does not end {name}:\n{mount.log()}")


def check_engine_works(mount, pods):
    """A drop-in is judged and published by the current engine, whichever it is."""
    mount.drop("80-isolation.conf", f"maxPods: {pods}\n")
    mount.wait_for(lambda: f"maxPods: {pods}" in mount.document(), f"maxPods {pods} is served")


def landlock_version():
    return ctypes.CDLL(None, use_errno=True).syscall(444, 0, 0, 1)


# what it may use

def test_it_may_read_and_nothing_else_and_gets_no_more(shared):
    """With a user of its own: tests/e2e/test_engine_user.py."""
    status = status_of(shared.child("lkgfs-engine"))
    for name in ("CapInh", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name
    for name in ("CapPrm", "CapEff"):
        assert int(status[name], 16) == (capability_mask(2) if lib.ENGINE_USER_ID else 0), name
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"


@pytest.mark.parametrize("name,capabilities", [
    # CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, SETGID, SETUID, SYS_PTRACE, SYS_ADMIN, MKNOD, SETFCAP
    ("lkgfs-fs", capability_mask(0, 1, 2, 3, 4, 6, 7, 19, 21, 27, 31)),
    ("lkgfs-notify", capability_mask(1, 2, 3)),
    # and those for mounting and for managing children: KILL, SETPCAP, SYS_CHROOT, SYS_RESOURCE
    ("lkgfsd", capability_mask(0, 1, 2, 3, 4, 5, 6, 7, 8, 18, 19, 21, 24, 27, 31)),
])
def test_those_who_act_as_root_have_what_they_use(shared, name, capabilities):
    pid = shared.process.pid if name == "lkgfsd" else shared.child(name)
    capabilities &= int(status_of("self")["CapEff"], 16)
    if name != "lkgfsd":
        shared.wait_for(lambda: status_of(pid)["Seccomp"] == "2", "given up what it does not need")
    for task in os.listdir(proc(pid, "task")):
        status = status_of(f"{pid}/task/{task}")
        assert {set_: int(status[set_], 16) for set_ in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")} == {
            "CapPrm": capabilities, "CapEff": capabilities, "CapBnd": capabilities, "CapInh": 0, "CapAmb": 0}
        assert name == "lkgfsd" or (status["NoNewPrivs"] == "1" and status["Seccomp"] == "2")


@pytest.mark.parametrize("name", ["lkgfs-fs", "lkgfs-notify"])
@pytest.mark.parametrize("call,arguments", [("execve", ("/bin/true", 0, 0)), ("mount", (0, 0, 0, 0, 0)), ("ptrace", (16, 1, 0, 0)),
                                            ("unshare", (CLONE_NEWUSER,)), ("init_module", (0, 0, 0)),
                                            ("connect", (0, 0, 0)), ("bind", (0, 0, 0)), ("listen", (0, 0)), ("socketpair", (1, 5, 0, 0))])
def test_what_they_do_not_do_kills_them_and_the_view_goes_on(mount, name, call, arguments):
    before, pid = mount.document(), mount.child(name)
    die_of(mount, name, call, arguments)
    mount.may_crash = (name,)
    assert mount.document() == before
    mount.wait_for(lambda: mount.children().get(name, pid) != pid, f"another {name}")
    check_engine_works(mount, 78)


@pytest.mark.parametrize("name,call,arguments,error", [
    ("lkgfs-fs", "socket", (socket.AF_INET, socket.SOCK_STREAM, 0), errno.EAFNOSUPPORT),
    ("lkgfs-fs", "socket", (socket.AF_UNIX, socket.SOCK_STREAM, 0), errno.EAFNOSUPPORT),
    ("lkgfs-fs", "clone", (signal.SIGCHLD, 0, 0, 0, 0), errno.EPERM),
    ("lkgfs-fs", "kill", (1, 0), errno.EPERM),
    ("lkgfs-notify", "kill", (1, 0), errno.EPERM),
    ("lkgfs-notify", "clone", (signal.SIGCHLD, 0, 0, 0, 0), errno.EPERM),
])
def test_what_is_refused_to_them(shared, name, call, arguments, error):
    pid = shared.child(name)
    with Injected(pid) as process:
        assert process.call(call, *arguments) == -error
    check_engine_works(shared, 40 + error)
    assert shared.child(name) == pid


def test_who_wakes_watchers_changes_files_of_the_view_alone(shared):
    """Even if the unit gives it no mount namespace. It creates the symlinks and FIFOs of other users again through the view."""
    if landlock_version() < 2:
        pytest.skip("no Landlock in this kernel")
    other = os.path.join(shared.root, "not-of-the-view")
    lib.write_file(other, "")
    with Injected(shared.child("lkgfs-notify")) as process:
        for name, arguments in (("openat", (other, os.O_WRONLY, 0)), ("openat", (other + "2", os.O_WRONLY | os.O_CREAT, 0o600)),
                                ("unlinkat", (other, 0)), ("mkdirat", (other + "3", 0o700)), ("mknodat", (other + "4", 0o10600, 0))):
            assert process.call(name, -100, *arguments) == -errno.EACCES, (name, arguments)
    assert os.path.exists(other)
    check_engine_works(shared, 79)


def tree_of(folder):
    return {os.path.join(top, name): os.path.isdir(os.path.join(top, name)) or lib.read_file(os.path.join(top, name))
            for top, folders, files in os.walk(folder) for name in folders + files}


def test_who_wakes_watchers_changes_nothing_there_either(shared):
    """The file server recognises the notifier and refuses its changes, although it is root. Not even a forged job helps."""
    copy = shared.behind(".lkgfs-fallback/kubelet.conf")
    shared.wait_for(lambda: lib.read_file(copy) == lib.read_file(shared.path("kubelet.conf")), "the copy is that of what is served")
    before, condition = tree_of(shared.behind("")), shared.condition()
    write, create = os.O_WRONLY, os.O_WRONLY | os.O_CREAT
    calls = [("openat", "manifests/evil.yaml", create, 0o600), ("openat", "pki/ca.crt", os.O_RDONLY | os.O_TRUNC, 0),
             ("openat", "pki/ca.crt", write | os.O_TRUNC, 0), ("openat", "kubelet.conf.base", os.O_RDWR | os.O_TRUNC, 0),
             ("unlinkat", "pki/ca.crt", 0), ("mkdirat", "manifests/d", 0o700), ("mknodat", "manifests/n", 0o100600, 0),
             ("openat", "bad/kubelet/8f1c", create, 0o600), ("mknodat", "bad/kubelet/8f1d", 0o100600, 0)]
    commands = ["hold", "sync", "rollback", "promote"]
    with Injected(shared.child("lkgfs-notify")) as process:
        for name, *arguments in calls:
            result = process.call(name, 3, *arguments)
            if name == "openat" and result >= 0:
                assert process.call("write", result, "mine", 4) < 0, arguments
                process.call("close", result)
        for name in commands:
            assert process.call("openat", 3, f"control/kubelet/{name}", write, 0) == -errno.EPERM, name
    assert tree_of(shared.behind("")) == before
    check_engine_works(shared, 78)
    assert shared.condition() == condition


def test_who_wakes_watchers_has_nothing_of_what_others_share(shared):
    """The shared memory holds rights and what callers have written: the notifier maps only its own pages, and has one thread."""
    pid = shared.child("lkgfs-notify")
    maps = [line.split() for line in proc(pid, "maps").read_text().splitlines() if "memfd:" in line]
    assert len(maps) == 1 and int(maps[0][2], 16) > 0, "not its beginning"
    begin, end = (int(number, 16) for number in maps[0][0].split("-"))
    assert end - begin < 1 << 20
    assert not [fd for fd in proc(pid, "fd").iterdir() if "memfd" in os.readlink(fd)]
    assert len(list(proc(pid, "task").iterdir())) == 1
    with Injected(pid) as process:
        assert process.call("clone", 0x3d0f00, 0, 0, 0, 0) == -errno.EPERM  # flags of pthread_create()
    check_engine_works(shared, 77)


def shared_memory(mount):
    """Return a descriptor of it, as each of our processes has one."""
    fds = proc(mount.child("lkgfs-fs"), "fd")
    return next(fds / fd for fd in os.listdir(fds) if os.readlink(fds / fd).startswith("/memfd:lkgfs "))


def test_the_shared_memory_cannot_be_taken_away(shared):
    """If one of them could truncate it, the others would die of SIGBUS, lkgfsd included."""
    with open(shared_memory(shared), "rb+") as memory:
        size = os.fstat(memory.fileno()).st_size
        with pytest.raises(PermissionError):
            os.ftruncate(memory.fileno(), 0)
        assert os.fstat(memory.fileno()).st_size == size


def test_lkgfsd_ends_nobody_else(mount):
    """A file server can write to the memory that holds process ids: a successor of lkgfsd kills only helpers of lkgfs."""
    with subprocess.Popen(["sleep", "1000"]) as other:
        try:
            records = [struct.pack("=i4xQ", pid, lib.start_time(pid))  # struct lkg_process
                       for pid in (mount.child("lkgfs-notify"), mount.child("lkgfs-engine"))]
            with open(shared_memory(mount), "rb+") as file, mmap.mmap(file.fileno(), 0) as memory:
                for record in records:
                    at = memory.find(record)
                    assert at > 0
                    memory[at:at + len(record)] = struct.pack("=i4xQ", other.pid, lib.start_time(other.pid))
            mount.kill_supervisor()
            mount.start()
            check_engine_works(mount, 93)
            assert other.poll() is None
        finally:
            other.kill()


def rewrite_records(mount, pid):
    """Claim in the shared memory and in the private directory that `pid` is each of our processes."""
    mine = [mount.child(name) for name in ("lkgfs-notify", "lkgfs-engine", "lkgfs-fs")]
    with open(shared_memory(mount), "rb+") as file, mmap.mmap(file.fileno(), 0) as memory:
        for own in mine:
            record = struct.pack("=i4xQ", own, lib.start_time(own))
            at = memory.find(record)
            assert at > 0
            memory[at:at + len(record)] = struct.pack("=i4xQ", pid, lib.start_time(pid))
    for name in ("engine.pid", "notifier.pid", "server.pid"):
        lib.write_file(os.path.join(mount.runtime, "private", name), f"{pid} {lib.start_time(pid)}\n", 0o600)


def abort_connection(mount):
    """The view fails for all users, and stays mounted."""
    number, control = os.minor(os.stat(mount.mountpoint).st_dev), os.path.join(mount.root, "fusectl")
    os.makedirs(control, exist_ok=True)
    container.mount("fusectl", control, "fusectl")
    try:
        lib.write_file(os.path.join(control, str(number), "abort"), "1")
    finally:
        container.umount(control)


@pytest.mark.parametrize("connection", ["lives", "dies"])
@pytest.mark.parametrize("name", ["lkgfs-engine", "lkgfs-notify", "lkgfs-fs", "other"])
def test_lkgfsd_ends_no_helper_of_another_lkgfs(mount, mounts, name, connection):
    """Nor any other program with such a name."""
    neighbour = mounts()
    program = os.path.join(mount.root, "lkgfs-other")
    shutil.copy(shutil.which("sleep"), program)
    with subprocess.Popen([program, "1000"]) as other:
        try:
            victim = other.pid if name == "other" else neighbour.child(name)
            began, own = lib.start_time(victim), [mount.child(one) for one in ("lkgfs-engine", "lkgfs-notify")]
            rewrite_records(mount, victim)
            mount.kill_supervisor()
            if connection == "dies":
                abort_connection(mount)
            mount.start()
            check_engine_works(mount, 94)
            assert lib.start_time(victim) == began and other.poll() is None
            if name != "other":
                assert neighbour.child(name) == victim
            if connection == "dies":  # our helpers have ended: lkgfsd's own record names them, whatever the engine puts into the private directory
                mount.wait_for(lambda: not [pid for pid in own if lib.start_time(pid)], "helpers of before have ended")
        finally:
            other.kill()


def test_an_engine_cannot_pass_for_a_stranger(mount):
    """Whatever it closes and removes: two engines would delete each other's publications."""
    pid = idle(mount, "lkgfs-engine")
    mount.process.send_signal(signal.SIGSTOP)
    with Injected(pid) as process:
        for number in range(3, 9):
            process.call("close", number)
    os.kill(pid, signal.SIGSTOP)
    mount.kill_supervisor()
    mount.start()
    check_engine_works(mount, 95)
    assert lib.start_time(pid) is None


def test_files_that_it_shares_may_become_shorter(mount):
    """lkgfsd and the file server map files that the engine can truncate: they keep running, and the next engine gets new files."""
    private, server = os.path.join(mount.runtime, "private"), mount.child("lkgfs-fs")
    for pods in (70, 71):
        for name in ("judging", "claims"):
            os.truncate(os.path.join(private, name), 0)
        lib.error_of(mount.command, "sync", "now")  # whether it may be carried out is unknown now
        lib.kill_and_wait(mount.child("lkgfs-engine"))
        check_engine_works(mount, pods)
    mount.sync()
    assert mount.child("lkgfs-fs") == server
    assert mount.process.poll() is None


@pytest.mark.parametrize("directory", ["state", "run/private"])
def test_no_helper_keeps_the_next_lkgfsd_out(mount, directory):
    """A file can be locked without write access; the engine may lock none, the file server may."""
    lock, program = os.path.join(mount.root, directory, "lock"), os.path.join(mount.root, "lkgfs-held")
    shutil.copy(shutil.which("flock"), program)
    mount.kill_supervisor()
    with subprocess.Popen([program, "--close", "--wait", "60", lock, "sh", "-c", "echo held; exec sleep 1000"],
                          stdout=subprocess.PIPE, text=True, start_new_session=True) as holder:
        try:
            assert holder.stdout.readline() == "held\n"
            mount.start()
            assert holder.poll() is not None or holder.wait(lib.TIMEOUT_S) is not None
        finally:
            os.killpg(holder.pid, signal.SIGKILL)
    check_engine_works(mount, 79)


# See lkg/messages.h: the file server does not pass on a connection to the engine.
LINK = 8


def handover(kind):
    header = pathlib.Path(__file__).parents[2] / "include" / "lkg" / "messages.h"
    version = int(re.search(r"#define LKG_MESSAGE_VERSION (\d+)", header.read_text()).group(1))
    return struct.pack("=IIQII", version, kind, 0, 0, 0)


FLOOD = """
import ctypes, os, socket, sys
pid, fd = map(int, sys.argv[1:3])
message = bytes.fromhex(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
taken = libc.syscall(438, os.pidfd_open(pid), fd, 0)  # pidfd_getfd
channel = socket.socket(fileno=taken)
print(channel.send(message), flush=True)
while True:
    try:
        channel.send(message)
    except BlockingIOError:
        os.sched_yield()
    except OSError:
        break
"""


@pytest.mark.parametrize("name,message", [
    ("lkgfs-fs", b"no message of ours"), ("lkgfs-fs", handover(LINK)), ("lkgfs-engine", b"no message of ours")])
def test_a_flood_of_messages_does_not_keep_lkgfsd(mount, name, message):
    """It continues its other work: other children that die are replaced."""
    words = proc(mount.child(name), "cmdline").read_text().split("\0")
    fd = words[words.index("--supervisor-fd") + 1]
    with subprocess.Popen(["python3", "-c", FLOOD, str(mount.child(name)), fd, message.hex()], stdout=subprocess.PIPE,
                          text=True) as flood:
        try:
            assert flood.stdout.readline() == f"{len(message)}\n"
            for victim in ("lkgfs-notify", "lkgfs-fs", "lkgfs-engine"):
                before = mount.child(victim)
                if victim == name:
                    continue  # the flood uses its channel, which would end with it
                lib.kill_and_wait(before)
                mount.wait_for(lambda: mount.child(victim) not in (None, before), f"another {victim}")
            assert flood.poll() is None
            check_engine_works(mount, 88)
        finally:
            flood.kill()


CONNECT = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(20)
s.connect(sys.argv[1])
data, fds, flags, address = socket.recv_fds(s, 4096, 16)
print(len(data), len(fds))
"""


@pytest.mark.parametrize("how", ["unshare -m", "setpriv --bounding-set=-sys_admin", "unshare -U -r -m"])
def test_uid_0_alone_is_no_supervisor(shared, how):
    """Root of another mount namespace, or without CAP_SYS_ADMIN, gets none of the descriptors behind the view.

    Rule: docs/specification.md 6.7.
    """
    path = os.path.join(shared.runtime, "private", "fs.sock")
    since = len(shared.log())
    got = lib.run(*how.split(), "python3", "-c", CONNECT, path)
    if how.endswith("-U -r -m"):  # it cannot even reach the path
        assert got.stdout.split() == [b"0", b"0"] or b"PermissionError" in got.stderr, got
    else:
        assert got.stdout.split() == [b"0", b"0"], got
        wait_log(shared, "somebody who is not a supervisor was turned away", since)
    check_engine_works(shared, 91)


def test_its_limits(shared):
    limits = {line[:26].strip(): line[26:].split()[:2] for line in
              proc(shared.child("lkgfs-engine"), "limits").read_text().splitlines()[1:]}
    assert limits["Max data size"] == [str(256 << 20)] * 2
    assert limits["Max core file size"] == ["0", "0"]


def test_it_holds_no_device_and_nothing_it_was_not_given(shared):
    fds = proc(idle(shared, "lkgfs-engine"), "fd")
    found = {}
    for fd in os.listdir(fds):
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            found[os.readlink(fds / fd)] = os.stat(fds / fd).st_dev
    assert [link for link in found if link.startswith("/dev/") and link != "/dev/null"] == []
    assert os.stat(shared.mountpoint).st_dev not in found.values()
    assert len(found) > 5


def test_parents_of_its_directories_are_themselves(shared):
    """`..` stays inside its directories, so none of its descriptors leads to what is writable on the host."""
    with Injected(shared.child("lkgfs-engine")) as process:
        for directory, inside in ((SOURCE_FD, "kubelet.conf.d"), (RUNTIME_FD, "blobs"), (STATE_FD, "history")):
            fd = process.call("openat", directory, UP + inside, os.O_RDONLY | os.O_DIRECTORY, 0)
            assert fd >= 0, inside
            assert process.call("close", fd) == 0


def test_the_kernel_restricts_it_besides(mount):
    """Landlock: what is mounted into its namespace later is writable there, but not for the engine."""
    if landlock_version() < 2:
        pytest.skip("no Landlock in this kernel")
    pid, later = mount.child("lkgfs-engine"), os.path.join(mount.root, "later")
    os.mkdir(later)
    lib.shell(f"nsenter -m -t {pid} /bin/sh -c 'mount -t tmpfs later {later} && : > {later}/file'")
    for name, flags in (("file", os.O_WRONLY), ("new", os.O_WRONLY | os.O_CREAT)):
        assert inject(mount, "openat", -100, os.path.join(later, name), flags, 0o600) == -errno.EACCES
    assert inject(mount, "unlinkat", -100, os.path.join(later, "file"), 0) == -errno.EACCES
    assert os.listdir(proc(pid, "root" + later)) == ["file"]
    check_engine_works(mount, 66)
    assert mount.child("lkgfs-engine") == pid


def test_others_of_roots_lend_it_nothing(shared):
    """Another root process without capabilities, in the host's namespace: the engine must not get at files through its /proc entry."""
    if landlock_version() < 2:
        pytest.skip("no Landlock in this kernel")
    with subprocess.Popen(["setpriv", "--bounding-set=-all", "--inh-caps=-all", "sleep", "1000"]) as other:
        try:
            deadline = lib.deadline()
            while status_of(other.pid)["CapPrm"].strip("0") and time.monotonic() < deadline:
                time.sleep(0.01)
            for place in (f"/proc/{other.pid}/root/etc/passwd", f"/proc/{other.pid}/cwd/etc/passwd", f"/proc/{other.pid}/fd/0",
                          f"/proc/{shared.process.pid}/root/etc/passwd", "/proc/1/root/etc/passwd"):
                assert inject(shared, "openat", -100, place, os.O_RDONLY, 0) == -errno.EACCES, place
        finally:
            other.kill()


def test_a_volume_that_is_mounted_later_counts(mounts):
    """The source directory beside the view: drop-ins on a volume that is mounted there later are merged until it is unmounted."""
    mount = mounts(over=False)
    volume, place = os.path.join(mount.root, "volume"), os.path.join(mount.source, "kubelet.conf.d")
    os.mkdir(volume)
    lib.write_file(os.path.join(volume, "50-volume.conf"), lib.HEADER + "maxPods: 33\n")
    lib.shell(f"mount --bind {volume} {place}")
    try:
        mount.wait_for(lambda: "maxPods: 33" in mount.document(), "the volume's drop-in")
    finally:
        lib.shell(f"umount -l {place}")
    mount.wait_for(lambda: "maxPods: 64" in mount.document(), "the directory's own drop-ins again")


def uncovered(pid):
    """Lines of its mountinfo without those below another mount on the same place: where / is shared, as systemd makes it, the view comes
    into every namespace, and beneath what covers it."""
    lines = [line.split() for line in proc(pid, "mountinfo").read_text().splitlines()]
    return [fields for fields in lines if not any(other[1] == fields[0] and other[4] == fields[4] for other in lines)]


@pytest.mark.parametrize("propagation", ["private", "shared"])
def test_its_namespace_does_not_show_the_view_wherever_it_is_mounted(mounts, propagation):
    mount = mounts(start=False)
    lib.shell(f"mount --bind {mount.root} {mount.root} && mount --make-{propagation} {mount.root}")
    try:
        mount.start()
        first = mount.child("lkgfs-engine")
        for pid in (first, None):
            if pid is None:  # it is started again, and now the view is there before it
                mount.kill_child("lkgfs-engine")
                mount.wait_for(lambda: mount.children().get("lkgfs-engine") not in (None, first), "another engine")
                mount.sync()
                pid = mount.child("lkgfs-engine")
            beneath = proc(pid, "root" + mount.mountpoint)
            assert "status" not in os.listdir(beneath) and "kubelet.conf.base" not in os.listdir(beneath)
            assert not [fields for fields in uncovered(pid) if lib.FSTYPE in fields]
            assert [fields[4] for fields in uncovered(pid) if "ro" not in fields[5].split(",")] == []
    finally:
        mount.stop()
        lib.shell(f"umount -l {mount.root}")


def test_its_namespace_does_not_show_the_view(shared):
    pid = shared.child("lkgfs-engine")
    assert os.readlink(proc(pid, "ns/mnt")) != os.readlink("/proc/self/ns/mnt")
    assert not [fields for fields in uncovered(pid) if lib.FSTYPE in fields]
    beneath = proc(pid, "root" + shared.mountpoint)
    assert "status" not in os.listdir(beneath) and "kubelet.conf.base" not in os.listdir(beneath)


def test_all_that_was_mounted_is_read_only_there(shared):
    lines = uncovered(shared.child("lkgfs-engine"))
    assert lines and [fields[4] for fields in lines if "ro" not in fields[5].split(",")] == []


# results of injected system calls

@pytest.mark.parametrize("name,arguments", [
    ("mount", (0, 0, 0, 0, 0)), ("execve", ("/bin/true", 0, 0)), ("ptrace", (16, 1, 0, 0)), ("bpf", (0, 0, 0)),
    ("unshare", (CLONE_NEWUSER,)), ("process_vm_readv", (1, 0, 0, 0, 0, 0)), ("init_module", (0, 0, 0)),
    ("clone", (CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)),
])
def test_a_forbidden_call_kills_it_and_the_view_goes_on(mount, name, arguments):
    before = mount.document()
    load = Load(mount, [load_reader, load_status])
    try:
        pid = mount.child("lkgfs-engine")
        die_of(mount, "lkgfs-engine", name, arguments)
        assert mount.document() == before
        mount.may_crash = ("lkgfs-engine",)
        mount.wait_for(lambda: mount.children().get("lkgfs-engine", pid) != pid, "another engine")
        check_engine_works(mount, 77)
        check_reports(load.report())
    finally:
        load.abandon()


@pytest.mark.parametrize("name,arguments,error", [
    ("socket", (socket.AF_UNIX, socket.SOCK_STREAM, 0), errno.EAFNOSUPPORT),  # so no service manager, container runtime or process of ours
    ("socketpair", (socket.AF_UNIX, socket.SOCK_DGRAM, 0, 0), errno.EAFNOSUPPORT),
    ("socket", (socket.AF_PACKET, socket.SOCK_RAW, 0), errno.EAFNOSUPPORT),
    ("socket", (AF_ALG, socket.SOCK_SEQPACKET, 0), errno.EAFNOSUPPORT),
    ("socket", (AF_VSOCK, socket.SOCK_STREAM, 0), errno.EAFNOSUPPORT),
    ("clone", (signal.SIGCHLD, 0, 0, 0, 0), errno.EPERM),
    ("clone3", (0, 0), errno.ENOSYS),
    ("io_uring_setup", (8, 0), errno.ENOSYS),
    ("keyctl", (0, 0, 0, 0, 0), errno.EPERM),
    ("kill", (1, 0), errno.EPERM),
    ("kill", (-1, 0), errno.EPERM),
    ("sendmsg", (4, 0, 0), errno.ENOSYS),  # it cannot pass on a descriptor whose close hangs
    ("fcntl", (RUNTIME_FD, fcntl.F_SETLEASE, fcntl.F_RDLCK), errno.EPERM),  # nor have others wait for a lease
    ("fcntl", (RUNTIME_FD, fcntl.F_SETLK, 0), errno.EPERM),
    ("prlimit64", (1, resource.RLIMIT_NOFILE, 0, 0), errno.EPERM),
    ("mmap", (0, 512 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), errno.ENOMEM),
    ("openat", (-100, "/etc/lkgfs-was-here", os.O_WRONLY | os.O_CREAT, 0o600), errno.EROFS),
    ("openat", (-100, "/etc/shadow", os.O_WRONLY, 0), NOT_ITS_OWN),
    ("openat", (SOURCE_FD, "kubelet.conf", os.O_WRONLY, 0), NOT_ITS_OWN),
    ("openat", (SOURCE_FD, "new", os.O_WRONLY | os.O_CREAT, 0o600), errno.EROFS),
    ("unlinkat", (SOURCE_FD, "kubelet.conf", 0), errno.EROFS),
    ("mkdirat", (SOURCE_FD, "manifests/new", 0o700), errno.EROFS),
    ("openat", (RUNTIME_FD, "../private", os.O_RDONLY, 0), errno.ENOENT),
    ("openat", (RUNTIME_FD, UP + "etc/passwd", os.O_RDONLY, 0), errno.ENOENT),
    ("openat", (STATE_FD, UP + "etc/cron.d/x", os.O_WRONLY | os.O_CREAT, 0o600), errno.ENOENT),
    ("openat", (SOURCE_FD, UP + "etc/passwd", os.O_RDONLY, 0), errno.ENOENT),
    ("prctl", (PR_SET_DUMPABLE, 1, 0, 0, 0), errno.EPERM),
    ("fchmodat", (-100, "/etc/passwd", 0o666), errno.EROFS if lib.ENGINE_USER_ID else errno.EPERM),
    ("openat", (-100, "/dev/null", os.O_RDONLY, 0), errno.EACCES),  # no device, so no disk either: read-only mounts do not protect those
    ("openat", (-100, "/dev/null", os.O_WRONLY, 0), errno.EACCES),
])
def test_what_is_refused_does_not_end_it(shared, name, arguments, error):
    pid = shared.child("lkgfs-engine")
    assert inject(shared, name, *arguments) == -error
    check_engine_works(shared, 30 + error)
    assert shared.child("lkgfs-engine") == pid


def test_what_a_client_needs_it_may(shared):
    families = [socket.AF_INET, AF_NETLINK]
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM):
        families.append(socket.AF_INET6)  # if the kernel supports it
    with Injected(shared.child("lkgfs-engine")) as process:
        for family in families:
            fd = process.call("socket", family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, 0)
            assert fd >= 0 and process.call("close", fd) == 0
        assert process.call("kill", process.call("getpid"), 0) == 0
        assert process.call("prlimit64", 0, resource.RLIMIT_NOFILE, 0, 0) == 0


def test_killing_it_again_and_again_changes_nothing_for_readers(mount):
    load = Load(mount, [load_reader, load_status])
    try:
        for n in range(10):
            mount.kill_child("lkgfs-engine", signal.SIGKILL)
            check_engine_works(mount, 40 + n)
        check_reports(load.report())
    finally:
        load.abandon()


# what a hostile engine could leave in the runtime directory

def exchange(path, make):
    os.rename(path, path + ".away")
    make(path)


def swap(path, other):
    """In one step: lkgfsd makes anew what is missing."""
    names = (-100, os.fsencode(path), -100, os.fsencode(other), 2)  # AT_FDCWD, RENAME_EXCHANGE
    assert ctypes.CDLL(None).renameat2(*names) == 0


def wait_log(mount, text, since=0):
    """Wait without a look at the view, which may not be served right now."""
    end = lib.deadline()
    while text not in mount.log()[since:]:
        assert time.monotonic() < end, f"not in the log: {text}"
        time.sleep(0.02)


def sparse(path):
    with open(path, "wb") as file:
        file.truncate(1 << 30)


def other_owner(path):
    shutil.copyfile(path + ".away", path)
    os.truncate(path, os.path.getsize(path) // 2)
    os.chown(path, 65533, 65533)


SPOILT = {
    "fifo": os.mkfifo,
    "link to a fifo": lambda path: (os.mkfifo(path + ".fifo"), os.symlink(path + ".fifo", path)),
    "link to nothing": lambda path: os.symlink("/nothing", path),
    "link to a file": lambda path: os.symlink("/etc/passwd", path),
    "directory": lambda path: os.makedirs(path + "/full"),
    "empty": lambda path: open(path, "wb").close(),
    "cut": lambda path: (shutil.copyfile(path + ".away", path), os.truncate(path, os.path.getsize(path) // 2)),
    "other owner": other_owner,
    "1 GiB": sparse,
}


def served_again(mount):
    try:
        return mount.document()
    except OSError as error:
        assert error.errno == errno.EIO
        return None


@pytest.mark.parametrize("how", SPOILT)
def test_a_publication_that_is_none(mount, how):
    """The successor of a file server passes the source through at once and EIO for the rest, and lkgfsd has it published again."""
    lib.write_file(mount.behind("passes"), "through\n")
    current = os.path.join(mount.runtime, "private", "current")
    engine, server, lkgfsd = mount.child("lkgfs-engine"), mount.child("lkgfs-fs"), mount.process.pid
    os.kill(engine, signal.SIGSTOP)  # nobody mends it: what does a caller get meanwhile?
    try:
        exchange(current, SPOILT[how])
        lib.kill_and_wait(server)
        assert mount.child("lkgfs-fs") != server
        assert lib.read_file(mount.path("passes")) == b"through\n"
        os.kill(lkgfsd, signal.SIGSTOP)
        for name in ("kubelet.conf", "status", "status/kubelet/condition"):
            with pytest.raises(OSError) as error:
                lib.read_file(mount.path(name))
            assert error.value.errno == errno.EIO
        assert "passes" in os.listdir(mount.mountpoint) and "kubelet.conf" not in os.listdir(mount.mountpoint)
    finally:
        os.kill(lkgfsd, signal.SIGCONT)
        with contextlib.suppress(ProcessLookupError):
            os.kill(engine, signal.SIGCONT)
    mount.wait_for(lambda: served_again(mount), "a new publication")
    check_engine_works(mount, 77)
    assert mount.child("lkgfs-engine") != engine
    assert os.path.isfile(current) and not os.path.islink(current)


@pytest.mark.parametrize("name", ["blobs", "pinned"])
@pytest.mark.parametrize("how", ["fifo", "link to nothing", "empty"])
def test_a_directory_of_publications_that_is_none(mount, name, how):
    """What its files held may be gone until something changes; the next change is served."""
    exchange(os.path.join(mount.runtime, "private", name), SPOILT[how])
    lib.kill_and_wait(mount.child("lkgfs-fs"))
    mount.drop("80-isolation.conf", "maxPods: 78\n")
    mount.wait_for(lambda: "maxPods: 78" in (served_again(mount) or ""), "the next change is served")


@pytest.mark.parametrize("which", ["state", "private"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/etc/passwd", path), lambda path: os.makedirs(path + "/full"),
                                  lambda path: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).bind(path)],
                         ids=["fifo", "link", "directory", "socket"])
def test_a_lock_that_is_no_file(mount, which, make):
    """The next lkgfsd starts, and writes its pid to no other file."""
    before = lib.read_file("/etc/passwd")
    folder = mount.state if which == "state" else os.path.join(mount.runtime, "private")
    assert mount.stop() == 0
    os.makedirs(folder, 0o700, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, "lock"))
    make(os.path.join(folder, "lock"))
    mount.start()
    assert os.path.isfile(os.path.join(folder, "lock")) and not os.path.islink(os.path.join(folder, "lock"))
    assert lib.read_file("/etc/passwd") == before
    check_engine_works(mount, 94)


def test_facts_are_written_nowhere_else(mount):
    """lkgfsd writes facts as root with its capabilities: never through a symlink that somebody else has made."""
    elsewhere = os.path.join(mount.root, "elsewhere")
    os.mkdir(elsewhere)
    facts = os.path.join(mount.runtime, "private", "facts")
    os.symlink(elsewhere, facts + ".away")
    swap(facts, facts + ".away")
    since = len(mount.log())
    mount.reload()
    wait_log(mount, "configuration read again", since)
    mount.sync()
    assert os.listdir(elsewhere) == []
    swap(facts, facts + ".away")
    os.unlink(facts + ".away")


# ---- its log messages ----

def entries(listening):
    while True:
        yield dict(line.split("=", 1) for line in listening.recv(65536).decode().splitlines())


def test_lines_of_the_engine_have_their_fields_in_the_journal(journal, mounts, monkeypatch):
    """It cannot reach the journal's socket: lkgfsd writes its messages under the engine's name."""
    mount = mounts(start=False)
    mount.log_to_journal(monkeypatch)
    mount.start()
    mount.drop("50-x.conf", "maxPods: [\n")
    found = next(entry for entry in entries(journal)
                 if entry["SYSLOG_IDENTIFIER"] == "lkgfs-engine" and "LKGFS_COMPONENT" in entry and int(entry["PRIORITY"]) <= 4)
    assert found["LKGFS_COMPONENT"] == "kubelet" and found["MESSAGE"]
    assert "lkgfs-engine" not in mount.log()
