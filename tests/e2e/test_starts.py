# SPDX-License-Identifier: Apache-2.0
"""A component starts: its first open waits for the engine, which may switch first and have the opener look it up again.

Rule: docs/specification.md 4.9.
"""
import contextlib
import errno
import os
import select
import shutil
import signal
import subprocess

import pytest

import lkgfs_testlib as lib
from lkgfs_container import CLONE_NEWNS, MS_BIND, MS_REC, MS_SLAVE, mount, unshare
from lkgfs_engine import StandIn

PRELUDE = """import os, sys
path, bind, fd = sys.argv[1], sys.argv[2], int(sys.argv[3])
def show(name):
    with open(name) as f:
        sys.stdout.write(f.read())
    sys.stdout.flush()
def again(number):
    return '/proc/self/fd/%d' % number
"""


@pytest.fixture
def stand_in(mounts):
    engines = []

    def make(**options):
        engines.append(StandIn(mounts, **options))
        return engines[-1].start()
    yield make
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(stand_in):
    return stand_in()


class Opener:
    """A process that opens the file as its code says; each line on its input lets it continue."""

    def __init__(self, engine, code, program=None, bind="", fd=-1, **kwargs):
        argv = [program or engine.component, "-ISB", "-c", PRELUDE + code, engine.mount.path("kubelet.conf"), bind,
                str(fd)]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        cwd="/", bufsize=0, **kwargs)
        self.pid = self.process.pid

    def line(self):
        assert select.select([self.process.stdout], [], [], lib.TIMEOUT_S)[0], "no output"
        return self.process.stdout.readline().decode()

    def go_on(self):
        self.process.stdin.write(b"\n")

    def waits(self):
        return not select.select([self.process.stdout], [], [], 0.1)[0]

    def end(self):
        """Return everything it has printed."""
        out, err = self.process.communicate(timeout=lib.TIMEOUT_S)
        assert self.process.returncode == 0, err.decode()
        return out.decode()


def test_first_open_waits(engine):
    opener = Opener(engine, "show(path)\nshow(path)\nshow(path)")
    asked = engine.next("STARTED")
    assert (asked.pid, asked.component, asked.number) == (opener.pid, 0, 1)
    assert asked.exe == engine.component and asked.start_time == lib.start_time(opener.pid)
    assert opener.waits()
    engine.done(asked)
    assert opener.end() == "one\n" * 3
    engine.quiet()  # asked once for the whole process


def test_switch_before_the_answer(engine):
    opener = Opener(engine, "show(path)\nsys.stdin.readline()\nshow(path)")
    asked = engine.next("STARTED")
    engine.publish("two\n", 2)
    engine.done(asked, -errno.ESTALE)
    assert opener.line() == "two\n", "the very open that asked sees the new generation"
    told = engine.next("STARTED")
    assert (told.pid, told.number) == (opener.pid, 2), "the engine knows on which generation it runs"
    engine.done(told, -errno.ESTALE)  # nothing waits for this
    opener.go_on()
    assert opener.end() == "two\n"
    engine.quiet()


@pytest.mark.parametrize("result", [0, -errno.EINVAL, -errno.EIO, -errno.ENOMEM])
def test_any_other_answer_lets_it_go_on(engine, result):
    opener = Opener(engine, "show(path)")
    asked = engine.next("STARTED")
    engine.publish("two\n", 2)
    engine.done(asked, result)
    assert opener.end() == "one\n"


def test_stale_without_a_switch(engine):
    opener = Opener(engine, "show(path)")
    engine.done(engine.next("STARTED"), -errno.ESTALE)
    assert opener.end() == "one\n"


def test_threads_are_one_process(engine):
    opener = Opener(engine, """import threading
show(path)
for _ in range(8):
    t = threading.Thread(target=show, args=(path,)); t.start(); t.join()
""")
    engine.done(engine.next("STARTED"))
    assert opener.end() == "one\n" * 9
    engine.quiet()


def test_each_process_asks(engine):
    for _ in range(3):
        opener = Opener(engine, "show(path)")
        asked = engine.next("STARTED")
        assert asked.pid == opener.pid
        engine.done(asked)
        opener.end()


