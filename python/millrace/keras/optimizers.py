# SPDX-License-Identifier: Apache-2.0
"""tf.keras.optimizers, whose rates are variables that callbacks change."""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.keras import backend as K
from millrace.keras import schedules  # noqa: F401
from millrace.keras.optimizer_base import OldWeights, Optimizer, Rule
from millrace.keras.schedules import LearningRateSchedule
from millrace.keras.utils.generic_utils import deserialize_keras_object, serialize_keras_object
from millrace.ops import array_ops, control_flow_ops, gen_ops, init_ops, math_ops
from millrace.ops.variables import Variable

OptimizerV2 = Optimizer


def _share(momentum: Any) -> bool:
    """Whether there is momentum."""
    if isinstance(momentum, (int, float)) and not 0 <= momentum <= 1:
        raise at_user_line(ValueError("`momentum` must be between [0, 1]."))
    return isinstance(momentum, (Tensor, Variable)) or callable(momentum) or momentum > 0


def _without_decay(flag: Any, name: Any, default: str, kwargs: Dict[str, Any]) -> Tuple[bool, str]:
    """(a flag, a name) of arguments by place, which up to 1.12 were (the decay, the flag)."""
    if isinstance(flag, (bool, np.bool_)):
        return bool(flag), name
    kwargs["decay"] = flag
    return (bool(name), default) if isinstance(name, (bool, np.bool_)) else (False, name)


class SGD(Rule):
    """Steps down the gradient, with momentum."""

    _read, _fixed = ("momentum",), ("nesterov",)

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: Any = False, name: Any = "SGD", **kwargs: Any) -> None:
        nesterov, name = _without_decay(nesterov, name, "SGD", kwargs)
        super().__init__(name, **kwargs)
        self._momentum, self.nesterov = _share(momentum), nesterov
        self._set(learning_rate, kwargs, momentum=momentum)

    def _create_slots(self, var_list: List[Any]) -> None:
        for v in var_list if self._momentum else []:
            self.add_slot(v, "momentum")

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        state = self._state_of(var, apply_state)
        if not self._momentum:
            return self._run("apply_gradient_descent", var, [], state["lr_t"], grad)
        slot = self.get_slot(var, "momentum")
        velocity = slot.assign(state["momentum"] * slot - state["lr_t"] * grad)
        return var.assign_add(state["momentum"] * velocity - state["lr_t"] * grad if self.nesterov else velocity)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, var: Any, indices: Any, **kwargs: Any) -> Any:
        if self._momentum:
            return super()._resource_apply_sparse_duplicate_indices(grad, var, indices, **kwargs)
        return self._resource_scatter_add(var, indices, -grad * self._state_of(var, kwargs.get("apply_state"))["lr_t"])

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any = None) -> Any:
        state, slot = self._state_of(var, apply_state), self.get_slot(var, "momentum")
        step = state["lr_t"] * grad
        velocity = state["momentum"] * array_ops.gather(slot, indices) - step
        kept = self._resource_scatter_update(slot, indices, velocity)
        moved = self._resource_scatter_add(var, indices, state["momentum"] * velocity - step if self.nesterov else velocity)
        return control_flow_ops.group(kept, moved)


