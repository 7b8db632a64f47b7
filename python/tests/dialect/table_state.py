# SPDX-License-Identifier: Apache-2.0
"""The table's second half: variables, scopes, initialisers, control, training, layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from table import A, B, ONE_HOT, SOFT, V, case, f32


def after(tf: Any, op: Any, variable: Any) -> Any:
    """A variable's value once an operation has run."""
    with tf.control_dependencies([op]):
        return variable.read_value()


def scoped(tf: Any, name: str, make: Any) -> Any:
    with tf.variable_scope(name):
        return make()


# ---- variables and their initialisers ----

case(
    "Variable",
    A,
    lambda tf: tf.Variable(A),
    lambda tf: tf.Variable(initial_value=A, trainable=False, name="v"),
    lambda tf: tf.Variable(A, True, None, True, None, "v"),
    lambda tf: tf.Variable(tf.constant(A), dtype=tf.float32),
    lambda tf: tf.Variable(lambda: tf.constant(A), name="v"),
    lambda tf: tf.Variable(A.tolist(), name="v"),
    lambda tf: tf.Variable(A).value(),
    lambda tf: tf.Variable(A).read_value(),
    lambda tf: tf.Variable(A).initialized_value(),
    lambda tf: tf.Variable(A, name="v") + 0,
)
case("Variable's names", ["v:0", "v_1:0", "v", [2, 3]], *[lambda tf: _names(tf, tf.Variable(A, name="v"), tf.Variable(A, name="v"))])
case(
    "get_variable",
    A,
    lambda tf: tf.get_variable("v", initializer=tf.constant(A)),
    lambda tf: tf.get_variable(name="v", shape=[2, 3], initializer=tf.constant_initializer(A)),
    lambda tf: tf.get_variable("v", [2, 3], tf.float32, tf.constant_initializer(A)),
    lambda tf: tf.get_variable("v", (2, 3), dtype=tf.float32, initializer=lambda shape, dtype, partition_info=None: tf.constant(A)),
    lambda tf: tf.get_variable("v", initializer=A),
    lambda tf: tf.get_variable("v", shape=tf.TensorShape([2, 3]), initializer=tf.constant_initializer(A.tolist()), trainable=False),
)
case(
    "zeros_initializer",
    np.zeros((2, 3), f32),
    lambda tf: tf.get_variable("v", [2, 3], initializer=tf.zeros_initializer()),
    lambda tf: tf.get_variable("v", [2, 3], initializer=tf.zeros_initializer),
    lambda tf: tf.zeros_initializer()([2, 3]),
    lambda tf: tf.get_variable("v", [2, 3], initializer=tf.constant_initializer(0.0)),
    lambda tf: tf.get_variable("v", [2, 3], initializer=tf.constant_initializer()),
    lambda tf: tf.get_variable("v", [2, 3], initializer=tf.initializers.zeros()),
    old=[lambda tf: tf.zeros_initializer([2, 3]), lambda tf: tf.zeros_initializer([2, 3], tf.float32)],
)
case(
    "ones_initializer",
    np.ones((2, 3), f32),
    lambda tf: tf.get_variable("v", [2, 3], initializer=tf.ones_initializer()),
    lambda tf: tf.get_variable("v", [2, 3], initializer=tf.ones_initializer),
    lambda tf: tf.ones_initializer(dtype=tf.float32)([2, 3]),
)
case(
    "constant_initializer",
    np.full((2, 3), 0.1, f32),
    lambda tf: tf.get_variable("v", [2, 3], initializer=tf.constant_initializer(0.1)),
    lambda tf: tf.constant_initializer(value=0.1, dtype=tf.float32)([2, 3]),
    lambda tf: tf.constant_initializer(0.1)(shape=[2, 3], dtype=tf.float32),
)
case(
    "assign",
    B,
    lambda tf: tf.assign(tf.Variable(A), B),
    lambda tf: tf.assign(ref=tf.Variable(A), value=B, validate_shape=True, use_locking=False, name="a"),
    lambda tf: tf.Variable(A).assign(B),
    lambda tf: after(tf, *_pair(tf, lambda v: tf.assign(v, B))),
    lambda tf: tf.Variable(A).assign(tf.constant(B), use_locking=True),
)
case(
    "assign_add",
    A + B,
    lambda tf: tf.assign_add(tf.Variable(A), B),
    lambda tf: tf.Variable(A).assign_add(B),
    lambda tf: tf.assign_add(ref=tf.Variable(A), value=B, name="a"),
)
case("assign_sub", A - B, lambda tf: tf.assign_sub(tf.Variable(A), B), lambda tf: tf.Variable(A).assign_sub(B))
case(
    "scatter_update",
    np.stack([B[0], A[1]]),
    lambda tf: tf.scatter_update(tf.Variable(A), [0], B[:1]),
    lambda tf: tf.scatter_update(ref=tf.Variable(A), indices=[0], updates=B[:1]),
)
case(
    "trainable_variables",
    ["a:0", "s/b:0"],
    lambda tf: _variables(tf) and [v.name for v in tf.trainable_variables()],
    lambda tf: _variables(tf) and [v.name for v in tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)],
    lambda tf: _variables(tf) and [v.name for v in tf.get_collection("trainable_variables")],
)
case(
    "trainable_variables of a scope",
    ["s/b:0"],
    lambda tf: _variables(tf) and [v.name for v in tf.trainable_variables("s")],
    lambda tf: _variables(tf) and [v.name for v in tf.trainable_variables(scope="s/")],
    lambda tf: _variables(tf) and [v.name for v in tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="s")],
    lambda tf: _variables(tf) and [v.name for v in tf.get_collection(key="trainable_variables", scope="s/")],
)
case(
    "global_variables",
    ["a:0", "s/b:0", "c:0"],
    lambda tf: _variables(tf) and [v.name for v in tf.global_variables()],
    lambda tf: _variables(tf) and [v.name for v in tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)],
    lambda tf: _variables(tf) and [v.name for v in tf.all_variables()],
    old=[lambda tf: _variables(tf) and [v.name for v in tf.get_collection(tf.GraphKeys.VARIABLES)]],
)
case(
    "add_to_collection",
    [1, 2],
    lambda tf: (tf.add_to_collection("k", 1), tf.add_to_collection(name="k", value=2), tf.get_collection("k"))[2],
    lambda tf: (tf.get_collection_ref("k").extend([1, 2]), tf.get_default_graph().get_collection("k"))[1],
)


