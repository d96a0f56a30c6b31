# SPDX-License-Identifier: Apache-2.0
"""When a call that changes a drop-in through the mount has returned, the next open of the document shows it.

Rule: docs/specification.md 2.4.
"""
import mmap
import os
import pty
import time

import pytest

import lkgfs_container as container
import lkgfs_testlib as lib

NOBODY = 65534

ROUNDS = 20


def text(value):
    return lib.HEADER + f"maxPods: {value}\n"


def write_close(path, value):
    lib.write_file(path, text(value))


def append(path, value):
    if os.path.exists(path):
        os.unlink(path)
    for part in (lib.HEADER, f"maxPods: {value}\n"):
        with open(path, "a", encoding="ascii") as file:
            file.write(part)


def pwrite(path, value):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    data = text(value).encode()
    os.pwrite(fd, data, 0)
    os.ftruncate(fd, len(data))
    os.close(fd)


def small_writes(path, value):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    data = text(value).encode()
    for i in range(0, len(data), 7):
        os.write(fd, data[i:i + 7])
    os.close(fd)


def rename_inside(path, value):
    temporary = os.path.join(os.path.dirname(path), ".new")
    lib.write_file(temporary, text(value))
    os.rename(temporary, path)


def rename_from_elsewhere(path, value):
    temporary = os.path.join(os.path.dirname(os.path.dirname(path)), "tmp", "new")
    lib.write_file(temporary, text(value))
    os.rename(temporary, path)


def map_shared(path, value):
    data = text(value).encode()
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    os.ftruncate(fd, len(data))
    with mmap.mmap(fd, len(data)) as mapped:
        mapped[:] = data
        mapped.flush()
    os.close(fd)


def map_after_close(path, value):
    """The descriptor is closed before the mapping is dirtied: the write-back at munmap() is the commit."""
    data = text(value).encode()
    lib.write_file(path, b"#" * (len(data) - 1) + b"\n")
    fd = os.open(path, os.O_RDWR)
    mapped = mmap.mmap(fd, len(data))
    os.close(fd)
    mapped[:] = data
    mapped.flush()
    mapped.close()


def fsync_keep_open(path, value):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, text(value).encode())
    os.fsync(fd)
    return fd


def hard_link(path, value):
    temporary = os.path.join(os.path.dirname(os.path.dirname(path)), "tmp", "linked")
    lib.write_file(temporary, text(value))
    if os.path.exists(path):
        os.unlink(path)
    os.link(temporary, path)
    os.unlink(temporary)


# Each makes {path} a drop-in with this value: {text} is the whole of it, {elsewhere} a file with that in another directory.
COMMANDS = {
    "echo": "echo '{text}' > {path}", "here": "cat > {path} <<E\n{text}E", "tee": "echo '{text}' | tee {path}", "cp": "cp {elsewhere} {path}",
    "install": "install -m 644 {elsewhere} {path}", "mv": "mv {elsewhere} {path}", "dd": "dd if={elsewhere} of={path} bs=16 status=none",
    "dd_fsync": "dd if={elsewhere} of={path} conv=fsync status=none", "rsync": "rsync --ignore-times {elsewhere} {path}",
    "sed": "sed -i 's/maxPods: .*/maxPods: {value}/' {path}", "perl": "perl -pi -e 's/maxPods: .*/maxPods: {value}/' {path}",
    "vim": "vim -es -u NONE -c '%s/maxPods: .*/maxPods: {value}/' -c wq {path}",
}


def command(path, value, script):
    elsewhere = os.path.join(os.path.dirname(os.path.dirname(path)), "tmp", "source")
    lib.write_file(elsewhere, text(value))
    if not os.path.exists(path):
        write_close(path, 1)
    lib.shell(script.format(path=path, value=value, text=text(value), elsewhere=elsewhere), check=True)


