# SPDX-License-Identifier: Apache-2.0
"""Patterns of operations, by their names and kinds and by what they read and feed."""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple

from millrace.contrib.graph_editor.select import can_be_regex, make_regex
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation

_Test = Callable[[Operation], bool]


def op_type(op_types: Any, op: Optional[Operation] = None) -> Any:
    """Whether an operation is of a kind, or of one of several; without the operation, a function that says so of those it is given."""
    kinds = (op_types,) if isinstance(op_types, str) else tuple(op_types)
    return (lambda other: other.type in kinds) if op is None else op.type in kinds


def _test_of(pattern: Any) -> _Test:
    """A pattern is a regular expression of names, an operation, True for any, or a function of operations, such as an OpMatcher."""
    if pattern is True or pattern is None:
        return lambda op: True
    if can_be_regex(pattern):
        regex = make_regex(pattern)
        return lambda op: regex.search(op.name) is not None
    if isinstance(pattern, Operation):
        return lambda op: op is pattern
    if not callable(pattern):
        raise at_user_line(ValueError("Cannot finalize the positive filter: %s" % (pattern,)))
    test: _Test = pattern
    return test


def _each(tests: Sequence[_Test], ops: Iterable[Operation]) -> bool:
    found = list(ops)
    return len(found) == len(tests) and all(test(op) for test, op in zip(tests, found))


class OpMatcher:
    """A pattern of an operation and of those around it: OpMatcher("^sum$").input_ops("^a$", OpMatcher("^b$").control_input_ops("^c$")).

    Called with an operation it says whether that fits. Patterns for inputs, control inputs and outputs stand in their order, one for
    each; None among the inputs fits any operation, among the outputs any number of readers."""

    def __init__(self, positive_filter: Any) -> None:
        self._test = _test_of(positive_filter)
        self._around: List[Tuple[str, _Test]] = []

    def __call__(self, op: Operation) -> bool:
        if not isinstance(op, Operation):
            raise at_user_line(TypeError("Expect tf.Operation, got: %s" % type(op)))
        return self._test(op) and all(fits(op) for _, fits in self._around)

    def _with(self, what: str, fits: _Test) -> "OpMatcher":
        if any(known == what for known, _ in self._around):
            raise at_user_line(ValueError("The patterns of %s are already set." % what))
        self._around.append((what, fits))
        return self

    def input_ops(self, *args: Any) -> "OpMatcher":
        """A pattern for the operation behind each input."""
        tests = [_test_of(pattern) for pattern in args]
        return self._with("input_ops", lambda op: _each(tests, (t.op for t in op.inputs)))

    def control_input_ops(self, *args: Any) -> "OpMatcher":
        """A pattern for each control input."""
        tests = [_test_of(pattern) for pattern in args]
        return self._with("control_input_ops", lambda op: _each(tests, op.control_inputs))

    def output_ops(self, *args: Any) -> "OpMatcher":
        """For each output a pattern for its one reader, a list of patterns for its readers, or None."""
        outputs = [None if given is None else [_test_of(p) for p in (given if isinstance(given, list) else [given])] for given in args]

        def fits(op: Operation) -> bool:
            return len(op.outputs) == len(outputs) and all(tests is None or _each(tests, t.consumers()) for tests, t in zip(outputs, op.outputs))

        return self._with("output_ops", fits)
