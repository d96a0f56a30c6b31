# SPDX-License-Identifier: Apache-2.0
"""Makes system calls in another process, as code injected into it would.

    with Injected(pid) as process:
        process.call("socket", socket.AF_PACKET, socket.SOCK_RAW, 0)     # result, or -errno

The process is stopped wherever it is, made to repeat the instruction with which it entered the kernel, and then continues as if
nothing had happened. Raises Killed if the call ends it.
"""
import ctypes
import os
import platform
import signal
import time

import lkgfs_testlib as lib

GETREGSET, SETREGSET, SEIZE, INTERRUPT, SINGLESTEP, DETACH = 0x4204, 0x4205, 0x4206, 0x4207, 9, 17
NT_PRSTATUS = 1
WALL = 0x40000000

# Register names in order; the instruction; its length; number, result, arguments, program counter, stack pointer.
X86 = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs "
       "gs").split()
MACHINES = {
    "x86_64": (X86, b"\x0f\x05", "rax", "rax", ("rdi", "rsi", "rdx", "r10", "r8", "r9"), "rip", "rsp"),
    "aarch64": ([f"x{i}" for i in range(31)] + ["sp", "pc", "pstate"], b"\x01\x00\x00\xd4", "x8", "x0",
                tuple(f"x{i}" for i in range(6)), "pc", "sp"),
}
# System call numbers of x86-64 and of the generic table, which aarch64 uses.
NUMBERS = {
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "socketpair": (53, 199),
    "execve": (59, 221), "ptrace": (101, 117), "mmap": (9, 222), "munmap": (11, 215), "mount": (165, 40),
    "unshare": (272, 97), "bpf": (321, 280), "setns": (308, 268), "process_vm_readv": (310, 270), "openat": (257, 56),
    "init_module": (175, 105), "clone": (56, 220), "clone3": (435, 435), "io_uring_setup": (425, 425), "kill": (62, 129),
    "getpid": (39, 172), "prctl": (157, 167), "close": (3, 57), "capset": (126, 91), "prlimit64": (302, 261), "keyctl": (250, 219),
    "unlinkat": (263, 35), "mkdirat": (258, 34), "socketpair": (53, 199), "fchmodat": (268, 53),
    "fchownat": (260, 54), "mknodat": (259, 33), "setresuid": (117, 147), "setuid": (105, 146), "setgroups": (116, 159),
    "open_by_handle_at": (304, 265), "sendmsg": (46, 211), "fcntl": (72, 25),
    "write": (1, 64), "utimensat": (280, 88), "fchmod": (91, 52), "ftruncate": (77, 46), "ioctl": (16, 29), "lseek": (8, 62),
}
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
libc.ptrace.restype = ctypes.c_long


class Killed(Exception):
    """The process ended during the call; `signal` is the signal that killed it."""

    def __init__(self, number):
        super().__init__(f"killed by {signal.Signals(number).name}")
        self.signal = number


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Injected:
    """One process, stopped in a system call while the block runs. All calls must come from the thread that created the object."""

    def __init__(self, pid):
        self.pid = pid
        self.names, self.instruction, self.number, self.result, self.arguments, self.counter, self.stack = MACHINES[
            platform.machine()]
        self.saved = None

    def _trace(self, request, address=0, data=0):
        if libc.ptrace(request, self.pid, address, data) < 0:
            raise OSError(ctypes.get_errno(), f"ptrace {request:#x}")

    def _wait(self):
        _, status = os.waitpid(self.pid, WALL)
        if os.WIFSIGNALED(status) or os.WIFEXITED(status):
            self.saved = None
            raise Killed(os.WTERMSIG(status))

    def _registers(self, values=None):
        words = (ctypes.c_uint64 * len(self.names))(*(values[name] for name in self.names) if values else ())
        vector = Vector(ctypes.addressof(words), ctypes.sizeof(words))
        self._trace(SETREGSET if values else GETREGSET, NT_PRSTATUS, ctypes.addressof(vector))
        return dict(zip(self.names, words))

    def memory(self, address, size_or_data):
        """Read this many bytes, or write these bytes."""
        fd = os.open(f"/proc/{self.pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            if isinstance(size_or_data, int):
                return os.pread(fd, size_or_data, address)
            return os.pwrite(fd, size_or_data, address)
        finally:
            os.close(fd)

    def __enter__(self):
        end = lib.deadline()
        self._trace(SEIZE)
        while time.monotonic() < end:
            self._trace(INTERRUPT)
            self._wait()
            registers = self._registers()
            size = len(self.instruction)
            if self.memory(registers[self.counter] - size, size) == self.instruction:
                self.saved = registers
                return self
            self._trace(SINGLESTEP)  # not in a system call now; step until it is elsewhere
            self._wait()
        raise lib.Failure("the process is never in a system call")

    def call(self, name, *arguments):
        """Return the result of a system call; text arguments are written below its stack."""
        registers = dict(self.saved)
        registers[self.number] = NUMBERS[name][platform.machine() != "x86_64"]
        if "orig_rax" in registers:
            registers["orig_rax"] = 2 ** 64 - 1  # otherwise the kernel would restart the interrupted call
        below = registers[self.stack] - 4096
        for register, value in zip(self.arguments, arguments):
            if isinstance(value, str):
                data = os.fsencode(value) + b"\0"
                below -= (len(data) + 15) & ~15
                self.memory(below, data)
                value = below
            registers[register] = value & (2 ** 64 - 1)
        registers[self.counter] -= len(self.instruction)
        self._registers(registers)
        self._trace(SINGLESTEP)
        self._wait()
        result = self._registers()[self.result]
        return result - 2 ** 64 if result >= 2 ** 63 else result

    def __exit__(self, *_):
        if self.saved is not None:
            self._registers(self.saved)
            self._trace(DETACH)


LOOPS = {"x86_64": b"\xeb\xfe", "aarch64": b"\x00\x00\x00\x14"}


def spin(pid):
    """Put the process into an endless loop, as a bug would."""
    with Injected(pid) as process:
        registers = dict(process.saved)
        process.memory(registers[process.counter], LOOPS[platform.machine()])
        if "orig_rax" in registers:
            registers["orig_rax"] = 2 ** 64 - 1
        process.saved = registers
