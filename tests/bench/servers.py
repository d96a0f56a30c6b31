# SPDX-License-Identifier: Apache-2.0
"""What the benchmark mounts and measures with: processes, file systems as context managers, directory trees."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = TOP / 'contrib' / 'quickstart' / 'sample'
START_SECONDS = 20
STOP_SECONDS = 20
HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'
TAINT = '- effect: NoSchedule\n  key: example.com/pool-{:03}\n  value: "true"\n'
CONFIG = '''apiVersion: config.lkgfs.io/v1alpha1
kind: LkgfsConfiguration
sourceDir: {source}
stateDir: {state}
runtimeDir: {runtime}
components:
- name: kubelet
  match: {{unit: "", exe: [{match}]}}
'''


class Trouble(Exception):
    """A measurement that failed; the table says so instead of showing a figure."""


# --- processes ------------------------------------------------------------------------------------


def read_text(path):
    with open(path, encoding='utf-8', errors='replace') as file:
        return file.read()


def parent_of(pid):
    """Parent of a process, 0 if it is gone."""
    try:
        return int(read_text(f'/proc/{pid}/stat').rpartition(')')[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def name_of(pid):
    try:
        return read_text(f'/proc/{pid}/comm').strip()
    except OSError:
        return ''


def family(pid):
    """A process and all its descendants, oldest first."""
    parents = {int(p): parent_of(p) for p in os.listdir('/proc') if p.isdigit()}
    found = [pid]
    for known in found:
        found += [p for p, parent in sorted(parents.items()) if parent == known and p not in found]
    return found


def private_dirty_mib(pid):
    for line in read_text(f'/proc/{pid}/smaps_rollup').splitlines():
        if line.startswith('Private_Dirty:'):
            return int(line.split()[1]) / 1024
    return 0


def switches(pids):
    """Context switches of all threads so far: one per wake-up."""
    total = 0
    for pid in pids:
        for task in os.listdir(f'/proc/{pid}/task'):
            for line in read_text(f'/proc/{pid}/task/{task}/status').splitlines():
                if 'ctxt_switches' in line:
                    total += int(line.split()[1])
    return total


# --- file systems ---------------------------------------------------------------------------------


class Server:
    """One file system that is mounted for the measurement. Always used in a `with` block."""

    def __init__(self, name, command, mount_point, cpu=None):
        self.name, self.mount_point, self.cpu = name, mount_point, cpu
        self.command = [str(part) for part in command]
        self.probe = mount_point / 'kubelet.conf'
        self.process = None
        self.log = None
        self.start_ms = 0.0

    def __enter__(self):
        self.mount_point.mkdir(parents=True, exist_ok=True)
        pin = ['taskset', '-c', str(self.cpu)] if self.cpu is not None else []
        self.log = tempfile.TemporaryFile(mode='w+')
        begin = time.monotonic()
        self.process = subprocess.Popen(pin + self.command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        try:
            self.wait_for_first_read(begin)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def wait_for_first_read(self, begin):
        while True:
            with contextlib.suppress(OSError), open(self.probe, 'rb') as file:
                if file.read():
                    self.start_ms = (time.monotonic() - begin) * 1000
                    return
            if self.process.poll() is not None:
                self.log.seek(0)
                said = self.log.read().strip()[-500:]
                raise Trouble(f'{self.name} ended with {self.process.returncode}: {said}')
            if time.monotonic() - begin > START_SECONDS:
                raise Trouble(f'{self.name} served nothing within {START_SECONDS} s')
            time.sleep(0.0002)

    def ends(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS)
        return self.process.poll() is not None

    def stop(self):
        self.process.terminate()
        self.ends()
        while os.path.ismount(self.mount_point):
            if subprocess.run(['umount', '--lazy', str(self.mount_point)], check=False).returncode:
                break
        if not self.ends():
            self.process.kill()
            self.process.wait()
        self.log.close()

    def pids(self):
        return family(self.process.pid)

    def member(self, name):
        """Pid of our process with that name, 0 if there is none right now."""
        return next((pid for pid in self.pids() if name_of(pid) == name), 0)


# --- one run --------------------------------------------------------------------------------------


class Bench:
    """Directories, programs and servers of one run. @base: an empty directory; @ram: a tmpfs below it."""

    def __init__(self, build, base, ram, quick):
        self.build, self.base, self.ram, self.quick = pathlib.Path(build), base, ram, quick
        self.cpu = max(os.sched_getaffinity(0))
        self.source = base / 'source'
        self.plain = base / 'plain'
        self.rounds = 3 if quick else 8
        self.iterations = 200 if quick else 400

    def built(self, *parts):
        path = self.build.joinpath(*parts)
        if not path.exists():
            raise Trouble(f'{path} is missing: build it first (meson setup build && ninja -C build)')
        return path

    def program(self, name):
        return str(self.built('tests', 'bench', f'bench-{name}'))

    def make_trees(self):
        """A kubeadm-like source with 20 drop-ins, and the same files as plain files for the peers."""
        self.fill_source(self.source, 20)
        shutil.copytree(self.source, self.plain)
        (self.plain / 'edit.d').mkdir()

    @staticmethod
    def fill_source(directory, n_dropins):
        directory.mkdir()
        for name in ('manifests', 'kubelet.conf.d'):
            (directory / name).mkdir()
        taints = ''.join(TAINT.format(i) for i in range(50))
        base = read_text(SAMPLE / 'kubelet.conf') + 'registerWithTaints:\n' + taints
        (directory / 'kubelet.conf').write_text(base)
        for i in range(n_dropins):
            text = HEADER + f'podPidsLimit: {1000 + i}\nmaxOpenFiles: {1000000 + i}\n'
            (directory / 'kubelet.conf.d' / f'{10000 + i}-part.conf').write_text(text)
        for path in sorted((SAMPLE / 'manifests').glob('*.yaml')):
            shutil.copy(path, directory / 'manifests')

    def lkgfs(self, name, source=None, match=(), cpu=None, state=None, more=''):
        """A view aside over @source with its own state; @match: executables that count as the component; @more: further
        configuration.
        """
        view = self.base / f'view-{name}'  # as deep as the peers: each path component costs time
        private = self.ram / name
        private.mkdir(exist_ok=True)
        config = self.base / f'{name}.yaml'
        config.write_text(CONFIG.format(source=source or self.source, state=state or private / 'state',
                                        runtime=private / 'runtime', match=', '.join(match)) + more)
        daemon = self.built('fs', 'supervisor', 'lkgfsd')
        return Server('lkgfs', [daemon, '--config', config, view], view, cpu)

    def bindfs(self, cpu=None):
        point = self.base / 'bindfs'
        return Server('bindfs', ['bindfs', '-f', self.plain, point], point, cpu)

    def rawfuse(self, cpu=None, floor=False):
        point = self.base / ('floor' if floor else 'rawfuse')
        return Server('rawfuse', [self.program('rawfuse'), *(['-f'] if floor else []), self.plain / 'kubelet.conf', point], point, cpu)

    def run_program(self, name, arguments):
        """Fields of each line of a measuring program, by label."""
        done = subprocess.run([self.program(name)] + [str(a) for a in arguments], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        if done.returncode:
            raise Trouble(f'{name}: {done.stderr.strip()[-300:]}')
        lines = [line.split('\t') for line in done.stdout.splitlines()]
        return {fields[0]: [float(field) for field in fields[1:]] for fields in lines}

    def cycle(self, operation, targets):
        """{label: (p50, p99)} in microseconds, all targets interleaved, all on one CPU."""
        arguments = ['-c', self.cpu, '-r', self.rounds, '-n', self.iterations, operation]
        lines = self.run_program('cycle', arguments + [f'{label}={path}' for label, path in targets.items()])
        return {label: (fields[1], fields[2]) for label, fields in lines.items()}
