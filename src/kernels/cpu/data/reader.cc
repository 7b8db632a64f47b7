// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/data/reader.h"

#include <algorithm>
#include <atomic>

#include "kernel/device_env.h"
#include "kernel/stop_node.h"
#include "wire/reader_state.h"

namespace millrace {

struct Reader::Request {
  RefPtr<Reader> reader;
  int64_t wanted = 0;
  RefPtr<Queue> queue;
  CancellationManager* cancellation = nullptr;
  ThreadPool* pool = nullptr;
  DoneCallback done;
  CancellationManager::Token token = CancellationManager::kInvalid;  // while it stands in line
  Records records{};

  Status WhyCancelled() const noexcept { return WithPrefix("Read operation was cancelled: ", cancellation->reason()); }
};

void Reader::Read(int64_t n, RefPtr<Queue> queue, CancellationManager* cancellation, ThreadPool& pool,
                  DoneCallback done) {
  auto request = std::make_shared<Request>();
  *request = {RefPtr<Reader>::Share(this), n, std::move(queue), cancellation, &pool, std::move(done)};
  bool refused = false;
  {
    absl::MutexLock lock(&line_mu_);
    if (serving_) {
      // Under the lock, so that nobody takes it out of the line before it has its token.
      if (cancellation) {
        request->token = cancellation->Register([this, request] { Cancel(request); });
        refused = request->token == CancellationManager::kInvalid;
      }
      if (!refused) {
        line_.push_back(std::move(request));
        return;
      }
    } else {
      serving_ = true;
    }
  }
  if (refused) return std::move(request->done)(request->WhyCancelled(), {});
  Serve(std::move(request));
}

// Called by the cancellation, without locks. A request that is not in line any more is being served.
void Reader::Cancel(const RequestPtr& request) {
  {
    absl::MutexLock lock(&line_mu_);
    const auto at = std::find(line_.begin(), line_.end(), request);
    if (at == line_.end()) return;
    line_.erase(at);
  }
  std::move(request->done)(request->WhyCancelled(), {});
}

// A queue that has a name answers within Dequeue: then the loop goes on. Else the answer goes on with it, on the pool,
// since whoever fills the queue should not have to read the file.
void Reader::Serve(RequestPtr request) {
  struct Answer {
    enum State { kNone, kAnswered, kLeft };
    std::atomic<int> state{kNone};
    Status status;
    Queue::Element element;
  };
  Status status;
  while (!ReadSome(*request, &status)) {
    auto answer = std::make_shared<Answer>();
    request->queue->Dequeue(request->cancellation, [this, request, answer](Status s, Queue::Element element) {
      answer->status = std::move(s);
      answer->element = std::move(element);
      if (answer->state.exchange(Answer::kAnswered, std::memory_order_acq_rel) == Answer::kNone) return;
      request->pool->Schedule([this, request, answer] {
        if (const Status started = StartWork(EnvOf(*request->pool), answer->status, answer->element); !started.ok()) {
          return End(request, started);
        }
        Serve(request);
      });
    });
    if (answer->state.exchange(Answer::kLeft, std::memory_order_acq_rel) == Answer::kNone) return;
    if (const Status started = StartWork(EnvOf(*request->pool), answer->status, answer->element); !started.ok()) {
      return End(std::move(request), started);
    }
  }
  End(std::move(request), std::move(status));
}

Status Reader::StartWork(Env& env, const Status& dequeued, const Queue::Element& element) {
  MR_RETURN_IF_ERROR(dequeued);
  if (element.size() != 1) return InvalidArgument("Expected single component queue, got ", element.size());
  if (element[0].dtype() != DType::kString || element[0].num_elements() != 1) {
    return InvalidArgument("Expected to dequeue a one-element string tensor, got ", DTypeName(element[0].dtype()),
                           element[0].shape().ToString());
  }
  absl::MutexLock lock(&mu_);
  work_ = element[0].data<TString>()->str();
  MR_RETURN_IF_ERROR(format_->Open(env, work_));
  ++started_;
  return absl::OkStatus();
}

bool Reader::ReadSome(Request& request, Status* status) {
  absl::MutexLock lock(&mu_);
  while (static_cast<int64_t>(request.records.size()) < request.wanted) {
    if (!InProgress()) return false;
    Record record;
    const StatusOr<RecordFormat::Found> found = format_->Next(&record);
    if (!found.ok()) {
      // What was read is given now; the next read finds the same fault.
      if (request.records.empty()) *status = found.status();
      return true;
    }
    if (*found != RecordFormat::Found::kNothing) {
      request.records.push_back(std::move(record));
      ++produced_;
    }
    if (*found != RecordFormat::Found::kRecord) {
      format_->Close();
      finished_ = started_;
      if (!request.records.empty()) return true;
    }
    if (request.cancellation && request.cancellation->IsCancelled()) {
      *status = request.WhyCancelled();
      return true;
    }
  }
  return true;
}

void Reader::End(RequestPtr request, Status status) {
  RequestPtr next;
  {
    absl::MutexLock lock(&line_mu_);
    if (line_.empty()) {
      serving_ = false;
    } else {
      next = std::move(line_.front());
      line_.pop_front();
    }
  }
  if (next) {
    // The next one's own turn: it may not run inside the call of this one.
    ThreadPool& pool = *next->pool;
    pool.Schedule([this, next = std::move(next)]() mutable {
      if (next->cancellation) (void)next->cancellation->Deregister(next->token);
      Serve(std::move(next));
    });
  }
  const RefPtr<Reader> alive = request->reader;
  std::move(request->done)(std::move(status), std::move(request->records));
}

int64_t Reader::records_produced() const {
  absl::MutexLock lock(&mu_);
  return produced_;
}

int64_t Reader::work_units_completed() const {
  absl::MutexLock lock(&mu_);
  return finished_;
}

void Reader::ResetLocked() {
  format_->Close();
  started_ = finished_ = produced_ = 0;
  work_.clear();
}

void Reader::Reset() {
  absl::MutexLock lock(&mu_);
  ResetLocked();
}

StatusOr<std::string> Reader::SerializeState() const {
  if (!keeps_state_) return Unimplemented("Reader SerializeState: a ", kind_, " cannot be saved");
  absl::MutexLock lock(&mu_);
  wire::ReaderState state;
  state.work_started = started_;
  state.work_finished = finished_;
  state.num_records_produced = produced_;
  state.current_work = work_;
  return wire::Encode(state);
}

Status Reader::RestoreState(absl::string_view bytes) {
  if (!keeps_state_) return Unimplemented("Reader RestoreState: a ", kind_, " cannot be restored");
  wire::ReaderState state;
  if (!wire::Decode(bytes, &state).ok()) return InvalidArgument("Could not parse state for ", kind_);
  if (state.work_started < 0 || state.work_finished < 0 || state.work_started != state.work_finished ||
      state.num_records_produced < 0) {
    return InvalidArgument("Inconsistent state when restoring ", kind_, ": ", state.work_started, " started, ",
                           state.work_finished, " finished, ", state.num_records_produced, " records");
  }
  absl::MutexLock lock(&mu_);
  ResetLocked();
  started_ = state.work_started;
  finished_ = state.work_finished;
  produced_ = state.num_records_produced;
  work_ = state.current_work;
  return absl::OkStatus();
}

}  // namespace millrace
