# SPDX-License-Identifier: Apache-2.0
"""Packages for the tests: built by the scripts in contrib/package/, and made into another version."""
import os
import pathlib
import subprocess

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
    return out


def repacked(deb, folder, version):
    """The package as another build and version: every program has another build id, all else is the same."""
    root = folder / f"tree-{version}"
    lib.run("dpkg-deb", "--raw-extract", deb, root, check=True)
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.read_bytes().startswith(b"\x7fELF"):
            path.write_bytes(lib.another_build(path.read_bytes()))
    control = root / "DEBIAN/control"
    control.write_text("".join(f"Version: {version}\n" if line.startswith("Version:") else line
                               for line in control.read_text().splitlines(keepends=True)))
    lib.shell(f"cd {root} && find * -path DEBIAN -prune -o -type f -print0 | xargs -0 md5sum > DEBIAN/md5sums", check=True)
    made = folder / f"lkgfs_{version}.deb"
    lib.run("dpkg-deb", "--root-owner-group", "--build", "-Znone", root, made, check=True)
    return made
