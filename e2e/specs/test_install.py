"""The chart: an API server takes all of it, helm guards its values, and it grants no more than is needed."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from controller.settings import Settings
from e2e.specs.installation import (
    CHART,
    NAMESPACE,
    RELEASE,
    HelmError,
    helm,
    objects,
    one,
    rendered,
)
from e2e.specs.words import wait
from tests.support.kubectl import Kubectl, KubectlError

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

EVERYTHING = [
    *("--set", "image.repository=registry.example.com/bullpen", "--set-string", "image.tag=1"),
    *("--set", "imagePullSecrets[0].name=pull", "--set", "nodeSelector.disk=ssd"),
    *("--set", "tolerations[0].operator=Exists", "--set", "settings.leaseDuration=20s"),
    *("--set", "settings.brakeDelay=1m", "--set", "settings.maxWritesInFlight=1000"),
    *("--set", "settings.maxHandOvers=16", "--set", "settings.logLevel=debug", "--set", "replicas=3"),
    *("--set", "settings.sizingInterval=1m"),
]
KEPT = {"helm.sh/resource-policy": "keep"}


@pytest.mark.usefixtures("installation")
@pytest.mark.parametrize("values", [[], EVERYTHING, ["--set", "replicas=0"]], ids=["default", "all", "none"])
def test_the_api_server_takes_every_object_in_a_dry_run(
    kubectl: Kubectl, namespace: str, values: list[str]
) -> None:
    manifests = rendered(*values, namespace=namespace, release="trial")
    said = kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=manifests)
    lines = said.splitlines()
    assert len(lines) == len(objects(manifests))
    assert all(line.endswith("(server dry run)") for line in lines)
    assert kubectl("get", "deployments", "-n", namespace, "-o", "name") == ""


def test_helm_finds_nothing_to_complain_about() -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize(
    "value",
    [
        "replica=2",
        "replicas=-1",
        "settings.lease=20s",
        "settings.brakeDelay=10 minutes",
        "image.pullPolicy=Sometimes",
        "crds.install=maybe",
        "admissionPolicy.exempt=me",
        "admissionPolicy.create=maybe",
    ],
)
def test_helm_refuses_a_value_that_means_nothing(value: str) -> None:
    with pytest.raises(HelmError, match="values don't meet the specifications of the schema"):
        rendered("--set", value)


def test_the_definitions_are_the_generated_ones_and_outlive_the_release() -> None:
    laid = {each["metadata"]["name"]: each for each in objects(rendered()) if "Custom" in each["kind"]}
    assert len(laid) == 2
    for path in (CHART / "files" / "crds").glob("*.yaml"):
        crd = yaml.safe_load(path.read_text())
        found = laid[crd["metadata"]["name"]]
        assert found["metadata"].pop("annotations") == KEPT
        assert found == crd
    assert "CustomResourceDefinition" not in rendered("--set", "crds.install=false")


def test_nothing_is_laid_outside_the_releases_namespace() -> None:
    cluster_wide = {
        *("CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    }
    for each in objects(rendered(*EVERYTHING, namespace="elsewhere")):
        expected = None if each["kind"] in cluster_wide else "elsewhere"
        assert each["metadata"].get("namespace") == expected, each["kind"]


def environment(manifests: str) -> dict[str, Any]:
    [container] = one(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each.get("value") for each in container["env"]}


def test_every_value_of_settings_is_a_setting_of_the_controller() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    given = environment(rendered(*EVERYTHING))
    known = {f"BULLPEN_{name.upper()}" for name in Settings.model_fields}
    assert set(given) <= known
    assert len(given) == 4 + len(schema["properties"]["settings"]["properties"])
    assert given["BULLPEN_MAX_WRITES_IN_FLIGHT"] == "1000"
    assert given["BULLPEN_LEASE_DURATION"] == "20s"


def test_the_lease_of_the_deployment_is_the_one_that_its_role_names() -> None:
    for release in (RELEASE, "another"):
        manifests = rendered(release=release)
        role = one(manifests, "Role")
        [named] = [rule["resourceNames"] for rule in role["rules"] if "resourceNames" in rule]
        assert named == [environment(manifests)["BULLPEN_LEASE_NAME"]]


# ---- rights


def test_the_right_to_read_the_data_of_templates_can_be_taken_away() -> None:
    assert "configmaps" in rendered()
    assert "secrets" not in rendered("--set", "readReferencedData=false")


def test_no_right_is_a_wildcard() -> None:
    rules = [rule for each in objects(rendered()) if each["kind"].endswith("Role") for rule in each["rules"]]
    assert rules
    for rule in rules:
        assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
        assert not any(resource.endswith("/*") for resource in rule["resources"])


@pytest.mark.usefixtures("installation")
@pytest.mark.parametrize(
    ("verb", "what"),
    [
        ("update", "virtualmachinepools.bullpen.dev/finalizers"),
        ("update", "virtualmachineclaims.bullpen.dev/finalizers"),
        ("patch", "virtualmachineclaims.bullpen.dev/status"),
        ("create", "virtualmachines.kubevirt.io"),
        ("watch", "nodes"),
        ("get", "secrets"),
        ("get", "configmaps"),
        ("create", "configmaps"),
        ("patch", "configmaps"),
    ],
)
def test_the_controller_may_do_its_work(kubectl: Kubectl, verb: str, what: str) -> None:
    assert may(kubectl, verb, what)


@pytest.mark.usefixtures("installation")
@pytest.mark.parametrize(
    ("verb", "what"),
    [
        ("list", "secrets"),
        ("watch", "secrets"),
        ("list", "configmaps"),
        ("list", "pods"),
        ("create", "pods"),
        ("patch", "nodes"),
        ("update", "leases.coordination.k8s.io"),
        ("patch", "virtualmachineclaims.bullpen.dev"),
        ("delete", "virtualmachinepools.bullpen.dev"),
        ("create", "virtualmachinepools.bullpen.dev"),
        ("update", "virtualmachines.kubevirt.io"),
        ("deletecollection", "virtualmachines.kubevirt.io"),
        ("delete", "virtualmachineinstances.kubevirt.io"),
        ("list", "customresourcedefinitions.apiextensions.k8s.io"),
        ("list", "namespaces"),
        ("create", "events"),
        ("impersonate", "serviceaccounts"),
    ],
)
def test_the_controller_may_do_nothing_else(kubectl: Kubectl, verb: str, what: str) -> None:
    assert not may(kubectl, verb, what)


def may(kubectl: Kubectl, verb: str, what: str) -> bool:
    """Whether the chart's account may, in a namespace that is not its own."""
    resource, _, subresource = what.partition("/")
    account = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"
    arguments = [verb, resource, f"--as={account}", "--namespace=default"]
    try:
        return kubectl("auth", "can-i", *arguments, f"--subresource={subresource}").strip() == "yes"
    except KubectlError:  # "no" is exit code 1
        return False


