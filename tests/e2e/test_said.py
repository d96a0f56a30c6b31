# SPDX-License-Identifier: Apache-2.0
"""Output of lkgfs processes: only lkgfsd writes the log, and it never blocks, not even on the log."""
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pathlib
import pty
import signal
import socket
import stat
import time

import pytest

import lkgfs_testlib as lib
from lkgfs_engine import TYPES, VERSION, Message
from lkgfs_inject import Injected, Killed
from test_isolation import idle

CHILDREN = ("lkgfs-engine", "lkgfs-fs", "lkgfs-notify")
TIOCSTI = 0x5412
PIDFD_GETFD = 438
O_NONBLOCK = os.O_NONBLOCK
RAW = "\x1b]0;title\x07\x9b31m\u202egnirts\n<0>lkgfsd: forged\nlkgfsd: view on /etc served\nplain \n"


def files_of(pid):
    """Map each descriptor to the status of its file."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found[int(name)] = os.stat(f"/proc/{pid}/fd/{name}")
    return found


def same(one, other):
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def say(pid, data, times=1):
    """Make the process print to its own standard error; return the results of its calls."""
    data = data.encode() if isinstance(data, str) else data
    with Injected(pid) as process:
        below = process.saved[process.stack] - 4096 - len(data)
        process.memory(below, data)
        return [process.call("write", 2, below, len(data)) for _ in range(times)]


@contextlib.contextmanager
def standard_error_of(pid):
    """Open its standard error to write any amount without waiting, as that process would."""
    fd = os.open(f"/proc/{pid}/fd/2", os.O_WRONLY | O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def until(mount, predicate, what):
    end = lib.deadline()
    while not predicate():
        if time.monotonic() > end:
            raise lib.Failure(f"{what}:\n{mount.log()}")
        time.sleep(0.01)


def error_of_write(fd, data):
    return lib.error_of(os.write, fd, data)


def log_size(mount):
    return os.stat(mount.log_path).st_size


def whole_log(mount):
    return lib.read_file(mount.log_path).decode(errors="replace")


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise lib.Failure("no memory")


# who has which descriptor

def test_no_child_has_the_log(mounts):
    mount = mounts()
    log, pipes = os.stat(mount.log_path), set()
    for name in CHILDREN:
        files = files_of(mount.child(name))
        assert not [number for number, st in files.items() if same(st, log)], name
        assert stat.S_ISFIFO(files[1].st_mode) and same(files[1], files[2]), name
        pipes.add(files[2].st_ino)
    assert len(pipes) == len(CHILDREN)


def test_no_child_has_the_terminal(mounts):
    master, slave = pty.openpty()
    mount = mounts(start=False)
    try:
        terminal = os.fstat(slave)
        mount.start(stderr=slave)
        for name in CHILDREN:
            assert not [number for number, st in files_of(mount.child(name)).items() if same(st, terminal)], name
        # None of our processes has opened it in a way that affects others.
        assert not fcntl.fcntl(slave, fcntl.F_GETFL) & O_NONBLOCK
        assert b"lkgfsd: " in os.read(master, 65536)
    finally:
        mount.close()
        os.close(slave)
        os.close(master)


@pytest.mark.parametrize("name", CHILDREN)
def test_its_lines_are_its_own_and_harmless(mounts, name):
    mount = mounts()
    pid = idle(mount, name)
    assert say(pid, RAW) == [len(RAW.encode())]
    until(mount, lambda: f"{name}: plain" in whole_log(mount), "what it said is in the log")
    log = lib.read_file(mount.log_path)
    for raw in (b"\x1b", b"\x07", "\x9b".encode(), "\u202e".encode()):
        assert raw not in log
    lines = log.decode().splitlines()
    assert [line for line in lines if "forged" in line] == [f"{name}: lkgfsd: forged"]
    assert f"{name}: lkgfsd: view on /etc served" in lines


def test_so_are_its_messages(mounts):
    """An engine's lines come as datagrams with fields."""
    mount = mounts()
    engine = mount.child("lkgfs-engine")
    message = Message(version=VERSION, type=TYPES.index("LOG"), result=0, number=7, command_=b"x\n\x1blkgfsd: forged", exe_=b"\x1b")
    text = b"\x1b[2J\nlkgfsd: forged\xc2\x9b\nend"
    ctypes.memmove(message.text_, text, len(text))
    message.text_size = len(text)
    channel = ctypes.CDLL(None).syscall(PIDFD_GETFD, os.pidfd_open(engine), 4, 0)
    with socket.socket(fileno=channel) as sock:
        sock.send(bytes(message)[:Message.HEAD + len(text)])
    until(mount, lambda: ": end\n" in whole_log(mount), "it is logged")
    start = "lkgfs-engine: x??lkgfsd: forged, generation 7: "
    assert "".join(f"{start}{line}\n" for line in ("?[2J", "lkgfsd: forged??", "end")) in whole_log(mount)


