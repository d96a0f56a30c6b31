# SPDX-License-Identifier: Apache-2.0
"""One open is one generation, whatever happens meanwhile; and after the last change every watcher has been woken.

A document of the storm is self-checking: `clusterDomain` holds a number, `clusterDNS` has that many entries, each of them the
number again. A reader that sees a mixture of two generations always notices. Rule: docs/specification.md 2.3.
"""
import contextlib
import mmap
import multiprocessing
import os
import select
import threading
import time

import lkgfs_testlib as lib

STORM_S = 4


def body(number):
    entries = 1 + number % 97
    return (lib.HEADER + f'clusterDomain: "n{number}"\n' + "clusterDNS:\n" +
            "".join(f"- n{number}-{i}\n" for i in range(entries)) + f"podsPerCore: {entries}\n")


def problem_of(document):
    """What is wrong with one document; None = nothing."""
    lines = document.decode().splitlines()
    domain = next((line for line in lines if line.startswith("clusterDomain: ")), None)
    if domain is None:
        return f"no clusterDomain in {len(document)} bytes"
    number = domain.split(": ")[1].strip('"')
    if number == "cluster.local":
        return None
    start = lines.index("clusterDNS:") + 1
    entries = []
    for line in lines[start:]:
        if not line.startswith("- "):
            break
        entries.append(line[2:])
    wanted = next(line for line in lines if line.startswith("podsPerCore: ")).split(": ")[1]
    if str(len(entries)) != wanted or entries != [f"{number}-{i}" for i in range(len(entries))]:
        return f"{number}: {len(entries)} entries, want {wanted}: {entries[:3]}"
    if not document.endswith(b"\n") or not any(line.startswith("syncFrequency") for line in lines):
        return "the end is missing"
    return None


def read_whole(fd, size):
    return os.read(fd, size + 65536)


def read_small(fd, size):
    del size
    parts = []
    while True:
        part = os.read(fd, 13)
        if not part:
            return b"".join(parts)
        parts.append(part)


def read_pread(fd, size):
    return b"".join(os.pread(fd, 100, at) for at in range(0, size, 100))


def read_backwards(fd, size):
    return b"".join([os.pread(fd, 512, at) for at in range(0, size, 512)][::-1][::-1])


def read_mapped(fd, size):
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as mapped:
        return bytes(mapped)


