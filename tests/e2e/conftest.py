# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
sys.dont_write_bytecode = True

from lkgfs_fixtures import *  # noqa: E402,F401,F403  pylint: disable=wildcard-import,unused-wildcard-import
from lkgfs_waiters import fixture_waiters  # noqa: E402,F401  pylint: disable=unused-import

# Files that take half a minute or more, the longest first: nobody waits for one that was begun last. `tests/run --quick` leaves them out.
LONG = ["dead_source", "hanging", "silence", "orders", "survival", "health", "spoilt_files", "exhaustion", "exchanged_names",
        "schema", "poison", "dynamic_pairs", "behind", "upgrade", "exec_plugin", "dynamic_kills"]


def pytest_collection_modifyitems(items):
    names = [f"test_{name}.py" for name in LONG]
    items.sort(key=lambda item: names.index(item.path.name) if item.path.name in names else len(names))
    for item in items:
        if item.path.name in names:
            item.add_marker("slow")
