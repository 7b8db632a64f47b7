// SPDX-License-Identifier: Apache-2.0
#include "service/worker_step.h"

#include <algorithm>
#include <limits>

#include "base/exceptions.h"
#include "base/lent_thread.h"
#include "base/pool_env.h"
#include "kernel/session_scope.h"
#include "kernel/step_threads.h"
#include "kernel/stop_node.h"
#include "runtime/node_run.h"
#include "service/plan_step.h"
#include "service/worker_session.h"

namespace millrace {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

int64_t BytesOf(const Tensor& value) { return value.IsInitialized() ? static_cast<int64_t>(value.TotalBytes()) : 0; }

}  // namespace

// A partition that fails aborts the rendezvous before it cancels the step, and says why.
class WorkerStep::ForKernels final : public Rendezvous {
 public:
  explicit ForKernels(WorkerStep& step) : step_(step) {}
  Status Send(absl::string_view key, Tensor value, bool is_dead) override {
    return step_.rendezvous_.Send(key, std::move(value), is_dead);
  }
  void RecvAsync(absl::string_view key, DoneCallback done) override {
    step_.rendezvous_.RecvAsync(key, std::move(done));
  }
  void Abort(const Status& why) override { step_.Fail(why); }

 private:
  WorkerStep& step_;
};

WorkerStep::WorkerStep(std::shared_ptr<WorkerSession> session, int64_t id)
    : session_(std::move(session)),
      id_(id),
      here_(NewLocalRendezvous()),
      remote_(
          session_->env().peers
              ? NewStepRendezvous(
                    here_, id, [this](int64_t edge) { return PeerOf(edge); }, [this](const Status& why) { Abort(why); },
                    [this](const Tensor& value) { ForgetPushed(0, BytesOf(value)); })
              : nullptr),
      rendezvous_(remote_ ? *remote_ : *here_),
      for_kernels_(MakeRef<ForKernels>(*this)),
      late_(session_->env().has_own_memory ? MakeRef<LateWork>([this](const Status& why) { Fail(why); }) : nullptr),
      since_nanos_(EnvOf(session_->env().pool()).MonotonicNanos()) {}

WorkerStep::~WorkerStep() { ForgetPushed(kAll, kAll); }

Status WorkerStep::Push(const EdgeKey& key, ReceivedTensor tensor) {
  const bool has_value = tensor.value.IsInitialized();
  if (has_value && !IsPlain(tensor.value.dtype())) {
    return InvalidArgument("edge ", key.edge, ": a value of ", DTypeName(tensor.value.dtype()), " is not sent unasked");
  }
  const int64_t bytes = BytesOf(tensor.value);
  MR_RETURN_IF_ERROR(session_->pushed().Add(bytes));
  {
    absl::MutexLock lock(&mu_);
    ++pushed_values_;
    pushed_bytes_ += bytes;
  }
  Status s = here_->Send(key.ToString(), std::move(tensor.value), tensor.is_dead);
  if (!s.ok()) ForgetPushed(1, bytes);
  return s;
}

void WorkerStep::ForgetPushed(int64_t values, int64_t bytes) {
  {
    // What was fed may come over an edge on which values are pushed, too: it was not counted.
    absl::MutexLock lock(&mu_);
    values = std::min(values, pushed_values_);
    bytes = std::min(bytes, pushed_bytes_);
    pushed_values_ -= values;
    pushed_bytes_ -= bytes;
  }
  if (values > 0 || bytes > 0) session_->pushed().Remove(values, bytes);
}

const EdgePeer* WorkerStep::PeerOf(int64_t edge) const {
  for (const Part& part : parts_) {
    if (!part.partition.peers) continue;
    const auto it = part.partition.peers->find(edge);
    if (it != part.partition.peers->end()) return &it->second;
  }
  return nullptr;
}

void WorkerStep::End(const Status& why, bool is_consequence) {
  {
    absl::MutexLock lock(&mu_);
    if (!cause_.ok()) return;
    cause_ = why;
    is_consequence_ = is_consequence;
  }
  cancellation_.Cancel(why);
  rendezvous_.Abort(why);
}

