# SPDX-License-Identifier: Apache-2.0
"""tf.keras.optimizers, whose rates are variables that callbacks change."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.gradients import gradients
from millrace.ops.variables import Variable
from millrace.keras import backend as K


class Optimizer:
    """Base: _update(parameter, gradient) gives the operations of a step."""

    def __init__(self, lr: float, decay: float = 0.0, clipnorm: Optional[float] = None, clipvalue: Optional[float] = None, **unused: Any) -> None:
        if unused:
            raise at_user_line(TypeError("Unexpected keyword argument passed to optimizer: %s" % sorted(unused)[0]))
        self._given, self.initial_decay, self.clipnorm, self.clipvalue = {"lr": float(lr), "decay": float(decay)}, decay, clipnorm, clipvalue
        self.weights: List[Any] = []
        self._variables: Dict[str, Any] = {}
        self._graph: Any = None

    def _number(self, name: str) -> Any:
        from millrace.framework.graph import get_default_graph
        graph = get_default_graph()
        if self._graph is not graph:
            self._variables, self.weights, self._graph = {}, [], graph
        if name not in self._variables:
            self._variables[name] = Variable(np.float32(self._given.get(name, 0.0)), trainable=False, name="%s/%s" % (type(self).__name__, name))
        return self._variables[name]

    lr = property(lambda self: self._number("lr"), doc="The learning rate.")
    learning_rate = lr
    decay = property(lambda self: self._number("decay"), doc="How it falls with the steps.")
    iterations = property(lambda self: self._number("iterations"), doc="How many steps have been.")

    def _slot(self, parameter: Any) -> Any:
        made = Variable(array_ops.zeros(parameter.get_shape().as_list(), parameter.dtype.base_dtype), trainable=False,
                        name="training/%s/%s" % (type(self).__name__, parameter.op.name))
        self.weights.append(made)
        return made

    def get_gradients(self, loss: Any, params: Any) -> List[Any]:
        """The gradients, clipped."""
        found = [None if g is None else convert_to_tensor(g) for g in gradients(loss, list(params))]
        if self.clipnorm is not None:
            there, _ = math_ops.clip_by_global_norm([g for g in found if g is not None], self.clipnorm)
            rest = list(there)
            found = [None if g is None else rest.pop(0) for g in found]
        if self.clipvalue is not None:
            found = [None if g is None else K.clip(g, -self.clipvalue, self.clipvalue) for g in found]
        return found

    def get_updates(self, loss: Any, params: Any) -> List[Any]:
        """The operations of a step."""
        pairs = [(p, g) for p, g in zip(params, self.get_gradients(loss, params)) if g is not None]
        if not pairs:
            raise at_user_line(ValueError("None of the weights has a gradient."))
        rate = self.lr.value() / (1.0 + self.decay * self.iterations) if self.initial_decay else self.lr.value()
        self._rate, self._step = rate, self.iterations + 1.0
        made = [op for p, g in pairs for op in self._update(p, g)]
        from millrace.framework.graph import control_dependencies
        with control_dependencies(made):
            return [*made, self.iterations.assign_add(1.0)]

    def _assign(self, parameter: Any, value: Any) -> Any:
        constraint = getattr(parameter, "constraint", None)
        return parameter.assign(constraint(value) if constraint is not None else value)

    def _update(self, parameter: Any, gradient: Any) -> List[Any]:
        raise NotImplementedError

    def get_config(self) -> Dict[str, Any]:
        """Its settings."""
        return dict(self._given)


class SGD(Optimizer):
    """Steps down the gradient, with momentum."""

    def __init__(self, lr: float = 0.01, momentum: float = 0.0, decay: float = 0.0, nesterov: bool = False, **kwargs: Any) -> None:
        super().__init__(kwargs.pop("learning_rate", lr), decay, **kwargs)
        self.momentum, self.nesterov = momentum, nesterov

    def _update(self, p: Any, g: Any) -> List[Any]:
        slot = self._slot(p)
        velocity = self.momentum * slot - self._rate * g
        step = self.momentum * velocity - self._rate * g if self.nesterov else velocity
        return [slot.assign(velocity), self._assign(p, p + step)]


class RMSprop(Optimizer):
    """Gradients divided by the root of their mean square."""

    def __init__(self, lr: float = 0.001, rho: float = 0.9, epsilon: Optional[float] = None, decay: float = 0.0, **kwargs: Any) -> None:
        super().__init__(kwargs.pop("learning_rate", lr), decay, **kwargs)
        self.rho, self.epsilon = rho, K.epsilon() if epsilon is None else epsilon

    def _update(self, p: Any, g: Any) -> List[Any]:
        slot = self._slot(p)
        mean = self.rho * slot + (1 - self.rho) * gen_ops.square(g)
        return [slot.assign(mean), self._assign(p, p - self._rate * g / (gen_ops.sqrt(mean) + self.epsilon))]


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of their squares."""

    def __init__(self, lr: float = 0.01, epsilon: Optional[float] = None, decay: float = 0.0, **kwargs: Any) -> None:
        super().__init__(kwargs.pop("learning_rate", lr), decay, **kwargs)
        self.epsilon = K.epsilon() if epsilon is None else epsilon

    def _update(self, p: Any, g: Any) -> List[Any]:
        slot = self._slot(p)
        total = slot + gen_ops.square(g)
        return [slot.assign(total), self._assign(p, p - self._rate * g / (gen_ops.sqrt(total) + self.epsilon))]


