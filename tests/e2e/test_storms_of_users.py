# SPDX-License-Identifier: Apache-2.0
"""Users do as much as the kernel allows, in many processes and without pause: root and all other users are still served."""
import contextlib
import ctypes
import mmap
import os
import signal

import pytest

import lkgfs_container as container
import lkgfs_testlib as lib
import lkgfs_uring as uring

NOBODY = 65534
PROCESSES = 8
FANOTIFY_INIT, FANOTIFY_MARK = {"x86_64": (300, 301), "aarch64": (262, 263)}[os.uname().machine]
FAN_REPORT_FID, FAN_NONBLOCK, FAN_UNLIMITED = 0x200, 2, 0x30
FAN_OPEN, FAN_CLOSE, FAN_ACCESS, FAN_ONDIR, FAN_EVENT_ON_CHILD = 0x20, 0x18, 0x1, 0x40000000, 0x8000000
libc = ctypes.CDLL(None, use_errno=True)


class Storm:
    """A process that repeats something as a user until it is killed, and reports each round."""

    def __init__(self, function, *arguments, uid=NOBODY):
        self.rounds, told = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.rounds)
                os.set_blocking(told, False)
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                for _ in function(*arguments):
                    with contextlib.suppress(BlockingIOError):
                        os.write(told, b"x")
            finally:
                os._exit(1)
        os.close(told)

    def wait_round(self):
        assert os.read(self.rounds, 1), "the storm is over; what ended it stands above"

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.rounds)


def files_of(directory):
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory))]


def read_all(paths):
    for path in paths:
        with contextlib.suppress(OSError):
            lib.read_file(path)


def with_io_uring(paths, _):
    ring, pending = uring.Ring(128), uring.Ring(128)
    polled = [path for path in paths if path.endswith("/generation")]  # a read of this file waits for the next generation
    paths = [path for path in paths if path not in polled]
    while True:
        fds = [fd for fd in ring.open((paths * 64)[:60]) if fd is not None and fd >= 0]
        ring.read(fds)
        fds += [fd for fd in ring.open(polled * 4) if fd is not None and fd >= 0]
        ring.stat(paths[:64])
        for fd in fds:
            pending.add(uring.POLL_ADD, fd=fd, flags=2)  # POLLPRI, which may never come
        with contextlib.suppress(OSError):
            pending.run(wait=False)
        ring.close_all(fds)
        yield


def with_fanotify(paths, _):
    """Groups that report file handles, which any user may create since Linux 5.13; a mark asks the file system for its id."""
    while True:
        groups = []
        for _ in range(16):
            fd = libc.syscall(FANOTIFY_INIT, FAN_REPORT_FID | FAN_NONBLOCK, os.O_RDONLY)
            if fd < 0:
                break  # the limit of one user
            groups.append(fd)
            for path in paths:
                libc.syscall(FANOTIFY_MARK, fd, 1, ctypes.c_uint64(FAN_OPEN | FAN_CLOSE | FAN_ACCESS), -100, os.fsencode(path))
                libc.syscall(FANOTIFY_MARK, fd, 1, ctypes.c_uint64(FAN_OPEN | FAN_CLOSE | FAN_ONDIR | FAN_EVENT_ON_CHILD), -100,
                             os.fsencode(os.path.dirname(path)))
        read_all(paths * 4)
        for fd in groups:
            os.close(fd)
        yield


def with_inotify(paths, _):
    while True:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for _ in range(8):
                watch = stack.enter_context(lib.Inotify())
                for path in paths:
                    watch.add(path, watch.OPEN | watch.ACCESS | watch.CLOSE_NOWRITE | watch.MODIFY)
                watch.add(os.path.dirname(paths[0]), watch.OPEN | watch.ACCESS | watch.CLOSE_NOWRITE | watch.CREATE)
            read_all(paths * 4)  # the events are not read
        yield


def with_mappings(paths, _):
    while True:
        maps = []
        for path in paths * 8:
            fd = os.open(path, os.O_RDONLY)
            with contextlib.suppress(OSError, ValueError):
                maps.append(mmap.mmap(fd, 0, prot=mmap.PROT_READ))
                maps[-1].madvise(mmap.MADV_DONTNEED)
                assert maps[-1][0:1]
            os.close(fd)
        yield


def with_pipes(paths, own):
    """splice, sendfile and copy_file_range, also from the view to the view."""
    read, write = os.pipe2(os.O_NONBLOCK)
    null, target = os.open("/dev/null", os.O_WRONLY), os.open(own, os.O_RDWR | os.O_CREAT, 0o600)
    while True:
        for path in paths:
            fd = os.open(path, os.O_RDONLY)
            for copy in (lambda fd=fd: os.splice(fd, write, 64), lambda fd=fd: os.sendfile(null, fd, 0, 64),
                         lambda fd=fd: os.copy_file_range(fd, target, 64, 0, 0), lambda: os.splice(read, target, 64, offset_dst=0)):
                with contextlib.suppress(OSError):
                    copy()
            os.close(fd)
        with contextlib.suppress(BlockingIOError):
            os.read(read, 1 << 16)
        os.truncate(own, 0)
        yield


STORMS = {"io_uring": with_io_uring, "fanotify": with_fanotify, "inotify": with_inotify, "mmap": with_mappings, "pipes": with_pipes}


def check_all_are_served(mount, pods):
    mount.drop("70-root.conf", f"maxPods: {pods}\n")
    mount.wait_for(lambda: f"maxPods: {pods}\n" in mount.document(), "root's change is served")
    with container.User(NOBODY - 20) as other:
        for path in files_of(mount.path("kubelet.conf.d")):
            assert other.call(container.read_file, path)
        assert other.call(container.read_file, mount.vpath("status", "kubelet", "condition"))


@pytest.mark.limit(200)
@pytest.mark.parametrize("kind", STORMS)
def test_a_storm_of_users(mount, kind):
    os.chmod(mount.root, 0o711)
    if kind == "io_uring":
        assert uring.is_there(), "this test needs a kernel with io_uring"
    os.mkdir(mount.behind("own"))
    os.chmod(mount.behind("own"), 0o777)
    mount.wait_for(lambda: os.path.isdir(mount.path("own")), "it is there")
    own = mount.path("own")
    status = [path for path in files_of(mount.vpath("status", "kubelet")) if os.path.isfile(path) and os.stat(path).st_mode & 4]
    paths = files_of(mount.path("kubelet.conf.d")) + status
    with contextlib.ExitStack() as stack:
        storms = []
        for i in range(PROCESSES):
            storms.append(Storm(STORMS[kind], paths, f"{own}/{i}", uid=NOBODY - i % 4))
            stack.callback(storms[-1].close)
        for storm in storms:
            storm.wait_round()
        check_all_are_served(mount, 30)
        mount.kill_child("lkgfs-fs")
        check_all_are_served(mount, 31)
        for storm in storms[::2]:  # in the middle of their work
            os.kill(storm.pid, signal.SIGSTOP)
        check_all_are_served(mount, 32)
    check_all_are_served(mount, 33)
