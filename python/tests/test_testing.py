# SPDX-License-Identifier: Apache-2.0
"""tf.test: sessions of test cases, comparisons, numeric gradients, graphs compared, stubs."""

import collections
import io
import os
import sys
import types
import unittest

import numpy as np
import pytest

import millrace as tf
from millrace.testing import googletest, gradient_checker_v2, graph_defs, layouts, messages, test_util


def outcome(body):
    """(failures, errors) of a test case whose test is a function."""
    case = type("Case", (tf.test.TestCase,), {"test_it": body})
    result = unittest.TestResult()
    case("test_it").run(result)
    return [f[1] for f in result.failures], [e[1] for e in result.errors]


def test_one_session_for_a_test():
    seen = []

    def body(self):
        with self.test_session() as first:
            v = tf.Variable(3.0)
            first.run(v.initializer)
        with self.test_session(use_gpu=True) as second:
            assert second is first and second.graph is tf.get_default_graph() and v.eval() == 3.0
            assert tf.constant(1.0).op.device == "" and self.evaluate(v) == 3.0
        assert self.evaluate([v, v.value()]) == [3.0, 3.0]  # outside of the session: the same one
        with self.session() as other:
            assert other is not first and tf.constant(1.0).op.device == "/device:CPU:0"
        with self.test_session(graph=tf.Graph()) as other:
            assert other is not first
        assert tf.get_default_graph().seed == 87654321 and self.get_temp_dir() == self.get_temp_dir()
        seen.append((first, self.get_temp_dir()))

    assert outcome(body) == ([], [])
    with pytest.raises(RuntimeError, match="closed"):
        seen[0][0].run(tf.no_op())
    assert os.path.isdir(seen[0][1])


def test_graphs_that_a_test_leaves_open_are_closed():
    def leaves(self):
        tf.Graph().as_default().__enter__()
        raise ValueError("as it happens")

    assert len(outcome(leaves)[1]) == 1
    assert outcome(lambda self: self.assertEqual(tf.get_default_graph().get_operations(), [])) == ([], [])


CLOSE = [
    (lambda t: t.assertAllClose([1.0, 2.0], [1.0, 2.0 + 1e-7]), True),
    (lambda t: t.assertAllClose([1.0, 2.0], [1.0, 2.1], atol=np.array([0.0, 0.2])), True),
    (lambda t: t.assertAllClose([1.0, 2.0], [1.1, 2.0], atol=np.array([0.0, 0.2])), False),
    (lambda t: t.assertAllClose({"a": [1.0], "b": ([2.0], [[1.0], [3.0]])}, {"a": [1.0], "b": ([2.0], [[1.0], [3.0]])}), True),
    (lambda t: t.assertAllClose([[1.0], [1.0, 2.0]], [[1.0], [1.0, 2.5]]), False),
    (lambda t: t.assertAllClose([1.0], [1.0, 1.0]), False),
    (lambda t: t.assertAllClose([np.nan, np.inf], [np.nan, np.inf]), True),
    (lambda t: t.assertAllClose([np.nan], [1.0]), False),
    (lambda t: t.assertAllEqual([np.nan, 1.0], [np.nan, 1.0]), True),
    (lambda t: t.assertAllEqual([b"a"], np.array([b"a"], object)), True),
    (lambda t: t.assertAllEqual([1, 2], [1, 3]), False),
    (lambda t: t.assertAllCloseAccordingToType(np.float16(1.0), np.float16(1.001)), True),
    (lambda t: t.assertAllCloseAccordingToType(np.float32(1.0), np.float32(1.001)), False),
    (lambda t: t.assertNotAllClose([1.0], [2.0]), True),
    (lambda t: t.assertNotAllEqual([1], [1]), False),
    (lambda t: t.assertAllInRange([0.0, 1.0], 0.0, 1.0), True),
    (lambda t: t.assertAllInRange([0.0, 1.0], 0.0, 1.0, open_upper_bound=True), False),
    (lambda t: t.assertAllInSet([1, 2], [1, 2, 3]), True),
    (lambda t: t.assertAllInSet([1, 4], [1, 2, 3]), False),
    (lambda t: t.assertAllGreater([1, 2], 0), True),
    (lambda t: t.assertAllLess([1, 2], 2), False),
    (lambda t: t.assertArrayNear([1.0, 2.0], [1.0, 2.01], 0.1), True),
    (lambda t: t.assertArrayNear([1.0], [1.0, 2.0], 0.1), False),
    (lambda t: t.assertDeviceEqual("/cpu:0", "/device:CPU:0"), True),
    (lambda t: t.assertDeviceEqual("/cpu:0", "/cpu:1"), False),
    (lambda t: t.assertShapeEqual(np.zeros((2, 3)), tf.zeros([2, 3])), True),
    (lambda t: t.assertShapeEqual(np.zeros(2), tf.zeros([3])), False),
    (lambda t: t.assertStartsWith("abc", "ab"), True),
    (lambda t: t.assertStartsWith("abc", "b"), False),
    (lambda t: t.assertProtoEquals("name: 'a' op: 'B'", tf.NodeDef(name="a", op="B")), True),
    (lambda t: t.assertProtoEquals("name: 'a' op: 'C'", tf.NodeDef(name="a", op="B")), False),
    (lambda t: t.assertProtoEquals("value: 0.0987604", tf.train.FloatList(value=[0.0987601])), True),  # to six decimals
    (lambda t: t.assertProtoEquals("value: 0.098761", tf.train.FloatList(value=[0.0987604])), False),
    (lambda t: t.assertProtoEqualsVersion("", tf.Graph().as_graph_def()), True),
]


