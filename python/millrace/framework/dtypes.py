# SPDX-License-Identifier: Apache-2.0
"""The types of tensor elements."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np

from millrace.framework.errors import at_user_line

_NAMES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    7: "string",
    8: "complex64",
    9: "int64",
    10: "bool",
    11: "qint8",
    12: "quint8",
    13: "qint32",
    14: "bfloat16",
    15: "qint16",
    16: "quint16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    20: "resource",
    21: "variant",
    22: "uint32",
    23: "uint64",
}
_NUMPY: Dict[int, Any] = {
    1: np.float32,
    2: np.float64,
    3: np.int32,
    4: np.uint8,
    5: np.int16,
    6: np.int8,
    7: np.object_,
    8: np.complex64,
    9: np.int64,
    10: np.bool_,
    11: np.int8,
    12: np.uint8,
    13: np.int32,
    15: np.int16,
    16: np.uint16,
    17: np.uint16,
    18: np.complex128,
    19: np.float16,
    20: np.object_,
    21: np.object_,
    22: np.uint32,
    23: np.uint64,
}
_REF = 100


def _bfloat16() -> Any:
    try:
        import ml_dtypes  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return np.dtype([("bfloat16", np.uint16)])
    return ml_dtypes.bfloat16


class DType:
    """The type of a tensor's elements: tf.float32 and the like. One object for each type."""

    __slots__ = ("_number",)

    def __init__(self, type_enum: int) -> None:
        self._number = int(type_enum)
        if (self._number - _REF if self._number > _REF else self._number) not in _NAMES:
            raise TypeError("type_enum is not a valid types_pb2.DataType: %r" % (type_enum,))

    @property
    def as_datatype_enum(self) -> int:
        """Its number in GraphDefs."""
        return self._number

    @property
    def base_dtype(self) -> "DType":
        """Without the reference that the output of a variable has."""
        return from_number(self._number - _REF) if self._number > _REF else self

    @property
    def _as_ref(self) -> "DType":
        """With that reference."""
        return from_number(self.base_dtype._number + _REF)

    @property
    def _is_ref_dtype(self) -> bool:
        return self._number > _REF

    @property
    def real_dtype(self) -> "DType":
        """The type of the real part of a complex type; else itself."""
        return {8: float32, 18: float64}.get(self.base_dtype._number, self)

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy type of the same elements."""
        number = self.base_dtype._number
        return _bfloat16() if number == 14 else _NUMPY[number]

    @property
    def name(self) -> str:
        """Its name, such as "float32"."""
        return _NAMES[self._number] if self._number < _REF else _NAMES[self._number - _REF] + "_ref"

    @property
    def is_floating(self) -> bool:
        """Whether it is a real floating-point type."""
        return self.base_dtype._number in (1, 2, 14, 19)

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex type."""
        return self.base_dtype._number in (8, 18)

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer type that is not quantized."""
        return self.base_dtype._number in (3, 4, 5, 6, 9, 17, 22, 23)

    @property
    def is_bool(self) -> bool:
        """Whether it is tf.bool."""
        return self.base_dtype._number == 10

    @property
    def is_unsigned(self) -> bool:
        """Whether it is an unsigned integer type."""
        return self.base_dtype._number in (4, 17, 22, 23)

    @property
    def is_quantized(self) -> bool:
        """Whether it is a quantized type."""
        return self.base_dtype._number in (11, 12, 13, 15, 16)

    @property
    def is_numpy_compatible(self) -> bool:
        """Whether NumPy has the type."""
        return self.base_dtype._number not in (20, 21)

    @property
    def size(self) -> int:
        """Bytes an element; 1 where an element has no fixed size."""
        return 2 if self._number == 14 else int(np.dtype(self.as_numpy_dtype).itemsize) if self._number not in (7, 20, 21) else 1

    @property
    def min(self) -> Any:
        """The smallest finite value. TypeError for a type that is neither an integer nor a real number."""
        if self.base_dtype._number == 14:
            return -self.max
        return self._numbers_of_numpy("minimum").min

    @property
    def max(self) -> Any:
        """The largest finite value. TypeError for a type that is neither an integer nor a real number."""
        if self.base_dtype._number == 14:
            return float.fromhex("0x1.FEp127")  # NumPy has no limits of this type
        return self._numbers_of_numpy("maximum").max

    def _numbers_of_numpy(self, wanted: str) -> Any:
        if not (self.is_floating or self.is_integer):
            raise TypeError("Cannot find %s value of %s." % (wanted, self))
        return np.finfo(self.as_numpy_dtype) if self.is_floating else np.iinfo(self.as_numpy_dtype)

    @property
    def limits(self) -> Any:
        """(min, max) of the intensities of images of this type, none of which is below 0."""
        return (0, 1) if self.is_floating else (0, self.max)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether tensors of `other` can stand where this type is wanted."""
        other = as_dtype(other)
        return self._number in (other._number, other.base_dtype._number)

    def __eq__(self, other: object) -> bool:
        if other is None or isinstance(other, type) and other in _NOT_TENSORFLOWS:
            return False
        if isinstance(other, DType):
            return self._number == other._number
        try:
            return self._number == as_dtype(other)._number
        except TypeError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._number

    def __int__(self) -> int:
        return self._number

    def __repr__(self) -> str:
        return "tf." + self.name

    def __str__(self) -> str:
        return "<dtype: %r>" % self.name

    def __reduce__(self) -> Any:
        return as_dtype, (self.name,)


