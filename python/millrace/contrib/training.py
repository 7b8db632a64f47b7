# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.training: hyper-parameters, batches of what belongs together, training and evaluation by monitored sessions."""
from __future__ import annotations

import json
from typing import Any, Dict, List

from millrace.framework import arguments
from millrace.contrib.slim_evaluation import checkpoints_iterator, wait_for_new_checkpoint  # noqa: F401
from millrace.contrib.slim_learning import clip_gradient_norms, multiply_gradients  # noqa: F401
from millrace.contrib.training_inputs import bucket, bucket_by_sequence_length  # noqa: F401
from millrace.contrib.training_loops import (StopAfterNEvalsHook, SummaryAtEndHook, add_gradients_summaries, clip_gradient_norms_fn,  # noqa: F401
                                             create_train_op, evaluate_once, evaluate_repeatedly, train)
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
