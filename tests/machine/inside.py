# SPDX-License-Identifier: Apache-2.0
"""What tests ask a machine with lkgfs and the stand-in for the kubelet, and what they wait for."""
import contextlib
import json
import re
import struct

import lkgfs_testlib as lib
from laboratory import HERE, MACHINE, Failure

ETC = "/etc/kubernetes"
FILE = f"{ETC}/kubelet.conf"
UNIT = "lkgfs.service"
PROGRAMS = ("lkgfsd", "lkgfs-engine", "lkgfs-fs", "lkgfs-notify")
STAND_IN = "/run/kubelet-stand-in"


def install_stand_in(machine):
    """It is the kubelet. Another machine than the default has a compiler, and may need it."""
    if MACHINE == "bookworm":
        machine.write("/usr/bin/kubelet", (lib.BUILD / "tests/machine/kubelet-stand-in").read_bytes(), mode="755")
    else:
        machine.run("gcc", "-D_GNU_SOURCE", "-o", "/usr/bin/kubelet", machine.put(HERE / "kubelet-stand-in.c"), check=True)


def served(machine, field):
    found = re.search(rf"^{field}: (.*)$", machine.output(f"cat {FILE}"), re.M)
    return found and found[1]


def mounts(machine):
    return machine.shell(f"findmnt --raw --noheadings --types {lib.FSTYPE} --output TARGET").stdout.split()


def processes(machine):
    """{program: pid} of the processes in the unit's control group."""
    script = f"for p in $(cat /sys/fs/cgroup/{{,systemd/}}system.slice/{UNIT}/cgroup.procs 2> /dev/null); do echo $p $(readlink /proc/$p/exe); done"
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


def wait_for_others(machine, old):
    """Until all processes are there, and none of @old."""
    wait_for(lambda: all_there(machine) and not set(old.values()) & set(processes(machine).values()), "new processes")


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
    """The kubelet reads, three others read, list and look, one writes, without an end: no call fails, and each sees the merged file."""
    before = counts(machine)
    machine.put(lib.REPOSITORY / "tests/package/readers")
    machine.shell("rm -f /run/readers.*; mkfifo /run/readers.in", check=True)
    machine.run("systemd-run", "--quiet", "--collect", "--unit=readers", "--property=Nice=10", "bash", "-c",
                "exec python3 /root/readers 0.01 <> /run/readers.in > /run/readers.out 2>&1", check=True)
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
