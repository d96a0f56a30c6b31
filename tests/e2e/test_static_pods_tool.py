# SPDX-License-Identifier: Apache-2.0
"""The verbs of the tool about static pods. Rule: docs/specification.md 2.13, 2.17."""
import io
import os
import tarfile

import pytest

import lkgfs_testlib as lib
import test_static_pods_trial as trial
from test_static_pods import mounted, pod

ENV = """\
    env:
    - {name: DB_PASSWORD, value: hunter2}
    - {name: PGPASSWORD, value: hunter2}
    - {name: DB_HOST, value: db.example}
    args: [--password=hunter2]
    startupProbe: {tcpSocket: {port: 1}}
    readinessProbe: {httpGet: {port: 1, httpHeaders: [{name: Authorization, value: Basic hunter2}]}}
"""


@pytest.fixture
def failed():
    """A manifest with secrets that went back."""
    with trial.Endpoint() as endpoint, trial.mounted(endpoint) as mount:
        endpoint.status = 500
        trial.write(mount, "etcd.yaml", trial.with_probe("etcd", "etcd:2", endpoint.port) + ENV)
        trial.wait(mount, "etcd.yaml", "back")
        yield mount


def everything_below(mount, *directories):
    return {os.path.join(where, name): lib.read_file(os.path.join(where, name)).decode()
            for directory in directories for where, _, names in os.walk(mount.path(directory)) for name in names}


def test_no_value_of_a_secret_variable_is_shown(failed):
    mark, = os.listdir(failed.path("bad/static-pods"))
    texts = everything_below(failed, "status", "layers", "history", "bad")
    texts["log"] = failed.log()
    for words in (("bad", mark), ("diff", "--bad", mark), ("blame",), ("status", "--all")):
        texts[words] = failed.tool(*words, "-c", "static-pods").stdout.decode()
    for form in ("html", "tar"):
        result = failed.tool("report", "-o", form, "--node-config", failed.config_path)
        assert result.returncode == 0, result.stderr
        if form == "html":
            texts["page"] = result.stdout.decode()
            continue
        with tarfile.open(fileobj=io.BytesIO(result.stdout)) as archive:
            texts |= {member.name: archive.extractfile(member).read().decode() for member in archive if member.isfile()}
    assert [name for name, text in texts.items() if "hunter2" in text] == []
    assert "db.example" in texts[("bad", mark)] and "db.example" in texts[("diff", "--bad", mark)], "what is not secret is shown"


def test_a_mark_is_blamed(failed):
    mark, = os.listdir(failed.path("bad/static-pods"))
    said = failed.tool("bad", mark, "-c", "static-pods").stdout.decode()
    assert '/etcd.yaml/spec/containers/etcd/image: "etcd:1" -> "etcd:2"' in said
    assert "\n+      image: etcd:2\n" in failed.tool("diff", "--bad", mark, "-c", "static-pods").stdout.decode()
    assert failed.tool("npd", "--check", "bad", "-c", "static-pods").stdout.decode() == f"1 bad configuration of static-pods: {mark}\n"
    assert failed.tool("doctor").returncode == 1
    assert failed.tool("forget", mark, "-c", "static-pods").returncode == 0 and trial.states(failed)["etcd.yaml"] == "on trial"
    assert failed.tool("promote", "-c", "static-pods").returncode == 0 and trial.states(failed)["etcd.yaml"] == "good"
    assert failed.tool("status").returncode == 0


def test_manifests_are_compared_by_generations_only():
    with mounted() as mount:
        first = mount.generation("static-pods")
        mount.write("manifests/etcd.yaml", pod("etcd", "etcd:2"), 0o600)
        changed = mount.tool("diff", str(first), "-c", "static-pods").stdout.decode()
        assert "\n-    - image: registry.k8s.io/pause:3.10\n+    - image: etcd:2\n" in changed
        refused = mount.tool("diff", "--node-config", mount.config_path, "-c", "static-pods")
        assert refused.returncode == 64 and b"none changes another" in refused.stderr
        baked = mount.tool("bake", "--directory", mount.source, "-c", "static-pods")
        assert baked.returncode == 1 and b"copy their directory" in baked.stderr