def test_a_newer_generation_is_told(engine):
    opener = Opener(engine, "for _ in range(3):\n  show(path); show(path); sys.stdin.readline()")
    engine.done(engine.next("STARTED"))
    for generation in (2, 3):
        assert opener.line() and opener.line()
        engine.publish(f"{generation}\n", generation)
        engine.mount.wait_for(lambda shown=f"{generation}\n": engine.mount.document() == shown, "the new generation")
        opener.go_on()
        told = engine.next("STARTED")
        assert (told.pid, told.number) == (opener.pid, generation)
    opener.go_on()
    opener.end()
    engine.quiet()


def bind_file(engine):
    target = os.path.join(engine.mount.root, "bound")
    lib.write_file(target, "")
    lib.run("mount", "--bind", engine.mount.path("kubelet.conf"), target, check=True)
    return target


@pytest.mark.parametrize("code", [
    "show(again(fd))", "show(bind)", "os.stat(path)\nshow(bind)", "os.stat(path)\nshow(again(fd))",
    "o = os.open(path, os.O_PATH)\nshow(again(o))", "o = os.open(bind, os.O_PATH)\nshow(again(o))",
    "o = os.open(path, os.O_PATH)\nshow('/proc/self/task/%d/fd/%d' % (os.getpid(), o))",
])
def test_descriptors_and_binds_keep_their_generation(engine, code):
    """An open without a new look-up never fails, whatever the engine answers."""
    bind = bind_file(engine)
    fd = os.open(engine.mount.path("kubelet.conf"), os.O_PATH)
    try:
        opener = Opener(engine, code, bind=bind, fd=fd, pass_fds=(fd,))
        asked = engine.next("STARTED")
        assert asked.number == 1
        engine.publish("two\n", 2)
        engine.done(asked, -errno.ESTALE)
        assert opener.end() == "one\n"
        engine.quiet()
    finally:
        os.close(fd)
        lib.run("umount", bind, check=True)


@pytest.mark.parametrize("code", [
    "show(path)", "os.chdir(os.path.dirname(path))\nshow('kubelet.conf')", "os.stat(path)\nshow(path)",
    "d = os.open(os.path.dirname(path), os.O_PATH)\nos.chdir('/proc/self/fd/%d' % d)\nshow('kubelet.conf')",
    "o = os.open(path, os.O_PATH)\nshow(path)", "os.symlink(path, bind)\nshow(bind)",
    "o = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)\nprint(os.read(o, 99).decode(), end='')",
    "import mmap\no = os.open(path, os.O_RDONLY)\nprint(mmap.mmap(o, 0, prot=mmap.PROT_READ)[:].decode(), end='')",
    "import os\nif os.fork() == 0:\n  show(path)\n  os._exit(0)\nos.wait()",
])
def test_every_way_by_name_is_sent_back(engine, code):
    opener = Opener(engine, code, bind=os.path.join(engine.mount.root, "link"))
    asked = engine.next("STARTED")
    engine.publish("two\n", 2)
    engine.done(asked, -errno.ESTALE)
    assert opener.end() == "two\n"


def become_component(engine):
    script = f"print(open({engine.mount.path('kubelet.conf')!r}).read(), end='')"
    return f"os.execv({engine.component!r}, ['component', '-ISB', '-c', {script!r}])"


def test_a_stranger_becomes_the_component(engine):
    """execve() keeps the thread; what was noted about the old program no longer counts."""
    opener = Opener(engine, "show(path)\n" + become_component(engine), program="/usr/bin/python3")
    asked = engine.next("STARTED")
    assert asked.pid == opener.pid and asked.exe == engine.component
    engine.publish("two\n", 2)
    engine.done(asked, -errno.ESTALE)
    assert opener.end() == "one\ntwo\n"


def test_execve_is_no_second_start(engine):
    opener = Opener(engine, "show(path)\n" + become_component(engine))
    engine.done(engine.next("STARTED"))
    assert opener.end() == "one\none\n"
    engine.quiet()


