// SPDX-License-Identifier: Apache-2.0
// Indices, counts and values that kernels must not trust, and state that is not there.
#include <limits>

#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

using absl::StatusCode;
const wire::AttrValue kF32 = Type(DType::kFloat);
const wire::AttrValue kI32 = Type(DType::kInt32);
const wire::AttrValue kI64 = Type(DType::kInt64);

// "v": a reference variable of this shape; "init" makes it ones.
GraphMaker WithVariable(const Dims& dims, bool init = true) {
  GraphMaker g;
  g.Raw("v", "VariableV2", {}, {{"dtype", kF32}, {"shape", ShapeOf(dims)}});
  wire::TensorProto ones = Values(DType::kFloat, dims);
  ones.float_val = {1};
  // Under another op than Const, so that the harness does not make it a feed of "bad".
  if (init) {
    g.I32("one_i", {}, {1});
    wire::TensorProto shape = Values(DType::kInt32, {static_cast<int64_t>(dims.size())});
    for (int64_t d : dims) shape.int_val.push_back(static_cast<int32_t>(d));
    g.Raw("init_shape", "Empty", {"init_dims"}, {{"dtype", kF32}, {"init", Bool(true)}});
    g.Const("init_dims", DType::kInt32, shape);
    g.Raw("init", "Assign", {"v", "init_shape"}, {{"T", kF32}});
  }
  return g;
}

TEST(BadInput, K08_ScatterOfAnotherShape) {
  for (const char* op : {"ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv"}) {
    GraphMaker g = WithVariable({1});
    g.I32("i", {1}, {0}).F32("u", {5}, {1}).Op("bad", op, {"v", "i", "u"}, {{"T", kF32}});
    Check(g, kInvalid, How::kConstants);
    for (int32_t i : {-1, 1, INT32_MAX, INT32_MIN}) {
      GraphMaker past = WithVariable({1});
      past.I32("i", {1}, {i}).F32("u", {1}, {1}).Op("bad", op, {"v", "i", "u"}, {{"T", kF32}});
      Check(past, kInvalid, How::kConstants);
    }
  }
}

