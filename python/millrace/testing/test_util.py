# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tensorflow.python.framework.test_util: test cases, decorators of tests, what a test may ask of the machine.

There are graphs alone: decorators for graphs and eager execution run a test once, in a graph.
"""

from __future__ import annotations

import collections
import functools
import gc
import itertools
import socket
from typing import Any, Callable, List

from millrace.framework.graph import Graph, get_default_graph
from millrace.framework.graph import device as _device
from millrace.ops import control_flow_util, control_flow_v2
from millrace.testing.graph_defs import assert_equal_graph_def, assert_meta_graph_protos_equal, assert_ops_in_graph  # noqa: F401
from millrace.testing.layouts import NCHW_VECT_CToNHWC, NCHWToNHWC, NHWCToNCHW, NHWCToNCHW_VECT_C  # noqa: F401
from millrace.testing.test_case import CheckedThread, TestCase  # noqa: F401

TensorFlowTestCase = TestCase


def create_local_cluster(num_workers: int, num_ps: int, protocol: str = "grpc", worker_config: Any = None, ps_config: Any = None) -> Any:
    """Starts the servers of jobs "worker" and "ps" in this process; (workers, ps)."""
    from millrace.train.server import Server

    jobs = {job: ["localhost:%d" % _unused_port() for _ in range(n)] for job, n in (("worker", num_workers), ("ps", num_ps)) if n}
    made = {
        job: [Server(jobs, job_name=job, task_index=i, protocol=protocol, config=config) for i in range(len(jobs.get(job, ())))]
        for job, config in (("worker", worker_config), ("ps", ps_config))
    }
    return made["worker"], made["ps"]


def _unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


# ---- the machine ----


def gpu_device_name() -> str:
    """The name of a GPU; empty when there is none."""
    return next((d.name for d in _local_devices() if d.device_type == "GPU"), "")


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether there is a GPU. That it should be one of CUDA, or of some capability, can only be said of one that is there."""
    del cuda_only, min_cuda_compute_capability  # there is none to ask
    return bool(gpu_device_name())


def _local_devices() -> Any:
    from millrace import device_lib

    return device_lib.list_local_devices()


def IsGoogleCudaEnabled() -> bool:
    """Whether GPUs are supported."""
    return bool(gpu_device_name())


def CudaSupportsHalfMatMulAndConv() -> bool:
    """Whether a GPU multiplies float16."""
    return bool(gpu_device_name())


GpuSupportsHalfMatMulAndConv = is_built_with_cuda = CudaSupportsHalfMatMulAndConv


def IsMklEnabled() -> bool:
    """Whether TensorFlow's MKL kernels are used: never."""
    return False


def is_xla_enabled() -> bool:
    """Whether graphs go through XLA, which there is not."""
    return False


def InstallStackTraceHandler() -> None:
    """Python says where a signal has ended it."""
    import faulthandler

    faulthandler.enable()


def device(use_gpu: bool) -> Any:
    """A context in which operations are placed on a GPU, if that is asked for and there is one."""
    return _device("/device:GPU:0" if use_gpu and is_gpu_available() else "/device:CPU:0")


def use_gpu() -> Any:
    """A context in which operations are placed on a GPU if there is one."""
    return device(True)


def force_gpu() -> Any:
    """A context in which operations are placed on a GPU."""
    return _device("/device:GPU:0")


def force_cpu() -> Any:
    """A context in which operations are placed on the CPU."""
    return _device("/device:CPU:0")


# ---- decorators ----


def skip_if(condition: Any) -> Callable[..., Any]:
    """Decorator: the function does nothing when a condition, or what a function says, is true."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not (condition() if callable(condition) else condition):
                return function(*args, **kwargs)
            return None

        return call

    return decorate


def _in_new_graph(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with Graph().as_default():
            return function(*args, **kwargs)

    return call


enable_c_api = disable_c_api = _in_new_graph  # there is only the C API


def c_api_and_cuda_enabled() -> bool:
    """Whether GPUs are supported: the C API is always used."""
    return IsGoogleCudaEnabled()


def with_c_api(cls: Any) -> Any:
    """Decorator: each test of the class is there a second time under a name that ends in WithCApi."""
    for name, value in list(vars(cls).items()):
        if callable(value) and name.startswith("test"):
            setattr(cls, name + "WithCApi", enable_c_api(value))
    return cls


def run_in_graph_and_eager_modes(
    func: Any = None,
    graph: Any = None,
    config: Any = None,
    use_gpu: bool = True,
    force_gpu: bool = False,
    reset_test: bool = True,
    assert_no_eager_garbage: bool = False,
) -> Any:
    """Decorator, with or without arguments: runs a test in a session of its own. The run that TensorFlow adds without a graph is left out."""
    del reset_test, assert_no_eager_garbage  # these are about the second run

    def decorate(function: Callable[..., Any]) -> Any:
        if isinstance(function, type):
            raise ValueError("`run_in_graph_and_eager_modes` only supports test methods. Did you mean to use `run_all_in_graph_and_eager_modes`?")

        @functools.wraps(function)
        def call(self: Any, *args: Any, **kwargs: Any) -> None:
            with self.test_session(graph=graph, config=config, use_gpu=use_gpu, force_gpu=force_gpu):
                function(self, *args, **kwargs)

        return call

    return decorate if func is None else decorate(func)


def for_all_test_methods(decorator: Any, *args: Any, **kwargs: Any) -> Any:
    """A decorator of classes that applies one of functions to each test."""

    def decorate(cls: Any) -> Any:
        for name in dir(cls):
            value = getattr(cls, name)
            if callable(value) and name.startswith("test") and name != "test_session":
                setattr(cls, name, decorator(*args, **kwargs)(value))
        return cls

    return decorate


def run_all_in_graph_and_eager_modes(cls: Any) -> Any:
    """run_in_graph_and_eager_modes of each test of a class."""
    return for_all_test_methods(run_in_graph_and_eager_modes)(cls)


def _as_it_is(func: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator, with or without arguments, of what only concerns other modes of TensorFlow."""
    return func if callable(func) else lambda function: function


