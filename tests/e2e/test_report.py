# SPDX-License-Identifier: Apache-2.0
"""`lkgfs report`: one file that tells the story of a node, whatever is broken, and shows no secret."""
import contextlib
import html
import io
import json
import os
import re
import select
import signal
import subprocess
import tarfile
import time
from html.parser import HTMLParser

import pytest

import lkgfs_testlib as lib

GOOD, FAILED, USAGE = 0, 2, 64
SECRET = "s3cr3t-" + "x" * 8
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
VOID = {"meta", "br"}


class Page(HTMLParser):
    """A page, with the text of each section; fails for anything that is not well formed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.sections, self.tags, self.attributes, self.section = [], {}, set(), [], None
        self.source = text
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag == "section":
            self.section = dict(attrs)["id"]
            self.sections[self.section] = ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        if "section" in self.open:
            self.sections[self.section] += data


def run_report(*words, **kwargs):
    result = lib.run(lib.LKGFS, "report", *words, **kwargs)
    return result.returncode, result.stdout, result.stderr.decode()


def page_of(mount, *words, **kwargs):
    code, out, err = run_report("-m", mount.mountpoint, "--node-config", mount.config_path, *words, **kwargs)
    assert (code, err) == (GOOD, "")
    return Page(out.decode())


def archive_of(mount, *words):
    code, out, err = run_report("-o", "tar", "-m", mount.mountpoint, "--node-config", mount.config_path, *words)
    assert code == GOOD, err
    with tarfile.open(fileobj=io.BytesIO(out)) as tar:
        return {member.name.removeprefix("lkgfs-report/"): tar.extractfile(member).read().decode() for member in tar.getmembers()}


def dated_log(mount):
    """The log of lkgfsd as the journal would print it; in the tests it is a file without times."""
    path = os.path.join(mount.root, "log.txt")
    now = time.strftime("%Y-%m-%dT%H:%M:%S+0000", time.gmtime())
    lines = [re.sub(r"^(lkgfs[\w-]*):", rf"{now} node \1[7]:", line) for line in mount.log().splitlines()]
    lib.write_file(path, "\n".join(lines) + "\n")
    return path


@contextlib.contextmanager
def without(mount, name, signal_number):
    """A child of lkgfsd is killed or stopped, and lkgfsd is stopped, so that it starts no other one."""
    pid = mount.child(name)
    os.kill(mount.process.pid, signal.SIGSTOP)
    try:
        os.kill(pid, signal_number)
        yield
    finally:
        if signal_number == signal.SIGSTOP:
            os.kill(pid, signal.SIGCONT)
        os.kill(mount.process.pid, signal.SIGCONT)


def test_the_story_of_a_bad_night(node):
    """A ConfigMap that crash-loops, a bad drop-in, a hold: each of them is told, with who did it."""
    one = node()
    mount = one.mount
    one.assign(f"maxPods: 42\nstaticPodURL: https://user:{SECRET}@h/x?t={SECRET}\n")
    one.wait("condition", "True all checks passed: using current (UID: 8f1c)")
    one.live().end(1)
    one.live().end(1)
    life = one.live()
    mount.drop("50-pods.conf", f"maxPods: 99\nstaticPodURLHeader:\n  Authorization: [{SECRET}]\n")
    mount.command("hold", "on")
    mount.drop("60-bad.conf", "maxPods: many\n")
    page = page_of(mount, "--log", dated_log(mount))
    life.kill()
    assert list(page.sections) == ["problems", "findings", "served", "timeline", "changes", "bad", "layers", "processes",
                                   "environment", "log", "unread"], "what is wrong comes first"
    assert "crash-looped with 8f1c@" in page.sections["problems"] and "held at generation" in page.sections["problems"]
    assert "lkgfs hold off --component kubelet" in page.sections["problems"]
    assert 'maxPods: "many" is a string' in page.sections["findings"] and "60-bad.conf:3:10" in page.sections["findings"]
    timeline = page.sections["timeline"]
    assert "added drop-in 50-pods.conf" in timeline and "kubelet started" in timeline
    assert 'control/hold "on": accepted' in timeline and re.search(r"by uid 0, pid \d+, \S+, login uid", timeline)
    assert "failed trial period due to crash loop" in timeline
    assert re.search(r"-maxPods: \d+\n\+maxPods: 99", page.sections["changes"])
    assert "8f1c@" in page.sections["bad"] and "crash_loop" in page.sections["bad"]
    assert re.search(r"/maxPods\s*99\s*\S*50-pods\.conf:3:10", page.sections["layers"])
    assert re.search(r"A base kubelet.conf \d+ fields\s+B drop-in 50-pods.conf 2 fields\s+C drop-in 60-bad.conf 0 fields", page.sections["layers"]), "in the order of the merge"
    assert "drop-in 50-pods.conf" in page.sections["layers"] and "base kubelet.conf" in page.sections["layers"]
    assert all(name in page.sections["processes"] for name in lib.CHILDREN.values())
    assert "kernel" in page.sections["environment"] and mount.mountpoint in page.sections["environment"]
    assert page.sections["unread"].strip().endswith("Everything was read.")
    assert SECRET not in page.source and "<masked>" in html.unescape(page.source)
    archive = archive_of(mount, "--log", dated_log(mount))
    assert SECRET not in str(archive)


def test_nothing_in_the_page_is_active(mount):
    """No script, no address, no style of others: whatever the node's files say."""
    mount.drop(f"50-{HOSTILE.replace('/', '_')}.conf", f"clusterDomain: '{HOSTILE}'\nmaxPods: '\"><b>'\n")
    mount.drop("60-ok.conf", f"nodeStatusReportFrequency: 1m\nallowedUnsafeSysctls: ['{HOSTILE}']\n")
    lib.write_file(f"{mount.mountpoint}/bad/kubelet/0000-1111", HOSTILE)
    log = os.path.join(mount.root, "log")
    lib.write_file(log, f"2026-01-02T03:04:05Z n lkgfsd[1]: {HOSTILE} was killed by signal 9 \x1b[31m\u202e\n")
    page = page_of(mount, "--log", log)
    assert page.tags.isdisjoint({"script", "img", "link", "iframe", "object", "form", "input", "svg", "base", "audio", "video"})
    assert not [name for name, value in page.attributes if name.startswith("on") or name in ("src", "srcset", "style")]
    assert all(value.startswith("#") for name, value in page.attributes if name == "href")
    assert not re.search(r"url\(|@import|https?:", page.source.split("</style>")[0].split("<style>")[1])
    policy = dict(page.attributes)["content"] and re.search(r'Security-Policy" content="([^"]*)"', page.source)[1]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    assert HOSTILE in page.sections["bad"]
    assert HOSTILE in page.sections["timeline"] and "\\x1b[31m" in page.sections["timeline"]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", page.source)
    assert page.source.count("<b>") == len(re.findall(r"<b>(?:---|\+\+\+|@@)", page.source)), "only ours, in differences"


