# SPDX-License-Identifier: Apache-2.0
"""Values to tensors: constants, lists that mix tensors and numbers, objects with a conversion of their own."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

import numpy as np

import millrace._core as _core
from millrace.framework import dtypes, numpy_cast, tensor_shape
from millrace.framework.errors import at_user_line, made_at
from millrace.framework.graph import Operation, Tensor, name_scope

_CONST = _core.Op("Const", "", "output:dtype", "value:n dtype:t")
_PACK = _core.Op("Pack", "values:N*T", "output:T", "N:i T:t axis:i")
_CAST = _core.Op("Cast", "x:SrcT", "y:DstT", "SrcT:t DstT:t Truncate:b")

_conversions: List[Tuple[int, Any, Callable[..., Any]]] = []


def register_tensor_conversion_function(base_type: Any, conversion_func: Callable[..., Any], priority: int = 100) -> None:
    """Makes values of a type convert by conversion_func(value, dtype=, name=, as_ref=)."""
    _conversions.append((priority, base_type, conversion_func))
    _conversions.sort(key=lambda entry: entry[0])


_LARGEST_INT32 = 2**31 - 1


def _array_of(value: Any, dtype: Optional[dtypes.DType], exact: bool = False) -> np.ndarray:
    """The value as an array of exactly `dtype`, or of the type that it implies: float32 and int32 for Python numbers.

    exact: integers that `dtype` cannot hold are an error, else they lose their upper bits as in TensorFlow.
    """
    if isinstance(value, (tensor_shape.TensorShape, tensor_shape.Dimension)):
        if isinstance(value, tensor_shape.TensorShape) and value.ndims is None:
            raise at_user_line(ValueError("Cannot convert a partially known TensorShape to a Tensor: %s" % value))
        value = value.as_list() if isinstance(value, tensor_shape.TensorShape) else value.value
        if value is None:
            raise at_user_line(ValueError("Cannot convert an unknown Dimension to a Tensor: ?"))
        if isinstance(value, list) and None in value:
            raise at_user_line(ValueError("Cannot convert a partially known TensorShape to a Tensor: %s" % tensor_shape.TensorShape(value)))
        if dtype is not None and dtype not in (dtypes.int32, dtypes.int64):
            raise at_user_line(TypeError("Cannot convert a TensorShape or a Dimension to dtype: %s" % dtype.name))
        if dtype == dtypes.int32 and any(d > _LARGEST_INT32 for d in np.atleast_1d(value)):
            raise at_user_line(ValueError("Cannot convert a TensorShape to dtype int32; a dimension is too large (%d)" % np.max(value)))
        if dtype is None:
            dtype = dtypes.int64 if any(d > _LARGEST_INT32 for d in np.atleast_1d(value)) else dtypes.int32
    if _has_buffer(value):
        value = np.asarray(value)
    if isinstance(value, (np.ndarray, np.generic)):
        if dtype is None or value.dtype == dtype.as_numpy_dtype:
            return np.asarray(value)
        if dtype == dtypes.string:
            return np.asarray(value, dtype=object)
        return numpy_cast.cast(value, dtype)
    if dtype == dtypes.string or dtype is None and _has_string(value):
        _check_strings(value)
        return np.array(value, dtype=object)
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return _array_of(np.from_dlpack(value), dtype, exact)
    try:
        array = np.asarray(_plain(value))
    except ValueError:
        raise at_user_line(ValueError("Argument must be a dense tensor, but the parts of %.80r have different lengths" % (value,))) from None
    if array.dtype == object and dtype is not None and (dtype.is_floating or dtype.is_complex) and all(isinstance(v, (int, float)) for v in array.ravel()):
        array = array.astype(np.float64)  # integers beyond 64 bits
    if array.dtype == object and hasattr(value, "__array__") and array.size and all(isinstance(v, (str, bytes)) for v in array.ravel()):
        return array  # a column of words, as pandas has it
    if array.dtype == object and _is_ragged(value):
        raise at_user_line(
            ValueError("setting an array element with a sequence. Argument must be a dense tensor, but the parts of %.80r have different lengths" % (value,))
        )
    if isinstance(value, Operation):
        raise at_user_line(TypeError("Can't convert Operation '%s' to Tensor (target dtype=%r)" % (value.name, dtype)))
    is_array = hasattr(value, "__array__") or _has_arrays(value)  # its elements have a type of their own
    if (
        array.dtype == object or dtype is None and array.dtype.kind in "SU" and not is_array and not _has_string(value)
    ):  # NumPy makes words of numbers beside words
        hint = (
            "In a shape, say -1 or tf.shape(x)[0] instead of None."
            if array.dtype == object and None in array
            else "Consider casting elements to a supported type."
        )
        raise at_user_line(TypeError("Failed to convert object of type %s to Tensor. Contents: %.80r. %s" % (type(value), value, hint)))
    if dtype is None:
        if array.dtype == np.float64 and not is_array:
            return array.astype(np.float32)
        if array.dtype == np.int64 and not is_array:
            narrow = array.astype(np.int32)
            return narrow if np.array_equal(narrow, array) else array
        if array.dtype == np.complex128:
            return array
        return array
    if array.size and (array.dtype.kind in "fc" and dtype.is_integer or array.dtype.kind == "c" and dtype.is_floating):
        raise at_user_line(TypeError("Expected %s, got %.60r of type '%s' instead." % (dtype.name, value, type(value).__name__)))
    if array.dtype.kind == "b" and not dtype.is_bool and is_array or dtype.is_bool and array.dtype.kind != "b" and array.size:
        raise at_user_line(TypeError("Expected %s, got %.60r of type '%s' instead." % (dtype.name, value, type(value).__name__)))
    if array.dtype.kind in "SU":
        raise at_user_line(TypeError("Expected %s, got %.60r of type 'str' instead." % (dtype.name, value)))
    if array.dtype == np.uint64 and dtype == dtypes.int64 and not is_array and np.any(array >= 1 << 63):
        raise at_user_line(OverflowError("Python int too large to convert to C long: %.60r does not fit into int64" % (value,)))
    made = numpy_cast.cast(array, dtype)
    if exact and array.dtype.kind in "iu" and not np.array_equal(made, array):
        raise at_user_line(ValueError("%.60r does not fit into %s" % (value, dtype.name)))
    return made


def _is_ragged(value: Any) -> bool:
    """Whether a list holds lists of different lengths, or lists beside numbers."""
    if not isinstance(value, (list, tuple)):
        return False
    lengths = {len(v) if isinstance(v, (list, tuple)) else -1 for v in value}
    return len(lengths) > 1 or any(_is_ragged(v) for v in value)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, tensor_shape.Dimension):
        return value.value
    if isinstance(value, tensor_shape.TensorShape):
        return value.as_list()
    return value


def _has_string(value: Any) -> bool:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (str, bytes))


def _check_strings(value: Any) -> None:
    if isinstance(value, (list, tuple)):
        for element in value:
            _check_strings(element)
    elif not isinstance(value, (str, bytes, np.ndarray, np.generic)):
        raise at_user_line(TypeError("Expected string, got %.60r of type '%s' instead." % (value, type(value).__name__)))


def _has_buffer(value: Any) -> bool:
    """Whether it is an array though it has no __array__: an array.array, a bytearray, what has an __array_interface__. The type of its elements counts."""
    if isinstance(value, (bool, int, float, complex, str, bytes, list, tuple, np.ndarray, np.generic)) or hasattr(value, "__array__"):
        return False
    if isinstance(getattr(value, "__array_interface__", None), dict):
        return True
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _has_arrays(value: Any) -> bool:
    """Whether a list holds NumPy arrays, whose types count. Those of NumPy's scalars in a list do not."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, np.ndarray) and value.ndim > 0


