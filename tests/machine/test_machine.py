# SPDX-License-Identifier: Apache-2.0
"""A node's life with lkgfs, on a machine with systemd: installed, configured, used, restarted, killed, upgraded, rebooted, without power,
removed. One story: each test begins with what the one before has left."""
import contextlib
import json
import os
import random
import re
import threading

import pytest

import lkgfs_testlib as lib
from inside import (ETC, FILE, PROGRAMS, STAND_IN, UNIT, all_there, counts, denials, drop_in, install_stand_in, mounts, processes, property_of, publishes,
                    readers, served, started, wait_for, wait_for_others)
from laboratory import MACHINE, Failure

CONFIG = "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n"
# As kubeadm writes it: flags from two files, one of them missing.
KUBELET_UNIT = """[Unit]
Description=stands in for the kubelet
StartLimitIntervalSec=0

[Service]
Environment="KUBELET_CONFIG_ARGS=--config=/etc/kubernetes/kubelet.conf"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
Restart=always
RestartSec=200ms

[Install]
WantedBy=multi-user.target
"""


# ---- installing ----

def test_it_is_a_debian_with_systemd_and_apparmor(machine):
    assert machine.run("systemctl", "is-system-running", "--wait", timeout=300).stdout == "running\n"
    assert machine.output("cat /sys/module/apparmor/parameters/enabled") == "Y\n"
    assert ("generic" if MACHINE.endswith("jammy") else "cloud") in machine.output("uname -r")


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
    result = machine.run("systemd-analyze", "verify", "--man=no", f"/lib/systemd/system/{UNIT}")
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
    install_stand_in(machine)
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
    ("lkgfs diff", 1), ("lkgfs diff --running", 0), ("lkgfs blame maxPods", 0), ("lkgfs explain LKG2003", 0), ("lkgfs drift", 0), ("lkgfs bad", 0),
    ("lkgfs gate kubelet", 0), ("lkgfs npd --check served", 0), ("mkdir -p /root/baked && lkgfs bake --directory /root/baked", 0),
    ("lkgfs render > /root/merged.yaml && lkgfs check /root/merged.yaml", 0), ("lkgfs check /etc/lkgfs/config.yaml", 0),
    (f"find {ETC}/status {ETC}/bad {ETC}/lkg {ETC}/layers {ETC}/history -type f -readable -print0 | xargs -0 cat", 0),
    ("lkgfs sync", 0), ("lkgfs hold on && lkgfs hold off", 0), ("lkgfs try 5m && lkgfs commit", 0),
    (f"echo now > {ETC}/control/kubelet/sync", 0), (f"echo nonsense > {ETC}/control/kubelet/hold", 1)])
def test_the_tool_and_the_files_under_the_profile(machine, command, status):
    result = machine.shell(command)
    assert result.returncode == status, result


def test_a_write_ends_set_id_bits(machine):
    """By another user, and never by root: as below /var/tmp, with this kernel and profile. Rule: docs/specification.md 2.7."""
    script = ("for change in 'echo x >> {0}' ': > {0}' 'truncate -s 1 {0}'; do for user in 0 65534; do install -m 6777 /dev/null {0} && "
              "setpriv --clear-groups --reuid=$user --regid=$user sh -c \"$change\" && stat --format=%a {0}; rm {0}; done; done")
    found = machine.output(script.format("/var/tmp/program"))
    assert found == "6777\n777\n" * 3 and machine.output(script.format(f"{ETC}/manifests/program")) == found


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

@pytest.mark.parametrize("verb", ["restart", "reload"])  # systemd makes these of the others; an upgrade asks for try-restart
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
        wait_for_others(machine, old)
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
            wait_for_others(machine, old)
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
    wait_for_others(machine, old)
    machine.wait_until(f"grep -q '^podPidsLimit: 4096$' {FILE}")
    assert mounts(machine) == [ETC] and counts(machine)["failed"] == before["failed"]
    publishes(machine, 78)


# ---- what systemd tells of the component ----

def restarts(machine, old):
    machine.wait_until(f"pid=$(systemctl show --property MainPID --value kubelet); test $pid != 0 && test $pid != {old}")
    said = []

    def known():
        pid = property_of(machine, "kubelet", "MainPID")
        said[:] = [line.removeprefix(f"(pid {pid})") for line in started(machine) if line.startswith(f"(pid {pid})")]
        return said
    wait_for(known, "the engine knows of the start")
    return said[-1]