class RMSprop(OldWeights):
    """Gradients divided by the root of their mean square, or centered of their variance; with momentum."""

    _read, _fixed, _numbers = ("rho", "momentum"), ("epsilon", "centered"), ("epsilon",)

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: Optional[float] = 1e-7,
        centered: bool = False,
        name: str = "RMSprop",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._momentum, self.epsilon, self.centered = _share(momentum), epsilon or K.epsilon(), centered
        self._set(learning_rate, kwargs, rho=rho, momentum=momentum)

    def _create_slots(self, var_list: List[Any]) -> None:
        for name, wanted in (("rms", True), ("momentum", self._momentum), ("mg", self.centered)):
            for v in var_list if wanted else []:
                self.add_slot(v, name)

    def _with_momentum(self, var: Any, state: Any, *grad: Any) -> Any:
        kind, slots = ("centered_rms_prop", ["mg", "rms", "momentum"]) if self.centered else ("rms_prop", ["rms", "momentum"])
        op = ("sparse_apply_" if len(grad) > 1 else "apply_") + kind
        return self._run(op, var, slots, state["lr_t"], state["rho"], state["momentum"], state["epsilon"], *grad)

    def _prepare_local(self, var_device: Any, var_dtype: Any, apply_state: Any) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        state = apply_state[var_device, var_dtype]
        state["one_minus_rho"] = 1.0 - state["rho"]

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        state = self._state_of(var, apply_state)
        if self._momentum:
            return self._with_momentum(var, state, grad)
        rms = self.get_slot(var, "rms")
        spread = rms.assign(state["rho"] * rms + state["one_minus_rho"] * gen_ops.square(grad))
        if self.centered:
            middle = self.get_slot(var, "mg")
            spread = spread - gen_ops.square(middle.assign(state["rho"] * middle + state["one_minus_rho"] * grad))
        return var.assign_sub(state["lr_t"] * grad / (gen_ops.sqrt(spread) + state["epsilon"]))

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any = None) -> Any:
        if self._momentum:
            return self._with_momentum(var, self._state_of(var, apply_state), grad, indices)
        return super()._resource_apply_sparse(grad, var, indices, apply_state)


class Adagrad(OldWeights):
    """Gradients divided by the root of the sum of their squares."""

    _fixed, _numbers = ("_initial_accumulator_value", "epsilon"), ("epsilon",)

    def __init__(
        self, learning_rate: Any = 0.001, initial_accumulator_value: float = 0.1, epsilon: Optional[float] = 1e-7, name: str = "Adagrad", **kwargs: Any
    ) -> None:
        if initial_accumulator_value < 0.0:
            raise at_user_line(ValueError("initial_accumulator_value must be non-negative: %s" % initial_accumulator_value))
        super().__init__(name, **kwargs)
        self._initial_accumulator_value, self.epsilon = initial_accumulator_value, epsilon or K.epsilon()
        self._set(learning_rate, kwargs)

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """An optimizer of what get_config gave; one of before 1.13 began with zeros."""
        config.setdefault("initial_accumulator_value", 0.0)
        return super().from_config(config, custom_objects)

    def _create_slots(self, var_list: List[Any]) -> None:
        for v in var_list:
            self.add_slot(v, "accumulator", init_ops.Constant(self._initial_accumulator_value))

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        state = self._state_of(var, apply_state)
        return self._run("apply_adagrad_v2", var, ["accumulator"], state["lr_t"], state["epsilon"], grad)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any = None) -> Any:
        state = self._state_of(var, apply_state)
        return self._run("sparse_apply_adagrad_v2", var, ["accumulator"], state["lr_t"], state["epsilon"], grad, indices)


class Adadelta(OldWeights):
    """Steps scaled by those before."""

    _read, _fixed, _numbers = ("rho",), ("epsilon",), ("epsilon",)

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: Optional[float] = 1e-7, name: str = "Adadelta", **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.epsilon = epsilon or K.epsilon()
        self._set(learning_rate, kwargs, rho=rho)

    def _create_slots(self, var_list: List[Any]) -> None:
        for name in ("accum_grad", "accum_var"):
            for v in var_list:
                self.add_slot(v, name)

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        state = self._state_of(var, apply_state)
        return self._run("apply_adadelta", var, ["accum_grad", "accum_var"], state["lr_t"], state["rho"], state["epsilon"], grad)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any = None) -> Any:
        state = self._state_of(var, apply_state)
        return self._run("sparse_apply_adadelta", var, ["accum_grad", "accum_var"], state["lr_t"], state["rho"], state["epsilon"], grad, indices)


class _Moments(Rule):
    """Rules with moving averages of gradients and of their sizes, `m` and `v`."""

    _read: Tuple[str, ...] = ("beta_1", "beta_2")
    _fixed: Tuple[str, ...] = ("epsilon",)
    _numbers = ("epsilon",)

    def _create_slots(self, var_list: List[Any]) -> None:
        for name in ("m", "v"):
            for v in var_list:
                self.add_slot(v, name)

    def _prepare_local(self, var_device: Any, var_dtype: Any, apply_state: Any) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        state, step = apply_state[var_device, var_dtype], math_ops.cast(self.iterations + np.int64(1), var_dtype)
        for beta in ("beta_1", "beta_2"):
            state.update({beta + "_power": math_ops.pow(state[beta], step), "one_minus_" + beta: 1 - state[beta]})


