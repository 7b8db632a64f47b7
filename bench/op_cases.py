# SPDX-License-Identifier: Apache-2.0
"""Large cases of ops whose size the case table does not scale: shapes as programs have them.

A line is an op, what the report calls the case, and a function from a Draw of the dtype to the Case. `exact` says that the
case table's oracle is quick enough to give the error in units of the last place.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from table import Case, Draw

K, M = 1 << 10, 1 << 20


@dataclasses.dataclass
class Large:
    op: str
    label: str
    make: Callable[[Draw], Case]
    dtype: str = "float32"
    exact: bool = False


CASES: list[Large] = []


def add(op: str, label: str, make: Callable[[Draw], Case], dtypes: str = "float32", exact: bool = False) -> None:
    for dtype in dtypes.split():
        named = label if dtype == "float32" else f"{label} {dtype}"
        CASES.append(Large(op, named, make, dtype, exact))


def same(ops: str, label: str, make: Callable[[Draw], Case], dtypes: str = "float32", exact: bool = False) -> None:
    for op in ops.split():
        add(op, label, make, dtypes, exact)


def of(*inputs: Any, **attrs: Any) -> Case:
    return Case(list(inputs), attrs)


def int32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def sparse(d: Draw, rows: int, columns: int, n: int) -> list[Any]:
    """Indices in order, values and shape of a matrix with n elements."""
    step = rows * columns // n
    flat = np.arange(n, dtype=np.int64) * step + d.rng.integers(0, step, n)
    return [np.stack(np.divmod(flat, columns), 1), d.uniform((n,)), np.array([rows, columns], np.int64)]


def boxes(d: Draw, n: int) -> np.ndarray:
    corner = d.rng.uniform(0, 0.7, (n, 2))
    return np.concatenate([corner, corner + d.rng.uniform(0.02, 0.3, (n, 2))], 1)


def texts(n: int) -> np.ndarray:
    return np.array([f"row {k} holds {k * k} things".encode() for k in range(n)], object)


def definite(d: Draw, *shape: int) -> np.ndarray:
    """Symmetric, with eigenvalues from 1 on."""
    a = d.rng.standard_normal(shape)
    n = shape[-1]
    return a @ np.swapaxes(a, -1, -2) / n + np.eye(n)


def dominant(d: Draw, *shape: int) -> np.ndarray:
    return d.rng.standard_normal(shape) + 2 * np.sqrt(shape[-1]) * np.eye(shape[-1])


# ---- element-wise: what the case table's operands of one shape leave out ----
for _op in ("Add", "Mul", "Maximum"):
    add(_op, "2048x2048 by a row", lambda d: of(d.uniform((2 * K, 2 * K)), d.uniform((2 * K,))))
    add(_op, "2048x2048 by a column", lambda d: of(d.uniform((2 * K, 2 * K)), d.uniform((2 * K, 1))))
    add(_op, "4M by a scalar", lambda d: of(d.uniform((4 * M,)), d.uniform()), "float32 bfloat16 float16 int32")
add("Pow", "1M to the third", lambda d: of(d.uniform((M,)), np.array(3.0)))
add("AddN", "3 x 1M", lambda d: of([d.uniform((M,)) for _ in range(3)]))
add("SelectV2", "1024x2048 by row", lambda d: of(d.rng.random((K, 1)) < 0.5, d.any((K, 2 * K)), d.any((K, 2 * K))))
same("LogicalAnd LogicalOr Equal", "4M", lambda d: of(d.uniform((4 * M,)), d.uniform((4 * M,))), "bool")
add("Cross", "200k x 3", lambda d: of(d.uniform((200_000, 3)), d.uniform((200_000, 3))))
add("Betainc", "50k", lambda d: of(*[d.rng.uniform(lo, hi, 50_000) for lo, hi in ((0.5, 4), (0.5, 4), (0.05, 0.95))]))
add("Cast", "4M to int32", lambda d: Case([d.uniform((4 * M,), -100, 100)]))
add("CompareAndBitpack", "4M", lambda d: of(d.uniform((4 * M,)), np.array(0.1)))

# ---- reductions ----
for _op in ("Sum", "Mean", "Max", "Prod"):
    _low = 0.99 if _op == "Prod" else -2.0
    _high = 1.01 if _op == "Prod" else 2.0
    for _shape, _axes in (
        ((4 * M,), (0,)),
        ((2 * K, 1536), (1,)),
        ((2 * K, 1536), (0,)),
        ((48, 700, 96), (1,)),
        ((500_000, 5), (1,)),
        ((16, 100, 40, 40), (0, 2, 3)),
    ):
        _text = "x".join(map(str, _shape)) + " over " + ",".join(map(str, _axes))
        add(_op, _text, lambda d, s=_shape, a=_axes, lo=_low, hi=_high: of(d.uniform(s, lo, hi), int32(*a)), exact=True)
same("Sum Mean", "2048x512 over 1", lambda d: of(d.uniform((2 * K, 512)), int32(1)), "float16 bfloat16 int32 float64")
same("Min EuclideanNorm", "2M", lambda d: of(d.uniform((2 * M,)), int32(0)), exact=True)
add("All", "4M", lambda d: of(np.full(4 * M, True), int32(0)), "bool")
add("Any", "4M", lambda d: of(np.full(4 * M, False), int32(0)), "bool")
same("All Any", "3000x1000 over 1", lambda d: of(d.rng.random((3000, 1000)) < 0.001, int32(1)), "bool")
same("ArgMax ArgMin", "3000x1000 over 1", lambda d: of(d.uniform((3000, 1000)), np.array(1, np.int32)), "float32 int32")
same("ArgMax", "1000x3000 over 0", lambda d: of(d.uniform((1000, 3000)), np.array(0, np.int32)))
same("Cumsum Cumprod", "3000x1000 over 1", lambda d: of(d.uniform((3000, 1000), 0.99, 1.01), np.array(1, np.int32)))
add("CumulativeLogsumexp", "2000x500 over 1", lambda d: of(d.uniform((2000, 500)), np.array(1, np.int32)))
add("Bincount", "2M in 512", lambda d: of(d.rng.integers(0, 512, 2 * M), np.array(512), np.zeros(0)))

# ---- arrays ----
add("Fill", "4M", lambda d: of(int32(4 * M), d.any()))
add("Range", "4M", lambda d: of(np.array(0), np.array(4 * M), np.array(1)), "int32")
add("LinSpace", "2M", lambda d: of(np.array(0.0), np.array(1.0), np.array(2 * M, np.int32)))
add("Transpose", "1500x2500", lambda d: of(d.any((1500, 2500)), int32(1, 0)))
add("Transpose", "24x100x10x64, heads", lambda d: of(d.any((24, 100, 10, 64)), int32(0, 2, 1, 3)))
add("Transpose", "16x40x40x96 to channels first", lambda d: of(d.any((16, 40, 40, 96)), int32(0, 3, 1, 2)))
add("ConjugateTranspose", "1000x1000", lambda d: of(d.any((1000, 1000)), int32(1, 0)), "complex64")
add("ReverseV2", "2048x1024", lambda d: of(d.any((2 * K, K)), int32(1)))
add("Roll", "2048x1024", lambda d: of(d.any((2 * K, K)), int32(5), int32(1)))
add("Tile", "2048x100 x 1x8", lambda d: of(d.any((2 * K, 100)), int32(1, 8)))
add("BroadcastTo", "1000 to 2000x1000", lambda d: of(d.any((1000,)), int32(2000, 1000)))
add("Slice", "1000x600 of 3000x1000", lambda d: of(d.any((3000, 1000)), int32(500, 200), int32(1000, 600)))
add("StridedSlice", "3000x1000, every other", lambda d: of(d.any((3000, 1000)), int32(0, 0), int32(3000, 1000), int32(2, 2)))
add("StridedSliceGrad", "3000x1000", lambda d: of(int32(3000, 1000), int32(0, 100), int32(3000, 900), int32(1, 1), d.any((3000, 800))))
add("Pad", "16x48x48x32", lambda d: of(d.any((16, 48, 48, 32)), np.array([[0, 0], [1, 1], [1, 1], [0, 0]])))
add("MirrorPad", "8x48x48x32", lambda d: Case([d.any((8, 48, 48, 32)), np.array([[0, 0], [1, 1], [1, 1], [0, 0]])], {"mode": "REFLECT"}))
add("ConcatV2", "2 of 16x40x40x96 on the last axis", lambda d: of([d.any((16, 40, 40, 96)) for _ in range(2)], np.array(3)))
add("Pack", "16 x 100k", lambda d: of([d.any((100_000,)) for _ in range(16)]))
add("Unpack", "16 x 100k", lambda d: of(d.any((16, 100_000)), num=16))
add("Split", "4 by column", lambda d: of(np.array(1), d.any((2 * K, K)), num_split=4))
add("OneHot", "4000 to 1000", lambda d: of(d.rng.integers(0, 1000, 4000), np.array(1000), np.array(1.0), np.array(0.0)))
same("SpaceToDepth", "16x40x40x96", lambda d: of(d.any((16, 40, 40, 96)), block_size=2))
same("DepthToSpace", "16x40x40x96", lambda d: of(d.any((16, 40, 40, 96)), block_size=2))
add("SpaceToBatchND", "16x40x40x96", lambda d: of(d.any((16, 40, 40, 96)), int32(2, 2), np.zeros((2, 2), np.int32)))
add("BatchToSpaceND", "16x40x40x96", lambda d: of(d.any((16, 40, 40, 96)), int32(2, 2), np.zeros((2, 2), np.int32)))
add("MatrixDiagPart", "40x200x200", lambda d: of(d.any((40, 200, 200))))
add("MatrixBandPart", "40x200x200", lambda d: of(d.any((40, 200, 200)), np.array(-1), np.array(0)))
add("InvertPermutation", "1M", lambda d: of(d.rng.permutation(M)), "int32")

# ---- indices ----
add("GatherV2", "100k rows of 48", lambda d: of(d.any((20_000, 48)), d.rng.integers(0, 20_000, 100_000), np.array(0)))
add("GatherV2", "1M numbers", lambda d: of(d.any((M,)), d.rng.integers(0, M, M), np.array(0)))
add("GatherNd", "100k of 1000x1000", lambda d: of(d.any((1000, 1000)), d.rng.integers(0, 1000, (100_000, 2))))
add("ScatterNd", "100k x 48 into 10k", lambda d: of(d.rng.integers(0, 10_000, (100_000, 1)), d.uniform((100_000, 48)), int32(10_000, 48)))
same("SegmentSum SegmentMean SegmentMax", "200k x 24", lambda d: of(d.uniform((200_000, 24)), np.sort(d.rng.integers(0, 5000, 200_000))))
add("SegmentSum", "2M in one", lambda d: of(d.uniform((2 * M,)), np.zeros(2 * M, np.int32)))
same("UnsortedSegmentSum UnsortedSegmentMax", "200k x 24", lambda d: of(d.uniform((200_000, 24)), d.rng.integers(0, 5000, 200_000), np.array(5000)))
same(
    "SparseSegmentSum SparseSegmentMean",
    "100k x 48",
    lambda d: of(d.uniform((20_000, 48)), d.rng.integers(0, 20_000, 100_000), np.sort(d.rng.integers(0, 5000, 100_000))),
)
add("DynamicPartition", "200k x 24", lambda d: of(d.any((200_000, 24)), d.rng.integers(0, 4, 200_000), num_partitions=4))
add("DynamicStitch", "2 x 50k x 24", lambda d: of([np.arange(k, 100_000, 2) for k in range(2)], [d.any((50_000, 24)) for _ in range(2)]))
same("TopKV2", "500x2000, 1", lambda d: of(d.apart((500, 2000)), np.array(1)))
same("TopKV2", "500x2000, 20", lambda d: of(d.apart((500, 2000)), np.array(20)))
add("TopKV2", "1M, 100", lambda d: of(d.apart((M,)), np.array(100)))
add("NthElement", "200x3000", lambda d: of(d.apart((200, 3000)), np.array(1500)))
same("Unique", "1M of 20k", lambda d: of(d.rng.integers(0, 20_000, M)), "int32")
add("ListDiff", "100k", lambda d: of(d.rng.integers(0, M, 100_000), d.rng.integers(0, M, 100_000)), "int32")

# ---- products and linear algebra ----
for _m, _k, _n in ((384, 384, 384), (768, 768, 768), (64, 1000, 500), (8000, 48, 48), (1, 3000, 3000), (3000, 3000, 1)):
    add("MatMul", f"{_m}x{_k} by {_k}x{_n}", lambda d, m=_m, k=_k, n=_n: of(d.uniform((m, k)), d.uniform((k, n))))
add("MatMul", "384", lambda d: of(d.uniform((384, 384)), d.uniform((384, 384))), "float64 float16 bfloat16 int32")
add("BatchMatMulV2", "48 of 100x64x100", lambda d: of(d.uniform((48, 100, 64)), d.uniform((48, 64, 100))))
add("BatchMatMulV2", "5000 of 6x6x6", lambda d: of(d.uniform((5000, 6, 6)), d.uniform((5000, 6, 6))))
same("Cholesky", "384", lambda d: of(definite(d, 384, 384)))
same("Cholesky", "1000 of 8x8", lambda d: of(definite(d, 1000, 8, 8)))
same("MatrixInverse MatrixDeterminant Lu Qr", "256", lambda d: of(dominant(d, 256, 256)))
same("MatrixInverse MatrixDeterminant", "1000 of 8x8", lambda d: of(dominant(d, 1000, 8, 8)))
same("MatrixSolve", "256 by 256", lambda d: of(dominant(d, 256, 256), d.uniform((256, 256))))
add("MatrixTriangularSolve", "256 by 256", lambda d: of(np.tril(dominant(d, 256, 256)), d.uniform((256, 256))))
same("SelfAdjointEigV2 Svd", "128", lambda d: of(definite(d, 128, 128)))


# ---- neural networks ----
def image(d: Draw, n: int, side: int, channels: int) -> np.ndarray:
    return d.uniform((n, side, side, channels))


def window(size: int, stride: int) -> dict[str, Any]:
    return dict(ksize=[1, size, size, 1], strides=[1, stride, stride, 1], padding="SAME")


_CONVOLUTIONS: Sequence[tuple[int, int, int, int, int, int]] = (
    (16, 24, 96, 96, 3, 1),
    (4, 48, 48, 192, 1, 1),
    (4, 112, 3, 32, 5, 2),
    (1, 8, 384, 384, 3, 1),
    (1, 48, 48, 48, 3, 1),
)
for _b, _s, _c, _o, _f, _t in _CONVOLUTIONS:
    add(
        "Conv2D",
        f"{_f}x{_f}/{_t} {_c} to {_o}, {_b} of {_s}x{_s}",
        lambda d, b=_b, s=_s, c=_c, o=_o, f=_f, t=_t: of(image(d, b, s, c), d.uniform((f, f, c, o)), strides=[1, t, t, 1], padding="SAME"),
    )
add(
    "Conv2DBackpropInput",
    "3x3 96, 16 of 24x24",
    lambda d: of(int32(16, 24, 24, 96), d.uniform((3, 3, 96, 96)), image(d, 16, 24, 96), strides=[1, 1, 1, 1], padding="SAME"),
)
add(
    "Conv2DBackpropFilter",
    "3x3 96, 16 of 24x24",
    lambda d: of(image(d, 16, 24, 96), int32(3, 3, 96, 96), image(d, 16, 24, 96), strides=[1, 1, 1, 1], padding="SAME"),
)
add("DepthwiseConv2dNative", "3x3 96, 16 of 24x24", lambda d: of(image(d, 16, 24, 96), d.uniform((3, 3, 96, 1)), strides=[1, 1, 1, 1], padding="SAME"))
same("MaxPool AvgPool", "3x3/2, 16 of 40x40x96", lambda d: of(image(d, 16, 40, 96), **window(3, 2)))
same("MaxPool AvgPool", "2x2/2, 16 of 40x40x96", lambda d: of(image(d, 16, 40, 96), **window(2, 2)))
add("AvgPoolGrad", "3x3/2, 16 of 40x40x96", lambda d: of(int32(16, 40, 40, 96), image(d, 16, 20, 96), **window(3, 2)))
same("BiasAdd", "16x40x40x96", lambda d: of(image(d, 16, 40, 96), d.uniform((96,))))
same("BiasAddGrad LRN", "16x40x40x96", lambda d: of(image(d, 16, 40, 96)))
same("Softmax LogSoftmax", "3000x1000", lambda d: of(d.uniform((3000, 1000))), "float32 bfloat16", exact=True)
same("Softmax LogSoftmax", "200k x 12", lambda d: of(d.uniform((200_000, 12))), exact=True)
add("SoftmaxCrossEntropyWithLogits", "2000x1000", lambda d: of(d.uniform((2000, 1000)), d.rng.uniform(0, 0.002, (2000, 1000))))
add("SparseSoftmaxCrossEntropyWithLogits", "2000x1000", lambda d: of(d.uniform((2000, 1000)), d.rng.integers(0, 1000, 2000)))

# ---- images ----
same(
    "ResizeBilinear ResizeNearestNeighbor ResizeBicubic ResizeArea",
    "2 of 200x200x3 to 320x320",
    lambda d: of(d.uniform((2, 200, 200, 3), 0, 255), int32(320, 320)),
    "float32 uint8",
)
same("RGBToHSV HSVToRGB", "400x400", lambda d: of(d.rng.uniform(0, 1, (400, 400, 3))))
add("CropAndResize", "32 of 12x12x128", lambda d: of(d.uniform((1, 40, 40, 128)), boxes(d, 32), np.zeros(32, np.int32), int32(12, 12)))
add("NonMaxSuppressionV2", "3000", lambda d: of(boxes(d, 3000), d.rng.uniform(0, 1, 3000), np.array(150), np.array(0.5)))

# ---- quantized, random, signals, sparse, text ----
add("FakeQuantWithMinMaxVars", "1M", lambda d: of(d.uniform((M,)), np.array(-1.5), np.array(1.5)))
add("FakeQuantWithMinMaxVarsPerChannel", "10k x 96", lambda d: of(d.uniform((10_000, 96)), np.full(96, -1.5), np.full(96, 1.5)))
same("RandomUniform RandomStandardNormal TruncatedNormal", "1M", lambda d: of(int32(M), seed=7), "float32 bfloat16 float64")
same("StatelessRandomUniform StatelessRandomNormal", "1M", lambda d: of(int32(M), int32(7, 9)))
add("RandomShuffle", "1M", lambda d: of(d.any((M,)), seed=7))
add("RandomShuffle", "20k x 300", lambda d: of(d.any((20_000, 300)), seed=7))
add("Multinomial", "100x2000, 10 each", lambda d: of(d.uniform((100, 2000)), np.array(10), seed=7))
same("FFT IFFT", "500 of 2048", lambda d: of(d.uniform((500, 2048))), "complex64")
same("FFT", "500 of 1500", lambda d: of(d.uniform((500, 1500))), "complex64")
add("RFFT", "500 of 2048", lambda d: of(d.uniform((500, 2048)), int32(2048)))
for _n in (1, 6, 48):
    add("SparseTensorDenseMatMul", f"200k by {_n}", lambda d, n=_n: of(*sparse(d, 20_000, 30_000, 200_000), d.uniform((30_000, n))))
    add("SparseTensorDenseMatMul", f"200k adjoint by {_n}", lambda d, n=_n: of(*sparse(d, 20_000, 30_000, 200_000), d.uniform((20_000, n)), adjoint_a=True))
add("SparseReduceSum", "100k", lambda d: of(*sparse(d, 1000, 2000, 100_000), int32(1)))
add("SparseToDense", "100k", lambda d: of(sparse(d, 1000, 2000, 100_000)[0], np.array([1000, 2000]), d.uniform((100_000,)), d.uniform()))
add("RegexReplace", "20k", lambda d: of(texts(20_000), np.array(b"[0-9]+"), np.array(b"#")))
add("DecodeCompressed", "8 MB", lambda d: of(np.array([zlib.compress(b"".join(texts(400_000)))], object), compression_type="ZLIB"))
add("RegexFullMatch", "20k", lambda d: of(texts(20_000), np.array(b"row [0-9]+ .*")))
same("StringLower StringStrip", "20k", lambda d: of(texts(20_000)))
add("StringSplit", "20k", lambda d: of(texts(20_000), np.array(b" ")))
add("StringToNumber", "100k", lambda d: of(np.array([b"%.6g" % x for x in d.rng.standard_normal(100_000)], object)))
add("AsString", "100k", lambda d: of(d.uniform((100_000,))))
