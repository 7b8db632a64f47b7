# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.function.Defun."""

import numpy as np
import pytest

import millrace as tf
from millrace.framework import function


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_a_node_calls_it(sess):
    @function.Defun(tf.float32, tf.float32)
    def both(x, y):
        return x * y, x + y

    x = tf.constant([2.0, 3.0])
    product, total = both(x, 5.0, name="first")
    assert product.op.name == "first" and product.op.type == both.name and both.name.startswith("both_")
    assert sess.run([product, total])[1].tolist() == [7, 8]
    assert [g.tolist() for g in sess.run(tf.gradients([product, total], [x]))] == [[6, 6]]
    assert both(x, x)[0].op.type == both.name
    library = sess.graph.as_graph_def().library.function
    assert [f.signature.name for f in library] == [both.name] and [a.name for a in library[0].signature.input_arg] == ["x", "y"]
    again = tf.Graph()
    with again.as_default(), tf.Session() as other:  # the GraphDef carries it
        (y,) = tf.import_graph_def(sess.graph.as_graph_def(), return_elements=["first:1"])
        assert other.run(y).tolist() == [7, 8]


def test_a_gradient_in_python(sess):
    @function.Defun(tf.float32, python_grad_func=lambda op, dy: [dy * 100 + 0 * op.inputs[0]], shape_func=lambda op: [op.inputs[0].get_shape()])
    def passed(x):
        return tf.identity(x)

    x = tf.constant([1.0, 2.0])
    y = passed(x)
    assert y.get_shape().as_list() == [2] and sess.run(tf.gradients(y * 2, x)[0]).tolist() == [200, 200]

    # The same ops with another gradient are another function.
    @function.Defun(tf.float32, python_grad_func=lambda op, dy: -dy)
    def passed(x):
        return tf.identity(x)

    assert sess.run(tf.gradients(passed(y), x)[0]).tolist() == [-100, -100]


def test_a_gradient_that_is_a_function(sess):
    @function.Defun(tf.float32, tf.float32)
    def back(x, dy):
        return dy * x * 10

    @function.Defun(tf.float32, grad_func=back, func_name="Square10")
    def square(x):
        return x * x

    x = tf.constant(3.0)
    y = square(x)
    assert sess.run([y, tf.gradients(y, x)[0]]) == [9, 30] and y.op.type == "Square10"
    assert [(g.function_name, g.gradient_func) for g in sess.graph.as_graph_def().library.gradient] == [("Square10", back.name)]

    @function.Defun()
    def any_back(x, dy):
        return dy * 7

    @function.Defun(grad_func=any_back)
    def any_type(x):
        return x + x

    z = tf.constant(2.0, tf.float64)
    assert sess.run(tf.gradients(any_type(z), z)[0]) == 7


def test_types_of_each_call(sess):
    @function.Defun()
    def double(x):
        return x + x

    assert sess.run([double(tf.constant(2)), double(tf.constant(1.5)), double(np.float64(4))]) == [4, 3, 8]
    assert len(sess.graph.as_graph_def().library.function) == 3

    @function.Defun()
    def total(*xs):
        return tf.add_n(list(xs))

    assert sess.run([total(1.0, 2.0), total(1.0, 2.0, 4.0)]) == [3, 7]


def test_functions_in_functions_and_operations(sess):
    @function.Defun(tf.float32)
    def inner(x):
        return tf.exp(x)

    @function.Defun(tf.float32, out_names=["made"])
    def outer(x):
        return inner(x) * 2 + tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), [0, x])[1]

    x = tf.constant(0.0)
    y = outer(x)
    assert sess.run([y, tf.gradients(y, x)[0]]) == [2, 10]
    assert outer.definition.signature.output_arg[0].name == "made"
    assert {f.signature.name for f in sess.graph.as_graph_def().library.function} == {inner.name, outer.name}

    @function.Defun()
    def constant():
        return tf.constant(4.0)

    assert sess.run(constant()) == 4


