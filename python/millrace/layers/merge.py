# SPDX-License-Identifier: Apache-2.0
"""Several tensors as one."""

from __future__ import annotations

from typing import Any, List, Tuple

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.layers.settings import SettingsLayer
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops


def _check_lists(inputs: Any, mask: Any) -> None:
    for name, value in (("mask", mask), ("inputs", inputs)):
        if not isinstance(value, list):
            raise at_user_line(ValueError("`%s` should be a list." % name))
    if len(mask) != len(inputs):
        raise at_user_line(ValueError("The lists `inputs` and `mask` should have the same length."))


class _Merge(SettingsLayer):
    """A function of a list of tensors, whose shapes fit each other."""

    supports_masking = True
    most: Any = None

    def build(self, input_shape: Any) -> None:
        """Checks the shapes."""
        if not isinstance(input_shape, list) or len(input_shape) < 2:
            raise at_user_line(
                ValueError(
                    "A merge layer should be called on a list of at least 2 inputs. Got %s inputs." % (len(input_shape) if isinstance(input_shape, list) else 1)
                )
            )
        self._check_count(input_shape)
        shapes = [TensorShape(s).as_list() for s in input_shape]
        if len({s[0] for s in shapes if s[0] is not None}) > 1:
            raise at_user_line(ValueError("Can not merge tensors with different batch sizes. Got tensors with shapes : %s" % shapes))
        self._check_shapes(shapes)
        self.built = True

    def _check_shapes(self, shapes: List[Any]) -> None:
        for sizes in zip(*[list(reversed(s[1:])) for s in shapes]):
            known = {n for n in sizes if n not in (None, 1)}
            if len(known) > 1:
                raise at_user_line(ValueError("Operands could not be broadcast together with shapes %s" % shapes))

    def _check_count(self, inputs: Any) -> None:
        """ValueError unless a call gets as many as it needs: the first one builds the layer, others may differ."""
        if not isinstance(inputs, (list, tuple)):
            raise at_user_line(ValueError("A `%s` layer should be called on a list of inputs." % type(self).__name__))
        if self.most is not None and len(inputs) != self.most:
            raise at_user_line(ValueError("A `%s` layer should be called on exactly %d inputs" % (type(self).__name__, self.most)))

    def call(self, inputs: Any) -> Any:
        """Computes the output."""
        self._check_count(inputs)
        rank = max(K.ndim(x) for x in inputs)
        wide = []
        for x in inputs:  # missing axes come after the batch
            for _ in range(rank - K.ndim(x)):
                x = array_ops.expand_dims(x, 1)
            wide.append(x)
        return self._merged(wide)

    def _merged(self, tensors: List[Any]) -> Any:
        raise NotImplementedError

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Where all of the masks that there are count."""
        if mask is None:
            return None
        _check_lists(inputs, mask)
        found = [math_ops.cast(m, dtypes.bool_) for m in mask if m is not None]
        made = found[0] if found else None
        for m in found[1:]:
            made = gen_ops.logical_and(made, m)
        return made


def _folding(name: str, doc: str, op: Any, most: Any = None) -> Any:
    def merged(self: Any, tensors: List[Any]) -> Any:
        made = tensors[0]
        for t in tensors[1:]:
            made = op(made, t)
        return made / float(len(tensors)) if name == "Average" else made

    kind = type(name, (_Merge,), {"_merged": merged, "__doc__": doc, "most": most, "__module__": __name__})

    def call(inputs: Any, **kwargs: Any) -> Any:
        return kind(**kwargs)(inputs)

    call.__name__ = call.__qualname__ = name.lower()
    call.__doc__ = doc
    return kind, call


Add, add = _folding("Add", "The sum of tensors.", lambda a, b: a + b)
Subtract, subtract = _folding("Subtract", "The difference of two tensors.", lambda a, b: a - b, 2)
Multiply, multiply = _folding("Multiply", "The product of tensors.", lambda a, b: a * b)
Average, average = _folding("Average", "The mean of tensors.", lambda a, b: a + b)
Maximum, maximum = _folding("Maximum", "The largest of tensors.", gen_ops.maximum)
Minimum, minimum = _folding("Minimum", "The smallest of tensors.", gen_ops.minimum)


class Concatenate(_Merge):
    """Tensors joined along an axis."""

    settings: Tuple[str, ...] = ("axis",)

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def _check_shapes(self, shapes: List[Any]) -> None:
        others = [[n for i, n in enumerate(s) if i != self.axis % len(s)] for s in shapes]
        if any(a is not None and b is not None and a != b for o in others for a, b in zip(o, others[0])) or len({len(s) for s in shapes}) > 1:
            raise at_user_line(
                ValueError("A `Concatenate` layer requires inputs with matching shapes except for the concat axis. Got inputs shapes: %s" % shapes)
            )

    def call(self, inputs: Any) -> Any:
        """Computes the output."""
        self._check_count(inputs)
        return K.concatenate(inputs, self.axis)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The masks joined where the steps are."""
        if mask is None:
            return None
        _check_lists(inputs, mask)
        if all(m is None for m in mask):
            return None
        wide = []
        for x, m in zip(inputs, [None if m is None else math_ops.cast(m, dtypes.bool_) for m in mask]):
            if m is None:
                wide.append(array_ops.ones_like(x, dtypes.bool_))
            elif K.ndim(m) < K.ndim(x):
                wide.append(gen_ops.logical_or(array_ops.expand_dims(m, -1), array_ops.zeros_like(x, dtypes.bool_)))
            else:
                wide.append(m)
        return math_ops.reduce_all(array_ops.concat(wide, self.axis % K.ndim(inputs[0])), -1)


