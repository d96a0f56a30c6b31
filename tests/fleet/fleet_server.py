# SPDX-License-Identifier: Apache-2.0
"""The programmable API server for ten thousand nodes: the objects of lkgfs_apistore behind one loop instead of a thread per
connection. Each watch event is encoded once for all who watch. It runs in a process of its own, which answers commands of the test.

TLS and HTTP/1.1, so a node has up to four connections: three watches and one for everything else. When descriptors run short, the one that
has been idle for longest is closed.
Where a process may not have so many descriptors, nodes may not watch their Node and their ConfigMap and read them every minute instead, as
with kubeadm's own Role; that makes little more than one. Otherwise everybody may do everything.
"""
import collections
import heapq
import json
import multiprocessing
import os
import pathlib
import resource
import select
import signal
import socket
import ssl
import time

from lkgfs_apiserver import Request
from lkgfs_apistore import KINDS, Refused, Store, status
from lkgfs_certs import Authority

from fleet_real import issue, memory, processor

PORTS = 8  # a port of the server has 28,000 ports of clients at most
BACKLOG = 4096
BOOKMARK_S = 60
SPARE = 500  # descriptors
HISTORY = 20000
SLOTS = "lkgfs-rollout"
COMPACT = {"separators": (",", ":")}


def encode(event):
    """An event as the chunk that every watcher gets."""
    line = json.dumps(event, **COMPACT).encode() + b"\n"
    return b"%x\r\n%s\r\n" % (len(line), line)


def label_of(request):
    """What labelSelector asks for, as (name, value); None: everything."""
    name, _, value = request.query.get("labelSelector", "").partition("=")
    return (name, value) if name else None


def has_label(obj, label):
    return label is None or (obj["metadata"].get("labels") or {}).get(label[0]) == label[1]


class FleetStore(Store):
    """Tells an event to the connections that watch, by what they watch; events of Nodes are not kept."""

    def __init__(self, server):
        super().__init__()
        self.server = server
        self.watchers = collections.defaultdict(dict)  # (plural, namespace, name) -> {connection: label}
        self.kept = collections.deque()

    def _tell(self, plural, kind, obj):
        meta = obj["metadata"]
        chunk = encode({"type": kind, "object": obj})
        if plural == "configmaps":
            self.kept.append((self.version, obj, chunk))
            while len(self.kept) > HISTORY:
                self.floor = self.kept.popleft()[0]
        for key in {(plural, meta.get("namespace"), meta["name"]), (plural, meta.get("namespace"), None)}:
            for connection, label in list(self.watchers.get(key, {}).items()):
                if has_label(obj, label):
                    self.server.tell(connection, chunk)

    def compact(self):
        super().compact()
        self.kept.clear()

    def begin(self, connection, request):
        """Chunks that a new watch begins with; it gets what comes later from now on."""
        version, label = request.query.get("resourceVersion", ""), label_of(request)
        key = request.plural, request.ns, request.name
        if version not in ("", "0") and int(version) < self.floor and request.plural == "configmaps":
            told = status(410, f"too old resource version: {version} ({self.floor})")
            return [encode({"type": "ERROR", "object": told})], True
        self.watchers[key][connection] = label
        connection.watches = key
        if version in ("", "0") or request.plural != "configmaps":
            objects = [self.objects.get(key)] if request.name else []
            return [encode({"type": "ADDED", "object": obj}) for obj in objects
                    if obj and (not version or int(obj["metadata"]["resourceVersion"]) > int(version))], False
        return [chunk for at, obj, chunk in self.kept if at > int(version) and has_label(obj, label)
                and obj["metadata"].get("namespace") == request.ns and request.name in (None, obj["metadata"]["name"])], False

    def forget(self, connection):
        if connection.watches:
            self.watchers[connection.watches].pop(connection, None)
            connection.watches = None


class Connection:
    """One TLS connection. `out`: bytes that the socket did not take yet."""

    def __init__(self, sock):
        self.sock, self.inward, self.out = sock, b"", []
        self.shaken = False
        self.watches = None
        self.ends_at = 0


