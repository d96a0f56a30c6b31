# SPDX-License-Identifier: Apache-2.0
"""Callers that hang, and what nobody else may notice of them."""
import contextlib
import os
import select
import signal
import time

import pytest

import lkgfs_container as container
import lkgfs_testlib as lib

NOBODY = 65534
SOON_S = 1.0  # whoever waits for what hangs waits for a limit of lkgfs, two seconds or more, or for ever


class Waiter:
    """A process that makes one call, which hangs: as another user, killed at the end."""

    def __init__(self, function, *arguments, uid=NOBODY):
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 99
            try:
                os.close(read)
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                os.write(write, b"x")
                code = lib.error_of(function, *arguments)
            finally:
                os._exit(code)
        os.close(write)
        os.read(read, 1)
        os.close(read)
        self.pidfd = os.pidfd_open(self.pid)

    def is_over(self, timeout=0.0):
        return bool(select.select([self.pidfd], [], [], timeout)[0])

    def result(self, timeout=lib.TIMEOUT_S):
        """Return the errno of its call, or minus the signal that ended it."""
        assert self.is_over(timeout), "it still waits"
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def close(self):
        if self.pid:
            self.kill()
            os.waitpid(self.pid, 0)
            os.close(self.pidfd)
            self.pid = 0


@pytest.fixture(name="waiters")
def fixture_waiters():
    started = []

    def start(function, *arguments, **options):
        started.append(Waiter(function, *arguments, **options))
        return started[-1]

    with contextlib.ExitStack() as stack:
        start.all = started
        start.stack = stack
        yield start
        stack.close()  # release what hangs first
        for waiter in started:
            waiter.close()


def how_long(path, count=100):
    """Return the sorted times of opening and reading it, in seconds."""
    times = []
    for _ in range(count):
        begun = time.monotonic()
        assert lib.read_file(path)
        times.append(time.monotonic() - begun)
    return sorted(times)


def held(mount):
    """Return the number of requests without an answer, as the kernel counts them."""
    control = os.path.join(mount.root, "fusectl")
    if not os.path.isdir(control):
        os.mkdir(control)
        container.mount("fusectl", control, "fusectl")
    return int(lib.read_file(f"{control}/{os.minor(os.stat(mount.mountpoint).st_dev)}/waiting"))


def is_held(mount, count):
    end = lib.deadline()
    while held(mount) < count:
        assert time.monotonic() < end, f"only {held(mount)} of {count} wait"
        time.sleep(0.01)
