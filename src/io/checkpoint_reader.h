// SPDX-License-Identifier: Apache-2.0
// Checkpoints of both formats, seen alike: named tensors, some of them stored in parts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "io/tensor_slice.h"

namespace millrace {

// Nothing read is believed before its checksum: what does not check is DataLoss (a wrong structure InvalidArgument or
// DataLoss), never a wrong value. Thread-safe.
class CheckpointReader {
 public:
  struct Info {
    DType dtype = DType::kInvalid;
    Shape shape;
  };
  virtual ~CheckpointReader() = default;
  virtual std::vector<std::string> Names() const = 0;                // sorted
  virtual StatusOr<Info> Lookup(const std::string& name) const = 0;  // NotFound
  virtual StatusOr<Tensor> Read(const std::string& name) const = 0;
  virtual StatusOr<Tensor> ReadSlice(const std::string& name, const TensorSlice& slice) const = 0;
};

// V2 where `prefix`.index exists, else V1, where `prefix` is a file or a pattern of files (with * and ?). NotFound when
// there is neither.
StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(Env& env, const std::string& prefix);

// Part of one tensor that a checkpoint holds.
struct StoredPart {
  std::vector<TensorSlice::Extent> box;
  size_t index = 0;  // the reader's own
};
// The box `want` of a tensor put together from its parts. DataLoss when they leave something out.
StatusOr<Tensor> AssembleParts(const std::string& name, DType dtype, const std::vector<TensorSlice::Extent>& want,
                               const std::vector<StoredPart>& parts,
                               const std::function<StatusOr<Tensor>(const StoredPart&)>& read);

}  // namespace millrace
