# SPDX-License-Identifier: Apache-2.0
"""tf.function, tf.contrib.eager.defun, tf.compat.v1.wrap_function: functions of the graph, as 1.15 makes them there."""

import numpy as np
import pytest

import millrace as tf


def run(*fetches):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run(f) for f in fetches]


def test_structures_defaults_and_gradients():
    @tf.function
    def f(x, y=2.0):
        return x * y + 1.0, {"x": x, "none": None}

    x = tf.constant([1.0, 2.0])
    made, others = f(x)
    assert made.op.type == "PartitionedCall" and made.shape.as_list() == [2] and others["none"] is None
    value, other, gradient, default, named = run(made, others["x"], tf.gradients(made, x)[0], f(x, 3.0)[0], f(x=x, y=tf.constant(4.0))[0])
    assert (value.tolist(), other.tolist(), gradient.tolist()) == ([3, 5], [1, 2], [2, 2])
    assert (default.tolist(), named.tolist()) == ([4, 7], [5, 9])
    assert len(f._made) == 3
    f(x), f(np.array([5.0, 6.0], np.float32))  # kinds that are there
    assert len(f._made) == 3


def test_what_a_function_does_is_done_in_order():
    v = tf.get_variable("v", initializer=1.0, use_resource=True)

    @tf.function
    def update(n):
        v.assign_add(n)
        v.assign(v * 2.0)
        tf.cond(n > 1.0, lambda: v.assign_add(100.0), lambda: v.assign_add(1000.0))
        tf.while_loop(lambda i: i < 3, lambda i: (v.assign_add(0.5), i + 1)[1], [0])
        return v.read_value()

    @tf.function
    def nothing():
        v.assign(-1.0)

    done = nothing()
    assert isinstance(done, tf.Operation)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(update(tf.constant(3.0))) == (1 + 3) * 2 + 100 + 1.5
        assert sess.run(update(tf.constant(1.0))) == (109.5 + 1) * 2 + 1000 + 1.5
        sess.run(done)
        assert sess.run(v) == -1.0


def test_variables_are_made_once():
    class Scale:
        def __init__(self):
            self.w = None

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(2.0, name="w")
            return self.w * x

    first, second = Scale(), Scale()
    y, z = first(tf.constant(3.0)), first(tf.constant([1.0, 4.0]))
    assert second(tf.constant(1.0)) is not None and first.w is not second.w
    assert [v.name for v in tf.global_variables()] == ["w:0", "w_1:0"]
    got = run(y, z, tf.gradients(y, [first.w])[0])
    assert (got[0], got[1].tolist(), got[2]) == (6.0, [2.0, 8.0], 3.0)
    with pytest.raises(ValueError, match="tried to create variables on non-first call"):
        tf.function(lambda x: tf.Variable(1.0) * x)(tf.constant(1.0))

    @tf.contrib.eager.defun
    def shared(x):
        with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
            return x * tf.get_variable("v", initializer=7.0)

    assert run(shared(tf.constant(2.0)), shared(tf.constant([3.0]))[0]) == [14.0, 21.0]


def test_a_layer_in_a_function():
    layer = tf.keras.layers.Dense(1, kernel_initializer="ones")

    @tf.function
    def call(x):
        tf.debugging.assert_positive(x)
        return layer(x)

    x = tf.placeholder(tf.float32, [None, 2])
    y = call(x)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y), var_list=layer.trainable_weights)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(y, {x: [[1, 2]]}).tolist() == [[3]]
        sess.run(step, {x: [[1, 2]]})
        assert sess.run(y, {x: [[1, 2]]})[0, 0] == pytest.approx(3 - 0.1 - 0.4 - 0.1)
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(y, {x: [[1, -2]]})


def test_functions_in_functions_and_their_gradients():
    x = tf.constant(3.0)
    v = tf.get_variable("v", initializer=2.0, use_resource=True)

    @tf.function
    def inner(a):
        return a * a * v

    @tf.function
    def outer(a):
        y = inner(a) + x
        return y, tf.gradients(y, [a, x, v])

    y, within = outer(x)
    total = tf.gradients(y, [x, v])
    assert run([y, within, total]) == [[21.0, [12.0, 1.0, 9.0], [13.0, 9.0]]]

    @tf.function
    def refused():
        return tf.gradients(x * y, x)

    with pytest.raises(NotImplementedError, match="make these in the function"):
        refused()


