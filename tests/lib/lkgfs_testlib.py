# SPDX-License-Identifier: Apache-2.0
"""Shared by the end-to-end tests: a real mount over a private tree, and ways to wait for events instead of time.

A Mount owns everything below one private directory: the source tree, the mount point, state, runtime directory, configuration and
log. Whatever happens in a test, close() ends every process, undoes every mount and removes the directory; leftovers() lets the
session check that.

Programs come from the build folder in $LKGFS_BUILD (default: build/ in the checkout).
"""
import array
import contextlib
import ctypes
import errno
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

SLOWNESS = int(os.environ.get("LKGFS_TEST_SLOWNESS", "1"))  # of an emulated machine
TIMEOUT_S = 30 * SLOWNESS  # generous: an event that has not come by then will not come
PREFIX = f"lkgfs-e2e-{os.getpid()}-"  # so parallel sessions do not see each other's leftovers
PARENT = os.environ.get("LKGFS_TEST_DIR", "/var/lib")  # owned by root up to /, not writable by others
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LKGFS_BUILD", REPOSITORY / "build")).resolve()
LKGFSD = BUILD / "fs/supervisor/lkgfsd"
PROGRAMS = ("fs/supervisor/lkgfsd", "fs/server/lkgfs-fs", "fs/notifier/lkgfs-notify", "core/engine/lkgfs-engine")
LKGFS = BUILD / "fs/tool/lkgfs"
FSTYPE = "fuse.lkgfs"
# The user of engines in tests, as on a node with the package: an unused uid. "root" or "": no such user.
ENGINE_USER = os.environ.get("LKGFS_TEST_ENGINE_USER", "61234")
ENGINE_USER_ID = int(ENGINE_USER) if ENGINE_USER.isdigit() else 0
# What lkgfsd logs (children.c) about a child that was killed by a signal of its own making: ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS.
CRASH = re.compile(r"\b(engine|file server|notifier) \(pid \d+\) was killed by signal (4|5|6|7|8|11|31)\b")
MAY_CRASH = ()  # programs that all tests of a file crash on purpose
CHILDREN = {"engine": "lkgfs-engine", "file server": "lkgfs-fs", "notifier": "lkgfs-notify"}
HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

BASE = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cpuManagerReconcilePeriod: 0s
evictionHard:
  imagefs.available: 15%
  memory.available: 100Mi
  nodefs.available: 10%
featureGates:
  GracefulNodeShutdownBasedOnPodPriority: false
failCgroupV1: false
healthzBindAddress: 127.0.0.1
healthzPort: 10248
maxPods: 110
rotateCertificates: true
staticPodPath: /etc/kubernetes/manifests
syncFrequency: 0s
"""

DROPINS = {
    "10-eviction.conf": HEADER + "evictionHard:\n  memory.available: 500Mi\n  nodefs.available: 5%\n",
    "20-pods.conf": HEADER + "maxPods: 64\npodPidsLimit: 4096\n",
    "90-logging.conf": HEADER + "logging:\n  format: json\n  verbosity: 2\n",
}
INSTANCE = HEADER + "providerID: example://192.0.2.17\nsystemReserved:\n  cpu: 500m\n"

PROXY_BASE = """apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clusterCIDR: 10.244.0.0/16
mode: iptables
"""

KUBECONFIG = """apiVersion: v1
kind: Config
clusters:
- cluster:
    server: https://192.0.2.1:6443
  name: kubernetes
users:
- name: system:node:worker-1
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
contexts: []
"""

STATIC_POD = """apiVersion: v1
kind: Pod
metadata:
  name: etcd
  namespace: kube-system
spec:
  containers:
  - image: registry.k8s.io/etcd:3.5.21-0
    name: etcd
  hostNetwork: true
"""


class Failure(AssertionError):
    """A failure of the test environment; carries the daemon's log."""


def deadline(seconds=TIMEOUT_S):
    return time.monotonic() + seconds