def is_constant(tensor_or_op: Any) -> bool:
    """Whether it is the operation of a constant, or what one gives."""
    op = tensor_or_op.op if isinstance(tensor_or_op, Tensor) else tensor_or_op
    return bool(op.type == "Const")


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const", verify_shape: bool = False) -> Tensor:
    """A tensor with a fixed value. With a shape, a value with fewer elements is filled up with its last one. A TensorProto is what it says, whatever
    dtype and shape."""
    return _constant(value, None if dtype is None else dtypes.as_dtype(dtype), shape, name, verify_shape)


def _constant(value: Any, wanted: Optional[dtypes.DType], shape: Any, name: str, verify_shape: bool = False, exact: bool = False) -> Tensor:
    if value is None:
        raise at_user_line(ValueError("None values not supported."))
    if type(value).__name__ == "TensorProto" and dtypes.from_number(value.dtype) not in (dtypes.resource, dtypes.variant):
        from millrace.framework.tensor_protos import make_ndarray

        value, wanted, shape = make_ndarray(value), dtypes.from_number(value.dtype), None  # the message says all of it
    dims = None if shape is None else [int(d) for d in tensor_shape.as_shape(shape).as_list()]  # type: ignore[arg-type]
    array = _array_of(value, wanted, exact)
    if not isinstance(value, (int, float, str, bytes, list, tuple)) and np.may_share_memory(array, value if isinstance(value, np.ndarray) else array):
        array = array.copy()  # the caller may change his own later
    if dims is not None and 0 in dims and not isinstance(value, (np.ndarray, np.generic)):
        array = np.empty(dims, array.dtype)
    if dims is not None:
        if verify_shape and list(array.shape) != dims:
            raise at_user_line(TypeError("Expected Tensor's shape: %s, got %s." % (tuple(dims), array.shape)))
        count = int(np.prod(dims, dtype=np.int64))
        if array.size > count:
            raise at_user_line(ValueError("Too many elements provided. Needed at most %d, but received %d" % (count, array.size)))
        if array.size == count:
            array = array.reshape(dims)
        elif array.size == 0:
            array = np.zeros(dims, array.dtype)
        else:
            flat = np.empty(count, array.dtype)
            flat[: array.size] = array.ravel()
            flat[array.size :] = array.ravel()[-1]
            array = flat.reshape(dims)
    number = wanted.base_dtype if wanted is not None else dtypes.as_dtype(array.dtype)
    return _CONST((), (_Value(array, number) if number in dtypes.QUANTIZED_DTYPES or number == dtypes.string else array, number), name)


