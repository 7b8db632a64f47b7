# SPDX-License-Identifier: Apache-2.0
"""Optimizers whose rules, slots and updates are the library's; these classes name them as TensorFlow does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, TypeVar

import millrace._core as _core
from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, add_to_collection, get_default_graph
from millrace.ops import array_ops, control_flow_ops, gen_ops, init_ops, math_ops
from millrace.ops.variable_scope import get_variable_scope
from millrace.ops.variables import Variable
from millrace.train.optimizer import Optimizer
from millrace.train.slot_creator import save_as_part

# What a subclass may change of how its rule is applied.
_WRITTEN = (
    *("_prepare", "_create_slots", "_finish", "_apply_dense", "_apply_sparse", "_apply_sparse_duplicate_indices"),
    *("_resource_apply_dense", "_resource_apply_sparse", "_resource_apply_sparse_duplicate_indices"),
)


class RuleOptimizer(Optimizer):
    """What those do that name a rule of the library. The library makes their slots and updates, unless a subclass changes a part
    (_apply_sparse, _prepare ...): then the rule's update ops are put together here, around that part. So they are where powers are kept for variables that
    are not of float32: the library keeps them in the variables' types, TensorFlow always in float32; and where functions of variable_creator_scope make
    the slots.

    `by_rule` puts its methods into each of these classes, whose base is Optimizer: programs tell optimizers by that."""

    _rule = ""
    _op = ""  # the update op: apply_<it>
    _rate, _gradient = "lr", "grad"  # what the op calls the learning rate and a dense gradient
    _slot_names: Tuple[str, ...] = ()  # in the order of the update op's arguments
    _slots_made: Tuple[str, ...] = ()  # in the order in which they are made, where that is another
    _tensor_names: Dict[str, str] = {}  # attributes that _prepare keeps hyper-parameters in, as TensorFlow names them, by their names
    _powers: Tuple[str, ...] = ()  # hyper-parameters of which powers are kept
    _use_nesterov: Optional[bool] = None  # None: the rule has none

    def _slot_values(self) -> Dict[int, float]:
        """First values of slots, by number, that are not the rule's."""
        return {}

    def _apply(self, pairs: List[Tuple[Any, Any]], global_step: Any, name: Optional[str]) -> Operation:
        own_powers = self._powers and any(v.dtype.base_dtype != dtypes.float32 for _, v in pairs)
        if self._is_rule_as_it_is() and not own_powers and not get_default_graph().building_function and not self._keeps_slots_here(pairs[0][1].graph):
            return self._apply_in_library(pairs, global_step, name)  # which works where the variables are
        return Optimizer._apply(self, pairs, global_step, name)

    def _keeps_slots_here(self, graph: Any) -> bool:
        """Whether Python makes the slots: functions of variable_creator_scope and custom getters of scopes may ask to, of which the library does not know."""
        if graph in self._cores:
            return False
        made = (graph_of for slots in self._slots.values() for graph_of, _ in slots)
        if get_default_graph()._variable_creator_stack or get_variable_scope().custom_getter is not None:
            return True
        return any(graph_of is graph for graph_of in made)

    def _is_rule_as_it_is(self) -> bool:
        return all(getattr(getattr(self, n), "__module__", None) in (__name__, Optimizer.__module__) for n in _WRITTEN)

    def _core_for(self, graph: Any) -> Any:
        if graph not in self._cores:
            core = self._cores[graph] = _core.Optimizer(graph, self._rule, self._name)
            for slot, value in self._slot_values().items():
                core.set_slot_value(slot, float(value))
            self._kept[graph] = []
        return self._cores[graph]

    def _apply_in_library(self, pairs: List[Tuple[Any, Any]], global_step: Any, name: Optional[str]) -> Operation:
        graph = pairs[0][1].graph
        core = self._core_for(graph)
        with graph.as_default():
            outer = graph.get_name_scope()
            op_name = graph.unique_name(name or self._name, mark_as_used=True)
            base = op_name[len(outer) + 1 :] if outer else op_name
            hyper = []
            with graph.control_dependencies(None), graph.name_scope(op_name + "/"):
                for key, value in self._hyper().items():
                    value = value() if callable(value) and not isinstance(value, (Variable, Tensor)) else value
                    hyper.append(
                        (
                            key,
                            convert_to_tensor(value, name=key)
                            if isinstance(value, (Tensor, Variable))
                            else convert_to_tensor(float(value), dtypes.float32, key),
                        )
                    )
            known = len(graph.get_operations())
            step = None
            if global_step is not None:
                step = global_step._ref() if isinstance(global_step, Variable) else global_step
                if isinstance(step, Tensor) and not (step.dtype._is_ref_dtype or step.dtype == dtypes.resource):
                    message = "global_step must be a variable: '%s' of %s object has no attribute 'assign_add'"
                    raise at_user_line(AttributeError(message % (step.name, type(step).__name__)))
            grads = [(g.values, g.indices, g.dense_shape) if isinstance(g, IndexedSlices) else g for g, _ in pairs]
            refs = [v._ref() if isinstance(v, Variable) else v for _, v in pairs]
            update = core.apply(outer, get_variable_scope().name, base, hyper, bool(self._use_nesterov), bool(self._use_locking), refs, grads, step)
            self._adopt(graph, known)
            for _, v in pairs:
                for slot in self._slot_names if isinstance(v, Variable) and v._get_save_slice_info() else ():
                    save_as_part(self.get_slot(v, slot), v)
            constraints = [v for _, v in pairs if getattr(v, "constraint", None) is not None]
            if constraints:
                with graph.control_dependencies([update]):
                    update = control_flow_ops.group(*[v.assign(v.constraint(v.read_value())) for v in constraints], name=base + "/constrain")
        return update

    def _adopt(self, graph: Any, known: int) -> None:
        """Makes Variables of the nodes that the library has added for slots, in TensorFlow's order: powers first, a variable's slots by their numbers."""
        made = graph.get_operations()[known:]
        added = [op for op in made if op.type in ("VariableV2", "VarHandleOp")]
        owners = tuple(op.name + "/" for op in added)
        for op in made:
            if (op.name + "/").startswith(owners):  # slots are outside of the branch or loop that an update is in
                op._set_control_flow_context(None)
        stems = [re.sub(r"_\d+$", "", op.name) for op in added]
        powers = {p + "_power" for p in self._powers}

        def place(numbered: Tuple[int, Operation]) -> Any:
            stem, name = stems[numbered[0]], numbered[1].name
            return stem.rsplit("/", 1)[-1] not in powers, stems.index(stem), len(name), name

        for _, op in sorted(enumerate(added), key=place):
            variable = Variable._of_op(op)
            add_to_collection(GraphKeys.GLOBAL_VARIABLES, variable)
            self._kept[graph].append(variable)

    def _non_slots_of(self, graph: Any) -> Dict[str, Any]:
        slots = {id(self._slot_in_library(v, n)) for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES) for n in self._slot_names}
        made = {re.sub(r"_\d+$", "", v.op.name.rsplit("/", 1)[-1]): v for v in self._kept.get(graph, []) if id(v) not in slots}
        return {**made, **Optimizer._non_slots_of(self, graph)}

    def get_slot_names(self) -> List[str]:
        """The names of its slots."""
        return sorted(self._slots or self._slot_names)

    def get_slot(self, var: Any, name: str) -> Any:
        """The variable that it keeps for a variable under a name, or None."""
        return Optimizer.get_slot(self, var, name) or self._slot_in_library(var, name)

    def _slot_in_library(self, var: Any, name: str) -> Any:
        core = self._cores.get(var.graph)
        if core is None or name not in self._slot_names or not isinstance(var, Variable):
            return None
        tensor = core.slot(var._ref(), self._slot_names.index(name))
        return next((v for v in self._kept[var.graph] if v._ref() is tensor), None)

    def variables(self) -> List[Variable]:
        """All variables that it has made in the current graph, by name."""
        return sorted([*Optimizer.variables(self), *self._kept.get(get_default_graph(), [])], key=lambda v: v.name)

    # ---- the rule around what a subclass changes ----

    def _prepare(self) -> None:
        for name, value in self._hyper().items():
            setattr(self, self._tensor_names.get(name, "_%s_tensor" % name), convert_to_tensor(self._call_if_callable(value), name=name))

    def _create_slots(self, var_list: Any) -> None:
        first = min(var_list, key=lambda v: v.name)
        for power in self._powers:
            self._create_non_slot_variable(self._call_if_callable(self._hyper()[power]), power + "_power", first)
        for v in var_list:
            for slot in self._slots_made or self._slot_names:
                start = self._slot_values().get(self._slot_names.index(slot))
                if start is None:
                    self._zeros_slot(v, slot, self._slot_label(slot))
                else:
                    initializer, dtype = init_ops.constant_initializer(start), v.dtype.base_dtype
                    self._get_or_make_slot_with_initializer(v, initializer, v.get_shape(), dtype, slot, self._slot_label(slot))

    def _slot_label(self, slot: str) -> str:
        """How the variables of a slot are named behind their variable's name."""
        del slot
        return self._name

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._updated("apply_" + self._op, var, **{self._gradient: grad})

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        if hasattr(gen_ops, "sparse_apply_" + self._op):
            return self._updated("sparse_apply_" + self._op, var, grad=grad.values, indices=grad.indices)
        return self._updated("apply_" + self._op, var, **{self._gradient: convert_to_tensor(grad)})

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return RuleOptimizer._apply_dense(self, grad, handle)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        shape = math_ops.cast(array_ops.shape(handle), indices.dtype)
        return RuleOptimizer._apply_sparse(self, IndexedSlices(grad, indices, shape), handle)

    def _hyper_in(self, dtype: Any) -> Dict[str, Any]:
        """What _prepare has kept, and the powers, by the names of the update op's arguments, in a type."""
        kept = {n: getattr(self, self._tensor_names.get(n, "_%s_tensor" % n)) for n in self._hyper()}
        kept.update((p + "_power", self._get_non_slot_variable(p + "_power")) for p in self._powers)
        return {n: math_ops.cast(t, dtype) for n, t in kept.items()}

    def _updated(self, op: str, var: Any, **given: Any) -> Any:
        """The rule's update of a variable by a gradient, and by what else is given in place of what _prepare has kept."""
        own = {} if self._use_nesterov is None else {"use_nesterov": self._use_nesterov}
        resource = var._is_resource
        states = [v.handle if resource else v for v in (var, *(self.get_slot(var, slot) for slot in self._slot_names))]
        apply = getattr(gen_ops, ("resource_" if resource else "") + op)
        given = {**self._hyper_in(var.dtype.base_dtype), **own, **given}
        given[self._rate] = given.pop("learning_rate")
        made = apply(*states, **given, use_locking=self._use_locking)
        return getattr(made, "op", made)

    def _finish(self, update_ops: Any, name_scope: str) -> Operation:
        if not self._powers:
            return Optimizer._finish(self, update_ops, name_scope)
        hyper = self._hyper_in(dtypes.float32)
        with get_default_graph().control_dependencies(update_ops):
            powers = [self._get_non_slot_variable(p + "_power") for p in self._powers]
            moved = [v.assign(v.value() * math_ops.cast(hyper[p], v.dtype.base_dtype), use_locking=self._use_locking) for p, v in zip(self._powers, powers)]
        return control_flow_ops.group(*update_ops, *moved, name=name_scope)


