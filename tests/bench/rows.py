# SPDX-License-Identifier: Apache-2.0
"""The rows of the table: what is measured, compared with what, and the target. docs/performance.md explains each."""

import contextlib
import json
import os
import shutil
import subprocess
import time

import hanging
import remote
from servers import Trouble, name_of, private_dirty_mib, switches


def row(what, value, unit, peer=None, ratio_limit=None, value_limit=None, more=''):
    """One line of the table; @peer is (name, value). A limit applies to value/peer or to the value itself."""
    name, theirs = peer or ('', None)
    ratio = value / theirs if theirs else None
    met = None
    if ratio_limit is not None and ratio is not None:
        met = ratio <= ratio_limit
    elif value_limit is not None:
        met = value <= value_limit
    return {'what': what, 'value': round(value, 3), 'unit': unit, 'peer': name, 'peer_value': theirs,
            'ratio': ratio and round(ratio, 3), 'ratio_limit': ratio_limit, 'value_limit': value_limit,
            'met': met, 'more': more}


def tail(figures):
    return f'p99 {figures[1]:.1f}'


def rows_open(bench):
    """All mounts at once, everything on one CPU, targets interleaved."""
    cpu = bench.cpu
    with contextlib.ExitStack() as stack:
        def up(server):
            return stack.enter_context(server).mount_point

        view = up(bench.lkgfs('other', cpu=cpu))
        known = up(bench.lkgfs('known', match=[bench.program('cycle')], cpu=cpu))
        # the peers serve the same bytes as the view
        (bench.plain / 'kubelet.conf').write_bytes((view / 'kubelet.conf').read_bytes())
        bind = up(bench.bindfs(cpu))
        raw = up(bench.rawfuse(cpu))
        yield from rows_cycle(bench, view, known, bind, raw)
        yield from rows_held(bench, view)
        yield from rows_pass(bench, view, bind)


def rows_cycle(bench, view, known, bind, raw):
    name = 'kubelet.conf'
    got = bench.cycle('cycle', {'fs': bench.plain / name, 'raw': raw / name, 'bindfs': bind / name,
                                'lkgfs': view / name, 'known': known / name})
    p50 = got['lkgfs'][0]
    what = 'open+fstat+read+EOF+close of kubelet.conf'
    yield row(what, p50, 'us', ('rawfuse', got['raw'][0]), ratio_limit=1.1, more=tail(got['lkgfs']))
    yield row('  the same', p50, 'us', ('bindfs', got['bindfs'][0]), ratio_limit=0.6)
    yield row('  the same', p50, 'us', ('file system', got['fs'][0]))
    yield row('  by the recognised component', got['known'][0], 'us', ('rawfuse', got['raw'][0]),
              ratio_limit=1.5, more=tail(got['known']))


def rows_held(bench, view):
    """A descriptor that stays open: only the page cache should work."""
    name = 'kubelet.conf'
    for operation, what in (('read', 'pread of the open file'), ('mmap', 'mmap, touch, munmap of it')):
        got = bench.cycle(operation, {'fs': bench.plain / name, 'lkgfs': view / name})
        yield row(what, got['lkgfs'][0], 'us', ('file system', got['fs'][0]), ratio_limit=1.05)


def rows_pass(bench, view, bind):
    """A file that is only passed through."""
    name = 'manifests/etcd.yaml'
    got = bench.cycle('cycle', {'lkgfs': view / name, 'bindfs': bind / name})
    yield row(f'open+fstat+read+EOF+close of {name}', got['lkgfs'][0], 'us', ('bindfs', got['bindfs'][0]),
              ratio_limit=2.5, more=tail(got['lkgfs']))


def measure_edit(bench, name, source, iterations, state=None, more=''):
    """A drop-in is rewritten through the view; for the peers the same file has no meaning."""
    dropin = '60000-edit.conf'
    with contextlib.ExitStack() as stack:
        view = stack.enter_context(bench.lkgfs(name, source=source, state=state, more=more)).mount_point
        bind = stack.enter_context(bench.bindfs()).mount_point
        floor = stack.enter_context(bench.rawfuse(floor=True)).mount_point
        return bench.run_program('edit', [
            '-r', 4, '-n', iterations,
            f"floor={floor / 'kubelet.conf'}",
            f"fs={bench.plain / 'edit.d' / dropin}",
            f"bindfs={bind / 'edit.d' / dropin}",
            f"lkgfs={view / 'kubelet.conf.d' / dropin},{view / 'kubelet.conf'}"])


