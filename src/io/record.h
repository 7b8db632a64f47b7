// SPDX-License-Identifier: Apache-2.0
// Record files: a sequence of byte strings, each framed by its length and two checksums. Event files and files of
// tf.Example are such files; compression, if any, is around the whole. Not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "io/compression.h"

namespace millrace {

void AppendRecord(absl::string_view payload, std::string* out);

class RecordWriter {
 public:
  // Truncates an existing file.
  static StatusOr<std::unique_ptr<RecordWriter>> Open(
      Env& env, const std::string& path, Compression compression = Compression::kNone,
      const DeflateOptions& options = {});
  Status Write(absl::string_view payload);
  Status Flush() { return file_->Flush(); }
  Status Sync() { return file_->Sync(); }
  Status Close() { return file_->Close(); }

 private:
  explicit RecordWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  const std::unique_ptr<WritableFile> file_;
  std::string frame_;
};

class RecordReader {
 public:
  static constexpr uint64_t kDefaultMaxRecordBytes = uint64_t{1} << 31;

  // `offset`: where to begin, a record boundary in uncompressed bytes.
  static StatusOr<std::unique_ptr<RecordReader>> Open(
      Env& env, const std::string& path, Compression compression = Compression::kNone, uint64_t offset = 0);
  // True and the next payload, or false at the end of the file. DataLoss: a checksum does not match, or the file ends
  // within a record (a file that is still written may end so; offset() is then where to go on). ResourceExhausted: a
  // record over the limit.
  StatusOr<bool> Read(std::string* payload);
  uint64_t offset() const { return offset_; }  // of the next record
  void set_max_record_bytes(uint64_t n) { max_record_bytes_ = n; }

 private:
  explicit RecordReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  const std::unique_ptr<ByteSource> source_;
  uint64_t offset_ = 0;
  uint64_t max_record_bytes_ = kDefaultMaxRecordBytes;
  std::string buffer_;
  Status failure_;  // reading on after an error would take payload for a header
};

}  // namespace millrace
