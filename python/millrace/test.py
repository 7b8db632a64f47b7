# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.test: test cases. python/millrace/testing holds what it is made of."""

from typing import List
from unittest import mock  # noqa: F401

from millrace.framework import missing as _missing
from millrace.framework import not_provided as _not_provided
from millrace.testing.benchmark import TensorFlowBenchmark as Benchmark, benchmark_config  # noqa: F401
from millrace.testing.googletest import GetTempDir as get_temp_dir  # noqa: F401
from millrace.testing.googletest import StubOutForTesting, main, test_src_dir_path  # noqa: F401
from millrace.testing.gradient_checker import compute_gradient, compute_gradient_error  # noqa: F401
from millrace.testing.test_case import TestCase  # noqa: F401
from millrace.testing.test_util import (  # noqa: F401
    assert_equal_graph_def,
    create_local_cluster,
    gpu_device_name,
    is_built_with_cuda,
    is_gpu_available,
)

assert_equal_graph_def_v1 = assert_equal_graph_def


def is_built_with_rocm() -> bool:
    """Whether AMD's GPUs are supported."""
    return False


def is_built_with_xla() -> bool:
    """Whether XLA is there."""
    return False


is_built_with_gpu_support = is_built_with_cuda

__getattr__ = _not_provided.getter("test")


def __dir__() -> List[str]:
    return _missing.there(globals())