TEST(BadInput, K09_IndicesOutOfRange) {
  for (int64_t i : {int64_t{-1}, int64_t{3}, int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
    GraphMaker gather;
    gather.F32("x", {3, 2}).I64("i", {1}, {i}).Op("bad", "Gather", {"x", "i"});
    Check(gather);
    GraphMaker v2;
    v2.F32("x", {3, 2}).I64("i", {1}, {i}).I32("a", {}).Op("bad", "GatherV2", {"x", "i", "a"});
    Check(v2);
    GraphMaker nd;
    nd.F32("x", {3, 2}).I64("i", {1, 2}, {i, 0}).Op("bad", "GatherNd", {"x", "i"});
    Check(nd);
    GraphMaker scatter;
    scatter.I64("i", {1, 1}, {i}).F32("u", {1}, {1}).I64("s", {1}, {3}).Op("bad", "ScatterNd", {"i", "u", "s"});
    Check(scatter);
    GraphMaker add;
    add.F32("x", {3}).I64("i", {1, 1}, {i}).F32("u", {1}, {1}).Op("bad", "TensorScatterAdd", {"x", "i", "u"});
    Check(add);
    GraphMaker unravel;
    unravel.I64("i", {1}, {i}).F32("x", {3, 2}).Op("bad", "ParallelDynamicStitch", {"i", "x"}, {{"N", Int(1)}});
    Check(unravel);
  }
  GraphMaker deep;
  deep.F32("x", {3, 2}).I64("i", {1, 3}).Op("bad", "GatherNd", {"x", "i"});
  Check(deep);
  GraphMaker shape;
  shape.I64("i", {2, 1}, {0}).F32("u", {3}, {1}).I64("s", {1}, {3}).Op("bad", "ScatterNd", {"i", "u", "s"});
  Check(shape);
  for (int64_t n : {int64_t{-1}, INT64_MAX, int64_t{1} << 45}) {
    GraphMaker huge;
    huge.I64("i", {1, 1}, {0}).F32("u", {1}, {1}).I64("s", {1}, {n}).Op("bad", "ScatterNd", {"i", "u", "s"});
    Check(huge, kTooLarge);
  }
}

TEST(BadInput, K10_GatherBatchDims) {
  for (int64_t n : {int64_t{10}, int64_t{-10}, int64_t{3}, INT64_MAX, INT64_MIN}) {
    GraphMaker g;
    g.F32("x", {2, 2})
        .I32("i", {2, 2})
        .I32("a", {}, {1})
        .Op("bad", "GatherV2", {"x", "i", "a"}, {{"batch_dims", Int(n)}});
    Check(g);
  }
  GraphMaker none;
  none.F32("x", {0, 2})
      .I32("i", {0, 2})
      .I32("a", {}, {1})
      .Op("bad", "GatherV2", {"x", "i", "a"}, {{"batch_dims", Int(1)}});
  Check(none, {StatusCode::kOk});
}

TEST(BadInput, K11_DynamicStitch) {
  GraphMaker lists;
  lists.I32("i", {1}).F32("x", {1}).Raw("bad", "DynamicStitch", {"i", "x", "x"}, {{"N", Int(1)}, {"T", kF32}});
  Check(lists);
  for (int32_t i : {static_cast<int32_t>(0xdeadbeef), -1, INT32_MIN, INT32_MAX}) {
    GraphMaker g;
    g.I32("i", {1}, {i}).F32("x", {1}).Raw("bad", "DynamicStitch", {"i", "x"}, {{"N", Int(1)}, {"T", kF32}});
    Check(g, kTooLarge);
  }
  GraphMaker shape;
  shape.I32("i", {2}).F32("x", {1}).Raw("bad", "DynamicStitch", {"i", "x"}, {{"N", Int(1)}, {"T", kF32}});
  Check(shape);
  GraphMaker partition;
  partition.F32("x", {2}).I32("p", {2}, {0, 9}).Op("bad", "DynamicPartition", {"x", "p"}, {{"num_partitions", Int(2)}});
  Check(partition);
}

TEST(BadInput, K12_SplitVSizes) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{-1, -2}, {-1, -1}, {5, 5}, {-5, 9}, {INT64_MAX, 1}, {INT64_MAX, INT64_MAX}, {1, 1}}) {
    GraphMaker g;
    g.F32("x", {4}).I64("s", {2}, sizes).I32("d", {}).Op("bad", "SplitV", {"x", "s", "d"}, {{"num_split", Int(2)}});
    Check(g);
  }
  GraphMaker empty;
  empty.F32("x", {0})
      .I64("s", {2}, {-1, -2})
      .I32("d", {})
      .Op("bad", "SplitV", {"x", "s", "d"}, {{"num_split", Int(2)}});
  Check(empty);
  GraphMaker count;
  count.F32("x", {4}).I64("s", {3}, {1}).I32("d", {}).Op("bad", "SplitV", {"x", "s", "d"}, {{"num_split", Int(2)}});
  Check(count);
  GraphMaker uneven;
  uneven.I32("d", {}).F32("x", {4}).Op("bad", "Split", {"d", "x"}, {{"num_split", Int(3)}});
  Check(uneven);
}

TEST(BadInput, K14_OpsOnNothing) {
  GraphMaker reverse;
  reverse.F32("x", {0, 3}).Bools("d", {2}, {true}).Op("bad", "Reverse", {"x", "d"});
  Check(reverse, kOk);
  GraphMaker product;
  product.F32("a", {1, 3}).F32("b", {3, 0}).Op("bad", "MatMul", {"a", "b"});
  Check(product, kOk);
  GraphMaker inner;
  inner.F32("a", {2, 0}).F32("b", {0, 3}).Op("bad", "MatMul", {"a", "b"});
  Check(inner, kOk);
  GraphMaker softmax;
  softmax.F32("a", {2, 0}).Op("bad", "Softmax", {"a"});
  Check(softmax, kOk);
  GraphMaker max;
  max.F32("a", {2, 0}).I32("d", {}, {1}).Op("bad", "ArgMax", {"a", "d"});
  Check(max);
  GraphMaker transpose;
  transpose.F32("x", {0, 3}).I32("p", {2}, {1, 0}).Op("bad", "Transpose", {"x", "p"});
  Check(transpose, kOk);
  GraphMaker top;
  top.F32("x", {3, 0}).I32("k", {}).Op("bad", "TopKV2", {"x", "k"});
  Check(top, kOk);
}

