# SPDX-License-Identifier: Apache-2.0
"""tf.test: test cases."""
from __future__ import annotations

import contextlib
import re
import sys
import tempfile
import time
import unittest
from typing import Any, Dict, Iterator, Optional

import numpy as np


class TestCase(unittest.TestCase):
    """A test case with a session and comparisons of arrays."""

    def setUp(self) -> None:
        """Starts with an empty graph."""
        import millrace as tf
        tf.reset_default_graph()

    @contextlib.contextmanager
    def test_session(self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False) -> Iterator[Any]:
        """A session as a context."""
        import millrace as tf
        with tf.Session(graph=graph, config=config) as session:
            yield session

    session = cached_session = test_session
    assertItemsEqual = unittest.TestCase.assertCountEqual  # noqa: N815 - Python 2's name

    def get_temp_dir(self) -> str:
        """A folder for this test."""
        return tempfile.mkdtemp()

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors."""
        import millrace as tf
        session = tf.get_default_session()
        return session.run(tensors) if session else tf.Session().run(tensors)

    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:  # noqa: N802
        """Fails unless arrays are equal."""
        np.testing.assert_array_equal(a, b, err_msg=str(msg or ""))

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None) -> None:  # noqa: N802
        """Fails unless arrays are nearly equal."""
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=str(msg or ""))

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float) -> None:  # noqa: N802
        """Fails unless elements differ by at most err."""
        np.testing.assert_allclose(farray1, farray2, rtol=0, atol=err)

    def assertNear(self, f1: Any, f2: Any, err: float, msg: Any = None) -> None:  # noqa: N802
        """Fails unless numbers differ by at most err."""
        self.assertTrue(abs(f1 - f2) <= err, msg)

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any) -> None:  # noqa: N802
        """Fails unless shapes are equal."""
        self.assertEqual(list(np_array.shape), tf_tensor.get_shape().as_list())

    def assertProtoEquals(self, expected_message_maybe_ascii: Any, message: Any) -> None:  # noqa: N802
        """Fails unless a message is the expected one, which may be given as text."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, (str, bytes)):
            from millrace.protos import text_format
            expected = text_format.Parse(expected, type(message)())
        self.assertEqual(str(expected), str(message))

    def assertRaisesOpError(self, expected: str) -> Any:  # noqa: N802
        """Fails unless a step fails with a message."""
        import millrace as tf
        return self.assertRaisesRegex(tf.errors.OpError, expected)


class Benchmark:
    """Base of benchmarks: methods whose names start with benchmark are run by tf.test.main(["--benchmarks=..."])."""

    def run_op_benchmark(self, sess: Any, op_or_tensor: Any, feed_dict: Any = None, burn_iters: int = 2, min_iters: int = 10, store_trace: bool = False,
                         store_memory_usage: bool = True, name: Optional[str] = None, extras: Any = None, mbs: float = 0) -> Dict[str, Any]:
        """Runs an operation some times; the times it took are reported and returned."""
        for _ in range(burn_iters):
            sess.run(op_or_tensor, feed_dict)
        times = []
        for _ in range(min_iters):
            start = time.perf_counter()
            sess.run(op_or_tensor, feed_dict)
            times.append(time.perf_counter() - start)
        median = float(np.median(times))
        made: Dict[str, Any] = {"iters": min_iters, "wall_time": median, "extras": {**(extras or {}), **_spread(times, median, mbs)}, "name": name}
        self.report_benchmark(iters=min_iters, wall_time=median, extras=made["extras"], name=name)
        made["throughput"] = mbs / median
        return made

    def report_benchmark(self, iters: Optional[int] = None, cpu_time: Optional[float] = None, wall_time: Optional[float] = None,
                         throughput: Optional[float] = None, extras: Any = None, name: Optional[str] = None) -> None:
        """Prints what a benchmark found."""
        fields = {"name": name or type(self).__name__, "iters": iters, "cpu_time": cpu_time, "wall_time": wall_time, "throughput": throughput, **(extras or {})}
        print("entry {%s}" % ", ".join("%s: %s" % item for item in fields.items() if item[1] is not None))

    @classmethod
    def is_abstract(cls) -> bool:
        """Whether it only serves as a base."""
        return not any(n.startswith("benchmark") for n in dir(cls))

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors."""
        import millrace as tf
        session = tf.get_default_session() or tf.Session()
        return session.run(tensors)


def _spread(times: Any, median: float, megabytes: float) -> Dict[str, float]:
    made = {"wall_time_mean": float(np.mean(times)), "wall_time_stdev": float(np.std(times)), "wall_time_min": min(times), "wall_time_max": max(times)}
    return {**made, "throughput_mb_s": megabytes / median} if megabytes else made


def _run_benchmarks(pattern: str) -> None:
    """Runs the benchmarks of the program whose names, Class.method, fit a pattern."""
    module = sys.modules["__main__"]
    for kind in [k for k in vars(module).values() if isinstance(k, type) and issubclass(k, Benchmark) and not k.is_abstract()]:
        for method in sorted(n for n in dir(kind) if n.startswith("benchmark")):
            if pattern in ("all", ".") or re.search(pattern, "%s.%s" % (kind.__name__, method)):
                getattr(kind(), method)()


def main(argv: Any = None) -> None:
    """Runs the tests of the program; with --benchmarks=PATTERN its benchmarks."""
    from millrace import flags
    for argument in sys.argv if argv is None else argv:
        if argument.startswith("--benchmarks="):
            _run_benchmarks(argument.partition("=")[2])
            return
    unittest.main(module="__main__", argv=flags.FLAGS(sys.argv if argv is None else argv))


def gpu_device_name() -> str:
    """The name of a GPU; empty when there is none."""
    return ""


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether there is a GPU."""
    return False


def is_built_with_cuda() -> bool:
    """Whether GPUs are supported."""
    return False


def get_temp_dir() -> str:
    """A folder for tests."""
    return tempfile.gettempdir()


def compute_gradient_error(x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None, delta: float = 1e-3, **unused: Any) -> float:
    """The largest difference of the gradient from differences of values."""
    import millrace as tf
    session: Any = tf.get_default_session()
    start = np.asarray(x_init_value if x_init_value is not None else np.random.RandomState(0).random_sample(x_shape)).astype(x.dtype.as_numpy_dtype)
    flat = tf.reshape(y, [-1])
    worst = 0.0
    for i in range(int(np.prod(y_shape, dtype=np.int64))):
        exact = session.run(tf.convert_to_tensor(tf.gradients(flat[i], x)[0]), {x: start})
        for k in np.ndindex(*start.shape):
            up, down = start.copy(), start.copy()
            up[k] += delta
            down[k] -= delta
            wanted = (session.run(flat[i], {x: up}) - session.run(flat[i], {x: down})) / (2 * delta)
            worst = max(worst, abs(wanted - exact[k]))
    return float(worst)
