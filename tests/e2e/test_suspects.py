# SPDX-License-Identifier: Apache-2.0
"""Who is to blame: after a crash loop the bad mark names the fields that differ from the last known good, and `diff --bad` shows all."""
import json

import lkgfs_testlib as lib

GOOD, DIFFERENT, FAILED, USAGE = 0, 1, 2, 64
SECRET = "swordfish-7"


def crash_loop(n, body, **options):
    """Assign it, let it fail its trial; return its source id."""
    source = n.assign(body, annotations={"lkgfs.io/crash-loop-threshold": "0"}, **options)
    n.wait("active", source)
    for _ in range(4):  # one end soon after a change may be excused
        n.crash()
        if source in n.bad():
            return source
    raise AssertionError(n.status("condition"))


def run(n, *words):
    return n.mount.tool(*words, text=True)


def fields(entry):
    return entry["suspects"]["fields"]


def pointers(entry):
    return [field["pointer"] for field in fields(entry)]


def test_a_crash_loop_names_its_suspects(node):
    n = node(trial={"duration": "0s"})
    good = n.assign("maxPods: 50\ncgroupDriver: systemd\nlogging: {verbosity: 2}\neventBurst: 7\n")
    n.wait("last-known-good", good)
    generation = n.mount.generation()
    n.configure(trial={"duration": "10m"})
    n.mount.reload()
    bad = crash_loop(n, "maxPods: 60\nlogging: {verbosity: 4}\ncgroupDriver: cgroupfs\nclusterDomain: x.local\n")
    entry = n.bad()[bad]
    assert entry["cause"] == "crash_loop" and entry["suspects"]["lastKnownGood"] == generation
    assert pointers(entry) == ["/cgroupDriver", "/maxPods", "/clusterDomain", "/eventBurst", "/logging/verbosity"]
    assert [field["danger"] for field in fields(entry)] == ["stops", "stops", "pods", "harmless", "harmless"]
    first, second, _, gone, _ = fields(entry)
    assert first["old"] == '"systemd"' and first["new"] == '"cgroupfs"' and first["changeClass"] == "drain"
    assert (second["old"], second["new"], second["field"]) == ("50", "60", "maxPods")
    assert "new" not in gone and gone["old"] == "7"
    assert first["layer"].startswith("remote") and first["line"] == 5

    tool = run(n, "bad", bad)
    assert tool.returncode == GOOD and tool.stdout.startswith(f"id         {bad}\n")
    assert f", generation {generation}\n" in tool.stdout
    lines = tool.stdout.splitlines()
    assert lines[lines.index("DANGER    CHANGE    FIELD: OLD -> NEW") + 1].startswith(
        'stops     drain     /cgroupDriver: "systemd" -> "cgroupfs"  remote')
    assert "harmless  restart   /eventBurst: 7 -> unset" in tool.stdout
    shown = json.loads(run(n, "bad", bad, "-o", "json").stdout)
    assert shown["suspects"] == entry["suspects"] and shown["id"] == bad and shown["cause"] == "crash_loop"
    missing = run(n, "bad", "nobody@1")
    assert missing.returncode == FAILED and "not marked bad" in missing.stderr

    log = n.mount.log()
    assert "suspects: cgroupDriver (remote" in log and "cgroupfs" not in log.split("suspects:")[1].splitlines()[0]

    # the same after a restart, from the record
    n.mount.stop()
    n.mount.start()
    assert n.bad()[bad] == entry


def test_the_whole_difference(node):
    n = node(trial={"duration": "0s"})
    good = n.assign("maxPods: 50\nfeatureGates:\n" + "".join(f"  {gate}: true\n" for gate in ("AllBeta",)))
    n.wait("last-known-good", good)
    n.configure(trial={"duration": "10m"})
    n.mount.reload()
    before = n.mount.generation()
    bad = crash_loop(n, "maxPods: 60\nallowedUnsafeSysctls: [net.core.somaxconn]\n")
    condemned = n.bad()[bad]["suspects"]["generation"]
    tool = run(n, "diff", "--bad", bad)
    assert tool.returncode == DIFFERENT, tool.stderr
    assert tool.stdout.startswith(f"--- last known good: generation {before}\n+++ marked bad: generation {condemned}\n")
    assert "\n-maxPods: 50\n+maxPods: 60\n" in tool.stdout and "=> restart: " in tool.stdout
    assert "stops     restart   /featureGates/AllBeta: true -> unset" in tool.stdout
    shown = json.loads(run(n, "diff", "--bad", bad, "-o", "json").stdout)
    assert [f["pointer"] for f in shown["fields"]] == pointers(n.bad()[bad]) and shown["changes"]
    assert run(n, "diff", "--bad", "a/b").returncode == USAGE
    assert run(n, "diff", "1", "--bad", bad).returncode == USAGE
    assert "not marked bad" in run(n, "diff", "--bad", "nobody@1").stderr


