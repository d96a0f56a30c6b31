# SPDX-License-Identifier: Apache-2.0
"""The files for monitoring in contrib/ use what the engine exports: names, labels, and files that can be loaded."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
import yaml

import lkgfs_testlib as lib
from lkgfs_picture import picture

FOLDER = lib.REPOSITORY / "contrib/prometheus"
RULES = yaml.safe_load((FOLDER / "lkgfs.rules.yaml").read_text())
DASHBOARD = json.loads((FOLDER / "lkgfs-dashboard.json").read_text())
FOREIGN = {"up", "node_textfile_mtime_seconds", "node_textfile_scrape_error"}
SOURCE_LABELS = {"instance", "job", "file"}  # added by the scraper
WORDS = {"and", "or", "unless", "on", "by", "without", "ignoring", "bool", "group_left", "group_right", "time", "sum", "count", "max",
         "min", "topk", "bottomk", "rate", "increase", "changes", "round", "max_over_time", "absent"}
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [rule["expr"] for rule in ALERTS] + [target["expr"] for panel in PANELS for target in panel["targets"]]


def metrics_source():
    paths = [path for folder in ("core/engine", "core/publish", "fs/server") for path in sorted((lib.REPOSITORY / folder).glob("*.c"))]
    return "".join(path.read_text() for path in paths)


def exported():
    return set(re.findall(r'"(lkgfs_[a-z_]+)', metrics_source()))


def exported_labels():
    written = re.findall(r'[{,\\](\w+)=\\"', metrics_source())
    return set(written) | set(re.findall(r'put_labelled\(buf,[^;"]*(?:"lkgfs_\w+")?, c, "(\w+)"', re.sub(r"\s+", " ", metrics_source())))


def bare(expression):
    """Without string literals and Grafana variables."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)


def parsed(expression):
    """Return (metrics, labels) that an expression names."""
    text = bare(expression)
    labels = set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*""', text))
    for group in re.findall(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)", text):
        labels |= {name.strip() for name in group.split(",") if name.strip()}
    text = re.sub(r"\b(?:by|on|without|ignoring)\s*\([^)]*\)", " ", re.sub(r"\{[^}]*\}|\[[^]]*\]", " ", text))
    return set(re.findall(r"\b[a-z_]\w*\b", text)) - WORDS, labels


def test_metrics_are_found_in_the_sources_at_all():
    assert len(exported()) > 15 and {"component", "role", "severity"} <= exported_labels()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_only_what_is_exported_is_used(expression):
    metrics, labels = parsed(expression)
    assert metrics and metrics - exported() - FOREIGN == set()
    assert labels - exported_labels() - SOURCE_LABELS == set()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_brackets_and_quotes_match(expression):
    text, open_ones = bare(expression), []
    assert text.count('"') % 2 == 0
    for character in re.sub(r'"[^"]*"', "", text):
        if character in "([{":
            open_ones.append(")]}"["([{".index(character)])
        elif character in ")]}":
            assert open_ones and open_ones.pop() == character
    assert open_ones == []


def test_rules_are_what_prometheus_takes():
    assert set(RULES) == {"groups"}
    names = [group["name"] for group in RULES["groups"]]
    assert len(set(names)) == len(names) and all(set(group) <= {"name", "rules", "interval"} for group in RULES["groups"])
    for rule in ALERTS:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"Lkgfs[A-Za-z]+", rule["alert"])
        assert re.fullmatch(r"\d+[smhd]", rule.get("for", "0s"))
        assert rule["labels"]["severity"] in ("critical", "warning", "info") and rule["annotations"]["summary"]
        assert all(isinstance(text, str) for text in [*rule["labels"].values(), *rule["annotations"].values()])
    assert len({rule["alert"] for rule in ALERTS}) == len(ALERTS)


def test_every_alert_is_explained():
    page = (FOLDER / "README.md").read_text()
    table = "\n".join(line for line in page.splitlines() if line.startswith("| Lkgfs"))
    assert sorted(re.findall(r"\bLkgfs\w+", table)) == sorted(rule["alert"] for rule in ALERTS)


def test_templates_of_alerts_name_labels_that_are_there():
    for rule in ALERTS:
        used = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        assert used <= exported_labels() | SOURCE_LABELS, rule["alert"]


