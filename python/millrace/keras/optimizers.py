# SPDX-License-Identifier: Apache-2.0
"""tf.keras.optimizers, whose rates are variables that callbacks change."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace.framework import replication, dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, get_default_graph
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.gradients import gradients
from millrace.ops.variables import Variable
from millrace.keras import backend as K
from millrace.keras import initializers
from millrace.keras import schedules  # noqa: F401
from millrace.keras.schedules import LearningRateSchedule
from millrace.keras.schedules import deserialize as deserialize_schedule, serialize as serialize_schedule
from millrace.keras.utils.generic_utils import deserialize_keras_object, serialize_keras_object


class Optimizer:
    """Base: _update(parameter, gradient) gives the operations of a step."""

    def __init__(
        self, name: Optional[str] = None, lr: Any = 0.0, decay: float = 0.0, clipnorm: Optional[float] = None, clipvalue: Optional[float] = None, **unused: Any
    ) -> None:
        if unused:
            raise at_user_line(TypeError("Unexpected keyword argument passed to optimizer: %s" % sorted(unused)[0]))
        for what, value in (("clipnorm", clipnorm), ("clipvalue", clipvalue)):
            if value is not None and value < 0:
                raise at_user_line(ValueError("Expected %s >= 0, received: %s" % (what, value)))
        self._name = name or type(self).__name__
        self._schedule = lr if isinstance(lr, (Tensor, Variable)) or callable(lr) else None  # or a schedule, or a function of nothing
        lr = 0.0 if self._schedule is not None else lr
        self._given, self.initial_decay, self.clipnorm, self.clipvalue = {"lr": float(lr), "decay": float(decay)}, decay, clipnorm, clipvalue
        self.weights: List[Any] = []
        self._variables: Dict[str, Any] = {}
        self._slots: Dict[Any, List[Any]] = {}
        self._asked: Dict[Any, int] = {}  # how many slots of a parameter the step that is being built has asked for
        self._named_slots: Dict[Any, Any] = {}
        self._graph: Any = None

    def __repr__(self) -> str:
        return "<%s %s>" % (type(self).__name__, " ".join("%s=%g" % (k, v) for k, v in self._given.items()))

    def _number(self, name: str) -> Any:
        graph = get_default_graph()
        if self._graph is not graph:
            self._variables, self._slots, self.weights, self._graph = {}, {}, [], graph
        if name not in self._variables:
            self._variables[name] = Variable(np.float32(self._given.get(name, 0.0)), trainable=False, name="%s/%s" % (type(self).__name__, name))
        return self._variables[name]

    def _set_number(self, name: str, value: Any) -> None:
        """Changes a setting: the variable too, once there is one. A rate may become a schedule, a tensor or a function before the first step is built."""
        if name == "lr":
            self._schedule = value if isinstance(value, (Tensor, Variable)) or callable(value) else None
        if name == "decay":
            self.initial_decay = value
        if name != "lr" or self._schedule is None:
            self._given[name] = float(value)
            if name in self._variables and self._graph is get_default_graph():
                K.set_value(self._variables[name], value)

    lr = property(
        lambda self: self._number("lr") if self._schedule is None else self._schedule,
        lambda self, value: self._set_number("lr", value),
        doc="The learning rate: a variable, or the schedule, tensor or function that it was given.",
    )
    learning_rate = lr
    decay = property(lambda self: self._number("decay"), lambda self, value: self._set_number("decay", value), doc="How it falls with the steps.")
    iterations = property(lambda self: self._number("iterations"), doc="How many steps have been.")

    by_rows = False  # whether _update takes IndexedSlices, and leaves the rows that have no gradient as they are
    slot_names: Any = ()  # what a subclass keeps for each parameter, in the order in which _update asks for it

    def _slot(self, parameter: Any, start: float = 0.0) -> Any:
        kept, at = self._slots.setdefault(parameter, []), self._asked.get(parameter, 0)
        self._asked[parameter] = at + 1
        if at < len(kept):  # of a step that was built before
            return kept[at]
        made = Variable(
            array_ops.fill(parameter.get_shape().as_list(), math_ops.cast(start, parameter.dtype.base_dtype)),
            trainable=False,
            name="training/%s/%s" % (type(self).__name__, parameter.op.name),
            use_resource=bool(parameter._is_resource),
        )
        self.weights.append(made)
        kept.append(made)
        return made

    def get_slot_names(self) -> List[str]:
        """The names of what it keeps for each parameter."""
        return list(self.slot_names)

    def get_slot(self, var: Any, slot_name: str) -> Any:
        """What it keeps for a parameter under a name; None before the first step was built."""
        if (var, slot_name) in self._named_slots:
            return self._named_slots[var, slot_name]
        kept = self._slots.get(var, [])
        at = list(self.slot_names).index(slot_name)
        return kept[at] if at < len(kept) else None

    def numbers(self) -> Dict[str, Any]:
        """The variables of its rate, its decay and its steps by the names that checkpoints have."""
        names = {"lr": "learning_rate", "decay": "decay", "iterations": "iter"}
        return {names[name]: v for name, v in self._variables.items() if name in names}

    def get_gradients(self, loss: Any, params: Any) -> List[Any]:
        """The gradients, each clipped by its own norm; those that are IndexedSlices stay such where nothing is clipped."""
        found = gradients(loss, list(params))
        if self.clipnorm is not None or self.clipvalue is not None:
            found = [None if g is None else convert_to_tensor(g) for g in found]
        if self.clipnorm is not None:
            found = [None if g is None else math_ops.clip_by_norm(g, self.clipnorm) for g in found]
        if self.clipvalue is not None:
            found = [None if g is None else K.clip(g, -self.clipvalue, self.clipvalue) for g in found]
        return found

    def get_updates(self, loss: Any, params: Any) -> List[Any]:
        """The operations of a step."""
        return self._steps([(p, g) for p, g in zip(params, self.get_gradients(loss, params)) if g is not None], bool(params))

    def _steps(self, pairs: List[Any], wanted: bool = True) -> List[Any]:
        if not pairs and wanted:
            raise at_user_line(ValueError("No gradients provided for any variable."))
        rate = math_ops.cast(self._rate_now(), dtypes.float32)
        self._rate = rate / (1.0 + self.decay * self.iterations) if self.initial_decay else rate
        self._step = self.iterations + 1.0
        self._asked.clear()
        made = [op for p, g in pairs for op in self._update(p, _summed(g) if self.by_rows and isinstance(g, IndexedSlices) else convert_to_tensor(g))]
        with control_dependencies(made):
            return [*made, self.iterations.assign_add(1.0)]

    def _rate_now(self) -> Any:
        if isinstance(self._schedule, LearningRateSchedule):
            return self._schedule(self.iterations)
        return self._schedule() if callable(self._schedule) else self.lr.value() if self._schedule is None else self._schedule

    def _get_hyper(self, name: str, dtype: Any = None) -> Any:
        """A setting as it counts in a step; a schedule as such."""
        if name == "learning_rate":
            return self._schedule if isinstance(self._schedule, LearningRateSchedule) else math_ops.cast(self._rate_now(), dtype or dtypes.float32)
        return math_ops.cast(getattr(self, name), dtype or dtypes.float32)

    def apply_gradients(self, grads_and_vars: Any, name: Optional[str] = None) -> Any:
        """An operation that changes variables by (gradient, variable) pairs."""
        pairs = [(v, g) for g, v in grads_and_vars if g is not None]
        return control_flow_ops.group(*[getattr(op, "op", op) for op in self._steps(pairs)], name=name or self._name)

    def minimize(self, loss: Any, var_list: Any, grad_loss: Any = None, name: Optional[str] = None) -> Any:
        """An operation that changes variables so that a loss, or what a function gives, gets less."""
        loss, var_list = (value() if callable(value) else value for value in (loss, var_list))
        if grad_loss is not None:
            loss = loss * grad_loss
        return self.apply_gradients(zip(self.get_gradients(loss, list(var_list)), list(var_list)), name)

    def variables(self) -> List[Any]:
        """The variables that it keeps."""
        return list(self.weights)

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = "zeros",
        trainable: Optional[bool] = None,
        synchronization: Any = None,
        aggregation: Any = None,
    ) -> Any:
        """Makes a variable of the optimizer."""
        trainable = bool(replication.trainable(trainable, synchronization, aggregation))
        start = initializers.get(initializer)
        made = Variable(lambda: start(list(shape), dtype=dtypes.as_dtype(dtype or K.floatx())), trainable=trainable, name="%s/%s" % (self._name, name))
        self.weights.append(made)
        return made

    def add_slot(self, var: Any, slot_name: str, initializer: Any = "zeros") -> Any:
        """A variable for a parameter, in its shape; that of a name is made once."""
        if (var, slot_name) not in self._named_slots:
            self._named_slots[var, slot_name] = self.add_weight(
                "%s/%s" % (var.op.name, slot_name), var.get_shape().as_list(), var.dtype.base_dtype, initializer
            )
        return self._named_slots[var, slot_name]

    def _assign(self, parameter: Any, value: Any) -> Any:
        constraint = getattr(parameter, "constraint", None)
        return parameter.assign(constraint(value) if constraint is not None else value)

    def _apply(self, op: str, parameter: Any, slots: List[Any], *inputs: Any) -> List[Any]:
        """The library's op of this name changes a parameter and its slots; then the constraint holds."""
        dtype, held = parameter.dtype.base_dtype, [parameter, *slots]
        given: List[Any] = []
        for value in inputs:
            if isinstance(value, IndexedSlices):
                op = "sparse_apply_" + op[len("apply_") :]
                given += [math_ops.cast(value.values, dtype), value.indices]
            else:
                given.append(math_ops.cast(value, dtype))
        if parameter._is_resource:
            done = getattr(gen_ops, "resource_" + op)(*[v.handle for v in held], *given)
        else:
            done = getattr(gen_ops, op)(*held, *given).op
        constraint = getattr(parameter, "constraint", None)
        if constraint is None:
            return [done]
        with control_dependencies([done]):
            return [parameter.assign(constraint(parameter.read_value()))]

    def _update(self, parameter: Any, gradient: Any) -> List[Any]:
        raise NotImplementedError

    settings: Any = ()  # what a subclass takes beside lr and decay

    def get_config(self) -> Dict[str, Any]:
        """Its settings, as they are now."""
        made: Dict[str, Any] = {name: float(K.get_value(self._variables[name])) if name in self._variables else value for name, value in self._given.items()}
        if isinstance(self._schedule, LearningRateSchedule):
            made["lr"] = serialize_schedule(self._schedule)
        elif self._schedule is not None:
            made["lr"] = float(K.get_value(convert_to_tensor(self._rate_now())))
        made.update({name: getattr(self, name) for name in self.settings})
        made.update({name: getattr(self, name) for name in ("clipnorm", "clipvalue") if getattr(self, name) is not None})
        return made

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """An optimizer of what get_config gave; custom_objects are schedules by name."""
        if isinstance(config.get("lr"), dict):
            config = {**config, "lr": deserialize_schedule(config["lr"], custom_objects)}
        return cls(**config)

    def get_weights(self) -> List[Any]:
        """The values of what it keeps."""
        return K.batch_get_value(self.weights)

    def set_weights(self, weights: Any) -> None:
        """Sets what it keeps."""
        if len(weights) != len(self.weights):
            raise at_user_line(
                ValueError(
                    "Length of the specified weight list (%d) does not match the number of weights of the optimizer (%d)" % (len(weights), len(self.weights))
                )
            )
        pairs = []
        for w, value in zip(self.weights, weights):
            if tuple(w.get_shape().as_list()) != np.shape(value):
                raise at_user_line(ValueError("Optimizer weight shape %s not compatible with provided weight shape %s" % (w.get_shape(), np.shape(value))))
            pairs.append((w, value))
        K.batch_set_value(pairs)


