# SPDX-License-Identifier: Apache-2.0
"""An invalid change never reaches the view; bad input of every kind becomes a finding and does no other harm."""
import contextlib
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import time

import pytest

import lkgfs_testlib as lib


def test_what_this_host_cannot_bear_is_not_served(mount):
    """The engine in its sandbox knows the host."""
    document = mount.document()
    mount.drop("60-reserved.conf", "kubeReserved:\n  memory: 9000000Gi\n")
    assert mount.document() == document and mount.condition()[0] == "False"
    assert re.search(r"^\S*60-reserved\.conf:4:\d+: error: .* \[LKG5047\]$", mount.status("findings"), re.M), mount.status("findings")
    mount.drop("60-reserved.conf", "kubeReserved:\n  memory: 1Mi\n")
    assert mount.condition()[0] == "True" and "LKG5047" not in mount.status("findings")


def test_refused_then_repaired(mount):
    before, document = mount.generation(), mount.document()
    inode = os.stat(mount.path("kubelet.conf")).st_ino
    mount.drop("50-bad.conf", "maxPods: [1\npodsPerCore: 2\n")
    assert mount.generation() == before and mount.document() == document
    assert os.stat(mount.path("kubelet.conf")).st_ino == inode
    status, rest = mount.condition()
    assert status == "False" and rest
    assert re.search(r"^\S*kubelet\.conf\.d/50-bad\.conf:\d+:\d+: error: .* \[LKG\d{4}\]$", mount.status("findings"),
                     re.M)
    assert mount.status("error") == mount.status("last-error") == mount.status("findings").splitlines(keepends=True)[0]
    assert mount.plain() == f"serving generation {before}, the newest change is refused"
    mount.drop("30-good.conf", "podsPerCore: 7\n")  # another change does not get through either
    assert mount.document() == document
    mount.drop("50-bad.conf", "maxPods: 51\n")
    assert mount.generation() > before
    assert "\nmaxPods: 51\n" in mount.document() and "\npodsPerCore: 7\n" in mount.document()
    assert mount.condition()[0] == "True" and "50-bad" not in mount.status("findings")


def bomb():
    lines = ['a0: &a0 ["x","x","x","x","x","x","x","x","x"]']
    for i in range(1, 12):
        lines.append(f"a{i}: &a{i} [" + ",".join([f"*a{i - 1}"] * 9) + "]")
    return lib.HEADER + "\n".join(lines) + "\n"


