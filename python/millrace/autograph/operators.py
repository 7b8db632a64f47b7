# SPDX-License-Identifier: Apache-2.0
"""What the statements of converted functions call: on tensors they state operations, on anything else they do what Python does."""

from __future__ import annotations

import builtins
import functools
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import numpy as np

from millrace.autograph.jumps import RESULT
from millrace.framework import nest, tensor_util
from millrace.framework.composite_tensors import CompositeTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor
from millrace.ops import array_ops, control_flow_ops, gen_ops, logging_ops, math_ops
from millrace.ops.tensor_array_ops import TensorArray

_State = Tuple[Any, ...]
_Get = Callable[[], _State]
_Set = Callable[[Any], None]


class Undefined:
    """The value of a name that has none: whatever is done with it is an UnboundLocalError."""

    def __init__(self, name: str, why: str = "") -> None:
        self._name, self._why = name, why

    def _error(self) -> Exception:
        what = "the result of the function is not there" if self._name == RESULT else "local variable '%s' referenced before assignment" % self._name
        return at_user_line(UnboundLocalError(what + (self._why and ": " + self._why)))

    def __repr__(self) -> str:
        return "<undefined %s>" % self._name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__float__", "__int__"):
            raise AttributeError(name)
        raise self._error()


def _refuse(self: Undefined, *unused: Any, **unused_keywords: Any) -> Any:
    raise self._error()


for _special in (
    "call getitem setitem delitem iter len contains bool eq ne lt le gt ge add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod "
    "pow rpow matmul rmatmul and rand or ror xor rxor neg pos abs invert index float int array"
).split():
    setattr(Undefined, "__%s__" % _special, _refuse)
Undefined.__hash__ = object.__hash__  # type: ignore[method-assign]


def ld(load: Callable[[], Any], name: str) -> Any:
    """A value that may not be there."""
    try:
        return load()
    except (NameError, AttributeError, UnboundLocalError):
        return Undefined(name)


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """Sets an attribute, to what ld gave."""
    if not isinstance(value, Undefined):
        setattr(owner, name, value)


def returned(value: Any) -> Any:
    """What a function returns."""
    if isinstance(value, Undefined):
        raise value._error()
    return value


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor) or (not isinstance(x, (CompositeTensor, Undefined)) and tensor_util.is_tensor(x))


def _condition(test: Any, what: str) -> Tensor:
    made = convert_to_tensor(test)
    if made.dtype.base_dtype.name != "bool":
        raise at_user_line(TypeError("%s must be a tensor of bool, got %s of %s" % (what, made.name, made.dtype.name)))
    return made


# Values of variables as tensors and back.


def _leaves(value: Any) -> Optional[List[Any]]:
    """The tensors, and what becomes one, of a value; None where it has something else."""
    if isinstance(value, Undefined) or value is None:
        return None
    try:
        flat: List[Any] = nest.flatten(value, expand_composites=True)
    except (TypeError, ValueError):
        return None
    fine = all(isinstance(x, (bool, int, float, complex, str, bytes, np.ndarray, np.generic, TensorArray)) or _is_tensor(x) for x in flat)
    return flat if fine and not any(isinstance(x, np.ndarray) and x.dtype == object for x in flat) else None


def _tensor(x: Any, like: Any = None) -> Any:
    if isinstance(x, TensorArray):
        return x
    if isinstance(like, Tensor) and not _is_tensor(x):
        return convert_to_tensor(x, like.dtype.base_dtype)
    return convert_to_tensor(x)


def _packed(value: Any, flat: Sequence[Any]) -> Any:
    return nest.pack_sequence_as(value, list(flat), expand_composites=True)


def _is_same(a: Any, b: Any) -> bool:
    """Whether two branches leave the same: one object, or equal numbers or texts of Python's."""
    return a is b or (type(a) is type(b) and isinstance(a, (bool, int, float, str, bytes)) and a == b)


