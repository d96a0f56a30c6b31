# SPDX-License-Identifier: Apache-2.0
"""The process that parses documents and talks TLS can do nothing but that, and what is done to it nobody who reads notices."""
import contextlib
import errno
import os
import pathlib
import resource
import signal
import socket
import time

import pytest

import lkgfs_testlib as lib
from lkgfs_inject import Injected, Killed
from test_survival import Load, check_reports, load_reader, load_status

PROT_READ, PROT_WRITE, MAP_PRIVATE, MAP_ANONYMOUS = 1, 2, 2, 0x20
CLONE_NEWUSER = 0x10000000
AF_NETLINK, AF_ALG, AF_VSOCK = 16, 38, 40
EPOLL_WAITS = {"x86_64": ("232", "281", "441"), "aarch64": ("22", "441")}[os.uname().machine]


def proc(pid, *names):
    return pathlib.Path("/proc", str(pid), *names)


def status_of(pid):
    return dict(line.split(":\t", 1) for line in proc(pid, "status").read_text().splitlines() if ":\t" in line)


def inject(mount, name, *arguments):
    """In an engine that has nothing to do: what it died of in the middle of work would be refused by the next one."""
    engine, end = mount.child("lkgfs-engine"), lib.deadline()
    while proc(engine, "syscall").read_text().split()[0] not in EPOLL_WAITS:
        assert time.monotonic() < end, "the engine is never idle"
        time.sleep(0.01)
    with Injected(engine) as process:
        return process.call(name, *arguments)


def check_engine_works(mount, pods):
    """A drop-in is judged and published by whichever engine there is."""
    mount.drop("80-isolation.conf", f"maxPods: {pods}\n")
    mount.wait_for(lambda: f"maxPods: {pods}" in mount.document(), f"maxPods {pods} is served")


# what it is given

def test_it_has_no_capability_and_cannot_get_one(shared):
    status = status_of(shared.child("lkgfs-engine"))
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"


def test_its_limits(shared):
    limits = {line[:26].strip(): line[26:].split()[:2] for line in
              proc(shared.child("lkgfs-engine"), "limits").read_text().splitlines()[1:]}
    assert limits["Max data size"] == [str(256 << 20)] * 2
    assert limits["Max core file size"] == ["0", "0"]


def test_it_holds_no_device_and_nothing_it_was_not_given(shared):
    fds = proc(shared.child("lkgfs-engine"), "fd")
    links = {int(fd): os.readlink(fds / fd) for fd in os.listdir(fds)}
    assert [link for link in links.values() if link.startswith("/dev/") and link != "/dev/null"] == []
    view = os.stat(shared.mountpoint).st_dev
    assert [link for fd, link in links.items() if os.stat(fds / str(fd)).st_dev == view] == []


def test_its_namespace_does_not_show_the_view(shared):
    pid = shared.child("lkgfs-engine")
    assert os.readlink(proc(pid, "ns/mnt")) != os.readlink("/proc/self/ns/mnt")
    assert lib.FSTYPE not in proc(pid, "mountinfo").read_text()
    beneath = proc(pid, "root" + shared.mountpoint)
    assert "status" not in os.listdir(beneath) and "kubelet.conf.base" not in os.listdir(beneath)


def test_all_that_was_mounted_is_read_only_there(shared):
    lines = [line.split() for line in proc(shared.child("lkgfs-engine"), "mountinfo").read_text().splitlines()]
    assert lines and [fields[4] for fields in lines if "ro" not in fields[5].split(",")] == []


# what a system call of injected code comes to

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
        with pytest.raises(Killed) as killed, Injected(pid) as process:
            process.call(name, *arguments)
        assert killed.value.signal == signal.SIGSYS
        assert mount.document() == before
        mount.wait_for(lambda: mount.children().get("lkgfs-engine", pid) != pid, "another engine")
        check_engine_works(mount, 77)
        check_reports(load.report())
    finally:
        load.abandon()


@pytest.mark.parametrize("name,arguments,error", [
    ("socket", (socket.AF_PACKET, socket.SOCK_RAW, 0), errno.EAFNOSUPPORT),
    ("socket", (AF_ALG, socket.SOCK_SEQPACKET, 0), errno.EAFNOSUPPORT),
    ("socket", (AF_VSOCK, socket.SOCK_STREAM, 0), errno.EAFNOSUPPORT),
    ("clone", (signal.SIGCHLD, 0, 0, 0, 0), errno.EPERM),
    ("clone3", (0, 0), errno.ENOSYS),
    ("io_uring_setup", (8, 0), errno.ENOSYS),
    ("keyctl", (0, 0, 0, 0, 0), errno.EPERM),
    ("kill", (1, 0), errno.EPERM),
    ("kill", (-1, 0), errno.EPERM),
    ("prlimit64", (1, resource.RLIMIT_NOFILE, 0, 0), errno.EPERM),
    ("mmap", (0, 512 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), errno.ENOMEM),
    ("openat", (-100, "/etc/lkgfs-was-here", os.O_WRONLY | os.O_CREAT, 0o600), errno.EROFS),
    ("openat", (-100, "/etc/shadow", os.O_WRONLY, 0), errno.EROFS),
])
def test_what_is_refused_does_not_end_it(shared, name, arguments, error):
    pid = shared.child("lkgfs-engine")
    assert inject(shared, name, *arguments) == -error
    check_engine_works(shared, 30 + error)
    assert shared.child("lkgfs-engine") == pid


def test_what_a_client_needs_it_may(shared):
    families = [socket.AF_UNIX, socket.AF_INET, AF_NETLINK]
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM):
        families.append(socket.AF_INET6)  # where the kernel has it
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


def wait_log(mount, text, since=0):
    """Without a look at the view, which nobody may be serving."""
    end = lib.deadline()
    while text not in mount.log()[since:]:
        assert time.monotonic() < end, f"not in the log: {text}"
        time.sleep(0.02)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/etc/passwd", path), os.mkdir],
                         ids=["fifo", "link", "directory"])
def test_a_publication_that_is_no_file(mount, make):
    """A successor of the file server says so and does not hang; what is published next is served."""
    current = os.path.join(mount.runtime, "private", "current")
    server = mount.child("lkgfs-fs")
    exchange(current, make)
    lib.kill_and_wait(server)
    wait_log(mount, "open the publication")
    (os.rmdir if os.path.isdir(current) else os.unlink)(current)
    os.rename(current + ".away", current)
    check_engine_works(mount, 77)


def test_facts_are_written_nowhere_else(mount):
    """lkgfsd, root with all it may, writes facts: never through a link that somebody else has made."""
    elsewhere = os.path.join(mount.root, "elsewhere")
    os.mkdir(elsewhere)
    facts = os.path.join(mount.runtime, "private", "facts")
    exchange(facts, lambda path: os.symlink(elsewhere, path))
    since = len(mount.log())
    mount.reload()
    wait_log(mount, "configuration read again", since)
    mount.sync()
    assert os.listdir(elsewhere) == []
    os.unlink(facts)
    os.rename(facts + ".away", facts)
