# SPDX-License-Identifier: Apache-2.0
"""From the sources, on a machine that is not the default one ($LKGFS_MACHINE): README.md's first command, unit, golden and fuzz tests, and the core of the
end-to-end tests, with the kernel, the libraries and the compiler of that machine. By hand: all of it is emulated."""
import io
import re
import shutil
import tarfile

import pytest

import lkgfs_testlib as lib
from laboratory import MACHINE

HOURS = 3 * 3600
pytestmark = pytest.mark.limit(HOURS)
CORE = ("test_view", "test_survival", "test_dynamic", "test_remote", "test_adopt")
SETUP = "meson setup /build /src -Dtests=enabled"
# No debug information: it would be most of what is copied.
CROSS = f"""meson env2mfile --cross --debarch arm64 -o /tmp/cross && printf '[properties]\\nneeds_exe_wrapper = false\\n' > /tmp/inside &&
        {SETUP} -Ddebug=false --cross-file /tmp/cross --cross-file /tmp/inside && ninja -C /build"""


def copy_in(machine, folder, name):
    """To /@name, without what only a linker reads."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        tar.add(folder, arcname=name, filter=lambda member: None if member.name.endswith((".o", ".a")) else member)
    machine.shell("tar -C / -xzf -", input=data.getvalue(), check=True, timeout=HOURS)


@pytest.fixture(scope="module", name="sources")
def fixture_sources(machine, place):
    lib.run(lib.REPOSITORY / "contrib/package/sources", place / "sources", check=True)
    copy_in(machine, place / "sources", "src")


@pytest.fixture(scope="module", name="build")
def fixture_build(machine, sources):  # pylint: disable=unused-argument
    """Compiled inside, but for arm64 here, by the cross compiler of the same Debian and in the same folders: QEMU's translator needs an hour for it."""
    if MACHINE != "bookworm:arm64":
        built = machine.shell(f"({SETUP} && ninja -C /build) 2>&1", timeout=HOURS)
        assert built.returncode == 0, built.stdout[-3000:]
        return
    root = lib.BUILD / "machine/cross"
    lib.run(lib.REPOSITORY / "contrib/release/root", root, "--include=libcmocka-dev:arm64", check=True, timeout=HOURS)
    shutil.rmtree(root / "root/build", ignore_errors=True)
    lib.run(lib.REPOSITORY / "tests/trixie/inside", root / "root", "--", "sh", "-c", f"({CROSS}) >&2", check=True, timeout=HOURS)
    copy_in(machine, root / "root/build", "build")


def test_what_it_is(machine, record_property):
    """For the table of docs/design-review.md."""
    words = machine.output(". /etc/os-release; echo $PRETTY_NAME, $(uname -mr), systemd $(systemctl --version | sed -n 's/^systemd \\([0-9]*\\).*/\\1/p'),"
                           " libfuse $(pkg-config --modversion fuse3), gcc $(gcc -dumpfullversion)")
    print(words)
    record_property("machine", words)


def test_the_quick_start(machine, sources):  # pylint: disable=unused-argument
    shown = machine.shell("cd /src && contrib/quickstart/run 2>&1", timeout=HOURS)
    assert shown.returncode == 0 and "kubelet.conf" in shown.stdout, shown.stdout[-3000:]
    machine.output("cd /src && contrib/quickstart/run --stop")
    assert machine.shell(f"findmnt --types {lib.FSTYPE}").stdout == ""


def test_unit_golden_and_fuzz(machine, build):  # pylint: disable=unused-argument
    shown = machine.shell("meson test -C /build --no-rebuild --timeout-multiplier 20 --suite unit --suite golden --suite fuzz --no-suite releases 2>&1", timeout=HOURS)
    print(shown.stdout[-3000:])
    failed = re.findall(r"^ *\d+/\d+ (.*(?:FAIL|TIMEOUT|ERROR).*)$", shown.stdout, re.M)
    assert shown.returncode == 0 and failed == [], (failed, machine.shell("grep -A12 '^not ok\\|FAILED' /build/meson-logs/testlog.txt").stdout[:6000])


@pytest.mark.parametrize("name", CORE)
def test_end_to_end(machine, build, name):  # pylint: disable=unused-argument
    shown = machine.shell(f"cd /src && LKGFS_BUILD=/build LKGFS_TEST_KILLS=20 LKGFS_TEST_SLOWNESS=10 python3 -m pytest -q -p no:cacheprovider -n 3 tests/e2e/{name}.py 2>&1",
                          timeout=HOURS)
    assert shown.returncode == 0, shown.stdout[-6000:]