def test_archive_has_the_raw_parts(mount):
    mount.drop("50-x.conf", f"maxPods: 41\nstaticPodURLHeader:\n  Authorization: [{SECRET}]\n")
    mount.drop("51-" + "n" * 120 + ".conf", "maxPods: 42\n")
    archive = archive_of(mount)
    assert json.loads(archive["doctor.json"])["schemaVersion"] and json.loads(archive["status.json"])
    assert archive["status/kubelet/generation"] == f"{mount.generation()}\n"
    assert "maxPods: 42" in archive[f"history/kubelet/{mount.generation()}/kubelet.conf"]
    assert "maxPods: 42" in archive["lkg/kubelet.conf"] or "maxPods: 64" in archive["lkg/kubelet.conf"]
    assert any(name.startswith("layers/kubelet/") and len(name) > 120 for name in archive), "a name of any length"
    assert "config" + mount.config_path in archive and "kernel=" in archive["environment/system"]
    assert archive["could-not-be-read"] == ""
    assert SECRET in mount.document() and SECRET not in str(archive)


def test_lkg_and_configuration_are_masked(mount):
    """The files of a report that are documents in full where they lie."""
    mount.drop("50-x.conf", f"staticPodURLHeader:\n  Authorization: [{SECRET}]\n")
    mount.command("rollback", "lkg")
    with open(mount.config_path, encoding="utf-8") as file:
        config = json.load(file)
    config["remote"] = {"token": SECRET, "kubeconfig": f"https://u:{SECRET}@h/"}
    lib.write_file(mount.config_path, json.dumps(config))
    archive = archive_of(mount)
    assert SECRET not in str(archive) and "<masked>" in archive["config" + mount.config_path]
    lib.write_file(mount.config_path, "{ password: " + SECRET + ", [")
    archive = archive_of(mount)
    assert SECRET not in str(archive) and "config" + mount.config_path in archive["could-not-be-read"]


def test_report_of_a_dead_engine(mount):
    mount.drop("50-x.conf", "maxPods: 41\n")
    with without(mount, "lkgfs-engine", signal.SIGKILL):
        mount.wait_for(lambda: mount.status("condition").startswith("Unknown"), "silence")
        page = page_of(mount)
    assert "engine not answering" in page.sections["problems"] and "maxPods" in page.sections["layers"]
    assert "the engine does not answer" in page.sections["processes"]


def test_report_of_a_mount_that_hangs(mount):
    """The file server is stopped: every call into the mount waits."""
    with without(mount, "lkgfs-fs", signal.SIGSTOP):
        began = time.monotonic()
        page = page_of(mount)
        took = time.monotonic() - began
    assert "does not answer" in page.sections["problems"] and took < 60
    assert re.search(r"lkgfs-fs \(pid \d+\) does not run: it is in state T \(stopped\)", page.sections["problems"])
    assert "lkgfs-fs" in page.sections["processes"] and "stopped" in page.sections["processes"]
    assert "gave no answer in time" in page.sections["unread"]
    assert "/maxPods" in page.sections["layers"], "the layers below the view are judged instead"


