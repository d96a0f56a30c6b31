# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests with packages: the packages, built once per session, and machines to install them on."""
import os
import pathlib
import shutil
import tempfile

import pytest

import lkgfs_testlib as lib
from lkgfs_namespaces import NamespaceMachine
from lkgfs_packages import build, repacked


@pytest.fixture(scope="session")
def place():
    folder = pathlib.Path(tempfile.mkdtemp(prefix=lib.PREFIX, dir=lib.PARENT))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def checkout(place):
    """A clone with one commit of all sources as they are here, in whatever this is: a clone with changes, or a tarball."""
    folder = place / "a checkout"
    epoch = lib.run(lib.REPOSITORY / "contrib/package/sources", folder, check=True).stdout.decode().strip()
    environment = {**os.environ, "GIT_AUTHOR_DATE": f"@{epoch} +0000", "GIT_COMMITTER_DATE": f"@{epoch} +0000", "GIT_CONFIG_NOSYSTEM": "1",
                   "GIT_AUTHOR_NAME": "lkgfs", "GIT_AUTHOR_EMAIL": "lkgfs@example.org", "GIT_COMMITTER_NAME": "lkgfs",
                   "GIT_COMMITTER_EMAIL": "lkgfs@example.org"}
    for command in (["init", "-q", "-b", "main"], ["add", "--all", "--force"], ["commit", "-q", "-m", "All sources"]):
        lib.run("git", *command, cwd=folder, env=environment, check=True)
    return folder


@pytest.fixture(scope="session")
def tarball(place, checkout):
    """What `meson dist` makes of it."""
    folder = place / "dist"
    lib.run("meson", "setup", folder, checkout, "-Dtests=disabled", check=True)
    lib.run("meson", "dist", "-C", folder, "--no-tests", check=True, timeout=100)
    made = list((folder / "meson-dist").glob("*.tar.xz"))
    assert len(made) == 1
    return made[0]


@pytest.fixture(scope="session")
def extracted(place, tarball):
    """The tarball, in another place and extracted at another time than the checkout was made."""
    folder = place / "elsewhere"
    folder.mkdir()
    lib.run("tar", "-xf", tarball, "-C", folder, check=True)
    return folder / tarball.name.removesuffix(".tar.xz")


@pytest.fixture(scope="session")
def debs(place, checkout):
    """The folder of Debian packages built from the checkout."""
    return build(checkout / "contrib/package/deb/build", place / "debs", "--", log=place / "debs.log")


@pytest.fixture(scope="session")
def deb(debs):
    return next(debs.glob("lkgfs_*.deb"))


@pytest.fixture(scope="session")
def debs_again(place, extracted):
    """The same from the tarball: another folder, time, time zone, language, home, temporary directory and mask."""
    (place / "another-tmp").mkdir()
    before = os.umask(0o077)
    try:
        return build(extracted / "contrib/package/deb/build", place / "debs-again", "--", log=place / "debs-again.log", TZ="Pacific/Kiritimati",
                     LANG="C", HOME="/nonexistent", TMPDIR=str(place / "another-tmp"), CFLAGS="-O0")
    finally:
        os.umask(before)


@pytest.fixture(scope="session")
def rpms(place, extracted, tarball):
    """The folder of RPM packages built from the tarball. The libraries are no packages of RPM here."""
    return build(extracted / "contrib/package/rpm/build", place / "rpms", "--tarball", str(tarball), "--", "--nodeps", "--without", "check",
                 log=place / "rpms.log")


@pytest.fixture(scope="session")
def newer(place, deb):
    return repacked(deb, place, "9.0")


@pytest.fixture
def machines():
    """Factory: machines that end with the test."""
    made = []

    def make(**options):
        made.append(NamespaceMachine(**options))
        return made[-1]
    yield make
    for machine in made:
        machine.close()


@pytest.fixture
def machine(machines):
    return machines()
