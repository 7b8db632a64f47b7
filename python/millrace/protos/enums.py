# SPDX-License-Identifier: Apache-2.0
"""Enumerations of TensorFlow's messages, with the interface of protobuf's."""

from __future__ import annotations

from typing import Dict, ItemsView, KeysView, Optional, ValuesView


class Enum:
    """Numbers with names."""

    def __init__(self, name: str, values: Dict[str, int]) -> None:
        self.__name__, self._values = name, values
        self._names: Dict[int, str] = {}
        for key, value in values.items():
            self._names.setdefault(value, key)

    def Name(self, number: int) -> str:
        """The name of a number. ValueError when it has none."""
        if number not in self._names:
            raise ValueError("Enum %s has no name defined for value %r" % (self.__name__, number))
        return self._names[number]

    def text(self, number: int) -> str:
        """The name of a number, or the number where it has none."""
        return self._names.get(number) or str(number)

    def Value(self, name: str) -> int:
        """The number of a name. ValueError when there is none."""
        if name not in self._values:
            raise ValueError("Enum %s has no value defined for name %r" % (self.__name__, name))
        return self._values[name]

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._values.keys()

    def values(self) -> ValuesView[int]:
        """The numbers."""
        return self._values.values()

    def items(self) -> ItemsView[str, int]:
        """(name, number) of each."""
        return self._values.items()

    def __call__(self, number: int) -> int:
        return number


_TYPES = {
    "DT_FLOAT": 1,
    "DT_DOUBLE": 2,
    "DT_INT32": 3,
    "DT_UINT8": 4,
    "DT_INT16": 5,
    "DT_INT8": 6,
    "DT_STRING": 7,
    "DT_COMPLEX64": 8,
    "DT_INT64": 9,
    "DT_BOOL": 10,
    "DT_QINT8": 11,
    "DT_QUINT8": 12,
    "DT_QINT32": 13,
    "DT_BFLOAT16": 14,
    "DT_QINT16": 15,
    "DT_QUINT16": 16,
    "DT_UINT16": 17,
    "DT_COMPLEX128": 18,
    "DT_HALF": 19,
    "DT_RESOURCE": 20,
    "DT_VARIANT": 21,
    "DT_UINT32": 22,
    "DT_UINT64": 23,
}
DataType = Enum("DataType", {"DT_INVALID": 0, **_TYPES, **{name + "_REF": number + 100 for name, number in _TYPES.items()}})
Code = Enum(
    "Code",
    {
        **{
            name: number
            for number, name in enumerate(
                "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION "
                "ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED".split()
            )
        },
        "DO_NOT_USE_RESERVED_FOR_FUTURE_EXPANSION_USE_DEFAULT_IN_SWITCH_INSTEAD_": 20,
    },
)
TypeSpecClass = Enum(
    "TypeSpecProto.TypeSpecClass",
    {
        "UNKNOWN": 0,
        "SPARSE_TENSOR_SPEC": 1,
        "INDEXED_SLICES_SPEC": 2,
        "RAGGED_TENSOR_SPEC": 3,
        "TENSOR_ARRAY_SPEC": 4,
        "DATA_DATASET_SPEC": 5,
        "DATA_ITERATOR_SPEC": 6,
        "OPTIONAL_SPEC": 7,
        "PER_REPLICA_SPEC": 8,
    },
)
DefaultDirection = Enum("DefaultDirection", {"DEFAULT_LEFT": 0, "DEFAULT_RIGHT": 1})
SplitTypeWithDefault = Enum("SplitTypeWithDefault", {"INEQUALITY_DEFAULT_LEFT": 0, "INEQUALITY_DEFAULT_RIGHT": 1, "EQUALITY_DEFAULT_RIGHT": 3})
LeafModelType = Enum(
    "LeafModelType", {"MODEL_DENSE_CLASSIFICATION": 0, "MODEL_SPARSE_CLASSIFICATION": 1, "MODEL_REGRESSION": 2, "MODEL_SPARSE_OR_DENSE_CLASSIFICATION": 3}
)
StatsModelType = Enum(
    "StatsModelType",
    {"STATS_DENSE_GINI": 0, "STATS_SPARSE_GINI": 1, "STATS_LEAST_SQUARES_REGRESSION": 2, "STATS_SPARSE_THEN_DENSE_GINI": 3, "STATS_FIXED_SIZE_SPARSE_GINI": 4},
)
SplitCollectionType = Enum("SplitCollectionType", {"COLLECTION_BASIC": 0, "GRAPH_RUNNER_COLLECTION": 1})
SplitPruningStrategyType = Enum(
    "SplitPruningStrategyType", {"SPLIT_PRUNE_" + name: i for i, name in enumerate(("NONE", "HALF", "QUARTER", "10_PERCENT", "HOEFFDING"))}
)
SplitFinishStrategyType = Enum("SplitFinishStrategyType", {"SPLIT_FINISH_BASIC": 0, "SPLIT_FINISH_DOMINATE_HOEFFDING": 2, "SPLIT_FINISH_DOMINATE_BOOTSTRAP": 3})
PruningMode = Enum("LearnerConfig.PruningMode", {"PRUNING_MODE_UNSPECIFIED": 0, "PRE_PRUNE": 1, "POST_PRUNE": 2})
GrowingMode = Enum("LearnerConfig.GrowingMode", {"GROWING_MODE_UNSPECIFIED": 0, "WHOLE_TREE": 1, "LAYER_BY_LAYER": 2})
MultiClassStrategy = Enum(
    "LearnerConfig.MultiClassStrategy", {"MULTI_CLASS_STRATEGY_UNSPECIFIED": 0, "TREE_PER_CLASS": 1, "FULL_HESSIAN": 2, "DIAGONAL_HESSIAN": 3}
)
WeakLearnerType = Enum("LearnerConfig.WeakLearnerType", {"NORMAL_DECISION_TREE": 0, "OBLIVIOUS_DECISION_TREE": 1})
Direction = Enum("BinaryNode.Direction", {"LEFT": 0, "RIGHT": 1})
InequalityType = Enum("Type", {"LESS_OR_EQUAL": 0, "LESS_THAN": 1, "GREATER_OR_EQUAL": 2, "GREATER_THAN": 3})
VariableSynchronization = Enum(
    "VariableSynchronization", {"VARIABLE_SYNCHRONIZATION_" + name: i for i, name in enumerate(("AUTO", "NONE", "ON_WRITE", "ON_READ"))}
)
VariableAggregation = Enum("VariableAggregation", {"VARIABLE_AGGREGATION_" + name: i for i, name in enumerate(("NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"))})
Visibility = Enum("ApiDef.Visibility", {"DEFAULT_VISIBILITY": 0, "VISIBLE": 1, "SKIP": 2, "HIDDEN": 3})

