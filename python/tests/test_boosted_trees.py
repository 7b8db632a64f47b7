# SPDX-License-Identifier: Apache-2.0
"""Ensembles of boosted trees and quantile streams, whose state outlives steps. The numbers and bytes are those of TensorFlow 1.15.5."""

import numpy as np
import pytest

import millrace as tf

_LEFT, _RIGHT = "INEQUALITY_DEFAULT_LEFT", "INEQUALITY_DEFAULT_RIGHT"
_FEATURES = [np.array(x, np.int32) for x in ([0, 1, 2, 3], [3, 0, 3, 0])]

# Two layers with a bias; a split of the second lost and was taken back.
_TREES = (
    b"\nQ\n\x19\x12\x08\x10\x01\x18\x01 \x020\x01\xca0\x0c\r\x00\x00\x80?\x12\x05\x1d\xf2\xd2M\xbe\n\x07\n\x05\x1d\x87\x16\x99>\n\x19\x12\x08\x08\x01"
    b"\x10\x01\x18\x03 \x04\xca0\x0c\r\x00\x00\x00?\x12\x05\x1d\xbct3\xbf\n\x07\n\x05\x1d\x88\x16\x99>\n\x07\n\x05\x1d^\xba\xd9\xbf\n\x04\n\x02\n\x00"
    b'\x12\x08\x00\x00\x80?\x00\x00\x80?\x1aH\x10\x02\x18\x01"\x06\x12\x04\x00\x00\x00\x00"\x08\x08\x01\x12\x04\x00\x00\x00\x00"\x08\x08\x02\x12\x04'
    b'\x00\x00\x00\x00"\x08\x08\x01\x12\x04\x00\x00\x80\xbf"\x08\x08\x01\x12\x04\x00\x00\x80?"\x08\x08\x03\x12\x04\x00\x00\x00\x00"\x08\x08\x04\x12\x04'
    b'\x00\x00\x00\x00\x1a\x00"\x06\x08\x01\x10\x02 \x01'
)


def _handle():
    return tf.raw_ops.BoostedTreesEnsembleResourceHandleOp(container="", shared_name="trees")


def _update(handle, nodes, gains, thresholds, left, right, types):
    """Features 1 and 0 offer splits of nodes; trees are two layers deep, and pruned when they are done."""
    column = [[np.array(x, np.float32).reshape(-1, 1) for x in side] for side in (left, right)]
    vectors = [[np.array(x, t) for x in lists] for lists, t in ((nodes, np.int32), (gains, np.float32), (thresholds, np.int32))]
    return tf.raw_ops.BoostedTreesUpdateEnsembleV2(
        tree_ensemble_handle=handle,
        feature_ids=[1, 0],
        dimension_ids=[np.zeros(len(x), np.int32) for x in nodes],
        node_ids=vectors[0],
        gains=vectors[1],
        thresholds=vectors[2],
        left_node_contribs=column[0],
        right_node_contribs=column[1],
        split_types=[tf.constant(x) for x in types],
        max_depth=2,
        learning_rate=0.5,
        pruning_mode=2,
    )


def _predict(handle, nodes=None):
    if nodes is None:
        return tf.raw_ops.BoostedTreesPredict(tree_ensemble_handle=handle, bucketized_features=_FEATURES, logits_dimension=1)
    trees = tf.zeros([4], tf.int32)
    return tf.raw_ops.BoostedTreesTrainingPredict(
        tree_ensemble_handle=handle, cached_tree_ids=trees, cached_node_ids=nodes, bucketized_features=_FEATURES, logits_dimension=1
    )


