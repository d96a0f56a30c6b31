# SPDX-License-Identifier: Apache-2.0
"""bad/: root marks a source bad by writing to its name and removes the mark by removing the name; the call returns the engine's verdict.

Rule: docs/specification.md 2.12.
"""
import errno
import os
import stat
import threading

import pytest

import lkgfs_testlib as lib
from lkgfs_engine import StandIn


@pytest.fixture
def engine(mounts):
    engine = StandIn(mounts)
    engine.bad = {"3f9a@12": '{"reason":"first"}\n', "77": '{"reason":"second"}\n'}
    yield engine.start()
    engine.close()


def bad(engine, *names):
    return engine.mount.path("bad", "kubelet", *names)


class Call(threading.Thread):
    """A call that waits for the engine."""

    def __init__(self, function, *args):
        super().__init__(daemon=True)
        self.function, self.args, self.error, self.result = function, args, 0, None
        self.start()

    def run(self):
        try:
            self.result = self.function(*self.args)
        except OSError as error:
            self.error = error.errno

    def end(self):
        """Return the errno of the call, 0 on success."""
        self.join(lib.TIMEOUT_S)
        assert not self.is_alive(), "the call hangs"
        return self.error


def shell(script):
    return Call(lambda: lib.shell(script))


def asked(engine, command, text):
    message = engine.next("COMMAND")
    assert (message.command, message.text, message.component, message.uid) == (command, text, 0, 0)
    assert message.pid > 0
    return message


def test_what_is_shown(engine):
    assert sorted(os.listdir(bad(engine))) == ["3f9a@12", "77"]
    assert os.listdir(engine.mount.path("bad")) == ["kubelet"]
    assert lib.read_file(bad(engine, "77")) == b'{"reason":"second"}\n'
    assert stat.S_ISDIR(os.stat(bad(engine)).st_mode) and stat.S_ISREG(os.stat(bad(engine, "77")).st_mode)
    assert {e.name: e.is_file() for e in os.scandir(bad(engine))} == {"3f9a@12": True, "77": True}
    assert next(os.scandir(engine.mount.path("bad"))).is_dir()
    engine.quiet()


@pytest.mark.parametrize("script", [
    "echo because > %s", "echo because >> %s", "cp <(echo because) %s", "echo because | tee %s",
    "echo because | dd of=%s", "echo because | dd of=%s conv=notrunc oflag=append"])
@pytest.mark.parametrize("name", ["3f9a", "77"])
def test_condemn(engine, script, name):
    call = shell(script % bad(engine, name))
    message = asked(engine, "bad", name.encode() + b"\0because\n")
    assert (name in os.listdir(bad(engine))) == (name in engine.bad), "not before the engine says so"
    engine.bad[name] = "because\n"
    engine.publish()
    engine.done(message)
    assert call.end() == 0 and call.result.returncode == 0, call.result.stderr
    assert lib.read_file(bad(engine, name)) == b"because\n"
    engine.quiet()