def test_who_does_not_count(engine):
    path = engine.mount.path("kubelet.conf")
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    assert Opener(engine, "show(path)", **nobody).end() == "one\n"
    argv = [engine.component, "-ISB", "-c", f"print(open({path!r}).read())"]
    lib.run("unshare", "--user", "--map-root-user", *argv, check=True)
    lib.run("cat", path, check=True)
    assert Opener(engine, "import ctypes\nctypes.CDLL(None).prctl(15, b'component')\nshow(path)",
                  program="/usr/bin/python3").end() == "one\n"
    assert Opener(engine, "os.stat(path); os.access(path, 4); os.close(os.open(path, os.O_PATH))").end() == ""
    assert Opener(engine, "show(os.path.dirname(path) + '/lkg/kubelet.conf')").end() == "good\n"
    assert Opener(engine, "try:\n  os.open(path, os.O_WRONLY)\nexcept PermissionError:\n  pass").end() == ""
    engine.quiet()


# the program file counts, and the host's mount namespace

def check_stranger(engine, **options):
    opener = Opener(engine, "show(path)", **options)
    assert opener.end() == "one\n", "reading is everybody's who may"
    engine.quiet()


def own_mounts():
    unshare(CLONE_NEWNS)
    mount(None, "/", flags=MS_REC | MS_SLAVE)


def test_the_program_of_the_host_in_another_mount_namespace(engine):
    """A container with the host's own binary, or a chrooted agent."""
    check_stranger(engine, preexec_fn=own_mounts)


def test_another_program_under_the_same_path(engine):
    """A container's own /usr/bin/kubelet."""
    other = engine.component + "-of-the-image"
    shutil.copy(engine.component, other)

    def container():
        own_mounts()
        mount(other, engine.component, flags=MS_BIND)

    check_stranger(engine, preexec_fn=container)


def test_the_same_program_under_another_path(engine):
    """A symlink to it is the program itself; a copy is not."""
    link, copy = engine.component + "-link", engine.component + "-copy"
    os.link(engine.component, link)
    shutil.copy(engine.component, copy)
    opener = Opener(engine, "show(path)", program=link)
    asked = engine.next("STARTED")
    assert asked.pid == opener.pid
    engine.done(asked)
    assert opener.end() == "one\n"
    check_stranger(engine, program=copy)


def test_a_configured_link_leads_to_the_program(stand_in):
    engine = stand_in(match=["exe\t/usr/bin/python3"])  # a symlink, as distributions and update-alternatives make it
    opener = Opener(engine, "show(path)", program="/usr/bin/python3")
    asked = engine.next("STARTED")
    assert asked.pid == opener.pid
    engine.done(asked)
    assert opener.end() == "one\n"


@contextlib.contextmanager
def cgroups(engine, options, *names):
    """Control groups in systemd's hierarchy, below one of our own; skips if the kernel has none."""
    top = os.path.join(engine.mount.root, "cgroup")
    os.mkdir(top)
    if lib.run("mount", *options, top).returncode != 0:
        yield []
        return
    made = [os.path.join(top, name) for name in names]
    try:
        for directory in made:
            os.mkdir(directory)
        yield made
    finally:
        for directory in reversed(made):
            if os.path.isdir(directory):
                lib.shell(f"until rmdir {directory}; do sleep 0.01; done", check=True)
        lib.run("umount", top, check=True)


HIERARCHIES = [("-t", "cgroup2", "none"), ("-t", "cgroup", "-o", "none,name=systemd", "none")]


