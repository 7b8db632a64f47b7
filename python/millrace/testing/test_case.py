# SPDX-License-Identifier: Apache-2.0
"""tf.test.TestCase: a graph, a session and a folder for each test, and comparisons of arrays and messages."""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import tempfile
import threading
import unittest
from typing import Any, Callable, Iterator, List, Optional, Tuple

import numpy as np

import millrace._core as _core
from millrace.framework import device as _device
from millrace.framework import errors, numpy_cast, random_seed
from millrace.framework import graph as _graph
from millrace.framework import default_session as _default_session
from millrace.framework import session as _session
from millrace.framework.graph_elements import Tensor
from millrace.ops.ragged.tensor import RaggedTensor, is_ragged
from millrace.ops.ragged.value import RaggedTensorValue
from millrace.protos import definitions, text_format
from millrace.testing import messages
from millrace.testing.assertions import Assertions
from millrace.testing.googletest import GetTempDir

_FORCED_DEVICE = "/device:GPU:0"


def _array(value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    try:
        return np.array(value)
    except NotImplementedError:  # tensors, which are compared as they are
        made = np.empty(len(value), object)
        for i, one in enumerate(value):
            made[i] = one
        return made


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _differences(how: str, a: np.ndarray, b: np.ndarray, off: Any, more: List[Tuple[str, np.ndarray]]) -> str:
    """Where arrays are not equal, or not close, and what they hold there."""
    rows = [("where", np.where(off) if a.ndim else ()), *((what, values[off] if a.ndim else values) for what, values in [("lhs", a), ("rhs", b), *more])]
    return "\n".join(["not %s %s = %s" % (how, what, values) for what, values in rows] + ["dtype = %s, shape = %s" % (a.dtype, a.shape)])


class CheckedThread:
    """A thread of a test: an exception in it fails the test when it is joined."""

    def __init__(self, testcase: "TestCase", target: Callable[..., Any], args: Any = None, kwargs: Any = None) -> None:
        self._testcase, self._target, self._args, self._kwargs = testcase, target, args or (), kwargs or {}
        self._thread = threading.Thread(target=self._run)
        self._exception: Optional[Exception] = None
        self._joined = False

    def _run(self) -> None:
        try:
            self._target(*self._args, **self._kwargs)
        except Exception as error:
            self._exception = error

    def start(self) -> None:
        """Starts it."""
        self._thread.start()

    def join(self) -> None:
        """Waits for its end."""
        self._joined = True
        self._thread.join()
        if self._exception is not None:
            self._testcase.fail("Error in checkedThread: %s" % self._exception)

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """Fails unless it was joined and has ended."""
        if not self._joined:
            self._testcase.fail("A checked thread was not joined.")
        elif self.is_alive():
            raise RuntimeError("Thread was not joined with main thread, and is still running when the test finished.")


class _Writes:
    """What has been written to a stream while a file is in its place; after that, all that was."""

    def __init__(self, stream: Any, file: Any) -> None:
        self._stream, self._file, self._last = stream, file, b""

    def contents(self) -> str:
        """The text."""
        if not self._file.closed:
            self._stream.flush()
            size = os.fstat(self._file.fileno()).st_size
            self._last = os.pread(self._file.fileno(), size, 0)  # the writers' place stays where it is
        return self._last.decode("utf-8", "replace")


class TestCase(Assertions):
    """A test case. Each test starts with an empty default graph whose seed is fixed."""

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self._threads: List[CheckedThread] = []
        self._tempdir: Optional[str] = None
        self._cached_session: Any = None

    def setUp(self) -> None:
        """An empty graph and fixed seeds; contexts that a failed test has left open are ended."""
        self._close_session()
        random.seed(random_seed.DEFAULT_GRAPH_SEED)
        np.random.seed(random_seed.DEFAULT_GRAPH_SEED)
        while _core.stack_depth():
            _core.pop_graph()
        _default_session.sessions.stack.clear()
        _graph.reset_default_graph()
        random_seed.set_random_seed(random_seed.DEFAULT_GRAPH_SEED)

    def tearDown(self) -> None:
        """Closes the session that the test has used."""
        for thread in self._threads:
            thread.check_termination()
        self._close_session()

    def _close_session(self) -> None:
        if self._cached_session is not None:
            self._cached_session.close()
            self._cached_session = None

    _ClearCachedSession = _close_session

    def get_temp_dir(self) -> str:
        """A folder that is this test's own, the same each time that the test asks."""
        if self._tempdir is None:
            self._tempdir = tempfile.mkdtemp(dir=GetTempDir())
        return self._tempdir

    # ---- sessions ----

    def session(self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False) -> Any:
        """A context with a new session, which is closed at its end. Operations made in it are for the CPU unless GPUs are asked for."""
        return self._new_session(graph, config, use_gpu, force_gpu)

    @contextlib.contextmanager
    def cached_session(self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False) -> Iterator[Any]:
        """A context with the test's own session: the same one each time. ValueError where another one is asked for."""
        asked = (graph, config, force_gpu)
        if self._cached_session is None:
            self._cached_session, self._cached_for = _session.Session(graph=graph, config=_config(config, force_gpu)), asked
        for what, now, first in zip(("graph", "config", "force_gpu"), asked, self._cached_for):
            if now is not first and now != first:
                raise ValueError(
                    "The %s used to get the cached session is different than the one that was used to create the session. Maybe create a new session with "
                    "self.session()" % what
                )
        session = self._cached_session
        with session.graph.as_default(), session.as_default(), _placed(session.graph, use_gpu, force_gpu):
            yield session

    @contextlib.contextmanager
    def test_session(self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False) -> Iterator[Any]:
        """cached_session, even where another configuration is asked for, or a new session for a graph that is given."""
        if self.id().endswith(".test_session"):
            self.skipTest("Not a test.")
        if graph is not None:
            with self._new_session(graph, config, use_gpu, force_gpu) as session:
                yield session
            return
        if self._cached_session is not None:
            config, force_gpu = self._cached_for[1:]  # it is as it was made, whatever is asked for
        with self.cached_session(None if self._cached_session is None else self._cached_for[0], config, use_gpu, force_gpu) as session:
            yield session

    @contextlib.contextmanager
    def _new_session(self, graph: Any, config: Any, use_gpu: bool, force_gpu: bool) -> Iterator[Any]:
        with _session.Session(graph=graph, config=_config(config, force_gpu)) as session:
            with _placed(session.graph, use_gpu, force_gpu):
                yield session

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors, by the default session or the test's own."""
        session = _default_session.get_default_session()
        if session is None:
            session = self._cached_session  # in a thread of the test: it enters no scope of the graph, which others may be in
        if session is not None:
            return session.run(tensors)
        with self.cached_session() as own:
            return own.run(tensors)

    @contextlib.contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[Any]:
        """A context with what is written to the file behind a stream within it, by the library too: its contents() are a text."""
        stream.flush()
        descriptor = stream.fileno()
        kept = os.dup(descriptor)
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), descriptor)
            writes = _Writes(stream, file)
            try:
                yield writes
            finally:
                writes.contents()  # are kept when the file is gone
                os.dup2(kept, descriptor)
                os.close(kept)

    def checkedThread(self, target: Callable[..., Any], args: Any = None, kwargs: Any = None) -> CheckedThread:
        """A thread whose failure fails the test. It has to be joined."""
        made = CheckedThread(self, target, args, kwargs)
        self._threads.append(made)
        return made

    # ---- numbers ----

    def assertNear(self, f1: Any, f2: Any, err: float, msg: Any = None) -> None:
        """Fails unless numbers differ by at most err."""
        self.assertTrue(f1 == f2 or math.fabs(f1 - f2) <= err, "%f != %f +/- %f%s" % (f1, f2, err, "" if msg is None else " (%s)" % msg))

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: Any = None) -> None:
        """Fails unless lists have as many numbers, which differ by at most err."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2):
            self.assertNear(float(f1), float(f2), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: Any = None) -> None:
        """Fails unless the norm of the difference is below err."""
        self.assertTrue(self._NDArrayNear(ndarray1, ndarray2, err), msg)

    def _NDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float) -> bool:
        return bool(np.linalg.norm(ndarray1 - ndarray2) < err)

    def _GetNdArray(self, a: Any) -> np.ndarray:
        return _array(self.evaluate(a) if isinstance(a, Tensor) else a)

    def _same_shape(self, a: Any, b: Any, msg: Any) -> Any:
        a, b = self._GetNdArray(a), self._GetNdArray(b)
        self.assertEqual(a.shape, b.shape, "Shape mismatch: expected %s, got %s.%s" % (a.shape, b.shape, "" if msg is None else " %s" % (msg,)))
        return a, b

    def _listed(self, a: Any) -> Any:
        """The nested lists of a ragged tensor or value, a tensor, an array, or lists of such."""
        if isinstance(a, (list, tuple)):
            return [self._listed(one) for one in a]
        if isinstance(a, (RaggedTensor, Tensor)):
            a = self.evaluate(a)
        if isinstance(a, RaggedTensorValue):
            return a.to_list()
        return a.tolist() if isinstance(a, (np.ndarray, np.generic)) else a

    def _same_ragged(self, a: Any, b: Any, msg: Any, compare: Any) -> None:
        """Compares the leaves where the rows are as long as each other."""
        if all(isinstance(one, (RaggedTensor, Tensor)) and one.shape.ndims is not None for one in (a, b)):
            self.assertEqual(a.shape.ndims, b.shape.ndims, msg)

        def same(one: Any, other: Any, where: str) -> None:
            if isinstance(one, list) and isinstance(other, list):
                self.assertEqual(len(one), len(other), "rows of %s: expected %s, got %s. %s" % (where, one, other, msg or ""))
                if not any(isinstance(v, list) for v in [*one, *other]):
                    compare(one, other, "%s %s" % (where, msg or ""))
                    return
                for i, (left, right) in enumerate(zip(one, other)):
                    same(left, right, "%s[%d]" % (where, i))
            else:
                compare(one, other, "%s %s" % (where, msg or ""))

        same(self._listed(a), self._listed(b), "value")

    def _close_arrays(self, a: Any, b: Any, rtol: Any, atol: Any, msg: Any) -> None:
        a, b = (numpy_cast.widened(v) for v in self._same_shape(a, b, msg))
        if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
            off = np.logical_or(np.abs(a - b) > atol + rtol * np.abs(b), np.isnan(a) != np.isnan(b))
            found = _differences("close", a, b, off, [("dif", np.abs(a - b)), ("tol", np.broadcast_to(atol + rtol * np.abs(b), a.shape))])
            with np.errstate(invalid="ignore"):
                self._fail_as_numpy(
                    lambda: np.testing.assert_allclose(a, b, rtol=np.max(rtol), atol=np.max(atol), err_msg="%s\n%s" % (msg or "", found)),
                    "Not equal to tolerance rtol=%s, atol=%s %s\n%s" % (rtol, atol, msg or "", found),
                )

    def _fail_as_numpy(self, check: Callable[[], None], otherwise: str) -> None:
        check()
        self.fail(otherwise)

    def assertAllClose(self, a: Any, b: Any, rtol: Any = 1e-6, atol: Any = 1e-6, msg: Any = None) -> None:
        """Fails unless |a - b| <= atol + rtol |b|, of arrays, tensors, ragged ones, and lists, dicts and named tuples of them. The tolerances may be
        arrays."""
        if is_ragged(a) or is_ragged(b):
            self._same_ragged(a, b, msg, lambda one, other, msg: self._close_arrays(one, other, rtol, atol, msg))
        else:
            self._close(a, b, rtol, atol, msg, "")

    def _close(self, a: Any, b: Any, rtol: Any, atol: Any, msg: Any, path: str) -> None:
        """assertAllClose of what lies at a path of two structures."""
        msg = msg or ""
        a, b = (value._asdict() if hasattr(value, "_asdict") and (isinstance(a, dict) or isinstance(b, dict)) else value for value in (a, b))
        if isinstance(a, dict) != isinstance(b, dict):
            raise ValueError("Can't compare dict to non-dict, a%s vs b%s. %s" % (path, path, msg))
        if isinstance(a, dict):
            self.assertCountEqual(a.keys(), b.keys(), "mismatched keys: a%s has keys %s, but b%s has keys %s. %s" % (path, a.keys(), path, b.keys(), msg))
            for key in a:
                self._close(a[key], b[key], rtol, atol, msg, "%s[%s]" % (path, key))
        elif _is_sequence(a) and _is_sequence(b) and not self._is_array_like(a, b):
            self.assertEqual(len(a), len(b), "Mismatched length: a%s has %d items, but b%s has %d items. %s" % (path, len(a), path, len(b), msg))
            for i, (one, other) in enumerate(zip(a, b)):
                self._close(one, other, rtol, atol, msg, "%s[%d]" % (path, i))
        else:
            self._close_arrays(a, b, rtol, atol, "Mismatched value: a%s is different from b%s. %s" % (path, path, msg) if path else msg or None)

    @staticmethod
    def _is_array_like(*values: Any) -> bool:
        try:
            return all(np.array(v).dtype != object for v in values)
        except (ValueError, NotImplementedError):  # parts of different shapes, or tensors
            return False

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: Any = 1e-6,
        atol: Any = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: Any = None,
    ) -> None:
        """assertAllClose with wider tolerances for narrower types."""
        a, b = self._GetNdArray(a), self._GetNdArray(b)
        for names, relative, absolute in (
            (("float32", "complex64"), float_rtol, float_atol),
            (("float16",), half_rtol, half_atol),
            (("bfloat16",), bfloat16_rtol, bfloat16_atol),
        ):
            if a.dtype.name in names or b.dtype.name in names:
                rtol, atol = max(rtol, relative), max(atol, absolute)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(self, a: Any, b: Any, **kwargs: Any) -> None:
        """Fails if assertAllClose does not."""
        try:
            self.assertAllClose(a, b, **kwargs)
        except AssertionError:
            return
        raise AssertionError("The two values are close at all elements. %s" % kwargs.get("msg", ""))

    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Fails unless arrays are equal; NaN equals NaN. Ragged tensors are compared with others and with nested lists."""
        if is_ragged(a) or is_ragged(b):
            self._same_ragged(a, b, msg, self.assertAllEqual)
            return
        a, b = (numpy_cast.widened(v) for v in self._same_shape(a, b, msg))
        same = a == b
        if a.dtype.kind in "fc" and b.dtype.kind in "fc":
            same = np.logical_or(same, np.logical_and(np.isnan(a), np.isnan(b)))
        if not np.all(same):
            text = "%s\n%s" % (msg or "", _differences("equal", a, b, np.logical_not(same), []))
            self._fail_as_numpy(lambda: np.testing.assert_array_equal(a, b, err_msg=text), "Arrays are not equal: %s and %s %s" % (a, b, text))

    def assertNotAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Fails if arrays are equal."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise AssertionError("The two values are equal at all elements. %s" % (msg or ""))

    def _all_elements(self, a: Any, holds: Any, what: str) -> None:
        a = self._GetNdArray(a)
        if not np.all(holds(a)):
            self.fail("Some elements are not %s: %s" % (what, a[np.logical_not(holds(a))]))

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Fails unless every element is greater."""
        self._all_elements(a, lambda x: x > comparison_target, "> %s" % (comparison_target,))

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Fails unless every element is greater or equal."""
        self._all_elements(a, lambda x: x >= comparison_target, ">= %s" % (comparison_target,))

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Fails unless every element is less."""
        self._all_elements(a, lambda x: x < comparison_target, "< %s" % (comparison_target,))

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Fails unless every element is less or equal."""
        self._all_elements(a, lambda x: x <= comparison_target, "<= %s" % (comparison_target,))

    def assertAllInRange(self, target: Any, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False, open_upper_bound: bool = False) -> None:
        """Fails unless every element is within bounds, which count as inside unless open."""
        array = self._GetNdArray(target)
        if array.dtype.kind not in "fiu":
            raise AssertionError("The value of %s does not have an ordered numeric type, instead it has type: %s" % (target, array.dtype))
        below = array <= lower_bound if open_lower_bound else array < lower_bound
        above = array >= upper_bound if open_upper_bound else array > upper_bound
        outside = np.logical_or(np.logical_or(below, above), np.isnan(array) if array.dtype.kind == "f" else False)
        if np.any(outside):
            raise AssertionError(
                "Element(s) are not in the range %s%s, %s%s: %s"
                % ("(" if open_lower_bound else "[", lower_bound, upper_bound, ")" if open_upper_bound else "]", array[outside])
            )

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Fails unless every element is one of a set."""
        others = np.setdiff1d(self._GetNdArray(target), list(expected_set))
        if np.size(others):
            raise AssertionError("%d unique element(s) are not in the set %s: %s" % (np.size(others), expected_set, others))

    def assertBetween(self, value: Any, minv: Any, maxv: Any, msg: Any = None) -> None:
        """Fails unless minv <= value <= maxv."""
        self.assertTrue(minv <= value <= maxv, msg or "%r is not between %r and %r" % (value, minv, maxv))

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: Any = None) -> None:
        """Fails unless the shape of a tensor is that of an array."""
        if not isinstance(np_array, (np.ndarray, np.generic)):
            raise TypeError("np_array must be a Numpy ndarray or Numpy scalar")
        if not isinstance(tf_tensor, _graph.Tensor):
            raise TypeError("tf_tensor must be a Tensor")
        self.assertAllEqual(np_array.shape, tf_tensor.get_shape().as_list(), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Fails unless the elements are of a type."""
        actual = target.dtype if hasattr(target, "dtype") else self._GetNdArray(target).dtype
        self.assertEqual(np.dtype(getattr(actual, "as_numpy_dtype", actual)), np.dtype(getattr(expected_dtype, "as_numpy_dtype", expected_dtype)))

    # ---- others ----

    def assertStartsWith(self, actual: str, expected_start: str, msg: Any = None) -> None:
        """Fails unless a text begins with another."""
        if not actual.startswith(expected_start):
            self.fail("%r does not start with %r%s" % (actual, expected_start, " : %r" % (msg,) if msg else ""))

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: Any = None) -> None:
        """Fails unless two names mean the same device."""
        one, other = _device.canonical_name(device1), _device.canonical_name(device2)
        self.assertEqual(one, other, "Devices %s and %s are not equal. %s" % (one, other, msg or ""))

    def _AssertProtoEquals(self, a: Any, b: Any, msg: Any = None) -> None:
        if not messages.equal(a, b):
            messages.assert_equal(self, a, b, normalize_numbers=True, msg=msg)

    def assertProtoEquals(self, expected_message_maybe_ascii: Any, message: Any, msg: Any = None) -> None:
        """Fails unless a message is the expected one, which may be given as text."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, str):
            expected = type(message)()
            text_format.Merge(expected_message_maybe_ascii, expected)
        elif not isinstance(expected, type(message)):
            self.fail("Can't compare protos of type %s and %s. %s" % (type(expected), type(message), msg or ""))
        self._AssertProtoEquals(expected, message, msg)

    def assertProtoEqualsVersion(self, expected: str, actual: Any, producer: Optional[int] = None, min_consumer: int = 0, msg: Any = None) -> None:
        """assertProtoEquals of a GraphDef, given as text without its versions."""
        from millrace import GRAPH_DEF_VERSION

        number = GRAPH_DEF_VERSION if producer is None else producer
        self.assertProtoEquals("versions { producer: %d min_consumer: %d };\n%s" % (number, min_consumer, expected), actual, msg)

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(self, exception_type: Any, expected_err_re_or_predicate: Any) -> Iterator[None]:
        """A context that fails unless it raises an exception that a function accepts, or whose text has a regular expression in it."""
        expected = expected_err_re_or_predicate
        accepts = expected if callable(expected) else lambda error: re.search(expected, _text_of(error))
        try:
            yield
        except Exception as error:
            if not isinstance(error, exception_type) or not accepts(error):
                raise AssertionError("Exception of type %s: %s" % (type(error), error)) from error
        else:
            self.fail(exception_type.__name__ + " not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """A context that fails unless a step fails, with a text."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)

    assertRaisesRegexp = unittest.TestCase.assertRaisesRegex


def _text_of(error: BaseException) -> str:
    if not isinstance(error, errors.OpError):
        return str(error)
    text, op = error.message, error.op
    while op is not None:  # and the operations on whose behalf it was made
        text, op = "%s\nCaused by: %s" % (text, op.name), op._original_op
    return text


def _config(config: Any, force_gpu: bool) -> Any:
    """How sessions of tests run: nothing is rewritten, so that each kernel is run."""
    made = definitions.ConfigProto()
    if config is None:
        made.allow_soft_placement = not force_gpu
    else:
        made.CopyFrom(config)
        made.allow_soft_placement = made.allow_soft_placement and not force_gpu
    made.graph_options.optimizer_options.opt_level = definitions.OptimizerOptions.L0
    made.graph_options.rewrite_options.constant_folding = definitions.RewriterConfig.OFF
    made.graph_options.rewrite_options.arithmetic_optimization = definitions.RewriterConfig.OFF
    return made


def _placed(graph: Any, use_gpu: bool, force_gpu: bool) -> Any:
    if force_gpu:
        return graph.device(_FORCED_DEVICE)
    return contextlib.nullcontext() if use_gpu else graph.device("/cpu:0")
