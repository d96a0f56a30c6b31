# SPDX-License-Identifier: Apache-2.0
"""A node's life with lkgfs, on a machine with systemd: installed, configured, used, restarted, killed, upgraded, rebooted, without power,
removed. One story: each test begins with what the one before has left."""
import contextlib
import json
import random
import re
import struct
import threading

import pytest

import lkgfs_testlib as lib
from laboratory import Failure

ETC = "/etc/kubernetes"
FILE = f"{ETC}/kubelet.conf"
UNIT = "lkgfs.service"
PROGRAMS = ("lkgfsd", "lkgfs-engine", "lkgfs-fs", "lkgfs-notify")
STAND_IN = "/run/kubelet-stand-in"
CONFIG = "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n"
# As kubeadm writes it: flags from two files, one of them missing.
KUBELET_UNIT = """[Unit]
Description=stands in for the kubelet

[Service]
Environment="KUBELET_CONFIG_ARGS=--config=/etc/kubernetes/kubelet.conf"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
Restart=always
RestartSec=200ms
StartLimitIntervalSec=0

[Install]
WantedBy=multi-user.target
"""


# ---- what the machine says ----

def served(machine, field):
    found = re.search(rf"^{field}: (.*)$", machine.output(f"cat {FILE}"), re.M)
    return found and found[1]


def mounts(machine):
    return machine.shell(f"findmnt --raw --noheadings --types {lib.FSTYPE} --output TARGET").stdout.split()


def processes(machine):
    """{program: pid} of the processes in the unit's control group."""
    script = f"for p in $(cat /sys/fs/cgroup/system.slice/{UNIT}/cgroup.procs); do echo $p $(readlink /proc/$p/exe); done"
    found = {}
    for line in machine.shell(script).stdout.splitlines():
        pid, _, path = line.partition(" ")
        if path:
            found[path.rpartition("/")[2]] = int(pid)
    return found


def all_there(machine):
    return set(processes(machine)) == set(PROGRAMS)


def wait_for(predicate, what, seconds=60):
    end = lib.deadline(seconds)
    while not predicate():
        if lib.time.monotonic() > end:
            raise Failure(f"waited in vain: {what}")


def property_of(machine, unit, name):
    return machine.output(f"systemctl show --property {name} --value {unit}").strip()


def drop_in(machine, pods, name="90-test.conf"):
    machine.write(f"{ETC}/kubelet.conf.d/{name}", f"{lib.HEADER}maxPods: {pods}\n")


def publishes(machine, pods):
    """A change is judged, published and read."""
    drop_in(machine, pods)
    machine.wait_until(f"grep -qx 'maxPods: {pods}' {FILE}")


def counts(machine):
    """What the stand-in for the kubelet has counted since the machine was booted."""
    data = machine.run("od", "-An", "-v", "-tx1", f"{STAND_IN}/counts", check=True).stdout
    return dict(zip(("reads", "unmerged", "failed", "last_errno", "starts"), struct.unpack("<5Q", bytes.fromhex("".join(data.split())))))


def started(machine):
    """What the engine has said about starts of the kubelet since the machine was booted."""
    return [line.partition(" started ")[2] for line in
            machine.output(f"journalctl -q -b -u {UNIT} -o cat --no-pager").splitlines() if re.match(r"kubelet started \(pid", line)]


def denials(machine):
    lines = machine.output("journalctl -q -b -o cat --no-pager _TRANSPORT=kernel + _TRANSPORT=audit").splitlines()
    return [line for line in lines if re.search(r'apparmor="(DENIED|ALLOWED)".*(lkgfs|kubelet)|audit.*(lost|suppressed)', line)]


