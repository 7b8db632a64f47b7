# SPDX-License-Identifier: Apache-2.0
"""The optimizers of tensorflow.python.keras.optimizers, which tf.keras.optimizers were up to 1.12: settings are variables with the names and
defaults of then, slots begin with zeros, and each update is an operation. What `get`, `serialize` and `deserialize` make is of today."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, name_scope
from millrace.keras import backend as K
from millrace.keras import optimizer_base
from millrace.keras.optimizers import (  # noqa: F401
    TFOptimizer,
    adadelta_v2,
    adagrad_v2,
    adam_v2,
    adamax_v2,
    deserialize,
    get,
    gradient_descent_v2,
    nadam_v2,
    rmsprop_v2,
    serialize,
)
from millrace.ops import gen_ops, math_ops


class Optimizer(optimizer_base.Optimizer):
    """Base. A subclass names its settings, and says in _stepped what a step makes of a parameter and its slots."""

    _is_trackable = False  # checkpoints of models leave its state out, and say so
    _variables_of: Tuple[str, ...] = ()  # settings that are variables, in the order in which they are made
    _numbers_of: Tuple[str, ...] = ()  # settings that are none
    _slots_of: Tuple[str, ...] = ()  # what is kept for each parameter
    _counts = True  # whether the count of steps is among the weights

    def __init__(self, **kwargs: Any) -> None:
        for what, value in kwargs.items():
            if what not in ("clipnorm", "clipvalue"):
                raise at_user_line(TypeError("Unexpected keyword argument passed to optimizer: %s" % what))
            if value < 0:
                raise at_user_line(ValueError("Expected %s >= 0, received: %s" % (what, value)))
        super().__init__(type(self).__name__, **kwargs)
        self.updates: List[Any] = []
        self._settings: Dict[str, Any] = {}

    def _set(self, given: Dict[str, Any], epsilon: Optional[float] = None) -> None:
        if "epsilon" in self._numbers_of:
            self.epsilon = K.epsilon() if epsilon is None else epsilon
        with name_scope(type(self).__name__):
            self._begin()
            for name in self._variables_of:
                self._settings[name] = K.variable(given[name], name=name)
            if not self._counts:
                self._iterations = K.variable(0, dtype="int64", name="iterations")
        self._decays = given.get("decay", 0.0) > 0
        self._weights = [self._iterations] if self._counts else []

    def _begin(self) -> None:
        """Makes what a rule keeps before its settings."""
        if self._counts:
            self._iterations = K.variable(0, dtype="int64", name="iterations")

    def __getattr__(self, name: str) -> Any:
        settings = self.__dict__.get("_settings", {})
        if name in settings:
            return settings[name]
        raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_settings", {}):
            self._settings[name] = value
        else:
            object.__setattr__(self, name, value)

    def _enter_graph(self) -> None:
        """Variables stay in the graph in which the optimizer was made."""

    @property
    def iterations(self) -> Any:
        """How many steps have been: a variable."""
        return self._iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        self._weights = [variable if w is self._iterations else w for w in self._weights]
        self._iterations = variable

    def apply_gradients(self, grads_and_vars: Any, name: Optional[str] = None) -> Any:
        """Not what these optimizers do."""
        raise at_user_line(NotImplementedError("Optimizers of tensorflow.python.keras.optimizers step by get_updates: use tf.keras.optimizers"))

    def get_updates(self, loss: Any, params: Any) -> List[Any]:
        """The operations of a step, also as the attribute updates."""
        if not self._slots_of:
            raise at_user_line(NotImplementedError("%s says nothing of what a step does: write get_updates" % type(self).__name__))
        params = list(params)
        grads = self.get_gradients(loss, params)
        slots = self._made(params)
        count = K.update_add(self._iterations, np.int64(1))
        self.updates = [] if isinstance(self, _Moments) else [count]
        rate = self._settings["lr"]
        with control_dependencies([count]):  # in TensorFlow decay reads the count of after the step too
            step = math_ops.cast(self._iterations.read_value(), K.floatx())
        if self._decays:
            rate = rate * (1.0 / (1.0 + self.decay * step))
        common = self._common(rate, step)
        for param, grad, *kept in zip(params, grads, *slots):
            new, *values = self._stepped(param, grad, common, *kept)
            self.updates += [K.update(slot, value) for slot, value in zip(kept, values)]
            constraint = getattr(param, "constraint", None)
            self.updates.append(K.update(param, new if constraint is None else constraint(new)))
        return self.updates

    def _made(self, params: Sequence[Any]) -> List[List[Any]]:
        """The variables of each slot, by parameter."""
        made = [[K.zeros(K.int_shape(p), dtype=p.dtype.base_dtype) for p in params] for _ in self._slots_of]
        self._weights = self._begun() + [slot for slots in made for slot in slots]
        return made

    def _begun(self) -> List[Any]:
        return [self._iterations] if self._counts else []

    def _common(self, rate: Any, step: Any) -> Any:
        """What the steps of all parameters have in common: the rate."""
        return rate

    def _stepped(self, param: Any, grad: Any, common: Any, *kept: Any) -> Tuple[Any, ...]:
        """(the new value of a parameter, those of its slots)"""
        raise NotImplementedError("%s has no _stepped" % type(self).__name__)

    def set_weights(self, weights: Any) -> None:
        """Sets what it keeps, which the first call of get_updates makes."""
        if len(weights) != len(self._weights):
            raise at_user_line(
                ValueError(
                    "Length of the specified weight list (%d) does not match the number of weights of the optimizer (%d)" % (len(weights), len(self._weights))
                )
            )
        super().set_weights(weights)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such an optimizer, as they are now."""
        clips: Dict[str, Any] = {name: self.__dict__[name] for name in ("clipnorm", "clipvalue") if name in self.__dict__}
        read = {name: float(K.get_value(self._settings[name])) for name in self._variables_of}
        return {**clips, **read, **{name: getattr(self, name) for name in self._numbers_of}}

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """An optimizer of what get_config gave."""
        return cls(**config)


