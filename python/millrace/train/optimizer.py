# SPDX-License-Identifier: Apache-2.0
"""Optimizers. The rules, their slots and updates are the library's; these classes name them as TensorFlow does."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import millrace._core as _core
from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, add_to_collection, get_default_graph, init_scope, name_scope
from millrace.ops import control_flow_ops, gen_ops
from millrace.ops import gradients as gradients_module
from millrace.ops import math_ops
from millrace.ops.variable_scope import get_variable_scope
from millrace.ops.variables import PartitionedVariable, Variable, trainable_variables
from millrace.train.slot_creator import save_as_part


class Optimizer:
    """Base of optimizers. A subclass names a rule of the library (_rule), or, as in TensorFlow, has _apply_dense."""

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2

    _rule: Optional[str] = None
    _slot_names: Tuple[str, ...] = ()  # in the order of the update op's arguments

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise at_user_line(ValueError("Must specify the optimizer name"))
        self._use_locking, self._name = use_locking, name
        self._cores: Dict[Any, Any] = {}  # by graph: the library's optimizer
        self._kept: Dict[Any, List[Variable]] = {}  # by graph: the variables that it made
        self._slots: Dict[str, Dict[Any, Any]] = {}  # of subclasses written in Python

    def __repr__(self) -> str:
        hyper = self._hyper() if type(self)._hyper is not Optimizer._hyper else {}
        return "<%s '%s'%s>" % (type(self).__name__, self._name, "".join(", %s=%s" % (k, getattr(v, "name", v)) for k, v in hyper.items() if not callable(v)))

    def get_name(self) -> str:
        """Its name."""
        return self._name

    # ---- what a rule of the library needs ----

    def _hyper(self) -> Dict[str, Any]:
        """Hyper-parameters by the rule's names: numbers or tensors."""
        return {}

    def _slot_values(self) -> Dict[int, float]:
        """First values of slots that are not the rule's."""
        return {}

    _use_nesterov = False

    # ---- the interface of TensorFlow ----

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Optional[int] = None,
        colocate_gradients_with_ops: bool = False,
        name: Optional[str] = None,
        grad_loss: Any = None,
    ) -> Operation:
        """An operation that does one training step."""
        pairs = self.compute_gradients(loss, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss)
        if not any(g is not None for g, _ in pairs):
            raise at_user_line(
                ValueError(
                    "No gradients provided for any variable, check your graph for ops that do not support gradients, "
                    "between variables %s and loss %s." % ([str(v) for _, v in pairs], loss)
                )
            )
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Optional[int] = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> List[Tuple[Any, Any]]:
        """[(gradient, variable), ...] of the trainable variables, or of those given. A loss that is a function is called, and by itself
        has the variables that it depends on."""
        of_function = callable(loss) and not isinstance(loss, (Tensor, Variable))
        if of_function:
            loss = loss()
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise at_user_line(
                ValueError("gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH. Not %s" % gate_gradients)
            )
        if not isinstance(loss, (list, tuple)):
            dtype = convert_to_tensor(loss).dtype
            if not (dtype.is_floating or dtype.is_complex):
                raise at_user_line(ValueError("Invalid type %r for %s, expected: float tensors." % (dtype, loss)))
        variables: List[Any] = []
        for v in nest.listed(trainable_variables() if var_list is None else var_list):
            variables.extend(v if isinstance(v, (list, tuple, PartitionedVariable)) else [v])
        if not variables:
            raise at_user_line(ValueError("No variables to optimize."))
        for v in variables:
            if not isinstance(v, (Variable, Tensor)):
                raise at_user_line(TypeError("Argument is not a tf.Variable: %r" % (v,)))
        if of_function and var_list is None:
            variables = [v for v, grad in zip(variables, gradients_module.gradients(loss, variables)) if grad is not None]
            if not variables:
                raise at_user_line(ValueError("No variables to optimize: the loss depends on none."))
        grads = gradients_module.gradients(
            loss, variables, grad_loss, aggregation_method=aggregation_method, colocate_gradients_with_ops=colocate_gradients_with_ops
        )
        if gate_gradients == self.GATE_GRAPH:
            grads = control_flow_ops.tuple(grads)
        return list(zip(grads, variables))

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Operation:
        """An operation that changes variables by gradients, and counts global_step."""
        pairs = [(g, v) for g, v in grads_and_vars]
        if not pairs:
            raise at_user_line(ValueError("No variables provided."))
        present = [(self._checked(g, v), v) for g, v in pairs if g is not None]
        if not present:
            raise at_user_line(ValueError("No gradients provided for any variable: %s." % ([str(v) for _, v in pairs],)))
        update = self._apply_in_library(present, global_step, name) if self._is_library_rule() else self._apply_in_python(present, global_step, name)
        train_ops = update.graph.get_collection_ref(GraphKeys.TRAIN_OP)
        if update not in train_ops:
            train_ops.append(update)
        return update

    @staticmethod
    def _checked(grad: Any, var: Any) -> Any:
        if not isinstance(grad, (Tensor, IndexedSlices)):
            try:
                grad = convert_to_tensor(grad, var.dtype.base_dtype)
            except TypeError:
                raise at_user_line(TypeError("Gradient must be convertible to a Tensor or IndexedSlices, or None: %s" % (grad,))) from None
        return grad

    def _is_library_rule(self) -> bool:
        overridden = ("_apply_dense", "_apply_sparse", "_resource_apply_dense", "_create_slots")
        return self._rule is not None and all(getattr(type(self), n) is getattr(Optimizer, n) for n in overridden)

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
            grads = [(g.values, g.indices, g.dense_shape) if isinstance(g, IndexedSlices) else g for g, _ in pairs]
            refs = [v._ref() if isinstance(v, Variable) else v for _, v in pairs]
            update = core.apply(outer, get_variable_scope().name, base, hyper, self._use_nesterov, bool(self._use_locking), refs, grads, step)
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
        """Makes Variables of the nodes that the library has added for slots."""
        for op in graph.get_operations()[known:]:
            if op.type in ("VariableV2", "VarHandleOp"):
                variable = Variable._of_op(op)
                add_to_collection(GraphKeys.GLOBAL_VARIABLES, variable)
                self._kept[graph].append(variable)

    # ---- slots ----

    def get_slot_names(self) -> List[str]:
        """The names of its slots."""
        return sorted(self._slots or self._slot_names)

    def get_slot(self, var: Any, name: str) -> Any:
        """The variable that it keeps for a variable under a name, or None."""
        if name in self._slots:
            return self._slots[name].get(var)
        core = self._cores.get(var.graph)
        if core is None or name not in self._slot_names:
            return None
        tensor = core.slot(var._ref(), self._slot_names.index(name))
        return next((v for v in self._kept[var.graph] if v._ref() is tensor), None)

    def variables(self) -> List[Variable]:
        """All variables that it has made."""
        made = [v for kept in self._kept.values() for v in kept]
        return made + [v for slots in self._slots.values() for v in slots.values()]

    # ---- for rules written in Python ----

    def _prepare(self) -> None:
        """Makes tensors of the hyper-parameters."""

    def _create_slots(self, var_list: Any) -> None:
        """Makes the slots of the variables."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        raise NotImplementedError("%s has no _apply_dense" % type(self).__name__)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._apply_dense(convert_to_tensor(grad), var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._apply_dense(grad, handle)

    def _finish(self, update_ops: Any, name_scope: str) -> Operation:
        return control_flow_ops.group(*update_ops, name=name_scope)

    def _valid_dtypes(self) -> Any:
        return {dtypes.float16, dtypes.float32, dtypes.float64}

    def _slot_dict(self, slot_name: str) -> Dict[Any, Any]:
        return self._slots.setdefault(slot_name, {})

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        return self._get_or_make_slot(var, gen_ops.zeros_like(var.initial_value), slot_name, op_name)

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Any:
        slots = self._slot_dict(slot_name)
        if var not in slots:
            with init_scope():
                slots[var] = Variable(val, trainable=False, name=var.op.name + "/" + op_name, use_resource=getattr(var, "_is_resource", None))
        return slots[var]

    def _call_if_callable(self, value: Any) -> Any:
        return value() if callable(value) else value

    def _apply_in_python(self, pairs: List[Tuple[Any, Any]], global_step: Any, name: Optional[str]) -> Operation:
        self._create_slots([v for _, v in pairs])
        with name_scope(name, self._name) as scope:
            self._prepare()
            updates = []
            for grad, var in pairs:
                with name_scope("update_" + var.op.name), var.graph.colocate_with(var.op):
                    updates.append(
                        self._apply_sparse(grad, var)
                        if isinstance(grad, IndexedSlices)
                        else self._resource_apply_dense(grad, var)
                        if getattr(var, "_is_resource", False)
                        else self._apply_dense(grad, var)
                    )
            if global_step is None:
                return self._finish(updates, scope)
            with var.graph.control_dependencies([self._finish(updates, "update")]):
                result = global_step.assign_add(math_ops.cast(1, global_step.dtype.base_dtype), name=scope)
                return getattr(result, "op", result)


class GradientDescentOptimizer(Optimizer):
    """var -= learning_rate grad."""

    _rule = "GradientDescent"

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = self._lr = learning_rate

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._learning_rate}


class MomentumOptimizer(Optimizer):
    """Gradient descent with momentum, or Nesterov's."""

    _rule = "Momentum"
    _slot_names = ("momentum",)

    def __init__(self, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "Momentum", use_nesterov: bool = False) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._momentum, self._use_nesterov = learning_rate, momentum, bool(use_nesterov)

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._learning_rate, "momentum": self._momentum}


