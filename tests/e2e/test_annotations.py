# SPDX-License-Identifier: Apache-2.0
"""Findings where people look for them: SARIF, annotations of GitHub, a git hook."""
import json
import os
import re
import urllib.parse

import jsonschema
import pytest
import yaml

import lkgfs_testlib as lib

GOOD, DIFFERENT, FAILED = 0, 1, 2
BAD, MISSPELT = lib.HEADER + "maxPods: many\n", lib.HEADER + "maxPodz: 1\n"
CONTRIB = lib.REPOSITORY / "contrib"
SCHEMAS = [lib.REPOSITORY / "tests/lib/sarif-used.schema.json", *filter(None, [os.environ.get("LKGFS_SARIF_SCHEMA")])]


def check(cwd, *words, env=None, **kwargs):
    result = lib.run(lib.LKGFS, "check", *words, cwd=cwd, env={**os.environ, "LKGFS_CONFIG": "/nonexistent", **(env or {})}, **kwargs)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def sarif(cwd, *words, **kwargs):
    """The exit status and the only run of a log, which is valid and agrees with itself."""
    code, out, err = check(cwd, "-o", "sarif", *words, **kwargs)
    log = json.loads(out)
    for path in SCHEMAS:
        with open(path, encoding="utf-8") as file:
            jsonschema.validate(log, json.load(file))
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules) and {result["ruleId"] for result in run["results"]} == set(rules)
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    invocation = run["invocations"][0]
    assert invocation["exitCode"] == code
    for notification in invocation["toolExecutionNotifications"]:
        assert notification["message"]["text"] in err, "a person is told, too"
    return code, run


def place(item):
    physical = item["locations"][0]["physicalLocation"]
    region = physical.get("region", {})
    return physical["artifactLocation"]["uri"], region.get("startLine"), region.get("startColumn")


@pytest.fixture
def tree(tmp_path):
    lib.write_file(tmp_path / "good.conf", lib.HEADER + "maxPods: 64\n")
    lib.write_file(tmp_path / "bad.conf", BAD)
    os.mkdir(tmp_path / "kubelet.conf.d")
    lib.write_file(tmp_path / "kubelet.conf.d/50-x.conf", MISSPELT)
    return tmp_path


def test_sarif_names_file_line_column_and_rule(tree):
    code, run = sarif(tree, "bad.conf", "./kubelet.conf.d", str(tree / "good.conf"))
    assert code == DIFFERENT and run["invocations"][0]["executionSuccessful"]
    found = [(result["ruleId"], result["level"], place(result)) for result in run["results"]]
    assert ("LKG5001", "error", ("bad.conf", 3, 10)) in found
    assert any(level == "warning" and where[0] == "kubelet.conf.d/50-x.conf" for _, level, where in found), found
    assert run["results"][0]["message"]["text"].startswith('maxPods: "many"')
    assert run["tool"]["driver"]["rules"][0]["help"]["text"].startswith("Give the field a value")


def test_sarif_without_findings(tree):
    code, run = sarif(tree, "good.conf")
    assert (code, run["results"], run["tool"]["driver"]["rules"]) == (GOOD, [], [])


def test_sarif_of_what_cannot_be_read_is_a_failed_run(tree):
    os.chmod(tree, 0o755)
    os.chmod(tree / "good.conf", 0)
    code, run = sarif(tree, "good.conf", "missing.conf", "bad.conf", user=65534)
    failures = run["invocations"][0]["toolExecutionNotifications"]
    assert code == FAILED and not run["invocations"][0]["executionSuccessful"]
    assert [place(failure)[0] for failure in failures] == ["good.conf", "missing.conf"]
    assert [place(result)[0] for result in run["results"]] == ["bad.conf"], "the others are still judged"


def test_sarif_of_layers_and_of_nothing(tree):
    code, run = sarif(tree, "--config", "good.conf", "--config-dir", "kubelet.conf.d")
    assert code == DIFFERENT and {place(result)[0] for result in run["results"]} == {"kubelet.conf.d/50-x.conf"}
    os.mkdir(tree / "empty.d")
    code, run = sarif(tree, "--config-dir", "empty.d")
    assert code == DIFFERENT and "there is no document" in str(run["invocations"])
    code, run = sarif(tree, "--config", "missing.conf")
    assert code == FAILED and run["results"] == []
    code, run = sarif(tree, "-", input=BAD.encode())
    assert place(run["results"][0]) == ("-", 3, 10)