TEST(BadInput, K14_LongAxesBesideEmptyOnes) {
  const int64_t most = int64_t{1} << 40;
  GraphMaker tree;
  tree.I32("ids", {0, 1, most}).I32("parents", {0, 1, most}).I32("lengths", {1}, {3}).I32("end", {}, {0});
  Check(tree.Op("bad", "GatherTree", {"ids", "parents", "lengths", "end"}), kOk);
  GraphMaker g;
  g.F32("dy", {most, 0}).F32("x", {most, 0}).F32("low", {}, {0}).F32("high", {}, {1});
  Check(g.Op("bad", "QuantizeAndDequantizeV4Grad", {"dy", "x", "low", "high"}, {{"axis", Int(0)}}), kOk);
}

TEST(BadInput, K15_GradientsOfUnequalCounts) {
  for (const char* op : {"ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad", "TanhGrad",
                         "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad", "LeakyReluGrad"}) {
    SCOPED_TRACE(op);
    GraphMaker g;
    g.F32("a", {5}, {1}).F32("b", {3}, {1}).Op("bad", op, {"a", "b"});
    Check(g);
    GraphMaker empty;
    empty.F32("a", {5}, {1}).F32("b", {0}).Op("bad", op, {"a", "b"});
    Check(empty);
  }
}

TEST(BadInput, K16_IntegerDivision) {
  for (const char* op : {"Div", "FloorDiv", "TruncateDiv", "Mod", "FloorMod", "TruncateMod"}) {
    SCOPED_TRACE(op);
    GraphMaker zero;
    zero.I32("a", {3}, {1}).I32("b", {3}, {0}).Op("bad", op, {"a", "b"}, {{"T", kI32}});
    const bool truncates = std::string(op).starts_with("Truncate");
    Check(zero, {truncates ? StatusCode::kInternal : StatusCode::kInvalidArgument});
    GraphMaker overflow32;
    overflow32.I32("a", {3}, {INT32_MIN}).I32("b", {}, {-1}).Op("bad", op, {"a", "b"}, {{"T", kI32}});
    Check(overflow32, kOk);
    GraphMaker overflow64;
    overflow64.I64("a", {3}, {INT64_MIN}).I64("b", {}, {-1}).Op("bad", op, {"a", "b"}, {{"T", kI64}});
    Check(overflow64, kOk);
  }
  GraphMaker power;
  power.I32("a", {}, {2}).I32("b", {}, {-1}).Op("bad", "Pow", {"a", "b"});
  Check(power);
}

TEST(BadInput, K17_CountsFromData) {
  for (int32_t k : {-1, 5, INT32_MAX, INT32_MIN}) {
    GraphMaker top;
    top.F32("x", {4}).I32("k", {}, {k}).Op("bad", "TopKV2", {"x", "k"});
    Check(top);
    if (k == 5 || k == INT32_MAX) continue;
    GraphMaker bins;
    bins.I32("x", {4}).I32("n", {}, {k}).F32("w", {0}).Op("bad", "Bincount", {"x", "n", "w"});
    Check(bins);
    GraphMaker hot;
    hot.I32("i", {2}).I32("d", {}, {k}).F32("on", {}, {1}).F32("off", {}).Op("bad", "OneHot", {"i", "d", "on", "off"});
    Check(hot);
    GraphMaker many;
    many.F32("x", {1, 2}).I32("n", {}, {k}).Op("bad", "Multinomial", {"x", "n"});
    Check(many);
  }
  GraphMaker draws;
  draws.F32("x", {100, 2}).I32("n", {}, {INT32_MAX}).Op("bad", "Multinomial", {"x", "n"});
  Check(draws, kTooLarge);
  GraphMaker negative;
  negative.I32("x", {4}, {-5}).I32("n", {}, {3}).F32("w", {0}).Op("bad", "Bincount", {"x", "n", "w"});
  Check(negative);
  GraphMaker negative_in_row;
  negative_in_row.I32("x", {1, 4}, {-5}).I32("n", {}, {3}).F32("w", {0}).Op("bad", "DenseBincount", {"x", "n", "w"});
  Check(negative_in_row);
  GraphMaker cube;
  cube.I32("x", {1, 1, 1}).I32("n", {}, {3}).F32("w", {0}).Op("bad", "DenseBincount", {"x", "n", "w"});
  Check(cube);
  GraphMaker other_weights;
  other_weights.I32("x", {1, 4}).I32("n", {}, {3}).F32("w", {4}).Op("bad", "DenseBincount", {"x", "n", "w"});
  Check(other_weights);
}

