// SPDX-License-Identifier: Apache-2.0
// Full steps, and the calls of a session. Compilation is in coordinator_compile.cc, partial runs in
// coordinator_partial.cc.
#include "service/coordinator.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "base/exceptions.h"
#include "kernel/session_scope.h"
#include "kernel/stop_node.h"
#include "runtime/node_run.h"
#include "runtime/trace.h"
#include "service/call_in_flight.h"

namespace millrace {

constexpr absl::Duration kTurnPatience = absl::Minutes(1);

// What runs inline has its state here, on the caller's stack; everything else has it with the workers.
struct Coordinator::StepInFlight : CallInFlight {
  StepInFlight(int64_t id, int max_threads, StepTrace* trace) {
    context.step_id = id;
    context.cancellation = &cancellation;
    context.step_resources = &resources;
    context.max_threads = max_threads;
    context.trace = trace;
  }
  void Stop(const Status& why) override {
    joint.Stop(why);
    cancellation.Cancel(why);
  }
  void Describe(std::vector<std::string>* lines) const override { joint.Describe(lines); }

  StepContext context;
  CancellationManager cancellation;
  ResourceManager resources;
  JointStep joint;
};

static CoordinatorOptions Completed(CoordinatorOptions options) {
  // The seeded order is one of nodes, also of a loop's.
  if (options.deterministic) options.passes.switched_off.insert({"collapse_loops", kCutStage});
  return options;
}

static SessionSettings SettingsOf(const CoordinatorOptions& options) {
  SessionSettings settings;
  settings.max_threads = options.max_threads;
  settings.inter_op_threads = options.inter_op_threads;
  settings.deterministic = options.deterministic;
  settings.order_seed = options.order_seed;
  settings.switched_off.assign(options.passes.switched_off.begin(), options.passes.switched_off.end());
  if (!options.passes.memory.reorder) settings.switched_off.push_back("order_by_memory");
  settings.max_folded_bytes = options.passes.max_folded_bytes;
  return settings;
}

Coordinator::Coordinator(RefPtr<SharedGraph> graph, std::vector<WorkerInterface*> workers, uint64_t session,
                         CoordinatorOptions options)
    : graph_(std::move(graph)),
      session_(session),
      options_(Completed(std::move(options))),
      workers_(std::move(workers), session, options_.lease, options_.isolates_state, SettingsOf(options_)),
      cache_(options_.max_cached_nodes) {}

Coordinator::~Coordinator() {
  StopAll(absl::InfiniteDuration()).IgnoreError();
  std::unique_ptr<Ticks> ticks;
  std::list<CompiledPtr> compiled;
  std::map<std::string, std::shared_ptr<PartialStep>> partial;
  {
    absl::MutexLock lock(&mu_);
    ticks.swap(ticks_);
    compiled = cache_.Clear();
    partial.swap(late_partial_);
  }
  ticks.reset();  // it looks at what is destroyed next
  partial.clear();
  compiled.clear();
  workers_.Delete();
}

Coordinator::MessageCall::MessageCall(Coordinator& coordinator)
    : coordinator_(coordinator), keep_going_(coordinator.KeepGoing(coordinator.options_.default_timeout)) {
  if (coordinator.interrupt_check_.check) {
    interrupt = &own_interrupt_.emplace(coordinator.interrupt_check_, coordinator.env());
  }
  scope_.emplace(interrupt);
}

Status Coordinator::MessageCall::Begin() {
  absl::MutexLock lock(&coordinator_.mu_);
  return coordinator_.Enter(this);
}

Status Coordinator::Connect() {
  return WithoutExceptions([&]() -> Status {
    MessageCall call(*this);
    MR_RETURN_IF_ERROR(call.Begin());
    return ConnectWithin(call).status();
  });
}

StatusOr<WorkerViewPtr> Coordinator::ConnectWithin(MessageCall& call) {
  MessageCall::Answer<WorkerViewPtr> answer(call);
  workers_.Connect(nullptr, answer.reply());
  return answer.Wait();
}

std::vector<DeviceInfo> Coordinator::ListDevices() const {
  std::vector<DeviceInfo> all;
  if (const WorkerViewPtr view = workers_.view()) {
    for (const WorkerView::Of& w : view->workers) all.insert(all.end(), w.devices.begin(), w.devices.end());
  }
  return all;
}

void Coordinator::DescribeSteps(std::vector<std::string>* lines) const {
  absl::MutexLock lock(&mu_);
  for (const CallInFlight* call = running_; call; call = call->next) call->Describe(lines);
}

StatusOr<RandomPositions> Coordinator::GetRandomPositions() {
  return WithoutExceptions([&]() -> StatusOr<RandomPositions> {
    MessageCall call(*this);
    MR_RETURN_IF_ERROR(call.Begin());
    MR_ASSIGN_OR_RETURN(const WorkerViewPtr view, ConnectWithin(call));
    RandomPositions all;
    for (const WorkerView::Of& w : view->workers) {
      MessageCall::Answer<GetRandomPositionsResponse> answer(call);
      w.worker->GetRandomPositions({}, {w.session}, answer.reply());
      StatusOr<GetRandomPositionsResponse> response = answer.Wait();
      NoteRefusal(w, response.status());
      MR_RETURN_IF_ERROR(response.status());
      all.merge(response->positions);
    }
    return all;
  });
}

Status Coordinator::SetRandomPositions(const RandomPositions& positions) {
  return WithoutExceptions([&]() -> Status {
    MessageCall call(*this);
    MR_RETURN_IF_ERROR(call.Begin());
    MR_ASSIGN_OR_RETURN(const WorkerViewPtr view, ConnectWithin(call));
    for (const WorkerView::Of& w : view->workers) {
      MessageCall::Answer<SetRandomPositionsResponse> answer(call);
      w.worker->SetRandomPositions({}, {w.session, positions}, answer.reply());
      const Status s = answer.Wait().status();
      NoteRefusal(w, s);
      MR_RETURN_IF_ERROR(s);
    }
    return absl::OkStatus();
  });
}

Status Coordinator::Enter(CallInFlight* call) {
  if (closed_) return Cancelled("the session is closed");
  if (call->interrupt && !ticking_) {
    ticks_ = std::make_unique<Ticks>(env(), kInterruptPeriod, [this] { return Tick(); });
    ticking_ = true;
    idle_ticks_ = 0;
  }
  call->next = running_;
  if (running_) running_->previous = call;
  running_ = call;
  call->entered = true;
  return absl::OkStatus();
}

void Coordinator::Leave(CallInFlight* call) {
  std::shared_ptr<CallInFlight> held;  // let go outside of the lock
  absl::MutexLock lock(&mu_);
  if (!call->entered) return;
  if (call->is_being_stopped) {
    if (call->self) {
      call->leaves_when_stopped = true;
      return;
    }
    AwaitStopped(call);
  }
  held = Unlink(call);
}

void Coordinator::AwaitStopped(CallInFlight* call) {
  env().Await(mu_, absl::Condition(+[](bool* stopping) { return !*stopping; }, &call->is_being_stopped));
}

std::shared_ptr<Coordinator::CallInFlight> Coordinator::Unlink(CallInFlight* call) {
  if (alone_ == call) alone_ = nullptr;
  (call->previous ? call->previous->next : running_) = call->next;
  if (call->next) call->next->previous = call->previous;
  return std::move(call->self);
}

int Coordinator::NumChanging() const {
  int changing = 0;
  for (const CallInFlight* call = running_; call; call = call->next) changing += call->changes_variables;
  return changing;
}

Status Coordinator::MayBeAlone() const {
  constexpr char kInstead[] = "; without between_steps variables are read while others change them";
  if (!options_.has_own_workers && !options_.isolates_state) {
    return FailedPrecondition("between_steps: other sessions may change the variables of the servers", kInstead);
  }
  if (!partial_.empty() || !late_partial_.empty() || partial_starting_ > 0) {
    return FailedPrecondition("between_steps: a partial run is open, whose end nobody can wait for", kInstead);
  }
  return absl::OkStatus();
}

Status Coordinator::TakeTurn(CallInFlight* call, bool changes_variables, bool between_steps,
                             absl::FunctionRef<Status()> keep_going) {
  if (!between_steps && (alone_ == nullptr || !changes_variables)) {
    call->changes_variables = changes_variables;
    return absl::OkStatus();
  }
  const int64_t begun = env().MonotonicNanos();
  const auto wait_until = [&](const absl::Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) -> Status {
    while (!env().Await(mu_, condition, kInterruptPeriod)) {
      mu_.Unlock();
      Status s = WithoutExceptions(keep_going);
      mu_.Lock();
      if (s.ok() && between_steps && absl::Nanoseconds(env().MonotonicNanos() - begun) > kTurnPatience) {
        s = DeadlineExceeded("no moment between steps has come within ", absl::FormatDuration(kTurnPatience));
      }
      if (!s.ok()) return Annotate(s, absl::StrCat("waiting for ", NumChanging(), " steps that change variables"));
    }
    return absl::OkStatus();
  };
  if (between_steps) MR_RETURN_IF_ERROR(MayBeAlone());
  auto nobody_is_alone = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return alone_ == nullptr; };
  MR_RETURN_IF_ERROR(wait_until(absl::Condition(&nobody_is_alone)));
  if (!between_steps) {
    call->changes_variables = changes_variables;
    return absl::OkStatus();
  }
  alone_ = call;  // until it leaves; from here on no step begins that changes variables
  auto nobody_changes = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return NumChanging() == 0; };
  MR_RETURN_IF_ERROR(wait_until(absl::Condition(&nobody_changes)));
  return MayBeAlone();
}

