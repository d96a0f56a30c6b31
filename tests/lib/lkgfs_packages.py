# SPDX-License-Identifier: Apache-2.0
"""Packages for the tests: built by the scripts in contrib/package/, and made into another version.

    lkgfs_packages.py FOLDER NAME...     builds `debs`, `debs_again` or `rpms` below FOLDER, with what they are made of

Tests find them there if LKGFS_PACKAGES names that folder: `tests/run` builds once for all suites. Otherwise each session builds its own.
"""
import functools
import os
import pathlib
import subprocess
import sys

import lkgfs_testlib as lib

BUILD_LIMIT_S = 500


def build(script, out, *options, log, **environment):
    """Run a build script; its output goes to a file, whose end a failure shows."""
    with open(log, "wb") as stream:
        result = subprocess.run([script, *options[:options.index("--")], out, *options[options.index("--"):]], stdin=subprocess.DEVNULL,
                                stdout=stream, stderr=subprocess.STDOUT, timeout=BUILD_LIMIT_S, check=False,
                                env={"PATH": os.environ["PATH"], "DEB_BUILD_OPTIONS": "nocheck", **environment})
    if result.returncode != 0:
        raise lib.Failure(f"{script} ended with {result.returncode}: {pathlib.Path(log).read_text(errors='replace')[-3000:]}")


def once(name):
    """make(place, folder) fills @place/@name: once, whoever asks."""
    def kept(make):
        @functools.wraps(make)
        def folder_of(place):
            folder, done = place / name, place / f"{make.__name__}.done"
            if not done.exists():
                make(place, folder)
                done.touch()
            return folder
        return folder_of
    return kept


@once("a checkout")
def checkout(_, folder):
    """A clone with one commit of all sources as they are here, in whatever this is: a clone with changes, or a tarball."""
    epoch = lib.run(lib.REPOSITORY / "contrib/package/sources", folder, check=True).stdout.decode().strip()
    environment = {**os.environ, "GIT_AUTHOR_DATE": f"@{epoch} +0000", "GIT_COMMITTER_DATE": f"@{epoch} +0000", "GIT_CONFIG_NOSYSTEM": "1",
                   "GIT_AUTHOR_NAME": "lkgfs", "GIT_AUTHOR_EMAIL": "lkgfs@example.org", "GIT_COMMITTER_NAME": "lkgfs",
                   "GIT_COMMITTER_EMAIL": "lkgfs@example.org"}
    for command in (["init", "-q", "-b", "main"], ["add", "--all", "--force"], ["commit", "-q", "-m", "All sources"]):
        lib.run("git", *command, cwd=folder, env=environment, check=True)


@once("dist")
def dist(place, folder):
    """What `meson dist` makes of it."""
    lib.run("meson", "setup", folder, checkout(place), "-Dtests=disabled", check=True)
    lib.run("meson", "dist", "-C", folder, "--no-tests", check=True, timeout=100)


def tarball(place):
    made, = (dist(place) / "meson-dist").glob("*.tar.xz")
    return made


@once("elsewhere")
def elsewhere(place, folder):
    """The tarball, in another place and extracted at another time than the checkout was made."""
    folder.mkdir()
    lib.run("tar", "-xf", tarball(place), "-C", folder, check=True)


def extracted(place):
    return elsewhere(place) / tarball(place).name.removesuffix(".tar.xz")


@once("debs")
def debs(place, folder):
    """Debian packages built from the checkout."""
    build(checkout(place) / "contrib/package/deb/build", folder, "--", log=place / "debs.log")


@once("debs-again")
def debs_again(place, folder):
    """The same from the tarball: another folder, time, time zone, language, home, temporary directory and mask."""
    (place / "another-tmp").mkdir()
    before = os.umask(0o077)
    try:
        build(extracted(place) / "contrib/package/deb/build", folder, "--", log=place / "debs-again.log", TZ="Pacific/Kiritimati", LANG="C",
              HOME="/nonexistent", TMPDIR=str(place / "another-tmp"), CFLAGS="-O0")
    finally:
        os.umask(before)


@once("rpms")
def rpms(place, folder):
    """RPM packages built from the checkout. The libraries are no packages of RPM here."""
    build(checkout(place) / "contrib/package/rpm/build", folder, "--", "--nodeps", "--without", "check", log=place / "rpms.log")


def of_another_build(root):
    """Every program below @root gets another build id, all else is the same."""
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.read_bytes().startswith(b"\x7fELF"):
            path.write_bytes(lib.another_build(path.read_bytes()))


def repacked(deb, folder, version):
    """The package as another build and version."""
    root = folder / f"tree-{version}"
    lib.run("dpkg-deb", "--raw-extract", deb, root, check=True)
    of_another_build(root)
    control = root / "DEBIAN/control"
    control.write_text("".join(f"Version: {version}\n" if line.startswith("Version:") else line
                               for line in control.read_text().splitlines(keepends=True)))
    lib.shell(f"cd {root} && find * -path DEBIAN -prune -o -type f -print0 | xargs -0 md5sum > DEBIAN/md5sums", check=True)
    made = folder / f"lkgfs_{version}.deb"
    lib.run("dpkg-deb", "--root-owner-group", "--build", "-Znone", root, made, check=True)
    return made


if __name__ == "__main__":
    below = pathlib.Path(sys.argv[1]).absolute()
    below.mkdir(parents=True, exist_ok=True)
    for wanted in sys.argv[2:]:
        {"debs": debs, "debs_again": debs_again, "rpms": rpms}[wanted](below)
