// SPDX-License-Identifier: Apache-2.0
#include "io/compression.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace millrace {
namespace {

constexpr size_t kChunkBytes = 64 << 10;

// zlib's window argument: 15 bits of window, plus 16 for the gzip wrapper.
int WindowBits(Compression c) { return c == Compression::kGzip ? 15 + 16 : 15; }

class PlainSource final : public ByteSource {
 public:
  PlainSource(std::unique_ptr<RandomAccessFile> file, uint64_t offset) : file_(std::move(file)), offset_(offset) {}

  Status Read(uint64_t n, std::string* out) override {
    if (offset_ >= file_->size()) return absl::OkStatus();
    const auto take = static_cast<size_t>(std::min(n, file_->size() - offset_));
    const size_t before = out->size();
    out->resize(before + take);
    MR_RETURN_IF_ERROR(file_->Read(offset_, take, out->data() + before));
    offset_ += take;
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<RandomAccessFile> file_;
  uint64_t offset_;
};

class InflatingSource final : public ByteSource {
 public:
  InflatingSource(std::unique_ptr<RandomAccessFile> file, Compression c) : input_(std::move(file), 0) {
    ready_ = inflateInit2(&stream_, WindowBits(c)) == Z_OK;
  }
  ~InflatingSource() override {
    if (ready_) inflateEnd(&stream_);
  }

  Status Read(uint64_t n, std::string* out) override {
    if (!ready_) return ResourceExhausted("cannot start a decompressor");
    while (n > 0 && !ended_) {
      const size_t before = out->size();
      const auto room = static_cast<size_t>(std::min<uint64_t>(n, kChunkBytes));
      out->resize(before + room);
      const StatusOr<size_t> got = Inflate(out->data() + before, room);
      out->resize(before + got.value_or(0));
      MR_RETURN_IF_ERROR(got.status());
      n -= *got;
    }
    return absl::OkStatus();
  }

 private:
  StatusOr<size_t> Inflate(char* to, size_t room) {
    if (stream_.avail_in == 0) {
      chunk_.clear();
      MR_RETURN_IF_ERROR(input_.Read(kChunkBytes, &chunk_));
      stream_.next_in = reinterpret_cast<Bytef*>(chunk_.data());
      stream_.avail_in = static_cast<uInt>(chunk_.size());
    }
    const bool at_end = chunk_.empty();
    if (at_end && !started_) {  // an empty file holds nothing
      ended_ = true;
      return size_t{0};
    }
    started_ = true;
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    const size_t got = room - stream_.avail_out;
    if (result == Z_STREAM_END) {
      MR_RETURN_IF_ERROR(NextMember());
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return DataLoss("broken compressed stream: ", stream_.msg ? stream_.msg : "unknown cause");
    } else if (at_end && got == 0) {
      return DataLoss("compressed stream is truncated");
    }
    return got;
  }

  // Several gzip streams in a row read as one.
  Status NextMember() {
    if (stream_.avail_in == 0) {
      chunk_.clear();
      MR_RETURN_IF_ERROR(input_.Read(kChunkBytes, &chunk_));
      stream_.next_in = reinterpret_cast<Bytef*>(chunk_.data());
      stream_.avail_in = static_cast<uInt>(chunk_.size());
    }
    if (stream_.avail_in == 0) {
      ended_ = true;
    } else if (inflateReset(&stream_) != Z_OK) {
      return Internal("cannot reset the decompressor");
    }
    return absl::OkStatus();
  }

  PlainSource input_;
  std::string chunk_;
  z_stream stream_ = {};
  bool ready_ = false;
  bool started_ = false;
  bool ended_ = false;
};

class DeflatingFile final : public WritableFile {
 public:
  DeflatingFile(std::unique_ptr<WritableFile> file, Compression c, const DeflateOptions& o) : file_(std::move(file)) {
    const bool adds_gzip = c == Compression::kGzip && o.window_bits <= 15;
    const int bits = adds_gzip ? o.window_bits + 16 : o.window_bits;
    begun_ = deflateInit2(&stream_, o.level, Z_DEFLATED, bits, o.mem_level, o.strategy);
    open_ = begun_ == Z_OK;
  }
  ~DeflatingFile() override { (void)Close(); }
  Status begun() const {
    if (begun_ == Z_STREAM_ERROR) return InvalidArgument("zlib does not take these options of a compressed file");
    return open_ ? absl::OkStatus() : ResourceExhausted("cannot start a compressor");
  }