def test_tensors_and_variables_from_outside_become_arguments(sess):
    outside, w = tf.constant(2.0), tf.Variable(3.0)

    @function.Defun(tf.float32)
    def inner(x):
        return x * outside

    @function.Defun(tf.float32)
    def outer(x):
        v = tf.get_variable("v", [], initializer=tf.constant_initializer(5.0))
        assert function.get_extra_vars() == [v] and tf.get_default_graph().building_function
        return inner(x) + w * v + outside

    x = tf.constant(1.0)
    y = outer(x)
    assert function.get_extra_vars() == [] and [v.name for v in tf.trainable_variables()] == ["Variable:0", "v:0"]
    assert [t.name for t in inner.captured_inputs] == [outside.name] and len(outer.captured_inputs) == 3
    assert [a.name for a in outer.definition.signature.input_arg][0] == "x" and len(outer.definition.signature.input_arg) == 4
    sess.run(tf.global_variables_initializer())
    assert sess.run(y) == 1 * 2 + 3 * 5 + 2
    assert sess.run(tf.gradients(y, [x, outside, w])) == [2, 2, 5]
    assert sess.run(tf.cond(x > 0.0, lambda: outer(x), lambda: x)) == 19


def test_mistakes(sess):
    for make, error, message in (
        (lambda: function.Defun(tf.float32)(lambda x, y: x), ValueError, "same number of arguments"),
        (lambda: function.Defun(tf.float32)(lambda x: x * 2)(1.0, 2.0), ValueError, "Expected number of arguments: 1, received: 2"),
        (lambda: function.Defun(tf.float32, out_names=["a", "b"])(lambda x: x * 2)(1.0), tf.errors.InvalidArgumentError, "equal in size to outputs"),
        (lambda: function.Defun(tf.float32)(lambda x: [x, None])(1.0), ValueError, "can not return None"),
        (lambda: function.Defun(tf.float32, python_grad_func=len, grad_func=len), ValueError, "Gradient defined twice"),
    ):
        with pytest.raises(error, match=message + ".*test_function.py"):
            make()


def test_path():
    from millrace import names

    assert names.module("python.framework.function") is function


