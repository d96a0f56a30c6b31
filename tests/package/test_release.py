# SPDX-License-Identifier: Apache-2.0
"""A release from its tag: contrib/release/make. All of it twice takes a quarter of an hour of processor time. So the suite makes the package for
arm64, an image with it and, twice, what is not compiled; LKGFS_RELEASE=all makes all of it twice."""
import json
import os
import pathlib
import re

import pytest

import lkgfs_testlib as lib
from test_build import PROGRAMS, SBOM, field
from test_image import Layout

ALL = os.environ.get("LKGFS_RELEASE") == "all"
LIMIT_S = 20000 if ALL else 900
pytestmark = pytest.mark.limit(LIMIT_S)
VERSION = re.search(r"version : '(.*)'", (lib.REPOSITORY / "meson.build").read_text())[1]
TAG = f"v{VERSION}"


def tagged(checkout, folder, date="2026-12-01"):
    """A clone in which the version is released, the same commit in each."""
    lib.shell(f"""set -e; git clone -q "{checkout}" "{folder}"; cd "{folder}"; sed -i 's/^## {VERSION} - .*/## {VERSION} - {date}/' CHANGELOG.md
        export GIT_AUTHOR_DATE='@1700000000 +0000' GIT_COMMITTER_DATE='@1700000000 +0000'
        git -c user.name=lkgfs -c user.email=lkgfs@example.org commit -q --allow-empty -a -m Release; git tag {TAG}""", check=True)
    return folder


def make(folder, *words, **options):
    return lib.run(folder / "contrib/release/make", *words, timeout=LIMIT_S, **options)


@pytest.fixture(scope="module", name="root")
def root_of_debian(place):
    return pathlib.Path(os.environ.get("LKGFS_RELEASE_ROOT", place / "release-root"))


@pytest.fixture(scope="module")
def release(place, checkout, root):
    out = place / "release"
    make(tagged(checkout, place / "tagged"), "--root", root, TAG, out, *([] if ALL else ["deb-arm64", "image"]), check=True)
    return out


def test_the_same_tag_gives_the_same_bytes_and_a_key_signs_them(place, checkout, root, release):
    """Another folder, time, time zone, temporary directory and mask."""
    folder, home, ring = place / "another" / "folder", place / "gnupg", place / "ring.gpg"
    home.mkdir(mode=0o700)
    lib.shell(f"""set -e; export GNUPGHOME={home}; gpg -q --batch --passphrase '' --quick-generate-key lkgfs@example.org ed25519 sign never
        gpg --batch --export-secret-keys > {home}/key; gpg --batch --export > {ring}; gpgconf --kill all""", check=True)
    folder.parent.mkdir()
    (place / "other-tmp").mkdir()
    make(tagged(checkout, folder), "--root", root, "--key", home / "key", TAG, place / "again", *([] if ALL else ["source"]), check=True,
         umask=0o077, env={**os.environ, "TZ": "Pacific/Kiritimati", "TMPDIR": str(place / "other-tmp"), "CFLAGS": "-O0"})
    again = {path.name: path.read_bytes() for path in (place / "again").iterdir()}
    lib.run("gpgv", "--keyring", ring, "SHA256SUMS.asc", "SHA256SUMS", cwd=place / "again", check=True)
    lib.run("sha256sum", "--strict", "--check", "SHA256SUMS", cwd=place / "again", check=True)
    del again["SHA256SUMS.asc"]
    if not ALL:  # it lists the package
        del again["SHA256SUMS"]
        assert set(again) == {f"lkgfs-{VERSION}.tar.xz", f"lkgfs-{VERSION}.packages", "NOTES.md"}
    for name, content in again.items():
        assert (release / name).read_bytes() == content, name
    assert not ALL or set(again) == {path.name for path in release.iterdir()}


def test_the_package_for_arm64_is_that_of_amd64_for_another_machine(place, deb, release):
    made, trees = release / f"lkgfs_{VERSION}_arm64.deb", {}
    for name, package in (("amd64", deb), ("arm64", made)):
        trees[name] = place / f"release-{name}"
        lib.run("dpkg-deb", "--raw-extract", package, trees[name], check=True)
    alike = "VERSION_CODENAME=bookworm" in pathlib.Path("/etc/os-release").read_text()  # a release is built there
    assert field(made, "Architecture") == "arm64" and (field(made, "Depends") == field(deb, "Depends")) == alike
    files = [{path.relative_to(tree).as_posix() for path in tree.rglob("*")} for tree in trees.values()]
    assert (files[0] == files[1]) == alike
    for path in PROGRAMS:
        assert "AArch64" in lib.run("readelf", "--file-header", trees["arm64"] / path, check=True).stdout.decode(), path
    for path in ("usr/share/man/man7/lkgfs-findings.7.gz", "usr/share/doc/lkgfs/kubelet-fields.md"):  # by a program of the machine that built it
        assert (trees["arm64"] / path).read_bytes() == (trees["amd64"] / path).read_bytes()
    bills = [json.loads((tree / SBOM).read_text(encoding="utf-8")) for tree in trees.values()]
    assert ([package["name"] for package in bills[1]["packages"]] == [package["name"] for package in bills[0]["packages"]]) == alike
    assert json.loads((release / (made.name + ".spdx.json")).read_text(encoding="utf-8")) == bills[1]


def test_the_image_is_for_each_architecture(release):
    layout = Layout(release / f"lkgfs-{VERSION}-image.tar")
    assert [manifest["platform"]["architecture"] for manifest in layout.manifests] == (["amd64", "arm64"] if ALL else ["arm64"])
    assert layout.config["config"]["Labels"]["org.opencontainers.image.version"] == VERSION


def test_the_notes_are_the_section_of_the_changelog(release):
    notes = (release / "NOTES.md").read_text(encoding="utf-8")
    _, _, rest = (lib.REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8").partition(f"\n## {VERSION} - ")
    assert notes.strip() == re.split(r"^## ", rest.partition("\n")[2], flags=re.M)[0].strip()


@pytest.mark.parametrize("change,date,words", [
    ("git tag -d TAG", "2026-12-01", "there is no tag"),
    ("git -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m more", "2026-12-01", "is not what is checked out"),
    ("touch new", "2026-12-01", "the checkout has changes"),
    ("git tag -d TAG; sed -i \"s/version : 'VERSION'/version : '9.0'/\" meson.build; git -c user.name=x -c user.email=x@example.org commit -qam x; git tag TAG",
     "2026-12-01", "meson.build has version 9.0"),
    ("", "unreleased", "unreleased")], ids=["no tag", "another commit", "new file", "version", "unreleased"])
def test_what_is_no_release_is_refused(tmp_path, checkout, change, date, words):
    folder = tagged(checkout, tmp_path / "checkout", date)
    lib.shell(change.replace("TAG", TAG).replace("VERSION", VERSION), cwd=folder, check=True)
    result = make(folder, TAG, tmp_path / "out")
    assert result.returncode == 1 and words in result.stderr.decode(), result
    assert not (tmp_path / "out").exists()
