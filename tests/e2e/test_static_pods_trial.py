# SPDX-License-Identifier: Apache-2.0
"""Static pods on trial: good, bad, together, and back. Rule: docs/specification.md 4.18."""
import contextlib
import http.server
import json
import os
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

import lkgfs_grpc as grpc
import lkgfs_testlib as lib
from test_static_pods import MANIFESTS, findings, pod, save_as_vi_does, served, tree

COMPONENT = {"name": "static-pods", "kind": "StaticPods",
             "trial": {"duration": "6s", "settle": "1s", "health": {"stableFor": "1s"}}}


class Endpoint:
    """What a pod would answer on its port."""

    def __init__(self, address="127.0.0.1"):
        endpoint = self
        self.status, self.requests = 200, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                endpoint.requests.append((self.path, dict(self.headers)))
                self.send_response(endpoint.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def with_probe(name, image, port, probe=None):
    probe = probe or f"{{httpGet: {{host: 127.0.0.1, port: {port}, path: /livez}}, periodSeconds: 1}}"
    return pod(name, image, f"    livenessProbe: {probe}\n")


@pytest.fixture
def endpoint():
    with Endpoint() as endpoint:
        yield endpoint


@contextlib.contextmanager
def mounted(endpoint, component=None, manifests=None, kubelet=None, **options):
    manifests = manifests or {"etcd.yaml": with_probe("etcd", "etcd:1", endpoint.port), "kube-apiserver.yaml": MANIFESTS["kube-apiserver.yaml"]}
    with lib.Mount(tree=tree, manifests=manifests, components=[kubelet or {"name": "kubelet"}, component or COMPONENT], **options) as mount:
        yield mount


def states(mount):
    rows = [line.split("\t") for line in mount.status("pods", "static-pods").splitlines()]
    return {row[0]: row[2] for row in rows}


def wait(mount, file, state):
    mount.wait_for(lambda: states(mount).get(file) == state, f"{file} {state}", component="static-pods")


def write(mount, file, text):
    mount.write(f"manifests/{file}", text, 0o600)


def test_the_first_set_is_good(endpoint):
    with mounted(endpoint) as mount:
        assert states(mount) == {"etcd.yaml": "good", "kube-apiserver.yaml": "good"}
        assert os.listdir(mount.path("bad/static-pods")) == []


def test_what_answers_well_is_the_last_known_good(endpoint):
    with mounted(endpoint) as mount:
        probe = f"{{httpGet: {{host: 127.0.0.1, port: {endpoint.port}, path: '/live zé?full=1%20x'}}, periodSeconds: 1}}"
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port, probe))
        assert states(mount)["etcd.yaml"] == "on trial"
        assert "True 1 on trial: 2 static pods are served" in mount.status("condition", "static-pods")
        assert 'lkgfs_trial_running{component="static-pods"} 1\n' in mount.status("metrics.prom", "static-pods")
        assert not os.path.exists(mount.vpath("status", "static-pods", "trial")), "each pod has one, in pods"
        assert "etcd:1" in mount.read("lkg/static-pods/etcd.yaml").decode()
        wait(mount, "etcd.yaml", "good")
        assert "etcd:2" in mount.read("lkg/static-pods/etcd.yaml").decode()
        assert endpoint.requests[-1][0] == "/live%20z%C3%A9?full=1%20x", "as Go's URL escapes it"
        assert mount.condition("static-pods")[0] == "True"


def test_what_does_not_answer_well_goes_back(endpoint):
    with mounted(endpoint) as mount:
        endpoint.status = 500
        bad = with_probe("etcd", "etcd:2", endpoint.port)
        write(mount, "etcd.yaml", bad)
        assert served(mount)["etcd.yaml"] == bad
        wait(mount, "etcd.yaml", "back")
        assert "etcd:1" in served(mount)["etcd.yaml"] and mount.read("manifests/etcd.yaml").decode() == bad
        name, = os.listdir(mount.path("bad/static-pods"))
        assert name.startswith("etcd.yaml@") and len(name) == len("etcd.yaml@") + 12
        mark = json.loads(mount.read("bad/static-pods", name))
        assert "not healthy: etcd: livenessProbe: the health endpoint answers with status 500" in mark["reason"]
        suspect, = mark["suspects"]["fields"]
        assert suspect["field"] == "spec/containers/etcd/image" and (suspect["old"], suspect["new"]) == ('"etcd:1"', '"etcd:2"')
        assert suspect["file"] == "etcd.yaml" and suspect["line"] == 11
        assert stat.S_IMODE(os.stat(mount.path("bad/static-pods", name)).st_mode) == 0o600, "it has values of a manifest"
        word, text = mount.condition("static-pods")
        assert word == "False" and "not healthy" in text
        assert "LKG2044" in findings(mount)
        endpoint.status = 200
        wait(mount, "etcd.yaml", "good")
        assert mount.condition("static-pods")[0] == "False", "what is in manifests/ is still not served"
        # try it again: it works now
        os.unlink(mount.path("bad/static-pods", name))
        assert served(mount)["etcd.yaml"] == bad
        wait(mount, "etcd.yaml", "good")
        assert mount.condition("static-pods")[0] == "True" and findings(mount) == ""
        assert mount.read("lkg/static-pods/etcd.yaml").decode() == bad