class Adadelta(Optimizer):
    """Steps scaled by those before."""

    def __init__(self, lr: float = 1.0, rho: float = 0.95, epsilon: Optional[float] = None, decay: float = 0.0, **kwargs: Any) -> None:
        super().__init__(kwargs.pop("learning_rate", lr), decay, **kwargs)
        self.rho, self.epsilon = rho, K.epsilon() if epsilon is None else epsilon

    def _update(self, p: Any, g: Any) -> List[Any]:
        squares, steps = self._slot(p), self._slot(p)
        mean = self.rho * squares + (1 - self.rho) * gen_ops.square(g)
        step = g * gen_ops.sqrt(steps + self.epsilon) / gen_ops.sqrt(mean + self.epsilon)
        return [squares.assign(mean), steps.assign(self.rho * steps + (1 - self.rho) * gen_ops.square(step)), self._assign(p, p - self._rate * step)]


class Adam(Optimizer):
    """Moving averages of gradients and of their squares."""

    def __init__(self, lr: float = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: Optional[float] = None, decay: float = 0.0,
                 amsgrad: bool = False, **kwargs: Any) -> None:
        super().__init__(kwargs.pop("learning_rate", lr), decay, **kwargs)
        if amsgrad:
            raise at_user_line(NotImplementedError("amsgrad is not provided: leave it out."))
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, K.epsilon() if epsilon is None else epsilon

    def _update(self, p: Any, g: Any) -> List[Any]:
        first, second = self._slot(p), self._slot(p)
        m = self.beta_1 * first + (1 - self.beta_1) * g
        v = self.beta_2 * second + (1 - self.beta_2) * gen_ops.square(g)
        rate = self._rate * gen_ops.sqrt(1 - math_ops.pow(self.beta_2, self._step)) / (1 - math_ops.pow(self.beta_1, self._step))
        return [first.assign(m), second.assign(v), self._assign(p, p - rate * m / (gen_ops.sqrt(v) + self.epsilon))]


class TFOptimizer(Optimizer):
    """An optimizer of tf.train."""

    def __init__(self, optimizer: Any) -> None:
        super().__init__(0.0)
        self.optimizer = optimizer

    def get_updates(self, loss: Any, params: Any) -> List[Any]:
        """The operations of a step."""
        return [self.optimizer.minimize(loss, var_list=list(params)), self.iterations.assign_add(1.0)]


adam, sgd, rmsprop, adagrad, adadelta = Adam, SGD, RMSprop, Adagrad, Adadelta


def get(identifier: Any) -> Optimizer:
    """An optimizer by name, or of tf.train."""
    if isinstance(identifier, Optimizer):
        return identifier
    if hasattr(identifier, "compute_gradients"):
        return TFOptimizer(identifier)
    named = {kind.__name__.lower(): kind for kind in (SGD, RMSprop, Adagrad, Adadelta, Adam)}
    if str(identifier).lower() not in named:
        raise at_user_line(ValueError("Could not interpret optimizer identifier: %s" % (identifier,)))
    return named[str(identifier).lower()]()  # type: ignore[no-any-return]
