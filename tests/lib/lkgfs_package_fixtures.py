# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests with packages: the packages, built once, and machines to install them on."""
import os
import pathlib
import shutil
import tempfile

import pytest

import lkgfs_packages
import lkgfs_testlib as lib
from lkgfs_namespaces import NamespaceMachine


@pytest.fixture(scope="session")
def place():
    folder = pathlib.Path(tempfile.mkdtemp(prefix=lib.PREFIX, dir=lib.PARENT))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session", name="packages")
def folder_of_packages(place):
    """Where they are built, or were by whoever set $LKGFS_PACKAGES."""
    return pathlib.Path(os.environ.get("LKGFS_PACKAGES", place))


@pytest.fixture(scope="session")
def checkout(packages):
    return lkgfs_packages.checkout(packages)


@pytest.fixture(scope="session")
def debs(packages):
    return lkgfs_packages.debs(packages)


@pytest.fixture(scope="session")
def deb(debs):
    return next(debs.glob("lkgfs_*.deb"))


@pytest.fixture(scope="session")
def debs_again(packages):
    return lkgfs_packages.debs_again(packages)


@pytest.fixture(scope="session")
def rpms(packages):
    return lkgfs_packages.rpms(packages)


@pytest.fixture(scope="session")
def newer(place, deb):
    return lkgfs_packages.repacked(deb, place, "9.0")


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
