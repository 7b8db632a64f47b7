# SPDX-License-Identifier: Apache-2.0
"""Sums of linear operators that keep their form: tensorflow.python.ops.linalg.linear_operator_addition, in 1.4 to 1.8 tf.contrib.linalg.add_operators."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from millrace.framework.common_shapes import broadcast_shape
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import array_ops
from millrace.ops.linalg_composed_operators import LinearOperatorScaledIdentity
from millrace.ops.linalg_operators import LinearOperator, LinearOperatorDiag, LinearOperatorFullMatrix, LinearOperatorIdentity, LinearOperatorLowerTriangular


def add_operators(
    operators: Sequence[LinearOperator], operator_name: Optional[str] = None, addition_tiers: Any = None, name: Optional[str] = None
) -> List[LinearOperator]:
    """Operators that add up to those given: as few as there can be.

    Each tier is a list of what can add two operators. All that a tier can add is added before the next one is asked; without tiers one operator is left,
    of the simplest form that all have: multiples of the identity, diagonals, lower triangles, any matrices.
    """
    left = list(operators)
    _check_operators(left)
    tiers = _TIERS if addition_tiers is None else addition_tiers
    parents = [x for operator in left for x in operator.graph_parents]
    with name_scope(name, "add_operators", parents):
        for tier in tiers:
            if len(left) == 1:
                break
            left = _added_at(tier, left, operator_name)
        return left


def _check_operators(operators: List[Any]) -> None:
    if not operators:
        raise at_user_line(ValueError("Argument 'operators' must contain at least one operator. Found: %s" % operators))
    for operator in operators:
        if not isinstance(operator, LinearOperator):
            raise at_user_line(TypeError("Argument 'operators' must contain only LinearOperator instances. Found: %s" % (operator,)))
    for what in ("domain_dimension", "range_dimension"):
        known = {getattr(operator, what).value for operator in operators} - {None}
        if len(known) > 1:
            raise at_user_line(ValueError("Operators must have the same %s. Found: %s" % (what.replace("_", " "), sorted(known))))
    batch = operators[0].batch_shape
    for operator in operators[1:]:
        batch = broadcast_shape(batch, operator.batch_shape)


def _added_at(tier: Any, operators: List[LinearOperator], operator_name: Optional[str]) -> List[LinearOperator]:
    """What is left of operators when a tier has added what it can."""
    waiting = list(operators)
    done: List[LinearOperator] = []
    while waiting:
        last = waiting.pop()
        found = next(((i, adder) for i, other in enumerate(waiting) for adder in tier if adder.can_add(last, other)), None)
        if found is None:
            done.insert(0, last)
            continue
        i, adder = found
        waiting.append(adder.add(last, waiting.pop(i), operator_name))
    return done


class _Hints:
    """What is promised of a sum."""

    def __init__(self, is_non_singular: Optional[bool] = None, is_positive_definite: Optional[bool] = None, is_self_adjoint: Optional[bool] = None) -> None:
        self.is_non_singular, self.is_positive_definite, self.is_self_adjoint = is_non_singular, is_positive_definite, is_self_adjoint


def _with_what_follows(first: LinearOperator, second: LinearOperator, given: Optional[_Hints]) -> _Hints:
    """Hints, and where they say nothing what the operators' say of their sum."""
    given = given or _Hints()
    both = {key: bool(getattr(first, key) and getattr(second, key)) or None for key in ("is_self_adjoint", "is_positive_definite")}
    definite = both["is_positive_definite"] if given.is_positive_definite is None else given.is_positive_definite
    return _Hints(
        is_non_singular=definite or None if given.is_non_singular is None else given.is_non_singular,
        is_positive_definite=definite,
        is_self_adjoint=both["is_self_adjoint"] if given.is_self_adjoint is None else given.is_self_adjoint,
    )


class _Adder:
    """Adds two operators where it can."""

    def can_add(self, op1: LinearOperator, op2: LinearOperator) -> bool:
        """Whether it adds these."""
        raise NotImplementedError("%s.can_add" % type(self).__name__)

    def _add(self, op1: LinearOperator, op2: LinearOperator, operator_name: str, hints: _Hints) -> LinearOperator:
        raise NotImplementedError("%s._add" % type(self).__name__)

    def add(self, op1: LinearOperator, op2: LinearOperator, operator_name: Optional[str], hints: Optional[_Hints] = None) -> LinearOperator:
        """Their sum, as an operator."""
        label = "Add/%s__%s/" % (op1.name, op2.name) if operator_name is None else operator_name
        with name_scope(None, "Add", [*op1.graph_parents, *op2.graph_parents]):
            return self._add(op1, op2, label, _with_what_follows(op1, op2, hints))


def _multiplier(operator: Any) -> Any:
    if isinstance(operator, LinearOperatorScaledIdentity):
        return operator.multiplier
    return array_ops.ones(operator.batch_shape_tensor(), operator.dtype)


class _AddAndReturnScaledIdentity(_Adder):
    """Of multiples of the identity one."""

    _kinds = (LinearOperatorIdentity, LinearOperatorScaledIdentity)

    def can_add(self, op1: LinearOperator, op2: LinearOperator) -> bool:
        return isinstance(op1, self._kinds) and isinstance(op2, self._kinds)

    def _add(self, op1: LinearOperator, op2: LinearOperator, operator_name: str, hints: _Hints) -> LinearOperator:
        rows = op1.range_dimension.value
        rows = op1.range_dimension_tensor() if rows is None else rows
        return LinearOperatorScaledIdentity(rows, _multiplier(op1) + _multiplier(op2), **vars(hints), name=operator_name)


class _AddAndReturnDiag(_Adder):
    """Of diagonal operators one."""

    _kinds = (LinearOperatorDiag, LinearOperatorScaledIdentity)

    def can_add(self, op1: LinearOperator, op2: LinearOperator) -> bool:
        return isinstance(op1, self._kinds) and isinstance(op2, self._kinds)

    def _add(self, op1: LinearOperator, op2: LinearOperator, operator_name: str, hints: _Hints) -> LinearOperator:
        return LinearOperatorDiag(op1.diag_part() + op2.diag_part(), **vars(hints), name=operator_name)


class _AddAndReturnTriL(_Adder):
    """Of diagonal and lower triangular operators a lower triangular one."""

    _kinds = (LinearOperatorLowerTriangular, LinearOperatorDiag, LinearOperatorScaledIdentity)

    def can_add(self, op1: LinearOperator, op2: LinearOperator) -> bool:
        return isinstance(op1, self._kinds) and isinstance(op2, self._kinds)

    def _add(self, op1: LinearOperator, op2: LinearOperator, operator_name: str, hints: _Hints) -> LinearOperator:
        return LinearOperatorLowerTriangular(op1.add_to_tensor(op2.to_dense()), **vars(hints), name=operator_name)


class _AddAndReturnMatrix(_Adder):
    """Of any operators one of a matrix."""

    def can_add(self, op1: LinearOperator, op2: LinearOperator) -> bool:
        return isinstance(op1, LinearOperator) and isinstance(op2, LinearOperator)

    def _add(self, op1: LinearOperator, op2: LinearOperator, operator_name: str, hints: _Hints) -> LinearOperator:
        return LinearOperatorFullMatrix(op1.add_to_tensor(op2.to_dense()), **vars(hints), name=operator_name)


_TIERS = [[_AddAndReturnScaledIdentity()], [_AddAndReturnDiag()], [_AddAndReturnTriL()], [_AddAndReturnMatrix()]]
