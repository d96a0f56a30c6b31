# SPDX-License-Identifier: Apache-2.0
"""Starting, stopping, refusing to start, recovering; ways to mount and to name files."""
import contextlib
import errno
import json
import os
import pwd
import signal
import stat
import subprocess

import pytest

import lkgfs_testlib as lib
from lkgfs_inject import Injected

PR_GET_DUMPABLE = 3

EX_USAGE, EX_UNAVAILABLE, EX_NOPERM, EX_CONFIG = 64, 69, 77, 78


def refusal(mount, *argv, config=None):
    """Run lkgfsd in the foreground when it must refuse; (exit code, stderr)."""
    argv = argv or ("--config", config or mount.config_path, mount.mountpoint)
    result = lib.run(lib.LKGFSD, *argv)
    assert not lib.is_mounted(mount.mountpoint)
    return result.returncode, result.stderr.decode(errors="replace")


def test_over_and_clean_stop(mount):
    assert lib.is_mounted(mount.mountpoint)
    children = {name: mount.child(name) for name in ("lkgfs-fs", "lkgfs-engine", "lkgfs-notify")}
    assert mount.stop() == 0
    assert lib.mounts_below(mount.root) == []
    for name, pid in children.items():
        assert lib.start_time(pid) is None, f"{name} is still there"
    assert lib.read_file(os.path.join(mount.source, "kubelet.conf")).decode() == lib.BASE


def test_aside(mounts):
    mount = mounts(over=False)
    assert "\nmaxPods: 64\n" in mount.document()
    assert lib.read_file(os.path.join(mount.source, "kubelet.conf")).decode() == lib.BASE, "the source is as it was"
    mount.drop("50-a.conf", "maxPods: 5\n")
    assert "\nmaxPods: 5\n" in mount.document()
    lib.write_file(os.path.join(mount.source, "kubelet.conf.d", "50-a.conf"), lib.HEADER + "maxPods: 6\n")
    mount.wait_for(lambda: "\nmaxPods: 6\n" in mount.document(), timeout=5)
    assert mount.stop() == 0
    assert os.listdir(mount.mountpoint) == []


def test_fallback_after_stop_and_crash(mounts):
    """Rule: docs/specification.md 2.16."""
    mount = mounts(base_name="base.yaml", components=[{"name": "kubelet", "base": "base.yaml"}])
    mount.drop("50-a.conf", "maxPods: 77\n")
    document = mount.document()
    assert mount.stop() == 0
    for name in (".lkgfs-fallback/kubelet.conf", "kubelet.conf"):
        path = os.path.join(mount.source, name)
        assert lib.read_file(path).decode() == document
        assert os.stat(path).st_mode & 0o777 == 0o600
        assert os.getxattr(path, "user.lkgfs.fallback")
    mount.start()
    assert mount.document() == document
    mount.drop("50-a.conf", "maxPods: 78\n")
    document = mount.document()
    kept = mount.behind(".lkgfs-fallback", "kubelet.conf")
    mount.wait_for(lambda: lib.read_file(kept).decode() == document, "kept soon after it was published")
    for pid in (mount.process.pid, *mount.children().values()):
        lib.kill_and_wait(pid)
    mount.process.wait()
    for point, _ in reversed(lib.mounts_below(mount.root)):
        lib.run("umount", "-l", point)
    assert lib.read_file(os.path.join(mount.source, ".lkgfs-fallback", "kubelet.conf")).decode() == document


def test_fallback_is_never_a_base(mounts):
    """The fallback document under the view's name must not become a layer when the base is gone.

    Rule: docs/specification.md 2.16.
    """
    mount = mounts(base_name="base.yaml", components=[{"name": "kubelet", "base": "base.yaml"}])
    assert mount.stop() == 0
    assert os.path.exists(os.path.join(mount.source, "kubelet.conf"))
    mount.write_config(None, None)  # the default: the base is kubelet.conf
    mount.start()
    assert mount.status("condition").startswith("False failed to validate current (init), 1 error, ")
    assert "kubelet.conf: error: the base does not exist" in mount.status("findings")
    assert mount.status("active").strip() == "init", "what was served last had one"