@pytest.mark.parametrize("number", range(len(CLOSE)))
def test_comparisons(number, capsys):
    check, holds = CLOSE[number]
    failures, errors = outcome(check)
    assert errors == [] and (failures == []) == holds


def test_expected_errors():
    def fails(self):
        with self.test_session(), self.assertRaisesOpError("must be positive"):
            tf.Assert(False, ["must be positive"]).run()
        with self.assertRaisesWithPredicateMatch(ValueError, lambda e: "b" in str(e)):
            raise ValueError("abc")
        with tf.Graph().as_default() as graph:
            first = tf.Operation(tf.NodeDef(name="orig", op="NoOp"), graph)
            second = tf.Operation(tf.NodeDef(name="made", op="NoOp"), graph, original_op=first)
        for text in ("it failed", "Caused by: made", "Caused by: orig"):
            with self.assertRaisesOpError(text):
                raise tf.errors.UnauthenticatedError(None, second, "it failed")

    assert outcome(fails) == ([], [])
    for body in (lambda self: None, lambda self: [][0], lambda self: int("x")):

        def other(self):
            with self.assertRaisesWithPredicateMatch(ValueError, "nothing of this kind"):
                body(self)

        assert len(outcome(other)[0]) == 1


def test_threads_are_joined():
    def body(self):
        thread = self.checkedThread(target=lambda x: int(x), args=("no number",))
        thread.start()
        thread.join()

    assert "Error in checkedThread" in outcome(body)[0][0]
    assert "was not joined" in outcome(lambda self: self.checkedThread(target=int).start())[0][0]


def test_decorators():
    calls = []

    class Case(tf.test.TestCase):
        @test_util.run_in_graph_and_eager_modes()
        def test_one(self):
            calls.append(("one", float(self.evaluate(tf.constant(1.0) + 1.0))))

        @test_util.run_in_graph_and_eager_modes
        def test_two(self):
            calls.append(("two", tf.get_default_session() is not None))

        @test_util.skip_if(lambda: True)
        def test_three(self):
            calls.append("three")

        @test_util.run_deprecated_v1
        def test_four(self):
            calls.append("four")

        @test_util.run_gpu_only
        def test_five(self):
            calls.append("five")

    result = unittest.TestResult()
    unittest.TestLoader().loadTestsFromTestCase(test_util.with_c_api(Case)).run(result)
    assert result.wasSuccessful() and result.testsRun == 11 and len(result.skipped) == 2  # test_session counts as one
    assert sorted(map(str, calls)) == sorted(["('one', 2.0)", "('two', True)", "four"] * 2)