def test_functions_of_a_library_and_captures_by_value():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        outside = tf.constant(3.0)

        @function.Defun(tf.float32, tf.float32)
        def slope(x, dy):
            return x * dy

        @function.Defun(tf.float32, grad_func=slope, capture_by_value=True, noinline=True)
        def scaled(x):
            """Three times x."""
            return x * outside

        x = tf.constant(2.0)
        y = scaled(x)
        assert session.run([y, tf.gradients(y, x)[0]]) == [6.0, 2.0]
        assert scaled.captured_inputs == []
        assert scaled.definition.attr["_noinline"].b and scaled.definition.signature.description == "Three times x."
        library = graph.as_graph_def().library
    again = {f.name: f for f in function._from_library(library)}
    assert again[scaled.name].grad_func_name == slope.name and again[slope.name].declared_input_types == (tf.float32, tf.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(again[slope.name](4.0, 5.0)) == 20.0
    del library.function[:]
    with pytest.raises(ValueError, match="missing"):
        function._from_library(library)


def test_variables_of_a_function_lie_in_the_scope_where_it_is_called():
    @function.Defun()
    def inner(x):
        return x + tf.get_variable("w", [2], use_resource=True) + tf.get_variable("v", [2])

    @function.Defun()
    def outer(x):
        return inner(x)

    with tf.Graph().as_default():
        with tf.variable_scope("here"):
            outer(tf.zeros([2]))
        assert [v.op.name for v in tf.global_variables()] == ["here/w", "here/v"]


def test_functions_of_a_graph_that_a_function_imports():
    @function.Defun(tf.float32, func_name="Doubled")
    def doubled(x):
        return x * 2.0

    with tf.Graph().as_default() as graph:
        doubled(tf.constant(3.0, name="three"), name="six")
    definition = graph.as_graph_def()

    @function.Defun()
    def imported():
        return tf.import_graph_def(definition, return_elements=["six:0"])[0]

    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(imported()) == 6.0


def test_functions_of_one_body_keep_their_gradients():
    def doubled(**given):
        @function.Defun(tf.float32, **given)
        def Foo(x):
            return x * 2

        return Foo

    @function.Defun(tf.float32, tf.float32)
    def Sum(x, dy):
        return x + dy

    x = tf.constant(100.0)
    made = [doubled(), doubled(grad_func=Sum), doubled(python_grad_func=lambda op, dy: op.inputs[0] * dy / 2), doubled()]
    slopes = [tf.gradients(f(x), x)[0] for f in made] + [tf.gradients(made[0](x), x)[0]]
    with tf.Session() as session:
        assert session.run(slopes) == [2, 101, 50, 2, 2]

    def named(**given):
        return function.Defun(tf.float32, func_name="Named", **given)(lambda x: x * 2)

    named()(x)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        named(grad_func=Sum)(x)
    assert caught.value.message == "Cannot add function 'Named' because a different function with the same name already exists."


def test_bodies_get_the_device_around_their_definition():
    with tf.device("CPU:0"):
        first = function.Defun(tf.float32)(lambda x: x * 2)
        with tf.device("CPU:1"):
            second = function.Defun(tf.float32)(lambda x: x * 2)
    assert {node.device for node in first.definition.node_def} == {"/device:CPU:0"}
    assert {node.device for node in second.definition.node_def} == {"/device:CPU:1"} and first.name != second.name


def test_constants_that_are_promised_stay_so_in_bodies():
    v = tf.Variable(1.0)
    promised = tf.identity(tf.guarantee_const(v))

    @function.Defun()
    def read():
        total = promised + v
        assert [arg.consumers()[0].type for arg in function.get_extra_args()] == ["GuaranteeConst", "Add"]
        return total

    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(read()) == 2


def test_branches_and_loops_of_tensors_from_outside():
    yes, x = tf.placeholder_with_default(True, []), tf.constant(1)

    @function.Defun()
    def Chosen():
        return tf.cond(yes, lambda: x, lambda: x + 1)

    @function.Defun()
    def Counted():
        return tf.while_loop(lambda i: i < 10, lambda i: i + x, [x])

    @function.Defun()
    def Same():
        return tf.while_loop(lambda i, n: i < 3, lambda i, n: [i + 1, x], [0, x])[1]

    with tf.Session() as session:
        assert session.run([Chosen(), Counted(), Same()]) == [1, 10, 1]
        assert session.run(Chosen(), {yes: False}) == 2


def test_operations_with_a_state_in_functions():
    noise = tf.random_uniform([2], maxval=10, dtype=tf.int32)

    def shifted():
        return noise + 3

    with pytest.raises(ValueError, match="Cannot capture a stateful node"):
        function.Defun(capture_by_value=True)(shifted)()
    copied = function.Defun(capture_by_value=True, whitelisted_stateful_ops={noise.op})(shifted)
    assert [kind for _, kind in copied.stateful_ops] == ["RandomUniformInt"]
    assert function.Defun(tf.float32)(lambda x: x * 2).stateful_ops == []
    with tf.Session() as session:
        assert session.run(copied()).min() >= 3


def test_attributes_of_functions():
    made = function.Defun(tf.int32, experimental_tag="t", experimental_number=3, experimental_flag=True, _implements="org.lstm")(lambda i: tf.identity(i))
    attributes = made.definition.attr
    assert attributes["experimental_tag"].s == b"t" and attributes["experimental_number"].i == 3 and attributes["experimental_flag"].b
    assert attributes["_implements"].s == b"org.lstm"
    with pytest.raises(ValueError, match="Unsupported attribute type list"):
        function.Defun(tf.int32, experimental_tag=[1])(lambda i: tf.identity(i)).definition
    with pytest.raises(ValueError, match="Unknown keyword arguments: .'tag'"):
        function.Defun(tf.int32, tag=1)


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("inside_first", [False, True])
def test_scopes_of_outside_have_their_variables_there(resource, inside_first):
    got = []

    def dense(x):
        got.append(tf.get_variable("w", [2], initializer=tf.ones_initializer(), use_resource=resource))
        return x * got[-1]

    model = tf.make_template("f", dense, create_scope_now_=True)
    inside = function.Defun(tf.float32)(lambda x: model(x))
    x = tf.constant([2.0, 3.0])
    y, z = (inside(x), model(x)) if inside_first else (model(x), inside(x))
    assert got[0] is got[1] and tf.global_variables() == [got[0]]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run([y, z, tf.gradients(inside(x), [got[0]])])
    assert [v.tolist() for v in values[:2]] == [[2, 3], [2, 3]] and values[2][0].tolist() == [2, 3]


def test_variables_of_graphs_that_programs_call_functions():
    with tf.Graph().as_default() as outer, tf.Graph().as_default() as inner:
        inner._building_function = True
        layer = tf.layers.Dense(2)
        layer.build(tf.TensorShape([1, 3]))
        v = tf.get_variable("v", [2])
    assert [w.graph for w in [*layer.weights, v]] == [outer] * 3 and len(outer.get_collection("variables")) == 3
