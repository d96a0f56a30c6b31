# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests in virtual machines: the image, the package in two versions, and machines that end with their file of tests."""
import os
import pathlib
import shutil
import signal
import sys
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]
sys.dont_write_bytecode = True

import lkgfs_testlib as lib  # noqa: E402
from laboratory import MACHINE, Failure, VirtualMachine, make_image  # noqa: E402
from lkgfs_packages import debs, repacked  # noqa: E402

living = []
collect_ignore = ["test_sources.py"] if MACHINE == "bookworm" else []  # it needs what builds lkgfs
collect_ignore += [] if "LKGFS_SYSEXT" in os.environ else ["test_images.py"]


def interrupt(*_):
    raise KeyboardInterrupt


def pytest_sessionstart():
    signal.signal(signal.SIGTERM, interrupt)  # a time limit around the whole run: tear down
    if os.geteuid() != 0:
        pytest.exit("the image is made by root: run the tests as root", 2)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """What the machine's journal says last, if a test fails."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        for machine in living:
            try:
                report.sections.append(("journal", machine.shell("journalctl -q -b -o short-precise --no-pager | tail -n 60", timeout=20).stdout))
            except Failure as failure:
                report.sections.append(("console", str(failure)))


@pytest.fixture(scope="session")
def image():
    """In the build directory: it is made once."""
    return make_image(lib.BUILD / "machine")


@pytest.fixture(scope="session")
def place(image):  # pylint: disable=unused-argument
    folder = pathlib.Path(tempfile.mkdtemp(prefix="session-", dir=lib.BUILD / "machine"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def deb(place):
    """$LKGFS_DEB, or one that is built, or was by whoever set $LKGFS_PACKAGES."""
    if "LKGFS_DEB" in os.environ:
        return pathlib.Path(os.environ["LKGFS_DEB"])
    return next(debs(pathlib.Path(os.environ.get("LKGFS_PACKAGES", place))).glob("lkgfs_*.deb"))


@pytest.fixture(scope="session")
def newer(place, deb):
    return repacked(deb, place, "9.0")


@pytest.fixture(scope="module")
def machine(image, place, request):
    """One that runs. The tests of a file are a story: each begins with what the one before has left."""
    folder = place / request.module.__name__
    folder.mkdir()
    made = VirtualMachine(image, folder)
    living.append(made)
    try:
        made.boot()
        yield made
    finally:
        made.cut()
        living.remove(made)
        shutil.rmtree(folder)
