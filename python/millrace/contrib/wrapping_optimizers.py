# SPDX-License-Identifier: Apache-2.0
"""Optimizers of tf.contrib.opt that do something beside another optimizer's steps."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from millrace import summary
from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, colocate_with, control_dependencies, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, init_ops, math_ops
from millrace.ops.variable_scope import get_variable
from millrace.ops.variables import global_variables
from millrace.train.global_step import get_global_step
from millrace.train.moving_averages import ExponentialMovingAverage
from millrace.train.optimizer import Optimizer
from millrace.train.saver import Saver


class _Wrapping(Optimizer):
    """Leaves gradients and slots to another optimizer."""

    def __init__(self, opt: Any, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._opt = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's."""
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        """The optimizer's."""
        return self._opt.variables()


class MovingAverageOptimizer(_Wrapping):
    """Another optimizer that averages the variables after each step; swapping_saver saves the averages in their place."""

    def __init__(self, opt: Any, average_decay: float = 0.9999, num_updates: Any = None, sequential_update: bool = True) -> None:
        super().__init__(opt, False, "MovingAverage")
        self._sequential = sequential_update
        self._ema = ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._variables: Any = None

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Any:
        """An operation that makes a step and averages; with sequential_update one after the other."""
        pairs = list(grads_and_vars)
        self._variables = [v for g, v in pairs if g is not None]
        step = self._opt.apply_gradients(pairs, global_step, name)
        with control_dependencies([step] if self._sequential else []):
            averaged = self._ema.apply(self._variables)
        return control_flow_ops.group(step, averaged)

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Any:
        """A Saver that writes averages under the names of their variables, and the variables under those of the averages."""
        if self._variables is None:
            raise at_user_line(RuntimeError("Must call apply_gradients or minimize before creating the swapping_saver"))
        chosen = global_variables() if var_list is None else var_list
        by_name = dict(chosen) if isinstance(chosen, dict) else {v.op.name: v for v in chosen}
        swapped = dict(by_name)
        names = {id(value): key for key, value in by_name.items()}
        for v in self._variables:
            average: Any = self._ema.average(v)
            missing = [x.op.name for x in (v, average) if id(x) not in names]
            if len(missing) == 1:
                raise at_user_line(ValueError("Variable to swap %s is not part of variables to save. This breaks MovingAverageOptimizer." % missing[0]))
            if not missing:
                swapped[names[id(v)]], swapped[names[id(average)]] = average, v
        return Saver(swapped, name=name, **kwargs)


class VariableClippingOptimizer(_Wrapping):
    """Another optimizer; after its steps variables are clipped to a norm, along the axes that vars_to_clip_dims has for them."""

    def __init__(
        self,
        opt: Any,
        vars_to_clip_dims: Dict[Any, Sequence[int]],
        max_norm: Any,
        use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:
        del colocate_clip_ops_with_vars  # where an operation runs is the placement's
        super().__init__(opt, use_locking, name)
        self._max_norm, self._dims = max_norm, {v: list(dims) for v, dims in vars_to_clip_dims.items()}

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Any:
        """An operation that makes a step and clips."""
        pairs = list(grads_and_vars)
        with name_scope(name, self._name) as scope:
            update = self._opt.apply_gradients(pairs, global_step=global_step)
            with control_dependencies([update]):
                clipped = [self._clip(grad, v) for grad, v in pairs if grad is not None and v in self._dims]
            return control_flow_ops.group(update, *clipped, name=scope)

    def _clip(self, grad: Any, var: Any) -> Any:
        dims = self._dims[var]
        with name_scope("clip_" + var.op.name), colocate_with(var.op):
            if not isinstance(grad, IndexedSlices) or 0 in dims:
                value = var.read_value()
                return var.assign_sub(value - math_ops.clip_by_norm(value, self._max_norm, dims), use_locking=self._use_locking)
            rows = gen_ops.unique(grad.indices)[0]  # once each: what is taken off must not be taken off twice
            values = array_ops.gather(var.read_value(), rows)
            return var.scatter_sub(IndexedSlices(values - math_ops.clip_by_norm(values, self._max_norm, dims), rows), use_locking=self._use_locking)


class DropStaleGradientOptimizer(_Wrapping):
    """Another optimizer; gradients since whose computation the global step has moved by more than staleness are left out, and counted."""

    def __init__(self, opt: Any, staleness: int, use_locking: bool = False, name: str = "DropStaleGradient") -> None:
        super().__init__(opt, use_locking, name)
        self._staleness = staleness

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's, of a loss that is computed after the global step was read."""
        self._local_step = get_global_step() + 0
        with control_dependencies([self._local_step]):
            return self._opt.compute_gradients(array_ops.identity(loss), *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Any:
        """How many steps were left out, after this one was made or left out."""
        pairs = list(grads_and_vars)
        with colocate_with(global_step):  # where all workers find it
            counter = get_variable("stale_counter", [], initializer=init_ops.zeros_initializer(), trainable=False)

        def accept() -> Any:
            with control_dependencies([self._opt.apply_gradients(pairs, global_step=global_step, name=name)]):
                return array_ops.identity(0.0)

        with control_dependencies([g if isinstance(g, Tensor) else g.op for g, _ in pairs if g is not None]):
            moved = array_ops.reshape(global_step.read_value() - self._local_step, [])  # read now: others may have moved it
        late = control_flow_ops.cond(gen_ops.less_equal(moved, math_ops.cast(self._staleness, moved.dtype)), accept, lambda: array_ops.identity(1.0))
        counted = counter.assign_add(late)
        summary.scalar("Gradient staleness percentage", counter / math_ops.cast(global_step + 1, dtypes.float32))
        return counted


def _is_zero(grad: Any) -> Any:
    values = grad.values if isinstance(grad, IndexedSlices) else grad
    return gen_ops.equal(math_ops.count_nonzero(values), 0)


class MultitaskOptimizerWrapper:
    """Another optimizer that leaves a variable and its slots as they are where the gradient is all zeros: the task's loss was masked."""

    def __init__(self, opt: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise at_user_line(TypeError("Supplied optimizer must be an instance of tf.train.Optimizer"))
        self._opt = opt
        for name in ("_apply_dense", "_resource_apply_dense", "_apply_sparse", "_resource_apply_sparse"):
            setattr(opt, name, self._unless_zero(getattr(opt, name)))

    @staticmethod
    def _unless_zero(apply: Callable[..., Any]) -> Callable[..., Any]:
        def applied(grad: Any, *args: Any) -> Any:
            def step() -> Any:
                with control_dependencies([apply(grad, *args)]):
                    return control_flow_ops.no_op()

            return control_flow_ops.cond(_is_zero(grad), control_flow_ops.no_op, step)

        return applied

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def clip_gradients_by_global_norm(gradients_variables: Any, clip_norm: Any = 20.0) -> Tuple[List[Tuple[Any, Any]], Any]:
    """(pairs whose gradients are clipped by their common norm, that norm before it)."""
    grads, variables = zip(*gradients_variables)
    norm = math_ops.global_norm(grads)
    clipped, _ = math_ops.clip_by_global_norm(grads, clip_norm, use_norm=norm)
    return list(zip(clipped, variables)), norm
