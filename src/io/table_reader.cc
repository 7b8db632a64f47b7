// SPDX-License-Identifier: Apache-2.0
#include <snappy.h>

#include <algorithm>
#include <utility>

#include "io/coding.h"
#include "io/crc32c.h"
#include "io/table.h"
#include "io/table_format.h"

namespace millrace {
namespace {

using table_format::kFooterBytes;
using table_format::kTrailerBytes;

// No Snappy element makes more than 64 bytes of 2 or 3.
constexpr size_t kMaxSnappyExpansion = 32;

Status Broken(absl::string_view what) { return DataLoss("broken table: ", what); }

// The entries of one block, front to back.
class BlockCursor {
 public:
  Status Open(absl::string_view block) {
    if (block.size() < 8) return Broken("block without restart array");
    const uint64_t restarts = ReadFixed(block.data() + block.size() - 4, 4);
    if (restarts == 0 || restarts > (block.size() - 4) / 4) return Broken("restart array larger than its block");
    rest_ = block.substr(0, block.size() - 4 - static_cast<size_t>(restarts) * 4);
    return absl::OkStatus();
  }
  // False at the end.
  StatusOr<bool> Next() {
    if (rest_.empty()) return false;
    uint64_t shared = 0, own = 0, value_size = 0;
    absl::string_view suffix;
    if (!GetVarint(&rest_, &shared) || !GetVarint(&rest_, &own) || !GetVarint(&rest_, &value_size) ||
        shared > key_.size() || !GetBytes(&rest_, own, &suffix) || !GetBytes(&rest_, value_size, &value_)) {
      return Broken("entry goes past its block");
    }
    const bool first = !started_;
    started_ = true;
    // The new key must be above the old one: the shared part is equal, so the suffixes decide.
    if (!first && suffix <= absl::string_view(key_).substr(static_cast<size_t>(shared))) {
      return Broken("keys do not increase");
    }
    key_.resize(static_cast<size_t>(shared));
    key_.append(suffix.data(), suffix.size());
    return true;
  }
  const std::string& key() const { return key_; }
  absl::string_view value() const { return value_; }