@pytest.mark.parametrize("call,arguments", [("ftruncate", (0,)), ("ioctl", (TIOCSTI, "x")), ("lseek", (0, 0))])
@pytest.mark.parametrize("name", CHILDREN)
def test_what_it_has_is_no_way_to_the_log(mounts, name, call, arguments):
    mount = mounts()
    mount.may_crash = CHILDREN
    size = log_size(mount)
    for descriptor in (1, 2):
        with contextlib.suppress(Killed), Injected(idle(mount, name)) as process:
            assert process.call(call, descriptor, *arguments) < 0
    assert log_size(mount) >= size


def test_settings_are_read_by_one_that_has_no_log_either(mounts):
    """Its messages about a configuration are logged, sanitised, as lines of the engine."""
    mount = mounts(start=False)
    document = json.loads(lib.read_file(mount.config_path))
    lib.write_file(mount.config_path, json.dumps({**document, "un\x9bk\nlkgfsd: own": 1}, ensure_ascii=False), 0o600)
    mount.start(wait_ready=False)
    assert mount.process.wait(lib.TIMEOUT_S) == 78
    log = whole_log(mount)
    assert "\x9b" not in log
    assert f"lkgfs-engine: {mount.config_path}:1:" in log and "\nlkgfsd: own" not in log


# nothing is lost

@pytest.mark.parametrize("name", CHILDREN)
def test_last_words_come_out_before_the_end_is_told(mounts, name):
    mount = mounts()
    mount.may_crash = CHILDREN
    report = "".join(f"    #{i} 0x55d0c0ffee in some_function_{i} some/file.c:{i}\n" for i in range(400)) + "SUMMARY: no end of line"
    pid = mount.child(name)
    with standard_error_of(pid) as fd:
        for text in ("==1==ERROR: AddressSanitizer\n", report):
            assert os.write(fd, text.encode()) == len(text)
    os.kill(pid, signal.SIGABRT if name != "lkgfs-engine" else signal.SIGKILL)
    until(mount, lambda: f"(pid {pid}) was killed" in whole_log(mount), "its end is told")
    log = whole_log(mount)
    assert f"{name}: ==1==ERROR: AddressSanitizer\n" in log
    assert all(f"{name}:     #{i} 0x55d0c0ffee in some_function_{i} some/file.c:{i}\n" in log for i in range(400))
    assert log.index(f"{name}: SUMMARY: no end of line") < log.index(f"(pid {pid}) was killed")


def test_what_a_file_server_says_while_there_is_no_lkgfsd_is_not_lost(mounts):
    mount = mounts()
    server = idle(mount, "lkgfs-fs")
    mount.kill_supervisor()
    assert say(server, "alone\n") == [6]
    mount.start()
    assert mount.child("lkgfs-fs") == server
    until(mount, lambda: "lkgfs-fs: alone\n" in whole_log(mount), "the successor reads it")
    say(server, "together\n")
    until(mount, lambda: "lkgfs-fs: together\n" in whole_log(mount), "and what comes then")


# nothing waits

