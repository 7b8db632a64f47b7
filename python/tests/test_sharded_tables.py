# SPDX-License-Identifier: Apache-2.0
"""Tables in shards on parameter servers: what is looked up or computed is done where a shard lies, and only rows travel."""

import json
import os
import re

import numpy as np
import pytest

import millrace as tf
import millrace._core as core
from millrace.testing.test_util import _unused_port, create_local_cluster
from test_serve import _Served, needs_grpc

_DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
_ROWS, _WIDTH = 50000, 16


def _setter():
    return tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0"))


def _sharded(rows=_ROWS, use_resource=False, known=True):
    """A table in two shards, one for each parameter server; and what reads it in five ways."""
    if known:
        whole = tf.get_variable("table", [rows, _WIDTH], partitioner=tf.fixed_size_partitioner(2), use_resource=use_resource)
        return whole, list(whole)
    shards = [
        tf.Variable(tf.placeholder_with_default(np.ones([rows // 2, _WIDTH], np.float32), None), validate_shape=False, use_resource=use_resource)
        for _ in range(2)
    ]
    return shards, shards


def _lookups(table, ids, known=True):
    places = tf.range(tf.size(ids, out_type=tf.int64))
    sparse = tf.SparseTensor(tf.stack([places // 3, places % 3], 1), ids, [tf.size(ids, out_type=tf.int64) // 3 + 1, 3])
    found = {
        "mod": tf.nn.embedding_lookup(list(table), ids),
        "div": tf.nn.embedding_lookup(list(table), ids, partition_strategy="div"),
        "whole": tf.nn.embedding_lookup(table, ids),
        "norm": tf.nn.embedding_lookup(table, ids, max_norm=1.0),
    }
    if not known:
        return found
    return {
        **found,
        "sparse": tf.nn.embedding_lookup_sparse(table, sparse, None, combiner="mean"),
        "weighted": tf.nn.embedding_lookup_sparse(table, sparse, tf.SparseTensor(sparse.indices, tf.ones_like(ids, tf.float32), sparse.dense_shape)),
        "safe": tf.nn.safe_embedding_lookup_sparse(table, sparse),
        "sampled": tf.nn.sampled_softmax_loss(table, tf.zeros([_ROWS]), ids[:, None], tf.ones([tf.size(ids), _WIDTH]), 5, _ROWS),
        "nce": tf.nn.nce_loss(table, tf.zeros([_ROWS]), ids[:, None], tf.ones([tf.size(ids), _WIDTH]), 5, _ROWS),
    }


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("known", [True, False])
def test_look_ups_and_updates_are_where_the_shard_is(use_resource, known):
    with _setter():
        table, shards = _sharded(use_resource=use_resource, known=known)
        ids = tf.placeholder(tf.int64, [None])
        found = _lookups(table, ids, known)
        if known:  # optimizers want that
            trains = [tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y)) for y in found.values()]
            assert len(trains) == len(found)
    assert [s.device for s in shards] == ["/job:ps/task:0", "/job:ps/task:1"]
    lookups = updates = 0
    for op in tf.get_default_graph().get_operations():
        reads = [i for i, s in enumerate(shards) if any(x.op.name in (s.op.name, s.op.name + "/read") for x in op.inputs)]
        if not reads or "Initializer" in op.name:
            continue
        is_folded = op.type == "Shape" and known  # a constant before the step
        assert is_folded or op.device == "/job:ps/task:%d" % reads[0], (op.type, op.name, op.device)
        if "Gather" in op.type:
            assert ("loc:@" + shards[reads[0]].op.name).encode() in op.get_attr("_class")
        lookups += "Gather" in op.type
        updates += "ScatterSub" in op.type
    assert lookups >= 2 * len(found) and updates == (2 * len(found) if known else 0)


@needs_grpc
def test_only_rows_travel():
    cluster = {"ps": ["localhost:%d" % _unused_port() for _ in range(2)], "worker": ["localhost:%d" % _unused_port()]}
    text = ";".join("%s=%s" % (job, ",".join(tasks)) for job, tasks in cluster.items())
    with _Served("--job", "ps", cluster=text), _Served("--job", "ps", "--task", "1", cluster=text) as second:
        worker = tf.train.Server(cluster, job_name="worker", task_index=0)
        with _setter():
            table, _ = _sharded()
            ids = tf.placeholder(tf.int64, [None])
            losses = [tf.reduce_sum(tf.square(y)) for y in _lookups(table, ids).values()]
            steps = [tf.train.GradientDescentOptimizer(1e-3).minimize(loss) for loss in losses]

        def of_second():
            status = json.loads(core.target_status(second.target, 5000))
            return status["bytes_in"] + status["bytes_out"]

        with tf.Session(worker.target) as session:
            session.run(tf.global_variables_initializer())
            feeds = {ids: [1, 3, _ROWS // 2 + 1, _ROWS - 1, 7, 7]}
            for step in steps:
                session.run(step, feeds)
                before = of_second()
                session.run(step, feeds)
                assert 0 < of_second() - before < 20000 < _ROWS // 2 * _WIDTH * 4, step.name
        worker.stop()


@pytest.mark.parametrize("strategy, want", [(None, [0, 3, 2]), ("mod", [0, 3, 2]), ("div", [0, 1, 4])])
def test_parts_of_a_variable_are_read_by_the_strategy_of_the_call(strategy, want):
    table = tf.get_variable("table", initializer=np.arange(5.0), partitioner=tf.fixed_size_partitioner(2))
    rows = tf.nn.embedding_lookup(table, [0, 1, 4], **({"partition_strategy": strategy} if strategy else {}))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(rows).tolist() == want


def test_rows_that_are_named_twice_are_one_row_of_the_gradient():
    table = tf.get_variable("table", initializer=np.arange(12, dtype=np.float32).reshape(6, 2), partitioner=tf.fixed_size_partitioner(2))
    sparse = tf.SparseTensor([[0, 0], [0, 1], [0, 2], [1, 0]], tf.constant([5, 5, 0, 3], tf.int64), [2, 3])
    weights = tf.SparseTensor(sparse.indices, tf.constant([1.0, 2.0, 1.0, 4.0]), sparse.dense_shape)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for given, want in ((None, [[20 / 3, 23 / 3], [6, 7]]), (weights, [[30 / 4, 34 / 4], [6, 7]])):
            made = tf.nn.embedding_lookup_sparse(table, sparse, given, partition_strategy="div")
            np.testing.assert_allclose(session.run(made), want, rtol=1e-6)
            gradients = tf.gradients(tf.reduce_sum(made), list(table))
            shares = [1 / 3, 1, 2 / 3] if given is None else [1 / 4, 1, 3 / 4]
            values = session.run(gradients)
            assert [v.indices.tolist() for v in values] == [[0], [2, 0]]
            np.testing.assert_allclose(values[0].values, [[shares[0]] * 2], rtol=1e-6)
            np.testing.assert_allclose(values[1].values, [[shares[2]] * 2, [shares[1]] * 2], rtol=1e-6)


def _sharded_softmax_loss():
    """That of docs/cluster.md."""
    with open(os.path.join(_DOCS, "cluster.md"), encoding="utf-8") as page:
        text = re.search(r"^(def sharded_softmax_loss.*?)\n\n\n", page.read(), re.M | re.S).group(1)
    names = {"tf": tf}
    exec(text, names)
    return names["sharded_softmax_loss"]


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_a_softmax_in_shards_is_the_plain_one(scale):
    """Values and gradients, with shards of different sizes and logits whose exponentials would overflow."""
    workers, _ = create_local_cluster(num_workers=1, num_ps=2)
    r = np.random.RandomState(3)
    sizes = [4, 6, 1]
    x_value, w_value, b_value = r.randn(7, 5).astype(np.float32), (scale * r.randn(5, 11)).astype(np.float32), r.randn(11).astype(np.float32)
    cuts = np.cumsum(sizes)[:-1]
    with _setter():
        weights = [tf.Variable(v, name="w%d" % i) for i, v in enumerate(np.split(w_value, cuts, 1))]
        biases = [tf.Variable(v, name="b%d" % i) for i, v in enumerate(np.split(b_value, cuts))]
        x, labels = tf.constant(x_value), tf.constant([0, 3, 4, 9, 10, 10, 5])
        losses = _sharded_softmax_loss()(x, labels, weights, biases)
        before = set(tf.get_default_graph().get_operations())
        gradients = tf.gradients(tf.reduce_mean(losses), [x, *weights, *biases], colocate_gradients_with_ops=True)
        added = set(tf.get_default_graph().get_operations()) - before
        plain_w, plain_b = tf.constant(w_value), tf.constant(b_value)
        plain = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(x, plain_w) + plain_b)
        wanted = tf.gradients(tf.reduce_mean(plain), [x, plain_w, plain_b])
    products = [op for op in added if op.type == "MatMul"]
    assert len(products) == 6 and all(op.device.startswith("/job:ps") for op in products)
    with tf.Session(workers[0].target) as session:
        session.run(tf.global_variables_initializer())
        got, got_gradients, want, want_gradients = session.run([losses, gradients, plain, wanted])
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * scale)
    np.testing.assert_allclose(got_gradients[0], want_gradients[0], rtol=1e-4, atol=1e-5 * scale)
    np.testing.assert_allclose(np.concatenate(got_gradients[1:4], 1), want_gradients[1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.concatenate(got_gradients[4:7]), want_gradients[2], rtol=1e-4, atol=1e-6)
