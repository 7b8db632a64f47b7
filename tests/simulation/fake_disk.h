// SPDX-License-Identifier: Apache-2.0
// A disk in memory that knows what a power loss leaves of it. Thread-safe.
//
// Durable are the bytes of a file at its last Sync, and the entries of a folder (created, renamed, deleted files) at
// its last SyncDir. Folders themselves are durable at once. Everything else may or may not survive, each piece for
// itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"

namespace millrace {

// SplitMix64 (Steele, Lea, Flood 2014).
uint64_t NextRandom(uint64_t* state);

class FakeDisk {
 public:
  // What is left after a power loss of all that was not durable.
  enum class Survival {
    kNothing,
    kEverything,
    kRandom,  // each entry and each file by itself: lost, kept, cut, or of full size with a tail that was never written
  };

  // The operation number n from now on (0: the next) that changes something fails, and all after it, with Unavailable.
  void CrashAfter(int64_t n);
  // Power loss, if it has not happened yet, and a fresh start. Files open before stay unusable.
  void Restart(Survival survival, uint64_t seed = 0);
  // Only the operation number n from now on fails, with this status.
  void FailOnce(int64_t n, Status status);
  // While it lies, Sync and SyncDir say OK and make nothing durable.
  void SetLies(bool lies);
  // Called before each operation that changes something, which may take its time. Before the first of them.
  void SetBeforeChange(std::function<void()> before_change) { before_change_ = std::move(before_change); }
  // Operations that changed something since the start: opening for writing, Append, Sync, Close, rename, delete,
  // SyncDir.
  int64_t operations() const;

  // As of Env.
  StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path, bool truncate);
  StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path);
  StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes);
  Status RenameFile(const std::string& from, const std::string& to);
  Status DeleteFile(const std::string& path);
  Status DeleteDir(const std::string& path);
  Status CreateDirs(const std::string& path);
  Status SyncDir(const std::string& path);
  bool FileExists(const std::string& path);
  StatusOr<uint64_t> FileSize(const std::string& path);
  StatusOr<std::vector<std::string>> ListDir(const std::string& path);

 private:
  struct File {
    std::string content;
    std::string durable;
  };
  using FilePtr = std::shared_ptr<File>;
  using Entries = std::map<std::string, FilePtr>;
  // A change of entries that is not durable yet: `removed` goes, `path` gets `file`; either may be empty.
  struct Change {
    std::string removed;
    std::string path;
    FilePtr file;
  };
  class Writer;
  class Reader;

  Status BeginChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status BeginRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Apply(const Change& change, Entries* entries);
  void Record(Change change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StatusOr<FilePtr> Find(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckParent(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void Prepare() ABSL_LOCKS_EXCLUDED(mu_) {
    if (before_change_) before_change_();
  }

  std::function<void()> before_change_;
  mutable absl::Mutex mu_;
  std::set<std::string> folders_ ABSL_GUARDED_BY(mu_) = {"", "/"};
  Entries entries_ ABSL_GUARDED_BY(mu_);              // as running programs see them
  Entries durable_entries_ ABSL_GUARDED_BY(mu_);      // as on disk
  std::vector<Change> changes_ ABSL_GUARDED_BY(mu_);  // from the latter to the former
  int64_t generation_ ABSL_GUARDED_BY(mu_) = 0;       // restarts so far
  int64_t operations_ ABSL_GUARDED_BY(mu_) = 0;
  bool lies_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<int64_t> crash_at_ ABSL_GUARDED_BY(mu_);
  std::optional<int64_t> fail_at_ ABSL_GUARDED_BY(mu_);
  Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
