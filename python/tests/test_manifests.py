# SPDX-License-Identifier: Apache-2.0
"""The manifests of examples/cluster: what can be checked of them without a cluster. Wants PyYAML, and for Kubernetes' own kinds the package kubernetes."""

import copy
import glob
import os
import re

import pytest

yaml = pytest.importorskip("yaml", reason="skipped: PyYAML is not installed")

_EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "cluster")
_KINDS = {"Service": "V1Service", "StatefulSet": "V1StatefulSet", "Job": "V1Job", "JobSet": "JobSet"}
# The fields of jobset.x-k8s.io/v1alpha2, for which there is no package: of each kind the names, and of what kind each is.
_JOBSET = {
    "JobSet": {"apiVersion": "str", "kind": "str", "metadata": "V1ObjectMeta", "spec": "JobSetSpec", "status": "object"},
    "JobSetSpec": {
        "replicatedJobs": "list[ReplicatedJob]",
        "network": "Network",
        "successPolicy": "SuccessPolicy",
        "failurePolicy": "FailurePolicy",
        "startupPolicy": "object",
        "suspend": "bool",
        "coordinator": "object",
        "managedBy": "str",
        "ttlSecondsAfterFinished": "int",
    },
    "Network": {"enableDNSHostnames": "bool", "subdomain": "str", "publishNotReadyAddresses": "bool"},
    "SuccessPolicy": {"operator": "str", "targetReplicatedJobs": "list[str]"},
    "FailurePolicy": {"maxRestarts": "int", "restartStrategy": "str", "rules": "list[object]"},
    "ReplicatedJob": {"name": "str", "replicas": "int", "template": "V1JobTemplateSpec", "dependsOn": "list[object]", "groupName": "str"},
}
_PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}


def _documents():
    for path in sorted(glob.glob(os.path.join(_EXAMPLE, "*.yaml"))):
        with open(path) as file:
            for document in yaml.safe_load_all(file):
                yield os.path.basename(path), document


def _fields(kind):
    """The names of a kind's fields, with their kinds."""
    if kind in _JOBSET:
        return _JOBSET[kind]
    client = pytest.importorskip("kubernetes.client", reason="skipped: the package kubernetes is not installed")
    model = getattr(client, kind)
    return {name: model.openapi_types[attribute] for attribute, name in model.attribute_map.items()}


def _wrong(value, kind, path=""):
    """What in a value is not of its kind, each with its path."""
    inner = re.fullmatch(r"[Ll]ist\[(.*)\]", kind)
    if inner:
        if not isinstance(value, list):
            return ["%s is no list" % path]
        return [w for i, v in enumerate(value) for w in _wrong(v, inner.group(1), "%s[%d]" % (path, i))]
    inner = re.fullmatch(r"[Dd]ict[\[(]str, (.*)[\])]", kind)
    if inner:
        return [w for k, v in value.items() for w in _wrong(v, inner.group(1), "%s.%s" % (path, k))]
    if kind in _PLAIN:
        return (
            []
            if isinstance(value, _PLAIN[kind]) and (kind == "bool" or not isinstance(value, bool) or kind == "object")
            else ["%s is %r, no %s" % (path, value, kind)]
        )
    if not isinstance(value, dict):
        return ["%s is %r, no %s" % (path, value, kind)]
    fields, wrong = _fields(kind), []
    for name, v in value.items():
        wrong += _wrong(v, fields[name], "%s.%s" % (path, name)) if name in fields else ["%s has no field %s" % (path or kind, name)]
    return wrong


def _keys(value, path=()):
    """The path of each key in a document."""
    for name, v in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(value, dict):
            yield (*path, name)
        yield from _keys(v, (*path, name))


def _pods(document):
    spec = document["spec"]
    if document["kind"] == "JobSet":
        for replicated in spec["replicatedJobs"]:
            yield replicated["name"], replicated["template"]["spec"]["completions"], replicated["template"]["spec"]["template"]["spec"]
    elif document["kind"] == "StatefulSet":
        yield "ps", spec["replicas"], spec["template"]["spec"]
    elif document["kind"] == "Job":
        yield "worker", spec["completions"], spec["template"]["spec"]


def test_every_field_has_a_name_and_a_type_of_its_kind():
    for file, document in _documents():
        assert _wrong(document, _KINDS[document["kind"]]) == [], file


def test_a_misspelt_field_would_be_found():
    """Each key of each manifest, but those that are data (labels, quantities), with a letter too many."""
    free = ("labels", "matchLabels", "selector", "annotations", "requests", "limits")
    planted = 0
    for file, document in _documents():
        for path in _keys(document):
            if any(p in free for p in path[:-1]):
                continue
            other = copy.deepcopy(document)
            at = other
            for step in path[:-1]:
                at = at[step]
            at[str(path[-1]) + "x"] = at.pop(path[-1])
            assert any("has no field %sx" % path[-1] in w for w in _wrong(other, _KINDS[document["kind"]])), (file, path)
            planted += 1
    assert planted > 150


def test_the_environment_of_each_pod_says_who_it_is():
    from millrace.launch import who_am_i

    seen = {}
    for file, document in _documents():
        seen.setdefault(file, []).append(document["kind"])
        for job, pods, pod in _pods(document):
            container = pod["containers"][0]
            environ = {e["name"]: e["value"] for e in container.get("env", []) if "value" in e}
            for i in range(pods):
                me = who_am_i(environ={**environ, "JOB_COMPLETION_INDEX": str(i), "MILLRACE_JOB": job})
                assert (me.job, me.task) == (job, i) and {len(t) for t in me.cluster.values()} == {2, 3}
            assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    assert seen == {"jobset.yaml": ["JobSet"], "statefulset.yaml": ["Service", "Service", "StatefulSet", "Job"]}


def test_probes_ask_where_health_is_told():
    for file, document in _documents():
        for job, _, pod in _pods(document):
            container = pod["containers"][0]
            environ = {e["name"]: e.get("value", "") for e in container["env"]}
            command = container["command"]
            told = command[command.index("--health") + 1] if "--health" in command else environ["MILLRACE_HEALTH"]
            port = int(told.rpartition(":")[2])
            assert {"containerPort": port} in container["ports"], (file, job)
            assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": port}, (file, job)
            assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": port}, (file, job)