class _Value:
    """An array whose NumPy type does not say its DType."""

    def __init__(self, array: np.ndarray, dtype: dtypes.DType) -> None:
        self.dtype, self._array = dtype, array

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return self._array


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_tensor(v) for v in value)
    return isinstance(value, Tensor) or hasattr(value, "_as_graph_element") and not isinstance(value, type)


def _pack(values: Any, dtype: Optional[dtypes.DType], name: str) -> Tensor:
    """Lists that mix tensors and numbers. Tensors of another type than the one asked for are cast, as in 1.15."""
    if dtype is None:
        dtype = _dtype_in(values)
    elif _dtype_in(values) not in (dtype.base_dtype, None):
        values = [_CAST((v,), (None, dtype.base_dtype, False), None) if isinstance(v, Tensor) and v.dtype.base_dtype != dtype.base_dtype else v for v in values]
    for value in values:
        if isinstance(value, Tensor) and dtype is not None and value.dtype.base_dtype != dtype.base_dtype:
            raise at_user_line(TypeError("Cannot convert a list with a tensor of dtype %s to %s: %s" % (value.dtype.name, dtype.name, value)))
    with name_scope(name) as scope:
        parts = [_pack(v, dtype, str(i)) if isinstance(v, (list, tuple)) else convert_to_tensor(v, dtype, str(i)) for i, v in enumerate(values)]
        return _PACK((parts,), (None, None, 0), scope)


def _dtype_in(values: Any) -> Optional[dtypes.DType]:
    for value in values:
        found = _dtype_in(value) if isinstance(value, (list, tuple)) else getattr(value, "dtype", None) if _holds_tensor(value) else None
        if found is not None:
            return dtypes.as_dtype(found).base_dtype
    return None