_Class = TypeVar("_Class", bound=type)


def by_rule(cls: _Class) -> _Class:
    """Gives an optimizer that names a rule the methods of RuleOptimizer that it does not write itself."""
    for name, member in vars(RuleOptimizer).items():
        if not name.startswith("__") and not any(name in vars(base) for base in cls.__mro__ if base is not Optimizer and base is not object):
            setattr(cls, name, member)
    return cls


if TYPE_CHECKING:
    Ruled = RuleOptimizer
else:
    Ruled = Optimizer


@by_rule
class GradientDescentOptimizer(Ruled):
    """var -= learning_rate grad."""

    _rule, _op = "GradientDescent", "gradient_descent"
    _rate, _gradient = "alpha", "delta"

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = self._lr = learning_rate

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._learning_rate}

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:  # each row's step counts, however often it comes
        step = grad.values * self._hyper_in(var.dtype.base_dtype)["learning_rate"]
        return var.scatter_sub(IndexedSlices(step, grad.indices), use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._apply_sparse_duplicate_indices(IndexedSlices(grad, indices), handle)


@by_rule
class MomentumOptimizer(Ruled):
    """Gradient descent with momentum, or Nesterov's."""

    _rule, _op = "Momentum", "momentum"
    _slot_names = ("momentum",)

    def __init__(self, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "Momentum", use_nesterov: bool = False) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._momentum, self._use_nesterov = learning_rate, momentum, bool(use_nesterov)

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._learning_rate, "momentum": self._momentum}


