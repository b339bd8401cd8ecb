"""Which cluster is meant, in the order in which kubectl looks."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from auditor import cluster
from auditor.cluster import NoClusterError, find


def written(path: Path, server: str, **context: str) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": server,
        "contexts": [{"name": server, "context": {"cluster": server, "user": "me", **context}}],
        "clusters": [{"name": server, "cluster": {"server": f"http://{server}/"}}],
        "users": [{"name": "me", "user": {"token": f"token-of-{server}"}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a kubeconfig, outside of any pod."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return tmp_path / "home"


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod with an account, as the kubelet sets it up."""
    from kubernetes.config import incluster_config  # noqa: PLC0415 - its paths are what is replaced

    for name, content in (("token", "token-of-the-pod"), ("ca.crt", "x"), ("namespace", "of-the-pod")):
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setattr(cluster, "_SERVICE_ACCOUNT", tmp_path / "namespace")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")


def test_the_file_that_is_named_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(written(tmp_path / "other", "other")))
    found = find(written(tmp_path / "named", "named", namespace="mine"))
    assert (found.server, found.namespace) == ("http://named", "mine")
    assert found.headers() == {"authorization": "Bearer token-of-named"}


def test_a_server_may_have_another_name_in_its_certificate(tmp_path: Path) -> None:
    path = written(tmp_path / "named", "named")
    assert find(path).tls_name is None
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["clusters"][0]["cluster"]["tls-server-name"] = "inside"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    assert find(path).tls_name == "inside"


def test_then_the_one_of_the_environment(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(home / ".kube/config", "home")
    monkeypatch.setenv("KUBECONFIG", str(written(tmp_path / "environment", "environment")))
    assert find().server == "http://environment"


def test_the_environment_may_name_several_and_a_context_one_of_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [written(tmp_path / name, name, namespace=f"in-{name}") for name in ("one", "two")]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))
    assert find().server == "http://one"
    found = find(context="two")
    assert (found.server, found.namespace) == ("http://two", "in-two")


def test_then_the_one_at_home(home: Path) -> None:
    written(home / ".kube/config", "home")
    found = find()
    assert (found.server, found.namespace) == ("http://home", "default")


@pytest.mark.usefixtures("pod")
def test_then_the_account_of_the_pod() -> None:
    found = find()
    assert (found.server, found.namespace) == ("https://10.0.0.1:443", "of-the-pod")
    assert found.headers() == {"authorization": "bearer token-of-the-pod"}


@pytest.mark.usefixtures("pod")
def test_in_a_pod_a_kubeconfig_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(written(tmp_path / "environment", "environment")))
    assert find().server == "http://environment"


def test_without_any_it_says_where_it_looked(home: Path) -> None:
    with pytest.raises(NoClusterError, match=f"there is no {home}/.kube/config, and this is not a pod"):
        find()


@pytest.mark.parametrize("context", ["absent", ""])
def test_a_context_that_there_is_not_is_said(tmp_path: Path, context: str) -> None:
    with pytest.raises(NoClusterError, match=r"no usable cluster in .*named"):
        find(written(tmp_path / "named", "named"), context)


@pytest.mark.parametrize("context", [None, "named"])
@pytest.mark.parametrize("content", [b"root:x:0:0\n", b"- a\n- b\n", b"\x7fELF\xff\xfe"])
def test_a_file_that_is_none_is_said_to_be_none(tmp_path: Path, content: bytes, context: str | None) -> None:
    path = tmp_path / "passwd"
    path.write_bytes(content)
    with pytest.raises(NoClusterError, match=r"^no usable cluster in .*passwd: it is no kubeconfig$"):
        find(path, context)


# ---- how the server is known, and known to it


@pytest.mark.parametrize(("verify", "mode"), [(True, ssl.CERT_REQUIRED), (False, ssl.CERT_NONE)])
def test_who_does_not_verify_the_server_still_says_who_asks(
    monkeypatch: pytest.MonkeyPatch, *, verify: bool, mode: ssl.VerifyMode
) -> None:
    loaded: list[tuple[str, str]] = []
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", lambda _, *names: loaded.append(names))
    of_mine = {"ssl_ca_cert": None, "cert_file": "me.crt", "key_file": "me.key"}
    configuration = SimpleNamespace(verify_ssl=verify, **of_mine)
    context = cluster.Cluster("https://server", configuration=configuration).tls()
    assert loaded == [("me.crt", "me.key")]
    assert (context.check_hostname, context.verify_mode) == (verify, mode)