def test_writes_to_a_stream_are_captured(tmp_path):
    class Case(test_util.TensorFlowTestCase):
        def runTest(self):
            pass

    with open(tmp_path / "stream", "w+") as stream:
        stream.write("before ")
        with Case().captureWritesToStream(stream) as captured:
            stream.write("by Python ")
            assert captured.contents() == "by Python "
            os.write(stream.fileno(), b"below it")
        stream.write("after")
        stream.flush()
        assert captured.contents() == "by Python below it"
        stream.seek(0)
        assert stream.read() == "before after"


def test_threads_of_a_test_enter_no_scope_of_its_graph():
    class Case(test_util.TensorFlowTestCase):
        def runTest(self):
            graph = tf.get_default_graph()
            graph.switch_to_thread_local()
            with self.cached_session(), tf.device("/cpu:0"):
                two, devices = tf.constant(2), []
                thread = self.checkedThread(lambda: devices.append((self.evaluate(two), graph._device)))
                thread.start()
                thread.join()
                assert devices == [(2, tf.constant(1).device)]

    assert unittest.TextTestRunner(stream=io.StringIO()).run(Case()).wasSuccessful()


def test_gradients_by_differences():
    with tf.Graph().as_default(), tf.Session():
        x, z = tf.placeholder(tf.float64, [2, 2]), tf.placeholder(tf.complex128, [2])
        exact, measured = tf.test.compute_gradient(x, [2, 2], tf.matmul(x, x), [2, 2])
        assert exact.shape == (4, 4)
        np.testing.assert_allclose(exact, measured, atol=1e-8)
        exact, measured = tf.test.compute_gradient(z, [2], z * tf.conj(z) * z, [2])
        assert exact.shape == (4, 4)
        np.testing.assert_allclose(exact, measured, atol=1e-5)
        pairs = tf.test.compute_gradient(
            [x, z], [[2, 2], [2]], tf.reduce_sum(tf.square(x)) + tf.reduce_sum(tf.real(z)), [], delta=1e-4, extra_feed_dict={x: np.ones((2, 2)), z: np.ones(2)}
        )
        assert len(pairs) == 2 and [p[0].shape for p in pairs] == [(4, 1), (4, 1)]
        rows = tf.gather(tf.identity(x), [1, 1])
        assert tf.test.compute_gradient_error(x, [2, 2], rows, [2, 2], x_init_value=np.eye(2)) < 1e-8
        wrong = tf.stop_gradient(x) * x
        assert tf.test.compute_gradient_error(x, [2, 2], wrong, [2, 2], x_init_value=np.ones((2, 2))) == pytest.approx(1.0, abs=1e-6)
        empty = tf.placeholder(tf.float64, [0, 2])
        assert tf.test.compute_gradient_error(empty, [0, 2], empty * 2.0, [0, 2]) == 0.0


def test_gradients_by_differences_through_bfloat16():
    pytest.importorskip("ml_dtypes")
    with tf.Graph().as_default(), tf.Session():
        x = tf.constant([1.0, 2.0])
        y = tf.cast(x, tf.bfloat16) * 3
        found, measured = tf.test.compute_gradient(x, [2], y, [2], np.float32([1, 2]), 1 / 64)
        np.testing.assert_array_equal(found.astype(np.float32), [[3, 0], [0, 3]])
        np.testing.assert_allclose(measured.astype(np.float32), [[3, 0], [0, 3]], atol=0.5)


