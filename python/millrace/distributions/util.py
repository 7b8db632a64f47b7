# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Helpers of distributions."""

from __future__ import annotations

import hashlib
import inspect
from typing import Any, Dict, Optional, Tuple

import numpy as np

from millrace.distributions.basic_bijectors import softplus_inverse  # noqa: F401
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops, nn_ops


def assert_close(x: Any, y: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: str = "assert_close") -> Any:
    """An operation that fails unless x and y are equal up to rounding of x's type."""
    x, y = convert_to_tensor(x, name="x"), convert_to_tensor(y, name="y")
    if data is None:
        data = [message or "", "Condition x ~= y did not hold element-wise: x = ", x.name, x, "y = ", y.name, y]
    if x.dtype.is_integer:
        return check_ops.assert_equal(x, y, data=data, summarize=summarize, message=message, name=name)
    with name_scope(name, "assert_close", [x, y, data]):
        tolerance = float(np.finfo(x.dtype.base_dtype.as_numpy_dtype).eps)
        return control_flow_ops.Assert(math_ops.reduce_all(gen_ops.less_equal(gen_ops.abs(x - y), tolerance)), data, summarize=summarize)


def assert_integer_form(
    x: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, int_dtype: Any = None, name: str = "assert_integer_form"
) -> Any:
    """An operation that fails unless x holds whole numbers."""
    with name_scope(name, values=[x, data]):
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_integer:
            return control_flow_ops.no_op()
        message = message or "%s has non-integer components" % x.op.name
        whole = {dtypes.float16: dtypes.int16, dtypes.float32: dtypes.int32, dtypes.float64: dtypes.int64}
        if int_dtype is None:
            if x.dtype.base_dtype not in whole:
                raise at_user_line(TypeError("Unrecognized type %s" % x.dtype.name))
            int_dtype = whole[x.dtype.base_dtype]
        return check_ops.assert_equal(
            x, math_ops.cast(math_ops.cast(x, int_dtype), x.dtype.base_dtype), data=data, summarize=summarize, message=message, name=name
        )


def embed_check_nonnegative_integer_form(x: Any, name: str = "embed_check_nonnegative_integer_form") -> Tensor:
    """x, behind checks that it holds whole numbers of at least 0."""
    with name_scope(name, values=[x]):
        x = convert_to_tensor(x, name="x")
        checks = [check_ops.assert_non_negative(x, message="'{}' must be non-negative.".format(x.op.name))]
        if not x.dtype.is_integer:
            checks.append(assert_integer_form(x, message="'{}' cannot contain fractional components.".format(x.op.name)))
        return control_flow_ops.with_dependencies(checks, x)


assert_nonnegative_integer_form = embed_check_nonnegative_integer_form


def same_dynamic_shape(a: Any, b: Any) -> Any:
    """Whether two tensors have one shape, found out when it runs."""
    a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")

    def equal() -> Any:
        return math_ops.reduce_all(
            gen_ops.equal(array_ops.concat([array_ops.shape(a), array_ops.shape(b)], 0), array_ops.concat([array_ops.shape(b), array_ops.shape(a)], 0))
        )

    return control_flow_ops.cond(gen_ops.equal(array_ops.rank(a), array_ops.rank(b)), equal, lambda: convert_to_tensor(False))


def get_logits_and_probs(
    logits: Any = None, probs: Any = None, multidimensional: bool = False, validate_args: bool = False, name: str = "get_logits_and_probs"
) -> Tuple[Tensor, Tensor]:
    """(logits, probabilities) of one of them; of classes along the last dimension with multidimensional."""
    with name_scope(name, values=[probs, logits]):
        if (probs is None) == (logits is None):
            raise at_user_line(ValueError("Must pass probs or logits, but not both."))
        if probs is None:
            logits = convert_to_tensor(logits, name="logits")
            if not logits.dtype.is_floating:
                raise at_user_line(TypeError("logits must having floating type."))
            if multidimensional:
                if validate_args:
                    logits = embed_check_categorical_event_shape(logits)
                return logits, nn_ops.softmax(logits, name="probs")
            return logits, math_ops.sigmoid(logits, name="probs")
        probs = convert_to_tensor(probs, name="probs")
        if not probs.dtype.is_floating:
            raise at_user_line(TypeError("probs must having floating type."))
        if validate_args:
            one = convert_to_tensor(1.0, probs.dtype.base_dtype)
            checks = [check_ops.assert_non_negative(probs)]
            if multidimensional:
                probs = embed_check_categorical_event_shape(probs)
                checks.append(assert_close(math_ops.reduce_sum(probs, -1), one, message="probs does not sum to 1."))
            else:
                checks.append(check_ops.assert_less_equal(probs, one, message="probs has components greater than 1."))
            probs = control_flow_ops.with_dependencies(checks, probs)
        logs = gen_ops.log(probs)
        return (logs, probs) if multidimensional else (logs - gen_ops.log1p(-1.0 * probs), probs)


