# SPDX-License-Identifier: Apache-2.0
"""Shapes of which parts may be unknown."""

from __future__ import annotations

from typing import Any, Iterator, List, Optional, Sequence, Union

from millrace.framework.errors import at_user_line


class Dimension:
    """A size that may be unknown (None). Arithmetic with an unknown one gives an unknown one."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        if isinstance(value, Dimension):
            self._value: Optional[int] = value._value
        elif value is None:
            self._value = None
        elif hasattr(value, "as_datatype_enum"):
            raise at_user_line(TypeError("Cannot convert %s to Dimension" % (value,)))
        else:
            try:
                self._value = int(value.__index__() if hasattr(value, "__index__") else value)
            except (TypeError, ValueError):
                raise at_user_line(TypeError("A dimension must be an integer or None, got %r of type '%s'" % (value, type(value).__name__))) from None
            if not isinstance(value, (bytes, str)) and self._value != value:
                raise ValueError("Ambiguous dimension: %s" % value)
            if self._value < 0:
                raise ValueError("Dimension %d must be >= 0" % self._value)

    @property
    def value(self) -> Optional[int]:
        """The size, or None."""
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        """Whether the two may be the same size."""
        other = as_dimension(other)
        return self._value is None or other._value is None or self._value == other._value

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError when they cannot be the same size."""
        if not self.is_compatible_with(other):
            raise ValueError("Dimensions %s and %s are not compatible" % (self, other))

    def merge_with(self, other: Any) -> "Dimension":
        """What both say together."""
        other = as_dimension(other)
        self.assert_is_compatible_with(other)
        return Dimension(other._value if self._value is None else self._value)

    def _arithmetic(self, other: Any, function: Any) -> "Dimension":
        other = as_dimension(other)
        if self._value is None or other._value is None:
            return Dimension(None)
        return Dimension(function(self._value, other._value))

    def __add__(self, other: Any) -> "Dimension":
        return self._arithmetic(other, lambda a, b: a + b)

    def __radd__(self, other: Any) -> "Dimension":
        return self + other

    def __sub__(self, other: Any) -> "Dimension":
        return self._arithmetic(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> "Dimension":
        return as_dimension(other) - self

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, (Dimension, int)) and other is not None and not hasattr(other, "__index__"):
            return NotImplemented
        return self._arithmetic(other, lambda a, b: a * b)

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __floordiv__(self, other: Any) -> "Dimension":
        return self._arithmetic(other, lambda a, b: a // b)

    def __rfloordiv__(self, other: Any) -> "Dimension":
        return as_dimension(other) // self

    def __div__(self, other: Any) -> "Dimension":
        return self // other

    def __truediv__(self, other: Any) -> Any:
        if self._value is None:
            raise at_user_line(TypeError("unsupported operand type(s) for /: 'Dimension(None)' and '%s', please use // instead" % type(other).__name__))
        return self._value / other if isinstance(other, float) else self // other

    def __rtruediv__(self, other: Any) -> Any:
        return as_dimension(other) / self

    def __mod__(self, other: Any) -> "Dimension":
        return self._arithmetic(other, lambda a, b: a % b)

    def __rmod__(self, other: Any) -> "Dimension":
        return as_dimension(other) % self

    def _compare(self, other: Any, function: Any) -> Any:
        other = as_dimension(other)
        if self._value is None or other._value is None:
            return None
        return function(self._value, other._value)

    def __eq__(self, other: object) -> Any:
        try:
            return self._compare(other, lambda a, b: a == b)
        except (TypeError, ValueError):
            return NotImplemented

    def __ne__(self, other: object) -> Any:
        try:
            return self._compare(other, lambda a, b: a != b)
        except (TypeError, ValueError):
            return NotImplemented

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a >= b)

    def __hash__(self) -> int:
        return hash(self._value)

    def __int__(self) -> Any:
        return self._value

    def __float__(self) -> float:
        if self._value is None:
            raise TypeError("The size of an unknown dimension has no value")
        return float(self._value)

    def __index__(self) -> int:
        if self._value is None:
            raise TypeError("The size of an unknown dimension has no value")
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __repr__(self) -> str:
        return "Dimension(%s)" % self._value

    def __reduce__(self) -> Any:
        return Dimension, (self._value,)


