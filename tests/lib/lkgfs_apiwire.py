# SPDX-License-Identifier: Apache-2.0
"""One TLS connection of the API server. The test controls every byte: TLS goes through memory, so a fault can stop, slow down or
break it anywhere, even within the handshake. Every wait ends when the server closes.
"""
import os
import select
import socket
import ssl
import struct
import time

IDLE_S = 120  # a connection is closed after this idle time


class Gone(Exception):
    """The connection was closed, by us or by the other side."""


class Stop:
    """Tells all threads to end: a descriptor that becomes readable."""

    def __init__(self):
        self.fd = os.eventfd(0, os.EFD_CLOEXEC)

    def set(self):
        os.eventfd_write(self.fd, 1)

    def close(self):
        os.close(self.fd)


class Shape:
    """How the bytes of one answer are sent. `at`: act after this many; `then`: reset, cut (no TLS end), silent or None; `pace_s`:
    pause before each piece of `piece` bytes.
    """

    def __init__(self, at=None, then=None, pace_s=0.0, piece=1):
        self.at, self.then, self.pace_s, self.piece = at, then, pace_s, piece
        self.sent = 0


class Wire:
    def __init__(self, sock, stop):
        self.sock, self.stop = sock, stop
        self.inward, self.outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = None
        self.shape = None
        self.raw_limit, self.raw_pace_s, self.raw_sent = None, 0.0, 0
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    # waiting

    def wait(self, seconds, sending=False, others=(), listen=True):
        """Wait for an event: return the set of readable descriptors, with -1 for a socket that can send."""
        if self.sock.fileno() < 0:
            raise Gone("closed as told")
        poll = select.poll()
        poll.register(self.stop.fd, select.POLLIN)
        if listen or sending:
            poll.register(self.sock, (select.POLLIN if listen else 0) | (select.POLLOUT if sending else 0))
        for fd in others:
            poll.register(fd, select.POLLIN)
        found = set()
        for fd, events in poll.poll(None if seconds is None else seconds * 1000):
            if fd == self.stop.fd:
                raise Gone("the server closes")
            if fd == self.sock.fileno() and events & select.POLLOUT:
                found.add(-1)
            if fd != self.sock.fileno() or events & ~select.POLLOUT:
                found.add(fd)
        return found

    def pause(self, seconds):
        """Do nothing for a while; end early, with Gone, when the client disconnects or the server closes."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.sock.fileno() in self.wait(left):
                self._fill()

    def hang(self, others=()):
        """Send nothing more until the client disconnects, the server closes or one of `others` is readable."""
        while not self.wait(None, others=others) & set(others):
            self._fill()

    # TLS

    def handshake(self, context, seconds=30):
        self.tls = context.wrap_bio(self.inward, self.outward, server_side=True)
        end = time.monotonic() + seconds
        while True:
            try:
                self.tls.do_handshake()
                self._flush()
                return
            except ssl.SSLWantReadError:
                self._flush()
                if not self.wait(end - time.monotonic()):
                    raise Gone("no handshake came") from None
                self._fill()
            except ssl.SSLError as error:
                self._flush()  # the alert with the reason
                raise Gone(str(error)) from None

    def _fill(self):
        try:
            data = self.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError as error:
            raise Gone(str(error)) from None
        if not data:
            raise Gone("the client has closed")
        self.inward.write(data)

    def _flush(self):
        data = self.outward.read()
        while data:
            piece = data[:1] if self.raw_pace_s else data
            if self.raw_limit is not None:
                piece = piece[:self.raw_limit - self.raw_sent]
                if not piece:
                    self.close()
                    raise Gone("closed in the middle of the handshake")
            if self.raw_pace_s:
                self.pause(self.raw_pace_s)
            data = data[self._send_some(piece):]

    def _send_some(self, piece):
        self.wait(IDLE_S, sending=True, listen=False)
        try:
            sent = self.sock.send(piece)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise Gone(str(error)) from None
        self.raw_sent += sent
        return sent

    # bytes of HTTP

    def receive(self, seconds=IDLE_S, others=()):
        """Return some bytes, or b'' when one of `others` is readable instead. Raises Gone."""
        while True:
            try:
                data = self.tls.read(1 << 16)
            except ssl.SSLWantReadError:
                data = None
            except ssl.SSLError as error:
                raise Gone(str(error)) from None
            if data:
                return data
            if data == b"":
                raise Gone("the client has ended TLS")
            ready = self.wait(seconds, others=others)
            if not ready:
                raise Gone("idle")
            if ready & set(others):
                return b""
            self._fill()

    def send(self, data):
        shape = self.shape
        if shape is None:
            self._write(data)
            return
        while data:
            size = len(data)
            if shape.pace_s:
                self.pause(shape.pace_s)
                size = min(size, shape.piece)
            if shape.at is not None:
                size = min(size, shape.at - shape.sent)
                if size <= 0:
                    self._then(shape.then)
            self._write(data[:size])
            shape.sent += size
            data = data[size:]

    def settle(self):
        """The answer is complete: do what a shape does exactly after the last byte."""
        shape = self.shape
        if shape and shape.at is not None and shape.sent >= shape.at:
            self._then(shape.then)
        self.shape = None

    def _write(self, data):
        if data:
            self.tls.write(data)
            self._flush()

    def _then(self, what):
        if what == "reset":
            self.reset()
        elif what == "cut":
            self.close()
        elif what == "silent":
            self.hang()
        raise Gone(f"as told: {what}")

    def discard(self):
        """Read what the client sends during a stream: the end of the connection, or bytes to ignore."""
        self._fill()
        try:
            if self.tls.read(1 << 16) == b"":
                raise Gone("the client has ended TLS")
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            raise Gone(str(error)) from None

    # ends

    def reset(self):
        """Send RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def finish(self):
        """End TLS and TCP properly."""
        if self.sock.fileno() >= 0 and self.tls is not None:
            try:
                self.tls.unwrap()
            except (ssl.SSLError, ValueError):
                pass
            try:
                self._flush()
            except Gone:
                pass
        self.close()

    def close(self):
        self.sock.close()
