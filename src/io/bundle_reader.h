// SPDX-License-Identifier: Apache-2.0
// Reads a V2 checkpoint: an index file and data files.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "io/checkpoint_reader.h"
#include "wire/checkpoint.h"

namespace millrace {

class BundleReader final : public CheckpointReader {
 public:
  // Reads the whole index. DataLoss where entries share bytes of a data file.
  static StatusOr<std::unique_ptr<BundleReader>> Open(Env& env, const std::string& prefix);

  std::vector<std::string> Names() const override;
  StatusOr<Info> Lookup(const std::string& name) const override;
  StatusOr<Tensor> Read(const std::string& name) const override;
  StatusOr<Tensor> ReadSlice(const std::string& name, const TensorSlice& slice) const override;
  int num_shards() const { return num_shards_; }

 private:
  struct Entry {
    DType dtype = DType::kInvalid;
    int32_t raw_dtype = 0;
    Shape shape;
    Status bad;  // why the entry cannot be used
    int32_t shard = 0;
    uint64_t offset = 0;
    uint64_t size = 0;
    uint32_t crc = 0;
    std::vector<TensorSlice> slices;
  };
  BundleReader(Env& env, std::string prefix) : env_(env), prefix_(std::move(prefix)) {}
  Status AddEntry(absl::string_view key, absl::string_view value);
  Status CheckOverlaps() const;
  StatusOr<const Entry*> Find(const std::string& key) const;
  StatusOr<std::shared_ptr<RandomAccessFile>> Shard(int32_t shard) const;
  Status CheckData(const std::string& key, const Entry& entry) const;
  StatusOr<Tensor> ReadEntry(const std::string& key, const Entry& entry) const;
  StatusOr<Tensor> ReadBox(const std::string& name, const Entry& entry,
                           const std::vector<TensorSlice::Extent>& want) const;

  Env& env_;
  const std::string prefix_;
  int num_shards_ = 0;
  bool swap_bytes_ = false;
  std::map<std::string, Entry> entries_;
  mutable absl::Mutex mu_;
  mutable std::map<int32_t, std::shared_ptr<RandomAccessFile>> shards_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
