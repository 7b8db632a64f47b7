// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "base/env.h"
#include "io/record.h"
#include "kernels/cpu/data/reader.h"

namespace millrace {
namespace {

// A file's bytes from the front, as many at a time as somebody wants to see.
class ByteWindow {
 public:
  explicit ByteWindow(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  absl::string_view view() const { return absl::string_view(buffer_).substr(begin_); }
  bool at_end() const { return ended_; }
  // Shows n bytes or more; fewer only at the end.
  Status Fill(uint64_t n) {
    constexpr uint64_t kChunk = 256 << 10;
    if (view().size() >= n || ended_) return absl::OkStatus();
    buffer_.erase(0, begin_);
    begin_ = 0;
    const uint64_t more = std::max(n - buffer_.size(), kChunk);
    const size_t before = buffer_.size();
    MR_RETURN_IF_ERROR(source_->Read(more, &buffer_));
    ended_ = buffer_.size() - before < more;
    return absl::OkStatus();
  }
  Status Skip(uint64_t n) {
    while (n > 0) {
      if (view().empty()) MR_RETURN_IF_ERROR(Fill(1));
      const uint64_t step = std::min<uint64_t>(n, view().size());
      if (step == 0) break;
      begin_ += step;
      n -= step;
    }
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  size_t begin_ = 0;
  bool ended_ = false;
};

StatusOr<std::unique_ptr<ByteWindow>> OpenWindow(Env& env, const std::string& path, Compression compression) {
  MR_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, env.NewRandomAccessFile(path));
  return std::make_unique<ByteWindow>(NewByteSource(std::move(file), compression));
}

class IdentityFormat final : public RecordFormat {
 public:
  Status Open(Env&, const std::string& path) override {
    path_ = path;
    return absl::OkStatus();
  }
  StatusOr<Found> Next(Record* record) override {
    *record = {path_, path_};
    return Found::kLast;
  }
  void Close() override {}

 private:
  std::string path_;
};

class WholeFileFormat final : public RecordFormat {
 public:
  // A file that cannot be read is passed over, as with other formats.
  Status Open(Env& env, const std::string& path) override {
    MR_ASSIGN_OR_RETURN(contents_, env.ReadFile(path));
    path_ = path;
    return absl::OkStatus();
  }
  StatusOr<Found> Next(Record* record) override {
    *record = {path_, std::move(contents_)};
    return Found::kLast;
  }
  void Close() override { contents_ = std::string(); }

 private:
  std::string path_;
  std::string contents_;
};

// Lines end at a line feed, or at a carriage return and a line feed.
class TextLineFormat final : public RecordFormat {
 public:
  TextLineFormat(int64_t skip_lines, Compression compression) : skip_lines_(skip_lines), compression_(compression) {}

  Status Open(Env& env, const std::string& path) override {
    MR_ASSIGN_OR_RETURN(window_, OpenWindow(env, path, compression_));
    path_ = path;
    line_number_ = 0;
    std::string skipped;
    while (line_number_ < skip_lines_) {
      MR_ASSIGN_OR_RETURN(const bool found, ReadLine(&skipped));
      if (!found) break;
    }
    return absl::OkStatus();
  }
  StatusOr<Found> Next(Record* record) override {
    MR_ASSIGN_OR_RETURN(const bool found, ReadLine(&record->value));
    if (!found) return Found::kNothing;
    record->key = absl::StrCat(path_, ":", line_number_);
    return Found::kRecord;
  }
  void Close() override { window_.reset(); }

 private:
  StatusOr<bool> ReadLine(std::string* line) {
    size_t seen = 0;
    size_t end = absl::string_view::npos;
    while ((end = window_->view().find('\n', seen)) == absl::string_view::npos && !window_->at_end()) {
      seen = window_->view().size();
      MR_RETURN_IF_ERROR(window_->Fill(std::max<uint64_t>(2 * seen, 1)));
    }
    const absl::string_view view = window_->view();
    if (view.empty()) return false;
    *line = std::string(view.substr(0, end));
    if (end != absl::string_view::npos && line->ends_with('\r')) line->pop_back();
    MR_RETURN_IF_ERROR(window_->Skip(std::min(end, view.size() - 1) + 1));
    ++line_number_;
    return true;
  }

