# SPDX-License-Identifier: Apache-2.0
"""Statements of Python on tensors: each function means on tensors what it means on Python's numbers."""

import traceback

import numpy as np
import pytest

import millrace as tf


def loop_with_branches(x, n):
    y, i = x, 0
    while i < n:
        if y > 10.0:
            y = y - 7.0
        else:
            y = y * 2.0
        i += 1
    return y


def returns_at_many_places(x, n):
    if x > 0.0:
        if n > 2:
            return x * 2.0
    elif x < -5.0:
        return x
    x = x + 1.0
    return -x


def jumps(x, n):
    s = 0.0
    for i in range(n):
        if i > 0 and i < 2:
            continue
        if i > 5:
            break
        s += x
    return s


def nested_loops(x, n):
    s, i = 0.0, 0
    while i < n:
        j = 0
        while j < i:
            if j > 1:
                break
            s += x
            j += 1
        else:
            s += 100.0
        i += 1
    return s


def leaves_two_loops(x, n):
    best = -1
    for i in range(n):
        for j in range(n):
            if i * j > 3:
                best = i * 10 + j
                break
        if best > 0:
            break
    return best


def difference(a, b):
    if a > b:
        return a - b
    return b - a


def calls_others(x, n):
    total = 0.0
    for i in range(4):
        total += difference(x, float(i))
    if x > 1.0:
        pass
    else:
        n = 2
    total += float(n)
    g = lambda v: v if v > 0.0 else -v
    return total + g(x) * difference(*(x,), b=2.0)


def one_side_changes(x, n):
    k, m = 1.0, 2.0
    if x > 0.0:
        k = 3.0
    if x > 1.0:
        pass
    elif n > 2:
        m = 4.0
    return k * m


def boolean_expressions(x, n):
    small = 1.0 if -1.0 < x < 2.0 else 0.0
    return small + (x if x > 0.0 and not n > 3 or x < -2.0 else x * 10.0)


def nonlocal_names(x, n):
    def inner(v):
        nonlocal count
        if v > 0.0:
            count = count + 1
        return v

    count = 0
    inner(x), inner(x + 1.0)
    return count


def several_values(x, n):
    a, b, pair = x, 1.0, {"n": n, "x": (x, x)}
    for _ in range(n):
        a, b = b, a + b
        pair = {"n": pair["n"] + 1, "x": (a, b)}
    if x > 0.0:
        pair = {"n": 0, "x": (a, x)}
    return a + pair["x"][1]


def within_with_and_try(x, n):
    with tf.name_scope("a"):
        if x > 0.0:
            return x
    try:
        if x < -2.0:
            y = x
        else:
            y = x * 3.0
    finally:
        z = 1.0
    return y + z


def temporary_names(x, n):
    t = "a text"
    while n > 0:
        n -= 1
        t = x * 2.0
        x = t - 1.0
    return x


def builtins_of_numbers(x, n):
    r = [x + float(i) for i in range(3) if i != 1]
    assert n < 100, "too many"
    return abs(x) + max(x, 3.0) + min(x, 1.0) + r[0] + r[1] + float(n)


def break_of_a_python_loop(x, n):
    for step in (1.0, 2.0, 3.0):
        if x > 3.0:
            break
        x += step
    return x


class Counter:
    scale = 2.0

    def __init__(self):
        self.total, self.__private = 0.0, 1.0

    def run(self, x):
        if x > 0.0:
            self.total = x * self.scale
        else:
            self.total = self.__private
        return self.total


def attributes(x, n):
    return Counter().run(x)


class Derived(Counter):
    def run(self, x):
        if x > 5.0:
            return super().run(x) + 1.0
        return super().run(-x)


def methods_above(x, n):
    return Derived().run(x)


