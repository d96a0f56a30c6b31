# SPDX-License-Identifier: Apache-2.0
"""What is in the packages, and that the same sources give the same bytes."""
import hashlib
import json
import re
import subprocess

import pytest

import lkgfs_testlib as lib

pytestmark = pytest.mark.limit(600)  # the first test that asks for a package waits for its build

PROGRAMS = {"usr/bin/lkgfs", "usr/sbin/lkgfsd", "usr/libexec/lkgfs/lkgfs-engine", "usr/libexec/lkgfs/lkgfs-fs", "usr/libexec/lkgfs/lkgfs-notify"}
SBOM = "usr/share/doc/lkgfs/lkgfs.spdx.json"
SHARED = PROGRAMS | {
    "usr/sbin/mount.lkgfs", "usr/libexec/lkgfs/npd-check", "etc/lkgfs/config.yaml.example", "usr/lib/sysusers.d/lkgfs.conf", "usr/lib/tmpfiles.d/lkgfs.conf",
    "usr/share/fish/vendor_completions.d/lkgfs.fish",
    "usr/share/bash-completion/completions/lkgfs", "usr/bin/kubectl-lkgfs", "usr/share/man/man1/lkgfs.1.gz", "usr/share/man/man1/kubectl-lkgfs.1.gz", "usr/share/man/man5/lkgfs.conf.5.gz",
    "usr/share/man/man7/lkgfs-findings.7.gz", "usr/share/man/man7/lkgfs-view.7.gz", "usr/share/man/man8/lkgfsd.8.gz",
    "usr/share/man/man8/mount.lkgfs.8.gz", "usr/share/lkgfs/kubelet.service.d/20-lkgfs.conf", "usr/share/lkgfs/systemd/try-unit",
    "usr/share/doc/lkgfs/operations.md", "usr/share/doc/lkgfs/install.md", SBOM}


def listing(deb):
    """{path: (mode, owner)} of everything that is no directory."""
    found = {}
    for line in lib.run("dpkg-deb", "--contents", deb, check=True).stdout.decode().splitlines():
        mode, owner, _, _, _, path = line.split(None, 5)
        if not mode.startswith("d"):
            found[path.partition(" -> ")[0].removeprefix("./")] = mode, owner
    return found


@pytest.fixture(scope="session", name="tree")
def deb_tree(place, deb):
    folder = place / "deb-tree"
    lib.run("dpkg-deb", "--raw-extract", deb, folder, check=True)
    return folder


@pytest.fixture(scope="session", name="rpm")
def binary_rpm(rpms):
    return next(path for path in rpms.glob("lkgfs-*.rpm") if not path.name.endswith(".src.rpm") and "debug" not in path.name)


def field(deb, name):
    return lib.run("dpkg-deb", "--field", deb, name, check=True).stdout.decode().strip()


# ---- Debian ----

def test_lintian_has_no_errors_and_no_warnings(debs):
    result = lib.run("lintian", "--display-info", "--display-experimental", "--pedantic", "--no-cfg", next(debs.glob("*.changes")), timeout=120)
    lines = result.stdout.decode().splitlines()
    assert any(line.startswith("I: lkgfs: ") for line in lines), f"it did look: {result}"
    assert [line for line in lines if line.startswith(("E:", "W:")) or "hardening" in line or "override" in line] == []


def test_contents_of_the_debian_package(deb):
    files = listing(deb)
    unit, = {"lib/systemd/system/lkgfs.service", "usr/lib/systemd/system/lkgfs.service"} & set(files)  # the second one since Debian 13
    assert (SHARED | {unit, "usr/share/zsh/vendor-completions/_lkgfs", "etc/apparmor.d/lkgfs",
                      "usr/share/doc/lkgfs/copyright", "usr/share/doc/lkgfs/changelog.gz"}) - set(files) == set()
    assert {path for path in files if not path.startswith(("usr/share/", "usr/libexec/lkgfs/"))} == {
        "etc/apparmor.d/lkgfs", "etc/lkgfs/config.yaml.example", unit, "usr/bin/kubectl-lkgfs", "usr/bin/lkgfs",
        "usr/lib/sysusers.d/lkgfs.conf", "usr/lib/tmpfiles.d/lkgfs.conf", "usr/sbin/lkgfsd", "usr/sbin/mount.lkgfs"}
    assert {owner for _, owner in files.values()} == {"root/root"}
    for path, (mode, _) in files.items():
        assert mode in ("-rw-r--r--", "-rwxr-xr-x", "lrwxrwxrwx"), path
        assert (mode == "-rwxr-xr-x") == (path in PROGRAMS or path.endswith(("npd-check", "try-unit", "test-rbac", "github-action/run", "pre-commit/pre-commit"))), path


def test_only_our_two_files_of_etc_are_conffiles(tree):
    assert (tree / "DEBIAN/conffiles").read_text().split() == ["/etc/apparmor.d/lkgfs", "/etc/lkgfs/config.yaml.example"]


