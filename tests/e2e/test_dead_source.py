# SPDX-License-Identifier: Apache-2.0
"""The source directory itself may stop answering, as a network file system does: what is served is still served, by whoever starts meanwhile.
"""
import contextlib
import errno
import os
import signal
import time

import pytest

import lkgfs_deadfs as deadfs
import lkgfs_testlib as lib
from lkgfs_waiters import SOON_S, held, how_long, is_held


OPTIONS = {"local": "", "network": ",default_permissions"}


@contextlib.contextmanager
def dead_mount(waiters, options, **more):
    """A mount whose source directory is itself a file system that may stop answering; (mount, file system). Like a network file
    system it is asked for permissions, too, whenever a name is looked up in it.
    """
    tree = {"kubelet.conf": lib.BASE, "kubelet.conf.d": dict(lib.DROPINS), "manifests": {}, "file": "content\n"}
    planted = []

    def plant(point):
        os.mkdir(point, 0o755)
        planted.append(waiters.stack.enter_context(deadfs.DeadFs(point, tree, options=",allow_other" + options, **more)))

    with lib.Mount(over=False, start=False, tree=plant) as mount:
        os.chmod(mount.root, 0o711)
        try:
            yield mount, planted[0]
        finally:
            planted[0].live()
            mount.close()
            planted[0].close()


@pytest.fixture(name="dead_source", params=OPTIONS)
def fixture_dead_source(request, waiters):
    with dead_mount(waiters, OPTIONS[request.param]) as (mount, fs):
        mount.start()
        mount.first_server = mount.child("lkgfs-fs")
        yield mount, fs


def at_once(*stories):
    """Each waits for a limit of lkgfs at its `yield`: all of them at the same time."""
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(contextlib.closing(story)) for story in stories]
        while waiting:
            waiting = [story for story in waiting if next(story, "over") != "over"]


