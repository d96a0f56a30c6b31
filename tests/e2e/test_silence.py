# SPDX-License-Identifier: Apache-2.0
"""An engine that is dead, stopped or hung, and helpers that are missing: readers of the status are told, and no caller waits twice.

Rule: docs/specification.md 2.14.
"""
import concurrent.futures
import contextlib
import errno
import json
import mmap
import os
import pathlib
import re
import struct
import signal
import time

import pytest

import lkgfs_inject
import lkgfs_testlib as lib
from lkgfs_engine import StandIn

SILENT = re.compile(r"Unknown engine not answering since (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ): (using .*)\n")
SLOW = {"engineTimeout": "20s"}  # the watchdog waits a second longer: the test has ended by then


def status_line(mount):
    """Has the service manager been told that the engine does not answer?"""
    return any("engine not answering since" in value for fields in mount.notify.messages for value in fields.values())


def sample(text, name, **labels):
    """Return the value of one sample of a metrics file."""
    for line in text.splitlines():
        match = re.fullmatch(rf"{name}{{(.*)}} (\S+)", line)
        if match and all(f'{key}="{value}"' in match[1].split(",") for key, value in labels.items()):
            return float(match[2])
    raise AssertionError(f"no sample {name} {labels} in\n{text}")


def silent(mount):
    return SILENT.fullmatch(mount.status("condition"))


def check_told(mount, using):
    """All four files agree."""
    since, said = silent(mount).groups()
    assert said == using
    condition = json.loads(mount.status("condition.json"))
    assert condition["type"] == "ConfigOK" and condition["status"] == "Unknown"
    assert condition["reason"] == f"engine not answering since {since}"
    assert condition["message"] == using
    assert condition["lastTransitionTime"] == since
    assert condition["lastHeartbeatTime"] <= since
    assert mount.status("error").startswith(f"engine not answering since {since}")
    metrics = mount.status("metrics.prom")
    assert sample(metrics, "lkgfs_engine_up", component="kubelet") == 0
    assert sample(metrics, "lkgfs_condition_ok", component="kubelet") == 0
    assert sample(metrics, "lkgfs_heartbeat_timestamp_seconds") > 0


def check_well(mount):
    mount.wait_for(lambda: mount.condition()[0] == "True", "the engine is back")
    assert mount.status("error") == ""
    metrics = mount.status("metrics.prom")
    assert sample(metrics, "lkgfs_engine_up", component="kubelet") == 1
    assert sample(metrics, "lkgfs_condition_ok", component="kubelet") == 1
    heartbeat = sample(metrics, "lkgfs_heartbeat_timestamp_seconds")
    assert abs(heartbeat - time.time()) < 30
    assert json.loads(mount.status("condition.json"))["status"] == "True"