def _summed(slices: IndexedSlices) -> IndexedSlices:
    """With each row once, and the sum of what it has."""
    rows, which = gen_ops.unique(slices.indices)
    return IndexedSlices(gen_ops.unsorted_segment_sum(slices.values, which, array_ops.size(rows)), rows, slices.dense_shape)


def _rate(learning_rate: Any, kwargs: Dict[str, Any]) -> Any:
    """The learning rate: the argument, or `lr` as it was called before."""
    return kwargs.pop("lr", learning_rate)


def _without_decay(flag: Any, name: Any, default: str, kwargs: Dict[str, Any]) -> Tuple[bool, str]:
    """(a flag, a name) of arguments by place, which up to 1.12 were (the decay, the flag)."""
    if isinstance(flag, (bool, np.bool_)):
        return bool(flag), name
    kwargs["decay"] = flag
    return (bool(name), default) if isinstance(name, (bool, np.bool_)) else (False, name)


class SGD(Optimizer):
    """Steps down the gradient, with momentum."""

    slot_names = ("momentum",)
    settings = ("momentum", "nesterov")

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: Any = False, name: Any = "SGD", **kwargs: Any) -> None:
        nesterov, name = _without_decay(nesterov, name, "SGD", kwargs)
        super().__init__(name, _rate(learning_rate, kwargs), **kwargs)
        self.momentum, self.nesterov = momentum, nesterov

    def _update(self, p: Any, g: Any) -> List[Any]:
        slot, scaled = self._slot(p), math_ops.cast(self._rate, g.dtype.base_dtype) * g
        velocity = self.momentum * slot - scaled
        step = self.momentum * velocity - scaled if self.nesterov else velocity
        return [slot.assign(velocity), self._assign(p, p + step)]