def if_stmt(test: Any, body: Callable[[], None], orelse: Callable[[], None], get: _Get, put: _Set, names: Sequence[str]) -> None:
    """`if`: variables that the branches assign have afterwards what the one that is taken left."""
    if not _is_tensor(test):
        return body() if test else orelse()
    before = get()
    ends: List[_State] = []
    flat: List[Any] = []  # of the first branch: (variable, its tensor)
    merged: Set[int] = set()  # variables that both leave alike

    def first() -> Any:
        body()
        ends.append(get())
        put(before)
        for i, value in enumerate(ends[0]):
            flat.extend((i, _tensor(x)) for x in _leaves(value) or ())
        return [x for _, x in flat] or [gen_ops.no_op()]

    def second() -> Any:
        orelse()
        ends.append(get())
        put(before)
        found: List[Any] = []
        for i, value in enumerate(ends[1]):
            wanted = [x for k, x in flat if k == i]
            if isinstance(value, Undefined) and names[i] == RESULT and wanted:  # it is read where the flag of its `return` is set
                ends[1] = (*ends[1][:i], _packed(ends[0][i], [_nothing_like(x) for x in wanted]), *ends[1][i + 1 :])
            matched = _matched(_leaves(ends[1][i]), wanted) if wanted else None
            merged.update([i] if matched else [])
            found += matched or [_nothing_like(x) for x in wanted]
        return found or [gen_ops.no_op()]

    def _matched(mine: Optional[List[Any]], wanted: List[Any]) -> Optional[List[Any]]:
        if mine is None or len(mine) != len(wanted):
            return None
        try:
            made = [_tensor(x, like) for x, like in zip(mine, wanted)]
        except (TypeError, ValueError):
            return None
        return made if all(_kind(a) == _kind(b) for a, b in zip(made, wanted)) else None

    results = control_flow_ops.cond(_condition(test, "the condition of `if`"), first, second, strict=True)
    first_values, second_values = ends
    state = []
    for i, name in enumerate(names):
        if i in merged and not _is_same(first_values[i], second_values[i]):
            state.append(_packed(first_values[i], [r for r, (k, _) in zip(results, flat) if k == i]))
        else:
            state.append(_joined(name, first_values[i], second_values[i]))
    return put(tuple(state))


def _kind(x: Any) -> Any:
    return x.dtype.base_dtype, isinstance(x, TensorArray)


def _nothing_like(x: Any) -> Any:
    """A value of the type, where no branch's will be read."""
    if isinstance(x, TensorArray) or x.dtype.base_dtype.name in ("variant", "resource"):
        return x
    return array_ops.zeros([], x.dtype.base_dtype)


def _joined(name: str, a: Any, b: Any) -> Any:
    """A variable that the branches leave as values that are not merged: one value, or what says why there is none."""
    if _is_same(a, b):
        return a
    for value, where in ((a, "`if`"), (b, "`else`")):
        if isinstance(value, Undefined):
            return Undefined(name, value._why or "only one branch of a conditional on a tensor assigns it; the one of %s does not" % where)
    return Undefined(name, "the branches of a conditional on a tensor leave %s and %s, which cannot be one value" % (_said(a), _said(b)))


def _said(value: Any) -> str:
    if isinstance(value, Tensor):
        return "%s of %s" % (value.name, value.dtype.name)
    return str(value) if value is None or isinstance(value, (bool, int, float, str)) or _is_tensor(value) else "a %s" % type(value).__name__


