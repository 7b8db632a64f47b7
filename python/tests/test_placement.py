# SPDX-License-Identifier: Apache-2.0
"""Where nodes lie, what travels between devices, and what gradients keep: what a session's options say about them."""

import re

import numpy as np
import pytest

import millrace as tf
from millrace.framework.device import DeviceSpecV2
from millrace.protos import definitions


def config(devices=1, period=0, memory=None, **graph_options):
    made = tf.ConfigProto(device_count={"CPU": devices}, placement_period=period, graph_options=tf.GraphOptions(**graph_options))
    if memory is not None:
        made.graph_options.rewrite_options.memory_optimization = memory
    return made


def peak_of(session, fetches, feeds=None):
    """How much more memory a step has in use at its peak than at its start, bytes, and what it gives."""
    session.run(fetches, feeds)
    metadata = tf.RunMetadata()
    peaks = []
    for _ in range(3):
        values = session.run(fetches, feeds, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
        stats = metadata.step_stats.dev_stats[0].node_stats[0]
        assert stats.node_name == "_SOURCE"
        peaks.append(stats.memory[0].peak_bytes)
    return min(peaks), values


def towers():
    x = tf.placeholder(tf.float32, [256, 256], name="x")
    w = tf.get_variable("w", [256, 256], initializer=tf.random_normal_initializer(seed=3, stddev=0.06))
    ends = []
    for _ in range(2):
        y = x
        for _ in range(6):
            y = tf.tanh(tf.matmul(y, w) + tf.constant(float(len(ends))))
        ends.append(tf.reduce_sum(y))
    return x, w, tf.stack(ends), tf.random_uniform([3], seed=7)


def test_placement_by_cost_spreads_work_and_keeps_state():
    x, w, ends, noise = towers()
    step = tf.assign_add(w, tf.fill([256, 256], 0.001))
    value = np.random.RandomState(0).randn(256, 256).astype(np.float32)
    results = []
    for period in (0, 3):
        with tf.Session(config=config(devices=3, period=period)) as session:
            session.run(tf.global_variables_initializer())
            text = session.explain(ends, [x])
            places = set(re.findall(r"is on \S*(CPU:\d)", text))
            assert ("cheapest by simulation, ends after" in text) == (period > 0)
            assert (len(places) > 1) == (period > 0), text
            assert re.search(r"w \(VariableV2\) is on \S*CPU:\d", text), text
            got = []
            for _ in range(30):  # over several periods, in which costs are measured and nodes placed again
                got.append(session.run([ends, noise], {x: value}))
                session.run(step)
            results.append(got)
    for by_first, by_cost in zip(*results):
        np.testing.assert_array_equal(by_first[0], by_cost[0])
        np.testing.assert_array_equal(by_first[1], by_cost[1])


def test_variables_of_the_whole_graph_are_placed_together():
    # The initializer is met first, and knows nothing of the work.
    x, w, ends, _ = towers()
    with tf.Session(config=config(devices=2, period=1000)) as session:
        session.run(tf.global_variables_initializer())
        session.run(ends, {x: np.zeros([256, 256])})
        assert session.run(w).shape == (256, 256)


def test_a_marked_edge_carries_half_of_the_bits():
    bits = np.random.RandomState(1).randint(0, 2**32, 10000, dtype=np.uint64).astype(np.uint32)
    value = bits.view(np.float32)
    with tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, [None])
        lossy = tf.identity(x, name="lossy")
        lossy.op._set_attr("_bfloat16_sendrecv", definitions.AttrValue(b=True).SerializeToString())
        exact = tf.identity(x, name="exact")
        number = tf.cast(tf.range(5), tf.int32)
    with tf.device("/cpu:1"):
        got = [tf.identity(t) for t in (lossy, exact, number)]
    with tf.device("/cpu:0"):
        same = tf.identity(lossy)
    with tf.Session(config=config(devices=2)) as session:
        short, full, whole, here = session.run(got + [same], {x: value})
    plain = ~np.isnan(value)
    np.testing.assert_array_equal(short.view(np.uint32)[plain], bits[plain] & 0xFFFF0000)
    assert np.isnan(short[~plain]).all()
    np.testing.assert_array_equal(full.view(np.uint32)[plain], bits[plain])
    np.testing.assert_array_equal(here.view(np.uint32)[plain], bits[plain])
    assert whole.tolist() == [0, 1, 2, 3, 4]


def test_an_order_that_needs_less_memory():
    seed = tf.placeholder(tf.float32, [])
    large = [tf.fill([1024, 1024], seed * float(k)) for k in range(16)]
    total = tf.add_n([tf.reduce_sum(tf.sqrt(v)) for v in large])
    peaks, values = [], []
    for memory in (definitions.RewriterConfig.NO_MEM_OPT, None):
        with tf.Session(config=config(memory=memory)) as session:
            peak, value = peak_of(session, total, {seed: 3.0})
            peaks.append(peak)
            values.append(value)
            text = session.explain(total, [seed])
        assert ("in the order chosen by memory" in text) == (memory is None), text
    assert values[0] == values[1]
    assert peaks[0] > 16 * 4e6 and peaks[1] < 4 * 4.2e6, peaks


