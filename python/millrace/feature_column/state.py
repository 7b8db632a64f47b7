# SPDX-License-Identifier: Apache-2.0
"""Who keeps the variables and tables of columns, which themselves only say what they are."""

from __future__ import annotations

import collections
from typing import Any, Dict, List, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys
from millrace.ops.variable_scope import get_variable


class StateManager:
    """Makes and keeps what columns need. Programs may write their own."""

    def create_variable(
        self, feature_column: Any, name: str, shape: Any, dtype: Any = None, trainable: bool = True, use_resource: bool = True, initializer: Any = None
    ) -> Any:
        """Makes a variable of a column."""
        raise NotImplementedError("%s.create_variable" % type(self).__name__)

    def add_variable(self, feature_column: Any, var: Any) -> None:
        """Keeps a variable of a column that is there already."""
        raise NotImplementedError("%s.add_variable" % type(self).__name__)

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """A column's variable."""
        raise NotImplementedError("%s.get_variable" % type(self).__name__)

    def add_resource(self, feature_column: Any, name: str, resource: Any) -> None:
        """Keeps a table, or the like, of a column."""
        raise NotImplementedError("%s.add_resource" % type(self).__name__)

    def get_resource(self, feature_column: Any, name: str) -> Any:
        """What add_resource was given."""
        raise NotImplementedError("%s.get_resource" % type(self).__name__)


class _StateManagerImpl(StateManager):
    """Variables that tf.get_variable makes become a layer's."""

    def __init__(self, layer: Any, trainable: bool) -> None:
        self._layer, self._trainable = layer, trainable
        self._variables: Dict[Any, Dict[str, Any]] = collections.defaultdict(dict)
        self._resources: Dict[Any, Dict[str, Any]] = collections.defaultdict(dict)

    def create_variable(
        self, feature_column: Any, name: str, shape: Any, dtype: Any = None, trainable: bool = True, use_resource: bool = True, initializer: Any = None
    ) -> Any:
        """Makes a variable of a column; ValueError where it has one of the name."""
        if name in self._variables[feature_column]:
            raise at_user_line(ValueError("Variable already exists: %s of %s." % (name, feature_column)))
        made = self._made(feature_column, name, shape, dtype, initializer, self._trainable and trainable, use_resource)
        self._variables[feature_column][name] = made
        return made

    def _made(self, column: Any, name: str, shape: Any, dtype: Any, initializer: Any, trainable: bool, use_resource: bool) -> Any:
        made = get_variable(name, shape, dtype, initializer, trainable=trainable, use_resource=use_resource)
        (self._layer._trainable_weights if trainable else self._layer._non_trainable_weights).append(made)
        return made

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """A column's variable; ValueError where there is none."""
        return _found(self._variables[feature_column], name, "Variable", feature_column)

    def add_resource(self, feature_column: Any, name: str, resource: Any) -> None:
        """Keeps a table, or the like, of a column."""
        self._resources[feature_column][name] = resource

    def get_resource(self, feature_column: Any, name: str) -> Any:
        """What add_resource was given; ValueError where it was given nothing."""
        return _found(self._resources[feature_column], name, "Resource", feature_column)


class _StateManagerImplV2(_StateManagerImpl):
    """Variables are made by the layer itself, whatever the variable scope says."""

    def _made(self, column: Any, name: str, shape: Any, dtype: Any, initializer: Any, trainable: bool, use_resource: bool) -> Any:
        return self._layer.add_weight("%s/%s" % (column.name, name), shape, dtype, initializer, trainable=trainable)


def _found(kept: Dict[str, Any], name: str, what: str, column: Any) -> Any:
    if name not in kept:
        raise at_user_line(ValueError("%s does not exist: %s of %s." % (what, name, column)))
    return kept[name]


class VariablesInScope(StateManager):
    """The state of columns in the style before: variables of the variable scope in which they are first asked for."""

    def __init__(self, weight_collections: Optional[List[str]], trainable: Optional[bool]) -> None:
        self.weight_collections, self.trainable = with_all_variables(weight_collections), trainable
        self._variables: Dict[Tuple[Any, str], Any] = {}

    def create_variable(
        self, feature_column: Any, name: str, shape: Any, dtype: Any = None, trainable: bool = True, use_resource: bool = True, initializer: Any = None
    ) -> Any:
        """Makes a variable of a column, of the kind that the scope makes."""
        trained = trainable and self.trainable is not False
        made = get_variable(name, shape, dtype, initializer, trainable=trained, collections=self.weight_collections)
        self._variables[feature_column, name] = made
        return made

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """A column's variable."""
        if (feature_column, name) not in self._variables:
            feature_column.create_state(self)
        return self._variables[feature_column, name]

    def add_resource(self, feature_column: Any, name: str, resource: Any) -> None:
        """Nothing: the graph keeps its tables."""


def with_all_variables(collections: Optional[List[str]], *others: str) -> Optional[List[str]]:
    """Collections of variables with that of all of them, which tf.get_variable leaves out where others are given; None for none."""
    named = [*(collections or ()), *others]
    return list(dict.fromkeys([*named, GraphKeys.GLOBAL_VARIABLES])) if named else None


def of_model(collections: Optional[List[str]]) -> Optional[List[str]]:
    """The collections of a model's variables."""
    return with_all_variables(collections, GraphKeys.MODEL_VARIABLES)
