# SPDX-License-Identifier: Apache-2.0
"""Arguments that programs give to the functions they use most, where the rest of the table does not give them."""

from __future__ import annotations

import os
from typing import Any, Callable

import numpy as np

from table import A, B, I, IMAGE, KERNEL, P, V, case, conv, f32, sigmoid
from table_programs import folder
from table_state import W, after

# ---- names, and the places of the others ----

for _name, _value, _call in (
    ("equal", A == B, lambda tf, **k: tf.equal(A, B, **k)),
    ("square", A * A, lambda tf, **k: tf.square(A, **k)),
    ("log", np.log(P), lambda tf, **k: tf.log(P, **k)),
    ("multiply", A * B, lambda tf, **k: tf.multiply(A, B, **k)),
    ("subtract", A - B, lambda tf, **k: tf.subtract(A, B, **k)),
    ("sqrt", np.sqrt(P), lambda tf, **k: tf.sqrt(P, **k)),
    ("sigmoid", sigmoid(A), lambda tf, **k: tf.sigmoid(A, **k)),
    ("nn.sigmoid", sigmoid(A), lambda tf, **k: tf.nn.sigmoid(A, **k)),
    ("cast", I.astype(f32), lambda tf, **k: tf.cast(I, tf.float32, **k)),
    ("expand_dims", A[None], lambda tf, **k: tf.expand_dims(A, 0, **k)),
    ("stack", np.stack([A, B]), lambda tf, **k: tf.stack([tf.constant(A), B], **k)),
    ("one_hot", np.eye(3, dtype=f32)[[2, 0]], lambda tf, **k: tf.one_hot([2, 0], 3, **k)),
    ("clip_by_value", A.clip(-1, 1), lambda tf, **k: tf.clip_by_value(A, -1, 1, **k)),
    ("slice", A[:, 1:], lambda tf, **k: tf.slice(A, [0, 1], [2, 2], **k)),
    ("nn.embedding_lookup", A[[1, 0]], lambda tf, **k: tf.nn.embedding_lookup(A, [1, 0], **k)),
    ("zeros", np.zeros((2, 3), f32), lambda tf, **k: tf.zeros([2, 3], dtype=tf.float32, **k)),
    ("ones", np.ones((2, 3), f32), lambda tf, **k: tf.ones(shape=[2, 3], dtype=tf.float32, **k)),
):
    case(
        "%s's name" % _name, [_value, True], *[lambda tf, c=_call, n=n: (lambda x: [x, x.op.name.split("/")[0] == "named"])(c(tf, name=n)) for n in ("named",)]
    )

