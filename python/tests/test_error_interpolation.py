# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.error_interpolation: what TensorFlow 1.15.5 writes for the same nodes and scopes."""

import os

import millrace as tf
from millrace.framework import error_interpolation
from millrace.framework.places import TraceableObject

FILE = os.path.abspath(__file__)


def test_tags_of_a_message():
    assert error_interpolation.parse_message("123{{node Foo}}456{{node Bar/x}}") == (["123", "456", ""], [("node", "Foo"), ("node", "Bar/x")])
    graph = tf.Graph()
    assert error_interpolation.interpolate("just {{text", graph) == "just {{text"
    assert error_interpolation.interpolate("{{node One}} in {{function_node f}}.", graph) == "{{node One}} in ."


def test_summaries_of_scopes():
    devices = [TraceableObject("/cpu:0", "hope.py", 24), TraceableObject("/gpu:2", "please.py", 42)]
    assert error_interpolation._compute_device_summary_from_list("n", devices, "  ") == (
        "  Device assignments active during op 'n' creation:\n    with tf.device(/cpu:0): <hope.py:24>\n    with tf.device(/gpu:2): <please.py:42>"
    )
    assert error_interpolation._compute_device_summary_from_list("n", []) == "No device assignments were active during op 'n' creation."
    assert error_interpolation._compute_colocation_summary_from_dict("n", {"m": TraceableObject(None, "a.py", 2)}) == (
        "Node-device colocations active during op 'n' creation:\n  with tf.colocate_with(m): <a.py:2>"
    )
    assert error_interpolation._compute_colocation_summary_from_dict("n", {}, " ") == " No node-device colocations were active during op 'n' creation."


def test_nodes_with_their_lines():
    with tf.Graph().as_default() as graph:
        one = tf.constant(1.0, name="One")
        line = one.op.traceback[-1][1]
        with tf.device("/cpu:0"):
            two = tf.negative(one, name="Two")
        with tf.colocate_with(one):
            tf.constant(1.0, name="Three")
    said = error_interpolation.interpolate(";{{node Two}};", graph)
    name = os.path.basename(FILE)
    assert said.startswith(";node Two (defined at ") and name in said
    assert said.split("\n\n")[1].split("\n")[:2] == ["Errors may have originated from an input operation.", "Input Source operations connected to node Two:"]
    assert said.endswith(" One (defined at %s:%d)" % (said.split("defined at ")[1].split(":")[0], line))
    said = error_interpolation.interpolate("{{colocation_node Two}}", graph)
    assert said.count("with tf.device(/cpu:0): <") == 2 and "No node-device colocations" in said
    assert "with tf.colocate_with(One): <" in error_interpolation.interpolate("{{colocation_node Three}}", graph)
    info = error_interpolation.create_graph_debug_info_def([("", one.op), ("f", two.op)])
    assert sorted(info.traces) == ["One", "fTwo"] and [os.path.basename(f) for f in info.files] == [name]
    assert info.traces["One"].file_line_cols[0].line == line
