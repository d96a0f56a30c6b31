# SPDX-License-Identifier: Apache-2.0
"""Probes: what is good by http, tcp and grpc, and that everything else is bad or ends."""
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading

import pytest

import lkgfs_grpc as grpc
import lkgfs_remotetool as remotetool

SERVING = grpc.message((1, 1))


class Probe:
    """A run of probe-tool."""

    def __init__(self, url, *headers, timeout_ms=1000, threshold=1):
        self.process = subprocess.Popen([remotetool.TOOLS / "probe-tool", str(timeout_ms), str(threshold), url, *headers], env=remotetool.KEPT,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def says(self):
        """Its next change."""
        return json.loads(self.process.stdout.readline())

    def bad(self):
        line = self.says()
        assert line["health"] == "bad" and line["good"] == 0
        return line["words"]

    def good(self):
        line = self.says()
        assert line["health"] == "good" and line["words"] == "" and line["good"] > 0
        return line["good"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _, self.errors = self.process.communicate()
        assert self.process.returncode == 0, self.errors


@pytest.fixture
def health():
    with grpc.Server() as server:
        server.say(grpc.HEALTH, grpc.answer(SERVING))
        server.url = f"grpc://127.0.0.1:{server.port}/"
        yield server


# ---- grpc ----

def test_a_service_that_is_serving(health):
    with Probe(health.url + "etcd/readiness") as probe:
        probe.good()
        call = health.calls[0]
    assert call.headers[":method"] == "POST" and call.headers["content-type"] == "application/grpc" and call.headers["te"] == "trailers"
    assert grpc.read(call.body[5:]) == {1: b"etcd/readiness"} and call.body[:5] == b"\0\0\0\0\x10"


def test_the_empty_service(health):
    with Probe(health.url[:-1]) as probe:
        probe.good()
    assert grpc.read(health.calls[0].body[5:]) == {1: b""}


def test_good_without_a_break_begins_anew_after_one(health):
    with Probe(health.url) as probe:
        first = probe.good()
        health.say(grpc.HEALTH, grpc.answer(grpc.message((1, 2))))
        assert probe.bad() == "the health endpoint is not serving"
        health.say(grpc.HEALTH, grpc.answer(SERVING))
        assert probe.good() > first


def test_fewer_failures_than_the_threshold_are_no_break(health):
    with Probe(health.url, threshold=1000) as probe:
        probe.good()
        health.say(grpc.HEALTH, grpc.status(14))
        for _ in range(3):
            health.wait_asked(grpc.HEALTH)
    assert probe.process.stdout.closed or not probe.process.stdout.read()


ANSWERS = {
    "not there": (grpc.answer(grpc.message((1, 3))), "is not serving"),
    "nothing": (grpc.answer(b""), "is not serving"),
    "fields that nobody knows": (grpc.answer(grpc.message((7, "x"), (1, 2), (9, 1))), "is not serving"),
    "a text as status": (grpc.answer(grpc.message((1, "\1"))), "is not serving"),
    "no message": (grpc.answer(b"\xff\xff\xff"), "is not serving"),
    "another status": (grpc.status(5), "status 5 of gRPC"),
    "another status at once": (grpc.status(12, at_once=True), "status 12 of gRPC"),
    "SERVING, and an error": (grpc.raw(grpc.frame(SERVING), "13"), "status 13 of gRPC"),
    "no status": (grpc.no_status(SERVING), "not gRPC"),
    "a status that is none": (grpc.raw(grpc.frame(SERVING), "OK"), "not gRPC"),
    "no frame": (grpc.raw(b"\0\0\0"), "not gRPC"),
    "compressed": (grpc.raw(grpc.frame(SERVING, 1)), "not gRPC"),
    "half a frame": (grpc.raw(grpc.frame(SERVING)[:-1]), "not one message"),
    "two frames": (grpc.raw(2 * grpc.frame(SERVING)), "not one message"),
    "a proxy's page": (grpc.http(502), "answers with status 502"),
    "a redirect": (grpc.http(302), "status 302"),
    "a cut": (grpc.cut(SERVING), "does not answer"),
    "no answer": (grpc.die(), "does not answer"),
    "garbage": (grpc.garbage(), "does not answer"),
    "100 MB": (grpc.flood(), "does not answer: File too large"),
    "silence": (grpc.hang(), "does not answer: Connection timed out"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_not_serving(health, name):
    act, words = ANSWERS[name]
    health.say(grpc.HEALTH, act)
    with Probe(health.url) as probe:
        assert words in probe.bad()
        health.say(grpc.HEALTH, grpc.answer(SERVING))
        probe.good()


def test_a_server_of_http_1(health):
    with socket.create_server(("127.0.0.1", 0)) as other:
        def serve():
            sock, _ = other.accept()
            with sock:
                sock.recv(1000)
                sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        thread = threading.Thread(target=serve)
        thread.start()
        with Probe(f"grpc://127.0.0.1:{other.getsockname()[1]}/") as probe:
            assert "does not answer" in probe.bad()
        thread.join()


# ---- tcp ----

def test_a_port_that_is_open():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with Probe(f"tcp://127.0.0.1:{server.getsockname()[1]}") as probe:
            probe.good()
            with server.accept()[0] as sock:
                assert sock.recv(1) == b"", "nothing is said, and the connection is closed"
            server.close()
            assert probe.bad() == "the health endpoint does not answer: Connection refused"


def test_ipv6():
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with server, Probe(f"tcp://[::1]:{server.getsockname()[1]}") as probe:
        probe.good()


# ---- http ----

class Web:
    """Records the headers of requests."""

    def __init__(self, status=200, location=None, context=None):
        outer = self
        self.headers, self.paths = [], []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.headers.append(self.headers)
                outer.paths.append(self.path)
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def test_headers():
    with Web() as web, Probe(f"http://127.0.0.1:{web.port}/ready?a=b", "Host: etcd.example", "X-Probe: a: b", "X-Empty:", "Accept: text/x",
                             "User-Agent: kube-probe/1.36") as probe:
        probe.good()
    headers = web.headers[0]
    assert web.paths[0] == "/ready?a=b" and headers.get_all("Host") == ["etcd.example"] and headers["X-Probe"] == "a: b"
    assert headers["X-Empty"] == "" and headers.get_all("Accept") == ["text/x"] and headers.get_all("User-Agent") == ["kube-probe/1.36"]


@pytest.mark.parametrize("header", ["X: a\r\nY: b", "no name", ": x"])
def test_headers_that_are_none_are_not_sent(header):
    with Web() as web:
        probe = Probe(f"http://127.0.0.1:{web.port}/", header)
        assert "cannot ask a health endpoint" in probe.process.stderr.readline().decode()
        with probe:
            pass
    assert not web.paths


@pytest.mark.parametrize("status,health", [(200, "good"), (302, "good"), (399, "good"), (400, "bad"), (503, "bad")])
def test_statuses(status, health):
    with Web(status, location="http://127.0.0.1:1/") as web, Probe(f"http://127.0.0.1:{web.port}/") as probe:
        assert probe.says()["health"] == health
    assert set(web.paths) == {"/"}


def test_a_certificate_is_not_verified(certificates):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificates.server["expired"])
    with Web(context=context) as web, Probe(f"https://127.0.0.1:{web.port}/") as probe:
        probe.good()  # and it says no goodbye of TLS


def test_another_scheme_is_none():
    probe = Probe("file:///etc/passwd")
    assert "cannot ask a health endpoint" in probe.process.stderr.readline().decode()
    with probe:
        pass
    assert os.path.exists("/etc/passwd")
