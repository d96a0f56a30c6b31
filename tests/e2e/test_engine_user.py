# SPDX-License-Identifier: Apache-2.0
"""The engine has its own user: it owns no file of root, and it can use everything that an earlier engine left, whatever
user that ran as.
"""
import contextlib
import errno
import json
import os
import pwd
import signal
import stat
import subprocess
import time

import pytest

import lkgfs_container as container
import lkgfs_testlib as lib
from lkgfs_deadfs import DeadFs
from lkgfs_inject import Injected
from lkgfs_worker import Worker
from test_isolation import RUNTIME_FD, SOURCE_FD, STATE_FD, check_engine_works, die_of, inject, proc, status_of
from test_survival import Load, check_reports, load_reader, load_status

USER, OTHER = 61234, 61235
NOBODY = pwd.getpwnam("nobody")
UNKNOWN = "no-such-user-of-lkgfs"
DAC_READ_SEARCH = 1 << 2
EX_NOPERM = 77
CONFIG = "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n"


def identities(pid):
    """Return (user, group, supplementary groups) of all its threads; real, effective, saved and file-system ids are the same."""
    found = set()
    for task in os.listdir(proc(pid, "task")):
        status = status_of(f"{pid}/task/{task}")
        users, groups = set(status["Uid"].split()), set(status["Gid"].split())
        assert len(users) == 1 and len(groups) == 1
        found.add((int(users.pop()), int(groups.pop()), status["Groups"].strip()))
    assert len(found) == 1
    return found.pop()


def engine(mount):
    """Return its user once it has dropped what it does not need; the engine may have been replaced meanwhile."""
    def confined():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, AssertionError):
            pid = mount.child("lkgfs-engine")
            return status_of(pid)["Seccomp"] == "2" and (identities(pid)[0],)
        return None
    return mount.wait_for(confined, "an engine that is confined")[0]


def owners(directory):
    """Return {user: names} of the entries of a directory, without those of lkgfsd and the file server."""
    found = {}
    for folder, folders, files in os.walk(directory):
        if folder == directory:
            folders[:] = [name for name in folders if not name.startswith("pinned")]
            files = [name for name in files if name != "lock" and not name.endswith((".pid", ".sock", "~tmp"))]
        for name in folders + files + ["."]:
            with contextlib.suppress(FileNotFoundError):  # the engine changes files there meanwhile
                st = os.lstat(os.path.join(folder, name))
                if stat.S_ISDIR(st.st_mode) or stat.S_ISREG(st.st_mode) and st.st_nlink == 1:
                    found.setdefault(st.st_uid, []).append(os.path.join(folder, name))
    return found


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def restart(mount, user, kill=False):
    if kill:
        mount.kill_supervisor()
    else:
        assert mount.stop() == 0
    mount.write_config({"engineUser": user})
    mount.start()


def private(mount):
    return os.path.join(mount.runtime, "private")


# ---- its identity ----

@pytest.mark.parametrize("user,uid,gid", [
    ("61234", 61234, 61234), (61235, 61235, 61235), ("nobody", NOBODY.pw_uid, NOBODY.pw_gid),
    ("root", 0, None), ("", 0, None), (0, 0, None), (UNKNOWN, 0, None),
])
def test_who_it_is(mounts, user, uid, gid):
    mount = mounts(config={"engineUser": user})
    assert engine(mount) == uid
    pid = mount.child("lkgfs-engine")
    if uid:
        assert identities(pid) == (uid, gid, "")
    status, kept = status_of(pid), DAC_READ_SEARCH if uid else 0
    assert {name: int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")} == {
        "CapPrm": kept, "CapEff": kept, "CapBnd": 0, "CapInh": 0, "CapAmb": 0}
    assert status["NoNewPrivs"] == "1"
    check_engine_works(mount, 51)


def test_a_user_that_there_is_not_is_said(mounts):
    """If it is configured: in the log, as a finding and by `lkgfs doctor`; serving continues."""
    mount = mounts(config={"engineUser": UNKNOWN})
    text = f"and not as engineUser {UNKNOWN}: there is no such user in /etc/passwd"
    assert mount.log().count(text) == 1
    assert mount.condition()[0] == "True" and "LKG3022" in mount.status("findings")
    result = mount.tool("doctor")
    assert result.returncode == 1 and UNKNOWN.encode() in result.stdout
    mount.reload()
    mount.sync()
    assert mount.log().count(text) == 1
    mount.write_config()
    mount.reload()
    mount.wait_for(lambda: "LKG3022" not in mount.status("findings"), "the finding ends")
    assert engine(mount) == USER
    assert b"engineUser" not in mount.tool("doctor").stdout


