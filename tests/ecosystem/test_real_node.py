# SPDX-License-Identifier: Apache-2.0
"""Static pods on a real node, in a virtual machine ($LKGFS_NODE=container: in a container, ten times as fast): the accidents of every day without lkgfs and with it, and what must restart nothing.

One story: each test begins with what the one before has left. Those about the node without lkgfs need not run, nor do others before the one that is
asked for (`-k cut`, `-k abandon`). Its figures are in real-node.md of the build folder.
"""
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

import lkgfs_testlib as lib
sys.path.insert(0, str(lib.REPOSITORY / "tests/machine"))
from inside import PROGRAMS, UNIT, denials, processes, wait_for, wait_for_others  # noqa: E402
from laboratory import make_image  # noqa: E402
from real_node import FILE, LOOK_S, MANIFESTS, PODS, START_S, WATCHED, Container, Node, files_for  # noqa: E402

pytestmark = pytest.mark.limit(1800)
with_lkgfs = pytest.mark.usefixtures("adopted")
CONTAINER = os.environ.get("LKGFS_NODE") == "container"
of_a_machine = pytest.mark.skipif(CONTAINER, reason="a container has no power, no disk and no kernel")

STATUS = "/etc/kubernetes/status/static-pods"
SERVED = "/etc/kubernetes/static-pods"
TRIAL_S, BACK_S = (90, 60) if CONTAINER else (300, START_S)  # with QEMU's translator an API server takes two minutes to be replaced
TRIAL = f"""  trial:
    duration: {TRIAL_S}s
    settle: 15s
    health: {{stableFor: 15s}}
trial: {{crashLoopThreshold: 1}}
"""


def flag(word):
    return f"sed -i 's/^    - kube-apiserver$/&\\n    - {word}/' {FILE}"


TYPO = f"sed -i 's/^  containers:/  containers/' {FILE}"
COPY = f"cp {FILE} {FILE}.bak && {flag('--v=3')}"
SLOW = (f"sed 's/^    - kube-apiserver$/&\\n    - --v=4/' {FILE} > /root/next; "
        f"{{ head -c 1200 /root/next; sleep 25; tail -c +1201 /root/next; }} > {FILE}")
WRONG = flag("--no-such-flag")
UNHEARD = f"sed -i s/--secure-port=6443/--secure-port=6444/ {FILE}"  # it runs, and its probes do not reach it
rows = {}


@pytest.fixture(scope="module", name="node")
def fixture_node(program):
    (lib.BUILD / "machine").mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="node-", dir=lib.BUILD / "machine"))
    try:
        files = folder / "files"
        made = (Container if CONTAINER else Node)(make_image(lib.BUILD / "machine"), folder, files, *files_for(program, files))
        try:
            made.set_up()
            made.output(f"cp {FILE} /root/good")
            yield made
        finally:
            made.cut()
    finally:
        shutil.rmtree(folder)
        (lib.BUILD / "real-node.md").write_text("".join(f"| {' | '.join(row)} |\n" for row in [("event", "without lkgfs", "with lkgfs"), ("---",) * 3, *(
            (event, *words) for event, words in rows.items())]))


def note(event, words):
    """Without lkgfs first, then with it."""
    rows[event] = (*rows.get(event, ()), words)


class Watched:
    """What the API server did in a block: changes of its state, and containers that are new."""

    def __init__(self, node):
        self.node = node

    def __enter__(self):
        self.before, self.since = self.node.containers(), self.node.now()
        return self

    def __exit__(self, *_):
        self.changes = self.node.changes(self.since)
        self.seconds = round(self.node.now() - self.since)
        after = self.node.containers()
        self.new = {pod: len(set(after[pod].items()) - set(self.before[pod].items())) for pod in PODS}

    def __str__(self):
        return ", ".join(f"{state} after {when:.0f} s" for when, state in self.changes) or f"runs on, for {self.seconds} s"


def waits(node, looks=3):
    """As long as a kubelet takes to look that often."""
    for _ in range(looks):
        node.output(f"sleep {LOOK_S}")


def mend(node):
    """By hand. Returns when the API server answers, and has for a while."""
    with Watched(node) as seen:
        node.output(f"rm -f {FILE}.bak; cat /root/good > {FILE}; sleep 5")
        node.wait_for_api()
    return seen