# Those that could do more harm than a finding; tests/golden has every other kind of bad document.
BAD = {
    "empty": b"",
    "binary": bytes(range(256)) * 16,
    "alias bomb": bomb().encode(),
    "deep flow": lib.HEADER.encode() + b"x: " + b"[" * 200000 + b"\n",
    "deep flow, closed": lib.HEADER.encode() + b"x: " + b"[" * 20000 + b"]" * 20000 + b"\n",
    "deep JSON": b'{"kind":"KubeletConfiguration","x":' + b"[" * 100000,
    "a kubeconfig": lib.KUBECONFIG.encode(),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_documents(shared, name):
    before, document = shared.generation(), shared.document()
    path = shared.path("kubelet.conf.d", "50-bad.conf")
    began = time.monotonic()
    lib.write_file(path, BAD[name])
    if not BAD[name]:
        shared.wait_for(lambda: shared.condition()[0] == "False")
    try:
        assert shared.condition()[0] == "False", name
        assert time.monotonic() - began < 10
        assert "50-bad.conf" in shared.status("findings")
        assert len(shared.status("findings")) < 4096, "no finding quotes the file"
        assert shared.generation() == before and shared.document() == document
        assert "https://192.0.2.1" not in shared.status("findings")
    finally:
        os.unlink(path)
    assert shared.condition()[0] == "True", shared.status("findings")


def test_64_mebibytes(shared):
    path = shared.path("kubelet.conf.d", "50-big.conf")
    with open(path, "wb") as file:
        file.write(lib.HEADER.encode())
        for _ in range(64):
            file.write(b"# " + b"x" * ((1 << 20) - 3) + b"\n")
    try:
        assert shared.condition()[0] == "False"
        assert "50-big.conf" in shared.status("findings")
    finally:
        os.unlink(path)
    assert shared.condition()[0] == "True"


def make_fifo(path, _):
    os.mkfifo(path)


def make_hostile(path, mount):
    """A symlink into a directory that others may write to: its owner could make a layer of any file."""
    directory = os.path.join(mount.root, "loose")
    os.makedirs(directory, exist_ok=True)
    lib.write_file(os.path.join(directory, "x.conf"), lib.HEADER + "maxPods: 9\n")
    os.chown(directory, 65534, 65534)
    os.symlink(os.path.join(directory, "x.conf"), path)


def make_foreign(path, mount):
    """A symlink to a file of another user."""
    target = os.path.join(mount.root, "foreign.conf")
    lib.write_file(target, lib.HEADER + "maxPods: 9\n")
    os.chown(target, 65534, 65534)
    os.symlink(target, path)


def make_magic(path, _):
    os.symlink("/proc/self/environ", path)


def make_device_link(path, _):
    os.symlink("/dev/zero", path)


@pytest.mark.parametrize("make", [make_fifo, make_hostile, make_foreign, make_magic, make_device_link], ids=lambda f: f.__name__)
def test_what_is_no_regular_file(shared, make):
    """Rule: docs/specification.md 3.1."""
    before, document = shared.generation(), shared.document()
    path = shared.path("kubelet.conf.d", "50-odd.conf")
    make(path, shared)
    try:
        shared.wait_for(lambda: shared.condition()[0] == "False", f"{make.__name__} is a finding")
        assert "50-odd.conf" in shared.status("findings")
        assert shared.generation() == before and shared.document() == document
    finally:
        os.unlink(path)
    shared.wait_for(lambda: shared.condition()[0] == "True", "repaired")


@pytest.mark.parametrize("absolute", [True, False])
def test_trusted_link(shared, absolute):
    """A symlink to a root-owned file in directories that only root may write to is a layer if it stays beneath the source.

    Rule: docs/specification.md 3.1.
    """
    target = shared.path("elsewhere.conf")
    lib.write_file(target, lib.HEADER + "maxPods: 12\n")
    path = shared.path("kubelet.conf.d", "50-link.conf")
    os.symlink(os.path.join(shared.source, "elsewhere.conf") if absolute else "../elsewhere.conf", path)
    shared.wait_for(lambda: "\nmaxPods: 12\n" in shared.document(), "the linked layer")
    lib.write_file(target, lib.HEADER + "maxPods: 13\n")
    shared.wait_for(lambda: "\nmaxPods: 13\n" in shared.document(), "the target changed", timeout=5)
    os.unlink(path)
    os.unlink(target)
    shared.wait_for(lambda: "\nmaxPods: 64\n" in shared.document(), "the link is gone")


def outside(mount):
    """A document outside of the source directory, with a word in it that must not be shown."""
    path = os.path.join(mount.root, "outside")
    os.mkdir(path)
    lib.write_file(os.path.join(path, "secret.conf"), lib.HEADER + "maxPods: 12\nclusterDomain: secret.example\n")
    return path


def check_not_read(mount, document):
    assert mount.condition()[0] == "False" and mount.document() == document
    findings = mount.status("findings")
    assert "leads out of" in findings and "layerLinks: host" in findings
    for name in ("findings", "origin", "condition", "error"):
        assert "secret.example" not in mount.status(name)
    layers = mount.vpath("layers", "kubelet")
    assert not any(b"secret.example" in lib.read_file(os.path.join(layers, name)) for name in os.listdir(layers))


def test_a_link_that_leads_out(mount):
    """A writer of the source, such as root in a container, cannot make lkgfs read a file elsewhere.

    Rule: docs/specification.md 3.1.
    """
    document, target = mount.document(), os.path.join(outside(mount), "secret.conf")
    path = mount.path("kubelet.conf.d", "50-link.conf")
    for link in (target, "../../outside/secret.conf"):
        os.symlink(link, path)
        mount.sync()
        check_not_read(mount, document)
        os.unlink(path)
    mount.sync()
    assert mount.condition()[0] == "True"
    for name in ("kubelet.conf", "kubelet-instance.conf"):
        os.rename(mount.behind(name), mount.behind(name + ".away"))
        os.symlink(target, mount.behind(name))
        mount.sync()
        check_not_read(mount, document)
        os.rename(mount.behind(name + ".away"), mount.behind(name))
    mount.sync()
    assert mount.condition()[0] == "True"


def test_a_directory_that_leads_out(mounts):
    mount = mounts(start=False, components=[{"name": "kubelet", "dropInDir": "sub/conf.d"}])
    os.makedirs(mount.behind("sub", "conf.d"))
    lib.write_file(mount.behind("sub", "conf.d", "50-x.conf"), lib.HEADER + "maxPods: 33\n")
    mount.start()
    document = mount.document()
    assert "\nmaxPods: 33\n" in document
    os.rename(mount.behind("sub"), mount.behind("away"))
    os.rename(outside(mount), os.path.join(mount.root, "conf.d"))
    os.symlink("..", mount.behind("sub"))
    mount.sync()
    check_not_read(mount, document)
    os.unlink(mount.behind("sub"))
    os.symlink("away", mount.behind("sub"))
    mount.sync()
    assert mount.condition()[0] == "True" and mount.document() == document


def test_links_of_the_host(mounts):
    mount = mounts(config={"layerLinks": "host"})
    os.symlink(os.path.join(outside(mount), "secret.conf"), mount.path("kubelet.conf.d", "50-link.conf"))
    mount.wait_for(lambda: "\nmaxPods: 12\n" in mount.document(), "the linked layer")
    assert mount.condition()[0] == "True"


HOSTILE = [b"50-\xff.conf", b"51-\xfe\xc3.conf", b'52-"},{"severity":"none.conf', b"53-\\u0000\\.conf", b"54-\n\t\x1b[31m.conf",
           "55-\u202e\u2028\ufeff\U000e0041é.conf".encode(), b"56-\xed\xa0\x80.conf", b"57-" + b"\xff" * 240 + b".conf"]


def shown(name):
    """A name as it is shown to people (lkg_buf_shown()): different names stay different."""
    text = name.decode(errors="surrogateescape")
    return "".join(c if c.isprintable() else "".join(f"\\x{b:02x}" for b in c.encode(errors="surrogateescape")) for c in text)


def documents_of(top):
    """Every file below @top that is JSON by its name or by its first byte."""
    for folder, _, names in os.walk(os.fsencode(top)):
        for name in names:
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                data = pathlib.Path(os.fsdecode(path)).read_bytes()
                if name.endswith(b".json") or data[:1] in b"{[" and data[:1]:
                    yield path, data


def test_whatever_a_file_is_called_what_we_write_is_json(mount):
    """Names that end a string, hide or reorder others, or are not text: Python parses every document, and each name is shown correctly."""
    for name in HOSTILE:
        lib.write_file(os.path.join(os.fsencode(mount.path("kubelet.conf.d")), name), lib.HEADER + "maxPods: [\n")
    assert mount.condition()[0] == "False"
    for i, name in enumerate(HOSTILE):
        lib.write_file(os.path.join(os.fsencode(mount.path("kubelet.conf.d")), name), lib.HEADER + f"maxPods: {20 + i}\nnoField: 1\n")
    assert f"\nmaxPods: {19 + len(HOSTILE)}\n" in mount.document()
    mount.tool("hold", "on")
    seen = set()
    for top in (mount.path("status"), mount.path("history"), mount.state):
        for path, data in documents_of(top):
            text = data.decode()  # strict decoding
            json.loads(text)
            assert not any(ord(c) < 0x20 and c != "\n" or c in "\x7f\u202e\u2028\ufeff\U000e0041" for c in text), path
            seen.add(os.path.basename(path))
    assert seen >= {b"condition.json", b"config.json", b"findings.json", b"startups", b"meta.json", b"kubelet.json"}
    files = {f["file"] for f in json.loads(mount.status("findings.json"))["findings"] if "noField" in f["text"]}
    named = {shown(name) for name in HOSTILE}
    assert {os.path.basename(f) for f in files} == named, files
    checked = json.loads(lib.run(lib.LKGFS, "check", "--config", mount.path("kubelet.conf"), "--config-dir",
                                 mount.path("kubelet.conf.d"), "-o", "json").stdout)["findings"]
    assert {os.path.basename(f["file"]) for f in checked if "noField" in f["text"]} >= named
    layers = json.loads(pathlib.Path(mount.path("history/kubelet"), str(mount.generation()), "meta.json").read_bytes())["layers"]
    assert {os.path.basename(row["name"]) for row in layers} > named
    assert json.loads(mount.tool("status", "-o", "json").stdout)["components"][0]["findings"]


@pytest.mark.limit(200)
def test_ten_thousand_dropins(mounts):
    """More than 256 are refused; the setting raises that. Rule: docs/specification.md 3.8."""
    mount = mounts(components=[{"name": "kubelet", "maxDropIns": 16384}])
    directory = mount.behind("kubelet.conf.d")
    os.mkdir(mount.behind("many"))
    for i in range(10000):
        lib.write_file(mount.behind("many", f"{i:05}.conf"), f"{lib.HEADER}staticPodURLHeader:\n  n{i % 50}: [\"{i}\"]\n")
    os.rename(mount.behind("many"), os.path.join(directory, "50-many"))
    mount.wait_for(lambda: "\n  n49:\n  - \"9999\"\n" in mount.document(), "10,000 drop-ins", timeout=60)
    began = time.monotonic()
    mount.drop("99-last.conf", "maxPods: 17\n")
    assert "\nmaxPods: 17\n" in mount.document(), mount.condition()
    assert time.monotonic() - began < 2
    assert mount.condition()[0] == "True"


def test_concurrent_writers(mount):
    script = "; ".join(f"for i in $(seq 30); do printf '{lib.HEADER}maxPods: %d\\n' $i > 50-{n}.conf; done &"
                       for n in range(4)).replace("&;", "&")
    lib.shell(script + " wait", cwd=mount.path("kubelet.conf.d"), check=True)
    mount.wait_for(lambda: "\nmaxPods: 30\n" in mount.document())
    same = mount.path("kubelet.conf.d", "60-same.conf")
    lib.shell(f"for w in 1 2 3; do (for i in $(seq 20); do printf '{lib.HEADER}podsPerCore: %d\\n' $i > {same}; done) &"
              f" done; wait; printf '{lib.HEADER}podsPerCore: 99\\n' > {same}", check=True)
    assert "\npodsPerCore: 99\n" in mount.document(), mount.status("findings")
    assert mount.condition()[0] == "True"


def peak_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def test_memory_stays_bounded(mount):
    """A bomb costs the engine no more than its limit, and does not end the process."""
    engine = mount.child("lkgfs-engine")
    for name in ("alias bomb", "deep flow, closed", "deep JSON"):
        lib.write_file(mount.path("kubelet.conf.d", "50-bad.conf"), BAD[name])
    os.unlink(mount.path("kubelet.conf.d", "50-bad.conf"))
    assert mount.child("lkgfs-engine") == engine
    assert peak_kib(engine) < 256 * 1024
    assert resource.getpagesize() and mount.condition()[0] == "True"


# As much as is accepted by default: 250 drop-ins, 8 MiB. How the names of their fields sort.
FULL = {
    "beside": "unknown{i}x{j}: 1",  # its own names, in a row
    "among": "unknown{j}x{i}: 1",  # its own names, interleaved with those of the others
    "same": "unknown{j}: {i}",  # the same names, again and again
}
N_FULL, N_FIELDS = 250, 1600


def full(shape):
    line = FULL[shape] + "\n"
    return {f"{i:04}.conf": lib.HEADER + "".join(line.format(i=i, j=j) for j in range(N_FIELDS)) for i in range(N_FULL)}


@pytest.mark.parametrize("shape", FULL)
def test_400_000_unknown_fields(shape):
    """Served, counted, and harmless to the engine, also where that takes more processor time than small content may use."""
    line = FULL[shape]
    with lib.Mount(tree=lambda directory: lib.make_tree(directory, dropins=full(shape)), start=False) as mount:
        mount.start()
        engine = mount.child("lkgfs-engine")
        assert mount.condition()[0] == "True", mount.status("error")
        names = mount.document().count("\nunknown")
        assert names == (N_FIELDS if shape == "same" else N_FIELDS * N_FULL)
        origin = mount.status("origin")
        assert len(origin) < (4 << 20) + 200 and origin.startswith("/apiVersion\t")
        unlisted = re.search(r"\n# (\d+) more are not listed: origin has at most 4194304 bytes; .*\n$", origin)
        assert (int(unlisted[1]) if unlisted else 0) + origin.count("\n/unknown") >= names
        assert re.search(r'^note: 399\d{3} more findings are not listed', mount.status('findings'), re.M)
        mount.drop("0200.conf", "maxPods: 55\n")
        mount.drop("0249.conf", "maxOpenFiles: 55\n")
        mount.sync()
        document = mount.document()
        assert "\nmaxPods: 55\n" in document and "\n" + line.format(i=248, j=7) + "\n" in document
        for i in (200, 249):
            assert "\n" + line.format(i=i, j=7) + "\n" not in document
        assert mount.child("lkgfs-engine") == engine and mount.condition()[0] == "True"
        assert peak_kib(engine) < 232 * 1024


def test_check_of_400_000_unknown_fields(tmp_path):
    """The peak of the whole process stays below the limit."""
    os.makedirs(tmp_path / "kubelet.conf.d")
    lib.write_file(tmp_path / "kubelet.conf", lib.HEADER)
    for name, text in full("among").items():
        lib.write_file(tmp_path / "kubelet.conf.d" / name, text)
    # A process inherits the peak of its parent, so a small one starts it.
    measure = ("import resource, subprocess, sys; status = subprocess.call(sys.argv[1:]); "
               "print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    result = lib.run(sys.executable, "-IS", "-c", measure, lib.LKGFS, "check", "--config", tmp_path / "kubelet.conf",
                     "--config-dir", tmp_path / "kubelet.conf.d")
    text, _, last = result.stdout.decode().rstrip().rpartition("\n")
    status, peak = last.split()
    assert status == "1" and text.count("[LKG5003]") in range(990, 1001), text[-2000:] + result.stderr.decode()
    assert re.search(r"^note: 399\d{3} more findings are not listed", text, re.M)
    assert int(peak) < 128 * 1024


HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")


NASTY = "a\x9b2J\x1b[31m\u202e\u2066\u200b"


@pytest.mark.parametrize("words", [
    ("convert", NASTY), ("render", "--config", NASTY), ("explain", NASTY), ("gate", NASTY), ("status", "--component", NASTY),
    ("patch", "--type", NASTY, "a", "b"), (NASTY,), ("--" + NASTY,), ("render", "--release", NASTY), ("status", "--mountpoint", NASTY),
    ("lkgfsd", "--" + NASTY), ("lkgfsd", "--config", "/" + NASTY, "/mnt"), ("lkgfs-engine", "--" + NASTY),
    ("lkgfs-engine", "--check", "--config", "/" + NASTY)])
def test_words_of_the_command_line_are_shown_harmless(words):
    """`lkgfs convert *`: the file names may come from somebody else."""
    program = {"lkgfsd": lib.LKGFSD, "lkgfs-engine": lib.BUILD / "core/engine/lkgfs-engine"}.get(words[0])
    result = lib.run(*([program, *words[1:]] if program else [lib.LKGFS, *words]), stdin=subprocess.DEVNULL)
    text = (result.stdout + result.stderr).decode()
    assert result.returncode != 0 and text and not HIDDEN.search(text), text


def test_nothing_hostile_reaches_a_terminal(mount):
    """Names and values with control characters (C0 and C1) and marks that change the direction of text."""
    nasty = "a\x9b2J\u202e\u2066\u200bz"
    mount.drop(f"50-{nasty}.conf", f'"{nasty}": 1\nclusterDomain: "{nasty}"\nfeatureGates: {{"{nasty}": true}}\n')
    assert mount.condition()[0] == "False"
    mount.drop(f"50-{nasty}.conf", f'"{nasty}": 1\nclusterDomain: "x{nasty}"\nstaticPodURLHeader: {{"{nasty}": ["{nasty}"]}}\n')
    mount.drop("60-good.conf", f'"{nasty}": 1\n')
    lib.write_file(mount.vpath("bad", "kubelet", "uid-1"), nasty)
    shown = {"log": mount.log()}
    for directory, _, names in os.walk(mount.vpath("status")):
        shown.update((name, lib.read_file(os.path.join(directory, name)).decode()) for name in names)
    for words in (("status", "--all"), ("doctor",), ("blame",), ("status", "-ojson"), ("bad",)):
        result = mount.tool(*words)
        shown[" ".join(words)] = (result.stdout + result.stderr).decode()
    assert "\\x9b" in shown["findings"]
    assert {name: HIDDEN.search(text).group() for name, text in shown.items() if HIDDEN.search(text)} == {}