def nano(path, value):
    """On a terminal, like a user: cut the content, type, write out, exit."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("nano", ["nano", "--ignorercfiles", path], dict(os.environ, TERM="xterm"))
    try:
        screen = b""
        while b"Exit" not in screen:  # the help lines come last: now it reads keys
            screen += os.read(terminal, 4096)
        os.write(terminal, b"\x0b" * 10 + text(value).replace("\n", "\r").encode() + b"\x0f\r\x18")
        while True:
            try:
                if not os.read(terminal, 4096):
                    break
            except OSError:  # EIO: nano has closed its side
                break
    finally:
        os.close(terminal)
        assert os.waitpid(pid, 0)[1] == 0


PATTERNS = [write_close, append, pwrite, small_writes, rename_inside, rename_from_elsewhere, map_shared,
            map_after_close, fsync_keep_open, hard_link]


def check(mount, pattern, rounds):
    path = mount.path("kubelet.conf.d", "50-test.conf")
    first = mount.generation()
    for value in range(200, 200 + rounds):
        kept = pattern(path, value)
        document = mount.document()
        if kept is not None:
            os.close(kept)
        assert f"\nmaxPods: {value}\n" in document, mount.status("findings")
    assert mount.condition()[0] == "True", mount.status("findings")
    return mount.generation() - first


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda f: f.__name__)
def test_pattern(shared, pattern):
    check(shared, pattern, ROUNDS)


@pytest.mark.parametrize("name", [*COMMANDS, "nano"])
def test_tool(shared, name):
    check(shared, nano if name == "nano" else lambda path, value: command(path, value, COMMANDS[name]), 3)


def test_unlink_rename_away_and_truncate(mount):
    path = mount.path("kubelet.conf.d", "50-test.conf")
    for value in range(300, 305):
        write_close(path, value)
        assert f"\nmaxPods: {value}\n" in mount.document()
        os.unlink(path)
        assert "\nmaxPods: 64\n" in mount.document()
        write_close(path, value)
        os.rename(path, mount.path("tmp", "away"))
        assert "\nmaxPods: 64\n" in mount.document()
        os.rename(mount.path("tmp", "away"), path)
        assert f"\nmaxPods: {value}\n" in mount.document()
        os.rename(path, path + ".disabled")
        assert "\nmaxPods: 64\n" in mount.document()
        os.unlink(path + ".disabled")
    write_close(path, 300)
    os.truncate(path, len(text(300)) - len("maxPods: 300\n"))
    assert "\nmaxPods: 64\n" in mount.document()


def test_subdirectories(mount):
    os.makedirs(mount.path("kubelet.conf.d", "60-sub", "deep"))
    write_close(mount.path("kubelet.conf.d", "60-sub", "deep", "a.conf"), 77)
    assert "\nmaxPods: 77\n" in mount.document()
    os.rename(mount.path("kubelet.conf.d", "60-sub"), mount.path("kubelet.conf.d", "05-sub"))
    assert "\nmaxPods: 64\n" in mount.document()
    os.rename(mount.path("kubelet.conf.d", "05-sub"), mount.path("away"))
    assert mount.document()
    os.rename(mount.path("away"), mount.path("kubelet.conf.d", "99-sub"))
    assert "\nmaxPods: 77\n" in mount.document()
    os.symlink("99-sub/deep/a.conf", mount.path("kubelet.conf.d", "98.conf"))
    assert mount.condition()[0] == "True", mount.status("findings")


def test_base_and_instance(mount):
    mount.write("kubelet-instance.conf", text(150), 0o600)
    assert "\nmaxPods: 150\n" in mount.document()
    os.unlink(mount.path("kubelet-instance.conf"))
    assert "\nmaxPods: 64\n" in mount.document() and "providerID" not in mount.document()
    mount.write("kubelet.conf.base", lib.BASE.replace("cluster.local", "example.org"), 0o600)
    assert "clusterDomain: example.org\n" in mount.document()
    temporary = mount.path("tmp", "base")
    lib.write_file(temporary, lib.BASE, 0o600)
    os.rename(temporary, mount.path("kubelet.conf.base"))
    assert "clusterDomain: cluster.local\n" in mount.document()
    assert lib.read_file(mount.behind("kubelet.conf")).decode() == lib.BASE


def test_half_written_dropins_are_never_published(mount):
    """Rewritten in place again and again in two writes; after the first one it would already be a valid drop-in."""
    path = mount.path("kubelet.conf.d", "50-test.conf")
    refused = set()
    for value in range(200):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(fd, f"{lib.HEADER}maxPods: {1000 + value}\n".encode())
        document = mount.document()
        assert f"maxPods: {1000 + value}\n" not in document, "published before close"
        os.write(fd, f"podsPerCore: {1000 + value}\n".encode())
        os.close(fd)
        document = mount.document()
        assert f"\nmaxPods: {1000 + value}\n" in document and f"\npodsPerCore: {1000 + value}\n" in document
        refused.add(mount.status("condition").split()[0])
    assert refused == {"True"}
    assert "refused" not in mount.log(), "an empty or half file was judged"


def test_equal_content_is_no_new_generation(mount):
    """Rule: docs/specification.md 2.2."""
    before, inode = mount.generation(), os.stat(mount.path("kubelet.conf")).st_ino
    path = mount.path("kubelet.conf.d", "20-pods.conf")
    data = lib.read_file(path)
    lib.write_file(path, data)
    lib.write_file(path, data + b"# a comment\n")
    os.utime(path)
    os.chmod(path, 0o600)
    assert mount.generation() == before
    assert os.stat(mount.path("kubelet.conf")).st_ino == inode


def test_truncating_open_shows_by_itself(mount):
    """The documented exception: the file is read without a further event."""
    path = mount.path("kubelet.conf.d", "20-pods.conf")
    lib.shell(f": > {path}", check=True)
    mount.wait_for(lambda: mount.condition()[0] == "False", "the empty drop-in is a finding")
    assert "20-pods.conf" in mount.status("findings")
    write_close(path, 65)
    assert mount.condition()[0] == "True" and "\nmaxPods: 65\n" in mount.document()


def behind_write(mount, value):
    lib.write_file(mount.behind("kubelet.conf.d", "50-test.conf"), text(value))


def behind_rename(mount, value):
    lib.write_file(mount.behind("tmp", "x"), text(value))
    os.rename(mount.behind("tmp", "x"), mount.behind("kubelet.conf.d", "50-test.conf"))


@pytest.mark.parametrize("how", [behind_write, behind_rename], ids=lambda f: f.__name__)
def test_behind_the_mount(mount, how):
    for value in range(500, 505):
        how(mount, value)
        mount.wait_for(lambda v=value: f"\nmaxPods: {v}\n" in mount.document(), "change behind the mount", timeout=5)
    os.unlink(mount.behind("kubelet.conf.d", "50-test.conf"))
    mount.wait_for(lambda: "\nmaxPods: 64\n" in mount.document(), "removal behind the mount", timeout=5)


def test_directory_and_files_that_appear_later(mounts):
    mount = mounts(dropins=False, instance=None)
    assert "\nmaxPods: 110\n" in mount.document()
    os.mkdir(mount.path("kubelet.conf.d"))
    write_close(mount.path("kubelet.conf.d", "a.conf"), 33)
    assert "\nmaxPods: 33\n" in mount.document()
    write_close(mount.path("kubelet-instance.conf"), 34)
    assert "\nmaxPods: 34\n" in mount.document()
    os.unlink(mount.path("kubelet-instance.conf"))
    os.rename(mount.path("kubelet.conf.d"), mount.path("gone"))
    assert "\nmaxPods: 110\n" in mount.document()
    os.mkdir(mount.behind("kubelet.conf.d"))
    lib.write_file(mount.behind("kubelet.conf.d", "b.conf"), text(35))
    mount.wait_for(lambda: "\nmaxPods: 35\n" in mount.document(), "a directory made behind the mount", timeout=5)


def swap_link(link, target):
    os.symlink(target, link + ".new")
    os.rename(link + ".new", link)


def volume(mount, value):
    """A mounted ConfigMap beside the drop-ins: what is written is read before `..data` leads to it."""
    os.makedirs(mount.path("volume", f"..{value}"))
    write_close(mount.path("volume", f"..{value}", "z"), value)
    swap_link(mount.path("volume", "..data"), f"..{value}")


def volume_inside(mount, value):
    os.mkdir(mount.path("kubelet.conf.d", f"..{value}"))
    write_close(mount.path("kubelet.conf.d", f"..{value}", "z"), value)
    swap_link(mount.path("kubelet.conf.d", "..data"), f"..{value}")


def target_in_place(mount, value):
    os.makedirs(mount.path("shared"), exist_ok=True)
    write_close(mount.path("shared", "z"), value)


def target_renamed_over(mount, value):
    os.makedirs(mount.path("shared"), exist_ok=True)
    write_close(mount.path("shared", ".new"), value)
    os.rename(mount.path("shared", ".new"), mount.path("shared", "z"))


def link_on_the_way(mount, value):
    os.makedirs(mount.path("rel", f"v{value}"))
    write_close(mount.path("rel", f"v{value}", "z"), value)
    swap_link(mount.path("rel", "current"), f"v{value}")


FORMS = {volume: "../volume/..data/z", volume_inside: "..data/z", target_in_place: "../shared/z",
         target_renamed_over: "../shared/z", link_on_the_way: "../rel/current/z"}


@pytest.mark.parametrize("how", FORMS, ids=lambda f: f.__name__)
def test_through_links(mount, how):
    """The names of links, and where they lead, are names of the layer; also when the link comes first and leads nowhere."""
    os.symlink(FORMS[how], mount.path("kubelet.conf.d", "60-z.conf"))
    for value in range(200, 200 + ROUNDS):
        how(mount, value)
        assert f"\nmaxPods: {value}\n" in mount.document(), mount.status("findings")
        assert mount.condition()[0] == "True", mount.status("findings")


def test_more_links_than_are_waited_for(mounts):
    """It is said, and what is beyond the limit is served as if it had changed behind the mount."""
    mount = mounts(components=[{"name": "kubelet", "maxDropIns": 2000}])
    os.makedirs(mount.behind("shared"))
    for i in range(1100):
        lib.write_file(mount.behind("shared", f"z{i}"), text(5))
        os.symlink(f"../shared/z{i}", mount.behind("kubelet.conf.d", f"60-{i:04}.conf"))
    mount.sync()
    mount.wait_for(lambda: "[LKG4025]" in mount.status("findings"), "it is said")
    write_close(mount.path("shared", "z1099"), 6)
    mount.wait_for(lambda: "\nmaxPods: 6\n" in mount.document(), "noticed by inotify", timeout=5)


def sync_as_reader(path, call):
    fd = os.open(path, os.O_RDONLY)
    try:
        call(fd)
    finally:
        os.close(fd)


@pytest.mark.parametrize("call", [os.fsync, os.fdatasync], ids=["fsync", "fdatasync"])
def test_a_reader_does_not_say_that_a_file_is_complete(mount, call):
    """Root is in the middle of writing `maxPods: 150`, and any user who may read the file calls fsync() on it."""
    os.chmod(mount.root, 0o755)
    before = mount.generation()
    path = mount.path("kubelet.conf.d/50-x.conf")
    with container.User(NOBODY) as nobody, open(path, "wb", buffering=0) as file:
        os.chmod(path, 0o644)
        for text in (lib.HEADER + "maxPods: 1", "5", "0\n"):
            file.write(text.encode())
            written = time.monotonic()
            assert nobody.error(sync_as_reader, path, call) == 0
            generation = mount.generation()
            # a file that has not been written to for 30 s counts as complete
            assert generation == before or time.monotonic() - written > 29
        os.fsync(file.fileno())
        assert mount.generation() > before and "\nmaxPods: 150\n" in mount.document()