def read_slowly(fd, size):
    half = os.pread(fd, size // 2, 0)
    select.select([], [], [], 0.003)
    return half + os.pread(fd, size, size // 2)


def read_exactly_st_size(fd, size):
    data = os.read(fd, size)
    return data + os.read(fd, 1)


READERS = [read_whole, read_small, read_pread, read_backwards, read_mapped, read_slowly, read_exactly_st_size]


def reader(path, how, stop, results):
    """A separate process, so that a SIGBUS is a failed reader and does not end the test."""
    n, problems = 0, []
    while not stop.is_set():
        try:
            fd = os.open(path, os.O_RDONLY)
            try:
                size = os.fstat(fd).st_size
                data = how(fd, size)
                after = os.fstat(fd)
                generation = os.getxattr(f"/proc/self/fd/{fd}", "user.lkgfs.generation")
                if len(data) != size or after.st_size != size:
                    problems.append(f"read {len(data)}, st_size {size} then {after.st_size}")
                problem = problem_of(data)
                if problem:
                    problems.append(problem)
                if how is read_whole and os.pread(fd, size, 0) != data:
                    problems.append(f"content changed while open, generation {generation}")
            finally:
                os.close(fd)
        except OSError as error:
            problems.append(repr(error))
        n += 1
    results.put((how.__name__, n, problems[:5]))


@contextlib.contextmanager
def writers(mount, seconds=None):
    """Change it in place through the mount, as fast as possible."""
    stop, count = threading.Event(), [0]
    path = mount.path("kubelet.conf.d", "50-storm.conf")

    def loop():
        while not stop.is_set():
            count[0] += 1
            lib.write_file(path, body(count[0]))

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    if seconds:
        select.select([], [], [], seconds)
    try:
        yield count
    finally:
        stop.set()
        thread.join()


def test_no_torn_document(mount):
    context = multiprocessing.get_context("fork")
    stop, results = context.Event(), context.Queue()
    readers = [context.Process(target=reader, args=(mount.path("kubelet.conf"), how, stop, results))
               for how in READERS]
    for process in readers:
        process.start()
    with writers(mount, STORM_S) as count:
        stop.set()
        reports = [results.get(timeout=lib.TIMEOUT_S) for _ in readers]
    for process in readers:
        process.join(lib.TIMEOUT_S)
        assert process.exitcode == 0, "a reader was killed (SIGBUS?)"
    assert count[0] > 50 and all(n > 10 for _, n, _ in reports), (count, reports)
    assert [report for report in reports if report[2]] == []
    assert problem_of(mount.read("kubelet.conf")) is None


def test_opens_are_linear(mount):
    """Once an open has shown a generation, no later one shows an older; status never runs ahead of the document."""
    seen = ahead = 0
    with writers(mount):
        end = lib.deadline(3)
        while time.monotonic() < end:
            status = mount.generation()
            now = int(os.getxattr(mount.path("kubelet.conf"), "user.lkgfs.generation"))
            assert now >= seen, "an older generation after a newer one"
            ahead += status > now
            seen = now
    assert ahead == 0, "status named a generation that an open did not show yet"


def test_old_generations_stay_readable(mount):
    held = []
    for value in range(20):
        mount.drop("50-a.conf", f"maxPods: {300 + value}\n")
        fd = os.open(mount.path("kubelet.conf"), os.O_RDONLY)
        held.append((fd, value, os.fstat(fd)))
    mount.command("sync", "now")
    for fd, value, st in held:
        data = os.pread(fd, 1 << 16, 0)
        assert f"\nmaxPods: {300 + value}\n".encode() in data
        assert os.fstat(fd).st_ino == st.st_ino and os.fstat(fd).st_size == len(data) == st.st_size
        os.close(fd)
    assert len({st.st_ino for _, _, st in held}) == len(held), "a fresh inode per generation"


def woken(events, wd):
    masks = 0
    for event in events:
        if event[0] == wd:
            masks |= event[1]
    return masks & lib.Inotify.MODIFY and masks & lib.Inotify.CLOSE_WRITE


def test_watchers_wake(mount):
    """A watch on the file and one on its directory get MODIFY and CLOSE_WRITE for change after change, and are never added again.

    Rule: docs/specification.md 2.6.
    """
    with lib.Inotify() as inotify:
        mask = inotify.MODIFY | inotify.CLOSE_WRITE | inotify.MOVED_TO
        file, directory = inotify.add(mount.path("kubelet.conf"), mask), inotify.add(mount.mountpoint, mask)
        for value in range(5):
            mount.drop("50-a.conf", f"maxPods: {400 + value}\n")
            events = inotify.wait(lambda seen: woken(seen, file) and woken(seen, directory), timeout=10)
            names = {event[3] for event in events if event[0] == directory}
            assert names == {"kubelet.conf"}, names
            while inotify.events(0.05):
                pass


def test_watches_taken_at_older_generations_wake(mount):
    """Rule: docs/specification.md 2.6."""
    with lib.Inotify() as inotify:
        wds, held = {}, []
        for value in range(10):
            mount.drop("50-a.conf", f"maxPods: {500 + value}\n")
            held.append(os.open(mount.path("kubelet.conf"), os.O_RDONLY))
            wds[inotify.add(mount.path("kubelet.conf"), inotify.MODIFY | inotify.CLOSE_WRITE)] = value
        assert len(wds) == 10
        while inotify.events(0.2):
            pass
        mount.drop("50-a.conf", "maxPods: 600\n")
        inotify.wait(lambda seen: all(woken(seen, wd) for wd in wds), timeout=10)
        for fd in held:
            os.close(fd)


def test_no_deaf_watcher_after_a_storm(mount):
    """Followers that read again only on an event must all end with the last generation."""
    followers = []
    with contextlib.ExitStack() as stack:
        for i in range(8):
            inotify = stack.enter_context(lib.Inotify())
            path = mount.path("kubelet.conf") if i % 2 else mount.mountpoint
            inotify.add(path, inotify.MODIFY | inotify.CLOSE_WRITE)
            followers.append([inotify, mount.read("kubelet.conf")])
        with writers(mount, 2) as count:
            pass
        final = mount.read("kubelet.conf")
        assert f"n{count[0]}-0".encode() in final
        end = lib.deadline(10)
        while any(document != final for _, document in followers) and time.monotonic() < end:
            ready = select.select([f[0].fd for f in followers], [], [], 1)[0]
            for follower in followers:
                if follower[0].fd in ready and follower[0].events():
                    follower[1] = mount.read("kubelet.conf")
        assert [i for i, (_, document) in enumerate(followers) if document != final] == [], "deaf watchers"


def test_poll_on_generation(mount):
    """Rule: docs/specification.md 2.6."""
    path = mount.path("status", "kubelet", "generation")
    for waiter in (select.POLLPRI, select.POLLIN | select.POLLPRI):
        for value in range(5):
            fd = os.open(path, os.O_RDONLY)
            before = int(os.read(fd, 64))
            poller = select.poll()
            poller.register(fd, select.POLLPRI)
            assert poller.poll(0) == [], "nothing to report yet"
            changer = threading.Thread(target=mount.drop, args=("50-a.conf", f"maxPods: {waiter + value}\n"))
            changer.start()
            events = poller.poll(10000)
            changer.join()
            os.close(fd)
            assert events and events[0][1] & select.POLLPRI
            assert mount.generation() > before


def test_epoll_and_many_pollers(mount):
    fds = [os.open(mount.path("status", "kubelet", "generation"), os.O_RDONLY) for _ in range(8)]
    epoll = select.epoll()
    for fd in fds:
        os.read(fd, 64)
        epoll.register(fd, select.EPOLLPRI)
    assert epoll.poll(0) == []
    mount.drop("50-a.conf", "maxPods: 9\n")
    woke, end = set(), lib.deadline(10)
    while len(woke) < len(fds) and time.monotonic() < end:
        woke |= {fd for fd, _ in epoll.poll(1)}
    assert woke == set(fds)
    for fd in fds:
        os.close(fd)


def test_a_thousand_generations_leave_nothing_behind(mount):
    path = mount.path("kubelet.conf.d", "50-a.conf")
    for value in range(1000):
        lib.write_file(path, f"{lib.HEADER}maxPods: {1000 + value}\n")
    assert "\nmaxPods: 1999\n" in mount.document()
    mount.command("sync", "now")
    blobs = [name for _, _, files in os.walk(mount.runtime) for name in files]
    assert len(blobs) < 500, "blobs of old publications are removed"
    server = mount.child("lkgfs-fs")
    assert len(os.listdir(f"/proc/{server}/fd")) < 200