def test_report_without_a_mount(mounts):
    mount = mounts(over=True)
    mount.drop("60-bad.conf", "maxPods: many\n")
    mount.stop()
    page = page_of(mount, "--log", dated_log(mount))
    assert "lkgfs is not running there" in page.sections["problems"] + page.sections["served"]
    assert "60-bad.conf:3:10" in page.sections["findings"] and "judged anew" in page.sections["findings"]
    assert "do not make a valid document" in page.sections["layers"] and "serving" in page.sections["log"]
    os.unlink(mount.behind("kubelet.conf.d/60-bad.conf"))
    page = page_of(mount)
    assert "drop-in 20-pods.conf" in page.sections["layers"] and re.search(r"/maxPods\s*64", page.sections["layers"])


def test_report_of_nothing(tmp_path):
    """No mount, no configuration, no rights: a page that says so."""
    os.chmod(tmp_path, 0o755)
    code, out, err = run_report("--node-config", str(tmp_path / "none.yaml"), "-m", str(tmp_path), user=65534, cwd="/")
    page = Page(out.decode())
    assert (code, err) == (GOOD, "")
    assert "start it with systemctl start lkgfs" in page.sections["problems"]
    assert "There are no layers to read" in page.sections["layers"] or "could not be read" in page.sections["layers"]


def test_where_it_is_written(mount, tmp_path):
    words = ("-m", mount.mountpoint, "--node-config", mount.config_path)
    code, out, err = run_report(*words, "--file", "out.html", cwd=tmp_path)
    assert (code, out) == (GOOD, b"") and err == "lkgfs report: written: out.html\n"
    assert os.stat(tmp_path / "out.html").st_mode & 0o777 == 0o600, "documents are in it"
    Page((tmp_path / "out.html").read_text())
    code, out, _ = run_report(*words, "--file", "-", "-o", "tar")
    assert code == GOOD and tarfile.open(fileobj=io.BytesIO(out)).getnames()
    code, out, err = run_report(*words, "--file", str(tmp_path / "missing/x.html"))
    assert code == FAILED and "missing" in err and out == b""
    with open("/dev/full", "wb") as full:
        result = subprocess.run([lib.LKGFS, "report", *words], stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == FAILED and b"No space left" in result.stderr
    code, _, err = run_report("-o", "json")
    assert code == USAGE and "html (default) or tar" in err


def test_log_of_the_journal(mount, tmp_path):
    """Who did it comes from the journal of the unit; a journalctl of our own stands for the machine's."""
    line = ('2026-01-02T03:04:05+0000 n lkgfs-engine[7]: kubelet: control/rollback "lkg" by uid 0, pid 8, /usr/bin/lkgfs, '
            f"login uid 1000: accepted, see https://u:{SECRET}@h/")
    lib.write_file(tmp_path / "journalctl", f"#!/bin/sh\necho \"$@\" > {tmp_path}/words\necho '{line}'\n", 0o755)
    page = page_of(mount, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    words = (tmp_path / "words").read_text()
    assert "--unit=lkgfs.service" in words and "--utc" in words
    assert re.search(r'2026-01-02 03:04:05.*control/rollback "lkg": accepted.*by uid 0, pid 8, /usr/bin/lkgfs, login uid 1000',
                     page.sections["timeline"], re.S)
    assert SECRET not in page.source


def test_log_that_cannot_be_read_and_masked_words(mount, tmp_path):
    page = page_of(mount, "--log", str(tmp_path / "missing"))
    assert "No such file" in page.sections["log"] + page.sections["unread"]
    log = tmp_path / "log"
    lib.write_file(log, f"kubelet --token={SECRET} --password {SECRET} https://u:{SECRET}@h/?t={SECRET}\n"
                        f"-----BEGIN RSA PRIVATE KEY----- {SECRET}\n")
    page = page_of(mount, "--log", str(log))
    assert SECRET not in page.source and page.sections["log"].count("<masked>") >= 4


def a_child(pid):
    """A descriptor of a living child, as soon as there is one."""
    end = lib.deadline()
    while time.monotonic() < end:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            found = file.read().split()
        with contextlib.suppress(ProcessLookupError):  # it has ended: the next one
            if found:
                return os.pidfd_open(int(found[0]))
    raise lib.Failure("it has no child")


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_report_that_is_interrupted_leaves_nothing(mount, signal_number):
    with without(mount, "lkgfs-fs", signal.SIGSTOP):
        process = subprocess.Popen([lib.LKGFS, "report", "-m", mount.mountpoint, "--node-config", mount.config_path],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child = a_child(process.pid)
        process.send_signal(signal_number)
        process.wait(lib.TIMEOUT_S)
        process.stdout.close()
        process.stderr.close()
    # A call that waited in the mount ends when the file server goes on.
    assert select.select([child], [], [], lib.TIMEOUT_S)[0]
    os.close(child)
