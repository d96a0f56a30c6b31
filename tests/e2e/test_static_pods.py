# SPDX-License-Identifier: Apache-2.0
"""Static pods: what is served, and what is not. Rule: docs/specification.md 2.17."""
import errno
import os
import re
import signal
import stat
import subprocess

import pytest

import lkgfs_testlib as lib

KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: {path}
"""
COMPONENTS = [{"name": "kubelet"}, {"name": "static-pods", "kind": "StaticPods"}]


def pod(name, image="registry.k8s.io/pause:3.10", more=""):
    return f"""\
# kubeadm writes one like this
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: kube-system
spec:
  hostNetwork: true
  containers:
  - name: {name}
    image: {image}
{more}"""


MANIFESTS = {"etcd.yaml": pod("etcd"), "kube-apiserver.yaml": pod("kube-apiserver")}


def tree(directory, manifests=None, **options):
    lib.make_tree(directory, **options)
    os.unlink(os.path.join(directory, "manifests", "etcd.yaml"))
    for name, text in (MANIFESTS if manifests is None else manifests).items():
        lib.write_file(os.path.join(directory, "manifests", name), text, 0o600)


def mounted(**options):
    options.setdefault("components", COMPONENTS)
    return lib.Mount(tree=tree, **options)


@pytest.fixture
def pods():
    with mounted() as mount:
        yield mount


def served(mount):
    return {name: mount.read("static-pods", name).decode() for name in os.listdir(mount.path("static-pods"))}


def findings(mount):
    return mount.status("findings", "static-pods")


def test_each_file_is_served_as_it_is(pods):
    assert served(pods) == MANIFESTS
    for name in MANIFESTS:
        st = os.stat(pods.path("static-pods", name))
        assert stat.S_ISREG(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o600 and (st.st_uid, st.st_gid) == (0, 0)
    st = os.stat(pods.path("static-pods"))
    assert stat.S_IMODE(st.st_mode) == 0o700 and (st.st_uid, st.st_gid) == (0, 0)
    assert sorted(os.listdir(pods.path("manifests"))) == sorted(MANIFESTS), "manifests/ stays what it is"
    assert findings(pods) == ""
    assert pods.condition("static-pods")[0] == "True"


@pytest.mark.parametrize("change", ["write", "unlink", "rename", "create", "truncate", "chmod"])
def test_the_directory_is_read_only(pods, change):
    path = pods.path("static-pods", "etcd.yaml")
    changes = {"write": lambda: open(path, "a", encoding="utf-8").close(), "unlink": lambda: os.unlink(path),
               "rename": lambda: os.rename(path, path + "x"), "truncate": lambda: os.truncate(path, 0),
               "create": lambda: lib.write_file(pods.path("static-pods", "new.yaml"), "x"),
               "chmod": lambda: os.chmod(path, 0o666)}
    assert lib.error_of(changes[change]) == errno.EPERM
    assert served(pods) == MANIFESTS


def test_a_change_is_served_when_close_returns(pods):
    before = pods.generation("static-pods")
    pods.write("manifests/etcd.yaml", pod("etcd", "etcd:2"), 0o600)
    assert served(pods)["etcd.yaml"] == pod("etcd", "etcd:2")
    assert pods.generation("static-pods") == before + 1
    pods.write("manifests/new.yaml", pod("new"), 0o600)
    assert served(pods)["new.yaml"] == pod("new")
    os.unlink(pods.path("manifests/new.yaml"))
    assert "new.yaml" not in served(pods)


def kill_engine(mount):
    before = mount.child("lkgfs-engine")
    os.kill(before, signal.SIGKILL)
    mount.wait_for(lambda: mount.child("lkgfs-engine") != before, "another engine")
    mount.command("sync", "now", "kubelet")


@pytest.mark.parametrize("behind", [False, True], ids=["through the view", "behind it"])
@pytest.mark.parametrize("moment", ["two seconds", "reload", "engine", "file server"])
def test_half_a_pod_is_not_served(pods, moment, behind):
    """What a writer has written before it pauses is a valid Pod, of another pod's name or image even."""
    before = pods.generation("static-pods")
    place = pods.behind if behind else pods.path
    with open(place("manifests/etcd.yaml"), "w", encoding="utf-8") as old, \
            open(place("manifests/new.yaml"), "w", encoding="utf-8") as new:
        for file, name in ((old, "etcd"), (new, "new")):
            file.write(pod(name, "etcd:2"))
            file.flush()
        if moment == "two seconds":
            pods.write("kubelet.conf.d/50-empty.conf", "")
            pods.wait_for(lambda: "50-empty.conf" in pods.status("findings"), "the file that is empty counts by now")
        elif moment == "reload":
            pods.reload()
        elif moment == "file server":
            pods.kill_child("lkgfs-fs")
            pods.write("kubelet.conf.d/50-empty.conf", "")
            pods.wait_for(lambda: "50-empty.conf" in pods.status("findings"), "two seconds later")
        else:
            kill_engine(pods)
        pods.command("sync", "now", "static-pods")
        if moment == "file server":  # of a file that is new, only two seconds are waited
            assert served(pods)["etcd.yaml"] == MANIFESTS["etcd.yaml"]
        else:
            assert served(pods) == MANIFESTS and pods.generation("static-pods") == before
        for file in (old, new):
            file.write("    args: [--whole]\n")
    whole = {name: pod(name[:-5], "etcd:2", "    args: [--whole]\n") for name in ("etcd.yaml", "new.yaml")}
    pods.wait_for(lambda: served(pods) == {**MANIFESTS, **whole}, "they are closed", component="static-pods")


