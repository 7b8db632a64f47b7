# SPDX-License-Identifier: Apache-2.0
"""Reversible residual layers (Gomez and others, 2017): their gradients compute the inputs anew from the outputs, so that no layer's are kept."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies
from millrace.ops import gen_ops
from millrace.ops.gradients import custom_gradient, gradients
from millrace.ops.variable_scope import VariableScope, variable_scope

_Function = Callable[..., Any]


def _one_each(functions: Any, count: int) -> List[_Function]:
    listed = list(functions) if isinstance(functions, list) else [functions] * count
    if len(listed) != count:
        raise at_user_line(ValueError("RevBlock has %d layers, but %d functions are given" % (count, len(listed))))
    return listed


def _added(totals: List[Any], more: Sequence[Any]) -> List[Any]:
    return [new if total is None else total if new is None else total + new for total, new in zip(totals, more)]


class RevBlock:
    """Layers y1 = x1 + f(x2), y2 = x2 + g(y1), with variables of their own; forward() and backward() share them.

    f and g: functions of a tensor, and of a list of further ones where there are f_side_input or g_side_input; or a list of functions, one for
    each layer. use_efficient_backprop: whether gradients compute anew what the layers gave.
    """

    def __init__(
        self,
        f: Any,
        g: Any,
        num_layers: int = 1,
        f_side_input: Any = None,
        g_side_input: Any = None,
        use_efficient_backprop: bool = True,
        name: str = "revblock",
    ) -> None:
        self.num_layers, self.f_side_input, self.g_side_input = num_layers, list(f_side_input or []), list(g_side_input or [])
        self.f = [self._in_scope(function, "revlayer_%d/f" % i) for i, function in enumerate(_one_each(f, num_layers))]
        self.g = [self._in_scope(function, "revlayer_%d/g" % i) for i, function in enumerate(_one_each(g, num_layers))]
        self._efficient, self._name = use_efficient_backprop, name
        self._scope: Optional[VariableScope] = None

    name = property(lambda self: self._name, doc="The name of its scope.")
    variables = property(lambda self: [] if self._scope is None else self._scope.global_variables(), doc="The variables of its layers.")
    trainable_variables = property(lambda self: [] if self._scope is None else self._scope.trainable_variables(), doc="Those that are trained.")

    @staticmethod
    def _in_scope(function: _Function, scope: str) -> _Function:
        def call(x: Tensor, side: List[Tensor]) -> Any:
            with variable_scope(scope, use_resource=True):
                return function(x, side) if side else function(x)

        return call

    @contextlib.contextmanager
    def _entered(self) -> Iterator[None]:
        if self._scope is not None:
            with variable_scope(self._scope, reuse=True):
                yield
        else:
            with variable_scope(None, self._name) as scope:
                yield
            self._scope = scope

    def _layers(self, x1: Any, x2: Any, f_side: List[Any], g_side: List[Any]) -> Tuple[Any, Any]:
        for f, g in zip(self.f, self.g):
            x1 = x1 + f(x2, f_side)
            x2 = x2 + g(x1, g_side)
        return x1, x2

    def _gradients(self, ys: Any, grads: Any, f_side: List[Any], g_side: List[Any], variables: List[Any]) -> Tuple[List[Any], List[Any]]:
        (y1, y2), (grad1, grad2) = ys, grads
        of_f: List[Any] = [None] * (len(f_side) + len(variables))
        of_g: List[Any] = [None] * (len(g_side) + len(variables))
        for f, g in zip(self.f[::-1], self.g[::-1]):
            with control_dependencies([grad1, grad2]):  # a layer's inputs come when its gradients are there, not before
                y1, y2 = gen_ops.identity(y1), gen_ops.identity(y2)
            at_y1, g_given = gen_ops.stop_gradient(y1), [gen_ops.stop_gradient(side) for side in g_side]
            g_made = g(at_y1, g_given)
            x2 = y2 - g_made
            at_x2, f_given = gen_ops.stop_gradient(x2), [gen_ops.stop_gradient(side) for side in f_side]
            f_made = f(at_x2, f_given)
            into_y1, *parts = gradients(g_made, [at_y1, *g_given, *variables], grad2)
            of_g, grad1 = _added(of_g, parts), grad1 + into_y1
            into_x2, *parts = gradients(f_made, [at_x2, *f_given, *variables], grad1)
            of_f, grad2 = _added(of_f, parts), grad2 + into_x2
            y1, y2 = y1 - f_made, x2
        of_variables = _added(of_f[len(f_side) :], of_g[len(g_side) :])
        return [grad1, grad2, *of_f[: len(f_side)], *of_g[: len(g_side)]], of_variables

    def forward(self, x1: Any, x2: Any) -> Tuple[Any, Any]:
        """What the layers give."""
        count = len(self.f_side_input)

        def layers(first: Any, second: Any, *sides: Any) -> Any:
            f_side, g_side = list(sides[:count]), list(sides[count:])
            made = self._layers(first, second, f_side, g_side)

            def backward(*grads: Any, variables: Any = ()) -> Any:
                with self._entered():
                    return self._gradients(made, grads, f_side, g_side, list(variables))

            return list(made), backward

        with self._entered():
            if not self._efficient:
                return self._layers(x1, x2, self.f_side_input, self.g_side_input)
            y1, y2 = custom_gradient(layers)(x1, x2, *self.f_side_input, *self.g_side_input)
            return y1, y2

    def backward(self, y1: Any, y2: Any) -> Tuple[Any, Any]:
        """What gives y1 and y2."""
        with self._entered():
            for f, g in zip(self.f[::-1], self.g[::-1]):
                y2 = y2 - g(y1, self.g_side_input)
                y1 = y1 - f(y2, self.f_side_input)
        return y1, y2


def rev_block(
    x1: Any, x2: Any, f: Any, g: Any, num_layers: int = 1, f_side_input: Any = None, g_side_input: Any = None, is_training: bool = True
) -> Tuple[Any, Any]:
    """What RevBlock.forward gives; without is_training its gradients keep what the layers gave."""
    return RevBlock(f, g, num_layers, f_side_input, g_side_input, is_training).forward(x1, x2)
