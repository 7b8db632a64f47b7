// SPDX-License-Identifier: Apache-2.0
#include "op/op_fusion.h"

#include <algorithm>
#include <iterator>

namespace millrace {
namespace {

struct Row {
  absl::string_view op;
  FusionPart part;
  absl::string_view name;
};

constexpr Row kRows[] = {
    {"Conv2D", FusionPart::kConvolution, ""},
    {"DepthwiseConv2dNative", FusionPart::kConvolution, ""},
    {"MatMul", FusionPart::kProduct, ""},
    {"BiasAdd", FusionPart::kBias, "BiasAdd"},
    {"FusedBatchNorm", FusionPart::kNormalization, "FusedBatchNorm"},
    {"FusedBatchNormV2", FusionPart::kNormalization, "FusedBatchNorm"},
    {"FusedBatchNormV3", FusionPart::kNormalization, "FusedBatchNorm"},
    {"Add", FusionPart::kAddition, "Add"},
    {"AddV2", FusionPart::kAddition, "Add"},
    {"Relu", FusionPart::kActivation, "Relu"},
    {"Relu6", FusionPart::kActivation, "Relu6"},
    {"RandomUniform", FusionPart::kUniform, ""},
};

const Row* Find(absl::string_view op) {
  const auto* at = std::find_if(std::begin(kRows), std::end(kRows), [op](const Row& r) { return r.op == op; });
  return at == std::end(kRows) ? nullptr : at;
}

}  // namespace

FusionPart FusionPartOf(absl::string_view op) {
  const Row* row = Find(op);
  return row == nullptr ? FusionPart::kNone : row->part;
}
absl::string_view FusedName(absl::string_view op) {
  const Row* row = Find(op);
  return row == nullptr ? "" : row->name;
}

}  // namespace millrace