def _names(tf: Any, first: Any, second: Any) -> Any:
    return [first.name, second.name, first.op.name, first.get_shape().as_list()]


def _pair(tf: Any, change: Any) -> Any:
    variable = tf.Variable(A)
    return change(variable), variable


def _variables(tf: Any) -> bool:
    tf.Variable(A, name="a")
    scoped(tf, "s", lambda: tf.get_variable("b", [2]))
    tf.Variable(A, name="c", trainable=False)
    return True


def _initial(tf: Any, way: Any) -> Any:
    """Mean and spread, to one digit, of a big variable."""
    v = tf.get_variable("v", [100, 100], initializer=way(tf))
    return [tf.round(tf.reduce_mean(v) * 10), tf.round(tf.sqrt(tf.reduce_mean(tf.square(v - tf.reduce_mean(v)))) * 10)]


def _drawn(tf: Any, x: Any) -> Any:
    """Mean and spread, to one digit, of a big random tensor."""
    mean, spread = tf.nn.moments(x, [0, 1])
    return [tf.round(mean * 10), tf.round(tf.sqrt(spread) * 10), x.get_shape().as_list()]


case(
    "random_normal_initializer",
    [f32(0), f32(5)],
    *[
        lambda tf, w=w: _initial(tf, w)
        for w in (
            lambda tf: tf.random_normal_initializer(stddev=0.5),
            lambda tf: tf.random_normal_initializer(0, 0.5),
            lambda tf: tf.random_normal_initializer(mean=0.0, stddev=0.5, seed=1, dtype=tf.float32),
        )
    ],
)
case(
    "truncated_normal_initializer",
    [f32(0), f32(9)],
    *[
        lambda tf, w=w: _initial(tf, w)
        for w in (
            lambda tf: tf.truncated_normal_initializer(stddev=1),
            lambda tf: tf.truncated_normal_initializer(0.0, 1.0, 3),
            lambda tf: tf.truncated_normal_initializer(mean=0.0, stddev=1.0, dtype=tf.float32),
        )
    ],
)
case(
    "random_uniform_initializer",
    [f32(0), f32(6)],
    *[
        lambda tf, w=w: _initial(tf, w)
        for w in (
            lambda tf: tf.random_uniform_initializer(-1, 1),
            lambda tf: tf.random_uniform_initializer(minval=-1.0, maxval=1.0, seed=2),
            lambda tf: tf.random_uniform_initializer(-1.0, 1.0, None, tf.float32),
        )
    ],
)
case(
    "random_normal",
    [f32(10), f32(5), [100, 100]],
    lambda tf: _drawn(tf, tf.random_normal([100, 100], 1, 0.5)),
    lambda tf: _drawn(tf, tf.random_normal(shape=(100, 100), mean=1.0, stddev=0.5, dtype=tf.float32, seed=4, name="r")),
    lambda tf: _drawn(tf, tf.random_normal(tf.constant([100, 100]), 1.0, 0.5)),
    lambda tf: _drawn(tf, tf.random_normal([100, 100], stddev=0.5) + 1),
)
case(
    "truncated_normal",
    [f32(0), f32(9), [100, 100]],
    lambda tf: _drawn(tf, tf.truncated_normal([100, 100])),
    lambda tf: _drawn(tf, tf.truncated_normal(shape=[100, 100], mean=0.0, stddev=1.0, dtype=tf.float32, seed=1)),
)
case(
    "random_uniform",
    [f32(0), f32(6), [100, 100]],
    lambda tf: _drawn(tf, tf.random_uniform([100, 100], -1, 1)),
    lambda tf: _drawn(tf, tf.random_uniform(shape=[100, 100], minval=-1.0, maxval=1.0, dtype=tf.float32, seed=9)),
    lambda tf: _drawn(tf, tf.random_uniform((100, 100), -1.0, 1.0)),
)
case(
    "random_uniform of integers",
    [True, True],
    *[
        lambda tf, w=w: _within(tf, w(tf))
        for w in (
            lambda tf: tf.random_uniform([50], 0, 3, tf.int32),
            lambda tf: tf.random_uniform([50], minval=0, maxval=3, dtype=tf.int32),
            lambda tf: tf.random_uniform([50], maxval=3, dtype=tf.int32),
        )
    ],
)
case(
    "random_shuffle",
    np.arange(5, dtype=np.int32),
    lambda tf: tf.nn.top_k(-tf.random_shuffle(tf.range(5)), 5).values * -1 + tf.cast(0, tf.int32),
    lambda tf: -tf.nn.top_k(-tf.random_shuffle(value=tf.range(5), seed=1, name="s"), 5)[0],
)
case("set_random_seed", True, *[lambda tf, w=w: _seeded(tf, w) for w in (lambda tf: tf.set_random_seed(5), lambda tf: tf.set_random_seed(seed=5))])


