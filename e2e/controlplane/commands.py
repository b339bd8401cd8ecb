"""The command lines of a local control plane: what each process is told, and why.

It must never hold a setting that makes the API answer differently from a production cluster's: bounds
are roomier and the disk isn't synced, that is all. (A guarded one is stricter, as some of those are.)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# What a VM pool's cluster needs. The others would only watch, and cost a small machine memory.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "horizontal-pod-autoscaler-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "taint-eviction-controller",
    "validatingadmissionpolicy-status-controller",
)


@dataclass(frozen=True)
class Plan:
    """Where a control plane keeps its files and listens.

    `guarded` is how careful clusters are set up: every request is recorded, every controller has an account
    of its own, and an owner reference that blocks a deletion takes the right to the owner's finalizers.
    """

    directory: Path
    etcd_port: int
    api_port: int
    guarded: bool = False

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.api_port}"

    @property
    def certificate(self) -> Path:
        """The serving certificate and its authority, which the API server makes for itself."""
        return self.directory / "certificates" / "apiserver.crt"

    @property
    def key(self) -> Path:
        return self.directory / "certificates" / "apiserver.key"

    @property
    def tokens(self) -> Path:
        return self.directory / "tokens.csv"

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def audit_policy(self) -> Path:
        return self.directory / "audit-policy.yaml"

    @property
    def audit_log(self) -> Path:
        """One JSON object a line for each request, where the control plane is guarded."""
        return self.directory / "logs" / "audit.jsonl"


def etcd(plan: Plan) -> list[str]:
    client = f"http://127.0.0.1:{plan.etcd_port}"
    return [
        f"--data-dir={plan.directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        "--listen-peer-urls=http://127.0.0.1:0",  # it has no peers
        "--unsafe-no-fsync",  # nobody needs the data after a crash
        "--quota-backend-bytes=8589934592",  # 10,000 VMs, each written a dozen times between compactions
        "--log-level=warn",
    ]


def api_server(plan: Plan) -> list[str]:
    return [
        f"--etcd-servers=http://127.0.0.1:{plan.etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={plan.api_port}",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # the service `kubernetes` can't point at a loopback address
        f"--cert-dir={plan.certificate.parent}",
        f"--token-auth-file={plan.tokens}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={plan.key}",
        f"--service-account-key-file={plan.key}",
        # The benchmarks measure the work of a request, not the queue before it.
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1500",
        "--profiling=false",
        *(_guards(plan) if plan.guarded else ()),
    ]


def _guards(plan: Plan) -> list[str]:
    return [
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        f"--audit-policy-file={plan.audit_policy}",
        f"--audit-log-path={plan.audit_log}",
    ]


def controller_manager(plan: Plan) -> list[str]:
    return [
        f"--kubeconfig={plan.kubeconfig}",
        f"--controllers={','.join(CONTROLLERS)}",
        f"--service-account-private-key-file={plan.key}",
        f"--root-ca-file={plan.certificate}",
        "--leader-elect=false",  # there is one of it
        "--secure-port=0",
        # Owners of thousands of VMs are deleted in one go.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--concurrent-gc-syncs=40",
        "--concurrent-namespace-syncs=20",
        # A quota made before this process has learned of a definition is not counted before the next round.
        "--resource-quota-sync-period=5s",
        "--horizontal-pod-autoscaler-sync-period=1s",
        "--profiling=false",
        f"--use-service-account-credentials={str(plan.guarded).lower()}",
    ]


def scheduler(plan: Plan) -> list[str]:
    return [
        f"--kubeconfig={plan.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--profiling=false",
    ]
