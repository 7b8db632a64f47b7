# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.opt: optimizers that live outside the graph."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

import numpy as np

from millrace.contrib.lazy_adam import LazyAdamOptimizer  # noqa: F401
from millrace.contrib.sign_optimizers import (  # noqa: F401
    AddSignOptimizer,
    PowerSignOptimizer,
    get_cosine_decay_fn,
    get_linear_decay_fn,
    get_restart_decay_fn,
)
from millrace.framework import numpy_cast
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.default_session import get_default_session
from millrace.framework.graph import control_dependencies
from millrace.ops import array_ops, control_flow_ops
from millrace.ops.gradients import gradients
from millrace.ops.variables import global_variables, trainable_variables
from millrace.train.moving_averages import ExponentialMovingAverage
from millrace.train.optimizer import Optimizer
from millrace.train.saver import Saver


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
                return got[0], np.asarray(got[1], np.float64)

            return call

        pairs = [[t, g] for t, g in zip([self._loss, *self._equalities, *self._inequalities], self._gradients)]
        functions = [evaluate(pair, i == 0) for i, pair in enumerate(pairs)]
        start = np.concatenate([np.ravel(v) for v in session.run(self._vars)]).astype(np.float64)
        count = len(self._equalities)
        result = self._minimize(start, functions[0], functions[1 : count + 1], functions[count + 1 :], self._bounds, step_callback, self.optimizer_kwargs)
        self._store(result, session)

    def _store(self, vector: Any, session: Any) -> None:
        for v, part in zip(self._vars, self._parts):
            v.load(numpy_cast.cast(vector[part].reshape(v.get_shape().as_list()), v.dtype.base_dtype), session)

    def _minimize(
        self, initial_val: Any, loss_grad_func: Any, equalities: Any, inequalities: Any, packed_bounds: Any, step_callback: Any, optimizer_kwargs: Any
    ) -> Any:
        raise at_user_line(NotImplementedError("%s has no _minimize" % type(self).__name__))


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """scipy.optimize.minimize; method="L-BFGS-B" unless given, or "SLSQP" where there are constraints."""

    def _minimize(
        self, initial_val: Any, loss_grad_func: Any, equalities: Any, inequalities: Any, packed_bounds: Any, step_callback: Any, optimizer_kwargs: Any
    ) -> Any:
        try:
            import scipy.optimize  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            raise at_user_line(ImportError("ScipyOptimizerInterface needs SciPy: pip install scipy")) from None
        kwargs = dict(optimizer_kwargs)
        method = kwargs.pop("method", "SLSQP" if equalities or inequalities else "L-BFGS-B")
        constraints = [
            {"type": kind, "fun": lambda x, f=f: f(x)[0], "jac": lambda x, f=f: f(x)[1]}
            for kind, functions in (("eq", equalities), ("ineq", inequalities))
            for f in functions
        ]
        if constraints and method != "SLSQP":
            raise at_user_line(NotImplementedError('constraints need method="SLSQP", not %s' % method))
        made = scipy.optimize.minimize(
            lambda x: tuple(loss_grad_func(x)),
            initial_val,
            jac=True,
            method=method,
            bounds=packed_bounds,
            constraints=constraints,
            callback=step_callback,
            **kwargs,
        )
        return made.x


class MovingAverageOptimizer(Optimizer):
    """Another optimizer that averages the variables after each step; swapping_saver saves the averages in their place."""

    def __init__(self, opt: Any, average_decay: float = 0.9999, num_updates: Any = None, sequential_update: bool = True) -> None:
        super().__init__(False, "MovingAverage")
        self._optimizer, self._sequential = opt, sequential_update
        self._ema = ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._variables: Any = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Any:
        """An operation that makes a step and averages; with sequential_update one after the other."""
        pairs = list(grads_and_vars)
        self._variables = [v for g, v in pairs if g is not None]
        step = self._optimizer.apply_gradients(pairs, global_step, name)
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
        for v in self._variables:
            average = self._ema.average(v)
            names = {id(value): key for key, value in by_name.items()}
            if id(v) not in names or id(average) not in names:
                raise at_user_line(ValueError("Variable %s to swap is not part of variables to save. This breaks MovingAverageOptimizer." % v.op.name))
            swapped[names[id(v)]], swapped[names[id(average)]] = average, v
        return Saver(swapped, name=name, **kwargs)

    def get_slot(self, var: Any, name: str) -> Any:
        """The optimizer's."""
        return self._optimizer.get_slot(var, name)
