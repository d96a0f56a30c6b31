# SPDX-License-Identifier: Apache-2.0
"""Authentication: every kind of credential, and use of a rotated one without a restart."""
import json
import os

import pytest

import lkgfs_testlib as lib
from test_watch import proves


def replace(path, text):
    """Replace a file as a rotation does: by rename."""
    lib.write_file(f"{path}.new", text, 0o600)
    os.rename(f"{path}.new", path)


def token_client(server, client, tmp_path):
    """A client with a valid token file."""
    server.tokens["first"] = ("system:node:n1", ["system:nodes"])
    replace(tmp_path / "token", "first\n")
    client.kubeconfig = server.kubeconfig(tmp_path / "kubeconfig", token_file=tmp_path / "token")
    return client


def test_data_instead_of_files(server, client, tmp_path):
    path = server.kubeconfig(tmp_path / "embedded", node="n1", embed=True)
    assert client.get(kubeconfig=path)["status"] == "ok"
    assert server.requests[-1].user == "system:node:n1"


def test_a_token(server, client, tmp_path):
    server.tokens["abc"] = ("system:node:n1", ["system:nodes"])
    assert client.get(kubeconfig=server.kubeconfig(tmp_path / "t", token="abc"))["status"] == "ok"
    assert server.requests[-1].headers["authorization"] == "Bearer abc"


def test_a_password(server, client, tmp_path):
    path = server.kubeconfig(tmp_path / "k", node="n1")
    document = json.loads(lib.read_file(path))
    document["users"][0]["user"].update(username="Aladdin", password="open sesame")
    replace(path, json.dumps(document))
    assert client.get(kubeconfig=path)["status"] == "ok"
    assert server.requests[-1].headers["authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="


def test_the_file_wins_over_the_token(server, client, tmp_path):
    token_client(server, client, tmp_path)
    path = server.kubeconfig(tmp_path / "both", token="wrong", token_file=tmp_path / "token")
    assert client.get(kubeconfig=path)["status"] == "ok"


def test_one_pem_with_certificate_and_key(server, client, certificates, tmp_path):
    """As the kubelet stores it."""
    pem = tmp_path / "kubelet-client-current.pem"
    replace(pem, b"".join(lib.read_file(path) for path in certificates.node("n1")))
    assert client.get(kubeconfig=server.kubeconfig(tmp_path / "k", node=(pem, pem)))["status"] == "ok"


def test_a_401_and_then_a_new_token(server, client, tmp_path):
    tool = token_client(server, client, tmp_path).watching()
    at = tool.mark()
    server.tokens.clear()
    server.store.end_watches("reset")
    tool.wait_mode("down", at, "unauthorized")
    server.tokens["second"] = ("system:node:n1", ["system:nodes"])
    replace(tmp_path / "token", "second\n")
    tool.wait_mode("watch", at)
    proves(client, tool)
    assert None not in tool.states(at)


def test_a_new_token_is_used_before_the_old_one_ends(server, client, tmp_path):
    tool = token_client(server, client, tmp_path).watching()
    server.tokens["second"] = server.tokens["first"]
    replace(tmp_path / "token", "second\n")
    server.wait(lambda: any(one.headers.get("authorization") == "Bearer second" for one in server.requests), "it")
    proves(client, tool)


def test_a_new_certificate_opens_a_new_connection(server, client, certificates, tmp_path):
    paths = [tmp_path / "node.crt", tmp_path / "node.key"]

    def put(kind):
        for source, path in reversed(list(zip(certificates.node("n1", kind), paths))):
            replace(path, lib.read_file(source))

    put("good")
    client.kubeconfig = server.kubeconfig(tmp_path / "kubeconfig", node=tuple(paths))
    tool = client.watching()
    connections = {request.connection for request in server.requests}
    put("renewed")
    server.wait(lambda: {request.connection for request in server.requests} - connections, "another connection")
    proves(client, tool)


def test_half_of_a_rotation_keeps_the_old_one(server, client, certificates, tmp_path):
    paths = [tmp_path / "node.crt", tmp_path / "node.key"]
    for source, path in zip(certificates.node("n1"), paths):
        replace(path, lib.read_file(source))
    client.kubeconfig = server.kubeconfig(tmp_path / "kubeconfig", node=tuple(paths))
    tool = client.watching()
    replace(paths[0], lib.read_file(certificates.node("n1", "renewed")[0]))  # the key is still the old one
    proves(client, tool)
    server.store.end_watches("reset")
    server.wait_request(verb="watch", count=2)
    proves(client, tool)


def test_another_server_in_the_kubeconfig(server, client, certificates, tmp_path):
    from lkgfs_apiserver import ApiServer  # pylint: disable=import-outside-toplevel
    tool = client.watching()
    with ApiServer(certificates, store=server.store) as other:
        other.authorizer = server.rbac
        other.kubeconfig(client.kubeconfig, node="n1")
        other.wait_request(verb="watch")
        proves(client, tool)
        n_watch = len(server.seen(verb="watch"))
        server.kubeconfig(client.kubeconfig, node="n1")
        server.wait_request(verb="watch", count=n_watch + 1)
    proves(client, tool)


@pytest.mark.parametrize("insecure", [False, True])
def test_insecure_is_refused(server, client, tmp_path, insecure):
    path = server.kubeconfig(tmp_path / "k", node="n1", **{"insecure-skip-tls-verify": insecure,
                                                           **({"certificate-authority": None} if insecure else {})})
    server.certificate = "other-ca" if insecure else "good"
    line = client.get(kubeconfig=path)
    if insecure:
        assert line["status"] == "unreachable" and "insecure-skip-tls-verify" in line["words"]
        assert server.n_connections == 0
    else:
        assert line["status"] == "ok"


def test_nobody_is_impersonated_by_a_blank(server, client, tmp_path):
    """An empty header would not be sent, and the request would be made as a user that the file does not name."""
    path = server.kubeconfig(tmp_path / "k", node="n1")
    document = json.loads(lib.read_file(path))
    document["users"][0]["user"]["as"] = " "
    replace(path, json.dumps(document))
    line = client.get(kubeconfig=path)
    assert line["status"] == "unreachable" and "Impersonate-User is blank" in line["words"]
    assert server.n_connections == 0


def test_a_proxy_of_the_environment_is_not_for_loopback(server, client):
    """Proxy variables of the environment are honoured as usual; nothing secret goes through a proxy in clear text."""
    line = client.get(environment={"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": "127.0.0.1"})
    assert line["status"] == "ok"


def test_a_proxy_that_is_not_there(server, client, tmp_path):
    path = server.kubeconfig(tmp_path / "k", node="n1", **{"proxy-url": "http://127.0.0.1:1"})
    line = client.get(kubeconfig=path)
    assert line["status"] == "unreachable" and "proxy" in line["words"] and server.n_connections == 0
