# SPDX-License-Identifier: Apache-2.0
"""kubelet.conf while the source directory hangs: for each kind of hang, a hundred processes wait forever, and the measurement
runs beside them, compared with one without; and the cost of a change, which has to identify its caller.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

from servers import TOP, Trouble

sys.path.insert(0, str(TOP / 'tests' / 'lib'))

import lkgfs_deadfs as deadfs  # noqa: E402

WAITERS = 100
NAME = 'kubelet.conf'
LEASE = """import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('x', flush=True)
sys.stdin.read()
"""

# each: what a process does with the path before everything hangs, and then with the result of that
KINDS = {
    'stat': (lambda path: path, os.stat),
    'open': (lambda path: path, lambda path: os.open(path, os.O_RDWR)),
    'readdir': (os.path.dirname, os.listdir),
    'create': (lambda path: f'{path}-{os.getpid()}', lambda path: os.open(path, os.O_RDWR | os.O_CREAT)),
    'read': (lambda path: os.open(path, os.O_RDWR), lambda fd: os.pread(fd, 1, 0)),
    'write': (lambda path: os.open(path, os.O_RDWR), lambda fd: os.pwrite(fd, b'x', 0)),
    'fsync': (lambda path: os.open(path, os.O_RDWR), os.fsync),
    'close': (lambda path: os.open(path, os.O_RDWR), os.close),
}


class Waiters:
    """Processes that have prepared a call and make it when told to."""

    def __init__(self, path, before, call):
        self.pids = []
        self.read, self.write = os.pipe()
        ready, prepared = os.pipe()
        for i in range(WAITERS):
            pid = os.fork()
            if pid == 0:
                self._wait(path, before, call, prepared, 65534 - i % 20)
            self.pids.append(pid)
        os.close(prepared)
        while os.read(ready, WAITERS):  # end of file: all have prepared
            pass
        os.close(ready)

    def _wait(self, path, before, call, prepared, uid):
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            what = before(path)
            os.close(prepared)
            os.close(self.write)
            os.read(self.read, 1)
            call(what)
        finally:
            os._exit(0)

    def go(self):
        os.close(self.write)
        time.sleep(0.5)  # calls that can finish have finished by now

    def close(self):
        os.close(self.read)
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in self.pids:
            os.waitpid(pid, 0)


@contextlib.contextmanager
def dead_below(source):
    point = source / 'dead'
    point.mkdir()
    fs = deadfs.DeadFs(str(point))
    try:
        yield fs
    finally:
        fs.close()


@contextlib.contextmanager
def leased(path):
    path.write_text('x')
    path.chmod(0o666)
    with subprocess.Popen([sys.executable, '-c', LEASE, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        if holder.stdout.read(1) != b'x':
            raise Trouble('no lease')
        try:
            yield
        finally:
            holder.kill()


def measured(bench, row, what, targets):
    got = bench.cycle('cycle', targets)
    return row(what, got['lkgfs'][1], 'us', ('rawfuse p99', got['raw'][1]), value_limit=10000,
               more=f"p50 {got['lkgfs'][0]:.1f}, rawfuse {got['raw'][0]:.1f}")


def rows(bench, row):
    with contextlib.ExitStack() as stack:
        source = bench.base / 'source-hang'
        shutil.copytree(bench.source, source)
        view = stack.enter_context(bench.lkgfs('hang', source=source, cpu=bench.cpu)).mount_point
        (bench.plain / NAME).write_bytes((view / NAME).read_bytes())
        raw = stack.enter_context(bench.rawfuse(cpu=bench.cpu)).mount_point
        targets = {'raw': raw / NAME, 'lkgfs': view / NAME}
        bench.base.chmod(0o755)
        yield measured(bench, row, f'p99 of open...close of {NAME}, nothing hangs', targets)
        for kind, (before, call) in KINDS.items():
            with dead_below(source) as fs:
                time.sleep(1.1)  # the kernel caches names of directories for a second
                waiters = Waiters(str(view / 'dead' / 'file'), before, call)
                try:
                    fs.die()
                    waiters.go()
                    yield measured(bench, row, f'  {WAITERS} x {kind} of a dead file system', targets)
                finally:
                    waiters.close()
            shutil.rmtree(source / 'dead', ignore_errors=True)
        with leased(source / 'leased'):
            waiters = Waiters(str(view / 'leased'), lambda path: path, lambda path: os.open(path, os.O_RDWR))
            try:
                waiters.go()
                yield measured(bench, row, f'  {WAITERS} x open of a file with a lease', targets)
            finally:
                waiters.close()
    yield from rows_caller(bench, row)


def rows_caller(bench, row):
    with contextlib.ExitStack() as stack:
        checked = stack.enter_context(bench.lkgfs('checked', cpu=bench.cpu)).mount_point
        free = stack.enter_context(bench.lkgfs('free', cpu=bench.cpu, more='foreignWrites: passthrough\n')).mount_point
        got = bench.cycle('touch', {'checked': checked / 'manifests/etcd.yaml', 'free': free / 'manifests/etcd.yaml'})
        yield row('utimensat() of a file that is passed through', got['checked'][0], 'us',
                  ('unchecked', got['free'][0]), more=f"the caller's namespace costs {got['checked'][0] - got['free'][0]:.2f}")
