# SPDX-License-Identifier: Apache-2.0
"""Virtual batch normalization (Salimans 2016): each example is normalized by itself and a batch that stays, not by those beside it."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, nn_ops
from millrace.ops.variable_scope import get_variable, variable_scope


def _moments(x: Tensor, axes: Sequence[int]) -> Tuple[Tensor, Tensor]:
    """The mean and the mean of squares, with the axes as 1; those of float16 are added up in float32."""
    wide = math_ops.cast(x, dtypes.float32) if x.dtype.base_dtype == dtypes.float16 else x
    shift = gen_ops.stop_gradient(math_ops.reduce_mean(wide, axes, keepdims=True))
    mean = math_ops.reduce_mean(wide - shift, axes, keepdims=True) + shift
    square = math_ops.reduce_mean(gen_ops.square(wide), axes, keepdims=True)
    return math_ops.cast(mean, x.dtype.base_dtype), math_ops.cast(square, x.dtype.base_dtype)


class VBN:
    """Normalizes what it is called with along `axis`. The statistics of an example are a weighted mean of its own and of those of the reference batch,
    as if it were one example more of that. beta and gamma are shared by all calls."""

    def __init__(
        self,
        reference_batch: Any,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = init_ops.zeros_initializer(),
        gamma_initializer: Any = init_ops.ones_initializer(),
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        trainable: bool = True,
        name: Optional[str] = None,
        batch_axis: int = 0,
    ) -> None:
        self._reference = convert_to_tensor(reference_batch)
        rank = self._reference.get_shape().ndims
        if rank is None:
            raise at_user_line(ValueError("`reference_batch` has unknown dimensions."))
        axis, self._batch_axis = self._within(axis, rank), self._within(batch_axis, rank)
        if axis == self._batch_axis:
            raise at_user_line(ValueError("`axis` and `batch_axis` cannot be the same."))
        size = self._reference.get_shape()[axis].value
        self._parameters = [size if i == axis else 1 for i in range(rank)]
        self._of_example = [i for i in range(rank) if i not in (axis, self._batch_axis)]
        self._epsilon, self._beta, self._gamma = epsilon, None, None  # type: Any, Any, Any
        with variable_scope(name, "VBN", values=[self._reference]) as self._scope:
            self._mean, self._square = _moments(self._reference, [i for i in range(rank) if i != axis])
            self._share = 1.0 / (math_ops.cast(array_ops.shape(self._reference)[self._batch_axis], self._mean.dtype) + 1.0)
            if center:
                self._beta = get_variable("beta", [size], initializer=beta_initializer, regularizer=beta_regularizer, trainable=trainable)
            if scale:
                self._gamma = get_variable("gamma", [size], initializer=gamma_initializer, regularizer=gamma_regularizer, trainable=trainable)

    @staticmethod
    def _within(axis: int, rank: int) -> int:
        used = axis + rank if axis < 0 else axis
        if not 0 <= used < rank:
            raise at_user_line(ValueError("Value of `axis` argument %d is out of range for input with rank %d" % (used, rank)))
        return used

    def _normalized(self, x: Tensor, mean: Tensor, square: Tensor) -> Tensor:
        beta, gamma = (None if v is None else array_ops.reshape(v, self._parameters) for v in (self._beta, self._gamma))
        return nn_ops.batch_normalization(x, mean, square - gen_ops.square(mean), beta, gamma, self._epsilon)

    def reference_batch_normalization(self) -> Tensor:
        """The reference batch, normalized by its own statistics."""
        with name_scope(self._scope.name):
            return self._normalized(self._reference, self._mean, self._square)

    def _mixed(self, inputs: Tensor, axes: Sequence[int]) -> Tuple[Tensor, Tensor]:
        parts = zip(_moments(inputs, axes), (self._mean, self._square))
        mean, square = (self._share * own + (1.0 - self._share) * reference for own, reference in parts)
        return mean, square

    def _but_batch(self, x: Tensor) -> TensorShape:
        sizes: List[Any] = x.get_shape().as_list()
        return TensorShape(sizes[: self._batch_axis] + sizes[self._batch_axis + 1 :])

    def __call__(self, inputs: Any) -> Tensor:
        inputs = convert_to_tensor(inputs)
        self._but_batch(inputs).assert_is_compatible_with(self._but_batch(self._reference))
        with name_scope(self._scope.name, values=[inputs]):
            return self._normalized(inputs, *self._mixed(inputs, self._of_example))
