# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.data.util: arguments as tensors, seeds of data sets, sparse components as tensors, the ops that a data set is made of, kinds of options."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from millrace.data import components, nest
from millrace.data.dataset import Dataset
from millrace.framework import dtypes, random_seed
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor
from millrace.framework.tensor_shape import TensorShape, as_shape, unknown_shape
from millrace.ops import array_ops, gen_ops, sparse_math_ops


# ---- convert ----


def optional_param_to_tensor(argument_name: str, argument_value: Any, argument_default: Any = 0, argument_dtype: Any = dtypes.int64) -> Tensor:
    """An argument as a tensor, or what stands where there is none."""
    return convert_to_tensor(argument_default if argument_value is None else argument_value, argument_dtype, argument_name)


def partial_shape_to_tensor(shape_like: Any) -> Tensor:
    """A shape as a vector of int64, with -1 for sizes that are not known. ValueError and TypeError for tensors that are no such vector."""
    try:
        return convert_to_tensor([-1 if size is None else size for size in as_shape(shape_like).as_list()], dtypes.int64)
    except (TypeError, ValueError):
        given = convert_to_tensor(shape_like)
    if given.get_shape().ndims not in (1, None):
        raise at_user_line(
            ValueError("The given shape %s must be a 1-D tensor of tf.int64 values, but the shape was %s." % (shape_like, tuple(given.get_shape().as_list())))
        )
    if given.dtype != dtypes.int64:
        raise at_user_line(
            TypeError("The given shape %s must be a 1-D tensor of tf.int64 values, but the element type was %s." % (shape_like, given.dtype.name))
        )
    return given


# ---- random_seed ----


def get_seed(seed: Any) -> Tuple[Tensor, Tensor]:
    """The two seeds of an op of data sets, as tensors of int64, of a seed that may be a tensor; (0, 0) is random, and comes of no seed alone."""
    of_tensor = isinstance(seed, Tensor)
    first, second = random_seed.get_seed(0 if of_tensor else seed)
    if not of_tensor:
        return convert_to_tensor(first or 0, dtypes.int64), convert_to_tensor(second or 0, dtypes.int64)
    graph_seed = convert_to_tensor(first or 0, dtypes.int64)
    own = gen_ops.cast(seed, dtypes.int64)
    both_zero = gen_ops.logical_and(gen_ops.equal(graph_seed, 0), gen_ops.equal(own, 0))
    return graph_seed, array_ops.where(both_zero, convert_to_tensor(2**31 - 1, dtypes.int64), own)


# ---- sparse ----


def any_sparse(classes: Any) -> bool:
    """Whether a component is a sparse tensor."""
    return any(kind is SparseTensor for kind in nest.flatten(classes))


def _of_classes(values: Any, classes: Any, stands: Any) -> Any:
    flat = [stands if kind is SparseTensor else value for value, kind in zip(nest.flatten(values), nest.flatten(classes))]
    return nest.pack_sequence_as(values, flat)


def as_dense_shapes(shapes: Any, classes: Any) -> Any:
    """The shapes, unknown ones for what is sparse."""
    return _of_classes(shapes, classes, unknown_shape())


def as_dense_types(types: Any, classes: Any) -> Any:
    """The types, variants for what is sparse."""
    return _of_classes(types, classes, dtypes.variant)


def get_classes(tensors: Any) -> Any:
    """SparseTensor or Tensor, for each component."""
    return nest.pack_sequence_as(tensors, [SparseTensor if isinstance(t, SparseTensor) else Tensor for t in nest.flatten(tensors)])


def _serialized(tensors: Any, serialize: Callable[..., Tensor]) -> Any:
    flat = [serialize(t, out_type=dtypes.variant) if isinstance(t, SparseTensor) else t for t in nest.flatten(tensors)]
    return nest.pack_sequence_as(tensors, flat)


def serialize_sparse_tensors(tensors: Any) -> Any:
    """The components, what is sparse as a vector of three variants."""
    return _serialized(tensors, sparse_math_ops.serialize_sparse)


def serialize_many_sparse_tensors(tensors: Any) -> Any:
    """The components, what is sparse as a row of three variants for each of its rows."""
    return _serialized(tensors, sparse_math_ops.serialize_many_sparse)


def deserialize_sparse_tensors(tensors: Any, types: Any, shapes: Any, classes: Any) -> Any:
    """The components, of which sparse ones have been serialized."""
    rows = zip(*(nest.flatten(part) for part in (tensors, types, shapes, classes)))
    flat = [
        sparse_math_ops.deserialize_sparse(tensor, dtype, TensorShape(shape).ndims) if kind is SparseTensor else tensor for tensor, dtype, shape, kind in rows
    ]
    return nest.pack_sequence_as(tensors, flat)


# ---- traverse ----


def obtain_all_variant_tensor_ops(dataset: Any) -> List[Operation]:
    """The operations that make a data set, itself first and then what it is made of."""
    found = [dataset._variant.op]
    for operation in found:
        found += [t.op for t in operation.inputs if t.dtype == dtypes.variant and t.op not in found]
    return found


class UnaryUnchangedStructureDataset(Dataset):
    """Base of data sets of a program's own ops that are made of another and have elements of its form."""

    def __init__(self, input_dataset: Dataset, variant_tensor: Tensor) -> None:
        super().__init__(variant_tensor, input_dataset.element_spec)
        self._input_dataset = input_dataset

    @property
    def _flat_structure(self) -> Dict[str, Any]:
        """The attributes of its op, known as soon as `_input_dataset` is."""
        types, shapes = components.flat(self._input_dataset.element_spec)
        return {"output_types": types, "output_shapes": shapes}


# ---- options ----


def create_option(name: str, ty: Any, docstring: str, default_factory: Callable[[], Any] = lambda: None) -> Any:
    """A property of a subclass of OptionsBase: a value of a type, made by default_factory unless it is set."""

    def get(options: Any) -> Any:
        return options._options.setdefault(name, default_factory())

    def put(options: Any, value: Any) -> None:
        if not isinstance(value, ty):
            raise at_user_line(TypeError("Property %s must be of type %s, got: %r (type: %r)" % (name, ty, value, type(value))))
        options._options[name] = value

    return property(get, put, doc=docstring)


class OptionsBase:
    """Base of classes whose attributes are options (create_option); others are an AttributeError."""

    def __init__(self) -> None:
        object.__setattr__(self, "_options", {})

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise at_user_line(AttributeError("Cannot set the property %s on %s." % (name, type(self).__name__)))
        object.__setattr__(self, name, value)

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name, value in vars(type(self)).items() if isinstance(value, property)
        )

    __hash__ = None  # type: ignore[assignment]


def merge_options(*options_list: Any) -> Any:
    """Options of one class as one: what later ones set stands. ValueError where there are none, TypeError where they are of several classes."""
    if not options_list:
        raise at_user_line(ValueError("At least one options should be provided"))
    kind = type(options_list[0])
    if not all(isinstance(options, OptionsBase) and type(options) is kind for options in options_list):
        raise at_user_line(
            TypeError("Options are of one class, which is derived from OptionsBase, got %s" % [type(options).__name__ for options in options_list])
        )
    made = kind()
    for options in options_list:
        for name, value in options._options.items():
            earlier = made._options.get(name)
            made._options[name] = merge_options(earlier, value) if isinstance(earlier, OptionsBase) and isinstance(value, OptionsBase) else value
    return made