case("cast to", I.astype(f32), lambda tf: tf.cast(I, dtype=tf.float32), lambda tf: tf.cast(x=I, dtype="float32"), lambda tf: tf.cast(I, np.float32))
case(
    "reshape to",
    A.reshape(3, 2),
    lambda tf: tf.reshape(A, shape=[3, 2]),
    lambda tf: tf.reshape(A, shape=(3, -1)),
    lambda tf: tf.reshape(tensor=A, shape=tf.constant([3, 2]), name="r"),
    lambda tf: tf.reshape(A, [3, 2], "r"),
)
case(
    "clip_by_value by keywords",
    A.clip(-1, 1),
    lambda tf: tf.clip_by_value(A, clip_value_min=-1.0, clip_value_max=1.0),
    lambda tf: tf.clip_by_value(t=A, clip_value_min=-1.0, clip_value_max=1.0),
)
case("slice by keywords", A[:, 1:], lambda tf: tf.slice(A, begin=[0, 1], size=[2, 2]), lambda tf: tf.slice(A, begin=[0, 1], size=[-1, -1]))
case(
    "convert_to_tensor to a type",
    I,
    lambda tf: tf.convert_to_tensor(I.tolist(), tf.int32),
    lambda tf: tf.convert_to_tensor(I.tolist(), dtype="int32", name="c"),
)
case(
    "constant_initializer of a type",
    np.full((2,), 3, np.int32),
    lambda tf: tf.get_variable("v", [2], tf.int32, tf.constant_initializer(3, tf.int32)),
    lambda tf: tf.constant_initializer(3, dtype=tf.int32)([2]),
)
case(
    "truncated_normal_initializer's spread",
    True,
    *[
        lambda tf, m=m: (lambda v: tf.reduce_all(tf.abs(v - 5.0) <= 0.021))(tf.get_variable("v", [100], initializer=m(tf)))
        for m in (
            lambda tf: tf.truncated_normal_initializer(5.0, 0.01),
            lambda tf: tf.truncated_normal_initializer(mean=5.0, stddev=0.01, seed=3, dtype=tf.float32),
            lambda tf: tf.truncated_normal_initializer(5.0, stddev=0.01),
        )
    ],
)
case(
    "random_uniform's bounds",
    [True, (50,)],
    *[
        lambda tf, c=c: (lambda x: [tf.reduce_all(tf.logical_and(x >= 2, x < 5)), tuple(x.get_shape().as_list())])(c(tf))
        for c in (
            lambda tf: tf.random_uniform([50], 2, 5),
            lambda tf: tf.random_uniform([50], 2, 5, tf.int32),
            lambda tf: tf.random_uniform([50], 2, 5, tf.float32, 1),
            lambda tf: tf.random_uniform(shape=(50,), minval=2, maxval=5, dtype=tf.int64, seed=1, name="u"),
        )
    ],
)
case(
    "truncated_normal's spread",
    True,
    *[
        lambda tf, c=c: tf.reduce_all(tf.abs(c(tf) - 5.0) <= 0.021)
        for c in (
            lambda tf: tf.truncated_normal([100], 5.0, 0.01),
            lambda tf: tf.truncated_normal(shape=[100], mean=5.0, stddev=0.01, dtype=tf.float32, seed=2, name="t"),
            lambda tf: tf.truncated_normal([100], 5.0, 0.01, tf.float32),
        )
    ],
)
case(
    "nn.dropout with a shape of noise",
    [True, True],
    *[
        lambda tf, c=c: (lambda x: [tf.reduce_all(tf.logical_or(tf.equal(x, 0), tf.equal(x, 2))), tf.reduce_all(tf.equal(x, x[:, :1]))])(c(tf, tf.ones([8, 4])))
        for c in (lambda tf, x: tf.nn.dropout(x, 0.5, [8, 1]), lambda tf, x: tf.nn.dropout(x, keep_prob=0.5, noise_shape=[8, 1], seed=1, name="d"))
    ],
)
case("group of any number", True, *[lambda tf, n=n: tf.group(*[tf.no_op() for _ in range(n)], name="g").name == "g" for n in (0, 1, 2, 3, 4)])
case(
    "name_scope with values",
    ["s/Const:0", "d/Const:0"],
    *[
        lambda tf, w=w: w(tf)
        for w in (
            lambda tf: [_in(tf, tf.name_scope("s", values=[])), _in(tf, tf.name_scope(None, "d"))],
            lambda tf: [_in(tf, tf.name_scope("s", "x", [])), _in(tf, tf.name_scope(name=None, default_name="d", values=[]))],
        )
    ],
)


def _in(tf: Any, scope: Any) -> str:
    with scope:
        return str(tf.constant(1).name)


# ---- sessions, variables, scopes ----


def _session(tf: Any, make: Callable[[], Any]) -> Any:
    x = tf.constant(V)
    with make() as session:
        return session.run(x)


case(
    "Session's arguments",
    V,
    lambda tf: _session(tf, lambda: tf.Session("")),
    lambda tf: _session(tf, lambda: tf.Session(target="")),
    lambda tf: _session(tf, lambda: tf.Session(graph=tf.get_default_graph())),
    lambda tf: _session(tf, lambda: tf.Session("", tf.get_default_graph(), tf.ConfigProto())),
    lambda tf: _session(tf, lambda: tf.Session(target="", graph=None, config=tf.ConfigProto(operation_timeout_in_ms=10000))),
)
case(
    "Variable's collections",
    [A, ["c"], False],
    *[
        lambda tf, m=m: _where(tf, m(tf))
        for m in (
            lambda tf: tf.Variable(A, collections=["c"], validate_shape=True, trainable=False),
            lambda tf: tf.Variable(A, False, ["c"]),
            lambda tf: tf.Variable(A, trainable=False, collections=["c"], name="v"),
        )
    ],
)


def _where(tf: Any, v: Any) -> Any:
    with tf.Session() as session:
        session.run(v.initializer)
        return [session.run(v), [c for c in ("c", "variables") if v in tf.get_collection(c)], v in tf.trainable_variables()]


case(
    "get_variable's collections",
    [["c"], True],
    lambda tf: _kept(tf, tf.get_variable("v", [2], collections=["c"], regularizer=tf.nn.l2_loss)),
    lambda tf: _kept(tf, tf.get_variable("v", [2], tf.float32, None, tf.nn.l2_loss, True, ["c"])),
    lambda tf: _kept(tf, tf.get_variable(name="v", shape=[2], collections=["c"], regularizer=tf.nn.l2_loss, caching_device=None, use_resource=False)),
)


def _kept(tf: Any, v: Any) -> Any:
    return [[c for c in ("c", "variables") if v in tf.get_collection(c)], len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 1]