def test_the_dashboard_can_be_loaded():
    assert DASHBOARD["schemaVersion"] >= 36 and DASHBOARD["title"] and DASHBOARD["uid"] and DASHBOARD["id"] is None
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource" and variables["datasource"]["query"] == "prometheus"
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in PANELS:
        assert panel["type"] in ("stat", "timeseries", "table") and panel["title"] and panel["targets"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    used = set(re.findall(r"\$(?!__)\{?(\w+)", json.dumps(DASHBOARD)))
    assert used <= set(variables)
    queries = [variable["definition"] for variable in variables.values() if variable["type"] == "query"]
    assert all(set(re.findall(r"\blkgfs_\w+", query)) <= exported() for query in queries)


def test_panels_do_not_lie_on_each_other():
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells


def read_metrics(text):
    """Return (name -> (HELP, TYPE), series) of one file."""
    families, series = {}, []
    for line in text.splitlines():
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            families.setdefault(name, {})[word] = rest
        else:
            series.append(line.rsplit(" ", 1)[0])
            assert re.fullmatch(r"[a-z_]+(\{.*\})? [-+0-9.e]+", line), f"a client timestamp, or no sample: {line}"
    return families, series


def test_one_collector_takes_the_files_of_two_components(mounts):
    """The collector merges all files: a series that is listed twice is an error, and so is a second HELP or TYPE for a name."""
    mount = mounts(components=[{"name": "kubelet"}, {"name": "other", "base": "kubelet.conf", "file": "other.conf"}])
    first, second = (read_metrics(mount.status("metrics.prom", name)) for name in ("kubelet", "other"))
    assert set(first[1]) & set(second[1]) == set() and len(set(first[1])) == len(first[1])
    assert first[0] == second[0] and all(set(family) == {"HELP", "TYPE"} for family in first[0].values())
    assert set(first[0]) <= exported()


def test_units_are_installed_for_everybody_to_read(tmp_path):
    """Otherwise systemd warns, and a user who wants to know why the kubelet waits cannot read them."""
    lib.shell(f"umask 077; DESTDIR={tmp_path} meson install -C {lib.BUILD} --no-rebuild", check=True)
    units = [path for path in tmp_path.rglob("*") if path.name in ("20-lkgfs.conf", "lkgfs.service", "lkgfs.conf")]
    assert len(units) == 4
    assert {path.name: oct(path.stat().st_mode & 0o7777) for path in units} == dict.fromkeys((p.name for p in units), "0o644")
    for page in [lib.REPOSITORY / "README.md", *(lib.REPOSITORY / "docs").glob("*.md")]:
        for line in re.findall(r"install .*/20-lkgfs\.conf", page.read_text(encoding="utf-8")):
            assert " -m 0644 " in line, f"{page.name}: {line}"


# ---- root rights ----

def as_nobody(script, path, **environment):
    return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", script], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, env={"PATH": path, "LC_ALL": "C.UTF-8", **environment})


@pytest.fixture
def scripts():
    """The scripts that any user may run, in a directory that any user can reach."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=lib.PREFIX, dir="/tmp"))
    shutil.copytree(lib.REPOSITORY / "contrib/quickstart", folder / "contrib/quickstart")
    (folder / "tests").mkdir()
    shutil.copy2(lib.REPOSITORY / "tests/run", folder / "tests/run")
    lib.run("chmod", "-R", "a+rX", str(folder), check=True)
    yield folder
    shutil.rmtree(folder)


def test_a_user_becomes_root_by_sudo_and_keeps_words_and_variables(scripts):
    sudo = scripts / "bin/sudo"
    sudo.parent.mkdir()
    sudo.write_text("#!/bin/bash\nprintf '<%s>' \"$@\"\n")
    sudo.chmod(0o755)
    sudo.parent.chmod(0o755)
    result = as_nobody(f". {scripts}/contrib/quickstart/become-root; root_keeps=(KEPT UNSET); become_root it run 'a b' --stop",
                       f"{sudo.parent}:/usr/bin:/bin", KEPT="x y", OTHER="z")
    assert (result.stdout, result.stderr) == ("<--><env><KEPT=x y><run><a b><--stop>", "it needs root\n")


@pytest.mark.parametrize("words", ["contrib/quickstart/run", "contrib/quickstart/run --stop", "tests/run e2e"])
def test_who_cannot_become_root_is_told(scripts, words):
    """Neither script does anything as an ordinary user: it asks for root rights and exits if it does not get them."""
    result = as_nobody(f"{scripts}/{words}", "/usr/bin:/bin")
    assert result.returncode != 0 and "needs root" in result.stderr and result.stdout == ""
    assert not (scripts / "build-tests").exists()


def test_the_readme_shows_one_form_for_root_and_for_others():
    page = (lib.REPOSITORY / "README.md").read_text()
    assert re.search(r"^    contrib/quickstart/run\b", page, re.M) and re.search(r"^    tests/run\b", page, re.M)
    assert not re.search(r"^    sudo ", page, re.M)


# ---- the quick start ----

def test_the_quick_start_shows_what_it_says(tmp_path):
    """In namespaces of its own: its directory in /run is another one, and what it leaves ends with them. A quick start may run outside."""
    shutil.copytree(lib.REPOSITORY / "contrib/quickstart", tmp_path / "contrib/quickstart")
    (tmp_path / "build").symlink_to(lib.BUILD)
    run = tmp_path / "contrib/quickstart/run"
    result = lib.run("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private", "bash", "-ec",
                     'umount --lazy --quiet /run/lkgfs-quickstart/view || true; mount -t tmpfs none /run; "$0"; "$0" --stop; [[ ! -e /run/lkgfs-quickstart ]]', str(run))
    text = result.stdout.decode()
    assert result.returncode == 0, text + result.stderr.decode()
    assert re.search(r"^\$ grep maxPods kubelet.conf\nmaxPods: 60$", text, re.M) and "\n/maxPods\t60\tdrop-in 10-capacity.conf\t" in text
    assert "\nFalse serving generation 2, the newest change is refused; [" in text and "10-capacity.conf:" in text
    assert re.search(r"rollback\n\$ grep maxPods kubelet.conf\nmaxPods: 80\n\$ echo off.*\n.*\nmaxPods: 60\n", text)
    assert "clusterDomain: cluster.lcoal\n" * 3 + "clusterDomain: cluster.local\n" in text
    assert re.search(r"^reads: [1-9]\d*, failed: 0$", text, re.M)
    drawn, kept = picture(text), lib.REPOSITORY / "docs/quickstart.svg"
    if "LKG_ROWS_WRITE" in os.environ:
        kept.write_text(drawn)
    assert kept.read_text() == drawn, "LKG_ROWS_WRITE=1 draws it again"


# ---- the bench ----

def test_the_bench_measures_a_build_that_is_named_relatively():
    result = lib.run(str(lib.REPOSITORY / "tests/bench/run"), "--build", os.path.relpath(lib.BUILD), "--quick", "--row", "open", "--json")
    assert result.returncode == 0, (result.stdout + result.stderr).decode()
    assert len(json.loads(result.stdout)["rows"]) >= 7