@contextlib.contextmanager
def readers(machine):
    """The kubelet reads, three others read, list and look, one writes, all at full speed: no call fails, and each sees the merged file."""
    before = counts(machine)
    machine.put(lib.REPOSITORY / "tests/package/readers")
    machine.shell("rm -f /run/readers.*; mkfifo /run/readers.in", check=True)
    machine.run("systemd-run", "--quiet", "--collect", "--unit=readers", "bash", "-c",
                "exec python3 /root/readers <> /run/readers.in > /run/readers.out 2>&1", check=True)
    report = {}
    try:
        machine.wait_until("grep -qx ready /run/readers.out")
        yield report
        machine.shell("echo stop > /run/readers.in", check=True)
        machine.wait_until("grep -q '^{' /run/readers.out")
        report.update(json.loads(machine.output("tail -n 1 /run/readers.out")))
    finally:
        machine.shell("systemctl kill --signal=KILL readers.service; rm -f /run/readers.in")
    after = counts(machine)
    assert report["failed"] == [] and report["reads"] > 100 and report["writes"] > 1, report
    assert after["reads"] > before["reads"] and after["failed"] == before["failed"] and after["unmerged"] == before["unmerged"], (before, after)


# ---- installing ----

def test_it_is_a_debian_with_systemd_and_apparmor(machine):
    assert machine.run("systemctl", "is-system-running", "--wait", timeout=300).stdout == "running\n"
    assert machine.output("cat /sys/module/apparmor/parameters/enabled") == "Y\n"
    assert "cloud" in machine.output("uname -r")


def test_installing_enables_starts_and_mounts_nothing(machine, deb):
    machine.shell(f"mkdir -p {ETC}/kubelet.conf.d {ETC}/manifests {ETC}/pki", check=True)
    machine.write(FILE, lib.BASE)
    for name, text in lib.DROPINS.items():
        machine.write(f"{ETC}/kubelet.conf.d/{name}", text)
    before = machine.output(f"find {ETC} -printf '%p %s %T@\\n' | sort")
    machine.run("dpkg", "--install", machine.put(deb), check=True)
    assert machine.run("systemctl", "is-enabled", UNIT).stdout == "disabled\n"
    assert machine.run("systemctl", "is-active", UNIT).stdout == "inactive\n"
    assert mounts(machine) == [] and machine.output(f"find {ETC} -printf '%p %s %T@\\n' | sort") == before
    assert machine.output("getent passwd lkgfs").count("lkgfs") >= 1
    assert machine.output("stat --format=%a /run/lkgfs/view") == "755\n"


def test_the_profiles_are_enforced(machine):
    profiles = json.loads(machine.output("aa-status --json"))["profiles"]
    assert {name: mode for name, mode in profiles.items() if name.startswith("lkgfs")} == dict.fromkeys(("lkgfs", *PROGRAMS), "enforce")


def test_the_unit_is_one_that_systemd_understands(machine):
    result = machine.run("systemd-analyze", "verify", f"/lib/systemd/system/{UNIT}")
    assert result.returncode == 0 and UNIT not in result.stdout + result.stderr, result


# ---- configuring, as README.md says it ----

def test_step_1_beside(machine):
    machine.write("/etc/lkgfs/config.yaml", CONFIG + f"sourceDir: {ETC}\n")
    machine.shell(f"echo LKGFS_MOUNTPOINT=/run/lkgfs/view >> /etc/default/lkgfs && systemctl enable --now {UNIT}", check=True)
    assert mounts(machine) == ["/run/lkgfs/view"]
    assert "\npodPidsLimit: 4096\n" in machine.output("cat /run/lkgfs/view/kubelet.conf") and served(machine, "podPidsLimit") is None


def test_step_2_over(machine):
    machine.write("/etc/lkgfs/config.yaml", CONFIG)
    machine.shell(f"systemctl stop {UNIT} && rm /etc/default/lkgfs && systemctl enable --now {UNIT}", check=True)
    assert mounts(machine) == [ETC] and served(machine, "podPidsLimit") == "4096"


