# SPDX-License-Identifier: Apache-2.0
"""Runs: structures of fetches, kinds of feeds, values in and out."""

import collections
import gc
import threading

import numpy as np
import pytest

import millrace as tf


def run(fetches, feed_dict=None):
    with tf.Session() as session:
        return session.run(fetches, feed_dict)


def test_fetches_keep_their_structure():
    a, b = tf.constant(1.0), tf.constant([2, 3])
    Pair = collections.namedtuple("Pair", ["x", "y"])
    value = run({"one": a, "more": [b, (a, Pair(a, b))], "op": a.op, "name": "Const:0", "none": []})
    assert value["one"] == 1 and isinstance(value["one"], np.float32)
    np.testing.assert_array_equal(value["more"][0], [2, 3])
    assert isinstance(value["more"][1][1], Pair) and value["more"][1][1].x == 1
    assert value["op"] is None and value["name"] == 1 and value["none"] == []
    assert run(collections.defaultdict(list, one=a)) == {"one": 1}
    assert list(run(collections.OrderedDict([("z", a), ("a", a)]))) == ["z", "a"]


def test_feeds_by_tensor_name_tuple_and_sparse():
    x, y = tf.placeholder("float", [None, 2]), tf.placeholder(tf.int32)
    assert run(tf.reduce_sum(x), {x: [[1, 2]]}) == 3
    assert run(tf.reduce_sum(x), {"Placeholder:0": np.ones((3, 2))}) == 6
    assert run([tf.reduce_sum(x), y], {(x, y): (np.ones((1, 2)), 5)}) == [2, 5]
    s = tf.sparse_placeholder(tf.float32)
    value = run(s, {s: tf.SparseTensorValue(np.array([[0, 1]]), np.array([2.0], np.float32), np.array([1, 2]))})
    assert value.values[0] == 2 and list(value.dense_shape) == [1, 2]
    inner = tf.add(1, 2)
    assert run(inner * 2, {inner: 10}) == 20
    assert run([inner, x], {inner: 7, x: np.zeros((1, 2))})[0] == 7


def test_a_tuple_of_one_is_fed_by_a_value():
    place = tf.placeholder(tf.float32, [1, 2])
    with tf.Session() as session:
        for value in (np.array([[1.0, 2.0]]), (np.array([[1.0, 2.0]]),)):
            assert session.run(place, {(place,): value}).tolist() == [[1, 2]]


def test_wrong_feeds_say_what_is_wrong():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with pytest.raises(ValueError, match=r"Cannot feed value of shape \(2, 2\) for Tensor 'x:0', which has shape '\(\?, 3\)'"):
        run(x + 1, {x: np.zeros((2, 2))})
    with pytest.raises(TypeError, match="cannot be a tf.Tensor"):
        run(x + 1, {x: x})
    with pytest.raises(TypeError, match="Cannot interpret feed_dict key"):
        run(x + 1, {"nothing:0": 1})
    with pytest.raises(ValueError):
        run(tf.constant("a"), {tf.constant(1): "word"})
    session = tf.Session()
    session.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(x, {x: np.zeros((1, 3))})


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.bool_, np.complex64, np.complex128]
)
def test_values_of_every_type_go_round(dtype):
    value = np.array([[0, 1], [1, 0]]).astype(dtype)
    x = tf.placeholder(dtype)
    out = run(tf.identity(x), {x: value})
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, value)
    np.testing.assert_array_equal(run(tf.identity(x), {x: value.T[::-1]}), value.T[::-1])
    assert run(tf.constant(value)).dtype == dtype


def test_strings():
    x = tf.placeholder(tf.string)
    out = run(tf.identity(x), {x: ["a", b"b\0", "\u00e4" * 30]})
    assert list(out) == [b"a", b"b\0", ("\u00e4" * 30).encode()]
    assert run(tf.constant("word")) == b"word"
    assert run(x, {x: np.array([["u", "v"]])}).shape == (1, 2)


def test_large_arrays_are_not_copied_and_not_shared_with_variables():
    big = np.arange(1 << 20, dtype=np.float32)
    x = tf.placeholder(tf.float32, [1 << 20])
    v = tf.Variable(tf.zeros([1 << 20]))
    assign = tf.assign(v, x)
    with tf.Session() as session:
        session.run(assign.op, {x: big})
        held = session.run(v)
        big[:] = -1
        np.testing.assert_array_equal(session.run(v)[:3], [0, 1, 2])
        held[:] = 7
        np.testing.assert_array_equal(session.run(v)[:3], [0, 1, 2])


def test_fed_arrays_are_let_go():
    x = tf.placeholder(tf.float32)
    y = x * 2
    with tf.Session() as session:
        import sys

        value = np.ones(1 << 16, np.float32)
        session.run(y, {x: value})
        before = sys.getrefcount(value)
        for _ in range(50):
            session.run(y, {x: value})
        session.run(y, {x: 1.0})
        gc.collect()
        assert sys.getrefcount(value) <= before + 1