WRITERS = {"a shell's group": "{ cat head; read -r _ < go; cat tail; } > manifests/etcd.yaml",
           "a child that begins another program": "exec python3 -c 'import subprocess\nf = open(\"manifests/etcd.yaml\", \"w\")\n"
                                                  "f.write(open(\"head\").read()); f.flush(); subprocess.run([\"true\"]); open(\"go\").read()\n"
                                                  "f.write(open(\"tail\").read())'"}


@pytest.mark.parametrize("script", WRITERS.values(), ids=WRITERS)
def test_who_has_inherited_the_file_does_not_close_it_for_its_writer(pods, tmp_path, script):
    before = pods.generation("static-pods")
    lib.write_file(tmp_path / "head", pod("etcd", "etcd:2"))
    lib.write_file(tmp_path / "tail", "    args: [--whole]\n")
    os.mkfifo(tmp_path / "go")
    os.symlink(pods.path("manifests"), tmp_path / "manifests")
    with subprocess.Popen(["bash", "-c", script], cwd=tmp_path) as writer:
        with open(tmp_path / "go", "w", encoding="utf-8") as go:  # it has written half by now
            pods.write("kubelet.conf.d/50-empty.conf", "")
            pods.wait_for(lambda: "50-empty.conf" in pods.status("findings"), "two seconds later")
            assert served(pods) == MANIFESTS and pods.generation("static-pods") == before
            go.write("\n")
        assert writer.wait(lib.TIMEOUT_S) == 0
    assert served(pods)["etcd.yaml"] == pod("etcd", "etcd:2", "    args: [--whole]\n") and pods.generation("static-pods") == before + 1


def test_a_component_of_another_kind_becomes_one_of_static_pods():
    proxy = {"name": "static-pods", "kind": "KubeProxyConfiguration", "file": "proxy.conf", "base": "proxy.conf", "dropInDir": "manifests"}
    with mounted(components=[COMPONENTS[0]]) as mount:
        mount.write("proxy.conf", "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n", 0o600)
        for components in ([COMPONENTS[0], proxy], COMPONENTS, [COMPONENTS[0], proxy], COMPONENTS):
            mount.write_config(components=components)
            mount.reload()
            pods = components == COMPONENTS
            mount.wait_for(lambda pods=pods: os.path.exists(mount.vpath("status", "static-pods", "pods")) == pods, "these settings")
        mount.wait_for(lambda: served(mount) == MANIFESTS, "the pods", component="static-pods")
        assert "was killed by signal" not in mount.log()


def test_a_reload_waits_for_no_layer_that_is_open():
    """Which counts as it is: what a reload reads has no earlier content to fall back on."""
    with mounted(components=[{"name": "kubelet"}]) as mount:
        mount.write("mine.conf", lib.HEADER + "providerID: mine\n")
        mount.write_config(components=[{"name": "kubelet", "instance": "mine.conf"}])
        mount.reload()
        mount.wait_for(lambda: "providerID: mine\n" in mount.document(), "it is a layer")
        with open(mount.path("mine.conf"), "a", encoding="utf-8") as file:
            file.write("# later\n")
            file.flush()
            os.mkdir(mount.path("conf2.d"))
            mount.write("conf2.d/10-a.conf", lib.HEADER + "maxPods: 61\n")
            mount.write_config(components=[{"name": "kubelet", "instance": "mine.conf", "dropInDir": "conf2.d"}])
            mount.reload()
            assert "providerID: mine\n" in mount.wait_for(lambda: "\nmaxPods: 61\n" in mount.document() and mount.document(), "the new settings")