bool Coordinator::Tick() {
  absl::MutexLock lock(&mu_);
  for (CallInFlight* step = running_; step; step = step->next) {
    if (step->interrupt) step->interrupt->MakeDue();
  }
  const int64_t steps = next_inline_step_.load(std::memory_order_relaxed);
  idle_ticks_ = running_ == nullptr && steps == ticked_step_ ? idle_ticks_ + 1 : 0;
  ticked_step_ = steps;
  ticking_ = idle_ticks_ < absl::Seconds(1) / kInterruptPeriod;
  return ticking_;
}

std::vector<JointStep::Part> Coordinator::BeginStep(const Compiled& compiled, const StepOptions& options,
                                                    absl::Span<const Tensor> feed_values, int64_t* id) {
  std::vector<JointStep::Part> messages;
  const auto add_message = [&](const WorkerView::Of& w) {
    JointStep::Part& message = messages.emplace_back();
    message.worker = w.worker;
    message.request.step.session = w.session;
    message.request.max_threads = options_.max_threads;
    message.request.inter_op_threads = options.inter_op_threads;
    message.request.trace = options.trace != nullptr;
    message.request.deterministic = options_.deterministic;
  };
  if (compiled.through_rendezvous) add_message(compiled.view->workers.front());  // where the client is
  for (const CompiledPart& part : compiled.parts) {
    const WorkerView::Of& w = compiled.view->workers[part.worker];
    if (messages.empty() || messages.back().worker != w.worker) add_message(w);
    RunStepRequest::Part& wanted = messages.back().request.parts.emplace_back();
    wanted.handle = part.handle;
    for (size_t i : part.args) wanted.args.push_back(feed_values[i]);
  }
  {
    absl::MutexLock lock(&mu_);
    *id = step_ids_.Begin();
  }
  for (JointStep::Part& message : messages) {
    RunStepRequest& request = message.request;
    request.step.step = *id;
    request.is_alone = messages.size() == 1 && !compiled.through_rendezvous;
    // Each step of a session draws an order of its own; the n-th step of a session with this seed always the same.
    if (options_.order_seed != 0)
      request.order_seed = options_.order_seed + static_cast<uint64_t>(*id) * 0x9e3779b97f4a7c15u;
  }
  return messages;
}

