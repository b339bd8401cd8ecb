"""Which cluster, as whom, and in which namespace: found as kubectl finds it.

It reads configuration and nothing else; that the server answers is found out by asking it.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config

# Half of the official package has types; the other half makes calls of it look unsound.
_config: Any = config
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class NoClusterError(Exception):
    """There is no usable configuration; the sentence says what was tried."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One API server, the credentials for it, and the namespace that is meant when none is named."""

    server: str
    namespace: str = "default"
    configuration: Any = field(default=None, repr=False)

    @property
    def tls_name(self) -> str | None:
        """The name that the server's certificate is for, where it is not the one of the URL."""
        name: str | None = self.configuration.tls_server_name
        return name

    def headers(self) -> dict[str, str]:
        """What says who asks; a plugin is asked for a new token when one is due."""
        tokens = self.configuration.auth_settings().values()
        return {token["key"]: token["value"] for token in tokens if token["in"] == "header"}

    def tls(self) -> ssl.SSLContext:
        """How to know the server and be known to it; without verification it takes whatever answers."""
        context = ssl.create_default_context(cafile=self.configuration.ssl_ca_cert)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # clusters' own CAs lack what newer Pythons ask for
        if not self.configuration.verify_ssl:
            context.check_hostname = False  # first: ssl refuses CERT_NONE while names are checked
            context.verify_mode = ssl.CERT_NONE
        if self.configuration.cert_file:
            context.load_cert_chain(self.configuration.cert_file, self.configuration.key_file)
        return context


def find(kubeconfig: Path | None = None, context: str | None = None) -> Cluster:
    """By the file given, else by KUBECONFIG or ~/.kube/config, else from within the cluster.

    Raises:
        NoClusterError: there is none, or it says nothing usable.
    """
    path = str(kubeconfig) if kubeconfig is not None else None
    default = os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")  # noqa: PTH111 - may be several, with colons
    try:
        if path is None and context is None and not any(map(os.path.exists, default.split(os.pathsep))):
            return _from_within(default)
        return _from_file(path or default, context)
    except NoClusterError:
        raise
    except Exception as error:  # the official client lets its parsers' exceptions through
        raise NoClusterError(f"no usable cluster in {path or default}: {error}") from error


def _from_file(path: str, named: str | None) -> Cluster:
    files = [_read(each) for each in filter(os.path.isfile, path.split(os.pathsep))]
    context = _first_current(files) if named is None else named
    configuration = client.Configuration()
    _config.load_kube_config(
        config_file=path, context=context, client_configuration=configuration, persist_config=False
    )
    contexts, active = _config.list_kube_config_contexts(path)
    if context is not None:
        active = next(each for each in contexts if each["name"] == context)
    namespace = active["context"].get("namespace") or "default"
    return Cluster(configuration.host.rstrip("/"), namespace, configuration)


def _read(path: str) -> dict[str, Any]:
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except UnicodeDecodeError:
        content = None
    if not isinstance(content, dict):
        raise NoClusterError(f"no usable cluster in {path}: it is no kubeconfig")
    return content


def _first_current(files: list[dict[str, Any]]) -> str | None:
    """The context that kubectl takes: the first that any file names. The client takes the last."""
    named = (each.get("current-context") for each in files)
    return next((str(current) for current in named if current), None)


def _from_within(tried: str) -> Cluster:
    if "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise NoClusterError(f"there is no {tried}, and this is not a pod: name a file with --kubeconfig")
    configuration = client.Configuration()
    _config.load_incluster_config(client_configuration=configuration)
    return Cluster(configuration.host.rstrip("/"), _SERVICE_ACCOUNT.read_text().strip(), configuration)
