# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the API client's tests: no root, no mount; its tools against a programmable API server."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
sys.dont_write_bytecode = True

import lkgfs_remotetool as remotetool  # noqa: E402
from lkgfs_apiserver import ApiServer  # noqa: E402
from lkgfs_certs import Certificates  # noqa: E402

NAMESPACE, NAME = "kube-system", "node-config"


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes seconds; left out under the sanitizers")


def pytest_sessionstart():
    if not os.access(remotetool.TOOLS / "remote-tool", os.X_OK):
        pytest.exit(f"{remotetool.TOOLS} has no remote-tool: build first, or set LKGFS_BUILD", 2)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def server(certificates):
    """A server with a Node n1 and a ConfigMap that it may read and watch."""
    with ApiServer(certificates) as one:
        one.store.node("n1")
        one.store.configmap(NAMESPACE, NAME, {"kubelet": "maxPods: 1\n"})
        one.rbac.allow("system:nodes", ["get", "watch"], "configmaps", NAMESPACE)
        yield one


class Client:
    """One kubeconfig and the runs of remote-tool that use it."""

    def __init__(self, server, directory):
        self.server, self.directory = server, directory
        self.kubeconfig = server.kubeconfig(directory / "kubeconfig", node="n1")
        self.tools = []

    def get(self, name=f"{NAMESPACE}/{NAME}", resource="configmaps", **options):
        """Return the line that a GET results in."""
        line, self.memory = remotetool.get(options.pop("kubeconfig", self.kubeconfig), resource, name, **options)
        return line

    def watch(self, name=f"{NAMESPACE}/{NAME}", resource="configmaps", **options):
        tool = remotetool.Tool(options.pop("kubeconfig", self.kubeconfig), resource, name, **options)
        self.tools.append(tool)
        return tool

    def watching(self, **options):
        """A watch that is open and has reported the state."""
        tool = self.watch(**options)
        tool.wait_state(lambda state: state is not None)
        tool.wait_mode("watch")
        self.server.wait_watch()
        return tool

    def put(self, body, **options):
        """Change the ConfigMap; return the object."""
        return self.server.store.configmap(NAMESPACE, NAME, {"kubelet": body}, **options)

    def current(self):
        return self.server.store.get("configmaps", NAMESPACE, NAME)


@pytest.fixture
def client(server, tmp_path):
    one = Client(server, tmp_path)
    yield one
    failures = []
    for tool in one.tools:
        try:
            tool.close()
        except AssertionError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]
