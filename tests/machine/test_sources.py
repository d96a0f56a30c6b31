# SPDX-License-Identifier: Apache-2.0
"""From the sources, on a machine that is not the default one ($LKGFS_MACHINE): README.md's first command, unit and golden tests, and the core of the
end-to-end tests, with the kernel, the libraries and the compiler of that machine. By hand: all of it is emulated."""
import io
import re
import tarfile

import pytest

import lkgfs_testlib as lib

HOURS = 3 * 3600
pytestmark = pytest.mark.limit(HOURS)
CORE = ("test_view", "test_survival", "test_dynamic", "test_remote", "test_adopt")


@pytest.fixture(scope="module", name="sources")
def fixture_sources(machine, place):
    lib.run(lib.REPOSITORY / "contrib/package/sources", place / "sources", check=True)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        tar.add(place / "sources", arcname="lkgfs")
    machine.shell("tar -xzf -", input=data.getvalue(), check=True)
    return "/root/lkgfs"


def test_what_it_is(machine, record_property):
    """For the table of docs/design-review.md."""
    words = machine.output(". /etc/os-release; echo $PRETTY_NAME, $(uname -mr), systemd $(systemctl --version | sed -n 's/^systemd \\([0-9]*\\).*/\\1/p'),"
                           " libfuse $(pkg-config --modversion fuse3), gcc $(gcc -dumpfullversion)")
    print(words)
    record_property("machine", words)


def test_the_quick_start(machine, sources):
    shown = machine.shell(f"cd {sources} && contrib/quickstart/run 2>&1", timeout=HOURS)
    assert shown.returncode == 0 and "kubelet.conf" in shown.stdout, shown.stdout[-3000:]
    machine.output(f"cd {sources} && contrib/quickstart/run --stop")
    assert machine.shell(f"findmnt --types {lib.FSTYPE}").stdout == ""


def test_unit_and_golden(machine, sources):
    built = machine.shell(f"cd {sources} && (meson setup /root/build -Dtests=enabled && ninja -C /root/build) 2>&1", timeout=HOURS)
    assert built.returncode == 0, built.stdout[-3000:]
    shown = machine.shell("meson test -C /root/build --no-rebuild --timeout-multiplier 20 --suite unit --suite golden --suite fuzz --no-suite releases 2>&1", timeout=HOURS)
    print(shown.stdout[-3000:])
    assert shown.returncode == 0 and re.search(r"^Fail: +0$", shown.stdout, re.M), shown.stdout[-3000:]


@pytest.mark.parametrize("name", CORE)
def test_end_to_end(machine, sources, name):
    shown = machine.shell(f"cd {sources} && LKGFS_BUILD=/root/build LKGFS_TEST_KILLS=20 LKGFS_TEST_SLOWNESS=10 python3 -m pytest -q -p no:cacheprovider -n 3 tests/e2e/{name}.py 2>&1",
                          timeout=HOURS)
    print(shown.stdout[-3000:])
    assert shown.returncode == 0, shown.stdout[-6000:]
