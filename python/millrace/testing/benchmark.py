# SPDX-License-Identifier: Apache-2.0
"""tf.test.Benchmark: programs that time operations."""

from __future__ import annotations

import inspect
import os
import re
import time
from typing import Any, Dict, List, Optional

import numpy as np

from millrace.framework.errors import at_user_line

TEST_REPORTER_TEST_ENV = "TEST_REPORT_FILE_PREFIX"  # where it is set, each report is written to a file of this prefix

GLOBAL_BENCHMARK_REGISTRY: "set[type]" = set()  # the subclasses that have benchmarks


class Benchmark:
    """Base of benchmarks: methods whose names start with benchmark are run by tf.test.main(["--benchmarks=..."])."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if not cls.is_abstract():
            GLOBAL_BENCHMARK_REGISTRY.add(cls)

    @classmethod
    def is_abstract(cls) -> bool:
        """Whether it only serves as a base."""
        return not any(n.startswith("benchmark") for n in dir(cls))

    def _get_name(self, overwrite_name: Optional[str]) -> str:
        """Class.method of the benchmark that runs, or Class.overwrite_name."""
        method = next((f.function for f in inspect.stack() if f.function.startswith("benchmark") and f.frame.f_locals.get("self") is self), None)
        return "%s.%s" % (type(self).__name__, overwrite_name or method or "benchmark")

    def report_benchmark(
        self,
        iters: Optional[int] = None,
        cpu_time: Optional[float] = None,
        wall_time: Optional[float] = None,
        throughput: Optional[float] = None,
        extras: Any = None,
        name: Optional[str] = None,
        metrics: Any = None,
    ) -> None:
        """Prints what a benchmark found, and writes a BenchmarkEntries message where TEST_REPORTER_TEST_ENV asks for it.

        metrics: dicts with "name" and "value" and, where they are to be within bounds, "min_value" and "max_value". TypeError for one that lacks a name
        or a value, or has more.
        """
        from millrace.protos.definitions import BenchmarkEntries  # type: ignore[attr-defined]

        entries = BenchmarkEntries()
        entry = entries.entry.add(name=self._get_name(name))
        for field, value in (("iters", iters), ("cpu_time", cpu_time), ("wall_time", wall_time), ("throughput", throughput)):
            if value is not None:
                setattr(entry, field, value)
        for key, value in (extras or {}).items():
            if isinstance(value, (int, float, np.number)):
                entry.extras[key].double_value = float(value)
            else:
                entry.extras[key].string_value = str(value)
        for metric in metrics or ():
            _add_metric(entry, metric)
        prefix = os.environ.get(TEST_REPORTER_TEST_ENV)
        if prefix:
            path = prefix + entry.name.replace("/", "__")
            if os.path.exists(path):
                raise OSError("File already exists: %s" % path)
            with open(path, "wb") as file:
                file.write(entries.SerializeToString())
        print(str(entries))


class TensorFlowBenchmark(Benchmark):
    """A Benchmark that times operations: tf.test.Benchmark."""

    def run_op_benchmark(
        self,
        sess: Any,
        op_or_tensor: Any,
        feed_dict: Any = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        store_trace: bool = False,
        store_memory_usage: bool = True,
        name: Optional[str] = None,
        extras: Any = None,
        mbs: float = 0,
    ) -> Dict[str, Any]:
        """Runs an operation some times; the times it took are reported and returned, with a trace and figures of memory if wanted."""
        for _ in range(burn_iters):
            sess.run(op_or_tensor, feed_dict)
        times = []
        for _ in range(min_iters):
            start = time.perf_counter()
            sess.run(op_or_tensor, feed_dict)
            times.append(time.perf_counter() - start)
        median = float(np.median(times))
        found = {**(extras or {}), **_traced(sess, op_or_tensor, feed_dict, store_trace, store_memory_usage), **_spread(times, median, mbs)}
        self.report_benchmark(iters=min_iters, wall_time=median, extras=found, name=name)
        return {"iters": min_iters, "wall_time": median, "extras": found, "name": self._get_name(name), "throughput": mbs / median}

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors."""
        from millrace.framework.default_session import get_default_session
        from millrace.framework.session import Session

        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with Session() as own:
            return own.run(tensors)


def benchmark_config() -> Any:
    """The ConfigProto of benchmarks: the order of nodes stays as it is stated."""
    from millrace.protos.definitions import ConfigProto, RewriterConfig  # type: ignore[attr-defined]

    config = ConfigProto()
    config.graph_options.rewrite_options.dependency_optimization = RewriterConfig.OFF
    return config


def _add_metric(entry: Any, metric: Dict[str, Any]) -> None:
    for field in ("name", "value"):
        if field not in metric:
            raise at_user_line(TypeError("a metric must have the field '%s', got %s" % (field, metric)))
    unknown = set(metric) - {"name", "value", "min_value", "max_value"}
    if unknown:
        raise at_user_line(TypeError("a metric has no fields %s" % sorted(unknown)))
    made = entry.metrics.add(name=metric["name"], value=metric["value"])
    for field, bound in ((made.min_value, metric.get("min_value")), (made.max_value, metric.get("max_value"))):
        if bound is not None:
            field.value = bound
            field.SetInParent()  # a bound of 0 is one, too


def _traced(sess: Any, op_or_tensor: Any, feed_dict: Any, trace: bool, memory: bool) -> Dict[str, Any]:
    """What a traced step adds to a report."""
    if not (trace or memory):
        return {}
    from millrace.protos.definitions import RunMetadata, RunOptions  # type: ignore[attr-defined]
    from millrace.timeline import Timeline

    metadata = RunMetadata()
    sess.run(op_or_tensor, feed_dict, options=RunOptions(trace_level=RunOptions.FULL_TRACE), run_metadata=metadata)
    analysis = Timeline(metadata.step_stats, sess.graph).analyze_step_stats(show_memory=False)
    made: Dict[str, Any] = {"full_trace_chrome_format": analysis.chrome_trace.format_to_string()} if trace else {}
    if memory:
        made.update(("allocator_maximum_num_bytes_" + allocator, most.num_bytes) for allocator, most in analysis.allocator_maximums.items())
    return made


def _spread(times: List[float], median: float, megabytes: float) -> Dict[str, float]:
    made = {"wall_time_mean": float(np.mean(times)), "wall_time_stdev": float(np.std(times)), "wall_time_min": min(times), "wall_time_max": max(times)}
    return {**made, "throughput_mb_s": megabytes / median} if megabytes else made


def run_benchmarks(pattern: str) -> None:
    """Runs the registered benchmarks whose names, module.Class.method, fit a regular expression."""
    fits = re.compile(".*" if pattern in ("all", ".") else pattern)
    for kind in sorted(GLOBAL_BENCHMARK_REGISTRY, key=lambda k: k.__name__):
        for method in sorted(n for n in dir(kind) if n.startswith("benchmark")):
            if fits.search("%s.%s.%s" % (kind.__module__, kind.__name__, method)):
                getattr(kind(), method)()


_run_benchmarks = run_benchmarks