def _largest_whole(dtype: Any) -> int:
    """The largest whole number up to which all whole numbers are of the type."""
    if dtype == dtypes.bool_:
        return 1
    if dtype.is_floating:
        return int(2 ** (np.finfo(dtype.as_numpy_dtype).nmant + 1))
    return int(np.iinfo(dtype.as_numpy_dtype).max)


def _smallest_whole(dtype: Any) -> int:
    if dtype == dtypes.bool_:
        return 0
    return -_largest_whole(dtype) if dtype.is_floating else int(np.iinfo(dtype.as_numpy_dtype).min)


def embed_check_categorical_event_shape(categorical_param: Any, name: str = "embed_check_categorical_event_shape") -> Tensor:
    """The parameter, behind checks that its last dimension is a number of classes that its type can count."""
    with name_scope(name, values=[categorical_param]):
        x = convert_to_tensor(categorical_param, name="categorical_param")
        dtype = x.dtype.base_dtype
        if not (dtype.is_floating or dtype.is_integer) or dtype.name.startswith("q"):
            raise at_user_line(TypeError("Unable to validate size of unrecognized dtype (%s)." % dtype.name))
        most = _largest_whole(dtypes.as_dtype(dtype))
        shape = x.get_shape()
        if shape.ndims is not None and shape.ndims < 1:
            raise at_user_line(ValueError("A categorical-distribution parameter must have at least 1 dimension."))
        count = shape.as_list()[-1] if shape.ndims is not None else None
        if count is not None:
            if count < 2:
                raise at_user_line(ValueError("A categorical-distribution parameter must have at least 2 events."))
            if count > most:
                raise at_user_line(ValueError("Number of classes exceeds `dtype` precision, i.e., %s implies shape cannot exceed %d." % (dtype.name, most)))
            return x
        last = array_ops.shape(x, name="shape")[-1]
        return control_flow_ops.with_dependencies(
            [
                check_ops.assert_rank_at_least(x, 1, message="A categorical-distribution parameter must have at least 1 dimension."),
                check_ops.assert_greater_equal(array_ops.shape(x)[-1], 2, message="A categorical-distribution parameter must have at least 2 events."),
                check_ops.assert_less_equal(
                    math_ops.cast(last, dtypes.int64),
                    convert_to_tensor(most, dtypes.int64),
                    message="Number of classes exceeds `dtype` precision, i.e., %s dtype cannot exceed %d shape." % (dtype.name, most),
                ),
            ],
            x,
        )


