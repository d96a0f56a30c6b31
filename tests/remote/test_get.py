# SPDX-License-Identifier: Apache-2.0
"""One GET and everything that can go wrong with it: what is reported, that it ends, that the next one works."""
import random

import pytest

import lkgfs_apifaults as faults
from lkgfs_apiserver import ApiServer
from lkgfs_remotetool import MEMORY_MAX

THREE_MIB = 3 << 20


def healthy(client):
    """Check that the next request is answered."""
    line = client.get()
    assert line["status"] == "ok" and line["object"] == client.current()


# ---- what is right ----

def test_an_object(server, client):
    line = client.get()
    assert line["status"] == "ok" and line["http"] == 200 and line["words"] == ""
    assert line["object"] == client.current()
    request, = server.seen(verb="get")
    assert request.path == "/api/v1/namespaces/kube-system/configmaps/node-config" and request.query == {}
    assert request.headers["accept"] == "application/json" and request.headers["user-agent"]
    assert request.user == "system:node:n1"


def test_large_objects_come_compressed(server, client):
    server.store.configmap("kube-system", "node-config", {"kubelet": "x" * 900_000})
    line = client.get()
    assert line["status"] == "ok" and line["object"] == client.current()
    assert "gzip" in server.seen(verb="get")[0].headers["accept-encoding"]


def test_compression_can_be_forbidden(server, client, tmp_path):
    path = server.kubeconfig(tmp_path / "plain", node="n1", **{"disable-compression": True})
    assert client.get(kubeconfig=path)["status"] == "ok"
    assert "gzip" not in server.seen(verb="get")[0].headers.get("accept-encoding", "")


@pytest.mark.parametrize("alpn", [("http/1.1",), ()], ids=["without-h2", "without-alpn"])
def test_servers_without_http2(certificates, client, alpn, tmp_path):
    with ApiServer(certificates, alpn=alpn) as other:
        other.store.node("n1")
        path = other.kubeconfig(tmp_path / "other", node="n1")
        assert client.get("n1", "nodes", kubeconfig=path)["status"] == "ok"


def test_three_mebibytes_are_a_limit_that_is_named(server, client):
    server.store.configmap("kube-system", "node-config", {"kubelet": "x" * THREE_MIB})
    line = client.get(max_bytes=THREE_MIB)
    assert line["status"] == "too_large" and line["object"] is None and "3145728" in line["words"]
    assert client.memory < MEMORY_MAX
    server.store.configmap("kube-system", "node-config", {"kubelet": "x" * (THREE_MIB - 2000)})
    line = client.get(max_bytes=THREE_MIB)
    assert line["status"] == "ok" and client.memory < MEMORY_MAX


# ---- refusals ----

def test_forbidden_names_verb_resource_and_name(server, client):
    server.rbac.roles.clear()
    line = client.get()
    assert line["status"] == "forbidden" and line["http"] == 403
    for word in ("get", "configmaps", 'node-config', "kube-system", "system:node:n1"):
        assert word in line["words"]


def test_not_found(server, client):
    line = client.get("kube-system/elsewhere")
    assert line["status"] == "not_found" and line["http"] == 404 and "elsewhere" in line["words"]


@pytest.mark.parametrize("code,value,least_ms", [(429, "2", 2000), (503, "7", 7000), (503, "86400", 600_000)])
def test_retry_after_is_passed_on(server, client, code, value, least_ms):
    with server.fault(faults.status(code, headers={"Retry-After": value})):
        line = client.get()
    assert line["status"] == "busy" and line["retry_after_ms"] == least_ms


def test_a_wrong_token(server, client, tmp_path):
    path = server.kubeconfig(tmp_path / "token", token="not-a-secret-that-counts")
    line = client.get(kubeconfig=path)
    assert line["status"] == "unauthorized" and "not-a-secret" not in line["words"]


@pytest.mark.parametrize("kind", ["expired", "other-ca"])
def test_a_client_that_nobody_knows(server, client, certificates, tmp_path, kind):
    path = server.kubeconfig(tmp_path / "old", node=certificates.node("n1", kind))
    line = client.get(kubeconfig=path)
    assert line["status"] in ("unauthorized", "unreachable") and line["words"]


# ---- bodies that are none ----