def test_it_depends_on_the_libraries_that_it_needs(deb):
    depends = {re.split(r"[ (|]", entry.strip())[0] for entry in field(deb, "Depends").split(",")}
    assert depends - {"libfuse3-3", "libssl3", "libfuse3-4", "libssl3t64"} == {"libc6", "libcurl4", "libjson-c5", "libsystemd0", "libyaml-0-2", "systemd"}
    assert depends >= {"libfuse3-3", "libssl3"} or depends >= {"libfuse3-4", "libssl3t64"}  # Debian 12, 13


def test_programs_are_stripped_and_symbols_are_in_a_package_of_their_own(debs, tree):
    for path in PROGRAMS:
        sections = lib.run("readelf", "--sections", "--wide", tree / path, check=True).stdout.decode()
        assert ".symtab" not in sections and ".debug_info" not in sections, path
    symbols = listing(next(debs.glob("lkgfs-dbgsym_*.deb")))
    assert len([path for path in symbols if "/.build-id/" in path]) == len(PROGRAMS)


def test_nothing_of_the_place_where_it_was_built_is_in_it(tree, packages):
    for path in tree.rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            assert b"lkgfs-deb." not in data and str(packages).encode() not in data and b"obj-x86" not in data, path


def test_no_script_starts_enables_or_stops_at_an_upgrade(tree):
    scripts = {name: (tree / "DEBIAN" / name).read_text() for name in ("postinst", "prerm", "postrm")}
    assert not (tree / "DEBIAN/preinst").exists()
    assert re.findall(r"deb-systemd-invoke (\S+) ", scripts["postinst"]) == ["try-restart"]
    assert re.findall(r"deb-systemd-invoke (\S+) ", scripts["prerm"]) == ["stop"]
    stop = scripts["prerm"].index("deb-systemd-invoke stop")
    assert '[ "$1" = remove ]' in scripts["prerm"][scripts["prerm"].rindex("\nif ", 0, stop):stop]
    lib.run("sh", "-n", tree / "DEBIAN/postinst", check=True)


