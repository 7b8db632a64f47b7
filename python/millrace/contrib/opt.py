# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.opt: more optimizers, and those that live outside the graph."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, List, Optional

import numpy as np

from millrace.contrib.adam_optimizers import (  # noqa: F401
    AdaMaxOptimizer,
    AdamGSOptimizer,
    LazyAdamGSOptimizer,
    LazyAdamOptimizer,
    NadamOptimizer,
)
from millrace.contrib.averaging_optimizers import (  # noqa: F401
    AGNCustomGetter,
    AGNOptimizer,
    ElasticAverageCustomGetter,
    ElasticAverageOptimizer,
    ModelAverageCustomGetter,
    ModelAverageOptimizer,
)
from millrace.contrib.decay_optimizers import (  # noqa: F401
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    LARSOptimizer,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)
from millrace.contrib.ggt import GGTOptimizer  # noqa: F401
from millrace.contrib.matrix_functions import matrix_inverse_pth_root, matrix_square_root  # noqa: F401
from millrace.contrib.shampoo import ShampooOptimizer  # noqa: F401
from millrace.contrib.sign_optimizers import (  # noqa: F401
    AddSignOptimizer,
    PowerSignOptimizer,
    get_cosine_decay_fn,
    get_linear_decay_fn,
    get_restart_decay_fn,
)
from millrace.contrib.wrapping_optimizers import (  # noqa: F401
    DropStaleGradientOptimizer,
    MovingAverageOptimizer,
    MultitaskOptimizerWrapper,
    VariableClippingOptimizer,
    clip_gradients_by_global_norm,
)
from millrace.framework import numpy_cast
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.default_session import get_default_session
from millrace.ops import array_ops
from millrace.ops.gradients import gradients
from millrace.ops.variables import trainable_variables
from millrace.train.rules import AdagradOptimizer


class RegAdagradOptimizer(AdagradOptimizer):
    """Adagrad whose slots stay as they are for gradients that are applied within avoid_updating_slots(): those of regularisation."""

    _update_slots = True

    @contextlib.contextmanager
    def avoid_updating_slots(self) -> Iterator[None]:
        """A context in which steps leave the slots alone."""
        kept, self._update_slots = self._update_slots, False
        try:
            yield
        finally:
            self._update_slots = kept

    def __init__(self, learning_rate: Any, initial_accumulator_value: float = 0.1, use_locking: bool = False, name: str = "RegAdagrad") -> None:
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._updated("apply_adagrad", var, grad=grad, update_slots=self._update_slots)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._updated("sparse_apply_adagrad", var, grad=grad.values, indices=grad.indices, update_slots=self._update_slots)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._apply_sparse(IndexedSlices(grad, indices), handle)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._apply_dense(grad, handle)


