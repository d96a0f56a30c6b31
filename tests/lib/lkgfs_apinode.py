# SPDX-License-Identifier: Apache-2.0
"""A node that follows an API server, the programmable or the real one."""
import json

import lkgfs_testlib as lib
from lkgfs_node import NAMESPACE, Node

CONFIGMAP = "node-config"
ANNOTATION = "lkgfs.io/config-source"
REFERENCE = f"{NAMESPACE}/{CONFIGMAP}"


def payload(body):
    """`data` of a ConfigMap."""
    return {"kubelet": lib.HEADER + body}


def source_id(obj, key="kubelet"):
    meta = obj["metadata"]
    return f"{meta['uid']}@{meta['resourceVersion']}" + ("" if key == "kubelet" else f":{key}")


class ApiNode(Node):
    """A Node whose references are those of the API server; `name` is that of the Node object."""

    def __init__(self, mounts, kubeconfig, name="n1", remote=None, **options):
        self.name, self.kubeconfig = name, kubeconfig
        settings = {"references": ["nodeAnnotation", "nodeSpec"], "file": "", "kubeconfig": kubeconfig,
                    "nodeName": name}
        super().__init__(mounts, remote={**settings, **(remote or {})}, **options)

    def follows(self, obj, key="kubelet"):
        """Wait until the view shows this ConfigMap; return its source id."""
        source = source_id(obj, key)
        self.wait("active", source)
        return source

    def shows(self, text):
        """Wait until kubelet.conf contains this text."""
        self.mount.wait_for(lambda: text in self.mount.document(), f"{text!r} in kubelet.conf")

    def condition_json(self):
        return json.loads(self.status("condition.json"))

    def reboot(self):
        """Stop, lose the contents of tmpfs, start again."""
        self.mount.stop()
        lib.shutil.rmtree(self.mount.runtime, ignore_errors=True)
        self.mount.start()