StepHorizon Coordinator::EndId(int64_t id) {
  absl::MutexLock lock(&mu_);
  step_ids_.End(id);
  return step_ids_.horizon();
}

Status Coordinator::EndStep(const Compiled& compiled, JointStep& step, int64_t id, const StepOptions& options, Status s,
                            std::vector<Tensor>* outputs) {
  step.CleanUp(EndId(id));
  auto part = compiled.parts.begin();
  for (JointStep::Part& message : step.parts()) {
    for (const WorkerView::Of& w : compiled.view->workers) {
      if (w.worker == message.worker) NoteRefusal(w, message.refusal);
    }
    if (options.trace) {
      for (StepRecord& record : message.response.trace) {
        if (const Status valid = record.Check(); valid.ok()) {
          options.trace->Add(std::move(record));
        } else if (s.ok()) {
          s = Internal("worker ", message.worker->task(), ": ", valid.message());
        }
      }
    }
    const size_t n = message.response.retvals.size();
    for (size_t i = 0; s.ok() && i < n; ++i, ++part) {
      std::vector<Tensor>& retvals = message.response.retvals[i];
      if (part == compiled.parts.end() || retvals.size() != part->retvals.size()) {
        return Internal("worker ", message.worker->task(), " has answered for other partitions than those asked for");
      }
      for (size_t r = 0; r < retvals.size(); ++r) (*outputs)[part->retvals[r]] = std::move(retvals[r]);
    }
  }
  if (s.ok() && part != compiled.parts.end()) return Internal("a worker has answered for too few partitions");
  return s;
}

