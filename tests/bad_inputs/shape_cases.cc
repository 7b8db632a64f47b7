// SPDX-License-Identifier: Apache-2.0
// Sizes, axes and permutations that arithmetic on shapes must not trust.
#include <limits>

#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

const wire::AttrValue kF32 = Type(DType::kFloat);
const wire::AttrValue kI32 = Type(DType::kInt32);
const wire::AttrValue kI64 = Type(DType::kInt64);

TEST(BadInput, S01_ReshapeToRank255) {
  GraphMaker g;
  g.F32("x", {1, 1}, {1}).I64("shape", {255}, {0}).Op("bad", "Reshape", {"x", "shape"});
  Check(g);
}

TEST(BadInput, S01_ReshapeToWrongSizes) {
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{-1, -1},
        {-2, 2},
        {3},
        {int64_t{1} << 32, int64_t{1} << 32},
        {-1, 0},
        {INT64_MIN},
        {INT64_MAX, 2},
        {-1, 3}}) {
    GraphMaker g;
    g.F32("x", {4}, {1}).I64("shape", {static_cast<int64_t>(dims.size())}, dims).Op("bad", "Reshape", {"x", "shape"});
    Check(g);
  }
  GraphMaker matrix;
  matrix.F32("x", {4}, {1}).I64("shape", {2, 2}, {2}).Op("bad", "Reshape", {"x", "shape"});
  Check(matrix);
}

TEST(BadInput, S02_TileBeyond64Bits) {
  for (int64_t m : {int64_t{1} << 62, int64_t{1} << 33, INT64_MAX, int64_t{-1}, INT64_MIN}) {
    GraphMaker g;
    g.F32("x", {2, 2}, {1}).I64("m", {2}, {m}).Op("bad", "Tile", {"x", "m"});
    Check(g, kTooLarge);
  }
  GraphMaker rank;
  rank.F32("x", {2, 2}, {1}).I64("m", {3}, {1}).Op("bad", "Tile", {"x", "m"});
  Check(rank);
}

TEST(BadInput, S03_RangesWithoutEnd) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& v :
       {std::vector<float>{-1e38f, 1, 1},
        {0, 1, 0},
        {nan, 1, 1},
        {0, nan, 1},
        {0, 1, nan},
        {0, inf, 1},
        {-inf, 0, 1},
        {0, 1, 1e-38f},
        {0, 1, -1}}) {
    GraphMaker g;
    g.F32("a", {}, {v[0]}).F32("b", {}, {v[1]}).F32("c", {}, {v[2]}).Op("bad", "Range", {"a", "b", "c"});
    Check(g, kTooLarge);
  }
  for (const std::vector<int64_t>& v :
       {std::vector<int64_t>{0, INT64_MAX, 1}, {INT64_MIN, INT64_MAX, 1}, {0, 1, 0}, {INT64_MAX, INT64_MIN, -1}}) {
    GraphMaker g;
    g.I64("a", {}, {v[0]}).I64("b", {}, {v[1]}).I64("c", {}, {v[2]}).Op("bad", "Range", {"a", "b", "c"});
    Check(g, kTooLarge);
  }
  GraphMaker vector;
  vector.F32("a", {2}).F32("b", {}, {1}).Op("bad", "Range", {"a", "b", "b"});
  Check(vector);
}

TEST(BadInput, S03_LinSpaceOfTooMany) {
  for (int64_t n : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
    GraphMaker g;
    g.F32("a", {}).F32("b", {}, {1}).I64("n", {}, {n}).Op("bad", "LinSpace", {"a", "b", "n"});
    Check(g, kTooLarge);
  }
}