Status WorkerStep::Prepare(const CallOptions& call, RunStepRequest& request) {
  context_.step_id = id_;
  context_.rendezvous = for_kernels_.get();
  context_.cancellation = &cancellation_;
  context_.step_resources = &resources_;
  context_.max_threads = request.max_threads;
  context_.trace = request.trace ? &trace_ : nullptr;
  options_ = {
      .trace = context_.trace,
      .single_thread = request.single_thread(),
      .order_seed = request.deterministic ? request.order_seed : 0,
      .inter_op_threads = request.inter_op_threads,
      .caller = call.caller,
      .watch = &watch_,
      .session = session_->id()};
  if (request.inter_op_threads != session_->settings().inter_op_threads) {
    MR_RETURN_IF_ERROR(StepThreads::Attach(request.inter_op_threads, resources_));
  }
  if (late_) {
    MR_RETURN_IF_ERROR(LateWork::Attach(late_, resources_));
    late_->Reserve(request.parts.size());
  }
  response_.retvals.resize(request.parts.size());
  parts_.reserve(request.parts.size());
  for (const RunStepRequest::Part& wanted : request.parts) {
    MR_ASSIGN_OR_RETURN(RegisteredPartition partition, session_->Find(wanted.handle));
    Part& part = parts_.emplace_back();
    if (partition.width) part.turn = partition.width->Next(options_);
    part.partition = std::move(partition);
    const bool is_short = part.plan().is_one_line() && part.partition.width && part.partition.width->IsShort();
    part.starts_first = options_.single_thread || is_short;
    MR_ASSIGN_OR_RETURN(part.frame, part.plan().AcquireFrame());
    MR_RETURN_IF_ERROR(FillArgs(part.plan(), wanted.args, *part.frame));
  }
  request.parts.clear();  // the frames hold the arguments, and give them back early
  return absl::OkStatus();
}

void WorkerStep::Run(std::shared_ptr<WorkerStep> self, const CallOptions& call, RunStepRequest request,
                     Reply<RunStepResponse> reply) {
  WorkerStep& step = *self;
  if (!step.Claim()) {
    StepTable::Callbacks idle = step.session_->steps().End(step.id_, /*is_over=*/false);
    std::move(reply)(
        WithoutExceptions([&] { return AlreadyExists("step ", step.id_, " runs already on this worker"); }));
    for (auto& callback : idle) std::move(callback)();
    return;
  }
  step.is_alone_ = request.is_alone;
  step.reply_ = std::move(reply);
  step.self_ = std::move(self);
  Status s = WithoutExceptions([&] { return step.Prepare(call, request); });
  {
    absl::MutexLock lock(&step.mu_);
    if (s.ok()) s = step.cause_;
    step.response_.status = s;
    step.left_ = step.parts_.size();
  }
  if (!s.ok() || step.parts_.empty()) return step.Finish();
  if (call.runs_here) return step.StartParts();
  s = WithoutExceptions([&] {
    LentThread::Schedule(step.session_->env().pool(), [&step] { step.StartParts(); });
    return absl::OkStatus();
  });
  if (s.ok()) return;
  for (size_t p = 0, n = step.parts_.size(); p < n; ++p) step.EndPart(p, s);
}

bool WorkerStep::Claim() {
  absl::MutexLock lock(&mu_);
  return !std::exchange(has_run_, true);
}

// Of those that are long each has a thread, this one the first of them; before that it runs those that are short, for
// which others may wait. Nothing here throws, and the step may be gone when the last partition has been started.
void WorkerStep::StartParts() {
  const size_t n = parts_.size();
  size_t own = n, num_first = 0;
  for (size_t p = n; p-- > 0;) parts_[p].starts_first ? static_cast<void>(++num_first) : static_cast<void>(own = p);
  size_t scheduled = own + 1;
  const Status s = WithoutExceptions([&] {
    for (; scheduled < n; ++scheduled) {
      if (parts_[scheduled].starts_first) continue;
      session_->env().pool().Schedule([this, p = scheduled] { StartPart(p); });
    }
    return absl::OkStatus();
  });
  for (size_t p = scheduled; p < n; ++p) {
    if (!parts_[p].starts_first) EndPart(p, s);
  }
  for (size_t p = 0; num_first > 0; ++p) {
    if (!parts_[p].starts_first) continue;
    --num_first;
    StartPart(p);
  }
  if (own < n) StartPart(own);
}

void WorkerStep::StartPart(size_t p) {
  Part& part = parts_[p];
  const Plan& plan = part.plan();
  part.turn.Begin();
  if (!plan.is_one_line()) {
    return RunByReadiness(plan, *part.frame, context_, options_, [this, p](Status s) { EndPart(p, std::move(s)); });
  }
  EndPart(p, WithoutExceptions([&] {
            const SessionScope scope(session_->id());
            return part.turn.RunInOrder(plan, *part.frame, context_, options_);
          }));
}

