# SPDX-License-Identifier: Apache-2.0
"""What is missing, generated, fatal or half-written is never served: the base, and values with which the component would not start.

Rule: docs/specification.md 3.7.
"""
import os
import shutil

import pytest

import lkgfs_testlib as lib

BASE = "authentication: {anonymous: {enabled: false}}\nauthorization: {mode: Webhook}\n"
CONFIGURED = [{"name": "kubelet", "file": "kubelet.conf", "base": "config.yaml"}]


def with_base_aside(source, **options):
    lib.make_tree(source, **{"base": None, "instance": None, "dropins": {"10-a.conf": lib.HEADER + "maxPods: 10\n"}, **options})
    lib.write_file(os.path.join(source, "config.yaml"), lib.HEADER + BASE)


def gone(mount, name, wait=True):
    os.rename(mount.behind(name), os.path.join(mount.root, "aside"))
    if wait:
        mount.wait_for(lambda: "LKG2031" in mount.status("findings"), "the base is missing")


def check_kept(mount, document):
    assert mount.document() == document and mount.condition()[0] == "False"
    assert "LKG2031" in mount.status("findings") and 'base: ""' in mount.status("findings")


def test_a_configured_base_must_exist(mounts):
    mount = mounts(components=CONFIGURED, tree=with_base_aside)
    document = mount.document()
    gone(mount, "config.yaml")
    check_kept(mount, document)
    mount.drop("20-b.conf", "podsPerCore: 3\n")  # nothing else is served either
    check_kept(mount, document)
    mount.kill_child("lkgfs-engine")
    mount.sync()
    check_kept(mount, document)
    assert mount.stop() == 0
    mount.start()
    check_kept(mount, document)
    os.rename(os.path.join(mount.root, "aside"), mount.behind("config.yaml"))
    mount.wait_for(lambda: mount.condition()[0] == "True", "the base is back")
    assert "\npodsPerCore: 3\n" in mount.document() and "Webhook" in mount.document()


def test_a_configured_base_at_the_very_first_start(mounts):
    mount = mounts(components=CONFIGURED, tree=lib.make_tree, start=False, base=None)
    process = mount.start(wait_ready=False)
    assert process.wait(lib.TIMEOUT_S) == 78
    assert "config.yaml" in mount.log() and "LKG2031" in mount.log()


@pytest.mark.parametrize("restart", [False, True])
def test_a_default_base_must_exist_once_it_was_served(mounts, restart):
    mount = mounts(dropins={"10-a.conf": lib.HEADER + "maxPods: 10\n"})
    document = mount.document()
    if restart:
        assert mount.stop() == 0
        os.unlink(os.path.join(mount.source, "kubelet.conf"))
        mount.start()
    else:
        gone(mount, "kubelet.conf")
    check_kept(mount, document)
    # The administrator configures no base.
    mount.write_config(components=[{"name": "kubelet", "base": ""}])
    mount.reload()
    mount.wait_for(lambda: mount.condition()[0] == "True", "no base, on purpose")
    assert "\nmaxPods: 10\n" in mount.document() and "LKG2031" not in mount.status("findings")


def test_a_default_base_that_never_was_there_may_be_missing(mounts):
    mount = mounts(base=None, dropins={"10-a.conf": lib.HEADER + "maxPods: 10\n"})
    assert mount.condition()[0] == "True"
    assert [line for line in mount.status("findings").splitlines() if "LKG2018" in line and "warning" in line]
    mount.kill_child("lkgfs-engine")
    mount.sync()
    assert mount.condition()[0] == "True"


def test_the_fallback_copy_is_no_base(mounts):
    """While the base is missing, our own copy of the served document is in its place: it must not be taken for the base."""
    mount = mounts()
    document = mount.document()
    gone(mount, "kubelet.conf")
    assert mount.stop() == 0
    assert os.path.exists(os.path.join(mount.source, "kubelet.conf"))
    mount.start()
    check_kept(mount, document)


@pytest.mark.parametrize("before", ["\ufeff", "---\n", "\n", " ", "#\n# managed by somebody\n"],
                         ids=["byte order mark", "marker", "empty line", "blank", "comments"])
def test_what_lkgfs_generated_is_no_base_behind_anything(mounts, before):
    mount = mounts()
    document = mount.document()
    lib.write_file(mount.behind("kubelet.conf"), before + document)
    mount.wait_for(lambda: "LKG2032" in mount.status("findings"), "a generated file in the place of the base")
    assert mount.document() == document and mount.condition()[0] == "False"