def test_another_change_is_another_try(endpoint):
    with mounted(endpoint) as mount:
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        wait(mount, "etcd.yaml", "back")
        endpoint.status = 200
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:3", endpoint.port))
        assert "etcd:3" in served(mount)["etcd.yaml"]
        wait(mount, "etcd.yaml", "good")
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        assert "etcd:3" in served(mount)["etcd.yaml"], "the text is marked"


def test_a_dead_end_is_said(endpoint):
    with mounted(endpoint) as mount:
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        wait(mount, "etcd.yaml", "dead end")
        assert "etcd:1" in served(mount)["etcd.yaml"]
        assert "last-known-good also failed: etcd.yaml" in mount.status("condition", "static-pods")


def test_an_answer_of_the_old_pod_is_not_enough(endpoint):
    with mounted(endpoint) as mount:
        before = len(endpoint.requests)
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        mount.wait_for(lambda: len(endpoint.requests) > before, "the first answer", component="static-pods")
        endpoint.status = 500
        wait(mount, "etcd.yaml", "back")


def test_a_mistake_meanwhile_does_not_keep_what_fails(endpoint):
    with mounted(endpoint) as mount:
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        write(mount, "etcd.yaml", "kind: Pod\n  broken: [\n")
        wait(mount, "etcd.yaml", "back")
        assert "etcd:1" in served(mount)["etcd.yaml"]
        wait(mount, "etcd.yaml", "dead end")
        assert 'reason="not_healthy"} 1\n' in mount.status("metrics.prom", "static-pods"), "marked once"


def test_what_is_mended_while_others_are_tried_is_another_try(endpoint):
    with Endpoint() as other:
        manifests = {"etcd.yaml": with_probe("etcd", "etcd:1", endpoint.port), "web.yaml": with_probe("web", "web:1", other.port)}
        with mounted(endpoint, {**COMPONENT, "trial": {**COMPONENT["trial"], "settle": "4s"}}, manifests=manifests) as mount:
            endpoint.status = other.status = 500
            write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
            lib.time.sleep(3)
            write(mount, "web.yaml", with_probe("web", "web:2", other.port))
            wait(mount, "etcd.yaml", "failed")
            endpoint.status = 200
            write(mount, "etcd.yaml", with_probe("etcd", "etcd:3", endpoint.port))
            assert states(mount)["etcd.yaml"] == "on trial"
            wait(mount, "etcd.yaml", "good")
            assert "etcd:3" in served(mount)["etcd.yaml"]


def test_another_engine_knows_that_a_pod_went_back(endpoint):
    with mounted(endpoint) as mount:
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        wait(mount, "etcd.yaml", "back")
        mount.kill_child("lkgfs-engine")
        wait(mount, "etcd.yaml", "dead end")
        assert states(mount)["kube-apiserver.yaml"] == "good"
        endpoint.status = 200
        wait(mount, "etcd.yaml", "good")


@pytest.mark.parametrize("spoil", [os.unlink, lambda path: os.truncate(path, 20)], ids=["lost", "cut"])
def test_without_the_last_good_set_nothing_is_good_untried(endpoint, spoil):
    with mounted(endpoint) as mount:
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        documents = os.path.join(mount.state, "dynamic/static-pods/documents")
        for name in os.listdir(documents):
            spoil(os.path.join(documents, name))
        mount.kill_child("lkgfs-engine")
        wait(mount, "etcd.yaml", "dead end")
        assert mount.condition("static-pods")[0] == "False" and "the last good manifests are lost" in mount.log()
        assert "etcd:2" in served(mount)["etcd.yaml"], "there is nothing else"