def test_the_two_documents_outlive_the_history(node):
    """The limit of the history does not remove what the newest mark compares."""
    n = node(trial={"duration": "0s"}, config={"historyLimit": 2})
    good = n.assign("maxPods: 50\n")
    n.wait("last-known-good", good)
    n.configure(trial={"duration": "10m"})
    n.mount.reload()
    bad = crash_loop(n, "maxPods: 60\n")
    for value in range(10, 16):
        n.mount.drop("50-x.conf", f"registryBurst: {value}\n")
    tool = run(n, "diff", "--bad", bad)
    assert tool.returncode == DIFFERENT and "\n-maxPods: 50\n+maxPods: 60\n" in tool.stdout, tool.stderr


def test_secrets_are_masked_everywhere(node):
    """Rule: docs/specification.md 2.13."""
    n = node(trial={"duration": "0s"})
    good = n.assign(f"staticPodURLHeader: {{Authorization: [{SECRET}-1]}}\n")
    n.wait("last-known-good", good)
    n.configure(trial={"duration": "10m"})
    n.mount.reload()
    bad = crash_loop(n, f"staticPodURLHeader: {{Authorization: [{SECRET}-2]}}\n")
    assert pointers(n.bad()[bad]) == ["/staticPodURLHeader/Authorization"]
    texts = [json.dumps(n.bad()[bad]), n.mount.log()]
    for words in (("bad", bad), ("bad", bad, "-o", "json"), ("diff", "--bad", bad), ("diff", "--bad", bad, "-o", "json")):
        texts.append(run(n, *words).stdout)
        assert "staticPodURLHeader" in texts[-1], words
    assert "another value, which is not shown" in texts[2] and "another value, which is not shown" in texts[4]
    assert not any(SECRET in text for text in texts)


def test_local_layers_are_suspects_too(node):
    """trial.scope all: the document is local, and the place is the drop-in."""
    n = node(trial={"scope": "all", "crashLoopThreshold": 0}, remote={"enabled": False})
    n.mount.drop("50-x.conf", "# a comment\nmaxPods: 9\n")
    n.crash()
    n.crash()
    (name, entry), = n.bad().items()
    assert name.startswith("local@") and len(fields(entry)) == 1
    field, = fields(entry)
    assert field["pointer"] == "/maxPods" and field["layer"] == "drop-in 50-x.conf" and field["new"] == "9"
    assert field["file"].endswith("/50-x.conf") and field["line"] == lib.HEADER.count("\n") + 2
    assert "(drop-in 50-x.conf:" in n.mount.log()
    assert run(n, "diff", "--bad", name).returncode == DIFFERENT


def test_a_mark_by_hand(node):
    """What was served is compared; what never was is not guessed; marked again, it keeps what was known."""
    n = node(trial={"duration": "0s"})
    good = n.assign("maxPods: 50\n")
    n.wait("last-known-good", good)
    n.configure(trial={"duration": "10m"})
    n.mount.reload()
    active = n.assign("maxPods: 60\n")
    n.wait("active", active)
    lib.write_file(n.mount.vpath("bad", "kubelet", active), "not on my watch\n")
    assert pointers(n.bad()[active]) == ["/maxPods"] and n.bad()[active]["cause"] == "marked"
    lib.write_file(n.mount.vpath("bad", "kubelet", active), "still not\n")
    assert pointers(n.bad()[active]) == ["/maxPods"] and n.bad()[active]["reason"] == "still not"
    lib.write_file(n.mount.vpath("bad", "kubelet", "abcd@7"), "never here\n")
    assert n.bad()["abcd@7"]["suspects"] == {"unknown": "its document was not served, or is no longer in the history"}
    assert "suspects   not known: its document was not served" in run(n, "bad", "abcd@7").stdout
    tool = run(n, "diff", "--bad", "abcd@7")
    assert tool.returncode == FAILED and "nothing can be compared: its document was not served" in tool.stderr
    lib.write_file(n.mount.vpath("bad", "kubelet", good), "the good one\n")
    assert n.bad()[good]["suspects"] == {"unknown": "its document is that of the last known good"}