def rows_edit(bench):
    iterations = 50 if bench.quick else 200
    few = measure_edit(bench, 'edit', bench.source, iterations)
    close, theirs = few['lkgfs.close'], few['bindfs.close'][1]
    yield row('added to close() of a drop-in among 20', max(0.0, close[1] - theirs), 'us',
              ('bindfs close()', theirs), value_limit=1000,
              more=f'close p50 {close[1]:.0f}, p99 {close[2]:.0f}')
    yield row('close() of a drop-in among 20', close[1], 'us', ('rawfuse -f', few['floor.close'][1]), ratio_limit=20)
    yield row('edits that the next open did not show', few['lkgfs.stale'][0], f'of {4 * (iterations + 3)}',
              value_limit=0)
    disk = measure_edit(bench, 'edit-disk', bench.source, iterations, bench.base / 'state')['lkgfs.close']
    yield row('close() of a drop-in, state on the disk', disk[1], 'us', ('state on tmpfs', close[1]),
              more=tail(disk[1:]))
    many = bench.base / 'source-1000'
    bench.fill_source(many, 1000)
    lots = measure_edit(bench, 'edit-1000', many, max(10, iterations // 4), more='  maxDropIns: 1024\n')['lkgfs.close']
    yield row('close() of one changed drop-in among 1,000', lots[1] / 1000, 'ms',
              ('among 20', close[1] / 1000), ratio_limit=2, more=f'p99 {lots[2] / 1000:.2f}')
    large = bench.base / 'source-large'
    bench.fill_source(large, 20)
    with open(large / 'kubelet.conf', 'a', encoding='utf-8') as base:
        base.write('staticPodURLHeader:\n' + ''.join(f'  X-Number-{i:05}:\n  - the value of header {i:05}, which is as long as in other clusters\n'
                                                  for i in range(11000)))
    whole = measure_edit(bench, 'edit-large', large, max(10, iterations // 4))['lkgfs.close']
    yield row('close() of one over a base of 1 MiB', whole[1] / 1000, 'ms', value_limit=25, more=f'p99 {whole[2] / 1000:.2f}')


def rows_pods(bench):
    """A manifest among so many, and a drop-in of the same view."""
    iterations = 10 if bench.quick else 50
    sample = (bench.source / 'manifests/kube-scheduler.yaml').read_text()
    close, engine, stale = {}, {}, 0
    for n in (0, 4, 100):
        source = bench.base / f'source-{n}-pods'
        bench.fill_source(source, 20)
        for path in (source / 'manifests').iterdir():
            path.unlink()
        for i in range(n - 1):
            (source / f'manifests/pod-{i}.yaml').write_text(sample.replace('name: kube-scheduler\n  namespace', f'name: pod-{i}\n  namespace'))
        if n:
            (source / 'manifests/edit.yaml').write_text(sample)
        with bench.lkgfs(f'pods-{n}', source=source, more='- name: static-pods\n  kind: StaticPods\n' if n else '') as server:
            time.sleep(2)  # wait for the work that a start leaves
            engine[n] = private_dirty_mib(server.member('lkgfs-engine'))
            if not n:
                continue
            view = server.mount_point
            got = bench.run_program('edit', ['-r', 4, '-n', iterations, f"dropin={view / 'kubelet.conf.d/60000-edit.conf'},{view / 'kubelet.conf'}",
                                             f"pod={view / 'manifests/edit.yaml'},{view / 'static-pods/edit.yaml'}"])
            close[n], stale = got, stale + got['pod.stale'][0]
    for n, met in ((4, 2), (100, 10)):
        mine, theirs = close[n]['pod.close'], close[n]['dropin.close']
        yield row(f'close() of a manifest among {n}', mine[1] / 1000, 'ms', ('a drop-in', theirs[1] / 1000), ratio_limit=met, more=f'p99 {mine[2] / 1000:.2f}')
    yield row('edits that the next open did not show', stale, f'of {2 * 4 * (iterations + 3)}', value_limit=0)
    for n in (4, 100):
        yield row(f'engine, with {n} static pods', engine[n], 'MiB', ('without', engine[0]), value_limit=5)


def judge(bench, source, iterations):
    """What bench-judge prints for a copy of a source directory (it rewrites a file there)."""
    copy = bench.ram / f'judge-{source.name}'
    shutil.copytree(source, copy)
    out = subprocess.run([bench.program('judge'), copy, str(iterations)], check=True, capture_output=True, text=True)
    return {name: float(value) for name, value in (line.split() for line in out.stdout.splitlines())}, copy


def ask_oracle(bench, source):
    """Nanoseconds that the component's own code takes for the same layers, in one warm process."""
    dropins = sorted((source / 'kubelet.conf.d').iterdir())
    request = {'op': 'bench', 'n': 20 if bench.quick else 200, 'base': (source / 'kubelet.conf').read_text(),
               'dropins': [{'path': path.name, 'text': path.read_text()} for path in dropins]}
    out = subprocess.run([bench.oracle], input=json.dumps(request) + '\n', check=True, capture_output=True, text=True)
    reply = json.loads(out.stdout)
    if not reply.get('ok'):
        raise Trouble(f"the oracle refuses the layers: {reply.get('error')}")
    return reply['nsPerOp']


def rows_judge(bench):
    """CPU time from layers to a validated document; no mount."""
    few, copy = judge(bench, bench.source, 200 if bench.quick else 2000)
    contents = few['all'] - few['read']
    peer = ('component code', ask_oracle(bench, copy) / 1000) if bench.oracle else None
    yield row('layers to a validated document, 4 KiB + 20 drop-ins', contents / 1000, 'ms',
              peer and (peer[0], peer[1] / 1000), ratio_limit=peer and 0.05, value_limit=None if peer else 0.35,
              more=f"finding and reading the files {few['read']:.0f} us more, {few['resident'] / 1024:.1f} MiB resident")
    if peer:
        yield row('  the same', contents / 1000, 'ms', value_limit=0.35)
    yield row('  one of the 20 changed', few['one'] / 1000, 'ms', ('all of them', contents / 1000))
    many = bench.base / 'judge-1000'
    bench.fill_source(many, 1000)
    lots, _ = judge(bench, many, 20 if bench.quick else 200)
    yield row('  one of 1,000 changed', lots['one'] / 1000, 'ms', ('one of 20', few['one'] / 1000), value_limit=5,
              more=f"{lots['resident'] / 1024:.1f} MiB resident")


def rows_quiet(bench):
    seconds = 3 if bench.quick else 10
    with bench.lkgfs('idle') as server, bench.bindfs() as peer:
        time.sleep(2)  # wait for the work that a start leaves
        ours, theirs = server.pids(), peer.pids()
        before = switches(ours), switches(theirs)
        time.sleep(seconds)
        woken = [(switches(pids) - n) / seconds for pids, n in zip((ours, theirs), before)]
        yield row(f'wake-ups per second, idle for {seconds} s', woken[0], '1/s', ('bindfs', woken[1]),
                  value_limit=0)
        dirty = {name_of(pid): private_dirty_mib(pid) for pid in ours}
        yield row('private dirty memory, all processes', sum(dirty.values()), 'MiB',
                  ('bindfs', sum(private_dirty_mib(pid) for pid in theirs)), value_limit=8,
                  more=', '.join(f'{name} {mib:.1f}' for name, mib in sorted(dirty.items())))
        yield row('private dirty memory, file server', dirty.get('lkgfs-fs', 0), 'MiB', value_limit=4)


def rows_start(bench):
    repeats = 3 if bench.quick else 9

    def median_ms(make):
        times = []
        for _ in range(repeats):
            with make() as server:
                times.append(server.start_ms)
        return sorted(times)[repeats // 2]

    ours = median_ms(lambda: bench.lkgfs('start'))
    yield row(f'start to first read, median of {repeats}', ours, 'ms', ('bindfs', median_ms(bench.bindfs)),
              value_limit=50)


def rows_hang(bench):
    yield from hanging.rows(bench, row)


def rows_watch(bench):
    yield from remote.rows(bench, row)


GROUPS = {'open': rows_open, 'judge': rows_judge, 'edit': rows_edit, 'pods': rows_pods, 'quiet': rows_quiet, 'start': rows_start, 'hang': rows_hang,
          'watch': rows_watch}