class Adam(_Moments):
    """Moving averages of gradients and of their squares."""

    _fixed = ("epsilon", "amsgrad")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: Optional[float] = 1e-7,
        amsgrad: Any = False,
        name: Any = "Adam",
        **kwargs: Any,
    ) -> None:
        amsgrad, name = _without_decay(amsgrad, name, "Adam", kwargs)
        super().__init__(name, **kwargs)
        self.epsilon, self.amsgrad = epsilon or K.epsilon(), amsgrad
        self._set(learning_rate, kwargs, beta_1=beta_1, beta_2=beta_2)

    def _create_slots(self, var_list: List[Any]) -> None:
        super()._create_slots(var_list)
        for v in var_list if self.amsgrad else []:
            self.add_slot(v, "vhat")

    def set_weights(self, weights: Any) -> None:
        """Sets what it keeps; weights of Keras' Adam have a third part, which it does not need."""
        kept = len(self.weights)
        super().set_weights(weights[:kept] if len(weights) == 3 * ((kept - 1) // 2) + 1 else weights)

    def _prepare_local(self, var_device: Any, var_dtype: Any, apply_state: Any) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        state = apply_state[var_device, var_dtype]
        if self.amsgrad:
            state["lr"] = state["lr_t"] * gen_ops.sqrt(1 - state["beta_2_power"]) / (1 - state["beta_1_power"])

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        state = self._state_of(var, apply_state)
        if not self.amsgrad:
            powers = state["beta_1_power"], state["beta_2_power"]
            return self._run("apply_adam", var, ["m", "v"], *powers, state["lr_t"], state["beta_1"], state["beta_2"], state["epsilon"], grad)
        m, v, most = (self.get_slot(var, name) for name in ("m", "v", "vhat"))
        first = m.assign(state["beta_1"] * m + state["one_minus_beta_1"] * grad)
        second = v.assign(state["beta_2"] * v + state["one_minus_beta_2"] * gen_ops.square(grad))
        largest = most.assign(gen_ops.maximum(most, second))
        return var.assign_sub(state["lr"] * first / (gen_ops.sqrt(largest) + state["epsilon"]))


class Adamax(_Moments):
    """Adam with the largest gradient in place of the mean square."""

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: Optional[float] = 1e-7, name: str = "Adamax", **kwargs: Any
    ) -> None:
        super().__init__(name, **kwargs)
        self.epsilon = epsilon or K.epsilon()
        self._set(learning_rate, kwargs, beta_1=beta_1, beta_2=beta_2)

    def _prepare_local(self, var_device: Any, var_dtype: Any, apply_state: Any) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        state = apply_state[var_device, var_dtype]
        state["back"] = -state["lr_t"] / (1 - state["beta_1_power"])

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        state = self._state_of(var, apply_state)
        return self._run("apply_ada_max", var, ["m", "v"], state["beta_1_power"], state["lr_t"], state["beta_1"], state["beta_2"], state["epsilon"], grad)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any = None) -> Any:
        state = self._state_of(var, apply_state)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        first = array_ops.gather(m, indices) * state["beta_1"] + grad * state["one_minus_beta_1"]
        largest = gen_ops.maximum(array_ops.gather(v, indices) * state["beta_2"], gen_ops.abs(grad))
        step = state["back"] * (first / (largest + state["epsilon"]))
        with control_dependencies([step]):
            kept = [self._resource_scatter_update(slot, indices, value) for slot, value in ((m, first), (v, largest))]
            return control_flow_ops.group(*kept, self._resource_scatter_add(var, indices, step))