def replaced(node):
    """Until the API server has gone and another one answers."""
    node.wait_until(f"tail -n 1 {WATCHED} | grep -q down", START_S)
    node.wait_for_api()


def has(node, word):
    return [word in flags for flags in node.flags()]


# ---- without lkgfs ----

@pytest.mark.parametrize("event, accident", [("a typo", TYPO), ("a flag that it does not know", WRONG)])
def test_without_lkgfs_it_stays_down(node, event, accident):
    with Watched(node) as seen:
        node.output(accident)
        waits(node, 5)
    assert [state for _, state in seen.changes] == ["down"]
    note(event, f"{seen}, until it is mended by hand; then {mend(node)}")


def test_without_lkgfs_a_copy_is_run(node):
    with Watched(node) as seen:
        node.output(COPY)
        waits(node, 8)
    runs = "the edit" if has(node, "--v=3") == [True] else "the copy"
    note("a copy beside it, then an edit", f"{seen}; {runs} runs")
    mend(node)


def test_without_lkgfs_half_a_file_counts(node):
    with Watched(node) as seen:
        node.output(SLOW)
        replaced(node)
    note("half of it written, the rest 25 s later", str(seen))
    mend(node)


# ---- adopting ----

def adopt(node, deb):
    """Return: what happened before a restart of the kubelet, and after it."""
    with Watched(node) as before:
        node.run("dpkg", "--install", node.put(deb), check=True, timeout=START_S)
        node.output("lkgfs adopt && lkgfs adopt --static-pods && cat >> /etc/lkgfs/config.d/50-static-pods.conf && systemctl reload lkgfs", input=TRIAL.encode())
        waits(node)
    with Watched(node) as after:
        node.run("systemctl", "restart", "kubelet", check=True)
        replaced(node)
    return before, after


@pytest.fixture(scope="module", name="adopted")
def fixture_adopted(node, deb):
    return adopt(node, deb)


def test_adopting_restarts_each_pod_once(adopted):
    before, after = adopted
    assert before.new == {pod: 0 for pod in PODS}, "not before the kubelet is restarted"
    assert after.new == {pod: 1 for pod in PODS}
    rows["adopting, and a restart of the kubelet"] = ("", str(after))


# ---- the same with it ----

def verdict(node):
    node.wait_until(f"! grep -q 'on trial' {STATUS}/pods", TRIAL_S + START_S)
    return node.output(f"grep kube-apiserver {STATUS}/pods")


@with_lkgfs
def test_a_typo(node):
    with Watched(node) as seen:
        node.output(TYPO)
        waits(node)
        node.output(f"cat /root/good > {FILE}")
        waits(node)
    assert seen.changes == [] and seen.new == {pod: 0 for pod in PODS}
    note("a typo", str(seen))


@with_lkgfs
def test_a_copy(node):
    with Watched(node) as seen:
        node.output(COPY)
        replaced(node)
        assert "\tgood\t" in verdict(node) and has(node, "--v=3") == [True]
    assert seen.new == {"etcd": 0, "kube-apiserver": 1}
    note("a copy beside it, then an edit", f"{seen}; the edit runs")
    node.output(f"rm {FILE}.bak; cp {FILE} /root/good")


@with_lkgfs
def test_half_a_file(node):
    with Watched(node) as seen:
        node.output(SLOW)
        written = node.now() - seen.since
        replaced(node)
        assert "\tgood\t" in verdict(node) and has(node, "--v=4") == [True]
    assert seen.new == {"etcd": 0, "kube-apiserver": 1} and seen.changes[0][0] >= written - 1, "not before it was written"
    note("half of it written, the rest 25 s later", str(seen))
    node.output(f"cp {FILE} /root/good")


def taken_back(node, accident, cause, within):
    """The API server answers again, without a hand, @within seconds after the trial."""
    with Watched(node) as seen:
        node.output(accident)
        verdict(node)
        ended = round(node.now() - seen.since)
        assert cause in node.output(f"cat {STATUS}/condition"), "by what the trial has ended"
        node.wait_for_api()
    assert ended <= TRIAL_S + 30 and seen.changes[-1][0] <= TRIAL_S + within and seen.new["etcd"] == 0
    mend(node)
    return f"{seen}; taken back after {ended} s"