run_v1_only = run_deprecated_v1 = deprecated_graph_mode_only = run_all_in_deprecated_graph_mode_only = _as_it_is
with_control_flow_v2 = with_forward_compatibility_horizons = disable_xla = disable_all_xla = _as_it_is
enable_tf_xla_constant_folding = xla_allow_fallback = assert_no_new_pyobjects_executing_eagerly = _as_it_is
run_all_without_tensor_float_32 = run_without_tensor_float_32 = disable_control_flow_v2 = assert_no_garbage_created = _as_it_is
enable_output_all_intermediates = disable_cudnn_autotune = use_deterministic_cudnn = enable_c_shapes = with_c_shapes = no_xla_auto_jit = _as_it_is


def enable_control_flow_v2(function: Any) -> Any:
    """Decorator: tf.cond and tf.while_loop are one operation each, which calls functions, while the function runs."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = control_flow_v2.control_flow_v2_enabled()
        control_flow_v2.enable_control_flow_v2()
        try:
            return function(*args, **kwargs)
        finally:
            control_flow_util.ENABLE_CONTROL_FLOW_V2 = before

    return call


def _skipped(reason: str) -> Callable[..., Any]:
    def decorate(func: Any = None, *unused: Any) -> Any:
        if not callable(func):
            return decorate

        @functools.wraps(func)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_gpu_available():
                self.skipTest(reason)
            return func(self, *args, **kwargs)

        return call

    return decorate


run_gpu_only = run_cuda_only = _skipped("Test requires GPU")
also_run_as_tf_function = _skipped("Test requires eager execution")


def run_v2_only(func: Any) -> Any:
    """Decorator: the test is for TensorFlow 2 and is skipped."""

    @functools.wraps(func)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        self.skipTest("Test is only compatible with v2")

    return call


def build_as_function_and_v1_graph(func: Any = None) -> Any:
    """Decorator, with or without a call: a test that looks at the graph which it builds, in a new one. Its variant in a function is skipped.

    It is for classes that derive from parameterized.TestCase of absl, as in TensorFlow, which make the two variants of it.
    """
    if func is None:
        return build_as_function_and_v1_graph
    if isinstance(func, type):
        raise ValueError("`build_as_function_and_v1_graph` only supports test methods.")
    from absl.testing import parameterized

    @functools.wraps(func)
    def call(self: Any, run_mode: str, *args: Any, **kwargs: Any) -> None:
        if run_mode == "function":
            self.skipTest("tf.function is not provided")
        _in_new_graph(func)(self, *args, **kwargs)

    return parameterized.named_parameters(("_v1_graph", "v1_graph"), ("_function", "function"))(call)


def assert_no_new_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: fails a test that leaves tensors or graphs behind."""

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        from millrace.framework.graph import Tensor

        def kept() -> int:
            gc.collect()
            return sum(isinstance(thing, (Tensor, Graph)) for thing in gc.get_objects())

        with Graph().as_default():
            before = kept()
            result = function(self, *args, **kwargs)
        get_default_graph()
        left = kept() - before
        if left > 0:
            raise AssertionError("%d Tensors not deallocated after test, or graphs" % left)
        return result

    return call


def generate_combinations_with_testcase_name(**kwargs: Any) -> List[Any]:
    """Parameters for named_parameters: each choice of one value an argument, with the name that says it."""
    names = sorted(kwargs)
    choices = [kwargs[name] if isinstance(kwargs[name], list) else [kwargs[name]] for name in names]

    def letters(value: Any) -> str:
        return "".join(c for c in str(value) if c.isalnum())

    made = []
    for values in itertools.product(*choices):
        chosen = collections.OrderedDict(zip(names, values))
        chosen["testcase_name"] = "_test" + "".join("_%s_%s" % (letters(name), letters(value)) for name, value in zip(names, values))
        made.append(chosen)
    return made


def get_node_def_from_graph(node_name: str, graph_def: Any) -> Any:
    """The first node of that name in a GraphDef, functions left out; None where there is none."""
    return next((node for node in graph_def.node if node.name == node_name), None)


def set_producer_version(graph: Any, producer_version: int) -> None:
    """Sets the version of what has made a graph, which is empty yet."""
    from millrace.framework.importer import import_graph_def
    from millrace.protos import definitions

    graph_def = definitions.GraphDef()
    graph_def.versions.producer = producer_version
    with graph.as_default():
        import_graph_def(graph_def)
    if graph.graph_def_versions.producer != producer_version:
        raise NotImplementedError("tf.test: a graph that an older version has made is not provided.")