def configure(machine, text):
    machine.write("/etc/lkgfs/config.yaml", CONFIG + text)
    machine.run("systemctl", "reload", UNIT, check=True)


def test_why_it_started_an_operator(machine):
    """systemd is asked while something is on trial."""
    configure(machine, "trial: {scope: all, duration: 10m, crashLoopThreshold: 1}\n")
    publishes(machine, 12)
    machine.wait_until(f"grep -q running {ETC}/status/kubelet/trial")
    for _ in range(3):
        old = property_of(machine, "kubelet", "MainPID")
        machine.run("systemctl", "restart", "kubelet", check=True)
        assert restarts(machine, old) == ", not counted: the service manager started it, and not because it had failed"
    assert served(machine, "maxPods") == "12"


def test_why_it_started_a_crash(machine):
    """13 makes it exit: systemd starts it again, and the third such start reads what was good. If it does not say within a second why (4.9), all count."""
    machine.shell(f"echo now > {ETC}/control/kubelet/promote", check=True)
    publishes(machine, 13)
    before = len(started(machine))
    machine.run("systemctl", "restart", "kubelet", check=True)
    machine.wait_until(f"grep -qx 'maxPods: 12' {STAND_IN}/read && grep -q 'crash loop' {ETC}/status/kubelet/condition")
    said = [line.partition(")")[2] for line in started(machine)[before:]]
    operators = [", not counted: the service manager started it, and not because it had failed"]
    assert said in (operators + [""] * 3, [""] * 3), said
    assert property_of(machine, "kubelet", "NRestarts") == str(len(said) - 1) and served(machine, "maxPods") == "12"
    configure(machine, "")
    machine.shell("lkgfs forget all", check=True)
    publishes(machine, 78)


def test_a_component_is_restarted_through_the_bus(machine):
    configure(machine, "components: [{name: kubelet, restart: {policy: unit, minInterval: 1s}}]\n")
    old = property_of(machine, "kubelet", "MainPID")
    publishes(machine, 79)
    assert restarts(machine, old) == ", not counted: lkgfs asked for this restart"
    machine.wait_until(f"grep -qx 'maxPods: 79' {STAND_IN}/read")
    assert re.search(r" unit \d+ ", machine.output(f"cat {ETC}/status/kubelet/restarts"))
    configure(machine, "")


def flags(machine):
    """What effective.yaml has from the command line."""
    return sorted(line.strip() for line in machine.output(f"cat {ETC}/status/kubelet/effective.yaml").splitlines() if "# flag --" in line)


def test_the_command_line_is_that_of_systemd(machine):
    """Files of variables, quoting, specifiers: of the unit before it is started, and then of the process, which systemd has parsed for."""
    machine.write("/var/lib/kubelet/kubeadm-flags.env", "# made by kubeadm\nKUBELET_KUBEADM_ARGS=\"--max-pods=88 --kube-api-qps=40\"\n")
    machine.write("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=--event-qps=7\n")
    machine.run("systemctl", "restart", "kubelet", check=True)
    machine.wait_until(f"grep -q 'maxPods: 88 .*# flag --max-pods' {ETC}/status/kubelet/effective.yaml")
    assert len(flags(machine)) == 3, flags(machine)
    machine.write("/etc/systemd/system/kubelet.service.d/30-flags.conf",
                  "[Service]\nEnvironment='MORE=--event-burst=9' \"OTHER=a b\"\nExecStart=\n"
                  "ExecStart=-/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS \\\n  ${MORE} '--cluster-domain=%p.${OTHER}' \"--event-qps=8\"\n")
    machine.shell(f"systemctl stop kubelet && systemctl daemon-reload && systemctl reload {UNIT}", check=True)
    machine.wait_until(f"grep -q '# flag --event-burst' {ETC}/status/kubelet/effective.yaml")
    of_unit = flags(machine)
    assert any(line.startswith("eventRecordQPS: 8 ") for line in of_unit) and any("kubelet.a b" in line for line in of_unit), of_unit
    machine.run("systemctl", "start", "kubelet", check=True)
    machine.wait_until(f"grep -qw $(systemctl show --property MainPID --value kubelet) {ETC}/status/kubelet/process")
    assert flags(machine) == of_unit
    machine.shell("rm /etc/systemd/system/kubelet.service.d/30-flags.conf /etc/default/kubelet /var/lib/kubelet/kubeadm-flags.env && "
                  "systemctl daemon-reload && systemctl restart kubelet", check=True)