def test_second_daemon_is_refused(mount):
    code, text = subprocess_refusal(mount, mount.config_path, mount.mountpoint)
    assert code == EX_UNAVAILABLE and mount.mountpoint in text
    other = os.path.join(mount.root, "other")
    os.mkdir(other)
    code, text = subprocess_refusal(mount, mount.config_path, other)
    assert code == EX_UNAVAILABLE and mount.state in text
    assert mount.document()


def subprocess_refusal(mount, config, point):
    del mount
    result = lib.run(lib.LKGFSD, "--config", config, point)
    return result.returncode, result.stderr.decode()


def test_bad_mount_points(mounts):
    mount = mounts(start=False)
    code, text = refusal(mount, "--config", mount.config_path, os.path.join(mount.root, "missing"))
    assert code == EX_USAGE and "missing" in text
    code, text = refusal(mount, "--config", mount.config_path, mount.config_path)
    assert code == EX_USAGE and "directory" in text
    code, text = refusal(mount, "--config", mount.config_path)
    assert code == EX_USAGE
    code, text = refusal(mount, "--nonsense", mount.mountpoint)
    assert code == EX_USAGE and "--nonsense" in text
    assert lib.run(lib.LKGFSD, "--help").returncode == 0
    assert lib.run(lib.LKGFSD, "--version").stdout.strip()


def test_no_device_and_no_privilege(mounts):
    mount = mounts(start=False)
    result = lib.run("unshare", "-m", "sh", "-c",
                     "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && "
                     f"exec {lib.LKGFSD} --config {mount.config_path} {mount.mountpoint}")
    assert result.returncode == EX_UNAVAILABLE and b"/dev/fuse" in result.stderr
    result = lib.run(mount.for_everybody(lib.LKGFSD), "--config", mount.config_path, mount.mountpoint, user=65534,
                     group=65534, extra_groups=[])
    assert result.returncode == EX_NOPERM and b"root" in result.stderr


@pytest.mark.parametrize("which", ["state", "runtime"])
def test_a_directory_that_is_open_to_others(mounts, which):
    """A wide mode is repaired and logged; a file that another user has put there, or another owner, is refused."""
    mount = mounts(start=False)
    path = getattr(mount, which)
    os.mkdir(path)
    os.chmod(path, 0o777)
    mount.start()
    assert stat.S_IMODE(os.stat(path).st_mode) == (0o700 if which == "state" else 0o755)
    assert f"{path} had mode 0777" in mount.log()
    mount.stop()
    os.chmod(path, 0o777)
    lib.write_file(os.path.join(path, "lock-of-nobody"), "")
    os.chown(os.path.join(path, "lock-of-nobody"), 65534, 65534)
    code, text = refusal(mount, "--config", mount.config_path, mount.mountpoint)
    assert code == EX_NOPERM and path in text and "lock-of-nobody" in text and "0777" in text
    os.unlink(os.path.join(path, "lock-of-nobody"))
    os.chown(path, 65534, 65534)
    code, text = refusal(mount, "--config", mount.config_path, mount.mountpoint)
    assert code == EX_NOPERM and path in text and "65534" in text
    os.chown(path, 0, 0)
    mount.start()
    assert mount.condition()[0] == "True"


