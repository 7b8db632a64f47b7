# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.training: hyper-parameters, batches of what belongs together, training and evaluation by monitored sessions."""

from __future__ import annotations

import json
import random
from typing import Any, Dict, List

from millrace.framework import arguments
from millrace.framework.errors import at_user_line
from millrace.contrib.slim_evaluation import checkpoints_iterator, wait_for_new_checkpoint  # noqa: F401
from millrace.contrib.slim_learning import clip_gradient_norms, multiply_gradients  # noqa: F401
from millrace.contrib.training_inputs import bucket, bucket_by_sequence_length  # noqa: F401
from millrace.contrib.training_loops import (  # noqa: F401
    StopAfterNEvalsHook,
    SummaryAtEndHook,
    add_gradients_summaries,
    clip_gradient_norms_fn,
    create_train_op,
    evaluate_once,
    evaluate_repeatedly,
    train,
)
from millrace.contrib.training_sampling import rejection_sample, stratified_sample  # noqa: F401


class HParams:
    """Named values, as attributes."""

    _names: List[str]

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        arguments.only(None, model_structure=model_structure)
        arguments.only(None, hparam_def=hparam_def)
        self.__dict__["_names"] = []
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a value."""
        if name in self._names or hasattr(type(self), name):
            raise ValueError("Hyperparameter name is reserved: %s" % name)
        self._names.append(name)
        self.__dict__[name] = value

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes a value."""
        if name not in self._names:
            raise KeyError(name)
        self.__dict__[name] = value

    def values(self) -> Dict[str, Any]:
        """The values by name."""
        return {n: self.__dict__[n] for n in self._names}

    def get(self, key: str, default: Any = None) -> Any:
        """A value, or a default."""
        return self.__dict__[key] if key in self._names else default

    def __contains__(self, key: str) -> bool:
        return key in self._names

    def parse(self, values: str) -> "HParams":
        """Changes values by a text such as "rate=0.1,units=[1,2]"."""
        depth, part, parts = 0, "", []
        for c in values + ",":
            depth += (c == "[") - (c == "]")
            if c == "," and depth == 0:
                if part.strip():
                    parts.append(part)
                part = ""
            else:
                part += c
        for item in parts:
            name, _, text = item.partition("=")
            name = name.strip()
            if name not in self._names:
                raise ValueError("Unknown hyperparameter: %s" % name)
            self.__dict__[name] = self._cast(self.__dict__[name], text.strip())
        return self

    @staticmethod
    def _cast(old: Any, text: str) -> Any:
        if isinstance(old, (list, tuple)):
            kind = old[0] if old else ""
            return [HParams._cast(kind, t.strip()) for t in text.strip("[]").split(",") if t.strip()]
        if isinstance(old, bool):
            return text.lower() in ("true", "1")
        return type(old)(text) if old is not None else text

    def override_from_dict(self, values_dict: Dict[str, Any]) -> "HParams":
        """Changes values."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def to_json(self, **kwargs: Any) -> str:
        """The values as JSON."""
        return json.dumps(self.values(), **kwargs)

    def parse_json(self, values_json: str) -> "HParams":
        """Changes values by JSON."""
        return self.override_from_dict(json.loads(values_json))

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    __repr__ = __str__


# ---- where variables go ----


def byte_size_load_fn(op: Any) -> int:
    """The bytes of a variable."""
    elements = op.outputs[0].get_shape().num_elements()
    if elements is None:
        raise at_user_line(ValueError("byte_size_load_fn needs variables of known shapes, %s has not" % op.name))
    return int(op.outputs[0].dtype.base_dtype.size * elements)


class GreedyLoadBalancingStrategy:
    """For replica_device_setter: the task with the least load so far, load_fn(op) of each variable."""

    def __init__(self, num_tasks: int, load_fn: Any) -> None:
        self._loads, self._load_fn = [0.0] * num_tasks, load_fn

    def __call__(self, op: Any) -> int:
        task = min(range(len(self._loads)), key=lambda i: self._loads[i])
        self._loads[task] += self._load_fn(op)
        return task


class RandomStrategy:
    """For replica_device_setter: any task, the same ones for the same seed."""

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._random, self._count = random.Random(seed), num_ps_tasks

    def __call__(self, op: Any) -> int:
        del op  # all are alike
        return self._random.randrange(self._count)