class RMSprop(Optimizer):
    """Gradients divided by the root of their mean square, or centered of their variance; with momentum."""

    settings = ("rho", "momentum", "epsilon", "centered")

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
        super().__init__(name, _rate(learning_rate, kwargs), **kwargs)
        self.rho, self.momentum, self.centered, self.epsilon = rho, momentum, centered, K.epsilon() if epsilon is None else epsilon
        self.slot_names = ("rms", *(("mg",) if centered else ()), *(("momentum",) if momentum else ()))

    def _update(self, p: Any, g: Any) -> List[Any]:
        slot, rate = self._slot(p), math_ops.cast(self._rate, g.dtype.base_dtype)
        mean = spread = self.rho * slot + (1 - self.rho) * gen_ops.square(g)
        made = [slot.assign(mean)]
        if self.centered:
            middle = self._slot(p)
            moved = self.rho * middle + (1 - self.rho) * g
            spread = mean - gen_ops.square(moved)
            made.append(middle.assign(moved))
        if not self.momentum:
            return [*made, self._assign(p, p - rate * g / (gen_ops.sqrt(spread) + self.epsilon))]
        kept = self._slot(p)
        step = self.momentum * kept + rate * g / gen_ops.sqrt(spread + self.epsilon)
        return [*made, kept.assign(step), self._assign(p, p - step)]


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of their squares."""

    by_rows = True
    slot_names = ("accumulator",)
    settings = ("initial_accumulator_value", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.01, initial_accumulator_value: float = 0.0, epsilon: Optional[float] = 1e-7, name: str = "Adagrad", **kwargs: Any
    ) -> None:
        if initial_accumulator_value < 0.0:
            raise at_user_line(ValueError("initial_accumulator_value must be non-negative: %s" % initial_accumulator_value))
        super().__init__(name, _rate(learning_rate, kwargs), **kwargs)
        self.initial_accumulator_value, self.epsilon = initial_accumulator_value, K.epsilon() if epsilon is None else epsilon

    def _update(self, p: Any, g: Any) -> List[Any]:
        return self._apply("apply_adagrad_v2", p, [self._slot(p, self.initial_accumulator_value)], self._rate, self.epsilon, g)


class Adadelta(Optimizer):
    """Steps scaled by those before."""

    by_rows = True
    slot_names = ("accum_grad", "accum_var")
    settings = ("rho", "epsilon")

    def __init__(self, learning_rate: Any = 1.0, rho: float = 0.95, epsilon: Optional[float] = 1e-7, name: str = "Adadelta", **kwargs: Any) -> None:
        super().__init__(name, _rate(learning_rate, kwargs), **kwargs)
        self.rho, self.epsilon = rho, K.epsilon() if epsilon is None else epsilon

    def _update(self, p: Any, g: Any) -> List[Any]:
        return self._apply("apply_adadelta", p, [self._slot(p), self._slot(p)], self._rate, self.rho, self.epsilon, g)


class Adam(Optimizer):
    """Moving averages of gradients and of their squares."""

    slot_names = ("m", "v", "vhat")
    settings = ("beta_1", "beta_2", "epsilon", "amsgrad")

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
        super().__init__(name, _rate(learning_rate, kwargs), **kwargs)
        self.amsgrad = amsgrad
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, K.epsilon() if epsilon is None else epsilon

    def _update(self, p: Any, g: Any) -> List[Any]:
        first, second = self._slot(p), self._slot(p)
        powers = [math_ops.pow(beta, self._step) for beta in (self.beta_1, self.beta_2)]
        if not self.amsgrad:
            return self._apply("apply_adam", p, [first, second], *powers, self._rate, self.beta_1, self.beta_2, self.epsilon, g)
        m = self.beta_1 * first + (1 - self.beta_1) * g
        v = self.beta_2 * second + (1 - self.beta_2) * gen_ops.square(g)
        rate = math_ops.cast(self._rate * gen_ops.sqrt(1 - powers[1]) / (1 - powers[0]), g.dtype.base_dtype)
        most = self._slot(p)
        largest = gen_ops.maximum(most, v)
        return [first.assign(m), second.assign(v), most.assign(largest), self._assign(p, p - rate * m / (gen_ops.sqrt(largest) + self.epsilon))]


class Adamax(Optimizer):
    """Adam with the largest gradient in place of the mean square."""

    slot_names = ("m", "v")
    settings = ("beta_1", "beta_2", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.002, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: Optional[float] = 1e-7, name: str = "Adamax", **kwargs: Any
    ) -> None:
        super().__init__(name, _rate(learning_rate, kwargs), **kwargs)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, K.epsilon() if epsilon is None else epsilon

    def _update(self, p: Any, g: Any) -> List[Any]:
        power = math_ops.pow(self.beta_1, self._step)
        return self._apply("apply_ada_max", p, [self._slot(p), self._slot(p)], power, self._rate, self.beta_1, self.beta_2, self.epsilon, g)


class Nadam(Optimizer):
    """Adam with Nesterov's momentum (Dozat 2016)."""

    slot_names = ("m", "v")
    settings = ("beta_1", "beta_2", "epsilon", "schedule_decay")

    def __init__(
        self,
        learning_rate: Any = 0.002,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: Optional[float] = 1e-7,
        name: str = "Nadam",
        schedule_decay: float = 0.004,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, _rate(learning_rate, kwargs), **kwargs)
        self._given.pop("decay")
        self.beta_1, self.beta_2, self.epsilon, self.schedule_decay = beta_1, beta_2, K.epsilon() if epsilon is None else epsilon, schedule_decay

    def _steps(self, pairs: List[Any], wanted: bool = True) -> List[Any]:
        step = self.iterations + 1.0

        def momentum(at: Any) -> Any:
            return self.beta_1 * (1.0 - 0.5 * math_ops.pow(0.96, at * self.schedule_decay))

        product = Variable(np.float32(1.0), trainable=False, name="training/Nadam/m_schedule")
        self.weights.append(product)
        self._now, self._next = momentum(step), momentum(step + 1.0)
        self._product = product * self._now
        return [product.assign(self._product), *super()._steps(pairs, wanted)]

    def _update(self, p: Any, g: Any) -> List[Any]:
        first, second = self._slot(p), self._slot(p)
        m = self.beta_1 * first + (1 - self.beta_1) * g
        v = self.beta_2 * second + (1 - self.beta_2) * gen_ops.square(g)
        now, after, product, power, rate = (
            math_ops.cast(x, g.dtype.base_dtype) for x in (self._now, self._next, self._product, math_ops.pow(self.beta_2, self._step), self._rate)
        )
        mean = (1 - now) * (g / (1 - product)) + after * (m / (1 - product * after))
        return [first.assign(m), second.assign(v), self._assign(p, p - rate * mean / (gen_ops.sqrt(v / (1 - power)) + self.epsilon))]