def test_the_kubelet_starts_with_the_view_and_is_recognised(machine):
    machine.write("/usr/bin/kubelet", (lib.BUILD / "tests/machine/kubelet-stand-in").read_bytes(), mode="755")
    machine.write("/etc/systemd/system/kubelet.service", KUBELET_UNIT)
    machine.shell("install -D -m 0644 /usr/share/lkgfs/kubelet.service.d/20-lkgfs.conf /etc/systemd/system/kubelet.service.d/20-lkgfs.conf && "
                  "systemctl daemon-reload && systemctl enable --now kubelet", check=True)
    machine.wait_until(f"test -s {STAND_IN}/read")
    assert "\npodPidsLimit: 4096\n" in machine.output(f"cat {STAND_IN}/read")
    pid = property_of(machine, "kubelet", "MainPID")
    machine.wait_until(f"grep -q '\"pid\": {pid}\\b\\|pid {pid}$\\|pid={pid}$' {ETC}/status/kubelet/process")
    wait_for(lambda: started(machine), "the log tells of the start")
    assert started(machine)[-1].startswith(f"(pid {pid})")


def test_every_process_is_confined_by_its_own_profile(machine):
    wait_for(lambda: all_there(machine), "all processes")
    for program, pid in processes(machine).items():
        expected = "lkgfsd (enforce)" if program == "lkgfsd" else f"{program}//&lkgfsd (enforce)"
        assert machine.output(f"cat /proc/{pid}/attr/current").strip("\0\n") == expected
    machine.run("systemd-run", "--quiet", "--collect", "--unit=watching", "lkgfs", "status", "--watch", check=True)
    pid = property_of(machine, "watching", "MainPID")
    label = machine.output(f"cat /proc/{pid}/attr/current")
    machine.run("systemctl", "stop", "watching", check=True)
    assert label.strip("\0\n") == "lkgfs (enforce)"


# ---- using ----

@pytest.mark.parametrize("command, status", [
    ("lkgfs status", 0), ("lkgfs doctor", 0), ("lkgfs history", 0), ("lkgfs check", 0), ("lkgfs render", 0), ("lkgfs render --effective", 0),
    ("lkgfs diff", 0), ("lkgfs diff --running", 0), ("lkgfs blame maxPods", 0), ("lkgfs explain LKG2003", 0), ("lkgfs drift", 0), ("lkgfs bad", 0),
    ("lkgfs gate kubelet", 0), ("lkgfs npd --check served", 0), ("mkdir -p /root/baked && lkgfs bake --output /root/baked", 0),
    ("lkgfs render > /root/merged.yaml && lkgfs check /root/merged.yaml", 0), ("lkgfs check /etc/lkgfs/config.yaml", 0),
    (f"find {ETC}/status {ETC}/bad {ETC}/lkg {ETC}/layers {ETC}/history -type f -readable -print0 | xargs -0 cat", 0),
    ("lkgfs sync", 0), ("lkgfs hold on && lkgfs hold off", 0), ("lkgfs try 5m && lkgfs commit", 0),
    (f"echo now > {ETC}/control/kubelet/sync", 0), (f"echo nonsense > {ETC}/control/kubelet/hold", 1)])
def test_the_tool_and_the_files_under_the_profile(machine, command, status):
    result = machine.shell(command)
    assert result.returncode == status, result


def test_a_drop_in_is_published_and_a_bad_one_is_not(machine):
    publishes(machine, 71)
    machine.write(f"{ETC}/kubelet.conf.d/60-bad.conf", "maxPods: [\n")
    machine.wait_until(f"grep -q 60-bad.conf {ETC}/status/kubelet/findings")
    assert served(machine, "maxPods") == "71" and machine.output(f"cat {ETC}/status/kubelet/condition").startswith("False ")
    machine.shell(f"rm {ETC}/kubelet.conf.d/60-bad.conf", check=True)
    machine.wait_until(f"grep -q ^True {ETC}/status/kubelet/condition")


def test_an_editor_runs(machine):
    machine.write("/usr/local/bin/editor-of-the-test", "#!/bin/sh\nsed -i 's/maxPods: .*/maxPods: 72/' \"$1\"\n", mode="755")
    result = machine.shell("echo s | EDITOR=/usr/local/bin/editor-of-the-test lkgfs edit 90-test.conf")
    assert result.returncode == 0, result
    machine.wait_until(f"grep -qx 'maxPods: 72' {FILE}")


def test_rolling_back(machine):
    generation = machine.output(f"cat {ETC}/status/kubelet/generation").strip()
    publishes(machine, 73)
    machine.shell(f"echo {generation} > {ETC}/control/kubelet/rollback", check=True)
    assert served(machine, "maxPods") == "72"
    machine.shell("lkgfs hold off", check=True)
    machine.wait_until(f"grep -qx 'maxPods: 73' {FILE}")


