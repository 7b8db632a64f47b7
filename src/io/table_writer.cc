// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "io/coding.h"
#include "io/crc32c.h"
#include "io/table.h"
#include "io/table_format.h"

namespace millrace {
namespace {

// The shortest key k with low <= k < high that these bytes show.
std::string Separator(const std::string& low, absl::string_view high) {
  const size_t n = std::min(low.size(), high.size());
  const size_t same = static_cast<size_t>(
      std::mismatch(low.begin(), low.begin() + static_cast<ptrdiff_t>(n), high.begin()).first - low.begin());
  if (same == n) return low;
  const auto a = static_cast<unsigned char>(low[same]);
  const auto b = static_cast<unsigned char>(high[same]);
  if (a == 0xff || a + 1 >= b) return low;
  std::string k = low.substr(0, same + 1);
  k.back() = static_cast<char>(a + 1);
  return k;
}

// A short key that is not below `low`.
std::string Successor(const std::string& low) {
  for (size_t i = 0; i < low.size(); ++i) {
    const auto c = static_cast<unsigned char>(low[i]);
    if (c == 0xff) continue;
    std::string k = low.substr(0, i + 1);
    k.back() = static_cast<char>(c + 1);
    return k;
  }
  return low;
}

}  // namespace

void TableWriter::Block::Add(absl::string_view key, absl::string_view value, int restart_interval) {
  size_t shared = 0;
  if (restarts.empty() || since_restart >= restart_interval) {
    restarts.push_back(static_cast<uint32_t>(contents.size()));
    since_restart = 0;
  } else {
    const size_t n = std::min(last_key.size(), key.size());
    while (shared < n && last_key[shared] == key[shared]) ++shared;
  }
  PutVarint(shared, &contents);
  PutVarint(key.size() - shared, &contents);
  PutVarint(value.size(), &contents);
  contents.append(key.data() + shared, key.size() - shared);
  contents.append(value.data(), value.size());
  last_key.assign(key.data(), key.size());
  ++since_restart;
}

std::string TableWriter::Block::Take() {
  if (restarts.empty()) restarts.push_back(0);
  for (uint32_t r : restarts) PutFixed32(r, &contents);
  PutFixed32(static_cast<uint32_t>(restarts.size()), &contents);
  std::string taken = std::move(contents);
  *this = Block();
  return taken;
}

Status TableWriter::WriteBlock(Block* block, std::string* handle) {
  std::string bytes = block->Take();
  handle->clear();
  PutVarint(offset_, handle);
  PutVarint(bytes.size(), handle);
  bytes.push_back(static_cast<char>(table_format::kRaw));
  PutFixed32(MaskCrc(Crc32c(bytes)), &bytes);
  offset_ += bytes.size();
  return file_->Append(bytes);
}

Status TableWriter::FlushData() {
  if (data_.restarts.empty()) return absl::OkStatus();
  return WriteBlock(&data_, &pending_handle_);
}

Status TableWriter::Add(absl::string_view key, absl::string_view value) {
  if (last_key_ && key <= *last_key_) return InvalidArgument("keys of a table must increase");
  if (value.size() >= table_format::kMaxBlockBytes || key.size() >= table_format::kMaxBlockBytes) {
    return InvalidArgument("table entry of ", value.size(), " bytes is too large");
  }
  if (key.size() + value.size() >= 2 * table_format::kBlockTargetBytes) MR_RETURN_IF_ERROR(FlushData());
  if (!pending_handle_.empty()) {
    index_.Add(Separator(*last_key_, key), pending_handle_, table_format::kIndexRestartInterval);
    pending_handle_.clear();
  }
  data_.Add(key, value, table_format::kDataRestartInterval);
  last_key_.emplace(key);
  return data_.contents.size() >= table_format::kBlockTargetBytes ? FlushData() : absl::OkStatus();
}

Status TableWriter::Finish() {
  MR_RETURN_IF_ERROR(FlushData());
  if (!pending_handle_.empty()) {
    index_.Add(Successor(*last_key_), pending_handle_, table_format::kIndexRestartInterval);
  }
  Block meta;
  std::string footer, index_handle;
  MR_RETURN_IF_ERROR(WriteBlock(&meta, &footer));
  MR_RETURN_IF_ERROR(WriteBlock(&index_, &index_handle));
  footer += index_handle;
  footer.resize(table_format::kFooterBytes - 8, '\0');
  PutFixed64(table_format::kMagic, &footer);
  return file_->Append(footer);
}

}  // namespace millrace