@pytest.mark.parametrize("which", ["state", "runtime"])
def test_a_directory_that_others_could_replace(mounts, which):
    """A user who can write to a parent directory could put a symlink there, and the next start would hand over another tree."""
    mount = mounts(start=False)
    above, victim = os.path.join(mount.root, "above"), os.path.join(mount.root, "victim")
    os.makedirs(os.path.join(victim, "sub"))
    lib.write_file(os.path.join(victim, "cron"), "root's")
    os.chmod(victim, 0o711)
    os.mkdir(above)
    setattr(mount, which, os.path.join(above, "lkgfs"))
    mount.write_config()

    def refused(owner, mode):
        code, text = refusal(mount, "--config", mount.config_path, mount.mountpoint)
        assert code == EX_NOPERM and f"{above} (user {owner}, mode {mode})" in text and f"choose another {which}Dir" in text
        assert {os.stat(path).st_uid for path in (victim, *(entry.path for entry in os.scandir(victim)))} == {0}
        assert stat.S_IMODE(os.stat(victim).st_mode) == 0o711

    os.chmod(above, 0o777)
    refused(0, "0777")
    assert not os.listdir(above)  # nothing was created in it
    os.symlink(victim, os.path.join(above, "lkgfs"))
    refused(0, "0777")
    os.chmod(above, 0o755)
    os.chown(above, 65534, 65534)
    refused(65534, "0755")
    os.chown(above, 0, 0)
    os.unlink(os.path.join(above, "lkgfs"))
    os.chmod(above, 0o1777)  # like /tmp: others cannot replace what is root's in it
    os.symlink(victim, os.path.join(above, "lkgfs"))
    os.chown(os.path.join(above, "lkgfs"), 65534, 65534, follow_symlinks=False)
    code, text = refusal(mount, "--config", mount.config_path, mount.mountpoint)
    assert code == EX_NOPERM and "a link" in text
    os.unlink(os.path.join(above, "lkgfs"))
    for _ in range(2):  # the second time it belongs to engineUser
        mount.start()
        assert mount.condition()[0] == "True"
        mount.stop()


def test_nobody_attaches_to_it(mounts):
    """It handles credentials: it is not dumpable, so only CAP_SYS_PTRACE can inspect it."""
    mount = mounts()
    for pid in (mount.process.pid, mount.child("lkgfs-fs"), mount.child("lkgfs-notify")):
        with Injected(pid) as process:
            assert process.call("prctl", PR_GET_DUMPABLE, 0, 0, 0, 0) == 0


def test_stale_mount_is_recovered(mounts):
    mount = mounts()
    for pid in (mount.process.pid, *mount.children().values()):
        lib.kill_and_wait(pid)
    mount.process.wait()
    assert lib.is_mounted(mount.mountpoint)
    assert lib.error_of(os.listdir, mount.mountpoint) in (errno.ENOTCONN, errno.ECONNABORTED)  # the latter: the last descriptor just went
    mount.start()
    assert "\nmaxPods: 64\n" in mount.document()
    assert mount.stop() == 0
    assert lib.mounts_below(mount.root) == []


def test_a_mount_inside_goes_with_an_adopted_view(mounts):
    """An earlier build attached directories of the source as mounts of their own."""
    mount = mounts()
    inside = mount.path("pki")
    lib.shell(f"mount -t tmpfs inside {inside}")
    mount.kill_supervisor()
    mount.start()
    assert os.path.ismount(inside)
    assert mount.stop() == 0
    assert lib.mounts_below(mount.root) == []