  const int64_t skip_lines_;
  const Compression compression_;
  std::unique_ptr<ByteWindow> window_;
  std::string path_;
  int64_t line_number_ = 0;
};

class FixedLengthFormat final : public RecordFormat {
 public:
  FixedLengthFormat(const FixedLengths& lengths, Compression compression)
      : header_(static_cast<uint64_t>(lengths.header)),
        record_(static_cast<uint64_t>(lengths.record)),
        footer_(static_cast<uint64_t>(lengths.footer)),
        hop_(static_cast<uint64_t>(lengths.hop > 0 ? lengths.hop : lengths.record)),
        only_whole_(lengths.only_whole),
        compression_(compression) {}

  Status Open(Env& env, const std::string& path) override {
    path_ = path;
    number_ = 0;
    if (only_whole_ && compression_ == Compression::kNone) {
      MR_ASSIGN_OR_RETURN(const uint64_t size, env.FileSize(path));
      if (size < header_ || size - header_ < footer_ || (size - header_ - footer_) % record_ != 0) {
        return InvalidArgument(
            "Excluding the header (", header_, " bytes) and footer (", footer_, " bytes), input file \"", path,
            "\" has body length ", static_cast<int64_t>(size) - static_cast<int64_t>(header_ + footer_),
            " bytes, which is not an exact multiple of the record length (", record_, " bytes).");
      }
    }
    MR_ASSIGN_OR_RETURN(window_, OpenWindow(env, path, compression_));
    return window_->Skip(header_);
  }
  StatusOr<Found> Next(Record* record) override {
    MR_RETURN_IF_ERROR(window_->Fill(record_ + footer_));
    if (const size_t left = window_->view().size(); left < record_ + footer_) {
      if (!only_whole_ || left == footer_) return Found::kNothing;
      return DataLoss("after ", number_, " records of ", record_, " bytes ", path_, " has ", left,
                      " bytes left, wanted is a footer of ", footer_);
    }
    record->value = std::string(window_->view().substr(0, record_));
    record->key = absl::StrCat(path_, ":", number_++);
    MR_RETURN_IF_ERROR(window_->Skip(hop_));
    return Found::kRecord;
  }
  void Close() override { window_.reset(); }

 private:
  const uint64_t header_, record_, footer_, hop_;
  const bool only_whole_;
  const Compression compression_;
  std::unique_ptr<ByteWindow> window_;
  std::string path_;
  int64_t number_ = 0;
};

class TfRecordFormat final : public RecordFormat {
 public:
  explicit TfRecordFormat(Compression compression) : compression_(compression) {}

  Status Open(Env& env, const std::string& path) override {
    path_ = path;
    MR_ASSIGN_OR_RETURN(reader_, RecordReader::Open(env, path, compression_));
    return absl::OkStatus();
  }
  StatusOr<Found> Next(Record* record) override {
    const uint64_t offset = reader_->offset();
    const StatusOr<bool> found = reader_->Read(&record->value);
    if (!found.ok()) return Annotate(found.status(), absl::StrCat(path_, ": "));
    if (!*found) return Found::kNothing;
    record->key = absl::StrCat(path_, ":", offset);
    return Found::kRecord;
  }
  void Close() override { reader_.reset(); }

 private:
  const Compression compression_;
  std::string path_;
  std::unique_ptr<RecordReader> reader_;
};

}  // namespace

std::unique_ptr<RecordFormat> NewIdentityFormat() { return std::make_unique<IdentityFormat>(); }
std::unique_ptr<RecordFormat> NewWholeFileFormat() { return std::make_unique<WholeFileFormat>(); }
std::unique_ptr<RecordFormat> NewTextLineFormat(int64_t skip_lines, Compression compression) {
  return std::make_unique<TextLineFormat>(skip_lines, compression);
}
std::unique_ptr<RecordFormat> NewTfRecordFormat(Compression compression) {
  return std::make_unique<TfRecordFormat>(compression);
}

StatusOr<std::unique_ptr<RecordFormat>> NewFixedLengthFormat(const FixedLengths& lengths, Compression compression) {
  if (lengths.header < 0) return InvalidArgument("header_bytes must be >= 0 not ", lengths.header);
  if (lengths.record <= 0) return InvalidArgument("record_bytes must be > 0 not ", lengths.record);
  if (lengths.footer < 0) return InvalidArgument("footer_bytes must be >= 0 not ", lengths.footer);
  if (lengths.hop < 0) return InvalidArgument("hop_bytes must be >= 0 not ", lengths.hop);
  if (lengths.footer > std::numeric_limits<int64_t>::max() - lengths.record) {
    return InvalidArgument(
        "record_bytes and footer_bytes are ", lengths.record, " and ", lengths.footer, ", more than a file can hold");
  }
  return std::make_unique<FixedLengthFormat>(lengths, compression);
}

}  // namespace millrace