def test_the_users_of_the_machine(tmp_path):
    """The default is `lkgfs`, if that user exists: a reload is enough when it is added later."""
    with Worker("engine-user", tmp_path / "worker") as worker:
        config = CONFIG + "engineTimeout: 10s\n"
        worker.write("/etc/lkgfs/config.yaml", config, 0o644)
        worker.write("/etc/kubernetes/kubelet.conf", lib.BASE)
        passwd = worker.path("/etc/passwd")
        lines = [line for line in lib.read_file(passwd).decode().splitlines(True) if not line.startswith("lkgfs:")]
        lib.write_file(passwd, "".join(lines))
        enter = ["nsenter", "--target", str(worker.pid), "--mount", "--uts", "--pid", "--"]
        with open(worker.path("/etc/log"), "wb") as log, subprocess.Popen(
                [*enter, lib.LKGFSD, "/etc/kubernetes"], stdout=log, stderr=log, cwd="/", start_new_session=True,
                env={**os.environ, "LKGFS_SYSCALLS": "kill"}) as entered, contextlib.ExitStack() as stack:
            def text():
                return lib.read_file(worker.path("/etc/log")).decode()

            def until(what):
                end = lib.deadline()
                while not what():
                    assert entered.poll() is None and time.monotonic() < end, text()
                    time.sleep(0.02)

            def uid():
                for pid in children(daemon):
                    with contextlib.suppress(OSError, KeyError):
                        if os.readlink(proc(pid, "exe")).endswith("lkgfs-engine"):
                            return int(status_of(pid)["Uid"].split()[0]) if status_of(pid)["Seccomp"] == "2" else None
                return None

            stack.callback(entered.kill)  # not waited for when a check fails
            until(lambda: "serving /etc/kubernetes" in text())
            daemon = children(entered.pid)[0]
            assert "and not as engineUser lkgfs: there is no such user" in text()
            assert uid() == 0
            doctor = lib.run(*enter, lib.LKGFS, "doctor")
            assert doctor.returncode == 0 and doctor.stdout.count(b"note: the engine runs as root") == 1, doctor
            lib.write_file(passwd, "".join(lines) + "lkgfs:x:61300:61301:lkgfs engine:/nonexistent:/usr/sbin/nologin\n")
            os.kill(daemon, signal.SIGHUP)
            until(lambda: uid() == 61300)
            st = os.stat(worker.path("/var/lib/lkgfs"))
            assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (61300, 61301, 0o700)
            assert os.stat(worker.path("/run/lkgfs")).st_uid == 0
            until(lambda: b"note" not in lib.run(*enter, lib.LKGFS, "doctor").stdout)
            os.kill(daemon, signal.SIGTERM)
            assert entered.wait(lib.TIMEOUT_S) == 0


def test_another_one_after_a_reload(mount):
    """No reader notices; a reload that does not change the user leaves the engine alone."""
    load = Load(mount, [load_reader, load_status])
    try:
        generation, pid = mount.generation(), mount.child("lkgfs-engine")
        mount.reload()
        mount.sync()
        assert mount.child("lkgfs-engine") == pid
        for user in (OTHER, "root", USER):
            mount.write_config({"engineUser": user})
            mount.reload()
            wanted = 0 if user == "root" else user
            mount.wait_for(lambda uid=wanted: engine(mount) == uid, f"user {user}")
            assert list(owners(mount.state)) == [wanted] and list(owners(private(mount))) == [wanted]
            mount.sync()
            assert mount.generation() == generation
        check_engine_works(mount, 52)
        check_reports(load.report())
    finally:
        load.abandon()


