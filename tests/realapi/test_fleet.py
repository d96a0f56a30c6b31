# SPDX-License-Identifier: Apache-2.0
"""Thirty virtual nodes (tests/fleet) with credentials of their own against a real kube-apiserver. With a thousand of them, and with
figures: tests/fleet/fleet.py.
"""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fleet"))

import fleet  # noqa: E402
from fleet_real import RealCluster  # noqa: E402

NODES, SLOTS = 30, 8


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A server of its own: the scenarios stop it and drop its history."""
    directory = fleet.tempfile.mkdtemp(prefix=fleet.lib.PREFIX, dir=fleet.lib.PARENT)
    try:
        one = RealCluster(directory, [f"node-{i}" for i in range(NODES)])
        try:
            yield one
        finally:
            one.close()
    finally:
        fleet.shutil.rmtree(directory)


def play(cluster, scenario):
    """A rollout; it raises if the promise does not hold."""
    options = fleet.arguments(["--nodes", str(NODES), "--slots", str(SLOTS), "--duration", "0.5", "--quiet", "0", scenario])
    return fleet.Run(cluster, scenario, options).play()


def test_a_bad_version_breaks_one_node_and_the_mended_one_reaches_all(cluster):
    """What other nodes do with their slots is no reason to write: the requests grow with the fleet, not with its square."""
    result = play(cluster, "two")
    assert result["good"] == NODES and result["broken_ever"] == 1 and result["slot_objects"] <= SLOTS + 1
    rollout, = [phase for phase in result["phases"] if phase["name"] == "rollout"]
    assert rollout["patches"] <= 8 * NODES and rollout["requests"] <= 24 * NODES, rollout


def test_hardware_that_cannot_stand_it_halts_the_rollout(cluster):
    result = play(cluster, "hardware")
    assert result["broken_ever"] == 1 and result["states"]["failed"] == 1
    assert result["good"] + result["bad"] + result["halted"] == NODES


def test_a_server_without_its_history_changes_nothing(cluster):
    """Compaction and a restart: every watch begins anew."""
    assert play(cluster, "compact")["good"] == NODES