# ---- the service manager, with readers ----

@pytest.mark.parametrize("verb", ["restart", "reload", "try-restart", "reload-or-restart"])
def test_systemctl_with_readers(machine, verb):
    before = processes(machine)
    with readers(machine):
        machine.run("systemctl", verb, UNIT, check=True)
        machine.run("systemctl", verb, UNIT, check=True)
        wait_for(lambda: all_there(machine), "all processes")
    assert mounts(machine) == [ETC]
    assert (processes(machine)["lkgfsd"] == before["lkgfsd"]) == ("reload" in verb)
    publishes(machine, 74)


@pytest.mark.parametrize("verb", ["daemon-reload", "daemon-reexec"])
def test_the_manager_itself_with_readers(machine, verb):
    """The new manager has the descriptors: the next lkgfsd gets them."""
    with readers(machine):
        machine.run("systemctl", verb, check=True)
        assert property_of(machine, UNIT, "NFileDescriptorStore") == "4"
        old = processes(machine)
        machine.run("systemctl", "kill", "--signal=KILL", UNIT, check=True)
        wait_for(lambda: all_there(machine) and not set(old.values()) & set(processes(machine).values()), "new processes")
    assert mounts(machine) == [ETC]
    publishes(machine, 75)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_killed_process_with_readers(machine, program):
    with readers(machine):
        for _ in range(3):
            wait_for(lambda: all_there(machine), "all processes")
            old = processes(machine)[program]
            machine.run("kill", "-KILL", str(old), check=True)
            wait_for(lambda: processes(machine).get(program, old) != old, "a new one")  # pylint: disable=cell-var-from-loop
    publishes(machine, 76)


def test_all_of_them_killed_with_readers(machine):
    device = machine.output(f"stat --format=%d {ETC}")
    with readers(machine):
        for _ in range(3):
            wait_for(lambda: all_there(machine), "all processes")
            old = processes(machine)
            machine.shell(f"kill -KILL {' '.join(map(str, old.values()))}", check=True)
            wait_for(lambda: all_there(machine) and not set(old.values()) & set(processes(machine).values()), "new processes")  # pylint: disable=cell-var-from-loop
    assert machine.output(f"stat --format=%d {ETC}") == device and mounts(machine) == [ETC], "the same view: its descriptor was in the store"
    assert property_of(machine, UNIT, "NFileDescriptorStore") == "4"
    publishes(machine, 77)


def test_a_stop_fails_no_call_of_readers(machine):
    before = counts(machine)
    machine.run("systemctl", "stop", UNIT, check=True)
    assert mounts(machine) == [] and processes(machine) == {} and served(machine, "podPidsLimit") is None
    assert property_of(machine, UNIT, "NFileDescriptorStore") == "0" and property_of(machine, UNIT, "Result") == "success"
    assert property_of(machine, "kubelet", "SubState") == "running", "the kubelet goes on"
    assert machine.run("lkgfs", "gate", "kubelet").returncode != 0
    machine.run("systemctl", "start", UNIT, check=True)
    assert mounts(machine) == [ETC] and served(machine, "podPidsLimit") == "4096"
    wait_for(lambda: counts(machine)["unmerged"] > before["unmerged"], "the kubelet has read the base meanwhile")
    assert counts(machine)["failed"] == before["failed"]


def test_systemctl_kill_fails_no_call_of_readers(machine):
    """SIGTERM for every process of the unit, as `systemctl kill` sends it."""
    before = counts(machine)
    old = processes(machine)
    machine.run("systemctl", "kill", UNIT, check=True)
    wait_for(lambda: all_there(machine) and not set(old.values()) & set(processes(machine).values()), "new processes")
    machine.wait_until(f"grep -q '^podPidsLimit: 4096$' {FILE}")
    assert mounts(machine) == [ETC] and counts(machine)["failed"] == before["failed"]
    publishes(machine, 78)


def test_nothing_was_denied(machine):
    assert denials(machine) == []
