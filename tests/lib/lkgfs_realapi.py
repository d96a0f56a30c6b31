# SPDX-License-Identifier: Apache-2.0
"""A real kube-apiserver for tests (tests/realapi/apiserver), and an administrator's requests to it."""
import http.client
import json
import os
import pathlib
import ssl
import subprocess
import urllib.parse

import lkgfs_testlib as lib

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "realapi" / "apiserver"
START_S = 90
MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """The API server refused a request."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class RealApi:
    """One running API server below `directory`. A context manager."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.connection = None
        self.up()

    def _script(self, *words):
        done = subprocess.run([SCRIPT, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=START_S, check=False)
        if done.returncode:
            raise RuntimeError(f"apiserver {words[0]}: {done.stdout.decode(errors='replace')[-2000:]}")

    def up(self):
        self._script("up", self.directory)
        self.url = (self.directory / "url").read_text().strip()

    def down(self):
        """Stop it; up() continues with the same objects on the same port."""
        if self.connection:
            self.connection.close()
            self.connection = None
        self._script("down", self.directory)

    def is_up(self):
        return (self.directory / "apiserver.pid").exists()

    def credential(self, name, subject):
        """Return the path of a kubeconfig of that user, e.g. /O=system:nodes/CN=system:node:n1."""
        self._script("issue", self.directory, name, subject)
        return str(self.directory / f"{name}.conf")

    def kubectl(self, *words, **options):
        """As an administrator."""
        return lib.run("kubectl", "--kubeconfig", self.directory / "admin.conf", *words, **options)

    def node_credential(self, name):
        return self.credential(f"node-{name}", f"/O=system:nodes/CN=system:node:{name}")

    @property
    def process(self):
        """Pid of kube-apiserver."""
        return int((self.directory / "apiserver.pid").read_text())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()

    # requests

    def _connect(self):
        context = ssl.create_default_context(cafile=self.directory / "ca.crt")
        context.load_cert_chain(self.directory / "admin.crt", self.directory / "admin.key")
        parts = urllib.parse.urlsplit(self.url)
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=30, context=context)

    def request(self, method, path, body=None, content_type="application/json"):
        """Return the decoded answer; raises ApiError."""
        data = None if body is None else json.dumps(body)
        was_open = self.connection is not None
        self.connection = self.connection or self._connect()
        try:
            self.connection.request(method, path, data, {"Content-Type": content_type, "Accept": "application/json"})
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            self.connection = None
            if was_open and isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError)):
                return self.request(method, path, body, content_type)  # the server had closed an idle connection
            raise
        value = json.loads(text)
        if answer.status >= 300:
            raise ApiError(answer.status, value.get("message", ""))
        return value

    def delete(self, path, missing_ok=False):
        try:
            return self.request("DELETE", path)
        except ApiError as error:
            if not missing_ok or error.code != 404:
                raise
            return None

    # nodes and ConfigMaps

    def node(self, name):
        return self.request("GET", f"/api/v1/nodes/{name}")

    def create_node(self, name, annotations=None):
        return self.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {
            "name": name, "annotations": annotations or {}}})

    def delete_node(self, name, missing_ok=False):
        return self.delete(f"/api/v1/nodes/{name}", missing_ok)

    def annotate(self, name, value):
        """Set the reference of a node; None removes it."""
        patch = {"metadata": {"annotations": {"lkgfs.io/config-source": value}}}
        return self.request("PATCH", f"/api/v1/nodes/{name}", patch, MERGE)

    def put_configmap(self, name, data, annotations=None, namespace="kube-system"):
        """Create or change; annotations that are None are removed."""
        patch = {"metadata": {"annotations": annotations or {}}, "data": data}
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        try:
            return self.request("PATCH", f"{path}/{name}", patch, MERGE)
        except ApiError as error:
            if error.code != 404:
                raise
        meta = {"name": name, "namespace": namespace, "annotations": annotations or {}}
        return self.request("POST", path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})

    def delete_configmap(self, name, namespace="kube-system", missing_ok=False):
        return self.delete(f"/api/v1/namespaces/{namespace}/configmaps/{name}", missing_ok)

    def condition(self, name):
        """ConfigOK in the node's status, or None."""
        conditions = self.node(name).get("status", {}).get("conditions") or []
        return next((one for one in conditions if one["type"] == "ConfigOK"), None)

    def events(self, name):
        """Events of lkgfs about a node."""
        query = urllib.parse.urlencode({"fieldSelector": f"involvedObject.kind=Node,involvedObject.name={name}"})
        return self.request("GET", f"/api/v1/namespaces/default/events?{query}")["items"]

    # roles

    def grant(self, name, group, verbs, configmaps, namespace="kube-system"):
        """A Role on ConfigMaps by name, bound to a group; replaces a Role of that name."""
        self.revoke(name, namespace)
        base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        meta = {"name": name, "namespace": namespace}
        rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs, "resourceNames": configmaps}
        self.request("POST", f"{base}/roles", {"metadata": meta, "rules": [rule]})
        self.request("POST", f"{base}/rolebindings", {
            "metadata": meta, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}]})

    def revoke(self, name, namespace="kube-system"):
        base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        for kind in ("rolebindings", "roles"):
            self.delete(f"{base}/{kind}/{name}", missing_ok=True)


def why_not(environment=os.environ):
    """Why no real API server is available here; '' if one is."""
    binary = environment.get("KUBE_APISERVER")
    if binary:
        return "" if os.access(binary, os.X_OK) else f"{binary} (KUBE_APISERVER) is no program"
    done = subprocess.run([SCRIPT, "build"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=1800, check=False)
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return "" if done.returncode == 0 else (lines or ["it could not be built"])[-1]
