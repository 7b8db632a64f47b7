// SPDX-License-Identifier: Apache-2.0
// Everything that the outside world decides, behind one interface: clocks, timers, threads, files, randomness. Tests
// put a simulated world here (fake_env.h). (The network joins it together with the first remote transport.)
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
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

  virtual absl::Time Now() = 0;          // on the wall: for people; it may jump
  virtual int64_t MonotonicNanos() = 0;  // for deadlines and periods
  virtual uint64_t Random64() = 0;       // from the system's entropy

  // Runs `fn` soon, on some thread of the process. It must not wait for long.
  virtual void Schedule(absl::AnyInvocable<void() &&> fn) = 0;
  // Runs `fn` on a thread of its own, one that has become idle if there is one: it may wait as long as it likes.
  // ResourceExhausted when there can be no further thread.
  virtual Status StartThread(absl::AnyInvocable<void() &&> fn) = 0;

  // Calls `fn` once `period` has passed on the monotonic clock, and so on for as long as it returns true. It must not
  // wait, since other timers wait for it.
  using TimerId = int64_t;
  virtual TimerId StartTimer(absl::Duration period, absl::AnyInvocable<bool()> fn) = 0;
  // After return the timer's function does not run and is not running, unless it is what calls this.
  virtual void StopTimer(TimerId id) = 0;
  // The same, once.
  TimerId ScheduleAfter(absl::Duration after, absl::AnyInvocable<void() &&> fn);

  // Waits until `condition` holds, at most `patience` on the monotonic clock: whether it holds. The caller holds `mu`.
  virtual bool Await(absl::Mutex& mu, const absl::Condition& condition,
                     absl::Duration patience = absl::InfiniteDuration()) = 0;
  // Sleeps while `word` holds `seen`, until somebody calls WakeOne, or `nanos` have passed (-1: without limit). May
  // return early for no reason.
  virtual void WaitWhile(std::atomic<uint32_t>& word, uint32_t seen, int64_t nanos) = 0;
  virtual void WakeOne(std::atomic<uint32_t>& word) = 0;
  // Whether time stands still until somebody waits: then nothing comes of spinning.
  virtual bool IsSimulated() const { return false; }

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
