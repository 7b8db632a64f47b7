# SPDX-License-Identifier: Apache-2.0
"""tf.distribute where no strategy is chosen, or one of a single replica."""

import numpy as np
import pytest

import millrace as tf
from millrace.framework import execution_callbacks


def test_there_is_one_replica():
    strategy, replica = tf.distribute.get_strategy(), tf.distribute.get_replica_context()
    assert isinstance(strategy, tf.distribute.Strategy) and not tf.distribute.has_strategy() and strategy.num_replicas_in_sync == 1
    assert replica.strategy is strategy and replica.replica_id_in_sync_group == 0 and not tf.distribute.in_cross_replica_context()

    def merged(given, value):
        assert given is strategy and tf.distribute.in_cross_replica_context() and tf.distribute.get_replica_context() is None
        return value

    assert replica.merge_call(merged, (5,)) == 5 and tf.distribute.get_replica_context() is replica
    with strategy.scope() as same:
        assert same is strategy and not tf.distribute.has_strategy()
    with pytest.raises(AttributeError, match="strategies need servers"):
        tf.distribute.NcclAllReduce


def test_a_strategy_of_one_device():
    plain = tf.distribute.get_strategy()
    for strategy in (tf.distribute.OneDeviceStrategy("device:CPU:0"), tf.contrib.distribute.MirroredStrategy(num_gpus=0)):
        with tf.Graph().as_default(), strategy.scope() as same:
            assert same is strategy is tf.distribute.get_strategy() and tf.distribute.has_strategy() and strategy.num_replicas_in_sync == 1
            assert tf.distribute.get_replica_context().strategy is strategy
            assert tf.constant(1).device == "/device:CPU:0"
    assert tf.distribute.get_strategy() is plain and not tf.distribute.has_strategy()
    with pytest.raises(NotImplementedError, match="on 2 devices"):
        tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])


def test_estimators_train_and_evaluate_with_it():
    def model(features, labels, mode):
        model.seen.append((mode, tf.distribute.get_strategy()))
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.squared_difference(features * w, labels))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step()))

    def data():
        return tf.data.Dataset.from_tensors(([1.0], [3.0])).repeat(4)

    model.seen = []
    strategies = [tf.contrib.distribute.OneDeviceStrategy("device:CPU:0"), tf.distribute.MirroredStrategy()]
    config = tf.estimator.RunConfig().replace(train_distribute=strategies[0], eval_distribute=strategies[1])
    estimator = tf.estimator.Estimator(model, config=config).train(data, steps=2)
    assert estimator.evaluate(data)["loss"] == 0
    assert [(mode, type(strategy)) for mode, strategy in model.seen] == [("train", type(strategies[0])), ("eval", type(strategies[1]))]


def test_its_values_are_those_of_all():
    strategy, values = tf.distribute.get_strategy(), tf.constant([1.0, 3])
    mean, total = strategy.reduce(tf.distribute.ReduceOp.MEAN, values, 0), strategy.reduce("sum", values, 0)
    v = tf.Variable(1.0)
    assigned = strategy.extended.update(v, lambda var, value: var.assign(value), (7.0,))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([mean, total, assigned]) == [2, 4, 7]
    assert strategy.reduce("SUM", values) is values and strategy.experimental_local_results(values) == (values,)
    assert strategy.experimental_run_v2(lambda a, b: a - b, (5,), {"b": 3}) == 2 and strategy.extended.variable_created_in_scope(v)


def test_callbacks_of_what_runs_without_graphs_see_no_graph():
    with execution_callbacks.errstate(inf_or_nan=execution_callbacks.ExecutionCallback.RAISE), tf.Session() as session:
        assert np.isinf(session.run(tf.constant(1.0) / tf.constant(0.0)))
