// SPDX-License-Identifier: Apache-2.0
// What shape functions say, one line a case. The array family has its own test.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "op/shape_testutil.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

const OpRegistry& Ops() {
  static const OpRegistry* all = [] {
    auto* r = new OpRegistry();
    RegisterAllOps(*r);
    return r;
  }();
  return *all;
}

struct Case {
  const char* op;
  const char* attrs;  // in the notation of examples
  const char* inputs;
  const char* want;  // "error" for any refusal
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.op << "(" << c.inputs << ") " << c.attrs; }

class Shapes : public ::testing::TestWithParam<Case> {};

TEST_P(Shapes, AreAsSaid) {
  const Case& c = GetParam();
  const OpDef* op = Ops().Find(c.op);
  ASSERT_NE(op, nullptr);
  ShapeCase shapes(Ops(), c.op);
  for (absl::string_view piece : SplitOutside(c.attrs, ';')) {
    const size_t eq = piece.find('=');
    ASSERT_NE(eq, piece.npos);
    const AttrDef* def = op->FindAttr(piece.substr(0, eq));
    ASSERT_NE(def, nullptr) << piece;
    auto value = ParseAttrText(def->kind, def->is_list, piece.substr(eq + 1));
    ASSERT_TRUE(value.ok()) << value.status();
    shapes.Attr(def->name, *value);
  }
  const std::string got = shapes.Run(c.inputs);
  if (absl::string_view(c.want) == "error") {
    EXPECT_TRUE(absl::StartsWith(got, "error:")) << got;
  } else {
    EXPECT_EQ(got, c.want);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Elementwise, Shapes,
    ::testing::Values(
        Case{"AddV2", "", "[2,1];[1,3]", "[2,3]"}, Case{"AddV2", "", "[2,?];[?]", "[2,?]"},
        Case{"AddV2", "", "?;[2]", "?"}, Case{"AddV2", "", "[2];[3]", "error"},
        Case{"BroadcastTo", "", "[2,1,?];[4]", "[?,2,?,?]"}, Case{"RGBToHSV", "", "[2,?]", "[2,3]"},
        Case{"QuantizedReshape", "", "[2,3];[1];[];[]", "[6];[];[]"},
        Case{"QuantizedBiasAdd", "T1=qu8; T2=qu8; out_type=qi32", "[2,?];[4];[];[];[];[]", "[2,4];[];[]"},
        Case{"Exp", "", "[?,4]", "[?,4]"}, Case{"Exp", "", "?", "?"}, Case{"Less", "", "[3];[]", "[3]"},
        Case{"Select", "", "[2];[2,3];[2,3]", "[2,3]"}, Case{"Select", "", "[3];[2,3];[2,3]", "error"},
        Case{"SelectV2", "", "[2,1];[3];[]", "[2,3]"}, Case{"AddN", "", "[2,?];[?,3]", "[2,3]"},
        Case{"AddN", "", "[2];[3]", "error"}, Case{"Relu", "", "[0,2]", "[0,2]"},
        Case{"BiasAdd", "", "[2,?,5];[5]", "[2,?,5]"}, Case{"BiasAdd", "", "[2,4];[5]", "error"},
        Case{"ReluGrad", "", "[2,?];[?,3]", "[2,3]"}));

INSTANTIATE_TEST_SUITE_P(
    Matrices, Shapes,
    ::testing::Values(
        Case{"MatMul", "", "[?,3];[3,5]", "[?,5]"}, Case{"MatMul", "", "?;?", "[?,?]"},
        Case{"MatMul", "transpose_a=true", "[3,2];[3,5]", "[2,5]"},
        Case{"MatMul", "transpose_b=true", "[2,3];[5,3]", "[2,5]"}, Case{"MatMul", "", "[2,3];[4,5]", "error"},
        Case{"MatMul", "", "[2,3,1];[3,5]", "error"}, Case{"MatMul", "", "[0,3];[3,0]", "[0,0]"},
        Case{"BatchMatMul", "", "[7,2,3];[7,3,5]", "[7,2,5]"},
        Case{"BatchMatMulV2", "", "[7,1,2,3];[4,3,5]", "[7,4,2,5]"},
        Case{"BatchMatMulV2", "adj_x=true", "[3,2];[3,5]", "[2,5]"},
        Case{"BatchMatMulV2", "", "[2,2,3];[3,3,5]", "error"}, Case{"Cholesky", "", "[2,4,4]", "[2,4,4]"},
        Case{"Cholesky", "", "[4,5]", "error"}, Case{"MatrixInverse", "", "[?,3]", "[3,3]"},
        Case{"MatrixDeterminant", "", "[5,3,3]", "[5]"}, Case{"SelfAdjointEigV2", "", "[5,?,3]", "[5,3];[5,3,3]"},
        Case{"SelfAdjointEigV2", "compute_v=false", "[3,3]", "[3];[0]"}, Case{"SelfAdjointEig", "", "[3,3]", "[4,3]"},
        Case{"Svd", "", "[2,5,3]", "[2,3];[2,5,3];[2,3,3]"},
        Case{"Svd", "full_matrices=true", "[?,3]", "[?];[?,?];[3,3]"},
        Case{"Svd", "compute_uv=false", "[5,3]", "[3];[0];[0]"}, Case{"Svd", "", "[3]", "error"},
        Case{"Qr", "", "[2,3,5]", "[2,3,3];[2,3,5]"}, Case{"Qr", "full_matrices=true", "[5,?]", "[5,5];[5,?]"},
        Case{"MatrixSolveLs", "", "[?,5,3];[2,5,1];[]", "[2,3,1]"},
        Case{"MatrixSolveLs", "", "[5,3];[4,1];[]", "error"}, Case{"Lu", "", "[2,?,3]", "[2,3,3];[2,3]"},
        Case{"LogMatrixDeterminant", "", "[2,3,3]", "[2];[2]"}));

INSTANTIATE_TEST_SUITE_P(
    Reductions, Shapes,
    ::testing::Values(Case{"Sum", "", "[2,3];[1]", "?"}, Case{"Sum", "keep_dims=true", "[2,3];[1]", "[?,?]"},
                      Case{"ArgMax", "", "[2,3];[]", "[?]"}, Case{"Softmax", "", "[2,3]", "[2,3]"},
                      Case{"Softmax", "", "[]", "error"}, Case{"Cumsum", "", "[2,3];[]", "[2,3]"},
                      Case{"TopKV2", "", "[2,?];[]", "[2,?];[2,?]"}, Case{"L2Loss", "", "[2,3]", "[]"},
                      Case{"SoftmaxCrossEntropyWithLogits", "", "[2,3];[2,3]", "[2];[2,3]"},
                      Case{"SparseSoftmaxCrossEntropyWithLogits", "", "[2,3];[2]", "[2];[2,3]"},
                      Case{"SparseSoftmaxCrossEntropyWithLogits", "", "[2,3];[4]", "error"}));

INSTANTIATE_TEST_SUITE_P(
    Images, Shapes,
    ::testing::Values(
        Case{"Conv2D", "strides=[1,2,2,1]; padding=\"SAME\"", "[8,5,6,3];[3,3,3,4]", "[8,3,3,4]"},
        Case{"Conv2D", "strides=[1,1,1,1]; padding=\"VALID\"", "[8,5,6,3];[3,3,3,4]", "[8,3,4,4]"},
        Case{
            "Conv2D", "strides=[1,1,1,1]; padding=\"VALID\"; data_format=\"NCHW\"", "[8,3,5,6];[3,3,3,4]", "[8,4,3,4]"},
        Case{"Conv2D", "strides=[1,1,1,1]; padding=\"VALID\"", "?;[3,3,3,4]", "[?,?,?,4]"},
        Case{"Conv2D", "strides=[1,1,1,1]; padding=\"VALID\"", "[8,2,2,3];[3,3,3,4]", "error"},
        Case{"Conv2D", "strides=[1,1,1,1]; padding=\"VALID\"", "[8,5,6,4];[3,3,3,4]", "error"},
        Case{"Conv2D", "strides=[1,0,1,1]; padding=\"VALID\"", "[8,5,6,3];[3,3,3,4]", "error"},
        Case{"MaxPool", "ksize=[1,2,2,1]; strides=[1,2,2,1]; padding=\"VALID\"", "[8,5,6,3]", "[8,2,3,3]"},
        Case{"AvgPool", "ksize=[1,2,2,1]; strides=[1,2,2,1]; padding=\"SAME\"", "[?,5,6,3]", "[?,3,3,3]"},
        Case{"MaxPool", "ksize=[1,0,2,1]; strides=[1,2,2,1]; padding=\"VALID\"", "[8,5,6,3]", "error"},
        Case{"DepthwiseConv2dNative", "strides=[1,1,1,1]; padding=\"SAME\"", "[1,5,5,3];[3,3,3,2]", "[1,5,5,6]"},
        Case{"LRN", "", "[1,2,3,4]", "[1,2,3,4]"}, Case{"LRN", "", "[2,3,4]", "error"}));

INSTANTIATE_TEST_SUITE_P(
    Indices, Shapes,
    ::testing::Values(
        Case{"Gather", "", "[5,?,2];[3,4]", "[3,4,?,2]"}, Case{"Gather", "", "[];[3]", "error"},
        Case{"GatherNd", "", "[5,6,7];[3,2]", "[3,7]"}, Case{"GatherNd", "", "[5];[3,2]", "error"},
        Case{"SegmentSum", "", "[5,2];[5]", "[?,2]"}, Case{"SegmentSum", "", "[5,2];[5,1]", "error"},
        Case{"UnsortedSegmentSum", "", "[5,2];[5];[]", "[?,2]"}, Case{"OneHot", "", "[2,3];[];[];[]", "[2,3,?]"},
        Case{"MatrixSetDiag", "", "?;[2,3]", "[2,?,?]"}, Case{"MatrixSetDiag", "", "[?,4,5];[2,4]", "[2,4,5]"},
        Case{"DynamicPartition", "num_partitions=2", "[4,3];[4]", "[?,3];[?,3]"}));

TEST(BandShapes, FollowTheDiagonals) {
  ShapeCase one(Ops(), "MatrixSetDiagV2"), several(Ops(), "MatrixSetDiagV2");
  one.Constant(2, Tensor::Scalar<int32_t>(1));
  EXPECT_EQ(one.Run("?;[2,3];[]"), "[2,?,?]");
  EXPECT_EQ(one.Run("[?,4,5];[2,4];[]"), "[2,4,5]");
  several.Constant(2, Tensor::Vector<int32_t>({0, 1}));
  EXPECT_EQ(several.Run("[?,?,5];[2,2,3];[2]"), "[2,?,5]");
  EXPECT_EQ(several.Run("?;[3];[2]").substr(0, 6), "error:");
}

}  // namespace
}  // namespace millrace
