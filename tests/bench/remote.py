# SPDX-License-Identifier: Apache-2.0
"""The cost of following a real API server: kube-apiserver and etcd on loopback, one node, one ConfigMap."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

from servers import HEADER, TOP, Trouble, name_of, private_dirty_mib

sys.path.insert(0, str(TOP / 'tests' / 'lib'))
from lkgfs_realapi import RealApi, why_not  # noqa: E402

NODE, CONFIGMAP = 'bench-1', 'bench-config'
WATCH = f'/api/v1/namespaces/kube-system/configmaps?watch=1&fieldSelector=metadata.name%3D{CONFIGMAP}'
REMOTE = '''remote:
  enabled: true
  kubeconfig: {kubeconfig}
  nodeName: {node}
  references: [nodeAnnotation]
trial:
  duration: 0s
'''
ARRIVES_SECONDS = 20
PADDING_BYTES = 1024 * 1000  # the API server takes at most 1 MiB of data


class Relay:
    """Forwards TCP to the API server and counts the bytes, TLS included."""

    def __init__(self, url):
        self.target = (urllib.parse.urlsplit(url).hostname, urllib.parse.urlsplit(url).port)
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.url = f'https://127.0.0.1:{self.listener.getsockname()[1]}'
        self.n_bytes, self.lock, self.sockets = 0, threading.Lock(), []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(self.target)
                self.sockets += [near, far]
                for one in (near, far):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self.copy, args=pair, daemon=True).start()

    def copy(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                with self.lock:
                    self.n_bytes += len(data)
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self):
        for one in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Curl:
    """The peer: `curl -N` on a watch of the same object after `version` (without one, an older etcd takes seconds to send the
    current state). `seen`: resourceVersion -> time of its line.
    """

    def __init__(self, api, version):
        identity = [f'--cacert={api.directory}/ca.crt', f'--cert={api.directory}/node-{NODE}.crt',
                    f'--key={api.directory}/node-{NODE}.key']
        words = [word for option in identity for word in option.split('=', 1)]
        self.process = subprocess.Popen(['curl', '-sN', *words, f'{api.url}{WATCH}&resourceVersion={version}'], stdout=subprocess.PIPE)
        self.seen, self.changed = {}, threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            at = time.monotonic()
            version = line.partition(b'"resourceVersion":"')[2].partition(b'"')[0].decode()
            with self.changed:
                self.seen[version] = at
                self.changed.notify_all()

    def when(self, version):
        with self.changed:
            if not self.changed.wait_for(lambda: version in self.seen, ARRIVES_SECONDS):
                raise Trouble('curl has seen no event')
            return self.seen[version]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def put(api, number, padding=None):
    data = {'kubelet': HEADER + f'maxPods: {number}\n', 'padding': padding}
    return api.put_configmap(CONFIGMAP, data)['metadata']['resourceVersion']


def wait_for(view, number):
    """Wait until the view shows it; return the time."""
    wanted, end = f'\nmaxPods: {number}\n'.encode(), time.monotonic() + ARRIVES_SECONDS
    while True:
        with open(view / 'kubelet.conf', 'rb') as file:
            if wanted in file.read():
                return time.monotonic()
        if time.monotonic() > end:
            raise Trouble(f'the ConfigMap does not arrive: {(view / "status/kubelet/condition").read_text()}')
        time.sleep(0.0002)


@contextlib.contextmanager
def running(bench):
    """(api, relay, server): everything is up, the first ConfigMap is followed."""
    directory = bench.base / 'realapi'
    directory.mkdir()
    with contextlib.ExitStack() as stack:
        api = stack.enter_context(RealApi(directory))
        api.grant('bench', 'system:nodes', ['get', 'watch'], [CONFIGMAP])
        api.create_node(NODE, {'lkgfs.io/config-source': f'kube-system/{CONFIGMAP}'})
        put(api, 1)
        relay = Relay(api.url)
        stack.callback(relay.close)
        kubeconfig = pathlib.Path(api.node_credential(NODE))
        kubeconfig.write_text(kubeconfig.read_text().replace(api.url, relay.url))
        remote = REMOTE.format(kubeconfig=kubeconfig, node=NODE)
        server = stack.enter_context(bench.lkgfs('remote', more=remote))
        wait_for(server.mount_point, 1)
        yield api, relay, server


def rows(bench, row):
    """@row: makes one line of the table."""
    reason = why_not()
    if reason:
        print(f'... watch: did not run: {reason}', file=sys.stderr)
        return
    with running(bench) as (api, relay, server):
        yield from rows_delay(bench, row, api, server)
        yield from rows_hang(bench, row, api, server)
        yield from rows_memory(row, api, server)
        yield from rows_idle(bench, row, relay, server)


def rows_delay(bench, row, api, server):
    """From before the request is sent, so including the time that the API server and etcd take to store it."""
    n = 20 if bench.quick else 50
    curl = Curl(api, put(api, 99))
    try:
        ours, theirs = [], []
        for i in range(5 + n):
            begin = time.monotonic()
            version = put(api, 100 + i)
            ours.append((wait_for(server.mount_point, 100 + i) - begin) * 1000)
            theirs.append((curl.when(version) - begin) * 1000)
    finally:
        curl.close()
    ours, theirs = sorted(ours[5:]), sorted(theirs[5:])
    yield row(f'change at the API server to visible, median of {n}', ours[n // 2], 'ms',
              ('curl -N', round(theirs[n // 2], 3)), value_limit=20, more=f'p90 {ours[n * 9 // 10]:.1f}')


def rows_hang(bench, row, api, server):
    """Everything that could answer is stopped; interleaved, as far as it cannot be stopped between two calls."""
    targets = {'lkgfs': server.mount_point / 'kubelet.conf'}
    answers, hangs = [], []
    for _ in range(3):
        answers.append(bench.cycle('cycle', targets)['lkgfs'][0])
        os.kill(api.process, signal.SIGSTOP)
        try:
            hangs.append(bench.cycle('cycle', targets)['lkgfs'][0])
        finally:
            os.kill(api.process, signal.SIGCONT)
    yield row('open+fstat+read+EOF+close while the API server hangs', min(hangs), 'us',
              ('it answers', min(answers)), ratio_limit=1.1)


def engine_mib(server):
    return private_dirty_mib(server.member('lkgfs-engine'))


def rows_memory(row, api, server):
    before = engine_mib(server)
    put(api, 900, 'x' * PADDING_BYTES)
    wait_for(server.mount_point, 900)
    during = engine_mib(server)
    put(api, 901)
    wait_for(server.mount_point, 901)
    yield row('engine, following a ConfigMap of 1 MiB', during, 'MiB', ('one of 1 KiB', round(before, 3)),
              more=f'small again: {engine_mib(server):.1f}')


def on_cpu_ns(pids):
    total = 0
    for pid in pids:
        for task in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{task}/schedstat', encoding='ascii') as file:
                total += int(file.read().split()[0])
    return total


def rows_idle(bench, row, relay, server):
    minutes = 1 if bench.quick else 5
    time.sleep(5)  # wait for the work that the last change left
    pids = [pid for pid in server.pids() if name_of(pid).startswith('lkgfs')]
    n_bytes, busy = relay.n_bytes, on_cpu_ns(pids)
    time.sleep(minutes * 60)
    per_hour = 60 / minutes
    yield row('bytes per idle hour, TLS included', (relay.n_bytes - n_bytes) * per_hour / 1024, 'KiB',
              more=f'{minutes} min measured')
    yield row('CPU per idle hour, all processes', (on_cpu_ns(pids) - busy) * per_hour / 1e6, 'ms',
              more=f'{minutes} min measured')