TEST(BadInput, S05_ConcatAxisThatWraps) {
  for (int64_t axis : {int64_t{0xb500005b}, int64_t{-3}, int64_t{2}, INT64_MAX, INT64_MIN, int64_t{1} << 32}) {
    GraphMaker g;
    g.F32("x", {2, 2}).I64("axis", {}, {axis}).Op("bad", "ConcatV2", {"x", "x", "axis"});
    Check(g);
  }
  GraphMaker g;
  g.F32("x", {2, 2}).F32("y", {3, 3}).I32("axis", {}, {0}).Op("bad", "ConcatV2", {"x", "y", "axis"});
  Check(g);
  GraphMaker v;
  v.F32("x", {2, 2}).I32("axis", {2}, {0}).Op("bad", "ConcatV2", {"x", "x", "axis"});
  Check(v);
}

TEST(BadInput, S06_PermutationsThatAreNone) {
  for (const std::vector<int32_t>& perm :
       {std::vector<int32_t>{-10, 0}, {0, 0}, {1, 0, 2}, {0}, {0, 2}, {INT32_MAX, 0}, {INT32_MIN, 1}}) {
    GraphMaker g;
    g.F32("x", {2, 3}).I32("p", {static_cast<int64_t>(perm.size())}, perm).Op("bad", "Transpose", {"x", "p"});
    Check(g);
  }
  GraphMaker inverse;
  inverse.I32("p", {3}, {0, 0, 7}).Op("bad", "InvertPermutation", {"p"});
  Check(inverse);
}

TEST(BadInput, S07_ReverseSequence) {
  struct Case {
    int64_t seq, batch, lengths;
  };
  for (const Case& c :
       {Case{-10, -10, 3},
        {-2, 0, 2},
        {1, -10, 2},
        {0, 0, 2},
        {1, 0, 3},
        {2, 0, 2},
        {1, INT64_MAX, 2},
        {INT64_MIN, 0, 2}}) {
    GraphMaker g;
    g.F32("x", {2, 3}).I64("n", {c.lengths}, {1});
    g.Op("bad", "ReverseSequence", {"x", "n"}, {{"seq_dim", Int(c.seq)}, {"batch_dim", Int(c.batch)}});
    Check(g);
  }
  for (int64_t n : {int64_t{-1}, int64_t{4}, INT64_MAX}) {
    GraphMaker g;
    g.F32("x", {2, 3}).I64("n", {2}, {n}).Op("bad", "ReverseSequence", {"x", "n"}, {{"seq_dim", Int(1)}});
    Check(g);
  }
}

TEST(BadInput, S08_SpaceToBatchBlocks) {
  for (int64_t block : {int64_t{-1879048192}, int64_t{0}, int64_t{-1}, INT64_MAX, int64_t{1} << 33}) {
    GraphMaker g;
    g.F32("x", {10, 19, 22}).I64("block", {2}, {block}).I64("pad", {2, 2}, {0});
    g.Op("bad", "SpaceToBatchND", {"x", "block", "pad"});
    Check(g);
    GraphMaker b;
    b.F32("x", {10, 19, 22}).I64("block", {2}, {block}).I64("crop", {2, 2}, {0});
    b.Op("bad", "BatchToSpaceND", {"x", "block", "crop"});
    Check(b);
  }
  for (int64_t pad : {int64_t{-1}, INT64_MAX, INT64_MIN}) {
    GraphMaker g;
    g.F32("x", {1, 4, 4}).I64("block", {2}, {2}).I64("pad", {2, 2}, {pad});
    g.Op("bad", "SpaceToBatchND", {"x", "block", "pad"});
    Check(g, kTooLarge);
  }
}

TEST(BadInput, S09_AvgPoolGradOfANegativeShape) {
  for (int32_t d : {-536870912, 0x7fffffff, -1, 0}) {
    GraphMaker g;
    g.I32("s", {4}, {d}).F32("grad", {1, 5, 7, 1});
    g.Op("bad", "AvgPoolGrad", {"s", "grad"},
         {{"ksize", Ints({1, 2, 2, 1})}, {"strides", Ints({1, 2, 2, 1})}, {"padding", Str("SAME")}});
    Check(g, kTooLarge);
  }
}