def parent_of(pid):
    """Return its parent's pid, or 0 if it has ended meanwhile."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return 0


def test_background(mounts):
    mount = mounts(start=False)
    result = lib.run(lib.LKGFSD, "--background", "--config", mount.config_path, mount.mountpoint)
    assert result.returncode == 0, result.stderr
    assert "\nmaxPods: 64\n" in mount.document(), "it returns when the view is served"
    pids = [pid for pid in lib.processes_naming(mount.config_path) if lib.program_of(pid) == "lkgfsd"]
    pids = [pid for pid in pids if parent_of(pid) not in (0, *pids)]  # without the helpers that it forks to ask for versions
    assert len(pids) == 1
    assert lib.kill_and_wait(pids[0], signal.SIGTERM)
    mount.wait_for(lambda: not lib.is_mounted(mount.mountpoint))


def test_mount_helper(mounts):
    mount = mounts(start=False)
    helper = os.path.join(mount.root, "mount.lkgfs")
    os.symlink(lib.LKGFSD, helper)
    options = f"rw,nofail,x-systemd.automount,config={mount.config_path}"
    result = lib.run(helper, "none", mount.mountpoint, "-o", options)
    assert result.returncode == 0, result.stderr
    assert "\nmaxPods: 64\n" in mount.document()
    assert lib.run(helper, "none", mount.mountpoint, "-o", "nonsense").returncode == 1


def test_kubeconfig_under_the_view_name(mounts):
    """kubelet.conf as kubeadm writes it: refused with the default configuration, and the message says what to do.

    Rule: docs/specification.md 2.15.
    """
    mount = mounts(start=False, base=lib.KUBECONFIG)
    code, text = refusal(mount)
    assert code == EX_CONFIG
    assert "kubeconfig" in text and "file: kubelet-config.yaml" in text
    assert "192.0.2.1" not in text
    lib.write_file(os.path.join(mount.source, "base.yaml"), lib.BASE)
    mount.write_config(None, [{"name": "kubelet", "file": "kubelet-config.yaml", "base": "base.yaml"}])
    mount.start()
    assert "\nmaxPods: 64\n" in mount.document("kubelet-config.yaml")
    assert mount.read("kubelet.conf").decode() == lib.KUBECONFIG
    for directory, _, files in os.walk(mount.path("history")):
        for name in files:
            assert b"192.0.2.1:6443" not in lib.read_file(os.path.join(directory, name))


def test_no_layer_at_all(mounts):
    """Rule: docs/specification.md 2.1."""
    mount = mounts(base=None, dropins=False, instance=None)
    path = mount.path("kubelet.conf")
    assert lib.error_of(os.stat, path) == errno.ENOENT
    lib.write_file(path, lib.KUBECONFIG, 0o600)
    assert mount.read("kubelet.conf").decode() == lib.KUBECONFIG
    mount.wait_for(lambda: "name taken" in mount.status("condition"))
    lib.write_file(path, lib.KUBECONFIG + "# changed\n")
    assert mount.read("kubelet.conf").decode() == lib.KUBECONFIG + "# changed\n"
    os.unlink(path)
    lib.write_file(path, lib.BASE, 0o600)
    mount.wait_for(lambda: "\nmaxPods: 110\n" in mount.document() and mount.document().startswith("#"))
    assert mount.read("kubelet.conf.base").decode() == lib.BASE


def test_aliases(mounts):
    """Rule: docs/specification.md 2.1."""
    mount = mounts(components=[{"name": "kubelet", "aliases": ["kubelet-config.yaml", "config.yaml"], "mode": "0640"}])
    for name in ("kubelet-config.yaml", "config.yaml"):
        assert mount.document(name) == mount.document()
        assert os.stat(mount.path(name)).st_mode & 0o777 == 0o640
        assert lib.error_of(os.unlink, mount.path(name)) == errno.EPERM
        assert name in os.listdir(mount.mountpoint)
    mount.drop("50-a.conf", "maxPods: 3\n")
    assert "\nmaxPods: 3\n" in mount.document("config.yaml")


@pytest.mark.parametrize("name", [".lkgfs", "about"])
def test_virtual_dir(mounts, name):
    """Rule: docs/specification.md 2.1."""
    mount = mounts(config={"virtualDir": name})
    os.mkdir(mount.path("status"))
    lib.write_file(mount.path("status", "mine"), "x")
    assert mount.status("generation").strip().isdigit()
    assert sorted(os.listdir(mount.path(name))) == ["bad", "control", "history", "layers", "lkg", "status"]
    mount.command("sync", "now")
    assert mount.tool("status").returncode == 0
    assert mount.tool("hold", "on").returncode == 0
    assert f"`echo off > {name}/control/kubelet/hold`" in mount.status("condition")  # as typed in the root of the view
    assert f"written to {name}/control/kubelet/hold [LKG4019]" in mount.status("findings")


def test_reserved_name_in_the_source_is_reported(mounts):
    """Rule: docs/specification.md 2.1."""
    def tree(directory, **options):
        lib.make_tree(directory, **options)
        os.mkdir(os.path.join(directory, "status"))
        lib.write_file(os.path.join(directory, "status", "mine"), "x")

    mount = mounts(tree=tree)
    assert "status" in mount.log()
    assert os.listdir(mount.path("status")) == ["kubelet"]
    assert "status" in mount.status("findings")


def test_base_writes_through(mounts):
    mount = mounts(components=[{"name": "kubelet", "baseWrites": "through"}])
    lib.write_file(mount.path("kubelet.conf"), lib.BASE.replace("cluster.local", "through.example"))
    assert "clusterDomain: through.example\n" in mount.document() and "\nmaxPods: 64\n" in mount.document()
    assert "through.example" in mount.read("kubelet.conf.base").decode()
    temporary = mount.path("tmp", "new")
    lib.write_file(temporary, lib.BASE, 0o600)
    os.rename(temporary, mount.path("kubelet.conf"))
    assert "clusterDomain: cluster.local\n" in mount.document()
    assert mount.read("kubelet.conf.base").decode() == lib.BASE


def test_invalid_at_the_first_start(mounts):
    mount = mounts(start=False, dropins={"10-bad.conf": "maxPods: [\n", "20-worse.conf": "- 1\n"})
    code, text = refusal(mount)
    assert code == EX_CONFIG
    assert "10-bad.conf" in text and "20-worse.conf" in text, "every finding"


def test_configuration_mistakes(mounts):
    mount = mounts(start=False)
    header = "kind: LkgfsConfiguration\napiVersion: config.lkgfs.io/v1alpha1\n"
    for text, word in (("{", ""), (header + "stateDirr: /x\n", "stateDirr"),
                       (header + "historyLimit: lots\n", "historyLimit"),
                       ("kind: Other\napiVersion: v1\n", "Other"), ("", "empty"),
                       (header + "historyLimit: 3\nhistoryLimit: 4\nstateDirr: /x\n", "stateDirr")):
        lib.write_file(mount.config_path, text)
        code, message = refusal(mount)
        assert code == EX_CONFIG and word in message, message
    mount.write_config()
    os.chmod(mount.config_path, 0o666)
    code, message = refusal(mount)
    assert code == EX_NOPERM and "config.yaml" in message
    os.chmod(mount.config_path, 0o600)
    os.chown(mount.config_path, 65534, 65534)
    assert refusal(mount)[0] == EX_NOPERM


@pytest.mark.parametrize("end", ["", "/", "/state", "/state/"])
def test_the_view_does_not_hide_our_own_directories(mounts, end):
    mount = mounts(start=False)
    document = json.loads(lib.read_file(mount.config_path))
    for name in ("stateDir", "runtimeDir"):
        lib.write_file(mount.config_path, json.dumps({**document, name: mount.mountpoint + end}))
        code, message = refusal(mount)
        assert code == EX_CONFIG and name in message, message


def test_who_reads_the_configuration_is_confined(mounts):
    """A process of its own: a user who owns nothing, who can read and nothing else, with the engine's system calls."""
    mount = mounts(start=False)
    document = json.loads(lib.read_file(mount.config_path))
    lib.write_file(mount.config_path, json.dumps({**document, "takesLong": list(range(100000))}))
    seen = set()
    want = ("2", str(next((entry.pw_uid for entry in pwd.getpwall() if entry.pw_name == "lkgfs"), 65534)), "4")
    for _ in range(40):  # it may be gone before we look
        process = mount.start(wait_ready=False)
        while process.poll() is None:
            with contextlib.suppress(OSError):
                for pid in lib.read_file(f"/proc/{process.pid}/task/{process.pid}/children").decode().split():
                    fields = dict(line.split(":", 1) for line in lib.read_file(f"/proc/{pid}/status").decode().splitlines())
                    seen.add((fields["Seccomp"].strip(), fields["Uid"].split()[1], fields["CapPrm"].strip().lstrip("0")))
        assert process.returncode == EX_CONFIG
    assert want in seen


