// SPDX-License-Identifier: Apache-2.0
// Shortcuts of the executor into a tensor's parts, for the paths that run once per node and step.
#pragma once

#include "tensor/tensor.h"

namespace millrace {

class TensorAccess {
 public:
  // Drops the share of the buffer; the shape stays as it is and means nothing.
  static void Reset(Tensor& t) {
    t.dtype_ = DType::kInvalid;
    t.buffer_.reset();
    t.data_ = nullptr;
  }
  // Moves the share of the buffer to the result. `t` can still be read as long as the result lives, but owns nothing.
  static void MoveBufferKeepingView(Tensor& t, Tensor& result) {
    result.dtype_ = t.dtype_;
    result.shape_ = t.shape_;
    result.data_ = t.data_;
    result.buffer_ = std::move(t.buffer_);
  }
};

}  // namespace millrace