def test_callable_and_partial_run():
    a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    c = a * 2
    d = c + b
    with tf.Session() as session:
        call = session.make_callable([c, d], [a, b])
        assert call(1, 2) == [2, 4]
        handle = session.partial_run_setup([c, d], [a, b])
        assert session.partial_run(handle, c, {a: 3}) == 6
        assert session.partial_run(handle, d, {b: 1}) == 7


def test_default_sessions_nest_and_interactive_ones_stay():
    x = tf.constant(3)
    with tf.Session():
        assert x.eval() == 3
    with pytest.raises(ValueError, match="Cannot evaluate tensor using `eval\\(\\)`: No default session is registered"):
        x.eval()
    with pytest.raises(ValueError, match="Cannot execute operation using `run\\(\\)`: No default session is registered"):
        x.op.run()
    with tf.Graph().as_default(), tf.Session() as other:
        with pytest.raises(ValueError, match="Cannot use the default session to evaluate tensor: .*Pass an explicit session to `eval"):
            x.eval()
        with pytest.raises(ValueError, match="Cannot use the given session to execute operation: the operation's graph is different"):
            x.op.run(session=other)
    session = tf.InteractiveSession()
    assert tf.get_default_session() is session and x.eval() == 3
    session.close()
    assert tf.get_default_session() is None


def test_threads_run_at_the_same_time():
    x = tf.placeholder(tf.float32)
    y = tf.reduce_sum(x * x)
    with tf.Session() as session:
        wrong = []

        def work(n):
            for i in range(200):
                if session.run(y, {x: np.full(10, i + n, np.float32)}) != 10 * (i + n) ** 2:
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not wrong


def test_graphs_are_collected():
    import weakref

    refs = []
    for _ in range(5):
        graph = tf.Graph()
        with graph.as_default():
            x = tf.placeholder(tf.float32, [2])
            y = tf.reduce_sum(x * 2)
            with tf.Session() as session:
                session.run(y, {x: [1, 2]})
        refs.append(weakref.ref(graph))
    del graph, x, y, session
    gc.collect()
    assert [r() for r in refs] == [None] * 5


def test_a_device_that_is_not_there():
    with tf.Graph().as_default(), tf.device("/gpu:0"):
        a = tf.placeholder(tf.float32, [], name="a")
        b = tf.multiply(a, a, name="b")
        with tf.Session() as sess:
            assert sess.run(a, {a: 2.0}) == 2.0
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"Cannot assign a device for node 'b' .*: no device matches '/device:GPU:0'"):
                sess.run(b, {a: 2.0})
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
            assert sess.run(b, {a: 2.0}) == 4.0


def test_reset_closes_sessions_and_drops_their_variables():
    v = tf.Variable(6.0)
    session = tf.Session()
    session.run(v.initializer)
    tf.Session.reset("", ["no_such_container"])
    with pytest.raises(tf.errors.CancelledError):
        session.run(v)
    tf.Session.reset(None)
    with tf.Session() as other:
        with pytest.raises(tf.errors.FailedPreconditionError):
            other.run(v)
    with pytest.raises((tf.errors.DeadlineExceededError, tf.errors.UnavailableError), match="localhost:1"):
        tf.Session.reset("grpc://localhost:1", config=tf.ConfigProto(operation_timeout_in_ms=300))
    with pytest.raises(TypeError):
        tf.Session.reset("", "a string")


def test_explain_tells_stages_partitions_and_places():
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.identity(x * x + x * x, name="y")
    loop = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0], name="count")
    with tf.Session() as session:
        text = session.explain([y, loop], [x])
        assert session.run(y, {x: 3.0}) == 18
    for part in (
        "merge_common_subexpressions",
        "order_updates",
        "partition on /job:localhost",
        "is the loop 'count",
        " nodes are on /job:localhost/replica:0/task:0/device:CPU:0, the only device of the step",
        ": 1 segments, the longest of ",
    ):
        assert part in text, text
    assert "0.00 MB" not in text and "y (Identity) is on" not in text and text.count("\n") < 45, text
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        with tf.device("/cpu:1"):
            z = tf.identity(y, name="z")
        text = session.explain([y, z], [x])
        assert "z (Identity) is on /job:localhost/replica:0/task:0/device:CPU:1: asked for" in text and "y (Identity) is on" in text, text
    with pytest.raises(tf.errors.InvalidArgumentError, match="fed twice"), tf.Session() as session:
        session.explain(y, [x, x])


def test_stages_are_switched_off_by_name(monkeypatch):
    monkeypatch.setenv("MILLRACE_SWITCHED_OFF_STAGES", "fold_constants,collapse_loops")
    with tf.Session() as session:
        lines = session.explain(tf.constant(1) + 2).splitlines()
    off = [line.split()[0] for line in lines if " off " in line]
    assert off == ["fold_constants", "collapse_loops"]
    monkeypatch.setenv("MILLRACE_SWITCHED_OFF_STAGES", "place")
    with pytest.raises(tf.errors.InvalidArgumentError, match="'place' is no stage of compilation that can be switched off"):
        tf.Session()


