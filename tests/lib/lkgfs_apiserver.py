# SPDX-License-Identifier: Apache-2.0
"""A programmable API server on loopback TLS, for tests: HTTP/1.1, GET, WATCH, PATCH, POST, client certificates, bearer tokens,
roles, and every fault of lkgfs_apifaults.py on request.

    with ApiServer(certificates) as server:
        server.store.configmap("kube-system", "node-config", {"kubelet": "..."})
        with server.fault(faults.status(503, headers={"Retry-After": "1"}), verb="watch"):
            server.wait_request(verb="watch", since=0)

All requests are in `server.requests`. close() ends every connection and joins every thread.
"""
import base64
import collections
import contextlib
import gzip
import json
import os
import re
import select
import socket
import ssl
import threading
import time
import urllib.parse

from lkgfs_apistore import KINDS, Rbac, Refused, Store
from lkgfs_apiwire import Gone, Stop, Wire

CONNECTIONS_MAX = 64
BODY_BYTES_MAX = 8 << 20
HEADER_BYTES_MAX = 64 << 10
WAIT_S = 30
GZIP_ABOVE_BYTES = 128 << 10  # as kube-apiserver does
NO_CHECK_TIME = 0x200000      # X509_V_FLAG_NO_CHECK_TIME: an expired client gets a 401, not a TLS alert
PATH = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/v1(?:/namespaces/(?P<ns>[^/]+))?/(?P<plural>[^/]+)"
                  r"(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?$")


class Request:
    """A request. `verb` as authorization names it; `connection` counts from 1."""

    def __init__(self, method, target, headers, body, connection):
        self.method, self.target, self.headers, self.body, self.connection = method, target, headers, body, connection
        parts = urllib.parse.urlsplit(target)
        self.path = parts.path
        self.query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        match = PATH.match(self.path)
        fields = match.groupdict() if match else {}
        self.group, self.ns, self.plural, self.name, self.subresource = (
            fields.get(name) for name in ("group", "ns", "plural", "name", "subresource"))
        self.selects = None
        if not self.name:
            field, _, value = self.query.get("fieldSelector", "").partition("=")
            self.selects = value if field == "metadata.name" else None
        self.verb = self._verb()
        self.user, self.groups = "", []
        self.time = time.monotonic()

    def _verb(self):
        if self.method != "GET":
            return {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}.get(self.method, "")
        if self.name:
            return "get"
        self.name = self.selects
        return "watch" if self.query.get("watch") in ("1", "true") else "list"

    @property
    def key(self):
        return self.plural, self.ns, self.name

    def json(self):
        return json.loads(self.body)

    def matches(self, wanted):
        return all(getattr(self, name) == value for name, value in wanted.items())

    def __repr__(self):
        return f"{self.method} {self.target} by {self.user or '?'}"


