# SPDX-License-Identifier: Apache-2.0
"""Health before promotion: a component that is alive and useless does not make its configuration the last known good.

Rule: docs/specification.md 4.10.
"""
import http.server
import threading

import pytest

import lkgfs_testlib as lib
from lkgfs_apinode import ANNOTATION, CONFIGMAP, REFERENCE, payload
from lkgfs_node import NAMESPACE, Node


class Endpoint:
    """
    A health endpoint whose answer is `status`; None = it accepts and says nothing until it is told otherwise. `owed`: bytes of a body that
    it announces and does not send: it hangs, or (`breaks_off`) closes the connection.
    """

    def __init__(self, address="127.0.0.1"):
        self.status, self.n, self.owed, self.breaks_off = 200, 0, 0, False
        self.told = threading.Condition()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                with outer.told:
                    outer.n += 1
                    outer.told.notify_all()
                    outer.told.wait_for(lambda: outer.status is not None)
                    status = outer.status
                self.send_response(status)
                self.send_header("Content-Length", str(outer.owed))
                self.end_headers()
                self.close_connection = bool(outer.owed)
                if outer.owed and not outer.breaks_off:
                    self.wfile.flush()
                    with outer.told:
                        outer.told.wait_for(lambda: not outer.owed)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/healthz"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def say(self, status):
        with self.told:
            self.status = status
            self.told.notify_all()

    def asked(self):
        """Wait for another request."""
        with self.told:
            before = self.n
            assert self.told.wait_for(lambda: self.n > before, lib.TIMEOUT_S), "nobody asks"

    def owes(self, size, breaks_off=False):
        with self.told:
            self.owed, self.breaks_off = size, breaks_off
            self.told.notify_all()

    def close(self):
        self.say(200)
        self.owes(0)
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def endpoint():
    one = Endpoint()
    yield one
    one.close()


def health(url, **http_settings):
    return {"trial": {"health": {"stableFor": "1s", "http": {"url": url, "interval": "1s", "timeout": "500ms", "failureThreshold": 1,
                                                            **http_settings}}}}


@pytest.fixture
def node(mounts, endpoint):
    """A node whose endpoint has been good before anything is on trial."""
    one = Node(mounts, trial={"duration": "2s"}, component=health(endpoint.url))
    one.wait("trial", "health_http=good")
    yield one
    one.close()


def metrics(node):
    return node.status("metrics.prom")


def useless(node, endpoint, status=500):
    """A configuration on trial with which the endpoint is known to be bad before the component starts; its source."""
    source = node.assign("maxPods: 41\n")
    node.wait("trial", "state=running")
    endpoint.say(status)
    node.wait("trial", "health_http=bad")
    return source


def failed(node, what):
    return f"False current failed trial period, not healthy: {what} (UID: 8f1c): using last-known-good (init)"


def test_alive_and_healthy_passes(node):
    source = node.assign("maxPods: 41\n")
    node.live()
    node.wait("last-known-good", source)
    assert node.trial()["state"] == "passed" and node.trial()["stable_for"] == "1s" and node.trial()["extended"] == "no"
    assert node.bad() == {}


def test_alive_and_useless_is_rolled_back(node, endpoint):
    before = node.mount.document()
    source = useless(node, endpoint)
    node.live()
    node.wait("trial", "extended=yes")
    assert node.trial()["health_http"] == "bad: the health endpoint answers with status 500"
    assert 'lkgfs_trial_extended{component="kubelet"} 1' in metrics(node)
    assert 'lkgfs_healthy{component="kubelet",check="http"} 0' in metrics(node)
    node.wait("condition", failed(node, "the health endpoint answers with status 500"))
    assert node.mount.document() == before
    (name, record), = node.bad().items()
    assert name == source and record["cause"] == "not_healthy"
    assert record["reason"] == ("current failed trial period, not healthy: the health endpoint answers with status 500 (UID: 8f1c)")
    assert 'lkgfs_rollbacks_total{component="kubelet",reason="not_healthy"} 1' in metrics(node)
    assert node.trial()["state"] == "failed"


def test_a_restart_is_needed_and_told(node, endpoint):
    """restart.policy is never: the process goes on with what failed, until somebody restarts it."""
    useless(node, endpoint, 503)
    life = node.live()
    node.wait("condition", "; restart kubelet: it still runs with what failed")
    life.end()
    node.mount.wait_for(lambda: "restart kubelet" not in node.status("condition"), "it no longer runs")
    node.live()
    assert "restart kubelet" not in node.status("condition")
    assert node.status("condition").startswith("False current failed trial period, not healthy")


