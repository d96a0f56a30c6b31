# SPDX-License-Identifier: Apache-2.0
"""Every shared resource is limited for each user: no user can exhaust what root or another user needs, and a refused call has
changed nothing.
"""
import contextlib
import errno
import mmap
import os
import resource
import select
import subprocess
import threading
import time

import pytest

import lkgfs_container as container
import lkgfs_testlib as lib

NOBODY = 65534
FILES = 16384  # LKG_FILES
OF_ONE = FILES // 8
POLLERS = 1024  # LKG_POLLERS
WAKES = select.POLLIN | select.POLLPRI  # events of a change


@pytest.fixture(name="open_mount")
def fixture_open_mount(mount):
    os.chmod(mount.root, 0o711)
    return mount


def drop_in(mount):
    return mount.path("kubelet.conf.d", sorted(os.listdir(mount.path("kubelet.conf.d")))[0])


def names(path):
    return sorted(os.listdir(path))


def check_root_works(mount, pods):
    mount.drop("70-root.conf", f"maxPods: {pods}\n")
    assert f"maxPods: {pods}\n" in mount.document()
    assert names(mount.path("kubelet.conf.d")) == names(mount.behind("kubelet.conf.d"))


def test_directories_take_no_records(open_mount):
    mount = open_mount
    with container.User(NOBODY) as nobody:
        for path in (mount.path("kubelet.conf.d"), mount.path("status"), mount.path()):
            assert nobody.call(container.hold_open, path, os.O_RDONLY | os.O_DIRECTORY, FILES) == (FILES, 0), path
            check_root_works(mount, 20)
            nobody.call(container.let_go)
        assert nobody.call(container.hold_open, drop_in(mount), os.O_RDONLY, 1) == (1, 0)


def read_in_turns(path, count):
    """Read more directories than are kept open for one user, each a little at a time; return what each of them listed."""
    streams = [os.scandir(path) for _ in range(count)]
    seen = [[] for _ in streams]
    left = set(range(count))
    while left:
        for i in sorted(left):
            entry = next(streams[i], None)
            if entry is None:
                left.discard(i)
            else:
                seen[i].append(entry.name)
    return [sorted(each) for each in seen]


def test_directories_that_are_read_at_the_same_time(open_mount):
    mount = open_mount
    for name in ("pki", "manifests"):
        for i in range(400):
            lib.write_file(mount.behind(name, f"some-long-name-that-takes-space-{i:04}"), "x")
    for i in range(400):
        lib.write_file(mount.behind(f"root-{i:04}-that-takes-space-in-a-listing"), "x")
    for path in (mount.path("pki"), mount.path()):
        for seen in read_in_turns(path, 100):
            assert seen == names(path)
    assert names(mount.path("pki")) == names(mount.behind("pki"))


def test_a_directory_is_read_on_by_the_next_server(open_mount):
    mount = open_mount
    for i in range(2000):
        lib.write_file(mount.behind("pki", f"some-long-name-that-takes-space-{i:04}"), "x")
    with os.scandir(mount.path("pki")) as stream:
        seen = [next(stream).name]
        mount.kill_child("lkgfs-fs")
        seen += [entry.name for entry in stream]
    assert sorted(seen) == names(mount.behind("pki"))


def test_open_files_are_shared_out(open_mount):
    mount = open_mount
    path = drop_in(mount)
    users = [container.User(NOBODY - i) for i in range(5)]
    try:
        for user in users[:4]:
            assert user.call(container.hold_open, path, os.O_RDONLY, FILES) == (OF_ONE, errno.ENFILE)
        assert users[4].call(container.hold_open, path, os.O_RDONLY, FILES) == (0, errno.ENFILE), "all users together"
        check_root_works(mount, 21)
        mount.kill_child("lkgfs-fs")
        assert users[0].error(container.open_only, path, os.O_RDONLY) == errno.ENFILE, "a successor knows who has what"
        assert users[4].error(container.open_only, path, os.O_RDONLY) == errno.ENFILE
        check_root_works(mount, 22)
        users[0].call(container.let_go)
        assert users[0].call(container.hold_open, path, os.O_RDONLY, 10) == (10, 0)
        assert users[4].call(container.hold_open, path, os.O_RDONLY, 10) == (10, 0)
        check_root_works(mount, 23)
    finally:
        for user in users:
            user.close()


