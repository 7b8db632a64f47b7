// SPDX-License-Identifier: Apache-2.0
// Writes checkpoints of format V1: one file, a table that holds tensors as messages.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/env.h"
#include "io/tensor_slice.h"

namespace millrace {

// Keeps everything in memory until Finish, which makes the file appear as a whole. Not thread-safe.
class V1Writer {
 public:
  V1Writer(Env& env, std::string path) : env_(env), path_(std::move(path)) {}
  // `tensor` is the part `slice` of tensor `name`, which has shape `full`. InvalidArgument: an empty name, a part
  // twice, parts that disagree on shape or dtype, a dtype that checkpoints do not hold.
  Status Add(const std::string& name, const Shape& full, const TensorSlice& slice, const Tensor& tensor);
  Status Finish();

 private:
  Env& env_;
  const std::string path_;
  std::vector<wire::SavedSliceMeta> tensors_;
  std::map<std::string, size_t> by_name_;
  std::map<std::string, std::string> parts_;  // by key
};

}  // namespace millrace
