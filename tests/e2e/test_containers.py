# SPDX-License-Identifier: Apache-2.0
"""Callers in another mount namespace may read what the modes allow, and may change nothing unless configured otherwise.

Rule: docs/specification.md 2.9.
"""
import contextlib
import errno
import os
import pathlib
import stat
import time

import pytest

import lkgfs_testlib as lib
from lkgfs_container import (MS_BIND, MS_REC, MS_SHARED, Container, Volume, mount as mount_call, open_only, read_file, setxattr,
                             umount, write_file)

K = "/etc/kubernetes"
DROPIN = f"{K}/kubelet.conf.d/20-pods.conf"


def mutations(directory):
    """Return every call that changes something that is passed through, by name."""
    name = os.path.join(directory, "kubelet.conf.d", "20-pods.conf")
    new = os.path.join(directory, "kubelet.conf.d", "90-new.conf")
    return {
        "create": (write_file, new),
        "open for writing": (open_only, name, os.O_WRONLY),
        "open for both": (open_only, name, os.O_RDWR),
        "open for appending": (open_only, name, os.O_WRONLY | os.O_APPEND),
        "truncate at open": (open_only, name, os.O_RDONLY | os.O_TRUNC),
        "truncate": (os.truncate, name, 0),
        "chmod": (os.chmod, name, 0o600),
        "chown": (os.chown, name, 1, 1),
        "utime": (os.utime, name, (1, 1)),
        "unlink": (os.unlink, name),
        "rename": (os.rename, name, new),
        "rename over": (os.rename, name, os.path.join(directory, "kubelet.conf.d", "10-eviction.conf")),
        "link": (os.link, name, new),
        "symlink": (os.symlink, "/etc/passwd", new),
        "mkdir": (os.mkdir, new),
        "rmdir": (os.rmdir, os.path.join(directory, "kubelet.conf.d")),
        "mknod": (os.mknod, new, stat.S_IFREG | 0o600),
        "fifo": (os.mknod, new, stat.S_IFIFO | 0o600),
        "setxattr": (setxattr, name, "user.x", b"y"),
        "removexattr": (os.removexattr, name, "user.x"),
        "mkdir in bad": (os.mkdir, os.path.join(directory, "bad/kubelet/uid-2")),
        "chmod of bad": (os.chmod, os.path.join(directory, "bad/kubelet"), 0o755),
        "setxattr of a control file": (setxattr, os.path.join(directory, "control/kubelet/hold"), "user.x", b"y"),
    }


COMMANDS = {
    "control": (write_file, f"{K}/control/kubelet/hold", b"on", os.O_WRONLY),
    "control, truncated": (write_file, f"{K}/control/kubelet/hold", b"on", os.O_WRONLY | os.O_TRUNC),
    "bad": (write_file, f"{K}/bad/kubelet/uid-1", b"because", os.O_WRONLY | os.O_CREAT),
    "bad, mknod": (os.mknod, f"{K}/bad/kubelet/uid-1", stat.S_IFREG | 0o600),
}


def snapshot(mount):
    """Return the content of the source directory."""
    found = {}
    for directory, names, files in os.walk(f"/proc/self/fd/{mount.covered}/"):
        for name in names + files:
            path = os.path.join(directory, name)
            st = os.lstat(path)
            content = lib.read_file(path) if stat.S_ISREG(st.st_mode) else b""
            found[path] = (st.st_mode, st.st_uid, st.st_mtime_ns, st.st_size, content, tuple(os.listxattr(path)))
    return found


def check_read_only(mount, container):
    before, generation = snapshot(mount), mount.generation()
    assert container.call(read_file, f"{K}/kubelet.conf") == mount.read("kubelet.conf")
    assert container.call(read_file, f"{K}/status/kubelet/condition").startswith(b"True")
    assert container.call(os.listdir, f"{K}/kubelet.conf.d") == os.listdir(mount.path("kubelet.conf.d"))
    wanted = dict.fromkeys(mutations(K), errno.EROFS)
    if not container.capabilities:
        wanted["chown"] = errno.EPERM  # the kernel checks CAP_CHOWN before it asks the file system
    assert {name: container.error(*call) for name, call in mutations(K).items()} == wanted
    assert {name: container.error(*call) for name, call in COMMANDS.items()} == dict.fromkeys(COMMANDS, errno.EPERM)
    assert snapshot(mount) == before and mount.generation() == generation
    assert "held" not in mount.condition()[1] and "uid-1" not in os.listdir(mount.path("bad/kubelet"))


@pytest.mark.parametrize("over", [True, False], ids=["over", "aside"])
@pytest.mark.parametrize("propagation", ["private", "rslave", "rshared"])
@pytest.mark.parametrize("capabilities", [False, True])
def test_a_volume_of_the_view(mounts, propagation, capabilities, over):
    """A read-write volume, root in the container, with and without capabilities."""
    mount = mounts(over=over)
    with Container(Volume(mount.mountpoint, propagation=propagation), capabilities=capabilities) as container:
        check_read_only(mount, container)


def test_root_of_a_user_namespace(mount):
    with Container(Volume(mount.mountpoint), user=(0, 0, 1), capabilities=True) as container:
        found = {name: container.error(*call) for name, call in mutations(K).items()}
        assert set(found.values()) <= {errno.EROFS, errno.EPERM, errno.EINVAL}, found  # unmapped ids, missing attributes
        commands = {name: container.error(*call) for name, call in COMMANDS.items()}
        assert set(commands.values()) <= {errno.EPERM, errno.EACCES}, commands


