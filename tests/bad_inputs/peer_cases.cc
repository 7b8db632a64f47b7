// SPDX-License-Identifier: Apache-2.0
// What TensorFlow refuses though a value could be given, and the codes that it uses for it.
#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

const wire::AttrValue kF32 = Type(DType::kFloat);
const wire::AttrValue kI32 = Type(DType::kInt32);

TEST(BadInput, P01_CrossOfOtherThanTriples) {
  GraphMaker g;
  g.F32("x", {4, 2}).F32("y", {4, 2}).Op("bad", "Cross", {"x", "y"});
  Check(g, {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kInvalidArgument}, How::kConstants);
  Check(g, {absl::StatusCode::kFailedPrecondition}, How::kFed);
}

TEST(BadInput, P02_PartsOfAnotherPrecision) {
  GraphMaker g;
  g.F32("x", {2}).F32("y", {2}).Op("bad", "Complex", {"x", "y"}, {{"T", kF32}, {"Tout", Type(DType::kComplex128)}});
  Check(g);
  for (const char* op : {"Real", "Imag", "Angle", "ComplexAbs"}) {
    GraphMaker part;
    part.F32("x", {2}).Op("z", "Complex", {"x", "x"}, {{"T", kF32}, {"Tout", Type(DType::kComplex64)}});
    part.Op("bad", op, {"z"}, {{"T", Type(DType::kComplex64)}, {"Tout", Type(DType::kDouble)}});
    Check(part);
  }
}

TEST(BadInput, P03_OneIndexForUpdatesOfAnotherRank) {
  for (const char* op : {"TensorScatterAdd", "TensorScatterSub", "TensorScatterUpdate"}) {
    GraphMaker g;
    g.F32("x", {4, 3}).I32("i", {3}).F32("u", {3, 3}).Op("bad", op, {"x", "i", "u"});
    Check(g);
  }
}

TEST(BadInput, P04_SeveralEllipses) {
  GraphMaker g;
  g.F32("x", {3}).I32("b", {1}).I32("e", {1}, {1}).I32("s", {1}, {1});
  g.Op("bad", "StridedSlice", {"x", "b", "e", "s"}, {{"ellipsis_mask", Int(-2)}});
  Check(g);
}

TEST(BadInput, P05_PlacesInAnEmptyImage) {
  const wire::AttrValue ones = Ints({1, 1, 1, 1});
  GraphMaker g;
  g.F32("x", {0, 2, 2, 1});
  g.Op("bad", "MaxPoolWithArgmax", {"x"}, {{"ksize", ones}, {"strides", ones}, {"padding", Str("SAME")}});
  Check(g);
}

TEST(BadInput, P06_VectorsForScalars) {
  GraphMaker print;
  print.Strings("s", {1}, {"a"}).Op("bad", "PrintV2", {"s"});
  Check(print);
  GraphMaker name;
  name.Strings("s", {1}, {"a"}).I32("i", {}).I32("n", {}, {2}).Op("bad", "ShardedFilename", {"s", "i", "n"});
  Check(name);
  GraphMaker merge;
  merge.Strings("s", {0}).Strings("d", {}, {"/tmp/x"}).Op("bad", "MergeV2Checkpoints", {"s", "d"});
  Check(merge);
}

// A slot of ones.
void AddVariable(GraphMaker& g, const std::string& name, int32_t rows, int32_t columns) {
  g.Raw(name, "VariableV2", {}, {{"dtype", kF32}, {"shape", ShapeOf({rows, columns})}});
  g.F32(name + "_one", {}, {1}).I32(name + "_dims", {2}, {rows, columns});
  g.Op(name + "_ones", "Fill", {name + "_dims", name + "_one"}, {{"T", kF32}, {"index_type", kI32}});
  g.Raw(name + "_init", "Assign", {name, name + "_ones"}, {{"T", kF32}});
}

