// SPDX-License-Identifier: Apache-2.0
// A simulated world for tests: files in memory that know what a power loss leaves of them, and time, threads and
// randomness that are functions of a seed (sim_scheduler.h). Thread-safe.
//
// What is scheduled, timed or started happens while the test's thread waits: in RunUntil, RunFor, Await or WaitWhile.
//
// Durable are the bytes of a file at its last Sync, and the entries of a folder (created, renamed, deleted files) at
// its last SyncDir. Folders themselves are durable at once. Everything else may or may not survive, each piece for
// itself.
//
// A crash test runs its writer once to count operations(), then again for each point n with CrashAfter(n), restarts
// with several survivals and seeds, and checks what a reader finds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "base/sim_scheduler.h"

namespace millrace {

class FakeEnv final : public Env {
 public:
  explicit FakeEnv(uint64_t seed = 1);  // the world of this thread too (base/this_world.h)
  ~FakeEnv() override;

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
  // Operations that changed something since the start: opening for writing, Append, Sync, Close, rename, delete,
  // SyncDir.
  int64_t operations() const;
  // Both clocks move, and nothing happens.
  void AdvanceClock(absl::Duration by);
  // Only the clock on the wall jumps.
  void SetWallClock(absl::Time now);

  // Lets things happen until `done` holds, or nothing can happen any more: whether it holds.
  bool RunUntil(absl::FunctionRef<bool()> done) { return scheduler_.Wait(done, -1); }
  // Lets that much time pass.
  void RunFor(absl::Duration time);
  // Of all that has happened, and in which order: the same for runs that were the same.
  uint64_t history() const { return scheduler_.history(); }

  absl::Time Now() override;
  int64_t MonotonicNanos() override;
  uint64_t Random64() override;
  void Schedule(absl::AnyInvocable<void() &&> fn) override;
  Status StartThread(absl::AnyInvocable<void() &&> fn) override;
  TimerId StartTimer(absl::Duration period, absl::AnyInvocable<bool()> fn) override;
  void StopTimer(TimerId id) override;
  bool Await(absl::Mutex& mu, const absl::Condition& condition,
             absl::Duration patience = absl::InfiniteDuration()) override;
  void WaitWhile(std::atomic<uint32_t>& word, uint32_t seen, int64_t nanos) override;
  void WakeOne(std::atomic<uint32_t>&) override {}  // whoever waits is asked after everything that happens
  bool IsSimulated() const override { return true; }
  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override;
  StatusOr<std::unique_ptr<WritableFile>> NewAppendableFile(const std::string& path) override;
  StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override;
  StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32) override;
  Status RenameFile(const std::string& from, const std::string& to) override;
  Status DeleteFile(const std::string& path) override;
  Status DeleteDir(const std::string& path) override;
  Status CreateDirs(const std::string& path) override;
  Status SyncDir(const std::string& path) override;
  bool FileExists(const std::string& path) override;
  StatusOr<uint64_t> FileSize(const std::string& path) override;
  StatusOr<std::vector<std::string>> ListDir(const std::string& path) override;

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
  StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path, bool truncate);

  mutable absl::Mutex mu_;
  std::set<std::string> folders_ ABSL_GUARDED_BY(mu_);
  Entries entries_ ABSL_GUARDED_BY(mu_);              // as running programs see them
  Entries durable_entries_ ABSL_GUARDED_BY(mu_);      // as on disk
  std::vector<Change> changes_ ABSL_GUARDED_BY(mu_);  // from the latter to the former
  int64_t generation_ ABSL_GUARDED_BY(mu_) = 0;       // restarts so far
  int64_t operations_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<int64_t> crash_at_ ABSL_GUARDED_BY(mu_);
  std::optional<int64_t> fail_at_ ABSL_GUARDED_BY(mu_);
  Status failure_ ABSL_GUARDED_BY(mu_);
  // On the wall when the monotonic clock says 0. It says a second when the world begins, and the wall 1'000'000'000 s.
  absl::Time start_ ABSL_GUARDED_BY(mu_) = absl::FromUnixSeconds(999'999'999);
  uint64_t random_ ABSL_GUARDED_BY(mu_);
  SimScheduler scheduler_;
};

}  // namespace millrace