def embed_check_integer_casting_closed(x: Any, target_dtype: Any, assert_nonnegative: bool = True, name: str = "embed_check_casting_closed") -> Tensor:
    """x, behind checks that it may be cast to another type and back."""
    with name_scope(name, values=[x]):
        x, target = convert_to_tensor(x, name="x"), dtypes.as_dtype(target_dtype)
        source = x.dtype.base_dtype
        for dtype, what in ((source, "%s.dtype must be integer- or floating-type." % x.op.name), (target, "target_dtype must be integer- or floating-type.")):
            if not (dtype.is_integer or dtype.is_floating or dtype == dtypes.bool_):
                raise at_user_line(TypeError(what))
        if source.is_floating and target.is_floating:
            raise at_user_line(TypeError("At least one of %s.dtype (%s) and target_dtype (%s) must be integer-type." % (x.op.name, source.name, target.name)))
        if source == dtypes.bool_:
            return x
        checks = []
        if assert_nonnegative:
            checks.append(check_ops.assert_non_negative(x, message="Elements must be non-negative."))
        if source.is_floating:
            checks.append(assert_integer_form(x, int_dtype=target, message="Elements must be %s-equivalent." % target.name))
        else:
            if _largest_whole(source) > _largest_whole(target):
                checks.append(
                    check_ops.assert_less_equal(
                        x, convert_to_tensor(_largest_whole(target), source), message="Elements cannot exceed %d." % _largest_whole(target)
                    )
                )
            if not assert_nonnegative and _smallest_whole(source) < _smallest_whole(target):
                checks.append(
                    check_ops.assert_greater_equal(
                        x, convert_to_tensor(_smallest_whole(target), source), message="Elements cannot be smaller than %d." % _smallest_whole(target)
                    )
                )
        return control_flow_ops.with_dependencies(checks, x) if checks else x


def log_combinations(n: Any, counts: Any, name: str = "log_combinations") -> Tensor:
    """log(n! / product of counts!), along the last dimension of counts."""
    with name_scope(name, values=[n, counts]):
        n = convert_to_tensor(n, name="n")
        counts = convert_to_tensor(counts, name="counts")
        return gen_ops.lgamma(n + 1.0) - math_ops.reduce_sum(gen_ops.lgamma(counts + 1.0), [-1])


def matrix_diag_transform(matrix: Any, transform: Any = None, name: Optional[str] = None) -> Tensor:
    """Matrices with a function of their diagonals in place of these."""
    with name_scope(name, "matrix_diag_transform", [matrix]):
        matrix = convert_to_tensor(matrix, name="matrix")
        return matrix if transform is None else gen_ops.matrix_set_diag(matrix, transform(gen_ops.matrix_diag_part(matrix)))


def rotate_transpose(x: Any, shift: Any, name: str = "rotate_transpose") -> Tensor:
    """The dimensions of x turned to the right."""
    with name_scope(name, values=[x, shift]):
        x = convert_to_tensor(x, name="x")
        rank, known = x.get_shape().ndims, constant_value(shift) if isinstance(shift, Tensor) else shift
        if rank is not None and known is not None:
            if rank < 2:
                return x
            return array_ops.transpose(x, np.roll(np.arange(rank), int(known)))
        count = array_ops.rank(x)
        shift = convert_to_tensor(shift, dtypes.int32)
        left = math_ops.mod(-shift, count)
        order = math_ops.range(0, count)
        return array_ops.transpose(x, array_ops.concat([order[left:], order[:left]], 0))


def pick_vector(cond: Any, true_vector: Any, false_vector: Any, name: str = "pick_vector") -> Tensor:
    """One of two vectors, which may have different lengths."""
    with name_scope(name, values=[cond, true_vector, false_vector]):
        cond = convert_to_tensor(cond, name="cond")
        if cond.dtype.base_dtype != dtypes.bool_:
            raise at_user_line(TypeError("%s.dtype=%s which is not %s" % (cond.name, cond.dtype, dtypes.bool_)))
        known = constant_value(cond)
        if known is not None:
            return true_vector if known else false_vector
        true_vector, false_vector = convert_to_tensor(true_vector, name="true_vector"), convert_to_tensor(false_vector, name="false_vector")
        if true_vector.dtype.base_dtype != false_vector.dtype.base_dtype:
            raise at_user_line(
                TypeError("%s.dtype=%s does not match %s.dtype=%s" % (true_vector.name, true_vector.dtype, false_vector.name, false_vector.dtype))
            )
        n = array_ops.shape(true_vector)[0]
        return gen_ops.slice(array_ops.concat([true_vector, false_vector], 0), [array_ops.where(cond, 0, n)], [array_ops.where(cond, n, -1)])


def gen_new_seed(seed: Optional[int], salt: str) -> Optional[int]:
    """Another seed for each salt."""
    if seed is None:
        return None
    return int(hashlib.md5((str(seed) + salt).encode("utf-8")).hexdigest()[:8], 16) & 0x7FFFFFFF


