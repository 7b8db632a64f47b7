# SPDX-License-Identifier: Apache-2.0
"""What optimizers share: gradients of a loss, slots, and the steps of those that are written in Python. Those of the library: rules.py."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, get_default_graph, init_scope, name_scope, outermost_graph
from millrace.framework.graph import colocate_with as graph_colocate_with
from millrace.ops import array_ops, control_flow_ops, gen_ops
from millrace.ops import gradients as gradients_module
from millrace.ops import math_ops
from millrace.ops.variables import PartitionedVariable, Variable, trainable_variables
from millrace.train.slot_creator import create_slot, create_slot_with_initializer, create_zeros_slot


class Optimizer:
    """Base of optimizers. One that is written in Python has _apply_dense and its kin, as in TensorFlow."""

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2
    _is_trackable = True  # by checkpoints of objects
    _has_slots = True  # its own, not those of another optimizer

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise at_user_line(ValueError("Must specify the optimizer name"))
        self._use_locking, self._name = use_locking, name
        self._slots: Dict[str, Dict[Any, Any]] = {}  # by slot's name and _var_key
        self._non_slots: Dict[Tuple[str, Any], Any] = {}  # variables that belong to no other, by name and graph
        self._cores: Dict[Any, Any] = {}  # by graph: the library's optimizer, of those that name a rule (rules.py)
        self._kept: Dict[Any, List[Any]] = {}  # by graph: the variables that it made

    def _hyper(self) -> Dict[str, Any]:
        """Hyper-parameters by their names: numbers, tensors or functions of no arguments that give one."""
        return {}

    def __repr__(self) -> str:
        shown = "".join(", %s=%s" % (k, getattr(v, "name", v)) for k, v in self._hyper().items() if not callable(v))
        return "<%s '%s'%s>" % (type(self).__name__, self._name, shown)

    def get_name(self) -> str:
        """Its name."""
        return self._name

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
        pairs = self.compute_gradients(  # by keywords: a subclass may take but the first of them by position
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if not any(g is not None for g, _ in pairs):
            raise at_user_line(
                ValueError(
                    "No gradients provided for any variable, check your graph for ops that do not support gradients, "
                    "between variables %s and loss %s." % ([str(v) for _, v in pairs], loss)
                )
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

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
        update = self._apply(present, global_step, name)
        train_ops = update.graph.get_collection_ref(GraphKeys.TRAIN_OP)
        if update not in train_ops:
            train_ops.append(update)
        return update

    @staticmethod
    def _checked(grad: Any, var: Any) -> Any:
        if isinstance(var, Tensor) and var.op.type not in ("Variable", "VariableV2", "VarHandleOp"):
            raise at_user_line(NotImplementedError("Trying to update a Tensor: %s. A variable is needed." % (var,)))
        if isinstance(grad, IndexedSlices):
            shape = None if grad.dense_shape is None else convert_to_tensor(grad.dense_shape)
            return IndexedSlices(convert_to_tensor(grad.values), convert_to_tensor(grad.indices), shape)
        if not isinstance(grad, Tensor):
            try:
                grad = convert_to_tensor(grad, var.dtype.base_dtype)
            except TypeError:
                raise at_user_line(TypeError("Gradient must be convertible to a Tensor or IndexedSlices, or None: %s" % (grad,))) from None
        return grad

    # ---- variables that it keeps ----

    def get_slot_names(self) -> List[str]:
        """The names of its slots."""
        return sorted(self._slots)

    def get_slot(self, var: Any, name: str) -> Any:
        """The variable that it keeps for a variable under a name, or None."""
        return self._slots.get(name, {}).get(_var_key(var))

    def variables(self) -> List[Variable]:
        """All variables that it has made in the current graph, by name."""
        made = [*self._non_slots.values(), *(v for slots in self._slots.values() for v in slots.values())]
        return sorted((v for v in made if v.graph is get_default_graph()), key=lambda v: v.name)

    def _slot_dict(self, slot_name: str) -> Dict[Any, Any]:
        return self._slots.setdefault(slot_name, {})

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        return self._slot_of(var, slot_name, lambda: create_zeros_slot(var, op_name))

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Any:
        return self._slot_of(var, slot_name, lambda: create_slot(var, val, op_name))

    def _get_or_make_slot_with_initializer(self, var: Any, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str) -> Any:
        return self._slot_of(var, slot_name, lambda: create_slot_with_initializer(var, initializer, shape, dtype, op_name))

    def _slot_of(self, var: Any, slot_name: str, make: Callable[[], Any]) -> Any:
        slots, key = self._slot_dict(slot_name), _var_key(var)
        if key not in slots:
            slots[key] = make()
        return slots[key]

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any) -> Any:
        key = (name, colocate_with.graph)
        if key not in self._non_slots:
            with graph_colocate_with(colocate_with.op):
                self._non_slots[key] = Variable(initial_value, name=name, trainable=False, use_resource=getattr(colocate_with, "_is_resource", False))
        return self._non_slots[key]

    def _get_non_slot_variable(self, name: str, graph: Any = None) -> Any:
        return self._non_slots.get((name, graph or outermost_graph()))

    def _non_slot_variables(self) -> Any:
        return self._non_slots.values()

    def _non_slots_of(self, graph: Any) -> Dict[str, Any]:
        """The variables of a graph that belong to no other, by their names here."""
        return {name: v for (name, of), v in self._non_slots.items() if of is graph}

    # ---- what one that is written in Python has of its own ----

    def _prepare(self) -> None:
        """Makes tensors of the hyper-parameters."""

    def _create_slots(self, var_list: Any) -> None:
        """Makes the slots of the variables."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        raise NotImplementedError("%s has no _apply_dense" % type(self).__name__)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._apply_dense(convert_to_tensor(grad), var)

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        """By rows that may come twice; _apply_sparse gets each row once."""
        values, rows = _deduplicate_indexed_slices(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(values, rows, grad.dense_shape), var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._apply_dense(grad, handle)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        shape = math_ops.cast(array_ops.shape(handle), indices.dtype)
        return self._resource_apply_dense(convert_to_tensor(IndexedSlices(grad, indices, shape)), handle)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        """By rows that may come twice; _resource_apply_sparse gets each row once."""
        values, rows = _deduplicate_indexed_slices(grad, indices)
        return self._resource_apply_sparse(values, handle, rows)

    def _resource_scatter_add(self, var: Any, indices: Any, values: Any) -> Tensor:
        return var.scatter_add(IndexedSlices(values, indices))

    def _finish(self, update_ops: Any, name_scope: str) -> Operation:
        return control_flow_ops.group(*update_ops, name=name_scope)

    def _valid_dtypes(self) -> Any:
        return {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}

    def _assert_valid_dtypes(self, tensors: Any) -> None:
        for t in tensors:
            if t.dtype.base_dtype not in self._valid_dtypes():
                valid = [d.name for d in self._valid_dtypes()]
                raise at_user_line(ValueError("Invalid type %r for %s, expected: %s." % (t.dtype.base_dtype, t.name, valid)))

    def _call_if_callable(self, value: Any) -> Any:
        return value() if callable(value) and not isinstance(value, (Variable, Tensor)) else value

    def _apply(self, pairs: List[Tuple[Any, Any]], global_step: Any, name: Optional[str]) -> Operation:
        """An operation that changes variables by gradients, which all are there."""
        with init_scope():
            self._create_slots([v for _, v in pairs])
        with name_scope(name, self._name) as scope:
            self._prepare()
            updates = []
            for grad, var in pairs:
                beside = graph_colocate_with(var.op) if var.op.graph is get_default_graph() else contextlib.nullcontext()
                with name_scope("update_" + var.op.name), beside:
                    updates.append(self._update(grad, var))
            if global_step is None:
                return self._finish(updates, scope)
            with get_default_graph().control_dependencies([self._finish(updates, "update")]):
                result = global_step.assign_add(math_ops.cast(1, global_step.dtype.base_dtype), name=scope)
                return getattr(result, "op", result)

    def _update(self, grad: Any, var: Any) -> Any:
        if not isinstance(var, Variable):
            raise at_user_line(NotImplementedError("Trying to update a Tensor %s" % (var,)))
        constraint = getattr(var, "constraint", None)
        if isinstance(grad, IndexedSlices):
            if constraint is not None:
                raise at_user_line(RuntimeError("Cannot use a constraint function on a sparse variable."))
            if var._is_resource:
                return self._resource_apply_sparse_duplicate_indices(grad.values, var, grad.indices)
            return self._apply_sparse_duplicate_indices(grad, var)
        update = self._resource_apply_dense(grad, var) if var._is_resource else self._apply_dense(grad, var)
        if constraint is None:
            return update
        with get_default_graph().control_dependencies([update]):
            return var.assign(constraint(var.read_value()))


def _var_key(var: Any) -> Any:
    """What a variable's slots are kept under."""
    return var.op.graph, var.op.name


def _deduplicate_indexed_slices(values: Any, indices: Any) -> Tuple[Any, Any]:
    """Values summed by row, and the rows, each of which comes once."""
    rows, which = gen_ops.unique(indices)
    return gen_ops.unsorted_segment_sum(values, which, array_ops.shape(rows)[0]), rows
