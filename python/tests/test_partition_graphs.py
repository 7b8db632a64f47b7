# SPDX-License-Identifier: Apache-2.0
"""RunOptions.output_partition_graphs: what runs on each device."""

import numpy as np

import millrace as tf


def test_partitions_of_a_step():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        with tf.device("/cpu:0"):
            a = tf.multiply(x, 2.0, name="a")
        with tf.device("/cpu:1"):
            b = tf.add(a, 1.0, name="b")
        unused = tf.exp(b, name="unused")
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
            metadata, without = tf.RunMetadata(), tf.RunMetadata()
            made = session.run(b, {x: [1, 2]}, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
            np.testing.assert_array_equal(made, [3, 5])
            session.run(b, {x: [1, 2]}, options=tf.RunOptions(), run_metadata=without)
    names = [{node.name for node in graph.node} for graph in metadata.partition_graphs]
    assert len(names) == 2 and len(without.partition_graphs) == 0
    first, second = sorted(names, key=lambda held: "b" in held)
    assert "a" in first and "b" in second and "a" not in second
    assert not any(unused.op.name in held for held in names)
    for graph in metadata.partition_graphs:
        assert len({node.device for node in graph.node if node.name in ("a", "b")}) == 1