def test_the_number_of_a_file_that_is_gone_is_used_again(pods):
    """By a program that writes all files anew, behind the view: the pod of the first one stays for the moment."""
    fd = os.open(pods.behind("manifests"), os.O_RDONLY)
    try:
        os.unlink("etcd.yaml", dir_fd=fd)
        with open("aa.yaml", "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600, dir_fd=fd)) as file:
            file.write(pod("aa"))
        pods.wait_for(lambda: "aa.yaml" in served(pods), "the new one", component="static-pods")
        assert "etcd.yaml" in served(pods)
    finally:
        os.close(fd)


def save_as_vi_does(path, text):
    os.rename(path, path + "~")
    lib.write_file(path, text, 0o600)
    os.unlink(path + "~")


def test_a_temporary_name_that_comes_first_is_gone_with_the_rename(pods):
    """So writes perl -i; the name of a file is part of the pod's UID."""
    pods.write("manifests/AAtemporary", pod("etcd", "etcd:2"), 0o600)
    os.rename(pods.path("manifests/AAtemporary"), pods.path("manifests/etcd.yaml"))
    assert served(pods) == {**MANIFESTS, "etcd.yaml": pod("etcd", "etcd:2")} and findings(pods) == ""


@pytest.mark.parametrize("image", ["registry.k8s.io/pause:3.10", "etcd:2"], ids=["the same", "another text"])
def test_a_file_that_is_moved_away_before_the_next_comes(pods, image):
    """So does kubeadm."""
    before = pods.generation("static-pods")
    pods.write("tmp/etcd.yaml", pod("etcd", image), 0o600)
    os.rename(pods.path("manifests/etcd.yaml"), pods.path("tmp/old.yaml"))
    assert served(pods) == MANIFESTS
    os.rename(pods.path("tmp/etcd.yaml"), pods.path("manifests/etcd.yaml"))
    assert served(pods) == {**MANIFESTS, "etcd.yaml": pod("etcd", image)}
    assert pods.generation("static-pods") == before + (image == "etcd:2")


def test_a_file_that_is_moved_away_for_good(pods):
    os.rename(pods.path("manifests/etcd.yaml"), pods.path("manifests/.etcd.yaml"))
    assert served(pods) == MANIFESTS
    pods.command("sync", "now", "static-pods")
    assert set(served(pods)) == {"kube-apiserver.yaml"}, "everything counts as it is"
    os.rename(pods.path("manifests/kube-apiserver.yaml"), pods.path("manifests/.kube-apiserver.yaml"))
    pods.wait_for(lambda: not os.listdir(pods.path("static-pods")), "it is gone", component="static-pods")


def test_behind_the_view_nobody_says_what_becomes_of_a_file(pods):
    fd = os.open(pods.behind("manifests"), os.O_RDONLY)
    os.rename("etcd.yaml", ".old", src_dir_fd=fd, dst_dir_fd=fd)
    pods.wait_for(lambda: os.listdir(pods.path("static-pods")) == ["kube-apiserver.yaml"], "it is gone", component="static-pods")
    os.close(fd)


def test_a_mistake_saved_by_an_editor_that_moves_the_file_away(pods):
    save_as_vi_does(pods.path("manifests/etcd.yaml"), "kind: Pod\n  broken: [\n")
    assert served(pods) == MANIFESTS and "[LKG1001]" in findings(pods)
    os.unlink(pods.path("manifests/etcd.yaml"))
    assert set(served(pods)) == {"kube-apiserver.yaml"}, "who removes a file means it"


def test_a_pod_that_is_gone_comes_back_only_soon():
    with mounted(components=[COMPONENTS[0], {**COMPONENTS[1], "trial": {"settle": "100ms"}}]) as mount:
        os.unlink(mount.path("manifests/etcd.yaml"))
        mount.wait_for(lambda: os.listdir(mount.path("lkg/static-pods")) == ["kube-apiserver.yaml"], "it is settled", component="static-pods")
        mount.write("manifests/etcd.yaml", "kind: Pod\n  broken: [\n", 0o600)
        assert set(served(mount)) == {"kube-apiserver.yaml"}


def test_an_open_file_is_one_generation(pods):
    with open(pods.path("static-pods", "etcd.yaml"), encoding="utf-8") as file:
        first = file.read(10)
        pods.write("manifests/etcd.yaml", pod("etcd", "etcd:2"), 0o600)
        assert first + file.read() == MANIFESTS["etcd.yaml"]
    assert "etcd:2" in served(pods)["etcd.yaml"]


def test_who_watches_the_directory_is_woken_for_what_has_changed(pods):
    with lib.Inotify() as watch:
        watch.add(pods.path("static-pods"), 0x2 | 0x8)  # IN_MODIFY, IN_CLOSE_WRITE
        for version in range(2, 8):  # the first publication may still be being announced, and that is about all files
            watch.events()
            pods.write("manifests/etcd.yaml", pod("etcd", f"etcd:{version}"), 0o600)
            events = watch.wait(lambda seen: any(event[-1] == "etcd.yaml" and event[1] & 0x8 for event in seen))
            if {event[-1] for event in events} == {"etcd.yaml"}:
                return
        assert False, "the other pod is touched each time"


BROKEN = {"syntax": "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd\n", "empty": "", "comment": "# nothing\n", "list": "- a\n",
          "another kind": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: etcd}\n"}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_manifest_leaves_the_pod_that_runs(pods, text):
    pods.write("manifests/etcd.yaml", text, 0o600)
    pods.write("manifests/kube-apiserver.yaml", pod("kube-apiserver", "api:2"), 0o600)
    assert served(pods) == {"etcd.yaml": MANIFESTS["etcd.yaml"], "kube-apiserver.yaml": pod("kube-apiserver", "api:2")}, \
        "the other pod is served as it is now"
    pods.wait_for(lambda: re.search(r"manifests/etcd.yaml[:0-9]*: error: ", findings(pods)), "a finding", component="static-pods")
    assert "kube-apiserver" not in findings(pods)
    word, text = pods.condition("static-pods")
    assert word == "False" and "1 error" in text
    pods.write("manifests/etcd.yaml", pod("etcd", "etcd:3"), 0o600)
    assert "etcd:3" in served(pods)["etcd.yaml"] and findings(pods) == ""


def test_a_broken_manifest_that_never_ran_is_not_served(pods):
    pods.write("manifests/new.yaml", "kind: Pod\n  x", 0o600)
    assert served(pods) == MANIFESTS


@pytest.mark.parametrize("name", ["etcd.yaml.bak", "etcd.yaml~", "etcd.yaml.orig", "etcd.yaml.rpmsave", "etcd.yaml.dpkg-old",
                                  ".etcd.yaml.swp", "etcd.yaml.old", ".hidden.yaml", "etcd.yaml.bak.1"])
def test_copies_are_not_served(pods, name):
    pods.write(f"manifests/{name}", pod("etcd", "wrong:1"), 0o600)
    assert served(pods) == MANIFESTS
    assert (name in findings(pods)) == (name[0] != "."), "a kubelet does not read hidden files"


def test_two_files_of_one_pod(pods):
    pods.write("manifests/a.yaml", pod("etcd", "first:1"), 0o600)
    assert served(pods) == {"a.yaml": pod("etcd", "first:1"), "kube-apiserver.yaml": MANIFESTS["kube-apiserver.yaml"]}
    line = next(line for line in findings(pods).splitlines() if "LKG2042" in line)
    assert "manifests/etcd.yaml" in line and "manifests/a.yaml" in line
    os.unlink(pods.path("manifests/a.yaml"))
    assert served(pods) == MANIFESTS


def test_directories_and_other_files_beside_manifests(pods):
    os.mkdir(pods.path("manifests", "more"))
    pods.write("manifests/more/x.yaml", pod("x"), 0o600)
    os.symlink("more", pods.path("manifests", "link"))
    pods.sync()
    assert served(pods) == MANIFESTS and findings(pods) == ""


def test_json_is_a_manifest(pods):
    text = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"j"},"spec":{"containers":[{"name":"c","image":"i"}]}}'
    pods.write("manifests/j.json", text, 0o600)
    assert served(pods)["j.json"] == text