class Dot(_Merge):
    """The inner product of two tensors along an axis of each."""

    settings: Tuple[str, ...] = ("axes", "normalize")
    most = 2

    def __init__(self, axes: Any, normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(axes, int) and (not isinstance(axes, (list, tuple)) or len(axes) != 2 or not all(isinstance(a, int) for a in axes)):
            raise at_user_line(TypeError("Invalid type for `axes` - should be a list of two ints, or an int."))
        self.axes, self.normalize = axes, normalize

    def _places(self, shapes: List[Any]) -> Any:
        axes = (self.axes, self.axes) if isinstance(self.axes, int) else self.axes
        return [a % len(s) for a, s in zip(axes, shapes)]

    def _check_shapes(self, shapes: List[Any]) -> None:
        a, b = self._places(shapes)
        if shapes[0][a] != shapes[1][b]:
            raise at_user_line(ValueError("Dimension incompatibility %s != %s. Layer shapes: %s, %s" % (shapes[0][a], shapes[1][b], *shapes)))

    def call(self, inputs: Any) -> Any:
        """Computes the output."""
        x, y = inputs
        a, b = self._places([x.get_shape().as_list(), y.get_shape().as_list()])
        if self.normalize:
            x, y = nn_ops.l2_normalize(x, a), nn_ops.l2_normalize(y, b)
        return K.batch_dot(x, y, [a, b])

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None."""
        return None

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the output."""
        if not isinstance(input_shape, list) or len(input_shape) != 2:
            raise at_user_line(ValueError("A `Dot` layer should be called on a list of 2 inputs."))
        x, y = (TensorShape(s).as_list() for s in input_shape)
        a, b = self._places([x, y])
        made = [n for i, n in enumerate(x) if i != a] + [n for i, n in enumerate(y) if i not in (0, b)]
        return TensorShape(made if len(made) > 1 else [*made, 1])


def concatenate(inputs: Any, axis: int = -1, **kwargs: Any) -> Any:
    """Tensors joined along an axis."""
    return Concatenate(axis=axis, **kwargs)(inputs)


def dot(inputs: Any, axes: Any, normalize: bool = False, **kwargs: Any) -> Any:
    """The inner product of two tensors along an axis of each."""
    return Dot(axes=axes, normalize=normalize, **kwargs)(inputs)
