# SPDX-License-Identifier: Apache-2.0
"""promtool evaluates the alerts of contrib/prometheus over series as the engine exports them: they fire when they should, and not before."""
import json

import pytest

import lkgfs_testlib as lib

RULES = lib.REPOSITORY / "contrib/prometheus/lkgfs.rules.yaml"


def on(metric, node, **labels):
    words = {"instance": node, "component": "kubelet", **labels}
    return metric + "{" + ",".join(f'{key}="{value}"' for key, value in words.items()) + "}"


def many(metric, nodes, values, **labels):
    return {on(metric, f"n{i}", **labels): values for i in range(nodes)}


# name: (alert, {series: values, one per minute}, minute when it is quiet, minute when it fires, how many)
CASES = {
    "two nodes rolled back": ("LkgfsRolloutFails", many("lkgfs_rollbacks_total", 2, "0x9 1x60", reason="crash_loop"), 20, None, 0),
    "three nodes rolled back": ("LkgfsRolloutFails", many("lkgfs_rollbacks_total", 3, "0x9 1x60", reason="crash_loop"), 8, 15, 1),
    "rolled back by hand": ("LkgfsRolloutFails", many("lkgfs_rollbacks_total", 3, "0x9 1x60", reason="operator"), 20, None, 0),
    "a rollout has halted itself": ("LkgfsRolloutHalted", many("lkgfs_rollout_halted", 5, "0x9 1x60"), 8, 11, 1),
    "a node waits for a slot": ("LkgfsRolloutWaits", many("lkgfs_rollout_waiting", 2, "1x2000") | many("lkgfs_rollout_halted", 2, "0x2000"), 1400, 1450, 2),
    "a node waits behind a halt": ("LkgfsRolloutWaits", many("lkgfs_rollout_waiting", 2, "1x2000") | many("lkgfs_rollout_halted", 2, "1x2000"), 1450, None, 0),
    "refused": ("LkgfsConfigRefused", many("lkgfs_config_error", 2, "0x9 1x60"), 14, 17, 2),
    "refused by three": ("LkgfsRefusedByFleet", many("lkgfs_config_error", 3, "0x9 1x60"), 14, 17, 1),
    "the engine is down": ("LkgfsEngineDown", many("lkgfs_engine_up", 1, "1x9 0x60"), 10, 13, 1),
    "the engine is killed again and again": ("LkgfsProcessRestarts", many("lkgfs_process_restarts_total", 1, "0x9 0+600x60", process="lkgfs-engine"), 9, 14, 1),
    "the engine was killed three times": ("LkgfsProcessRestarts", many("lkgfs_process_restarts_total", 1, "0x9 3x60", process="lkgfs-engine"), 14, None, 0),
    "the credential expires": ("LkgfsCredentialExpires", {on("lkgfs_credential_expiration_timestamp_seconds", "n0"): "600000x2000"}, 30, 1440, 1),
    "the credential has months": ("LkgfsCredentialExpires", {on("lkgfs_credential_expiration_timestamp_seconds", "n0"): "9000000x2000"}, 1440, None, 0),
    "the metrics are gone": ("LkgfsMetricsGone", {on("lkgfs_condition_ok", "n0"): "1x20 stale", 'up{instance="n0"}': "1x100"}, 25, 40, 1),
    "the node is gone": ("LkgfsMetricsGone", {on("lkgfs_condition_ok", "n0"): "1x20 stale", 'up{instance="n0"}': "1x20 0x100"}, 40, None, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_an_alert(program, tmp_path, name):
    alert, series, quiet, fires, count = CASES[name]
    number = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    wanted = {quiet: 0, **({fires: count} if fires else {})}
    (tmp_path / "test.yaml").write_text(json.dumps({
        "rule_files": [str(RULES)], "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": [{"series": key, "values": values} for key, values in series.items()],
                   "promql_expr_test": [{"expr": number, "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": value}]}
                                        for minute, value in wanted.items()]}]}))
    result = lib.run(program("promtool"), "test", "rules", tmp_path / "test.yaml", timeout=60)
    assert result.returncode == 0, result.stdout.decode() + result.stderr.decode()