class AdagradOptimizer(Optimizer):
    """Adagrad."""

    _rule = "Adagrad"
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


class AdadeltaOptimizer(Optimizer):
    """Adadelta."""

    _rule = "Adadelta"
    _slot_names = ("accum", "accum_update")

    def __init__(self, learning_rate: Any = 0.001, rho: Any = 0.95, epsilon: Any = 1e-8, use_locking: bool = False, name: str = "Adadelta") -> None:
        super().__init__(use_locking, name)
        self._lr, self._rho, self._epsilon = learning_rate, rho, epsilon

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._lr, "rho": self._rho, "epsilon": self._epsilon}


class AdamOptimizer(Optimizer):
    """Adam (Kingma and Ba, 2014): steps scaled by running means of the gradient and of its square."""

    _rule = "Adam"
    _slot_names = ("m", "v")

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8, use_locking: bool = False, name: str = "Adam"
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._lr, "beta1": self._beta1, "beta2": self._beta2, "epsilon": self._epsilon}

    def _get_beta_accumulators(self) -> Any:
        """The variables that keep the powers of beta1 and beta2."""
        kept = {v.op.name.rsplit("/", 1)[-1].rsplit("_power", 1)[0]: v for v in self._kept.get(get_default_graph(), []) if "_power" in v.op.name}
        return kept.get("beta1"), kept.get("beta2")