@pytest.mark.parametrize("name", ["3f9a", "77"])
@pytest.mark.parametrize("code", [errno.EINVAL, errno.EBUSY, errno.ENOSPC])
def test_the_verdict_is_the_result_of_write(engine, name, code):
    fd = os.open(bad(engine, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    call = Call(os.write, fd, b"because\n")
    engine.done(asked(engine, "bad", name.encode() + b"\0because\n"), -code)
    assert call.end() == code
    os.close(fd)
    assert os.listdir(bad(engine)).count(name) == (name in engine.bad)
    assert lib.read_file(bad(engine, "77")) == b'{"reason":"second"}\n'
    assert os.stat(bad(engine, "77")).st_size == 20


def test_one_write_one_command(engine):
    fd = os.open(bad(engine, "x"), os.O_WRONLY | os.O_CREAT)
    for text in (b"a", b"with\0nul", b"x" * 1024):
        call = Call(os.write, fd, text)
        engine.done(asked(engine, "bad", b"x\0" + text))
        assert call.end() == 0 and call.result == len(text)
    call = Call(os.write, fd, b"y" * 3000)
    engine.done(asked(engine, "bad", b"x\0" + b"y" * 1025), -errno.EINVAL)
    assert call.end() == errno.EINVAL, "one byte more than is allowed: the engine says that it is too long"
    os.close(fd)
    longest = "n" * 255
    call = Call(lib.write_file, bad(engine, longest), b"z" * 1024)
    engine.done(asked(engine, "bad", longest.encode() + b"\0" + b"z" * 1024))
    assert call.end() == 0
    assert lib.error_of(os.open, bad(engine, longest + "n"), os.O_WRONLY | os.O_CREAT) == errno.ENAMETOOLONG


def test_nothing_written_nothing_left(engine):
    lib.shell(f"touch {bad(engine, 'x')} && : > {bad(engine, 'y')} && truncate -s 5 {bad(engine, 'z')} && "
              f"touch -d 2001-01-01 {bad(engine, 'm')}", check=True)
    os.mknod(bad(engine, "node"), stat.S_IFREG | 0o600)
    fd = os.open(bad(engine, "77"), os.O_RDWR | os.O_TRUNC)
    os.ftruncate(fd, 3)
    assert os.write(fd, b"") == 0
    assert os.fstat(fd).st_size == 20 and os.pread(fd, 99, 0) == b'{"reason":"second"}\n'
    os.close(fd)
    os.truncate(bad(engine, "77"), 0)
    lib.shell(f"touch {bad(engine, '77')}; touch -d 2001-01-01 {bad(engine, '77')}", check=True)
    assert sorted(os.listdir(bad(engine))) == ["3f9a@12", "77"]
    for name in ("x", "y", "z", "m", "node"):
        assert not os.path.lexists(bad(engine, name))
    assert lib.read_file(bad(engine, "77")) == b'{"reason":"second"}\n'
    engine.quiet()


def test_a_name_is_its_makers_alone(engine):
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    first, second = os.open(bad(engine, "x"), flags), os.open(bad(engine, "x"), flags)
    assert os.fstat(first).st_size == 0 and os.pread(first, 9, 0) == b"" and stat.S_ISREG(os.fstat(first).st_mode)
    again = os.open(f"/proc/self/fd/{first}", os.O_WRONLY)
    os.close(first)
    os.close(second)
    call = Call(os.write, again, b"r")
    engine.done(asked(engine, "bad", b"x\0r"))
    assert call.end() == 0
    os.close(again)
    assert lib.error_of(os.open, bad(engine, "77"), flags) == errno.EEXIST
    assert lib.error_of(os.open, bad(engine, "x"), os.O_WRONLY) == errno.ENOENT


def test_forgive(engine):
    call = Call(os.unlink, bad(engine, "77"))
    message = asked(engine, "forgive", b"77")
    del engine.bad["77"]
    engine.publish()
    engine.done(message)
    assert call.end() == 0
    assert os.listdir(bad(engine)) == ["3f9a@12"] and not os.path.exists(bad(engine, "77"))
    assert lib.error_of(os.unlink, bad(engine, "77")) == errno.ENOENT
    assert lib.error_of(os.unlink, bad(engine, "never")) == errno.ENOENT
    call = Call(os.unlink, bad(engine, "3f9a@12"))
    engine.done(asked(engine, "forgive", b"3f9a@12"), -errno.EBUSY)
    assert call.end() == errno.EBUSY and os.listdir(bad(engine)) == ["3f9a@12"]
    engine.quiet()


def test_forgive_all(engine):
    with open(bad(engine, "77"), "rb") as reader:
        call = shell(f"rm -rf {bad(engine)}/*")
        for _ in range(2):
            message = engine.next("COMMAND")
            assert message.command == "forgive"
            del engine.bad[message.text.decode()]
            engine.publish()
            engine.done(message)
        assert call.end() == 0 and call.result.returncode == 0, call.result.stderr
        assert os.listdir(bad(engine)) == []
        assert reader.read() == b'{"reason":"second"}\n', "who has it open reads on"
    assert lib.error_of(os.rmdir, bad(engine)) == errno.EPERM


def test_what_cannot_be_done(engine):
    name, other, outside = bad(engine, "77"), bad(engine, "x"), engine.mount.path("outside")
    lib.write_file(outside, "x")
    for call in [
            (os.mkdir, other), (os.symlink, "x", other), (os.link, name, other), (os.link, outside, other),
            (os.link, name, outside + "2"), (os.rename, name, other), (os.rename, name, outside),
            (os.rename, outside, other), (os.rename, outside, name), (os.chmod, name, 0o666),
            (os.chown, name, 1, 1), (os.setxattr, name, "user.x", b"x"), (os.mkfifo, other),
            (os.chmod, bad(engine), 0o777), (os.chown, bad(engine), 1, 1), (os.rmdir, bad(engine)),
            (os.rmdir, engine.mount.path("bad")), (os.mkdir, engine.mount.path("bad", "x")),
            (os.mknod, engine.mount.path("bad", "x")), (os.setxattr, bad(engine), "user.x", b"x")]:
        assert lib.errno_name(lib.error_of(*call)) == "EPERM", call
    fd = os.open(other, os.O_WRONLY | os.O_CREAT)
    assert lib.error_of(os.fchmod, fd, 0o666) == errno.EPERM and lib.error_of(os.fchown, fd, 1, 1) == errno.EPERM
    os.close(fd)
    assert lib.error_of(lib.write_file, engine.mount.path("lkg", "kubelet.conf"), "x") == errno.EPERM
    assert lib.error_of(os.unlink, engine.mount.path("lkg", "kubelet.conf")) == errno.EPERM
    engine.quiet()


def test_only_root_of_the_host(engine):
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    fds = [os.open(bad(engine, "x"), os.O_WRONLY | os.O_CREAT), os.open(bad(engine, "77"), os.O_WRONLY)]
    scripts = [f"echo r > {bad(engine, 'y')}", f"echo r > {bad(engine, '77')}", f"rm -f {bad(engine, '77')}",
               f"touch {bad(engine, 'y')}", f"mknod {bad(engine, 'y')} p"]
    for script in scripts:
        assert lib.shell(script, **nobody).returncode != 0
        assert lib.run("unshare", "--user", "--map-root-user", "bash", "-c", script).returncode != 0
    for fd in fds:  # opened by root, passed to another user: the write is checked as well
        assert lib.shell(f"echo r >&{fd}", pass_fds=(fd,), **nobody).returncode != 0
        os.close(fd)
    assert sorted(os.listdir(bad(engine))) == ["3f9a@12", "77"]
    assert lib.shell(f"cat {bad(engine, '77')}", **nobody).returncode == 0
    engine.quiet()


@pytest.mark.parametrize("what", ["made", "existing", "removed"])
@pytest.mark.parametrize("code", [0, errno.EINVAL])
def test_killed_while_a_call_waits(engine, what, code):
    """The successor repeats the question with the same ticket and takes the first answer: nothing is done twice."""
    if what == "removed":
        call, command, text = Call(os.unlink, bad(engine, "77")), "forgive", b"77"
    else:
        name = "77" if what == "existing" else "x"
        fd = os.open(bad(engine, name), os.O_WRONLY | os.O_CREAT)
        call, command, text = Call(os.write, fd, b"r\n"), "bad", name.encode() + b"\0r\n"
    first = asked(engine, command, text)
    engine.mount.kill_child("lkgfs-fs")
    again = asked(engine, command, text)
    assert again.ticket == first.ticket and again.pid == first.pid
    engine.done(again, -code)
    assert call.end() == code
    engine.quiet()


def test_descriptors_survive_kills(engine):
    fds = [os.open(bad(engine, "x"), os.O_WRONLY | os.O_CREAT), os.open(bad(engine, "77"), os.O_RDWR)]
    for _ in range(3):
        engine.mount.kill_child("lkgfs-fs")
        for fd, name in zip(fds, (b"x", b"77")):
            call = Call(os.write, fd, b"r")
            engine.done(asked(engine, "bad", name + b"\0r"))
            assert call.end() == 0
    assert os.pread(fds[1], 99, 0) == b'{"reason":"second"}\n'
    assert not os.path.exists(bad(engine, "x"))
    for fd in fds:
        os.close(fd)


def test_makers_and_kills(engine):
    """Names are created and removed while the file server is killed again and again: no call fails, no name is left over."""
    stop = threading.Event()

    def make():
        count = 0
        while not stop.is_set():
            fd = os.open(bad(engine, f"n{count % 7}"), os.O_WRONLY | os.O_CREAT)
            os.close(fd)
            assert not os.path.exists(bad(engine, f"n{count % 7}"))
            count += 1
        return count

    calls = [Call(make) for _ in range(3)]
    for _ in range(10):
        engine.mount.kill_child("lkgfs-fs")
        lib.read_file(bad(engine, "77"))
    stop.set()
    assert [call.end() for call in calls] == [0, 0, 0] and all(call.result for call in calls)
    assert sorted(os.listdir(bad(engine))) == ["3f9a@12", "77"]
