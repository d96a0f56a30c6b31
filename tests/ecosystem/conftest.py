# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the suite that is run by hand with real users of the mount: README.md."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
sys.dont_write_bytecode = True

from lkgfs_fixtures import *  # noqa: E402,F401,F403  pylint: disable=wildcard-import,unused-wildcard-import
from lkgfs_package_fixtures import *  # noqa: E402,F401,F403  pylint: disable=wildcard-import,unused-wildcard-import

CACHE = pathlib.Path(os.environ.get("LKGFS_ECOSYSTEM", "~/.cache/lkgfs-ecosystem")).expanduser()


@pytest.fixture(scope="session")
def program():
    """Factory: the path of a program that `get` has built."""
    def find(name):
        path = CACHE / "bin" / name
        if not path.exists():
            pytest.fail(f"{name} is missing: tests/ecosystem/get {name}")
        return path
    return find

