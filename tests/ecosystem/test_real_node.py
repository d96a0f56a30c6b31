# SPDX-License-Identifier: Apache-2.0
"""Static pods on a real node, in a virtual machine: the accidents of every day without and with lkgfs, and what must restart nothing.

One story: each test begins with what the one before has left. Its figures are in real-node.md of the build folder.
"""
import pathlib
import shutil
import sys
import tempfile

import pytest

import lkgfs_testlib as lib
sys.path.insert(0, str(lib.REPOSITORY / "tests/machine"))
from inside import PROGRAMS, UNIT, denials, processes, wait_for, wait_for_others  # noqa: E402
from laboratory import make_image  # noqa: E402
from real_node import FILE, LOOK_S, MANIFESTS, PODS, START_S, Node, files_for  # noqa: E402

pytestmark = pytest.mark.limit(1800)

VIEW = "/etc/kubernetes/static-pods"
STATUS = "/etc/kubernetes/status/static-pods"
TRIAL_S = 240  # with QEMU's translator the API server takes a minute and a half to answer
TRIAL = f"""  trial:
    duration: {TRIAL_S}s
    settle: 15s
    health: {{stableFor: 15s}}
trial: {{crashLoopThreshold: 1}}
"""


def flag(word):
    return f"sed -i 's/^    - kube-apiserver$/&\\n    - {word}/' {FILE}"


ACCIDENTS = {
    "a typo": f"sed -i 's/^  containers:/  containers/' {FILE}",
    "a copy beside it, then an edit": f"cp {FILE} {FILE}.bak && {flag('--v=3')}",
    "a flag that it does not know": flag("--no-such-flag"),
    "half of it written, the rest 30 s later": f"sed 's/^    - kube-apiserver$/&\\n    - --v=4/' {FILE} > /root/next && "
                                               f"{{ head -c 1200 /root/next; sleep 30; tail -c +1201 /root/next; }} > {FILE}",
}
rows = []


@pytest.fixture(scope="module", name="node")
def fixture_node(program):
    (lib.BUILD / "machine").mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="node-", dir=lib.BUILD / "machine"))
    try:
        made = Node(make_image(lib.BUILD / "machine"), folder, *files_for(program, folder / "files"))
        try:
            made.set_up()
            made.output(f"cp {FILE} /root/good")
            yield made
        finally:
            made.cut()
    finally:
        shutil.rmtree(folder)
        (lib.BUILD / "real-node.md").write_text("| event | without lkgfs | with lkgfs |\n| --- | --- | --- |\n" + "".join(rows))
