# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.slim.tfexample_decoder: items of Example messages."""

from __future__ import annotations

import abc
from typing import Any, Dict, List, Optional, Sequence

from millrace.contrib.slim_data.data_decoder import DataDecoder
from millrace.framework import arguments, composite_tensors, dtypes
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, control_flow_ops, functional_ops, gen_ops, image_files, math_ops, sparse_math_ops, sparse_ops
from millrace.ops.parsing_ops import FixedLenFeature, parse_single_example


def _is_sparse(tensor: Any) -> bool:
    return isinstance(tensor, composite_tensors.SparseTensor)


def _elements(tensor: Any) -> Any:
    """A tensor; of a sparse one, the elements that it has."""
    return tensor.values if _is_sparse(tensor) else tensor


class ItemHandler(abc.ABC):
    """Makes an item of the features of some keys."""

    def __init__(self, keys: Any) -> None:
        self._keys: List[str] = list(keys) if isinstance(keys, (list, tuple)) else [keys]

    @property
    def keys(self) -> List[str]:
        """The keys of the features that it needs."""
        return self._keys

    @abc.abstractmethod
    def tensors_to_item(self, keys_to_tensors: Dict[str, Any]) -> Any:
        """The item of those features."""


class ItemHandlerCallback(ItemHandler):
    """An item that a function makes of {key: feature}."""

    def __init__(self, keys: Any, func: Any) -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: Dict[str, Any]) -> Any:
        return self._func(keys_to_tensors)


class BoundingBox(ItemHandler):
    """Boxes [n, 4], of one feature for each side."""

    def __init__(self, keys: Optional[Sequence[str]] = None, prefix: str = "") -> None:
        sides = ["ymin", "xmin", "ymax", "xmax"] if keys is None else list(keys)
        if len(sides) != 4:
            raise at_user_line(ValueError("BoundingBox expects 4 keys but got %d" % len(sides)))
        super().__init__([prefix + side for side in sides])

    def tensors_to_item(self, keys_to_tensors: Dict[str, Any]) -> Any:
        sides = [keys_to_tensors[key] for key in self.keys]
        return array_ops.transpose(array_ops.concat([array_ops.expand_dims(_elements(s), 0) for s in sides], 0))


class Tensor(ItemHandler):
    """A feature as a tensor, reshaped where a shape is given or other features say it."""

    def __init__(self, tensor_key: str, shape_keys: Any = None, shape: Any = None, default_value: Any = 0) -> None:
        if shape_keys and shape is not None:
            raise at_user_line(ValueError("Cannot specify both shape_keys and shape parameters."))
        self._shape_keys = [] if not shape_keys else list(shape_keys) if isinstance(shape_keys, (list, tuple)) else [shape_keys]
        super().__init__([tensor_key, *self._shape_keys])
        self._tensor_key, self._shape, self._default_value = tensor_key, shape, default_value

    def _wanted_shape(self, keys_to_tensors: Dict[str, Any]) -> Any:
        if not self._shape_keys:
            return self._shape
        sizes = [keys_to_tensors[key] for key in self._shape_keys]
        return array_ops.reshape(array_ops.stack([sparse_ops.sparse_tensor_to_dense(s) if _is_sparse(s) else s for s in sizes]), [-1])

    def tensors_to_item(self, keys_to_tensors: Dict[str, Any]) -> Any:
        tensor, shape = keys_to_tensors[self._tensor_key], self._wanted_shape(keys_to_tensors)
        if not _is_sparse(tensor):
            return tensor if shape is None else array_ops.reshape(tensor, shape)
        if shape is not None:
            tensor = sparse_math_ops.sparse_reshape(tensor, shape)
        return sparse_ops.sparse_tensor_to_dense(tensor, self._default_value)


class LookupTensor(Tensor):
    """A Tensor whose elements are looked up in a table."""

    def __init__(self, tensor_key: str, table: Any, shape_keys: Any = None, shape: Any = None, default_value: Any = "") -> None:
        super().__init__(tensor_key, shape_keys, shape, default_value)
        self._table = table

    def tensors_to_item(self, keys_to_tensors: Dict[str, Any]) -> Any:
        return self._table.lookup(super().tensors_to_item(keys_to_tensors))