def test_reload(mount):
    mount.write_config({"historyLimit": 2})
    mount.reload()
    for value in range(5):
        mount.drop("50-a.conf", f"maxPods: {value + 1}\n")
    mount.wait_for(lambda: len(os.listdir(mount.path("history", "kubelet"))) <= 2)
    mount.write_config({"historyLimit": "many"})
    mount.process.send_signal(signal.SIGHUP)
    mount.drop("50-a.conf", "maxPods: 99\n")
    assert "\nmaxPods: 99\n" in mount.document(), "a bad configuration changes nothing"
    mount.wait_for(lambda: "historyLimit" in mount.status("findings"), "and is a finding")


def test_busy_unmount(mount):
    fd = os.open(mount.path("kubelet.conf"), os.O_RDONLY)
    document = os.pread(fd, 1 << 16, 0)
    process = mount.process
    process.send_signal(signal.SIGTERM)
    mount.wait_for(lambda: not lib.is_mounted(mount.mountpoint), "the name is free although a file is open")
    assert os.pread(fd, 1 << 16, 0) == document
    os.close(fd)
    assert process.wait(lib.TIMEOUT_S) == 0


def test_bind_mounts_see_the_view(mount):
    target = os.path.join(mount.root, "bind")
    os.mkdir(target)
    lib.run("mount", "--bind", mount.mountpoint, target, check=True)
    mount.drop("50-a.conf", "maxPods: 11\n")
    assert "\nmaxPods: 11\n" in lib.read_file(os.path.join(target, "kubelet.conf")).decode()
    lib.run("umount", target, check=True)