MODULE_ENUMS = {"DataType": DataType, "Code": Code, "VariableSynchronization": VariableSynchronization, "VariableAggregation": VariableAggregation}
# By the names of fields, those of one message alone by its name, too. Other fields that are enums are numbers in texts and descriptors.
OF_FIELDS = {
    **dict.fromkeys(("dtype", "type", "tensor_dtype_value"), DataType),
    "type_spec_class": TypeSpecClass,
    "default_direction": DefaultDirection,
    "pruning_mode": PruningMode,
    "growing_mode": GrowingMode,
    "multi_class_strategy": MultiClassStrategy,
    "weak_learner_type": WeakLearnerType,
    "leaf_type": LeafModelType,
    "stats_type": StatsModelType,
    "collection_type": SplitCollectionType,
    "inequality_test_type": InequalityType,
    "decision_trees.InequalityTest.type": InequalityType,
    "decision_trees.BinaryNode.default_direction": Direction,
    "tensorforest.SplitPruningConfig.type": SplitPruningStrategyType,
    "tensorforest.SplitFinishConfig.type": SplitFinishStrategyType,
    "synchronization": VariableSynchronization,
    "aggregation": VariableAggregation,
    "visibility": Visibility,
}


def of_field(message: str, field: str) -> Optional[Enum]:
    """The enumeration of a message's field, or None where its values are numbers alone."""
    return OF_FIELDS.get("%s.%s" % (message, field), OF_FIELDS.get(field))