def test_the_last_good_text_of_a_file_that_is_there_stays(endpoint):
    """Another file, before it by name, has its pod for a while."""
    with mounted(endpoint) as mount:
        mount.write("manifests/etcd-copy.yaml", mount.read("manifests/etcd.yaml"), 0o600)
        wait(mount, "etcd-copy.yaml", "good")
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        os.unlink(mount.path("manifests/etcd-copy.yaml"))
        wait(mount, "etcd.yaml", "back")
        assert "etcd:1" in served(mount)["etcd.yaml"]


def node_address():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]
    return "127.0.0.1"


@pytest.mark.parametrize("address", ["127.0.0.1", node_address()], ids=["loopback", "node"])
def test_where_a_pod_of_the_host_may_listen(address):
    with Endpoint(address) as endpoint:
        probe = f"{{httpGet: {{port: {endpoint.port}}}, periodSeconds: 1}}"
        with mounted(endpoint) as mount:
            write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", 0, probe))
            wait(mount, "etcd.yaml", "good")


def test_an_editor_that_moves_the_file_away(endpoint):
    with mounted(endpoint) as mount:
        endpoint.status = 500
        save_as_vi_does(mount.path("manifests/etcd.yaml"), with_probe("etcd", "etcd:2", endpoint.port))
        assert "etcd:2" in served(mount)["etcd.yaml"]
        wait(mount, "etcd.yaml", "back")
        assert "etcd:1" in served(mount)["etcd.yaml"]


def test_a_new_pod_that_fails_has_nothing_to_go_back_to(endpoint):
    with mounted(endpoint) as mount:
        text = with_probe("new", "new:1", 1)
        write(mount, "new.yaml", text)
        wait(mount, "new.yaml", "dead end")
        assert served(mount)["new.yaml"] == text
        assert mount.condition("static-pods")[0] == "False"
        assert not os.path.exists(mount.path("lkg/static-pods/new.yaml"))


def test_without_probes_there_is_no_trial(endpoint):
    with mounted(endpoint) as mount:
        write(mount, "kube-apiserver.yaml", pod("kube-apiserver", "api:2"))
        wait(mount, "kube-apiserver.yaml", "good")
        assert "api:2" in mount.read("lkg/static-pods/kube-apiserver.yaml").decode()


def test_a_comment_needs_no_trial(endpoint):
    with mounted(endpoint) as mount:
        text = "# changed\n" + with_probe("etcd", "etcd:1", endpoint.port)
        write(mount, "etcd.yaml", text)
        assert states(mount)["etcd.yaml"] == "good" and served(mount)["etcd.yaml"] == text


@pytest.mark.parametrize("trial", [{"scope": "remote"}, {"duration": "0s"}])
def test_no_trial_is_wanted(endpoint, trial):
    component = {"name": "static-pods", "kind": "StaticPods"}
    endpoint.status = 500
    with mounted(endpoint, component, config={"trial": trial}) as mount:
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        wait(mount, "etcd.yaml", "good")
        assert "etcd:2" in mount.read("lkg/static-pods/etcd.yaml").decode()


def test_two_that_change_together_go_back_together(endpoint):
    manifests = {f"{name}.yaml": with_probe(name, f"{name}:1", endpoint.port) for name in ("etcd", "kube-apiserver")}
    with mounted(endpoint, manifests=manifests) as mount:
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        write(mount, "kube-apiserver.yaml", with_probe("kube-apiserver", "kube-apiserver:2", endpoint.port))
        before = mount.generation("static-pods")
        mount.wait_for(lambda: mount.generation("static-pods") != before, "a set", component="static-pods")
        assert served(mount) == manifests, "one generation takes both back"


def test_one_of_two_works_and_stays(endpoint):
    with Endpoint() as other:
        manifests = {"etcd.yaml": with_probe("etcd", "etcd:1", endpoint.port),
                     "kube-apiserver.yaml": with_probe("kube-apiserver", "api:1", other.port)}
        with mounted(endpoint, manifests=manifests) as mount:
            other.status = 500
            write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
            write(mount, "kube-apiserver.yaml", with_probe("kube-apiserver", "api:2", other.port))
            wait(mount, "kube-apiserver.yaml", "back")
            assert "api:1" in served(mount)["kube-apiserver.yaml"] and "etcd:2" in served(mount)["etcd.yaml"]
            assert "etcd:2" in mount.read("lkg/static-pods/etcd.yaml").decode()