def test_the_kubelet_is_told_where(pods):
    pods.drop("50-pods.conf", "staticPodPath: /somewhere/else\n")
    assert "staticPodPath: /somewhere/else\n" in pods.document()
    pods.drop("50-pods.conf", f"staticPodPath: {pods.mountpoint}/manifests\n")
    assert f"staticPodPath: {pods.mountpoint}/static-pods\n" in pods.document()
    line = next(line for line in pods.status("origin").splitlines() if line.startswith("/staticPodPath\t"))
    assert "lkgfs static-pods" in line
    assert f"staticPodPath: {pods.mountpoint}/static-pods " in pods.status("effective.yaml")
    pods.write_config(components=[{"name": "kubelet"}])
    pods.reload()
    pods.wait_for(lambda: f"staticPodPath: {pods.mountpoint}/manifests\n" in pods.document(), "the value of the layers")


def test_the_source_is_what_the_kubelet_names(pods):
    lib.write_file(pods.behind("other.yaml"), "")
    os.mkdir(pods.path("pods.d"))
    pods.write("pods.d/x.yaml", pod("x"), 0o600)
    pods.drop("50-pods.conf", f"staticPodPath: {pods.mountpoint}/pods.d\n")
    assert served(pods) == MANIFESTS, "a kubelet that runs would end those that are not there"
    for again in (lambda: None, pods.reload, lambda: kill_engine(pods)):
        again()
        pods.wait_for(lambda: "[LKG4026]" in findings(pods), "it is said", component="static-pods")
        assert served(pods) == MANIFESTS and f"staticPodPath: {pods.mountpoint}/pods.d\n" in pods.document()
    for name, text in MANIFESTS.items():
        pods.write(f"pods.d/{name}", text, 0o600)
    pods.command("sync", "now", "static-pods")
    assert served(pods) == {**MANIFESTS, "x.yaml": pod("x")} and "[LKG4026]" not in findings(pods)
    assert f"staticPodPath: {pods.mountpoint}/static-pods\n" in pods.document()
    pods.write("pods.d/x.yaml", pod("x", "x:2"), 0o600)
    assert served(pods)["x.yaml"] == pod("x", "x:2")
    os.unlink(pods.path("pods.d/etcd.yaml"))
    for restart in (pods.reload, lambda: kill_engine(pods)):
        restart()
        pods.wait_for(lambda: set(served(pods)) == {"kube-apiserver.yaml", "x.yaml"}, "the manifests of the other directory", component="static-pods")


