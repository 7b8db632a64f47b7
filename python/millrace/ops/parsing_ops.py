# SPDX-License-Identifier: Apache-2.0
"""Tensors made of Example messages and of text."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from millrace.framework import dispatch, dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops, sparse_ops
from millrace.ops.dialects import refuse

__all__ = [
    "VarLenFeature",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "SparseFeature",
    "parse_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "decode_csv",
    "decode_json_example",
    "decode_compressed",
    "parse_tensor",
    "serialize_tensor",
]


class VarLenFeature(NamedTuple):
    """A feature of any number of values: a SparseTensor."""

    dtype: Any


class FixedLenFeature(NamedTuple):
    """A feature of so many values in each example: a dense tensor."""

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """Steps of so many values each: a dense tensor with a dimension for the steps, padded to the longest."""

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class SparseFeature(NamedTuple):
    """A SparseTensor whose indices and values are two features."""

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


_TYPES = (dtypes.float32, dtypes.int64, dtypes.string)


class _Wanted:
    """Features by the way they are parsed, in the order of their names."""

    def __init__(self, features: Optional[Dict[str, Any]], kinds: Any, what: str) -> None:
        self.sparse_keys: List[str] = []
        self.sparse_types: List[Any] = []
        self.dense_keys: List[str] = []
        self.dense_types: List[Any] = []
        self.dense_shapes: List[TensorShape] = []
        self.dense_defaults: Dict[str, Any] = {}
        self.merged: Dict[str, SparseFeature] = {}
        self.asked = frozenset(features or ())
        for key in sorted(features or {}):
            feature: Any = features[key]  # type: ignore[index]
            if not isinstance(feature, kinds):
                raise at_user_line(ValueError("%s feature '%s' is %r, want one of %s" % (what, key, feature, ", ".join(kind.__name__ for kind in kinds))))
            if not feature.dtype:
                raise at_user_line(ValueError("Missing type for feature %s." % key))
            dtype = dtypes.as_dtype(feature.dtype)
            if dtype not in _TYPES:
                raise at_user_line(ValueError("feature '%s' is %s, want float32, int64 or string" % (key, dtype.name)))
            if isinstance(feature, VarLenFeature):
                self._add_sparse(key, dtype)
            elif isinstance(feature, SparseFeature):
                self._add_merged(key, feature, dtype)
            else:
                self._add_dense(key, feature, dtype)

    def _add_sparse(self, key: str, dtype: Any) -> None:
        if key in self.sparse_keys:
            if self.sparse_types[self.sparse_keys.index(key)] != dtype:
                raise at_user_line(ValueError("Conflicting type %s vs %s for feature %s." % (self.sparse_types[self.sparse_keys.index(key)], dtype, key)))
            return
        if key in self.dense_keys:
            raise at_user_line(ValueError("Dense and sparse keys must not intersect; intersection: %r" % {key}))
        self.sparse_keys.append(key)
        self.sparse_types.append(dtype)

    def _add_merged(self, key: str, feature: SparseFeature, dtype: Any) -> None:
        if not feature.index_key or not feature.value_key or feature.size is None:
            raise at_user_line(ValueError("Missing index_key, value_key or size for SparseFeature %s." % (feature,)))
        for index in _index_keys(feature):
            self._add_sparse(index, dtypes.int64)
        self._add_sparse(feature.value_key, dtype)
        self.merged[key] = feature

    def _add_dense(self, key: str, feature: Any, dtype: Any) -> None:
        if feature.shape is None:
            raise at_user_line(ValueError("Missing shape for feature %s." % key))
        shape = TensorShape(feature.shape)
        if shape.ndims is None or shape.ndims and shape[0].value is None:
            raise at_user_line(ValueError("First dimension of shape for feature %s unknown. Consider using FixedLenSequenceFeature." % key))
        if not shape.is_fully_defined():
            raise at_user_line(ValueError("All dimensions of shape for feature %s need to be known but received %s." % (key, tuple(shape.as_list()))))
        if isinstance(feature, FixedLenSequenceFeature):
            if not feature.allow_missing:
                raise at_user_line(ValueError("Unsupported: FixedLenSequenceFeature requires allow_missing to be True."))
            shape = TensorShape([None]).concatenate(shape)
        self.dense_keys.append(key)
        self.dense_types.append(dtype)
        self.dense_shapes.append(shape)
        if feature.default_value is not None:
            self.dense_defaults[key] = feature.default_value

    def defaults(self) -> List[Tensor]:
        """A tensor for each dense feature: its default, or an empty one."""
        found = []
        for key, dtype, shape in zip(self.dense_keys, self.dense_types, self.dense_shapes):
            value = self.dense_defaults.get(key)
            if shape.ndims and shape[0].value is None:
                value = ("" if dtype == dtypes.string else 0) if value is None else value
                value = array_ops.reshape(convert_to_tensor(value, dtype, name="padding_" + key), [1] * shape.ndims)
            elif value is None:
                value = constant(np.array([], dtype.as_numpy_dtype), dtype)
            else:
                value = array_ops.reshape(convert_to_tensor(value, dtype, name="key_" + "".join(c if c.isalnum() else "_" for c in key)), shape)
            found.append(value)
        return found

    def named(self, outputs: Any) -> Dict[str, Any]:
        """The outputs of an op: indices, values and shapes of the sparse features, then the dense ones."""
        indices, values, shapes, dense = outputs
        found: Dict[str, Any] = {key: SparseTensor(i, v, s) for key, i, v, s in zip(self.sparse_keys, _listed(indices), _listed(values), _listed(shapes))}
        found.update(zip(self.dense_keys, _listed(dense)))
        for key, feature in self.merged.items():
            ids: Any = [found[index] for index in _index_keys(feature)]
            ids = ids if isinstance(feature.index_key, (list, tuple)) else ids[0]
            found[key] = sparse_ops.sparse_merge(ids, found[feature.value_key], feature.size, key, feature.already_sorted)
        return {key: value for key, value in found.items() if key in self.asked}


def _index_keys(feature: SparseFeature) -> Tuple[str, ...]:
    return tuple(feature.index_key) if isinstance(feature.index_key, (list, tuple)) else (feature.index_key,)


def _listed(outputs: Any) -> List[Any]:
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


_EXAMPLE_KINDS = (VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature)


def _no_strings() -> Tensor:
    return constant(np.array([], np.object_), dtypes.string)


def _features_of(lists: Dict[str, Any], function: str) -> Dict[str, Any]:
    """Features by their keys, of the lists of keys, types, shapes and defaults of 0.6 and before."""
    sparse, dense = lists.pop("sparse_keys", None) or [], lists.pop("dense_keys", None) or []
    kinds, types = lists.pop("sparse_types", None) or [], lists.pop("dense_types", None) or []
    shapes, defaults = lists.pop("dense_shapes", None) or [[]] * len(dense), lists.pop("dense_defaults", None) or {}
    refuse(lists, function)
    if len(sparse) != len(kinds) or not len(dense) == len(types) == len(shapes):
        raise at_user_line(ValueError("%s() needs a type, and for dense features a shape, for each key" % function))
    found: Dict[str, Any] = {k: VarLenFeature(t) for k, t in zip(sparse, kinds)}
    found.update((k, FixedLenFeature(s, t, defaults.get(k))) for k, t, s in zip(dense, types, shapes))
    return found


def parse_example(serialized: Any, features: Any = None, name: Optional[str] = None, example_names: Any = None, **lists: Any) -> Dict[str, Any]:
    """The features of a batch of serialized Example messages: {name: Tensor or SparseTensor}."""
    features = _features_of(lists, "parse_example") if lists else features
    if not features:
        raise at_user_line(ValueError("Missing: features was %s." % features))
    wanted = _Wanted(features, _EXAMPLE_KINDS, "Parsed")
    with name_scope(name, "ParseExample", [serialized, example_names]):
        names = _no_strings() if example_names is None else convert_to_tensor(example_names, dtypes.string)
        return wanted.named(
            gen_ops.parse_example(
                serialized,
                names,
                wanted.sparse_keys,
                wanted.dense_keys,
                wanted.defaults(),
                sparse_types=wanted.sparse_types,
                dense_shapes=wanted.dense_shapes,
                name=name or "ParseExample",
            )
        )


def parse_single_example(serialized: Any, features: Any = None, name: Optional[str] = None, example_names: Any = None, **lists: Any) -> Dict[str, Any]:
    """The features of one serialized Example message: {name: Tensor or SparseTensor}."""
    features = _features_of(lists, "parse_single_example") if lists else features
    if not features:
        raise at_user_line(ValueError("Missing features."))
    wanted = _Wanted(features, _EXAMPLE_KINDS, "Parsed")
    with name_scope(name, "ParseSingleExample", [serialized, example_names]):
        return wanted.named(
            gen_ops.parse_single_example(
                serialized,
                wanted.defaults(),
                num_sparse=len(wanted.sparse_keys),
                sparse_keys=wanted.sparse_keys,
                dense_keys=wanted.dense_keys,
                sparse_types=wanted.sparse_types,
                dense_shapes=wanted.dense_shapes,
                name=name or "ParseSingleExample",
            )
        )


def _of_sequences(context_features: Any, sequence_features: Any) -> Tuple[_Wanted, _Wanted, List[str]]:
    """The features of contexts and of lists, and the lists that may be missing."""
    context = _Wanted(context_features, (VarLenFeature, FixedLenFeature), "Context")
    missing: List[str] = []
    steps = {}
    for key, feature in (sequence_features or {}).items():
        if isinstance(feature, FixedLenSequenceFeature):
            if feature.default_value is not None:
                raise at_user_line(ValueError("the sequence feature '%s' has a default, which sequences do not take" % key))
            missing += [key] if feature.allow_missing else []
            feature = FixedLenFeature(feature.shape, feature.dtype)
        elif not isinstance(feature, VarLenFeature):
            raise at_user_line(ValueError("Sequence feature '%s' is %r, want one of VarLenFeature, FixedLenSequenceFeature" % (key, feature)))
        steps[key] = feature
    lists = _Wanted(steps, (VarLenFeature, FixedLenFeature), "Sequence")
    return context, lists, missing


def parse_single_sequence_example(
    serialized: Any, context_features: Any = None, sequence_features: Any = None, example_name: Any = None, name: Optional[str] = None
) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """The features of one serialized SequenceExample message: those of its context, and its lists with a dimension for the steps."""
    if not (context_features or sequence_features):
        raise at_user_line(ValueError("Missing features."))
    context, lists, missing = _of_sequences(context_features, sequence_features)
    with name_scope(name, "ParseSingleSequenceExample", [serialized, example_name]):
        outputs = gen_ops.parse_single_sequence_example(
            serialized,
            constant(np.array(sorted(missing), np.object_), dtypes.string),
            context.sparse_keys,
            context.dense_keys,
            lists.sparse_keys,
            lists.dense_keys,
            context.defaults(),
            "" if example_name is None else example_name,
            context_sparse_types=context.sparse_types,
            feature_list_dense_types=lists.dense_types,
            context_dense_shapes=context.dense_shapes,
            feature_list_sparse_types=lists.sparse_types,
            feature_list_dense_shapes=lists.dense_shapes,
            name=name or "ParseSingleSequenceExample",
        )
        return context.named(outputs[:4]), lists.named(outputs[4:])


def parse_sequence_example(
    serialized: Any, context_features: Any = None, sequence_features: Any = None, example_names: Any = None, name: Optional[str] = None
) -> Tuple[Dict[str, Any], Dict[str, Any], Dict[str, Tensor]]:
    """Features of a batch of serialized SequenceExample messages: those of the contexts, the lists padded to the longest, and their lengths."""
    if not (context_features or sequence_features):
        raise at_user_line(ValueError("Missing features."))
    context, lists, missing = _of_sequences(context_features, sequence_features)
    with name_scope(name, "ParseSequenceExample", [serialized, example_names]):
        outputs = gen_ops.parse_sequence_example(
            serialized,
            constant(np.array([], np.object_), dtypes.string) if example_names is None else example_names,
            context.defaults(),
            feature_list_dense_missing_assumed_empty=sorted(missing),
            context_sparse_keys=context.sparse_keys,
            context_dense_keys=context.dense_keys,
            feature_list_sparse_keys=lists.sparse_keys,
            feature_list_dense_keys=lists.dense_keys,
            Ncontext_sparse=len(context.sparse_keys),
            Ncontext_dense=len(context.dense_keys),
            Nfeature_list_sparse=len(lists.sparse_keys),
            Nfeature_list_dense=len(lists.dense_keys),
            context_sparse_types=context.sparse_types,
            feature_list_dense_types=lists.dense_types,
            context_dense_shapes=context.dense_shapes,
            feature_list_sparse_types=lists.sparse_types,
            feature_list_dense_shapes=lists.dense_shapes,
            name=name or "ParseSequenceExample",
        )
        return context.named(outputs[:4]), lists.named(outputs[4:8]), dict(zip(lists.dense_keys, _listed(outputs[8])))


def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: Optional[str] = None,
    na_value: str = "",
    select_cols: Any = None,
) -> List[Tensor]:
    """The columns of records in comma-separated form; a field that is missing is its default, which also says its type."""
    columns = [int(c) for c in select_cols or []]
    if columns != sorted(set(columns)):
        raise at_user_line(ValueError("select_cols is not strictly increasing."))
    if columns and columns[0] < 0:
        raise at_user_line(ValueError("select_cols contains negative values."))
    if columns and len(columns) != len(record_defaults):
        raise at_user_line(ValueError("Length of select_cols and record_defaults do not match."))
    defaults = []
    for i, default in enumerate(record_defaults):
        value = convert_to_tensor(default, name="record_defaults_%d" % i)
        rank = value.get_shape().ndims or 0
        if rank > 1:
            raise at_user_line(ValueError("Shape must be at most rank 1 but is rank %d: the default of field %d is a scalar" % (rank, i)))
        defaults.append(value)
    return _listed(
        gen_ops.decode_csv(records, defaults, field_delim=field_delim, use_quote_delim=use_quote_delim, na_value=na_value, select_cols=columns, name=name)
    )


def decode_json_example(json_examples: Any, name: Optional[str] = None) -> Tensor:
    """Example messages in JSON, in binary form."""
    return gen_ops.decode_json_example(json_examples, name=name)


def decode_compressed(bytes: Any, compression_type: str = "", name: Optional[str] = None) -> Tensor:
    """Strings that ZLIB or GZIP has compressed, expanded."""
    return gen_ops.decode_compressed(bytes, compression_type=compression_type, name=name)


def parse_tensor(serialized: Any, out_type: Any, name: Optional[str] = None) -> Tensor:
    """The tensor of a serialized TensorProto."""
    return gen_ops.parse_tensor(serialized, out_type=out_type, name=name)


def serialize_tensor(tensor: Any, name: Optional[str] = None) -> Tensor:
    """The tensor as a serialized TensorProto."""
    return gen_ops.serialize_tensor(tensor, name=name)


dispatch.install(globals(), ["decode_compressed"])