def test_the_view_of_a_dead_source(dead_source, waiters):
    mount, fs = dead_source
    document = mount.document()
    fs.die()
    for _ in range(20):
        waiters(os.stat, mount.path("file"), uid=0)
    is_held(mount, 1)
    for _ in range(3):
        times = how_long(mount.path("kubelet.conf"))
        assert times[len(times) * 9 // 10] < SOON_S, times[-10:]
    assert mount.document() == document
    fs.live()
    mount.drop("70-root.conf", "maxPods: 99\n")
    assert "maxPods: 99\n" in mount.document()


def test_a_user_reaches_the_view_of_a_dead_source(waiters):
    """The kernel asks for the ACL of the root whenever it has asked for its attributes."""
    with dead_mount(waiters, "", xattrs=errno.ENODATA) as (mount, fs):
        mount.start()
        assert waiters(os.stat, mount.path("kubelet.conf")).result() == 0
        os.mkdir(mount.path("new"))
        fs.die()
        assert waiters(os.stat, mount.path("kubelet.conf")).result() == 0


def lock_the_root(waiters, options, kind):
    with dead_mount(waiters, options) as (mount, fs):
        mount.start()
        calls = {"make": (os.mkdir, mount.path("new")), "stat": (os.stat, mount.path("never seen")), "listdir": (os.listdir, mount.path())}
        fs.die(*[deadfs.MKDIR] if kind == "make" else [])  # otherwise it would hang in the look-up already
        late = [waiters(*calls[kind], uid=0)]
        is_held(mount, 1)
        if kind == "make":  # a writer that waits for the lock keeps new readers out, for as long again
            mount.wait_for(fs.waiting, "the first one has the lock")
            late.append(waiters(os.mkdir, mount.path("another"), uid=0))
        view = waiters(os.stat, mount.path("history"), uid=0)
        yield
        assert late[0].result() == errno.ETIMEDOUT
        assert view.result() == 0, "a name of the view that nobody has looked up yet"
        if kind == "make":
            yield
            assert late[1].result() == errno.ETIMEDOUT
        fs.live()
        mount.wait_for(lambda: held(mount) == 0, "what was late is over")
        if kind == "make":
            mount.wait_for(lambda: os.path.isdir(mount.path("new")), "what was late is done all the same")
        mount.drop("70-root.conf", "maxPods: 98\n")
        mount.wait_for(lambda: "maxPods: 98\n" in mount.document(), "an engine that waited, too, is with us again")


def test_the_root_of_a_dead_source_is_not_locked_for_ever(waiters):
    """The kernel locks it while it waits for the file server: every look-up of a new name would wait, too, even of a name of the view."""
    at_once(*[lock_the_root(waiters, options, kind) for kind in ("stat", "listdir", "make") for options in OPTIONS.values()])


def test_the_engine_of_a_dead_source(dead_source, waiters):
    """It waits, and the condition says so; serving continues, and so does the engine when the file system does."""
    mount, fs = dead_source
    document = mount.document()
    fs.die()
    waiters(mount.sync, uid=0)
    end = lib.deadline()
    while "not answering" not in (said := lib.read_file(mount.vpath("status", "kubelet", "condition")).decode()):
        assert time.monotonic() < end, said
        assert mount.document() == document
        time.sleep(0.1)
    assert said.startswith("Unknown"), said
    fs.live()
    mount.wait_for(lambda: mount.condition()[0] == "True", "the engine answers again")
    mount.drop("70-root.conf", "maxPods: 97\n")
    mount.wait_for(lambda: "maxPods: 97\n" in mount.document(), "and follows its layers")


def test_successors_over_a_dead_source(dead_source, waiters):
    """A file server and an lkgfsd that start while it is dead."""
    mount, fs = dead_source
    document = mount.document()
    fs.die()
    waiters(os.stat, mount.path("file"), uid=0)
    is_held(mount, 1)
    os.kill(mount.first_server, signal.SIGKILL)
    assert mount.document() == document
    times = how_long(mount.path("kubelet.conf"))
    assert times[len(times) * 9 // 10] < SOON_S, times[-10:]
    mount.kill_supervisor()
    mount.start(wait_ready=False)
    assert mount.document() == document
    fs.live()
    mount.wait_for(lambda: mount.condition()[0] == "True", "everything goes on")
    mount.drop("70-root.conf", "maxPods: 96\n")
    mount.wait_for(lambda: "maxPods: 96\n" in mount.document(), "and follows its layers")


def says(mount, words, count):
    end = lib.deadline()
    while mount.log().count(words) < count:
        assert time.monotonic() < end, mount.log()
        time.sleep(0.01)


def test_an_engine_that_ends_over_a_dead_source(dead_source, waiters):
    """The next one may wait; lkgfsd does not: it replaces a file server, and it can be stopped as usual."""
    mount, fs = dead_source
    document = mount.document()
    fs.die()
    first = mount.child("lkgfs-engine")
    lib.kill_and_wait(first)
    says(mount, "engine started", 2)  # it may wait before it is executed
    os.kill(mount.child("lkgfs-fs"), signal.SIGKILL)
    assert waiters(lib.read_file, mount.path("kubelet.conf"), uid=0).result() == 0, "somebody answers"
    mount.reload()
    assert mount.document() == document
    begun = time.monotonic()
    assert mount.stop() == 0
    assert time.monotonic() - begun < 20


def test_successors_of_lkgfsd_end_what_waits_to_be_an_engine(dead_source, waiters):
    """A child that was forked but has not called execve() yet counts, too: otherwise it would wake up later and lock the state
    directory.
    """
    mount, fs = dead_source
    fs.die()
    lib.kill_and_wait(mount.child("lkgfs-engine"))
    says(mount, "engine started", 2)
    for n in range(1, 3):
        mount.kill_supervisor()
        mount.start(wait_ready=False)
        says(mount, "taken over from an earlier lkgfsd", n)
    fs.live()
    mount.wait_for(lambda: mount.condition()[0] == "True", "everything goes on")
    mount.drop("70-root.conf", "maxPods: 95\n")
    mount.wait_for(lambda: "maxPods: 95\n" in mount.document(), "and follows its layers")
    assert "uses the state directory" not in mount.log()


def start_over(waiters, options, *asked):
    with dead_mount(waiters, options) as (mount, fs):
        fs.die(*asked)
        mount.start(wait_ready=False)
        yield
        says(mount, f"the source directory {mount.source} does not answer", 1)
        assert mount.process.poll() is None
        assert mount.stop() == 0
        assert "stopping: SIGTERM" in mount.log() and not os.path.ismount(mount.mountpoint)
        since = len(mount.notify.messages)
        mount.start(wait_ready=False)
        yield
        says(mount, f"the source directory {mount.source} does not answer", 2)
        fs.live()
        mount.wait_ready(since)
        assert "maxPods: 64\n" in mount.document()


def test_a_start_over_a_dead_source(waiters):
    """It logs what it waits for, SIGTERM ends it, and it continues when the file system does."""
    at_once(start_over(waiters, OPTIONS["local"]), start_over(waiters, OPTIONS["network"]),
            start_over(waiters, OPTIONS["local"], deadfs.OPENDIR), start_over(waiters, OPTIONS["network"], deadfs.GETATTR))


@pytest.mark.parametrize("dead_source", ["local"], indirect=True)
def test_a_copy_that_is_never_written_does_not_keep_lkgfsd(dead_source):
    """At the end lkgfsd waits for the fallback copy, but not forever."""
    mount, fs = dead_source
    fs.die(deadfs.CREATE, deadfs.MKDIR, deadfs.UNLINK, deadfs.RENAME2)
    mount.drop(max(lib.DROPINS), "maxPods: 94\n")
    mount.wait_for(lambda: fs.waiting() > 0, "it is being written")
    begun = time.monotonic()
    assert mount.stop() == 0
    assert time.monotonic() - begun < 20


def test_a_source_without_acls(waiters):
    """The kernel asks for an ACL of each directory; "not supported", as NFS 4 answers, is no reason to refuse access that the
    mode allows.
    """
    tree = {"kubelet.conf": lib.BASE, "kubelet.conf.d": dict(lib.DROPINS), "manifests": {}, "file": "content\n"}

    def plant(point):
        os.mkdir(point, 0o755)
        waiters.stack.enter_context(deadfs.DeadFs(point, tree, xattrs=errno.EOPNOTSUPP))

    with lib.Mount(over=False, tree=plant) as mount:
        os.chmod(mount.root, 0o711)
        for path in (mount.path("file"), mount.path("kubelet.conf.d", sorted(lib.DROPINS)[0]), mount.vpath("status", "kubelet", "condition")):
            assert waiters(lib.read_file, path).result() == 0, path
        assert waiters(os.listdir, mount.path("manifests")).result() == 0
        assert waiters(os.mkdir, mount.path("new")).result() == errno.EACCES
        assert lib.error_of(os.getxattr, mount.path("manifests"), "user.none") == errno.EOPNOTSUPP, "what is no ACL is as it is"
        assert lib.error_of(os.setxattr, mount.path("manifests"), "user.none", b"x") == errno.EOPNOTSUPP
