# SPDX-License-Identifier: Apache-2.0
"""Cases of awkward shapes: odd sizes, short inner dimensions, middle axes, narrow types, many small pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtypes import BY_NAME
from op_cases import Large, M, boxes, definite, dominant, int32, of, sparse, texts
from table import Case, Draw

CASES: list[Large] = []


def add(op: str, label: str, make: Callable[[Draw], Case], dtypes: str = "float32", exact: bool = False) -> None:
    for dtype in dtypes.split():
        CASES.append(Large(op, label if dtype == "float32" else f"{label} {dtype}", make, dtype, exact))


def same(ops: str, label: str, make: Callable[[Draw], Case], dtypes: str = "float32", exact: bool = False) -> None:
    for op in ops.split():
        add(op, label, make, dtypes, exact)


# ---- element-wise ----
FUNCTIONS = "Exp Tanh Sigmoid Log1p Softplus Sin Sqrt Erf Atan Relu Square Abs Floor Round Rsqrt Neg"
same(FUNCTIONS, "333x777", lambda d: of(d.uniform((333, 777), 0.1, 0.9)), "float64 float16 bfloat16")
same(
    "Log Cos Tan Asin Acos Sinh Cosh Asinh Atanh Expm1 Erfc Lgamma Digamma Elu Selu Softsign Sign Reciprocal",
    "333x777",
    lambda d: of(d.uniform((333, 777), 0.1, 0.9)),
    "float64 float16",
)
same("Acosh", "333x777", lambda d: of(d.uniform((333, 777), 1.1, 4)), "float32 float64")
same("Abs Neg Square Sign", "333x777", lambda d: of(d.any((333, 777))), "int32 int64 int8 int16")
same("Erfc", "1M up to 4", lambda d: of(d.uniform((M,), -4, 4)))
same("Acos", "1M", lambda d: of(d.uniform((M,), -1, 1)), "float32")
same("Mul Sub Maximum Less", "333x777", lambda d: of(d.any((333, 777)), d.any((333, 777))), "float64 float16 bfloat16 int64 int8 uint8 int16")
same("Add", "333x777", lambda d: of(d.any((333, 777)), d.any((333, 777))), "float64 float16 bfloat16 int64 int8 uint8 int16 complex64 complex128")
same("RealDiv Pow SquaredDifference", "333x777", lambda d: of(d.uniform((333, 777), 0.1, 2), d.uniform((333, 777), 0.1, 2)), "float64 float16 bfloat16")
same("FloorDiv FloorMod", "333x777", lambda d: of(d.uniform((333, 777), 0.1, 200), d.uniform((333, 777), 1, 20)), "float64 float16 int64 int8 uint8")
same("Div TruncateDiv", "333x777", lambda d: of(d.any((333, 777)), d.away((333, 777), 1, 50)), "int32 int64")
same("Equal NotEqual", "333x777", lambda d: of(d.any((333, 777)), d.any((333, 777))), "int64 bool float16 complex64")
same("Add", "scalars left, 1M", lambda d: of(d.any(), d.any((M,))), "float32 float64 int64 uint8")
same("Mul", "70000x7 by 7", lambda d: of(d.any((70_000, 7)), d.any((7,))), "float32 float16 int32")
same("Mul", "70000x7 by column", lambda d: of(d.any((70_000, 7)), d.any((70_000, 1))), "float32 float64")
same("Sub", "50x1x999 by 50x40x1", lambda d: of(d.any((50, 1, 999)), d.any((50, 40, 1))))
same("Mul", "31x17x19x1 by 31x1x19x63", lambda d: of(d.any((31, 17, 19, 1)), d.any((31, 1, 19, 63))))
same("Add", "100x3x200x3 by 3x1x3", lambda d: of(d.any((100, 3, 200, 3)), d.any((3, 1, 3))))
same("Add", "2000x2000 outer", lambda d: of(d.any((2000, 1)), d.any((1, 2000))), "float32 int32")
same("Mul", "64x50x9x9 by channel", lambda d: of(d.any((64, 50, 9, 9)), d.any((50, 1, 1))))
same("Greater", "3000x333 by column", lambda d: of(d.any((3000, 333)), d.any((3000, 1))), "float32 int64")
same("Pow", "100000x3 by 3", lambda d: of(d.uniform((100_000, 3), 0.1, 2), d.uniform((3,), 0.1, 2)))
same("Select", "by rows 5000x77", lambda d: of(d.rng.random(5000) < 0.5, d.any((5000, 77)), d.any((5000, 77))))
same("SelectV2", "777x999", lambda d: of(d.rng.random((777, 999)) < 0.5, d.any((777, 999)), d.any((777, 999))), "int64 float64 uint8 float16 string")
same("AddN", "7 x 99999", lambda d: of([d.uniform((99_999,)) for _ in range(7)]), "float32 float64 float16 int64")
same("AddN", "2 x 200", lambda d: of([d.uniform((200,)) for _ in range(2)]))
for _to in ("float64", "float16", "bfloat16", "int64", "int8", "uint8", "bool"):
    for _of in ("float32", "int64", "float64", "uint8", "float16", "bool"):
        if _of != _to:
            add("Cast", f"999999 {_of} to {_to}", lambda d, t=_to: Case([d.uniform((999_999,), 0, 100)], types={"DstT": BY_NAME[t]}), _of)
add("Cast", "999999 bfloat16 to float32", lambda d: Case([d.uniform((999_999,), 0, 100)], types={"DstT": BY_NAME["float32"]}), "bfloat16")
same("ClipByValue", "333x777", lambda d: of(d.any((333, 777)), d.any(), d.any()), "float64 int64 float16")
same("LeakyRelu Relu6", "333x777", lambda d: of(d.any((333, 777))), "float32 float64 float16")
same(
    "ReluGrad TanhGrad SigmoidGrad SoftplusGrad EluGrad RsqrtGrad SqrtGrad",
    "333x777",
    lambda d: of(d.uniform((333, 777), 0.1, 1), d.uniform((333, 777), 0.1, 1)),
    "float32 float64 float16",
)
same("Xdivy Xlogy Atan2 DivNoNan", "333x777", lambda d: of(d.uniform((333, 777), 0.1, 1), d.uniform((333, 777), 0.1, 1)), "float32 float64")
same("Angle ComplexAbs Real Imag", "777777", lambda d: of(d.any((777_777,))), "complex64")
same("Exp Sqrt Conj Tanh", "99999", lambda d: of(d.uniform((99_999,), 0.1, 1)), "complex64 complex128")
same("Log Rsqrt Reciprocal Sign", "99999", lambda d: of(d.uniform((99_999,), 0.1, 1)), "complex64 complex128")
same("Mul RealDiv Xlogy", "99999", lambda d: of(d.uniform((99_999,), 0.1, 1), d.uniform((99_999,), 0.1, 1)), "complex64 complex128")
same("Igamma Igammac", "20000", lambda d: of(d.uniform((20_000,), 0.5, 5), d.uniform((20_000,), 0.5, 5)), "float64")
for _op in ("BesselI0", "BesselI1", "BesselI0e", "BesselI1e", "BesselK0", "BesselK1", "BesselK0e", "BesselK1e"):
    add(_op, "20000", lambda d: of(d.uniform((20_000,), 0.01, 30)), "float64")
same("Erfinv Ndtri", "333x777", lambda d: of(d.uniform((333, 777), 0.01, 0.99)), "float64")
same("BitwiseAnd BitwiseXor LeftShift RightShift", "777777", lambda d: of(d.uniform((777_777,), 0, 5), d.uniform((777_777,), 0, 5)), "int64 uint8 int16")
same("Invert", "777777", lambda d: of(d.uniform((777_777,), 0, 5)), "int64 uint8 int32")
same("LogicalNot", "777777", lambda d: of(d.any((777_777,))), "bool")
same("IsNan IsFinite IsInf", "777777", lambda d: of(d.any((777_777,))), "float64 float16")
same("Bucketize", "777777", lambda d: of(d.uniform((777_777,), -3, 3), boundaries=[float(x) for x in np.linspace(-3, 3, 100)]))

# ---- reductions ----
for _op in ("Sum", "Max", "Mean", "Prod"):
    for _shape, _axes, _types in (
        ((999, 777), (0,), "float32 float64 int64 float16 bfloat16"),
        ((999, 777), (1,), "float32 float64 int64 float16 bfloat16"),
        ((100_000, 7), (0,), "float32 float64"),
        ((100_000, 7), (1,), "float32 float16 int32"),
        ((33, 333, 33), (1,), "float32 float64 float16"),
        ((33, 333, 33), (0, 2), "float32 float64"),
        ((3, 100, 999), (0,), "float32 int32"),
        ((200, 3, 999), (1,), "float32"),
        ((500_000, 2), (1,), "float32 int64"),
        ((64, 50, 17, 17), (2, 3), "float32 float16"),
        ((64, 50, 17, 17), (0, 2, 3), "float32"),
        ((64, 17, 17, 50), (1, 2), "float32 bfloat16"),
        ((9, 8, 7, 6, 5, 4, 3), (0, 2, 4, 6), "float32"),
        ((9, 8, 7, 6, 5, 4, 3), (1, 3, 5), "float32"),
        ((1000, 10, 10), (1, 2), "float32"),
        ((777_777,), (0,), "float32 float64 int32 int64 float16 bfloat16"),
        ((300,), (0,), "float32"),
    ):
        _low, _high = (0.99, 1.01) if _op == "Prod" else (-2.0, 2.0)
        _text = "x".join(map(str, _shape)) + " over " + ",".join(map(str, _axes))
        add(_op, _text, lambda d, s=_shape, a=_axes, lo=_low, hi=_high: of(d.uniform(s, lo, hi), int32(*a)), _types, exact=True)
same("All Any", "999x777 over 0", lambda d: of(d.rng.random((999, 777)) < 0.5, int32(0)), "bool")
same("All Any", "100000x7 over 1", lambda d: of(d.rng.random((100_000, 7)) < 0.5, int32(1)), "bool")
for _axis, _shape in ((0, (999, 777)), (1, (100_000, 7)), (1, (33, 333, 33)), (2, (33, 333, 33)), (0, (777_777,))):
    _text = "x".join(map(str, _shape)) + f" over {_axis}"
    same("ArgMax ArgMin", _text, lambda d, s=_shape, a=_axis: of(d.uniform(s), np.array(a, np.int32)), "float32 float64 int64 uint8 float16")
    same("Cumsum Cumprod", _text, lambda d, s=_shape, a=_axis: of(d.uniform(s, 0.99, 1.01), np.array(a, np.int32)), "float32 float64 int64 float16")
same("Cumsum", "999x777 over 0, reverse, exclusive", lambda d: of(d.uniform((999, 777)), np.array(0, np.int32), exclusive=True, reverse=True))
same("L2Loss", "777777", lambda d: of(d.uniform((777_777,))), "float64 float16 bfloat16")
same("EuclideanNorm", "999x777 over 0", lambda d: of(d.uniform((999, 777)), int32(0)), "float32 float64")
same("Bincount", "1M in 20", lambda d: of(d.rng.integers(0, 20, M), np.array(20), np.zeros(0)))
same("Bincount", "1M in 20, weights", lambda d: of(d.rng.integers(0, 20, M), np.array(20), d.uniform((M,))))

# ---- arrays ----
for _shape, _order in (
    ((77, 33, 55, 5), (3, 1, 2, 0)),
    ((77, 33, 55, 5), (0, 2, 1, 3)),
    ((77, 33, 55, 5), (2, 3, 0, 1)),
    ((9, 11, 13, 7, 15), (4, 3, 2, 1, 0)),
    ((9, 11, 13, 7, 15), (0, 3, 1, 4, 2)),
    ((9, 11, 13, 7, 16), (2, 0, 3, 1, 4)),
    ((6, 8, 7, 5, 9, 11), (5, 0, 3, 1, 4, 2)),
    ((6, 8, 7, 5, 9, 11), (1, 0, 3, 2, 5, 4)),
    ((200_000, 3), (1, 0)),
    ((3, 200_000), (1, 0)),
    ((1000, 20, 30), (0, 2, 1)),
    ((777, 999), (1, 0)),
    ((8, 3, 224, 224), (0, 2, 3, 1)),
    ((8, 224, 224, 3), (0, 3, 1, 2)),
    ((50_000, 4, 4), (0, 2, 1)),
    ((100, 100, 100), (1, 0, 2)),
    ((100, 100, 100), (2, 0, 1)),
):
    _text = "x".join(map(str, _shape)) + " as " + "".join(map(str, _order))
    add("Transpose", _text, lambda d, s=_shape, o=_order: of(d.any(s), int32(*o)), "float32 float64 uint8 float16")
_NARROW = "float32 uint8 int64 float16"
same("ConcatV2", "3 of 50000x5 on the last axis", lambda d: of([d.any((50_000, 5)) for _ in range(3)], np.array(1)), _NARROW)
same("ConcatV2", "50000 x 1, 7, 20 on the last axis", lambda d: of([d.any((50_000, n)) for n in (1, 7, 20)], np.array(1)), _NARROW)
same("ConcatV2", "40 of 100x31 on the first", lambda d: of([d.any((100, 31)) for _ in range(40)], np.array(0)))
same("ConcatV2", "2 of 30x20x77 on the middle", lambda d: of([d.any((30, 20, 77)) for _ in range(2)], np.array(1)))
same("Split", "5 of 50000x35 on the last axis", lambda d: of(np.array(1), d.any((50_000, 35)), num_split=5), _NARROW)
same("Split", "3 of 200x30x77", lambda d: of(np.array(1), d.any((200, 30, 77)), num_split=3))
same("SplitV", "50000x28 in 1, 7, 20", lambda d: of(d.any((50_000, 28)), np.array([1, 7, 20]), np.array(1), num_split=3))
same("Pack", "3 x 200001 on the last axis", lambda d: of([d.any((200_001,)) for _ in range(3)], axis=1), _NARROW)
same("Pack", "10 x 300x77 on the middle", lambda d: of([d.any((300, 77)) for _ in range(10)], axis=1))
same("Unpack", "200001 x 3 on the last axis", lambda d: of(d.any((200_001, 3)), num=3, axis=1), _NARROW)
same("Slice", "100000x7, 3 columns", lambda d: of(d.any((100_000, 7)), int32(0, 2), int32(-1, 3)), _NARROW)
same("Slice", "50x60x70 inner", lambda d: of(d.any((50, 60, 70)), int32(3, 4, 5), int32(40, 50, 60)))
same("StridedSlice", "999x777 backwards", lambda d: of(d.any((999, 777)), int32(998, 776), int32(-1000, -778), int32(-1, -1)), _NARROW)
same("StridedSlice", "777777 by 3", lambda d: of(d.any((777_777,)), int32(0), int32(777_777), int32(3)), _NARROW)
same("StridedSlice", "99x88x77, a plane", lambda d: of(d.any((99, 88, 77)), int32(0, 40, 0), int32(99, 41, 77), int32(1, 1, 1), shrink_axis_mask=2))
same("Pad", "3000x77 by 1 and 2", lambda d: of(d.any((3000, 77)), int32(1, 1, 2, 2).reshape(2, 2)), _NARROW)
same("Pad", "8x224x224x3 by 3", lambda d: of(d.any((8, 224, 224, 3)), int32(0, 0, 3, 3, 3, 3, 0, 0).reshape(4, 2)))
same("MirrorPad", "8x100x100x3 by 3", lambda d: of(d.any((8, 100, 100, 3)), int32(0, 0, 3, 3, 3, 3, 0, 0).reshape(4, 2), mode="SYMMETRIC"))
same("Tile", "100000x3 x 1x5", lambda d: of(d.any((100_000, 3)), int32(1, 5)), _NARROW)
same("Tile", "30x40x50 x 2x3x2", lambda d: of(d.any((30, 40, 50)), int32(2, 3, 2)))
same("BroadcastTo", "5000x1 to 5000x77", lambda d: of(d.any((5000, 1)), int32(5000, 77)), _NARROW)
same("BroadcastTo", "40x1x50 to 40x60x50", lambda d: of(d.any((40, 1, 50)), int32(40, 60, 50)))
same("ReverseV2", "100000x7 of the last", lambda d: of(d.any((100_000, 7)), int32(1)), _NARROW)
same("ReverseV2", "999x777 of the first", lambda d: of(d.any((999, 777)), int32(0)))
same("ReverseV2", "60x70x3 x 50 of the middle", lambda d: of(d.any((50, 60, 70, 3)), int32(2)), "float32 uint8")
same("ReverseSequence", "100x99x77", lambda d: of(d.any((100, 99, 77)), d.rng.integers(1, 99, 100), seq_dim=1, batch_dim=0))
same("Roll", "99x88x77 on the last", lambda d: of(d.any((99, 88, 77)), int32(5), int32(2)), "float32 uint8")
same("OneHot", "100000 to 7", lambda d: of(d.rng.integers(0, 7, 100_000), np.array(7), np.array(1), np.array(0)), "float32 int64 uint8")
same("OneHot", "100 x 50 to 99, axis 0", lambda d: of(d.rng.integers(0, 99, (100, 50)), np.array(99), np.array(1), np.array(0), axis=0))
same("Range", "777777", lambda d: of(np.array(0), np.array(777_777), np.array(1)), "float32 int64 float64")
same("Fill", "777777", lambda d: of(int32(777_777), d.any()), "uint8 int64 float16")
same("ZerosLike OnesLike", "777777", lambda d: of(d.any((777_777,))), "float64 uint8")
same("MatrixDiag", "100 x 77", lambda d: of(d.any((100, 77))))
same("MatrixDiagPart", "10000 of 7x7", lambda d: of(d.any((10_000, 7, 7))))
same("MatrixSetDiag", "100 of 77x77", lambda d: of(d.any((100, 77, 77)), d.any((100, 77))))
same("MatrixBandPart", "10000 of 7x7", lambda d: of(d.any((10_000, 7, 7)), np.array(-1), np.array(0)))
same("SpaceToDepth DepthToSpace", "16x36x36x12", lambda d: of(d.any((16, 36, 36, 12)), block_size=2), "float32 uint8 float16")
same("DepthToSpace", "16x60x60x27 by 3", lambda d: of(d.any((16, 60, 60, 27)), block_size=3))
same(
    "ExtractImagePatches",
    "3x3 of 4x50x50x7",
    lambda d: of(d.any((4, 50, 50, 7)), ksizes=[1, 3, 3, 1], strides=[1, 2, 2, 1], rates=[1, 1, 1, 1], padding="SAME"),
)
same("Where", "777777, half", lambda d: of(d.rng.random(777_777) < 0.5), "bool")
same("Where", "500x40x30, a tenth", lambda d: of(d.rng.random((500, 40, 30)) < 0.1), "bool")
same("DiagPart", "999", lambda d: of(d.any((999, 999))))
same("Unique UniqueWithCounts", "300000 of 300000", lambda d: of(d.rng.integers(0, 300_000, 300_000)), "int64 int32")
same("Unique", "777777 of 9", lambda d: of(d.rng.integers(0, 9, 777_777)), "int64 int32")
same("Unique", "777777 of 1000", lambda d: of(d.rng.integers(0, 1000, 777_777) / 7), "float32")
same("ListDiff", "300000 of 1000", lambda d: of(d.rng.integers(0, M, 300_000), d.rng.integers(0, M, 1000)), "int64")
same("InvertPermutation", "77777", lambda d: of(d.rng.permutation(77_777)), "int64")
same("LowerBound UpperBound", "100 x 1000 in 100 x 500", lambda d: of(np.sort(d.rng.random((100, 500)), 1), d.rng.random((100, 1000))))

# ---- indices ----
for _n in (1, 2, 3, 5, 17, 300):
    add("GatherV2", f"100k rows of {_n}", lambda d, n=_n: of(d.any((20_000, n)), d.rng.integers(0, 20_000, 100_000), np.array(0)), "float32 int64 uint8")
same("GatherV2", "3000x777, 200 columns", lambda d: of(d.any((3000, 777)), d.rng.integers(0, 777, 200), np.array(1)), "float32 uint8")
same("GatherV2", "50 of 40x50x60 in the middle", lambda d: of(d.any((40, 50, 60)), d.rng.integers(0, 50, 50), np.array(1)))
same("GatherV2", "batched 200 x 300 of 500x9", lambda d: of(d.any((200, 500, 9)), d.rng.integers(0, 500, (200, 300)), np.array(1), batch_dims=1))
same("GatherNd", "50k rows of 20", lambda d: of(d.any((100, 100, 20)), d.rng.integers(0, 100, (50_000, 2))), "float32 int64")
same("GatherNd", "100k of rank 3", lambda d: of(d.any((100, 100, 20)), np.stack([d.rng.integers(0, n, 100_000) for n in (100, 100, 20)], 1)))
for _n in (1, 3, 7, 300):
    _rows = 300_000 // _n
    add(
        "ScatterNd",
        f"{_rows} x {_n} into 10k",
        lambda d, n=_n, r=_rows: of(d.rng.integers(0, 10_000, (r, 1)), d.uniform((r, n)), int32(10_000, n)),
        "float32 float64 int64",
    )
    same(
        "UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentProd",
        f"{_rows} x {_n} into 1k",
        lambda d, n=_n, r=_rows: of(d.uniform((r, n)), d.rng.integers(0, 1000, r), np.array(1000)),
        "float32 int32",
    )
    same(
        "SegmentSum SegmentMax SegmentMean SegmentProd",
        f"{_rows} x {_n} into 1k",
        lambda d, n=_n, r=_rows: of(d.uniform((r, n)), np.sort(d.rng.integers(0, 1000, r))),
        "float32 float64",
    )
    same(
        "SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN",
        f"{_rows} x {_n} into 1k",
        lambda d, n=_n, r=_rows: of(d.uniform((5000, n)), d.rng.integers(0, 5000, r), np.sort(d.rng.integers(0, 1000, r))),
    )
same("TensorScatterUpdate TensorScatterAdd", "50k x 7", lambda d: of(d.any((100_000, 7)), d.rng.permutation(100_000)[:50_000, None], d.any((50_000, 7))))
same("DynamicPartition", "500k in 7", lambda d: of(d.any((500_000,)), d.rng.integers(0, 7, 500_000), num_partitions=7), "float32 uint8 int64")
same("DynamicPartition", "100k x 3 in 2", lambda d: of(d.any((100_000, 3)), d.rng.integers(0, 2, 100_000), num_partitions=2))
same("DynamicStitch", "4 x 100k", lambda d: of([np.arange(k, 400_000, 4) for k in range(4)], [d.any((100_000,)) for _ in range(4)]))
for _shape, _k in (((500, 777), 300), ((500, 777), 777), ((5000, 30), 5), ((5000, 30), 30), ((777_777,), 10_000), ((777_777,), 777_777), ((20_000, 10), 2)):
    _text = "x".join(map(str, _shape)) + f", {_k}"
    add("TopKV2", _text, lambda d, s=_shape, k=_k: of(d.apart(s) * 1e6, np.array(k)), "float32 float64 int32 float16")
same("InTopKV2", "5000x300", lambda d: of(d.uniform((5000, 300)), d.rng.integers(0, 300, 5000), np.array(5)))
same("NthElement", "5000x31", lambda d: of(d.apart((5000, 31)), np.array(9)), "float32 float64")
same("HistogramFixedWidth", "777777 in 7", lambda d: of(d.uniform((777_777,)), np.array([-2.0, 2.0]), np.array(7)), "float32 float64 int32")

# ---- products and linear algebra ----
for _m, _k, _n in (
    (1, 333, 777),
    (3, 2000, 500),
    (777, 333, 1),
    (777, 333, 3),
    (5000, 7, 11),
    (333, 1, 777),
    (7, 20_000, 7),
    (99, 99, 99),
    (257, 255, 253),
    (20_000, 30, 3),
    (30, 20_000, 30),
    (17, 17, 17),
):
    for _ta, _tb in ((False, False), (True, False), (False, True), (True, True)):
        add(
            "MatMul",
            f"{_m}x{_k} by {_k}x{_n}{', a turned' * _ta}{', b turned' * _tb}",
            lambda d, m=_m, k=_k, n=_n, ta=_ta, tb=_tb: of(
                d.uniform((k, m) if ta else (m, k)), d.uniform((n, k) if tb else (k, n)), transpose_a=ta, transpose_b=tb
            ),
            "float32 float64" if not (_ta and _tb) else "float32",
        )
same("MatMul", "200x300 by 300x100", lambda d: of(d.uniform((200, 300)), d.uniform((300, 100))), "float64 float16 bfloat16 int32 int64 complex64 complex128")
for _b, _m, _k, _n in (
    (10_000, 3, 3, 3),
    (2000, 4, 4, 1),
    (2000, 1, 30, 30),
    (500, 16, 16, 16),
    (200, 33, 35, 37),
    (64, 128, 7, 128),
    (64, 7, 128, 7),
    (1000, 10, 64, 10),
):
    for _adj in (False, True):
        add(
            "BatchMatMulV2",
            f"{_b} of {_m}x{_k}x{_n}{', b turned' * _adj}",
            lambda d, b=_b, m=_m, k=_k, n=_n, t=_adj: of(d.uniform((b, m, k)), d.uniform((b, n, k) if t else (b, k, n)), adj_y=t),
            "float32 float64",
        )
for _b, _m, _k, _n in ((1000, 2, 2, 2), (2000, 3, 3, 1), (500, 4, 4, 4), (100, 8, 8, 8)):
    for _adj in (False, True):
        add(
            "BatchMatMulV2",
            f"{_b} of {_m}x{_k}x{_n}{', b turned' * _adj}",
            lambda d, b=_b, m=_m, k=_k, n=_n, t=_adj: of(d.uniform((b, m, k)), d.uniform((b, n, k) if t else (b, k, n)), adj_y=t),
            "complex64 complex128",
        )
for _adj in (False, True):
    add(
        "BatchMatMulV2",
        f"64 of 32x64x32{', b turned' * _adj}",
        lambda d, t=_adj: of(d.uniform((64, 32, 64)), d.uniform((64, 32, 64) if t else (64, 64, 32)), adj_y=t),
        "bfloat16 float16",
    )
same("MatMul", "1000x7 by 7x1000, b turned", lambda d: of(d.uniform((1000, 7)), d.uniform((1000, 7)), transpose_b=True), "bfloat16 float16")
same("MatMul", "10000x3 by 3x3", lambda d: of(d.uniform((10_000, 3)), d.uniform((3, 3))), "complex64 complex128")
same("BatchMatMulV2", "100 of 30x40 by one 40x50", lambda d: of(d.uniform((100, 30, 40)), d.uniform((40, 50))))
same("BatchMatMulV2", "one 30x40 by 100 of 40x50", lambda d: of(d.uniform((30, 40)), d.uniform((100, 40, 50))))
same("Einsum", "abc,acd->abd", lambda d: of([d.uniform((30, 40, 50)), d.uniform((30, 50, 60))], equation="abc,acd->abd"))
same("Einsum", "ij,ij->", lambda d: of([d.uniform((333, 77)), d.uniform((333, 77))], equation="ij,ij->"))
same("Einsum", "bhqd,bhkd->bhqk", lambda d: of([d.uniform((4, 60, 8, 32)), d.uniform((4, 60, 8, 32))], equation="bqhd,bkhd->bhqk"))
same("Cholesky", "3000 of 3x3", lambda d: of(definite(d, 3000, 3, 3)), "float32 float64")
same("Cholesky", "100 of 50x50", lambda d: of(definite(d, 100, 50, 50)), "float32 float64")
same("MatrixInverse MatrixDeterminant Lu LogMatrixDeterminant", "3000 of 3x3", lambda d: of(dominant(d, 3000, 3, 3)), "float32 float64")
same("MatrixInverse MatrixDeterminant Lu LogMatrixDeterminant", "100 of 50x50", lambda d: of(dominant(d, 100, 50, 50)), "float32 float64")
same("MatrixInverse MatrixDeterminant Lu LogMatrixDeterminant Qr Svd", "100x100", lambda d: of(dominant(d, 100, 100)), "complex64 complex128")
same("Qr", "300x10", lambda d: of(d.uniform((300, 10))), "complex64 complex128")
same("MatrixSquareRoot MatrixLogarithm", "100 of 8x8", lambda d: of(dominant(d, 100, 8, 8)), "float32 float64 complex64")
same("MatrixSquareRoot", "100x100", lambda d: of(dominant(d, 100, 100)), "float32 float64")
same("MatrixSquareRoot MatrixLogarithm", "50x50", lambda d: of(dominant(d, 50, 50)), "float32 float64 complex64")
same(
    "TridiagonalSolve",
    "33 of 100 by 3",
    lambda d: of(np.stack([d.rng.random((33, 100)), 3 + d.rng.random((33, 100)), d.rng.random((33, 100))], 1), d.uniform((33, 100, 3))),
    "float32 complex64",
)
same("Qr Svd", "500 of 5x5", lambda d: of(dominant(d, 500, 5, 5)), "float32 float64")
same("Qr Svd", "30 of 50x50", lambda d: of(dominant(d, 30, 50, 50)))
same("Qr Svd", "500x20", lambda d: of(d.uniform((500, 20))))
same("SelfAdjointEigV2", "500 of 5x5", lambda d: of(definite(d, 500, 5, 5)), "float32 float64")
same("SelfAdjointEigV2", "30 of 50x50", lambda d: of(definite(d, 30, 50, 50)), "float32 float64")
same("SelfAdjointEigV2", "200", lambda d: of(definite(d, 200, 200)), "float32 float64")
same("MatrixSolve", "1000 of 5x5 by 1", lambda d: of(dominant(d, 1000, 5, 5), d.uniform((1000, 5, 1))), "float32 float64")
same("MatrixSolve", "200x200 by 3", lambda d: of(dominant(d, 200, 200), d.uniform((200, 3))), "float32 float64")
same("MatrixTriangularSolve", "1000 of 5x5 by 1", lambda d: of(np.tril(dominant(d, 1000, 5, 5)), d.uniform((1000, 5, 1))))
same("MatrixTriangularSolve", "200 by 3, upper", lambda d: of(np.triu(dominant(d, 200, 200)), d.uniform((200, 3)), lower=False))
same("MatrixTriangularSolve", "200 by 200, adjoint", lambda d: of(np.tril(dominant(d, 200, 200)), d.uniform((200, 200)), adjoint=True), "float32 float64")
same("MatrixSolveLs", "500x20 by 3", lambda d: of(d.uniform((500, 20)), d.uniform((500, 3)), np.array(0.0)))

# ---- neural networks ----
CONVOLUTIONS = (
    ((8, 33, 33, 7), (3, 3, 7, 11), 1, "SAME"),
    ((8, 33, 33, 64), (3, 3, 64, 64), 2, "VALID"),
    ((2, 65, 65, 3), (7, 7, 3, 32), 2, "SAME"),
    ((32, 7, 7, 160), (1, 1, 160, 32), 1, "SAME"),
    ((1, 14, 14, 256), (3, 3, 256, 256), 1, "SAME"),
    ((1, 7, 7, 512), (3, 3, 512, 512), 1, "SAME"),
    ((1, 28, 28, 128), (3, 3, 128, 128), 1, "SAME"),
    ((32, 28, 28, 1), (5, 5, 1, 32), 1, "SAME"),
    ((4, 50, 50, 16), (1, 7, 16, 16), 1, "SAME"),
    ((1, 64, 64, 3), (3, 3, 3, 16), 1, "SAME"),
    ((16, 13, 13, 64), (5, 5, 64, 64), 1, "SAME"),
    ((256, 8, 8, 16), (3, 3, 16, 16), 1, "SAME"),
    ((8, 1, 500, 32), (1, 5, 32, 64), 1, "SAME"),
    ((1, 20, 20, 1024), (1, 1, 1024, 75), 1, "SAME"),
)
for _x, _f, _s, _p in CONVOLUTIONS:
    _out = [(n + _s - 1) // _s if _p == "SAME" else (n - k) // _s + 1 for n, k in zip(_x[1:3], _f)]
    _y = (_x[0], *_out, _f[3])
    _at: dict[str, Any] = dict(strides=[1, _s, _s, 1], padding=_p)
    _text = f"{'x'.join(map(str, _x))} by {_f[0]}x{_f[1]}/{_s} to {_f[3]}"
    add("Conv2D", _text, lambda d, x=_x, f=_f, a=_at: of(d.uniform(x), d.uniform(f), **a), "float32 float64" if _x[1] == 33 else "float32")
    add("Conv2DBackpropInput", _text, lambda d, x=_x, f=_f, y=_y, a=_at: of(int32(*x), d.uniform(f), d.uniform(y), **a))
    add("Conv2DBackpropFilter", _text, lambda d, x=_x, f=_f, y=_y, a=_at: of(d.uniform(x), int32(*f), d.uniform(y), **a))
same(
    "Conv2D",
    "16x13x13x64, 3x3, rate 2",
    lambda d: of(d.uniform((16, 13, 13, 64)), d.uniform((3, 3, 64, 64)), strides=[1, 1, 1, 1], padding="SAME", dilations=[1, 2, 2, 1]),
)
same("Conv3D", "2x17x17x17x16 3x3x3 to 16", lambda d: of(d.uniform((2, 17, 17, 17, 16)), d.uniform((3, 3, 3, 16, 16)), strides=[1] * 5, padding="SAME"))
same("Conv3D", "2x9x33x33x3 3x5x5 to 20", lambda d: of(d.uniform((2, 9, 33, 33, 3)), d.uniform((3, 5, 5, 3, 20)), strides=[1, 1, 2, 2, 1], padding="SAME"))
same(
    "MaxPool3D AvgPool3D",
    "2x2x2 of 4x16x30x30x16",
    lambda d: of(d.uniform((4, 16, 30, 30, 16)), ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME"),
)
same(
    "MaxPool3D AvgPool3D", "3x3x3/1 of 2x9x17x17x5", lambda d: of(d.uniform((2, 9, 17, 17, 5)), ksize=[1, 3, 3, 3, 1], strides=[1, 1, 1, 1, 1], padding="SAME")
)
for _x, _k, _s in (
    ((8, 33, 33, 7), 3, 2),
    ((8, 33, 33, 64), 3, 1),
    ((32, 28, 28, 1), 2, 2),
    ((4, 7, 7, 1024), 7, 1),
    ((8, 112, 112, 3), 2, 2),
    ((8, 31, 31, 100), 5, 3),
    ((8, 28, 28, 64), 5, 1),
    ((8, 14, 14, 512), 7, 1),
    ((4, 35, 35, 192), 3, 1),
):
    _win: dict[str, Any] = dict(ksize=[1, _k, _k, 1], strides=[1, _s, _s, 1], padding="SAME")
    _text = f"{_k}x{_k}/{_s} of {'x'.join(map(str, _x))}"
    _y = (_x[0], (_x[1] + _s - 1) // _s, (_x[2] + _s - 1) // _s, _x[3])
    same("MaxPool AvgPool", _text, lambda d, x=_x, w=_win: of(d.uniform(x), **w), "float32 float64 float16 bfloat16" if _x[1] == 33 else "float32")
    same("AvgPoolGrad", _text, lambda d, x=_x, y=_y, w=_win: of(int32(*x), d.uniform(y), **w))
    same("MaxPoolGrad", _text, lambda d, x=_x, y=_y, w=_win: of(d.uniform(x), d.uniform(y), d.uniform(y), **w))
    same("MaxPoolWithArgmax", _text, lambda d, x=_x, w=_win: of(d.uniform(x), **w))
for _x, _k, _mult, _s in (
    ((8, 33, 33, 7), 3, 1, 1),
    ((8, 33, 33, 32), 3, 2, 1),
    ((8, 33, 33, 64), 5, 1, 2),
    ((1, 56, 56, 72), 3, 1, 2),
    ((4, 14, 14, 480), 5, 1, 1),
    ((8, 64, 64, 3), 3, 8, 1),
    ((4, 28, 28, 7), 7, 1, 1),
    ((4, 64, 64, 3), 5, 1, 1),
):
    _at = dict(strides=[1, _s, _s, 1], padding="SAME")
    _f = (_k, _k, _x[3], _mult)
    _y = (_x[0], (_x[1] + _s - 1) // _s, (_x[2] + _s - 1) // _s, _x[3] * _mult)
    _text = f"{'x'.join(map(str, _x))} by {_k}x{_k}/{_s} x {_mult}"
    add(
        "DepthwiseConv2dNative",
        _text,
        lambda d, x=_x, f=_f, a=_at: of(d.uniform(x), d.uniform(f), **a),
        "float32 float64" if _x[3] == 32 or _x[0] == 4 else "float32",
    )
    add("DepthwiseConv2dNativeBackpropInput", _text, lambda d, x=_x, f=_f, y=_y, a=_at: of(int32(*x), d.uniform(f), d.uniform(y), **a))
    add("DepthwiseConv2dNativeBackpropFilter", _text, lambda d, x=_x, f=_f, y=_y, a=_at: of(d.uniform(x), int32(*f), d.uniform(y), **a))
same("Dilation2D", "8x33x33x7 3x3", lambda d: of(d.uniform((8, 33, 33, 7)), d.uniform((3, 3, 7)), strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME"))
for _n in (1, 3, 7, 10, 50):
    same("BiasAdd", f"{300_000 // _n} x {_n}", lambda d, n=_n: of(d.uniform((300_000 // n, n)), d.uniform((n,))), "float32 float64 float16 bfloat16")
    same("BiasAddGrad", f"{300_000 // _n} x {_n}", lambda d, n=_n: of(d.uniform((300_000 // n, n))), "float32 float64 float16")
same("BiasAdd", "16x50x17x17 channels first", lambda d: of(d.uniform((16, 50, 17, 17)), d.uniform((50,)), data_format="NCHW"))
same("BiasAddGrad", "16x50x17x17 channels first", lambda d: of(d.uniform((16, 50, 17, 17)), data_format="NCHW"), "float32 float64 float16")
for _r, _c in ((100_000, 2), (30_000, 10), (5000, 33), (300, 999), (3, 99_999), (777, 1)):
    same("Softmax LogSoftmax", f"{_r}x{_c}", lambda d, r=_r, c=_c: of(d.uniform((r, c))), "float32 float64 float16")
    same("SoftmaxCrossEntropyWithLogits", f"{_r}x{_c}", lambda d, r=_r, c=_c: of(d.uniform((r, c)), d.rng.uniform(0, 1, (r, c))), "float32 float64")
    same("SparseSoftmaxCrossEntropyWithLogits", f"{_r}x{_c}", lambda d, r=_r, c=_c: of(d.uniform((r, c)), d.rng.integers(0, c, r)), "float32 float64")
for _x in ((8, 33, 33, 7), (32, 14, 14, 64), (2, 64, 64, 3), (64, 4, 4, 256)):
    _c = _x[3]
    for _op in ("FusedBatchNorm", "FusedBatchNormV3"):
        add(
            _op,
            f"{'x'.join(map(str, _x))} training",
            lambda d, x=_x, c=_c: of(d.uniform(x), d.uniform((c,), 0.5, 1), d.uniform((c,)), np.zeros(0), np.zeros(0), is_training=True),
        )
        add(
            _op,
            f"{'x'.join(map(str, _x))} inference",
            lambda d, x=_x, c=_c: of(d.uniform(x), d.uniform((c,), 0.5, 1), d.uniform((c,)), d.uniform((c,)), d.uniform((c,), 0.5, 1), is_training=False),
        )
    add(
        "FusedBatchNormGrad",
        f"{'x'.join(map(str, _x))}",
        lambda d, x=_x, c=_c: of(d.uniform(x), d.uniform(x), d.uniform((c,), 0.5, 1), d.uniform((c,)), d.uniform((c,), 0.5, 1)),
    )
same("LRN", "8x33x33x7", lambda d: of(d.uniform((8, 33, 33, 7))))
same(
    "FractionalMaxPool FractionalAvgPool",
    "8x33x33x7",
    lambda d: of(d.uniform((8, 33, 33, 7)), pooling_ratio=[1.0, 1.4, 1.7, 1.0], deterministic=True, seed=3, seed2=5),
)

# ---- images ----
for _x, _to in (
    ((4, 99, 77, 3), (150, 133)),
    ((4, 200, 200, 1), (99, 99)),
    ((2, 33, 33, 64), (66, 66)),
    ((8, 300, 300, 3), (224, 224)),
    ((1, 500, 500, 4), (1000, 1000)),
):
    same(
        "ResizeBilinear ResizeNearestNeighbor ResizeBicubic ResizeArea",
        f"{'x'.join(map(str, _x))} to {_to[0]}x{_to[1]}",
        lambda d, x=_x, to=_to: of(d.uniform(x, 0, 255), int32(*to)),
        "float32 uint8 float64",
    )
    same(
        "ResizeBilinear",
        f"{'x'.join(map(str, _x))} to {_to[0]}x{_to[1]}, corners",
        lambda d, x=_x, to=_to: of(d.uniform(x, 0, 255), int32(*to), align_corners=True),
    )
    same("ResizeBilinearGrad", f"{'x'.join(map(str, _x))} from {_to[0]}x{_to[1]}", lambda d, x=_x, to=_to: of(d.uniform((x[0], *to, x[3])), d.uniform(x)))
    same(
        "ResizeNearestNeighborGrad",
        f"{'x'.join(map(str, _x))} from {_to[0]}x{_to[1]}",
        lambda d, x=_x, to=_to: of(d.uniform((x[0], *to, x[3])), int32(*x[1:3])),
    )
    same("ResizeBicubicGrad", f"{'x'.join(map(str, _x))} from {_to[0]}x{_to[1]}", lambda d, x=_x, to=_to: of(d.uniform((x[0], *to, x[3])), d.uniform(x)))
same("AdjustContrastv2", "4x99x77x3", lambda d: of(d.uniform((4, 99, 77, 3), 0, 1), np.array(1.3)))
same("HSVToRGB RGBToHSV", "33000", lambda d: of(d.uniform((33_000, 3), 0, 1)), "float64 float16 bfloat16")
same("AdjustHue AdjustSaturation", "4x99x77x3", lambda d: of(d.uniform((4, 99, 77, 3), 0, 1), np.array(0.3)))
same("CropAndResize", "100 of 7x7x32", lambda d: of(d.uniform((2, 50, 50, 32)), boxes(d, 100), d.rng.integers(0, 2, 100), int32(7, 7)))
same("NonMaxSuppressionV3", "500", lambda d: of(boxes(d, 500), d.rng.uniform(0, 1, 500), np.array(50), np.array(0.5), np.array(0.1)))
same("DrawBoundingBoxes", "4x99x99x3", lambda d: of(d.uniform((4, 99, 99, 3), 0, 1), boxes(d, 4 * 9).reshape(4, 9, 4)))
same("ExtractGlimpse", "32 of 60x60x3", lambda d: of(d.uniform((32, 60, 60, 3)), int32(20, 20), d.rng.uniform(-0.5, 0.5, (32, 2))))

# ---- random, signals, sparse, text ----
same("RandomUniform RandomStandardNormal TruncatedNormal", "333x777", lambda d: of(int32(333, 777), seed=7), "float32 float64 float16")
same("RandomUniform RandomStandardNormal TruncatedNormal", "100", lambda d: of(int32(100), seed=7))
same("RandomUniformInt", "333x777", lambda d: of(int32(333, 777), np.array(3), np.array(1000), seed=7), "int32 int64")
same("RandomShuffle", "77777x3", lambda d: of(d.any((77_777, 3)), seed=7), "float32 uint8 int64")
same("RandomGamma", "20 x 5000", lambda d: of(int32(20), d.uniform((5000,), 0.5, 3), seed=7))
same("RandomPoissonV2", "20 x 5000", lambda d: of(int32(20), d.uniform((5000,), 0.5, 20), seed=7))
same("Multinomial", "1000x10, 10 each", lambda d: of(d.uniform((1000, 10)), np.array(10), seed=7))
for _n in (2, 3, 4, 8, 60, 64, 100, 243, 1000, 1001, 4096):
    same("FFT IFFT", f"{200_000 // _n} of {_n}", lambda d, n=_n: of(d.uniform((200_000 // n, n))), "complex64 complex128")
    add("RFFT", f"{200_000 // _n} of {_n}", lambda d, n=_n: of(d.uniform((200_000 // n, n)), int32(n)))
    add("IRFFT", f"{200_000 // _n} of {_n}", lambda d, n=_n: of(d.uniform((200_000 // n, n // 2 + 1)), int32(n)), "complex64")
same("FFT2D", "1000 of 8x8", lambda d: of(d.uniform((1000, 8, 8))), "complex64 complex128")
same("FFT2D", "2000 of 4x4", lambda d: of(d.uniform((2000, 4, 4))), "complex64")
same("RFFT2D", "1000 of 8x8", lambda d: of(d.uniform((1000, 8, 8)), int32(8, 8)))
same("FFT2D", "30 of 60x60", lambda d: of(d.uniform((30, 60, 60))), "complex64")
same("FFT2D", "3 of 243x99", lambda d: of(d.uniform((3, 243, 99))), "complex64")
same("FFT3D", "32x32x32", lambda d: of(d.uniform((32, 32, 32))), "complex64")
for _n in (1, 3, 17, 100):
    add("SparseTensorDenseMatMul", f"50k by {_n}", lambda d, n=_n: of(*sparse(d, 5000, 3000, 50_000), d.uniform((3000, n))), "float32 float64")
    add("SparseTensorDenseMatMul", f"50k adjoint by {_n}", lambda d, n=_n: of(*sparse(d, 5000, 3000, 50_000), d.uniform((5000, n)), adjoint_a=True))
same("SparseReduceSum", "50k over 0", lambda d: of(*sparse(d, 5000, 3000, 50_000), int32(0)))
same("SparseAdd", "2 x 50k", lambda d: of(*sparse(d, 5000, 3000, 50_000), *sparse(d, 5000, 3000, 50_000), np.array(0.0)))
same("SparseConcat", "2 x 50k on 0", lambda d: of(*zip(*[sparse(d, 5000, 3000, 50_000) for _ in range(2)]), concat_dim=0))
same("SparseConcat", "2 x 50k on 1", lambda d: of(*zip(*[sparse(d, 5000, 3000, 50_000) for _ in range(2)]), concat_dim=1))
same("SparseSlice", "50k", lambda d: of(*sparse(d, 5000, 3000, 50_000), np.array([100, 200]), np.array([3000, 2000])))
same("SparseSplit", "50k in 3 on 1", lambda d: of(np.array(1), *sparse(d, 5000, 3000, 50_000), num_split=3))
same("SparseSoftmax", "50k", lambda d: of(*sparse(d, 5000, 3000, 50_000)))
same("SparseReorder", "50k", lambda d: (lambda s, p: of(s[0][p], s[1], s[2]))(sparse(d, 5000, 3000, 50_000), d.rng.permutation(50_000)))
same("SparseReshape", "50k", lambda d: of(sparse(d, 5000, 3000, 50_000)[0], np.array([5000, 3000]), np.array([3000, -1])))
same("SparseDenseCwiseMul SparseDenseCwiseAdd", "50k", lambda d: of(*sparse(d, 5000, 3000, 50_000), d.uniform((5000, 3000))))
same("SparseDenseCwiseMul", "50k by a row", lambda d: of(*sparse(d, 5000, 3000, 50_000), d.uniform((3000,))))
same("SparseToDense", "50k of rank 1", lambda d: of(np.sort(d.rng.permutation(M)[:50_000]), np.array([M]), d.uniform((50_000,)), d.uniform()))
same("SparseFillEmptyRows", "50k", lambda d: of(*sparse(d, 5000, 3000, 50_000), d.uniform()))
same("SparseTensorDenseAdd", "50k", lambda d: of(*sparse(d, 5000, 3000, 50_000), d.uniform((5000, 3000))))
same("StringJoin", "2 x 20k", lambda d: of([texts(20_000), texts(20_000)], separator="-"))
same("StringToHashBucketFast StringToHashBucket", "20k", lambda d: of(texts(20_000), num_buckets=1000))
same("StringToHashBucketStrong", "20k", lambda d: of(texts(20_000), num_buckets=1000, key=[1, 2]))
same("StringLength StringUpper EncodeBase64", "20k", lambda d: of(texts(20_000)))
same("Substr", "20k", lambda d: of(texts(20_000), np.array(2), np.array(5)))
same("ReduceJoin", "4000x5", lambda d: of(texts(20_000).reshape(4000, 5), int32(1), separator=" "))
same("StringSplitV2", "20k", lambda d: of(texts(20_000), np.array(b"")))
same("RegexReplace", "20k, a word", lambda d: of(texts(20_000), np.array(b"holds"), np.array(b"has")))
same("RegexReplace", "20k, classes", lambda d: of(texts(20_000), np.array(b"[aeiou]([a-z])"), np.array(b"\\1")))
same("RegexFullMatch", "20k, alternatives", lambda d: of(texts(20_000), np.array(b".*(1|22|333) things?")))
same("UnicodeDecode", "20k", lambda d: of(texts(20_000), input_encoding="UTF-8"))
same("StringToNumber", "50k integers", lambda d: of(np.array([b"%d" % x for x in d.rng.integers(0, 1 << 30, 50_000)], object)), "float32 int32 int64 float64")
same("AsString", "50k", lambda d: of(d.any((50_000,))), "int32 int64 float64")
same("Equal NotEqual", "20k", lambda d: of(texts(20_000), texts(20_000)), "string")
same("GatherV2", "20k strings", lambda d: of(texts(20_000), d.rng.integers(0, 20_000, 20_000), np.array(0)), "string")