class ExternalOptimizerInterface:
    """Packs variables into one vector, lets _minimize improve it, and puts the result back."""

    def __init__(
        self, loss: Any, var_list: Any = None, equalities: Any = None, inequalities: Any = None, var_to_bounds: Any = None, **optimizer_kwargs: Any
    ) -> None:
        self.optimizer_kwargs = optimizer_kwargs
        self._loss, self._vars = loss, list(var_list if var_list is not None else trainable_variables())
        self._equalities, self._inequalities = list(equalities or ()), list(inequalities or ())
        self._gradients = [self._flat_gradient(t) for t in [loss, *self._equalities, *self._inequalities]]
        self._sizes = [v.get_shape().num_elements() for v in self._vars]
        ends = np.cumsum([0, *self._sizes])
        self._parts = [slice(a, b) for a, b in zip(ends, ends[1:])]
        self._bounds = self._pack_bounds(var_to_bounds)

    def _flat_gradient(self, tensor: Any) -> Any:
        found = gradients(tensor, self._vars)
        dense = [array_ops.zeros_like(convert_to_tensor(v)) if g is None else convert_to_tensor(g) for g, v in zip(found, self._vars)]
        return array_ops.concat([array_ops.reshape(g, [-1]) for g in dense], 0)

    def _pack_bounds(self, given: Any) -> Any:
        if given is None:
            return None
        packed: List[Any] = []
        for v in self._vars:
            low, high = given.get(v, (-np.inf, np.inf))
            shape = v.get_shape().as_list()
            packed.extend(zip(np.broadcast_to(low, shape).ravel(), np.broadcast_to(high, shape).ravel()))
        return packed

    def minimize(
        self,
        session: Any = None,
        feed_dict: Any = None,
        fetches: Any = None,
        step_callback: Optional[Callable[..., None]] = None,
        loss_callback: Optional[Callable[..., None]] = None,
        **run_kwargs: Any,
    ) -> None:
        """Minimises the loss; loss_callback gets the values of `fetches` each time it is computed."""
        session, fetches = session or get_default_session(), list(fetches or ())
        if session is None:
            raise at_user_line(ValueError("minimize() needs a session: pass session= or use `with sess:`"))

        def evaluate(tensors: Any, on_loss: bool) -> Callable[[Any], Any]:
            def call(vector: Any) -> Any:
                self._store(vector, session)
                got = session.run(tensors + (fetches if on_loss else []), feed_dict, **run_kwargs)
                if on_loss and loss_callback:
                    loss_callback(*got[len(tensors) :])
                return got[: len(tensors)]

            return call

        count = 1 + len(self._equalities)
        tensors = [self._loss, *self._equalities, *self._inequalities]
        functions = [evaluate([t], False) for t in tensors]
        slopes = [evaluate([g], False) for g in self._gradients]
        result = self._minimize(
            initial_val=np.concatenate([np.ravel(v) for v in session.run(self._vars)]),
            loss_grad_func=evaluate([self._loss, self._gradients[0]], True),
            equality_funcs=functions[1:count],
            equality_grad_funcs=slopes[1:count],
            inequality_funcs=functions[count:],
            inequality_grad_funcs=slopes[count:],
            packed_bounds=self._bounds,
            step_callback=step_callback or (lambda vector: None),
            optimizer_kwargs=self.optimizer_kwargs,
        )
        self._store(result, session)

    def _store(self, vector: Any, session: Any) -> None:
        for v, part in zip(self._vars, self._parts):
            v.load(numpy_cast.cast(vector[part].reshape(v.get_shape().as_list()), v.dtype.base_dtype), session)

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: Any,
        equality_funcs: Any,
        equality_grad_funcs: Any,
        inequality_funcs: Any,
        inequality_grad_funcs: Any,
        packed_bounds: Any,
        step_callback: Any,
        optimizer_kwargs: Any,
    ) -> Any:
        """The best vector. Functions take a vector: loss_grad_func gives the loss and its gradient, those of constraints come in two lists."""
        raise at_user_line(NotImplementedError("To use ExternalOptimizerInterface, subclass from it and implement the _minimize() method."))


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """scipy.optimize.minimize; method="L-BFGS-B" unless given, or "SLSQP" where there are constraints."""

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: Any,
        equality_funcs: Any,
        equality_grad_funcs: Any,
        inequality_funcs: Any,
        inequality_grad_funcs: Any,
        packed_bounds: Any,
        step_callback: Any,
        optimizer_kwargs: Any,
    ) -> Any:
        try:
            import scipy.optimize  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            raise at_user_line(ImportError("ScipyOptimizerInterface needs SciPy: pip install scipy")) from None

        def in_double(f: Any) -> Any:  # SciPy's solvers want float64
            return lambda vector: np.asarray(f(vector), np.float64)

        constraints = [
            {"type": kind, "fun": in_double(f), "jac": in_double(slope)}
            for kind, functions, slopes in (("eq", equality_funcs, equality_grad_funcs), ("ineq", inequality_funcs, inequality_grad_funcs))
            for f, slope in zip(functions, slopes)
        ]
        kwargs = dict(optimizer_kwargs)
        method = kwargs.pop("method", "SLSQP" if constraints else "L-BFGS-B")
        if constraints and method != "SLSQP":
            raise at_user_line(NotImplementedError('constraints need method="SLSQP", not %s' % method))
        if "bounds" in kwargs:
            raise at_user_line(ValueError("Bounds must be set using the var_to_bounds argument"))
        own = {"jac": True, "callback": step_callback, "constraints": constraints, "bounds": packed_bounds}
        taken = next((name for name in own if name in kwargs), None)
        if taken is not None:
            raise at_user_line(ValueError("Optimizer keyword arg %r is set automatically and cannot be injected manually" % taken))

        def with_slope(vector: Any) -> Any:
            loss, slope = loss_grad_func(vector)
            return loss, np.asarray(slope, np.float64)

        return scipy.optimize.minimize(with_slope, np.asarray(initial_val, np.float64), method=method, **own, **kwargs).x
