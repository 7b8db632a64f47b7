// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/strings/str_cat.h"
#include "kernel/kernel.h"
#include "tensor/handles.h"

namespace millrace {

// A value, or none.
class Optional final : public VariantValue {
 public:
  Optional(std::vector<Tensor> components, int depth) : components_(std::move(components)), depth_(depth) {}
  std::string TypeName() const override { return "tensorflow::data::Optional"; }
  std::string DebugString() const override { return absl::StrCat("Optional<", components_.size(), " components>"); }
  const std::vector<Tensor>& components() const { return components_; }  // empty: no value
  int depth() const { return depth_; }

 private:
  const std::vector<Tensor> components_;
  const int depth_;
};

// With the value `components`; without any, one that has no value. InvalidArgument where optionals are nested too deep.
StatusOr<Variant> MakeOptional(std::vector<Tensor> components);
// As output 0.
Status OutputOptional(KernelContext& ctx, std::vector<Tensor> components);

}  // namespace millrace
