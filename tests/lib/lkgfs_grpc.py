# SPDX-License-Identifier: Apache-2.0
"""A gRPC server without TLS, on a port or a unix socket, that answers as a test says: health (grpc.health.v1) and the CRI (runtime.v1)."""
import os
import socket
import threading

import h2.config
import h2.connection
import h2.events

HEALTH = "/grpc.health.v1.Health/Check"
CRI = "/runtime.v1.RuntimeService/"


# ---- protobuf ----

def varint(number):
    number &= (1 << 64) - 1
    data = bytearray()
    while number > 0x7f:
        data.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(data + bytes([number]))


def message(*fields):
    """Each is (number, value): an int, a text, bytes (a message), or a dict from text to text."""
    data = b""
    for number, value in fields:
        if isinstance(value, dict):
            data += message(*((number, message((1, key), (2, text))) for key, text in value.items()))
        elif isinstance(value, int):
            data += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            data += varint(number << 3 | 2) + varint(len(value)) + value
    return data


def read(data):
    """Its fields with texts or messages: {number: bytes}. Enough for what we are asked."""
    fields = {}
    while data:
        assert data[0] & 7 == 2 and data[1] < 0x80, data
        fields[data[0] >> 3], data = data[2:2 + data[1]], data[2 + data[1]:]
    return fields


def frame(data, compressed=0):
    return bytes([compressed]) + len(data).to_bytes(4, "big") + data


# ---- answers: called with a Stream ----

def answer(data):
    return lambda stream: stream.reply(frame(data))


def raw(data, status="0"):
    """This body, which need not be a frame."""
    return lambda stream: stream.reply(data, status)


def status(code, at_once=False):
    """An error in trailers; at_once: in the only header, as for a method that is not there."""
    return lambda stream: stream.reply(None if at_once else b"", str(code))


def http(code):
    return lambda stream: stream.reply(b"", None, code=str(code))


def no_status(data):
    return lambda stream: stream.reply(frame(data), None)


def hang():
    return lambda stream: None


def die():
    return lambda stream: stream.connection.close()


def garbage():
    def act(stream):
        stream.connection.sock.sendall(b"\x00\xff" * 512)
        stream.connection.close()
    return act


def flood(size=100 << 20):
    """A message of that size."""
    return lambda stream: stream.reply(size.to_bytes(5, "big") + b"\n" * size)


def cut(data):
    """The message, and no end."""
    def act(stream):
        stream.reply(frame(data), None, ends=False)
        stream.connection.close()
    return act


# ---- the server ----

class Stream:
    """A call."""

    def __init__(self, connection, number, headers):
        self.connection, self.number = connection, number
        self.headers = {name.decode(): value.decode() for name, value in headers}
        self.path, self.body = self.headers[":path"], b""

    def reply(self, body, grpc_status="0", code="200", ends=True):
        """body None: nothing but the header, which has the status."""
        h2c, trailer = self.connection.h2c, [("grpc-status", grpc_status)] if grpc_status else []
        header = [(":status", code), ("content-type", "application/grpc")]
        h2c.send_headers(self.number, header + (trailer if body is None else []), end_stream=body is None)
        if body is not None:
            self.connection.send(self.number, body)
            if trailer:
                h2c.send_headers(self.number, trailer, end_stream=True)
            elif ends:
                h2c.end_stream(self.number)
        self.connection.flush()


