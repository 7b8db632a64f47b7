# SPDX-License-Identifier: Apache-2.0
"""tf.keras.optimizers.schedules: learning rates as functions of the step. tf.train's decays compute them."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.keras.utils.generic_utils import deserialize_keras_object, serialize_keras_object
from millrace.ops import math_ops
from millrace.train import decay


class LearningRateSchedule:
    """Base of schedules: a call with the step gives the rate."""

    def __call__(self, step: Any) -> Any:
        raise NotImplementedError("Learning rate schedule must override __call__")

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a schedule."""
        raise NotImplementedError("Learning rate schedule must override get_config")

    @classmethod
    def from_config(cls, config: Dict[str, Any]) -> Any:
        """A schedule of what get_config gave."""
        return cls(**config)


def _schedule(class_name: str, function: Callable[..., Any], doc: str, **defaults: Any) -> Any:
    """A class whose arguments are those of a decay, without the step."""
    order = ["initial_learning_rate" if name == "learning_rate" else name for name in inspect.signature(function).parameters if name != "global_step"]
    values = {name: p.default for name, p in inspect.signature(function).parameters.items() if p.default is not inspect.Parameter.empty}

    class Schedule(LearningRateSchedule):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            given = {**values, **defaults, **dict(zip(order, args)), **kwargs}
            unknown, missing = sorted(set(given) - set(order)), [name for name in order if name not in given]
            if unknown or missing or len(args) > len(order):
                raise at_user_line(TypeError("%s takes %s; got unknown %s, lacks %s" % (class_name, ", ".join(order), unknown, missing)))
            self.__dict__.update(given)
            self._given = given

        def __call__(self, step: Any) -> Any:
            given = dict(self._given)
            return function(given.pop("initial_learning_rate"), step, **given)

        def get_config(self) -> Dict[str, Any]:
            return dict(self._given)

    Schedule.__name__, Schedule.__qualname__, Schedule.__doc__, Schedule.__module__ = class_name, class_name, doc, __name__
    return Schedule


ExponentialDecay = _schedule("ExponentialDecay", decay.exponential_decay, "rate * decay_rate ^ (step / decay_steps).")
InverseTimeDecay = _schedule("InverseTimeDecay", decay.inverse_time_decay, "rate / (1 + decay_rate * step / decay_steps).")
PolynomialDecay = _schedule("PolynomialDecay", decay.polynomial_decay, "From the rate down to end_learning_rate within decay_steps.")
CosineDecay = _schedule("CosineDecay", decay.cosine_decay, "Down along half a cosine, to a share of alpha.")
CosineDecayRestarts = _schedule("CosineDecayRestarts", decay.cosine_decay_restarts, "Cosine decays, one after the other.")
LinearCosineDecay = _schedule("LinearCosineDecay", decay.linear_cosine_decay, "A line times a cosine.")
NoisyLinearCosineDecay = _schedule("NoisyLinearCosineDecay", decay.noisy_linear_cosine_decay, "A line times a cosine, with noise.")


class PiecewiseConstantDecay(LearningRateSchedule):
    """values[i] for steps up to boundaries[i], the last one afterwards."""

    def __init__(self, boundaries: Any, values: Any, name: Any = None) -> None:
        if len(boundaries) != len(values) - 1:
            raise at_user_line(ValueError("The length of boundaries should be 1 less than the length of values"))
        self.boundaries, self.values, self.name = boundaries, values, name

    def __call__(self, step: Any) -> Any:
        step = convert_to_tensor(step)
        return decay.piecewise_constant(step, [math_ops.cast(b, step.dtype.base_dtype) for b in self.boundaries], self.values, self.name)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a schedule."""
        return {"boundaries": self.boundaries, "values": self.values, "name": self.name}


def serialize(learning_rate_schedule: Any) -> Any:
    """A schedule as its class and settings."""
    return serialize_keras_object(learning_rate_schedule)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The schedule of a class and settings."""
    return deserialize_keras_object(config, globals(), custom_objects, "decay")