def mlp(depth, wrap, width=256, rows=2048):
    """A deep network; `wrap` decorates each block of four layers."""
    tf.reset_default_graph()
    x = tf.placeholder(tf.float32, [rows, width], name="x")

    def block(y, first):
        for k in range(first, first + 4):
            w = tf.get_variable("w%d" % k, [width, width], initializer=tf.random_normal_initializer(seed=k, stddev=0.08))
            y = tf.nn.tanh(tf.matmul(y, w))
        return y

    y = x
    for first in range(0, depth, 4):
        y = wrap(lambda t, first=first: block(t, first))(y)
    loss = tf.reduce_mean(tf.square(y))
    return x, loss, tf.gradients(loss, tf.trainable_variables())


def test_recompute_grad_needs_less_memory_for_the_same_bits():
    value = np.random.RandomState(5).randn(2048, 256).astype(np.float32)
    peaks, gradients = [], []
    for wrap in (lambda f: f, tf.contrib.layers.recompute_grad):
        x, loss, grads = mlp(24, wrap)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            peak, values = peak_of(session, [loss] + grads, {x: value})
            text = session.explain([loss] + grads, [x])
        assert ("nodes are computed again for gradients" in text) == bool(peaks), text
        peaks.append(peak)
        gradients.append(values)
    for plain, again in zip(*gradients):
        np.testing.assert_array_equal(plain, again)
    assert peaks[1] < 0.65 * peaks[0], peaks


def test_recompute_grad_keeps_what_is_random():
    @tf.contrib.layers.recompute_grad
    def block(t):
        return tf.square(tf.nn.dropout(tf.tanh(t), 0.5, seed=11)) * 2.0

    x = tf.placeholder(tf.float32, [100])
    y = block(x)
    grad = tf.gradients(tf.reduce_sum(y * y), x)[0]
    with tf.Session() as session:
        value, got = session.run([y, grad], {x: np.linspace(-1, 1, 100)})
    assert ((value == 0) == (got == 0)).all() and (value == 0).any()
    with pytest.raises(TypeError, match="use_data_dep"):
        tf.contrib.layers.recompute_grad(block, use_data_dep="yes")


def test_hints_are_obeyed_by_hand():
    hint = definitions.AttrValue(i=0).SerializeToString()
    x, _, grads = mlp(16, lambda f: f, width=128, rows=1024)
    ops = [op for op in tf.get_default_graph().get_operations() if op.type in ("MatMul", "Tanh") and "gradients" not in op.name]
    for k, op in enumerate(ops):
        if k % 8 != 7:  # the end of each fourth layer stays
            op._set_attr("_recompute_hint", hint)
    value = np.random.RandomState(5).randn(1024, 128).astype(np.float32)
    texts, results = [], []
    for memory in (0, definitions.RewriterConfig.MANUAL, definitions.RewriterConfig.HEURISTICS):
        with tf.Session(config=config(memory=memory)) as session:
            session.run(tf.global_variables_initializer())
            texts.append(session.explain(grads, [x]))
            results.append(session.run(grads, {x: value}))
    assert ["nodes are computed again" in t for t in texts] == [False, True, True]
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_array_equal(a, b)


def test_recomputation_by_cost():
    x = tf.placeholder(tf.float32, [512, 512])
    w = tf.get_variable("w", [512, 512], initializer=tf.random_normal_initializer(seed=1, stddev=0.05))
    y = x
    for _ in range(6):
        y = tf.matmul(y, w)
        y = y * tf.sigmoid(y) * tf.tanh(y)  # of each layer, one value would do
    grads = tf.gradients(tf.reduce_sum(y), w)
    value = np.random.RandomState(5).randn(512, 512).astype(np.float32)
    peaks, results = [], []
    for memory in (0, definitions.RewriterConfig.RECOMPUTATION_HEURISTICS):
        with tf.Session(config=config(memory=memory)) as session:
            session.run(tf.global_variables_initializer())
            peak, values = peak_of(session, grads, {x: value})
            peaks.append(peak)
            results.append(values)
    np.testing.assert_array_equal(*[r[0] for r in results])
    assert peaks[1] < 0.8 * peaks[0], peaks


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("device", ["/cpu:0", "/cpu:1"])
def test_what_is_sent_passes_no_update_and_no_read_before_an_update(device, resource):
    def value(variable):
        return tf.identity(variable.read_value() if resource else variable)

    with tf.Graph().as_default():
        with tf.device("/cpu:0"):
            first, second = (tf.get_variable(name, initializer=0.0, use_resource=resource) for name in ("a", "b"))
            update = first.assign_add(1.0, read_value=False) if resource else None
            late, early = value(first), value(second) * 1.0
            updated = second.assign_add(1.0)
        with tf.device(device):
            sent, sent_update = late * 2.0, tf.identity(updated) * 2.0
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
            session.run(tf.global_variables_initializer())
            for step in range(20):
                fetches = [sent, early, sent_update] + ([update] if resource else [])
                got = session.run(fetches)
                assert got[1:3] == [step, 2 * (step + 1)]
                assert got[0] == (2 * (step + 1) if resource else 0)


def test_names_of_devices_that_do_not_change():
    spec = DeviceSpecV2.from_string("/job:a/task:1")
    merged = spec.make_merged_spec(tf.DeviceSpec(task=2, device_type="cpu", device_index=0))
    assert merged.to_string() == "/job:a/task:2/device:CPU:0" and isinstance(merged, DeviceSpecV2) and spec.task == 1
    assert spec.replace(task=None).to_string() == "/job:a" and spec.parse_from_string("/job:b").job == "b"
    with pytest.raises(AttributeError):
        spec.task = 3
    with tf.Graph().as_default(), tf.device(merged):
        assert tf.constant(1).device == "/job:a/task:2/device:CPU:0"