def run(*argv, timeout=TIMEOUT_S, check=False, **kwargs):
    """Run a program, bytes in and out; a call that hangs in the mount is killed and fails the test."""
    if "input" not in kwargs:
        kwargs.setdefault("stdin", subprocess.DEVNULL)
    result = subprocess.run([os.fspath(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            timeout=timeout, check=False, **kwargs)
    if check and result.returncode != 0:
        raise Failure(f"{argv} ended with {result.returncode}: {result.stderr.decode(errors='replace')}")
    return result


def shell(script, **kwargs):
    return run("/bin/bash", "-c", script, **kwargs)


def write_file(path, data, mode=0o644):
    """Write a file in place, not atomically."""
    if isinstance(data, str):
        data = data.encode()
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view):]
    finally:
        os.close(fd)


def read_file(path):
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        chunks = []
        while True:
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
    finally:
        os.close(fd)


def another_build(data):
    """The same program with another build id."""
    at = data.index(b"GNU\0", data.index(b".note.gnu.build-id") if data.count(b"GNU\0") == 0 else 0)
    while struct.unpack_from("<I", data, at - 4)[0] != 3:  # NT_GNU_BUILD_ID
        at = data.index(b"GNU\0", at + 1)
    return data[:at + 4] + bytes([data[at + 4] ^ 0xff]) + data[at + 5:]


def error_of(function, *args, **kwargs):
    """Return the errno of a call, 0 if it succeeds."""
    try:
        result = function(*args, **kwargs)
    except OSError as error:
        return error.errno
    if isinstance(result, int) and not isinstance(result, bool) and function is os.open:
        os.close(result)
    return 0


def errno_name(number):
    return errno.errorcode.get(number, str(number))


def mounts_below(directory):
    """Mount points at or below a directory, deepest last, from mountinfo (without a call into a file system)."""
    found = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            fields = line.split()
            point = fields[4].decode("unicode_escape")
            fstype = fields[fields.index(b"-") + 1].decode()
            if point == directory or point.startswith(directory + "/"):
                found.append((point, fstype))
    return found


def is_mounted(point, fstype=FSTYPE):
    return (str(point), fstype) in mounts_below(str(point))


def stop_process(pid):
    """SIGSTOP, and wait until every thread has stopped: one may be returning from a system call."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + TIMEOUT_S
    for thread in os.listdir(f"/proc/{pid}/task"):
        while read_file(f"/proc/{pid}/task/{thread}/stat").rsplit(b")", 1)[1].split()[0] != b"T":
            if time.monotonic() > deadline:
                raise Failure(f"thread {thread} of {pid} does not stop")
            time.sleep(0.001)


def start_time(pid):
    """Field 22 of /proc/PID/stat, or None if there is no such process; a zombie counts as gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def parent_of(pid):
    """Field 4 of /proc/PID/stat."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])


def open_files(pid):
    """Path in /proc and target of each of its descriptors, except those that it closes in this moment."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        with contextlib.suppress(FileNotFoundError):
            yield path, os.readlink(path)


def program_of(pid):
    """The name of its executable, even if an update has removed it; None if it cannot be read."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
    except OSError:
        return None


def names(pid, text):
    """Does its command line contain a text or, for one of our processes, the path of a file that it has open?"""
    process = pathlib.Path("/proc", str(pid))
    with contextlib.suppress(OSError):
        if text.encode() in (process / "cmdline").read_bytes():
            return True
        if (process / "comm").read_text().startswith("lkgfs"):
            for fd in (process / "fd").iterdir():
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    if text in os.readlink(fd):
                        return True
    return False


def processes_naming(text):
    """Pids of processes for which names() finds a text (our private directories are unique)."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()]
    return [pid for pid in pids if names(pid, text) and start_time(pid) is not None]


