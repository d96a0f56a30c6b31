#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes corpus-requests/, the seeds of fuzz-requests.c: steps as described at the top of that file. Run it after a change of the
format.
"""
import pathlib
import struct

HANDLE, NODE, NUL, TARGET, AT_ONCE, LONG, NO_UNIQUE = (1 << i for i in range(7))
OPCODES = {name: number for number, name in enumerate(
    '- lookup forget getattr setattr readlink symlink - mknod mkdir unlink rmdir rename link open read write statfs release - '
    'fsync setxattr getxattr listxattr removexattr flush init opendir readdir releasedir fsyncdir getlk setlk setlkw access '
    'create interrupt bmap destroy ioctl poll notifyreply batchforget fallocate readdirplus rename2 lseek copyfilerange '
    'setupmapping removemapping syncfs tmpfile statx'.split())}


def step(name, arguments=b'', node=0, flags=0, handle=0, who=0, wrong_by=0):
    opcode = name if isinstance(name, int) else OPCODES[name]
    return struct.pack('<BBBBBHb', opcode, flags, node, handle, who, len(arguments), wrong_by) + arguments


def name(text):
    return text.encode() + b'\0'


def q(*words):
    return struct.pack('<%dQ' % len(words), *words)


def i(*words):
    return struct.pack('<%dI' % len(words), *words)


def lookup(text, node=0, **more):
    return step('lookup', name(text), node, **more)


def opened(flags, node, **more):
    return step('open', i(flags, 0), node, **more)


def read(node, size=4096, off=0, what='read', **more):
    return step(what, q(0, off) + i(size, 0) + q(0) + i(0, 0), node, HANDLE, **more)


def write(node, data, off=0, size=None, **more):
    return step('write', q(0, off) + i(len(data) if size is None else size, 0) + q(0) + i(1, 0) + data, node, HANDLE, **more)


def create(text, node=0, flags=0o102, **more):
    return step('create', i(flags, 0o100644, 0o22, 0) + name(text), node, **more)


def setattr_(node, valid, size=0, mode=0o600, uid=0, gid=0, **more):
    return step('setattr', i(valid, 0) + q(0, size, 0, 1, 2, 3) + i(4, 5, 6, mode, 0, uid, gid, 0), node, **more)


SEEDS = {
    'view': lookup('kubelet.conf') + opened(0, 1) + read(1) + step('flush', q(0) + i(0, 0) + q(0), 1, HANDLE) +
            step('getattr', i(0, 0) + q(0), 1) + step('release', q(0) + i(0, 0) + q(0), 1, HANDLE) + step('forget', q(1), 1),
    'view-write': lookup('kubelet.conf') + opened(1, 1) + write(1, b'x') + setattr_(1, 8) + setattr_(1, 1),
    'through': lookup('proxy.conf') + opened(2, 1) + write(1, b'{}') + setattr_(1, 8, 1) + create('proxy.conf', flags=0o1102),
    'status': lookup('status') + opened(0, 1) + step('poll', q(0, 7) + i(1, 1), 1, HANDLE) + read(1),
    'control': lookup('control') + lookup('hold', 1) + opened(1, 2) + write(2, b'24h') + write(2, b'') + write(2, b'x' * 4000),
    'bad': lookup('bad') + lookup('kubelet', 1) + create('x', 2, 0o101) + write(3, b'reason') + lookup('3f9a@12', 2) +
           step('unlink', name('3f9a@12'), 2) + step('mknod', i(0o100644, 0, 0, 0) + name('n'), 2) + step('unlink', name('n'), 2),
    'source': lookup('a') + opened(2, 1) + read(1) + write(1, b'hello') + step('fsync', q(0) + i(1, 0), 1, HANDLE) +
              step('lseek', q(0, 0) + i(3, 0), 1, HANDLE) + step('fallocate', q(0, 0, 100) + i(0, 0), 1, HANDLE),
    'copy': lookup('a') + lookup('d') + lookup('b', 2) + opened(2, 1) + opened(2, 3) +
            step('copyfilerange', q(0, 0, 0, 0, 0, 12, 0), 1, HANDLE | TARGET) +
            step('copyfilerange', q(0, 0, 0, 0, 0, 1 << 63, 9), 3, HANDLE | TARGET, 1),
    'directory': step('opendir', i(0o200000, 0)) + read(0, what='readdir') + read(0, 4096, 1 << 62, 'readdir') +
                 read(0, 0xffffffff, 0, 'readdir') + read(0, what='readdirplus') + step('fsyncdir', q(0) + i(0, 0), 0, HANDLE) +
                 step('releasedir', q(0) + i(0, 0) + q(0), 0, HANDLE),
    'directory-below': lookup('d') + step('opendir', i(0, 0), 1) + read(1, what='readdir') + read(1, 24, 1, 'readdir'),
    'directory-view': lookup('control') + step('opendir', i(0, 0), 1) + read(1, what='readdir') + read(1, 40, 2, 'readdir'),
    'make': step('mkdir', i(0o755, 0) + name('new')) + create('f', 1) + step('symlink', name('l') + name('../../etc'), 1) +
            step('link', q(0) + name('g'), 1, NODE, 2) + step('mknod', i(0o10644, 0, 0, 0) + name('p'), 1) +
            step('rename', q(0) + name('f') + name('h'), 1, NODE, 1) + step('unlink', name('h'), 1) + step('rmdir', name('new')),
    'make-as-user': step('mkdir', i(0o777, 0o77) + name('new'), who=1) + create('f', 1, who=1) + create('n', who=0x81),
    'fifo': step('mknod', i(0o10644, 0, 0, 0) + name('p')) + opened(0, 1) + opened(0o4000, 1),
    'rename2': step('rename2', q(0) + i(1, 0) + name('a') + name('d')) + step('rename2', q(1) + i(2, 0) + name('a') + name('d')) +
               step('rename2', q(1) + i(4, 0) + name('a') + name('w')) + step('rename2', q(1) + i(99, 0) + name('a') + name('z')) +
               step('rename2', q(1) + i(2, 0) + name('kubelet.conf') + name('a')),
    'exchange': lookup('d') + step('rename2', q(0) + i(2, 0) + name('a') + name('b'), 0, NODE, 1) + lookup('a') + lookup('b', 1),
    'dots': lookup('..') + lookup('.') + lookup('../outside') + lookup('/etc/passwd') + lookup('') + lookup('d/b') +
            create('../x') + step('mkdir', i(0o755, 0) + name('../y')) + step('unlink', name('../outside/secret')) +
            step('rename', q(1) + name('a') + name('../a')) + step('link', q(0) + name('../l'), 0, NODE, 0),
    'link-out': lookup('out') + step('readlink', b'', 1) + lookup('secret', 1) + opened(0, 1) + create('n', 1) +
                step('opendir', i(0, 0), 1) + read(1, what='readdir'),
    'no-nul': step('lookup', b'kubelet.conf') + step('mkdir', i(0o755, 0) + b'x') + step('rename', q(1) + name('a') + b'c') +
              step('symlink', name('s')) + step('getxattr', i(10, 0) + b'user.x') + create('').replace(b'\0\0', b'\0a', 1),
    'short': b''.join(step(n, b'\1\2\3') for n in range(1, 53)),
    'nothing': b''.join(step(n) for n in range(1, 53)),
    'unknown': b''.join(step(n) for n in (0, 19, 53, 60, 100, 127, 128, 255)),
    'lengths': lookup('a', wrong_by=1) + lookup('a', wrong_by=-1) + lookup('a', wrong_by=-128) + step('statfs', wrong_by=127) +
               step('write', q(0, 0) + i(100000, 0) + q(0) + i(0, 0) + b'short'),
    'sizes': lookup('a') + opened(2, 1) + read(1, 0xffffffff) + read(1, 4096, (1 << 64) - 1) + read(1, 1, 1 << 63) +
             write(1, b'abc', (1 << 63) - 1) + write(1, b'abc', 0, 0xffffffff) + setattr_(1, 8, (1 << 64) - 1),
    'long-write': lookup('a') + opened(2, 1) +
                  step('write', q(0, 0) + i(65536, 0) + q(0) + i(0, 0) + b'x' * 300, 1, HANDLE | LONG),
    'setattr': lookup('a') + setattr_(1, 0xffffffff) + setattr_(1, 0xffff, 5, 0o7777, 1, 1) + lookup('d') + setattr_(2, 0x7ff) +
               setattr_(0, 0x7ff) + setattr_(1, 1, mode=0o644) + setattr_(1, 6, uid=0xffffffff, gid=0xffffffff),
    'time-far-away': lookup('a') + step('setattr', i(0x30, 0) + q(0, 0, 0, 15032385535, 15032385535, 3) + i(4, 5, 6, 0o600, 0, 0, 0, 0), 1) +
                     opened(0, 1) + read(1) + opened(2, 1),
    'fallocate': lookup('a') + opened(2, 1) + step('fallocate', q(0, 0, 1 << 40) + i(0, 0), 1, HANDLE) +
                 step('fallocate', q(0, 1 << 62, 1 << 62) + i(0xffffffff, 0), 1, HANDLE) + step('fallocate', q(0, 0, 99) + i(3, 0), 1, HANDLE),
    'xattr': lookup('a') + step('setxattr', i(5, 0) + name('user.x') + b'value', 1) + step('getxattr', i(64, 0) + name('user.x'), 1) +
             step('getxattr', i(0xffffffff, 0) + name('user.x'), 1) + step('getxattr', i(0, 0) + name('user.x'), 1) +
             step('listxattr', i(0xffffffff, 0), 1) + step('removexattr', name('user.x'), 1) +
             step('setxattr', i(0xffffffff, 1) + name('user.y') + b'v', 1) + step('getxattr', i(9, 0) + name('x' * 300), 1),
    'xattr-view': lookup('kubelet.conf') + step('listxattr', i(4096, 0), 1) + step('getxattr', i(99, 0) + name('user.lkgfs.hint'), 1) +
                  step('getxattr', i(1, 0) + name('user.lkgfs.generation'), 1) + step('setxattr', i(1, 0) + name('user.a') + b'v', 1),
    'ioctl': lookup('a') + opened(0, 1) + step('ioctl', q(0) + i(0, 0x80086601, 0, 0, 0, 8), 1, HANDLE) +
             step('ioctl', q(0) + i(1, 0x5401, 0, 0, 0xffffffff, 0xffffffff), 1, HANDLE) +
             step('ioctl', q(0) + i(0, 0x40086602, 0, 0, 8, 0) + q(16), 1, HANDLE),
    'poll': step('poll', q(0, 1) + i(0xffffffff, 0xffffffff)) + lookup('a') + step('poll', q(0, 2) + i(1, 1), 1) +
            step('poll', q(0, 3) + i(1, 1), 0xf1),
    'forget': lookup('a') + step('batchforget', i(2, 0) + q(1, 1 << 40, 5, 1)) + step('batchforget', i(0xffffffff, 0) + q(1, 1)) +
              step('forget', q((1 << 64) - 1)) + step('forget', q((1 << 64) - 1), 1) + step('getattr', i(0, 0) + q(0), 1),
    'interrupt': lookup('a', flags=AT_ONCE) + step('interrupt', q(2)) + step('interrupt', q(0)) + step('interrupt', q((1 << 64) - 1)),
    'at-once': b''.join(lookup(n, flags=AT_ONCE) for n in ('a', 'd', 'kubelet.conf', 'status', 'x')) +
               create('f', flags=0o102) + step('unlink', name('a'), flags=AT_ONCE) + step('mkdir', i(0o755, 0) + name('q')),
    'unlinked': lookup('a') + opened(2, 1) + step('unlink', name('a')) + read(1) + step('getattr', i(0, 0) + q(0), 1) +
                step('link', q(0) + name('back'), 0, NODE, 1),
    'notifier': lookup('.lv', who=0x40) + step('opendir', i(0, 0), 1, who=0x40) + read(1, what='readdir', who=0x40) +
                create('n', who=0x40) + step('mkdir', i(0o755, 0) + name('m'), who=0x40) + lookup('1', 1, who=0x40) +
                lookup('zz', 1, who=0x40) + step('unlink', name('a'), who=0x40) + lookup('a', who=0x40),
    'foreign': lookup('a', who=0x80) + opened(2, 1, who=0x80) + create('f', who=0x80) + lookup('control', who=0x80) +
               lookup('hold', 2, who=0x80) + opened(1, 3, who=0x80) + step('write', q(0, 0) + i(1, 0) + q(0) + i(1, 0) + b'x', 3, who=0x80),
    'odd-ids': b''.join(step('getattr', i(0, 0) + q(0), n) + opened(0, n) + lookup('a', n) for n in range(0xf0, 0xf6)) +
               b''.join(read(0, handle=n) + step('release', q(0) + i(0, 0) + q(0), 0, HANDLE, n) for n in range(0xf0, 0xf6)),
    'destroy': step('init', i(7, 38, 4096, 0xffffffff)) + step('destroy') + step('notifyreply', q(1, 2, 3)) + lookup('a'),
    'no-unique': lookup('a', flags=NO_UNIQUE) + step('statfs', flags=NO_UNIQUE) + step(99, flags=NO_UNIQUE) + step('statfs'),
    'locks': step('getlk', q(0, 0, 0, 0) + i(0, 0, 0, 0)) + step('setlk', q(0, 0, 0, 0) + i(0, 0, 1, 0)) + step('access', i(7, 0)) +
             step('bmap', q(0) + i(512, 0)) + step('tmpfile', i(2, 0o644, 0, 0) + name('t')) + step('statx', i(0, 0) + q(0, 0)),
    'long-names': lookup('x' * 255) + lookup('x' * 256) + create('y' * 1024) + step('mkdir', i(0o755, 0) + name('z' * 4000)),
    'base': lookup('kubelet.conf.base') + opened(2, 1) + write(1, b'{}') + lookup('kubelet.conf.d') + create('20.conf', 2) +
            write(3, b'a: 1', handle=1) + step('unlink', name('10-x.conf'), 2) + lookup('hidden') + lookup('.lkgfs-fallback'),
}

if __name__ == '__main__':
    place = pathlib.Path(__file__).parent / 'corpus-requests'
    place.mkdir(exist_ok=True)
    for title, data in SEEDS.items():
        (place / title).write_bytes(data)