def test_an_ensemble_grows_and_is_pruned_as_tensorflows():
    handle = _handle()
    made = tf.raw_ops.IsBoostedTreesEnsembleInitialized(tree_ensemble_handle=handle)
    create = tf.raw_ops.BoostedTreesCreateEnsemble(tree_ensemble_handle=handle, stamp_token=5, tree_ensemble_serialized="")
    states = tf.raw_ops.BoostedTreesGetEnsembleStates(tree_ensemble_handle=handle)
    biases = [
        tf.raw_ops.BoostedTreesCenterBias(tree_ensemble_handle=handle, mean_gradients=[[g]], mean_hessians=[[1.0]], l1=l, l2=l)
        for g, l in ((0.5, 0.25), (0.001, 0.0))
    ]
    with tf.Session() as session:
        assert not session.run(made)
        session.run(create)
        assert session.run(made)
        assert [session.run(bias) for bias in biases] == [True, False]
        session.run(_update(handle, [[0], [0]], [[1], [1]], [[2], [1]], [[4], [1]], [[8], [-1]], [[_LEFT], [_RIGHT]]))
        assert [x.tolist() for x in session.run(states)] == [8, 1, 0, 1, [1, 3]]
        logits, trees, nodes = session.run(_predict(handle, -tf.ones([4], tf.int32)))
        np.testing.assert_array_equal(logits.ravel(), np.float32([0.299, 0.299, -0.701, -0.701]))
        assert (trees.tolist(), nodes.tolist()) == ([0] * 4, [1, 1, 2, 2])
        session.run(_update(handle, [[1, 2], [2]], [[-1, 0.5], [-0.25]], [[1, 1], [0]], [[2, 2], [4]], [[-2, -2], [1]], [[_LEFT] * 2, [_RIGHT]]))
        assert [x.tolist() for x in session.run(states)] == [9, 2, 1, 2, [0, 1]]
        # Nodes that were pruned have become others.
        logits, trees, nodes = session.run(_predict(handle, tf.constant([3, 4, 2, 1])))
        assert (logits.ravel().tolist(), trees.tolist(), nodes.tolist()) == ([-1, 1, -1, 0], [1] * 4, [0] * 4)
        stamp, trees = session.run(tf.raw_ops.BoostedTreesSerializeEnsemble(tree_ensemble_handle=handle))
        assert (stamp, trees) == (9, _TREES)


def test_a_serialized_ensemble_predicts_and_tells_how():
    handle = _handle()
    create = tf.raw_ops.BoostedTreesCreateEnsemble(tree_ensemble_handle=handle, stamp_token=0, tree_ensemble_serialized=_TREES)
    restore = tf.raw_ops.BoostedTreesDeserializeEnsemble(tree_ensemble_handle=handle, stamp_token=7, tree_ensemble_serialized="")
    ways = tf.raw_ops.BoostedTreesExampleDebugOutputs(tree_ensemble_handle=handle, bucketized_features=_FEATURES, logits_dimension=1)
    with tf.Session() as session:
        session.run(create)
        np.testing.assert_array_equal(session.run(_predict(handle)).ravel(), np.float32([0.299, 0.299, -1.701, 0.29900002]))
        assert session.run(ways)[2] == b"\n\x02\x00\x01\x12\x0c\xf2\xd2M\xbe\xbct3\xbf^\xba\xd9\xbf"
        session.run(restore)
        assert session.run(_predict(handle)).tolist() == [[0]] * 4
        with pytest.raises(tf.errors.FailedPreconditionError, match="no trees yet"):
            session.run(ways)


def test_what_is_no_tree_is_refused():
    handle = _handle()
    # A root whose left child is itself.
    loop = b"\n\x0c\n\x04\x12\x02 \x01\n\x04\n\x02\n\x00" + b"\x12\x04\x00\x00\x80?"
    create = tf.raw_ops.BoostedTreesCreateEnsemble(tree_ensemble_handle=handle, stamp_token=0, tree_ensemble_serialized=loop)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="tree 0: node 0 has child 0, want one of nodes 1 to 1"):
        session.run(create)