def kill_and_wait(pid, signal_number=signal.SIGKILL, timeout=TIMEOUT_S):
    """Kill one process and wait until it is gone (it need not be our child)."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(fd, signal_number)
        return bool(select.select([fd], [], [], timeout)[0])
    finally:
        os.close(fd)


class Inotify:
    """inotify(7) by hand: events as (wd, mask, cookie, name)."""
    ACCESS, MODIFY, ATTRIB, CLOSE_WRITE, CLOSE_NOWRITE, OPEN = 0x1, 0x2, 0x4, 0x8, 0x10, 0x20
    MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF, MOVE_SELF = 0x40, 0x80, 0x100, 0x200, 0x400, 0x800
    IGNORED, OVERFLOW = 0x8000, 0x4000

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")

    def add(self, path, mask):
        wd = self.libc.inotify_add_watch(self.fd, os.fsencode(path), ctypes.c_uint32(mask))
        if wd < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch", os.fspath(path))
        return wd

    def events(self, timeout=0.0):
        """Return the queued events; wait up to a timeout for the first one."""
        if not select.select([self.fd], [], [], timeout)[0]:
            return []
        data, found, at = os.read(self.fd, 1 << 16), [], 0
        while at < len(data):
            wd, mask, cookie, size = struct.unpack_from("iIII", data, at)
            name = data[at + 16:at + 16 + size].split(b"\0")[0]
            found.append((wd, mask, cookie, os.fsdecode(name)))
            at += 16 + size
        return found

    def wait(self, wanted, timeout=TIMEOUT_S):
        """Collect events until wanted(all events so far) is true."""
        end, seen = deadline(timeout), []
        while True:
            if wanted(seen):
                return seen
            left = end - time.monotonic()
            if left <= 0:
                raise Failure(f"events did not come: {seen}")
            seen += self.events(left)

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class NotifySocket:
    """The service manager's side of sd_notify(3): messages in order; descriptors sent along are kept or closed."""

    def __init__(self, path, keep_descriptors=False):
        self.path, self.messages, self.descriptors = path, [], {}
        self.keep_descriptors = keep_descriptors
        self.changed = threading.Condition()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.bind(path)
        self.stop_read, self.stop_write = os.pipe2(os.O_CLOEXEC)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _receive(self):
        text, ancillary, _, _ = self.socket.recvmsg(65536, socket.CMSG_LEN(64 * 4))
        fds = array.array("i")
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(data[:len(data) - len(data) % fds.itemsize])
        fields = dict(line.partition("=")[::2] for line in text.decode(errors="replace").splitlines())
        with self.changed:
            name = fields.get("FDNAME", "")
            if self.keep_descriptors and fields.get("FDSTORE") == "1":
                for fd in fds:
                    self.descriptors.setdefault(name, []).append(fd)
            else:
                for fd in fds:
                    os.close(fd)
            if fields.get("FDSTOREREMOVE") == "1":
                for fd in self.descriptors.pop(name, []):
                    os.close(fd)
            self.messages.append(fields)
            self.changed.notify_all()

    def _serve(self):
        while True:
            ready = select.select([self.socket, self.stop_read], [], [])[0]
            if self.stop_read in ready:
                return
            with contextlib.suppress(OSError):
                self._receive()

    def seen(self, key, value, since=0):
        return any(fields.get(key) == value for fields in self.messages[since:])

    def close(self):
        os.write(self.stop_write, b"x")
        self.thread.join()
        self.socket.close()
        os.close(self.stop_read)
        os.close(self.stop_write)
        for fds in self.descriptors.values():
            for fd in fds:
                os.close(fd)
        self.descriptors = {}
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


def make_tree(directory, base=BASE, base_name="kubelet.conf", dropins=None, instance=INSTANCE):
    """A kubeadm-like /etc/kubernetes: base, drop-ins, instance file, pki/ with private keys, manifests/."""
    directory = pathlib.Path(directory)
    directory.mkdir(mode=0o755, exist_ok=True)
    if base is not None:
        write_file(directory / base_name, base, 0o600)
    if dropins is not False:
        (directory / "kubelet.conf.d").mkdir(mode=0o755)
        for name, text in (DROPINS if dropins is None else dropins).items():
            write_file(directory / "kubelet.conf.d" / name, text)
    if instance is not None:
        write_file(directory / "kubelet-instance.conf", instance, 0o600)
    (directory / "pki").mkdir(mode=0o755)
    for name in ("ca.crt", "apiserver.crt"):
        write_file(directory / "pki" / name, f"-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n")
    for name in ("ca.key", "apiserver.key"):
        write_file(directory / "pki" / name, f"not a real private key: {name}\n", 0o600)
    (directory / "manifests").mkdir(mode=0o700)
    write_file(directory / "manifests" / "etcd.yaml", STATIC_POD, 0o600)
    (directory / "tmp").mkdir(mode=0o700)
    write_file(directory / "admin.conf", KUBECONFIG, 0o600)


