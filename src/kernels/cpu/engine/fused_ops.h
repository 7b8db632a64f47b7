// SPDX-License-Identifier: Apache-2.0
// What fused nodes have in common (passes/fuse.cc): a convolution or a product, whose arguments come first, and the ops
// in `fused_ops`, whose other arguments follow.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernel/kernel.h"
#include "kernels/cpu/engine/epilogue.h"

namespace millrace {

class FusedOps {
 public:
  // Reads `fused_ops`, `epsilon` and `fused_names`; the first argument of a fused op is input 2.
  Status Init(const KernelInit& init);

  // Makes output 0. `made`: the shape of what is made first, channels last, float32; `make` makes it into its argument,
  // which may be empty, and applies the epilogue, whose residual may be the memory of the argument. Errors name the
  // nodes that this one stands for.
  using Make = absl::FunctionRef<Status(const Epilogue& epilogue, Tensor* out)>;
  Status Run(KernelContext& ctx, const Shape& made, Make make) const;

 private:
  Status RunUnnamed(KernelContext& ctx, const Shape& made, Make make) const;
  Status ReadVectors(KernelContext& ctx, Epilogue* e, std::vector<float>* factor) const;
  Status AddBroadcast(KernelContext& ctx, const Shape& made, Epilogue e, Make make) const;

  // The first input of each; 0: it is not there.
  int bias_ = 0, norm_ = 0, sum_ = 0;
  Activation activation_ = Activation::kNone;
  double epsilon_ = 0;
  std::string names_;
};

}  // namespace millrace