@pytest.mark.parametrize("child", ["lkgfs-engine", "lkgfs-fs", "lkgfs-notify"])
def test_a_killed_process_changes_nothing(pods, child):
    pods.write("manifests/etcd.yaml", "broken: [", 0o600)
    before = {name: os.stat(pods.path("static-pods", name)) for name in MANIFESTS}
    pods.kill_child(child)
    pods.wait_for(lambda: pods.condition("static-pods")[0] == "False", "the new engine's condition")
    assert served(pods) == MANIFESTS, "what is broken is served as it was, by the next engine, too"
    for name, st in before.items():
        now = os.stat(pods.path("static-pods", name))
        assert (now.st_ino, now.st_mtime_ns) == (st.st_ino, st.st_mtime_ns), "the same file for who watches it"


def test_history_hold_and_rollback(pods):
    first = pods.generation("static-pods")
    pods.write("manifests/etcd.yaml", pod("etcd", "etcd:2"), 0o600)
    pods.command("rollback", str(first), "static-pods")
    assert served(pods) == MANIFESTS
    assert "held" in pods.status("condition", "static-pods")
    pods.write("manifests/etcd.yaml", pod("etcd", "etcd:3"), 0o600)
    assert served(pods) == MANIFESTS
    pods.command("hold", "off", "static-pods")
    assert "etcd:3" in served(pods)["etcd.yaml"]


def test_without_lkgfs_the_pods_are_there(pods):
    """Rule: docs/specification.md 2.16."""
    pods.write("manifests/etcd.yaml", "broken: [", 0o600)
    pods.write("manifests/new.yaml", pod("new"), 0o600)
    expected = {**MANIFESTS, "new.yaml": pod("new")}

    def copies(*where):
        return {name: lib.read_file(pods.behind(*where, name)).decode() for name in os.listdir(pods.behind(*where))}

    pods.wait_for(lambda: copies(".lkgfs-fallback", "static-pods") == expected == copies("static-pods"), "copies")
    os.unlink(pods.path("manifests/new.yaml"))
    pods.wait_for(lambda: copies(".lkgfs-fallback", "static-pods") == MANIFESTS == copies("static-pods"), "fewer copies")
    pods.stop()
    assert {name: lib.read_file(os.path.join(pods.source, "static-pods", name)).decode() for name in
            os.listdir(os.path.join(pods.source, "static-pods"))} == MANIFESTS