// What a partition has queued on a device belongs to the step: that is over when the device has done it all, also when
// the step has failed.
void WorkerStep::EndPart(size_t p, Status s) {
  parts_[p].turn.End(s.ok());
  if (!s.ok()) Fail(s);  // others must not wait for what this partition would have sent
  MemorySpace* const space = parts_[p].partition.space;
  if (space == nullptr) return FinishPart(p, std::move(s));
  parts_[p].result = std::move(s);
  late_->Begin();
  const Status asked = WithoutExceptions([&] {
    space->WhenIdle([this](const Status& of_device) { late_->End(of_device); });
    return absl::OkStatus();
  });
  if (!asked.ok()) late_->End(asked);
  late_->WhenOver([this, p](Status late) {
    FinishPart(p, parts_[p].result.ok() ? std::move(late) : std::move(parts_[p].result));
  });
}

Status WorkerStep::TakeResults(size_t p) {
  const Part& part = parts_[p];
  std::vector<Tensor>& retvals = response_.retvals[p];
  MR_RETURN_IF_ERROR(TakeRetvals(part.plan(), *part.frame, &retvals));
  if (part.partition.space == nullptr) return absl::OkStatus();
  for (const Tensor& t : retvals) MR_RETURN_IF_ERROR(CheckMayLeaveDevice(t));
  return absl::OkStatus();
}

void WorkerStep::FinishPart(size_t p, Status s) {
  {
    const SessionScope scope(session_->id());  // values are freed
    if (s.ok()) s = WithoutExceptions([&] { return TakeResults(p); });
    parts_[p].frame.reset();
  }
  if (!s.ok()) Fail(s);
  {
    absl::MutexLock lock(&mu_);
    // The cause itself rather than what another partition says of it.
    if (!s.ok() && (response_.status.ok() || s == cause_)) response_.status = CausedBy(cause_, s);
    if (--left_ > 0) return;
  }
  Finish();
}

void WorkerStep::Finish() {
  {
    absl::MutexLock lock(&mu_);
    is_over_ = true;
  }
  parts_.clear();
  RunStepResponse response = std::move(response_);
  WithoutExceptions([&] {  // a trace that there is no memory for is left out
    response.trace = trace_.Take();
    return absl::OkStatus();
  })
      .IgnoreError();
  {
    absl::MutexLock lock(&mu_);
    response.is_consequence = is_consequence_;
  }
  Reply<RunStepResponse> reply = std::move(reply_);
  std::shared_ptr<WorkerStep> self = std::move(self_);
  StepTable::Callbacks idle = session_->steps().End(id_, is_alone_);
  self.reset();  // when the master has its answer it may end the session, and the worker with it
  for (auto& callback : idle) std::move(callback)();
  std::move(reply)(std::move(response));
}

void WorkerStep::Describe(std::vector<std::string>* lines) {
  const int64_t now = EnvOf(session_->env().pool()).MonotonicNanos();
  {
    absl::MutexLock lock(&mu_);
    const std::string name = absl::StrCat("step ", id_, " of session ", absl::Hex(session_->id(), absl::kZeroPad16));
    const std::string age = absl::FormatDuration(absl::Trunc(absl::Nanoseconds(now - since_nanos_), absl::Seconds(1)));
    if (!has_run_) {
      lines->push_back(absl::StrCat(name, ": named ", age, " ago, its master has not begun it"));
    } else if (!is_over_) {
      lines->push_back(absl::StrCat(name, ": ", left_, " partitions run, for ", age,
                                    cause_.ok() ? "" : absl::StrCat("; it ends with: ", cause_.ToString())));
    } else {
      return;
    }
  }
  const size_t first = lines->size();
  watch_.Describe(lines);
  if (remote_) remote_->Describe(lines);
  for (size_t i = first; i < lines->size(); ++i) (*lines)[i].insert(0, "  ");
}

void WorkerStep::AskForMissing() {
  if (remote_) remote_->AskForMissing();
}

bool WorkerStep::HasStalled(int64_t now, int64_t patience) {
  const int64_t progress = watch_.progress();
  absl::MutexLock lock(&mu_);
  if (!has_run_ || is_over_ || std::exchange(seen_progress_, progress) != progress) {
    moved_nanos_ = now;
    return false;
  }
  if (now - moved_nanos_ < patience) return false;
  moved_nanos_ = now;  // said once, and again when as much time has passed
  return true;
}

}  // namespace millrace