def test_graphs_compared():
    def graph(name, control=True):
        with tf.Graph().as_default() as made:
            a, b = tf.constant(1.0, name="a"), tf.constant(2.0, name="b")
            with tf.control_dependencies([a] if control else []):
                tf.identity(b, name=name)
        return made.as_graph_def()

    tf.test.assert_equal_graph_def(graph("c"), graph("c"))
    for other, text in [(graph("d"), "Did not find expected node '{{node d}} = Identity"), (graph("c", False), "has unexpected control input .\\^a")]:
        with pytest.raises(AssertionError, match=text):
            tf.test.assert_equal_graph_def(graph("c"), other)
    with pytest.raises(TypeError, match="Expected tf.GraphDef for actual, got Graph"):
        tf.test.assert_equal_graph_def(tf.Graph(), graph("c"))
    assert set(graph_defs.assert_ops_in_graph({"a": "Const"}, _imported(graph("c")))) == {"a"}
    with pytest.raises(ValueError, match="Not all expected ops"):
        graph_defs.assert_ops_in_graph({"z": "Const"}, tf.Graph())
    assert messages.normalize(tf.Summary(value=[{"simple_value": 0.1234567891}])).value[0].simple_value == pytest.approx(0.123457, abs=1e-9)


def _imported(graph_def):
    with tf.Graph().as_default() as made:
        tf.import_graph_def(graph_def, name="")
    return made


def test_orders_of_dimensions():
    shape = [2, 4, 6, 8]
    assert layouts.NHWCToNCHW(shape) == [2, 8, 4, 6] and layouts.NCHWToNHWC([2, 8, 4, 6]) == shape
    assert layouts.NHWCToNCHW_VECT_C(shape) == [2, 2, 4, 6, 4] and layouts.NCHW_VECT_CToNHWC([2, 2, 4, 6, 4]) == shape and shape[-1] == 8
    x = np.arange(2 * 4 * 6 * 8).reshape(shape)
    with tf.Graph().as_default(), tf.Session() as session:
        there = layouts.NHWCToNCHW_VECT_C(tf.constant(x))
        assert there.get_shape().as_list() == [2, 2, 4, 6, 4]
        assert (session.run(layouts.NCHW_VECT_CToNHWC(there)) == x).all()


def test_stubs():
    class Thing:
        value = 1

    class Other(Thing):
        pass

    thing = Thing()
    with googletest.StubOutForTesting() as stubs:
        stubs.Set(os.path, "exists", lambda path: True)
        stubs.Set(thing, "value", 2)
        stubs.SmartSet(Other, "value", 3)
        assert os.path.exists("/no/such/file") and thing.value == 2 and Thing.value == 3
        with pytest.raises(AttributeError):
            stubs.SmartSet(thing, "no_such_value", 1)
    assert not os.path.exists("/no/such/file") and thing.value == 1 and Thing.value == 1 and "value" not in vars(thing)


def test_jacobians_have_a_row_for_each_element_of_the_argument():
    """Numbers, shapes and refusals are those of TensorFlow 1.15.5."""
    with tf.Graph().as_default(), tf.Session():
        x, w = np.array([[1.0, 2.0]]), tf.constant([[3.0], [4.0]], tf.float64)
        by_gradient, by_differences = gradient_checker_v2.compute_gradient(tf.matmul, [x, w])
        np.testing.assert_allclose(by_gradient[0], [[3.0], [4.0]])
        np.testing.assert_allclose(by_gradient[1], [[1.0], [2.0]])
        assert gradient_checker_v2.max_error(by_gradient, by_differences) < 1e-9
        complex_pairs = gradient_checker_v2.compute_gradient(tf.square, [np.array([1 + 2j])])
        for jacobian, _ in zip(complex_pairs[0] + complex_pairs[1], range(2)):
            np.testing.assert_allclose(jacobian, [[2, 4], [-4, 2]], atol=1e-9)
        assert gradient_checker_v2.compute_gradient(lambda v: v * 2, [np.zeros((0, 2))])[0][0].shape == (0, 0)
        with pytest.raises(AssertionError, match="argument 0 is of type int64"):
            gradient_checker_v2.compute_gradient(tf.square, [np.array([1])])
        with pytest.raises(ValueError, match="does not depend"):
            gradient_checker_v2.compute_gradient(lambda v: tf.ones([2], tf.float64), [np.array([1.0])])
        with pytest.raises(ValueError, match="list or tuple"):
            gradient_checker_v2.compute_gradient(tf.square, np.array([1.0]))
    with pytest.raises(ValueError, match="session"):
        gradient_checker_v2.compute_gradient(tf.square, [np.array([1.0])])


