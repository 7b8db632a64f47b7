// SPDX-License-Identifier: Apache-2.0
// Readers: records out of files whose names come from a queue (white paper 4.5). Thread-safe.
//
// Reads are served one after the other, in the order of arrival. A read that finds no file open waits for the queue
// without a thread, and so do those behind it; cancellation ends each of them. A file is read by whoever called, or,
// when a name came late, on the pool.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "io/compression.h"
#include "kernel/cancellation.h"
#include "kernels/cpu/dataflow/queue.h"
#include "kernels/cpu/engine/resource_handle.h"

namespace millrace {

struct Record {
  std::string key;
  std::string value;
};

// How a file falls into records. Used by one thread at a time.
class RecordFormat {
 public:
  virtual ~RecordFormat() = default;
  enum class Found {
    kRecord,
    kLast,     // a record, and it is known that no other follows
    kNothing,  // the end of the file
  };
  virtual Status Open(Env& env, const std::string& path) = 0;
  virtual StatusOr<Found> Next(Record* record) = 0;
  virtual void Close() = 0;
};

std::unique_ptr<RecordFormat> NewIdentityFormat();   // a name is its own record
std::unique_ptr<RecordFormat> NewWholeFileFormat();  // a file is one record
std::unique_ptr<RecordFormat> NewTextLineFormat(int64_t skip_lines, Compression compression = Compression::kNone);
struct FixedLengths {
  int64_t header = 0;
  int64_t record = 0;
  int64_t footer = 0;
  int64_t hop = 0;  // from record to record; 0: its length
  // Whether bytes left over after the last record are an error: InvalidArgument before the first record, or, of a
  // compressed file, DataLoss where they come.
  bool only_whole = false;
};
// InvalidArgument for lengths that no file can have.
StatusOr<std::unique_ptr<RecordFormat>> NewFixedLengthFormat(const FixedLengths& lengths, Compression compression);
std::unique_ptr<RecordFormat> NewTfRecordFormat(Compression compression);

class Reader final : public Resource {
 public:
  // `keeps_state`: what it has done is all its state, so that it can be saved between two reads.
  Reader(std::string kind, std::unique_ptr<RecordFormat> format, bool keeps_state)
      : kind_(std::move(kind)), keeps_state_(keeps_state), format_(std::move(format)) {}

  using Records = std::vector<Record>;
  using DoneCallback = absl::AnyInvocable<void(Status, Records) &&>;
  // Up to n records, at least one of them if n > 0: those of one file.
  void Read(int64_t n, RefPtr<Queue> queue, CancellationManager* cancellation, ThreadPool& pool, DoneCallback done);

  int64_t records_produced() const;
  int64_t work_units_completed() const;
  void Reset();
  StatusOr<std::string> SerializeState() const;
  Status RestoreState(absl::string_view state);

  std::string DebugString() const override { return kind_; }
  const std::string& kind() const { return kind_; }

 private:
  struct Request;
  using RequestPtr = std::shared_ptr<Request>;

  void Serve(RequestPtr request);
  // True when the request has ended with *status, false when it needs another file.
  bool ReadSome(Request& request, Status* status);
  Status StartWork(Env& env, const Status& dequeued, const Queue::Element& element);
  void End(RequestPtr request, Status status);
  void Cancel(const RequestPtr& request);
  void ResetLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool InProgress() const ABSL_SHARED_LOCKS_REQUIRED(mu_) { return finished_ < started_; }

  const std::string kind_;
  const bool keeps_state_;
  mutable absl::Mutex mu_;  // held while a file is read, not while a queue is waited for
  const std::unique_ptr<RecordFormat> format_ ABSL_PT_GUARDED_BY(mu_);
  std::string work_ ABSL_GUARDED_BY(mu_);
  int64_t started_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t finished_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t produced_ ABSL_GUARDED_BY(mu_) = 0;

  absl::Mutex line_mu_;
  bool serving_ ABSL_GUARDED_BY(line_mu_) = false;
  std::deque<RequestPtr> line_ ABSL_GUARDED_BY(line_mu_);
};

}  // namespace millrace
