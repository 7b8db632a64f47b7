// SPDX-License-Identifier: Apache-2.0
#include "base/file_system.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"

namespace millrace {
namespace {

constexpr absl::string_view kBehindScheme = "://";
constexpr uint64_t kCopyBytes = 1 << 20;
constexpr size_t kMaxShownPath = 300;

struct FileSystems {
  absl::Mutex mu;
  std::map<std::string, std::unique_ptr<FileSystem>, std::less<>> by_scheme ABSL_GUARDED_BY(mu);
};
FileSystems& TheFileSystems() {
  static auto* const all = new FileSystems;
  return *all;
}

bool IsScheme(absl::string_view text) {
  return !text.empty() && absl::ascii_isalpha(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isalnum(c) || c == '.'; });
}

FileSystem* Find(absl::string_view scheme) {
  FileSystems& all = TheFileSystems();
  absl::ReaderMutexLock lock(&all.mu);
  const auto it = all.by_scheme.find(scheme);
  return it == all.by_scheme.end() ? nullptr : it->second.get();
}

}  // namespace

Status CopyContents(const RandomAccessFile& from, WritableFile& to) {
  std::string piece;
  for (uint64_t at = 0; at < from.size(); at += piece.size()) {
    piece.resize(static_cast<size_t>(std::min(kCopyBytes, from.size() - at)));
    MR_RETURN_IF_ERROR(from.Read(at, piece.size(), piece.data()));
    MR_RETURN_IF_ERROR(to.Append(piece));
  }
  return absl::OkStatus();
}

Status ReadPastEnd(const std::string& path, uint64_t size, uint64_t offset, size_t n) {
  return OutOfRange("read of ", n, " bytes at ", offset, " goes past the end of ", path, " (", size, " bytes)");
}

absl::string_view FileScheme(absl::string_view path) {
  const size_t end = path.find(kBehindScheme);
  if (end == absl::string_view::npos) return "";
  const absl::string_view scheme = path.substr(0, end);
  return IsScheme(scheme) && scheme != "file" ? scheme : "";
}

bool IsAbsolutePath(absl::string_view path) {
  return absl::StartsWith(path, "/") || absl::StartsWith(path, "file://") || !FileScheme(path).empty();
}

Status AddFileSystem(absl::string_view scheme, std::unique_ptr<FileSystem> files) {
  if (!IsScheme(scheme) || scheme == "file") {
    return InvalidArgument(
        "'", scheme, "' is no scheme of files: want a letter, then letters, digits and dots, and not 'file'");
  }
  FileSystems& all = TheFileSystems();
  absl::MutexLock lock(&all.mu);
  const bool is_new = all.by_scheme.try_emplace(std::string(scheme), std::move(files)).second;
  return is_new ? absl::OkStatus() : AlreadyExists("there is a file system for ", scheme, ":// already");
}

bool HasFileSystem(absl::string_view scheme) { return Find(scheme) != nullptr; }

StatusOr<FileSystem*> FileSystemOf(const std::string& path) {
  const absl::string_view scheme = FileScheme(path);
  if (scheme.empty()) return nullptr;
  FileSystem* const files = Find(scheme);
  if (files != nullptr) return files;
  return Unimplemented("File system scheme '", scheme, "' not implemented (file: '", path.substr(0, kMaxShownPath),
                       "'); ", "tf.load_file_system_library or TF_RegisterFilesystemPlugin adds one");
}

}  // namespace millrace