def test_who_is_refused_has_changed_nothing(open_mount):
    mount = open_mount
    own = mount.behind("own")
    os.mkdir(own)
    lib.write_file(own + "/file", "as it was\n")
    os.chown(own, NOBODY, NOBODY)
    os.chown(own + "/file", NOBODY, NOBODY)
    file, new = mount.path("own", "file"), mount.path("own", "new")
    with container.User(NOBODY) as nobody:
        assert nobody.call(container.hold_open, file, os.O_RDONLY, FILES) == (OF_ONE, errno.ENFILE)
        for flags in (os.O_WRONLY | os.O_TRUNC, os.O_RDONLY | os.O_TRUNC, os.O_RDWR | os.O_TRUNC | os.O_CREAT):
            assert nobody.error(container.open_only, file, flags) == errno.ENFILE
            assert lib.read_file(own + "/file") == b"as it was\n"
        for flags in (os.O_WRONLY | os.O_CREAT, os.O_RDWR | os.O_CREAT | os.O_EXCL):
            assert nobody.error(container.open_only, new, flags) == errno.ENFILE
            assert names(own) == ["file"]
        nobody.call(container.let_go)
        nobody.call(container.write_file, new)
        assert names(own) == ["file", "new"]


# nodes

def pin_all(path, begin, end):
    """Return how many of them have a node: the kernel does not forget what is open."""
    for n in range(begin, end):
        try:
            container.held.append(os.open(f"{path}/{n}", os.O_PATH))
        except OSError as e:
            return n - begin, e.errno
    return end - begin, 0


def look_at_all(path, begin, end):
    """Return how often a look-up was refused at first: the kernel is asked to forget others, and that takes a moment."""
    refused = 0
    for n in range(begin, end):
        end_of_waiting = lib.deadline()
        while lib.error_of(os.stat, f"{path}/{n}") == errno.ENFILE and time.monotonic() < end_of_waiting:
            refused += 1
        os.stat(f"{path}/{n}")
    return refused


