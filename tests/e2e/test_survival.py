# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of any of our processes, at any moment, under load: no call of a reader or writer fails.

Rule: docs/specification.md 7.
"""
import contextlib
import multiprocessing
import os
import select
import signal
import time

import pytest

import lkgfs_testlib as lib

KILLS = int(os.environ.get("LKGFS_TEST_KILLS", "100"))
SLOW_KILLS = (KILLS + 2) // 3  # for processes that are started again at most once a second


ENOUGH = 30  # calls of each kind, so that "nothing failed" means something


def goes_on(stop, calls):
    return calls < ENOUGH or not stop.is_set()


def load_reader(mountpoint, stop, results):
    calls, failures, path = 0, [], os.path.join(mountpoint, "kubelet.conf")
    while goes_on(stop, calls):
        try:
            fd = os.open(path, os.O_RDONLY)
            size = os.fstat(fd).st_size
            data = os.read(fd, size + 1)
            rest = os.read(fd, 1)
            os.close(fd)
            os.stat(path)
            calls += 6
            if len(data) != size or rest or b"syncFrequency" not in data:
                failures.append(f"short document: {len(data)} of {size}")
        except OSError as error:
            failures.append(repr(error))
    results.put(("reader", calls, failures[:5], len(failures)))


def load_status(mountpoint, stop, results):
    calls, failures = 0, []
    while goes_on(stop, calls):
        for name in ("generation", "condition", "metrics.prom", "origin"):
            try:
                data = lib.read_file(os.path.join(mountpoint, "status", "kubelet", name))
                os.listdir(mountpoint)
                calls += 4
                if not data:
                    failures.append(f"{name} is empty")
            except OSError as error:
                failures.append(repr(error))
    results.put(("status", calls, failures[:5], len(failures)))


def load_writer(mountpoint, stop, results):
    """Make every kind of change in a pass-through directory, and check each one."""
    calls, failures = 0, []
    directory = os.path.join(mountpoint, "manifests", f"load-{os.getpid()}")
    os.mkdir(directory)
    while goes_on(stop, calls):
        calls += 10
        name = os.path.join(directory, f"f{calls}")
        try:
            fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            for i in range(3):
                assert os.pwrite(fd, b"%06d" % i, 6 * i) == 6
            os.fsync(fd)
            assert os.pread(fd, 100, 0) == b"000000000001000002"
            os.close(fd)
            os.mkdir(name + ".d")
            os.rename(name, name + ".d/moved")
            os.link(name + ".d/moved", name)
            os.symlink("moved", name + ".d/link")
            os.chmod(name, 0o644)
            assert sorted(os.listdir(name + ".d")) == ["link", "moved"]
            os.unlink(name)
            fd = os.open(name + ".d/moved", os.O_WRONLY | os.O_APPEND)
            os.write(fd, b"appended")
            os.close(fd)
            assert os.stat(name + ".d/moved").st_size == 18 + 8, "an append was done twice or not at all"
            os.unlink(name + ".d/moved")
            os.unlink(name + ".d/link")
            os.rmdir(name + ".d")
        except (OSError, AssertionError) as error:
            failures.append(f"{name}: {error!r}")
            lib.shell(f"rm -rf {name}*")
    results.put(("writer", calls, failures[:5], len(failures)))


def load_dropin(mountpoint, stop, results):
    calls, failures = 0, []
    path = os.path.join(mountpoint, "kubelet.conf.d", f"load-{os.getpid()}.conf")
    while goes_on(stop, calls):
        calls += 3
        try:
            lib.write_file(path, f"{lib.HEADER}maxPods: {calls}\n")
        except OSError as error:
            failures.append(repr(error))
    results.put(("drop-in", calls, failures[:5], len(failures)))


def load_held(mountpoint, stop, results):
    """Descriptors that were open before the kills: a document, a pass-through file, an unlinked one."""
    calls, failures = 0, []
    document = os.open(os.path.join(mountpoint, "kubelet.conf"), os.O_RDONLY)
    want = os.pread(document, 1 << 20, 0)
    plain = os.open(os.path.join(mountpoint, "manifests", f"held-{os.getpid()}"), os.O_CREAT | os.O_RDWR)
    gone = os.open(os.path.join(mountpoint, "manifests", f"gone-{os.getpid()}"), os.O_CREAT | os.O_RDWR)
    os.unlink(os.path.join(mountpoint, "manifests", f"gone-{os.getpid()}"))
    while goes_on(stop, calls):
        calls += 6
        try:
            assert os.pread(document, 1 << 20, 0) == want, "another content in the same open"
            for fd in (plain, gone):
                os.pwrite(fd, b"%d" % calls, 0)
                assert os.pread(fd, 20, 0) == b"%d" % calls
            assert os.fstat(gone).st_nlink == 0
        except (OSError, AssertionError) as error:
            failures.append(repr(error))
    results.put(("held", calls, failures[:5], len(failures)))


LOADS = [load_reader, load_status, load_writer, load_dropin, load_held]


class Load:
    """All loads at once, each in its own process; `report` stops them and returns what failed."""

    def __init__(self, mount, loads=None):
        context = multiprocessing.get_context("fork")
        self.stop, self.results = context.Event(), context.Queue()
        self.processes = [context.Process(target=load, args=(mount.mountpoint, self.stop, self.results), daemon=True)
                          for load in loads or LOADS]
        for process in self.processes:
            process.start()

    def report(self):
        self.stop.set()
        reports = [self.results.get(timeout=lib.TIMEOUT_S) for _ in self.processes]
        for process in self.processes:
            process.join(lib.TIMEOUT_S)
        return reports

    def abandon(self):
        for process in self.processes:
            if process.is_alive():
                process.kill()


def pause():
    """The next kill comes while the successor is working, at a different point each time."""
    select.select([], [], [], 0.02 + 0.03 * (time.monotonic() % 1))


def check_reports(reports):
    assert [report for report in reports if report[3]] == []
    assert all(calls >= ENOUGH for _, calls, _, _ in reports), reports


def check_still_right(mount):
    mount.drop("zz-last.conf", "maxPods: 7\n")
    mount.wait_for(lambda: "\nmaxPods: 7\n" in mount.document())
    mount.wait_for(lambda: mount.condition()[0] == "True")
    assert mount.stop() == 0


@pytest.mark.limit(180)
@pytest.mark.parametrize("victim", ["lkgfs-fs", "lkgfs-engine"])
def test_sigkill_under_load(mount, victim):
    load = Load(mount)
    try:
        for _ in range(KILLS if victim == "lkgfs-fs" else SLOW_KILLS):
            mount.kill_child(victim)
            pause()
        mount.child(victim)
        reports = load.report()
    finally:
        load.abandon()
    check_reports(reports)
    check_still_right(mount)


@pytest.mark.limit(300)
def test_sigkill_of_all_helpers_under_load(mount):
    """The notifier is started again at most once a second; in between the others die as well."""
    load = Load(mount)
    try:
        for i in range(SLOW_KILLS):
            mount.kill_child("lkgfs-notify")
            mount.kill_child(("lkgfs-fs", "lkgfs-engine")[i % 2])
            pause()
        reports = load.report()
    finally:
        load.abandon()
    check_reports(reports)
    check_still_right(mount)


@pytest.mark.limit(180)
def test_sigkill_of_the_supervisor(mounts):
    """Its successor adopts the mount; meanwhile it is still served."""
    mount = mounts()
    load = Load(mount)
    try:
        for _ in range(KILLS):
            mount.children()
            mount.kill_supervisor()
            assert mount.document()
            since = len(mount.notify.messages)
            mount.start(wait_ready=False)
            mount.wait_ready(since)
        reports = load.report()
    finally:
        load.abandon()
    assert [report for report in reports if report[3]] == []
    mount.kill_child("lkgfs-fs")
    assert mount.document(), "the successor restarts the file server as well"
    assert mount.stop() == 0
    assert not lib.is_mounted(mount.mountpoint)


@pytest.mark.limit(120)
def test_calls_wait_for_a_successor(mount):
    """Supervisor and file server are gone; calls wait, and continue when lkgfsd is started again."""
    held = os.open(mount.path("kubelet.conf"), os.O_RDONLY)
    spare = os.open(mount.path("kubelet.conf.d"), os.O_RDONLY)
    children = mount.children()
    mount.kill_supervisor()
    reader = lib.subprocess.Popen(["cat", mount.path("kubelet.conf")], stdout=lib.subprocess.PIPE)
    assert b"maxPods: 64" in reader.communicate(timeout=lib.TIMEOUT_S)[0], "still served"
    mount.start()
    assert lib.start_time(children["lkgfs-fs"]) is not None, "the file server did not notice"
    assert mount.document()
    os.close(held)
    os.close(spare)


def test_watchers_survive_kills(mount):
    """Rule: docs/specification.md 2.6."""
    with lib.Inotify() as inotify:
        wd = inotify.add(mount.path("kubelet.conf"), inotify.MODIFY | inotify.CLOSE_WRITE)
        for victim in ("lkgfs-fs", "lkgfs-engine", "lkgfs-notify"):
            mount.kill_child(victim)
            mount.drop("50-a.conf", f"maxPods: {1000 + len(victim)}\npodsPerCore: {victim.count('n') + 1}\n")
            mount.wait_for(lambda v=victim: f"\nmaxPods: {1000 + len(v)}\n" in mount.document())
            events = inotify.wait(lambda seen: any(e[0] == wd and e[1] & inotify.MODIFY for e in seen) and
                                  any(e[0] == wd and e[1] & inotify.CLOSE_WRITE for e in seen))
            assert events
            while inotify.events(0.3):
                pass


def test_a_publication_about_status_wakes_no_watcher_of_the_file(mount):
    """A component may exit when its file is written (kube-proxy does), so only a change of the file wakes its watchers."""
    with lib.Inotify() as inotify:
        wd = inotify.add(mount.path("kubelet.conf"), inotify.MODIFY | inotify.CLOSE_WRITE)
        relayed = inotify.add(mount.path("manifests"), inotify.CREATE)
        os.listdir(mount.path("manifests"))

        def events_until_now(name):
            """A relayed event comes after everything that had to be announced before it."""
            lib.write_file(mount.behind("manifests", name), "x")
            return inotify.wait(lambda events: any(e[0] == relayed and e[3] == name for e in events))

        events_until_now("first.yaml")  # including what the start announces
        for word in ("on", "off"):
            before = mount.status("condition")
            mount.command("hold", word)
            mount.wait_for(lambda old=before: mount.status("condition") != old)
        assert not [event for event in events_until_now("second.yaml") if event[0] == wd]
        mount.drop("50-a.conf", "maxPods: 77\n")
        inotify.wait(lambda events: any(e[0] == wd and e[1] & inotify.CLOSE_WRITE for e in events))


def test_what_a_killed_file_server_has_pinned_is_swept(mount):
    """A text that no caller has open does not stay in memory for ever."""
    stray = os.path.join(mount.runtime, "private", "pinned", "4000000000")
    lib.write_file(stray, "of nobody")
    mount.kill_child("lkgfs-fs")
    mount.document()
    mount.wait_for(lambda: not os.path.exists(stray), "the successor has swept it")


def test_pollers_survive_kills(mount):
    fd = os.open(mount.path("status", "kubelet", "generation"), os.O_RDONLY)
    os.read(fd, 64)
    poller = select.poll()
    poller.register(fd, select.POLLPRI)
    assert poller.poll(10) == []
    mount.kill_child("lkgfs-fs")
    lib.write_file(mount.behind("kubelet.conf.d", "50-a.conf"), lib.HEADER + "maxPods: 2\n")
    end = lib.deadline()
    while not poller.poll(1000):
        assert time.monotonic() < end, "a poller slept for ever"
    os.close(fd)


def test_hung_engine(mounts):
    """SIGSTOP: reads are not affected, close() waits no longer than engineTimeout, the change is published when it continues."""
    mount = mounts(config={"engineTimeout": "4s"})  # it is replaced after five seconds
    engine = mount.child("lkgfs-engine")
    document = mount.document()
    lib.stop_process(engine)
    try:
        for _ in range(20):
            began = time.monotonic()
            assert mount.document() == document
            assert time.monotonic() - began < 2, "half of what it takes to wait for the engine"
        began = time.monotonic()
        mount.drop("50-a.conf", "maxPods: 81\n")
        took = time.monotonic() - began
        assert 3 < took < 8, took
        assert mount.document() == document
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(engine, signal.SIGCONT)
    mount.wait_for(lambda: "\nmaxPods: 81\n" in mount.document(), "the change is not lost")


def test_hung_engine_and_control(mounts):
    mount = mounts(config={"engineTimeout": "300ms"})
    engine = mount.child("lkgfs-engine")
    lib.stop_process(engine)
    try:
        began = time.monotonic()
        mount.drop("50-a.conf", "maxPods: 82\n")
        assert time.monotonic() - began < 1.5, "the configured bound counts"
        began = time.monotonic()
        lib.error_of(mount.command, "sync", "now")
        assert time.monotonic() - began < 3
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(engine, signal.SIGCONT)
    mount.wait_for(lambda: "\nmaxPods: 82\n" in mount.document())


@pytest.mark.limit(60)
def test_hung_file_server(mount):
    """SIGSTOP of the file server: the supervisor starts a successor without waiting for it."""
    server = mount.child("lkgfs-fs")
    lib.stop_process(server)
    began = time.monotonic()
    assert "\nmaxPods: 64\n" in mount.document()
    assert time.monotonic() - began < 15
    mount.drop("50-a.conf", "maxPods: 83\n")
    assert "\nmaxPods: 83\n" in mount.document()


def test_engine_killed_in_the_middle_of_a_change(mount):
    for value in range(20):
        pid = mount.child("lkgfs-engine")
        writer = lib.subprocess.Popen(["/bin/sh", "-c", f"printf '{lib.HEADER}maxPods: {700 + value}\\n' > "
                                       + mount.path("kubelet.conf.d", "50-a.conf")])
        os.kill(pid, signal.SIGKILL)
        assert writer.wait(lib.TIMEOUT_S) == 0
        mount.wait_for(lambda v=value: f"\nmaxPods: {700 + v}\n" in mount.document())
    assert mount.condition()[0] == "True"


def test_everything_killed_at_once_then_started(mounts):
    """Power-off of all processes: nothing that was published is lost."""
    mount = mounts()
    mount.drop("50-a.conf", "maxPods: 90\n")
    last = mount.generation()
    for pid in (mount.process.pid, *mount.children().values()):
        with contextlib.suppress(ProcessLookupError):  # it has ended with another
            os.kill(pid, signal.SIGKILL)
    mount.process.wait()
    mount.start()
    assert "\nmaxPods: 90\n" in mount.document() and mount.generation() >= last
