# SPDX-License-Identifier: Apache-2.0
"""The tool on plain files: products, formats, exit statuses. No mount is needed here."""
import os
import pty
import re
import subprocess

import pytest

import lkgfs_testlib as lib

GOOD, DIFFERENT, FAILED = 0, 1, 2
STACK = ["--config", "kubelet.conf", "--config-dir", "kubelet.conf.d", "--instance-config", "kubelet-instance.conf"]


@pytest.fixture
def tree(tmp_path):
    lib.make_tree(tmp_path / "k")
    return tmp_path / "k"


def tool(tree, *words, **kwargs):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LKGFS")}
    result = lib.run(lib.LKGFS, *words, cwd=tree, env=environment, **kwargs)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def test_secrets_are_masked(tree):
    lib.write_file(tree / "kubelet.conf.d/50-s.conf", lib.HEADER +
                   'staticPodURL: "https://user:hunter2@example.org/x?token=hunter2"\n'
                   "staticPodURLHeader:\n  Authorization: [Bearer hunter2]\n")
    for verb in ("blame", "diff"):
        for fmt in ("text", "json"):
            _, out, err = tool(tree, verb, *STACK, "-o", fmt)
            assert "staticPodURL" in out and "hunter2" not in out + err, (verb, fmt)
    assert "hunter2" in tool(tree, "render", *STACK)[1], "the document itself is complete"
    words = (*STACK, "--", "--manifest-url=https://u:hunter2@h/?t=hunter2", "--manifest-url-header=A:hunter2")
    _, out, err = tool(tree, "render", "--effective", *words)
    assert "flag --manifest-url-header" in out and "hunter2" not in out + err
    assert "hunter2" in tool(tree, "render", "--effective", "-o", "json", *words)[1], "for programs it is complete"


def test_bake_is_whole_or_not_at_all(tree, tmp_path):
    """The directory is full: the old file stays, and nothing half-written is left."""
    target = tmp_path / "small"
    target.mkdir()
    lib.run("mount", "-t", "tmpfs", "-o", "size=16k", "none", target, check=True)
    try:
        lib.write_file(target / "kubelet.conf", "mine")
        lib.write_file(tree / "kubelet.conf.d/50-big.conf", lib.HEADER + "clusterDNS:\n" + "- x\n" * 20000)
        assert tool(tree, "bake", *STACK, "--directory", target, "--force")[0] == FAILED
        assert (target / "kubelet.conf").read_text() == "mine" and os.listdir(target) == ["kubelet.conf"]
    finally:
        lib.run("umount", target)


def test_this_machine_is_a_node(tree):
    """What depends on the host is judged with --host this; for another one, and for none: golden, session-odds."""
    lib.write_file(tree / "k.conf", lib.HEADER + "authentication:\n  x509:\n    clientCAFile: /nonexistent/ca.crt\n")
    code, out, _ = tool(tree, "check", "--config", "k.conf", "--host", "this")
    assert "k.conf:5:19: note: authentication.x509.clientCAFile: \"/nonexistent/ca.crt\" does not exist on this node" in out
    v1 = lib.run("stat", "-fc", "%T", "/sys/fs/cgroup").stdout.decode().strip() != "cgroup2fs"
    assert ("[LKG5037]" in out) == v1 and code == (DIFFERENT if v1 else GOOD)


def verbs_in(text):
    """The verbs, one on each line, the last ones on a line of their own."""
    return [verb for line in re.findall(r"^  ([a-z]+(?:, [a-z]+)*)", text, re.M) for verb in line.split(", ")]


def test_help(tree):
    code, out, err = tool(tree, "--help")
    assert (code, err) == (GOOD, "")
    lines = out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) < 80
    verbs = verbs_in(out)
    assert len(verbs) == 31
    for verb in verbs:
        code, out, err = tool(tree, verb, "--help")
        assert (code, err) == (GOOD, "") and len(out.splitlines()) <= 24
        assert f"\nExample:\n  lkgfs {verb}" in out
        assert tool(tree, "help", verb) == (code, out, err)
    assert re.fullmatch(r"lkgfs \d+\.\d+\.\d+\n", tool(tree, "--version")[1])
    assert tool(tree, "version") == tool(tree, "--version") and tool(tree, "help") == tool(tree, "--help")