def share_of_nodes(mount):
    soft = int(lib.read_file(f"/proc/{mount.child('lkgfs-fs')}/limits").split(b"Max open files")[1].split()[0])
    return min(262144, soft - FILES if soft > 2 * FILES else soft // 2) // 8


def make_many(mount, count):
    made, own = os.path.join(mount.root, "own"), mount.behind("own")
    os.mkdir(made)
    for i in range(count):
        lib.write_file(f"{made}/{i}", "")
        os.chown(f"{made}/{i}", NOBODY, NOBODY)
    os.chown(made, NOBODY, NOBODY)
    os.rename(made, own)
    return own


def in_parts(user, function, path, count):
    """In several calls, because each has a time limit."""
    results = [user.call(function, path, n, min(n + 4096, count)) for n in range(0, count, 4096)]
    return results


@pytest.mark.limit(300)
def test_nodes_are_shared_out(open_mount):
    """A user with a directory below the source can create as many files as there are nodes."""
    mount = open_mount
    share = share_of_nodes(mount)
    own = make_many(mount, share + 1)
    with container.User(NOBODY) as nobody, container.User(NOBODY - 1) as other:
        pinned = in_parts(nobody, pin_all, mount.path("own"), share + 1)
        assert pinned[-1][1] == errno.ENFILE
        assert sum(n for n, _ in pinned) == share - 1, "his directory is one"
        before = names(own)
        for function, arguments in ((container.write_file, ()), (os.mkdir, ()), (os.mkfifo, ())):
            assert nobody.error(function, mount.path("own", "new"), *arguments) == errno.ENFILE
        assert nobody.error(os.symlink, "to", mount.path("own", "new")) == errno.ENFILE
        assert names(own) == before
        assert other.call(container.read_file, drop_in(mount))
        check_root_works(mount, 25)
        mount.kill_child("lkgfs-fs")
        assert nobody.error(os.mkdir, mount.path("own", "new")) == errno.ENFILE
        check_root_works(mount, 26)


@pytest.mark.limit(300)
def test_who_looks_at_more_than_his_share_of_nodes(open_mount):
    """The kernel is asked to forget nodes of this user that are not in use."""
    mount = open_mount
    count = 2 * share_of_nodes(mount)
    make_many(mount, count)
    with container.User(NOBODY) as nobody:
        refused = sum(in_parts(nobody, look_at_all, mount.path("own"), count))
        nobody.call(container.write_file, mount.path("own", "new"))
    assert refused < count // 100
    check_root_works(mount, 27)


def make_many_directories(mount, count):
    made, own = os.path.join(mount.root, "own"), mount.behind("own")
    os.mkdir(made)
    for i in range(count):
        os.mkdir(f"{made}/{i}")
        os.chown(f"{made}/{i}", NOBODY, NOBODY)
    os.chown(made, NOBODY, NOBODY)
    os.rename(made, own)


def look_at_and_wait(path, begin, end):
    """A refused look-up is repeated after a while; it is refused forever if the kernel cannot forget any."""
    for n in range(begin, end):
        end_of_waiting = lib.deadline()
        while lib.error_of(os.stat, f"{path}/{n}") == errno.ENFILE and time.monotonic() < end_of_waiting:
            time.sleep(0.05)
        os.stat(f"{path}/{n}")


@pytest.mark.limit(300)
def test_directories_that_nobody_uses_are_forgotten(open_mount):
    """As files are; but what is mounted in one of them stays mounted."""
    mount = open_mount
    count = share_of_nodes(mount) * 5 // 4
    make_many_directories(mount, count)
    mount.wait_for(lambda: lib.error_of(os.stat, mount.path("own", "0")) == 0, "the notifier is through with it")
    container.mount("tmpfs", mount.path("own", "0"), "tmpfs")
    try:
        lib.write_file(mount.path("own", "0", "in the mount"), "x")
        with container.User(NOBODY) as nobody:
            in_parts(nobody, look_at_and_wait, mount.path("own"), count)
            nobody.call(os.mkdir, mount.path("own", "new"))
        assert names(mount.path("own", "0")) == ["in the mount"]
        check_root_works(mount, 28)
    finally:
        container.umount(mount.path("own", "0"))


# memory

def list_all(path, count):
    fds = [os.open(path, os.O_RDONLY | os.O_DIRECTORY) for _ in range(count)]
    for fd in fds:
        os.listdir(fd)
    for fd in fds:
        os.close(fd)


def look_up(path, present, count):
    for n in range(0, count, 2):
        os.stat(f"{path}/{n % present}")
        assert not os.path.exists(f"{path}/{n}.none")


def private_bytes(pid):
    lines = lib.read_file(f"/proc/{pid}/smaps_rollup").decode().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private"))


@pytest.mark.limit(300)
def test_memory_comes_back(open_mount):
    mount, files = open_mount, 10000
    made = os.path.join(mount.root, "many")
    os.mkdir(made)
    for i in range(files):
        lib.write_file(f"{made}/{i}", "")
    os.rename(made, mount.behind("many"))
    server = mount.child("lkgfs-fs")
    with container.User(NOBODY) as nobody:
        for path in ((), ("pki",), ("status", "kubelet")):
            nobody.call(list_all, mount.path(*path), FILES)
        for _ in range(8):  # in several calls, because each has a time limit
            nobody.call(look_up, mount.path("many"), files, 262144 // 8)
        nobody.call(container.hold_open, drop_in(mount), os.O_RDONLY, FILES)
    for i in range(files):
        os.unlink(mount.path("many", str(i)))
    assert mount.child("lkgfs-fs") == server
    mount.wait_for(lambda: private_bytes(server) < 4 << 20, "the kernel has forgotten what is gone")


# pollers

epolls = []


def poll_and_close(path, count):
    for _ in range(count):
        fd = os.open(path, os.O_RDONLY)
        with select.epoll() as epoll:
            epoll.register(fd, WAKES)
        os.close(fd)


def wait_on(path, count):
    """Have @count files polled; return what poll reported at once, as events and how often."""
    epoll = select.epoll()
    epolls.append(epoll)
    for _ in range(count):
        container.held.append(os.open(path, os.O_RDONLY))
        epoll.register(container.held[-1], WAKES)
    said = [event for _, event in epoll.poll(0, count)]
    return {event: said.count(event) for event in said}


def how_many_woke(timeout):
    """Of those that wait_on() has polled last."""
    woke, end = set(), lib.deadline(timeout)
    while len(woke) < len(container.held) and time.monotonic() < end:
        woke |= {fd for fd, event in epolls[-1].poll(1, POLLERS) if event & select.POLLPRI}
    return len(woke)


def check_root_is_woken(mount, pods):
    fd = os.open(mount.path("status", "kubelet", "generation"), os.O_RDONLY)
    try:
        poller = select.poll()
        poller.register(fd, select.POLLPRI)
        assert poller.poll(1) == [], "nothing to report yet"
        changer = threading.Thread(target=mount.drop, args=("71-root.conf", f"maxPods: {pods}\n"))
        changer.start()
        events = poller.poll(lib.TIMEOUT_S * 1000)
        changer.join()
        assert events and events[0][1] & select.POLLPRI and not events[0][1] & select.POLLERR
    finally:
        os.close(fd)


def test_pollers_go_with_their_files(open_mount):
    mount = open_mount
    with container.User(NOBODY) as nobody:
        nobody.call(poll_and_close, mount.path("status", "kubelet", "generation"), POLLERS + 100)
        assert nobody.call(wait_on, mount.path("status", "kubelet", "generation"), POLLERS // 8) == {}, "all of his share"
        check_root_is_woken(mount, 30)
        assert nobody.call(how_many_woke, 10) == POLLERS // 8


def test_pollers_are_shared_out(open_mount):
    mount = open_mount
    path = mount.path("status", "kubelet", "generation")
    share = POLLERS // 8
    users = [container.User(NOBODY - i) for i in range(5)]
    try:
        for user in users[:4]:
            assert user.call(wait_on, path, share + 10) == {WAKES: 10}, "who cannot be woken looks again"
        assert users[4].call(wait_on, path, 10) == {WAKES: 10}, "all users together"
        mount.kill_child("lkgfs-fs")
        check_root_is_woken(mount, 31)
        for user in users[:4]:
            assert user.call(how_many_woke, 10) == share + 10
        assert users[4].call(wait_on, path, share) == {}, "there is room again"
    finally:
        for user in users:
            user.close()


# content of many old generations

OLD_OF_ONE = 1024 // 8  # OLD_MAX of fs/server/content.c
OLD_OF_USERS = 1024 // 2


def hold_content(paths, flags):
    """Open each of them, keep it open and remember its content; return the errno that ended this."""
    for path in paths:
        try:
            fd = os.open(path, flags)
        except OSError as e:
            return e.errno
        container.held.append((fd, b"" if flags & os.O_PATH else os.pread(fd, 1 << 20, 0)))
    return 0


def check_held(count):
    """Check that open files still have their content, the last ones, too; return their number."""
    assert all(os.pread(fd, 1 << 20, 0) == content for fd, content in container.held[:count] + container.held[-count:])
    return len(container.held)


def let_content_go():
    while container.held:
        os.close(container.held.pop()[0])


def reopen_held():
    """Return the errno of opening each of those that are held with O_PATH only, the oldest first."""
    results = []
    for fd, _ in container.held:
        results.append(lib.error_of(lambda fd=fd: os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDONLY))))
    return results


def status_files(mount):
    directory = mount.vpath("status", "kubelet")
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory))
            if os.path.isfile(os.path.join(directory, name)) and os.stat(os.path.join(directory, name)).st_mode & 4]