def test_what_it_makes_is_its_own_at_once(mounts):
    """It changes to that user before it creates or locks anything: under AppArmor and SELinux root may not write to other users'
    directories.
    """
    mount = mounts()  # a new state directory, so that nothing in it was handed over before
    assert engine(mount) == USER
    assert set(owners(mount.state)) == {USER}, owners(mount.state)
    assert os.stat(os.path.join(mount.state, "store.lock")).st_uid == USER


def test_the_next_one_is_the_same(mount):
    for n in range(3):
        pid = mount.kill_child("lkgfs-engine")
        mount.wait_for(lambda old=pid: mount.children().get("lkgfs-engine", old) != old, "another engine")
        assert engine(mount) == USER
        check_engine_works(mount, 60 + n)


# ---- what it is allowed to do ----

def test_configuration_that_only_root_may_look_at(mounts):
    """Even if a program checks first whether there is a file: access(2) does so without the capability."""
    mount = mounts(start=False)
    assert stat.S_IMODE(os.stat(mount.root).st_mode) == 0o700
    os.mkdir(os.path.join(mount.root, "config.d"), 0o700)
    lib.write_file(os.path.join(mount.root, "config.d", "10-x.conf"), "components: [{name: kubelet, aliases: [kubelet.yaml]}]\n", 0o600)
    mount.start()
    assert engine(mount) == USER and "kubelet.yaml" in os.listdir(mount.mountpoint)


def test_what_only_root_may_read_it_reads(mount):
    """A base and drop-ins that only root may read, in directories that only root may enter."""
    assert stat.S_IMODE(os.stat(mount.behind("kubelet.conf")).st_mode) == 0o600
    mount.drop("70-root.conf", "maxPods: 71\n")
    os.chmod(mount.path("kubelet.conf.d/70-root.conf"), 0o600)
    os.chmod(mount.path("kubelet.conf.d"), 0o700)
    mount.sync()
    mount.wait_for(lambda: "maxPods: 71" in mount.document(), "a drop-in of 0600 in a directory of 0700")
    with Injected(mount.child("lkgfs-engine")) as process:
        fd = process.call("openat", -100, "/etc/shadow", os.O_RDONLY, 0)
        assert fd >= 0 and process.call("close", fd) == 0


def owner_of_layer(mount, uid):
    target = mount.behind("kubelet.conf.d", "target")
    lib.write_file(target, lib.HEADER + "maxPods: 72\n", 0o644)
    os.chown(target, uid, uid)
    os.symlink("target", mount.behind("kubelet.conf.d", "72-link.conf"))


@pytest.mark.parametrize("uid", [USER, OTHER])
def test_what_is_its_own_it_does_not_trust(mount, uid):
    """Symlinks of layers may lead to root's files only, not to files of another user, and the engine's user is such a user."""
    owner_of_layer(mount, uid)
    mount.sync()
    mount.wait_for(lambda: "72-link.conf" in mount.status("findings"), "the link is told of")
    assert "maxPods: 72" not in mount.document() and "not owned by root" in mount.status("findings")


def test_a_link_to_what_is_roots(mount):
    owner_of_layer(mount, 0)
    mount.sync()
    mount.wait_for(lambda: "maxPods: 72" in mount.document(), "a link to a file of root's")


# ---- what it is not allowed to do ----

@pytest.mark.parametrize("name,arguments,error", [
    # lkgfsd's own files, in the two directories that it may write to
    ("openat", (STATE_FD, "lock", os.O_WRONLY, 0), errno.EACCES),
    ("openat", (STATE_FD, "lock", os.O_WRONLY | os.O_TRUNC, 0), errno.EACCES),
    ("fchmodat", (STATE_FD, "lock", 0o666), errno.EPERM),
    ("fchownat", (STATE_FD, "lock", USER, USER, 0), errno.EPERM),
    ("openat", (RUNTIME_FD, "lock", os.O_WRONLY, 0), errno.EACCES),
    ("fchmodat", (RUNTIME_FD, "lock", 0o666), errno.EPERM),
    ("openat", (RUNTIME_FD, "pinned/x", os.O_WRONLY | os.O_CREAT, 0o600), errno.EACCES),
    # it cannot change the owner of its own files
    ("fchownat", (STATE_FD, ".", 0, 0, 0), errno.EPERM),
    # it cannot become root again
    ("setresuid", (0, 0, 0), errno.EPERM),
    ("setuid", (0,), errno.EPERM),
    ("setgroups", (0, 0), errno.EPERM),
])
def test_what_it_may_not(shared, name, arguments, error):
    pid = shared.child("lkgfs-engine")
    assert inject(shared, name, *arguments) == -error
    check_engine_works(shared, 80)
    assert shared.child("lkgfs-engine") == pid


