// SPDX-License-Identifier: Apache-2.0
// The thread looks at the queue every few milliseconds and is not woken for a trace: to wake it costs a step more than
// to hand over what it recorded. Who flushes wakes it, and a queue that is half full does. It ends when it has found
// nothing, and the next trace starts another one.
#include "service/trace_writer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/exceptions.h"
#include "base/logging.h"

namespace millrace {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(10);
constexpr absl::Duration kPatience = absl::Seconds(10);

// Readers of the folder see no half of a file.
Status WriteWhole(Env& env, const std::string& path, absl::string_view data) {
  const std::string unfinished = path + ".part";
  MR_RETURN_IF_ERROR(env.CreateDirs(std::string(Dirname(path))));
  const Status s = [&]() -> Status {
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, env.NewWritableFile(unfinished));
    MR_RETURN_IF_ERROR(file->Append(data));
    MR_RETURN_IF_ERROR(file->Close());
    return env.RenameFile(unfinished, path);
  }();
  if (!s.ok()) env.DeleteFile(unfinished).IgnoreError();
  return s;
}

}  // namespace

class TraceWriter::Queue : public std::enable_shared_from_this<Queue> {
 public:
  explicit Queue(Env& env) : env_(env) {}

  void Add(std::string path, size_t bytes, absl::AnyInvocable<std::string() &&> encode) {
    bool starts = false;
    {
      const absl::MutexLock lock(&mu_);
      if (bytes_ > 0 && bytes_ + bytes > kMostBytes) {
        ++dropped_;
        return;
      }
      bytes_ += bytes;
      waiting_.push_back({std::move(path), bytes, std::move(encode)});
      ++unwritten_;
      starts = !std::exchange(is_running_, true);
      if (bytes_ > kMostBytes / 2 && !std::exchange(is_urgent_, true)) Wake();
    }
    if (!starts) return;
    if (!env_.StartThread([self = shared_from_this()] { self->Run(); }).ok()) {
      MakeUrgent();
      Run();
    }
  }

  bool Flush(absl::Duration patience) {
    const absl::MutexLock lock(&mu_);
    is_urgent_ = true;
    Wake();
    return env_.Await(mu_, absl::Condition(+[](size_t* unwritten) { return *unwritten == 0; }, &unwritten_), patience);
  }

  // Flush, and waits for the thread's end; whether it has come.
  bool End(absl::Duration patience) {
    const absl::MutexLock lock(&mu_);
    is_urgent_ = is_over_ = true;
    Wake();
    return env_.Await(mu_, absl::Condition(+[](bool* is_running) { return !*is_running; }, &is_running_), patience);
  }

 private:
  struct Trace {
    std::string path;
    size_t bytes = 0;
    absl::AnyInvocable<std::string() &&> encode;
  };

  void Wake() {
    ++news_;
    env_.WakeOne(news_);
  }

  void Run() {
    for (;;) {
      const uint32_t seen = news_;
      if (!IsUrgent()) env_.WaitWhile(news_, seen, absl::ToInt64Nanoseconds(kPause));
      std::vector<Trace> traces;
      {
        const absl::MutexLock lock(&mu_);
        traces.swap(waiting_);
        if (traces.empty()) {
          Report();
          is_running_ = false;
          return;
        }
      }
      for (Trace& trace : traces) WriteOne(trace);
      const absl::MutexLock lock(&mu_);
      if (waiting_.empty()) is_urgent_ = is_over_;
    }
  }

  void MakeUrgent() {
    const absl::MutexLock lock(&mu_);
    is_urgent_ = true;
  }
  bool IsUrgent() {
    const absl::MutexLock lock(&mu_);
    return is_urgent_;
  }

  void WriteOne(Trace& trace) {
    const Status s = WithoutExceptions([&]() -> Status {
      const std::string data = std::move(trace.encode)();
      return data.empty() ? absl::OkStatus() : WriteWhole(env_, trace.path, data);
    });
    trace.encode = nullptr;
    const absl::MutexLock lock(&mu_);
    bytes_ -= trace.bytes;
    if (!s.ok() && failed_++ == 0) LogWarning("the trace of a step is not written: ", s.message());
    if (--unwritten_ == 0 && is_urgent_) Report();  // before somebody goes on who has waited for it
  }

  // What was not said yet.
  void Report() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (failed_ > 1) LogWarning("traces of steps that are not written: ", failed_);
    if (dropped_ > 0) {
      LogWarning("traces of steps that are dropped, since they came faster than they could be written: ", dropped_);
    }
    failed_ = dropped_ = 0;
  }

  Env& env_;
  std::atomic<uint32_t> news_{0};
  absl::Mutex mu_;
  std::vector<Trace> waiting_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;      // of what is unwritten
  size_t unwritten_ ABSL_GUARDED_BY(mu_) = 0;  // what waits, and what is being written
  bool is_running_ ABSL_GUARDED_BY(mu_) = false;
  bool is_urgent_ ABSL_GUARDED_BY(mu_) = false;  // the thread does not pause
  bool is_over_ ABSL_GUARDED_BY(mu_) = false;
  int64_t failed_ ABSL_GUARDED_BY(mu_) = 0, dropped_ ABSL_GUARDED_BY(mu_) = 0;
};

namespace {

// Of sessions that nobody has closed when the process ends.
class OpenWriters {
 public:
  static OpenWriters& Get() {
    static auto* const all = [] {
      auto* const made = new OpenWriters;  // others may still trace while statics end
      std::atexit([] { Get().Flush(); });
      return made;
    }();
    return *all;
  }
  void Add(TraceWriter* writer, Env& env) {
    const absl::MutexLock lock(&mu_);
    writers_.emplace(writer, &env);
  }
  void Remove(TraceWriter* writer) {
    const absl::MutexLock lock(&mu_);
    writers_.erase(writer);
  }

 private:
  void Flush() {
    if (::getpid() != process_) return;   // a fork has none of the threads
    absl::Duration patience = kPatience;  // of all together
    const absl::MutexLock lock(&mu_);
    for (const auto& [writer, env] : writers_) {
      const int64_t start = env->MonotonicNanos();
      writer->Flush(std::max(absl::ZeroDuration(), patience));
      patience -= absl::Nanoseconds(env->MonotonicNanos() - start);
    }
  }

  const pid_t process_ = ::getpid();
  absl::Mutex mu_;
  std::map<TraceWriter*, Env*> writers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

TraceWriter::TraceWriter(Env& env) : queue_(std::make_shared<Queue>(env)) { OpenWriters::Get().Add(this, env); }

TraceWriter::~TraceWriter() {
  OpenWriters::Get().Remove(this);
  if (!queue_->End(kPatience)) LogWarning("traces of steps are still being written, and may be lost");
}

void TraceWriter::Write(std::string path, size_t bytes, absl::AnyInvocable<std::string() &&> encode) {
  queue_->Add(std::move(path), bytes, std::move(encode));
}

bool TraceWriter::Flush(absl::Duration patience) { return queue_->Flush(patience); }

}  // namespace millrace