def _within(tf: Any, x: Any) -> Any:
    return [tf.reduce_all(x >= 0), tf.reduce_all(x < 3)]


def _seeded(tf: Any, seed: Any) -> bool:
    draws = []
    for _ in range(2):
        with tf.Graph().as_default(), tf.Session() as session:
            seed(tf)
            draws.append(session.run(tf.random_normal([4])))
    return bool(np.array_equal(*draws))


# ---- scopes and control ----

case(
    "variable_scope",
    ["s/v:0", "s/t/v:0", "s/x:0"],
    *[
        lambda tf, w=w: _scopes(tf, w)
        for w in (
            lambda tf, n: tf.variable_scope(n),
            lambda tf, n: tf.variable_scope(name_or_scope=n),
            lambda tf, n: tf.variable_scope(n, reuse=None),
            lambda tf, n: tf.variable_scope(n, None, [tf.constant(1)], tf.ones_initializer()),
            lambda tf, n: tf.variable_scope(n, default_name="d"),
            lambda tf, n: tf.variable_scope(n, values=[tf.constant(1)], reuse=tf.AUTO_REUSE),
            lambda tf, n: tf.variable_scope(n, reuse=False),
        )
    ],
)
case(
    "variable_scope reused",
    True,
    lambda tf: _reuse(tf, lambda: tf.variable_scope("s", reuse=True)),
    lambda tf: _reuse(tf, lambda: tf.variable_scope("s", reuse=tf.AUTO_REUSE)),
    lambda tf: _reuse(tf, lambda: tf.variable_scope("s"), True),
)
case(
    "variable_scope by default name",
    ["d/v:0", "d_1/v:0"],
    lambda tf: [_default(tf, tf.variable_scope(None, "d")), _default(tf, tf.variable_scope(None, default_name="d"))],
)
case(
    "name_scope",
    ["n/c:0", "n_1/c:0"],
    lambda tf: [_named(tf, tf.name_scope("n")), _named(tf, tf.name_scope(name="n"))],
    lambda tf: [_named(tf, tf.name_scope("n", "d", [])), _named(tf, tf.name_scope(None, "n", []))],
    old=[lambda tf: [_named(tf, tf.op_scope([], "n")), _named(tf, tf.op_scope([], None, "n"))]],
)
case(
    "device",
    ["/device:CPU:0", "/job:localhost/device:CPU:0"],
    lambda tf: [_on(tf, tf.device("/cpu:0")), _on(tf, tf.device("/job:localhost/device:cpu:0"))],
    lambda tf: [_on(tf, tf.device(lambda op: "/device:CPU:0")), _on(tf, tf.device("/job:localhost/cpu:0"))],
)
case(
    "control_dependencies",
    f32(3),
    lambda tf: _controlled(tf, tf.control_dependencies),
    lambda tf: _controlled(tf, tf.get_default_graph().control_dependencies),
    lambda tf: _controlled(tf, lambda ops: tf.control_dependencies(control_inputs=ops)),
)
case(
    "group",
    B,
    *[
        lambda tf, w=w: after(tf, *_pair(tf, lambda v: w(tf, v)))
        for w in (
            lambda tf, v: tf.group(v.assign(B)),
            lambda tf, v: tf.group(v.assign(B), tf.no_op(), name="g"),
            lambda tf, v: tf.group(tf.assign(v, B).op, tf.no_op(name="n")),
            lambda tf, v: tf.group([v.assign(B), tf.no_op()]),
            lambda tf, v: tf.tuple([v.assign(B)])[0].op,
        )
    ],
)
case(
    "cond",
    A + 1,
    *[
        lambda tf, w=w: w(tf, tf.constant(A))
        for w in (
            lambda tf, x: tf.cond(tf.constant(True), lambda: x + 1, lambda: x - 1),
            lambda tf, x: tf.cond(pred=tf.reduce_sum(x) < 100, true_fn=lambda: x + 1, false_fn=lambda: x - 1),
            lambda tf, x: tf.cond(tf.less(1, 2), fn1=lambda: x + 1, fn2=lambda: x - 1),
            lambda tf, x: tf.cond(tf.constant(False), lambda: x - 1, lambda: x + 1, name="c"),
            lambda tf, x: tf.cond(tf.constant(True), true_fn=lambda: [x + 1], false_fn=lambda: [x - 1]),
        )
    ],
)
case(
    "while_loop",
    [np.int32(3), f32(8)],
    *[
        lambda tf, w=w: w(tf, [tf.constant(0), tf.constant(1.0)])
        for w in (
            lambda tf, v: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), v),
            lambda tf, v: tf.while_loop(cond=lambda i, x: tf.less(i, 3), body=lambda i, x: [i + 1, x * 2], loop_vars=v, parallel_iterations=1, name="w"),
            lambda tf, v: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), tuple(v), back_prop=False, swap_memory=False),
        )
    ],
)
case(
    "map_fn",
    A**2,
    lambda tf: tf.map_fn(lambda row: row * row, A),
    lambda tf: tf.map_fn(fn=lambda row: row * row, elems=tf.constant(A), dtype=tf.float32, parallel_iterations=2),
)
case("scan", np.cumsum(A, 0), lambda tf: tf.scan(lambda a, x: a + x, A), lambda tf: tf.scan(fn=lambda a, x: a + x, elems=A, initializer=np.zeros(3, f32)))
case(
    "raw_rnn",
    [np.array([[[1, 1]], [[2, 2]], [[0, 3]]], f32).transpose(0, 2, 1), f32([[3], [6]]), np.int32(7)],
    *[
        lambda tf, w=w: _raw_rnn(tf, w)
        for w in (
            lambda tf, cell, fn: tf.nn.raw_rnn(cell, fn),
            lambda tf, cell, fn: tf.nn.raw_rnn(cell=cell, loop_fn=fn, parallel_iterations=1, swap_memory=True, scope="r"),
        )
    ],
)
case("Graph", True, lambda tf: _in_graph(tf, tf.Graph()), lambda tf: tf.constant(1).graph is tf.get_default_graph())
case(
    "Session.run",
    [A, [B]],
    *[
        lambda tf, w=w: _run(tf, w)
        for w in (
            lambda s, x, y: s.run([x, [y]], {x: A}),
            lambda s, x, y: s.run(fetches=[x, [y]], feed_dict={x: A, y: B}),
            lambda s, x, y: [s.run(x, feed_dict={"x:0": A}), [s.run("y:0")]],
            lambda s, x, y: [x.eval({x: A}, s), [y.eval(session=s)]],
            lambda s, x, y: [s.run({"a": x}, {x: A.tolist()})["a"], s.run((y,))[0:1][0:1]],
            lambda s, x, y: [s.run([x], feed_dict={(x, y): (A, B)})[0], [s.run(y)]],
        )
    ],
)


