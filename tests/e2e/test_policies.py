# SPDX-License-Identifier: Apache-2.0
"""The environment of the processes: the unit, their mount namespace, AppArmor, SELinux."""
import os
import re
import shutil
import subprocess

import pytest

import lkgfs_testlib as lib

UNIT = lib.BUILD / "contrib/lkgfs.service"
PROFILE = lib.BUILD / "contrib/lkgfs"
MODULE = lib.REPOSITORY / "contrib/selinux"
CHILDREN = ("lkgfs-engine", "lkgfs-fs", "lkgfs-notify")


def settings():
    pairs = [line.partition("=") for line in UNIT.read_text().splitlines() if line and line[0] not in "#["]
    found = {}
    for name, _, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def need(*programs):
    for program in programs:
        if not shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin"):
            pytest.skip(f"{program} is not installed")


# ---- the unit ----

def test_exposure_of_the_unit():
    need("systemd-analyze")
    result = lib.run("systemd-analyze", "security", "--offline=true", "--threshold=40", "--no-pager", UNIT)
    assert result.returncode == 0, result.stdout.decode().splitlines()[-1]


def test_the_unit_bounds_what_it_uses():
    unit = settings()
    assert unit["MemoryMax"] and int(unit["TasksMax"][0]) >= 256
    assert unit["DevicePolicy"] == ["closed"] and "/dev/fuse rw" in unit["DeviceAllow"]
    assert unit["RestrictNamespaces"] == ["mnt"]
    assert unit["IPAddressDeny"] and unit["SystemCallFilter"] and unit["SystemCallArchitectures"] == ["native"]
    capabilities = set(" ".join(unit["CapabilityBoundingSet"]).split())
    assert capabilities == {"CAP_" + name for name in (
        "SYS_ADMIN SYS_CHROOT SETUID SETGID SETPCAP KILL SYS_PTRACE CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID SETFCAP").split()}


def test_a_unit_with_a_mount_namespace_mounts_on_the_node():
    """Each of these options gives the unit a mount namespace of its own, and mounts made there do not show on the node."""
    unit = settings()
    apart = {name for name in unit if re.match(r"Private(Mounts|Tmp|Devices)|Protect(System|Home|Kernel|Control|Proc)|(ReadOnly|ReadWrite|Inaccessible|Bind)",
                                               name)}
    assert apart and "--mount-namespace=/proc/1/ns/mnt" in unit["ExecStart"][0]


# ---- the mount namespace ----

WRAPPER = """#!/bin/sh
exec unshare -m --propagation slave sh -c '
mount -t tmpfs -o ro here {apart} && exec {lkgfsd} "$@"' sh "$@"
"""


@pytest.fixture
def apart(mounts):
    """A mount whose lkgfsd was started in a mount namespace of its own, and was told to mount in ours."""
    mount = mounts(start=False)
    folder = os.path.join(mount.root, "apart")
    os.mkdir(folder)
    lib.write_file(os.path.join(folder, "on-the-node"), "")
    wrapper = os.path.join(mount.root, "start")
    lib.write_file(wrapper, WRAPPER.format(apart=folder, lkgfsd=mount.lkgfsd), 0o755)
    os.chmod(wrapper, 0o755)
    mount.lkgfsd = wrapper
    mount.start(extra=("--mount-namespace", f"/proc/{os.getpid()}/ns/mnt"))
    return mount


def namespace(pid):
    return os.readlink(f"/proc/{pid}/ns/mnt")


def test_lkgfsd_mounts_where_it_was_told(apart):
    assert os.path.ismount(apart.mountpoint)
    assert namespace(apart.process.pid) == namespace(os.getpid())
    apart.drop("50-x.conf", "maxPods: 77\n")
    assert "\nmaxPods: 77\n" in apart.document()


@pytest.mark.parametrize("name", CHILDREN)
def test_its_children_stay_where_it_was_started(apart, name):
    """Replacements of dead children, too: what is read-only in that namespace is read-only for them, whatever the node has."""
    folder = os.path.join(apart.root, "apart")
    first = apart.child(name)
    lib.kill_and_wait(first)
    apart.document()
    apart.wait_for(lambda: apart.children().get(name) not in (None, first) and
                   os.path.basename(os.readlink(f"/proc/{apart.children()[name]}/exe")) == name)
    pid = apart.children()[name]
    assert namespace(pid) != namespace(os.getpid())
    assert os.listdir(f"/proc/{pid}/root{folder}") == []
    with pytest.raises(OSError):
        lib.write_file(f"/proc/{pid}/root{folder}/new", "")
    apart.drop("50-x.conf", "maxPods: 78\n")
    assert "\nmaxPods: 78\n" in apart.document()


def test_who_is_foreign_is_measured_where_it_mounts(apart):
    """The namespace of the mount counts, not the one where lkgfsd was started: we may write, other namespaces may not."""
    apart.command("hold", "on")
    apart.command("hold", "off")
    result = lib.run("unshare", "-m", "touch", os.path.join(apart.mountpoint, "kubelet.conf.d/60-foreign.conf"))
    assert b"Read-only file system" in result.stderr
    assert not os.path.exists(os.path.join(apart.mountpoint, "kubelet.conf.d/60-foreign.conf"))