@pytest.mark.parametrize("name", ["kubelet.conf", "config.yaml"])
def test_what_lkgfs_generated_is_no_base(mounts, name):
    components = None if name == "kubelet.conf" else CONFIGURED
    mount = mounts(components=components, **({} if components is None else {"tree": with_base_aside}))
    document = mount.document()
    # Restore a backup of the view to the source: without extended attributes.
    backup = os.path.join(mount.root, "backup")
    shutil.copyfile(mount.path("kubelet.conf"), backup)
    shutil.copyfile(backup, mount.behind(name))
    mount.wait_for(lambda: "LKG2032" in mount.status("findings"), "a generated file in the place of the base")
    assert mount.document() == document and mount.condition()[0] == "False"
    mount.drop("99-z.conf", "maxPods: 99\n")
    assert mount.document() == document
    lib.write_file(mount.behind(name), lib.HEADER + BASE)
    mount.wait_for(lambda: mount.condition()[0] == "True", "the base is back")
    assert "\nmaxPods: 99\n" in mount.document()


# ---- values that end the component at its start ----

DEADLY = "evictionHard: {memory.available: 500MB}\n"


def test_what_ends_the_component_is_refused(mounts):
    mount = mounts()
    document = mount.document()
    mount.drop("50-deadly.conf", DEADLY)
    assert mount.document() == document and mount.condition()[0] == "False"
    assert [line for line in mount.status("findings").splitlines() if "LKG5021" in line and ": error: " in line]
    mount.write_config(components=[{"name": "kubelet", "startupRules": "warn"}])
    mount.reload()
    mount.wait_for(lambda: mount.condition()[0] == "True", "a warning")
    assert "500MB" in mount.document()
    assert [line for line in mount.status("findings").splitlines() if "LKG5021" in line and ": warning: " in line]


def test_check_says_error_and_render_loads_it(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(lib.HEADER + DEADLY)
    check = lib.run(lib.LKGFS, "check", "--config", str(path), check=False)
    assert check.returncode == 1 and ": error: " in check.stdout.decode() and "LKG5021" in check.stdout.decode()
    render = lib.run(lib.LKGFS, "render", "--config", str(path), check=False)
    assert render.returncode == 0 and "500MB" in render.stdout.decode()


# ---- files that are not written yet ----

def test_an_empty_file_that_was_closed_has_time(mounts):
    """ansible creates .ansible_tmpXXXX10-x.conf, empty, then writes it, then renames it."""
    mount = mounts(dropins={}, instance=None)
    generation = mount.generation()
    for name in ("20-empty.conf", ".ansible_tmp1a2b3c20-x.conf"):
        lib.write_file(mount.path("kubelet.conf.d", name), "")
        assert mount.condition()[0] == "True" and mount.generation() == generation, name
        lib.write_file(mount.path("kubelet.conf.d", name), lib.HEADER + "maxPods: 77\n")
        if name.startswith("."):
            assert mount.generation() == generation, "nor is what has a temporary name served"
            os.rename(mount.path("kubelet.conf.d", name), mount.path("kubelet.conf.d", "20-x.conf"))
        assert mount.condition()[0] == "True"
        assert "\nmaxPods: 77\n" in mount.document() and mount.generation() == generation + 1
        generation = mount.generation()
        mount.drop("20-x.conf", "maxPods: 78\n")
        generation = mount.generation()


def test_an_empty_file_counts_in_the_end(mounts):
    """Rule: docs/specification.md 2.5."""
    mount = mounts(dropins={}, instance=None)
    lib.write_file(mount.path("kubelet.conf.d", "20-empty.conf"), "")
    mount.wait_for(lambda: "20-empty.conf" in mount.status("findings"), "two seconds later")
    assert mount.condition()[0] == "False"


def test_a_hidden_file_counts_in_the_end(mounts):
    """Rule: docs/specification.md 2.5."""
    mount = mounts(dropins={}, instance=None)
    mount.drop(".hidden.conf", "podsPerCore: 5\n")
    assert "\npodsPerCore: 5\n" not in mount.document()  # probably a temporary name: its writer may continue
    mount.wait_for(lambda: "\npodsPerCore: 5\n" in mount.document(), "the component reads it, too")


# ---- a kubeconfig in its place ----

def test_the_advice_says_the_whole_configuration(mounts):
    mount = mounts(start=False, base=lib.KUBECONFIG)
    process = mount.start(wait_ready=False)
    assert process.wait(lib.TIMEOUT_S) == 78
    log = mount.log()
    lines = log[log.index("components:\n"):].splitlines()[:5]
    assert lines[:1] == ["components:"] and any("base: /var/lib/kubelet/config.yaml" in line for line in lines)
    assert any("file: kubelet-config.yaml" in line for line in lines) and "--config=" in log