def test_sarif_uri_of_every_name(tree):
    os.mkdir(tree / "sub")
    for name in ("a b.conf", "50%.conf", "x:y.conf", "ä.conf", b"\xff.conf", "#[].conf", "..conf"):
        lib.write_file(os.path.join(os.fsencode(tree), b"sub", os.fsencode(name)), BAD)
        code, run = sarif(tree / "sub", name)
        uri, line, _ = place(run["results"][0])
        assert (code, line) == (DIFFERENT, 3) and not re.search(r"[^!-~]|:", uri)
        if name != b"\xff.conf":  # an undecodable byte is written \xff in every finding
            assert urllib.parse.unquote_to_bytes(uri) == os.fsencode(name)
    _, run = sarif(tree / "sub", str(tree / "bad.conf"))
    assert place(run["results"][0])[0] == (tree / "bad.conf").as_uri(), "not below the working directory"


def test_sarif_of_this_node(mounts):
    mount = mounts(over=True)
    mount.drop("50-bad.conf", "maxPods: many\n")
    words = ("--node-config", mount.config_path, "--mountpoint", mount.mountpoint)
    code, run = sarif(mount.source, *words)
    assert code == DIFFERENT
    assert ("kubelet.conf.d/50-bad.conf", 3, 10) in [place(result) for result in run["results"]]
    code, run = sarif(mount.source, "--node-config", mount.config_path + ".missing")
    assert code == FAILED and not run["invocations"][0]["executionSuccessful"]


def test_a_secret_is_in_no_annotation(tree):
    lib.write_file(tree / "secret.conf", lib.HEADER + "staticPodURLHeader:\n  X: {s3cr3t: s3cr3t}\nmaxPods: many\n")
    for form in ("sarif", "github"):
        _, out, _ = check(tree, "-o", form, "secret.conf")
        assert "LKG5001" in out and "s3cr3t" not in out


# ---- GitHub ----

COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::(.*)")


def unescape(text):
    for code, char in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(code, char)
    return text


def commands(out):
    found = []
    for line in out.splitlines():
        command, properties, message = COMMAND.fullmatch(line).groups()
        found.append((command, dict(map(unescape, one.split("=", 1)) for one in properties.split(",")), unescape(message)))
    return found


# ---- the git hook ----

@pytest.fixture
def repository(tmp_path):
    """A repository with the hook, as README.md sets it up; git's own configuration of this machine does not count."""
    env = {**os.environ, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@x",
           "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@x", "PATH": f"{lib.LKGFS.parent}:{os.environ['PATH']}"}
    top = tmp_path / "repository"

    def git(*words, check_status=True):
        return lib.run("git", "-C", top, *words, env=env, check=check_status)
    os.makedirs(top / "nodes/kubelet.conf.d")
    lib.run("git", "init", "-q", top, env=env, check=True)
    lib.run("cp", CONTRIB / "pre-commit/pre-commit", top / ".git/hooks/pre-commit", check=True)
    lib.write_file(top / "nodes/kubelet.conf", lib.HEADER + "maxPods: 64\n")
    lib.write_file(top / "values.yaml", "a: [\n")  # not ours: it may be a template
    git("add", ".")
    git("commit", "-qm", "good")
    return top, git


def refused(git, *words):
    result = git("commit", "-qm", "x", *words, check_status=False)
    return result.returncode != 0 and result.stdout.decode() + result.stderr.decode()


