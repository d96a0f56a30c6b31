# SPDX-License-Identifier: Apache-2.0
"""contrib/systemd/try-unit of the installed package, on a machine of its own, because it replaces the programs."""
import re

import pytest

import lkgfs_testlib as lib

SCRIPT = (lib.REPOSITORY / "contrib/systemd/try-unit").read_text(encoding="utf-8")
# Those in its loop are named when it runs.
CHECKS = [name for name in re.findall(r"^(?:\[\[.*\]\] \|\| )?check ['\"]([^'\"]*)['\"]", SCRIPT, re.M) if "$" not in name]


@pytest.fixture(scope="module", name="lines")
def output(machine, deb):
    machine.run("dpkg", "--install", machine.put(deb), check=True)
    result = machine.shell("/usr/share/lkgfs/systemd/try-unit --yes --apparmor 2>&1", timeout=500)
    lines = result.stdout.splitlines()
    assert (result.returncode == 0) == (not [line for line in lines if line.startswith("FAILED")]), result
    return lines


NAMED_THERE = ["apparmor is loaded", *(f"SIGKILL of {program}" for program in ("lkgfs-engine", "lkgfs-fs", "lkgfs-notify", "lkgfsd"))]


@pytest.mark.parametrize("name", [*CHECKS, *NAMED_THERE])
def test_try_unit(lines, name):
    assert f"ok - {name}" in lines, "\n".join(lines)


def test_no_check_of_try_unit_failed(lines):
    assert [line for line in lines if line.startswith("FAILED")] == [] and len([line for line in lines if line.startswith("ok - ")]) > 35