def _got(tf: Any, *args: Any, **kwargs: Any) -> Any:
    with tf.variable_scope(*args, **kwargs):
        v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    return [v.name, v.dtype.base_dtype.name]


def _getter(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    return getter(name.replace("v", "w"), *args, **kwargs)


case(
    "variable_scope's arguments",
    ["s/v:0", "float64"],
    lambda tf: _got(tf, "s", dtype=tf.float64),
    lambda tf: _got(tf, None, "s", [], dtype=tf.float64),
    lambda tf: _got(tf, None, "s", dtype=tf.float64),
    lambda tf: _got(tf, name_or_scope="s", values=None, dtype=tf.float64),
    lambda tf: _got(tf, None, default_name="s", values=[tf.constant(1)], dtype=tf.float64),
)
case("variable_scope's getter", ["s/w:0", "float32"], lambda tf: _got(tf, "s", custom_getter=_getter))
case(
    "variable_scope's partitioner",
    [["s/v/part_0:0", "s/v/part_1:0"], [4]],
    lambda tf: _parts(tf, tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2))),
    lambda tf: _parts(tf, tf.variable_scope("s", initializer=None, partitioner=tf.fixed_size_partitioner(num_shards=2, axis=0))),
)


def _parts(tf: Any, scope: Any) -> Any:
    with scope:
        v = tf.get_variable("v", [4])
    return [[p.name for p in tf.global_variables()], tf.convert_to_tensor(v).get_shape().as_list()]


# ---- training ----


def _step(tf: Any, optimizer: Any, **kwargs: Any) -> Any:
    v = tf.Variable(V)
    return after(tf, optimizer.minimize(tf.reduce_sum(tf.square(v)), **kwargs), v)


case(
    "train.GradientDescentOptimizer's arguments",
    V * f32(0.8),
    lambda tf: _step(tf, tf.train.GradientDescentOptimizer(0.1)),
    lambda tf: _step(tf, tf.train.GradientDescentOptimizer(learning_rate=0.1, use_locking=True)),
    lambda tf: _step(tf, tf.train.GradientDescentOptimizer(0.1, False, "G"), gate_gradients=tf.train.Optimizer.GATE_NONE),
    lambda tf: _step(
        tf, tf.train.GradientDescentOptimizer(learning_rate=tf.constant(0.1), name="G"), aggregation_method=None, colocate_gradients_with_ops=True
    ),
)
case(
    "train.AdamOptimizer's places",
    V - f32(0.1) * np.sign(V),
    lambda tf: _step(tf, tf.train.AdamOptimizer(0.1)),
    lambda tf: _step(tf, tf.train.AdamOptimizer(0.1, 0.5)),
    lambda tf: _step(tf, tf.train.AdamOptimizer(0.1, 0.5, 0.9)),
    lambda tf: _step(tf, tf.train.AdamOptimizer(0.1, beta1=0.5, use_locking=False, name="A")),
)
_RMS = V - f32(0.1) * 2 * V / np.sqrt(f32(0.9) + f32(0.1) * 4 * V * V + f32(1e-10))
case(
    "train.RMSPropOptimizer's places",
    _RMS,
    lambda tf: _step(tf, tf.train.RMSPropOptimizer(0.1)),
    lambda tf: _step(tf, tf.train.RMSPropOptimizer(0.1, 0.9)),
    lambda tf: _step(tf, tf.train.RMSPropOptimizer(0.1, 0.9, 0.0, 1e-10)),
    lambda tf: _step(tf, tf.train.RMSPropOptimizer(learning_rate=0.1, decay=0.9, momentum=0.0, epsilon=1e-10, use_locking=False, name="R")),
)
case(
    "gradients' arguments",
    2 * V,
    *[
        lambda tf, c=c: (lambda x: c(tf, tf.reduce_sum(x * x), x)[0])(tf.constant(V))
        for c in (
            lambda tf, y, x: tf.gradients(y, x, colocate_gradients_with_ops=True),
            lambda tf, y, x: tf.gradients(ys=[y], xs=[x], gate_gradients=True, name="g"),
            lambda tf, y, x: tf.gradients(y, [x], None, "g"),
            lambda tf, y, x: tf.gradients(y, x, grad_ys=tf.constant(1.0), aggregation_method=tf.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N),
        )
    ],
)
case(
    "train.exponential_decay by keywords",
    f32(0.05),
    lambda tf: tf.train.exponential_decay(0.1, 10, decay_steps=10, decay_rate=0.5),
    lambda tf: tf.train.exponential_decay(learning_rate=0.1, global_step=10, decay_steps=10, decay_rate=0.5),
    lambda tf: tf.train.exponential_decay(0.1, tf.Variable(10, trainable=False), 10, 0.5, True),
)
case(
    "train.ExponentialMovingAverage with a count",
    A * f32(0.1),
    *[
        lambda tf, m=m: _counted(tf, m(tf))
        for m in (
            lambda tf: tf.train.ExponentialMovingAverage(0.99, 0),
            lambda tf: tf.train.ExponentialMovingAverage(decay=0.99, num_updates=tf.constant(0)),
            lambda tf: tf.train.ExponentialMovingAverage(0.99, num_updates=0, name="E"),
        )
    ],
)