@with_lkgfs
def test_a_flag_that_it_does_not_know(node):
    """It ends at once: the container runtime counts its restarts."""
    note("a flag that it does not know", taken_back(node, WRONG, "crash loop", 60))


@with_lkgfs
def test_another_port(node):
    rows["another port, which its probes do not ask"] = ("stays down", taken_back(node, UNHEARD, "not healthy: kube-apiserver: ", BACK_S))


# ---- what must restart nothing ----

def nothing_restarts(node, event, act):
    with Watched(node) as seen:
        act()
        waits(node, 2)
    assert seen.changes == [] and seen.new == {pod: 0 for pod in PODS} and node.tls_of_etcd() == "accepted"
    rows[event] = ("", "no pod restarted")


@with_lkgfs
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_killed_process(node, name):
    def kill():
        old = processes(node)[name]
        node.run("kill", "-KILL", str(old), check=True)
        wait_for(lambda: processes(node).get(name, old) != old, "a new one")
    nothing_restarts(node, f"SIGKILL of {name}", kill)


@with_lkgfs
def test_an_upgrade(node, newer):
    def upgrade():
        old = processes(node)
        node.run("dpkg", "--install", node.put(newer), check=True)
        wait_for_others(node, old)
    nothing_restarts(node, "an upgrade of the package", upgrade)


@with_lkgfs
def test_a_stop_and_a_start(node):
    def stop():
        node.run("systemctl", "stop", UNIT, check=True)
        waits(node)
        assert node.tls_of_etcd() == "accepted", "while it is stopped"
        node.run("systemctl", "start", UNIT, check=True)
    nothing_restarts(node, "lkgfs.service stopped and started", stop)


def breaks(node):
    """A manifest that is refused."""
    node.output(f"{TYPO} && sync {FILE}")
    wait_for(lambda: node.shell(f"grep -q ^False {STATUS}/condition").returncode == 0, "it is refused")


@with_lkgfs
@of_a_machine
def test_a_power_cut_with_a_broken_manifest(node):
    """The pods start once, with what was good."""
    breaks(node)
    node.cut()
    node.boot()
    node.wait_for_api(2 * START_S)
    waits(node)
    assert node.output(f"cmp /root/good {SERVED}/kube-apiserver.yaml && ls {SERVED}").split() == ["etcd.yaml", "kube-apiserver.yaml"]
    assert node.flags() == [node.good_flags()] and node.started_since_the_boot() == {pod: 1 for pod in PODS}
    seen = ", ".join(f"{state} {when:.0f} s after the boot" for when, state in node.changes(0))
    rows["a power cut while the manifest is broken"] = ("not tried", f"each pod started once, with the last good text; {seen}")
    mend(node)


@with_lkgfs
@of_a_machine
def test_nothing_was_denied(node):
    assert denials(node) == []


def abandons(node):
    with Watched(node) as seen:
        node.run("lkgfs", "abandon", check=True, timeout=START_S)
        replaced(node)
    assert seen.new == {pod: 1 for pod in PODS} and node.tls_of_etcd() == "accepted" and node.flags() == [node.good_flags()]
    assert node.output(f"cmp /root/good {FILE} && ls {MANIFESTS}").split() == ["etcd.yaml", "kube-apiserver.yaml"]
    assert node.output("sed -n 's/^staticPodPath: //p' /var/lib/kubelet/config.yaml").strip() == MANIFESTS
    assert node.shell(f"test -e {SERVED}").returncode == 1
    wait_for(lambda: node.shell("pgrep lkgfs").returncode == 1, "the end of the file server, as no container uses the view any more")
    return str(seen)


@with_lkgfs
def test_abandoning_with_a_broken_manifest(node):
    breaks(node)
    broken = node.output(f"cat {FILE}")
    rows["`lkgfs abandon` while the manifest is broken"] = ("", f"the API server {abandons(node)}")
    assert node.output(f"cat {MANIFESTS}/.kube-apiserver.yaml.before-abandon") == broken


def test_adopting_and_abandoning(node, deb):
    adopt(node, deb)
    rows["`lkgfs abandon`"] = ("", f"the API server {abandons(node)}")