def complete(tree, *words, **environment):
    """Of bash, without a view, whoever mounts one; what the program offers is tested in test_tool_view.py."""
    script = (f"source {lib.REPOSITORY}/contrib/completion/lkgfs; COMP_WORDS=({' '.join(repr(w) for w in words)}); "
              f"COMP_CWORD={len(words) - 1}; _lkgfs; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    path = f"{os.path.dirname(lib.LKGFS)}:{os.environ['PATH']}"
    result = lib.shell(script, cwd=tree, check=True, env={**os.environ, "PATH": path, "LKGFS_MOUNTPOINT": os.fspath(tree), **environment})
    return set(result.stdout.decode().split())


@pytest.mark.parametrize("words, want", [
    (["hold", "on", ""], set()),                                   # one word, already typed
    (["hold", "--component", "kubelet", ""], {"on", "off"}),       # the value of an option is not the verb
    (["--mountpoint", "hold", ""], None),                          # this one neither
    (["hold", "--component", "hold", "on", ""], set()),
    (["status", ""], set()), (["sync", "now", ""], set()), (["rollback", "lkg", ""], set()), (["wait", "generation", ""], set()),
    (["check", "--", "--max"], set()),                             # flags of the component
    (["check", "--config", "k", "--", ""], set()),
    (["status", "--output", "json", "--o"], set()),                # not a second time
    (["status", "--output", "=", "json", "--o"], set()),
    (["status", "--output", "=", "j"], {"json"}), (["status", "--output", "="], {"text", "json", "yaml"}),
    (["check", "--host", "cgroup", "="], {"1", "2"}), (["check", "--host", "="], {"cgroup=1", "cgroup=2", "this"}),
    (["check", "--host", "=", "cgroup", "="], {"1", "2"}), (["check", "--host", "th"], {"this"}),
    (["wait", "--timeout", ""], {"30s", "5m", "1h"}),              # only this verb knows it
    (["convert", "a", ""], set()),
    (["nonsense", "--"], set()),
])
def test_completion_offers_what_fits(tree, words, want):
    got = complete(tree, "lkgfs", *words)
    if want is None:
        want = set(verbs_in(tool(tree, "--help")[1]))
    assert got == want


def test_completion_of_files_and_components(tree):
    assert complete(tree, "lkgfs", "convert", "kubelet.co") >= {"kubelet.conf"}
    assert "kubelet.conf" in complete(tree, "lkgfs", "patch", "kubelet.conf", "kubelet.co")
    assert complete(tree, "lkgfs", "patch", "kubelet.conf", "kubelet.conf", "") == set()
    for name in ("a-view", "another"):
        os.makedirs(tree / "view/status" / name)
        lib.write_file(tree / "view/status" / name / "generation", "1\n")
    found = complete(tree, "lkgfs", "gate", "", LKGFS_MOUNTPOINT=str(tree / "view"))
    assert found == {"a-view", "another"}
    assert complete(tree, "lkgfs", "status", "-c", "an", LKGFS_MOUNTPOINT=str(tree / "view")) == {"another"}


def on_a_terminal(tree, environment, *words):
    """Run it with a terminal as standard error; return what is printed there."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([lib.LKGFS, *words], cwd=tree, stdout=subprocess.DEVNULL, stderr=follower,
                               env={**os.environ, "TERM": "xterm", **environment})
    os.close(follower)
    output = b""
    while True:
        try:
            chunk = os.read(leader, 4096)
        except OSError:
            break
        if not chunk:
            break
        output += chunk
    os.close(leader)
    process.wait(lib.TIMEOUT_S)
    return output


def test_colour_only_on_a_terminal(tree):
    lib.write_file(tree / "kubelet.conf.d/50-bad.conf", "[")
    words = ["render", *STACK]
    assert b"\033[" in on_a_terminal(tree, {"NO_COLOR": ""}, *words)
    assert b"\033[" not in on_a_terminal(tree, {"NO_COLOR": "1"}, *words)
    assert b"\033[" not in on_a_terminal(tree, {"TERM": "dumb", "NO_COLOR": ""}, *words)
    assert "\033[" not in tool(tree, *words)[2]
    assert "\033[" in tool(tree, *words, "--color", "always")[2]
    assert b"\033[" not in on_a_terminal(tree, {"NO_COLOR": ""}, *words, "--color=never")


# ---- check --against ----