def test_healthy_files(mount):
    condition = json.loads(mount.status("condition.json"))
    assert list(condition)[:6] == ["schemaVersion", "type", "status", "reason", "message", "lastTransitionTime"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", condition["lastHeartbeatTime"])
    metrics = mount.status("metrics.prom")
    for process in ("lkgfsd", "lkgfs-engine", "lkgfs-fs", "lkgfs-notify"):
        assert sample(metrics, "lkgfs_process_up", component="kubelet", process=process) == 1
    check_well(mount)
    assert os.stat(mount.path("status/kubelet/metrics.prom")).st_size == len(mount.status("metrics.prom"))


def test_stopped_engine_is_told_at_the_first_look(mounts):
    """Nothing was asked for yet: the first reader, a second after the stop, is told already."""
    mount = mounts(config=SLOW)
    using = mount.condition()[1].rpartition(": ")[2]
    document = mount.document()
    lib.stop_process(mount.child("lkgfs-engine"))
    with mount.notify.changed:  # the supervisor has noticed by itself
        assert mount.notify.changed.wait_for(lambda: status_line(mount), lib.TIMEOUT_S)
    assert silent(mount), mount.status("condition")
    check_told(mount, using)
    assert mount.document() == document


FOREIGN = [  # contents that the engine's condition.json may have, and its members that are kept
    ('{"schemaVersion":1,"type":"ConfigOK","status":"True","reason":"r","message":"a\\u202e\\u001b\\"\\\\/\\n\\u0000é","more":[]}',
     None),
    ('{"schemaVersion":1,"type":"ConfigOK","status":"True","reason":"r","message":"a\\u202e\\u001b\\"\\\\/\\né","n":18446744073709551615}',
     {"message": 'a\u202e\x1b"\\/\né', "n": 2 ** 64 - 1}),
    ("", None), ("[]\n", None), ("{", None), ('{"message":"\xff"}'.encode("latin-1"), None), ("[" * 70000, None),
    ('{"message":"' + "x" * 70000 + '"}\n', None),
    ('{"message":"}{\\"status\\":","status":"False"}\n', {"message": '}{"status":'}),
]


def test_silence_over_whatever_the_engine_wrote(mounts):
    """The file server replaces members of an object that another process wrote, and never fails on it."""
    engine = StandIn(mounts)
    try:
        engine.start()
        for i, (text, members) in enumerate(FOREIGN):
            engine.status = {"condition": "True r: m\n", "condition.json": text, "round": str(i)}
            while not engine.peers:
                engine.look(0.1)
            engine.publish()
            engine.mount.wait_for(lambda: silent_stand_in(engine, i), "the file server tells of the silence")
            data = pathlib.Path(engine.mount.path("status/kubelet/condition.json")).read_bytes()
            told = json.loads(data)
            assert told.get("type") == "ConfigOK" or members is not None
            assert told["status"] == "Unknown" and told["reason"].startswith("engine not answering since ")
            for name, value in (members or {}).items():
                assert told[name] == value
            assert not any(ord(c) < 0x20 or c in "\x7f\u202e" for c in data.decode()[:-1]) and data.endswith(b"\n")
            line = engine.mount.status("condition")
            assert not any(ord(c) < 0x20 or c in "\x7f\u202e" for c in line[:-1]) and line.endswith("\n")
    finally:
        engine.close()


def silent_stand_in(engine, i):
    """It receives nothing, so it answers nothing."""
    try:
        return (engine.mount.status("round") == str(i)
                and engine.mount.status("condition").startswith("Unknown engine not answering"))
    except FileNotFoundError:
        return False  # the publication is not loaded yet


def test_tool_says_it(mounts):
    mount = mounts(config=SLOW)
    assert mount.tool("npd", "--check", "processes").returncode == 0
    lib.stop_process(mount.child("lkgfs-engine"))
    mount.wait_for(lambda: silent(mount), "it is told")
    doctor = mount.tool("doctor")
    assert doctor.returncode == 1 and b"error: kubelet: Unknown engine not answering since " in doctor.stdout
    status = mount.tool("status")
    assert status.returncode == 1 and b"kubelet: Unknown engine not answering since " in status.stdout
    told = json.loads(mount.tool("status", "-o", "json").stdout)["components"][0]
    assert told["condition"]["status"] == "Unknown"
    npd = mount.tool("npd")
    assert npd.returncode == 2 and npd.stdout.startswith(b"engine not answering since ")
    npd = mount.tool("npd", "--check", "processes")
    assert npd.returncode == 1 and npd.stdout.startswith(b"engine not answering since ")
    gate = mount.tool("gate", "kubelet")
    assert gate.returncode == 1 and b"the engine does not answer" in gate.stderr
    held = mount.tool("hold", "on")
    assert held.returncode == 2 and b"the engine does not answer; this is not carried out" in held.stderr


def monitor_results(mount):
    """What node-problem-detector would report: the monitor's rules, called as it calls them (custom plugin protocol)."""
    text = (lib.REPOSITORY / "contrib/node-problem-detector/lkgfs-monitor.json.in").read_text(encoding="utf-8")
    monitor = json.loads(text.replace("@bindir@/lkgfs", str(lib.LKGFS)))
    results = {}
    for rule in monitor["rules"]:
        done = lib.run(rule["path"], *rule["args"], timeout=float(rule["timeout"].rstrip("s")),
                       env={**os.environ, "LKGFS_MOUNTPOINT": mount.mountpoint})
        line = done.stdout.decode("ascii")
        assert line.endswith("\n") and len(line) <= monitor["pluginConfig"]["max_output_length"] + 1
        results[rule["reason"]] = ({0: "OK", 1: "NonOK"}.get(done.returncode, "Unknown"), line.strip())
    return results


def test_node_problem_detector(mounts):
    mount = mounts(config=SLOW)
    assert {state for state, _ in monitor_results(mount).values()} == {"OK"}
    lib.stop_process(mount.child("lkgfs-engine"))
    mount.wait_for(lambda: silent(mount), "it is told")
    results = monitor_results(mount)
    assert results["KubeletConfigRefused"][0] == "Unknown" and results["KubeletConfigNotServed"][0] == "OK"
    assert results["LkgfsProcessMissing"][0] == "NonOK"
    assert results["LkgfsProcessMissing"][1].startswith("engine not answering since ")


@pytest.mark.parametrize("name", ["lkgfs-engine", "lkgfs-notify", "lkgfs-fs"])
def test_what_ends_again_and_again(mounts, name):
    """It is started again each time, so it is up whenever somebody looks: counted, and told."""
    mount = mounts()
    total = f'lkgfs_process_restarts_total{{component="kubelet",process="{name}"}}'
    for i in range(5):
        assert f"{total} {i}\n" in mount.status("metrics.prom")
        mount.kill_child(name)
        mount.wait_for(lambda n=i + 1: f"{total} {n}\n" in mount.status("metrics.prom"), "it is counted")
        if i == 2:
            mount.wait_for(lambda: mount.tool("doctor").returncode == 0, "it is there again, and that is all")
    text = f"{name} ended 5 times within a minute, the last time: killed by SIGKILL".encode()
    doctor, status, npd = mount.tool("doctor"), mount.tool("status"), mount.tool("npd", "--check", "processes")
    assert doctor.returncode == 1 and b"warning: " + text in doctor.stdout
    assert status.returncode == 1 and text in status.stdout
    assert npd.returncode == 1 and npd.stdout.startswith(text)


@pytest.mark.limit(60)
def test_gate_waits_for_a_successor(mounts):
    mount = mounts(config={"engineTimeout": "1s"})
    lib.stop_process(mount.child("lkgfs-engine"))
    mount.wait_for(lambda: silent(mount), "it is told")
    assert mount.tool("gate", "kubelet").returncode == 0


def until_it_rests(mount):
    """Wait until lkgfsd checks the engine only once a minute. Nothing here uses the view, which would wake it."""
    end = lib.deadline()
    pauses = [0]
    while min(pauses) < 10:
        assert time.monotonic() < end, "it never rests"
        time.sleep(0.05)
        pauses = [0]
        with contextlib.suppress(FileNotFoundError):  # the descriptor was closed meanwhile
            pauses = [int(seconds) for info in pathlib.Path(f"/proc/{mount.process.pid}/fdinfo").iterdir()
                      for seconds in re.findall(r"^it_value: \((\d+),", info.read_text(), re.M)]


@contextlib.contextmanager
def must_end(pid, seconds, otherwise):
    """The process must end in time after the block."""
    fd = os.pidfd_open(pid)
    try:
        yield
        assert lib.select.select([fd], [], [], seconds)[0], otherwise
    finally:
        os.close(fd)


@pytest.mark.limit(60)
def test_stopped_engine_is_replaced(mount):
    """engineTimeout and a second after the last answer, even if nobody looks."""
    engine = mount.child("lkgfs-engine")
    with must_end(engine, 20, "it stays stopped"):
        lib.stop_process(engine)
        began = time.monotonic()
    assert 2 < time.monotonic() - began < 10
    mount.drop("50-a.conf", "maxPods: 81\n")
    mount.wait_for(lambda: "\nmaxPods: 81\n" in mount.document())
    check_well(mount)
    assert "has answered nothing for 3 s: killed and replaced" in mount.log()


@pytest.mark.limit(60)
def test_engine_in_an_endless_loop_is_replaced(mount):
    """On an idle node nothing waits for the engine: lkgfsd notices the loop by the processor time that it uses."""
    engine = mount.child("lkgfs-engine")
    until_it_rests(mount)
    with must_end(engine, 30, "it loops for ever"):
        lkgfs_inject.spin(engine)
    check_well(mount)


@pytest.mark.limit(60)
def test_debugged_engine_is_told(mounts):
    """A ptrace stop, for which the parent gets no SIGCHLD."""
    mount = mounts(config=SLOW)
    with lkgfs_inject.Injected(mount.child("lkgfs-engine")):
        mount.wait_for(lambda: silent(mount), "it is told")
    check_well(mount)


@pytest.mark.limit(90)
def test_engine_that_cannot_start(mounts):
    """The back-off after early deaths: reported, and over as soon as it can start."""
    mount = mounts(config=SLOW, start=False)
    engine = mount.own_programs() / "core/engine/lkgfs-engine"
    mount.start()
    using = mount.condition()[1].rpartition(": ")[2]
    pid = mount.child("lkgfs-engine")
    engine.rename(engine.with_name("aside"))
    engine.write_text("#!/bin/sh\nexit 70\n", encoding="ascii")
    engine.chmod(0o700)
    lib.kill_and_wait(pid)
    mount.wait_for(lambda: silent(mount), "it cannot start")
    check_told(mount, using)
    began = time.monotonic()
    mount.drop("50-a.conf", "maxPods: 81\n")
    assert time.monotonic() - began < 2
    engine.with_name("aside").rename(engine)
    mount.wait_for(lambda: "\nmaxPods: 81\n" in mount.document())
    check_well(mount)


def test_engine_that_cannot_start_proves_nothing(mounts):
    """One was killed while it worked, and the next ones died before they read anything: no content is refused."""
    mount = mounts(config=SLOW, start=False)
    engine = mount.own_programs() / "core/engine/lkgfs-engine"
    mount.start()
    pid = mount.child("lkgfs-engine")
    engine.rename(engine.with_name("aside"))
    engine.write_text("#!/bin/sh\nexit 70\n", encoding="ascii")
    engine.chmod(0o700)
    lib.stop_process(pid)
    with open(os.path.join(mount.runtime, "private", "judging"), "r+b") as note:
        for offset, value in ((56, struct.pack("Q", 0)), (16, struct.pack("I", 1)), (8, struct.pack("Q", 1))):
            note.seek(offset)  # struct lkg_judging: nothing is known, one item, work has begun
            note.write(value)
    lib.kill_and_wait(pid)
    mount.wait_for(lambda: mount.log().count("exited with code 70") >= 3, "it cannot start")
    engine.with_name("aside").rename(engine)
    mount.wait_for(lambda: not silent(mount), "it can")
    check_well(mount)
    assert "LKG2030" not in mount.status("findings")


def test_service_manager_is_told(mounts):
    mount = mounts()
    lib.stop_process(mount.child("lkgfs-engine"))
    mount.wait_for(lambda: status_line(mount), "STATUS=")
    mount.wait_for(lambda: re.fullmatch(r"Serving \S+", mount.notify.messages[-1].get("STATUS", "")), "it is back")


COMMANDS = {"hold": "on\n", "rollback": "1\n", "try": "1h\n", "promote": "now\n"}


@pytest.mark.parametrize("name,how", [("hold", "continued"), ("hold", "killed"), ("hold", "replaced"), ("rollback", "continued"),
                                      ("try", "killed"), ("promote", "replaced")])
@pytest.mark.limit(60)
def test_refused_command_is_never_carried_out(mounts, name, how):
    mount = mounts(config={"engineTimeout": "300ms" if how != "replaced" else "1s"})
    mount.drop("50-a.conf", "maxPods: 70\n")
    generation = mount.generation()
    engine = mount.child("lkgfs-engine")
    lib.stop_process(engine)
    assert lib.error_of(mount.command, name, COMMANDS[name]) == errno.ETIMEDOUT
    mount.drop("50-a.conf", "maxPods: 71\n")
    if how == "continued":
        os.kill(engine, signal.SIGCONT)
    elif how == "killed":
        lib.kill_and_wait(engine)
    mount.wait_for(lambda: "\nmaxPods: 71\n" in mount.document(), "a changed file is state")
    status, rest = mount.condition()
    assert status == "True" and "held" not in rest and "try" not in rest, rest
    assert mount.generation() > generation
    mount.command("sync", "now\n")
    assert "True current is set" in mount.status("condition")
    assert f"'{name}' is not carried out" in mount.log()


def test_a_hold_is_told_while_the_engine_is_silent(mounts):
    """Its last message about the hold stays in the condition, and the hold in its file."""
    mount = mounts(config={"engineTimeout": "60s"})
    mount.command("hold", "on")
    mount.drop("50-a.conf", "maxPods: 70\n")
    words = mount.status("condition").rpartition("; held since ")[2]
    assert words
    lib.stop_process(mount.child("lkgfs-engine"))
    mount.wait_for(lambda: silent(mount), "it is told")
    assert mount.status("condition").startswith("Unknown engine not answering since ")
    assert mount.status("condition").endswith("; held since " + words)
    status = mount.tool("status").stdout.decode()
    assert re.search(r"\n  held +at generation \d+ \(hold\) since .*; a newer one waits\n", status)


@pytest.mark.parametrize("process", ["lkgfsd", "lkgfs-notify"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_missing_process_is_told(mounts, process, how):
    mount = mounts()
    if process == "lkgfs-notify":  # a running supervisor would start it again
        os.kill(mount.process.pid, signal.SIGSTOP)
    pid = mount.process.pid if process == "lkgfsd" else mount.child(process)
    if how == signal.SIGKILL:
        lib.kill_and_wait(pid)
    else:
        lib.stop_process(pid)
    metrics = mount.status("metrics.prom")
    assert sample(metrics, "lkgfs_process_up", process=process) == 0
    assert sample(metrics, "lkgfs_process_up", process="lkgfs-fs") == 1
    assert sample(metrics, "lkgfs_engine_up") == 1
    doctor, status = mount.tool("doctor"), mount.tool("status")
    assert doctor.returncode == 1 and f"error: {process} does not run: ".encode() in doctor.stdout
    assert status.returncode == 1 and process.encode() in status.stdout
    npd = mount.tool("npd", "--check", "processes")
    assert npd.returncode == 1 and process.encode() in npd.stdout
    assert mount.tool("gate", "kubelet").returncode == 0, "what is served is right, and starts are judged"


@pytest.mark.limit(60)
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "with work"])
def test_stopped_notifier_is_replaced(mounts, busy):
    """And its successor announces what the stopped one did not."""
    mount = mounts()
    old = mount.child("lkgfs-notify")
    with lib.Inotify() as inotify:
        wd = inotify.add(mount.path("kubelet.conf"), inotify.CLOSE_WRITE)
        until_it_rests(mount)
        while inotify.events(0):
            pass  # the first publication
        lib.stop_process(old)
        if busy:
            mount.drop("50-a.conf", "maxPods: 70\n")
        mount.wait_for(lambda: mount.children().get("lkgfs-notify", old) != old, "another notifier")
        assert f"notifier (pid {old}) was stopped for " in mount.log()
        if not busy:
            mount.drop("50-a.conf", "maxPods: 70\n")
        inotify.wait(lambda events: any(e[0] == wd and e[1] & inotify.CLOSE_WRITE for e in events))
    assert sample(mount.status("metrics.prom"), "lkgfs_process_up", process="lkgfs-notify") == 1
    check_well(mount)


@pytest.mark.limit(60)
def test_a_notifier_that_does_not_do_its_work_is_replaced(mounts):
    mount = mounts()
    old = mount.child("lkgfs-notify")
    with lib.Inotify() as inotify:
        wd = inotify.add(mount.path("kubelet.conf"), inotify.CLOSE_WRITE)
        until_it_rests(mount)  # the notifier is idle, too, in the one call where it waits
        while inotify.events(0):
            pass  # the first publication
        lkgfs_inject.spin(old)
        mount.drop("50-a.conf", "maxPods: 70\n")
        inotify.wait(lambda events: any(e[0] == wd and e[1] & inotify.CLOSE_WRITE for e in events))
    assert mount.child("lkgfs-notify") != old and f"notifier (pid {old}) has done nothing for " in mount.log()
    check_well(mount)


@pytest.mark.limit(60)
def test_engine_without_supervisor(mounts):
    """Nothing starts another engine then; the file server notices by itself."""
    mount = mounts(config={"engineTimeout": "1s"})
    using = mount.condition()[1].rpartition(": ")[2]
    engine = mount.child("lkgfs-engine")
    lib.kill_and_wait(mount.process.pid)
    lib.kill_and_wait(engine)
    began = time.monotonic()
    mount.drop("50-a.conf", "maxPods: 70\n")
    mount.drop("51-a.conf", "maxPods: 71\n")
    mount.drop("52-a.conf", "maxPods: 72\n")
    assert time.monotonic() - began < 3, "each waited for an engine that is not there"
    check_told(mount, using)
    assert sample(mount.status("metrics.prom"), "lkgfs_process_up", process="lkgfs-engine") == 0


def test_what_is_told_outlives_the_file_server(mounts):
    mount = mounts(config=SLOW)
    lib.stop_process(mount.child("lkgfs-engine"))
    since = mount.wait_for(lambda: silent(mount))[1]
    lib.kill_and_wait(mount.child("lkgfs-fs"))
    assert silent(mount)[1] == since


def test_below_a_virtual_directory(mounts):
    mount = mounts(config={**SLOW, "virtualDir": ".lkgfs"})
    assert sample(mount.status("metrics.prom"), "lkgfs_engine_up") == 1
    lib.stop_process(mount.child("lkgfs-engine"))
    mount.wait_for(lambda: silent(mount), "it is told")


def test_a_command_of_an_engine_that_died_in_the_middle_is_not_called_refused(mounts):
    """ETIMEDOUT means that it is never carried out. This engine had claimed it (include/lkg/messages.h) and may have carried it out."""
    mount = mounts(config={"engineTimeout": "5s"})
    engine, claims = mount.child("lkgfs-engine"), os.path.join(mount.runtime, "private", "claims")
    for pid in (mount.process.pid, engine):
        lib.stop_process(pid)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        writer = pool.submit(lib.error_of, mount.command, "hold", "on")
        with open(claims, "rb+") as file, mmap.mmap(file.fileno(), 0) as words:
            end = lib.deadline()
            while not any(words[8:]) and time.monotonic() < end:
                time.sleep(0.005)
            at = next(i for i in range(8, len(words), 8) if any(words[i:i + 8]))
            word = struct.unpack_from("=Q", words, at)[0]
            assert word & 3 == 1  # offered
            struct.pack_into("=Q", words, at, word + 1)
        lib.kill_and_wait(engine)
        # If the file server had not sent it yet, it waits 30 s for whoever has claimed it.
        assert writer.result(2 * lib.TIMEOUT_S) == errno.EIO
    os.kill(mount.process.pid, signal.SIGCONT)
    mount.sync()
    assert mount.condition()[0] == "True" and not mount.condition()[1].startswith("held"), "nor by the next engine"


def test_the_file_of_claims_is_there_before_an_engine(mounts):
    """And belongs to its user: if a file server made it meanwhile, it would be root's, and every command would come too late."""
    engine = StandIn(mounts)
    try:
        engine.start()
        assert os.stat(f"/proc/self/fd/{engine.runtime}/claims").st_uid == lib.ENGINE_USER_ID
    finally:
        engine.close()
