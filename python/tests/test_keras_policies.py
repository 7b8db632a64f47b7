# SPDX-License-Identifier: Apache-2.0
"""tf.keras.mixed_precision.experimental: types of layers and of their variables, scaled losses of optimizers."""

import numpy as np
import pytest

import millrace as tf
from millrace.layers import casting, policies

keras, K = tf.keras, tf.keras.backend
mixed = keras.mixed_precision.experimental


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default(), tf.Session():
        yield
        casting.disable_v2_dtype_behavior()
        mixed.set_policy(None)


def test_names_of_policies():
    for name, compute, variable in (
        ("infer", None, None),
        ("infer_float32_vars", None, "float32"),
        ("float16", "float16", "float16"),
        ("int32_with_float32_vars", "int32", "float32"),
        ("mixed_bfloat16", "bfloat16", "float32"),
    ):
        policy = mixed.Policy(name)
        assert (policy.compute_dtype, policy.variable_dtype) == (compute, variable) and policy.loss_scale is None
    assert repr(mixed.Policy("float16", loss_scale=2)) == '<Policy "float16", loss_scale=FixedLossScale(2.0)>'
    assert isinstance(mixed.Policy("mixed_float16").loss_scale, tf.train.experimental.DynamicLossScale)
    assert mixed.Policy("mixed_float16", loss_scale=None).loss_scale is None and mixed.Policy("float32_with_float32_vars").name == "float32"
    for wrong in ("abc", "abc_with_float32_vars"):
        with pytest.raises(ValueError, match="Cannot convert value %s to a mixed precision Policy" % wrong):
            mixed.Policy(wrong)
    with pytest.raises(TypeError, match="'name' must be a string, not a DType. Instead, pass DType.name. Got: float16"):
        mixed.Policy(tf.float16)


def test_the_policy_of_all_layers():
    assert mixed.global_policy().name == "infer"
    with pytest.raises(ValueError, match="non-infer policy in TensorFlow 2"):
        mixed.set_policy("float16")
    casting.enable_v2_dtype_behavior()
    assert mixed.global_policy().name == "float32"
    with policies.policy_scope("mixed_float16"):
        layer = keras.layers.Dense(2)
        assert layer.dtype == "float32" and layer._compute_dtype == "float16"
    assert keras.layers.Dense(2)._compute_dtype == "float32"
    try:
        optimizer = tf.train.experimental.enable_mixed_precision_graph_rewrite(keras.optimizers.SGD(1.0))
        assert isinstance(optimizer, mixed.LossScaleOptimizer)
        with pytest.raises(ValueError, match="graph rewrite has already been enabled"):
            mixed.set_policy("infer")
    finally:
        tf.train.experimental.disable_mixed_precision_graph_rewrite()
    with policies.policy_scope("infer_float32_vars"), pytest.raises(ValueError, match="because a keras mixed precision Policy has been set"):
        tf.train.experimental.enable_mixed_precision_graph_rewrite(keras.optimizers.SGD(1.0))


def test_layers_compute_in_half_precision_with_wide_variables():
    class Twice(keras.layers.Layer):
        def build(self, shape):
            self.v = self.add_weight("v", (), initializer="ones", regularizer=lambda v: K.sum(v))
            self.own = self.add_weight("own", (), initializer="ones", experimental_autocast=False)

        def call(self, x):
            assert x.dtype == tf.float16 and tf.identity(self.v).dtype == tf.float16 and tf.identity(self.own).dtype == tf.float32
            return self.v * x + self.v

    layer = Twice(dtype=mixed.Policy("float16_with_float32_vars"))
    made = layer(tf.constant([1.0, 2.0]))
    assert made.dtype == tf.float16 and layer.v.dtype == tf.float32 and layer.dtype == "float32" and layer.losses[0].dtype == tf.float32
    assert isinstance(layer.v, policies.AutoCastVariable) and layer.v in layer.trainable_weights
    session = K.get_session()
    session.run(layer.v.assign(3.0))
    assert session.run(made).tolist() == [6, 9] and layer.get_weights() == [3, 1]
    gradient = tf.gradients(made, layer.v)[0]
    assert gradient.dtype == tf.float32 and session.run(gradient) == 5
    inferred = keras.layers.Dense(2, dtype=mixed.Policy("infer_with_float32_vars"))
    assert inferred(tf.zeros((1, 3), tf.float16)).dtype == tf.float16 and inferred.kernel.dtype == tf.float32
    assert inferred._dtype_policy.name == "float16_with_float32_vars"