class SeedStream:
    """Seeds one after the other, of a seed and a salt: of None, None. Streams whose salts differ have nothing in common.

    `seed` is anything that is told from others by its text, or another stream, of which its seed counts; a seed is from 0 to 2^512 - 1.
    """

    def __init__(self, seed: Any, salt: Any) -> None:
        self._seed, self._salt, self._count = seed.original_seed if isinstance(seed, SeedStream) else seed, salt, 0

    original_seed = property(lambda self: self._seed, doc="The seed that it was given.")
    salt = property(lambda self: self._salt, doc="The salt that it was given.")

    def __call__(self) -> Optional[int]:
        """The next seed."""
        self._count += 1
        if self._seed is None:
            return None
        return int(hashlib.sha512(str((self._seed, self._count, self._salt)).encode("utf-8")).hexdigest(), 16)


def maybe_get_static_value(x: Any, dtype: Any = None) -> Any:
    """What is known of a tensor or number before a step runs, in a type of NumPy's if one is given; None if it is not."""
    value = constant_value(x) if isinstance(x, Tensor) else x
    return value if value is None or dtype is None else np.array(value, dtype)


def prefer_static_value(x: Any) -> Any:
    """The array that a tensor is known to be, or the tensor."""
    value = constant_value(x)
    return x if value is None else np.asarray(value)


def prefer_static_rank(x: Any) -> Any:
    """The rank as an array, where it is known before a step runs; else as a tensor."""
    return prefer_static_value(array_ops.rank(x))


def prefer_static_shape(x: Any) -> Any:
    """The shape as an array, where it is known before a step runs; else as a tensor."""
    return prefer_static_value(array_ops.shape(x))


def parent_frame_arguments() -> Dict[str, Any]:
    """The arguments by name of the function that calls this, without those by place that have no name: what the names hold now."""
    frame = inspect.currentframe()
    if frame is None or frame.f_back is None:
        raise at_user_line(RuntimeError("this Python does not tell frames"))
    names, _, rest, held = inspect.getargvalues(frame.f_back)
    return {**{name: held[name] for name in names}, **(held[rest] if rest else {})}


def fill_triangular(x: Any, upper: bool = False, name: Optional[str] = None) -> Tensor:
    """Vectors of n (n + 1) / 2 numbers as triangular matrices, clockwise from the lower right for a lower one."""
    with name_scope(name, "fill_triangular", [x]):
        x = convert_to_tensor(x, name="x")
        count = x.get_shape().with_rank_at_least(1).as_list()[-1] if x.get_shape().ndims is not None else None
        if count is not None:
            n: Any = int(np.sqrt(0.25 + 2.0 * count) - 0.5)
            if n * (n + 1) // 2 != count:
                raise at_user_line(ValueError("Input right-most shape (%d) does not correspond to a triangular matrix." % count))
            static = x.get_shape()[:-1].concatenate([n, n])
        else:
            m = math_ops.cast(array_ops.shape(x)[-1], dtypes.float64)
            n = math_ops.cast(gen_ops.sqrt(0.25 + 2.0 * m) - 0.5 + 1e-6, dtypes.int32)
            static = None
        parts = [x, gen_ops.reverse_v2(x[..., n:], [-1])] if upper else [x[..., n:], gen_ops.reverse_v2(x, [-1])]
        both = array_ops.concat(parts, -1)
        square = array_ops.reshape(both, array_ops.concat([array_ops.shape(x)[:-1], array_ops.stack([n, n])], 0))
        made = gen_ops.matrix_band_part(square, 0 if upper else -1, -1 if upper else 0)
        if static is not None:
            made.set_shape(static)
        return made