class SparseTensor(ItemHandler):
    """A sparse tensor of features for its indices and values."""

    def __init__(
        self,
        indices_key: Optional[str] = None,
        values_key: Optional[str] = None,
        shape_key: Optional[str] = None,
        shape: Any = None,
        densify: bool = False,
        default_value: Any = 0,
    ) -> None:
        self._indices_key, self._values_key, self._shape_key = indices_key or "indices", values_key or "values", shape_key
        self._shape, self._densify, self._default_value = shape, densify, default_value
        super().__init__([self._indices_key, self._values_key, *([shape_key] if shape_key else [])])

    def tensors_to_item(self, keys_to_tensors: Dict[str, Any]) -> Any:
        given = keys_to_tensors[self._indices_key]
        sparse = _is_sparse(given)
        shape = self._shape if self._shape_key is None else _elements(keys_to_tensors[self._shape_key])
        if shape is None and sparse:
            shape = given.dense_shape
        indices = array_ops.expand_dims(_elements(given), 1)
        if sparse:  # of a batch, which example they are of stays before them
            indices = array_ops.concat([given.indices[:, :-1], indices], 1)
        made = composite_tensors.SparseTensor(indices, _elements(keys_to_tensors[self._values_key]), shape)
        return sparse_ops.sparse_tensor_to_dense(made, self._default_value) if self._densify else made


class Image(ItemHandler):
    """A decoded image. A feature says its format; JPEG, PNG, GIF, BMP are known from the bytes, "raw" means pixels."""

    def __init__(
        self,
        image_key: Optional[str] = None,
        format_key: Optional[str] = None,
        shape: Any = None,
        channels: Optional[int] = 3,
        dtype: Any = dtypes.uint8,
        repeated: bool = False,
        dct_method: str = "",
    ) -> None:
        arguments.only("", dct_method=dct_method)
        self._image_key, self._format_key = image_key or "image/encoded", format_key or "image/format"
        super().__init__([self._image_key, self._format_key])
        self._shape, self._channels, self._dtype, self._repeated = shape, channels, dtypes.as_dtype(dtype), repeated

    def tensors_to_item(self, keys_to_tensors: Dict[str, Any]) -> Any:
        contents, kind = keys_to_tensors[self._image_key], keys_to_tensors[self._format_key]
        if self._repeated:
            return functional_ops.map_fn(lambda x: self._decode(x, kind), contents, dtype=self._dtype)
        return self._decode(contents, kind)

    def _decode(self, contents: Any, kind: Any) -> Any:
        raw = gen_ops.logical_or(math_ops.equal(kind, "raw"), math_ops.equal(kind, "RAW"))
        image = control_flow_ops.cond(raw, lambda: gen_ops.decode_raw(contents, self._dtype), lambda: self._from_file(contents))
        image.set_shape([None, None, self._channels])
        return image if self._shape is None else array_ops.reshape(image, self._shape)

    def _from_file(self, contents: Any) -> Any:
        image = image_files.decode_image(contents, channels=self._channels)
        return image if self._dtype == dtypes.uint8 else math_ops.cast(image, self._dtype)


class BackupHandler(ItemHandler):
    """The item of one handler, or of another where the first is empty."""

    def __init__(self, handler: ItemHandler, backup: ItemHandler) -> None:
        for given in (handler, backup):
            if not isinstance(given, ItemHandler):
                raise at_user_line(ValueError("BackupHandler takes ItemHandlers, got %s" % (given,)))
        super().__init__([*handler.keys, *backup.keys])
        self._handler, self._backup = handler, backup

    def tensors_to_item(self, keys_to_tensors: Dict[str, Any]) -> Any:
        item = self._handler.tensors_to_item(keys_to_tensors)
        return control_flow_ops.cond(math_ops.equal(array_ops.size(item), 0), lambda: self._backup.tensors_to_item(keys_to_tensors), lambda: item)


class TFExampleDecoder(DataDecoder):
    """Makes items of Example messages: features by their keys, then handlers that make items of features."""

    def __init__(self, keys_to_features: Dict[str, Any], items_to_handlers: Dict[str, ItemHandler]) -> None:
        self._features, self._handlers = keys_to_features, items_to_handlers

    def list_items(self) -> List[str]:
        return list(self._handlers)

    def decode(self, serialized_example: Any, items: Optional[Sequence[str]] = None) -> List[Any]:
        example = parse_single_example(serialized_example, self._features)
        for key in sorted(self._features):
            if isinstance(self._features[key], FixedLenFeature):
                example[key] = array_ops.reshape(example[key], self._features[key].shape)
        handlers = [self._handlers[item] for item in items or self._handlers]
        return [handler.tensors_to_item({key: example[key] for key in handler.keys}) for handler in handlers]