TEST(BadInput, K18_StateThatIsNotThere) {
  const Codes none = {StatusCode::kFailedPrecondition, StatusCode::kNotFound};
  GraphMaker read = WithVariable({2}, false);
  read.Op("bad", "Identity", {"v"}, {{"T", kF32}});
  Check(read, none, How::kConstants);
  GraphMaker assign = WithVariable({2}, false);
  assign.Raw("w", "VariableV2", {}, {{"dtype", kF32}, {"shape", ShapeOf({2})}});
  assign.Op("bad", "Assign", {"v", "w"}, {{"T", kF32}});
  Check(assign, none, How::kConstants);
  GraphMaker add = WithVariable({2}, false);
  add.F32("x", {2}, {1}).Op("bad", "AssignAdd", {"v", "x"}, {{"T", kF32}});
  Check(add, none, How::kConstants);
  GraphMaker scatter = WithVariable({2}, false);
  scatter.I32("i", {1}).F32("x", {1}, {1}).Op("bad", "ScatterAdd", {"v", "i", "x"}, {{"T", kF32}});
  Check(scatter, none, How::kConstants);
  GraphMaker handle;
  handle.Raw("h", "VarHandleOp", {}, {{"dtype", kF32}, {"shape", ShapeOf({2})}, {"shared_name", Str("none")}});
  handle.I32("i", {1}).Op("bad", "ResourceGather", {"h", "i"}, {{"dtype", kF32}});
  Check(handle, none, How::kConstants);
}

TEST(BadInput, K18_AssignOfAnotherShape) {
  GraphMaker g = WithVariable({2});
  g.F32("x", {3}, {1}).Op("bad", "Assign", {"v", "x"}, {{"T", kF32}});
  Check(g, kInvalid, How::kConstants);
  GraphMaker add = WithVariable({2});
  add.F32("x", {3}, {1}).Op("bad", "AssignAdd", {"v", "x"}, {{"T", kF32}});
  Check(add, kInvalid, How::kConstants);
}

TEST(BadInput, K18_DeadOutputOfASwitch) {
  if (!HasOp("Switch")) GTEST_SKIP() << "no control flow";
  GraphMaker g;
  g.F32("x", {}, {1}).Bools("p", {}, {true}).Op("s", "Switch", {"x", "p"}).Op("bad", "Neg", {"s"}, {{"T", kF32}});
  Check(g);
  for (const Dims& dims : {Dims{0}, Dims{2}}) {
    GraphMaker p;
    p.F32("x", {}, {1}).Bools("p", dims, {true}).Op("bad", "Switch", {"x", "p"});
    Check(p);
  }
}

TEST(BadInput, K19_EmptyWhereAScalarIsRead) {
  GraphMaker segments;
  segments.F32("x", {2}).I32("i", {2}).I32("n", {0}).Op("bad", "UnsortedSegmentSum", {"x", "i", "n"});
  Check(segments);
  GraphMaker k;
  k.F32("x", {4}).I32("k", {0}).Op("bad", "TopKV2", {"x", "k"});
  Check(k);
  GraphMaker depth;
  depth.I32("i", {2}).I32("d", {0}).F32("on", {}, {1}).F32("off", {}).Op("bad", "OneHot", {"i", "d", "on", "off"});
  Check(depth);
  GraphMaker axis;
  axis.I32("d", {0}).F32("x", {4}).Op("bad", "Split", {"d", "x"}, {{"num_split", Int(2)}});
  Check(axis);
  GraphMaker concat;
  concat.F32("x", {4}).I32("d", {0}).Op("bad", "ConcatV2", {"x", "x", "d"});
  Check(concat);
  GraphMaker range;
  range.I32("a", {0}).I32("b", {}, {1}).Op("bad", "Range", {"a", "b", "b"});
  Check(range);
  GraphMaker scan;
  scan.F32("x", {2}).I32("a", {0}).Op("bad", "Cumsum", {"x", "a"});
  Check(scan);
  GraphMaker restore;
  restore.Strings("p", {0}).Strings("n", {1}, {"a"}).Strings("s", {1}, {""});
  wire::AttrValue types = Ints({});
  types.list->type = {1};
  restore.Raw("bad", "RestoreV2", {"p", "n", "s"}, {{"dtypes", types}});
  Check(restore);
}

