# SPDX-License-Identifier: Apache-2.0
"""Parts of graphs by patterns: kinds of operations, and what they read."""

from __future__ import annotations

import itertools
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Operation, Tensor


class MatchResult:
    """Which operation, by which of its outputs, each pattern has met."""

    def __init__(self) -> None:
        self._found: Dict[Pattern, Tuple[Operation, Optional[Tensor]]] = {}
        self._by_name: Dict[str, Pattern] = {}

    def add(self, pattern: "Pattern", op: Operation, tensor: Optional[Tensor]) -> None:
        """Notes what a pattern has met."""
        self._found[pattern] = (op, tensor)
        if pattern.name is not None:
            if pattern.name in self._by_name:
                raise at_user_line(ValueError("Name %s is already bound to another pattern" % pattern.name))
            self._by_name[pattern.name] = pattern

    def merge_from(self, other_match_result: "MatchResult") -> None:
        """Notes what another result has."""
        self._found.update(other_match_result._found)
        self._by_name.update(other_match_result._by_name)

    def _of(self, pattern_or_name: Any) -> Tuple[Optional[Operation], Optional[Tensor]]:
        if not isinstance(pattern_or_name, (Pattern, str)):
            raise at_user_line(ValueError("pattern_or_name has type %s. Expect Pattern or str." % type(pattern_or_name)))
        pattern = self._by_name.get(pattern_or_name) if isinstance(pattern_or_name, str) else pattern_or_name
        return (None, None) if pattern is None else self._found.get(pattern, (None, None))

    def get_op(self, pattern_or_name: Any) -> Optional[Operation]:
        """The operation that a pattern has met, or None."""
        return self._of(pattern_or_name)[0]

    def get_tensor(self, pattern_or_name: Any) -> Optional[Tensor]:
        """The tensor that a pattern was met by, or None."""
        return self._of(pattern_or_name)[1]


class Pattern:
    """What can be matched with an operation and the tensor of it that is read."""

    name: Optional[str] = None

    def match(self, op: Operation, tensor: Optional[Tensor]) -> Optional[MatchResult]:
        """What was met, or None."""
        raise NotImplementedError


class OpTypePattern(Pattern):
    """Operations of a type, of several with | between them, or of any (*); and of inputs in their order, or else in any order."""

    def __init__(self, op_type: str, name: Optional[str] = None, inputs: Optional[Sequence[Union[Pattern, str]]] = None, ordered_inputs: bool = True) -> None:
        if len(inputs or ()) > 8:
            raise at_user_line(ValueError("a pattern has 8 inputs at most, for their orders are tried out"))
        self._types = None if op_type == "*" else frozenset(op_type.split("|"))
        self.name = name
        self._inputs = [given if isinstance(given, Pattern) else OpTypePattern(given) for given in inputs or ()]
        self._ordered_inputs = ordered_inputs

    def match(self, op: Operation, tensor: Optional[Tensor]) -> Optional[MatchResult]:
        """What was met, or None."""
        if self._types is not None and op.type not in self._types:
            return None
        result = MatchResult()
        result.add(self, op, tensor)
        if not self._inputs:
            return result
        inputs = list(op.inputs)
        if len(inputs) != len(self._inputs):
            return None
        orders: Iterable[Sequence[Pattern]] = [self._inputs] if self._ordered_inputs else itertools.permutations(self._inputs)
        for order in orders:
            found = _all_matched(order, inputs)
            if found is not None:
                for part in found:
                    result.merge_from(part)
                return result
        return None


def _all_matched(patterns: Sequence[Pattern], tensors: List[Tensor]) -> Optional[List[MatchResult]]:
    found = []
    for pattern, t in zip(patterns, tensors):
        part = pattern.match(t.op, t)
        if part is None:
            return None
        found.append(part)
    return found


class OneofPattern(Pattern):
    """The first of several patterns that matches."""

    def __init__(self, sub_patterns: Sequence[Pattern]) -> None:
        self._sub_patterns = sub_patterns

    def match(self, op: Operation, tensor: Optional[Tensor]) -> Optional[MatchResult]:
        """What was met, or None."""
        return next((found for found in (pattern.match(op, tensor) for pattern in self._sub_patterns) if found is not None), None)


class GraphMatcher:
    """The operations of a graph that a pattern matches."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern

    def match_op(self, op: Operation) -> Optional[MatchResult]:
        """What was met from an operation back, or None."""
        return self._pattern.match(op, None)

    def match_ops(self, ops: Iterable[Operation]) -> Iterator[MatchResult]:
        """What was met from each of several operations."""
        return (found for found in map(self.match_op, ops) if found is not None)

    def match_graph(self, graph: Graph) -> Iterator[MatchResult]:
        """What was met from each operation of a graph."""
        return self.match_ops(graph.get_operations())
