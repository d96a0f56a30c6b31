# SPDX-License-Identifier: Apache-2.0
"""kube-bench judges the file that the kubelet of an adopted node reads, drop-ins and all, and not only its base."""
import json
import pathlib

import pytest

import lkgfs_testlib as lib

pytestmark = pytest.mark.limit(600)

BENCHMARK = "cis-1.11"
MODULE = "github.com/aquasecurity/kube-bench"


@pytest.fixture(name="bench")
def bench_of_a_node(machine, deb, program):
    """Runs the benchmark on a node of kubeadm that is adopted; a process with the name of the kubelet runs. Return {number: status}."""
    cache = lib.run("go", "env", "GOMODCACHE", check=True).stdout.decode().strip()
    tables = sorted(pathlib.Path(cache, MODULE).parent.glob("kube-bench@*/cfg"))[-1]
    kube_bench = program("kube-bench")
    machine.install(deb)
    machine.put_tree(lib.REPOSITORY / "tests/e2e/adopt/kubeadm/tree")
    machine.shell("chmod 600 /etc/kubernetes/kubelet.conf; mkdir /etc/kubernetes/pki; touch /etc/kubernetes/pki/ca.crt; "
                  "mkdir /opt/stand-in && cp /usr/bin/sleep /opt/stand-in/kubelet && { /opt/stand-in/kubelet infinity > /dev/null 2>&1 & }", check=True)
    machine.run("lkgfs", "adopt", check=True)

    def run():
        result = machine.run(kube_bench, "run", "--targets", "node", "--benchmark", BENCHMARK, "--config-dir", tables, "--config",
                             tables / "config.yaml", "--json", timeout=60, check=True)
        return {one["test_number"]: one["status"] for group in json.loads(result.stdout)["Controls"][0]["tests"] for one in group["results"]}
    return run


def test_it_judges_the_merged_file(machine, bench):
    first = bench()
    # Modes and owners of: the kubeconfig through the view, the CA through the view, the merged file.
    assert {first[number] for number in ("4.1.5", "4.1.6", "4.1.7", "4.1.8", "4.1.9", "4.1.10")} == {"PASS"}
    # Anonymous access, authorization, client CA, read-only port, rotation: what the base says.
    assert {first[number] for number in ("4.2.1", "4.2.2", "4.2.3", "4.2.4", "4.2.10")} == {"PASS"}
    assert first["4.2.13"] == first["4.2.14"] == "WARN"

    machine.write("/etc/kubernetes/kubelet.conf.d/50-cis.conf", lib.HEADER + "podPidsLimit: 4096\nseccompDefault: true\nreadOnlyPort: 10255\n"
                                                                             "authentication: {anonymous: {enabled: true}}\n")
    changed = {number: status for number, status in bench().items() if first[number] != status}
    assert changed == {"4.2.1": "FAIL", "4.2.4": "WARN", "4.2.13": "PASS", "4.2.14": "PASS"}