def _counted(tf: Any, average: Any) -> Any:
    """The decay is the smaller of 0.99 and (1 + 0) / (10 + 0). The average starts at A; the variable is zero by then."""
    v = tf.Variable(A)
    update = average.apply([v])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(v.assign(np.zeros_like(A)))
        session.run(update)
        return session.run(average.average(v))


def _saved(tf: Any, make: Callable[[Any], Any], step: Any = None) -> Any:
    v = tf.Variable(A, name="v")
    saver, where = make(tf), folder()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, os.path.join(where, "model"), step)
        session.run(v.assign(B))
        saver.restore(session, tf.train.get_checkpoint_state(where, "checkpoint").model_checkpoint_path)
        return [os.path.basename(path), session.run(v)]


case("train.Saver's names", ["model-00000007", A], lambda tf: _saved(tf, lambda tf: tf.train.Saver(pad_step_number=True), 7))
case(
    "train.Saver's paths",
    ["model-7", A],
    lambda tf: _saved(tf, lambda tf: tf.train.Saver(save_relative_paths=True), 7),
    lambda tf: _saved(tf, lambda tf: tf.train.Saver(saver_def=tf.train.Saver(name="first").as_saver_def()), 7),
)

# ---- layers and loops ----

case(
    "layers.dense by keywords",
    np.maximum(A @ W, 0),
    *[
        lambda tf, w=w: w(tf, tf.constant(A), tf.constant_initializer(W))
        for w in (
            lambda tf, x, k: tf.layers.dense(x, units=2, activation=tf.nn.relu, kernel_initializer=k, trainable=False, name="d"),
            lambda tf, x, k: tf.layers.dense(x, 2, tf.nn.relu, kernel_initializer=k, name="d", reuse=None),
            lambda tf, x, k: tf.layers.dense(x, 2, tf.nn.relu, True, k, tf.zeros_initializer()),
        )
    ],
    wheel=False,
)
case(
    "layers.conv2d by places",
    conv(IMAGE, KERNEL),
    *[
        lambda tf, w=w: w(tf, tf.constant(IMAGE), tf.constant_initializer(KERNEL))
        for w in (
            lambda tf, x, k: tf.layers.conv2d(x, 3, 2, 1, "valid", kernel_initializer=k),
            lambda tf, x, k: tf.layers.conv2d(x, 3, (2, 2), (1, 1), "VALID", "channels_last", kernel_initializer=k, use_bias=False),
            lambda tf, x, k: tf.layers.conv2d(
                inputs=x, filters=3, kernel_size=[2, 2], strides=1, padding="valid", kernel_initializer=k, use_bias=True, name="c"
            ),
        )
    ],
    wheel=False,
)


def _rnn(tf: Any, *args: Any, time_major: bool = False, **kwargs: Any) -> Any:
    cells = tf.nn.rnn_cell

    class Sum(cells.RNNCell):  # type: ignore[name-defined, misc]
        state_size = output_size = property(lambda self: 3)

        def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
            return state + inputs, state + inputs

    x = np.stack([A, B])
    out, state = tf.nn.dynamic_rnn(Sum(), tf.constant(np.swapaxes(x, 0, 1) if time_major else x), *args, time_major=time_major, **kwargs)
    return [tf.transpose(out, [1, 0, 2]) if time_major else out, state]


_SUMS = [np.stack([np.cumsum(A, 0), np.cumsum(B, 0)]), np.stack([A.sum(0), B.sum(0)])]
case(
    "nn.dynamic_rnn's arguments",
    _SUMS,
    lambda tf: _rnn(tf, dtype=tf.float32),
    lambda tf: _rnn(tf, [2, 2], dtype=tf.float32),
    lambda tf: _rnn(tf, None, tf.zeros([2, 3])),
    lambda tf: _rnn(tf, [2, 2], None, tf.float32),
    lambda tf: _rnn(tf, dtype=tf.float32, time_major=True),
    lambda tf: _rnn(tf, sequence_length=[2, 2], initial_state=tf.zeros([2, 3]), parallel_iterations=8, swap_memory=True, scope="r"),
    wheel=False,
)