def test_variables_that_are_read_in_another_type(tmp_path):
    x = policies.AutoCastVariable(tf.Variable([7.0, 8.0], use_resource=True, name="x"))
    session = tf.get_default_session()
    session.run(x.initializer)
    graph = tf.get_default_graph()
    with graph._enable_auto_casting_variables("float16"):
        assert x.dtype == tf.float16 and x.true_dtype == tf.float32 and repr(x) == "<AutoCastVariable 'x:0' shape=(2,) dtype=float16 true_dtype=float32>"
        for made in (x + 1, 1 + x, x * x, -x, x[0], x.value(), x.read_value(), x.sparse_read([0]), tf.identity(x)):
            assert made.dtype == tf.float16
        with graph._enable_auto_casting_variables(tf.float32):
            assert tf.identity(x).dtype == tf.float32
        small = np.finfo("float16").eps / 2
        session.run(x.assign([1 + small, 0]))  # in its own type
    assert session.run(x).tolist() == [1 + small, 0] and x.dtype == tf.float32
    checkpoint = tf.train.Checkpoint(x=x)
    path = checkpoint.save(str(tmp_path / "at"))
    session.run(x.assign([0.0, 0.0]))
    checkpoint.restore(path).assert_consumed().run_restore_ops()
    assert session.run(x).tolist() == [1 + small, 0]
    with pytest.raises(ValueError, match="variable must be a floating point variable but has type: int32"):
        policies.AutoCastVariable(tf.Variable(1, use_resource=True))
    with pytest.raises(ValueError, match="variable must be of type"):
        policies.AutoCastVariable(tf.constant(1.0))
    with pytest.raises(ValueError, match="variable must be of type"):
        policies.AutoCastDistributedVariable(tf.Variable(1.0, use_resource=True))
    with tf.distribute.MirroredStrategy(["cpu:0"]).scope():
        y = policies.AutoCastDistributedVariable(tf.Variable(1.0))
    with tf.get_default_graph()._enable_auto_casting_variables(tf.float16):
        assert y.dtype == tf.float16 and y.true_dtype == tf.float32


def test_an_optimizer_with_a_scaled_loss(tmp_path):
    v, factor = tf.Variable([1.0, 2.0], use_resource=True), tf.Variable(1.0, use_resource=True, trainable=False)
    scale = tf.train.experimental.DynamicLossScale(initial_loss_scale=2, increment_period=1, multiplier=4)
    optimizer = mixed.LossScaleOptimizer(keras.optimizers.SGD(1.0, momentum=1.0), scale)
    step = optimizer.minimize(lambda: v * factor, [v])
    session = tf.get_default_session()
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert session.run(v).tolist() == [0, 1] and session.run(scale()) == 8 and session.run(optimizer.iterations) == 1
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, v=v)
    path = checkpoint.save(str(tmp_path / "at"))
    session.run(factor.assign(float("nan")))
    session.run(step)
    assert session.run(v).tolist() == [0, 1] and session.run(scale()) == 2 and session.run(optimizer.iterations) == 1
    checkpoint.restore(path).assert_consumed().run_restore_ops()
    assert session.run(scale()) == 8 and session.run(optimizer.get_slot(v, "momentum")).tolist() == [-1, -1]
    keys = [name.split("/.ATTR")[0] for name, _ in tf.train.list_variables(path)]
    assert {"optimizer/base_optimizer/learning_rate", "optimizer/loss_scale/current_loss_scale", "optimizer/loss_scale/good_steps"} <= set(keys)
    assert session.run(optimizer.get_unscaled_gradients([tf.constant(3.0), tf.constant(-4.0, tf.float16)])) == [3 / 8, -0.5]
    assert session.run(optimizer.get_scaled_loss(lambda: tf.constant(2.0))()) == 16
    optimizer.lr = 0.5
    assert session.run(optimizer.learning_rate) == 0.5
    with pytest.raises(AttributeError, match="'LossScaleOptimizer' object has no attribute 'momentum'"):
        optimizer.momentum
    with pytest.raises(ValueError, match="does not support wrapping optimizers with a clipnorm"):
        mixed.LossScaleOptimizer(keras.optimizers.SGD(1.0, clipnorm=1.0), 2)


def test_models_scale_their_loss_as_their_policy_says():
    casting.enable_v2_dtype_behavior()
    mixed.set_policy(mixed.Policy("mixed_float16", loss_scale=8))
    model = keras.Sequential([keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", input_shape=(2,))])
    model.compile(keras.optimizers.SGD(0.25), "mse")
    assert isinstance(model.optimizer, mixed.LossScaleOptimizer) and model.output.dtype == tf.float16
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    model.fit(x, np.zeros((2, 1)), verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], [[0.75], [0.75]])


def test_losses_of_models_keep_their_type():
    casting.enable_v2_dtype_behavior()
    mixed.set_policy("float16")
    x = keras.Input((1,))
    made = keras.layers.Dense(1)(x)
    model = keras.Model(x, made)
    model.add_loss(tf.cast(made, tf.float32))
    assert made.dtype == tf.float16 and model.losses[0].dtype == tf.float32
    signature = keras.layers.Dense(2, dtype=mixed.Policy("float16_with_float32_vars")).compute_output_signature(tf.TensorSpec((2, 2), tf.float16))
    assert signature.dtype == tf.float16
