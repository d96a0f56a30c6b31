# SPDX-License-Identifier: Apache-2.0
"""status/kubelet/effective.yaml: defaults, layers and the command line of the component, each value marked with its origin; and
how a command line refers to the view. The component is a small program that takes any flag, opens the file and keeps running.
"""
import contextlib
import os
import re
import signal
import stat
import subprocess

import pytest
import yaml

import lkgfs_testlib as lib

BASE = lib.HEADER + "failCgroupV1: false\nmaxPods: 110\n"

STAND_IN = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                FILE *asked = fopen(ASKED, "a");

                if (asked)
                        fputs("asked\n", asked);
                return puts("Kubernetes " VERSION) < 0;
        }
        if (open(VIEW_FILE, O_RDONLY) < 0 || write(1, "opened\n", 7) < 0)
                return 1;
        return pause();
}
"""


class Component:
    """A stand-in for the kubelet, recognised by its executable."""

    def __init__(self, mount):
        self.mount, self.process = mount, None
        self.exe = os.path.join(mount.root, "bin", "kubelet")
        self.asked = os.path.join(mount.root, "asked")

    def install(self, version):
        os.makedirs(os.path.dirname(self.exe), exist_ok=True)
        lib.run("cc", "-x", "c", "-o", self.exe + ".new", "-", f'-DVERSION="{version}"', f'-DASKED="{self.asked}"',
                f'-DVIEW_FILE="{self.mount.path("kubelet.conf")}"', input=STAND_IN.encode(), check=True)
        os.chmod(self.exe + ".new", 0o755)
        os.rename(self.exe + ".new", self.exe)

    def start(self, *flags):
        """Return when it has opened the file."""
        self.stop()
        self.process = subprocess.Popen([self.exe, *flags], stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"opened\n"

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process.stdout.close()
            self.process = None


@pytest.fixture
def component(mounts):
    """A mount over a small base; its component is a stand-in of release 1.36."""
    with contextlib.ExitStack() as stack:
        def begin(version="v1.36.3", base=BASE, settings=None, **options):
            mount = mounts(start=False, base=base, instance=None,
                           dropins={"10-pods.conf": lib.HEADER + "maxPods: 50\n"}, **options)
            it = Component(mount)
            stack.callback(it.stop)
            if version:
                it.install(version)
            mount.write_config(components=[{"name": "kubelet", "match": {"unit": "", "exe": [it.exe]},
                                            **(settings or {})}])
            mount.start()
            return it
        yield begin


def effective(mount):
    return mount.status("effective.yaml")


def mark(mount, field):
    """Return (value, mark) of a line."""
    found = re.search(rf"^ *{re.escape(field)}: ?(.*?) # (.*)$", effective(mount), re.M)
    return found.groups() if found else None


def wait_mark(mount, field, wanted):
    mount.wait_for(lambda: mark(mount, field) == wanted, f"{field}: {wanted}; is {mark(mount, field)}")


def findings(mount):
    return mount.status("findings")


def flags(mount, *more):
    return (f"--config={mount.path('kubelet.conf')}", *more)


def test_marks_of_defaults_layers_and_flags(component):
    kubelet = component()
    mount = kubelet.mount
    assert mark(mount, "port") == ("10250", "default")
    assert mark(mount, "failCgroupV1") == ("false", "base kubelet.conf")
    assert mark(mount, "maxPods") == ("50", "drop-in 10-pods.conf")
    kubelet.start(*flags(mount, "--fail-swap-on=false", "--max-pods", "70", "--feature-gates=NodeLogQuery=true"))
    wait_mark(mount, "maxPods", ("70", "flag --max-pods"))
    assert mark(mount, "failSwapOn") == ("false", "flag --fail-swap-on")
    assert mark(mount, "NodeLogQuery") == ("true", "flag --feature-gates")
    document = yaml.safe_load(effective(mount))
    assert document["maxPods"] == 70 and document["kind"] == "KubeletConfiguration"
    assert effective(mount).splitlines()[0].startswith("# ")
    assert "maxPods: 50" in mount.document(), "flags are not served"


def test_it_is_a_document_file_of_the_component(component):
    mount = component(settings={"mode": "0640", "group": "daemon"}).mount
    info = os.stat(mount.vpath("status", "kubelet", "effective.yaml"))
    view = os.stat(mount.path("kubelet.conf"))
    assert stat.S_IMODE(info.st_mode) == 0o640
    assert (info.st_uid, info.st_gid) == (view.st_uid, view.st_gid)


def test_no_file_for_a_kind_without_a_table(mounts):
    other = {"kind": "Other", "apiVersion": "example.org/v1"}
    mount = mounts(base="kind: Other\napiVersion: example.org/v1\nvalue: 1\n", dropins={}, instance=None,
                   components=[{"name": "kubelet", **other}])
    assert mount.condition()[0] == "True" and "effective.yaml" not in os.listdir(mount.vpath("status", "kubelet"))
    mount.write_config(components=[{"name": "kubelet"}])
    mount.reload()
    mount.wait_for(lambda: mount.condition()[0] == "False" and "not read by kubelet" in mount.status("findings"), "a refusal")
    mount.write("kubelet.conf.base", BASE)
    assert mark(mount, "maxPods") == ("110", "base kubelet.conf")


def test_secrets_are_not_shown(component):
    kubelet = component()
    mount = kubelet.mount
    kubelet.start(*flags(mount, "--manifest-url=https://user:hunter2@example.org/pods?token=hunter2", "hunter2",
                         "--manifest-url-header=Authorization:Bearer hunter2",
                         "--storage-driver-password=hunter2", "--max-pods=70"))
    wait_mark(mount, "maxPods", ("70", "flag --max-pods"))
    assert "staticPodURLHeader" in effective(mount)
    for directory, _, names in os.walk(mount.vpath("status")):
        for name in names:
            assert b"hunter2" not in lib.read_file(os.path.join(directory, name)), name
    assert "hunter2" not in mount.log()


def test_a_component_newer_than_the_tables(component):
    """Nothing is refused because of a gate or field that the tables cannot have; `doctor` says what that means."""
    kubelet = component("v1.47.0")
    mount = kubelet.mount
    mount.wait_for(lambda: "LKG4017" in findings(mount), "the release is known")
    mount.drop("60-new.conf", "featureGates: {FromTheFuture: true}\nfieldOfTheFuture: 1\nmaxPods: 61\n")
    assert "maxPods: 61" in mount.document() and mount.condition()[0] == "True"
    said = findings(mount)
    assert said.count("LKG4017") == 1 and "warning: featureGates: \"FromTheFuture\" is unknown in 1.37" in said and "error:" not in said
    doctor = lib.run(lib.LKGFS, "doctor", "--mountpoint", mount.mountpoint).stdout.decode()
    assert "is of release 1.47, for which there are no tables (known: 1.33 to 1.37)" in doctor, doctor
    kubelet.install("v1.37.2")
    kubelet.start(*flags(mount))
    mount.wait_for(lambda: "LKG5013" in findings(mount) and mount.condition()[0] == "False", "1.37 is known to refuse it")


def test_the_version_is_asked_once_per_executable(component):
    kubelet = component("v1.34.2")
    mount = kubelet.mount
    mount.wait_for(lambda: "release 1.34," in effective(mount), "first release")
    for _ in range(3):
        kubelet.start(*flags(mount))
    # a process that ends before the engine has looked at it is never noticed
    mount.wait_for(lambda: "of the running process" in effective(mount), "the process is seen")
    kubelet.stop()
    mount.wait_for(lambda: "ran last" in effective(mount), "the process is gone")
    assert lib.read_file(kubelet.asked) == b"asked\n"
    kubelet.install("v1.35.1")
    kubelet.start(*flags(mount))
    mount.wait_for(lambda: "release 1.35," in effective(mount), "after the upgrade")
    assert lib.read_file(kubelet.asked) == b"asked\n" * 2


def test_a_program_that_others_could_replace_is_not_asked(component):
    kubelet = component(version=None)
    mount, refused = kubelet.mount, "match.exe: --version is not asked for"
    kubelet.install("v1.34.2")
    os.chmod(os.path.dirname(kubelet.exe), 0o777)
    mount.reload()
    mount.wait_for(lambda: refused in mount.log(), "it is refused")
    for _ in range(3):
        kubelet.start(*flags(mount))
        mount.reload()
    kubelet.stop()
    assert not os.path.exists(kubelet.asked)
    os.chmod(os.path.dirname(kubelet.exe), 0o755)
    mount.reload()
    mount.wait_for(lambda: "release 1.34," in effective(mount), "its directory is root's alone now")
    assert mount.log().count(refused) == 1
    assert lib.read_file(kubelet.asked) == b"asked\n"


def test_an_executable_that_hangs_is_in_nobodys_way(component):
    kubelet = component(version=None)
    mount = kubelet.mount
    os.makedirs(os.path.dirname(kubelet.exe))
    lib.write_file(kubelet.exe, "#!/bin/sh\nsleep 1000\n", 0o755)
    mount.reload()
    mount.drop("20-more.conf", "maxPods: 60\n")
    assert mark(mount, "maxPods") == ("60", "drop-in 20-more.conf")
    assert mount.stop() == 0


@pytest.mark.parametrize("over", [True, False])
def test_drop_ins_applied_twice(component, over):
    kubelet = component(over=over)
    mount = kubelet.mount
    kubelet.start(*flags(mount, "--config-dir", mount.path("kubelet.conf.d")))
    mount.wait_for(lambda: "LKG5019" in findings(mount), "--config-dir is ours")
    assert "error: " in findings(mount)
    kubelet.start(*flags(mount, "--config-dir=/etc"))
    mount.wait_for(lambda: "LKG5019" not in findings(mount), "another directory")
    link = os.path.join(mount.root, "link")
    os.symlink(mount.source, link)
    kubelet.start(*flags(mount, f"--config-dir={link}/../link/kubelet.conf.d/"))
    mount.wait_for(lambda: "LKG5019" in findings(mount), "the same by a link")
    assert "LKG4016" not in findings(mount)


@pytest.mark.parametrize("over", [True, False])
def test_a_component_that_reads_another_file(component, over):
    kubelet = component(over=over)
    mount = kubelet.mount
    kubelet.start("--config=" + os.path.join(mount.source, "admin.conf"))
    mount.wait_for(lambda: "LKG4016" in findings(mount), "another file")
    link = os.path.join(mount.root, "link.yaml")
    os.symlink(mount.path("kubelet.conf"), link)
    kubelet.start("--config", link)
    mount.wait_for(lambda: "LKG4016" not in findings(mount), "a link to the view")
    kubelet.start("--max-pods=70")
    mount.wait_for(lambda: "LKG4016" in findings(mount), "no --config")
    kubelet.start("--config=/in/a/container/config.yaml")
    mount.wait_for(lambda: "LKG4016" not in findings(mount), "what cannot be followed is not complained about")


# ---- where values come from, when only the layers change ----

def origin_of(mount, pointer):
    return [line for line in mount.status("origin").splitlines() if line.startswith(pointer + "\t")][0]


def test_origin_follows_a_change_that_leaves_the_document_as_it_was(mounts):
    mount = mounts(dropins={"60-x.conf": lib.HEADER + "maxPods: 60\n", "61-y.conf": lib.HEADER + "maxPods: 60\n"},
                   instance=None)
    generation = mount.generation()
    assert "61-y.conf:3:" in origin_of(mount, "/maxPods")
    mount.write("kubelet.conf.d/61-y.conf", "# one\n# two\n" + lib.HEADER + "maxPods: 60\n")
    assert "61-y.conf:5:" in origin_of(mount, "/maxPods")
    os.unlink(mount.path("kubelet.conf.d/61-y.conf"))
    assert "60-x.conf:3:" in origin_of(mount, "/maxPods") and "61-y" not in mount.status("origin")
    assert "60-x.conf" in mount.status("effective.yaml") and "61-y" not in mount.status("effective.yaml")
    assert "60-x.conf" in mount.tool("blame", "maxPods").stdout.decode()
    assert mount.generation() == generation, "nothing else is served"
    mount.kill_child("lkgfs-engine")
    mount.sync()
    assert "60-x.conf:3:" in origin_of(mount, "/maxPods")
