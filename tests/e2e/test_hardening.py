# SPDX-License-Identifier: Apache-2.0
"""What the compiler and the linker put into each program, checked in the programs as built and installed."""
import platform
import re

import pytest

import lkgfs_testlib as lib

PROGRAMS = ["fs/supervisor/lkgfsd", "fs/server/lkgfs-fs", "fs/notifier/lkgfs-notify", "core/engine/lkgfs-engine", "fs/tool/lkgfs"]
LANDING = {"x86_64": b"\xf3\x0f\x1e\xfa", "aarch64": b"\x5f\x24\x03\xd5"}  # endbr64, bti c


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request):
    return str(lib.BUILD / request.param)


def readelf(*words):
    return lib.run("readelf", "-W", *words, check=True).stdout.decode()


def test_position_is_not_known(program):
    assert re.search(r"Type:\s+DYN", readelf("-h", program))
    assert "TEXTREL" not in readelf("-d", program)


def test_tables_are_read_only_and_nothing_is_bound_later(program):
    assert "GNU_RELRO" in readelf("-l", program)
    assert "BIND_NOW" in readelf("-d", program)


def test_no_memory_is_written_and_executed(program):
    segments = re.findall(r"^\s+(LOAD|GNU_STACK)\s.*\s([R ][W ][E ])\s+0x", readelf("-l", program), re.M)
    assert {kind for kind, _ in segments} == {"LOAD", "GNU_STACK"}
    assert [flags for kind, flags in segments if "W" in flags and "E" in flags] == []
    assert [flags for kind, flags in segments if kind == "GNU_STACK" and "E" in flags] == []


def test_libraries_come_from_the_system(program):
    assert not re.search(r"\((RPATH|RUNPATH)\)", readelf("-d", program))


def test_buffers_and_stack_are_guarded(program):
    symbols = readelf("-s", program)
    assert "__stack_chk_fail" in symbols
    assert re.search(r"__(snprintf|memcpy|vsnprintf|sprintf|readlink\w*|read|fprintf)_chk", symbols), "_FORTIFY_SOURCE"


def test_branches_land_where_they_may(program):
    """Control-flow enforcement, where the processor supports it. Debian 12's C library does not enable it yet."""
    mark = LANDING.get(platform.machine())
    if mark is None:
        return  # this processor does not support it
    assert lib.read_file(program).count(mark) >= 20