def test_a_hold_ends_a_trial(endpoint):
    with mounted(endpoint) as mount:
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        mount.command("hold", "on", "static-pods")
        assert states(mount)["etcd.yaml"] == "untried", "what is held is not on trial"
        mount.command("hold", "off", "static-pods")
        assert states(mount)["etcd.yaml"] == "on trial"
        mount.command("promote", "now", "static-pods")
        assert states(mount)["etcd.yaml"] == "good"
        with pytest.raises(OSError):
            mount.command("startup", "now", "static-pods")
        assert "etcd:2" in mount.read("lkg/static-pods/etcd.yaml").decode()


def test_rollback_to_the_last_known_good(endpoint):
    with mounted(endpoint) as mount:
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        mount.command("rollback", "lkg", "static-pods")
        assert "etcd:1" in served(mount)["etcd.yaml"]
        mount.command("hold", "off", "static-pods")
        assert "etcd:2" in served(mount)["etcd.yaml"]


def test_a_mark_by_hand(endpoint):
    with mounted(endpoint) as mount:
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        wait(mount, "etcd.yaml", "good")
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:3", endpoint.port))
        lib.write_file(mount.path("bad/static-pods/etcd.yaml"), "not this one")
        assert "etcd:2" in served(mount)["etcd.yaml"]
        assert "not this one" in mount.status("condition", "static-pods")
        os.unlink(mount.path("bad/static-pods/etcd.yaml"))
        assert "etcd:3" in served(mount)["etcd.yaml"]


def test_a_mark_outlives_engine_and_reboot(endpoint):
    with mounted(endpoint) as mount:
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        wait(mount, "etcd.yaml", "back")
        mount.kill_child("lkgfs-engine")
        mount.wait_for(lambda: "LKG2044" in findings(mount), "the next engine", component="static-pods")
        assert "etcd:1" in served(mount)["etcd.yaml"]
        mount.stop()
        lib.run("rm", "-rf", mount.runtime, check=True)
        mount.start()
        assert "etcd:1" in served(mount)["etcd.yaml"]


def test_the_probes_of_a_manifest_are_asked_as_it_says(endpoint):
    probe = """{httpGet: {host: 127.0.0.1, port: web, path: "/healthz?x=1", httpHeaders: [{name: Host, value: example},
      {name: X-Test, value: a}]}, periodSeconds: 1}
    ports: [{name: web, containerPort: %d}]""" % endpoint.port
    with mounted(endpoint) as mount:
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", 0, probe))
        mount.wait_for(lambda: endpoint.requests, "a request", component="static-pods")
        path, headers = endpoint.requests[0]
        assert path == "/healthz?x=1" and headers["Host"] == "example" and headers["X-Test"] == "a"


def test_a_tcp_probe(endpoint):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with mounted(endpoint) as mount:
            write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", 0, f"{{tcpSocket: {{host: 127.0.0.1, port: {port}}}, periodSeconds: 1}}"))
            wait(mount, "etcd.yaml", "good")


def test_a_stopped_engine_keeps_what_is_served(endpoint):
    with mounted(endpoint) as mount:
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        os.kill(mount.child("lkgfs-engine"), signal.SIGSTOP)
        assert "etcd:2" in served(mount)["etcd.yaml"]


# ---- the container runtime ----

CRASHES = 10


@pytest.fixture
def runtime(tmp_path):
    with grpc.Runtime(tmp_path / "runtime.sock") as one:
        one.path = tmp_path / "runtime.sock"
        yield one


def with_runtime(runtime, duration="6s"):
    return {**COMPONENT, "runtimeEndpoint": f"unix://{runtime.path}", "trial": {**COMPONENT["trial"], "duration": duration}}


def of_pod(name, node=None):
    return f"{name}-{node or socket.gethostname().lower()}"


def running(runtime, name, restarts, ip="", born=None, node=None):
    born = born or time.time_ns() + 3600 * 10 ** 9
    runtime.sandbox("s" + name, of_pod(name, node), born, ip=ip, uid=name)
    runtime.container("c" + name, "s" + name, name, 1, born, restarts=str(restarts))


def test_a_crash_loop_fails_the_trial(endpoint, runtime):
    running(runtime, "etcd", CRASHES + 1)
    with mounted(endpoint, with_runtime(runtime)) as mount:
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        mount.wait_for(lambda: os.listdir(mount.path("bad/static-pods")), "a mark", component="static-pods")
        name, = os.listdir(mount.path("bad/static-pods"))
        assert f"due to crash loop, {CRASHES + 1} restarts" in json.loads(mount.read("bad/static-pods", name))["reason"]
        assert "etcd:1" in served(mount)["etcd.yaml"]