def test_a_mount_namespace_that_is_none(mounts):
    mount = mounts(start=False)
    process = mount.start(wait_ready=False, extra=("--mount-namespace", "/dev/null"))
    assert process.wait(lib.TIMEOUT_S) == 77
    assert "enter the mount namespace /dev/null" in mount.log()


# ---- AppArmor ----

def test_apparmor_profiles_can_be_loaded():
    need("apparmor_parser")
    result = lib.run("/usr/sbin/apparmor_parser", "-QTK", PROFILE)
    assert result.returncode == 0, result.stderr.decode()
    names = lib.run("/usr/sbin/apparmor_parser", "-N", PROFILE).stdout.decode().split()
    assert {"lkgfsd", "lkgfs", *CHILDREN} <= set(names)


def test_no_child_can_run_a_program():
    """Their profiles have no rule with an x."""
    text = re.sub(r"#.*", "", PROFILE.read_text())
    for name in CHILDREN:
        body = text.split(f"profile {name} ")[1].split("\n}")[0]
        for rule in re.findall(r"^\s*(?:audit )?(?:owner )?[/@]\S*\s+(\S+?),", body, re.M):
            assert "x" not in rule, f"{name}: {rule}"


def rules_of(profile):
    text = re.sub(r"#.*", "", PROFILE.read_text())
    return text.split(f"profile {profile} ")[1].split("\n}")[0]


def test_the_engine_has_no_rule_for_what_it_does_not_do():
    """No sockets on the node, no message bus, nothing below the source directory; it reads, changes to its user, drops the rest."""
    rules = rules_of("lkgfs-engine")
    assert not re.search(r"network unix|^\s*unix,|dbus|abstractions/nameservice|\bconnect\b|\bbind\b|\bmount\b|lkgfs-fallback", rules, re.M)
    assert re.findall(r"capability (\w+),", rules) == ["dac_read_search", "setgid", "setpcap", "setuid"]
    writes = re.findall(r"^\s*(/\S*|@\S*)\s+\w*[wl]\w*,", rules, re.M)
    assert writes == ["@{LKGFS_RUN}/**", "@{LKGFS_STATE}/**", "/dev/null"]


@pytest.mark.parametrize("name", CHILDREN)
def test_who_drops_its_bounding_set_may(name):
    """Without the capability the bounding set would silently stay as it is."""
    assert "capability setpcap," in rules_of(name)


# ---- the user of the engine ----

def test_the_package_makes_the_user_of_the_engine(tmp_path):
    """The default user of lkgfs.conf(5): it cannot log in, and owns no directory."""
    need("systemd-sysusers")
    (tmp_path / "etc").mkdir()
    lib.run("systemd-sysusers", f"--root={tmp_path}", lib.REPOSITORY / "contrib/systemd/lkgfs.sysusers", check=True)
    fields = (tmp_path / "etc/passwd").read_text().strip().split(":")
    assert fields[0] == "lkgfs" and 0 < int(fields[2]) < 1000 and fields[5] == "/nonexistent" and fields[6].endswith("nologin")
    default = re.search(r'LKG_ENGINE_USER +"(\w+)"', (lib.REPOSITORY / "include/lkg/config.h").read_text()).group(1)
    assert default == "lkgfs"


# ---- SELinux ----

def test_selinux_the_engine_has_no_rule_for_what_it_does_not_do():
    text = (MODULE / "lkgfs.te").read_text()
    assert not re.search(r"(files_manage_\w+|dbus\w*|init_\w+|auth_use_nsswitch)\(lkgfs_engine_t", text)
    assert "unix_stream_socket connectto" not in "".join(line for line in text.splitlines() if line.startswith("allow lkgfs_engine_t"))
    for domain in ("lkgfs_engine_t", "lkgfs_fs_t", "lkgfs_notify_t"):
        assert re.search(rf"^allow {domain} self:capability .*\bsetpcap\b", text, re.M), domain


def test_selinux_module_compiles(tmp_path):
    makefile = "/usr/share/selinux/devel/Makefile"
    need("checkmodule", "semodule_package", "make")
    if not os.path.exists(makefile):
        pytest.skip("selinux-policy-dev is not installed")
    for path in MODULE.glob("lkgfs.*"):
        shutil.copy(path, tmp_path)
    result = subprocess.run(["make", "-C", tmp_path, "-f", makefile, "lkgfs.pp"], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0 and "error" not in result.stderr.lower(), result.stdout + result.stderr
    assert (tmp_path / "lkgfs.pp").stat().st_size > 1000


def test_selinux_domains_are_permissive_as_the_readme_says():
    text = (MODULE / "lkgfs.te").read_text()
    domains = set(re.findall(r"^type (lkgfs\w*_t);", text, re.M)) & {"lkgfsd_t", "lkgfs_engine_t", "lkgfs_fs_t", "lkgfs_notify_t"}
    assert len(domains) == 4 and set(re.findall(r"^permissive (\w+);", text, re.M)) == domains