class Nadam(_Moments):
    """Adam with Nesterov's momentum (Dozat 2016), whose `decay` is that of the momentum and leaves the rate as it is."""

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: Optional[float] = 1e-7, name: str = "Nadam", **kwargs: Any
    ) -> None:
        kwargs["decay"] = kwargs.pop("schedule_decay", 0.004)
        if isinstance(kwargs.get("lr", learning_rate), LearningRateSchedule):
            raise at_user_line(ValueError("The Nadam optimizer does not support tf.keras.optimizers.LearningRateSchedules as the learning rate."))
        super().__init__(name, **kwargs)
        self.epsilon = epsilon or K.epsilon()
        self._set(learning_rate, kwargs, beta_1=beta_1, beta_2=beta_2)

    def _forget(self) -> None:
        super()._forget()
        self._m_cache: Any = None

    def _create_slots(self, var_list: List[Any]) -> None:
        if self._m_cache is None:
            self._m_cache = self.add_weight("momentum_cache", (), var_list[0].dtype.base_dtype, "ones", False)
            self._weights.append(self._m_cache)
        super()._create_slots(var_list)

    def _prepare(self, var_list: List[Any]) -> Any:
        def momentum(ahead: int) -> Any:
            step = math_ops.cast(self.iterations + np.int64(ahead), kind)
            return self._get_hyper("beta_1", kind) * (1.0 - 0.5 * math_ops.pow(math_ops.cast(0.96, kind), self._initial_decay * step))

        kind = self._m_cache.dtype.base_dtype
        self._now, self._next = momentum(1), momentum(2)
        self._product = self._m_cache.assign(array_ops.identity(self._m_cache) * self._now)
        return super()._prepare(var_list)

    def _prepare_local(self, var_device: Any, var_dtype: Any, apply_state: Any) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        state = apply_state[var_device, var_dtype]
        now, after, product = (math_ops.cast(x, var_dtype) for x in (self._now, self._next, self._product))
        state.update(next=after, one_minus_now=1 - now, one_minus_product=1 - product, one_minus_next=1 - product * after)
        state["one_minus_beta_2_power"] = 1 - state["beta_2_power"]

    def _decayed_lr(self, var_dtype: Any) -> Any:
        return self._get_hyper("learning_rate", var_dtype)

    def _stepped(self, state: Dict[str, Any], grad: Any, first: Any, second: Any) -> Any:
        """By how much a step changes what has a gradient and two moments."""
        mean = state["one_minus_now"] * (grad / state["one_minus_product"]) + state["next"] * (first / state["one_minus_next"])
        return state["lr_t"] * mean / (gen_ops.sqrt(second / state["one_minus_beta_2_power"]) + state["epsilon"])

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        state = self._state_of(var, apply_state)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        first = m.assign(state["beta_1"] * m + state["one_minus_beta_1"] * grad)
        second = v.assign(state["beta_2"] * v + state["one_minus_beta_2"] * gen_ops.square(grad))
        return var.assign_sub(self._stepped(state, grad, first, second))

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any = None) -> Any:
        state = self._state_of(var, apply_state)

        def row(name: str, beta: str, value: Any) -> Any:
            slot = self.get_slot(var, name)
            with control_dependencies([slot.assign(slot * state[beta])]):
                return array_ops.gather(self._resource_scatter_add(slot, indices, value * state["one_minus_" + beta]), indices)

        first, second = row("m", "beta_1", grad), row("v", "beta_2", grad * grad)
        return self._resource_scatter_add(var, indices, -self._stepped(state, grad, first, second))


class Ftrl(Rule):
    """Follow the regularized leader (McMahan 2013), with shrinkage."""

    _read = ("learning_rate_power", "l1_regularization_strength", "l2_regularization_strength")
    _fixed, _numbers = ("_initial_accumulator_value", "_l2_shrinkage_regularization_strength"), ("_l2_shrinkage_regularization_strength",)

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        name: str = "Ftrl",
        l2_shrinkage_regularization_strength: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        for what, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0:
                raise at_user_line(ValueError("%s %f needs to be positive or zero" % (what, value)))
        if learning_rate_power > 0.0:
            raise at_user_line(ValueError("learning_rate_power %f needs to be negative or zero" % learning_rate_power))
        self._initial_accumulator_value, self._l2_shrinkage_regularization_strength = initial_accumulator_value, l2_shrinkage_regularization_strength
        l1, l2 = l1_regularization_strength, l2_regularization_strength
        self._set(learning_rate, kwargs, learning_rate_power=learning_rate_power, l1_regularization_strength=l1, l2_regularization_strength=l2)

    def _create_slots(self, var_list: List[Any]) -> None:
        for v in var_list:
            self.add_slot(v, "accumulator", init_ops.Constant(self._initial_accumulator_value))
            self.add_slot(v, "linear")

    def _step_by(self, op: str, var: Any, apply_state: Any, *grad: Any) -> Any:
        state = self._state_of(var, apply_state)
        l1, l2, shrinkage = state["l1_regularization_strength"], state["l2_regularization_strength"], state["_l2_shrinkage_regularization_strength"]
        return self._run(op, var, ["accumulator", "linear"], *grad, state["lr_t"], l1, l2, shrinkage, state["learning_rate_power"])

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        return self._step_by("apply_ftrl_v2", var, apply_state, grad)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any = None) -> Any:
        return self._step_by("sparse_apply_ftrl_v2", var, apply_state, grad, indices)