class Ftrl(Optimizer):
    """Follow the regularized leader (McMahan 2013), with shrinkage."""

    by_rows = True
    slot_names = ("accumulator", "linear")
    settings = (
        "learning_rate_power",
        "initial_accumulator_value",
        "l1_regularization_strength",
        "l2_regularization_strength",
        "l2_shrinkage_regularization_strength",
    )

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
        super().__init__(name, kwargs.pop("lr", learning_rate), kwargs.pop("decay", 0.0), **kwargs)
        for what, value, most in (("learning_rate_power", learning_rate_power, 0.0),):
            if value > most:
                raise at_user_line(ValueError("%s %f needs to be less than or equal to zero" % (what, value)))
        for what, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0:
                raise at_user_line(ValueError("%s %f needs to be positive or zero" % (what, value)))
        self.learning_rate_power, self.initial_accumulator_value = learning_rate_power, initial_accumulator_value
        self.l1_regularization_strength, self.l2_regularization_strength = l1_regularization_strength, l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength

    def _update(self, p: Any, g: Any) -> List[Any]:
        slots = [self._slot(p, self.initial_accumulator_value), self._slot(p)]
        l1, l2, shrinkage = self.l1_regularization_strength, self.l2_regularization_strength, self.l2_shrinkage_regularization_strength
        return self._apply("apply_ftrl_v2", p, slots, g, self._rate, l1, l2, shrinkage, self.learning_rate_power)


