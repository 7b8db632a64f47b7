// SPDX-License-Identifier: Apache-2.0
#include "io/record.h"

#include <algorithm>
#include <utility>

#include "io/coding.h"
#include "io/crc32c.h"

namespace millrace {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kTrailerBytes = 4;

}  // namespace

void AppendRecord(absl::string_view payload, std::string* out) {
  const size_t begin = out->size();
  PutFixed64(payload.size(), out);
  PutFixed32(MaskCrc(Crc32c(absl::string_view(*out).substr(begin, 8))), out);
  out->append(payload.data(), payload.size());
  PutFixed32(MaskCrc(Crc32c(payload)), out);
}

StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Open(
    Env& env, const std::string& path, Compression compression, const DeflateOptions& options) {
  MR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, env.NewWritableFile(path));
  MR_ASSIGN_OR_RETURN(file, NewCompressedFile(std::move(file), compression, options));
  return std::unique_ptr<RecordWriter>(new RecordWriter(std::move(file)));
}

Status RecordWriter::Write(absl::string_view payload) {
  frame_.clear();
  AppendRecord(payload, &frame_);
  return file_->Append(frame_);
}

StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(
    Env& env, const std::string& path, Compression compression, uint64_t offset) {
  MR_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, env.NewRandomAccessFile(path));
  std::unique_ptr<RecordReader> reader(
      new RecordReader(NewByteSource(std::move(file), compression, compression == Compression::kNone ? offset : 0)));
  reader->offset_ = offset;
  if (compression == Compression::kNone) return reader;
  for (std::string skipped; offset > 0; skipped.clear()) {
    MR_RETURN_IF_ERROR(reader->source_->Read(std::min<uint64_t>(offset, 64 << 10), &skipped));
    if (skipped.empty()) return OutOfRange("offset lies past the end of ", path);
    offset -= skipped.size();
  }
  return reader;
}

StatusOr<bool> RecordReader::Read(std::string* payload) {
  MR_RETURN_IF_ERROR(failure_);
  auto fail = [&](Status s) {
    failure_ = std::move(s);
    return failure_;
  };
  buffer_.clear();
  if (Status s = source_->Read(kHeaderBytes, &buffer_); !s.ok()) return fail(std::move(s));
  if (buffer_.empty()) return false;
  if (buffer_.size() < kHeaderBytes) return fail(DataLoss("truncated record at ", offset_));
  absl::string_view header = buffer_;
  uint64_t length = 0;
  uint32_t masked = 0;
  if (!GetFixed64(&header, &length) || !GetFixed32(&header, &masked) ||
      UnmaskCrc(masked) != Crc32c(absl::string_view(buffer_).substr(0, 8))) {
    return fail(DataLoss("corrupted record length at ", offset_));
  }
  if (length > max_record_bytes_) {
    return fail(ResourceExhausted("record of ", length, " bytes at ", offset_, ", the limit is ", max_record_bytes_));
  }
  payload->clear();
  if (Status s = source_->Read(length + kTrailerBytes, payload); !s.ok()) return fail(std::move(s));
  if (payload->size() < length + kTrailerBytes) return fail(DataLoss("truncated record at ", offset_));
  const auto stored = static_cast<uint32_t>(ReadFixed(payload->data() + length, kTrailerBytes));
  payload->resize(static_cast<size_t>(length));
  if (UnmaskCrc(stored) != Crc32c(*payload)) return fail(DataLoss("corrupted record at ", offset_));
  offset_ += kHeaderBytes + length + kTrailerBytes;
  return true;
}

}  // namespace millrace