def test_signatures():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def total(x):
        return tf.reduce_sum(x)

    assert run(total([1.0, 2.0]), total(np.ones([3], np.float32))) == [3.0, 3.0]
    assert len(total._made) == 1
    concrete = total.get_concrete_function()
    assert concrete.inputs[0].shape.as_list() == [None] and concrete.structured_outputs.dtype == tf.float32
    assert run(concrete(tf.constant([4.0])), concrete(x=tf.constant([5.0]))) == [4.0, 5.0]
    with pytest.raises(ValueError, match="incompatible with input_signature"):
        total(tf.zeros([2, 2]))
    with pytest.raises(TypeError, match="takes 1 tensors"):
        concrete()
    with pytest.raises(TypeError, match="must return zero or more Tensors"):
        tf.function(lambda x: object())(tf.constant(1.0))


def test_sparse_arguments_and_results():
    @tf.function
    def doubled(s):
        return tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape)

    s = tf.SparseTensor([[0, 1]], [3.0], [2, 2])
    assert run(tf.sparse.to_dense(doubled(s)))[0].tolist() == [[0, 6], [0, 0]]


def test_wrapped_functions():
    def scaled(x):
        y = x * tf.get_variable("scale", initializer=5.0, use_resource=True)
        return y, y + 1.0

    wrapped = tf.compat.v1.wrap_function(scaled, [tf.TensorSpec([], tf.float32)])
    part = wrapped.prune(wrapped.graph.inputs[0], wrapped.outputs[0])
    assert [v.name for v in wrapped.variables] == ["scale:0"]
    assert run(wrapped(tf.constant(2.0)), part(tf.constant(3.0))) == [(10.0, 11.0), 15.0]


def test_wrapped_functions_do_what_their_results_need():
    calls = tf.Variable(0.0, use_resource=True)

    def counted():
        calls.assign_add(1.0)
        with tf.control_dependencies([calls.assign_add(10.0)]):
            return tf.constant(2.0)

    assert run([tf.compat.v1.wrap_function(counted, [])(), tf.function(counted)()], calls)[1] == 21.0


def test_graphs_with_functions_go_into_files():
    x = tf.placeholder(tf.float32, [], name="x")
    tf.identity(tf.function(lambda a: a * 3.0)(x), name="y")
    graph_def = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with tf.Session(graph=graph) as sess:
            assert sess.run("y:0", {"x:0": 2.0}) == 6.0


def test_bodies_as_graphs():
    from millrace import names

    concrete = tf.function(lambda x, y: x * y).get_concrete_function(tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.float32))
    graph = names.find("python.framework.function_def_to_graph").function_def_to_graph(concrete.function_def, [[2], []])
    assert [t.shape.as_list() for t in graph.inputs] == [[2], []]
    with tf.Session(graph=graph) as sess:
        assert sess.run(graph.outputs[0], dict(zip(graph.inputs, ([1, 2], 3)))).tolist() == [3, 6]


def test_effects_without_a_function():
    from millrace.framework.func_graph import AutomaticControlDependencies

    v, p = tf.get_variable("v", initializer=1.0, use_resource=True), tf.placeholder(tf.bool)
    with AutomaticControlDependencies() as control:
        v.assign(v * 2.0)
        tf.cond(p, lambda: 0.0, lambda: (v.assign(v + 4.0), 1.0)[1])
        v.assign(v * 2.0)
        value = control.mark_as_return(v.read_value())
    with tf.Session() as sess:
        for given, wanted in ((False, 12.0), (True, 4.0)):
            sess.run(v.initializer)
            assert sess.run(value, {p: given}) == wanted


def test_data_sets_do_what_branches_do():
    v = tf.get_variable("v", initializer=0.0, use_resource=True)

    def count(x):
        tf.cond(x > 1, lambda: v.assign_add(10.0), lambda: v.assign_add(1.0))
        return x

    iterator = tf.data.Dataset.range(4).map(count).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as sess:
        sess.run([v.initializer, iterator.initializer])
        assert [sess.run(following) for _ in range(4)] == [0, 1, 2, 3]
        assert sess.run(v) == 22.0