def as_dimension(value: Any) -> Dimension:
    """A Dimension as it is, or one made of a number or None."""
    return value if isinstance(value, Dimension) else Dimension(value)


class TensorShape:
    """The shape of a tensor: unknown, or a list of Dimensions that may be unknown."""

    __slots__ = ("_dims",)

    _v2_behavior = False  # the name by which programs ask whether sizes are numbers: they are Dimensions

    def __init__(self, dims: Any) -> None:
        self._dims: Optional[List[Dimension]]
        if dims is None:
            self._dims = None
        elif isinstance(dims, (str, bytes)):
            raise TypeError("A TensorShape has ambiguous dims: %r. Wrap in a list if a shape of one dimension is meant." % (dims,))
        elif isinstance(dims, TensorShape):
            self._dims = None if dims._dims is None else list(dims._dims)
        elif hasattr(dims, "unknown_rank") and hasattr(dims, "dim"):  # a TensorShapeProto
            self._dims = None if dims.unknown_rank else [Dimension(None if d.size == -1 else d.size) for d in dims.dim]
        else:
            try:
                items: Sequence[Any] = list(dims)
            except TypeError:
                items = [dims]
            self._dims = [as_dimension(None if isinstance(d, int) and d == -1 else d) for d in items]

    @property
    def dims(self) -> Optional[List[Dimension]]:
        """The Dimensions, or None."""
        return self._dims

    @property
    def ndims(self) -> Optional[int]:
        """The number of dimensions, or None."""
        return None if self._dims is None else len(self._dims)

    rank = ndims

    def as_list(self) -> List[Optional[int]]:
        """The sizes; None for unknown ones. ValueError when the rank is unknown."""
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return [d._value for d in self._dims]

    def as_proto(self) -> Any:
        """A TensorShapeProto."""
        from millrace.protos import definitions

        if self._dims is None:
            return definitions.TensorShapeProto(unknown_rank=True)
        sizes = [-1 if d._value is None else d._value for d in self._dims]
        return definitions.TensorShapeProto(dim=[definitions.TensorShapeProto.Dim(size=s) for s in sizes])

    def num_elements(self) -> Optional[int]:
        """The number of elements, or None."""
        if not self.is_fully_defined():
            return None
        product = 1
        for d in self._dims or ():
            product *= d._value or 0
        return product

    def is_fully_defined(self) -> bool:
        """Whether all of it is known."""
        return self._dims is not None and all(d._value is not None for d in self._dims)

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError unless all of it is known."""
        if not self.is_fully_defined():
            raise ValueError("Shape %s is not fully defined" % self)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether the two may be the same shape."""
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(a.is_compatible_with(b) for a, b in zip(self._dims, other._dims))

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError when they cannot be the same shape."""
        if not self.is_compatible_with(other):
            raise ValueError("Shapes %s and %s are incompatible" % (self, as_shape(other)))

    def assert_same_rank(self, other: Any) -> None:
        """Raises ValueError when their ranks are known to differ."""
        other = as_shape(other)
        if self.ndims is not None and other.ndims is not None and self.ndims != other.ndims:
            raise ValueError("Shapes %s and %s must have the same rank" % (self, other))

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError when the rank is known to be another."""
        if self.ndims not in (None, rank):
            raise ValueError("Shape %s must have rank %d" % (self, rank))

    def merge_with(self, other: Any) -> "TensorShape":
        """What both say together. ValueError when they contradict."""
        other = as_shape(other)
        if self._dims is None:
            return other
        if other._dims is None:
            return self
        if not self.is_compatible_with(other):
            raise at_user_line(ValueError("Shapes %s and %s are not compatible" % (self, other)))
        return TensorShape([a.merge_with(b) for a, b in zip(self._dims, other._dims)])

    def most_specific_compatible_shape(self, other: Any) -> "TensorShape":
        """What is the same in both; unknown where they differ."""
        other = as_shape(other)
        if self._dims is None or other._dims is None or len(self._dims) != len(other._dims):
            return unknown_shape()
        return TensorShape([a._value if a._value == b._value else None for a, b in zip(self._dims, other._dims)])

    def is_subtype_of(self, other: Any) -> bool:
        """Whether this one says all that another says."""
        other = as_shape(other)
        return (
            other._dims is None
            or self._dims is not None
            and len(self._dims) == len(other._dims)
            and all(b._value in (None, a._value) for a, b in zip(self._dims, other._dims))
        )

    def concatenate(self, other: Any) -> "TensorShape":
        """The dimensions of this one and then those of the other."""
        other = TensorShape([other]) if isinstance(other, Dimension) else as_shape(other)
        if self._dims is None or other._dims is None:
            return unknown_shape()
        return TensorShape(self._dims + other._dims)

    def with_rank(self, rank: int) -> "TensorShape":
        """This shape, known to have that rank. ValueError: it has another one."""
        if self.ndims not in (None, rank):
            raise at_user_line(ValueError("Shape %s must have rank %d" % (self, rank)))
        return self.merge_with(unknown_shape(rank))

    def with_rank_at_least(self, rank: int) -> "TensorShape":
        """This shape; ValueError when it is known to have fewer dimensions."""
        if self.ndims is not None and self.ndims < rank:
            raise ValueError("Shape %s must have rank at least %d" % (self, rank))
        return self

    def with_rank_at_most(self, rank: int) -> "TensorShape":
        """This shape; ValueError when it is known to have more dimensions."""
        if self.ndims is not None and self.ndims > rank:
            raise ValueError("Shape %s must have rank at most %d" % (self, rank))
        return self

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of Shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self) -> Iterator[Dimension]:
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims)

    def __getitem__(self, key: Union[int, slice]) -> Any:
        if self._dims is not None:
            if isinstance(key, slice):
                return TensorShape(self._dims[key])
            try:
                return self._dims[key]
            except IndexError:
                raise at_user_line(IndexError("there is no dimension %s in the shape %s" % (key, self))) from None
        if not isinstance(key, slice):
            return Dimension(None)
        if key.stop is None or (key.start or 0) < 0 or key.stop < 0:
            return unknown_shape()
        return unknown_shape(max(0, key.stop - (key.start or 0)))

    def __eq__(self, other: object) -> Any:
        try:
            other = as_shape(other)
        except (TypeError, ValueError):
            return NotImplemented
        return self._dims == other._dims  # a dimension that is not known equals itself alone

    def __ne__(self, other: object) -> Any:
        try:
            other = as_shape(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._dims is None or other._dims is None:
            raise at_user_line(ValueError("The inequality of unknown TensorShapes is undefined."))
        return self._dims != other._dims

    def __hash__(self) -> int:
        return hash(None if self._dims is None else tuple(d._value for d in self._dims))

    def __add__(self, other: Any) -> "TensorShape":
        return self.concatenate(other)

    def __radd__(self, other: Any) -> "TensorShape":
        return as_shape(other).concatenate(self)

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        if len(self._dims) == 1:
            return "(%s,)" % self._dims[0]
        return "(%s)" % ", ".join(str(d) for d in self._dims)

    def __repr__(self) -> str:
        return "TensorShape(%r)" % (self._dims,)

    def __reduce__(self) -> Any:
        return TensorShape, (self._dims,)


def as_shape(shape: Any) -> TensorShape:
    """A TensorShape as it is, or one made of what describes one."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(rank: Optional[int] = None, ndims: Optional[int] = None) -> TensorShape:
    """A shape of which at most the rank is known; `ndims` is its name before 1.13."""
    rank = ndims if rank is None else rank
    return TensorShape(None if rank is None else [None] * rank)


def scalar() -> TensorShape:
    """The shape of a scalar."""
    return TensorShape([])


def vector(length: Any) -> TensorShape:
    """The shape of a vector."""
    return TensorShape([length])


def matrix(rows: Any, columns: Any) -> TensorShape:
    """The shape of a matrix."""
    return TensorShape([rows, columns])


def shape_list(shape: Any) -> Optional[List[int]]:
    """Sizes with -1 for unknown ones, None for unknown rank: for the extension module."""
    if shape is None:
        return None
    if not isinstance(shape, TensorShape):
        shape = TensorShape(shape)
    return None if shape._dims is None else [-1 if d._value is None else d._value for d in shape._dims]
