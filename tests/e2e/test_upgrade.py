# SPDX-License-Identifier: Apache-2.0
"""Another lkgfsd takes over: a restart by the service manager, another build, another memory layout, the previous release.

Rule: docs/specification.md 6.9.
"""
import contextlib
import errno
import os
import pathlib
import signal
import subprocess
import threading

import pytest

import lkgfs_testlib as lib

PREVIOUS = "0108fcc"  # the last commit of 0.1.0


def replace(path, data):
    """As a package manager does it: the running program keeps the old file."""
    new = path.with_name(path.name + ".new")
    new.write_bytes(data)
    new.chmod(0o755)
    new.rename(path)


class Reader:
    """Reads the merged file all the time and records everything else that it gets."""

    def __init__(self, mount):
        self.mount, self.calls, self.wrong, self.stop = mount, 0, [], threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stop.is_set():
            try:
                if b"\npodPidsLimit: 4096\n" not in self.mount.read("kubelet.conf"):
                    self.wrong.append("the plain base")
                os.stat(self.mount.path("status/kubelet/generation"))
            except OSError as error:
                self.wrong.append(repr(error))
            self.calls += 1

    def progress(self):
        """Wait until 20 more reads have been answered."""
        end, before = lib.deadline(), self.calls
        while self.calls < before + 20 and not self.wrong:
            if lib.time.monotonic() > end:
                raise lib.Failure("the reader waits for ever")
            self.stop.wait(0.005)

    def __enter__(self):
        self.progress()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.progress()
        self.stop.set()
        self.thread.join(lib.TIMEOUT_S)
        assert self.wrong == []


@contextlib.contextmanager
def open_files(mount):
    """Keep open the merged file, a drop-in and an unlinked file. All of them stay usable."""
    document = os.open(mount.path("kubelet.conf"), os.O_RDONLY)
    gone = os.open(mount.path("manifests/gone"), os.O_CREAT | os.O_RDWR, 0o600)
    os.unlink(mount.path("manifests/gone"))
    text = os.pread(document, 1 << 20, 0)
    try:
        yield
        assert os.pread(document, 1 << 20, 0) == text
        assert os.pwrite(gone, b"still", 0) == 5 and os.pread(gone, 10, 0) == b"still"
    finally:
        os.close(document)
        os.close(gone)


def restart(mount):
    """`systemctl restart`: the unit's RestartKillSignal=, then the same command again."""
    mount.process.send_signal(signal.SIGQUIT)
    assert mount.process.wait(lib.TIMEOUT_S) == 0, mount.log()
    assert lib.is_mounted(mount.mountpoint)
    since = len(mount.notify.messages)
    mount.start(wait_ready=False)
    mount.wait_ready(since)


def check_works(mount, value):
    mount.drop("50-a.conf", f"maxPods: {value}\n")
    assert f"\nmaxPods: {value}\n" in mount.document()
    mount.command("sync", "now\n")
    assert mount.condition()[0] == "True"


# ---- a restart by the service manager ----

@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
@pytest.mark.limit(120)
def test_restart_never_unmounts(mounts, held):
    mount = mounts()
    if held:
        mount.command("hold", "on\n")
    server = mount.child("lkgfs-fs")
    with Reader(mount), open_files(mount):
        for _ in range(3):
            restart(mount)
    assert mount.child("lkgfs-fs") == server, "the same build goes on"
    if held:
        assert "held at" in mount.status("condition")
        mount.command("hold", "off\n")
    check_works(mount, 71)
    assert mount.stop() == 0
    assert not lib.is_mounted(mount.mountpoint)


def test_reads_go_on_between_the_two_halves(mounts):
    """The second half is not started: the view is still served."""
    mount = mounts()
    with Reader(mount) as reader:
        mount.process.send_signal(signal.SIGQUIT)
        assert mount.process.wait(lib.TIMEOUT_S) == 0
        reader.progress()
    assert any("Restarting" in fields.get("STATUS", "") for fields in mount.notify.messages)
    mount.start()
    check_works(mount, 72)


@pytest.mark.parametrize("stops", [signal.SIGTERM, signal.SIGINT])
def test_anything_else_is_a_stop(mounts, stops):
    mount = mounts()
    mount.process.send_signal(stops)
    assert mount.process.wait(lib.TIMEOUT_S) == 0
    assert not lib.is_mounted(mount.mountpoint)


def test_the_unit_says_which_is_a_restart():
    unit = (lib.REPOSITORY / "contrib/systemd/lkgfs.service.in").read_text(encoding="utf-8").splitlines()
    assert "RestartKillSignal=SIGQUIT" in unit and not [line for line in unit if line.startswith("KillSignal=")]


# ---- another build ----