class TFOptimizer(Optimizer):
    """An optimizer of tf.train."""

    def __init__(self, optimizer: Any) -> None:
        super().__init__()
        self.optimizer = optimizer

    def numbers(self) -> Dict[str, Any]:
        """The optimizer, whose variables and slots checkpoints have, and the steps."""
        return {"optimizer": self.optimizer, **({"global_step": self._variables["iterations"]} if "iterations" in self._variables else {})}

    def apply_gradients(self, grads_and_vars: Any, name: Optional[str] = None) -> Any:
        """An operation that changes variables by gradients."""
        return self.optimizer.apply_gradients(grads_and_vars, name=name)

    def get_grads(self, loss: Any, params: Any) -> Any:
        """[(gradient, variable), ...]."""
        return self.optimizer.compute_gradients(loss, params)

    def get_updates(self, loss: Any, params: Any) -> List[Any]:
        """The operations of a step."""
        if not params:
            return []
        return [self.optimizer.minimize(loss, var_list=list(params)), self.iterations.assign_add(1.0)]

    @property
    def lr(self) -> Any:
        """Not a variable of Keras."""
        raise AttributeError("an optimizer of tf.train has no lr that can be set: make its learning rate a variable")

    learning_rate = lr
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
    if isinstance(identifier, str) and identifier.lower() in _NAMES:
        return _NAMES[identifier.lower()]()
    raise at_user_line(ValueError("Could not interpret optimizer identifier: %s" % (identifier,)))