@pytest.mark.parametrize("options", HIERARCHIES)
def test_control_group_of_a_container(stand_in, options):
    """Like that of a DaemonSet's pod: whatever is in the image, and whatever its mounts are."""
    own = f"lkgfs-e2e-{os.getpid()}.slice"
    engine = stand_in(match=[f"cgroup\t/{own}/kubepods-pod*.slice/cri-*.scope"])
    pods = [own + name for name in ("", "/kubepods-pod1.slice", "/kubepods-pod1.slice/cri-1.scope",
                                    "/kubepods-pod1.slice/cri-1.scope/below", "/kubepods-other.slice")]
    with cgroups(engine, options, *pods) as made:
        for directory in made:
            opener = Opener(engine, "sys.stdin.readline()\nshow(path)", program="/usr/bin/python3",
                            preexec_fn=own_mounts)
            lib.write_file(os.path.join(directory, "cgroup.procs"), str(opener.pid))
            opener.go_on()
            if directory.endswith("cri-1.scope"):
                asked = engine.next("STARTED")
                assert asked.pid == opener.pid
                engine.done(asked)
            assert opener.end() == "one\n"
            engine.quiet()


@pytest.mark.parametrize("options", HIERARCHIES)
def test_unit(stand_in, options):
    engine = stand_in(match=["unit\tlkgfs-e2e@a.service"])
    own = f"lkgfs-e2e-{os.getpid()}.slice"
    unit = own + "/lkgfs-e2e@a.service"
    with cgroups(engine, options, own, unit, unit + "/init", unit + "/kubepods.slice", unit + ".d") as made:
        for directory, counts in zip(made, (False, True, True, False, False)):
            opener = Opener(engine, "sys.stdin.readline()\nshow(path)", program="/usr/bin/python3")
            lib.write_file(os.path.join(directory, "cgroup.procs"), str(opener.pid))
            opener.go_on()
            if counts:
                asked = engine.next("STARTED")
                assert asked.pid == opener.pid and "python" in asked.exe
                engine.done(asked)
            assert opener.end() == "one\n"
            engine.quiet()


# SIGKILL of the file server

def test_killed_while_the_opener_waits(engine):
    opener = Opener(engine, "show(path)")
    asked = engine.next("STARTED")
    engine.mount.kill_child("lkgfs-fs")
    again = engine.next("STARTED")
    assert (again.ticket, again.pid, again.number) == (asked.ticket, opener.pid, 1)
    engine.publish("two\n", 2)
    engine.done(again, -errno.ESTALE)
    assert opener.end() == "two\n"


def test_killed_after_the_engine_has_answered(engine):
    """The answer may have been sent or not; either way there is one, and no error."""
    for generation in range(2, 12):
        opener = Opener(engine, "show(path)")
        asked = engine.next("STARTED")
        engine.publish(f"{generation}\n", generation)
        engine.done(asked, -errno.ESTALE)
        os.kill(engine.mount.child("lkgfs-fs"), signal.SIGKILL)
        while opener.process.poll() is None:
            engine.look(0.01)
            for message in engine.waiting:  # news of the generation; the question itself is answered
                assert (message.pid, message.number) == (opener.pid, generation)
                engine.done(message, -errno.ESTALE)
            engine.waiting.clear()
        assert opener.end() == f"{generation}\n"
        engine.mount.child("lkgfs-fs")
        while engine.look(0):
            pass
        engine.waiting.clear()


def test_a_successor_knows_who_was_asked_about(engine):
    opener = Opener(engine, "for _ in range(2):\n  show(path); sys.stdin.readline()")
    asked = engine.next("STARTED")
    engine.publish("two\n", 2)
    engine.done(asked, -errno.ESTALE)
    assert opener.line() == "two\n"
    assert engine.next("STARTED").number == 2
    engine.mount.kill_child("lkgfs-fs")
    opener.go_on()
    assert opener.line() == "two\n"
    opener.go_on()
    opener.end()
    engine.quiet()


def test_no_answer_in_time(stand_in):
    """The open continues after engineTimeout; the engine still learns of it later, even from a successor."""
    engine = stand_in(timeout_ms=200)
    opener = Opener(engine, "show(path)")
    asked = engine.next("STARTED")
    assert opener.end() == "one\n"
    engine.mount.kill_child("lkgfs-fs")
    again = engine.next("STARTED")
    assert (again.ticket, again.pid, again.start_time) == (asked.ticket, asked.pid, asked.start_time)
    engine.done(again, -errno.ESTALE)
    assert lib.read_file(engine.mount.path("kubelet.conf")) == b"one\n"
    engine.quiet()