class _Adder:
    """output = what it was given, state = the sum of all."""

    state_size = output_size = 1

    def __init__(self, tf: Any) -> None:
        self.zero_state = lambda batch_size, dtype: tf.zeros([batch_size, 1], dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return inputs + 0.0, state + inputs


def _raw_rnn(tf: Any, call: Any) -> Any:
    cell = _Adder(tf)

    def loop_fn(time: Any, output: Any, state: Any, loop_state: Any) -> Any:
        after = (cell.zero_state(2, tf.float32), tf.constant(4)) if output is None else (state, loop_state + 1)
        return time >= tf.constant([2, 3]), tf.fill([2, 1], tf.cast(time + 1, tf.float32)), after[0], output, after[1]

    emitted, state, count = call(tf, cell, loop_fn)
    return [emitted.stack(), state, count]


def _scopes(tf: Any, scope: Any) -> Any:
    with scope(tf, "s"):
        first = tf.get_variable("v", [1])
        with scope(tf, "t"):
            second = tf.get_variable("v", [1])
        return [first.name, second.name, tf.Variable(0.0, name="x").name]


def _reuse(tf: Any, scope: Any, call: bool = False) -> bool:
    first = scoped(tf, "s", lambda: tf.get_variable("v", [1]))
    with scope() as s:
        if call:
            s.reuse_variables()
        return tf.get_variable("v", [1]) is first


def _default(tf: Any, scope: Any) -> str:
    with scope:
        return tf.get_variable("v", [1]).name  # type: ignore[no-any-return]


def _named(tf: Any, scope: Any) -> str:
    with scope:
        return tf.constant(1, name="c").name  # type: ignore[no-any-return]


def _on(tf: Any, device: Any) -> str:
    with device:
        return tf.constant(1).op.device  # type: ignore[no-any-return]


def _controlled(tf: Any, dependencies: Any) -> Any:
    v = tf.Variable(1.0)
    add = v.assign_add(2.0)
    with dependencies([add]):
        return tf.identity(v.read_value())


def _in_graph(tf: Any, graph: Any) -> bool:
    with graph.as_default():
        return tf.constant(1).graph is graph  # type: ignore[no-any-return]


def _run(tf: Any, run: Any) -> Any:
    x, y = tf.placeholder(tf.float32, [None, 3], name="x"), tf.constant(B, name="y")
    with tf.Session() as session:
        return run(session, x, y)


# ---- gradients and training ----

case(
    "gradients",
    [2 * A],
    *[
        lambda tf, w=w: w(tf, tf.constant(A))
        for w in (
            lambda tf, x: tf.gradients(tf.square(x), x),
            lambda tf, x: tf.gradients([tf.square(x)], [x]),
            lambda tf, x: tf.gradients(ys=x * x, xs=[x], name="g"),
            lambda tf, x: tf.gradients(x * x, x, tf.ones_like(x)),
            lambda tf, x: tf.gradients(x * x, x, grad_ys=[tf.ones_like(x)]),
            lambda tf, x: tf.gradients(tf.reduce_sum(x * x), [x], aggregation_method=tf.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N),
        )
    ],
)
case("gradients of the unconnected", [None], lambda tf: tf.gradients(tf.constant(1.0), tf.constant(2.0)))
case("hessians", np.diag([2, 2, 2]).astype(f32), lambda tf: _hessian(tf))
STEP = {
    "GradientDescentOptimizer": V - f32(0.2) * V,
    "MomentumOptimizer": V - f32(0.2) * V,
    "AdamOptimizer": V - f32(0.1) * np.sign(V),
    "AdagradOptimizer": V - f32(0.2) * V / np.sqrt(f32(0.1) + 4 * V * V),
    "RMSPropOptimizer": V - f32(0.2) * V / np.sqrt(f32(0.9) + f32(0.4) * V * V + f32(1e-10)),
}
SETTINGS = {"MomentumOptimizer": {"momentum": 0.9}}
for _name, _value in STEP.items():
    _more = SETTINGS.get(_name, {})
    case(
        "train." + _name,
        _value,
        *[
            lambda tf, n=_name, m=_more, w=w: w(tf, getattr(tf.train, n), m)
            for w in (
                lambda tf, o, m: _trained(tf, o(0.1, *m.values())),
                lambda tf, o, m: _trained(tf, o(learning_rate=0.1, **m)),
                lambda tf, o, m: _trained(tf, o(tf.constant(0.1), **m, name="o")),
                lambda tf, o, m: _trained(tf, o(0.1, use_locking=True, **m)),
                lambda tf, o, m: _trained(tf, o(0.1, **m), "global_step"),
                lambda tf, o, m: _trained(tf, o(0.1, **m), "var_list"),
                lambda tf, o, m: _trained(tf, o(0.1, **m), "apply"),
                lambda tf, o, m: _trained(tf, o(tf.train.exponential_decay(0.1, tf.constant(0), 10, 0.5), **m)),
            )
        ],
    )
case(
    "train.AdamOptimizer's arguments",
    V - f32(0.1) * np.sign(V),
    lambda tf: _trained(tf, tf.train.AdamOptimizer(0.1, 0.9, 0.999, 1e-8)),
    lambda tf: _trained(tf, tf.train.AdamOptimizer(learning_rate=0.1, beta1=0.5, beta2=0.9, epsilon=1e-8)),
)
for _stair, _rate in ((False, 0.1 * 0.5**1.5), (True, 0.05)):
    case(
        "train.exponential_decay%s" % (" in steps" if _stair else ""),
        f32(_rate),
        *[
            lambda tf, s=_stair, w=w: w(tf, s)
            for w in (
                lambda tf, s: tf.train.exponential_decay(0.1, tf.constant(15), 10, 0.5, s),
                lambda tf, s: tf.train.exponential_decay(learning_rate=0.1, global_step=tf.Variable(15), decay_steps=10, decay_rate=0.5, staircase=s),
                lambda tf, s: tf.train.exponential_decay(0.1, 15, 10, 0.5, staircase=s, name="d"),
            )
        ],
    )
case(
    "train.ExponentialMovingAverage",
    [A * f32(0.9), A * f32(0.9)],
    *[
        lambda tf, w=w: _averaged(tf, w)
        for w in (lambda tf, v: tf.train.ExponentialMovingAverage(0.9), lambda tf, v: tf.train.ExponentialMovingAverage(decay=0.9, name="E"))
    ],
)
case(
    "losses.mean_squared_error",
    ((A - B) ** 2).mean(),
    lambda tf: tf.losses.mean_squared_error(A, B),
    lambda tf: tf.losses.mean_squared_error(labels=A, predictions=B),
    lambda tf: tf.losses.mean_squared_error(A, B, 1.0, "s"),
)
case(
    "losses.softmax_cross_entropy",
    np.float32(-np.log(np.exp(A) / np.exp(A).sum(1, keepdims=True))[[0, 1], [2, 0]].mean()),
    lambda tf: tf.losses.softmax_cross_entropy(ONE_HOT, A),
    lambda tf: tf.losses.softmax_cross_entropy(onehot_labels=ONE_HOT, logits=A, weights=1.0),
    lambda tf: tf.losses.sparse_softmax_cross_entropy([2, 0], A),
    lambda tf: tf.losses.sparse_softmax_cross_entropy(labels=[2, 0], logits=A),
)
case(
    "losses.sigmoid_cross_entropy",
    (np.log1p(np.exp(A)) - A * SOFT).mean(),
    lambda tf: tf.losses.sigmoid_cross_entropy(SOFT, A),
    lambda tf: tf.losses.sigmoid_cross_entropy(multi_class_labels=SOFT, logits=A),
)
case("train.get_or_create_global_step", ["global_step:0", True], lambda tf: _global_step(tf))


def _hessian(tf: Any) -> Any:
    x = tf.constant(V)
    return tf.hessians(tf.reduce_sum(x * x), x)[0]


def _trained(tf: Any, optimizer: Any, how: str = "") -> Any:
    v = tf.Variable(V)
    loss = tf.reduce_sum(tf.square(v))
    if how == "global_step":
        step = tf.Variable(0, trainable=False, name="global_step")
        op = optimizer.minimize(loss, global_step=step)
        with tf.control_dependencies([op]):
            return v.read_value() + tf.cast(step.read_value() - 1, tf.float32)
    if how == "var_list":
        return after(tf, optimizer.minimize(loss, var_list=[v], name="train"), v)
    if how == "apply":
        return after(tf, optimizer.apply_gradients([(g, x) for g, x in optimizer.compute_gradients(loss)]), v)
    return after(tf, optimizer.minimize(loss), v)


def _averaged(tf: Any, make: Any) -> Any:
    v = tf.Variable(A)
    average = make(tf, v)
    update = average.apply([v])
    with tf.control_dependencies([v.assign(np.zeros_like(A))]):
        with tf.control_dependencies([average.apply([v])]):
            shadow = average.average(v).read_value()
    del update
    return [shadow, shadow]


def _global_step(tf: Any) -> Any:
    made = tf.train.get_or_create_global_step()
    return [made.name, tf.train.get_global_step() is made]


# ---- layers and cells (not in today's wheel) ----

W = np.array([[1, 0], [0, 1], [1, 1]], f32)
case(
    "layers.dense",
    np.maximum(A @ W, 0),
    *[
        lambda tf, w=w: w(tf, tf.constant(A), tf.constant_initializer(W))
        for w in (
            lambda tf, x, k: tf.layers.dense(x, 2, tf.nn.relu, kernel_initializer=k),
            lambda tf, x, k: tf.layers.dense(
                inputs=x, units=2, activation=tf.nn.relu, use_bias=True, kernel_initializer=k, bias_initializer=tf.zeros_initializer(), name="d"
            ),
            lambda tf, x, k: tf.layers.dense(x, 2, activation=tf.nn.relu, kernel_initializer=k, use_bias=False),
            lambda tf, x, k: tf.layers.Dense(2, tf.nn.relu, kernel_initializer=k)(x),
            lambda tf, x, k: tf.contrib.layers.fully_connected(x, 2, weights_initializer=k),
            lambda tf, x, k: tf.contrib.layers.fully_connected(inputs=x, num_outputs=2, activation_fn=tf.nn.relu, weights_initializer=k, scope="f"),
        )
    ],
    wheel=False,
)
case("layers.flatten", A.reshape(1, 6), lambda tf: tf.layers.flatten(A[None]), lambda tf: tf.contrib.layers.flatten(tf.constant(A[None])), wheel=False)
case(
    "layers.dropout",
    A,
    lambda tf: tf.layers.dropout(tf.constant(A)),
    lambda tf: tf.layers.dropout(tf.constant(A), 0.5, training=False),
    lambda tf: tf.layers.dropout(inputs=tf.constant(A), rate=0.0, training=True),
    wheel=False,
)
for _name, _f in {"max_pooling2d": np.max, "average_pooling2d": np.mean}.items():
    case(
        "layers." + _name,
        _f(np.arange(16, dtype=f32).reshape(1, 2, 2, 2, 2, 1), (2, 4)),
        *[
            lambda tf, n=_name, w=w: w(getattr(tf.layers, n), tf.reshape(tf.range(16.0), [1, 4, 4, 1]))
            for w in (
                lambda p, x: p(x, 2, 2),
                lambda p, x: p(inputs=x, pool_size=[2, 2], strides=2),
                lambda p, x: p(x, pool_size=(2, 2), strides=(2, 2), padding="same", name="p"),
            )
        ],
        wheel=False,
    )
case(
    "layers.conv2d",
    np.full((1, 3, 3, 1), 4, f32),
    *[
        lambda tf, w=w: w(tf, tf.ones([1, 4, 4, 1]), tf.ones_initializer())
        for w in (
            lambda tf, x, k: tf.layers.conv2d(x, 1, 2, kernel_initializer=k),
            lambda tf, x, k: tf.layers.conv2d(
                inputs=x, filters=1, kernel_size=[2, 2], strides=(1, 1), padding="valid", kernel_initializer=k, activation=tf.nn.relu, name="c"
            ),
            lambda tf, x, k: tf.layers.conv2d(x, 1, (2, 2), padding="VALID", kernel_initializer=k),
        )
    ],
    wheel=False,
)
case(
    "nn.dynamic_rnn",
    [(2, 3, 4), (2, 4), (2, 4)],
    *[
        lambda tf, w=w: _unrolled(tf, *w(tf))
        for w in (
            lambda tf: tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(4), tf.ones([2, 3, 5]), dtype=tf.float32),
            lambda tf: tf.nn.dynamic_rnn(
                cell=tf.contrib.rnn.BasicLSTMCell(num_units=4, forget_bias=1.0, state_is_tuple=True),
                inputs=tf.ones([2, 3, 5]),
                sequence_length=[3, 2],
                dtype=tf.float32,
                scope="r",
            ),
            lambda tf: tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4), tf.ones([2, 3, 5]), initial_state=tf.nn.rnn_cell.LSTMCell(4).zero_state(2, tf.float32)),
        )
    ],
    wheel=False,
)
case(
    "nn.rnn_cell.MultiRNNCell",
    [(2, 4), 2, (2, 4)],
    *[
        lambda tf, w=w: _stacked(tf, w(tf))
        for w in (
            lambda tf: tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(4) for _ in range(2)]),
            lambda tf: tf.contrib.rnn.MultiRNNCell(cells=[tf.contrib.rnn.LSTMCell(4), tf.contrib.rnn.LSTMCell(4)], state_is_tuple=True),
            lambda tf: tf.nn.rnn_cell.MultiRNNCell(
                [tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicLSTMCell(4), output_keep_prob=0.5)] + [tf.nn.rnn_cell.BasicLSTMCell(4)]
            ),
        )
    ],
    wheel=False,
)


def _unrolled(tf: Any, outputs: Any, state: Any) -> Any:
    return [tuple(outputs.get_shape().as_list()), tuple(state.c.get_shape().as_list()), tuple(state[1].get_shape().as_list())]


def _stacked(tf: Any, cell: Any) -> Any:
    outputs, state = cell(tf.ones([2, 4]), cell.zero_state(2, tf.float32))
    return [tuple(outputs.get_shape().as_list()), len(state), tuple(state[0].h.get_shape().as_list())]
