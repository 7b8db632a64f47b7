# SPDX-License-Identifier: Apache-2.0
"""tf.test.Benchmark: programs that time operations."""
from __future__ import annotations

import re
import sys
import time
from typing import Any, Dict, Optional

import numpy as np


class Benchmark:
    """Base of benchmarks: methods whose names start with benchmark are run by tf.test.main(["--benchmarks=..."])."""

    def run_op_benchmark(self, sess: Any, op_or_tensor: Any, feed_dict: Any = None, burn_iters: int = 2, min_iters: int = 10, store_trace: bool = False,
                         store_memory_usage: bool = True, name: Optional[str] = None, extras: Any = None, mbs: float = 0) -> Dict[str, Any]:
        """Runs an operation some times; the times it took are reported and returned. Traces and memory are not recorded."""
        del store_memory_usage  # TensorFlow adds figures of its allocators
        if store_trace:
            raise NotImplementedError("tf.test.Benchmark.run_op_benchmark(store_trace=True) is not provided yet: use tf.RunMetadata.")
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
        from millrace.framework.session import Session, get_default_session
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with Session() as own:
            return own.run(tensors)


def _spread(times: Any, median: float, megabytes: float) -> Dict[str, float]:
    made = {"wall_time_mean": float(np.mean(times)), "wall_time_stdev": float(np.std(times)), "wall_time_min": min(times), "wall_time_max": max(times)}
    return {**made, "throughput_mb_s": megabytes / median} if megabytes else made


def run_benchmarks(pattern: str) -> None:
    """Runs the benchmarks of the program whose names, Class.method, fit a pattern."""
    module = sys.modules["__main__"]
    for kind in [k for k in vars(module).values() if isinstance(k, type) and issubclass(k, Benchmark) and not k.is_abstract()]:
        for method in sorted(n for n in dir(kind) if n.startswith("benchmark")):
            if pattern in ("all", ".") or re.search(pattern, "%s.%s" % (kind.__name__, method)):
                getattr(kind(), method)()