TEST(BadInput, S10_SegmentIds) {
  for (const char* op : {"SegmentSum", "SegmentMean", "SegmentMax", "SegmentProd"}) {
    for (const std::vector<int64_t>& ids : {std::vector<int64_t>{0, int64_t{1} << 62}, {1, 0}, {-1, 0}, {0, -5}}) {
      GraphMaker g;
      g.F32("x", {2, 1}, {1}).I64("ids", {2}, ids).Op("bad", op, {"x", "ids"});
      Check(g, kTooLarge);
    }
    GraphMaker g;
    g.F32("x", {2, 1}, {1}).I64("ids", {3}, {0}).Op("bad", op, {"x", "ids"});
    Check(g);
  }
  for (int64_t n : {int64_t{-1}, INT64_MAX, int64_t{1} << 40}) {
    GraphMaker g;
    g.F32("x", {2, 3}, {1}).I64("ids", {2}, {0}).I64("n", {}, {n}).Op("bad", "UnsortedSegmentSum", {"x", "ids", "n"});
    Check(g, kTooLarge);
  }
  GraphMaker past;
  past.F32("x", {2}, {1}).I64("ids", {2}, {5}).I64("n", {}, {2}).Op("bad", "UnsortedSegmentSum", {"x", "ids", "n"});
  Check(past);
}

TEST(BadInput, S11_RandomShapes) {
  for (const char* op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    GraphMaker g;
    g.I32("s", {4}, {65536}).Op("bad", op, {"s"}, {{"dtype", kF32}});
    Check(g, kTooLarge);
    GraphMaker negative;
    negative.I64("s", {1}, {-1}).Op("bad", op, {"s"}, {{"dtype", kF32}});
    Check(negative);
    GraphMaker matrix;
    matrix.I32("s", {2, 2}, {1}).Op("bad", op, {"s"}, {{"dtype", kF32}});
    Check(matrix);
  }
  GraphMaker empty;
  empty.I32("s", {1}, {3}).I32("lo", {}, {5}).I32("hi", {}, {5}).Op("bad", "RandomUniformInt", {"s", "lo", "hi"});
  Check(empty);
  GraphMaker vector;
  vector.I32("s", {1}, {3}).I32("lo", {0}).I32("hi", {}, {5}).Op("bad", "RandomUniformInt", {"s", "lo", "hi"});
  Check(vector);
}

TEST(BadInput, S12_AxesOutOfRange) {
  for (int32_t axis : {-100, 2, 4, -4, INT32_MAX, INT32_MIN}) {
    SCOPED_TRACE(axis);
    for (const char* op : {"Sum", "Max", "Mean", "Prod", "Min"}) {
      GraphMaker g;
      g.F32("x", {2, 3}).I32("axis", {1}, {axis}).Op("bad", op, {"x", "axis"});
      Check(g);
    }
    for (const char* op : {"ArgMax", "ArgMin", "Cumsum", "Cumprod", "ReverseV2"}) {
      GraphMaker g;
      const bool vector = std::string(op) == "ReverseV2";
      g.F32("x", {2, 3}).I32("axis", vector ? Dims{1} : Dims{}, {axis}).Op("bad", op, {"x", "axis"});
      Check(g);
    }
    GraphMaker expand;
    expand.F32("x", {2}).I32("axis", {}, {axis == -4 || axis == 2 ? 3 : axis}).Op("bad", "ExpandDims", {"x", "axis"});
    Check(expand);
    GraphMaker squeeze;
    squeeze.F32("x", {2, 3}).Op("bad", "Squeeze", {"x"}, {{"squeeze_dims", Ints({axis})}});
    Check(squeeze);
    GraphMaker gather;
    gather.F32("x", {2, 3}).I32("i", {1}).I32("axis", {}, {axis}).Op("bad", "GatherV2", {"x", "i", "axis"});
    Check(gather);
    GraphMaker split;
    split.I32("axis", {}, {axis}).F32("x", {2, 3}).Op("bad", "Split", {"axis", "x"}, {{"num_split", Int(1)}});
    Check(split);
    if (axis == 2) continue;  // a new last axis
    GraphMaker pack;
    pack.F32("x", {2, 3}).Op("bad", "Pack", {"x", "x"}, {{"axis", Int(axis)}});
    Check(pack);
    GraphMaker unpack;
    unpack.F32("x", {2, 3}).Op("bad", "Unpack", {"x"}, {{"num", Int(2)}, {"axis", Int(axis)}});
    Check(unpack);
    GraphMaker hot;
    hot.I32("i", {2, 2}).I32("d", {}, {3}).F32("on", {}, {1}).F32("off", {});
    hot.Op("bad", "OneHot", {"i", "d", "on", "off"}, {{"axis", Int(axis)}});
    Check(hot);
  }
}