def pins(mount):
    return len(os.listdir(os.path.join(mount.runtime, "private", "pinned")))


def change(mount, n):
    mount.drop("50-changes.conf", f"maxPods: {n}\n")


def first_open(path):
    with open(path, "rb") as file:
        return file.read(1)


@pytest.mark.limit(300)
def test_old_generations_that_are_open_are_shared_out(open_mount):
    """They are kept as long as they are open, so a user who has opened his share cannot open more; what he has open does not change."""
    mount = open_mount
    files = status_files(mount)
    with container.User(NOBODY) as nobody, container.User(NOBODY - 1) as other:
        for n in range(4 * OLD_OF_ONE):
            change(mount, 100 + n)
            error = nobody.call(hold_content, files, os.O_RDONLY)
            if error:
                break
        assert error == errno.ENFILE
        assert nobody.call(check_held, 100) >= OLD_OF_ONE
        assert pins(mount) < OLD_OF_ONE + 4 * len(files) + 100
        assert other.call(hold_content, files, os.O_RDONLY) == 0
        check_root_works(mount, 44)
        mount.kill_child("lkgfs-fs")
        assert nobody.error(first_open, files[0]) == errno.ENFILE, "a successor knows what he has"
        nobody.call(check_held, 10)
        other.call(check_held, 10)
        nobody.call(let_content_go)
        assert nobody.call(hold_content, files, os.O_RDONLY) == 0
        nobody.call(let_content_go)
        change(mount, 99)  # what is not open is dropped with the next publication
        mount.wait_for(lambda: pins(mount) < OLD_OF_ONE, "the content of old generations is gone")


