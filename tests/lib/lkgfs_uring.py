# SPDX-License-Identifier: Apache-2.0
"""io_uring by raw system calls: just enough to have kernel threads open, read and close files on behalf of a process."""
import ctypes
import mmap
import os
import struct

SETUP, ENTER = 425, 426
ENTER_GETEVENTS = 1
SQ_RING, CQ_RING, SQES = 0, 0x8000000, 0x10000000
ASYNC = 1 << 4  # IOSQE_ASYNC: never by the submitting thread
POLL_ADD, OPENAT, CLOSE, STATX, READ = 6, 18, 19, 21, 22
AT_FDCWD = -100
SQE = struct.Struct("<BBHiQQIIQHHiQQ")
CQE = struct.Struct("<QiI")
WORD = struct.Struct("<I")

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "io_uring")
    return result


def is_there():
    """Does this kernel have io_uring, and may everyone use it?"""
    try:
        Ring(1).close()
    except OSError:
        return False
    return True


class Ring:
    """Requests are queued with add() and carried out by run(), which waits for all results."""

    def __init__(self, entries=128):
        params = ctypes.create_string_buffer(120)
        self.fd = call(SETUP, entries, params)
        self.entries, n_results = struct.unpack_from("<2I", params.raw)
        self.sq, self.cq = struct.unpack_from("<10I", params.raw, 40), struct.unpack_from("<10I", params.raw, 80)
        self.ring = mmap.mmap(self.fd, self.sq[6] + 4 * self.entries, offset=SQ_RING)
        self.results = mmap.mmap(self.fd, self.cq[5] + CQE.size * n_results, offset=CQ_RING)
        self.requests = mmap.mmap(self.fd, SQE.size * self.entries, offset=SQES)
        self.queued = 0
        self.keep = []  # what the requests point to

    def add(self, opcode, fd=AT_FDCWD, offset=0, memory=None, length=0, flags=0):
        address = ctypes.addressof(memory) if memory is not None else 0
        self.keep.append(memory)
        tail = WORD.unpack_from(self.ring, self.sq[1])[0]
        index = tail & WORD.unpack_from(self.ring, self.sq[2])[0]
        SQE.pack_into(self.requests, index * SQE.size, opcode, ASYNC, 0, fd, offset, address, length, flags, self.queued, 0, 0, 0, 0, 0)
        WORD.pack_into(self.ring, self.sq[6] + 4 * index, index)
        WORD.pack_into(self.ring, self.sq[1], tail + 1)
        self.queued += 1

    def run(self, wait=True):
        """Return the results in the order of the requests; without @wait they arrive later and are discarded."""
        count, self.queued, submitted = self.queued, 0, 0
        while submitted < count:  # it stops at a request that is refused at once, whose result is there
            submitted += call(ENTER, self.fd, count - submitted, 0, 0, None, 0)
        if wait:
            call(ENTER, self.fd, 0, count, ENTER_GETEVENTS, None, 0)
        found = [None] * count
        head, tail = (WORD.unpack_from(self.results, at)[0] for at in self.cq[:2])
        while head != tail:
            index = head & WORD.unpack_from(self.results, self.cq[2])[0]
            number, result, _ = CQE.unpack_from(self.results, self.cq[5] + index * CQE.size)
            if number < count:
                found[number] = result
            head += 1
        WORD.pack_into(self.results, self.cq[0], head)
        self.keep = []
        return found

    def open(self, paths):
        for path in paths:
            self.add(OPENAT, memory=ctypes.create_string_buffer(os.fsencode(path)), flags=os.O_RDONLY)
        return self.run()

    def read(self, fds, size=256):
        for fd in fds:
            self.add(READ, fd=fd, memory=ctypes.create_string_buffer(size), length=size)
        return self.run()

    def close_all(self, fds):
        for fd in fds:
            self.add(CLOSE, fd=fd)
        return self.run()

    def stat(self, paths):
        for path in paths:  # `offset` points to the answer
            answer = ctypes.create_string_buffer(256)
            self.add(STATX, memory=ctypes.create_string_buffer(os.fsencode(path)), offset=ctypes.addressof(answer), length=0x7ff)
            self.keep.append(answer)
        return self.run()

    def close(self):
        os.close(self.fd)