TEST(BadInput, S12_SlicesOutOfRange) {
  struct Case {
    int64_t begin, size;
  };
  for (const Case& c : {Case{-1, 1}, {0, 5}, {5, 0}, {INT64_MAX, INT64_MAX}, {0, -2}, {1, INT64_MAX}, {INT64_MIN, 1}}) {
    GraphMaker g;
    g.F32("x", {4}).I64("b", {1}, {c.begin}).I64("s", {1}, {c.size}).Op("bad", "Slice", {"x", "b", "s"});
    Check(g);
  }
  GraphMaker zero;
  zero.F32("x", {4})
      .I64("b", {1})
      .I64("e", {1}, {4})
      .I64("s", {1}, {0})
      .Op("bad", "StridedSlice", {"x", "b", "e", "s"});
  Check(zero);
  GraphMaker extreme;  // legal: everything is clamped
  extreme.F32("x", {4}).I64("b", {1}, {INT64_MAX}).I64("e", {1}, {INT64_MIN}).I64("s", {1}, {INT64_MIN});
  extreme.Op("bad", "StridedSlice", {"x", "b", "e", "s"});
  Check(extreme, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
  GraphMaker index;
  index.F32("x", {4}).I64("b", {1}, {4}).I64("e", {1}, {5}).I64("s", {1}, {1});
  index.Op("bad", "StridedSlice", {"x", "b", "e", "s"}, {{"shrink_axis_mask", Int(1)}});
  Check(index);
  GraphMaker ellipses;
  ellipses.F32("x", {4}).I64("b", {2}).I64("e", {2}, {1}).I64("s", {2}, {1});
  ellipses.Op("bad", "StridedSlice", {"x", "b", "e", "s"}, {{"ellipsis_mask", Int(3)}});
  Check(ellipses);
}

TEST(BadInput, S12_PaddingOutOfRange) {
  for (int64_t p : {int64_t{-1}, INT64_MAX, INT64_MIN, int64_t{1} << 61}) {
    for (const char* op : {"Pad", "MirrorPad"}) {
      GraphMaker g;
      g.F32("x", {4}).I64("p", {1, 2}, {p});
      g.Op("bad", op, {"x", "p"}, std::string(op) == "Pad" ? Attrs{} : Attrs{{"mode", Str("REFLECT")}});
      Check(g, kTooLarge);
    }
  }
  GraphMaker rank;
  rank.F32("x", {4}).I64("p", {2, 2}).Op("bad", "Pad", {"x", "p"});
  Check(rank);
}

TEST(BadInput, S14_FillOfAHugeShape) {
  for (const std::vector<int64_t>& d :
       {std::vector<int64_t>{int64_t{1} << 31, int64_t{1} << 31},
        {INT64_MAX, INT64_MAX},
        {-1, 2},
        {int64_t{1} << 62, 4}}) {
    GraphMaker g;
    g.I64("d", {2}, d).F32("v", {}, {1}).Op("bad", "Fill", {"d", "v"});
    Check(g, kTooLarge);
    GraphMaker b;
    b.I64("d", {2}, d).F32("v", {}, {1}).Op("bad", "BroadcastTo", {"v", "d"});
    Check(b, kTooLarge);
  }
}

}  // namespace
}  // namespace millrace::bad_inputs