@pytest.mark.parametrize("name,arguments", [
    # with its capability it could open any file of a mount by its handle, whatever the modes of directories
    ("open_by_handle_at", (STATE_FD, 0, os.O_RDONLY)),
    ("capset", (0, 0)),
    ("mknodat", (STATE_FD, "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))),
])
def test_what_ends_it(mount, name, arguments):
    pid = mount.child("lkgfs-engine")
    die_of(mount, "lkgfs-engine", name, arguments)
    mount.may_crash = ("lkgfs-engine",)
    mount.wait_for(lambda: mount.children().get("lkgfs-engine", pid) != pid, "another engine")
    assert not os.path.lexists(os.path.join(mount.state, "device"))
    check_engine_works(mount, 53)


def as_it_is(action):
    """Return what a process with the engine's ids and its capability gets, without its other restrictions: 0 or an errno."""
    script = f"import os, sys\ntry:\n    {action}\nexcept OSError as error:\n    sys.exit(error.errno)\n"
    return lib.run("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", "--inh-caps=-all,+dac_read_search",
                   "--ambient-caps=-all,+dac_read_search", "--bounding-set=-all,+dac_read_search", "python3", "-c", script).returncode


def test_the_user_alone_holds_it(mount):
    """Without read-only mounts, the system call filter and Landlock, it could still not change anything of root's, nor touch
    root's processes.
    """
    base, pid = os.path.join(mount.root, "a-file-of-roots"), mount.process.pid
    lib.write_file(base, "x", 0o644)
    assert as_it_is(f"open({base!r}).read()") == 0 and as_it_is("open('/etc/shadow').read()") == 0
    for action, error in ((f"open({base!r}, 'a')", errno.EACCES), (f"os.chmod({base!r}, 0o666)", errno.EPERM),
                          (f"os.unlink({base!r})", errno.EACCES), (f"os.kill({pid}, 0)", errno.EPERM),
                          (f"os.kill({mount.child('lkgfs-fs')}, 9)", errno.EPERM),
                          (f"open('/proc/{pid}/mem', 'rb')", errno.EACCES), (f"os.readlink('/proc/{pid}/root')", errno.EACCES),
                          (f"os.chown({base!r}, {USER}, {USER})", errno.EPERM), (f"open({mount.config_path!r}, 'a')", errno.EACCES),
                          (f"os.setxattr({mount.state!r}, 'trusted.lkgfs.engine', b'{OTHER}')", errno.EPERM)):
        assert as_it_is(action) == error, action


def test_what_it_leaves_is_nobodys_way_to_root(mount):
    """A set-user-ID program that it created runs as its user, and loses the bit when the directory is given back to root."""
    with Injected(mount.child("lkgfs-engine")) as process:
        fd = process.call("openat", STATE_FD, "program", os.O_WRONLY | os.O_CREAT, 0o700)
        assert fd >= 0 and process.call("close", fd) == 0
        assert process.call("fchmodat", STATE_FD, "program", 0o6755) == 0
    path = os.path.join(mount.state, "program")
    assert os.stat(path).st_uid == USER
    restart(mount, "root")
    st = os.stat(path)
    assert st.st_uid == 0 and stat.S_IMODE(st.st_mode) == 0o755


# ---- who owns the directories ----

@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_from_root_to_a_user_and_back(mounts, kill):
    """The next engine continues with what the previous one wrote: the history, a hold, the numbers; lkgfsd's own files stay root's."""
    mount = mounts(config={"engineUser": "root"})
    mount.drop("50-x.conf", "maxPods: 50\n")
    mount.command("hold", "on\n")
    generation, began = mount.generation(), os.listdir(mount.state)
    assert list(owners(mount.state)) == [0] and list(owners(private(mount))) == [0]
    for user in (USER, OTHER, "nobody", UNKNOWN, OTHER, USER):
        restart(mount, user, kill)
        uid = {"nobody": NOBODY.pw_uid, UNKNOWN: 0}.get(user, user)
        mount.wait_for(lambda wanted=uid: engine(mount) == wanted, f"user {uid}")  # the previous engine may not have ended yet
        assert list(owners(mount.state)) == [uid] and list(owners(private(mount))) == [uid]
        assert os.stat(os.path.join(mount.state, "lock")).st_uid == 0 and os.stat(mount.runtime).st_uid == 0
        assert mount.generation() == generation and "held at" in mount.status("condition")
        assert set(began) <= set(os.listdir(mount.state))
    mount.command("hold", "off\n")
    check_engine_works(mount, 54)
    assert mount.generation() > generation


def test_it_takes_nothing_that_is_not_its_own(mounts):
    """Symlinks, files with further hard links, other mounts and special files keep their owner."""
    mount = mounts(config={"engineUser": "root"})
    assert mount.stop() == 0
    outside = os.path.join(mount.root, "outside")
    os.makedirs(os.path.join(outside, "folder"))
    for name in ("file", "folder/file", "linked"):
        lib.write_file(os.path.join(outside, name), "x", 0o600)
    inside = os.path.join(mount.state, "planted")
    os.makedirs(os.path.join(inside, "mounted"))
    os.symlink(os.path.join(outside, "file"), os.path.join(inside, "link"))
    os.symlink(os.path.join(outside, "folder"), os.path.join(inside, "link-to-folder"))
    os.symlink(outside, os.path.join(mount.state, "link-at-the-top"))
    os.link(os.path.join(outside, "linked"), os.path.join(inside, "other-name"))
    os.mkfifo(os.path.join(inside, "fifo"))
    os.mknod(os.path.join(inside, "device"), stat.S_IFCHR | 0o600, os.makedev(1, 3))
    lib.write_file(os.path.join(inside, "plain"), "x", 0o600)
    lib.shell(f"mount --bind {outside} {inside}/mounted")
    try:
        mount.write_config()
        mount.start()
        assert engine(mount) == USER
        assert os.stat(os.path.join(inside, "plain")).st_uid == USER
        for folder, folders, files in os.walk(outside):
            for name in [*folders, *files, "."]:
                assert os.lstat(os.path.join(folder, name)).st_uid == 0, name
        for name in ("link", "link-to-folder", "other-name", "fifo", "device"):
            assert os.lstat(os.path.join(inside, name)).st_uid == 0, name
        check_engine_works(mount, 55)
    finally:
        lib.shell(f"umount {inside}/mounted")


def test_a_directory_of_a_user_that_is_none_of_ours(mounts):
    """The previous owner is recorded where only root can write: a directory of any other user is refused."""
    mount = mounts()
    assert mount.stop() == 0
    os.chown(mount.state, OTHER, OTHER)
    result = lib.run(lib.LKGFSD, "--config", mount.config_path, mount.mountpoint)
    assert result.returncode == EX_NOPERM and str(OTHER).encode() in result.stderr and b"engineUser" in result.stderr
    os.chown(mount.state, 0, 0)
    mount.start()
    assert engine(mount) == USER and list(owners(mount.state)) == [USER]


def test_what_was_restored_by_root_is_its_own_again(mount):
    """A backup that root unpacked, and a note that an earlier lkgfsd made, are handed over before the engine reads them."""
    assert mount.stop() == 0
    lib.shell(f"chown -R root:root {mount.state}")
    mount.start()
    assert list(owners(mount.state)) == [USER]
    assert engine(mount) == USER and mount.condition()[0] == "True"
    note = os.path.join(private(mount), "judging")
    os.chown(note, 0, 0)
    pid = mount.kill_child("lkgfs-engine")
    mount.wait_for(lambda: mount.children().get("lkgfs-engine", pid) != pid, "another engine")
    check_engine_works(mount, 56)
    assert os.stat(note).st_uid == USER


def test_a_state_directory_that_cannot_be_written(mounts):
    """It cannot be handed over either: what it holds is served, as before."""
    mount = mounts(config={"engineUser": "root"})
    mount.drop("50-x.conf", "maxPods: 57\n")
    assert mount.stop() == 0
    lib.shell(f"mount --bind {mount.state} {mount.state} && mount -o remount,bind,ro {mount.state}")
    try:
        mount.write_config()
        mount.start()
        assert engine(mount) == USER and "maxPods: 57" in mount.document()
        assert "hand the state directory" not in mount.log()
    finally:
        mount.stop()
        lib.shell(f"umount {mount.state}")


@pytest.mark.parametrize("capability", ["setuid", "dac_read_search"])
def test_where_it_cannot_be_changed(mounts, capability):
    """In a container without CAP_SETUID the engine runs as root, and the log says so; who reads the configuration is root, too."""
    mount = mounts(start=False)
    os.chmod(mount.config_path, 0o600)
    script = f"exec setpriv --bounding-set=-{capability} " + " ".join([str(lib.LKGFSD), "--config", mount.config_path, mount.mountpoint])
    with open(mount.log_path, "ab") as log:
        mount.process = subprocess.Popen(["/bin/sh", "-c", script], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                                         start_new_session=True)
    end = lib.deadline()
    while "lkgfsd: serving" not in mount.log():
        assert time.monotonic() < end and mount.process.poll() is None, mount.log()
        time.sleep(0.02)
    assert "lkgfsd may not change to it" in mount.log()
    assert engine(mount) == 0
    check_engine_works(mount, 58)


@pytest.mark.parametrize("options,uid", [("", 0), (",allow_other", 0), (",allow_other,default_permissions", USER)])
def test_a_source_directory_that_asks_elsewhere(mounts, options, uid):
    """A server decides on access to root's files, and no capability here changes that: the engine stays root."""
    mount = mounts(over=False, start=False, tree=lambda path, **_: os.mkdir(path))
    with DeadFs(mount.source, {"kubelet.conf": lib.HEADER + "maxPods: 44\n"}, options):
        mount.start()
        try:
            assert engine(mount) == uid and "maxPods: 44" in mount.document()
            assert ("a server decides who may read and write" in mount.log()) == (uid == 0)
        finally:
            mount.stop()


# ---- without a user of its own ----

def test_without_a_user_everything_works(mounts):
    """uid 0 with all the other restrictions, as on a node whose package created no user."""
    mount = mounts(config={"engineUser": "root"})
    assert engine(mount) == 0
    for name, arguments, error in (("openat", (-100, "/etc/lkgfs-was-here", os.O_WRONLY | os.O_CREAT, 0o600), errno.EROFS),
                                   ("openat", (-100, "/etc/shadow", os.O_WRONLY, 0), errno.EROFS),
                                   ("openat", (SOURCE_FD, "kubelet.conf", os.O_WRONLY, 0), errno.EROFS),
                                   ("socket", (1, 1, 0), errno.EAFNOSUPPORT), ("kill", (1, 0), errno.EPERM),
                                   ("openat", (STATE_FD, "../" * 9 + "etc/passwd", os.O_RDONLY, 0), errno.ENOENT)):
        assert inject(mount, name, *arguments) == -error
    check_engine_works(mount, 59)
    assert mount.tool("doctor").returncode == 0
    assert json.loads(mount.tool("doctor", "-o", "json").stdout)["problems"] == []


def test_as_root_it_changes_no_mode_owner_or_time(mounts):
    """Even on a file system that was mounted after the engine had started, which is not read-only for it: uid 0 would own all of
    root's files.
    """
    mount = mounts(config={"engineUser": "root"})
    later = os.path.join(mount.root, "later")
    os.mkdir(later)
    container.mount("tmpfs", later, "tmpfs")
    try:
        path = os.path.join(later, "file")
        lib.write_file(path, "x", 0o600)
        before = os.stat(path)
        with Injected(mount.child("lkgfs-engine")) as process:
            for name, arguments in (("fchmodat", (-100, path, 0o4777)), ("fchownat", (-100, path, 1, 1, 0)), ("utimensat", (-100, path, 0, 0))):
                assert process.call(name, *arguments) == -errno.EPERM, name
            fd = process.call("openat", -100, path, os.O_RDONLY, 0)
            if fd >= 0:
                assert process.call("fchmod", fd, 0o4777) == -errno.EPERM
        assert os.stat(path)[:7] == before[:7] and os.stat(path).st_mtime_ns == before.st_mtime_ns
    finally:
        container.umount(later)