 private:
  absl::string_view rest_;
  std::string key_;
  absl::string_view value_;
  bool started_ = false;
};

}  // namespace

bool TableReader::ParseHandle(absl::string_view* in, Handle* handle) {
  return GetVarint(in, &handle->offset) && GetVarint(in, &handle->size);
}

StatusOr<std::unique_ptr<TableReader>> TableReader::Open(std::unique_ptr<RandomAccessFile> file) {
  std::unique_ptr<TableReader> reader(new TableReader(std::move(file)));
  Handle index;
  MR_RETURN_IF_ERROR(reader->ReadFooter(&index));
  MR_RETURN_IF_ERROR(reader->ReadIndex(index));
  return reader;
}

Status TableReader::ReadFooter(Handle* index) const {
  const uint64_t size = file_->size();
  if (size < kFooterBytes) return Broken("file too short");
  char bytes[kFooterBytes];
  MR_RETURN_IF_ERROR(file_->Read(size - kFooterBytes, kFooterBytes, bytes));
  if (ReadFixed(bytes + kFooterBytes - 8, 8) != table_format::kMagic) return Broken("bad magic number");
  absl::string_view footer(bytes, kFooterBytes - 8);
  Handle meta;
  if (!ParseHandle(&footer, &meta) || !ParseHandle(&footer, index)) return Broken("bad footer");
  if (std::any_of(footer.begin(), footer.end(), [](char c) { return c != 0; })) return Broken("bad footer padding");
  const uint64_t body = size - kFooterBytes;
  if (index->size > body || index->offset > body || index->offset + index->size + kTrailerBytes != body) {
    return Broken("index block does not end at the footer");
  }
  if (meta.size > body || meta.offset > body || meta.offset + meta.size + kTrailerBytes != index->offset) {
    return Broken("metaindex block does not end at the index block");
  }
  return absl::OkStatus();
}

StatusOr<std::string> TableReader::ReadBlock(Handle handle) const {
  const uint64_t size = file_->size();
  if (handle.size > table_format::kMaxBlockBytes || handle.offset > size || handle.size + kTrailerBytes > size ||
      handle.offset > size - handle.size - kTrailerBytes) {
    return Broken("block goes past the end of the file");
  }
  std::string bytes(static_cast<size_t>(handle.size) + kTrailerBytes, '\0');
  MR_RETURN_IF_ERROR(file_->Read(handle.offset, bytes.size(), bytes.data()));
  const auto stored = static_cast<uint32_t>(ReadFixed(bytes.data() + handle.size + 1, 4));
  const auto type = static_cast<unsigned char>(bytes[static_cast<size_t>(handle.size)]);
  bytes.resize(static_cast<size_t>(handle.size) + 1);
  if (UnmaskCrc(stored) != Crc32c(bytes)) return Broken("block checksum does not match");
  bytes.pop_back();
  if (type == table_format::kRaw) return bytes;
  if (type != table_format::kSnappy) return Broken("unknown block type");
  size_t expanded = 0;
  if (!snappy::GetUncompressedLength(bytes.data(), bytes.size(), &expanded) ||
      expanded > table_format::kMaxBlockBytes || expanded / kMaxSnappyExpansion > bytes.size()) {
    return Broken("bad size of a compressed block");
  }
  std::string out(expanded, '\0');
  if (!snappy::RawUncompress(bytes.data(), bytes.size(), out.data())) return Broken("bad compressed block");
  return out;
}

Status TableReader::ReadIndex(Handle handle) {
  MR_ASSIGN_OR_RETURN(const std::string block, ReadBlock(handle));
  BlockCursor cursor;
  MR_RETURN_IF_ERROR(cursor.Open(block));
  uint64_t end = 0;
  while (true) {
    MR_ASSIGN_OR_RETURN(const bool more, cursor.Next());
    if (!more) return absl::OkStatus();
    IndexEntry entry;
    entry.last_key = cursor.key();
    absl::string_view value = cursor.value();
    if (!ParseHandle(&value, &entry.handle) || !value.empty()) return Broken("bad block handle");
    // Blocks that overlap would let a small file claim many entries.
    if (entry.handle.offset < end || entry.handle.offset > file_->size() || entry.handle.size > file_->size()) {
      return Broken("blocks overlap");
    }
    end = entry.handle.offset + entry.handle.size + kTrailerBytes;
    index_.push_back(std::move(entry));
  }
}

Status TableReader::ForEach(const std::function<Status(absl::string_view key, absl::string_view value)>& visit) const {
  const std::string* bound = nullptr;  // keys of the next block are above it
  for (const IndexEntry& entry : index_) {
    MR_ASSIGN_OR_RETURN(const std::string block, ReadBlock(entry.handle));
    BlockCursor cursor;
    MR_RETURN_IF_ERROR(cursor.Open(block));
    while (true) {
      MR_ASSIGN_OR_RETURN(const bool more, cursor.Next());
      if (!more) break;
      if ((bound != nullptr && cursor.key() <= *bound) || cursor.key() > entry.last_key) {
        return Broken("key outside its block's range");
      }
      MR_RETURN_IF_ERROR(visit(cursor.key(), cursor.value()));
    }
    bound = &entry.last_key;
  }
  return absl::OkStatus();
}

StatusOr<std::optional<std::string>> TableReader::Find(absl::string_view key) const {
  const auto entry = std::lower_bound(
      index_.begin(), index_.end(), key, [](const IndexEntry& e, absl::string_view k) { return e.last_key < k; });
  if (entry == index_.end()) return std::nullopt;
  MR_ASSIGN_OR_RETURN(const std::string block, ReadBlock(entry->handle));
  BlockCursor cursor;
  MR_RETURN_IF_ERROR(cursor.Open(block));
  while (true) {
    MR_ASSIGN_OR_RETURN(const bool more, cursor.Next());
    if (!more || cursor.key() > key) return std::nullopt;
    if (cursor.key() == key) return std::string(cursor.value());
  }
}

}  // namespace millrace