def fill_lower_triangular(x: Any, validate_args: bool = False, name: Optional[str] = None) -> Tensor:
    """Vectors of n (n + 1) / 2 numbers, a count that is known, as lower triangular matrices row by row, as 1.2 fills them."""
    del validate_args  # the count is checked in any case
    with name_scope(name, "fill_lower_triangular", [x]):
        x = convert_to_tensor(x, name="x")
        count = x.get_shape().with_rank_at_least(1).as_list()[-1] if x.get_shape().ndims is not None else None
        n = 0 if count is None else int(np.sqrt(0.25 + 2.0 * count) - 0.5)
        if count is None or n * (n + 1) // 2 != count:
            raise at_user_line(ValueError("Input right-most shape (%s) does not correspond to a triangular matrix." % count))
        rows, columns = np.indices([n, n])
        places = np.where(columns <= rows, rows * (rows + 1) // 2 + columns, 0).ravel().astype(np.int32)
        square = array_ops.reshape(array_ops.gather(x, places, axis=-1), array_ops.concat([array_ops.shape(x)[:-1], [n, n]], 0))
        square.set_shape(x.get_shape()[:-1].concatenate([n, n]))
        return gen_ops.matrix_band_part(square, -1, 0)


def fill_triangular_inverse(x: Any, upper: bool = False, name: Optional[str] = None) -> Tensor:
    """The vectors of n (n + 1) / 2 numbers whose fill_triangular are the triangles of these matrices."""
    with name_scope(name, "fill_triangular_inverse", [x]):
        x = convert_to_tensor(x, name="x")
        static = x.get_shape().with_rank_at_least(2)
        size = static.as_list()[-1] if static.ndims is not None else None
        if static.ndims is not None and not static[-1].is_compatible_with(static[-2]):
            raise at_user_line(ValueError("fill_triangular_inverse takes square matrices, got %s" % static))
        n: Any = array_ops.shape(x)[-1] if size is None else size
        first, rest = (x[..., 0, :], x[..., 1:, :]) if upper else (gen_ops.reverse_v2(x[..., -1, :], [-1]), x[..., :-1, :])
        # A place of the rest is in the triangle, or the place opposite is.
        both = rest + gen_ops.reverse_v2(gen_ops.reverse_v2(rest, [-1]), [-2])
        lead = array_ops.shape(x)[:-2]
        flat = array_ops.reshape(both, array_ops.concat([lead, array_ops.stack([n * (n - 1)])], 0))
        made = array_ops.concat([first, flat[..., : n * (n - 1) // 2]], -1)
        if static.ndims is not None:
            made.set_shape(static.as_list()[:-2] + [None if size is None else size * (size + 1) // 2])
        return made


def tridiag(below: Any = None, diag: Any = None, above: Any = None, name: Optional[str] = None) -> Any:
    """Matrices with three diagonals; None without any."""
    with name_scope(name, "tridiag", [below, diag, above]):
        parts = []
        for values, sides in ((below, ([1, 0], [0, 1])), (diag, None), (above, ([0, 1], [1, 0]))):
            if values is None:
                continue
            matrix = gen_ops.matrix_diag(convert_to_tensor(values))
            if sides is not None:
                rank = matrix.get_shape().ndims
                matrix = array_ops.pad(matrix, [[0, 0]] * ((rank or 2) - 2) + [sides[0], sides[1]])
            parts.append(matrix)
        return None if not parts else parts[0] if len(parts) == 1 else gen_ops.add_n(parts)


def reduce_weighted_logsumexp(
    logx: Any, w: Any = None, axis: Any = None, keep_dims: bool = False, return_sign: bool = False, name: Optional[str] = None
) -> Any:
    """log(|sum of w exp(logx)|) over axes; with return_sign also the sum's sign."""
    with name_scope(name, "reduce_weighted_logsumexp", [logx, w]):
        logx = convert_to_tensor(logx, name="logx")
        if w is None:
            found = math_ops.reduce_logsumexp(logx, axis, keep_dims)
            return (found, array_ops.ones_like(found)) if return_sign else found
        w = convert_to_tensor(w, logx.dtype.base_dtype, "w")
        size = logx + gen_ops.log(gen_ops.abs(w))
        most = math_ops.reduce_max(size, axis, True)
        most = gen_ops.stop_gradient(array_ops.where(gen_ops.is_inf(most), array_ops.zeros_like(most), most))
        total = math_ops.reduce_sum(gen_ops.sign(w) * gen_ops.exp(size - most), axis, keep_dims)
        shift = most if keep_dims else array_ops.reshape(most, array_ops.shape(total))
        found = shift + gen_ops.log(gen_ops.abs(total))
        return (found, gen_ops.sign(total)) if return_sign else found
