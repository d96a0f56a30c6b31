# SPDX-License-Identifier: Apache-2.0
"""What a hostile, broken or merely busy API server answers: actions for ApiServer.fault().

An action is called with an Exchange (lkgfs_apiserver.py). It answers itself and returns True, or changes how the
answer goes out and returns None.
"""
import functools
import gzip
import json
import zlib

from lkgfs_apistore import status as make_status
from lkgfs_apiwire import Shape


# ---- bytes on the wire ----

def reset(at):
    """RST after so many bytes of the answer."""
    return shape(at=at, then="reset")


def cut(at):
    """FIN, without the end of TLS, after so many bytes of the answer."""
    return shape(at=at, then="cut")


def silence(at):
    """Nothing more after so many bytes; the connection stays."""
    return shape(at=at, then="silent")


def drip(pace_s, piece=1):
    """So many bytes, a pause, ..."""
    return shape(pace_s=pace_s, piece=piece)


def shape(**options):
    def act(exchange):
        exchange.wire.shape = Shape(**options)
    return act


def hang():
    """Take the request and never answer. Ends for good when the fault is taken back (the connection is closed then)."""
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
    """200 and, in the stream, an ERROR event with code 410, as the watch cache says it."""
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
    """These bytes."""
    def act(exchange):
        exchange.reply(code, data, {"Content-Type": content_type, **(headers or {})})
        return True
    return act


def edit(function):
    """The object (of a GET) or event (of a watch) as `function` returns it."""
    def act(exchange):
        exchange.edit = function
    return act


def html(code=200):
    """What a proxy on the way says."""
    return body(b"<html><head><title>Sign in</title></head><body>Please sign in.</body></html>", code,
                content_type="text/html")


def endless(piece=b" " * 65536):
    """A body that does not end before the client leaves."""
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
    """A body that is small on the wire and `size` when it is unpacked: a JSON text of blanks."""
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
    """A compressed object of which the end is missing, with a Content-Length that says so."""
    def act(exchange):
        data = gzip.compress(json.dumps(exchange.server.store.find(*exchange.request.key)).encode())
        exchange.reply(200, data[:int(len(data) * fraction)], {"Content-Encoding": "gzip"})
        return True
    return act


def header_flood(count=20000):
    """Far more header than anybody needs."""
    def act(exchange):
        exchange.wire.send(b"HTTP/1.1 200 OK\r\n")
        for i in range(count):
            exchange.wire.send(b"X-Flood-%d: " % i + b"x" * 1000 + b"\r\n")
        exchange.wire.send(b"Content-Length: 2\r\n\r\n{}")
        return True
    return act


def garbage(data=b"\x00\xff" * 512):
    """Something that is not HTTP."""
    def act(exchange):
        exchange.wire.send(data)
        exchange.wire.close()
        return True
    return act


# ---- connections: called with the Wire, before TLS ----

def handshake_limit(n_bytes):
    """Close after so many bytes of our side of the handshake."""
    def act(wire):
        wire.raw_limit = n_bytes
    return act


def handshake_drip(pace_s):
    def act(wire):
        wire.raw_pace_s = pace_s
    return act


def handshake_silence():
    """Accept and say nothing."""
    def act(wire):
        wire.hang()
    return act


def plaintext():
    """A server that speaks HTTP without TLS."""
    def act(wire):
        wire.sock.send(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
        wire.close()
    return act