@pytest.mark.limit(120)
def test_file_server_of_another_build_is_replaced(mounts):
    mount = mounts(start=False)
    folder = mount.own_programs()
    mount.start()
    server = mount.child("lkgfs-fs")
    program = folder / "fs/server/lkgfs-fs"
    with Reader(mount), open_files(mount):
        replace(program, lib.another_build(program.read_bytes()))
        mount.kill_supervisor()
        mount.start()
        mount.wait_for(lambda: lib.start_time(server) is None, "the old one ends")
    new = mount.child("lkgfs-fs")
    assert os.path.samefile(f"/proc/{new}/exe", program)
    assert "is of another build: replaced" in mount.log()
    check_works(mount, 73)


def test_touched_program_of_the_same_build_goes_on(mounts):
    mount = mounts(start=False)
    folder = mount.own_programs()
    mount.start()
    server = mount.child("lkgfs-fs")
    program = folder / "fs/server/lkgfs-fs"
    replace(program, program.read_bytes())
    mount.kill_supervisor()
    mount.start()
    assert lib.start_time(server) is not None, "installed again, and nothing new"
    check_works(mount, 74)


# ---- another memory ----

def shared_memory(mount):
    pid = mount.child("lkgfs-fs")
    return next(path for path, target in lib.open_files(pid) if target.startswith("/memfd:lkgfs "))


@pytest.mark.limit(120)
def test_memory_of_another_layout(mounts):
    """The new file server cannot use it: a new view replaces the old one, and readers do not notice."""
    mount = mounts()
    mount.drop("50-a.conf", "maxPods: 70\n")
    generation, server = mount.generation(), mount.child("lkgfs-fs")
    mounts_before = lib.mounts_below(mount.mountpoint)
    fd = os.open(shared_memory(mount), os.O_RDWR)
    with Reader(mount) as reader:
        held = os.open(mount.path("kubelet.conf"), os.O_RDONLY)
        os.pwrite(fd, b"\x02", 0)
        os.close(fd)
        mount.kill_supervisor()
        reader.progress()
        mount.start()
        reader.progress()
        assert b"podPidsLimit" in os.pread(held, 1 << 20, 0), "who has it open reads on"
        os.close(held)
    assert mount.generation() == generation, "the same document is no new generation"
    assert mount.child("lkgfs-fs") != server
    assert lib.mounts_below(mount.mountpoint) == mounts_before
    mount.wait_for(lambda: lib.start_time(server) is None, "the old one ends with its last user")
    check_works(mount, 75)
    assert mount.stop() == 0
    assert not lib.is_mounted(mount.mountpoint)


# ---- the previous release ----

@pytest.fixture(scope="session", name="previous")
def previous_build(tmp_path_factory):
    """The daemons of 0.1.0, from $LKGFS_PREVIOUS or built from the repository's history."""
    given = os.environ.get("LKGFS_PREVIOUS")
    if given:
        return pathlib.Path(given)
    folder = tmp_path_factory.mktemp("previous", numbered=False)
    source = lib.run("git", "-C", lib.REPOSITORY, "archive", PREVIOUS)
    if source.returncode != 0:
        for program in lib.PROGRAMS:  # no history here: take another build instead
            (folder / program).parent.mkdir(parents=True)
            replace(folder / program, lib.another_build((lib.BUILD / program).read_bytes()))
        return folder
    lib.run("tar", "-x", "-C", folder, input=source.stdout, check=True)
    build = folder / "build"
    lib.run("meson", "setup", build, folder, "-Dtests=disabled", "-Dman=disabled",
            "-Doptimization=0", "-Ddebug=false", check=True, timeout=120)
    lib.run("ninja", "-C", build, *lib.PROGRAMS, check=True, timeout=600)
    return build


@pytest.mark.limit(700)
def test_from_the_previous_release(mounts, previous):
    """As lkgfsd(8) says about running a new version: install the new files, then start a new lkgfsd."""
    mount = mounts(start=False, config={"engineUser": None})  # 0.1.0 does not know it
    folder = mount.own_programs(previous)
    mount.start()
    mount.drop("50-a.conf", "maxPods: 70\n")
    mount.command("hold", "on\n")
    assert os.stat(mount.state).st_uid == 0
    mount.write_config()
    generation, server = mount.generation(), mount.child("lkgfs-fs")
    with Reader(mount), open_files(mount):
        for program in lib.PROGRAMS:
            replace(folder / program, (lib.BUILD / program).read_bytes())
        mount.kill_supervisor()
        mount.start()
    mount.wait_for(lambda: lib.start_time(server) is None, "the old file server ends with its last user")
    assert mount.generation() == generation and "held at" in mount.status("condition")
    for name, pid in mount.children().items():
        program = next(p for p in lib.PROGRAMS if p.endswith(name))
        assert os.path.samefile(f"/proc/{pid}/exe", folder / program), name
    # Handed over when the next engine starts, which may be after the old file server has ended.
    mount.wait_for(lambda: os.stat(mount.state).st_uid == lib.ENGINE_USER_ID, "the next engine has a user of its own")
    mount.command("hold", "off\n")
    check_works(mount, 76)
    assert "lkgfs_engine_up" in mount.status("metrics.prom")
    assert lib.error_of(os.unlink, mount.path("kubelet.conf")) == errno.EPERM