@by_rule
class AdagradOptimizer(Ruled):
    """Adagrad."""

    _rule, _op = "Adagrad", "adagrad"
    _slot_names = ("accumulator",)

    def __init__(self, learning_rate: Any, initial_accumulator_value: float = 0.1, use_locking: bool = False, name: str = "Adagrad") -> None:
        if initial_accumulator_value <= 0.0:
            raise at_user_line(ValueError("initial_accumulator_value must be positive: %s" % initial_accumulator_value))
        super().__init__(use_locking, name)
        self._learning_rate, self._initial = learning_rate, initial_accumulator_value

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._learning_rate}

    def _slot_values(self) -> Dict[int, float]:
        return {0: self._initial}


@by_rule
class AdadeltaOptimizer(Ruled):
    """Adadelta."""

    _rule, _op = "Adadelta", "adadelta"
    _slot_names = ("accum", "accum_update")
    _tensor_names = {"learning_rate": "_lr_t", "rho": "_rho_t", "epsilon": "_epsilon_t"}

    def __init__(self, learning_rate: Any = 0.001, rho: Any = 0.95, epsilon: Any = 1e-8, use_locking: bool = False, name: str = "Adadelta") -> None:
        super().__init__(use_locking, name)
        self._lr, self._rho, self._epsilon = learning_rate, rho, epsilon

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._lr, "rho": self._rho, "epsilon": self._epsilon}