def test_functions_in_loops_and_branches():
    v = tf.get_variable("v", initializer=1.5, use_resource=True)
    square, scaled = tf.function(lambda x: x * x), tf.function(lambda x: x * v)
    looped = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, scaled(square(s))), (0, v + 0.0))[1]
    chosen = tf.cond(v > 1.0, lambda: square(v), lambda: scaled(v))

    @tf.function
    def power(x):
        return tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * x), (0, 1.0))[1]

    within = power(v + 0.0)
    assert scaled(v).shape.as_list() == []
    values = run([looped, tf.gradients(looped, v)[0], chosen, tf.gradients(chosen, v)[0], within, tf.gradients(within, v)[0]])[0]
    np.testing.assert_allclose(values, [1.5**15, 15 * 1.5**14, 2.25, 3.0, 1.5**3, 3 * 1.5**2], rtol=1e-5)


def test_tables_in_functions():
    rows = tf.get_variable("rows", initializer=[[1.0, 2.0], [3.0, 4.0]], use_resource=True)
    found = tf.function(lambda ids: tf.nn.embedding_lookup(rows, ids))(tf.constant([1, 1, 0]))
    assert found.shape.as_list() == [3, 2]
    values, gradient = run(found, tf.gradients(tf.reduce_sum(found), rows)[0])
    assert values.tolist() == [[3, 4], [3, 4], [1, 2]]
    dense = np.zeros([2, 2])
    np.add.at(dense, gradient.indices, gradient.values) if hasattr(gradient, "indices") else dense.__iadd__(gradient)
    assert dense.tolist() == [[1, 1], [2, 2]]


def steps_of_a_model(make, apply):
    """The weights of a model and of a table after three steps within a tf.function, or in the graph itself."""
    values = []
    for within in (True, False):
        with tf.Graph().as_default(), tf.Session() as sess:
            rows = tf.get_variable("rows", initializer=[[1.0, -2.0], [3.0, 0.5], [0.25, 1.0]], use_resource=True)
            w = tf.get_variable("w", initializer=[[0.5], [-1.0]], use_resource=True)
            optimizer = make()

            def step(ids, optimizer=optimizer, rows=rows, w=w):
                loss = tf.reduce_sum(tf.square(tf.matmul(tf.nn.embedding_lookup(rows, ids), w) - 1.0))
                done = apply(optimizer, tf.gradients(loss, [rows, w]), [rows, w])
                with tf.control_dependencies([] if within or done is None else [done]):
                    return tf.identity(loss)

            out = (tf.function(step) if within else step)(tf.constant([0, 1, 1]))
            sess.run(tf.global_variables_initializer())
            for _ in range(3):
                sess.run(out)
            values.append(sess.run([rows, w]))
    return values


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.train.GradientDescentOptimizer(0.01),
        lambda: tf.train.MomentumOptimizer(0.01, 0.9),
        lambda: tf.train.AdamOptimizer(0.01),
        lambda: tf.train.RMSPropOptimizer(0.01),
        lambda: tf.train.AdagradOptimizer(0.01),
        lambda: tf.keras.optimizers.SGD(0.01, momentum=0.5),
        lambda: tf.keras.optimizers.Adam(0.01),
    ],
)
def test_optimizers_in_functions(make):
    within, outside = steps_of_a_model(make, lambda optimizer, g, v: optimizer.apply_gradients(list(zip(g, v))))
    for mine, expected, start in zip(within, outside, ([[1.0, -2.0], [3.0, 0.5], [0.25, 1.0]], [[0.5], [-1.0]])):
        np.testing.assert_allclose(mine, expected, rtol=1e-5)
        assert np.abs(mine - np.array(start)).max() > 1e-3


def test_counters_and_averages_in_functions():
    v = tf.get_variable("v", initializer=2.0, use_resource=True)
    count = tf.get_variable("count", initializer=0, trainable=False, use_resource=True)
    optimizer, average = tf.train.GradientDescentOptimizer(0.25), tf.train.ExponentialMovingAverage(0.5)

    @tf.function
    def step():
        optimizer.minimize(v * v, global_step=count, var_list=[v])
        average.apply([v])
        with tf.init_scope():
            limit = tf.constant(7.0)
        assert limit.graph is v.graph
        return v + limit

    out = step()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert [sess.run(out), sess.run(out)] == [8.0, 7.5]
        assert sess.run([count, average.average(v)]) == [2, 1.0]