def test_after_a_reboot_a_broken_manifest_is_still_served_as_it_was(pods):
    pods.wait_for(lambda: os.path.exists(os.path.join(pods.state, "components", "static-pods.json")), "the state")
    pods.write("manifests/etcd.yaml", "broken: [", 0o600)
    pods.stop()
    lib.run("rm", "-rf", pods.runtime, check=True)
    pods.start()
    assert served(pods) == MANIFESTS


def test_a_directory_that_goes_takes_its_pods(pods):
    os.rename(pods.path("manifests"), pods.path("manifests.off"))
    pods.wait_for(lambda: not os.listdir(pods.path("static-pods")), "they are gone", component="static-pods")
    os.rename(pods.path("manifests.off"), pods.path("manifests"))
    assert served(pods) == MANIFESTS


def test_a_directory_that_cannot_be_read_keeps_its_pods(pods):
    pods.process.send_signal(signal.SIGCONT)
    os.chmod(pods.behind("manifests"), 0)
    os.chown(pods.behind("manifests"), 12345, 12345)
    pods.sync()
    assert served(pods) == MANIFESTS


VOLUMES = """\
    args: [--tls-cert-file={cert}, --log-file=/nowhere/log, "--kubeconfig={kubeconfig}", --audit-policy-file={root}/missing]
    volumeMounts:
    - {{name: host, mountPath: {root}}}
    ports:
    - {{name: p, containerPort: {port}}}
  volumes:
  - {{name: host, hostPath: {{path: {root}, type: {type}}}}}
"""


def with_volumes(mount, kind="Directory", port=6443, name="etcd"):
    directory = os.path.join(mount.root, "host")
    os.makedirs(directory, exist_ok=True)
    lib.write_file(os.path.join(directory, "cert"), "", 0o600)
    return pod(name, more=VOLUMES.format(root=directory, cert=directory + "/cert", kubeconfig="/etc/nowhere/kubeconfig", port=port,
                                         type=kind))


def test_what_this_host_says_of_a_manifest(pods):
    pods.write("manifests/etcd.yaml", with_volumes(pods, "File"), 0o600)
    assert served(pods)["etcd.yaml"] == with_volumes(pods, "File"), "it is served: these are warnings"
    lines = findings(pods).splitlines()
    assert len(lines) == 3 and all(": warning: " in line for line in lines), lines
    assert any("is no file on this node" in line and "etcd.yaml:18:" in line for line in lines)
    assert any("--kubeconfig:" in line and "lies in no volume" in line for line in lines)
    assert any("--audit-policy-file:" in line and "does not exist on this node" in line for line in lines)
    assert pods.condition("static-pods")[0] == "True"


def test_two_pods_want_one_port_of_the_host(pods):
    pods.write("manifests/etcd.yaml", with_volumes(pods), 0o600)
    pods.write("manifests/other.yaml", with_volumes(pods, name="other"), 0o600)
    line, = [line for line in findings(pods).splitlines() if "port 6443" in line]
    assert "other.yaml:" in line and "etcd.yaml" in line
    pods.write("manifests/other.yaml", with_volumes(pods, name="other", port=6444), 0o600)
    assert "port 644" not in findings(pods)


def test_startup_rules_refuse_what_the_host_cannot_bear():
    with mounted(components=[{"name": "kubelet"}, {"name": "static-pods", "kind": "StaticPods", "startupRules": "refuse"}]) as mount:
        mount.write("manifests/etcd.yaml", with_volumes(mount, "File"), 0o600)
        assert served(mount) == MANIFESTS
        assert mount.condition("static-pods")[0] == "False"


@pytest.mark.parametrize("over", [True, False])
def test_paths_in_the_view_are_those_of_the_source(over):
    """The engine never looks through the view."""
    with mounted(over=over) as mount:
        text = pod("etcd", more=f"    args: [--cert-file={mount.mountpoint}/pki/ca.crt, --key-file={mount.mountpoint}/pki/none]\n"
                                f"    volumeMounts: [{{name: pki, mountPath: {mount.mountpoint}/pki}}]\n"
                                f"  volumes:\n  - {{name: pki, hostPath: {{path: {mount.mountpoint}/pki, type: Directory}}}}\n"
                                f"  - {{name: crt, hostPath: {{path: {mount.mountpoint}/pki/ca.crt, type: File}}}}\n")
        mount.write("manifests/etcd.yaml", text, 0o600)
        line, = [line for line in findings(mount).splitlines() if over or "[LKG4026]" not in line]
        assert "--key-file" in line and "does not exist" in line


