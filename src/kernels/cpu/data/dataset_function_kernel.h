// SPDX-License-Identifier: Apache-2.0
// What the kernels of data sets share that call several functions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/data/dataset.h"

namespace millrace {

inline StatusOr<int64_t> OneInt64(const Element& results, absl::string_view what) {
  if (results.size() != 1 || results[0].dtype() != DType::kInt64 || results[0].num_elements() != 1) {
    return InvalidArgument("`", what, "` must return a scalar int64.");
  }
  return *results[0].data<int64_t>();
}

inline Element WithBehind(Element first, const Element& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

inline std::vector<DType> TypesOf(const Element& values) {
  std::vector<DType> types;
  for (const Tensor& t : values) types.push_back(t.dtype());
  return types;
}

inline std::vector<DType> Joined(std::vector<DType> types, const std::vector<DType>& rest) {
  types.insert(types.end(), rest.begin(), rest.end());
  return types;
}

// A kernel with one input data set and functions, which are bound in the order of their attributes' names.
class FunctionsKernel : public DatasetKernel, public UsesFunctions {
 public:
  explicit FunctionsKernel(std::vector<std::string> attrs) : attrs_(std::move(attrs)) {
    for (size_t i = 0; i < attrs_.size(); ++i) functions_.push_back(std::make_shared<FunctionAttr>());
  }
  Status Init(const KernelInit& init) override {
    for (size_t i = 0; i < attrs_.size(); ++i) MR_RETURN_IF_ERROR(functions_[i]->Init(init, attrs_[i]));
    return DatasetKernel::Init(init);
  }
  void SetFunctions(std::shared_ptr<FunctionSource> source) override {
    for (const auto& f : functions_) f->SetSource(source);
  }

 protected:
  std::shared_ptr<FunctionSource> functions() const override { return functions_.front()->source(); }
  StatusOr<CapturedFunction> Bind(const KernelContext& ctx, size_t i, const std::vector<DType>& types,
                                  absl::string_view captured) {
    MR_ASSIGN_OR_RETURN(Element kept, KeptInputs(ctx, captured));
    return functions_[i]->Bind(ctx.step().cancellation, types, std::move(kept));
  }
  // For a data set that learns the types of the arguments while it is read; it may outlive the kernel.
  const std::shared_ptr<FunctionAttr>& function(size_t i) const { return functions_[i]; }

 private:
  const std::vector<std::string> attrs_;
  std::vector<std::shared_ptr<FunctionAttr>> functions_;
};

}  // namespace millrace