def test_the_error_of_jacobians_hides_nothing():
    one, nan = np.array([[1.0]]), np.array([[np.nan]])
    for left, right in [([nan], [one]), ([one, nan], [one, one]), ([one, one], [one, nan])]:
        assert np.isnan(gradient_checker_v2.max_error(left, right))
    assert gradient_checker_v2.max_error([], []) == gradient_checker_v2.max_error([np.zeros((0, 2))], [np.zeros((0, 2))]) == 0
    for left, right in [([one], [one, one]), ([one], [np.ones((1, 2))])]:
        with pytest.raises(ValueError, match="same shapes"):
            gradient_checker_v2.max_error(left, right)


def test_a_wrong_gradient_is_seen():
    @tf.custom_gradient
    def wrong(v):
        return v * v, lambda dy: dy

    with tf.Graph().as_default(), tf.Session():
        assert gradient_checker_v2.max_error(*gradient_checker_v2.compute_gradient(wrong, [np.array([5.0])])) > 8


def test_ragged_tensors_are_compared_with_lists():
    def body(case):
        with case.test_session():
            ragged = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
            case.assertAllEqual(ragged, [[1, 2], [], [3]])
            case.assertAllEqual(ragged.eval(), ragged)
            case.assertAllEqual(tf.ragged.constant([[float("nan")], []]), [[float("nan")], []])
            case.assertAllEqual(tf.ragged.constant([["a"], []]), [[b"a"], []])
            case.assertAllClose(ragged, [[1, 2 + 1e-8], [], [3]])
            with pytest.raises(AssertionError, match=r"value\[0\]"):
                case.assertAllEqual(ragged, [[1, 4], [], [3]])
            for other in ([[1, 2], [7], [3]], [[1, 2.1], [], [3]], [[1, 2], [], 3], [[1, 2], []]):
                with pytest.raises((AssertionError, ValueError)):
                    case.assertAllClose(ragged, other)
            with pytest.raises(AssertionError):  # ranks
                case.assertAllEqual(tf.ragged.constant([[1]]), tf.ragged.constant([[[1]]]))
            case.assertAllEqual(tf.constant([1, 2]), [1, 2])  # tensors are run

    assert outcome(body) == ([], [])


def test_the_graph_that_a_test_builds_is_new(monkeypatch):
    parameterized = types.SimpleNamespace(named_parameters=lambda *modes: lambda method: (modes, method))
    package = types.ModuleType("absl")
    package.testing = types.SimpleNamespace(parameterized=parameterized)
    monkeypatch.setitem(sys.modules, "absl", package)
    monkeypatch.setitem(sys.modules, "absl.testing", package.testing)
    seen = []
    modes, method = test_util.build_as_function_and_v1_graph()(lambda self: seen.append(tf.get_default_graph()))
    assert modes == (("_v1_graph", "v1_graph"), ("_function", "function"))
    outer = tf.get_default_graph()
    method(None, "v1_graph")
    assert len(seen) == 1 and seen[0] is not outer and tf.get_default_graph() is outer
    with pytest.raises(unittest.SkipTest):
        method(unittest.TestCase(), "function")


