import base64
import ssl
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.kube import config as module
from controller.kube.config import Authorization, ConfigError, load_config


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pki")
    cert, key = folder / "cert.pem", folder / "key.pem"
    kind = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=test -days 2"
    subprocess.run(
        ["openssl", "req", *kind.split(), "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )
    return cert, key


def kubeconfig(folder: Path, *, cluster: dict[str, Any], user: dict[str, Any], **context: str) -> str:
    path = folder / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", **context}}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def test_a_token_and_a_namespace_are_read_from_a_kubeconfig(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, cluster={"server": "http://x:1/"}, user={"token": "secret"}, namespace="mine")
    config = load_config(path)
    assert (config.server, config.namespace, config.ssl) == ("http://x:1", "mine", None)
    assert await config.authorization.value() == "Bearer secret"
    assert "secret" not in repr(config)


def test_of_several_files_the_first_current_context_counts_as_it_does_for_kubectl(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        server = {"server": f"http://{name}"}
        path = Path(kubeconfig(folder, cluster=server, user={"token": name}, namespace=f"in-{name}"))
        content = path.read_text()
        for word in ("c", "k", "u"):
            content = content.replace(f": {word}\n", f": {word}-{name}\n")
        path.write_text(content)
        files.append(str(path))
    config = load_config(":".join(files))
    assert (config.server, config.namespace) == ("http://one", "in-one")


def test_the_namespace_is_default_if_the_context_has_none(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, cluster={"server": "http://x"}, user={"token": "t"})
    assert load_config(path).namespace == "default"


async def test_certificates_are_taken_from_data_and_from_files(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    path = kubeconfig(
        tmp_path,
        cluster={
            "server": "https://x",
            "certificate-authority-data": base64.b64encode(cert.read_bytes()).decode(),
            "tls-server-name": "inside",
        },
        user={"client-certificate": str(cert), "client-key": str(key)},
    )
    config = load_config(path)
    assert config.ssl is not None
    assert config.ssl.verify_mode is ssl.CERT_REQUIRED
    assert [entry["subject"] for entry in config.ssl.get_ca_certs()] == [((("commonName", "test"),),)]
    assert config.tls_server_name == "inside"
    assert await config.authorization.value() is None


def test_verification_can_be_switched_off(tmp_path: Path) -> None:
    cluster = {"server": "https://x", "insecure-skip-tls-verify": True}
    config = load_config(kubeconfig(tmp_path, cluster=cluster, user={"token": "t"}))
    assert config.ssl is not None
    assert config.ssl.verify_mode is ssl.CERT_NONE


async def test_an_exec_plugin_is_asked_for_the_token(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(
        '#!/bin/sh\necho \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
        '"status":{"token":"from-plugin"}}\'\n'
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(plugin),
            "interactiveMode": "Never",
        }
    }
    config = load_config(kubeconfig(tmp_path, cluster={"server": "http://x"}, user=user))
    assert await config.authorization.value() == "Bearer from-plugin"


def test_the_variable_is_used_when_no_file_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = kubeconfig(tmp_path, cluster={"server": "http://from-variable"}, user={"token": "t"})
    monkeypatch.setenv("KUBECONFIG", path)
    assert load_config(None).server == "http://from-variable"


async def test_inside_a_cluster_the_pods_credentials_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificate: tuple[Path, Path]
) -> None:
    token, namespace = tmp_path / "token", tmp_path / "namespace"
    token.write_text("first\n")
    namespace.write_text("bullpen\n")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_CERT_FILENAME", str(certificate[0]))
    monkeypatch.setattr(module, "_NAMESPACE_FILE", namespace)
    config = load_config()
    assert (config.server, config.namespace) == ("https://[fd00::1]:443", "bullpen")
    assert (await config.authorization.value() or "").lower() == "bearer first"


@pytest.mark.parametrize("content", [None, "{}", "a: [", "clusters: 5"])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=str(path)):
        load_config(str(path))


async def test_a_token_is_read_again_after_a_minute_and_not_before() -> None:
    clock, reads = [0.0], []

    def read() -> str:
        reads.append(clock[0])
        return f"Bearer {len(reads)}"

    authorization = Authorization(read, monotonic=lambda: clock[0])
    for clock[0] in (0.0, 59.0, 60.0, 61.0, 119.0, 121.0):
        await authorization.value()
    assert reads == [0.0, 60.0, 121.0]
    assert await authorization.value() == "Bearer 3"


async def test_a_token_that_cannot_be_read_again_leaves_the_old_one() -> None:
    answers: list[str | Exception] = ["Bearer old", OSError("gone")]

    def read() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    authorization = Authorization(read)
    authorization.refused()
    assert await authorization.value() == "Bearer old"