class SGD(Optimizer):
    """Steps down the gradient, with momentum."""

    _variables_of, _numbers_of, _slots_of = ("lr", "momentum", "decay"), ("nesterov",), ("moment",)

    def __init__(self, lr: float = 0.01, momentum: float = 0.0, decay: float = 0.0, nesterov: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nesterov = nesterov
        self._set({"lr": lr, "momentum": momentum, "decay": decay})

    def _stepped(self, param: Any, grad: Any, common: Any, *kept: Any) -> Tuple[Any, ...]:
        speed = self.momentum * kept[0] - common * grad
        return (param + self.momentum * speed - common * grad if self.nesterov else param + speed), speed


class RMSprop(Optimizer):
    """Gradients divided by the root of their mean square."""

    _variables_of, _numbers_of, _slots_of, _counts = ("lr", "rho", "decay"), ("epsilon",), ("square",), False

    def __init__(self, lr: float = 0.001, rho: float = 0.9, epsilon: Optional[float] = None, decay: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._set({"lr": lr, "rho": rho, "decay": decay}, epsilon)

    def _stepped(self, param: Any, grad: Any, common: Any, *kept: Any) -> Tuple[Any, ...]:
        mean = self.rho * kept[0] + (1.0 - self.rho) * gen_ops.square(grad)
        return param - common * grad / (K.sqrt(mean) + self.epsilon), mean


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of their squares."""

    _variables_of, _numbers_of, _slots_of, _counts = ("lr", "decay"), ("epsilon",), ("square",), False

    def __init__(self, lr: float = 0.01, epsilon: Optional[float] = None, decay: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._set({"lr": lr, "decay": decay}, epsilon)

    def _stepped(self, param: Any, grad: Any, common: Any, *kept: Any) -> Tuple[Any, ...]:
        total = kept[0] + gen_ops.square(grad)
        return param - common * grad / (K.sqrt(total) + self.epsilon), total


class Adadelta(Optimizer):
    """Steps scaled by those before."""

    _variables_of, _numbers_of, _slots_of, _counts = ("lr", "decay"), ("rho", "epsilon"), ("square", "step"), False

    def __init__(self, lr: float = 1.0, rho: float = 0.95, epsilon: Optional[float] = None, decay: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rho = rho
        self._set({"lr": lr, "decay": decay}, epsilon)

    def _stepped(self, param: Any, grad: Any, common: Any, *kept: Any) -> Tuple[Any, ...]:
        squares, steps = kept
        mean = self.rho * squares + (1.0 - self.rho) * gen_ops.square(grad)
        step = grad * K.sqrt(steps + self.epsilon) / K.sqrt(mean + self.epsilon)
        return param - common * step, mean, self.rho * steps + (1.0 - self.rho) * gen_ops.square(step)


class _Moments(Optimizer):
    """Rules that keep the means of gradients and of what says their size."""

    _slots_of: Tuple[str, ...] = ("m", "v")

    def _mean(self, beta: str, old: Any, new: Any) -> Any:
        share = self._settings[beta]
        return share * old + (1.0 - share) * new


class Adam(_Moments):
    """Steps by the means of gradients and of their squares; with amsgrad by the largest of the latter."""

    _variables_of, _numbers_of, _slots_of = ("lr", "beta_1", "beta_2", "decay"), ("epsilon", "amsgrad"), ("m", "v", "vhat")

    def __init__(
        self,
        lr: float = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: Optional[float] = None,
        decay: float = 0.0,
        amsgrad: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.amsgrad = amsgrad
        self._set({"lr": lr, "beta_1": beta_1, "beta_2": beta_2, "decay": decay}, epsilon)

    def _made(self, params: Sequence[Any]) -> List[List[Any]]:
        made = [[K.zeros(K.int_shape(p), dtype=p.dtype.base_dtype) for p in params] for _ in range(2)]
        made.append([K.zeros(K.int_shape(p) if self.amsgrad else 1, dtype=p.dtype.base_dtype) for p in params])  # of one zero, so that weights fit
        self._weights = self._begun() + [slot for slots in made for slot in slots]
        return made

    def _common(self, rate: Any, step: Any) -> Any:
        return rate * (K.sqrt(1.0 - K.pow(self.beta_2, step)) / (1.0 - K.pow(self.beta_1, step)))

    def _stepped(self, param: Any, grad: Any, common: Any, *kept: Any) -> Tuple[Any, ...]:
        m, v = self._mean("beta_1", kept[0], grad), self._mean("beta_2", kept[1], gen_ops.square(grad))
        if not self.amsgrad:
            return param - common * m / (K.sqrt(v) + self.epsilon), m, v
        most = gen_ops.maximum(kept[2], v)
        return param - common * m / (K.sqrt(most) + self.epsilon), m, v, most


class Adamax(_Moments):
    """Adam with the largest of decaying gradients instead of their squares' mean."""

    _variables_of, _numbers_of = ("lr", "beta_1", "beta_2", "decay"), ("epsilon",)

    def __init__(
        self, lr: float = 0.002, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: Optional[float] = None, decay: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._set({"lr": lr, "beta_1": beta_1, "beta_2": beta_2, "decay": decay}, epsilon)

    def _common(self, rate: Any, step: Any) -> Any:
        return rate / (1.0 - K.pow(self.beta_1, step))

    def _stepped(self, param: Any, grad: Any, common: Any, *kept: Any) -> Tuple[Any, ...]:
        m, largest = self._mean("beta_1", kept[0], grad), gen_ops.maximum(self.beta_2 * kept[1], gen_ops.abs(grad))
        return param - common * m / (largest + self.epsilon), m, largest


class Nadam(_Moments):
    """Adam with Nesterov's momentum, whose share grows step by step."""

    _variables_of, _numbers_of = ("lr", "beta_1", "beta_2"), ("epsilon", "schedule_decay")

    def __init__(
        self, lr: float = 0.002, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: Optional[float] = None, schedule_decay: float = 0.004, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.schedule_decay = schedule_decay
        self._set({"lr": lr, "beta_1": beta_1, "beta_2": beta_2}, epsilon)

    def _begin(self) -> None:
        super()._begin()
        self.m_schedule = K.variable(1.0, name="m_schedule")

    def _begun(self) -> List[Any]:
        return [self._iterations, self.m_schedule]

    def _common(self, rate: Any, step: Any) -> Any:
        now, after = (self.beta_1 * (1.0 - 0.5 * K.pow(0.96, at * self.schedule_decay)) for at in (step, step + 1.0))
        product = self.m_schedule * now
        self.updates.append(K.update(self.m_schedule, product))
        return rate, now, after, product, 1.0 - K.pow(self.beta_2, step)

    def _stepped(self, param: Any, grad: Any, common: Any, *kept: Any) -> Tuple[Any, ...]:
        rate, now, after, product, of_squares = common
        m, v = self._mean("beta_1", kept[0], grad), self._mean("beta_2", kept[1], gen_ops.square(grad))
        ahead = (1.0 - now) * grad / (1.0 - product) + after * m / (1.0 - product * after)
        return param - rate * ahead / (K.sqrt(v / of_squares) + self.epsilon), m, v


adam, sgd, rmsprop, adagrad, adadelta, adamax, nadam = Adam, SGD, RMSprop, Adagrad, Adadelta, Adamax, Nadam
