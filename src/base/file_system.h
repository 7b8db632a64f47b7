// SPDX-License-Identifier: Apache-2.0
// What others keep under a scheme of their own ("gs://bucket/file"). The system's Env hands on what has a scheme; all
// other paths are files of the machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env.h"

namespace millrace {

struct FileInfo {
  uint64_t bytes = 0;
  int64_t changed_nanos = 0;  // since 1970
  bool is_folder = false;
};

// Paths are whole, with their scheme. Codes are those of Env: NotFound for what is not there, FailedPrecondition for a
// folder in place of a file and the other way round, AlreadyExists. May be used by several threads at once.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) = 0;  // truncates
  virtual StatusOr<std::unique_ptr<WritableFile>> NewAppendableFile(const std::string& path) = 0;
  virtual StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) = 0;
  virtual Status RenameFile(const std::string& from, const std::string& to) = 0;
  virtual Status DeleteFile(const std::string& path) = 0;
  virtual Status DeleteDir(const std::string& path) = 0;   // must be empty
  virtual Status CreateDir(const std::string& path) = 0;   // one level; AlreadyExists
  virtual Status CreateDirs(const std::string& path) = 0;  // with parents; existing is fine
  virtual StatusOr<FileInfo> Stat(const std::string& path) = 0;
  virtual StatusOr<std::vector<std::string>> ListDir(const std::string& path) = 0;  // base names, sorted
};

// All of a file behind what another has, in pieces.
Status CopyContents(const RandomAccessFile& from, WritableFile& to);

// OutOfRange, for RandomAccessFile::Read.
Status ReadPastEnd(const std::string& path, uint64_t size, uint64_t offset, size_t n);

// "gs" of "gs://x": a letter, then letters, digits and dots. Empty where there is none, and for "file".
absl::string_view FileScheme(absl::string_view path);

// Whether it means the same in every folder.
bool IsAbsolutePath(absl::string_view path);

// It stays for ever. InvalidArgument: no scheme. AlreadyExists: somebody has it.
Status AddFileSystem(absl::string_view scheme, std::unique_ptr<FileSystem> files);
bool HasFileSystem(absl::string_view scheme);

// Null: the path is the machine's. Unimplemented: nobody has added its scheme.
StatusOr<FileSystem*> FileSystemOf(const std::string& path);

}  // namespace millrace
