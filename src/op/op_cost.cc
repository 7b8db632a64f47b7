// SPDX-License-Identifier: Apache-2.0
#include "op/op_cost.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"

namespace millrace {
namespace {

// How the operations follow from the shapes.
enum class Work : uint8_t {
  kNone,
  kElement,      // one an element
  kCostly,       // a function that takes some, an element
  kProduct,      // of two matrices, or of two stacks of them
  kConvolution,  // inputs: image or its shape, filter or its shape, and for gradients the output's gradient
  kWindow,       // as many as attribute `ksize` says, an element of the output
  kCubic,        // of matrices: the third power of a side
  kCell,         // of a recurrent network: the product of the first matrix with the largest one
};

struct Row {
  Work work;
  std::vector<absl::string_view> ops;
};

const std::vector<Row>& Rows() {
  static const auto* rows = new std::vector<Row>{
      {Work::kNone,
       {"Const",           "NoOp",           "Identity",      "IdentityN",
        "Reshape",         "ExpandDims",     "Squeeze",       "Shape",
        "ShapeN",          "Size",           "Rank",          "StopGradient",
        "PreventGradient", "Placeholder",    "PlaceholderV2", "PlaceholderWithDefault",
        "Switch",          "Merge",          "Enter",         "Exit",
        "NextIteration",   "LoopCond",       "Variable",      "VariableV2",
        "VarHandleOp",     "ReadVariableOp", "_Arg",          "_Retval",
        "_Send",           "_Recv"}},
      {Work::kCostly,
       {"Exp",
        "Expm1",
        "Log",
        "Log1p",
        "Tanh",
        "TanhGrad",
        "Sigmoid",
        "SigmoidGrad",
        "Sin",
        "Cos",
        "Tan",
        "Asin",
        "Acos",
        "Atan",
        "Atan2",
        "Sinh",
        "Cosh",
        "Asinh",
        "Acosh",
        "Atanh",
        "Pow",
        "Sqrt",
        "Rsqrt",
        "Erf",
        "Erfc",
        "Lgamma",
        "Digamma",
        "Softplus",
        "SoftplusGrad",
        "Softmax",
        "LogSoftmax",
        "Elu",
        "Selu",
        "SoftmaxCrossEntropyWithLogits",
        "SparseSoftmaxCrossEntropyWithLogits",
        "RandomUniform",
        "RandomStandardNormal",
        "TruncatedNormal",
        "LRN",
        "LRNGrad",
        "FusedBatchNorm",
        "FusedBatchNormV2",
        "FusedBatchNormGrad",
        "FusedBatchNormGradV2"}},
      {Work::kProduct, {"MatMul", "BatchMatMul", "BatchMatMulV2", "SparseMatMul", "QuantizedMatMul"}},
      {Work::kConvolution,
       {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv3D", "Conv3DBackpropInputV2",
        "Conv3DBackpropFilterV2", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter"}},
      {Work::kWindow, {"MaxPool", "AvgPool", "MaxPoolGrad", "AvgPoolGrad", "MaxPool3D", "AvgPool3D"}},
      {Work::kCubic,
       {"MatrixInverse", "MatrixDeterminant", "MatrixSolve", "MatrixTriangularSolve", "MatrixSolveLs", "Cholesky",
        "CholeskyGrad", "Qr", "Svd", "SelfAdjointEigV2", "Lu"}},
      {Work::kCell,
       {"LSTMBlockCell", "LSTMBlockCellGrad", "GRUBlockCell", "GRUBlockCellGrad", "BlockLSTM", "BlockLSTMGrad"}},
  };
  return *rows;
}

Work WorkOf(absl::string_view op) {
  static const auto* table = [] {
    auto* t = new absl::flat_hash_map<absl::string_view, Work>();
    for (const Row& row : Rows()) {
      for (const absl::string_view name : row.ops) t->emplace(name, row.work);
    }
    return t;
  }();
  const auto at = table->find(op);
  return at == table->end() ? Work::kElement : at->second;
}

constexpr double kOperationsOfCostly = 12;

double Most(absl::Span<const PartialShape> shapes) {
  double most = 0;
  for (const PartialShape& s : shapes) most = std::max(most, EstimateElements(s));
  return most;
}

double LastDimension(const PartialShape& s) {
  return s.rank() > 0 && s.has_dim(s.rank() - 1) ? static_cast<double>(s.dim(s.rank() - 1)) : kAssumedDimension;
}

// The matrices M x K, K x N and M x N have together (M K N)^2 elements, and a product takes 2 M K N.
double OfProduct(absl::Span<const PartialShape> inputs, absl::Span<const PartialShape> outputs) {
  double stack = 1;
  for (int i = 0; i + 2 < outputs[0].rank(); ++i) {
    stack *= outputs[0].has_dim(i) ? static_cast<double>(outputs[0].dim(i)) : kAssumedDimension;
  }
  if (stack == 0) return 0;
  const double all = EstimateElements(inputs[0]) * EstimateElements(inputs[1]) * EstimateElements(outputs[0]);
  return 2 * std::sqrt(all / stack);
}

// Each element of the output is a sum over a filter of one output channel.
double OfConvolution(absl::Span<const PartialShape> inputs, absl::Span<const PartialShape> outputs) {
  const bool is_gradient = inputs.size() > 2;
  const double moved = EstimateElements(is_gradient ? inputs[2] : outputs[0]);
  // Where the input is a shape, the value itself is the output.
  const PartialShape& filter = is_gradient && inputs[1].rank() == 1 ? outputs[0] : inputs[1];
  return 2 * moved * EstimateElements(filter) / std::max(1.0, LastDimension(filter));
}

double OfWindow(const AttrMap& attrs, absl::Span<const PartialShape> inputs, absl::Span<const PartialShape> outputs) {
  double window = 1;
  if (auto sides = GetAttr<std::vector<int64_t>>(attrs, "ksize"); sides.ok()) {
    for (const int64_t side : *sides) window *= static_cast<double>(std::max<int64_t>(side, 1));
  }
  return window * std::min(Most(inputs), Most(outputs));
}

double OfCell(absl::Span<const PartialShape> inputs) {
  const auto is_matrix = [](const PartialShape& s) { return s.rank() >= 2; };
  const auto x = std::find_if(inputs.begin(), inputs.end(), is_matrix);
  if (x == inputs.end()) return Most(inputs);
  double weights = 0;
  for (const PartialShape& s : inputs) {
    if (s.rank() == 2) weights = std::max(weights, EstimateElements(s));
  }
  return 2 * weights * EstimateElements(*x) / std::max(1.0, LastDimension(*x));
}

}  // namespace

double EstimateElements(const PartialShape& shape) {
  if (!shape.has_rank()) return kAssumedDimension;
  double n = 1;
  for (const int64_t d : shape.dims()) n *= d >= 0 ? static_cast<double>(d) : kAssumedDimension;
  return n;
}

double EstimateBytes(DType type, const PartialShape& shape) {
  return IsPlain(BaseType(type)) ? EstimateElements(shape) * static_cast<double>(DTypeSize(BaseType(type))) : 0;
}

double EstimateOperations(absl::string_view op, const AttrMap& attrs, absl::Span<const PartialShape> inputs,
                          absl::Span<const PartialShape> outputs) {
  const double most = std::max(Most(inputs), Most(outputs));
  const bool two_in_one_out = inputs.size() >= 2 && !outputs.empty();
  switch (WorkOf(op)) {
    case Work::kNone: return 0;
    case Work::kElement: return most;
    case Work::kCostly: return kOperationsOfCostly * most;
    case Work::kProduct: return two_in_one_out ? OfProduct(inputs, outputs) : most;
    case Work::kConvolution: return two_in_one_out ? OfConvolution(inputs, outputs) : most;
    case Work::kWindow: return OfWindow(attrs, inputs, outputs);
    case Work::kCubic: return inputs.empty() ? most : EstimateElements(inputs[0]) * LastDimension(inputs[0]);
    case Work::kCell: return OfCell(inputs);
  }
  return most;
}

}  // namespace millrace