@by_rule
class AdamOptimizer(Ruled):
    """Adam (Kingma and Ba, 2014): steps scaled by running means of the gradient and of its square."""

    _rule, _op = "Adam", "adam"
    _slot_names = ("m", "v")
    _tensor_names = {"learning_rate": "_lr_t", "beta1": "_beta1_t", "beta2": "_beta2_t", "epsilon": "_epsilon_t"}
    _powers: Tuple[str, ...] = ("beta1", "beta2")

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8, use_locking: bool = False, name: str = "Adam"
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._lr, "beta1": self._beta1, "beta2": self._beta2, "epsilon": self._epsilon}

    def _get_beta_accumulators(self) -> Any:
        """The variables that keep the powers of beta1 and beta2."""
        kept = self._non_slots_of(get_default_graph())
        return kept.get("beta1_power"), kept.get("beta2_power")


@by_rule
class RMSPropOptimizer(Ruled):
    """RMSProp (Tieleman and Hinton, 2012): steps divided by a running root mean square of the gradient."""

    _tensor_names = {"rho": "_decay_tensor"}

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._decay, self._momentum, self._epsilon = learning_rate, decay, momentum, epsilon
        self._rule, self._op = ("CenteredRMSProp", "centered_rms_prop") if centered else ("RMSProp", "rms_prop")
        self._slot_names = ("mg", "rms", "momentum") if centered else ("rms", "momentum")
        self._slots_made = ("rms", "mg", "momentum") if centered else ()

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._learning_rate, "rho": self._decay, "momentum": self._momentum, "epsilon": self._epsilon}

    def _slot_values(self) -> Dict[int, float]:
        return {self._slot_names.index("rms"): 1.0}


@by_rule
class FtrlOptimizer(Ruled):
    """FTRL-proximal."""

    _slot_names = ("accum", "linear")

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: Optional[str] = None,
        linear_name: Optional[str] = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        super().__init__(use_locking, name)
        self._accum_name, self._linear_name = accum_name or name, linear_name or name
        if initial_accumulator_value < 0.0:
            raise at_user_line(ValueError("initial_accumulator_value %f needs to be positive or zero" % initial_accumulator_value))
        if learning_rate_power > 0.0:
            raise at_user_line(ValueError("learning_rate_power %f needs to be negative or zero" % learning_rate_power))
        for what, value in (
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0.0:
                raise at_user_line(ValueError("%s %f needs to be positive or zero" % (what, value)))
        self._learning_rate, self._power, self._initial = learning_rate, learning_rate_power, initial_accumulator_value
        self._l1, self._l2, self._l2_shrinkage = l1_regularization_strength, l2_regularization_strength, l2_shrinkage_regularization_strength
        self._rule, self._op = ("FtrlV2", "ftrl_v2") if self._l2_shrinkage > 0 else ("Ftrl", "ftrl")

    def _hyper(self) -> Dict[str, Any]:
        made = {"learning_rate": self._learning_rate, "l1": self._l1, "l2": self._l2, "lr_power": self._power}
        return {**made, "l2_shrinkage": self._l2_shrinkage} if self._rule == "FtrlV2" else made

    def _is_rule_as_it_is(self) -> bool:  # the library names slots after the optimizer
        return RuleOptimizer._is_rule_as_it_is(self) and self._accum_name == self._linear_name == self._name

    def _slot_label(self, slot: str) -> str:
        return self._accum_name if slot == "accum" else self._linear_name

    def _slot_values(self) -> Dict[int, float]:
        return {0: self._initial}