FUNCTIONS = [
    loop_with_branches,
    returns_at_many_places,
    jumps,
    nested_loops,
    leaves_two_loops,
    calls_others,
    one_side_changes,
    boolean_expressions,
    nonlocal_names,
    several_values,
    within_with_and_try,
    temporary_names,
    builtins_of_numbers,
    break_of_a_python_loop,
    attributes,
    methods_above,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_functions_mean_on_tensors_what_they_mean_in_python(function):
    x, n = tf.placeholder(tf.float32, []), tf.placeholder(tf.int32, [])
    made = tf.function(function)(x, n)
    plain = tf.autograph.to_graph(function)(x, n)  # in the graph itself
    with tf.Session() as sess:
        for a, b in [(1.5, 3), (-1.0, 5), (-7.0, 0), (12.0, 8), (0.5, 1)]:
            want = function(a, b)
            np.testing.assert_allclose(sess.run([made, plain], {x: a, n: b}), [want, want], rtol=1e-6)


def test_loops_over_tensors_and_data_sets():
    @tf.function
    def total(values):
        s, last = 0, -1
        for i, v in enumerate(values):
            if v < 0:
                continue
            if v > 100:
                break
            s += v
            last = i
        return s, last

    @tf.function
    def collected(values):
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for i in tf.range(len(values)):
            array = array.write(i, values[i] * 2.0)
        return array.stack()

    def of_data(x):
        s = tf.constant(0, tf.int64)
        for v in tf.data.Dataset.range(5):
            if v > 1:
                s += v * x
        return s

    made = total(tf.constant([1, -2, 3, 200, 4]))
    unknown = tf.placeholder(tf.float32, [None])
    with tf.Session() as sess:
        assert sess.run(made) == (4, 2)
        assert sess.run(collected(unknown), {unknown: [1.0, 2.0]}).tolist() == [2.0, 4.0]
        assert sess.run(tf.autograph.to_graph(of_data)(tf.constant(2, tf.int64))) == 18


def test_gradients_flow_through_what_is_converted():
    def f(x):
        i = 0
        while i < 3:
            x = x * x if x < 100.0 else x
            i += 1
        return x

    x = tf.constant(2.0)
    with tf.Session() as sess:
        assert sess.run(tf.gradients(tf.autograph.to_graph(f)(x), x)[0]) == 8 * 2.0**7


def test_options_of_loops():
    def f(n):
        v = tf.zeros([1])
        i = 0
        while i < n:
            tf.autograph.experimental.set_loop_options(shape_invariants=[(v, tf.TensorShape([None]))], maximum_iterations=3)
            v = tf.concat([v, [1.0]], 0)
            i += 1
        return v

    with tf.Session() as sess:
        assert sess.run(tf.autograph.to_graph(f)(tf.constant(10))).shape == (4,)


def test_layers_and_data_sets_are_converted_where_they_ask_for_a_value():
    class Layer(tf.keras.layers.Layer):
        def call(self, inputs):
            if tf.reduce_sum(inputs) > 0.0:
                return inputs
            return -inputs

    def sign(x):
        if x < 2:
            return -1
        return 1

    x = tf.placeholder(tf.float32, [None])
    made = Layer()(x)
    signs = tf.data.Dataset.range(4).map(sign).batch(4).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert sess.run(made, {x: [-3.0, 1.0]}).tolist() == [3.0, -1.0]
        assert sess.run(signs).tolist() == [-1, -1, 1, 1]


def test_what_cannot_be_one_value_is_said_where_it_is_used():
    def one_side(x):
        if x > 0.0:
            y = x
        return y

    def two_types(x):
        if x > 0.0:
            y = x
        else:
            y = "text"
        return y

    def in_a_loop(x):
        while x > 0.0:
            x -= 1.0
            if x > 5.0:
                return x
        return -x

    def changes(x):
        y = None
        while x > 0.0:
            x -= 1.0
            y = x
        return y

    x = tf.constant(1.0)
    for function, error, text in [
        (one_side, UnboundLocalError, "'y' referenced before assignment: only one branch of a conditional on a tensor assigns it"),
        (two_types, UnboundLocalError, "'y' .* leave .*:0 of float32 and text, which cannot be one value"),
        (in_a_loop, UnboundLocalError, "`return` within a loop over tensors; assign to a variable"),
        (changes, TypeError, "'y' is None before a loop over tensors and"),
    ]:
        with pytest.raises(error, match=text):
            tf.function(function)(x)
            tf.identity(tf.autograph.to_graph(function)(x))


def test_errors_name_the_line_of_the_program():
    def f(x):
        if x > 0.0:
            y = tf.matmul(x, x)
        else:
            y = x
        return y

    with pytest.raises(ValueError) as raised:
        tf.function(f)(tf.constant(1.0))
    lines = [entry.line for entry in traceback.extract_tb(raised.value.__traceback__)]
    assert "y = tf.matmul(x, x)" in lines


def test_what_stays_as_it_is():
    @tf.autograph.experimental.do_not_convert
    def left(x):
        return 1.0 if x > 0.0 else 2.0

    def generator(x):
        yield x

    x = tf.constant(1.0)
    with pytest.raises(TypeError, match="AutoGraph is disabled in this function"):
        tf.function(lambda x: left(x))(x)
    with pytest.raises(TypeError, match="Python `bool`"):
        tf.function(lambda x: 1.0 if x > 0.0 else 2.0, autograph=False)(x)
    with pytest.raises(NotImplementedError, match="cannot be converted: a generator"):
        tf.autograph.to_graph(generator)
    with pytest.raises(ValueError, match="to_graph converts functions"):
        tf.autograph.to_graph(3)
    with pytest.raises(NotImplementedError, match="use tf.TensorArray"):
        tf.autograph.to_graph(difference, experimental_optional_features=tf.autograph.experimental.Feature.LISTS)
    assert "ag__.if_stmt(a > b" in tf.autograph.to_code(difference)
    assert tf.autograph.to_graph(difference).__name__ == "difference" and difference(1, 3) == 2