def test_a_child_never_waits_for_lkgfsd(mounts):
    mount = mounts()
    mount.process.send_signal(signal.SIGSTOP)
    try:
        results = say(idle(mount, "lkgfs-fs"), "x" * 4095 + "\n", 200)
    finally:
        mount.process.send_signal(signal.SIGCONT)
    assert 4096 in results and -errno.EAGAIN in results


@pytest.mark.parametrize("name", CHILDREN)
def test_a_flood_fills_neither_log_nor_memory(mounts, name):
    """Of several MiB, the log gets a quarter of one; then the process dies, and its last lines are logged."""
    mount = mounts()
    mount.may_crash = CHILDREN
    pid, size, memory = mount.child(name), log_size(mount), resident(mount.process.pid)
    lines = "".join(f"flood {i}\n" for i in range(400)).encode()
    read = refused = 0
    with standard_error_of(pid) as fd:
        while read < 3 << 20 or refused < 1000:
            try:
                read += os.write(fd, lines)
            except BlockingIOError:
                refused += 1
        until(mount, lambda: not error_of_write(fd, b"last words\n"), "its pipe stays full")
    os.kill(pid, signal.SIGKILL)
    until(mount, lambda: f"(pid {pid}) was killed" in whole_log(mount), "its end is told")
    log = whole_log(mount)
    assert log_size(mount) - size < 600 << 10
    assert "lines left out" in log and f"{name}: last words\n" in log
    assert resident(mount.process.pid) - memory < 4 << 20
    mount.wait_for(lambda: mount.child(name) != pid, "there is another one")


def full_pipe():
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETFL, fcntl.fcntl(writer, fcntl.F_GETFL) | O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    fcntl.fcntl(writer, fcntl.F_SETFL, fcntl.fcntl(writer, fcntl.F_GETFL) & ~O_NONBLOCK)
    return reader, writer


def test_lkgfsd_never_waits_for_its_own_standard_error(mounts):
    """A pipe that is not read: it starts, serves, judges, replaces and stops, and reports how much was lost once there is room."""
    reader, writer = full_pipe()
    mount = mounts(start=False)
    try:
        mount.start(stderr=writer)
        assert not fcntl.fcntl(writer, fcntl.F_GETFL) & O_NONBLOCK  # the pipe has other users
        mount.drop("50-pods.conf", "maxPods: 77\n")
        mount.wait_for(lambda: "maxPods: 77" in mount.document(), "judged")
        pid = mount.kill_child("lkgfs-fs")
        mount.wait_for(lambda: mount.child("lkgfs-fs") != pid, "replaced")
        os.set_blocking(reader, False)
        while len(os.read(reader, 1 << 20)) == 1 << 20:
            pass
        mount.kill_child("lkgfs-notify")
        text = b""
        end = lib.deadline()
        while b"lines could not be written here" not in text:
            assert time.monotonic() < end, text
            with contextlib.suppress(BlockingIOError):
                text += os.read(reader, 1 << 16)
            time.sleep(0.01)
        assert mount.stop() == 0
    finally:
        mount.close()
        os.close(reader)
        os.close(writer)


def test_lkgfsd_never_waits_for_a_terminal_that_was_stopped(mounts):
    """Ctrl-S, or a window that is not read."""
    master, slave = pty.openpty()
    mount = mounts(start=False)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.tcflow(slave, 0) == 0  # TCOOFF
        mount.start(stderr=slave)
        mount.drop("50-pods.conf", "maxPods: 77\n")
        mount.wait_for(lambda: "maxPods: 77" in mount.document(), "judged")
        assert mount.stop() == 0
    finally:
        mount.close()
        os.close(slave)
        os.close(master)


def test_lkgfsd_never_waits_for_the_journal(mounts, monkeypatch, journal):
    """A journal that is stopped and whose queue is full."""
    path = journal.getsockname()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                sender.sendto(b"MESSAGE=full", path)
        mount = mounts(start=False)
        mount.log_to_journal(monkeypatch)
        mount.start()
        mount.drop("50-pods.conf", "maxPods: 77\n")
        mount.wait_for(lambda: "maxPods: 77" in mount.document(), "judged")
        assert mount.stop() == 0
