// SPDX-License-Identifier: Apache-2.0
// Sorted string tables: an immutable map from keys to values in one file, in checksummed blocks. The index of a V2
// checkpoint and a whole V1 checkpoint are such files. The layout is LevelDB's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"

namespace millrace {

// Keys must be added in increasing order. Not thread-safe.
class TableWriter {
 public:
  explicit TableWriter(WritableFile* file) : file_(file) {}  // not owned
  Status Add(absl::string_view key, absl::string_view value);
  Status Finish();  // neither syncs nor closes the file

 private:
  struct Block {
    std::string contents;
    std::string last_key;
    std::vector<uint32_t> restarts;
    int since_restart = 0;

    void Add(absl::string_view key, absl::string_view value, int restart_interval);
    std::string Take();  // leaves an empty block
  };
  Status WriteBlock(Block* block, std::string* handle);
  Status FlushData();

  WritableFile* const file_;
  uint64_t offset_ = 0;
  Block data_;
  Block index_;
  std::optional<std::string> last_key_;
  std::string pending_handle_;  // of the block written last, not in the index yet: its separator needs the next key
};

// Every block is checked before it is believed; what does not check is DataLoss. Thread-safe.
class TableReader {
 public:
  static StatusOr<std::unique_ptr<TableReader>> Open(std::unique_ptr<RandomAccessFile> file);

  // Calls `visit` for every entry, in order, until it fails. The views live for the call only.
  Status ForEach(const std::function<Status(absl::string_view key, absl::string_view value)>& visit) const;
  StatusOr<std::optional<std::string>> Find(absl::string_view key) const;

 private:
  struct Handle {
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  struct IndexEntry {
    std::string last_key;  // not below any key of the block, below those of the next
    Handle handle;
  };
  explicit TableReader(std::unique_ptr<RandomAccessFile> file) : file_(std::move(file)) {}
  static bool ParseHandle(absl::string_view* in, Handle* handle);
  Status ReadFooter(Handle* index) const;
  Status ReadIndex(Handle handle);
  StatusOr<std::string> ReadBlock(Handle handle) const;

  const std::unique_ptr<RandomAccessFile> file_;
  std::vector<IndexEntry> index_;
};

}  // namespace millrace