class TFOptimizer(Optimizer):
    """An optimizer of tf.train."""

    def __init__(self, optimizer: Any, iterations: Any = None) -> None:
        super().__init__("TFOptimizer")
        self.optimizer = optimizer
        if iterations is None:
            with name_scope("TFOptimizer"):
                iterations = K.variable(0, dtype="int64", name="iterations")
        self.iterations = iterations

    def numbers(self) -> Dict[str, Any]:
        """The optimizer, whose variables and slots checkpoints have, and the steps."""
        return {"optimizer": self.optimizer, **({"global_step": self._iterations} if self._iterations is not None else {})}

    def apply_gradients(self, grads_and_vars: Any, name: Optional[str] = None) -> Any:
        """An operation that changes variables by gradients."""
        return self.optimizer.apply_gradients(grads_and_vars, global_step=self.iterations, name=name)

    def get_grads(self, loss: Any, params: Any) -> Any:
        """[(gradient, variable), ...]."""
        return self.optimizer.compute_gradients(loss, params)

    def get_updates(self, loss: Any, params: Any) -> List[Any]:
        """The operations of a step."""
        if not params:
            return [self.iterations.assign_add(np.int64(1))]
        return [self.apply_gradients(self.get_grads(loss, list(params)))]

    weights = property(lambda self: _unknown("weights"), lambda self, value: None)

    def get_config(self) -> Any:
        """Not known."""
        raise at_user_line(NotImplementedError("An optimizer of tf.train has no config: use one of tf.keras.optimizers."))

    @classmethod
    def from_config(cls, config: Any, custom_objects: Any = None) -> Any:
        """Not known."""
        raise at_user_line(NotImplementedError("An optimizer of tf.train has no config: use one of tf.keras.optimizers."))


def _unknown(what: str) -> Any:
    raise at_user_line(NotImplementedError("An optimizer of tf.train does not say its %s: use one of tf.keras.optimizers." % what))


adam, sgd, rmsprop, adagrad, adadelta, adamax, nadam = Adam, SGD, RMSprop, Adagrad, Adadelta, Adamax, Nadam
adadelta_v2 = adagrad_v2 = adam_v2 = adamax_v2 = gradient_descent_v2 = nadam_v2 = rmsprop_v2 = sys.modules[__name__]  # TensorFlow has a module for each
_NAMES: Dict[str, Any] = {kind.__name__.lower(): kind for kind in (SGD, RMSprop, Adagrad, Adadelta, Adam, Adamax, Nadam, Ftrl, TFOptimizer)}


def serialize(optimizer: Any) -> Any:
    """An optimizer as its class and settings."""
    return serialize_keras_object(optimizer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The optimizer of a class and settings."""
    name = config["class_name"].lower()
    if name in _NAMES:
        config["class_name"] = name  # as TensorFlow leaves it
    return deserialize_keras_object(config, _NAMES, custom_objects, "optimizer")


def get(identifier: Any) -> Any:
    """An optimizer by name or settings, or of tf.train."""
    if isinstance(identifier, Optimizer):
        return identifier
    if hasattr(identifier, "compute_gradients"):
        return TFOptimizer(identifier)
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    raise at_user_line(ValueError("Could not interpret optimizer identifier: %s" % (identifier,)))