# ---- another version ----

def test_an_upgrade_with_readers(machine, newer):
    old, kubelet, package = processes(machine), property_of(machine, "kubelet", "MainPID"), machine.put(newer)
    with readers(machine):
        machine.run("dpkg", "--install", package, check=True)
        wait_for_others(machine, old)
    assert mounts(machine) == [ETC] and property_of(machine, "kubelet", "MainPID") == kubelet
    assert machine.output("dpkg-query --show --showformat='${Version} ${db:Status-Status}' lkgfs") == "9.0 installed"
    assert property_of(machine, UNIT, "NFileDescriptorStore") == "4"
    publishes(machine, 80)


def test_nothing_was_denied(machine):
    assert denials(machine) == []


# ---- shutting down, with and without power ----

def boots_with_the_view(machine):
    """The kubelet starts after the view is there, and has never seen anything else."""
    machine.boot()
    assert machine.run("systemctl", "is-system-running", "--wait", timeout=300).stdout == "running\n", machine.output("systemctl --failed")
    machine.wait_until(f"test -s {STAND_IN}/read")
    assert mounts(machine) == [ETC] and "\npodPidsLimit: 4096\n" in machine.output(f"cat {STAND_IN}/read")
    since = [int(property_of(machine, *which)) for which in ((UNIT, "ActiveEnterTimestampMonotonic"), ("kubelet", "ExecMainStartTimestampMonotonic"))]
    assert 0 < since[0] <= since[1]
    seen = counts(machine)
    assert seen["unmerged"] == seen["failed"] == 0 and seen["starts"] == 1, seen


def test_a_reboot_while_the_view_is_in_use(machine):
    drop_in(machine, 81)
    machine.shell(f"systemd-run --quiet --unit=in-use bash -c 'cd {ETC}/kubelet.conf.d; exec 9< {FILE}; exec sleep infinity'", check=True)
    seconds = machine.shut_down("reboot")
    console = machine.serial.read_text(errors="replace")
    assert seconds < 60 and "stop job is running" not in console and "FAILED" not in console, (seconds, console[-3000:])
    boots_with_the_view(machine)
    assert restarts(machine, "0") == ", not counted: first start after boot" and served(machine, "maxPods") == "81"
    assert "Failed unmounting" not in machine.output("journalctl -q -b -1 -o cat --no-pager")


def test_a_shutdown_while_nobody_answers(machine):
    """The kernel waits for answers, also for those who are to be killed; lkgfsd replaces who does not answer."""
    stopped = [str(pid) for program, pid in processes(machine).items() if program != "lkgfsd"]
    machine.shell(f"kill -STOP {' '.join(stopped)}", check=True)
    seconds = machine.shut_down()
    assert seconds < 60, seconds
    boots_with_the_view(machine)


def hold_of(machine):
    return machine.output(f"cat {ETC}/status/kubelet/hold").split()[0].removeprefix("mode=")


WRITE = (f"printf '{lib.HEADER}maxPods: %s\\n' {{}} | dd status=none conv=fsync of={ETC}/kubelet.conf.d/new && "
         f"mv {ETC}/kubelet.conf.d/new {ETC}/kubelet.conf.d/90-test.conf && sync {ETC}/kubelet.conf.d").replace("\n", "\\n")


def steps(oldest):
    """(command, what `hold` says and maxPods afterwards), without end. Generation @oldest has 82."""
    number = 100
    while True:
        number += 2
        yield WRITE.format(number), ("free", number)
        yield "lkgfs hold on", ("hold", number)
        yield WRITE.format(number + 1), ("hold", number)
        yield f"echo off > {ETC}/control/kubelet/hold", ("free", number + 1)
        yield f"echo {oldest} > {ETC}/control/kubelet/rollback", ("rollback", 82)
        yield "lkgfs hold off", ("free", number + 1)