def test_loops_call_functions_that_have_loops():
    scale = tf.constant(2.0)
    v = tf.get_variable("v", initializer=1.0, use_resource=True)

    @tf.function
    def curve(x):
        return tf.sin(x) * x + scale * 3.0

    @tf.function
    def twice(x):
        return tf.while_loop(lambda i, a: i < 2, lambda i, a: [i + 1, curve(a) * 0.3], [0, x])[1]

    @tf.function
    def shifted(x):
        return tf.while_loop(lambda i, a: i < 2, lambda i, a: [i + 1, call(a)], [0, x])[1]

    @tf.function
    def call(x):
        return x + v.read_value()

    forward = tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, twice(a)], [0, 0.5])[1]
    with tf.control_dependencies([v.assign(5.0)]):  # before any iteration of the loop in the function
        after = shifted(tf.constant(0.5))
    assert run(forward, after) == [pytest.approx(2.3118045, rel=1e-6), 10.5]


def test_gradients_of_calls_within_loops():
    x = tf.constant(0.5)
    scale = tf.constant(2.0)

    @tf.function
    def curve(a):
        return tf.sin(a) * a + scale * 3.0

    @tf.function
    def branches(a):
        return tf.cond(a > 0.6, lambda: curve(a) * a, lambda: tf.exp(a) * curve(a))

    @tf.function
    def looped(a):
        return tf.while_loop(lambda i, b: i < 2, lambda i, b: [i + 1, curve(b) * 0.3], [0, a])[1]

    def climbed(function):
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + 0.1 * tf.gradients(function(a), a)[0]), [0, x])[1]

    def nested(i, a):
        inner = tf.while_loop(lambda j, b: j < 2, lambda j, b: [j + 1, b + 0.05 * tf.gradients(curve(b), b)[0]], [0, a])[1]
        return i + 1, inner * tf.gradients(curve(a), a)[0]

    made = [climbed(curve), climbed(branches), climbed(looped), tf.while_loop(lambda i, a: i < 2, nested, [0, x])[1], tf.gradients(climbed(curve), x)[0]]
    np.testing.assert_allclose(run(*made), [0.81433207, 2.8909726, 0.5099116, 0.63990283, 1.446456], rtol=1e-6)


def test_effects_of_calls_whose_gradient_is_taken_happen_once():
    """The values are TensorFlow 1.15.5's."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=2.0, use_resource=True)
        calls = tf.get_variable("calls", initializer=0.0, use_resource=True)

        @tf.function
        def scaled(x):
            calls.assign_add(1.0)
            return x * v

        @tf.function
        def once(x):
            y = scaled(x)
            return tf.gradients(y, v)[0], y

        @tf.function
        def thrice(x):
            y = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, scaled(x)), [0, x])[1]
            return tf.gradients(y, v)[0], y

        results = [once(tf.constant(3.0)), thrice(tf.constant(3.0))]
        session.run(tf.global_variables_initializer())
        assert session.run(results[0]) == (3, 6) and session.run(calls) == 1
        assert session.run(results[1]) == (36, 24) and session.run(calls) == 4


def test_gradients_of_loops_that_read_rows_in_functions():
    """The values are TensorFlow 1.15.5's."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=[1.0, 2.0, 3.0, 4.0], use_resource=True)
        calls = tf.get_variable("calls", initializer=0.0, use_resource=True)

        def scaled(x):
            calls.assign_add(1.0)
            return x * tf.reduce_sum(v.sparse_read([1]))

        inner = tf.function(scaled)

        @tf.function
        def step():
            v.assign_add([1.0, 1.0, 1.0, 1.0])
            y = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, inner(inner(x)) + calls), [0, 1.0])[1]
            gradient = tf.convert_to_tensor(tf.gradients(y, v)[0])
            v.assign_sub(0.1 * gradient)
            return gradient, v.read_value(), y

        result = step()
        session.run(tf.global_variables_initializer())
        gradient, after, y = session.run(result)
        assert gradient.tolist() == [0, 1698, 0, 0] and y == 933 and session.run(calls) == 6
        np.testing.assert_allclose(after, [2, -166.8, 4, 5], rtol=1e-6)


def test_names_of_variables_begin_with_the_scopes_in_the_function():
    def make():
        with tf.name_scope("foo"):
            made = [tf.Variable(0.0, name="bar"), tf.get_variable("got", [])]
        with tf.variable_scope("vs"):
            made += [tf.Variable(0.0, name="bar"), tf.get_variable("got", [])]
        names.extend(v.name for v in [*made, tf.Variable(0.0, name="bar")])

    names = []
    with tf.name_scope("outside"):
        tf.contrib.eager.defun(make)()
    assert names == ["foo/bar:0", "got:0", "vs/bar:0", "vs/got:0", "bar:0"]  # as 1.15.5 says