class Server:
    """The loop."""

    def __init__(self, directory, pipe, ports, polled):
        self.pipe, self.ports, self.polled = pipe, ports, polled
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(directory / "server.crt", directory / "server.key")
        self.context.load_verify_locations(directory / "ca.crt")
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.set_alpn_protocols(["http/1.1"])
        self.context.num_tickets = 0
        self.store = FleetStore(self)
        self.epoll = select.epoll()
        self.epoll.register(pipe.fileno(), select.EPOLLIN)
        self.connections, self.listeners, self.timers = {}, {}, []
        self.room = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE
        self.idle = collections.OrderedDict()  # connections that watch nothing, the longest idle first
        self.counts = collections.Counter()
        self.delay_s = 0
        self.listen()

    def listen(self):
        for i, port in enumerate(self.ports):
            listener = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
            listener.setblocking(False)
            self.ports[i] = listener.getsockname()[1]
            self.listeners[listener.fileno()] = listener
            self.epoll.register(listener.fileno(), select.EPOLLIN)

    def run(self):
        while True:
            timeout = max(0, self.timers[0][0] - time.monotonic()) if self.timers else None
            for fd, _ in self.epoll.poll(timeout):
                if fd == self.pipe.fileno():
                    if not self.command():
                        return
                elif fd in self.listeners:
                    self.accept(self.listeners[fd])
                elif fd in self.connections:
                    self.work(self.connections[fd])
            self.look_at_clock()

    # connections

    def accept(self, listener):
        for _ in range(64):
            try:
                sock, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError:  # no descriptor is left: whoever waits tries again later
                self.counts["not_accepted"] += 1
                time.sleep(0.01)
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                sock = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            except OSError:  # the client did not wait for so long
                sock.close()
                continue
            connection = Connection(sock)
            self.connections[sock.fileno()] = connection
            self.is_used(connection)
            self.epoll.register(sock.fileno(), select.EPOLLIN)
            self.counts["connections"] += 1
            self.make_room()

    def is_used(self, connection):
        self.idle[connection] = None
        self.idle.move_to_end(connection)

    def make_room(self):
        while len(self.connections) > self.room and self.idle:
            self.end(next(iter(self.idle)))
            self.counts["made_room"] += 1

    def end(self, connection):
        self.store.forget(connection)
        self.idle.pop(connection, None)
        if self.connections.pop(connection.sock.fileno(), None):
            self.epoll.unregister(connection.sock.fileno())
        connection.sock.close()

    def work(self, connection):
        try:
            if not connection.shaken:
                connection.sock.do_handshake()
                connection.shaken = True
            if connection.out:
                self.flush(connection)
            while True:
                data = connection.sock.recv(1 << 16)
                if not data:
                    self.end(connection)
                    return
                connection.inward += data
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError:
            self.end(connection)
            return
        self.read(connection)

    def send(self, connection, data):
        self.counts["sent"] += len(data)
        connection.out.append(data)
        if len(connection.out) == 1:
            self.flush(connection)

    def flush(self, connection):
        try:
            while connection.out:
                sent = connection.sock.send(connection.out[0])
                if sent < len(connection.out[0]):
                    connection.out[0] = connection.out[0][sent:]
                else:
                    del connection.out[0]
            waits = False
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            waits = True
        except OSError:
            self.end(connection)
            return
        self.epoll.modify(connection.sock.fileno(), select.EPOLLIN | (select.EPOLLOUT if waits else 0))

    # requests

    def read(self, connection):
        while b"\r\n\r\n" in connection.inward:
            head, _, rest = connection.inward.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            size = int(headers.get("content-length", "0"))
            if len(rest) < size:
                return
            connection.inward = rest[size:]
            self.is_used(connection)
            method, target, _ = lines[0].split(" ")
            self.answer(connection, Request(method, target, headers, rest[:size], 0))

    def reply(self, connection, code, body):
        body = body if isinstance(body, bytes) else json.dumps(body, **COMPACT).encode()
        self.counts["bytes"] += len(body)
        self.counts["conflicts"] += code == 409
        self.send(connection, b"HTTP/1.1 %d x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (code, len(body), body))

    def answer(self, connection, request):
        self.counts["requests"] += 1
        self.counts["patches"] += request.verb == "patch"
        self.counts["lists"] += request.verb == "list"
        self.counts["writes"] += request.verb in ("create", "update") and request.plural == "configmaps"
        try:
            if request.plural not in KINDS:
                raise Refused(404, "the server could not find the requested resource")
            getattr(self, f"_{request.verb}")(connection, request)
        except Refused as error:
            self.reply(connection, error.code, error.status)

    def _get(self, connection, request):
        obj = self.store.objects.get(request.key)
        if obj is None:
            raise Refused(404, f'{request.plural} "{request.name}" not found', name=request.name, kind=request.plural)
        self.reply(connection, 200, obj)

    def _list(self, connection, request):
        label = label_of(request)
        items = [obj for (plural, ns, _), obj in self.store.objects.items()
                 if plural == request.plural and ns == request.ns and has_label(obj, label)] if request.plural == "configmaps" else []
        self.reply(connection, 200, {"kind": KINDS[request.plural] + "List", "apiVersion": "v1",
                                     "metadata": {"resourceVersion": str(self.store.version)}, "items": items})

    def _create(self, connection, request):
        self.reply(connection, 201, self.store.create(request.plural, request.ns, request.json()))

    def _update(self, connection, request):
        self.reply(connection, 200, self.store.update(*request.key, request.json()))

    def _patch(self, connection, request):
        content_type = request.headers.get("content-type", "").partition(";")[0]
        self.reply(connection, 200, self.store.patch(*request.key, request.subresource, content_type, request.json()))

    # watches

    def _watch(self, connection, request):
        if self.polled and request.name:
            raise Refused(403, f'{request.plural} "{request.name}" is forbidden: cannot watch', name=request.name, kind=request.plural)
        self.send(connection, b"HTTP/1.1 200 x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunks, ended = self.store.begin(connection, request)
        for chunk in chunks:
            self.tell(connection, chunk)
        if ended:
            self.send(connection, b"0\r\n\r\n")
            return
        now = time.monotonic()
        connection.ends_at = now + int(request.query.get("timeoutSeconds", "1800"))
        connection.plural = request.plural
        self.idle.pop(connection, None)
        heapq.heappush(self.timers, (min(now + BOOKMARK_S, connection.ends_at), id(connection), connection, connection.ends_at))

    def tell(self, connection, chunk):
        self.counts["watch_events"] += 1
        self.counts["watch_bytes"] += len(chunk)
        self.send(connection, chunk)

    def look_at_clock(self):
        """Bookmarks and ends of watches that are due."""
        now = time.monotonic()
        while self.timers and self.timers[0][0] <= now:
            _, _, connection, ends_at = heapq.heappop(self.timers)
            if not connection.watches or connection.ends_at != ends_at:
                continue
            self.tell(connection, encode({"type": "BOOKMARK", "object": {
                "kind": KINDS[connection.plural], "apiVersion": "v1", "metadata": {"resourceVersion": str(self.store.version)}}}))
            if ends_at <= now:
                self.store.forget(connection)
                self.is_used(connection)
                self.send(connection, b"0\r\n\r\n")
            elif connection.watches:
                heapq.heappush(self.timers, (min(now + BOOKMARK_S, ends_at), id(connection), connection, ends_at))

    # commands of the test

    def command(self):
        try:
            name, words = self.pipe.recv()
        except EOFError:
            return False
        self.pipe.send(getattr(self, "do_" + name)(*words))
        return True

    def do_put(self, name, data, annotations):
        return self.store.configmap("kube-system", name, data, annotations)

    def do_nodes(self, names):
        for name in names:
            self.store.node(name)

    def do_slots(self, uid):
        return [obj["data"] for (plural, ns, _), obj in self.store.objects.items()
                if plural == "configmaps" and ns == SLOTS and has_label(obj, ("lkgfs.io/configmap-uid", uid))]

    def do_counters(self):
        return {**dict.fromkeys(("requests", "conflicts", "patches", "lists", "writes", "bytes", "watch_events", "watch_bytes"), 0),
                **self.counts, "open": len(self.connections)}

    def do_disconnect(self):
        """Every connection ends, and no new one is accepted until listen()."""
        for listener in self.listeners.values():
            self.epoll.unregister(listener.fileno())
            listener.close()
        self.listeners.clear()
        for connection in list(self.connections.values()):
            self.end(connection)

    def do_listen(self):
        self.listen()

    def do_compact(self):
        self.store.compact()
        for connection in [one for one in self.connections.values() if one.watches]:
            self.end(connection)

    def do_ports(self):
        return self.ports


def serve(directory, pipe, other_end, polled):
    other_end.close()  # inherited; else the end of the test would not be seen
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Server(directory, pipe, [0] * PORTS, polled).run()


class ProgrammableCluster:
    """What fleet.py needs of an API server: see fleet_real.RealCluster."""

    kind = "the programmable server"

    def __init__(self, directory, names):
        self.directory = pathlib.Path(directory)
        Authority(directory, "ca").issue("server", "/CN=kube-apiserver", "IP:127.0.0.1")
        self.pipe, other = multiprocessing.Pipe()
        polled = 4 * len(names) + 100 > resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.process = multiprocessing.get_context("fork").Process(
            target=serve, args=(self.directory, other, self.pipe, polled), daemon=True)
        self.process.start()
        other.close()
        issue(directory, names, [f"https://127.0.0.1:{port}" for port in self._ask("ports")])
        self._ask("nodes", names)

    def _ask(self, name, *words):
        self.pipe.send((name, words))
        if not self.pipe.poll(300):
            raise RuntimeError(f"the server does not answer: {name}")
        return self.pipe.recv()

    def prepare(self, configmap):
        """Everybody may do everything here."""

    def put(self, configmap, text, annotations):
        return self._ask("put", configmap, {"kubelet": text}, annotations)

    def slots(self, uid):
        return self._ask("slots", uid)

    def counters(self):
        return {**self._ask("counters"), "cpu": processor(self.process.pid), "memory": memory(self.process.pid)}

    def restart(self, seconds):
        self._ask("disconnect")
        time.sleep(seconds)
        self._ask("listen")

    def pause(self, seconds):
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(self.process.pid, signal.SIGCONT)

    def compact(self):
        self._ask("compact")

    def close(self):
        self.pipe.close()
        self.process.join(60)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
