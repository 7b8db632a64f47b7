// SPDX-License-Identifier: Apache-2.0
// From a run signature to partitions that are registered with workers.
#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "base/current_thread.h"
#include "base/exceptions.h"
#include "service/coordinator.h"

namespace millrace {

// A signature that is compiled. Guarded by mu_ but for what is constant.
struct Coordinator::Compilation {
  Compilation(const RunSignatureView& v, bool others_may_join)
      : signature{{v.feeds.begin(), v.feeds.end()},
                  {v.fetches.begin(), v.fetches.end()},
                  {v.targets.begin(), v.targets.end()}},
        through_rendezvous(v.through_rendezvous),
        may_be_joined(others_may_join) {}

  const RunSignature signature;
  const bool through_rendezvous;
  const bool may_be_joined;
  const uint32_t thread = CurrentThread();
  CancellationManager cancellation;  // of messages to workers
  bool done = false;
  StatusOr<CompiledPtr> result = CompiledPtr();
  std::vector<absl::AnyInvocable<void() &&>> when_done;
};

// While partitions are registered. Guarded by its lock but for what is constant.
struct Coordinator::Registration {
  std::shared_ptr<Compilation> compilation;
  std::shared_ptr<Compiled> compiled;
  std::vector<std::vector<CompiledPart>> wanted;  // by worker, without handles
  absl::Mutex mu;
  size_t left ABSL_GUARDED_BY(mu) = 0;
  Status first ABSL_GUARDED_BY(mu);
};

namespace {

// Numbers the partition's _Arg and _Retval nodes from 0 and records which feed or fetch each is.
Status RenumberArguments(Graph& graph, CompiledPart* part) {
  // Only part of the client's arguments may be in this partition: number those from 0 in the client's order.
  std::vector<std::pair<int64_t, Node*>> args, retvals;
  for (Node* n : graph.nodes()) {
    if (!n->Is(OpTrait::kArgument) && !n->Is(OpTrait::kResult)) continue;
    MR_ASSIGN_OR_RETURN(const int64_t index, n->Attr<int64_t>("index"));
    (n->Is(OpTrait::kArgument) ? args : retvals).emplace_back(index, n);
  }
  for (auto [list, map] : {std::pair(&args, &part->args), std::pair(&retvals, &part->retvals)}) {
    std::sort(list->begin(), list->end());
    for (size_t i = 0; i < list->size(); ++i) {
      map->push_back(static_cast<size_t>((*list)[i].first));
      (*list)[i].second->SetAttr("index", static_cast<int64_t>(i));
    }
  }
  return absl::OkStatus();
}

// What ended another's step need not end this one.
bool MayTryAgain(const Status& s) {
  return absl::IsCancelled(s) || absl::IsDeadlineExceeded(s) || absl::IsResourceExhausted(s);
}

}  // namespace

Status Coordinator::LendGraphTo(absl::FunctionRef<Status(const Graph&)> use,
                                const std::function<Status()>& keep_going) {
  MR_RETURN_IF_ERROR(graph_->mu.LockWhile(keep_going));
  const absl::Cleanup unlock = [this] { graph_->mu.Unlock(); };
  // What a construction that may still fail has added must not be remembered.
  if (graph_->mu.ClaimedHere()) {
    return FailedPrecondition("the graph cannot run while a conditional or loop is being built in it");
  }
  return use(graph_->graph);
}

std::function<Status()> Coordinator::KeepGoing(absl::Duration timeout) {
  return [this, timeout, start = env().MonotonicNanos()]() -> Status {
    MR_RETURN_IF_ERROR(KeepGoingUnlessInterrupted());
    if (absl::Nanoseconds(env().MonotonicNanos() - start) > timeout)
      return DeadlineExceeded(
          "Timed out waiting for notification: the step passed its deadline of ", absl::FormatDuration(timeout));
    absl::MutexLock lock(&mu_);
    return closed_ ? Cancelled("the session was closed") : absl::OkStatus();
  };
}

PassEnvironment Coordinator::EnvironmentOf(const WorkerView& view) const {
  PassEnvironment env = options_.passes;
  for (const WorkerView::Of& w : view.workers) {
    for (const DeviceInfo& d : w.devices) {
      env.devices.push_back(DeviceName::Parse(d.name).value_or(DeviceName()));
      env.incarnations.push_back(d.incarnation);
      env.own_memory.push_back(d.own_memory);
      env.memory_limits.push_back(d.memory_bytes);
    }
  }
  return env;
}

StatusOr<std::string> Coordinator::Explain(const RunSignature& signature) {
  MR_RETURN_IF_ERROR(Connect());
  const WorkerViewPtr view = workers_.view();
  if (!view) return Aborted("a worker has lost its session");
  PruneOptions prune;
  prune.calls.keep_going = KeepGoing(absl::InfiniteDuration());
  prune.calls.differentiate = options_.calls.differentiate;
  CompileReport report;
  const auto lend = [&](absl::FunctionRef<Status(const Graph&)> use) {
    return LendGraphTo(use, prune.calls.keep_going);
  };
  MR_ASSIGN_OR_RETURN(
      const std::vector<Partition> partitions, CompileGraph(lend, signature, prune, EnvironmentOf(*view), &report));
  return ReportText(report, partitions);
}

std::shared_ptr<Coordinator::Compilation> Coordinator::JoinCompilation(const RunSignatureView& view, bool* is_new) {
  const auto at = compiling_.find(view);
  // The client may have come back here out of an interrupt check of its own compilation: nobody else may join this one.
  const bool is_nested = at != compiling_.end() && at->second->thread == CurrentThread();
  *is_new = at == compiling_.end() || is_nested;
  if (!*is_new) return at->second;
  auto mine = std::make_shared<Compilation>(view, !is_nested);
  all_compiling_.reserve(all_compiling_.size() + 1);
  if (!is_nested) compiling_.emplace(RunSignatureView::Of(mine->signature, mine->through_rendezvous), mine);
  all_compiling_.push_back(mine);
  return mine;
}

StatusOr<CompiledPtr> Coordinator::FindOrCompile(const RunSignatureView& view, absl::Duration timeout) {
  const std::function<Status()> keep_going = KeepGoing(timeout);
  absl::MutexLock lock(&mu_);
  for (;;) {
    if (CompiledPtr found = cache_.Find(view)) return found;
    bool is_new = false;
    const std::shared_ptr<Compilation> compilation = JoinCompilation(view, &is_new);
    if (is_new) {
      mu_.Unlock();
      Compile(compilation, keep_going);
      mu_.Lock();
    }
    while (!env().Await(mu_, absl::Condition(&compilation->done), kInterruptPeriod)) {
      mu_.Unlock();
      const Status s = WithoutExceptions(keep_going);
      if (!s.ok() && is_new) compilation->cancellation.Cancel();
      mu_.Lock();
      MR_RETURN_IF_ERROR(s);
    }
    if (is_new || !MayTryAgain(compilation->result.status())) return compilation->result;
  }
}

void Coordinator::FindOrCompileAsync(const RunSignatureView& view, std::function<Status()> keep_going,
                                     CompiledReply done) {
  CompiledPtr found;
  bool is_new = false;
  std::shared_ptr<Compilation> compilation;
  absl::Cleanup give_up = [&] {  // when it throws
    if (is_new) EndCompilation(*compilation, ResourceExhausted("out of memory"));
  };
  {
    absl::MutexLock lock(&mu_);
    found = cache_.Find(view);
    if (!found) {
      compilation = JoinCompilation(view, &is_new);
      compilation->when_done.reserve(compilation->when_done.size() + 1);
      compilation->when_done.push_back([this, compilation, is_new, keep_going, done = std::move(done)]() mutable {
        Joined(*compilation, is_new, std::move(keep_going), std::move(done));
      });
    }
  }
  std::move(give_up).Cancel();
  if (found) return std::move(done)(std::move(found));
  if (is_new) Compile(std::move(compilation), keep_going);
}

void Coordinator::Joined(const Compilation& compilation, bool was_first, std::function<Status()> keep_going,
                         CompiledReply done) {
  StatusOr<CompiledPtr> result = CompiledPtr();
  {
    absl::MutexLock lock(&mu_);
    result = compilation.result;
  }
  if (was_first || !MayTryAgain(result.status())) return std::move(done)(std::move(result));
  const RunSignatureView same = RunSignatureView::Of(compilation.signature, compilation.through_rendezvous);
  FindOrCompileAsync(same, std::move(keep_going), std::move(done));
}

void Coordinator::Compile(std::shared_ptr<Compilation> mine, const std::function<Status()>& keep_going) {
  CallOptions call;
  call.cancellation = &mine->cancellation;
  const Status s = WithoutExceptions([&] {
    workers_.Connect(call, [this, mine, keep_going](Status connected) {
      if (connected.ok()) connected = WithoutExceptions([&] { return CompileAndRegister(mine, keep_going); });
      if (!connected.ok()) EndCompilation(*mine, connected);
    });
    return absl::OkStatus();
  });
  if (!s.ok()) EndCompilation(*mine, s);
}

Status Coordinator::CompileAndRegister(const std::shared_ptr<Compilation>& mine,
                                       const std::function<Status()>& keep_going) {
  const WorkerViewPtr view = workers_.view();
  if (!view) return Aborted("a worker has lost its session");
  const RunSignature& signature = mine->signature;
  auto compiled = std::make_shared<Compiled>(view);
  compiled->signature = signature;
  compiled->through_rendezvous = mine->through_rendezvous;
  PruneOptions prune;
  prune.through_rendezvous = mine->through_rendezvous;
  prune.client_device = view->workers.front().devices.front().name;
  prune.client_incarnation = view->workers.front().devices.front().incarnation;
  prune.calls.differentiate = options_.calls.differentiate;
  prune.calls.keep_going = keep_going;
  const auto lend = [&](absl::FunctionRef<Status(const Graph&)> use) {
    const auto use_and_look = [&](const Graph& graph) {
      if (prune.through_rendezvous) compiled->feeds_needed = FeedsNeededBy(signature.feeds, signature.fetches);
      return use(graph);
    };
    return LendGraphTo(use_and_look, prune.calls.keep_going);
  };
  MR_ASSIGN_OR_RETURN(std::vector<Partition> partitions, CompileGraph(lend, signature, prune, EnvironmentOf(*view)));

  std::vector<PartitionToRegister> wanted;
  for (Partition& p : partitions) wanted.push_back({std::move(p), {}});
  EdgeNumbers edges;
  MR_RETURN_IF_ERROR(edges.Assign(absl::MakeSpan(wanted), [&](const std::string& device) {
    const auto owner = view->worker_of_device.find(device);
    if (owner == view->worker_of_device.end()) {
      return StatusOr<PartitionToRegister::Source>(
          Internal("a partition was placed on ", device, ", which no worker has"));
    }
    const WorkerView::Of& w = view->workers[owner->second];
    return StatusOr<PartitionToRegister::Source>({0, w.worker->task(), w.session.incarnation});
  }));
  if (mine->through_rendezvous) {
    for (Output o : signature.feeds) {
      compiled->feed_edges.push_back(edges.OfClientTensor(ClientTensorName("feed", o)).value_or(-1));
    }
    for (Output o : signature.fetches) {
      MR_ASSIGN_OR_RETURN(compiled->fetch_edges.emplace_back(), edges.OfClientTensor(ClientTensorName("fetch", o)));
    }
  }

  const auto registration = std::make_shared<Registration>();
  registration->compilation = mine;
  registration->compiled = compiled;
  registration->wanted.resize(view->workers.size());
  std::vector<RegisterPartitionsRequest> requests(view->workers.size());
  for (PartitionToRegister& p : wanted) {
    CompiledPart part;
    part.worker = view->worker_of_device.at(p.partition.device);
    MR_RETURN_IF_ERROR(RenumberArguments(*p.partition.graph, &part));
    compiled->num_nodes += static_cast<int64_t>(p.partition.graph->nodes().size());
    requests[part.worker].partitions.push_back(std::move(p));
    registration->wanted[part.worker].push_back(std::move(part));
  }
  compiled->parts.reserve(wanted.size());  // what is registered must find its place
  {
    absl::MutexLock lock(&registration->mu);
    registration->left = 1;  // this function
    for (const RegisterPartitionsRequest& r : requests) registration->left += !r.partitions.empty();
  }
  CallOptions call;
  call.cancellation = &mine->cancellation;
  for (size_t w = 0; w < requests.size(); ++w) {
    if (requests[w].partitions.empty()) continue;
    requests[w].session = view->workers[w].session;
    view->workers[w].worker->RegisterPartitions(
        call, std::move(requests[w]), [this, registration, w](StatusOr<RegisterPartitionsResponse> response) {
          Registered(*registration, w, std::move(response));
        });
  }
  Registered(*registration, requests.size(), RegisterPartitionsResponse{});
  return absl::OkStatus();
}

void Coordinator::Registered(Registration& registration, size_t w, StatusOr<RegisterPartitionsResponse> response) {
  Compiled& compiled = *registration.compiled;
  if (w < registration.wanted.size()) {
    const WorkerView::Of& worker = compiled.view->workers[w];
    std::vector<CompiledPart>& parts = registration.wanted[w];
    if (response.ok() && response->handles.size() != parts.size()) {
      response = Internal(
          "worker ", worker.worker->task(), " gave ", response->handles.size(), " handles, want ", parts.size());
    }
    NoteRefusal(worker, response.status());
    for (size_t i = 0; response.ok() && i < parts.size(); ++i) {
      parts[i].handle = response->handles[i];
      parts[i].inline_partition = worker.worker->FindInline(worker.session, parts[i].handle);
    }
    absl::MutexLock lock(&registration.mu);
    if (registration.first.ok()) registration.first = response.status();
    for (size_t i = 0; response.ok() && i < parts.size(); ++i) compiled.parts.push_back(std::move(parts[i]));
  }
  Status s;
  {
    absl::MutexLock lock(&registration.mu);
    if (--registration.left > 0) return;
    s = registration.first;
  }
  std::stable_sort(compiled.parts.begin(), compiled.parts.end(), [](const CompiledPart& a, const CompiledPart& b) {
    return a.worker < b.worker;
  });
  compiled.simple = compiled.parts.size() == 1 && compiled.parts[0].inline_partition;
  const CompiledPtr result = std::move(registration.compiled);
  EndCompilation(*registration.compilation, s.ok() ? StatusOr<CompiledPtr>(result) : s);
}

void Coordinator::EndCompilation(Compilation& mine, StatusOr<CompiledPtr> result) {
  std::vector<CompiledPtr> dropped;  // freed outside the lock
  std::vector<absl::AnyInvocable<void() &&>> when_done;
  {
    absl::MutexLock lock(&mu_);
    if (mine.may_be_joined) compiling_.erase(RunSignatureView::Of(mine.signature, mine.through_rendezvous));
    const Status kept = WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      // A worker may have lost its session meanwhile, or a nested call of the client have compiled the same.
      const bool is_current = result.ok() && (*result)->view == workers_.view();
      if (is_current && cache_.Find(RunSignatureView::Of(mine.signature, mine.through_rendezvous)) == nullptr) {
        dropped = cache_.Insert(*result);
      }
      return absl::OkStatus();
    });
    mine.result = kept.ok() ? std::move(result) : kept;
    mine.done = true;
    when_done.swap(mine.when_done);
  }
  for (auto& callback : when_done) std::move(callback)();
  dropped.clear();
  absl::MutexLock lock(&mu_);
  std::erase_if(all_compiling_, [&](const auto& c) { return c.get() == &mine; });
}

void Coordinator::CancelCompilations() {
  std::vector<std::shared_ptr<Compilation>> all;
  {
    absl::MutexLock lock(&mu_);
    all = all_compiling_;
  }
  for (const auto& c : all) c->cancellation.Cancel();
}

bool Coordinator::CompilesElsewhere() const {
  return std::any_of(
      all_compiling_.begin(), all_compiling_.end(), [](const auto& c) { return c->thread != CurrentThread(); });
}

void Coordinator::NoteRefusal(const WorkerView::Of& worker, const Status& refusal) {
  if (!absl::IsAborted(refusal) || !workers_.Forget(worker.worker, worker.session)) return;
  std::vector<CompiledPtr> dropped;  // freed outside the lock
  absl::MutexLock lock(&mu_);
  dropped = cache_.Clear();
}

void Coordinator::ForgetCompiled() {
  std::vector<CompiledPtr> dropped;  // freed outside the lock
  absl::MutexLock lock(&mu_);
  dropped = cache_.Clear();
}

}  // namespace millrace
