# SPDX-License-Identifier: Apache-2.0
"""The manifests of examples/cluster: what can be checked of them without a cluster. Wants PyYAML, for Kubernetes' own kinds the
package kubernetes, and for JobSet, which is none of them, kubeflow-trainer-api: both are made from the schemas of the API."""

import copy
import glob
import os
import re
import typing

import pytest

yaml = pytest.importorskip("yaml", reason="skipped: PyYAML is not installed")

_EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "cluster")
_KINDS = {"Service": "V1Service", "StatefulSet": "V1StatefulSet", "Job": "V1Job", "JobSet": "JobsetV1alpha2JobSet"}
_OF_TRAINER = ("Jobset", "IoK8s")  # what kinds of the package kubeflow-trainer-api begin with
_PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}


def _documents():
    for path in sorted(glob.glob(os.path.join(_EXAMPLE, "*.yaml"))):
        with open(path) as file:
            for document in yaml.safe_load_all(file):
                yield os.path.basename(path), document


def _kind_of(annotation):
    """The kind that an annotation of a field means, in the words that the package kubernetes has for it."""
    inner = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Annotated:  # StrictStr
        return _kind_of(inner[0])
    if type(None) in inner:  # Optional
        return _kind_of(next(a for a in inner if a is not type(None)))
    if typing.get_origin(annotation) is list:
        return "list[%s]" % _kind_of(inner[0])
    if typing.get_origin(annotation) is dict:
        return "dict(str, %s)" % _kind_of(inner[1])
    is_anything = annotation is typing.Any or "actual_instance" in getattr(annotation, "model_fields", ())  # int or string
    return "object" if is_anything else annotation.__name__


def _model(kind):
    return getattr(pytest.importorskip("kubeflow_trainer_api.models", reason="skipped: the package kubeflow-trainer-api is not installed"), kind)


def _required(kind):
    if not kind.startswith(_OF_TRAINER):
        return []
    return [field.alias or name for name, field in _model(kind).model_fields.items() if field.is_required()]


def _fields(kind):
    """The names of a kind's fields, with their kinds."""
    if kind.startswith(_OF_TRAINER):
        return {field.alias or name: _kind_of(field.annotation) for name, field in _model(kind).model_fields.items()}
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
    fields, wrong = _fields(kind), ["%s has no %s" % (path or kind, name) for name in _required(kind) if name not in value]
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


def test_a_field_that_is_left_out_would_be_found():
    for document in [document for _, document in _documents() if document["kind"] == "JobSet"]:
        del document["spec"]["replicatedJobs"][0]["template"]
        assert _wrong(document, "JobsetV1alpha2JobSet") == [".spec.replicatedJobs[0] has no template"]


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
