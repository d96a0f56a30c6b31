# SPDX-License-Identifier: Apache-2.0
"""Answers of a hostile, broken or merely busy API server: actions for ApiServer.fault().

An action is called with an Exchange (lkgfs_apiserver.py). It either answers itself and returns True, or changes how the answer is
sent and returns None.
"""
import functools
import gzip
import json
import zlib

from lkgfs_apistore import status as make_status
from lkgfs_apiwire import Shape


# ---- bytes on the wire ----

def reset(at):
    """RST after this many bytes of the answer."""
    return shape(at=at, then="reset")


def cut(at):
    """FIN without the end of TLS, after this many bytes of the answer."""
    return shape(at=at, then="cut")


def silence(at):
    """Send nothing more after this many bytes; the connection stays open."""
    return shape(at=at, then="silent")


def drip(pace_s, piece=1):
    """Send `piece` bytes at a time, with a pause after each."""
    return shape(pace_s=pace_s, piece=piece)


def shape(**options):
    def act(exchange):
        exchange.wire.shape = Shape(**options)
    return act


def hang():
    """Take the request and never answer. When the fault is removed, the connection is closed."""
    def act(exchange):
        exchange.wire.hang(others=[exchange.rule.fd])
        exchange.wire.reset()
        return True
    return act


# ---- statuses ----

def status(code, message="as told", headers=None, **details):
    def act(exchange):
        exchange.reply(code, make_status(code, message, **details), headers)
        return True
    return act


def gone_event():
    """200 and, in the stream, an ERROR event with code 410, as the watch cache sends it."""
    def act(exchange):
        exchange.start(200)
        event = {"type": "ERROR", "object": make_status(410, "too old resource version")}
        exchange.chunk(json.dumps(event).encode() + b"\n")
        exchange.chunk(b"")
        return True
    return act


def redirect(url, code=307):
    def act(exchange):
        exchange.reply(code, b"", {"Location": url})
        return True
    return act


# ---- bodies ----

def body(data, code=200, headers=None, content_type="application/json"):
    """Answer with these bytes."""
    def act(exchange):
        exchange.reply(code, data, {"Content-Type": content_type, **(headers or {})})
        return True
    return act


def edit(function):
    """Replace the object (of a GET) or event (of a watch) by the result of `function`."""
    def act(exchange):
        exchange.edit = function
    return act


def html(code=200):
    """An answer of a proxy on the way."""
    return body(b"<html><head><title>Sign in</title></head><body>Please sign in.</body></html>", code,
                content_type="text/html")


def endless(piece=b" " * 65536):
    """A body that does not end until the client disconnects."""
    def act(exchange):
        exchange.start(200)
        while True:
            exchange.chunk(piece)
    return act


def endless_line():
    """A watch event that does not end."""
    def act(exchange):
        exchange.start(200)
        exchange.chunk(b'{"type":"ADDED","object":{"data":{"x":"')
        while True:
            exchange.chunk(b"x" * 65536)
    return act


def bomb(size=256 << 20):
    """A body that is small when compressed and expands to `size` bytes: JSON text with nothing but blanks."""
    data = blanks(size)

    def act(exchange):
        exchange.reply(200, data, {"Content-Encoding": "gzip"})
        return True
    return act


@functools.lru_cache(maxsize=1)
def blanks(size):
    packer, piece = zlib.compressobj(1, wbits=31), b" " * (1 << 20)
    return b"".join(packer.compress(piece) for _ in range(size >> 20)) + packer.flush()


def truncated_gzip(fraction=0.5):
    """A compressed object that is cut off, with a matching Content-Length."""
    def act(exchange):
        data = gzip.compress(json.dumps(exchange.server.store.find(*exchange.request.key)).encode())
        exchange.reply(200, data[:int(len(data) * fraction)], {"Content-Encoding": "gzip"})
        return True
    return act


def header_flood(count=20000):
    """Far more headers than any client needs."""
    def act(exchange):
        exchange.wire.send(b"HTTP/1.1 200 OK\r\n")
        for i in range(count):
            exchange.wire.send(b"X-Flood-%d: " % i + b"x" * 1000 + b"\r\n")
        exchange.wire.send(b"Content-Length: 2\r\n\r\n{}")
        return True
    return act


def garbage(data=b"\x00\xff" * 512):
    """Bytes that are not HTTP."""
    def act(exchange):
        exchange.wire.send(data)
        exchange.wire.close()
        return True
    return act


# ---- connections: called with the Wire, before TLS ----

def handshake_limit(n_bytes):
    """Close after this many bytes of the server's side of the handshake."""
    def act(wire):
        wire.raw_limit = n_bytes
    return act


def handshake_drip(pace_s):
    def act(wire):
        wire.raw_pace_s = pace_s
    return act


def handshake_silence():
    """Accept and send nothing."""
    def act(wire):
        wire.hang()
    return act


def plaintext():
    """A server that speaks HTTP without TLS."""
    def act(wire):
        wire.sock.send(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
        wire.close()
    return act