TEST(BadInput, K22_BoolBytesOtherThanZeroAndOne) {
  // Every byte but 0 means true, wherever it comes from.
  wire::TensorProto value = Values(DType::kBool, {4});
  value.tensor_content = std::string("\x02\xff\x00\x80", 4);
  GraphMaker g;
  g.Const("x", DType::kBool, value)
      .F32("a", {4}, {1})
      .F32("b", {4}, {2})
      .Op("bad", "Select", {"x", "a", "b"}, {{"T", kF32}});
  Check(g, kOk);
  GraphMaker where;
  where.Const("x", DType::kBool, value).Op("bad", "Where", {"x"}, {{"T", Type(DType::kBool)}});
  Check(where, kOk);
  GraphMaker cast;
  cast.Const("x", DType::kBool, value).Op("bad", "Cast", {"x"}, {{"SrcT", Type(DType::kBool)}, {"DstT", kI32}});
  Check(cast, kOk);
}

TEST(BadInput, K21_FloatsThatFitNoInteger) {
  for (float f : {std::numeric_limits<float>::quiet_NaN(), 1e38f, -1e38f, std::numeric_limits<float>::infinity()}) {
    for (DType to : {DType::kInt32, DType::kInt64, DType::kUInt8, DType::kInt8, DType::kBool}) {
      GraphMaker g;
      g.F32("x", {9}, {f}).Op("bad", "Cast", {"x"}, {{"SrcT", kF32}, {"DstT", Type(to)}});
      Check(g, kOk);
    }
  }
}