  Status Append(absl::string_view data) override {
    while (!data.empty()) {
      const size_t n = std::min(data.size(), size_t{1} << 30);
      MR_RETURN_IF_ERROR(Deflate(data.substr(0, n), Z_NO_FLUSH));
      data.remove_prefix(n);
    }
    return absl::OkStatus();
  }
  Status Flush() override {
    MR_RETURN_IF_ERROR(Deflate({}, Z_SYNC_FLUSH));
    return file_->Flush();
  }
  Status Sync() override {
    MR_RETURN_IF_ERROR(Deflate({}, Z_SYNC_FLUSH));
    return file_->Sync();
  }
  Status Close() override {
    if (!open_) return absl::OkStatus();
    const Status ended = Deflate({}, Z_FINISH);
    deflateEnd(&stream_);
    open_ = false;
    const Status closed = file_->Close();
    return ended.ok() ? closed : ended;
  }

 private:
  Status Deflate(absl::string_view data, int mode) {
    if (!open_) return FailedPrecondition("file is closed");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    stream_.avail_in = static_cast<uInt>(data.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_);
      stream_.avail_out = sizeof(buffer_);
      const int result = deflate(&stream_, mode);
      if (result == Z_STREAM_ERROR) return Internal("the compressor failed");
      MR_RETURN_IF_ERROR(file_->Append(absl::string_view(buffer_, sizeof(buffer_) - stream_.avail_out)));
    } while (stream_.avail_out == 0);
    return absl::OkStatus();
  }

  const std::unique_ptr<WritableFile> file_;
  z_stream stream_ = {};
  int begun_ = Z_OK;  // what zlib said
  bool open_ = false;
  char buffer_[kChunkBytes];
};

}  // namespace

Status Expand(absl::string_view compressed, Compression compression, size_t limit, std::string* out) {
  z_stream stream = {};
  if (inflateInit2(&stream, WindowBits(compression)) != Z_OK) return ResourceExhausted("cannot start a decompressor");
  const absl::Cleanup end = [&] { inflateEnd(&stream); };
  // zlib counts in 32 bits.
  for (absl::string_view rest = compressed; stream.avail_in > 0 || !rest.empty();) {
    if (stream.avail_in == 0) {
      const size_t n = std::min(rest.size(), size_t{1} << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
      stream.avail_in = static_cast<uInt>(n);
      rest.remove_prefix(n);
    }
    int result = Z_OK;
    do {
      const size_t before = out->size();
      if (before > limit) return ResourceExhausted("a compressed string expands to more than ", limit, " bytes");
      out->resize(before + kChunkBytes);
      stream.next_out = reinterpret_cast<Bytef*>(out->data() + before);
      stream.avail_out = static_cast<uInt>(kChunkBytes);
      result = inflate(&stream, Z_NO_FLUSH);
      out->resize(before + kChunkBytes - stream.avail_out);
    } while (result == Z_OK && stream.avail_out == 0);
    if (result == Z_STREAM_END) {
      if (compression == Compression::kZlib) return absl::OkStatus();
      if (inflateReset(&stream) != Z_OK) return Internal("cannot reset the decompressor");
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return DataLoss("broken compressed string: ", stream.msg ? stream.msg : "unknown cause");
    }
  }
  return absl::OkStatus();
}

StatusOr<Compression> CompressionFromName(absl::string_view name) {
  if (name.empty()) return Compression::kNone;
  if (name == "ZLIB") return Compression::kZlib;
  if (name == "GZIP") return Compression::kGzip;
  return InvalidArgument("unknown compression \"", name, "\", known are \"\", ZLIB and GZIP");
}

std::unique_ptr<ByteSource> NewByteSource(std::unique_ptr<RandomAccessFile> file, Compression compression,
                                          uint64_t offset) {
  if (compression == Compression::kNone) return std::make_unique<PlainSource>(std::move(file), offset);
  return std::make_unique<InflatingSource>(std::move(file), compression);
}

StatusOr<std::unique_ptr<WritableFile>> NewCompressedFile(
    std::unique_ptr<WritableFile> file, Compression compression, const DeflateOptions& options) {
  if (compression == Compression::kNone) return file;
  auto deflating = std::make_unique<DeflatingFile>(std::move(file), compression, options);
  MR_RETURN_IF_ERROR(deflating->begun());
  return std::unique_ptr<WritableFile>(std::move(deflating));
}

}  // namespace millrace
