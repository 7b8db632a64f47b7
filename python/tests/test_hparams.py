# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.training's hyper-parameters and decays, and what tf.contrib.framework, nn and layers have beside."""

import numpy as np
import pytest

import millrace as tf

training, framework = tf.contrib.training, tf.contrib.framework
HParams = training.HParams


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def test_a_text_changes_values():
    h = HParams(rate=0.1, units=[1, 2], name="relu", on=True, path="/a=b")
    h.parse("rate=3, units=[4,5 6],on=false,name=,path=/c=d,")
    assert h.values() == {"rate": 3.0, "units": [4, 5, 6], "name": "", "on": False, "path": "/c=d"} and isinstance(h.rate, float)
    assert repr(HParams(b=1, a=[2.0])) == "HParams([('a', [2.0]), ('b', 1)])" and str(HParams(b=1, a=[2.0])) == "b=1,a=[2.0]"
    copy = HParams(rate=0.0, units=[0], name="x", on=True, path="")
    copy.parse(str(h).replace(" ", ""))
    assert copy.values() == h.values()


@pytest.mark.parametrize(
    "text, told",
    [
        ("rate=x", "Could not parse hparam 'rate'"),
        ("on=yep", "Could not parse hparam 'on'"),
        ("units=3", "Must pass a list"),
        ("rate=[1]", "Must not pass a list"),
        ("new=1", "Unknown hyperparameter"),
        ("rate=1,rate=2", "Multiple assignments to variable 'rate'"),
        ("rate", "Malformed"),
        ("units[0]=[1]", "list index"),
    ],
)
def test_wrong_texts_are_refused(text, told):
    with pytest.raises(ValueError, match=told):
        HParams(rate=0.1, units=[1, 2], on=True).parse(text)


def test_values_keep_their_types():
    h = HParams(n=1, x=2.0, s="a", on=True, none=None)
    h.set_hparam("x", 3)
    h.set_hparam("none", "text")
    assert h.x == 3.0 and isinstance(h.x, float) and h.none == "text"
    for name, value in (("n", 1.5), ("n", True), ("on", 1), ("s", 1), ("x", "1")):
        with pytest.raises(ValueError, match="Could not cast hparam '%s'" % name):
            h.set_hparam(name, value)
    assert h.get("n", 5) == 1 and h.get("new", 5) == 5 and h.get("new") is None
    with pytest.raises(ValueError, match="incompatible"):
        h.get("n", [5])
    h.del_hparam("n")
    assert "n" not in h and not hasattr(h, "n")
    with pytest.raises(ValueError, match="cannot be empty"):
        h.add_hparam("l", [])
    assert training.parse_values("a[1]=2,b=3", {"a": int, "b": int}) == {"a": {1: 2}, "b": 3}


def test_messages_keep_values():
    h = HParams(n=1, x=2.5, s="a", on=True, many=[1, 2], texts=["b", "c"])
    made = HParams.from_proto(type(h.to_proto()).FromString(h.to_proto().SerializeToString()))
    assert made.values() == h.values() and type(made.on) is bool
    h.parse_json('{"n": 4}')
    assert h.n == 4 and h.to_json(sort_keys=True).startswith('{"many": [1, 2], "n": 4')


def test_rates_that_start_again():
    steps = [0, 5, 10, 15, 30, 31]
    same = [training.sgdr_decay(1.0, tf.constant(s), 10, t_mul=1.0, m_mul=0.5) for s in steps]
    longer = [training.sgdr_decay(1.0, tf.constant(s), 10, t_mul=2.0, m_mul=0.5) for s in steps]
    with tf.Session() as session:
        half = (1 + np.cos(np.pi * 0.1)) / 2
        np.testing.assert_allclose(session.run(same), [1, 0.5, 0.5, 0.25, 0.125, 0.125 * half], atol=1e-6)
        eighth, late = (1 + np.cos(np.pi / 4)) / 4, (1 + np.cos(np.pi / 40)) / 8
        np.testing.assert_allclose(session.run(longer), [1, 0.5, 0.5, eighth, 0.25, late], atol=1e-4)


# ---- variables and shapes ----