def test_quantile_streams_find_tensorflows_boundaries():
    handle = tf.raw_ops.BoostedTreesQuantileStreamResourceHandleOp(container="", shared_name="quantiles")
    create = tf.raw_ops.BoostedTreesCreateQuantileStreamResource(quantile_stream_resource_handle=handle, epsilon=0.05, num_streams=1)
    value = tf.placeholder(tf.float32, [None])
    summaries = tf.raw_ops.BoostedTreesMakeQuantileSummaries(float_values=[value], example_weights=[1.0], epsilon=0.05)
    add = tf.raw_ops.BoostedTreesQuantileStreamResourceAddSummaries(quantile_stream_resource_handle=handle, summaries=summaries)
    flush = tf.raw_ops.BoostedTreesQuantileStreamResourceFlush(quantile_stream_resource_handle=handle, num_buckets=6)
    (boundaries,) = tf.raw_ops.BoostedTreesQuantileStreamResourceGetBucketBoundaries(quantile_stream_resource_handle=handle, num_features=1)
    (buckets,) = tf.raw_ops.BoostedTreesBucketize(float_values=[tf.constant([-9.0, 2000.0, 1e9])], bucket_boundaries=[boundaries])
    column = tf.placeholder(tf.float32)
    (of_column,) = tf.raw_ops.BoostedTreesBucketize(float_values=[column], bucket_boundaries=[[1.0, 2.0]])
    with tf.Session() as session:
        assert session.run(of_column, {column: [[0.5], [1.5]]}).tolist() == [0, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="one value of each example, got shape"):
            session.run(of_column, {column: [[0.5, 1.5]]})
        session.run(create)
        for k in range(7):  # more than a stream keeps
            session.run(add, {value: np.arange(1000) ** 2 % 4099 + k})
        assert session.run(boundaries).tolist() == []
        session.run(flush)
        assert session.run(boundaries).tolist() == [0, 604, 1258, 1998, 2647, 3389, 4102]
        assert session.run(buckets).tolist() == [0, 4, 6]


def test_checkpoints_keep_trees_and_boundaries(tmp_path):
    from millrace.train import boosted_trees as trees

    ensemble = trees.TreeEnsemble("ensemble", stamp_token=3, serialized_proto=_TREES)
    quantiles = trees.QuantileAccumulator(0.1, num_streams=2, num_quantiles=4, name="quantiles")
    saver, replace = tf.train.Saver(), ensemble.deserialize(8, "")
    fill = quantiles.add_summaries([tf.range(9.0), 2 * tf.range(9.0)], [1.0])
    with tf.Session() as session:
        session.run([ensemble.initializer, quantiles.initializer])
        session.run(fill)
        session.run(quantiles.flush())
        boundaries = session.run(quantiles.get_bucket_boundaries())
        path = saver.save(session, str(tmp_path / "model"))
        session.run(replace)
        assert [x.tolist() for x in session.run(ensemble.get_states())] == [8, 0, 0, 0, [0, 1]]
    names = ["ensemble:0_serialized", "ensemble:0_stamp", "quantiles:0_bucket_boundaries_0", "quantiles:0_bucket_boundaries_1"]
    reader = tf.train.NewCheckpointReader(path)
    assert sorted(reader.get_variable_to_shape_map()) == names
    assert (reader.get_tensor(names[0]), reader.get_tensor(names[1])) == (_TREES, 3)
    with tf.Session() as session:
        saver.restore(session, path)
        assert session.run(ensemble.serialize()) == (3, _TREES)
        for got, wanted in zip(session.run(quantiles.get_bucket_boundaries()), boundaries):
            np.testing.assert_array_equal(got, wanted)


def test_messages_of_trees():
    from millrace.protos import text_format, trees

    ensemble = trees.TreeEnsemble.FromString(_TREES)
    assert [len(tree.nodes) for tree in ensemble.trees] == [5, 1]
    root = ensemble.trees[0].nodes[0]
    assert (root.WhichOneof("node"), root.bucketized_split.default_direction, root.metadata.gain) == ("bucketized_split", trees.DEFAULT_RIGHT, 1)
    assert [update.new_node_id for update in ensemble.tree_metadata[0].post_pruned_nodes_meta] == [0, 1, 2, 1, 1, 3, 4]
    text = text_format.MessageToString(ensemble)
    assert "default_direction: DEFAULT_RIGHT" in text
    assert text_format.Parse(text, trees.TreeEnsemble()).SerializeToString() == _TREES
