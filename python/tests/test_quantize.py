# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.quantize: folded normalizations compute the same, and layers compute with few bits."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import layers, quantize
from millrace.contrib.quantize import fold_batch_norms, quant_ops
from millrace.contrib.quantize.graph_matcher import GraphMatcher, OneofPattern, OpTypePattern


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _model(fused, trains, kind="conv", scale=True):
    tf.set_random_seed(3)
    x = tf.constant(np.random.RandomState(1).randn(4, 8, 8, 3).astype(np.float32))
    norm = dict(scale=scale, fused=fused, is_training=trains, decay=0.9, param_initializers={"gamma": tf.random_uniform_initializer(1, 2)} if scale else None)
    if kind == "depthwise":
        net = layers.separable_conv2d(x, None, [3, 3], 2, normalizer_fn=layers.batch_norm, normalizer_params=norm, scope="layer")
    elif kind == "dense":
        net = layers.fully_connected(layers.flatten(x), 5, normalizer_fn=layers.batch_norm, normalizer_params=norm, scope="layer")
    else:
        net = layers.conv2d(x, 5, [3, 3], stride=2, normalizer_fn=layers.batch_norm, normalizer_params=norm, scope="layer")
    return tf.identity(net, name="out")


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("kind", ["conv", "depthwise", "dense"])
def test_folded_normalizations_compute_the_same(fused, trains, kind):
    for scale in (True, False):
        with tf.Graph().as_default() as graph:
            out = _model(fused, trains, kind, scale)
            weights = tf.trainable_variables()[0]
            before, after = {}, {}
            for found in (before, after):
                if found is after:
                    fold_batch_norms.FoldBatchNorms(graph, trains)
                gradient = tf.gradients(tf.reduce_sum(tf.square(out)), weights)[0]
                with tf.Session() as session:
                    session.run(tf.global_variables_initializer())
                    for v in tf.global_variables():
                        if "moving" in v.name:
                            session.run(v.assign(np.random.RandomState(5).uniform(0.5, 2, v.get_shape().as_list())))
                    found["out"], found["gradient"] = session.run([out, gradient])
            assert any(op.name == "layer/add_fold" for op in graph.get_operations())
            np.testing.assert_allclose(after["out"], before["out"], rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(after["gradient"], before["gradient"], rtol=2e-3, atol=2e-2)


def test_averages_stay_from_a_step_on():
    _model(True, True)
    quantize.experimental_create_training_graph(freeze_bn_delay=3, quant_delay=None)
    updates, out = tf.get_collection(tf.GraphKeys.UPDATE_OPS), tf.get_default_graph().get_tensor_by_name("out:0")
    (mean,) = [v for v in tf.global_variables() if "moving_mean" in v.name]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        means = []
        for _ in range(5):
            session.run([out, updates])
            means.append(session.run(mean))
    assert (means[0] != means[1]).any() and (means[3] == means[4]).all()


def test_models_train_with_few_bits():
    x = tf.random_normal([32, 6], seed=4)
    with tf.variable_scope("net"):
        hidden = layers.fully_connected(x, 8, scope="one")
        out = layers.fully_connected(hidden, 2, activation_fn=None, scope="two")
    loss = tf.reduce_mean(tf.square(out - x[:, :2]))
    quantize.experimental_create_training_graph(weight_bits=4, scope="net")
    names = [op.name for op in tf.get_default_graph().get_operations() if op.type == "FakeQuantWithMinMaxVars"]
    assert {n.rpartition("/")[0] for n in names} >= {"net/one/weights_quant", "net/one/act_quant", "net/two/weights_quant"}
    used = tf.get_default_graph().get_operation_by_name("net/one/MatMul").inputs[1]
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    with pytest.raises(ValueError, match="Training op found"):
        quantize.create_eval_graph()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first = session.run(loss)
        for _ in range(100):
            session.run(train)
        assert session.run(loss) < first / 2 and len(np.unique(session.run(used))) <= 16


def test_quantization_waits_and_evaluation_reads_ranges():
    w = tf.get_variable("w", initializer=np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
    out = tf.nn.relu(tf.nn.bias_add(tf.matmul(tf.ones([1, 4]), w), tf.zeros([3])))
    quantize.create_training_graph(quant_delay=2)
    used = tf.get_default_graph().get_operation_by_name("MatMul").inputs[1]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        seen = [session.run([used, out])[0] for _ in range(3)]
        exact = session.run(w)
    assert (seen[0] == exact).all() and (seen[2] != exact).any() and abs(seen[2] - exact).max() < 1 / 127


def test_ranges_of_last_steps_and_averages():
    x = tf.placeholder(tf.float32, [2, 3])
    last = quant_ops.LastValueQuantize(x, per_channel=True, symmetric=True, narrow_range=True, vars_collection="ranges")
    averaged = quant_ops.MovingAvgQuantize(x, init_min=0.0, init_max=0.0, ema_decay=0.5, vars_collection="ranges")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([last, averaged], {x: [[1, 2, -4], [-3, 1, 2]]})
        low, high, average_low, average_high = session.run(tf.get_collection("ranges"))
    assert list(low) == [-3, -2, -4] and list(high) == [3, 2, 4] and average_high > 1 and average_low < -1


def test_patterns():
    a, b = tf.placeholder(tf.float32, name="a"), tf.constant(2.0, name="b")
    tf.nn.relu(tf.multiply(b, a, name="product"), name="top")
    source = OpTypePattern("Placeholder", name="source")
    product = OpTypePattern("Mul", inputs=[source, "Const"], ordered_inputs=False)
    (match,) = GraphMatcher(OpTypePattern("Relu|Relu6", inputs=[OneofPattern([OpTypePattern("Add"), product])])).match_graph(tf.get_default_graph())
    assert match.get_tensor("source") is a and match.get_op(product).name == "product" and match.get_op("nobody") is None
    assert not list(GraphMatcher(OpTypePattern("Mul", inputs=["Placeholder", "Const"])).match_graph(tf.get_default_graph()))