def if_exp(test: Any, body: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """`body if test else orelse`"""
    if not _is_tensor(test):
        return body() if test else orelse()
    return control_flow_ops.cond(_condition(test, "the condition of `if`"), body, orelse, strict=True)


def loop_options(
    parallel_iterations: Optional[int] = None,
    back_prop: Optional[bool] = None,
    swap_memory: Optional[bool] = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> Dict[str, Any]:
    """The arguments of tf.autograph.experimental.set_loop_options that are given."""
    given = {"parallel_iterations": parallel_iterations, "back_prop": back_prop, "swap_memory": swap_memory}
    given.update(maximum_iterations=maximum_iterations, shape_invariants=shape_invariants)
    return {key: value for key, value in given.items() if value is not None}


def while_stmt(
    test: Callable[[], Any], body: Callable[[], None], get: _Get, put: _Set, names: Sequence[str], local: Sequence[str], options: Callable[[], Any]
) -> None:
    """`while`. `local` are variables that each pass assigns and nobody else reads."""
    before = get()
    going = test()
    if _is_tensor(going):
        put(before)
        return _tensor_loop(test, body, get, put, names, local, options() or {})
    while going:
        body()
        going = test()
        if _is_tensor(going):
            return _tensor_loop(test, body, get, put, names, local, options() or {})
    return None


_LOOP_RESULT = "`return` within a loop over tensors; assign to a variable that is there before the loop, and return that behind it"


def _tensor_loop(
    test: Callable[[], Any],
    body: Callable[[], None],
    get: _Get,
    put: _Set,
    names: Sequence[str],
    local: Sequence[str],
    options: Dict[str, Any],
    counter: Any = None,
) -> None:
    """A loop of the graph. `counter`: a tensor that the first variable of the loop begins with; test and body take it then."""
    before = get()
    ours = [i for i, value in enumerate(before) if names[i] not in local and _leaves(value) is not None]
    lengths = [len(_leaves(before[i]) or ()) for i in ours]
    extra = [] if counter is None else [counter]
    start = extra + [_tensor(x) for i in ours for x in _leaves(before[i]) or ()]
    asked = [] if counter is None else [counter.shape]
    invariants = options.pop("shape_invariants", None)
    if invariants is not None:
        options["shape_invariants"] = asked + _invariants(invariants, before, ours)

    def packed(flat: Sequence[Any]) -> _State:
        rest, state = list(flat), list(before)
        for i, value in enumerate(before):
            if i not in ours and (names[i] in local or isinstance(value, Undefined)):
                state[i] = Undefined(names[i], _LOOP_RESULT if names[i] == RESULT else "a loop over tensors assigns it first within its body: assign it before")
        for i, n in zip(ours, lengths):
            state[i], rest = _packed(before[i], rest[:n]), rest[n:]
        return tuple(state)

    def condition(*flat: Any) -> Any:
        put(packed(flat[len(extra) :]))
        return _condition(test(*flat[: len(extra)]), "the condition of a loop")

    def step(*flat: Any) -> Any:
        put(packed(flat[len(extra) :]))
        body(*flat[: len(extra)])
        after, made = get(), []  # type: _State, List[Any]
        for i, value in enumerate(after):
            if i not in ours and names[i] not in local and not isinstance(before[i], Undefined) and not _is_same(before[i], value):
                raise at_user_line(
                    TypeError(
                        "'%s' is %s before a loop over tensors and %s within it: a variable of such a loop is a tensor from the beginning"
                        % (names[i], _said(before[i]), _said(value))
                    )
                )
        for i, n in zip(ours, lengths):
            mine = _leaves(after[i])
            if isinstance(after[i], Undefined):
                raise after[i]._error()
            if mine is None or len(mine) != n:
                raise at_user_line(TypeError("'%s' becomes %s within a loop over tensors: it was %s" % (names[i], _said(after[i]), _said(before[i]))))
            made += [_tensor(x, like) for x, like in zip(mine, flat[len(extra) + len(made) :])]
        return [*(x + 1 for x in flat[: len(extra)]), *made]

    if not start:
        control_flow_ops.while_loop(lambda n: _condition(test(), "the condition of a loop"), lambda n: _after(body, n), [0], **options)
        return put(packed([]))
    results = control_flow_ops.while_loop(condition, step, start, return_same_structure=True, **options)
    return put(packed(list(results)[len(extra) :]))


def _after(body: Callable[[], None], n: Any) -> Any:
    body()
    return n + 1


def _invariants(asked: Any, before: _State, ours: Sequence[int]) -> List[Any]:
    """The shapes of the variables: those that are asked for, by what the variables are before the loop."""
    found: List[Any] = []
    for i in ours:
        for x in _leaves(before[i]) or ():
            which = [shape for value, shape in asked if value is x or value is before[i]]
            found.append(which[0] if which else None if isinstance(x, TensorArray) else _tensor(x).shape)
    return found


class _Enumerated:
    """enumerate of a tensor."""

    def __init__(self, values: Any, start: Any) -> None:
        self.values, self.start = values, start


def for_stmt(
    values: Any,
    more: Optional[Callable[[], Any]],
    body: Callable[[Any], None],
    get: _Get,
    put: _Set,
    names: Sequence[str],
    local: Sequence[str],
    options: Callable[[], Any],
) -> None:
    """`for`: over the first dimension of a tensor, over the elements of a data set, or what Python iterates over."""
    if isinstance(values, _Enumerated) or _is_tensor(values):
        return _over_tensor(values, more, body, get, put, names, local, options() or {})
    if hasattr(values, "reduce") and hasattr(values, "make_one_shot_iterator"):
        return _over_dataset(values, more, body, get, put, names, local)
    for value in values:
        going = True if more is None else more()
        if _is_tensor(going):
            if_stmt(going, functools.partial(body, value), lambda: None, get, put, names)
        elif going:
            body(value)
        else:
            break
    return None


def _over_tensor(
    values: Any,
    more: Optional[Callable[[], Any]],
    body: Callable[[Any], None],
    get: _Get,
    put: _Set,
    names: Sequence[str],
    local: Sequence[str],
    options: Dict[str, Any],
) -> None:
    numbered = isinstance(values, _Enumerated)
    tensor = convert_to_tensor(values.values if numbered else values)
    if tensor.shape.ndims == 0:
        raise at_user_line(TypeError("a loop over %s: it is a scalar, and has no first dimension" % tensor.name))
    dims = tensor.shape.dims
    static = None if dims is None else dims[0].value
    count = convert_to_tensor(static) if static is not None else array_ops.shape(tensor)[0]

    def going(i: Any) -> Any:
        within = i < count
        if more is None:
            return within
        further = more()
        return gen_ops.logical_and(within, further) if _is_tensor(further) else within if further else convert_to_tensor(False)

    def step(i: Any) -> None:
        body((i + values.start, tensor[i]) if numbered else tensor[i])

    if static is not None:
        options.setdefault("maximum_iterations", static)
    _tensor_loop(going, step, get, put, names, local, options, counter=convert_to_tensor(0))  # type: ignore[arg-type]


def _over_dataset(
    values: Any, more: Optional[Callable[[], Any]], body: Callable[[Any], None], get: _Get, put: _Set, names: Sequence[str], local: Sequence[str]
) -> None:
    if more is not None:
        raise at_user_line(NotImplementedError("`break` and `return` in a loop over a data set: use tf.data's take_while, or Dataset.take"))
    before = get()
    ours = [i for i, value in enumerate(before) if names[i] not in local and _leaves(value) is not None]
    start = tuple(nest.map_structure(_tensor, before[i]) for i in ours) or (convert_to_tensor(0),)

    def state_of(state: Any) -> _State:
        made = [Undefined(n, "a loop over a data set assigns it first within its body") if i not in ours else None for i, n in enumerate(names)]
        for i, value in zip(ours, state):
            made[i] = value
        return tuple(made)

    def step(state: Any, element: Any) -> Any:
        put(state_of(state))
        body(element)
        after = get()
        return tuple(nest.map_structure(_tensor, after[i], start[k]) for k, i in enumerate(ours)) or (state[0] + 1,)

    put(state_of(values.reduce(start, step)))


# Expressions.


def _logical(values: Sequence[Callable[[], Any]], stop: bool) -> Any:
    result = values[0]()
    for i, value in enumerate(values[1:], 1):
        if _is_tensor(result):
            return _logical_of_tensor(_condition(result, "an operand of `and` or `or`"), values[i:], stop)
        if bool(result) is stop:
            return result
        result = value()
    return result


def _logical_of_tensor(first: Tensor, rest: Sequence[Callable[[], Any]], stop: bool) -> Any:
    """What begins with a tensor: where it decides, the rest does not run."""

    def known() -> Any:
        return array_ops.identity(first)

    def other() -> Any:
        return convert_to_tensor(_logical(rest, stop))

    return control_flow_ops.cond(first, known, other) if stop else control_flow_ops.cond(first, other, known)


def and_(*values: Callable[[], Any]) -> Any:
    """`and`"""
    return _logical(values, False)


def or_(*values: Callable[[], Any]) -> Any:
    """`or`"""
    return _logical(values, True)


def not_(value: Any) -> Any:
    """`not`"""
    return gen_ops.logical_not(value) if _is_tensor(value) else not value


def assert_stmt(test: Any, message: Optional[Callable[[], Any]]) -> None:
    """`assert`: of a tensor an operation, which the function runs."""
    if not _is_tensor(test):
        if not test:
            raise AssertionError(*(() if message is None else (message(),)))
        return
    said = "Assertion error" if message is None else message()
    control_flow_ops.Assert(_condition(test, "the condition of `assert`"), nest.flatten([said]))


# Calls.


def _print(*values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> Operation:
    del flush  # each line is written at once
    return logging_ops.print(*values, output_stream=file or sys.stdout, summarize=-1, sep=sep, end=end)


def _range(*args: Any) -> Any:
    return math_ops.range(*args)


def _len(values: Any) -> Any:
    static = values.shape.ndims and values.shape.dims[0].value
    return static if static is not None and static != 0 else array_ops.shape(values)[0]


def _max(*values: Any) -> Any:
    return functools.reduce(math_ops.maximum, values) if len(values) > 1 else math_ops.reduce_max(values[0], 0)


def _min(*values: Any) -> Any:
    return functools.reduce(math_ops.minimum, values) if len(values) > 1 else math_ops.reduce_min(values[0], 0)


def _number(dtype: str) -> Callable[[Any], Any]:
    return lambda x: math_ops.cast(x, dtype) if x.dtype.base_dtype.name != "string" else gen_ops.string_to_number(x, out_type=dtype)


_BUILTINS: Dict[Any, Callable[..., Any]] = {
    builtins.print: _print,
    builtins.range: _range,
    builtins.len: _len,
    builtins.abs: math_ops.abs,
    builtins.int: _number("int32"),
    builtins.float: _number("float32"),
    builtins.enumerate: lambda values, start=0: _Enumerated(values, start),
    builtins.max: _max,
    builtins.min: _min,
}


def builtin_of_tensors(function: Any, args: Tuple[Any, ...]) -> Any:
    """What stands for a builtin function of Python where it is called with tensors; the function itself otherwise."""
    try:
        replaced = _BUILTINS.get(function)
    except TypeError:  # it has no hash
        return function
    return replaced if replaced is not None and any(_is_tensor(x) for x in args) else function