def test_the_hook_stops_a_bad_drop_in(repository):
    top, git = repository
    lib.write_file(top / "nodes/kubelet.conf.d/50 x.conf", BAD)
    git("add", ".")
    said = refused(git)
    assert "nodes/kubelet.conf.d/50 x.conf:3:10: error: maxPods" in said and "--no-verify" in said
    assert git("rev-list", "--count", "HEAD").stdout == b"1\n"
    lib.write_file(top / "nodes/kubelet.conf.d/50 x.conf", lib.HEADER + "maxPods: 65\n")
    assert refused(git), "what is staged counts, not the working tree"
    git("add", ".")
    lib.write_file(top / "nodes/kubelet.conf.d/50 x.conf", BAD)
    assert not refused(git)
    assert git("rev-list", "--count", "HEAD").stdout == b"2\n"


def test_the_hook_of_what_it_judges(repository):
    top, git = repository
    lib.write_file(top / "nodes/kubelet.conf.d/no-kind.conf", "maxPods: 1\n")
    git("add", ".")
    assert "no-kind.conf" in refused(git), "a drop-in without a kind"
    git("rm", "-qf", "nodes/kubelet.conf.d/no-kind.conf")
    lib.write_file(top / "map.yaml", yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
                                                     "data": {"kubelet": BAD}}))
    git("add", ".")
    assert "map.yaml" in refused(git), "a ConfigMap with one of our kinds"
    git("config", "--add", "lkgfs.files", "nodes/*.conf")
    assert not refused(git), "only what is configured"
    lib.write_file(top / "nodes/a.conf", BAD)
    git("add", ".")
    assert "nodes/a.conf:3:10" in refused(git)


def test_the_hook_of_layers(repository):
    top, git = repository
    git("config", "--add", "lkgfs.layers", "--config nodes/kubelet.conf --config-dir nodes/kubelet.conf.d")
    for name, line in (("1.conf", "serverTLSBootstrap: true\n"), ("2.conf", "featureGates:\n  RotateKubeletServerCertificate: false\n")):
        lib.write_file(top / "nodes/kubelet.conf.d" / name, lib.HEADER + line)
    git("add", ".")
    said = refused(git)
    assert "nodes/kubelet.conf.d/" in said and "serverTLSBootstrap" in said, "only together they are wrong"


def test_the_hook_without_lkgfs(repository):
    top, git = repository
    git("config", "lkgfs.program", "/nonexistent/lkgfs")
    lib.write_file(top / "x", "")
    git("add", ".")
    assert "lkgfs is not installed" in refused(git)


# ---- the action ----

def run_action(tree, **variables):
    """The step of the action, with the variables that the runner sets."""
    env = {**os.environ, "PATH": f"{lib.LKGFS.parent}:{os.environ['PATH']}", "GITHUB_ACTION_PATH": str(CONTRIB / "github-action"),
           "GITHUB_OUTPUT": str(tree / "output"), **variables}
    step, = [one for one in ACTION["runs"]["steps"] if one.get("id") == "check"]
    assert set(variables) <= set(step["env"])
    return lib.run("bash", "-e", "-o", "pipefail", "-c", step["run"], cwd=tree, env=env)


ACTION = yaml.safe_load((CONTRIB / "github-action/action.yml").read_text())


def test_action_annotates_and_fails(tree):
    result = run_action(tree, FILES="bad.conf\n\n  \nkubelet.conf.d\n", SARIF="out.sarif")
    assert result.returncode == DIFFERENT and len(commands(result.stdout.decode())) == 2
    assert len(json.loads((tree / "out.sarif").read_text())["runs"][0]["results"]) == 2
    assert (tree / "output").read_text() == "findings=true\n"
    result = run_action(tree, LAYERS="--config good.conf --config-dir kubelet.conf.d\n", RELEASE="1.36")
    assert result.returncode == DIFFERENT and b"file=kubelet.conf.d/50-x.conf" in result.stdout
    assert run_action(tree, FILES="good.conf").returncode == GOOD
    result = run_action(tree, FILES="")
    assert result.returncode == FAILED and commands(result.stdout.decode())[0][2] == "name files or layers to judge"


def test_action_has_the_inputs_that_it_uses():
    text = (CONTRIB / "github-action/action.yml").read_text()
    assert set(re.findall(r"\binputs\.(\w+)", text)) == set(ACTION["inputs"])
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), "an input in a command could be a command"
        assert "uses" in step or step["shell"] == "bash"