_ALL: List[Optional[DType]] = [None] * 124
for _number in _NAMES:
    _ALL[_number] = DType(_number)
    _ALL[_number + _REF] = DType(_number + _REF)


def from_number(number: int) -> DType:
    """The type with a number of GraphDefs."""
    found = _ALL[number] if 0 <= number < len(_ALL) else None
    if found is None:
        raise TypeError("There is no data type number %r" % (number,))
    return found


float32, float64, int32, uint8, int16, int8 = (from_number(n) for n in (1, 2, 3, 4, 5, 6))
string, complex64, int64, bool_ = (from_number(n) for n in (7, 8, 9, 10))
qint8, quint8, qint32, bfloat16, qint16, quint16 = (from_number(n) for n in (11, 12, 13, 14, 15, 16))
uint16, complex128, float16, resource, variant = (from_number(n) for n in (17, 18, 19, 20, 21))
uint32, uint64 = from_number(22), from_number(23)
half, double = float16, float64

_BY_NAME: Dict[str, DType] = {t.name: t for t in _ALL if t is not None}
_BY_NAME.update({"float": float32, "double": float64, "half": float16, "int": int32, "str": string, "float_ref": from_number(101)})
_BY_NUMPY: Dict[Any, DType] = {np.dtype(t): from_number(n) for n, t in _NUMPY.items() if n not in (7, 11, 12, 13, 15, 16, 20, 21)}
_BY_TYPE: Dict[Any, DType] = {float: float32, int: int32, bool: bool_, complex: complex64, str: string, bytes: string, object: string}


_NOT_TENSORFLOWS = (int, complex, str, bytes)  # Python types that as_dtype takes here, and that no DType of TensorFlow's equals
_TYPE_TO_STRING: Dict[int, str] = {t._number: t.name for t in _ALL if t is not None}
# What the values of images of a type may be.
dtype_range = {
    np.bool_: (False, True),
    np.uint8: (0, 255),
    np.uint16: (0, 65535),
    np.int8: (-128, 127),
    np.int16: (-32768, 32767),
    np.int64: (-(2**63), 2**63 - 1),
    np.uint64: (0, 2**64 - 1),
    np.int32: (-(2**31), 2**31 - 1),
    np.uint32: (0, 2**32 - 1),
    np.float32: (-1, 1),
    np.float64: (-1, 1),
}


def as_dtype(type_value: Any) -> DType:
    """The DType that a DType, a number, a name, a NumPy type or a Python type means."""
    if isinstance(type_value, DType):
        return type_value
    if isinstance(type_value, (int, np.integer)) and not isinstance(type_value, bool):
        return from_number(int(type_value))
    if isinstance(type_value, str):
        found = _BY_NAME.get(type_value)
        if found is not None:
            return found
    elif isinstance(type_value, type) and type_value in _BY_TYPE:
        return _BY_TYPE[type_value]
    try:
        numpy_type = np.dtype(type_value)
    except TypeError:
        raise at_user_line(TypeError("Cannot convert value %r to a TensorFlow DType." % (type_value,))) from None
    found = _BY_NUMPY.get(numpy_type)
    if found is not None:
        return found
    if numpy_type.kind in "SUO":
        return string
    if numpy_type.name == "bfloat16" or numpy_type == _bfloat16():
        return bfloat16
    if numpy_type.kind == "i":  # long and long long may be different types of one size
        return {1: int8, 2: int16, 4: int32, 8: int64}[numpy_type.itemsize]
    if numpy_type.kind == "u":
        return {1: uint8, 2: uint16, 4: uint32, 8: uint64}[numpy_type.itemsize]
    raise at_user_line(TypeError("Cannot convert value %r to a TensorFlow DType." % (type_value,)))


def dtype_number(value: Any) -> int:
    """The number of a base type, for the extension module."""
    number = value._number if isinstance(value, DType) else as_dtype(value)._number
    return number - _REF if number > _REF else number


ALL_BY_NUMBER = _ALL
QUANTIZED_DTYPES = frozenset([qint8, quint8, qint32, qint16, quint16])


def __getattr__(name: str) -> DType:
    """tf.bool, which is no name here since Python's has it, and the types of references."""
    found = _BY_NAME.get(name) if name == "bool" or name.endswith("_ref") else None
    if found is None:
        raise AttributeError("module 'millrace.framework.dtypes' has no attribute %r" % name)
    return found