@pytest.mark.parametrize("seed", range(int(os.environ.get("LKGFS_TEST_CUTS", "2"))))
def test_power_cuts_during_changes(machine, seed):
    """Each step is acknowledged before the next one begins; a drop-in is, when it was flushed."""
    chance = random.Random(seed)
    machine.shell("lkgfs hold off", check=True)
    publishes(machine, 82)
    oldest = machine.output(f"cat {ETC}/status/kubelet/generation").strip()
    machine.run("sync", check=True)
    possible = [("free", 82)]  # after the last acknowledged step, and after the one that was on its way
    enough = threading.Event()
    least = chance.randrange(3, 12)

    def change():
        with contextlib.suppress(Failure):
            for count, (command, state) in enumerate(steps(oldest)):
                if count >= least:
                    enough.set()
                possible.append(state)
                machine.shell(command, check=True)
                del possible[:-1]
    changing = threading.Thread(target=change)
    changing.start()
    assert enough.wait(60)
    lib.time.sleep(chance.random() * 0.5)  # anywhere in a step
    machine.cut()
    changing.join()
    boots_with_the_view(machine)
    machine.run("lkgfs", "sync", check=True)
    now = hold_of(machine), int(served(machine, "maxPods"))
    assert now in possible, f"after {possible}"
    assert machine.output(f"cat {ETC}/status/kubelet/condition").startswith("True ")
    machine.run("lkgfs", "history", check=True)
    if now[0] == "free":
        publishes(machine, 83)
        machine.run("lkgfs", "doctor", check=True)
    assert denials(machine) == []


def test_in_an_emergency_the_kubelet_starts_without_lkgfs(machine):
    machine.shell("touch /etc/lkgfs/disabled && systemctl stop kubelet lkgfs && systemctl start kubelet", check=True)
    assert mounts(machine) == []
    machine.wait_until(f"grep -q maxPods {STAND_IN}/read")
    machine.shell("rm /etc/lkgfs/disabled && systemctl restart kubelet", check=True)
    assert mounts(machine) == [ETC], "the kubelet's unit wants it"


# ---- removing ----

def test_removing_while_the_kubelet_reads(machine):
    before, kubelet = counts(machine), property_of(machine, "kubelet", "MainPID")
    machine.run("dpkg", "--remove", "lkgfs", check=True)
    assert mounts(machine) == [] and machine.shell("pgrep lkgfs").stdout == ""
    assert property_of(machine, "kubelet", "MainPID") == kubelet and counts(machine)["failed"] == before["failed"]
    machine.shell("systemctl daemon-reload && systemctl restart kubelet", check=True)
    machine.wait_until(f"cmp {FILE} {STAND_IN}/read")
    assert machine.run("systemctl", "is-failed", UNIT).stdout != "failed\n"


def test_purging(machine):
    machine.run("dpkg", "--purge", "lkgfs", check=True)
    assert machine.shell("ls -d /var/lib/lkgfs /run/lkgfs /etc/lkgfs /etc/default/lkgfs /etc/apparmor.d/lkgfs /etc/systemd/system/*/lkgfs.service").stdout == ""
    assert machine.output(f"cat {FILE} {ETC}/.lkgfs-fallback/kubelet.conf").startswith(lib.BASE), "a component may have been pointed to the copy"
    assert machine.shell("getent passwd lkgfs").returncode == 0, "its number may not go to anybody else"
    assert machine.run("systemctl", "is-system-running").stdout == "running\n"


# ---- another way to mount ----

def test_mounted_by_fstab(machine, newer):
    """The line of lkgfsd(8), without lkgfs.service."""
    machine.run("dpkg", "--install", machine.put(newer), check=True)
    machine.shell("rm -f /etc/systemd/system/kubelet.service.d/20-lkgfs.conf && "
                  f"echo 'lkgfs  {ETC}  lkgfs  defaults,nofail,x-systemd.before=kubelet.service  0 0' >> /etc/fstab", check=True)
    assert machine.shut_down("reboot") < 60
    machine.boot()
    assert machine.run("systemctl", "is-system-running", "--wait", timeout=300).stdout == "running\n", machine.output("systemctl --failed")
    assert mounts(machine) == [ETC] and property_of(machine, UNIT, "ActiveState") == "inactive"
    machine.wait_until(f"grep -qx 'podPidsLimit: 4096' {STAND_IN}/read")
    assert counts(machine)["unmerged"] == counts(machine)["failed"] == 0
    publishes(machine, 84)
    assert denials(machine) == []
    machine.shell("systemctl stop kubelet && systemctl stop etc-kubernetes.mount", check=True)  # a mount in use is busy, as any other
    assert mounts(machine) == [] and counts(machine)["failed"] == 0
    machine.wait_until("! pgrep -x 'lkgfs.*|mount.lkgfs'")
    machine.run("systemctl", "start", "etc-kubernetes.mount", check=True)
    assert mounts(machine) == [ETC]
    seconds = machine.shut_down()
    assert seconds < 60 and "stop job is running" not in machine.serial.read_text(errors="replace")
