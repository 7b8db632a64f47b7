# SPDX-License-Identifier: Apache-2.0
"""Nodes that call functions (Defuns): branches, loops and calls as single nodes, and gradients of functions."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.function import Defun
from millrace.framework.graph import Operation, Tensor, get_default_graph
from millrace.ops import gen_ops, math_ops


def _name_of(function: Any) -> str:
    """The name of a function, which the default graph has from now on."""
    if isinstance(function, str):
        return function
    function.add_to_graph(get_default_graph())
    return str(function.name)


def _results(function: Any) -> List[Any]:
    return [dtypes.as_dtype(a.type) for a in function.definition.signature.output_arg]


def _listed(made: Any) -> List[Tensor]:
    """The outputs of a call; nothing of one that has none, whose node stays in the graph."""
    return [] if made is None or isinstance(made, Operation) else list(made) if isinstance(made, (list, tuple)) else [made]


def If(cond: Any, inputs: Sequence[Any], then_branch: Any, else_branch: Any, name: Optional[str] = None) -> List[Tensor]:
    """What one of two functions returns for the inputs, as a condition says."""
    return _listed(gen_ops._if(cond, list(inputs), _results(then_branch), _name_of(then_branch), _name_of(else_branch), name=name))


def case(branch_index: Any, input: Sequence[Any], Tout: Any, branches: Sequence[Any], output_shapes: Any = (), name: Optional[str] = None) -> List[Tensor]:
    """What the function at a place of `branches` (Defuns, functions of tf.function, or names) returns for the inputs; the last one where there is none."""
    return _listed(gen_ops.case(branch_index, list(input), Tout, [_name_of(b) for b in branches], output_shapes, name=name))


def symbolic_gradient(input: Sequence[Any], Tout: Any, f: Any, name: Optional[str] = None) -> Any:
    """The gradients of a function (a Defun, or its name) by its arguments. `input`: these, then the gradients of what it returns."""
    made = _listed(gen_ops.symbolic_gradient(list(input), Tout, _name_of(f), name=name))
    return made[0] if len(made) == 1 else made


def Gradient(inputs: Sequence[Any], f: Any, name: Optional[str] = None) -> List[Tensor]:
    """symbolic_gradient of a Defun, whose arguments say the types."""
    return _listed(symbolic_gradient(inputs, list(f.declared_input_types), f, name))


def _with_captured(body: Any) -> Any:
    """A loop's body whose captured tensors are arguments that it gives back."""
    captured = body.captured_inputs
    count = len(body.declared_input_types)

    @Defun(*body.declared_input_types, *[t.dtype for t in captured], func_name="%s_Wrapper" % body.name)
    def wrapper(*args: Any) -> Any:
        return [*_listed(body._called(args[:count], args[count:])), *args[count:]]

    return wrapper


def While(input_: Sequence[Any], cond: Any, body: Any, name: Optional[str] = None, hostmem: Any = None) -> List[Tensor]:
    """The inputs replaced by what `body` returns for them as long as `cond` says so."""
    del hostmem  # every device reads the memory of the host
    if cond.captured_inputs:
        raise at_user_line(ValueError("While op 'cond' argument must be a function without implicitly captured inputs."))
    types = list(body.declared_input_types)
    if list(cond.declared_input_types) != types:
        raise at_user_line(ValueError("While op 'cond' and 'body' signatures do not match. %s vs %s" % (list(cond.declared_input_types), types)))
    values, captured = list(input_), body.captured_inputs
    if captured:

        @Defun(*types, *[t.dtype for t in captured], func_name="%s_Wrapper" % cond.name)
        def condition(*args: Any) -> Any:
            return cond(*args[: len(types)])

        made = gen_ops._while([*values, *captured], _name_of(condition), _name_of(_with_captured(body)), name=name)
    else:
        made = gen_ops._while(values, _name_of(cond), _name_of(body), name=name)
    return _listed(made)[: len(values)]


def For(
    start: Any, limit: Any, delta: Any, inputs: Sequence[Any], body: Any, name: Optional[str] = None, hostmem: Any = None, rewrite_with_while: Any = None
) -> List[Tensor]:
    """The inputs replaced by what `body` returns for a number and them, for numbers from start to before limit. rewrite_with_while: by a While."""
    if rewrite_with_while:
        return _for_by_while(start, limit, delta, list(inputs), body, name)
    del hostmem  # every device reads the memory of the host
    captured = body.captured_inputs
    made = _listed(gen_ops._for(start, limit, delta, [*inputs, *captured], _name_of(_with_captured(body) if captured else body), name=name))
    return made[: len(inputs)]


def _for_by_while(start: Any, limit: Any, delta: Any, inputs: List[Any], body: Any, name: Optional[str]) -> List[Tensor]:
    start, limit, delta = (convert_to_tensor(v, dtypes.int32) for v in (start, limit, delta))
    step = math_ops.abs(delta)
    count = gen_ops.floor_div(math_ops.abs(limit - start) + step - 1, step)
    types = [dtypes.int32] * 4 + list(body.declared_input_types)[1:]

    @Defun(*types, func_name="%s_Cond" % body.name)
    def goes_on(i: Any, n: Any, *unused: Any) -> Any:
        return i < n

    @Defun(*types, func_name="%s_Body" % body.name)
    def step_on(i: Any, n: Any, first: Any, distance: Any, *values: Any) -> Any:
        return [i + 1, n, first, distance, *_listed(body(first + i * distance, *values))]

    return While([0, count, start, delta, *inputs], goes_on, step_on, name)[4:]


def partitioned_call(args: Sequence[Any], f: Any, tout: Any = None, executing_eagerly: Any = None, config: Any = None, executor_type: Any = None) -> Any:
    """What a function returns for its arguments, the captured ones among them: a list, or the operation where it returns nothing."""
    del executing_eagerly, config  # there are graphs alone, which the session rewrites
    call = gen_ops.stateful_partitioned_call if f.stateful_ops else gen_ops.partitioned_call
    made = call(list(args), _results(f) if tout is None else tout, _name_of(f), executor_type=executor_type or "")
    return made if isinstance(made, Operation) else _listed(made)
