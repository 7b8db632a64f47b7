# SPDX-License-Identifier: Apache-2.0
"""A model on several devices, each of which takes a part of the batch."""

from __future__ import annotations

from typing import Any, List

from millrace.framework.errors import at_user_line
from millrace.framework.graph import device, name_scope
from millrace.keras import backend
from millrace.keras.models import Model, clone_model
from millrace.layers.core import Lambda
from millrace.layers.merge import concatenate
from millrace.ops import array_ops


def _get_available_devices() -> List[str]:
    return [found.name for found in backend.get_session().list_devices()]


def _normalize_device_name(name: str) -> str:
    """The kind and the number of a device, such as "/gpu:0"."""
    return "/" + name.lower().split("device:")[1]


def _numbers(gpus: Any) -> List[int]:
    """The numbers of the devices that are asked for by a count or a list. ValueError for less than two, or those that are not there."""
    few = len(gpus) <= 1 if isinstance(gpus, (list, tuple)) else gpus <= 1
    if few:
        raise at_user_line(ValueError("For multi-gpu usage to be effective, call `multi_gpu_model` with `gpus >= 2`. Received: `gpus=%s`" % (gpus,)))
    numbers = list(gpus) if isinstance(gpus, (list, tuple)) else list(range(gpus))
    wanted = ["/cpu:0"] + ["/gpu:%d" % number for number in numbers]
    present = [_normalize_device_name(name) for name in _get_available_devices()]
    if not set(wanted) <= set(present):
        raise at_user_line(
            ValueError(
                "To call `multi_gpu_model` with `gpus=%s`, we expect the following devices to be available: %s. However this machine only has: %s. "
                "Try reducing `gpus`." % (gpus, wanted, present)
            )
        )
    return numbers


def _part(data: Any, i: int, parts: int) -> Any:
    """The rows of the i-th of several devices; the last one takes those that are left."""
    rows = array_ops.shape(data)[0]
    size = rows // parts
    return data[i * size :] if i == parts - 1 else data[i * size : (i + 1) * size]


def multi_gpu_model(model: Any, gpus: Any, cpu_merge: bool = True, cpu_relocation: bool = False) -> Any:
    """A model of the same inputs and outputs whose batches are parted among GPUs, by their count or a list of their numbers. ValueError where they are not
    there: one process trains a model itself on all cores of its machine."""
    numbers = _numbers(gpus)
    if cpu_relocation:
        with device("/cpu:0"):
            model = clone_model(model)
    made: List[List[Any]] = [[] for _ in model.outputs]
    for i, number in enumerate(numbers):
        with device("/gpu:%d" % number), name_scope("replica_%d" % number):
            inputs = [Lambda(_part, arguments={"i": i, "parts": len(numbers)})(x) for x in model.inputs]
            outputs = model(inputs if len(inputs) > 1 else inputs[0])
            for of_output, output in zip(made, outputs if isinstance(outputs, list) else [outputs]):
                of_output.append(output)
    with device("/cpu:0" if cpu_merge else "/gpu:%d" % numbers[0]):
        merged = [concatenate(parts, axis=0, name=name) for name, parts in zip(model.output_names, made)]
    return Model(model.inputs, merged if len(merged) > 1 else merged[0])