def internal_convert_to_tensor(value: Any, dtype: Any = None, name: Optional[str] = None, as_ref: bool = False, preferred_dtype: Any = None) -> Tensor:
    """convert_to_tensor, which with as_ref gives the reference of a variable."""
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
    if isinstance(value, Tensor):
        if dtype is not None and not dtype.is_compatible_with(value.dtype) and dtype.base_dtype != value.dtype.base_dtype:
            raise at_user_line(
                ValueError("Tensor conversion requested dtype %s for Tensor with dtype %s: %s%s" % (dtype.name, value.dtype.name, value, made_at(value)))
            )
        return value
    for _, base_type, function in _conversions:
        if isinstance(value, base_type):
            result = None
            if dtype is None and preferred_dtype is not None:
                try:
                    result = function(value, dtype=dtypes.as_dtype(preferred_dtype), name=name, as_ref=as_ref)
                except (TypeError, ValueError):
                    result = None
            if result is None or result is NotImplemented:
                result = function(value, dtype=dtype, name=name, as_ref=as_ref)
            if result is not NotImplemented:
                return result
    if hasattr(value, "_as_graph_element") and not isinstance(value, type):
        return internal_convert_to_tensor(value._as_graph_element(), dtype, name, as_ref)
    if isinstance(value, (list, tuple)) and _holds_tensor(value):
        for wanted in (preferred_dtype,) if dtype is None and preferred_dtype is not None else ():
            try:
                return _pack(value, dtypes.as_dtype(wanted), name or "packed")
            except (TypeError, ValueError):
                pass
        return _pack(value, dtype, name or "packed")
    if dtype is None and preferred_dtype is not None:
        try:
            return _constant(value, dtypes.as_dtype(preferred_dtype), None, name or "Const", exact=True)
        except (TypeError, ValueError):
            pass
    return constant(value, dtype, name=name or "Const")


def convert_to_tensor(value: Any, dtype: Any = None, name: Optional[str] = None, preferred_dtype: Any = None, dtype_hint: Any = None) -> Tensor:
    """A tensor as it is, or one made of a value: a number, a string, an array, nested lists of these and tensors.

    Without a dtype it is of dtype_hint (preferred_dtype is its older name), where the value can be that, else of the type that the value says.
    """
    return internal_convert_to_tensor(value, dtype, name, False, preferred_dtype if dtype_hint is None else dtype_hint)


def shape_tensor(shape: Any, name: str = "shape") -> Tensor:
    """The sizes of a shape as a tensor: of int32, or of int64 where one needs it."""
    if isinstance(shape, Tensor) or _holds_tensor(shape) or hasattr(shape, "_as_graph_element"):
        return convert_to_tensor(shape, None if isinstance(shape, Tensor) else dtypes.int32, name)
    if isinstance(shape, np.ndarray) and shape.dtype.kind in "iu" and shape.size:
        return convert_to_tensor(shape if shape.dtype in (np.int32, np.int64) else shape.astype(np.int64), name=name)
    sizes = tensor_shape.as_shape(shape).as_list() if not isinstance(shape, (list, tuple)) else list(shape)
    wide = any(d is not None and int(d) > _LARGEST_INT32 for d in sizes)
    return convert_to_tensor(sizes, dtypes.int64 if wide else dtypes.int32, name)


def convert_n_to_tensor(values: Any, dtype: Any = None, name: Optional[str] = None) -> List[Tensor]:
    """convert_to_tensor of each."""
    return [convert_to_tensor(v, dtype, None if name is None else "%s_%d" % (name, i)) for i, v in enumerate(values)]


def _for_op(value: Any, dtype: Optional[int], name: str, as_ref: bool, types: Optional[Tuple[int, ...]]) -> Tensor:
    """The conversion that the extension module asks for, with types as numbers.

    types: without a dtype, the type for what has none of its own (Python's numbers and lists), then those that the op takes. An array of one of these keeps it.
    """
    preferred = None
    if types is not None:
        own = _type_of_array(value)
        preferred = None if own is not None and own in types[1:] else types[0]
    try:
        return internal_convert_to_tensor(value, dtype, name, as_ref, preferred)
    except ValueError:
        if dtype is None:
            raise
        return internal_convert_to_tensor(value, None, name, as_ref)  # the op says that it wanted another type


def _type_of_array(value: Any) -> Optional[int]:
    """The number of the type of an array, or of a list of arrays; None for other values."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
        if not isinstance(value, (list, tuple)) and not (isinstance(value, np.ndarray) and value.ndim):
            return None
    own = getattr(value, "dtype", None)
    if not isinstance(own, np.dtype):
        return None
    try:
        return int(dtypes.as_dtype(own))
    except TypeError:
        return None