class Mount:
    """A running lkgfsd on a private tree. Use it as a context manager; `over` mounts on the source itself."""

    def __init__(self, over=True, start=True, config=None, components=None, tree=make_tree, keep_descriptors=False,
                 wait_ready=True, **tree_options):
        self.root = tempfile.mkdtemp(prefix=PREFIX, dir=PARENT)
        self.over = over
        self.process = self.notify = None
        self.covered = -1
        self.may_crash = MAY_CRASH
        self.known = {}  # pid -> start time of every process of ours ever seen
        self.source = os.path.join(self.root, "kubernetes")
        self.mountpoint = self.source if over else os.path.join(self.root, "view")
        self.log_path = os.path.join(self.root, "log")
        self.lkgfsd = LKGFSD
        self.config_path = os.path.join(self.root, "config.yaml")
        self.state, self.runtime = os.path.join(self.root, "state"), os.path.join(self.root, "run")
        self.virtual = (config or {}).get("virtualDir", "")
        self.keep_descriptors = keep_descriptors
        try:
            tree(self.source, **tree_options)
            if not over:
                os.mkdir(self.mountpoint, 0o755)
            # A descriptor opened before the mount: the directory behind it, as a process "behind the mount" sees it.
            self.covered = os.open(self.source, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            self.write_config(config, components)
            if start:
                self.start(wait_ready)
        except BaseException:
            self.close()
            raise

    # configuration and processes

    def write_config(self, config=None, components=None):
        document = {
            "apiVersion": "config.lkgfs.io/v1alpha1", "kind": "LkgfsConfiguration",
            "stateDir": self.state, "runtimeDir": self.runtime, "engineUser": ENGINE_USER,
        }
        if not self.over:
            document["sourceDir"] = self.source
        if SLOWNESS > 1:
            document["engineTimeout"] = f"{2 * SLOWNESS}s"
        document.update(config or {})
        if document["engineUser"] is None:  # a release that does not know the field
            del document["engineUser"]
        if components is not None:
            document["components"] = components
        write_file(self.config_path, json.dumps(document, indent=2) + "\n", 0o600)

    def start(self, wait_ready=True, extra=(), stderr=None):
        notify_path = os.path.join(self.root, "notify")
        if self.notify is None:
            self.notify = NotifySocket(notify_path, self.keep_descriptors)
        since = len(self.notify.messages)
        environment = {**os.environ, "NOTIFY_SOCKET": notify_path, "LKGFS_SYSCALLS": "kill"}
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([self.lkgfsd, *extra, "--config", self.config_path, self.mountpoint],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=stderr or log, cwd="/",
                                            env=environment, start_new_session=True)
        self.known[self.process.pid] = start_time(self.process.pid)
        if wait_ready:
            self.wait_ready(since)
        return self.process

    def wait_ready(self, since=0):
        end = deadline()
        with self.notify.changed:
            while not self.notify.seen("READY", "1", since):
                if self.process.poll() is not None:
                    raise Failure(f"lkgfsd ended with {self.process.returncode}:\n{self.log()}")
                if time.monotonic() > end:
                    raise Failure(f"lkgfsd is not ready:\n{self.log()}")
                self.notify.changed.wait(0.02)

    def log_to_journal(self, monkeypatch):
        """As in a unit: its standard error is declared to be the journal's."""
        write_file(self.log_path, "")
        status = os.stat(self.log_path)
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}")

    def log(self):
        try:
            return read_file(self.log_path).decode(errors="replace")[-20000:]
        except OSError:
            return ""

    def helpers(self):
        """Name -> pids of all living helpers of this mount, newest last, without what a helper has forked for a job."""
        found = {}
        # We do not know the parent of an adopted helper, but we have seen it before.
        adopted = [pid for pid, began in self.known.items() if began and start_time(pid) == began]
        for pid in {*adopted, *processes_naming(os.path.basename(self.root)), *self._descendants()}:
            name, began = program_of(pid), start_time(pid)
            with contextlib.suppress(OSError):  # it has ended
                if name in CHILDREN.values() and began and program_of(parent_of(pid)) != name:
                    self.known[pid] = began
                    found.setdefault(name, []).append((began, pid))
        return {name: [pid for _, pid in sorted(pids)] for name, pids in found.items()}

    def children(self):
        """Name -> pid of the living processes of this mount, without the supervisor."""
        return {name: pids[-1] for name, pids in self.helpers().items()}

    def crowd(self):
        """Helpers that run twice: file servers would take each other's requests, engines each other's publications."""
        end = deadline()
        while self.process is not None and self.process.poll() is None:
            crowd = {name: pids for name, pids in self.helpers().items() if len(pids) > 1}
            if not crowd or time.monotonic() > end:  # a process that is being ended may still exist for a moment
                return crowd
            time.sleep(0.02)
        return {}

    def _descendants(self):
        """Children of the supervisor, even if their command line does not name our directory."""
        pids = []
        if self.process is None:
            return pids
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{self.process.pid}/task"):
                with open(f"/proc/{self.process.pid}/task/{task}/children", encoding="ascii") as file:
                    pids += [int(pid) for pid in file.read().split()]
        return [pid for pid in pids if start_time(pid) is not None]

    def child(self, name):
        """Pid of one helper; waits until there is one (it may be restarting)."""
        end = deadline()
        while True:
            pid = self.children().get(name)
            if pid:
                return pid
            if time.monotonic() > end:
                raise Failure(f"no process {name}:\n{self.log()}")
            select.select([], [], [], 0.005)

    def kill_child(self, name, signal_number=signal.SIGKILL):
        """SIGKILL one helper and wait until exactly that process is gone; return its pid."""
        pid = self.child(name)
        if not kill_and_wait(pid, signal_number):
            raise Failure(f"{name} ({pid}) did not end")
        return pid

    def kill_supervisor(self):
        """SIGKILL lkgfsd itself and wait until it is gone; the view is still served."""
        kill_and_wait(self.process.pid)
        self.process.wait(TIMEOUT_S)

    def own_programs(self, build=BUILD):
        """Run our daemons from a private folder from the next start on, so that a test may replace them. Return the folder."""
        folder = pathlib.Path(self.root) / "programs"
        for program in PROGRAMS:
            (folder / program).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(build / program, folder / program)
        self.lkgfsd = folder / "fs/supervisor/lkgfsd"
        return folder

    def stop(self, timeout=TIMEOUT_S):
        """SIGTERM, as a service manager stops it. Return the exit code."""
        self.children()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"lkgfsd does not end on SIGTERM:\n{self.log()}") from None

    def reload(self):
        since = len(self.notify.messages)
        self.process.send_signal(signal.SIGHUP)
        self.wait_ready(since)

    def for_everybody(self, program):
        """Return a copy that any user can reach: the checkout may be below a directory that only root can enter, such as /root.
        """
        os.chmod(self.root, 0o755)
        return shutil.copy(program, self.root)

    def crashes(self):
        """Our processes that crashed, except for programs that a test crashes on purpose (`may_crash`)."""
        with contextlib.suppress(OSError):
            log = read_file(self.log_path).decode(errors="replace")
            return [f"{name} by signal {number}" for name, number in CRASH.findall(log) if CHILDREN[name] not in self.may_crash]
        return []

    def close(self):
        """Undo everything and report crashes; safe to call twice and after any failure."""
        crowd = self.crowd()
        self._undo()
        crashes, log = self.crashes(), self.log()
        shutil.rmtree(self.root, ignore_errors=True)
        if crashes:
            raise Failure(f"ended of its own fault: {', '.join(crashes)}\n{log}")
        if crowd:
            raise Failure(f"more than one at once: {crowd}\n{log}")

    def _undo(self):
        if self.covered >= 0:
            os.close(self.covered)
            self.covered = -1
        self._end_processes()
        for point, _ in reversed(mounts_below(self.root)):
            subprocess.run(["umount", "-l", point], check=False, stderr=subprocess.DEVNULL, timeout=TIMEOUT_S)
        if self.notify is not None:
            self.notify.close()
            self.notify = None
        if mounts_below(self.root):
            raise Failure(f"still mounted: {mounts_below(self.root)}")

    def _end_processes(self):
        with contextlib.suppress(Exception):
            self.children()
        if self.process is not None and self.process.poll() is None:
            for pid in list(self.known):  # a stopped process does not handle SIGTERM
                if start_time(pid) == self.known[pid]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for _ in range(5):  # a restart may be in progress
            pids = [pid for pid, began in self.known.items() if began and start_time(pid) == began]
            pids += [pid for pid in processes_naming(os.path.basename(self.root)) if pid not in pids]
            if not pids:
                break
            for pid in pids:
                with contextlib.suppress(OSError):
                    kill_and_wait(pid, timeout=5)

    def abort(self):
        """Break every call that hangs in the mount: for the watchdog of a test that hangs."""
        for pid in [*self.known, *processes_naming(os.path.basename(self.root))]:
            if start_time(pid) is not None and self.known.get(pid, start_time(pid)) == start_time(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is not None:
                print(f"--- log of lkgfsd ---\n{self.log()}--- end of log ---")
        finally:  # nobody may read what is printed
            self.close()

    # the tree

    def path(self, *names):
        """A path in the view."""
        return os.path.join(self.mountpoint, *names)

    def vpath(self, *names):
        """A path in a virtual directory of the view."""
        return os.path.join(self.mountpoint, self.virtual, *names)

    def behind(self, *names):
        """A path that reaches the source directory behind the mount."""
        return os.path.join(f"/proc/{os.getpid()}/fd/{self.covered}", *names)

    def read(self, *names):
        return read_file(self.path(*names))

    def write(self, name, data, mode=0o644):
        write_file(self.path(name), data, mode)

    def drop(self, name, body, header=True):
        """Write a drop-in through the mount, in place."""
        self.write(os.path.join("kubelet.conf.d", name), (HEADER if header else "") + body)

    def status(self, name, component="kubelet"):
        """Of the condition without its plain sentence: `True REASON: MESSAGE`, for what tests the words of the proposal."""
        text = read_file(self.vpath("status", component, name)).decode()
        return re.sub(r"^(\w+) serving .*?; \[(.*)\]$", r"\1 \2", text, flags=re.M) if name == "condition" else text

    def plain(self, component="kubelet"):
        """The plain sentence of the condition, without status and words of the proposal."""
        return re.fullmatch(r"\w+ (serving .*?); \[.*\]\n", read_file(self.vpath("status", component, "condition")).decode())[1]

    def generation(self, component="kubelet"):
        return int(self.status("generation", component))

    def condition(self, component="kubelet"):
        """(status, rest) of the condition file."""
        word, _, rest = self.status("condition", component).rstrip("\n").partition(" ")
        return word, rest

    def document(self, name="kubelet.conf"):
        return self.read(name).decode()

    def command(self, name, text, component="kubelet"):
        """One write(2) to a control file."""
        fd = os.open(self.vpath("control", component, name), os.O_WRONLY | os.O_CLOEXEC)
        try:
            return os.write(fd, text.encode() if isinstance(text, str) else text)
        finally:
            os.close(fd)

    def sync(self):
        """`echo now > sync`, repeated until a newly started engine takes it."""
        self.wait_for(lambda: error_of(self.command, "sync", "now") == 0, "a look at everything")

    def tool(self, *words, **kwargs):
        return run(LKGFS, *words, "--mountpoint", self.mountpoint, **kwargs)

    def wait_for(self, predicate, what="", component="kubelet", timeout=TIMEOUT_S):
        """Wait until predicate() is true, woken by generations (POLLPRI); other changes are polled frequently."""
        end = deadline(timeout)
        while True:
            fd = -1
            try:
                with contextlib.suppress(OSError):
                    fd = os.open(self.vpath("status", component, "generation"), os.O_RDONLY | os.O_CLOEXEC)
                    os.read(fd, 64)
                value = predicate()
                if value:
                    return value
                if time.monotonic() > end:
                    raise Failure(f"did not happen in {timeout} s: {what or predicate}\n{self.log()}")
                poller = select.poll()
                if fd >= 0:
                    poller.register(fd, select.POLLPRI)
                poller.poll(20)
            finally:
                if fd >= 0:
                    os.close(fd)


def leftovers():
    """What a test session must not leave behind: mounts, processes, directories."""
    found = [f"mount {point}" for point, _ in mounts_below(PARENT) if f"/{PREFIX}" in point]
    found += [f"process {pid}" for pid in processes_naming(f"{PARENT}/{PREFIX}")]
    found += [f"directory {entry}" for entry in os.listdir(PARENT) if entry.startswith(PREFIX)]
    return found