@pytest.mark.limit(300)
def test_old_content_that_several_have_open_costs_each_a_part(open_mount):
    """The user who opens one more pays alone, and root pays nothing."""
    mount = open_mount
    files = status_files(mount)
    roots = []
    with container.User(NOBODY) as nobody, container.User(NOBODY - 1) as other:
        for n in range(2 * OLD_OF_ONE // 3):
            change(mount, 100 + n)
            assert nobody.call(hold_content, files[:1], os.O_RDONLY) == 0
            assert other.call(hold_content, files[:1] * 20, os.O_RDONLY) == 0, "the same twenty times is one"
            roots.append((os.open(files[0], os.O_RDONLY), lib.read_file(files[0])))
        for fd, content in roots:
            assert os.pread(fd, 1 << 20, 0) == content
            os.close(fd)


@pytest.mark.limit(300)
def test_old_generations_that_are_known_are_forgotten(open_mount):
    """With O_PATH or a watch nothing is open, and nothing reports when it ends. What root has looked up is kept."""
    mount = open_mount
    before = {file: lib.read_file(file) for file in status_files(mount)}
    change(mount, 199)
    files = [file for file in before if lib.read_file(file) != before[file]]  # a text that stays is the same file
    roots = os.open(mount.path("kubelet.conf"), os.O_PATH)
    with container.User(NOBODY) as nobody, lib.Inotify() as watch:
        document = lib.read_file(f"/proc/self/fd/{roots}")
        for n in range(4 * OLD_OF_USERS // len(files) + 1):
            change(mount, 201 + n)
            assert nobody.call(hold_content, files, os.O_PATH) == 0
        results = nobody.call(reopen_held)
        assert set(results) == {0, errno.ESTALE}
        assert results[0] == errno.ESTALE and results[-1] == 0, "the oldest goes"
        change(mount, 100)
        assert pins(mount) < OLD_OF_ONE + 6 * len(files) + 100
        assert lib.read_file(f"/proc/self/fd/{roots}") == document, "root's is another matter"
        watch.add(mount.path("kubelet.conf"), watch.MODIFY)
        change(mount, 101)
        watch.wait(lambda events: events)
        check_root_works(mount, 45)
    os.close(roots)


# watches

def watches_of(pid):
    """Return the number of inotify watches of a process."""
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            count += lib.read_file(f"/proc/{pid}/fdinfo/{fd}").count(b"inotify wd:")
        except OSError:
            pass
    return count


def make_directories(path, count):
    for n in range(count):
        os.mkdir(f"{path}/{n}")


def test_watches_are_shared_out(open_mount):
    """Root has one limit for the whole machine: a user with many directories uses 512 at most."""
    mount = open_mount
    server = mount.child("lkgfs-fs")
    os.mkdir(mount.behind("own"))
    os.chown(mount.behind("own"), NOBODY, NOBODY)
    with container.User(NOBODY) as nobody:
        nobody.call(make_directories, mount.path("own"), 1000)
    assert watches_of(server) <= 512 + 10
    with lib.Inotify() as watch:
        watch.add(mount.path("manifests"), watch.CREATE)
        lib.write_file(mount.behind("manifests", "behind"), "x")
        watch.wait(lambda events: any(event[3] == "behind" for event in events))
    with lib.Inotify() as watch:  # what was looked up last is watched
        watch.add(mount.path("own", "999"), watch.CREATE)
        lib.write_file(mount.behind("own", "999", "behind"), "x")
        watch.wait(lambda events: any(event[3] == "behind" for event in events))


# everything at once

def watch_all(path, count):
    """As many watches, and readers of each event, as one process may have."""
    watch = lib.Inotify()
    epolls.append(watch)
    for entry in os.listdir(path):
        watch.add(os.path.join(path, entry), watch.OPEN | watch.ACCESS | watch.CLOSE_NOWRITE)
    for _ in range(count):
        lib.read_file(path)


def map_splice_and_copy(path, count):
    read, write = os.pipe()
    null = os.open("/dev/null", os.O_WRONLY)
    for _ in range(count):
        fd = os.open(path, os.O_RDONLY)
        with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as pages:
            assert pages[0:1]
        os.splice(fd, write, 16)
        os.read(read, 16)
        os.sendfile(null, fd, 0, 100)
        os.close(fd)


def read_for_ever(path):
    while True:
        for entry in os.listdir(path):
            with open(os.path.join(path, entry), "rb") as file:
                file.read(1)


@pytest.mark.limit(200)
def test_everything_at_once(open_mount):
    """Readers that are stopped halfway, storms of watchers, mappings, splices: root and another user notice nothing."""
    mount = open_mount
    drop_ins = mount.path("kubelet.conf.d")
    stopped = []
    try:
        for i in range(20):
            pid = os.fork()
            if pid == 0:
                try:
                    os.setgroups([])
                    os.setresgid(NOBODY - i % 4, NOBODY - i % 4, NOBODY - i % 4)
                    os.setresuid(NOBODY - i % 4, NOBODY - i % 4, NOBODY - i % 4)
                    read_for_ever(drop_ins)
                finally:
                    os._exit(1)
            stopped.append(pid)
        for pid in stopped[::2]:
            lib.stop_process(pid)
        with container.User(NOBODY) as nobody:
            nobody.call(map_splice_and_copy, drop_in(mount), 500)
            assert nobody.error(watch_all, drop_ins, 0) == 0
            nobody.call(container.hold_open, drop_in(mount), os.O_RDONLY, FILES)
            check_root_works(mount, 41)
            with container.User(NOBODY - 1) as other:
                assert other.call(container.read_file, drop_in(mount))
                other.call(map_splice_and_copy, drop_in(mount), 10)
            mount.kill_child("lkgfs-fs")
            check_root_works(mount, 42)
    finally:
        for pid in stopped:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


# containers

def test_a_container_takes_nothing_of_root(open_mount):
    """Root in a container counts as a user of its mount namespace, whatever its capabilities."""
    mount = open_mount
    path = "/etc/kubernetes/kubelet.conf.d/" + os.path.basename(drop_in(mount))
    with container.Container(container.Volume(mount.mountpoint), capabilities=True) as one, \
            container.Container(container.Volume(mount.mountpoint), capabilities=True) as two:
        held, error = one.call(hold_many, path, FILES)
        assert error == errno.ENFILE and held <= OF_ONE + FILES // 16
        assert two.call(hold_many, path, 1000) == (1000, 0), "another container has a share of its own"
        for fd in range(2000):
            with open(drop_in(mount), "rb") as file:
                file.read(1)
            del fd
        check_root_works(mount, 43)


def hold_many(path, most):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return container.hold_open(path, os.O_RDONLY, most)


# space

def fill(path, how):
    """Return how many bytes fit."""
    size = 0
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            if how == "write":
                size += file.write(bytes(1 << 16))
            else:
                os.posix_fallocate(file.fileno(), size, 1 << 16)
                size += 1 << 16
    return size


@pytest.mark.parametrize("how", ["write", "fallocate"])
def test_blocks_that_are_reserved_for_root_stay_so(mounts, tmp_path, how):
    """A file system keeps a part for root (mkfs.ext4 -m), so that the node goes on when users have filled it."""
    if not os.path.exists("/dev/loop-control"):
        pytest.skip("no loop devices in this kernel")
    image, mount = tmp_path / "image", mounts(over=False, start=False)
    image.write_bytes(b"")
    os.truncate(image, 32 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "40", image], check=True)
    os.chmod(mount.root, 0o755)
    below = os.path.join(mount.source, "own")
    os.mkdir(below)
    subprocess.run(["mount", "-o", "loop", image, below], check=True)
    try:
        os.chmod(below, 0o777)
        with container.User(NOBODY) as nobody:
            room = nobody.call(fill, os.path.join(below, "direct"), how)
            os.unlink(os.path.join(below, "direct"))
            os.sync()
            mount.start()
            assert abs(nobody.call(fill, mount.path("own/file"), how) - room) <= 1 << 20
        assert fill(mount.path("own/roots"), how) > 4 << 20
        mount.stop()
    finally:
        container.umount(below)
