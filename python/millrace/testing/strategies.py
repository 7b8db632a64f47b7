# SPDX-License-Identifier: Apache-2.0
"""Strategies and optimizers by the names that tests combine, as tensorflow.python.distribute.strategy_combinations has them. What needs GPUs, TPUs or
several processors says so, and tests of it are skipped or fail with what is not provided."""

from __future__ import annotations

from typing import Any, Dict, List

from millrace import config
from millrace.framework.errors import at_user_line
from millrace.framework.strategy import CentralStorageStrategy, MirroredStrategy, OneDeviceStrategy, _get_default_strategy
from millrace.keras import optimizers as keras_optimizers
from millrace.testing.combinations import NamedDistribution, NamedObject, combine
from millrace.train import AdagradOptimizer, AdamOptimizer, GradientDescentOptimizer, RMSPropOptimizer


def _no_tpu() -> Any:
    raise at_user_line(NotImplementedError("TPUStrategy is not provided: there are no TPUs."))


def set_virtual_cpus_to_at_least(num_virtual_cpus: int) -> None:
    """Has the sessions that are made from now on have so many devices for this machine's processors. RuntimeError where others have been made with fewer."""
    if num_virtual_cpus < 1:
        raise at_user_line(ValueError("`num_virtual_cpus` must be at least 1 not %r." % (num_virtual_cpus,)))
    cpu = config.list_physical_devices("CPU")[0]
    made = config.get_virtual_device_configuration(cpu) or []
    if len(made) <= 1:
        config.set_virtual_device_configuration(cpu, [config.VirtualDeviceConfiguration() for _ in range(num_virtual_cpus)])
    elif len(made) < num_virtual_cpus:
        raise at_user_line(RuntimeError("Already configured with %d < %d virtual CPUs" % (len(made), num_virtual_cpus)))


_Named = NamedDistribution
_WORKER = "/job:worker/replica:0/task:1/device:"

default_strategy = _Named("Default", _get_default_strategy)
one_device_strategy = _Named("OneDeviceCPU", lambda: OneDeviceStrategy("/cpu:0"))
one_device_strategy_gpu = _Named("OneDeviceGPU", lambda: OneDeviceStrategy("/gpu:0"), 1)
one_device_strategy_on_worker_1 = _Named("OneDeviceOnWorker1CPU", lambda: OneDeviceStrategy(_WORKER + "CPU:0"))
one_device_strategy_gpu_on_worker_1 = _Named("OneDeviceOnWorker1GPU", lambda: OneDeviceStrategy(_WORKER + "GPU:0"), 1)
tpu_strategy = _Named("TPU", _no_tpu, required_tpu=True)
tpu_strategy_one_step = _Named("TPUOneStep", _no_tpu, required_tpu=True)
tpu_strategy_one_core = _Named("TPUOneCore", _no_tpu, required_tpu=True)
tpu_strategy_one_step_one_core = _Named("TPUOneStepOneCore", _no_tpu, required_tpu=True)
mirrored_strategy_with_one_cpu = _Named("Mirrored1CPU", lambda: MirroredStrategy(["/cpu:0"]))
mirrored_strategy_with_one_gpu = _Named("Mirrored1GPU", lambda: MirroredStrategy(["/gpu:0"]), 1)
mirrored_strategy_with_gpu_and_cpu = _Named("MirroredCPUAndGPU", lambda: MirroredStrategy(["/gpu:0", "/cpu:0"]), 1)
mirrored_strategy_with_two_gpus = _Named("Mirrored2GPUs", lambda: MirroredStrategy(["/gpu:0", "/gpu:1"]), 2)
mirrored_strategy_with_cpu_1_and_2 = _Named("Mirrored2CPU", lambda: MirroredStrategy(["/cpu:1", "/cpu:2"]))
central_storage_strategy_with_two_gpus = _Named("CentralStorage2GPUs", lambda: CentralStorageStrategy(["/gpu:0", "/gpu:1"]), 2)
central_storage_strategy_with_gpu_and_cpu = _Named("CentralStorageCPUAndGPU", lambda: CentralStorageStrategy(["/gpu:0", "/cpu:0"]), 1)

gradient_descent_optimizer_v1_fn = NamedObject("GradientDescentV1", lambda: GradientDescentOptimizer(0.2))
adagrad_optimizer_v1_fn = NamedObject("AdagradV1", lambda: AdagradOptimizer(0.001))
adam_optimizer_v1_fn = NamedObject("AdamV1", lambda: AdamOptimizer(0.001, epsilon=1))
rmsprop_optimizer_v1_fn = NamedObject("RmsPropV1", lambda: RMSPropOptimizer(0.001))
optimizers_v1 = [gradient_descent_optimizer_v1_fn, adagrad_optimizer_v1_fn]
gradient_descent_optimizer_keras_v2_fn = NamedObject("GradientDescentKerasV2", lambda: keras_optimizers.SGD(0.2))
adagrad_optimizer_keras_v2_fn = NamedObject("AdagradKerasV2", lambda: keras_optimizers.Adagrad(0.001))
adam_optimizer_keras_v2_fn = NamedObject("AdamKerasV2", lambda: keras_optimizers.Adam(0.001, epsilon=1.0))
rmsprop_optimizer_keras_v2_fn = NamedObject("RmsPropKerasV2", lambda: keras_optimizers.RMSprop(0.001))
optimizers_v2 = [gradient_descent_optimizer_keras_v2_fn, adagrad_optimizer_keras_v2_fn]
optimizers_v1_and_v2 = optimizers_v1 + optimizers_v2

graph_and_eager_modes = ["graph", "eager"]
strategies_minus_tpu = [default_strategy, one_device_strategy, one_device_strategy_gpu, mirrored_strategy_with_gpu_and_cpu, mirrored_strategy_with_two_gpus]
tpu_strategies = [tpu_strategy, tpu_strategy_one_step]
_WITH_OPTIMIZERS = [one_device_strategy, mirrored_strategy_with_gpu_and_cpu, mirrored_strategy_with_two_gpus]
_Combinations = List[Dict[str, Any]]


def distributions_and_v1_optimizers() -> _Combinations:
    """Strategies with optimizers of tf.train."""
    return combine(distribution=_WITH_OPTIMIZERS, optimizer_fn=optimizers_v1)


def distributions_and_v2_optimizers() -> _Combinations:
    """Strategies with optimizers of Keras."""
    return combine(distribution=_WITH_OPTIMIZERS, optimizer_fn=optimizers_v2)


def distributions_and_v1_and_v2_optimizers() -> _Combinations:
    """Strategies with optimizers of both."""
    return combine(distribution=_WITH_OPTIMIZERS, optimizer_fn=optimizers_v1_and_v2)


def strategy_minus_tpu_combinations() -> _Combinations:
    """Strategies without TPUs, in both modes."""
    return combine(distribution=strategies_minus_tpu, mode=graph_and_eager_modes)


def tpu_strategy_combinations() -> _Combinations:
    """Those of TPUs, in graphs."""
    return combine(distribution=tpu_strategies, mode=["graph"])


def all_strategy_combinations() -> _Combinations:
    """All of them."""
    return strategy_minus_tpu_combinations() + tpu_strategy_combinations()


def all_strategy_minus_default_and_tpu_combinations() -> _Combinations:
    """Those that a program chooses, without TPUs."""
    return combine(distribution=strategies_minus_tpu[1:], mode=graph_and_eager_modes)


def all_strategy_combinations_minus_default() -> _Combinations:
    """Those that a program chooses."""
    return all_strategy_minus_default_and_tpu_combinations() + tpu_strategy_combinations()
