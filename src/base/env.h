// SPDX-License-Identifier: Apache-2.0
// Everything that the outside world decides, behind one interface: clock, files, randomness. Tests put a simulated
// world here. (The network joins it together with the first remote transport.) Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/status.h"

namespace millrace {

// Sequential writer. Append buffers; Sync makes what was appended durable; Close is idempotent. A failed Sync means the
// file must be given up (never retry fsync).
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Status Append(absl::string_view data) = 0;
  virtual Status Flush() = 0;
  virtual Status Sync() = 0;
  virtual Status Close() = 0;
};

// Positioned reader; safe to use from several threads.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  // Reads exactly n bytes at `offset` into `out`; OutOfRange when the file ends before.
  virtual Status Read(uint64_t offset, size_t n, char* out) const = 0;
  virtual uint64_t size() const = 0;
};

class Env {
 public:
  virtual ~Env() = default;

  virtual absl::Time Now() = 0;
  virtual int64_t MonotonicNanos() = 0;
  virtual uint64_t Random64() = 0;  // from the system's entropy

  virtual StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) = 0;  // truncates
  virtual StatusOr<std::unique_ptr<WritableFile>> NewAppendableFile(const std::string& path) = 0;
  virtual StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) = 0;
  virtual StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32) = 0;
  virtual Status RenameFile(const std::string& from, const std::string& to) = 0;
  virtual Status DeleteFile(const std::string& path) = 0;
  virtual Status DeleteDir(const std::string& path) = 0;   // must be empty
  virtual Status CreateDirs(const std::string& path) = 0;  // with parents; existing is fine
  virtual Status SyncDir(const std::string& path) = 0;
  virtual bool FileExists(const std::string& path) = 0;
  virtual StatusOr<uint64_t> FileSize(const std::string& path) = 0;
  virtual StatusOr<std::vector<std::string>> ListDir(const std::string& path) = 0;  // base names, sorted

  static Env& Default();  // POSIX
};

// Path helpers without system calls.
std::string JoinPath(absl::string_view a, absl::string_view b);
absl::string_view Dirname(absl::string_view path);  // "" when there is no slash
absl::string_view Basename(absl::string_view path);

// tmp file in the same folder, fsync, rename over `path`, fsync of the folder.
Status WriteFileAtomically(Env& env, const std::string& path, absl::string_view contents);

}  // namespace millrace