Status Coordinator::RunJointly(const Compiled& compiled, StepInFlight& step, const StepOptions& options,
                               absl::Span<const Tensor> feed_values, std::vector<Tensor>* outputs) {
  OpenId id(*this);
  std::vector<JointStep::Part> messages = BeginStep(compiled, options, feed_values, &id.id);
  StepThread caller(env());
  CallOptions call;
  call.caller = &caller;
  call.runs_here = true;
  Status result;
  step.joint.Start(std::move(messages), call, [&](Status s) {
    result = std::move(s);
    caller.Finish();
  });
  if (!caller.Drive(CurrentInterrupt() != nullptr)) {
    step.Stop(Interrupted());
    caller.Drive(false);
  }
  return EndStep(compiled, step.joint, id.Release(), options, std::move(result), outputs);
}

Status Coordinator::PastDeadline(absl::Duration timeout) {
  return WithoutExceptions([&] {
    return DeadlineExceeded(
        "Timed out waiting for notification: the step passed its deadline of ", absl::FormatDuration(timeout));
  });
}

Status Coordinator::Run(const StepOptions& options, absl::Span<const Output> feeds,
                        absl::Span<const Tensor> feed_values, absl::Span<const Output> fetches,
                        absl::Span<Node* const> targets, std::vector<Tensor>* outputs) {
  return WithoutExceptions([&] { return RunStep(options, feeds, feed_values, fetches, targets, outputs); });
}

Status Coordinator::RunStep(const StepOptions& options, absl::Span<const Output> feeds,
                            absl::Span<const Tensor> feed_values, absl::Span<const Output> fetches,
                            absl::Span<Node* const> targets, std::vector<Tensor>* outputs) {
  if (feeds.size() != feed_values.size()) {
    return InvalidArgument(feeds.size(), " feeds, but ", feed_values.size(), " values");
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    MR_RETURN_IF_ERROR(CheckFeed(feeds[i], feed_values[i]));
  }
  outputs->resize(fetches.size());
  StepInFlight step(next_inline_step_.fetch_add(1, std::memory_order_relaxed), options_.max_threads, options.trace);
  std::optional<Interrupt> interrupt;
  const InterruptCheck& check = options.interrupt ? *options.interrupt : interrupt_check_;
  if (check.check) step.interrupt = &interrupt.emplace(check, env());
  const InterruptScope scope(step.interrupt);
  const bool has_own_timeout = options.timeout < absl::InfiniteDuration();
  const absl::Duration timeout = has_own_timeout ? options.timeout : options_.default_timeout;
  const absl::Cleanup leave = [&] { Leave(&step); };
  // One for all of the call, compilation included.
  std::optional<Deadline> deadline;
  if (timeout < absl::InfiniteDuration()) {
    deadline.emplace(env(), timeout, [&] { step.Stop(PastDeadline(timeout)); });
  }
  CancellationManager::Token token = CancellationManager::kInvalid;
  if (options.cancellation) {
    token = options.cancellation->Register([&] { step.Stop(options.cancellation->reason()); });
    if (token == CancellationManager::kInvalid) return options.cancellation->reason();
  }
  const absl::Cleanup forget = [&] {
    if (token != CancellationManager::kInvalid) options.cancellation->Deregister(token);
  };
  const auto keep_going = [&] {
    const Status s = KeepGoing(timeout)();
    return s.ok() ? step.joint.stopped() : s;
  };
  CompiledPtr compiled;
  {
    absl::MutexLock lock(&mu_);
    MR_RETURN_IF_ERROR(Enter(&step));
    compiled = cache_.Find({feeds, fetches, targets});
    if (compiled) {
      MR_RETURN_IF_ERROR(TakeTurn(&step, compiled->changes_variables, options.between_steps, keep_going));
    }
  }
  if (!compiled) {
    MR_ASSIGN_OR_RETURN(compiled, AwaitCompiled({feeds, fetches, targets}, KeepGoing(timeout), options.cancellation));
    absl::MutexLock lock(&mu_);
    MR_RETURN_IF_ERROR(TakeTurn(&step, compiled->changes_variables, options.between_steps, keep_going));
  }
  if (!compiled->simple || options_.deterministic) return RunJointly(*compiled, step, options, feed_values, outputs);
  Status s = compiled->parts[0].inline_partition->Run(step.context, options.inter_op_threads, feed_values, outputs);
  if (s.ok()) return s;
  const CompiledPart& part = compiled->parts.front();
  NoteRefusal(compiled->view->workers[part.worker], part.inline_partition->closed());
  const Status stopped = step.joint.stopped();
  return stopped.ok() ? s : CausedBy(stopped, s);
}

