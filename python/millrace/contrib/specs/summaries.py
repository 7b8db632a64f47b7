# SPDX-License-Identifier: Apache-2.0
"""What a network is made of, in a line or a table."""

from __future__ import annotations

from typing import Any, Callable, Iterator, List, Optional, Set, Tuple

from millrace.contrib.specs.nets import create_net
from millrace.framework import dtypes
from millrace.framework.graph import Operation, Tensor
from millrace.ops import array_ops

_SHORT = {"Const": "_", "Placeholder": "_", "Conv2D": "conv", "MatMul": "dot", "Sigmoid": "sig", "Variable": "var"}


def _parts(x: Any) -> Tuple[Operation, Any]:
    return (x.op, x.get_shape().as_list()) if isinstance(x, Tensor) else (x, None)


def _inputs(op: Operation) -> List[Any]:
    return [] if "/HorizontalLstm/" in op.name else list(op.inputs)


def tf_structure(x: Any, include_shapes: bool = False, finished: Optional[Set[Any]] = None) -> str:
    """The kinds of operations that lead to a tensor, inputs first; <> stands for what is there already."""
    done = set() if finished is None else finished
    op, shape = _parts(x)
    if op in done:
        return " <>"
    done.add(op)
    inputs = "".join(tf_structure(y, include_shapes, done) for y in _inputs(op))
    own = "" if op.type == "Identity" else " " + _SHORT.get(op.type, op.type.lower())
    return inputs + (" %s" % (shape or [],) if include_shapes else "") + own


def tf_print(x: Any, depth: int = 0, finished: Optional[Set[Any]] = None, printer: Callable[[str], Any] = print) -> None:
    """Prints the operations that lead to a tensor, each before its inputs."""
    done = set() if finished is None else finished
    op, shape = _parts(x)
    if op.type == "Identity":
        op = op.inputs[0].op
    known = op in done
    printer("%s%s %s %s" % ("  " * depth, "<%s>" % op.name if known else op.name, op.type, "" if shape is None else shape))
    if not known:
        done.add(op)
        for y in _inputs(op):
            tf_print(y, depth + 1, done, printer)


def tf_num_params(x: Any) -> int:
    """How many numbers the variables have that lead to a tensor, each as often as it does."""
    op, _ = _parts(x)
    if op.type in ("Variable", "VariableV2"):
        count = op.outputs[0].get_shape().num_elements()
        assert count is not None
        return count
    return sum(tf_num_params(y) for y in op.inputs)


def tf_parameter_iter(x: Any) -> Iterator[Tuple[str, int, Any]]:
    """(name, numbers in variables, shape) of the operations from a tensor back along first inputs."""
    while x is not None:
        op, shape = _parts(x)
        inputs = list(op.inputs)[1:] if op.type == "Concat" else list(op.inputs)
        yield op.name, sum(tf_num_params(y) for y in inputs[1:]), "" if shape is None else shape
        x = inputs[0] if inputs else None


def tf_parameter_summary(x: Any, printer: Callable[[str], Any] = print, combine: bool = True) -> None:
    """Prints how many numbers the variables of layers have, from the input on; combine: the operations of a scope as one."""
    rows: List[Tuple[str, int, Any]] = []
    for name, total, shape in tf_parameter_iter(x):
        scope = name.split("/")[0]
        if combine and rows and rows[-1][0] == scope:
            rows[-1] = (scope, rows[-1][1] + total, rows[-1][2])
        else:
            rows.append((scope if combine else name, total, shape))
    for name, total, shape in reversed(rows):
        printer("%10d %-20s %s" % (total, name, shape))


def _net(spec: str, inputs: Any, input_shape: Any, input_type: Any) -> Any:
    return create_net(spec, array_ops.placeholder(input_type, input_shape) if inputs is None else inputs)


def tf_spec_structure(spec: str, inputs: Any = None, input_shape: Any = None, input_type: Any = dtypes.float32) -> str:
    """tf_structure of a network."""
    return tf_structure(_net(spec, inputs, input_shape, input_type)).strip()


def tf_spec_summary(spec: str, inputs: Any = None, input_shape: Any = None, input_type: Any = dtypes.float32) -> None:
    """tf_parameter_summary of a network."""
    tf_parameter_summary(_net(spec, inputs, input_shape, input_type))


def tf_spec_print(spec: str, inputs: Any = None, input_shape: Any = None, input_type: Any = dtypes.float32) -> None:
    """tf_print of a network."""
    tf_print(_net(spec, inputs, input_shape, input_type))