def test_assertions_of_containers():
    case = tf.test.TestCase()
    case.assertLen([1, 2], 2)
    case.assertEmpty(())
    case.assertNotEmpty("a")
    case.assertSameElements([1, 1, 2], [2, 1])
    case.assertContainsSubset({1}, {1, 2})
    case.assertNoCommonElements([1], [2])
    case.assertSequenceAlmostEqual([1.0], [1.0 + 1e-9])
    case.assertContainsInOrder(["a", "c"], "abc")
    case.assertTotallyOrdered([1, 1.0], [2])
    case.assertEndsWith("abc", "bc")
    case.assertNotEndsWith("abc", "b")
    case.assertNotStartsWith("abc", "b")
    case.assertSequenceStartsWith([1, 2], (1, 2, 3))
    case.assertContainsSubsequence([1, 2, 3], [1, 3])
    case.assertContainsExactSubsequence([1, 2, 3], [2, 3])
    case.assertSameStructure({"a": [1]}, {"a": [1]})
    case.assertJsonEqual('{"a": 1, "b": 2}', '{"b": 2, "a": 1}')
    case.assertUrlEqual("http://h/p?a=1&b=2", "http://h/p?b=2&a=1")
    case.assertRaisesWithLiteralMatch(ValueError, "None values not supported.", tf.constant, None)
    for wrong in (
        lambda: case.assertLen([1], 2),
        lambda: case.assertEmpty([1]),
        lambda: case.assertNotEmpty([]),
        lambda: case.assertSameElements([1], [2]),
        lambda: case.assertContainsSubset({3}, {1}),
        lambda: case.assertNoCommonElements([1], [1]),
        lambda: case.assertSequenceAlmostEqual([1.0], [1.1]),
        lambda: case.assertContainsInOrder(["c", "a"], "abc"),
        lambda: case.assertTotallyOrdered([2], [1]),
        lambda: case.assertEndsWith("abc", "b"),
        lambda: case.assertNotEndsWith("abc", "c"),
        lambda: case.assertNotStartsWith("abc", "a"),
        lambda: case.assertSequenceStartsWith([2], [1, 2]),
        lambda: case.assertContainsSubsequence([1, 2, 3], [3, 1]),
        lambda: case.assertContainsExactSubsequence([1, 2, 3], [1, 3]),
        lambda: case.assertSameStructure([1], [2]),
        lambda: case.assertJsonEqual("[1]", "[2]"),
        lambda: case.assertUrlEqual("http://h/p?a=1", "http://h/p?a=2"),
        lambda: case.assertRegexMatch("abc", ["d", "e"]),
        lambda: case.assertRaisesWithLiteralMatch(ValueError, "Others.", tf.constant, None),
        lambda: case.assertRaisesWithLiteralMatch(ValueError, "x", list),
    ):
        with pytest.raises(AssertionError):
            wrong()


def test_combinations_have_names():
    made = test_util.generate_combinations_with_testcase_name(b=[1, 2.5], a="x")
    assert [dict(m) for m in made] == [{"a": "x", "b": 1, "testcase_name": "_test_a_x_b_1"}, {"a": "x", "b": 2.5, "testcase_name": "_test_a_x_b_25"}]


def test_what_differs_is_told():
    class T(tf.test.TestCase):
        def runTest(self):
            pass

    t = T()
    for call, message in (
        (lambda: t.assertAllClose([0.0, 1.0], [0.0, 2.0]), r"not close dif = \[1\.\]"),
        (lambda: t.assertAllClose({"y": (2, [{"n": 4.0}])}, {"y": (2, [{"n": 4.2}])}), r"a\[y\]\[1\]\[0\]\[n\] is different from b"),
        (lambda: t.assertAllEqual([1, 2], [1, 3]), r"not equal lhs = \[2\]"),
    ):
        with pytest.raises(AssertionError, match=message):
            call()
    Pair = collections.namedtuple("Pair", ["a", "b"])
    t.assertAllClose({"a": 1, "b": (2.0, 3.0)}, Pair(1, (2.0, 3.0)))
    with t.cached_session():
        t.assertAllClose([tf.constant([1.0]), {"k": tf.constant(2.0)}], [[1.0], {"k": 2.0}])
        with pytest.raises(ValueError, match="The graph used to get the cached session is different"):
            with t.cached_session(graph=tf.Graph()):
                pass


def test_test_session_is_the_cached_one_whatever_is_asked_for():
    class Case(tf.test.TestCase):
        def test(self):
            other = tf.ConfigProto(device_count={"CPU": 3})
            with self.test_session() as session, self.test_session(config=other) as same:
                assert session is same
            with self.assertRaises(ValueError), self.cached_session(config=other):
                pass

    Case("test").debug()
