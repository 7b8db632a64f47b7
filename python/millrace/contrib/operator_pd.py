# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.distributions' operators of early 1.x: batches of positive definite matrices A = S S^T of a certain form. OperatorPDBase is what they
share; operator_pd_classes.py and operator_pd_update.py hold the forms. tf.linalg.LinearOperator is what came after them."""

from __future__ import annotations

from typing import Any, Callable, Iterator, List

from contextlib import contextmanager

from millrace.distributions.util import rotate_transpose
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops, math_ops


def extract_batch_shape(x: Any, num_event_dims: int, name: str = "extract_batch_shape") -> Tensor:
    """The sizes of all axes of x but the last num_event_dims."""
    with name_scope(name, values=[x]):
        sizes = array_ops.shape(convert_to_tensor(x, name="x"))
        return sizes[: array_ops.rank(x) - num_event_dims]


def _known(made: Tensor, batch: TensorShape, *rest: Any) -> Tensor:
    made.set_shape(batch.concatenate(list(rest)))
    return made


def flip_matrix_to_vector(mat: Any, batch_shape: Any, static_batch_shape: Any) -> Tensor:
    """[..., k, n] as vectors [*batch_shape, k]: the last axis comes first, and is one with the others by batch_shape."""
    given = convert_to_tensor(mat, name="mat")
    size = array_ops.shape(given)[-2]
    made = array_ops.reshape(rotate_transpose(given, 1), array_ops.concat([batch_shape, [size]], 0))
    return _known(made, TensorShape(static_batch_shape), given.get_shape().with_rank_at_least(2)[-2] if given.get_shape().ndims else None)


def flip_vector_to_matrix(vec: Any, batch_shape: Any, static_batch_shape: Any) -> Tensor:
    """Vectors [..., k] as [*batch_shape, k, n]: what batch_shape does not take up becomes the last axis."""
    given = convert_to_tensor(vec, name="vec")
    size = array_ops.shape(given)[-1]
    made = rotate_transpose(array_ops.reshape(given, array_ops.concat([[-1], batch_shape, [size]], 0)), -1)
    batch, shape = TensorShape(static_batch_shape), given.get_shape()
    if shape.ndims is None or batch.ndims is None:
        return made
    elements, each = shape[:-1].num_elements(), batch.num_elements()
    return _known(made, batch, shape[-1], None if elements is None or not each else elements // each)


class OperatorPDBase:
    """A batch of positive definite k x k matrices A. With S S^T = A, sqrt_... are of S.

    A class of your own gives name, verify_pd, dtype, inputs (the tensors that it was made of), get_shape() and _shape(), and of the methods that
    begin with an underscore those that it needs. What does not say _batch_ is for a single matrix, and is that with _batch_ unless it is written."""

    name: Any
    verify_pd: Any
    dtype: Any
    inputs: Any

    # ---- what a class gives ----

    def get_shape(self) -> TensorShape:
        """[..., k, k], as far as it is known."""
        raise NotImplementedError("%s has no get_shape" % type(self).__name__)

    def _shape(self) -> Tensor:
        raise NotImplementedError("%s has no _shape" % type(self).__name__)

    def _batch_sqrt_log_abs_det(self) -> Tensor:
        return 0.5 * self._batch_log_det()

    def _batch_sqrt_log_det(self) -> Tensor:
        return self._batch_sqrt_log_abs_det()

    def _batch_log_det(self) -> Tensor:
        return self._lacking("log_det")

    def _batch_matmul(self, x: Tensor, transpose_x: bool = False) -> Tensor:
        return self._lacking("matmul")

    def _batch_sqrt_matmul(self, x: Tensor, transpose_x: bool = False) -> Tensor:
        return self._lacking("sqrt_matmul")

    def _batch_solve(self, rhs: Tensor) -> Tensor:
        return self._lacking("solve")

    def _batch_sqrt_solve(self, rhs: Tensor) -> Tensor:
        return self._lacking("sqrt_solve")

    def _to_dense(self) -> Tensor:
        return self._lacking("to_dense")

    def _sqrt_to_dense(self) -> Tensor:
        return self._lacking("sqrt_to_dense")

    def _inv_quadratic_form_on_vectors(self, x: Tensor) -> Tensor:
        return self._iqfov_via_sqrt_solve(x)

    def _add_to_tensor(self, mat: Tensor) -> Tensor:
        return self._to_dense() + mat

    def _det(self) -> Tensor:
        return gen_ops.exp(self.log_det())

    def _lacking(self, method: str) -> Any:
        raise NotImplementedError("%s: %s has no method for it" % (method, type(self).__name__))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and not name.startswith(("__", "_batch_")) and hasattr(type(self), "_batch" + name):
            return getattr(self, "_batch" + name)
        raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))

    # ---- what users call ----

    @contextmanager
    def _scope(self, name: str, *values: Any) -> Iterator[None]:
        with name_scope(self.name), name_scope(name, values=[*self.inputs, *values]):
            yield

    def _of(self, method: str) -> Callable[..., Tensor]:
        """The method for one matrix, or for a batch."""
        made: Callable[..., Tensor] = getattr(self, method if self.get_shape().ndims == 2 else "_batch" + method)
        return made

    def _given(self, x: Any) -> Tensor:
        return convert_to_tensor(x, name="x")

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Tensor:
        """A + mat."""
        with self._scope(name, mat):
            return self._add_to_tensor(self._given(mat))

    def inv_quadratic_form_on_vectors(self, x: Any, name: str = "inv_quadratic_form_on_vectors") -> Tensor:
        """x^T A^-1 x of vectors x [..., *batch, k]: [..., *batch]."""
        with self._scope(name, x):
            return self._inv_quadratic_form_on_vectors(self._given(x))

    def _columns(self, x: Tensor) -> Tensor:
        return flip_vector_to_matrix(x, self.batch_shape(), self.get_batch_shape())

    def _sum_of_columns(self, products: Tensor, x: Tensor) -> Tensor:
        sums = flip_matrix_to_vector(math_ops.reduce_sum(products, [-2], True), extract_batch_shape(x, 1), x.get_shape()[:-1])
        return array_ops.squeeze(sums, [-1])

    def _iqfov_via_sqrt_solve(self, x: Tensor) -> Tensor:
        return self._sum_of_columns(gen_ops.square(self._of("_sqrt_solve")(self._columns(x))), x)

    def _iqfov_via_solve(self, x: Tensor) -> Tensor:
        columns = self._columns(x)
        return self._sum_of_columns(columns * self._of("_solve")(columns), x)

    def det(self, name: str = "det") -> Tensor:
        """The determinants of A, [*batch]."""
        with self._scope(name):
            return self._det()

    def log_det(self, name: str = "log_det") -> Tensor:
        """The logarithms of the determinants of A, [*batch]."""
        with self._scope(name):
            return self._of("_log_det")()

    def sqrt_log_abs_det(self, name: str = "sqrt_log_det") -> Tensor:
        """The logarithms of the absolute determinants of S, [*batch]."""
        with self._scope(name):
            return self._of("_sqrt_log_abs_det")()

    def sqrt_log_det(self, name: str = "sqrt_log_det") -> Tensor:
        """The logarithms of the determinants of S, [*batch]."""
        with self._scope(name):
            return self._of("_sqrt_log_det")()

    def matmul(self, x: Any, transpose_x: bool = False, name: str = "matmul") -> Tensor:
        """A x, or A x^T, of x [*batch, k, r] or [*batch, r, k]."""
        with self._scope(name, x):
            return self._of("_matmul")(self._given(x), transpose_x=transpose_x)

    def sqrt_matmul(self, x: Any, transpose_x: bool = False, name: str = "sqrt_matmul") -> Tensor:
        """S x, or S x^T, of x [*batch, k, r] or [*batch, r, k]."""
        with self._scope(name, x):
            return self._of("_sqrt_matmul")(self._given(x), transpose_x=transpose_x)

    def solve(self, rhs: Any, name: str = "solve") -> Tensor:
        """A^-1 rhs of rhs [*batch, k, r]."""
        with self._scope(name, rhs):
            return self._of("_solve")(self._given(rhs))

    def sqrt_solve(self, rhs: Any, name: str = "sqrt_solve") -> Tensor:
        """S^-1 rhs of rhs [*batch, k, r]."""
        with self._scope(name, rhs):
            return self._of("_sqrt_solve")(self._given(rhs))

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """A, [*batch, k, k]."""
        with self._scope(name):
            return self._to_dense()

    def sqrt_to_dense(self, name: str = "sqrt_to_dense") -> Tensor:
        """S, [*batch, k, k]."""
        with self._scope(name):
            return self._sqrt_to_dense()

    # ---- shapes ----

    def get_batch_shape(self) -> TensorShape:
        """All but the last two sizes, as far as they are known."""
        return self.get_shape()[:-2] if self.get_shape().ndims is not None else TensorShape(None)

    def get_vector_shape(self) -> TensorShape:
        """All but the last size, as far as they are known."""
        return self.get_shape()[:-1] if self.get_shape().ndims is not None else TensorShape(None)

    def shape(self, name: str = "shape") -> Tensor:
        """[*batch, k, k], i32."""
        with self._scope(name):
            return self._shape()

    def rank(self, name: str = "rank") -> Tensor:
        """The number of axes, those of the batch with them."""
        with self._scope(name):
            return array_ops.size(self._shape())

    def batch_shape(self, name: str = "batch_shape") -> Tensor:
        """All but the last two sizes, i32."""
        with self._scope(name):
            return self._shape()[:-2]

    def vector_shape(self, name: str = "vector_shape") -> Tensor:
        """All but the last size, i32."""
        with self._scope(name):
            return self._shape()[:-1]

    def vector_space_dimension(self, name: str = "vector_space_dimension") -> Tensor:
        """k, i32."""
        with self._scope(name):
            return self._shape()[-1]


def tensors(*given: Any) -> List[Any]:
    """Those that are there."""
    return [each for each in given if each is not None]
