// SPDX-License-Identifier: Apache-2.0
// A tensor as an element of a variant tensor: the parts of what is sparse or ragged travel so.
#pragma once

#include <string>
#include <utility>

#include "tensor/tensor.h"

namespace millrace {

class TensorValue final : public VariantValue {
 public:
  explicit TensorValue(Tensor t) : tensor(std::move(t)) {}
  std::string TypeName() const override { return "tensorflow::Tensor"; }
  std::string DebugString() const override { return tensor.DebugString(); }
  const Tensor tensor;
};

}  // namespace millrace