def test_the_changelog_is_ours(debs, tree):
    text = subprocess.run(["gunzip"], input=(tree / "usr/share/doc/lkgfs/changelog.gz").read_bytes(), capture_output=True, check=True).stdout.decode()
    ours = (lib.REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    version = field(next(debs.glob("lkgfs_*.deb")), "Version")
    assert text.startswith(f"lkgfs ({version}) ")
    assert text.count("\n  * ") == len(re.findall(r"^\* ", ours, re.M))
    parsed = subprocess.run(["dpkg-parsechangelog", "--all", "-l-"], input=text, text=True, capture_output=True, check=True)
    assert parsed.stderr == "" and f"Version: {version}\n" in parsed.stdout


def test_a_build_leaves_the_checkout_as_it_was(debs, checkout):
    assert debs and lib.run("git", "status", "--porcelain", "--ignored", cwd=checkout, check=True).stdout == b""
    assert not (checkout / "debian").exists()


# ---- the same bytes ----

def test_checkout_and_tarball_give_the_same_packages(debs, debs_again):
    """Another folder, time, time zone, language, mask, and flags in the environment; one from git, one from `meson dist`."""
    for name in ("lkgfs", "lkgfs-dbgsym"):
        one, other = (next(folder.glob(f"{name}_*.deb")) for folder in (debs, debs_again))
        assert one.name == other.name
        assert one.read_bytes() == other.read_bytes(), name


def test_versions_before_a_release_are_older_than_it(deb):
    version = field(deb, "Version")
    release = re.search(r"version : '(.*)'", (lib.REPOSITORY / "meson.build").read_text())[1]
    if f"## {release} - unreleased" in (lib.REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"):
        assert re.fullmatch(re.escape(release) + r"~\d{14}", version)
        lib.run("dpkg", "--compare-versions", version, "lt", release, check=True)
    else:
        assert version == release


# ---- RPM ----

def rpm_query(rpm, *words):
    return lib.run("rpm", "--query", "--package", rpm, *words, check=True).stdout.decode()


def test_contents_of_the_rpm_package(rpm):
    files = {path.removeprefix("/") for path in rpm_query(rpm, "--list").splitlines()}
    # A distribution with RPM compresses manual pages itself.
    wanted = SHARED | {"usr/lib/systemd/system/lkgfs.service", "usr/share/zsh/site-functions/_lkgfs"}
    assert {path.removesuffix(".gz") for path in wanted} - {path.removesuffix(".gz") for path in files} == set()
    assert {path for path in files if path.startswith("etc/")} == {"etc/lkgfs", "etc/lkgfs/config.yaml.example"}
    assert rpm_query(rpm, "--configfiles") == "/etc/lkgfs/config.yaml.example\n"
    assert not any("system-preset" in path or ".wants" in path for path in files)


def test_the_source_package_has_the_checkout_and_knows_no_other_folder(rpms, checkout, tmp_path):
    """But for the folder of its results: so two builds for one folder are the same bytes."""
    package, = rpms.glob("*.src.rpm")
    lib.shell(f'cd {tmp_path} && rpm2archive - < "{package}" | tar -xz && tar -xf lkgfs-*.tar.xz', check=True)
    tree = next(path for path in tmp_path.iterdir() if path.is_dir())
    lib.run("diff", "--recursive", "--no-dereference", "--exclude=.git", checkout, tree, check=True)
    spec = lib.run("rpm", "--query", "--package", package, "--queryformat", "%{SPEC}", check=True).stdout.decode()
    assert set(re.findall(r"/\S*/(?=BUILD|SOURCES)", spec)) == {f"{rpms}/.lkgfs-rpm/"}


def test_scripts_of_the_rpm_package_enable_nothing(rpm):
    scripts = rpm_query(rpm, "--scripts")
    assert "preset" not in scripts and "enable" not in scripts.replace("disable", "")
    post, _, rest = scripts.partition("posttrans scriptlet")
    assert "try-restart lkgfs.service" in rest and "restart" not in post.replace("# After an upgrade: the restart hands", "")
    for text in re.split(r"^\w+ scriptlet \(using /bin/sh\):\n", scripts, flags=re.M)[1:]:
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)


def test_the_rpm_package_has_the_version_and_changelog_of_the_debian_one(rpm, deb):
    assert rpm_query(rpm, "--queryformat", "%{VERSION}") == field(deb, "Version")
    assert rpm_query(rpm, "--changelog").count("\n- ") == len(re.findall(r"^\* ", (lib.REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"), re.M))


# ---- bill of materials ----

def rpm_tree(rpm, folder):
    """The files of an RPM package."""
    folder.mkdir()
    lib.shell(f'rpm2archive - < "{rpm}" | tar -xz -C {folder}', check=True)
    return folder


@pytest.fixture(scope="session", params=["deb", "rpm"], name="bill")
def bill_of_materials(request, place):
    """(document, root, kind) of both packages."""
    if request.param == "deb":
        root = request.getfixturevalue("tree")
    else:
        root = rpm_tree(request.getfixturevalue("rpm"), place / "rpm-tree")
    return json.loads((root / SBOM).read_text(encoding="utf-8")), root, request.param


def test_the_bill_has_what_spdx_asks_for(bill):
    document, _, _ = bill
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0" and document["SPDXID"] == "SPDXRef-DOCUMENT"
    assert re.fullmatch(r"https://[^#\s]+", document["documentNamespace"]) and document["name"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["creationInfo"]["created"])
    assert all(re.match(r"(Tool|Organization|Person): \S", creator) for creator in document["creationInfo"]["creators"])
    elements = document["packages"] + document["files"]
    names = [element["SPDXID"] for element in elements]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in names)
    for element in document["packages"]:
        assert {"name", "versionInfo", "downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText"} <= set(element)
    known = set(names) | {"SPDXRef-DOCUMENT"}
    for relation in document["relationships"]:
        assert relation["spdxElementId"] in known and relation["relatedSpdxElement"] in known
        assert relation["relationshipType"] in ("DESCRIBES", "CONTAINS", "DYNAMIC_LINK")


def test_the_bill_has_each_file_with_its_checksums(bill):
    document, root, _ = bill
    listed = {file["fileName"].removeprefix("./"): {sum["algorithm"]: sum["checksumValue"] for sum in file["checksums"]} for file in document["files"]}
    there = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file() and not path.is_symlink()}
    there = {path: data for path, data in there.items() if path != SBOM and not path.startswith(("DEBIAN/", "usr/share/licenses/"))}
    assert {path: {"SHA1": hashlib.sha1(data).hexdigest(), "SHA256": hashlib.sha256(data).hexdigest()} for path, data in there.items()} == listed
    package = document["packages"][0]
    ones = "".join(sorted(sums["SHA1"] for sums in listed.values()))
    assert package["packageVerificationCode"] == {"packageVerificationCodeValue": hashlib.sha1(ones.encode()).hexdigest(),
                                                  "packageVerificationCodeExcludedFiles": ["./" + SBOM]}


def test_the_bill_has_the_libraries_with_their_versions(bill, deb):
    document, root, kind = bill
    package, *libraries = document["packages"]
    assert (package["name"], package["licenseDeclared"]) == ("lkgfs", "Apache-2.0")
    assert package["externalRefs"][0]["referenceLocator"].startswith(f"pkg:{kind}/lkgfs@")
    linked = {relation["relatedSpdxElement"] for relation in document["relationships"] if relation["relationshipType"] == "DYNAMIC_LINK"}
    assert linked == {library["SPDXID"] for library in libraries}
    needed = {"libcurl.so.4"}  # loaded by name
    for path in PROGRAMS:
        needed |= set(re.findall(r"NEEDED.*\[(lib[^]]+)\]", lib.run("readelf", "-dW", root / path, check=True).stdout.decode()))
    assert {library["comment"].removeprefix("linked as ") for library in libraries} == needed
    depends = {re.split(r"[ (|]", entry.strip())[0] for entry in field(deb, "Depends").split(",")} - {"systemd"}
    assert depends <= {library["name"].replace("libcurl4t64", "libcurl4") for library in libraries}  # the first of two that may be
    for library in libraries:
        installed = lib.run("dpkg-query", "--show", "--showformat=${Version}\n", library["name"], check=True).stdout.decode().split()
        assert library["versionInfo"] in installed and library["licenseDeclared"] != "NOASSERTION", library
