# SPDX-License-Identifier: Apache-2.0
"""Functions of Python in graphs: values, types, errors, gradients, nesting, and what becomes of them."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest

import millrace as tf


def run(fetches, feeds=None, **keywords):
    with tf.Session() as session:
        return session.run(fetches, feeds, **keywords)


def x(dtype=tf.float32):
    return tf.placeholder(dtype, name="x")


# ---- values ----


def test_a_function_of_arrays():
    a, b = x(), x(tf.int32)
    y, n = tf.py_func(lambda p, q: (p + q.astype(np.float32), np.int64(q.size)), [a, b], [tf.float32, tf.int64])
    assert (y.dtype, n.dtype, y.get_shape().ndims, y.op.type) == (tf.float32, tf.int64, None, "PyFunc")
    values = run([y, n], {a: [1.5, 2.5], b: [1, 2]})
    np.testing.assert_array_equal(values[0], np.float32([2.5, 4.5]))
    assert values[1] == 2


def test_one_type_gives_a_tensor_and_a_list_a_list():
    assert isinstance(tf.py_func(lambda: np.float32(1), [], tf.float32), tf.Tensor)
    assert isinstance(tf.py_func(lambda: np.float32(1), [], [tf.float32]), list)


def test_no_result_gives_an_operation():
    seen = []
    made = tf.py_func(lambda v: seen.append(float(v)), [tf.constant(3.0)], [], name="note")
    assert isinstance(made, tf.Operation) and made.name == "note"
    assert run(made) is None and seen == [3.0]


def test_scalars_and_strings_come_as_numpy_has_them():
    kinds = []
    run(tf.py_func(lambda *v: kinds.extend(type(e) for e in v), [1.0, tf.constant([1.0]), "a", tf.constant(["b"])], []))
    assert kinds == [np.float32, np.ndarray, bytes, np.ndarray]


@pytest.mark.parametrize(
    "value, wanted",
    [
        ("h\u00e9", "h\u00e9".encode()),
        (b"raw\0", b"raw\0"),
        (np.array(["a", "b\u00e9"], object), [b"a", "b\u00e9".encode()]),
        (np.array([b"a", b"bc"]), [b"a", b"bc"]),
    ],
    ids=["unicode", "bytes", "objects", "fixed"],
)
def test_strings(value, wanted):
    got = run(tf.py_func(lambda: value, [], tf.string))
    assert (got.tolist() if isinstance(got, np.ndarray) else got) == wanted


def test_bool_results_are_normal():
    assert run(tf.cast(tf.py_func(lambda: np.frombuffer(b"\2\0\xff", np.bool_), [], tf.bool), tf.int32)).tolist() == [1, 0, 1]


def test_a_function_may_change_its_inputs():
    data = np.ones(4096, np.float32)
    v = x()

    def change(a):
        a[:] = 5
        return a

    y = tf.py_func(change, [v], tf.float32)
    kept, changed = run([tf.identity(v) + 0.0, y], {v: data})
    assert kept.max() == data.max() == 1 and changed.min() == 5


def test_what_a_function_keeps_is_not_shared():
    state = np.zeros(4096, np.float32)

    def count():
        state[:] += 1
        return state

    y = tf.py_func(count, [], tf.float32)
    with tf.Session() as session:
        first = session.run(y)
        assert session.run(y)[0] == 2 and first[0] == 1


def test_large_values_pass_without_a_copy():
    seen = {}

    def make():
        made = np.ones(1 << 20, np.float32)
        seen["made"] = weakref.ref(made)
        return made

    def take(v):
        seen["held"], seen["input"] = seen["made"]() is not None, v.base is not None
        return np.float32(v[0])

    made = tf.py_func(make, [], tf.float32)
    with tf.control_dependencies([made]):
        taken = tf.py_func(take, [tf.sqrt(made)], tf.float32)
    run([taken, made])
    assert seen["held"]  # the tensor lives in the array's memory
    assert seen["input"]  # the array lives in the tensor's


def test_numpy_function_and_py_function():
    assert run(tf.numpy_function(np.cumsum, [tf.constant([1.0, 2.0])], tf.float32)).tolist() == [1, 3]
    made = tf.py_function(lambda v: v.numpy() * 2, [tf.constant([1.0, 2.0])], tf.float32)
    assert made.op.type == "EagerPyFunc" and run(made).tolist() == [2, 4]


# ---- how often it runs ----


def test_a_stateful_function_runs_once_a_step_and_a_stateless_one_may_be_shared():
    calls = []
    draw = lambda: (calls.append(1), np.float32(len(calls)))[1]
    a, b = tf.py_func(draw, [], tf.float32), tf.py_func(draw, [], tf.float32)
    with tf.Session() as session:
        assert sorted(session.run([a, b])) == [1, 2]
        assert session.run(a + a) == 6
    assert tf.py_func(draw, [], tf.float32, stateful=False).op.type == "PyFuncStateless"


def test_inside_conditionals_and_loops():
    seen = []
    note = lambda i: tf.py_func(lambda v: (seen.append(int(v)), v + np.int32(1))[1], [i], tf.int32)

    def body(i):
        n = note(i)
        n.set_shape([])
        return n

    flag = tf.placeholder(tf.bool)
    both = tf.cond(flag, lambda: note(tf.constant(100)), lambda: note(tf.constant(200)))
    with tf.Session() as session:
        assert session.run(tf.while_loop(lambda i: i < 5, body, [tf.constant(0)])) == 5
        assert seen == [0, 1, 2, 3, 4]
        assert session.run(both, {flag: False}) == 201 and seen[5:] == [200]


def test_functions_of_one_step_run_side_by_side():
    meet = threading.Barrier(2, timeout=20)
    wait = lambda: np.int32(meet.wait() >= 0)
    assert run(tf.py_func(wait, [], tf.int32) + tf.py_func(wait, [], tf.int32)) == 2


def test_a_function_may_run_steps():
    a = x()
    inner = tf.sqrt(a)
    with tf.Session() as session:
        outer = tf.py_func(lambda v: session.run(inner, {a: v + 1}), [a], tf.float32)
        deep = tf.py_func(lambda v: session.run(outer, {a: v}), [a], tf.float32)
        threads = [threading.Thread(target=lambda: [session.run(deep, {a: 3.0}) for _ in range(20)]) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert session.run(deep, {a: 8.0}) == 3


# ---- errors ----


class _Own(Exception):
    pass


def _raise(error):
    raise error


@pytest.mark.parametrize(
    "raised, wanted",
    [
        (ValueError("v"), tf.errors.InvalidArgumentError),
        (TypeError("t"), tf.errors.InvalidArgumentError),
        (StopIteration(), tf.errors.OutOfRangeError),
        (MemoryError("m"), tf.errors.ResourceExhaustedError),
        (NotImplementedError("n"), tf.errors.UnimplementedError),
        (KeyError("k"), tf.errors.UnknownError),
        (_Own("own"), tf.errors.UnknownError),
        (tf.errors.AbortedError(None, None, "a"), tf.errors.AbortedError),
    ],
    ids=lambda v: getattr(v, "__name__", type(v).__name__),
)
def test_what_a_function_raises(raised, wanted):
    with pytest.raises(wanted) as caught:
        run(tf.py_func(lambda: _raise(raised), [], tf.float32, name="load"))
    text = str(caught.value)
    assert "%s: " % type(raised).__name__ in text and "in _raise: raise error" in text and "test_py_func.py:" in text and "[[node load (PyFunc)" in text
    assert len(text.splitlines()) <= 12 and "script_ops" not in text
    assert caught.value.op.name == "load"


@pytest.mark.parametrize(
    "function, types, words",
    [
        (lambda: 1.0, tf.float32, ["0-th value", "is float64, but expects float32"]),
        (lambda: [np.float32(1), 2], [tf.float32, tf.float32], ["1-th value", "is int64, but expects float32"]),
        (lambda: [1, 2], tf.int64, ["returns 2 values, but expects to see 1 values"]),
        (lambda: None, tf.int64, ["returns 0 values, but expects to see 1 values"]),
        (lambda: 1, [], ["returns 1 values, but expects to see 0 values"]),
        (lambda: _TENSOR[0], tf.float32, ["returns the tensor 'c:0'", "must return arrays"]),
        (lambda: (np.ones(2), [[1], [1, 2]]), [tf.float64, tf.float64], ["inhomogeneous"]),
    ],
    ids=["python_float", "python_int", "two_for_one", "none", "one_for_none", "a_tensor", "ragged"],
)
def test_results_that_do_not_fit(function, types, words):
    _TENSOR[:] = [tf.constant(1.0, name="c")]
    made = tf.py_func(function, [], types, name="f")
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run(made)
    text = str(caught.value)
    for word in words + ["pyfunc_" if "inhom" not in words[0] else "ValueError", "[[node f (PyFunc)"]:
        assert word in text, text


_TENSOR = []


@pytest.mark.parametrize(
    "value, dtype, words",
    [
        (np.array([1, "a"], object), tf.string, "Unsupported object type int"),
        (np.array(["a", None], object), tf.string, "Unsupported object type NoneType"),
        ({"a": tf.float32}, tf.int64, "Unsupported object type dict"),
        (tf.no_op, tf.float32, "Unsupported object type function"),
        (np.array([], [("a", np.float32)]), tf.float32, "Unsupported numpy data type"),
        (np.datetime64("2020-01-01"), tf.int64, "Unsupported numpy data type datetime64"),
    ],
    ids=["number_among_strings", "none_among_strings", "dict", "function", "records", "date"],
)
def test_results_that_are_no_tensors(value, dtype, words):
    with pytest.raises(tf.errors.InternalError, match="0-th value returned by pyfunc_.*: " + words):
        run(tf.py_func(lambda: value, [], dtype))


def test_what_was_raised_stands_at_both_ends_of_its_traceback():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)^ValueError: blah.*Traceback.*in _raise.*\nValueError: blah"):
        run(tf.py_func(lambda: _raise(ValueError("blah")), [], []))


def test_the_cause_of_what_was_raised_is_told():
    def numbers():
        yield "ERROR"

    with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)TypeError: `generator` yielded.*caused by ValueError: invalid literal for"):
        run(tf.data.Dataset.from_generator(numbers, tf.int64).make_one_shot_iterator().get_next())


def test_a_token_that_nobody_registered():
    from millrace.ops import gen_ops

    with pytest.raises(tf.errors.InvalidArgumentError, match="callback nobody_7 is not found: node 'PyFunc'"):
        run(gen_ops.py_func(input=[], token="nobody_7", Tout=[tf.float32]))


def test_what_is_no_function():
    with pytest.raises(ValueError, match="callable"):
        tf.py_func(3, [], tf.float32)


def test_an_error_ends_the_step_while_another_function_waits():
    begin = time.monotonic()
    waits = tf.py_func(lambda: time.sleep(3), [], [])
    fails = tf.py_func(lambda: 1 / 0, [], [])
    with pytest.raises(tf.errors.UnknownError, match="ZeroDivisionError"):
        run([waits, fails])
    assert time.monotonic() - begin < 2


# ---- gradients ----


def test_it_has_no_gradient_by_itself():
    a = x()
    assert tf.gradients(tf.py_func(np.square, [a], tf.float32), a) == [None]


def test_the_gradient_that_programs_override():
    def py_func(function, inputs, types, gradient, name=None):
        key = "PyFuncGrad" + str(np.random.randint(0, 1 << 30))
        tf.RegisterGradient(key)(gradient)
        with tf.get_default_graph().gradient_override_map({"PyFunc": key}):
            return tf.py_func(function, inputs, types, stateful=True, name=name)

    a = tf.placeholder(tf.float32, [None])
    y = py_func(np.square, [a], [tf.float32], lambda op, grad: grad * 20.0 * op.inputs[0])[0]
    z = tf.reduce_sum(y * 3.0)
    values = run([z] + tf.gradients(z, a), {a: [1.0, 2.0]})
    assert values[0] == 15 and values[1].tolist() == [60, 120]


def test_a_gradient_that_is_a_function_too():
    @tf.RegisterGradient("SquareInPython")
    def _(op, grad):
        return tf.py_func(lambda v, g: 2 * v * g, [op.inputs[0], grad], tf.float32)

    a = tf.placeholder(tf.float32, [3])
    with tf.get_default_graph().gradient_override_map({"PyFuncStateless": "SquareInPython"}):
        y = tf.py_func(np.square, [a], tf.float32, stateful=False)
    assert run(tf.gradients(y, a)[0], {a: [1.0, 2.0, 3.0]}).tolist() == [2, 4, 6]


# ---- lives ----


def _graph_with_a_function(refers_back):
    graph = tf.Graph()
    with graph.as_default():
        data = np.zeros(10)
        function = lambda: np.float64(data.sum() if not refers_back else len(graph.get_operations()))
        y = tf.py_func(function, [], tf.float64)
        with tf.Session() as session:
            session.run(y)
    return weakref.ref(function), weakref.ref(graph), y.op.get_attr("token")


@pytest.mark.parametrize("refers_back", [False, True])
def test_a_function_goes_with_its_graph(refers_back):
    from millrace.ops import gen_ops

    from millrace.ops import script_ops

    gc.collect()
    before = script_ops._py_funcs.size()
    function, graph, token = _graph_with_a_function(refers_back)
    gc.collect()
    assert function() is None and graph() is None and script_ops._py_funcs.size() == before
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not found"):
        run(gen_ops.py_func(input=[], token=token, Tout=[tf.float64]))


def test_another_graph_may_call_it_while_the_first_one_lives():
    y = tf.py_func(lambda: np.float32(4), [], tf.float32, name="y")
    with tf.Graph().as_default() as other:
        tf.import_graph_def(y.graph.as_graph_def(), name="copy")
        assert tf.Session(graph=other).run("copy/y:0") == 4