class Connection(threading.Thread):
    def __init__(self, server, sock):
        super().__init__(daemon=True)
        self.server, self.sock, self.streams = server, sock, {}
        self.h2c = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))

    def run(self):
        try:
            self.h2c.initiate_connection()
            self.flush()
            while self.take():
                pass
        except (OSError, h2.exceptions.ProtocolError):
            pass
        self.close()

    def flush(self):
        self.sock.sendall(self.h2c.data_to_send())

    def take(self):
        data = self.sock.recv(65536)
        for event in self.h2c.receive_data(data) if data else []:
            if isinstance(event, h2.events.RequestReceived):
                self.streams[event.stream_id] = Stream(self, event.stream_id, event.headers)
            elif isinstance(event, h2.events.DataReceived):
                self.streams[event.stream_id].body += event.data
                self.h2c.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                self.server.serve(self.streams[event.stream_id])
        self.flush()
        return data

    def send(self, number, body):
        """As far as the client takes it."""
        at = 0
        while at < len(body):
            room = min(self.h2c.local_flow_control_window(number), self.h2c.max_outbound_frame_size)
            if room == 0:
                if not self.take():
                    raise OSError("the client has left")
                continue
            self.h2c.send_data(number, body[at:at + room])
            self.flush()
            at += room

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Server:
    """@path: of a unix socket; None = a port. `answers`: from a method to an answer; others are UNIMPLEMENTED. `calls`: what was asked."""

    def __init__(self, path=None):
        self.answers, self.calls, self.connections = {}, [], []
        self.asked = threading.Condition()
        self.sock = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.sock.bind(str(path) if path else ("127.0.0.1", 0))
        if path:
            os.chmod(path, 0o600)
        self.sock.listen(16)
        self.port = None if path else self.sock.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            self.connections.append(Connection(self, sock))
            self.connections[-1].start()

    def serve(self, stream):
        with self.asked:
            self.calls.append(stream)
            self.asked.notify_all()
            act = self.answers.get(stream.path, status(12, at_once=True))
        act(stream)

    def say(self, method, act):
        with self.asked:
            self.answers[method] = act

    def wait_asked(self, method, seconds=30):
        """Wait for one more call of the method; return it."""
        with self.asked:
            n = len(self.calls)
            assert self.asked.wait_for(lambda: any(call.path == method for call in self.calls[n:]), seconds), "nobody asks"
            return self.calls[-1]

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        for connection in self.connections:
            connection.close()
        for thread in [self.thread, *self.connections]:
            thread.join(10)
        for connection in self.connections:
            connection.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Runtime(Server):
    """A container runtime: `sandboxes` and `containers` are dicts with the members that the two functions below give them."""

    def __init__(self, path):
        super().__init__(path)
        self.sandboxes, self.containers = [], []
        self.answers = {CRI + "ListPodSandbox": self._sandboxes, CRI + "PodSandboxStatus": self._status,
                        CRI + "ListContainers": self._containers}

    def sandbox(self, id_, pod, created, source="file", ns="kube-system", uid="u1", ip="", **annotations):
        self.sandboxes.append({"id": id_, "pod": pod, "created": created, "ns": ns, "uid": uid, "ip": ip,
                               "annotations": {"kubernetes.io/config.source": source, **annotations}})

    def container(self, id_, sandbox, name, state, created, restarts="0"):
        self.containers.append({"id": id_, "sandbox": sandbox, "name": name, "state": state, "created": created,
                                "annotations": {"io.kubernetes.container.hash": "8f1c",
                                                "io.kubernetes.container.restartCount": restarts}})

    def _sandboxes(self, stream):
        items = [message((1, s["id"]), (2, message((1, s["pod"]), (2, s["uid"]), (3, s["ns"]), (4, 1))), (3, 0), (4, s["created"]),
                         (5, {"io.kubernetes.pod.name": s["pod"]}), (6, s["annotations"]), (7, "runc")) for s in self.sandboxes]
        answer(message(*((1, item) for item in items)))(stream)

    def _status(self, stream):
        sandbox = next(s for s in self.sandboxes if s["id"] == read(stream.body[5:])[1].decode())
        network = message((1, sandbox["ip"]), (2, message((1, "fd00::1")))) if sandbox["ip"] else b""
        answer(message((1, message((1, sandbox["id"]), (4, sandbox["created"]), (5, network)))))(stream)

    def _containers(self, stream):
        of = read(read(stream.body[5:])[1])[3].decode()
        items = [message((1, c["id"]), (2, c["sandbox"]), (3, message((1, c["name"]), (2, 1))), (4, message((1, "image"))), (6, c["state"]),
                         (7, c["created"]), (8, {"a": "b"}), (9, c["annotations"])) for c in self.containers if c["sandbox"] == of]
        answer(message(*((1, item) for item in items)))(stream)