def test_an_overlay_of_the_view_is_at_its_end_with_the_next_generation(mount):
    """A documented limit; the bind mount above is what to use instead."""
    top, upper, work = (os.path.join(mount.root, name) for name in ("overlay", "upper", "work"))
    for path in (top, upper, work):
        os.mkdir(path)
    merged = os.path.join(top, "kubelet.conf")
    lib.run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={mount.mountpoint},upperdir={upper},workdir={work}", top, check=True)
    try:
        assert lib.read_file(merged).decode() == mount.document()
        mount.drop("50-a.conf", "maxPods: 11\n")
        with pytest.raises(OSError) as caught:
            lib.read_file(merged)
        assert caught.value.errno == errno.ESTALE
    finally:
        lib.run("umount", top, check=True)


def test_the_type_that_is_excluded_from_walks(mount):
    """lkgfs-view(7) names it for PRUNEFS."""
    mounts = [line.split() for line in lib.read_file("/proc/self/mounts").decode().splitlines()]
    assert [fields[2] for fields in mounts if fields[1] == mount.mountpoint][-1] == "fuse.lkgfs"
    assert "fuse.lkgfs" in (lib.REPOSITORY / "docs/man/lkgfs-view.7").read_text()


def test_own_paths_never_lead_through_the_view(mounts):
    """A layer whose path is below the mount point is found in the source directory, not through our own mount."""
    mount = mounts(start=False)
    mount.write_config(None, [{"name": "kubelet", "instance": os.path.join(mount.mountpoint, "kubelet-instance.conf")}])
    mount.start()
    assert "providerID: example://192.0.2.17\n" in mount.document()
    mount.write("kubelet-instance.conf", lib.HEADER + "providerID: example://192.0.2.18\n")
    mount.wait_for(lambda: "providerID: example://192.0.2.18\n" in mount.document(), timeout=5)


def test_descriptors_are_not_inherited(mount):
    """Only the supervisor and the file server hold the device."""
    mount.child("lkgfs-notify")  # it starts after the view is there
    holders = {}
    for name, pid in {**mount.children(), "lkgfsd": mount.process.pid}.items():
        holders[name] = "/dev/fuse" in [target for _, target in lib.open_files(pid)]
    assert holders == {"lkgfsd": True, "lkgfs-fs": True, "lkgfs-engine": False, "lkgfs-notify": False}


def test_a_container_keeps_what_it_has_mounted(mounts):
    """A part of the view is mounted in another namespace, as a hostPath of a static pod is: it outlives a stop and a start, and its file
    server does not outlive it."""
    mount = mounts(tree=lambda root: (lib.make_tree(root), lib.write_file(os.path.join(root, "pki/ca.crt"), "1\n")))
    holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", f"mount --bind {mount.path('pki')} /mnt && echo && read -r end"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    file = f"/proc/{holder.pid}/root/mnt/ca.crt"
    try:
        assert holder.stdout.readline() == b"\n" and lib.read_file(file) == b"1\n"
        server = mount.child("lkgfs-fs")
        assert mount.stop() == 0 and not lib.is_mounted(mount.mountpoint)
        assert lib.read_file(file) == b"1\n"
        mount.start()
        mount.write("pki/ca.crt", "2\n")
        assert lib.read_file(file) == b"2\n" and mount.child("lkgfs-fs") != server and os.path.exists(f"/proc/{server}")
    finally:
        holder.communicate()
    mount.wait_for(lambda: not os.path.exists(f"/proc/{server}"), "the end of the first file server")
    assert "\nmaxPods: 64\n" in mount.document()
