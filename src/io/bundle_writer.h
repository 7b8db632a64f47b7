// SPDX-License-Identifier: Apache-2.0
// Writes a V2 checkpoint of one shard, and merges such into one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "io/tensor_slice.h"
#include "wire/checkpoint.h"

namespace millrace {

// Everything goes to files with names of their own; Finish makes them the checkpoint `prefix` at once and durably. A
// writer that is dropped, or fails, leaves the old checkpoint of that prefix as it was. Not thread-safe.
class BundleWriter {
 public:
  // Makes the folder where there is none.
  static StatusOr<std::unique_ptr<BundleWriter>> Open(Env& env, const std::string& prefix);
  ~BundleWriter();
  // InvalidArgument: an empty name, a name twice, a dtype that checkpoints do not hold.
  Status Add(const std::string& name, const Tensor& tensor);
  // `tensor` is the part `slice` of the tensor `name`, which has shape `full`.
  Status AddSlice(const std::string& name, const Shape& full, const TensorSlice& slice, const Tensor& tensor);
  Status Finish();

 private:
  BundleWriter(Env& env, std::string prefix, std::string data_path, std::unique_ptr<WritableFile> data);
  Status AddEntry(const std::string& key, const Tensor& tensor);

  Env& env_;
  const std::string prefix_;
  const std::string data_path_;
  std::unique_ptr<WritableFile> data_;
  int64_t offset_ = 0;
  std::map<std::string, wire::BundleEntryProto> entries_;
  bool failed_ = false;
  bool finished_ = false;
};

// Makes one checkpoint of several: moves their data files and merges their indexes. Their indexes are deleted after
// that, and their folders too where `delete_old_folders` and they are empty. InvalidArgument: an input is missing, a
// name occurs twice, parts of one tensor disagree on its shape or dtype, byte orders differ.
Status MergeBundles(Env& env, const std::vector<std::string>& prefixes, const std::string& destination,
                    bool delete_old_folders);

}  // namespace millrace