TEST(BadInput, P07_FtrlOfRows) {
  struct Row {
    float lr, l1, l2, power;
    int32_t columns;
  };
  for (const Row& row : {Row{0, 0, 0, -0.5f, 2}, Row{1, -1, 0, -0.5f, 2}, Row{1, 0, -1, -0.5f, 2},
                         Row{1, 0, 0, 0.5f, 2}, Row{1, 0, 0, -0.5f, 0}}) {
    GraphMaker g;
    for (const char* name : {"v", "a", "l"}) AddVariable(g, name, 3, row.columns);
    g.Raw("init", "NoOp", {"^v_init", "^a_init", "^l_init"});
    g.F32("g", {1, row.columns}, {1}).I32("i", {1});
    g.F32("lr", {}, {row.lr}).F32("l1", {}, {row.l1}).F32("l2", {}, {row.l2}).F32("power", {}, {row.power});
    g.Op("bad", "SparseApplyFtrl", {"v", "a", "l", "g", "i", "lr", "l1", "l2", "power"},
         {{"T", kF32}, {"Tindices", kI32}});
    Check(g, kInvalid, How::kConstants);
  }
}

TEST(BadInput, P08_QuotientByZeroByHandle) {
  GraphMaker g;
  g.Raw("h", "VarHandleOp", {}, {{"dtype", kF32}, {"shape", ShapeOf({3})}, {"shared_name", Str("p08")}});
  g.F32("one", {}, {1}).I32("dims", {1}, {3}).Op("ones", "Fill", {"dims", "one"}, {{"T", kF32}, {"index_type", kI32}});
  g.Raw("init", "AssignVariableOp", {"h", "ones"}, {{"dtype", kF32}});
  g.I32("i", {1}).F32("u", {1}).Raw(
      "bad", "ResourceScatterDiv", {"h", "i", "u"}, {{"dtype", kF32}, {"Tindices", kI32}});
  Check(g, kInvalid, How::kConstants);
}

TEST(BadInput, P09_ConvolutionsOverBatchAndChannels) {
  const Codes unimplemented = {absl::StatusCode::kUnimplemented};
  for (const auto& strides : {Ints({2, 1, 1, 1}), Ints({1, 1, 1, 2})}) {
    const Attrs attrs = {{"strides", strides}, {"padding", Str("SAME")}};
    GraphMaker forward;
    forward.F32("x", {2, 3, 3, 1}).F32("w", {2, 2, 1, 1}).Op("bad", "Conv2D", {"x", "w"}, attrs);
    Check(forward, unimplemented);
    GraphMaker input;
    input.I32("s", {4}, {2, 3, 3, 1}).F32("w", {2, 2, 1, 1}).F32("d", {2, 3, 3, 1});
    input.Op("bad", "Conv2DBackpropInput", {"s", "w", "d"}, attrs);
    Check(input, unimplemented);
    GraphMaker depthwise;
    depthwise.F32("x", {2, 3, 3, 1}).F32("w", {2, 2, 1, 1}).Op("bad", "DepthwiseConv2dNative", {"x", "w"}, attrs);
    Check(depthwise);
  }
}

// Of two faults the shapes are told first.
TEST(BadInput, P10_RemaindersOfShapesThatDoNotFit) {
  GraphMaker g;
  g.I32("x", {2}).I32("y", {5}).Op("bad", "TruncateMod", {"x", "y"});
  Check(g);
}

TEST(BadInput, P11_ListOfOtherElements) {
  GraphMaker g;
  g.F32("t", {0, 3}).I32("i", {0}).I32("e", {1}, {2}).I32("n", {}, {1});
  g.Op("bad", "TensorListScatterV2", {"t", "i", "e", "n"}, {{"element_dtype", kF32}, {"shape_type", kI32}});
  Check(g);
}

TEST(BadInput, P12_OneNumberForAVectorOrTheOtherWay) {
  GraphMaker fill;
  fill.I32("d", {}, {3}).F32("v", {1}, {2}).Op("bad", "Fill", {"d", "v"}, {{"T", kF32}, {"index_type", kI32}});
  Check(fill, kOk, How::kFed);
  GraphMaker range;
  range.I32("a", {1}).I32("b", {1}, {5}).I32("d", {}, {2}).Op("bad", "Range", {"a", "b", "d"}, {{"Tidx", kI32}});
  Check(range, kOk, How::kFed);
}

}  // namespace
}  // namespace millrace::bad_inputs
