# SPDX-License-Identifier: Apache-2.0
"""Graphs and meta graphs compared."""

from __future__ import annotations

import re
from typing import Any, Dict, Optional

from millrace.protos import definitions

# What sharded savers put into file names, which is new each time.
_SHARDED = re.compile("_temp_[0-9a-z]{32}/part")


def assert_ops_in_graph(expected_ops: Dict[str, str], graph: Any) -> Dict[str, Any]:
    """{name: NodeDef} of the operations {name: op type}. ValueError unless all are in the graph."""
    found: Dict[str, Any] = {}
    for node in graph.as_graph_def().node:
        if node.name in expected_ops:
            if expected_ops[node.name] != node.op:
                raise ValueError("Expected op for node %s is different. %s vs %s" % (node.name, expected_ops[node.name], node.op))
            found[node.name] = node
    if set(expected_ops) != set(found):
        raise ValueError("Not all expected ops are present. Expected %s, found %s" % (expected_ops.keys(), found.keys()))
    return found


def assert_equal_graph_def(actual: Any, expected: Any, checkpoint_v2: bool = False, hash_table_shared_name: bool = False) -> None:
    """AssertionError unless two GraphDefs have the same nodes. The order of nodes, attributes and control inputs does not count, nor do versions,
    nor with hash_table_shared_name the shared names of tables."""
    for what, given in (("actual", actual), ("expected", expected)):
        if not isinstance(given, definitions.GraphDef):
            raise TypeError("Expected tf.GraphDef for %s, got %s" % (what, type(given).__name__))
    if checkpoint_v2:
        strip_sharded_names(actual)
        strip_sharded_names(expected)
    if hash_table_shared_name:
        for node in (*actual.node, *expected.node):
            if node.op in ("HashTable", "HashTableV2") and "shared_name" in node.attr:
                del node.attr["shared_name"]
    difference = _graph_difference(actual, expected)
    if difference:
        raise AssertionError(difference)


def strip_sharded_names(graph_def: Any) -> None:
    """Takes the names of temporary files out of the constants of a graph."""
    for node in graph_def.node:
        for key in list(node.attr):
            strings = node.attr[key].tensor.string_val
            if len(strings) == 1 and _SHARDED.match(strings[0].decode("utf-8", "replace")):
                del node.attr[key]


def _summary(node: Any) -> str:
    attributes = ", ".join("%s=%s" % (key, str(node.attr[key]).strip().replace("\n", " ")) for key in sorted(node.attr))
    return "{{node %s}} = %s[%s](%s)" % (node.name, node.op, attributes, ", ".join(node.input))


def _graph_difference(actual: Any, expected: Any) -> Optional[str]:
    there = {node.name: node for node in actual.node}
    for node in expected.node:
        found = there.pop(node.name, None)
        if found is None:
            return "Did not find expected node '%s'" % _summary(node)
        difference = _node_difference(found, node)
        if difference:
            return difference
    for node in reversed(list(there.values())):
        return "Found unexpected node '%s'" % _summary(node)
    return None


def _node_difference(actual: Any, expected: Any) -> Optional[str]:
    about = "Node named '%s'" % actual.name
    for what in ("op", "device"):
        if getattr(actual, what) != getattr(expected, what):
            return "%s has %s '%s' that is not expected '%s'" % (about, what, getattr(actual, what), getattr(expected, what))
    inputs = [[i for i in node.input if not i.startswith("^")] for node in (actual, expected)]
    if len(inputs[0]) != len(inputs[1]):
        return "%s has %d inputs but expected %d; %s" % (about, len(inputs[0]), len(inputs[1]), "inputs are %s, expected %s" % tuple(inputs))
    for i, (one, other) in enumerate(zip(*inputs)):
        if one.replace(":0", "") != other.replace(":0", ""):
            return "%s has input %d '%s' that doesn't match expected '%s'" % (about, i, one, other)
    controls = [{i for i in node.input if i.startswith("^")} for node in (actual, expected)]
    for name in sorted(controls[1] - controls[0]):
        return "%s missing expected control input '%s'" % (about, name)
    for name in sorted(controls[0] - controls[1]):
        return "%s has unexpected control input '%s'" % (about, name)
    for key in sorted(expected.attr):
        if key not in actual.attr:
            return "%s missing expected attr '%s' with value: %s" % (about, key, expected.attr[key])
        if actual.attr[key] != expected.attr[key]:
            return "%s has attr '%s' with value: %s that does not match expected: %s" % (about, key, actual.attr[key], expected.attr[key])
    for key in sorted(actual.attr):
        if key not in expected.attr and not key.startswith("_"):
            return "%s has unexpected attr '%s' with value: %s" % (about, key, actual.attr[key])
    return None


def EqualGraphDefWrapper(actual: bytes, expected: bytes) -> str:
    """Where two encoded GraphDefs differ; "" when they do not."""
    return _graph_difference(definitions.GraphDef.FromString(actual), definitions.GraphDef.FromString(expected)) or ""


def assert_meta_graph_protos_equal(tester: Any, a: Any, b: Any) -> None:
    """Fails a test unless two MetaGraphDefs are equal. Both lose their collections."""
    from millrace.framework.proto_functions import get_collection_proto_type

    tester.assertEqual(set(a.collection_def), set(b.collection_def))
    for key in a.collection_def:
        kind = get_collection_proto_type(key)
        if kind is None:
            tester.assertEqual(a.collection_def[key], b.collection_def[key])
            continue
        values = a.collection_def[key].bytes_list.value, b.collection_def[key].bytes_list.value
        tester.assertEqual(len(values[0]), len(values[1]))
        for one, other in zip(*values):
            tester.assertProtoEquals(kind.FromString(one), kind.FromString(other))
    a.ClearField("collection_def")
    b.ClearField("collection_def")
    tester.assertProtoEquals(a, b)
