# SPDX-License-Identifier: Apache-2.0
"""The manifests of contrib/rbac grant what they claim and nothing more: runs their own check against this API server."""
import os

import lkgfs_testlib as lib


def test_the_manifests_grant_what_they_say(real):
    done = lib.run(lib.REPOSITORY / "contrib/rbac/test-rbac", real.directory / "admin.conf", timeout=90,
                   env={**os.environ, "KUBECACHEDIR": str(real.directory)})
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0 and lines[0] == "1..8", done.stdout.decode() + done.stderr.decode()
    assert [line for line in lines[1:] if not line.startswith("ok ")] == []
