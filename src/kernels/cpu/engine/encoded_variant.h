// SPDX-License-Identifier: Apache-2.0
// Variants that have a form in bytes, in which SerializeTensor and ParseTensor take them.
#pragma once

#include <utility>

#include "tensor/tensor.h"
#include "wire/graph.h"

namespace millrace {

class EncodableVariant : public VariantValue {
 public:
  virtual StatusOr<wire::VariantTensorDataProto> Encoded() const = 0;
};

// What has been parsed, until an op that knows its type takes it.
class EncodedVariant final : public EncodableVariant {
 public:
  explicit EncodedVariant(wire::VariantTensorDataProto d) : data(std::move(d)) {}
  std::string TypeName() const override { return data.type_name; }
  std::string DebugString() const override { return "an encoded " + data.type_name; }
  StatusOr<wire::VariantTensorDataProto> Encoded() const override { return data; }
  const wire::VariantTensorDataProto data;
};

}  // namespace millrace