def test_variables_are_found_by_whole_names():
    framework.model_variable("fooa", [5])
    with tf.variable_scope("outer"):
        inner = framework.variable("a", [5])
    outer = framework.variable("a", [5], collections=["mine", tf.GraphKeys.GLOBAL_VARIABLES])
    assert framework.get_variables_by_name("a") == [inner, outer] == [v for v in framework.get_variables_by_name("a") if v.op.name != "fooa"]
    assert framework.get_variables_by_name("a", "outer") == [inner]
    assert len(framework.get_variables_by_suffix("a")) == 3 and framework.get_variables_by_suffix("ooa")[0].op.name == "fooa"
    assert framework.get_unique_variable("a") is outer and framework.get_variable_full_name(inner) == "outer/a"
    with pytest.raises(ValueError, match="Couldn't find"):
        framework.get_unique_variable("none")
    with pytest.raises(TypeError, match="not a list"):
        framework.get_variables_to_restore(exclude="outer")
    step = framework.global_variable(0)
    assert step in tf.global_variables() and step not in tf.trainable_variables() and framework.get_local_variables() == []
    with pytest.raises(ValueError, match="cannot be empty"):
        framework.assign_from_checkpoint_fn("/none", [])
    chooser = framework.VariableDeviceChooser(num_tasks=2)
    assert [chooser(None) for _ in range(3)] == ["/job:ps/task:%d/device:CPU:0" % i for i in (0, 1, 0)]


def test_shapes_are_looked_at():
    unknown = tf.placeholder(tf.float32)
    checked = framework.with_shape([-1, 2], unknown)
    assert checked.shape.as_list() == [None, 2]
    scalar = framework.with_shape([], tf.ones([1]))
    with tf.Session() as session:
        assert session.run(checked, {unknown: np.ones([3, 2])}).shape == (3, 2) and session.run(scalar).shape == ()
        for wrong in ([3, 3], [2]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong shape"):
                session.run(checked, {unknown: np.ones(wrong)})
        assert session.run(framework.reduce_sum_n([tf.ones([2]), tf.ones([2, 2])])) == 6
    with pytest.raises(ValueError, match="Invalid shape"):
        framework.with_shape([3], tf.ones([2]))
    with pytest.raises(ValueError, match="Invalid dtype"):
        framework.with_shape([1.1], tf.ones([1]))
    predictions, labels = framework.remove_squeezable_dimensions(tf.ones([3, 1]), tf.ones([3]))
    assert predictions.shape.as_list() == labels.shape.as_list() == [3]
    with pytest.raises(ValueError, match="integer"):
        framework.assert_scalar_int(tf.constant(1.0))


# ---- layers ----


@pytest.mark.parametrize("close", [False, True])
def test_groups_of_channels_are_normalised(close):
    x = np.random.default_rng(1).normal(2, 3, [2, 4, 5, 6]).astype(np.float32)
    last = tf.contrib.layers.group_norm(tf.constant(x), groups=3, mean_close_to_zero=close)
    first = tf.contrib.layers.group_norm(tf.constant(x.transpose(0, 3, 1, 2)), 3, channels_axis=-3, reduction_axes=(-2, -1))
    unknown = tf.contrib.layers.group_norm(tf.placeholder(tf.float32, [None, 4, 5, 6]), 2, scope="other")
    assert unknown.shape.as_list() == [None, 4, 5, 6] and len(tf.model_variables()) == 6
    groups = x.reshape(2, 4, 5, 3, 2)
    wanted = (groups - groups.mean((1, 2, 4), keepdims=True)) / groups.std((1, 2, 4), keepdims=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(last), wanted.reshape(x.shape), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(session.run(first).transpose(0, 2, 3, 1), wanted.reshape(x.shape), rtol=1e-3, atol=1e-4)
    for arguments, told in (({"groups": 7}, "Invalid groups"), ({"groups": 4}, "commensurate"), ({"groups": 3, "reduction_axes": (-1,)}, "exclusive")):
        with pytest.raises(ValueError, match=told):
            tf.contrib.layers.group_norm(tf.constant(x), **arguments)


def test_alpha_dropout_keeps_moments():
    x = tf.zeros([5])
    assert tf.contrib.nn.alpha_dropout(x, 1) is x
    with pytest.raises(ValueError, match="keep_prob"):
        tf.contrib.nn.alpha_dropout(x, 1.1)
    normal = tf.constant(np.random.default_rng(3).normal(size=20000).astype(np.float32))
    with tf.Session() as session:
        made = session.run(tf.contrib.nn.alpha_dropout(normal, 0.7, seed=1))
    assert abs(made.mean()) < 0.05 and abs(made.std() - 1) < 0.05