def test_a_hook_restarts_it(mounts, endpoint):
    """And at once, not at some time within restartJitter (5m): it heals."""
    marker = lib.tempfile.mktemp(prefix=lib.PREFIX, dir=lib.PARENT)
    node = Node(mounts, trial={"duration": "2s"},
                component={**health(endpoint.url), "restart": {"policy": "hook", "hook": ["/bin/touch", marker], "minInterval": "0s"}})
    try:
        node.wait("trial", "health_http=good")
        life = node.live()
        useless(node, endpoint)
        life.end()
        node.live()
        node.wait("condition", "not healthy")
        node.mount.wait_for(lambda: lib.os.path.exists(marker), "the hook ran")
    finally:
        node.close()
        node.mount.stop()
        if lib.os.path.exists(marker):
            lib.os.unlink(marker)


def test_a_probe_that_never_worked_says_nothing(mounts, endpoint):
    endpoint.say(404)
    node = Node(mounts, trial={"duration": "2s"}, component=health(endpoint.url))
    try:
        node.wait("trial", "health_http=bad")
        source = node.assign("maxPods: 41\n")
        node.live()
        node.wait("trial", "not judged: it was not good before the change")
        node.wait("last-known-good", source)
        assert node.bad() == {}
    finally:
        node.close()


@pytest.mark.parametrize("how", ["refuses", "hangs", "hangs in the body", "breaks off in the body"])
def test_no_answer_is_bad(node, endpoint, how):
    node.assign("maxPods: 41\n")
    node.wait("trial", "state=running")
    if how == "hangs":
        endpoint.say(None)
    elif "body" in how:
        endpoint.owes(5, breaks_off="breaks off" in how)
    else:
        endpoint.server.socket.close()
    node.wait("trial", "health_http=bad: the health endpoint does not answer: ")


def test_a_hanging_endpoint_blocks_nobody(node, endpoint):
    node.assign("maxPods: 41\n")  # it is asked every second now
    endpoint.say(None)
    endpoint.asked()
    node.mount.drop("50-a.conf", "maxPods: 7\n")
    assert "\nmaxPods: 7\n" in node.mount.document()


def test_where_the_document_says(mounts, endpoint):
    """url: auto asks healthzPort of what is served, so a document may move the endpoint without being condemned for it."""
    other = Endpoint()
    node = Node(mounts, trial={"duration": "2s"}, base=lib.HEADER + f"healthzPort: {endpoint.port}\n", component=health("auto"))
    try:
        node.wait("trial", "health_http=good")
        source = node.assign(f"healthzPort: {other.port}\n")
        other.asked()
        node.live()
        node.wait("last-known-good", source)
        source = node.assign("healthzPort: 0\n")
        node.wait("trial", "health_http=off: not asked: the served document turns the health endpoint off (port 0)\n")
        node.live()
        node.wait("last-known-good", source)
    finally:
        node.close()
        other.close()


def test_a_document_cannot_send_us_elsewhere(mounts):
    """Who may edit the ConfigMap chooses address and port: without allowRemote it is this machine that is asked, or nobody."""
    node = Node(mounts, trial={"duration": "2s"}, component=health("auto"))
    try:
        source = node.assign("healthzBindAddress: 192.0.2.2\nhealthzPort: 10248\n")  # TEST-NET-1, RFC 5737
        node.wait("trial", "health_http=off: not asked: the served document puts it on an address other than loopback, see allowRemote\n")
        node.live()
        node.wait("last-known-good", source)
    finally:
        node.close()


@pytest.mark.parametrize("bound,listens", [("0.0.0.0", "127.0.0.1"), ("127.0.0.2", "127.0.0.2")])
def test_all_addresses_include_loopback(mounts, bound, listens):
    one = Endpoint(listens)
    node = Node(mounts, component=health("auto"), base=lib.HEADER + f"healthzBindAddress: {bound}\nhealthzPort: {one.port}\n")
    try:
        node.wait("trial", "health_http=good")
    finally:
        node.close()
        one.close()


@pytest.mark.parametrize("url,words", [
    ("http://192.0.2.1:10248/healthz", "its host is not this machine's loopback"),
    ("http://127.0.0.1.example.org/healthz", "its host is not this machine's loopback"),
    ("http://root@127.0.0.1/", "want http://127.0.0.1:10248/healthz, auto, or nothing"),
    ("file:///etc/passwd", "want http://127.0.0.1:10248/healthz, auto, or nothing"),
    ("http://", "want http://127.0.0.1:10248/healthz, auto, or nothing"),
])
def test_what_is_refused(mounts, url, words):
    mount = mounts(start=False, components=[{"name": "kubelet", **health(url)}])
    result = lib.run(lib.LKGFSD, "--config", mount.config_path, mount.mountpoint)
    assert result.returncode == 78
    assert "trial.health.http.url" in result.stderr.decode() and words in result.stderr.decode()


