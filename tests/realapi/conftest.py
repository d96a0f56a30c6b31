# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests against a real kube-apiserver: one server per session, separate nodes and objects for each test."""
import itertools
import os
import pathlib
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
sys.dont_write_bytecode = True

from lkgfs_fixtures import *  # noqa: E402,F401,F403  pylint: disable=wildcard-import,unused-wildcard-import
import lkgfs_testlib as lib  # noqa: E402
from lkgfs_apinode import ApiNode  # noqa: E402
from lkgfs_realapi import RealApi  # noqa: E402

numbers = itertools.count(1)


@pytest.fixture(scope="session")
def real():
    """The API server."""
    with tempfile.TemporaryDirectory(prefix=lib.PREFIX, dir=lib.PARENT) as directory, RealApi(directory) as api:
        yield api


class Fleet:
    """Nodes of one test and the ConfigMap that they follow; no other test uses their names."""

    def __init__(self, real, mounts):
        self.real, self.mounts = real, mounts
        self.number = next(numbers)
        self.configmap = f"config-{self.number}"
        self.reference = f"kube-system/{self.configmap}"
        self.role = f"lkgfs-{self.number}"
        self.nodes, self.names = [], []

    def allow(self, *verbs):
        """Set what nodes may do with the ConfigMap; nothing = no Role at all."""
        if verbs:
            self.real.grant(self.role, "system:nodes", list(verbs), [self.configmap])
        else:
            self.real.revoke(self.role)

    def put(self, body, annotations=None):
        text = body if body.startswith("{") else lib.HEADER + body
        return self.real.put_configmap(self.configmap, {"kubelet": text}, annotations)

    def object(self, annotate=True):
        """Create a Node object; return its name."""
        name = f"node-{self.number}-{len(self.names)}"
        self.names.append(name)
        self.real.create_node(name, {"lkgfs.io/config-source": self.reference} if annotate else None)
        return name

    def node(self, name=None, kubeconfig=None, **options):
        """A running lkgfsd of the Node `name`, aside, with the node's own credential."""
        name = name or self.object()
        one = ApiNode(self.mounts, kubeconfig or self.real.node_credential(name), name, **options)
        self.nodes.append(one)
        return one

    def wait(self, predicate, what, node=None):
        """Wait until something is true at the API server."""
        return (node or self.nodes[0]).mount.wait_for(predicate, what)

    def close(self):
        for one in self.nodes:
            one.close()
        self.mounts.close()
        for name in self.names:
            self.real.delete_node(name, missing_ok=True)
            for end in (".crt", ".key", ".conf"):
                path = os.path.join(self.real.directory, f"node-{name}{end}")
                if os.path.exists(path):
                    os.unlink(path)
        self.real.delete_configmap(self.configmap, missing_ok=True)
        self.real.revoke(self.role)


@pytest.fixture
def fleet(real, mounts):
    one = Fleet(real, mounts)
    yield one
    one.close()
