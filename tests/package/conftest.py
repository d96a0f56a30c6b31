# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of packages."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
sys.dont_write_bytecode = True

from lkgfs_fixtures import *  # noqa: E402,F401,F403  pylint: disable=wildcard-import,unused-wildcard-import
from lkgfs_package_fixtures import *  # noqa: E402,F401,F403  pylint: disable=wildcard-import,unused-wildcard-import