@pytest.mark.parametrize("born", [1, None], ids=["restarts before the change", "as many as the threshold"])
def test_restarts_that_say_nothing(endpoint, runtime, born):
    running(runtime, "etcd", CRASHES + 1 if born else CRASHES, born=born)
    with mounted(endpoint, with_runtime(runtime)) as mount:
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        wait(mount, "etcd.yaml", "good")
        assert "etcd:2" in served(mount)["etcd.yaml"] and runtime.calls


def test_a_pod_with_an_address_of_its_own(endpoint, runtime):
    own = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: web\n    image: web:%d\n" \
          "    readinessProbe: {httpGet: {port: %d}, periodSeconds: 1}\n"
    manifests = {"web.yaml": own % (1, endpoint.port)}
    with mounted(endpoint, with_runtime(runtime, "20s"), manifests=manifests) as mount:
        write(mount, "web.yaml", own % (2, endpoint.port))
        assert states(mount)["web.yaml"] == "on trial", "its address may still come"
        runtime.sandbox("s", of_pod("web"), time.time_ns(), ip="127.0.0.1", uid="u", ns="default")
        runtime.container("c", "s", "web", 1, time.time_ns(), restarts="0")
        wait(mount, "web.yaml", "good")
        assert endpoint.requests


def test_restarts_where_the_kubelet_has_another_name(endpoint, runtime, tmp_path):
    exe, script = tmp_path / "kubelet", tmp_path / "script"
    exe.write_bytes(lib.read_file("/bin/sh"))
    exe.chmod(0o755)
    kubelet = {"name": "kubelet", "match": {"unit": "", "exe": [str(exe)]}}
    running(runtime, "etcd", CRASHES + 1, node="another")
    with mounted(endpoint, with_runtime(runtime), kubelet=kubelet) as mount:
        script.write_text(f"exec < {mount.path('kubelet.conf')}; echo opened; kill -STOP $$\n")
        with subprocess.Popen([exe, script, "--hostname-override=another"], stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout.readline() == b"opened\n"
                mount.wait_for(lambda: f"pid={process.pid}\n" in mount.status("process"), "it is known")
                write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
                mount.wait_for(lambda: os.listdir(mount.path("bad/static-pods")), "a mark", component="static-pods")
            finally:
                process.kill()


def test_without_a_runtime_an_address_is_not_known(endpoint, runtime):
    own = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: web\n    image: web:%d\n" \
          "    readinessProbe: {httpGet: {port: 1}, periodSeconds: 1}\n"
    component = {**COMPONENT, "runtimeEndpoint": f"unix://{runtime.path}.none"}
    with mounted(endpoint, component, manifests={"web.yaml": own % 1}) as mount:
        write(mount, "web.yaml", own % 2)
        mount.wait_for(lambda: states(mount)["web.yaml"] in ("untried", "good"), "no trial", component="static-pods")
        mount.wait_for(lambda: "web:2" in mount.read("lkg/static-pods/web.yaml").decode(), "good", component="static-pods")


def test_a_rollback_serves_the_last_good_set(endpoint):
    with mounted(endpoint) as mount:
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        mount.write("manifests/kube-apiserver.yaml", pod("kube-apiserver", "api:2"), 0o600)
        mount.wait_for(lambda: "api:2" in mount.read("lkg/static-pods/kube-apiserver.yaml").decode(), "it is good, and etcd:2 is not")
        mount.command("rollback", "lkg", "static-pods")
        for _ in range(2):
            assert "etcd:1" in served(mount)["etcd.yaml"] and "api:2" in served(mount)["kube-apiserver.yaml"]
            mount.stop()
            lib.run("rm", "-rf", mount.runtime, check=True)  # a reboot
            mount.start()


def test_a_condemned_copy_makes_room_for_the_good_file(endpoint):
    with mounted(endpoint) as mount:
        endpoint.status = 500
        write(mount, "a.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        mount.wait_for(lambda: served(mount).keys() == {"etcd.yaml", "kube-apiserver.yaml"}, "the pod's good file")
        assert "etcd:1" in served(mount)["etcd.yaml"]


OWN = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: web\n    image: web:%d\n" \
      "    readinessProbe: {httpGet: {port: %d}, periodSeconds: 1}\n"


def test_a_runtime_that_is_away_for_a_while_makes_nothing_good(endpoint, runtime):
    """Of a pod with an address of its own: the trial goes on when the runtime answers again, and fails then."""
    endpoint.status = 500
    running_at = {"ip": "127.0.0.1", "uid": "u", "ns": "default"}
    runtime.sandbox("s", of_pod("web"), time.time_ns() + 10 ** 13, **running_at)
    runtime.container("c", "s", "web", 1, time.time_ns())
    with mounted(endpoint, with_runtime(runtime), manifests={"web.yaml": OWN % (1, endpoint.port)}) as mount:
        write(mount, "web.yaml", OWN % (2, endpoint.port))
        mount.wait_for(lambda: endpoint.requests, "it is asked", component="static-pods")
        answer = runtime.answers[grpc.CRI + "ListPodSandbox"]
        runtime.say(grpc.CRI + "ListPodSandbox", grpc.status(14))
        mount.wait_for(lambda: "\ton trial\t" in mount.status("pods", "static-pods") and len(endpoint.requests) > 12,
                       "longer than the trial lasts", component="static-pods")
        runtime.say(grpc.CRI + "ListPodSandbox", answer)
        wait(mount, "web.yaml", "back")
        assert "web:1" in mount.read("lkg/static-pods/web.yaml").decode() and "web:1" in served(mount)["web.yaml"]


def test_a_health_port_that_the_kubelet_does_not_have_yet_ends_no_trial_late(endpoint):
    with Endpoint() as kubelet, mounted(endpoint) as mount:
        mount.drop("50-h.conf", f"healthzPort: {kubelet.port}\nhealthzBindAddress: 127.0.0.1\n")
        mount.wait_for(lambda: kubelet.requests, "the kubelet answers")
        mount.drop("50-h.conf", "healthzPort: 1\nhealthzBindAddress: 127.0.0.1\n")
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        wait(mount, "etcd.yaml", "back")


def test_a_probe_that_names_loopback_must_answer_there(runtime):
    """Another one without a host may answer at the address of the node only; both have the same URL on loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        address = probe.getsockname()[0]
    with Endpoint(address) as endpoint:
        probes = "    readinessProbe: {httpGet: {port: %d}, periodSeconds: 1}\n" \
                 "    livenessProbe: {httpGet: {host: 127.0.0.1, port: %d}, periodSeconds: 1}\n" % (endpoint.port, endpoint.port)
        with mounted(endpoint, manifests={"etcd.yaml": pod("etcd", "etcd:1")}) as mount:
            write(mount, "etcd.yaml", pod("etcd", "etcd:2", probes))
            mount.wait_for(lambda: os.listdir(mount.path("bad/static-pods")), "a mark", component="static-pods")
            assert endpoint.requests and "etcd:1" in served(mount)["etcd.yaml"]


def test_a_copy_of_a_condemned_text_is_no_better(endpoint):
    with mounted(endpoint) as mount:
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        wait(mount, "etcd.yaml", "back")
        write(mount, "a-copy.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        assert set(served(mount)) == {"etcd.yaml", "kube-apiserver.yaml"} and "etcd:1" in served(mount)["etcd.yaml"]


def test_what_a_pod_goes_back_to_is_kept_while_its_file_is_away(endpoint):
    """For longer than settle, which is a second here."""
    with mounted(endpoint) as mount:
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        wait(mount, "etcd.yaml", "back")
        os.rename(mount.path("manifests"), mount.path("away"))
        mount.wait_for(lambda: not os.listdir(mount.path("static-pods")), "the directory is gone", component="static-pods")
        mount.wait_for(lambda: os.listdir(mount.path("lkg/static-pods")) == ["etcd.yaml"], "what is not marked is forgotten", component="static-pods")
        os.rename(mount.path("away"), mount.path("manifests"))
        mount.wait_for(lambda: "etcd.yaml" in served(mount), "it is back", component="static-pods")
        assert "etcd:1" in served(mount)["etcd.yaml"]


def test_a_comment_does_not_begin_a_trial_anew(endpoint, runtime):
    """Else the restarts of before would not count: the pod is the same one."""
    with mounted(endpoint, with_runtime(runtime, "60s")) as mount:
        endpoint.status = 500
        write(mount, "etcd.yaml", with_probe("etcd", "etcd:2", endpoint.port))
        mount.wait_for(lambda: endpoint.requests, "it is on trial", component="static-pods")
        born = time.time_ns()
        write(mount, "etcd.yaml", "# why\n" + with_probe("etcd", "etcd:2", endpoint.port))
        running(runtime, "etcd", CRASHES + 1, born=born)
        mount.wait_for(lambda: os.listdir(mount.path("bad/static-pods")), "a mark", component="static-pods")