BODIES = {
    "no JSON": (faults.body(b"{"), "invalid"),
    "empty": (faults.body(b""), "invalid"),
    "null": (faults.body(b"null"), "invalid"),
    "a list": (faults.body(b"[]"), "invalid"),
    "two objects": (faults.body(b'{"kind":"ConfigMap"}{"kind":"ConfigMap"}'), "invalid"),
    "bytes": (faults.body(b"\x00\xff\xfe"), "invalid"),
    "deep": (faults.body(b"[" * 100_000), "invalid"),
    "not UTF-8": (faults.body(b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"\xff"}}'), "invalid"),
    "HTML": (faults.html(), "invalid"),
    "HTML 403": (faults.html(403), "forbidden"),
    "HTML 502": (faults.html(502), "busy"),
    "another kind": (faults.edit(lambda o: {**o, "kind": "Secret"}), "invalid"),
    "another version": (faults.edit(lambda o: {**o, "apiVersion": "v2"}), "invalid"),
    "a list of it": (faults.edit(lambda o: {"kind": "ConfigMapList", "apiVersion": "v1", "items": [o]}), "invalid"),
    "another name": (faults.edit(lambda o: {**o, "metadata": {**o["metadata"], "name": "else"}}), "invalid"),
    "another namespace": (faults.edit(lambda o: {**o, "metadata": {**o["metadata"], "namespace": "d"}}), "invalid"),
    "no metadata": (faults.edit(lambda o: {**o, "metadata": None}), "invalid"),
    "a success": (faults.body(b'{"kind":"Status","apiVersion":"v1","status":"Success"}'), "invalid"),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(server, client, name):
    action, status = BODIES[name]
    with server.fault(action):
        line = client.get()
    assert line["status"] == status and line["object"] is None and line["words"]
    healthy(client)


def test_not_found_by_somebody_else_is_no_deletion(server, client):
    """A proxy's 404, or one for a path that the server does not have, says nothing about the object."""
    with server.fault(faults.html(404)):
        assert client.get()["status"] == "invalid"
    with server.fault(faults.body(b"404 page not found\n", 404, content_type="text/plain")):
        assert client.get()["status"] == "invalid"


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(server, client, certificates, code):
    with ApiServer(certificates) as elsewhere:
        target = elsewhere.url + "/api/v1/namespaces/kube-system/configmaps/node-config"
        with server.fault(faults.redirect(target, code)):
            line = client.get()
        assert line["status"] == "invalid" and line["http"] == code
        assert elsewhere.n_connections == 0
    healthy(client)


# ---- time ----

@pytest.mark.parametrize("action", [faults.hang(), faults.silence(0), faults.silence(40), faults.silence(150),
                                    faults.drip(0.2)], ids=["hang", "nothing", "header", "body", "drip"])
def test_what_never_ends_is_given_up(server, client, action):
    with server.fault(action):
        line = client.get()
    assert line["status"] == "unreachable" and line["object"] is None and line["words"]
    healthy(client)


# ---- memory ----

@pytest.mark.parametrize("action,statuses", [
    (faults.endless(), ("too_large",)), (faults.bomb(), ("too_large",)),
    (faults.header_flood(), ("too_large", "unreachable")), (faults.endless(b"[" * 65536), ("too_large",)),
], ids=["endless", "bomb", "headers", "nested"])
def test_what_is_too_much_is_bounded(server, client, action, statuses):
    with server.fault(action):
        line = client.get(max_bytes=THREE_MIB, limits={"request": 20_000})
    assert line["status"] in statuses and line["object"] is None
    assert client.memory < MEMORY_MAX
    healthy(client)


def test_half_of_a_compressed_object(server, client):
    for fraction in (0.1, 0.5, 0.95):
        with server.fault(faults.truncated_gzip(fraction)):
            line = client.get()
        assert line["status"] in ("unreachable", "invalid") and line["object"] is None
    healthy(client)


# ---- connections ----

def test_refused(server, client):
    server.refuse()
    line = client.get()
    assert line["status"] == "unreachable" and line["http"] == 0 and f"127.0.0.1:{server.port}" in line["words"]
    server.listen()
    healthy(client)


@pytest.mark.parametrize("kind", ["other-ca", "wrong-name", "expired"])
def test_wrong_certificates(server, client, kind):
    server.certificate = kind
    line = client.get()
    assert line["status"] == "unreachable" and "certificate" in line["words"].lower()
    assert not server.requests, "nothing is said to a server that is not ours"
    server.certificate = "good"
    healthy(client)


def test_the_name_in_the_certificate_can_be_another_one(server, client, tmp_path):
    server.certificate = "wrong-name"
    path = server.kubeconfig(tmp_path / "named", node="n1", **{"tls-server-name": "elsewhere.example"})
    assert client.get(kubeconfig=path)["status"] == "ok"


@pytest.mark.parametrize("action", [faults.handshake_silence(), faults.handshake_drip(0.1), faults.plaintext()],
                         ids=["silence", "drip", "plaintext"])
def test_handshakes_that_are_none(server, client, action):
    with server.connect_fault(action):
        line = client.get()
    assert line["status"] == "unreachable" and line["words"] and not server.requests
    healthy(client)


@pytest.mark.parametrize("n_bytes", [0, 1, 5, 100, 127, 500, 700])
def test_a_handshake_that_breaks_off(server, client, n_bytes):
    with server.connect_fault(faults.handshake_limit(n_bytes)):
        assert client.get()["status"] == "unreachable"
    healthy(client)


def test_no_http(server, client):
    with server.fault(faults.garbage()):
        assert client.get()["status"] in ("unreachable", "invalid")
    healthy(client)


def answer_size(server, client):
    """Bytes of the whole answer, headers included."""
    import json  # pylint: disable=import-outside-toplevel
    body = len(json.dumps(client.current(), separators=(",", ":"))) + 1
    return body + len("HTTP/1.1 200 x\r\nContent-Type: application/json\r\nCache-Control: no-cache, private\r\n"
                      f"Content-Length: {body}\r\n\r\n")


def places(size, random_count):
    """Offsets at which an answer is broken: the first bytes, the last ones, and some in between."""
    dice = random.Random(size)
    return sorted({0, 1, 9, 12, 13, 16, size - 1, size - 2, *(dice.randrange(size) for _ in range(random_count))})


@pytest.mark.parametrize("how", ["reset", "cut"])
def test_an_answer_that_breaks_off_anywhere(server, client, how):
    """A partial answer counts as none, wherever it ends."""
    for at in places(answer_size(server, client), 24):
        with server.fault(getattr(faults, how)(at)):
            line = client.get()
        assert line["status"] in ("unreachable", "invalid") and line["object"] is None, f"{how} after {at} bytes"
    healthy(client)


@pytest.mark.parametrize("how", ["reset", "cut"])
def test_half_a_not_found_is_no_deletion(server, client, how):
    for at in (13, 20, 40, 100, 150, 200):
        with server.fault(getattr(faults, how)(at)):
            line = client.get("kube-system/elsewhere")
        assert line["status"] in ("unreachable", "invalid"), f"{how} after {at} bytes"
    assert client.get("kube-system/elsewhere")["status"] == "not_found"