@pytest.mark.parametrize("over", [True, False])
def test_only_over_its_source_the_view_has_the_pods_of_a_kubelet(over):
    """Beside it there would be none when lkgfs is stopped."""
    with mounted(over=over) as mount:
        mount.drop("95-pods.conf", f"staticPodPath: {mount.source}/manifests\n")
        assert f"staticPodPath: {mount.source}/{'static-pods' if over else 'manifests'}\n" in mount.document()
        assert ("[LKG4026]" in findings(mount)) != over


def test_a_link_to_a_directory_is_followed_as_by_a_kubelet(pods):
    os.rename(pods.path("manifests"), pods.path("first"))
    os.symlink("first", pods.path("manifests"))
    assert served(pods) == MANIFESTS
    os.unlink(pods.path("manifests"))
    os.symlink("second", pods.path("manifests"))
    pods.wait_for(lambda: "[LKG2010]" in findings(pods), "it leads nowhere", component="static-pods")
    assert served(pods) == MANIFESTS and pods.condition("static-pods")[0] == "False"
    os.mkdir(pods.path("second"))
    pods.write("second/new.yaml", pod("new"), 0o600)
    pods.wait_for(lambda: os.listdir(pods.path("static-pods")) == ["new.yaml"], "the other directory", component="static-pods")
    assert pods.condition("static-pods")[0] == "True"


def test_what_is_no_file_is_ignored_as_by_a_kubelet(pods):
    os.mkfifo(pods.path("manifests/fifo"))
    os.mkdir(pods.path("manifests/directory"))
    pods.command("sync", "now", "static-pods")
    assert served(pods) == MANIFESTS and pods.condition("static-pods")[0] == "True" and findings(pods) == ""


def test_without_the_component_its_copies_are_there_at_once(pods):
    """Who reads the directory while it is taken away finds every pod: there is no moment without them."""
    pods.wait_for(lambda: sorted(os.listdir(pods.behind("static-pods"))) == sorted(MANIFESTS), "copies")
    view, end = os.stat(pods.path("static-pods")).st_ino, lib.deadline()
    before = os.open(pods.path("static-pods"), os.O_RDONLY | os.O_DIRECTORY)
    pods.write_config(components=[{"name": "kubelet"}])
    pods.process.send_signal(signal.SIGHUP)
    while os.stat(pods.path("static-pods")).st_ino == view:
        assert sorted(os.listdir(pods.path("static-pods"))) == sorted(MANIFESTS) and lib.time.monotonic() < end
    assert served(pods) == MANIFESTS
    assert sorted(os.listdir(before)) == sorted(MANIFESTS), "who had opened it before reads their names"
    os.close(before)


def test_more_than_one_document_may_have_survives_a_reboot():
    with mounted() as mount:
        for i in range(5):
            mount.write(f"manifests/b{i}.yaml", pod(f"b{i}") + f"# {'x' * 100}\n" * 10000, 0o600)
        mount.wait_for(lambda: len(served(mount)) == 7, "all of them")
        before = served(mount)
        mount.stop()
        lib.run("rm", "-rf", mount.runtime, check=True)
        mount.start()
        assert served(mount) == before


def test_a_path_that_is_not_there_moves_no_pod():
    with mounted() as mount:
        before = served(mount)
        for path, told in (("//manifests/.", "static-pods"), ("/manifest", "manifest"), ("/manifests", "static-pods")):
            mount.drop("50-pods.conf", f"staticPodPath: {mount.mountpoint}{path}\n")
            mount.wait_for(lambda told=told: f"staticPodPath: {mount.mountpoint}/{told}\n" in mount.document(), path)
            assert served(mount) == before


def test_what_is_not_utf_8_is_refused():
    with mounted() as mount:
        before = served(mount)
        mount.write("manifests/etcd.yaml", pod("etcd").encode("utf-16"), 0o600)
        mount.wait_for(lambda: "[LKG1002]" in findings(mount), "a finding")
        assert served(mount) == before