class Rule:
    """One fault, active until its count is used up or end() is called. `hits`: how often it has acted."""

    def __init__(self, server, action, count, wanted):
        self.server, self.action, self.left, self.wanted = server, action, count, wanted
        self.hits = 0
        self.fd = os.eventfd(0, os.EFD_CLOEXEC)  # readable when the rule has ended

    def end(self):
        self.server.end_fault(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Exchange:
    """One request and how its answer is sent."""

    def __init__(self, server, wire, request):
        self.server, self.wire, self.request = server, wire, request
        self.rule = self.edit = None

    def reply(self, code, body, headers=None):
        """Send a whole answer; `body` is an object or bytes."""
        fields = {"Content-Type": "application/json", "Cache-Control": "no-cache, private", **(headers or {})}
        if not isinstance(body, bytes):
            body = json.dumps(body, separators=(",", ":")).encode() + b"\n"
        accepts = self.request.headers.get("accept-encoding", "")
        if len(body) > GZIP_ABOVE_BYTES and "gzip" in accepts and "Content-Encoding" not in fields:
            body, fields["Content-Encoding"] = gzip.compress(body, compresslevel=1), "gzip"
        self._header(code, {**fields, "Content-Length": len(body)}, body)
        self.wire.settle()

    def start(self, code, headers=None):
        """Send the header of a chunked answer."""
        self._header(code, {"Content-Type": "application/json", "Transfer-Encoding": "chunked", **(headers or {})})

    def chunk(self, data):
        """Send a chunk; b'' is the last one."""
        self.wire.send(b"%x\r\n%s\r\n" % (len(data), data))
        if not data:
            self.wire.settle()

    def _header(self, code, fields, body=b""):
        lines = [f"HTTP/1.1 {code} x", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        self.wire.send("\r\n".join(lines).encode() + body)


class ApiServer:
    """`authorizer`: called with a Request, returns a Status or None. `tokens`: token -> (user, groups)."""

    def __init__(self, certificates, authorizer=None, alpn=("http/1.1",), store=None):
        self.certificates, self.alpn = certificates, alpn
        self.store = store or Store()
        self.rbac = Rbac()
        self.authorizer = authorizer or self.rbac
        self.tokens = {}
        self.certificate = "good"  # key of Certificates.server; counts for the next connection
        self.watch_seconds = None  # a watch ends after this time, whatever it asked for
        self.requests = collections.deque(maxlen=20000)
        self.n_requests = self.n_connections = 0
        self.changed = threading.Condition()
        self.rules, self.connect_rules, self.old_rules = [], [], []
        self.wires, self.threads, self.errors = {}, set(), []
        self.stop = Stop()
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # old connections may linger
        self.port = self._bind()
        self.listener.listen(CONNECTIONS_MAX)
        self.acceptor = threading.Thread(target=self._accept, name="apiserver-accept", daemon=True)
        self.acceptor.start()

    def _bind(self):
        """Bind a port and keep it while nothing listens: the kernel never gives an explicitly bound port to others."""
        for _ in range(100):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            with contextlib.suppress(OSError):
                self.listener.bind(("127.0.0.1", port))
                return port
        raise OSError("no free port")

    # for a test

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    def fault(self, action, count=None, **wanted):
        """Add a rule for requests with these attributes (verb, plural, name, method, ...); the oldest matching rule acts."""
        rule = Rule(self, action, count, wanted)
        with self.changed:
            self.rules.append(rule)
        return rule

    def connect_fault(self, action, count=None):
        """Add a rule for connections, before TLS."""
        rule = Rule(self, action, count, {})
        with self.changed:
            self.connect_rules.append(rule)
        return rule

    def end_fault(self, rule):
        with self.changed:
            for rules in (self.rules, self.connect_rules):
                if rule in rules:
                    rules.remove(rule)
                    self.old_rules.append(rule)
                    os.eventfd_write(rule.fd, 1)

    def refuse(self):
        """Accept no more connections (ECONNREFUSED) and reset the existing ones."""
        self.listener.shutdown(socket.SHUT_RD)
        self.disconnect()

    def listen(self):
        """Undo refuse(), on the same port."""
        self.listener.listen(CONNECTIONS_MAX)

    def disconnect(self):
        """Reset every connection."""
        with self.changed:
            for wire in self.wires.values():
                # shutdown() wakes its thread, which closes the socket; an unread byte or SO_LINGER turns that into an RST.
                with contextlib.suppress(OSError):
                    wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    wire.sock.shutdown(socket.SHUT_RD)

    def wait(self, predicate, what="", seconds=WAIT_S):
        """Wait until predicate() is true; checked after each request, and when a connection opens or closes."""
        end = time.monotonic() + seconds
        with self.changed:
            while not (value := predicate()):
                left = end - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"did not happen in {seconds} s: {what}; last requests: "
                                         f"{list(self.requests)[-8:]}")
                self.changed.wait(min(left, 0.05))
            return value

    def seen(self, since=0, **wanted):
        """Return the requests with these attributes, starting with number `since` of all."""
        with self.changed:
            first = self.n_requests - len(self.requests)
            return [request for i, request in enumerate(self.requests, first) if i >= since and request.matches(wanted)]

    def wait_request(self, since=0, count=1, seconds=WAIT_S, **wanted):
        """Return the `count`-th request with these attributes."""
        self.wait(lambda: len(self.seen(since, **wanted)) >= count, f"{count} x {wanted}", seconds)
        return self.seen(since, **wanted)[count - 1]

    def wait_watch(self, plural=None, seconds=WAIT_S):
        """Wait until a watch is open; return the number of open watches."""
        def count():
            with self.store.lock:
                return sum(plural in (None, watch.plural) for watch in self.store.watches)
        return self.wait(count, f"a watch of {plural}", seconds)

    def kubeconfig(self, path, node=None, token=None, token_file=None, ca=None, server=None, embed=False, **more):
        """Write a kubeconfig. `node`: its certificate, by name or as a pair of paths; `more`: fields of the cluster."""
        user = {}
        if node:
            certificate, key = node if isinstance(node, tuple) else self.certificates.node(node)
            for field, file in (("client-certificate", certificate), ("client-key", key)):
                if embed:
                    with open(file, "rb") as data:
                        user[field + "-data"] = base64.b64encode(data.read()).decode()
                else:
                    user[field] = str(file)
        user.update({k: str(v) for k, v in {"token": token, "tokenFile": token_file}.items() if v})
        cluster = {"server": server or self.url, **more}
        cluster.setdefault("certificate-authority", str(ca or self.certificates.ca.certificate))
        document = {"apiVersion": "v1", "kind": "Config", "current-context": "x",
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "clusters": [{"name": "c", "cluster": {k: v for k, v in cluster.items() if v is not None}}],
                    "users": [{"name": "u", "user": user}]}
        with open(f"{path}.new", "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            json.dump(document, file, indent=1)
        os.rename(f"{path}.new", path)
        return str(path)

    def close(self):
        self.stop.set()
        self.acceptor.join(WAIT_S)
        for thread in list(self.threads):
            thread.join(WAIT_S)
        alive = [thread.name for thread in [self.acceptor, *self.threads] if thread.is_alive()]
        self.listener.close()
        for rule in self.rules + self.connect_rules + self.old_rules:
            os.close(rule.fd)
        self.rules, self.connect_rules, self.old_rules = [], [], []
        if not alive:
            self.stop.close()
        assert not alive, f"threads that do not end: {alive}"
        assert not self.errors, f"the server itself has failed: {self.errors}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # connections

    def _accept(self):
        while True:
            poll = select.poll()
            poll.register(self.stop.fd, select.POLLIN)
            poll.register(self.listener, select.POLLIN)
            ready = dict(poll.poll())
            if self.stop.fd in ready:
                return
            try:
                sock, _ = self.listener.accept()
            except OSError:  # refuse(): a socket that does not listen is always "ready"
                if select.select([self.stop.fd], [], [], 0.01)[0]:
                    return
                continue
            self._begin(sock)

    def _begin(self, sock):
        with self.changed:
            self.threads = {thread for thread in self.threads if thread.is_alive()}
            if len(self.wires) >= CONNECTIONS_MAX:
                self.errors.append("more connections than there may be")
                sock.close()
                return
            self.n_connections += 1
            number = self.n_connections
            wire = Wire(sock, self.stop)
            self.wires[number] = wire
            thread = threading.Thread(target=self._serve, args=(wire, number), name=f"apiserver-{number}", daemon=True)
            self.threads.add(thread)
            self.changed.notify_all()
        thread.start()

    def _serve(self, wire, number):
        try:
            self._connect(wire)
            reader = Reader(wire)
            while True:
                wire.shape = None
                request = reader.request(number)
                self._exchange(wire, request)
        except Gone:
            pass
        except Exception as error:  # pylint: disable=broad-except
            self.errors.append(repr(error))
        finally:
            wire.finish()
            with self.changed:
                del self.wires[number]
                self.changed.notify_all()

    def _context(self):
        certificate, key = self.certificates.server[self.certificate]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.verify_mode = ssl.CERT_OPTIONAL
        # Accept every authority here and check it later: like kube-apiserver, answer a wrong client with 401.
        context.load_verify_locations(self.certificates.ca.certificate)
        context.load_verify_locations(self.certificates.other_ca.certificate)
        context.verify_flags |= NO_CHECK_TIME
        if self.alpn:
            context.set_alpn_protocols(list(self.alpn))
        return context

    def _connect(self, wire):
        rule = self._take(self.connect_rules, None)
        if rule:
            rule.action(wire)
            if wire.sock.fileno() < 0:
                raise Gone("as told")
        wire.handshake(self._context())
        wire.raw_limit, wire.raw_pace_s = None, 0.0

    def _take(self, rules, request):
        """Return the first matching rule and count it."""
        with self.changed:
            for rule in rules:
                if rule.left != 0 and (request is None or request.matches(rule.wanted)):
                    rule.hits += 1
                    if rule.left is not None:
                        rule.left -= 1
                    self.changed.notify_all()
                    return rule
        return None

    # requests

    def _identify(self, wire, request):
        """Return who sent the request; raise the refusal of an invalid credential."""
        words = request.headers.get("authorization", "").split()
        if words[:1] == ["Bearer"]:
            if words[1:] and words[1] in self.tokens:
                request.user, groups = self.tokens[words[1]]
                request.groups = [*groups, "system:authenticated"]
                return
            raise Refused(401, "Unauthorized")
        certificate = wire.tls.getpeercert()
        if not certificate:
            request.user, request.groups = "system:anonymous", ["system:unauthenticated"]
            return
        issuer = dict(field[0] for field in certificate["issuer"])["commonName"]
        if issuer != self.certificates.ca.name or ssl.cert_time_to_seconds(certificate["notAfter"]) < time.time():
            raise Refused(401, "Unauthorized")
        subject = [field[0] for field in certificate["subject"]]
        request.user = next(value for name, value in subject if name == "commonName")
        request.groups = [value for name, value in subject if name == "organizationName"] + ["system:authenticated"]

    def _exchange(self, wire, request):
        exchange = Exchange(self, wire, request)
        refusal = None
        try:
            self._identify(wire, request)
        except Refused as error:
            refusal = error
        with self.changed:
            self.requests.append(request)
            self.n_requests += 1
            self.changed.notify_all()
        exchange.rule = self._take(self.rules, request)
        if exchange.rule and exchange.rule.action(exchange):
            return
        try:
            if refusal:
                raise refusal
            self._answer(exchange)
        except Refused as error:
            exchange.reply(error.code, error.status)

    def _answer(self, exchange):
        request = exchange.request
        if request.path in ("/readyz", "/healthz", "/livez"):
            exchange.reply(200, b"ok", {"Content-Type": "text/plain"})
            return
        if request.plural not in KINDS and request.plural != "selfsubjectreviews":
            raise Refused(404, "the server could not find the requested resource")
        refusal = self.authorizer(request)
        if refusal:
            exchange.reply(403, refusal)
            return
        answer = getattr(self, f"_{request.verb}", None)
        if answer is None:
            raise Refused(405, "the server does not allow this method on the requested resource")
        answer(exchange, request)

    def _get(self, exchange, request):
        obj = self.store.find(*request.key)
        exchange.reply(200, exchange.edit(obj) if exchange.edit else obj)

    def _list(self, exchange, request):
        with self.store.lock:
            items = [obj for obj in self.store.list(request.plural)
                     if request.ns in (None, obj["metadata"].get("namespace"))
                     and request.name in (None, obj["metadata"]["name"])]
            version = str(self.store.version)
        exchange.reply(200, {"kind": KINDS[request.plural] + "List", "apiVersion": "v1",
                             "metadata": {"resourceVersion": version}, "items": items})

    def _create(self, exchange, request):
        if request.plural == "selfsubjectreviews":
            exchange.reply(201, {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {},
                                 "status": {"userInfo": {"username": request.user, "groups": request.groups}}})
            return
        exchange.reply(201, self.store.create(request.plural, request.ns, self._body(request)))

    def _patch(self, exchange, request):
        content_type = request.headers.get("content-type", "").partition(";")[0]
        exchange.reply(200, self.store.patch(*request.key, request.subresource, content_type, self._body(request)))

    @staticmethod
    def _body(request):
        try:
            value = request.json()
        except ValueError:
            raise Refused(400, "the object provided is unrecognized: couldn't get version/kind") from None
        if not isinstance(value, dict):
            raise Refused(400, "the object provided is no object")
        return value

    def _watch(self, exchange, request):
        if request.query.get("fieldSelector") and request.selects is None:
            raise Refused(400, "a field selector other than metadata.name is not known here")
        version = request.query.get("resourceVersion", "")
        if version and not version.isdigit():
            raise Refused(400, f'resourceVersion: Invalid value: "{version}"')
        wants_bookmarks = request.query.get("allowWatchBookmarks") in ("1", "true")
        seconds = self.watch_seconds or int(request.query.get("timeoutSeconds", "1800"))
        watch = self.store.open_watch(request.plural, request.ns, request.name, version, wants_bookmarks)
        try:
            exchange.start(200)
            with self.changed:
                self.changed.notify_all()
            self._stream(exchange, watch, time.monotonic() + seconds)
        finally:
            self.store.close_watch(watch)

    def _stream(self, exchange, watch, end):
        wire = exchange.wire
        while True:
            events, ended = self.store.take(watch)
            for event in events:
                if isinstance(event, bytes):
                    exchange.chunk(event)
                else:
                    event = exchange.edit(event) if exchange.edit else event
                    exchange.chunk(json.dumps(event, separators=(",", ":")).encode() + b"\n")
            left = end - time.monotonic()
            if left <= 0 and watch.bookmarks and not ended:
                watch.put(self.store.bookmark_event(watch))
                ended = watch.ended = "end"
                continue
            if ended == "reset":
                wire.reset()
                raise Gone("as told")
            if ended == "cut":
                wire.close()
                raise Gone("as told")
            if ended or left <= 0:
                exchange.chunk(b"")
                return
            if wire.sock.fileno() in wire.wait(left, others=[watch.fd]):
                wire.discard()


class Reader:
    """Reads requests from the bytes of a connection."""

    def __init__(self, wire):
        self.wire, self.data = wire, b""

    def _until(self, mark):
        while mark not in self.data:
            if len(self.data) > HEADER_BYTES_MAX:
                raise Gone("too much header")
            self.data += self.wire.receive()
        part, _, self.data = self.data.partition(mark)
        return part

    def _exactly(self, size):
        if size > BODY_BYTES_MAX:
            raise Gone("too much body")
        while len(self.data) < size:
            self.data += self.wire.receive()
        part, self.data = self.data[:size], self.data[size:]
        return part

    def _chunks(self):
        body = b""
        while size := int(self._until(b"\r\n").partition(b";")[0], 16):
            body += self._exactly(size)
            self._until(b"\r\n")
        self._until(b"\r\n")
        return body

    def request(self, connection):
        lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if headers.get("expect", "").lower() == "100-continue":
            self.wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self._chunks() if headers.get("transfer-encoding") == "chunked" else \
            self._exactly(int(headers.get("content-length", "0")))
        return Request(method, target, headers, body, connection)
