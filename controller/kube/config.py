"""Where the API server is and who we are there: kubeconfig or in-cluster, as the official client reads them.

It must never log a credential. Client certificates are read once; bearer tokens are asked for again at most
once a minute (a file's, or an exec plugin's when it says that the old one expires).
"""

import asyncio
import os
import ssl as tls
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext
from typing import Any

import structlog
import yaml
from kubernetes import client as official
from kubernetes import config as loader

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_TOKEN_SECONDS = 60.0

log = structlog.get_logger(__name__)

# The official client has no annotations.
_load_kube_config: Any = loader.load_kube_config
_load_incluster_config: Any = loader.load_incluster_config
_list_contexts: Any = loader.list_kube_config_contexts


class ConfigError(Exception):
    """No cluster is configured, or its configuration cannot be read; the message says what was tried."""


class Authorization:
    """The Authorization header's value, read again when it is older than a minute."""

    def __init__(
        self, read: Callable[[], str | None], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._monotonic = monotonic
        self._value = read()
        self._stale_at = monotonic() + _TOKEN_SECONDS

    async def value(self) -> str | None:
        """The current value; None if the cluster is entered without a token."""
        now = self._monotonic()
        if now >= self._stale_at:
            self._stale_at = now + _TOKEN_SECONDS  # first, so that others go on with the old one meanwhile
            try:
                self._value = await asyncio.to_thread(self._read)  # an exec plugin takes its time
            except Exception as error:  # noqa: BLE001 - plugins fail in any way; the old one may still do
                log.warning("could not read the token again", error=type(error).__name__)
        return self._value

    def refused(self) -> None:
        """The API server answered 401: read it again before the next request."""
        self._stale_at = 0.0


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """One API server and the credentials for it."""

    server: str
    namespace: str = "default"
    ssl: SSLContext | None = None
    tls_server_name: str | None = None
    authorization: Authorization = field(default_factory=lambda: Authorization(lambda: None))


def load_config(kubeconfig: str | None = None) -> ClusterConfig:
    """The file given, else KUBECONFIG, else in-cluster, else ~/.kube/config.

    Raises:
        ConfigError: none of them is there, or the one that counts cannot be read.
    """
    configuration = official.Configuration()
    kubeconfig = kubeconfig or os.environ.get("KUBECONFIG")
    try:
        if kubeconfig or "KUBERNETES_SERVICE_HOST" not in os.environ:
            context = _first_current(kubeconfig)
            _load_kube_config(
                kubeconfig, context=context, client_configuration=configuration, persist_config=False
            )
            namespace = _context_namespace(kubeconfig, context)
        else:
            _load_incluster_config(configuration)
            namespace = _NAMESPACE_FILE.read_text().strip()
    except Exception as error:  # the official client lets its parsers' exceptions through
        where = kubeconfig or "in-cluster credentials or ~/.kube/config"
        raise ConfigError(f"no usable cluster configuration in {where}: {error}") from error
    return ClusterConfig(
        server=configuration.host.rstrip("/"),
        namespace=namespace,
        ssl=_ssl_context(configuration) if configuration.host.startswith("https") else None,
        tls_server_name=configuration.tls_server_name,
        authorization=Authorization(lambda: _bearer(configuration)),
    )


def _bearer(configuration: Any) -> str | None:
    token = configuration.get_api_key_with_prefix(
        "BearerToken", alias="authorization"
    )  # calls its refresh hook
    return str(token).strip() if token else None


def _first_current(kubeconfig: str | None) -> str | None:
    """The context that kubectl takes: the first that any of the files names. The client takes the last."""
    for each in filter(os.path.isfile, (kubeconfig or "").split(os.pathsep)):
        current = (yaml.safe_load(Path(each).read_text(encoding="utf-8")) or {}).get("current-context")
        if current:
            return str(current)
    return None


def _context_namespace(kubeconfig: str | None, context: str | None) -> str:
    contexts, active = _list_contexts(kubeconfig)
    chosen = next((each for each in contexts if each["name"] == context), active)
    return str(chosen["context"].get("namespace") or "default")


def _ssl_context(configuration: Any) -> SSLContext:
    context = tls.create_default_context(cafile=configuration.ssl_ca_cert)
    context.verify_flags &= ~tls.VERIFY_X509_STRICT  # clusters' own CAs often lack what newer Pythons ask for
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = tls.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context