@pytest.mark.parametrize("url", ["http://localhost:1/x", "https://[::1]:1", "http://127.9.9.9"])
def test_what_is_accepted(mounts, url):
    assert mounts(components=[{"name": "kubelet", **health(url)}]).document()


# ---- the Node ----

def ready(api, status, reason="KubeletReady"):
    api.store.node("n1", {ANNOTATION: REFERENCE},
                   status={"conditions": [{"type": "MemoryPressure", "status": "False"},
                                          {"type": "Ready", "status": status, "reason": reason, "message": "as told"}]})


@pytest.fixture
def followed(api, api_node):
    api.rbac.allow("system:nodes", ["get", "watch"], "configmaps", NAMESPACE, None)
    ready(api, "True")
    obj = api.store.configmap(NAMESPACE, CONFIGMAP, payload("maxPods: 42\n"))
    node = api_node(trial={"duration": "2s"}, component={"trial": {"health": {"stableFor": "1s"}}})
    node.follows(obj)
    return api, node


def edit(api, body):
    return api.store.configmap(NAMESPACE, CONFIGMAP, payload(body))


def tries_another(api, node):
    """What it follows (maxPods 42) becomes the last known good, and then 43 is on trial."""
    node.live()
    node.wait("last-known-good", node.sources()[1])
    node.follows(edit(api, "maxPods: 43\n"))


def test_a_node_that_is_not_ready_any_more(followed):
    api, node = followed
    tries_another(api, node)
    ready(api, "Unknown", "NodeStatusUnknown")
    node.wait("trial", "health_node=bad")
    node.live()
    node.wait("condition", "not healthy: the Node is not Ready (NodeStatusUnknown) (UID: ")
    assert "\nmaxPods: 42\n" in node.mount.document()
    api.wait(lambda: any("not healthy" in event["message"] and event["reason"] == "ConfigRolledBack" 
                         for event in api.store.list("events")), "an Event")


def test_a_node_that_is_deleted(followed):
    """Whoever deletes the Node of a kubelet that is useless: it is not healthy for that."""
    api, node = followed
    tries_another(api, node)
    api.store.delete("nodes", None, "n1")
    node.wait("trial", "health_node=bad: the Node does not exist")
    node.live()
    node.wait("condition", "not healthy: the Node does not exist (UID: ")
    assert "\nmaxPods: 42\n" in node.mount.document()


def test_an_api_server_that_goes_away_excuses_nothing_that_was_bad(followed):
    api, node = followed
    tries_another(api, node)
    ready(api, "False", "KubeletNotReady")
    node.wait("trial", "health_node=bad")
    api.refuse()
    api.disconnect()
    node.wait("trial", "health_node=unknown: the Node cannot be read at the moment, counts as bad, which it was before")
    node.live()
    node.wait("condition", "not healthy: the Node is not Ready (KubeletNotReady), when it was last asked (UID: ")
    assert "\nmaxPods: 42\n" in node.mount.document()


def test_a_node_that_was_bad_before_the_engine_died(api, api_node, endpoint):
    """Neither the next engine, which has not asked yet, nor an endpoint that is good makes it good; nor does a reload."""
    api.rbac.allow("system:nodes", ["get", "watch"], "configmaps", NAMESPACE, None)
    ready(api, "True")
    obj = api.store.configmap(NAMESPACE, CONFIGMAP, payload("maxPods: 42\n"))
    node = api_node(trial={"duration": "4s"}, component=health(endpoint.url))
    node.wait("trial", "health_http=good")
    node.follows(obj)
    tries_another(api, node)
    ready(api, "False", "KubeletNotReady")
    node.wait("trial", "health_node=bad")
    node.mount.kill_child("lkgfs-engine")
    node.configure(remote={"events": False})
    node.mount.reload()
    api.refuse()
    api.disconnect()
    node.wait("trial", "health_node=unknown: ")
    node.wait("trial", ", counts as bad, which it was before")
    api.listen()
    node.live()
    node.wait("condition", "not healthy: the Node is not Ready (KubeletNotReady)")
    assert "\nmaxPods: 42\n" in node.mount.document()


def test_a_node_that_nobody_asks_about(api, api_node):
    """nodeReady: false."""
    api.rbac.allow("system:nodes", ["get", "watch"], "configmaps", NAMESPACE, None)
    ready(api, "True")
    obj = api.store.configmap(NAMESPACE, CONFIGMAP, payload("maxPods: 42\n"))
    node = api_node(trial={"duration": "2s"}, component={"trial": {"health": {"stableFor": "1s", "nodeReady": False}}})
    node.follows(obj)
    ready(api, "False")
    node.live()
    node.wait("last-known-good", obj["metadata"]["resourceVersion"])
    assert node.trial()["health_node"] == "off"
