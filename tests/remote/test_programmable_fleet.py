# SPDX-License-Identifier: Apache-2.0
"""A hundred virtual nodes with the product's own client and slots (tests/fleet) against the programmable server. With more of them,
and with figures: tests/fleet/fleet.py --server programmable.
"""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fleet"))

import fleet  # noqa: E402

pytestmark = pytest.mark.slow

NODES, SLOTS = 100, 25


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    options = fleet.arguments(["--server", "programmable", "--nodes", str(NODES)])
    one = fleet.open_cluster(options, tmp_path_factory.mktemp("fleet"))
    yield one
    one.close()


def play(cluster, scenario):
    """A rollout; it raises if the promise does not hold."""
    options = fleet.arguments(["--nodes", str(NODES), "--slots", str(SLOTS), "--duration", "0.5", "--quiet", "0", scenario])
    return fleet.Run(cluster, scenario, options).play()


def test_a_bad_version_breaks_one_node(cluster):
    result = play(cluster, "bad")
    assert (result["broken_ever"], result["bad"], result["halted"], result["taken"]) == (1, 1, NODES - 1, 1)


def test_the_mended_version_reaches_every_node(cluster):
    """What other nodes do with their slots is no reason to write: the requests grow with the fleet, not with its square."""
    result = play(cluster, "two")
    assert result["good"] == NODES and result["broken_ever"] == 1 and result["slot_objects"] <= SLOTS + 1
    rollout, = [phase for phase in result["phases"] if phase["name"] == "rollout"]
    assert rollout["patches"] <= 8 * NODES and rollout["requests"] <= 24 * NODES, rollout