def test_a_namespace_of_mounts_alone(mount):
    """A service with PrivateTmp= or ProtectSystem=, or a chrooted agent: same root directory, other mounts."""
    with Container(Volume(mount.mountpoint), pid=False, capabilities=True) as container:
        check_read_only(mount, container)


def test_the_host_may(mount):
    """The same calls from the host's own mount namespace: none of them fails with EROFS."""
    directory = mount.mountpoint
    for name, call in mutations(directory).items():
        assert lib.error_of(call[0], *call[1:]) != errno.EROFS, name


def test_mounted_while_the_container_runs(mounts):
    """HostToContainer: a view that is mounted later appears read-write in a read-only volume."""
    mount = mounts(start=False)
    mount_call(mount.root, mount.root, flags=MS_BIND)
    try:
        mount_call(None, mount.root, flags=MS_SHARED | MS_REC)
        with Container(Volume(mount.source, read_only=True, propagation="rslave")) as container:
            assert container.error(write_file, DROPIN) == errno.EROFS
            mount.start()
            mount.wait_for(lambda: container.error(os.stat, f"{K}/status") == 0, "the view arrives")
            check_read_only(mount, container)
        mount.stop()
    finally:
        umount(mount.root)


@pytest.mark.parametrize("allowed", ["passthrough", "all"])
def test_configured(mounts, allowed):
    mount = mounts(config={"foreignWrites": allowed})
    with Container(Volume(mount.mountpoint)) as container:
        assert container.call(write_file, f"{K}/kubelet.conf.d/90-new.conf", (lib.HEADER + "maxPods: 33\n").encode()) > 0
        assert "\nmaxPods: 33\n" in mount.document()
        found = {name: container.error(*call) for name, call in COMMANDS.items() if name == "control"}
        assert found == {"control": errno.EPERM if allowed == "passthrough" else 0}
        assert ("held" in mount.condition()[1]) == (allowed == "all")


def test_configured_by_a_reload(mount):
    with Container(Volume(mount.mountpoint)) as container:
        for allowed, error in (("passthrough", 0), ("deny", errno.EROFS), ("all", 0)):
            mount.write_config({"foreignWrites": allowed})
            mount.reload()
            assert container.error(os.utime, DROPIN) == error, allowed


def test_a_component_in_a_container(mounts):
    """kube-proxy as a DaemonSet runs it: recognised by its control group, which is configured."""
    name = f"lkgfs-e2e-{os.getpid()}.slice"
    mount = mounts(start=False, components=[{"name": "kubelet", "match": {
        "unit": "", "exe": [], "cgroup": [f"/{name}/kubepods-pod*.slice"]}}])
    top = os.path.join(mount.root, "cgroup")
    os.mkdir(top)
    mount_call("none", top, "cgroup", data="none,name=systemd")
    pods = [os.path.join(top, name), os.path.join(top, name, "kubepods-pod1.slice")]
    try:
        for pod in pods:
            os.mkdir(pod)
        mount.start()
        with Container(Volume(mount.mountpoint), pid=False) as container:
            pid = container.call(os.getpid)
            container.call(read_file, f"{K}/kubelet.conf")
            assert str(pid) not in mount.status("process")
        with Container(Volume(mount.mountpoint), pid=False) as container:
            pid = container.call(os.getpid)
            lib.write_file(os.path.join(pods[1], "cgroup.procs"), str(pid))
            container.call(read_file, f"{K}/kubelet.conf")
            mount.wait_for(lambda: str(pid) in mount.status("process"), "the process in the pod is the component")
    finally:
        mount.stop()
        for pod in reversed(pods):
            if os.path.isdir(pod):
                lib.shell(f"until rmdir {pod}; do sleep 0.01; done", check=True)
        umount(top)


def test_the_number_of_a_notifier_that_ended(mount):
    """The notifier may touch files through the view from any namespace; a process that gets its pid later may not."""
    notifier = mount.child("lkgfs-notify")
    mount.kill_supervisor()
    mount.wait_for(lambda: not os.path.exists(f"/proc/{notifier}"), "it ends with lkgfsd")
    with contextlib.ExitStack() as stack:
        end = lib.deadline()
        while True:
            free = notifier - 1
            while os.path.exists(f"/proc/{free}"):  # a thread of the file server
                free -= 1
            pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(free - 1), encoding="ascii")
            container = Container(Volume(mount.mountpoint), pid=False)
            if container.call(os.getpid) == notifier:  # the child of the container's first process
                break
            container.close()  # another process was forked in between
            assert time.monotonic() < end
        stack.enter_context(container)
        check_read_only(mount, container)
    mount.start()


def test_another_server(mount):
    """The rules apply after a restart of the file server and of lkgfsd, too."""
    with Container(Volume(mount.mountpoint)) as container:
        mount.kill_child("lkgfs-fs")
        check_read_only(mount, container)


def test_a_descriptor_of_the_host(mount):
    """A descriptor that a host process opened for writing and passed in works as it does on the host."""
    fd = os.open(mount.path("kubelet.conf.d", "50-x.conf"), os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        with Container(Volume(mount.mountpoint)) as container:
            assert container.error(os.write, fd, (lib.HEADER + "maxPods: 44\n").encode()) == 0
    finally:
        os.close(fd)
    mount.wait_for(lambda: "\nmaxPods: 44\n" in mount.document(), "read when the last descriptor is closed")
