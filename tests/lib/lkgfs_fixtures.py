# SPDX-License-Identifier: Apache-2.0
"""Shared by suites with real mounts: fixtures, the watchdog that ends a test that hangs in the mount, the final check.

A conftest.py imports all of it.
"""
import faulthandler
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import tempfile
import threading

import pytest

import lkgfs_testlib as lib
from lkgfs_apinode import ApiNode
from lkgfs_apiserver import ApiServer
from lkgfs_certs import Certificates
from lkgfs_node import Node

TEST_LIMIT_S = 100


def pytest_configure(config):
    config.addinivalue_line("markers", "limit(seconds): longest time of this test before its mounts are aborted")
    config.addinivalue_line("markers", "slow: waits for long; left out by tests/run --quick")
    config.real_stderr = os.fdopen(os.dup(2), "w")  # while a test runs, pytest redirects the other one


def pytest_unconfigure(config):
    config.real_stderr.close()


def interrupt(*_):
    """SIGTERM, as sent by a time limit around the whole run: tear down as after Ctrl-C."""
    raise KeyboardInterrupt


def pytest_sessionstart(session):
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it, and its children would, too
    if os.geteuid() != 0:
        pytest.exit("the end-to-end tests mount file systems: run them as root", 2)
    for program in (lib.LKGFSD, lib.LKGFS):
        if not os.access(program, os.X_OK):
            pytest.exit(f"{program} is missing: build first, or set LKGFS_BUILD", 2)
    session.config.leftovers_before = set(lib.leftovers())


@pytest.hookimpl(trylast=True)  # after the teardown, which an interrupted session has to catch up on
def pytest_sessionfinish(session):
    before = getattr(session.config, "leftovers_before", None)
    if before is None:
        return
    left = [item for item in lib.leftovers() if item not in before]
    if left:
        print("\nleft behind: " + ", ".join(left))
        session.exitstatus = 1


class Mounts:
    """Factory: mounts that are closed at the end of the test (or module), newest first."""

    def __init__(self):
        self.mounts = []

    def __call__(self, **options):
        mount = lib.Mount(**options)
        self.mounts.append(mount)
        return mount

    def close(self):
        failures = []
        while self.mounts:
            try:
                self.mounts.pop().close()
            except Exception as failure:  # pylint: disable=broad-except
                failures.append(failure)
        if failures:
            raise failures[0]


living = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """A signal cannot interrupt a call that hangs in a mount; killing the processes of the mount ends it."""
    marker = item.get_closest_marker("limit")

    def expire():
        print(f"\n{item.nodeid}: time limit, its mounts are aborted", file=item.config.real_stderr, flush=True)
        faulthandler.dump_traceback(item.config.real_stderr)
        for factory in list(living):
            for mount in list(factory.mounts):
                mount.abort()

    timer = threading.Timer((marker.args[0] if marker else TEST_LIMIT_S) * lib.SLOWNESS, expire)
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        for factory in living:
            for mount in factory.mounts:
                report.sections.append((f"log of lkgfsd on {mount.mountpoint}", mount.log()[-4000:]))


def factory():
    mounts = Mounts()
    living.append(mounts)
    try:
        yield mounts
    finally:
        living.remove(mounts)
        mounts.close()


@pytest.fixture
def mounts():
    yield from factory()


@pytest.fixture
def node(mounts):
    """Factory: nodes with their own component, which ends with the test."""
    nodes = []

    def make(**options):
        nodes.append(Node(mounts, **options))
        return nodes[-1]
    yield make
    for one in nodes:
        one.close()


@pytest.fixture(scope="session")
def certificates():
    """Certificates of API servers and nodes; made when the first test asks for them."""
    with tempfile.TemporaryDirectory(prefix=lib.PREFIX, dir=lib.PARENT) as directory:
        yield Certificates(directory)


@pytest.fixture
def api(certificates):
    """An API server that a test can change and break."""
    with ApiServer(certificates) as server:
        yield server


@pytest.fixture
def api_node(mounts, api):
    """Factory: nodes that follow `api` with the credential of the Node `name`."""
    nodes = []

    def make(name="n1", **options):
        directory = tempfile.mkdtemp(prefix=lib.PREFIX, dir=lib.PARENT)
        kubeconfig = api.kubeconfig(os.path.join(directory, "kubeconfig"), node=name)
        nodes.append((directory, ApiNode(mounts, kubeconfig, name, **options)))
        return nodes[-1][1]
    yield make
    for directory, one in nodes:
        one.close()
        shutil.rmtree(directory)


@pytest.fixture(scope="module")
def module_mounts():
    yield from factory()


@pytest.fixture
def mount(mounts):
    """A fresh mount over the standard tree."""
    return mounts()


@pytest.fixture(scope="module")
def shared(module_mounts):
    """One mount for all tests of a module that do not disturb each other."""
    return module_mounts()


@pytest.fixture
def journal():
    """A journal socket, on a machine without a journal. Of tests that run side by side, one has it."""
    path = pathlib.Path("/run/systemd/journal/socket")
    with open(__file__, encoding="utf-8") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if path.exists():
            pytest.skip("a journal runs here")
        made = [folder for folder in (path.parent.parent, path.parent) if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
            listening.bind(str(path))
            listening.settimeout(lib.TIMEOUT_S)
            yield listening
        path.unlink()
        for folder in reversed(made):
            folder.rmdir()