Status CheckFeed(const Output& o, const Tensor& value) {
  if (!o.node || o.index < 0 || o.index >= o.node->num_outputs()) {
    return InvalidArgument("feed ", o.node ? o.ToString() : "(null)", " does not exist");
  }
  const DType want = BaseType(o.dtype());
  if (value.dtype() != want && want != DType::kInvalid) {
    return InvalidArgument("feed ", o.ToString(), " is ", DTypeName(value.dtype()), value.shape().ToString(),
                           ", the graph wants ", DTypeName(want));
  }
  return absl::OkStatus();
}

bool Coordinator::IsInside() const {
  if (SessionScope::Has(session_)) return true;
  absl::MutexLock lock(&mu_);
  const CallInFlight* call = running_;
  while (call && !call->IsOnStackOf(CurrentThread())) call = call->next;
  return call != nullptr || NumCompilingHere() > 0;
}

Status Coordinator::Close(absl::Duration patience) {
  if (!SessionScope::Has(session_)) return StopAll(patience);
  StopAll(absl::ZeroDuration()).IgnoreError();
  return absl::OkStatus();
}

Status Coordinator::StopAll(absl::Duration patience) {
  const int64_t start = env().MonotonicNanos();
  const auto left = [&] { return patience - absl::Nanoseconds(env().MonotonicNanos() - start); };
  const Status why = WithoutExceptions([] { return Cancelled("the session was closed"); });
  std::map<std::string, std::shared_ptr<PartialStep>> partial;
  std::shared_ptr<CallInFlight> to_answer;
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
    partial.swap(partial_);
    for (CallInFlight* call = running_; call;) {
      if (std::exchange(call->is_being_stopped, true)) {  // another thread closes the session too
        call = call->next;
        continue;
      }
      // Outside of the lock, since callbacks run. The call does not leave before this is over.
      mu_.Unlock();
      call->Stop(why);
      mu_.Lock();
      call->is_being_stopped = false;
      CallInFlight* const next = call->next;
      if (call->leaves_when_stopped) {
        std::shared_ptr<CallInFlight> held = Unlink(call);
        held->next_to_answer = std::exchange(to_answer, held);
      }
      call = next;
    }
  }
  CancelCompilations(why);
  for (auto& [handle, step] : partial) step->Stop(why);
  for (auto at = partial.begin(); at != partial.end();) {
    at = at->second->WaitFor(left()) ? partial.erase(at) : std::next(at);
  }
  size_t still = partial.size();
  {
    absl::MutexLock lock(&mu_);
    late_partial_.merge(partial);
    // Any thread may look. What is on this one's stack stays there meanwhile.
    auto idle = [this, here = CurrentThread(),
                 compiling_here = NumCompilingHere()]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      const CallInFlight* call = running_;
      while (call && call->IsOnStackOf(here)) call = call->next;
      return call == nullptr && all_compiling_.size() == compiling_here;
    };
    if (!env().Await(mu_, absl::Condition(&idle), left())) {
      for (const CallInFlight* call = running_; call; call = call->next) ++still;
      still = std::max<size_t>(still, 1);
    }
  }
  // Answers may be the end of this object.
  while (to_answer) {
    to_answer->Answer();
    to_answer = std::exchange(to_answer->next_to_answer, nullptr);
  }
  if (still == 0) return absl::OkStatus();
  return WithoutExceptions([&] {
    return DeadlineExceeded(still, " steps did not end within ", absl::FormatDuration(patience));
  });
}

}  // namespace millrace
