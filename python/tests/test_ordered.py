# SPDX-License-Identifier: Apache-2.0
"""Ordered sessions: the same program gives the same bits, also where its graph leaves the order open."""

import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _who_comes_first(count=10):
    """A step of which several operations put something into a queue, none after another, and what the queue then has."""
    queue = tf.FIFOQueue(count, tf.int32, shapes=[[]])
    return tf.group(*[queue.enqueue(i) for i in range(count)]), queue.dequeue_many(count)


def _orders(config, put, take, steps=4):
    found = []
    with tf.Session(config=config) as session:
        for _ in range(steps):
            session.run(put)
            found.append(tuple(session.run(take)))
    return found


def test_the_seed_decides_what_the_graph_leaves_open():
    put, take = _who_comes_first()
    by_seed = [_orders(tf.ConfigProto(ordered=True, order_seed=seed), put, take) for seed in range(5)]
    for seed, orders in enumerate(by_seed):
        assert _orders(tf.ConfigProto(ordered=True, order_seed=seed), put, take) == orders, "the same seed, the same order"
        assert all(sorted(o) == list(range(10)) for o in orders)
    assert set(by_seed[0]) == {tuple(range(10))}, "without a seed each step is as the graph was stated"
    assert len({tuple(o) for o in by_seed}) == 5 and len(set(by_seed[1])) == 4, "each step draws an order of its own"


def test_values_are_those_of_other_sessions():
    x = tf.random_normal([64, 64], seed=1)
    w = tf.get_variable("w", [64, 64], initializer=tf.glorot_uniform_initializer(seed=2))
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(x), w)))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)

    def losses(config):
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            return [session.run([loss, train])[0] for _ in range(5)]

    assert losses(tf.ConfigProto(ordered=True, order_seed=3)) == losses(tf.ConfigProto())


def test_sessions_on_servers_refuse_it():
    server = tf.train.Server.create_local_server()
    with pytest.raises(tf.errors.UnimplementedError, match="ordered steps in a session of target 'grpc"):
        tf.Session(server.target, config=tf.ConfigProto(ordered=True)).run(tf.constant(1))