class RMSPropOptimizer(Optimizer):
    """RMSProp (Tieleman and Hinton, 2012): steps divided by a running root mean square of the gradient."""

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
        self._rule = "CenteredRMSProp" if centered else "RMSProp"
        self._slot_names = ("mg", "rms", "momentum") if centered else ("rms", "momentum")

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._learning_rate, "rho": self._decay, "momentum": self._momentum, "epsilon": self._epsilon}


class FtrlOptimizer(Optimizer):
    """FTRL-proximal."""

    _rule = "Ftrl"
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
        self._rule = "FtrlV2" if self._l2_shrinkage > 0 else "Ftrl"

    def _hyper(self) -> Dict[str, Any]:
        made = {"learning_rate": self._learning_rate, "l1": self._l1, "l2": self._l2, "lr_power": self._power}
        return {**made, "l2_shrinkage": self._l2_shrinkage} if self._rule == "FtrlV2" else made

    # The library names slots after the optimizer; with names of their own the update ops stand here.

    def _is_library_rule(self) -> bool:
        own = all(getattr(type(self), n) is getattr(FtrlOptimizer, n) for n in ("_apply_dense", "_apply_sparse", "_resource_apply_dense", "_create_slots"))
        return own and self._accum_name == self._linear_name == self._name

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            self._get_or_make_slot(v, gen_ops.fill(v.get_shape(), math_ops.cast(self._initial, v.dtype.base_dtype)), "accum", self._accum_name)
            self._zeros_slot(v, "linear", self._linear_name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._applied("apply_ftrl", var, [grad])

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        rows, which = gen_ops.unique(grad.indices)  # a row that comes twice counts with the sum
        return self._applied("sparse_apply_ftrl", var, [gen_ops.unsorted_segment_sum(grad.values, which, gen_ops.size(rows)), rows])

    def _applied(self, op: str, var: Any, grads: Any) -> Any:
        values = self._hyper()
        names = ["learning_rate", "l1", "l2", *(["l2_shrinkage"] if self._rule == "FtrlV2" else []), "lr_power"]
        hyper = [math_ops.cast(convert_to_tensor(self._call_if_callable(values[n]), name=n), var.dtype.base_dtype) for n in names]
        apply = getattr(gen_ops, ("resource_" if var._is_resource else "") + op + ("_v2" if self._rule == "FtrlV2" else ""))
        slots = [v.handle if var._is_resource else v for v in (var, self.get_slot(var, "accum"), self.get_slot(var, "linear"))]
        made = apply(*slots, *grads, *hyper, use_locking=self._use_locking)
        return getattr(made, "op", made)

    def _slot_values(self) -> Dict[int, float]:
        return {0: self._initial}
