# SPDX-License-Identifier: Apache-2.0
"""control/: one write is one command; errors are returned by write(2) and explained in last-error.

Rule: docs/specification.md 2.11.
"""
import errno
import json
import os
import stat

import pytest

import lkgfs_testlib as lib

COMMANDS = ["rollback", "hold", "sync", "try", "commit"]


def test_files(shared):
    directory = shared.path("control", "kubelet")
    assert set(COMMANDS) <= set(os.listdir(directory))
    for name in COMMANDS:
        st = os.stat(os.path.join(directory, name))
        assert stat.S_IMODE(st.st_mode) == 0o200 and st.st_uid == 0 and st.st_size == 0
        assert lib.read_file(os.path.join(directory, name)) == b"", "a read by root is empty"
        assert lib.error_of(os.unlink, os.path.join(directory, name)) == errno.EPERM
        assert lib.error_of(os.chmod, os.path.join(directory, name), 0o666) == errno.EPERM
        assert lib.error_of(os.chown, os.path.join(directory, name), 1, 1) == errno.EPERM
        assert lib.error_of(os.rename, os.path.join(directory, name), os.path.join(directory, "x")) == errno.EPERM
    assert lib.error_of(lib.write_file, os.path.join(directory, "new"), "x") == errno.EPERM
    assert lib.error_of(os.mkdir, os.path.join(directory, "dir")) == errno.EPERM
    assert lib.error_of(os.symlink, "x", os.path.join(directory, "link")) == errno.EPERM


def test_empty_write_and_truncate_do_nothing(shared):
    for name in COMMANDS:
        path = shared.path("control", "kubelet", name)
        lib.shell(f": > {path}; truncate -s 0 {path}; touch {path}", check=True)
        assert shared.command(name, "") == 0
    assert shared.status("last-error").strip() == ""
    assert "held" not in shared.status("condition")


@pytest.mark.parametrize("name,text,code", [
    ("rollback", "999999", errno.EINVAL), ("hold", "on" + " " * 2000, errno.EINVAL), ("try", "0s", errno.EINVAL),
    ("commit", "now", errno.EINVAL), ("hold", "on\0", errno.EINVAL), ("hold", b"\xff", errno.EINVAL),
])
def test_wrong_values(shared, name, text, code):
    before, condition = shared.generation(), shared.status("condition")
    assert lib.errno_name(lib.error_of(shared.command, name, text)) == lib.errno_name(code)
    assert shared.status("last-error").strip() != ""
    assert shared.generation() == before and shared.status("condition") == condition


def test_sync(mount):
    for text in ("now", "now\n"):
        assert mount.command("sync", text) == len(text)
    lib.write_file(mount.behind("kubelet.conf.d", "50-x.conf"), lib.HEADER + "maxPods: 21\n")
    mount.command("sync", "now")
    assert "\nmaxPods: 21\n" in mount.document(), "sync returns when the local part is done"


def test_offset_is_ignored(shared):
    fd = os.open(shared.path("control", "kubelet", "sync"), os.O_WRONLY | os.O_APPEND)
    try:
        assert os.write(fd, b"now") == 3
        assert os.write(fd, b"now\n") == 4
    finally:
        os.close(fd)


def test_first_commands_after_a_restart_count(mount):
    """Requests of a new mount are never mistaken for requests that an engine has already answered."""
    for _ in range(3):
        mount.command("hold", "on")
        assert mount.stop() == 0
        mount.start()
        assert "held" in mount.status("condition")
        mount.command("hold", "off")
        assert "held" not in mount.status("condition")
        for value in (71, 72, 73):
            mount.drop("50-a.conf", f"maxPods: {value}\n")
            assert f"\nmaxPods: {value}\n" in mount.document()


def test_only_root_of_the_host(shared):
    """Root of a container's user namespace has uid 0 on the inside, but no rights. Rule: docs/specification.md 2.9."""
    path = shared.path("control", "kubelet", "hold")
    result = lib.shell(f"unshare --user --map-root-user sh -c 'echo on > {path}'")
    assert result.returncode != 0
    assert "held" not in shared.status("condition")


def test_only_root(shared):
    """Rule: docs/specification.md 2.9."""
    os.chmod(shared.root, 0o755)
    path = shared.path("control", "kubelet", "hold")
    result = lib.shell(f"echo on > {path}", user=65534, group=65534, extra_groups=[])
    assert result.returncode != 0 and b"ermission denied" in result.stderr
    assert "held" not in shared.status("condition")
    lib.run("unshare", "-U", "true", check=True)
    result = lib.run("unshare", "-U", "-r", "sh", "-c", f"echo on > {path}", user=65534, group=65534, extra_groups=[])
    assert result.returncode != 0, "root of another user namespace is not root"
    fd = os.open(path, os.O_WRONLY)  # opened by root, passed to another user: the write is checked as well
    try:
        result = lib.shell(f"echo on >&{fd}", user=65534, group=65534, extra_groups=[], pass_fds=(fd,))
    finally:
        os.close(fd)
    assert result.returncode != 0
    assert "held" not in shared.status("condition")


def test_each_component_has_its_own(mounts):
    proxy = {"name": "kube-proxy", "file": "kube-proxy.conf", "base": "proxy.yaml", "dropInDir": "kube-proxy.conf.d",
             "instance": ""}
    mount = mounts(components=[{"name": "kubelet"}, proxy], tree=tree_with_proxy)
    assert "mode: iptables\n" in mount.document("kube-proxy.conf")
    assert sorted(os.listdir(mount.path("status"))) == ["kube-proxy", "kubelet"]
    mount.command("hold", "on", component="kube-proxy")
    lib.write_file(mount.path("kube-proxy.conf.d", "a.conf"),
                   "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n")
    mount.drop("50-a.conf", "maxPods: 91\n")
    assert "mode: iptables\n" in mount.document("kube-proxy.conf") and "\nmaxPods: 91\n" in mount.document()
    mount.command("hold", "off", component="kube-proxy")
    assert "mode: nftables\n" in mount.document("kube-proxy.conf")
    lib.write_file(mount.path("kube-proxy.conf.d", "a.conf"), "nonsense: [")
    assert mount.condition("kube-proxy")[0] == "False" and mount.condition("kubelet")[0] == "True"
    numbers = [json.loads(lib.read_file(mount.path("history", c, str(mount.generation(c)), "meta.json")))["generation"]
               for c in ("kubelet", "kube-proxy")]
    assert numbers == [mount.generation("kubelet"), mount.generation("kube-proxy")]


def tree_with_proxy(directory, **options):
    lib.make_tree(directory, **options)
    lib.write_file(os.path.join(directory, "proxy.yaml"), lib.PROXY_BASE)
    os.mkdir(os.path.join(directory, "kube-proxy.conf.d"))
