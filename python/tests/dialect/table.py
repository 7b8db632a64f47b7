# SPDX-License-Identifier: Apache-2.0
"""Each documented way of calling the functions that programs use most, and what NumPy says that it is.

The table imports nothing but NumPy, so that the TensorFlow wheel can be asked about the same calls. A call takes the module
(`tf`) and returns tensors, variables, Python values or nested lists of them.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Sequence

import numpy as np

f32 = np.float32
A = np.arange(6, dtype=f32).reshape(2, 3) - 2
B = np.array([[1, 2, 3], [4, 5, 6]], f32) / 2
P = np.abs(A) + f32(0.5)
S = np.array([[2, 0.5], [1, 4]], f32)
V = np.array([1, -2, 3], f32)
I = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
J = np.array([2, 0], np.int32)
ROWS = np.array([0, 2, 2, 1], np.int32)
BOOL = np.array([[True, False, True], [False, False, True]])
CUBE = np.arange(24, dtype=f32).reshape(2, 3, 4)
IMAGE = np.arange(32, dtype=f32).reshape(1, 4, 4, 2) / 8
KERNEL = (np.arange(24, dtype=f32).reshape(2, 2, 2, 3) - 12) / 8
ONE_HOT = np.array([[0, 0, 1], [1, 0, 0]], f32)
SOFT = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0]], f32)


class Case(NamedTuple):
    """A function, what it gives, and the calls that give it: of 1.x, and those that only 0.x or Millrace takes."""

    name: str
    expected: Any
    calls: Sequence[Callable[[Any], Any]]
    old: Sequence[Callable[[Any], Any]] = ()
    wheel: bool = True  # whether today's TensorFlow wheel still has it


CASES: List[Case] = []


def case(name: str, expected: Any, *calls: Callable[[Any], Any], old: Sequence[Callable[[Any], Any]] = (), wheel: bool = True) -> None:
    CASES.append(Case(name, expected, calls, old, wheel))


def softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x: Any, axis: int = -1) -> Any:
    return np.log(softmax(x, axis))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def conv(x: Any, k: Any, stride: int = 1, same: bool = False) -> Any:
    if same:
        total = [max((-(-x.shape[i] // stride) - 1) * stride + k.shape[i - 1] - x.shape[i], 0) for i in (1, 2)]
        x = np.pad(x, [(0, 0)] + [(t // 2, t - t // 2) for t in total] + [(0, 0)])
    h, w = k.shape[:2]
    rows, columns = (x.shape[1] - h) // stride + 1, (x.shape[2] - w) // stride + 1
    out = np.zeros((x.shape[0], rows, columns, k.shape[3]), f32)
    for r in range(rows):
        for c in range(columns):
            out[:, r, c] = np.tensordot(x[:, r * stride : r * stride + h, c * stride : c * stride + w], k, 3)
    return out


def pool(x: Any, size: int, stride: int, reduce: Any) -> Any:
    rows, columns = (x.shape[1] - size) // stride + 1, (x.shape[2] - size) // stride + 1
    return np.stack(
        [np.stack([reduce(x[:, r * stride : r * stride + size, c * stride : c * stride + size], (1, 2)) for c in range(columns)], 1) for r in range(rows)], 1
    )


# ---- functions of one or two arguments: by position, by keyword, with a name, on a tensor ----

UNARY: Dict[str, Any] = {
    "square": (A, np.square),
    "sqrt": (P, np.sqrt),
    "rsqrt": (P, lambda x: 1 / np.sqrt(x)),
    "log": (P, np.log),
    "exp": (A, np.exp),
    "log1p": (P, np.log1p),
    "abs": (A, np.abs),
    "sign": (A, np.sign),
    "negative": (A, np.negative),
    "floor": (A / 2, np.floor),
    "ceil": (A / 2, np.ceil),
    "round": (A / 2, np.round),
    "sin": (A, np.sin),
    "cos": (A, np.cos),
    "sigmoid": (A, sigmoid),
    "tanh": (A, np.tanh),
    "reciprocal": (P, lambda x: 1 / x),
    "is_nan": (A, np.isnan),
    "is_finite": (A, np.isfinite),
}
OLD_UNARY = {"negative": ["neg"], "reciprocal": ["inv"]}
for _name, (_x, _f) in UNARY.items():
    case(
        _name,
        _f(_x),
        *[
            lambda tf, n=_name, x=_x: getattr(tf, n)(x),
            lambda tf, n=_name, x=_x: getattr(tf, n)(x=x),
            lambda tf, n=_name, x=_x: getattr(tf, n)(x, "named"),
            lambda tf, n=_name, x=_x: getattr(tf, n)(x=x, name="named"),
            lambda tf, n=_name, x=_x: getattr(tf, n)(tf.constant(x)),
            lambda tf, n=_name, x=_x: getattr(tf, n)(x.tolist()),
        ],
        old=[lambda tf, n=n, x=_x: getattr(tf, n)(x) for n in OLD_UNARY.get(_name, ())],
    )

BINARY: Dict[str, Any] = {
    "add": (A, B, np.add),
    "subtract": (A, B, np.subtract),
    "multiply": (A, B, np.multiply),
    "div": (A, B, np.divide),
    "divide": (A, B, np.divide),
    "truediv": (A, B, np.divide),
    "realdiv": (A, B, np.divide),
    "floordiv": (A, B, np.floor_divide),
    "mod": (A, B, np.mod),
    "floormod": (A, B, np.mod),
    "pow": (P, A, np.power),
    "maximum": (A, B, np.maximum),
    "minimum": (A, B, np.minimum),
    "squared_difference": (A, B, lambda x, y: (x - y) ** 2),
    "equal": (A, np.abs(A), np.equal),
    "not_equal": (A, np.abs(A), np.not_equal),
    "less": (A, B, np.less),
    "less_equal": (A, B, np.less_equal),
    "greater": (A, B, np.greater),
    "greater_equal": (A, B, np.greater_equal),
    "logical_and": (BOOL, ~BOOL[:1], np.logical_and),
    "logical_or": (BOOL, ~BOOL[:1], np.logical_or),
    "logical_xor": (BOOL, ~BOOL[:1], np.logical_xor),
}
OLD_BINARY = {"subtract": ["sub"], "multiply": ["mul"]}
for _name, (_x, _y, _f) in BINARY.items():
    case(
        _name,
        _f(_x, _y),
        *[
            lambda tf, n=_name, x=_x, y=_y: getattr(tf, n)(x, y),
            lambda tf, n=_name, x=_x, y=_y: getattr(tf, n)(x=x, y=y),
            lambda tf, n=_name, x=_x, y=_y: getattr(tf, n)(x, y=y, name="named"),
            lambda tf, n=_name, x=_x, y=_y: getattr(tf, n)(tf.constant(x), y),
            lambda tf, n=_name, x=_x, y=_y: getattr(tf, n)(x, tf.constant(y), "named"),
        ],
        old=[lambda tf, n=n, x=_x, y=_y: getattr(tf, n)(x, y) for n in OLD_BINARY.get(_name, ())],
    )
    if _x.dtype != bool:
        case(
            _name + " of a number",
            _f(_x, f32(2)),
            *[lambda tf, n=_name, x=_x: getattr(tf, n)(tf.constant(x), 2), lambda tf, n=_name, x=_x: getattr(tf, n)(tf.constant(x), 2.0)],
        )
case("div of integers", I // np.int32(4), lambda tf: tf.div(I, 4), lambda tf: tf.div(x=tf.constant(I), y=4, name="d"))
case("truediv of integers", I / 4.0, lambda tf: tf.truediv(I, 4), lambda tf: tf.constant(I) / 4, lambda tf: tf.divide(tf.constant(I), 4))
case("logical_not", ~BOOL, lambda tf: tf.logical_not(BOOL), lambda tf: tf.logical_not(x=BOOL, name="n"), lambda tf: ~tf.constant(BOOL))

NN_UNARY: Dict[str, Any] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "selu": lambda x: f32(1.0507009873554805) * np.where(x > 0, x, f32(1.6732632423543772) * np.expm1(x)),
}
for _name, _f in NN_UNARY.items():
    case(
        "nn." + _name,
        _f(A),
        *[
            lambda tf, n=_name: getattr(tf.nn, n)(A),
            lambda tf, n=_name: getattr(tf.nn, n)(features=A),
            lambda tf, n=_name: getattr(tf.nn, n)(A, "named"),
            lambda tf, n=_name: getattr(tf.nn, n)(tf.constant(A), name="named"),
        ],
    )
case("nn.sigmoid", sigmoid(A), lambda tf: tf.nn.sigmoid(A), lambda tf: tf.nn.sigmoid(x=A), lambda tf: tf.nn.sigmoid(A, "n"))
case("nn.tanh", np.tanh(A), lambda tf: tf.nn.tanh(A), lambda tf: tf.nn.tanh(x=A), lambda tf: tf.nn.tanh(A, name="n"))
case(
    "nn.leaky_relu",
    np.where(A > 0, A, f32(0.2) * A),
    lambda tf: tf.nn.leaky_relu(A),
    lambda tf: tf.nn.leaky_relu(A, 0.2),
    lambda tf: tf.nn.leaky_relu(features=A, alpha=0.2, name="n"),
)

# ---- reductions ----

for _name, _f in {"reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod}.items():
    case(
        _name,
        _f(B),
        *[
            lambda tf, n=_name: getattr(tf, n)(B),
            lambda tf, n=_name: getattr(tf, n)(input_tensor=B),
            lambda tf, n=_name: getattr(tf, n)(B, None),
            lambda tf, n=_name: getattr(tf, n)(B, [0, 1]),
            lambda tf, n=_name: getattr(tf, n)(tf.constant(B), axis=(0, 1), name="r"),
        ],
    )
    case(
        _name + " along 1",
        _f(B, 1),
        *[
            lambda tf, n=_name: getattr(tf, n)(B, 1),
            lambda tf, n=_name: getattr(tf, n)(B, [1]),
            lambda tf, n=_name: getattr(tf, n)(B, axis=-1),
            lambda tf, n=_name: getattr(tf, n)(B, reduction_indices=1),
            lambda tf, n=_name: getattr(tf, n)(B, reduction_indices=[1]),
            lambda tf, n=_name: getattr(tf, n)(B, 1, False),
            lambda tf, n=_name: getattr(tf, n)(B, 1, False, "r"),
            lambda tf, n=_name: getattr(tf, n)(input_tensor=B, axis=1, keepdims=False),
            lambda tf, n=_name: getattr(tf, n)(B, tf.constant(1)),
            lambda tf, n=_name: getattr(tf, n)(B, 1, None, "r"),
        ],
    )
    case(
        _name + " keeping",
        _f(B, 0, keepdims=True),
        *[
            lambda tf, n=_name: getattr(tf, n)(B, 0, True),
            lambda tf, n=_name: getattr(tf, n)(B, 0, keep_dims=True),
            lambda tf, n=_name: getattr(tf, n)(B, axis=[0], keepdims=True),
            lambda tf, n=_name: getattr(tf, n)(B, reduction_indices=0, keep_dims=True),
        ],
    )
for _name, _f in {"reduce_all": np.all, "reduce_any": np.any}.items():
    case(
        _name,
        _f(BOOL, 0),
        *[
            lambda tf, n=_name: getattr(tf, n)(BOOL, 0),
            lambda tf, n=_name: getattr(tf, n)(BOOL, axis=[0]),
            lambda tf, n=_name: getattr(tf, n)(input_tensor=BOOL, reduction_indices=[0], keep_dims=False),
        ],
    )
case(
    "reduce_logsumexp",
    np.log(np.exp(A).sum(1)),
    lambda tf: tf.reduce_logsumexp(A, 1),
    lambda tf: tf.reduce_logsumexp(A, axis=[1]),
    lambda tf: tf.reduce_logsumexp(A, reduction_indices=1, keep_dims=False),
)
case(
    "argmax",
    np.argmax(A, 1),
    lambda tf: tf.argmax(A, 1),
    lambda tf: tf.argmax(input=A, axis=1),
    lambda tf: tf.argmax(A, dimension=1),
    lambda tf: tf.argmax(A, 1, "m"),
    lambda tf: tf.argmax(A, -1, name="m"),
    lambda tf: tf.arg_max(A, 1),
    lambda tf: tf.arg_max(A, dimension=1),
)
case("argmax without an axis", np.argmax(A, 0), lambda tf: tf.argmax(A))
case("argmax in int32", np.argmax(A, 1).astype(np.int32), lambda tf: tf.argmax(A, 1, output_type=tf.int32))
case("argmin", np.argmin(A, 1), lambda tf: tf.argmin(A, 1), lambda tf: tf.argmin(input=A, axis=1), lambda tf: tf.argmin(A, dimension=1))
case("cumsum", np.cumsum(A, 1), lambda tf: tf.cumsum(A, 1), lambda tf: tf.cumsum(x=A, axis=1, exclusive=False, reverse=False))
case(
    "add_n",
    A + B + A,
    lambda tf: tf.add_n([A, B, A]),
    lambda tf: tf.add_n(inputs=(A, B, A), name="n"),
    lambda tf: tf.add_n([tf.constant(A), B, tf.constant(A)]),
    lambda tf: tf.accumulate_n([tf.constant(A), tf.constant(B), tf.constant(A)]),
)
case("nn.l2_loss", (A**2).sum() / 2, lambda tf: tf.nn.l2_loss(A), lambda tf: tf.nn.l2_loss(t=A), lambda tf: tf.nn.l2_loss(A, name="l"))
case("nn.zero_fraction", f32(1 / 6), lambda tf: tf.nn.zero_fraction(A), lambda tf: tf.nn.zero_fraction(value=A, name="z"))

# ---- matrices ----

case(
    "matmul",
    A @ B.T,
    lambda tf: tf.matmul(A, B.T),
    lambda tf: tf.matmul(a=A, b=B.T),
    lambda tf: tf.matmul(A, B, False, True),
    lambda tf: tf.matmul(A, B, transpose_b=True),
    lambda tf: tf.matmul(A.T, B, transpose_a=True, transpose_b=True),
    lambda tf: tf.matmul(A, B, adjoint_b=True),
    lambda tf: tf.matmul(A, B.T, a_is_sparse=True, name="m"),
    lambda tf: tf.constant(A) @ B.T,
    lambda tf: tf.matmul(A.tolist(), tf.constant(B.T)),
)
case(
    "matmul of batches",
    CUBE @ CUBE.transpose(0, 2, 1),
    lambda tf: tf.matmul(CUBE, CUBE, transpose_b=True),
    lambda tf: tf.matmul(CUBE, CUBE, adjoint_b=True),
    lambda tf: tf.matmul(CUBE, CUBE.transpose(0, 2, 1)),
    old=[lambda tf: tf.batch_matmul(CUBE, CUBE, adj_y=True), lambda tf: tf.batch_matmul(CUBE, CUBE, False, True)],
)
case(
    "tensordot",
    np.tensordot(CUBE, CUBE, [[1, 2], [1, 2]]),
    lambda tf: tf.tensordot(CUBE, CUBE, [[1, 2], [1, 2]]),
    lambda tf: tf.tensordot(a=CUBE, b=CUBE, axes=((1, 2), (1, 2))),
)
case("einsum", np.einsum("ij,kj->ik", A, B), lambda tf: tf.einsum("ij,kj->ik", A, B), lambda tf: tf.einsum("ij,kj->ik", tf.constant(A), B))
case("eye", np.eye(3, dtype=f32), lambda tf: tf.eye(3), lambda tf: tf.eye(num_rows=3, dtype=tf.float32), lambda tf: tf.eye(3, 3, name="e"))
case(
    "nn.xw_plus_b",
    A @ B.T + J.astype(f32),
    lambda tf: tf.nn.xw_plus_b(A, B.T, J.astype(f32)),
    lambda tf: tf.nn.xw_plus_b(x=A, weights=B.T, biases=J.astype(f32)),
)
case(
    "nn.bias_add",
    A + V,
    lambda tf: tf.nn.bias_add(A, V),
    lambda tf: tf.nn.bias_add(value=A, bias=V),
    lambda tf: tf.nn.bias_add(A, V, "NHWC"),
    lambda tf: tf.nn.bias_add(A, V, data_format="NHWC", name="b"),
)

# ---- shapes ----

case(
    "reshape",
    A.reshape(3, 2),
    lambda tf: tf.reshape(A, [3, 2]),
    lambda tf: tf.reshape(tensor=A, shape=[3, -1]),
    lambda tf: tf.reshape(A, (3, 2), "r"),
    lambda tf: tf.reshape(A, tf.stack([3, 2])),
    lambda tf: tf.reshape(A, np.array([3, 2])),
    lambda tf: tf.reshape(A, [tf.constant(3), -1], name="r"),
    lambda tf: tf.reshape(A, tf.TensorShape([3, 2])),
)
case(
    "transpose",
    A.T,
    lambda tf: tf.transpose(A),
    lambda tf: tf.transpose(A, [1, 0]),
    lambda tf: tf.transpose(a=A, perm=(1, 0)),
    lambda tf: tf.transpose(A, perm=[1, 0], name="t"),
    lambda tf: tf.transpose(A, tf.constant([1, 0]), "t"),
)
case(
    "expand_dims",
    A[:, None],
    lambda tf: tf.expand_dims(A, 1),
    lambda tf: tf.expand_dims(A, axis=1),
    lambda tf: tf.expand_dims(A, dim=1),
    lambda tf: tf.expand_dims(input=A, axis=-2),
    lambda tf: tf.expand_dims(A, 1, "e"),
    lambda tf: tf.constant(A)[:, tf.newaxis],
)
case(
    "squeeze",
    A,
    lambda tf: tf.squeeze(A[:, None]),
    lambda tf: tf.squeeze(A[:, None], [1]),
    lambda tf: tf.squeeze(A[:, None], 1),
    lambda tf: tf.squeeze(A[:, None], axis=[1]),
    lambda tf: tf.squeeze(A[:, None], squeeze_dims=[1]),
    lambda tf: tf.squeeze(input=A[:, None], axis=1, name="s"),
)
case(
    "shape",
    np.array([2, 3], np.int32),
    lambda tf: tf.shape(A),
    lambda tf: tf.shape(input=A, name="s"),
    lambda tf: tf.shape(A, "s"),
    lambda tf: tf.shape(tf.constant(A), out_type=tf.int32),
    lambda tf: tf.constant(A).get_shape().as_list(),
    lambda tf: tf.constant(A).shape.as_list(),
)
case("shape in int64", np.array([2, 3], np.int64), lambda tf: tf.shape(A, out_type=tf.int64), lambda tf: tf.shape(A, "s", tf.int64))
case("size", np.int32(6), lambda tf: tf.size(A), lambda tf: tf.size(input=A, name="s"), lambda tf: tf.size(A, out_type=tf.int32))
case("rank", np.int32(2), lambda tf: tf.rank(A), lambda tf: tf.rank(input=A, name="r"))
case(
    "concat",
    np.concatenate([A, B], 0),
    lambda tf: tf.concat([A, B], 0),
    lambda tf: tf.concat(values=[A, B], axis=0),
    lambda tf: tf.concat([A, B], axis=-2),
    lambda tf: tf.concat((A, B), 0, "c"),
    lambda tf: tf.concat([tf.constant(A), B], 0, name="c"),
    lambda tf: tf.concat(axis=0, values=[A, B]),
    old=[
        lambda tf: tf.concat(0, [A, B]),
        lambda tf: tf.concat(0, [A, B], "c"),
        lambda tf: tf.concat(concat_dim=0, values=[A, B]),
        lambda tf: tf.concat_v2([A, B], 0),
        lambda tf: tf.concat(0, values=[A, B]),
        lambda tf: tf.concat(0, [tf.constant(A), B], name="c"),
        lambda tf: tf.concat(np.int32(0), [A, B]),
    ],
)
case(
    "concat along 1",
    np.concatenate([A, B], 1),
    lambda tf: tf.concat([A, B], 1),
    lambda tf: tf.concat([A, B], -1),
    lambda tf: tf.concat([A, B], tf.constant(1)),
    old=[lambda tf: tf.concat(1, [A, B]), lambda tf: tf.concat(1, (A, B)), lambda tf: tf.concat(-1, [A, B]), lambda tf: tf.concat(tf.constant(1), [A, B])],
)
case("concat of one", A, lambda tf: tf.concat([A], 0), old=[lambda tf: tf.concat(0, [A])])
case(
    "stack",
    np.stack([A, B]),
    lambda tf: tf.stack([A, B]),
    lambda tf: tf.stack(values=[A, B], axis=0),
    lambda tf: tf.stack([tf.constant(A), B], 0, "s"),
    old=[lambda tf: tf.pack([A, B]), lambda tf: tf.pack([A, B], name="p"), lambda tf: tf.pack(values=[A, B], axis=0)],
)
case(
    "stack along 1",
    np.stack([A, B], 1),
    lambda tf: tf.stack([A, B], 1),
    lambda tf: tf.stack([A, B], axis=1),
    lambda tf: tf.stack([A, B], axis=-2),
    old=[lambda tf: tf.pack([A, B], axis=1)],
)
case(
    "unstack",
    list(A),
    lambda tf: tf.unstack(A),
    lambda tf: tf.unstack(value=A, num=2, axis=0),
    lambda tf: tf.unstack(A, 2),
    lambda tf: tf.unstack(A, 2, 0, "u"),
    lambda tf: list(tf.constant(A)),
    old=[lambda tf: tf.unpack(A), lambda tf: tf.unpack(A, 2, "u"), lambda tf: tf.unpack(value=A, num=2, axis=0)],
)
case(
    "unstack along 1",
    list(A.T),
    lambda tf: tf.unstack(A, axis=1),
    lambda tf: tf.unstack(A, 3, 1),
    lambda tf: tf.unstack(A, axis=-1),
    old=[lambda tf: tf.unpack(A, axis=1)],
)
case(
    "split",
    np.split(A, 3, 1),
    lambda tf: tf.split(A, 3, 1),
    lambda tf: tf.split(value=A, num_or_size_splits=3, axis=1),
    lambda tf: tf.split(A, 3, axis=-1),
    lambda tf: tf.split(A, [1, 1, 1], 1),
    lambda tf: tf.split(A, num_or_size_splits=3, axis=1, name="s"),
    lambda tf: tf.split(axis=1, num_or_size_splits=3, value=A),
    lambda tf: tf.split(A, tf.constant([1, 1, 1]), 1),
    old=[
        lambda tf: tf.split(1, 3, A),
        lambda tf: tf.split(split_dim=1, num_split=3, value=A),
        lambda tf: tf.split(1, 3, tf.constant(A), name="s"),
        lambda tf: tf.split(1, 3, value=A),
        lambda tf: tf.split(1, num_split=3, value=A),
        lambda tf: tf.split(-1, 3, A),
    ],
)
case("split in sizes", [A[:, :1], A[:, 1:]], lambda tf: tf.split(A, [1, 2], 1), lambda tf: tf.split(A, (1, 2), axis=1), lambda tf: tf.split(A, [1, -1], 1))
case("split along 0", np.split(A, 2), lambda tf: tf.split(A, 2), lambda tf: tf.split(tf.constant(A), 2, 0), old=[lambda tf: tf.split(0, 2, A)])
case(
    "tile", np.tile(A, (2, 1)), lambda tf: tf.tile(A, [2, 1]), lambda tf: tf.tile(input=A, multiples=[2, 1], name="t"), lambda tf: tf.tile(A, tf.stack([2, 1]))
)
case(
    "pad",
    np.pad(A, [(1, 0), (0, 2)]),
    lambda tf: tf.pad(A, [[1, 0], [0, 2]]),
    lambda tf: tf.pad(tensor=A, paddings=[[1, 0], [0, 2]], mode="CONSTANT"),
    lambda tf: tf.pad(A, [[1, 0], [0, 2]], "CONSTANT", "p"),
    lambda tf: tf.pad(A, np.array([[1, 0], [0, 2]]), constant_values=0),
)
case("pad with a value", np.pad(A, [(1, 0), (0, 2)], constant_values=7), lambda tf: tf.pad(A, [[1, 0], [0, 2]], constant_values=7))
case(
    "pad reflected",
    np.pad(A, [(0, 0), (1, 1)], mode="reflect"),
    lambda tf: tf.pad(A, [[0, 0], [1, 1]], "REFLECT"),
    lambda tf: tf.pad(A, [[0, 0], [1, 1]], mode="reflect"),
)
case(
    "reverse",
    A[:, ::-1],
    lambda tf: tf.reverse(A, [1]),
    lambda tf: tf.reverse(tensor=A, axis=[-1], name="r"),
    lambda tf: tf.constant(A)[:, ::-1],
    old=[lambda tf: tf.reverse(A, [False, True]), lambda tf: tf.reverse(A, dims=[False, True])],
)
case(
    "slice",
    A[0:2, 1:3],
    lambda tf: tf.slice(A, [0, 1], [2, 2]),
    lambda tf: tf.slice(input_=A, begin=[0, 1], size=[-1, -1]),
    lambda tf: tf.slice(A, (0, 1), (2, 2), "s"),
    lambda tf: tf.constant(A)[0:2, 1:3],
    lambda tf: tf.constant(A)[:, 1:],
    lambda tf: tf.constant(A)[..., 1:],
    lambda tf: tf.constant(A)[:, tf.constant(1) :],
)
case(
    "strided_slice",
    A[:, 0:3:2],
    lambda tf: tf.strided_slice(A, [0, 0], [2, 3], [1, 2]),
    lambda tf: tf.strided_slice(input_=A, begin=[0, 0], end=[2, 3], strides=[1, 2]),
    lambda tf: tf.constant(A)[:, ::2],
)
case(
    "index",
    A[1],
    lambda tf: tf.constant(A)[1],
    lambda tf: tf.constant(A)[-1],
    lambda tf: tf.constant(A)[1, :],
    lambda tf: tf.constant(A)[tf.constant(1)],
    lambda tf: tf.constant(A)[np.int64(1)],
    lambda tf: tf.constant(A)[1, ...],
)
case(
    "gather",
    B.T[ROWS],
    lambda tf: tf.gather(B.T, ROWS),
    lambda tf: tf.gather(params=B.T, indices=ROWS),
    lambda tf: tf.gather(B.T, ROWS, True, "g"),
    lambda tf: tf.gather(B.T, ROWS, axis=0),
    lambda tf: tf.gather(tf.Variable(B.T), [0, 2, 2, 1]),
    lambda tf: tf.gather(B.T, ROWS, validate_indices=True, name="g"),
)
case("gather along 1", B[:, J], lambda tf: tf.gather(B, J, axis=1), lambda tf: tf.gather(params=B, indices=J, axis=-1))
case(
    "gather_nd",
    np.array([A[0, 1], A[1, 2]]),
    lambda tf: tf.gather_nd(A, [[0, 1], [1, 2]]),
    lambda tf: tf.gather_nd(params=A, indices=[[0, 1], [1, 2]], name="g"),
)
case("boolean_mask", A[BOOL], lambda tf: tf.boolean_mask(A, BOOL), lambda tf: tf.boolean_mask(tensor=A, mask=BOOL, name="b"))
case(
    "nn.embedding_lookup",
    B.T[ROWS],
    lambda tf: tf.nn.embedding_lookup(B.T, ROWS),
    lambda tf: tf.nn.embedding_lookup(params=B.T, ids=ROWS),
    lambda tf: tf.nn.embedding_lookup([B.T], ROWS, "mod", "e"),
    lambda tf: tf.nn.embedding_lookup(tf.Variable(B.T), ROWS, partition_strategy="mod"),
    lambda tf: tf.nn.embedding_lookup([B.T[::2], B.T[1::2]], ROWS),
    lambda tf: tf.nn.embedding_lookup([B.T[:2], B.T[2:]], ROWS, partition_strategy="div"),
)
case("where", np.argwhere(BOOL), lambda tf: tf.where(BOOL), lambda tf: tf.where(condition=BOOL, name="w"))
case(
    "where of two",
    np.where(BOOL, A, B),
    lambda tf: tf.where(BOOL, A, B),
    lambda tf: tf.where(condition=BOOL, x=A, y=B),
    lambda tf: tf.where(BOOL, A, B, "w"),
    old=[lambda tf: tf.select(BOOL, A, B), lambda tf: tf.select(condition=BOOL, t=A, e=B, name="s")],
)
case(
    "one_hot",
    np.eye(3, dtype=f32)[J],
    lambda tf: tf.one_hot(J, 3),
    lambda tf: tf.one_hot(indices=J, depth=3),
    lambda tf: tf.one_hot(J, 3, 1.0, 0.0),
    lambda tf: tf.one_hot(J, depth=3, on_value=1.0, off_value=0.0, axis=-1, dtype=tf.float32),
    lambda tf: tf.one_hot(J, 3, 1, 0, -1, tf.float32, "o"),
    lambda tf: tf.one_hot(J, tf.constant(3), dtype="float32"),
    lambda tf: tf.one_hot(J.astype(np.int64), 3),
)
case(
    "one_hot of integers",
    np.eye(3, dtype=np.int32)[J],
    lambda tf: tf.one_hot(J, 3, dtype=tf.int32),
    lambda tf: tf.one_hot(J, 3, 1, 0),
    lambda tf: tf.one_hot(J, 3, on_value=1),
)
case("one_hot along 0", np.eye(3, dtype=f32)[:, J], lambda tf: tf.one_hot(J, 3, axis=0))
case(
    "reverse_sequence",
    np.array([[-1, -2, 0], [3, 2, 1]], f32),
    *[
        lambda tf: tf.reverse_sequence(A, [2, 3], 1, 0),
        lambda tf: tf.reverse_sequence(A, [2, 3], seq_axis=1, batch_axis=0),
        lambda tf: tf.reverse_sequence(input=A, seq_lengths=[2, 3], seq_dim=1, batch_dim=0),
        lambda tf: tf.reverse_sequence(A, [2, 3], seq_dim=1),
    ],
)
case(
    "sequence_mask",
    np.array([[1, 0, 0], [1, 1, 0]], bool),
    lambda tf: tf.sequence_mask([1, 2], 3),
    lambda tf: tf.sequence_mask(lengths=[1, 2], maxlen=3, dtype=tf.bool),
)

# ---- sources, types ----

case(
    "constant",
    np.array([1, 2], np.int32),
    lambda tf: tf.constant([1, 2]),
    lambda tf: tf.constant(value=[1, 2], dtype=tf.int32),
    lambda tf: tf.constant([1, 2], tf.int32, [2], "c"),
    lambda tf: tf.constant((1, 2), shape=(2,), name="c"),
    lambda tf: tf.constant([1, 2], "int32"),
    lambda tf: tf.constant(np.array([1, 2]), np.int32),
)
case(
    "constant of floats",
    np.array([1, 2], f32),
    lambda tf: tf.constant([1.0, 2]),
    lambda tf: tf.constant([1, 2], tf.float32),
    lambda tf: tf.constant([1, 2], dtype="float"),
    lambda tf: tf.constant([1, 2], dtype=np.float32),
    lambda tf: tf.constant(np.array([1, 2], f32)),
)
case(
    "constant filled",
    np.full((2, 3), 5, f32),
    lambda tf: tf.constant(5.0, shape=[2, 3]),
    lambda tf: tf.constant(5, tf.float32, [2, 3]),
    lambda tf: tf.fill([2, 3], 5.0),
    lambda tf: tf.fill(dims=[2, 3], value=5.0, name="f"),
)
case("constant of strings", np.array([b"a", b"bc"], object), lambda tf: tf.constant(["a", "bc"]), lambda tf: tf.constant([b"a", b"bc"], tf.string))
case(
    "convert_to_tensor",
    A,
    lambda tf: tf.convert_to_tensor(A),
    lambda tf: tf.convert_to_tensor(value=A, dtype=tf.float32),
    lambda tf: tf.convert_to_tensor(A.tolist()),
    lambda tf: tf.convert_to_tensor(A, tf.float32, "c"),
    lambda tf: tf.convert_to_tensor(tf.Variable(A), name="c"),
    lambda tf: tf.convert_to_tensor([tf.constant(A[0]), A[1]]),
)
for _name, _one in {"zeros": 0, "ones": 1}.items():
    case(
        _name,
        np.full((2, 3), _one, f32),
        *[
            lambda tf, n=_name: getattr(tf, n)([2, 3]),
            lambda tf, n=_name: getattr(tf, n)(shape=(2, 3)),
            lambda tf, n=_name: getattr(tf, n)([2, 3], tf.float32, "z"),
            lambda tf, n=_name: getattr(tf, n)([2, 3], dtype="float"),
            lambda tf, n=_name: getattr(tf, n)(tf.constant([2, 3])),
            lambda tf, n=_name: getattr(tf, n)([tf.constant(2), 3]),
            lambda tf, n=_name: getattr(tf, n)(np.array([2, 3])),
            lambda tf, n=_name: getattr(tf, n)(tf.TensorShape([2, 3])),
        ],
    )
    case(
        _name + "_like",
        np.full((2, 3), _one, f32),
        *[
            lambda tf, n=_name: getattr(tf, n + "_like")(A),
            lambda tf, n=_name: getattr(tf, n + "_like")(tensor=A),
            lambda tf, n=_name: getattr(tf, n + "_like")(tf.constant(I), tf.float32),
            lambda tf, n=_name: getattr(tf, n + "_like")(I, dtype=tf.float32, name="z", optimize=True),
        ],
    )
case("zeros of a number", np.zeros(3, f32), lambda tf: tf.zeros(3), lambda tf: tf.zeros(shape=3), lambda tf: tf.zeros((3,)), lambda tf: tf.zeros_like(V))
case(
    "range",
    np.arange(5, dtype=np.int32),
    lambda tf: tf.range(5),
    lambda tf: tf.range(0, 5),
    lambda tf: tf.range(0, 5, 1),
    lambda tf: tf.range(start=0, limit=5, delta=1),
    lambda tf: tf.range(0, limit=5, name="r"),
    lambda tf: tf.range(tf.constant(5)),
)
case(
    "range of floats",
    np.array([0, 0.5, 1], f32),
    lambda tf: tf.range(0, 1.5, 0.5),
    lambda tf: tf.range(0.0, 1.5, delta=0.5),
    lambda tf: tf.range(0, 1.5, 0.5, tf.float32),
)
case(
    "linspace",
    np.linspace(0, 1, 5, dtype=f32),
    lambda tf: tf.linspace(0.0, 1.0, 5),
    lambda tf: tf.lin_space(0.0, 1.0, 5, "l"),
    lambda tf: tf.linspace(start=0.0, stop=1.0, num=5, name="l"),
)
case(
    "cast",
    I.astype(f32),
    lambda tf: tf.cast(I, tf.float32),
    lambda tf: tf.cast(x=I, dtype=tf.float32),
    lambda tf: tf.cast(I, "float"),
    lambda tf: tf.cast(I, "float32"),
    lambda tf: tf.cast(I, np.float32),
    lambda tf: tf.cast(I, tf.float32, "c"),
    lambda tf: tf.to_float(I),
    lambda tf: tf.to_float(x=I, name="f"),
)
case(
    "cast to integers", np.trunc(A / 2).astype(np.int32), lambda tf: tf.cast(A / 2, tf.int32), lambda tf: tf.to_int32(A / 2), lambda tf: tf.cast(A / 2, "int32")
)
case(
    "cast of booleans", BOOL.astype(f32), lambda tf: tf.cast(BOOL, tf.float32), lambda tf: tf.cast(tf.equal(BOOL, True), "float"), lambda tf: tf.to_float(BOOL)
)
case("cast to int64", I.astype(np.int64), lambda tf: tf.cast(I, tf.int64), lambda tf: tf.to_int64(I))
case("cast to float64", A.astype(np.float64), lambda tf: tf.cast(A, tf.float64), lambda tf: tf.to_double(A))
case(
    "identity",
    A,
    lambda tf: tf.identity(A),
    lambda tf: tf.identity(input=A, name="i"),
    lambda tf: tf.identity(tf.Variable(A), "i"),
    lambda tf: tf.stop_gradient(A),
    lambda tf: tf.stop_gradient(input=A, name="s"),
)
case(
    "placeholder_with_default",
    A,
    lambda tf: tf.placeholder_with_default(A, [None, 3]),
    lambda tf: tf.placeholder_with_default(input=A, shape=A.shape, name="p"),
)
case(
    "clip_by_value",
    np.clip(A, -1, 1),
    lambda tf: tf.clip_by_value(A, -1, 1),
    lambda tf: tf.clip_by_value(t=A, clip_value_min=-1.0, clip_value_max=1.0),
    lambda tf: tf.clip_by_value(tf.constant(A), -1.0, 1.0, "c"),
    lambda tf: tf.clip_by_value(A, tf.constant(-1.0), 1),
)
case(
    "clip_by_norm",
    A / np.sqrt((A**2).sum()),
    lambda tf: tf.clip_by_norm(A, 1),
    lambda tf: tf.clip_by_norm(t=A, clip_norm=1.0),
    lambda tf: tf.clip_by_norm(A, 1.0, [0, 1]),
    lambda tf: tf.clip_by_norm(tf.constant(A), 1.0, name="c"),
)
case(
    "clip_by_global_norm",
    [[A / 5, V / 5], f32(5)],
    *[
        lambda tf: tf.clip_by_global_norm([A, V], 1.0, tf.constant(5.0)),
        lambda tf: tf.clip_by_global_norm([A, V], 1, use_norm=5.0),
        lambda tf: tf.clip_by_global_norm(t_list=(tf.constant(A), V), clip_norm=1.0, use_norm=tf.constant(5.0), name="c"),
    ],
)
case("global_norm", np.sqrt((A**2).sum() + (V**2).sum()), lambda tf: tf.global_norm([A, V]), lambda tf: tf.global_norm(t_list=[A, None, V], name="g"))
case(
    "norm",
    np.sqrt((A**2).sum(1)),
    lambda tf: tf.norm(A, axis=1),
    lambda tf: tf.norm(tensor=A, ord=2, axis=1, keep_dims=False),
    lambda tf: tf.norm(A, "euclidean", -1),
)

# ---- neural networks ----

for _name, _f in {"softmax": softmax, "log_softmax": log_softmax}.items():
    case(
        "nn." + _name,
        _f(A),
        *[
            lambda tf, n=_name: getattr(tf.nn, n)(A),
            lambda tf, n=_name: getattr(tf.nn, n)(logits=A),
            lambda tf, n=_name: getattr(tf.nn, n)(A, -1),
            lambda tf, n=_name: getattr(tf.nn, n)(A, dim=-1),
            lambda tf, n=_name: getattr(tf.nn, n)(A, axis=1, name="s"),
            lambda tf, n=_name: getattr(tf.nn, n)(A, name="s"),
        ],
        old=[lambda tf, n=_name: getattr(tf.nn, n)(A, "s")],
    )
    case(
        "nn.%s along 0" % _name,
        _f(A, 0),
        *[lambda tf, n=_name: getattr(tf.nn, n)(A, 0), lambda tf, n=_name: getattr(tf.nn, n)(A, axis=0), lambda tf, n=_name: getattr(tf.nn, n)(A, dim=0)],
    )
_cross = -(SOFT * log_softmax(A)).sum(1)
case(
    "nn.softmax_cross_entropy_with_logits",
    _cross,
    lambda tf: tf.nn.softmax_cross_entropy_with_logits(labels=SOFT, logits=A),
    lambda tf: tf.nn.softmax_cross_entropy_with_logits(logits=A, labels=SOFT, dim=-1, name="x"),
    lambda tf: tf.nn.softmax_cross_entropy_with_logits_v2(labels=SOFT, logits=A),
    lambda tf: tf.nn.softmax_cross_entropy_with_logits(None, SOFT, A),
    lambda tf: tf.nn.softmax_cross_entropy_with_logits_v2(SOFT, A),
    old=[
        lambda tf: tf.nn.softmax_cross_entropy_with_logits(A, SOFT),
        lambda tf: tf.nn.softmax_cross_entropy_with_logits(tf.constant(A), tf.constant(SOFT), name="x"),
        lambda tf: tf.nn.softmax_cross_entropy_with_logits(logits=A, targets=SOFT),
        lambda tf: tf.nn.softmax_cross_entropy_with_logits(A, labels=SOFT),
        lambda tf: tf.nn.softmax_cross_entropy_with_logits(A, SOFT, name="x"),
    ],
)
case(
    "nn.sparse_softmax_cross_entropy_with_logits",
    -log_softmax(A)[[0, 1], J],
    lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=J, logits=A),
    lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(logits=A, labels=J.astype(np.int64), name="x"),
    lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(None, J, A),
    old=[
        lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(A, J),
        lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(A, J, name="x"),
        lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(tf.constant(A), labels=J),
    ],
)
case(
    "nn.sigmoid_cross_entropy_with_logits",
    np.log1p(np.exp(A)) - A * SOFT,
    lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(labels=SOFT, logits=A),
    lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(logits=A, labels=SOFT, name="x"),
    lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(None, SOFT, A),
    old=[
        lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(A, SOFT),
        lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(A, targets=SOFT),
        lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(logits=A, targets=SOFT),
        lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(A, SOFT, name="x"),
    ],
)
case(
    "nn.conv2d",
    conv(IMAGE, KERNEL),
    lambda tf: tf.nn.conv2d(IMAGE, KERNEL, [1, 1, 1, 1], "VALID"),
    lambda tf: tf.nn.conv2d(input=IMAGE, filter=KERNEL, strides=[1, 1, 1, 1], padding="VALID"),
    lambda tf: tf.nn.conv2d(IMAGE, KERNEL, strides=(1, 1, 1, 1), padding="VALID", use_cudnn_on_gpu=True, data_format="NHWC", name="c"),
    lambda tf: tf.nn.conv2d(IMAGE, filters=KERNEL, strides=1, padding="VALID"),
    lambda tf: tf.nn.conv2d(IMAGE, KERNEL, [1, 1], "VALID"),
    lambda tf: tf.nn.conv2d(IMAGE, KERNEL, [1, 1, 1, 1], "VALID", True, "NHWC", [1, 1, 1, 1], "c"),
    lambda tf: tf.nn.convolution(IMAGE, KERNEL, "VALID"),
)
case(
    "nn.conv2d SAME",
    conv(IMAGE, KERNEL, 2, True),
    lambda tf: tf.nn.conv2d(IMAGE, KERNEL, [1, 2, 2, 1], "SAME"),
    lambda tf: tf.nn.conv2d(IMAGE, tf.Variable(KERNEL), strides=[1, 2, 2, 1], padding="SAME"),
)
for _name, _f in {"max_pool": np.max, "avg_pool": np.mean}.items():
    case(
        "nn." + _name,
        pool(IMAGE, 2, 2, _f),
        *[
            lambda tf, n=_name: getattr(tf.nn, n)(IMAGE, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
            lambda tf, n=_name: getattr(tf.nn, n)(value=IMAGE, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
            lambda tf, n=_name: getattr(tf.nn, n)(IMAGE, ksize=(1, 2, 2, 1), strides=(1, 2, 2, 1), padding="SAME", data_format="NHWC", name="p"),
            lambda tf, n=_name: getattr(tf.nn, n)(IMAGE, 2, 2, "SAME"),
            lambda tf, n=_name: getattr(tf.nn, n)(input=IMAGE, ksize=[2, 2], strides=[2, 2], padding="SAME"),
        ],
    )
_moments = [A.mean(0), A.var(0)]
case(
    "nn.moments",
    _moments,
    lambda tf: tf.nn.moments(A, [0]),
    lambda tf: tf.nn.moments(x=A, axes=[0]),
    lambda tf: tf.nn.moments(A, axes=[0], keep_dims=False, name="m"),
    lambda tf: tf.nn.moments(A, [0], None, "m"),
    lambda tf: tf.nn.moments(tf.constant(A), 0, keepdims=False),
)
case(
    "nn.batch_normalization",
    (A - V) / np.sqrt(V**2 + f32(1e-3)) * 2 + V,
    lambda tf: tf.nn.batch_normalization(A, V, V**2, V, np.full(3, 2, f32), 1e-3),
    lambda tf: tf.nn.batch_normalization(x=A, mean=V, variance=V**2, offset=V, scale=np.full(3, 2, f32), variance_epsilon=1e-3, name="b"),
)
case(
    "nn.lrn",
    IMAGE / np.sqrt(1 + 2 * (IMAGE**2).sum(-1, keepdims=True)),
    lambda tf: tf.nn.lrn(IMAGE, 4, 1.0, 2.0, 0.5),
    lambda tf: tf.nn.lrn(input=IMAGE, depth_radius=4, bias=1.0, alpha=2.0, beta=0.5),
    lambda tf: tf.nn.local_response_normalization(IMAGE, depth_radius=4, bias=1.0, alpha=2.0, beta=0.5, name="l"),
)
case(
    "nn.l2_normalize",
    A / np.sqrt((A**2).sum(1, keepdims=True)),
    lambda tf: tf.nn.l2_normalize(A, 1),
    lambda tf: tf.nn.l2_normalize(A, dim=1),
    lambda tf: tf.nn.l2_normalize(x=A, axis=[1], epsilon=1e-12, name="l"),
)
case(
    "nn.top_k",
    [-np.sort(-A, 1)[:, :2], np.argsort(-A, 1)[:, :2].astype(np.int32)],
    lambda tf: list(tf.nn.top_k(A, 2)),
    lambda tf: list(tf.nn.top_k(input=A, k=2, sorted=True, name="t")),
    lambda tf: [tf.nn.top_k(A, k=2).values, tf.nn.top_k(A, k=2).indices],
)
case("nn.in_top_k", np.array([True, False]), lambda tf: tf.nn.in_top_k(A, J, 1), lambda tf: tf.nn.in_top_k(predictions=A, targets=J, k=1, name="i"))
case(
    "nn.dropout of nothing",
    A,
    lambda tf: tf.nn.dropout(A, 1.0),
    lambda tf: tf.nn.dropout(x=A, keep_prob=1.0),
    lambda tf: tf.nn.dropout(A, keep_prob=tf.constant(1.0)),
    lambda tf: tf.nn.dropout(A, rate=0.0),
    lambda tf: tf.nn.dropout(A, 1.0, None, 7, "d"),
)
case(
    "nn.dropout's values",
    [True, (40, 50)],
    *[
        lambda tf, f=f: _dropped(tf, f)
        for f in (
            lambda tf, x: tf.nn.dropout(x, 0.5),
            lambda tf, x: tf.nn.dropout(x, keep_prob=0.5, seed=3),
            lambda tf, x: tf.nn.dropout(x, tf.constant(0.5)),
            lambda tf, x: tf.nn.dropout(x, rate=0.5),
            lambda tf, x: tf.nn.dropout(x, keep_prob=0.5, noise_shape=[40, 1], name="d"),
        )
    ],
)


def _dropped(tf: Any, dropout: Any) -> Any:
    y = dropout(tf, tf.ones([40, 50]))
    return [tf.reduce_all(tf.logical_or(tf.equal(y, 0.0), tf.equal(y, 2.0))), tuple(y.get_shape().as_list())]


def _transposed(x: Any, k: Any) -> Any:
    out = np.zeros((x.shape[0], x.shape[1] * 2, x.shape[2] * 2, k.shape[2]), f32)
    for r in range(x.shape[1]):
        for c in range(x.shape[2]):
            out[:, 2 * r : 2 * r + 2, 2 * c : 2 * c + 2] += np.einsum("bi,hwoi->bhwo", x[:, r, c], k)
    return out


_DK = KERNEL.transpose(0, 1, 3, 2)
case(
    "nn.conv2d_transpose",
    _transposed(IMAGE, _DK),
    lambda tf: tf.nn.conv2d_transpose(IMAGE, _DK, [1, 8, 8, 3], [1, 2, 2, 1]),
    lambda tf: tf.nn.conv2d_transpose(value=IMAGE, filter=_DK, output_shape=[1, 8, 8, 3], strides=[1, 2, 2, 1], padding="SAME"),
    lambda tf: tf.nn.conv2d_transpose(IMAGE, _DK, tf.stack([1, 8, 8, 3]), [1, 2, 2, 1], "SAME", "NHWC", "c"),
    lambda tf: tf.nn.conv2d_transpose(IMAGE, _DK, output_shape=[1, 8, 8, 3], strides=2),
)