# ---- policies

POLICY = "ValidatingAdmissionPolicy"
BINDING = f"{POLICY}Binding"


def test_each_policy_is_bound_and_exempts_the_releases_own_account() -> None:
    for release, account in (("bullpen", "bullpen"), ("trial", "trial-bullpen")):
        found = objects(rendered(release=release, namespace="home"))
        policies = [each for each in found if each["kind"] == POLICY]
        bound = {each["spec"]["policyName"] for each in found if each["kind"] == BINDING}
        assert bound == {each["metadata"]["name"] for each in policies}
        assert len(bound) == 6
        assert {each["spec"]["failurePolicy"] for each in policies} == {"Fail"}
        for each in policies:
            if each["metadata"]["name"].startswith("configmaps."):  # bounds the account itself
                continue
            [exempt] = [one for one in each["spec"]["matchConditions"] if one["name"] == "not-exempt"]
            assert f'"system:serviceaccount:home:{account}"' in exempt["expression"]


def test_others_can_be_exempted_and_nobody_need_be() -> None:
    more = rendered(
        "--set", "admissionPolicy.exemptUsers={backup}", "--set", "admissionPolicy.exemptGroups={ops}"
    )
    assert more.count('"backup"') == more.count('["ops"]') == 5
    none = rendered("--set-json", "admissionPolicy.exemptGroups=[]")
    assert "request.userInfo.groups" not in none


def test_policies_are_for_the_namespaces_that_are_watched() -> None:
    """Another release may look after the others."""
    bindings = [
        each for each in objects(rendered("--set", "watchNamespaces={one,two}")) if each["kind"] == BINDING
    ]
    assert len(bindings) == 6
    for each in bindings:
        [only] = each["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert only == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["one", "two"]}
    assert "namespaceSelector" not in rendered()


def test_policies_and_roles_for_people_can_be_left_to_others() -> None:
    assert POLICY not in rendered("--set", "admissionPolicy.create=false")
    assert "aggregate-to" not in rendered("--set", "userRoles.create=false")


# ---- pods


def pod(manifests: str, namespace: str) -> dict[str, Any]:
    """A pod as the Deployment would make it, under an account that every namespace has."""
    spec = one(manifests, "Deployment")["spec"]["template"]["spec"]
    meta = {"name": "trial", "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {**spec, "serviceAccountName": "default"},
    }


@pytest.fixture
def restricted(kubectl: Kubectl, namespace: str) -> str:
    """A namespace that takes restricted pods alone."""
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    wait(kubectl, namespace, "serviceaccount/default", "create")
    return namespace


def test_the_pods_are_let_in_where_only_restricted_ones_are(kubectl: Kubectl, restricted: str) -> None:
    manifest = pod(rendered(*EVERYTHING), restricted)
    said = kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(manifest))
    assert said == "pod/trial created (server dry run)\n"
    del manifest["spec"]["containers"][0]["securityContext"]["capabilities"]
    with pytest.raises(KubectlError, match="violates PodSecurity"):
        kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(manifest))


def test_a_pod_cannot_write_to_its_file_system_and_has_no_services_in_its_environment() -> None:
    spec = one(rendered(), "Deployment")["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["resources"]["limits"]["memory"]
    assert spec["enableServiceLinks"] is False  # BULLPEN_PORT of a Service would be taken for a setting
    assert {"livenessProbe", "readinessProbe"} <= container.keys()


def test_a_budget_for_disruptions_is_there_only_where_it_does_not_stop_every_drain() -> None:
    assert one(rendered("--set", "replicas=2"), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert "PodDisruptionBudget" not in rendered("--set", "replicas=1")
