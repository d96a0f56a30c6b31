# SPDX-License-Identifier: Apache-2.0
"""The transport, with requests that start and end inside its callbacks. Most useful in the sanitizer build."""
import json

import pytest

import lkgfs_apifaults as faults
import lkgfs_remotetool as remotetool
from lkgfs_testlib import TIMEOUT_S

BROKEN = {
    "cut": faults.cut(150), "reset": faults.reset(150), "silence": faults.silence(150), "hang": faults.hang(),
    "endless": faults.endless(), "line": faults.endless_line(), "busy": faults.status(429), "page": faults.html(),
    "away": faults.redirect("https://127.0.0.1:1/"),
}
GET = "/api/v1/namespaces/kube-system/configmaps/"
WATCH = "~/api/v1/namespaces/kube-system/configmaps?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3D"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_requests_start_and_end_from_inside_callbacks(server, client, seed):
    names = [*BROKEN, *["node-config"] * len(BROKEN)]  # half of them are answered properly
    for name, fault in BROKEN.items():
        server.fault(fault, name=name)
    process = remotetool.start("http-storm", client.kubeconfig, "--requests", "400", "--seed", str(seed),
                               *(GET + name for name in names), *(WATCH + name for name in names))
    try:
        out, errors = process.communicate(timeout=4 * TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, errors.decode()
    counts = json.loads(out)
    assert counts["started"] == 400 == counts["ended"] + counts["cancelled"]
    assert counts["ended"] > 50 and counts["cancelled"] > 50
    assert client.get()["status"] == "ok"
