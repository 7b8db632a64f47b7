# SPDX-License-Identifier: Apache-2.0
"""The short names of layers in the lines of networks."""

from __future__ import annotations

from typing import Any, Optional

from millrace import nn as _nn
from millrace.contrib import layers as _layers
from millrace.contrib import ndlstm as _ndlstm
from millrace.contrib.specs.functions import Callable as _Callable
from millrace.contrib.specs.functions import Composable as _Composable
from millrace.contrib.specs.functions import External as External
from millrace.contrib.specs.functions import Function as Fun
from millrace.contrib.specs.functions import Import as Import
from millrace.contrib.specs.functions import debug as debug
from millrace.framework.errors import at_user_line as _at_user_line
from millrace.ops import array_ops as _array_ops
from millrace.ops import control_flow_ops as _control_flow_ops
from millrace.ops import math_ops as _math_ops
from millrace.ops import variable_scope as _scopes


class Idx(_Composable):
    """The input itself."""

    def funcall(self, x: Any) -> Any:
        """What it makes of an input."""
        return x


class Conc(_Composable):
    """What several make of the input, side by side along a dimension."""

    def __init__(self, dim: int, *args: Any) -> None:
        self.dim, self.funs = dim, args

    def funcall(self, x: Any) -> Any:
        """What it makes of an input."""
        return _array_ops.concat([f.funcall(x) for f in self.funs], self.dim)


Print = Fun(_control_flow_ops.Print)
Id = Fun(_array_ops.identity)

# convolutions and fully connected layers, by activation: x as the layer has it, s sigmoid, t tanh, r relu, m softmax, l none
Cx, Fx = Fun(_layers.conv2d), Fun(_layers.fully_connected)
Cs, Fs = Cx(activation_fn=_math_ops.sigmoid), Fx(activation_fn=_math_ops.sigmoid)
Ct, Ft = Cx(activation_fn=_math_ops.tanh), Fx(activation_fn=_math_ops.tanh)
Cr, Fr = Cx(activation_fn=_nn.relu), Fx(activation_fn=_nn.relu)
Cm, Fm = Cx(activation_fn=_nn.softmax), Fx(activation_fn=_nn.softmax)
Cl, Fl = Cx(activation_fn=None), Fx(activation_fn=None)

Mp = Fun(_layers.max_pool2d)
Ap = Fun(_layers.avg_pool2d)
Do = Fun(_layers.dropout)
Bn = Fun(_layers.batch_norm)
Lrn = Fun(_nn.local_response_normalization)
Unit = Fun(_layers.unit_norm)
Flat = Fun(_layers.flatten)
Reshape = Fun(_array_ops.reshape)
Transpose = Fun(_array_ops.transpose)
Squeeze = Fun(_array_ops.squeeze)
Expand = Fun(_array_ops.expand_dims)
Relu = Fun(_nn.relu)
Sig = Fun(_math_ops.sigmoid)
Tanh = Fun(_math_ops.tanh)
Smax = Fun(_nn.softmax)


def Dws(n: int) -> Fun:
    """A layer by values of channels, with sigmoids."""
    return Cs(n, [1, 1])


def Dwm(n: int) -> Fun:
    """A layer by values of channels, with a softmax."""
    return Cm(n, [1, 1])


def Var(name: str, *args: Any, **kw: Any) -> _Callable:
    """A variable, whatever the input."""
    return _Callable(lambda _: _scopes.get_variable(name, *args, **kw))


class Shared(_Composable):
    """A part that has the same variables wherever it stands."""

    shared_number = 1  # of the next one without a name

    def __init__(self, subnet: Any, name: Optional[str] = None, scope: Any = None) -> None:
        if scope is not None and not isinstance(scope, _scopes.VariableScope):
            raise _at_user_line(ValueError("scope must be None or a VariableScope"))
        if scope is not None and name is not None:
            raise _at_user_line(ValueError("cannot provide both a name and a scope"))
        if name is None:
            name = "Shared_%d" % Shared.shared_number
            Shared.shared_number += 1
        self.subnet, self.name, self.scope = subnet, name, scope

    def funcall(self, x: Any) -> Any:
        """What it makes of an input."""
        with _scopes.variable_scope(self.scope or self.name, values=[x], reuse=True if self.scope else None) as scope:
            self.scope = self.scope or scope
            return self.subnet.funcall(x)


# Recurrent nets over images, as up to 1.3.
Lstm2, Lstm2to1, Lstm2to0 = Fun(_ndlstm.separable_lstm), Fun(_ndlstm.reduce_to_sequence), Fun(_ndlstm.reduce_to_final)


def Clstm2(n: int, *args: Any, **kw: Any) -> Any:
    """A convolution of 3 x 3 to n channels, and Lstm2 behind it."""
    return Cl(n, [3, 3]) | Lstm2(*args, **kw)
