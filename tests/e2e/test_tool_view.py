# SPDX-License-Identifier: Apache-2.0
"""The tool on a mounted view."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import lkgfs_testlib as lib

GOOD, DIFFERENT, FAILED, USAGE = 0, 1, 2, 64


def tool(mount, *words, view=True, **kwargs):
    result = mount.tool(*words, **kwargs) if view else lib.run(lib.LKGFS, *words, **kwargs)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def test_status(mount):
    code, out, err = tool(mount, "status")
    assert (code, err) == (GOOD, "")
    lines = out.splitlines()
    assert lines[0].startswith("kubelet: True ") and len(lines) <= 24
    assert f"generation {mount.generation()}, sha256 {mount.status('sha256')[:12]}, init" in out
    assert "  next      nothing to do" in out
    state = json.loads(tool(mount, "status", "-o", "json")[1])
    assert state["schemaVersion"] == 1 and state["mountpoint"] == mount.mountpoint
    component = state["components"][0]
    assert component["name"] == "kubelet" and component["generation"] == mount.generation()
    assert component["condition"]["status"] == "True" and component["sha256"] == mount.status("sha256").strip()
    assert tool(mount, "status", "-o", "yaml")[1].startswith("components:\n")


def test_status_with_bad_news(mount):
    mount.drop("50-bad.conf", "maxPods: [\n")
    code, out, _ = tool(mount, "status")
    assert code == DIFFERENT
    assert out.startswith("kubelet: False ") and "50-bad.conf:" in out and "lkgfs explain LKG" in out
    for i in range(60):
        mount.drop(f"60-{i}.conf", "- 1\n", header=False)
    code, out, _ = tool(mount, "status")
    assert len(out.splitlines()) <= 24 and "more" in out


def test_findings_are_the_same_objects_in_status_and_check(mounts):
    """Whatever names and texts contain: check takes them from memory, status from a file of lines."""
    mount = mounts(over=False)
    mount.drop("50-x: error: y.conf", "maxPods: -2\nimageGCLowThresholdPercent: 90\n")
    mount.drop("60-\u00e9\u00df [LKG1001].conf", "maxPodz: 1\n")
    mount.drop("70-a:7:8.conf", "registryBurst: 'x'\n")
    mount.drop("80-line\nbreak.conf", "kubeReservd: {}\n")
    mount.drop("90-syntax.conf", "maxPods: [\n")
    mount.sync()
    source = {option: os.path.join(mount.source, name) for option, name in (
        ("--config", "kubelet.conf"), ("--config-dir", "kubelet.conf.d"), ("--instance-config", "kubelet-instance.conf"))}
    code, out, err = tool(mount, "check", *[word for pair in source.items() for word in pair], "-o", "json", view=False)
    assert code == DIFFERENT, err
    checked = json.loads(out)["findings"]
    shown = json.loads(tool(mount, "status", "-o", "json")[1])["components"][0]["findings"]
    assert len(checked) > 5 and [f for f in checked if f not in shown] == []


def test_status_of_several_components_worst_first(mounts):
    def tree(directory, **options):
        lib.make_tree(directory, **options)
        lib.write_file(os.path.join(directory, "proxy.yaml"), lib.PROXY_BASE)
        os.mkdir(os.path.join(directory, "zz.d"))

    mount = mounts(tree=tree, components=[{"name": "kubelet"}, {"name": "zz", "file": "zz.conf", "base": "proxy.yaml",
                                                               "dropInDir": "zz.d", "instance": ""}])
    assert tool(mount, "status")[1].startswith("kubelet: ")
    lib.write_file(mount.path("zz.d", "a.conf"), "[")
    code, out, _ = tool(mount, "status")
    assert code == DIFFERENT and out.startswith("zz: False ") and "\nkubelet: True " in out
    code, _, err = tool(mount, "hold", "on")
    assert code == USAGE and "kubelet, zz" in err
    assert tool(mount, "hold", "on", "--component", "zz")[0] == GOOD
    assert tool(mount, "hold", "on", "--component", "none")[0] == FAILED
    assert tool(mount, "gate", "zz")[0] == GOOD and tool(mount, "gate", "none")[0] == DIFFERENT


def test_history_and_rollback(mount):
    first, document = mount.generation(), mount.document()
    mount.drop("50-a.conf", "maxPods: 5\n")
    second = mount.generation()
    code, out, _ = tool(mount, "history")
    lines = out.splitlines()
    assert code == GOOD and len(lines) == 3
    assert re.match(rf"\* +{second} ", lines[1]) and re.match(rf" +{first} ", lines[2])
    generations = json.loads(tool(mount, "history", "-o", "json")[1])["generations"]
    assert [(g["generation"], g["served"]) for g in generations] == [(second, True), (first, False)]
    assert tool(mount, "rollback", str(first)) == (GOOD, "", "")
    assert mount.document() == document
    assert "`lkgfs hold off " in tool(mount, "status")[1]
    code, _, err = tool(mount, "rollback", "999999")
    assert code == FAILED and mount.status("last-error").strip() in err
    assert tool(mount, "hold", "off")[0] == GOOD
    assert "\nmaxPods: 5\n" in mount.document()


def test_try_commit_sync(mount):
    code, _, err = tool(mount, "commit")
    assert code == FAILED and mount.status("last-error").strip() in err
    assert tool(mount, "try", "10m")[0] == GOOD
    assert tool(mount, "try", "10m")[0] == FAILED
    mount.drop("50-a.conf", "maxPods: 6\n")
    assert "`lkgfs commit " in tool(mount, "status")[1]
    assert tool(mount, "commit")[0] == GOOD
    lib.write_file(mount.behind("kubelet.conf.d", "50-a.conf"), lib.HEADER + "maxPods: 7\n")
    assert tool(mount, "sync")[0] == GOOD
    assert "\nmaxPods: 7\n" in mount.document()


def test_wait(mount):
    before = mount.generation()
    assert tool(mount, "wait", "generation", str(before)) == (GOOD, f"{before}\n", "")
    began = time.monotonic()
    code, _, err = tool(mount, "wait", "--timeout", "200ms")
    assert code == DIFFERENT and str(before) in err and 0.15 < time.monotonic() - began < 5
    for by_number in (False, True):
        words = ("generation", str(before + 1)) if by_number else ()
        process = subprocess.Popen([lib.LKGFS, "wait", *words, "--mountpoint", mount.mountpoint, "--timeout", "30s"],
                                   stdout=subprocess.PIPE)
        changer = threading.Timer(0.3, mount.drop, ("50-a.conf", f"maxPods: {mount.generation() + 100}\n"))
        changer.start()
        out, _ = process.communicate(timeout=lib.TIMEOUT_S)
        changer.join()
        assert process.returncode == GOOD and int(out) == mount.generation() > before
        before = mount.generation()


def test_bake_of_the_view(mounts):
    mount = mounts(components=[{"name": "kubelet", "aliases": ["config.yaml"], "mode": "0640"}])
    target = os.path.join(mount.root, "baked")
    os.mkdir(target)
    assert tool(mount, "bake", "--output", target)[0] == GOOD
    assert sorted(os.listdir(target)) == ["config.yaml", "kubelet.conf"]
    baked = lib.read_file(os.path.join(target, "kubelet.conf")).decode()
    assert baked == mount.document().partition("\n")[2], "without the comment line"
    assert os.stat(os.path.join(target, "kubelet.conf")).st_mode & 0o777 == 0o640
    assert tool(mount, "bake", "--output", target)[0] == FAILED
    assert tool(mount, "bake", "--output", target, "--force")[0] == GOOD
    assert tool(mount, "bake", "--output", mount.mountpoint, "--force")[0] == FAILED, "the view itself is refused"


def test_mountpoint_is_found(mount):
    environment = {**os.environ, "LKGFS_MOUNTPOINT": mount.mountpoint}
    assert lib.run(lib.LKGFS, "status", env=environment).returncode == GOOD
    environment.pop("LKGFS_MOUNTPOINT")
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        others = [line for line in file if " fuse.lkgfs " in line and mount.mountpoint not in line]
    result = lib.run(lib.LKGFS, "status", env=environment)
    if others:
        assert result.returncode == FAILED and b"several lkgfs mounts" in result.stderr
    else:
        assert result.returncode == GOOD


def test_gate(mount):
    assert tool(mount, "gate", "kubelet") == (GOOD, "", "")
    point = mount.mountpoint
    assert mount.stop() == 0
    result = lib.run(lib.LKGFS, "gate", "kubelet", "--mountpoint", point)
    assert result.returncode == DIFFERENT and result.stderr


def test_npd(mount):
    assert tool(mount, "npd") == (GOOD, mount.status("condition").strip().removeprefix("True ")[:80] + "\n", "")
    assert tool(mount, "npd", "--check", "served")[0] == GOOD
    mount.drop("50-bad.conf", "[")
    code, out, err = tool(mount, "npd")
    assert (code, err) == (1, "") and len(out) <= 81 and out.endswith("\n")
    assert tool(mount, "npd", "--check", "served")[0] == GOOD, "the generation before it is"
    point = mount.mountpoint
    assert mount.stop() == 0
    for check, want in (("condition", 2), ("served", 1)):
        result = lib.run(lib.LKGFS, "npd", "--mountpoint", point, "--check", check)
        assert result.returncode == want and b"not running" in result.stdout and result.stderr == b""


def test_not_root(mount):
    nobody = {"user": 65534, "group": 65534, "extra_groups": [], "executable": mount.for_everybody(lib.LKGFS)}
    code, out, _ = tool(mount, "status", **nobody)
    assert code == GOOD and out.startswith("kubelet: True ") and "only root" in out
    code, _, err = tool(mount, "hold", "on", **nobody)
    assert code == FAILED and "root" in err


def test_mount_verb(mounts):
    mount = mounts(start=False)
    result = lib.run(lib.LKGFS, "mount", "--config", mount.config_path, mount.mountpoint)
    assert result.returncode == GOOD, result.stderr
    assert "\nmaxPods: 64\n" in mount.document()


def apart(pid):
    """Does the process have a child with pipes other than its own?"""
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
        return all(os.readlink(f"/proc/{child}/fd/{fd}") != os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (1, 2))
    return False


def test_a_silent_mount_does_not_hang_the_tool(mount):
    """Nothing answers: the verb gives up after its limit and says what to do.

    Its child may be stuck beyond SIGKILL, in a request that a hung server has taken, so it must not hold the pipes on which the
    caller waits for the end.
    """
    pids = [mount.process.pid, mount.child("lkgfs-fs")]
    for pid in pids:
        lib.stop_process(pid)
    began = time.monotonic()
    process, condition, served = [
        subprocess.Popen([lib.LKGFS, *words, "--mountpoint", mount.mountpoint], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for words in (["status"], ["npd", "--check", "condition"], ["npd", "--check", "served"])]
    try:
        while not apart(process.pid):
            assert process.poll() is None and time.monotonic() - began < 15
            time.sleep(0.01)
        _, err = process.communicate(timeout=60)
        assert process.returncode == FAILED and b"not answered" in err and time.monotonic() - began < 40
        for npd, want in ((condition, 2), (served, 1)):
            out, _ = npd.communicate(timeout=60)
            assert (npd.returncode, out) == (want, b"lkgfs does not answer: the mount hangs\n")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        for one in (process, condition, served):
            one.kill()
            one.communicate()


# ---- status: the worst first, and the same objects as check ----

def test_status_shows_the_worst_first_and_notes_when_asked(mount):
    mount.drop("50-bad.conf", "".join(f"unknownField{i}: 1\n" for i in range(12)) + "serializeImagePulls: true\nmaxPods: x\n")
    text = mount.tool("status").stdout.decode()
    lines = [line.strip() for line in text.splitlines() if "[LKG" in line]
    order = ["error" if ": error: " in line else "warning" if ": warning: " in line else "note" for line in lines]
    assert order == sorted(order, key=["error", "warning", "note"].index) and order[0] == "error", text
    assert "note" not in order
    everything = mount.tool("status", "--all").stdout.decode()
    n_findings = len([line for line in mount.status("findings").splitlines() if "[LKG" in line])
    assert len([line for line in everything.splitlines() if "[LKG" in line]) == n_findings


# ---- completion: the program itself ----

def offered(*words):
    result = lib.run(lib.LKGFS, "--complete", *words)
    assert (result.returncode, result.stderr) == (GOOD, b"")
    return [line.split("\t")[0] for line in result.stdout.decode().splitlines()]


def test_complete_from_the_view(mount):
    mount.drop("50-x.conf", "maxPods: 41\nevictionHard: {memory.available: 5%}\n")
    at = ("-m", mount.mountpoint)
    last = str(mount.generation())
    assert last in offered("rollback", *at, "") and "lkg" in offered("rollback", *at, "")
    assert last in offered("diff", *at, "1", "") and offered("diff", *at, "1", "2", "") == []
    assert offered("blame", *at, "maxP") == ["maxPods"] and offered("blame", *at, "/maxP") == ["/maxPods"]
    assert "50-x.conf" in offered("edit", *at, "") and offered("status", *at, "-c", "") == ["kubelet"]


def test_complete_in_fish_and_zsh(mount, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "lkgfs").symlink_to(lib.LKGFS)
    folder = os.path.join(lib.REPOSITORY, "contrib", "completion")
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "HOME": str(tmp_path),
                   "LKGFS_MOUNTPOINT": mount.mountpoint}
    out = lib.run("fish", "--no-config", "-c", f"source {folder}/lkgfs.fish; complete -C 'lkgfs rollback '", env=environment,
                  check=True).stdout.decode()
    assert {line.split("\t")[0] for line in out.splitlines()} >= {"lkg", "1"}
    script = f"""
        _describe() {{ print -rl -- "${{(@P)4:-${{(@P)3}}}}" }}
        _files() {{ print -r -- files }}
        words=(lkgfs rollback '') CURRENT=3; source {folder}/lkgfs.zsh
        words=(lkgfs check '') CURRENT=3; _lkgfs
    """
    out = lib.run("zsh", "-f", "-c", script, env=environment, check=True).stdout.decode()
    assert "lkg:" in out and "1:20" in out and out.endswith("files\n"), out


def test_a_process_with_the_name_of_a_component_is_not_the_component(mount, tmp_path):
    """Which process is the component, the engine says; the tool never looks by itself."""
    program = shutil.copy("/bin/sleep", tmp_path / "kubelet")
    with subprocess.Popen(["unshare", "-m", program, "600"]) as other:
        try:
            mount.wait_for(lambda: pathlib.Path(f"/proc/{other.pid}/comm").read_text() == "kubelet\n", "the process has its name")
            assert "\npid=\n" in mount.status("process")
            for words in (("doctor",), ("status",), ("drift",), ("drift", "-o", "json"), ("report",)):
                code, out, err = tool(mount, *words)
                assert "runs as process" not in out + err and "unseenProcess" not in out, words
            assert tool(mount, "drift")[0] == GOOD
        finally:
            other.kill()


def test_doctor_names_who_holds_a_port_of_the_kubelet(mount, tmp_path):
    """A kubelet that cannot listen ends, and says so only in its log."""
    six = os.path.exists("/proc/net/if_inet6") and "lo" in pathlib.Path("/proc/net/if_inet6").read_text()
    with socket.create_server(("127.0.0.1", 0)) as server, \
            socket.create_server(("::1" if six else "127.0.0.1", 0), family=socket.AF_INET6 if six else socket.AF_INET) as other:
        port, read_only = server.getsockname()[1], other.getsockname()[1]
        mount.drop("50-ports.conf", f"port: {port}\nreadOnlyPort: {read_only}\n")
        code, out, _ = tool(mount, "doctor")
        name = pathlib.Path("/proc/self/comm").read_text().strip()
        assert code == DIFFERENT and f"warning: kubelet: port {port} is in use by process {os.getpid()} ({name})\n" in out, out
        assert f"readOnlyPort {read_only} is in use by process {os.getpid()}" in out
    assert "is in use by" not in tool(mount, "doctor")[1]
    program = shutil.copy(os.path.realpath(sys.executable), tmp_path / "kubelet")
    with subprocess.Popen([program, "-ISBc", f"import socket; s = socket.create_server(('127.0.0.1', {port})); print(flush=True); input()"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as kubelet:
        assert kubelet.stdout.readline() == b"\n"
        assert "is in use by" not in tool(mount, "doctor")[1], "it is the component itself"
        kubelet.communicate(b"\n")


def test_a_misspelt_field_is_in_the_first_line_of_status(mount):
    """It changes a value, silently: 80 was meant, and 64 counts."""
    assert "; but " not in tool(mount, "status")[1]
    mount.drop("90-capacity.conf", "maxPod: 80\n")
    first = tool(mount, "status")[1].splitlines()[0]
    assert first.startswith("kubelet: True serving generation ") and '; but "maxPod" (' in first, first
    assert "90-capacity.conf:3) is not a field and counts for nothing; did you mean" in first and "maxPods" in first, first