TEST(BadInput, K21_HistogramsOfAnything) {
  for (float f : {std::numeric_limits<float>::quiet_NaN(), 1e38f, -1e38f, std::numeric_limits<float>::infinity()}) {
    GraphMaker g;
    g.Strings("tag", {}, {"t"}).F32("x", {9}, {0, f}).Op("bad", "HistogramSummary", {"tag", "x"}, {{"T", kF32}});
    Check(g, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
  }
  GraphMaker none;
  none.Strings("tag", {0}).F32("x", {3}).Op("bad", "HistogramSummary", {"tag", "x"}, {{"T", kF32}});
  Check(none);
}

TEST(BadInput, K24_MatricesThatAreNone) {
  const auto refuse = [](const char* op, const Dims& a, const Dims& b) {
    SCOPED_TRACE(op);
    GraphMaker g;
    g.F32("a", a, {1}).F32("b", b, {1}).Op("bad", op, {"a", "b"});
    Check(g);
  };
  for (const char* op : {"MatrixTriangularSolve", "MatrixSolve"}) {
    refuse(op, {}, {});
    refuse(op, {3}, {3});
    refuse(op, {2, 3}, {2, 1});
    refuse(op, {3, 3}, {2, 1});
    refuse(op, {3, 3}, {3});
    refuse(op, {0, 3}, {0, 1});
    refuse(op, {3, 0, 0}, {3, 1, 1});
  }
  for (const char* op : {"Cholesky", "MatrixInverse", "MatrixDeterminant"}) {
    for (const Dims& dims : {Dims{}, Dims{4}, Dims{2, 3}, Dims{0, 3}, Dims{2, 3, 0}}) {
      SCOPED_TRACE(op);
      GraphMaker g;
      g.F32("a", dims, {1}).Op("bad", op, {"a"});
      Check(g);
    }
  }
}

TEST(BadInput, D03_ImagesThatAreNone) {
  for (const Dims& dims : {Dims{}, Dims{3}, Dims{1, 2, 2}, Dims{1, 2, 2, 2}, Dims{1, 2, 2, 5}, Dims{1, 2, 2, 0},
                           Dims{1, 0, 2, 3}, Dims{1, 2, 0, 1}, Dims{0, 2, 2, 3}}) {
    GraphMaker g;
    g.Strings("tag", {}, {"t"}).F32("x", dims).Op("bad", "ImageSummary", {"tag", "x"}, {{"T", kF32}});
    Check(g, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
  }
}

TEST(BadInput, K25_OneBufferAsEveryInput) {
  GraphMaker g;
  g.F32("x", {4}, {1, 2, 3, 4}).Op("bad", "AddN", {"x", "x", "x"});
  Check(g, kOk);
  GraphMaker assign = WithVariable({2});
  assign.Op("bad", "Assign", {"v", "v"}, {{"T", kF32}});
  Check(assign, kOk, How::kConstants);
  GraphMaker add = WithVariable({2});
  add.Op("bad", "AssignAdd", {"v", "v"}, {{"T", kF32}});
  Check(add, kOk, How::kConstants);
}

// Rows that take no memory, because nothing is in them, and splits that say more rows than memory has.
TEST(BadInput, K26_RaggedRowsWithoutEnd) {
  const int64_t many = int64_t{1} << 40;
  GraphMaker nothing;
  nothing.I64("splits", {2}, {0, many}).F32("values", {many, 0});
  nothing.Op(
      "bad", "RaggedTensorToSparse", {"splits", "values"}, {{"RAGGED_RANK", Int(1)}, {"T", kF32}, {"Tsplits", kI64}});
  Check(nothing, kOk, How::kFed);

  constexpr int64_t kRows = 1'000'000;
  GraphMaker often;  // all rows, a million times
  often.I64("outer", {2}, {0, kRows}).I64("inner", {kRows + 1}).F32("values", {0}).I64("i", {kRows});
  often.Op("bad", "RaggedGather", {"outer", "inner", "values", "i"},
           {{"PARAMS_RAGGED_RANK", Int(2)},
            {"OUTPUT_RAGGED_RANK", Int(2)},
            {"Tvalues", kF32},
            {"Tindices", kI64},
            {"Tsplits", kI64}});
  Check(often, kTooLarge, How::kFed);

  GraphMaker variants;  // each of which takes memory
  variants.I32("splits", {4 * kRows}).F32("values", {0});
  variants.Op("bad", "RaggedTensorToVariant", {"splits", "values"},
              {{"RAGGED_RANK", Int(1)}, {"Tvalues", kF32}, {"Tsplits", kI32}, {"batched_input", Bool(true)}});
  Check(variants, kTooLarge, How::kFed);

  GraphMaker nan;
  nan.F32("start", {}, {0}).F32("limit", {}, {-1}).F32("delta", {}, {std::numeric_limits<float>::quiet_NaN()});
  nan.Op("bad", "RaggedRange", {"start", "limit", "delta"}, {{"T", kF32}, {"Tsplits", kI64}});
  Check(nan, kInvalid, How::kFed);
}

// A few symbols against very many: most of the time goes into one row of the table of distances. They are constants, so
// that the step has not yet begun.
TEST(BadInput, K27_EditDistanceToALongText) {
  const auto line = [](int64_t n) {
    std::vector<int64_t> at;
    for (int64_t i = 0; i < n; ++i) at.insert(at.end(), {0, i});
    return at;
  };
  constexpr int64_t kShort = 4'000, kLong = 500'000;
  GraphMaker g;
  g.I64("xi", {kShort, 2}, line(kShort)).I32("x", {kShort}, {1}).I64("xs", {2}, {1, kShort});
  g.I64("yi", {kLong, 2}, line(kLong)).I32("y", {kLong}, {2}).I64("ys", {2}, {1, kLong});
  g.Op("bad", "EditDistance", {"xi", "x", "xs", "yi", "y", "ys"}, {{"T", kI32}});
  CheckEndless(g);
}

}  // namespace
}  // namespace millrace::bad_inputs