def test_mistakes_in_a_partial_run_are_said_as_tensorflow_says_them():
    with tf.Graph().as_default(), tf.Session() as session:
        a, b, c = (tf.placeholder(tf.float32, []) for _ in range(3))
        total, product = a + b, a * c
        for fetch, feeds, text in (
            (total, {a: 1, b: 1, c: 1}, "feed .* was not specified in partial_run_setup.$"),
            (a * 2, {a: 1}, "fetch .* was not specified in partial_run_setup.$"),
        ):
            handle = session.partial_run_setup([total, product], [a, b])
            with pytest.raises(tf.errors.InvalidArgumentError, match=text):
                session.partial_run(handle, fetch, feeds)
        handle = session.partial_run_setup([total, product], [a, b, c])
        assert session.partial_run(handle, total, {a: 1, b: 2}) == 3.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="has already been fed.$"):
            session.partial_run(handle, product, {a: 1, c: 1})
        with pytest.raises(tf.errors.InvalidArgumentError, match="at least one target"):
            session.partial_run_setup([], [a])


def test_a_session_is_entered_once_and_a_type_is_registered_once():
    class Squared:
        def __init__(self, tensor):
            self.tensor = tensor * tensor

    with tf.Graph().as_default():
        session = tf.Session()
        with pytest.raises(RuntimeError, match="graph is empty"):
            session.run([])
        with pytest.raises(RuntimeError, match="not re-entrant"):
            with session:
                with session:
                    pass
        given = (Squared, lambda s: ([s.tensor], lambda v: v[0]), lambda s, value: [(s.tensor, value)], lambda s: [s.tensor])
        tf.register_session_run_conversion_functions(*given)
        with pytest.raises(ValueError, match="already been registered"):
            tf.register_session_run_conversion_functions(*given)
        squared = Squared(tf.constant(3.0))
        twice = squared.tensor * 2.0
        with tf.Session() as session:
            assert session.run(squared) == 9.0 and session.run(twice, {squared: 5.0}) == 10.0
            handle = session.partial_run_setup([twice], [squared])
            assert session.partial_run(handle, twice, {squared: 4.0}) == 8.0


def test_targets_that_are_none():
    with pytest.raises(tf.errors.NotFoundError, match="No session factory"):
        tf.Session("nowhere")
    with pytest.raises(tf.errors.InvalidArgumentError, match="localhost"):
        tf.Session("grpc://localhost")  # without a port
    with tf.Session("grpc://localhost:1", config=tf.ConfigProto(operation_timeout_in_ms=300)) as session:
        with pytest.raises((tf.errors.DeadlineExceededError, tf.errors.UnavailableError), match="localhost:1"):
            session.run(tf.constant(1))


def test_default_sessions_are_left_in_order():
    with tf.Graph().as_default():
        outer, inner = tf.Session().as_default(), tf.Session().as_default()
        outer.__enter__(), inner.__enter__()
        with pytest.raises(AssertionError, match="Nesting violated"):
            outer.__exit__(None, None, None)
        inner.__exit__(None, None, None)
        outer.__exit__(None, None, None)
        assert tf.get_default_session() is None


def test_numbers_too_large_for_what_they_are_fed_to():
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(TypeError, match="is not compatible with Tensor type"):
            session.run(tf.constant(1.0), {tf.constant(1): 2**63 - 1})


def test_numbers_fed_to_strings():
    with tf.Session() as session:
        text = tf.placeholder(tf.string)
        with pytest.raises(TypeError, match="Type of feed value 1 with type <class 'int'> is not compatible with Tensor type string, made at "):
            session.run(text, {text: 1})


def test_shapes_in_the_graph_def_where_they_are_asked_for():
    with tf.Graph().as_default():
        tf.constant([[1, 2]], name=b"bytes")
        session = tf.Session(config=tf.ConfigProto(graph_options=tf.GraphOptions(infer_shapes=True)))
        assert session.graph_def.node[0].name == "bytes" and "_output_shapes" in session.graph_def.node[0].attr
        assert "_output_shapes" not in tf.Session().graph_def.node[0].attr


def test_queues_live_in_the_container_of_their_scope():
    with tf.Graph().as_default(), tf.container("place"):
        assert tf.FIFOQueue(1, tf.float32).queue_ref.op.get_attr("container") == b"place"
        assert tf.Variable(1.0).op.get_attr("container") == b"place"


def test_a_test_case_may_begin_within_a_session():
    """setUp leaves all default graphs, as TensorFlow's does; the fixture of a library that holds a session around it ends well."""

    class Case(tf.test.TestCase):
        def test(self):
            pass

    with tf.Graph().as_default(), tf.Session(), tf.name_scope("a"):
        Case("test").setUp()
    with tf.Session() as sess:
        assert sess.run(tf.constant(1)) == 1
