# SPDX-License-Identifier: Apache-2.0
"""The API client without an engine, as children of a test: remote-tool, for one request or to follow an object."""
import json
import os
import select
import signal
import subprocess
import threading
import time

import lkgfs_testlib as lib

# Options of sanitizers are passed on.
KEPT = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
# The address sanitizer keeps freed memory for a while, by default 256 MiB, which would hide everything in a test of memory use.
if "ASAN_OPTIONS" in KEPT:
    KEPT["ASAN_OPTIONS"] += ":quarantine_size_mb=16"
# Peak memory of a whole program for objects of up to 3 MiB; sanitizers need a multiple of it.
MEMORY_MAX = (8 if KEPT else 1) * (48 << 20)
TOOLS = lib.BUILD / "tests/lib"
# Limits in milliseconds, so short that no test waits for a default one.
LIMITS = {"connect": 2000, "request": 2500, "body": 1000, "idle": 1500, "half": 700, "backoff": 10, "poll": 100, "refresh": 100}


def start(program, kubeconfig, *words, limits=(), max_bytes=None, environment=None):
    options = [part for name, ms in dict(limits).items() for part in (f"--{name}-ms", str(ms))]
    if max_bytes:
        options += ["--max-bytes", str(max_bytes)]
    # Nothing of the caller's environment is passed: a proxy set there would be used.
    return subprocess.Popen([TOOLS / program, "--kubeconfig", kubeconfig, *options, *words], cwd="/",
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**KEPT, **(environment or {})})


class Tool:
    """One run of remote-tool. A context manager."""

    def __init__(self, kubeconfig, resource, name, limits=(), verb="follow", **options):
        self.process = start("remote-tool", kubeconfig, verb, resource, name, limits={**LIMITS, **dict(limits)}, **options)
        self.lines, self.changed, self.errors = [], threading.Condition(), b""
        self.ended = False
        self.threads = [threading.Thread(target=target, daemon=True) for target in (self._read, self._complain)]
        for thread in self.threads:
            thread.start()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(json.loads(line))
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def _complain(self):
        self.errors = self.process.stderr.read()

    def wait(self, predicate, what="", since=0, seconds=lib.TIMEOUT_S):
        """Return the first line, starting with line `since`, for which predicate(line) holds."""
        end = time.monotonic() + seconds
        with self.changed:
            at = since
            while True:
                while at < len(self.lines):
                    if predicate(self.lines[at]):
                        return self.lines[at]
                    at += 1
                left = end - time.monotonic()
                if left <= 0 or self.ended:
                    raise AssertionError(f"no line {what}; it said {self.lines[-12:]} {self.errors.decode()}")
                self.changed.wait(left)

    def mark(self):
        """The number of lines so far, for `since`."""
        with self.changed:
            return len(self.lines)

    def states(self, since=0):
        with self.changed:
            return [line["state"] for line in self.lines[since:] if "state" in line]

    def wait_state(self, check, since=0):
        """Return a state (None: the object does not exist) for which check(state) holds."""
        return self.wait(lambda line: "state" in line and check(line["state"]), "with that state", since)["state"]

    def wait_version(self, obj, since=0):
        version = obj["metadata"]["resourceVersion"]
        return self.wait_state(lambda state: state and state["metadata"]["resourceVersion"] == version, since)

    def wait_absent(self, since=0):
        self.wait_state(lambda state: state is None, since)

    def wait_mode(self, mode, since=0, status=None):
        return self.wait(lambda line: line.get("mode") == mode and status in (None, line["status"]),
                         f"with mode {mode} {status or ''}", since)

    def memory(self):
        """Peak of the resident set so far, in bytes."""
        for line in lib.read_file(f"/proc/{self.process.pid}/status").decode().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmHWM")

    def finish(self, seconds=lib.TIMEOUT_S):
        """Wait until it exits by itself; return the exit code."""
        fd = os.pidfd_open(self.process.pid)
        try:
            if not select.select([fd], [], [], seconds)[0]:
                raise AssertionError(f"it hangs; it said {self.lines[-12:]}")
        finally:
            os.close(fd)
        self.process.wait()
        self._join()
        return self.process.returncode

    def _join(self):
        for thread in self.threads:
            thread.join(lib.TIMEOUT_S)
        self.process.stdout.close()
        self.process.stderr.close()

    def close(self):
        """Send SIGTERM; it must then exit by itself, with success."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                code = self.finish()
            except AssertionError:
                self.process.kill()
                self.process.wait()
                self._join()
                raise
            assert code == 0, f"it ended with {code}: {self.errors.decode()}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def get(kubeconfig, resource, name, **options):
    """Return (answer, peak memory in bytes) of one GET; answer["object"] is the accepted object, or None."""
    tool = Tool(kubeconfig, resource, name, verb="get", **options)
    code = tool.finish()
    assert code == 0 and len(tool.lines) == 2, f"exit {code}: {tool.lines} {tool.errors.decode()}"
    return tool.lines[0], tool.lines[1]["memory"]
