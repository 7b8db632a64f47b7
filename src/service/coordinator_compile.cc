// SPDX-License-Identifier: Apache-2.0
// From a run signature to partitions that are registered with workers.
#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "base/exceptions.h"
#include "graph/graph_def.h"
#include "graph/variable_use.h"
#include "service/call_in_flight.h"

namespace millrace {
namespace {

std::vector<std::string> HostDevicesOf(const WorkerView& view) {
  std::vector<std::string> names;
  for (const WorkerView::Of& w : view.workers) {
    for (const DeviceInfo& d : w.devices) {
      if (!d.own_memory) names.push_back(d.name);
    }
  }
  return names;
}

}  // namespace

// A signature that is compiled. Guarded by mu_ but for what is constant.
struct Coordinator::Compilation {
  explicit Compilation(const RunSignatureView& v)
      : signature{{v.feeds.begin(), v.feeds.end()},
                  {v.fetches.begin(), v.fetches.end()},
                  {v.targets.begin(), v.targets.end()}},
        through_rendezvous(v.through_rendezvous) {}
  RunSignatureView key() const { return RunSignatureView::Of(signature, through_rendezvous); }

  const RunSignature signature;
  const bool through_rendezvous;
  CancellationManager cancellation;
  struct Waiting {
    CompiledReply reply;
    WhatFollows then;
  };
  std::vector<Waiting> when_done;
};

// While partitions are registered. Given up, it lives until the last answer, for what was registered must be
// deregistered. Guarded by its lock but for what is constant.
struct Coordinator::Registration {
  std::shared_ptr<Compilation> compilation;
  std::vector<std::vector<CompiledPart>> wanted;  // by worker, without handles
  absl::Mutex mu;
  std::shared_ptr<Compiled> compiled ABSL_GUARDED_BY(mu);
  size_t left ABSL_GUARDED_BY(mu) = 0;
  bool is_over ABSL_GUARDED_BY(mu) = false;          // ended, or given up
  std::vector<Status> failures ABSL_GUARDED_BY(mu);  // by worker
  Status first ABSL_GUARDED_BY(mu);                  // of these
};

namespace {

// The compilations further up on this stack: their client may have come back here out of an interrupt check.
class CompilingHere {
 public:
  explicit CompilingHere(const void* compilation)
      : compilation_(compilation), outer_(std::exchange(innermost_, this)) {}
  ~CompilingHere() { innermost_ = outer_; }
  CompilingHere(const CompilingHere&) = delete;
  CompilingHere& operator=(const CompilingHere&) = delete;

  static bool Has(const void* compilation) {
    const CompilingHere* at = innermost_;
    while (at != nullptr && at->compilation_ != compilation) at = at->outer_;
    return at != nullptr;
  }

 private:
  static constinit thread_local const CompilingHere* innermost_;
  const void* const compilation_;
  const CompilingHere* const outer_;
};
constinit thread_local const CompilingHere* CompilingHere::innermost_ = nullptr;

// Of a compilation that is cancelled, by the client that began it or with the session.
Status GivenUp() {
  return WithoutExceptions([] { return Cancelled("the compilation of the step was given up"); });
}

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

}  // namespace

// What ended another's step need not end this one.
bool Coordinator::MayTryAgain(const Status& s) {
  return absl::IsCancelled(s) || absl::IsDeadlineExceeded(s) || absl::IsResourceExhausted(s);
}

Status Coordinator::LendGraphTo(
    absl::FunctionRef<Status(const Graph&)> use,
    const std::function<Status()>& keep_going) ABSL_NO_THREAD_SAFETY_ANALYSIS {  // which cannot follow LockWhile
  MR_RETURN_IF_ERROR(graph_->mu.LockWhile(keep_going));
  const absl::Cleanup unlock = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { graph_->mu.Unlock(); };
  // What a construction that may still fail has added must not be remembered.
  if (graph_->mu.ClaimedHere()) {
    return FailedPrecondition("the graph cannot run while a conditional or loop is being built in it");
  }
  return use(graph_->graph);
}

std::function<Status()> Coordinator::KeepGoing(absl::Duration timeout) {
  return [this, timeout, start = env().MonotonicNanos()]() -> Status {
    MR_RETURN_IF_ERROR(KeepGoingUnlessInterrupted());
    if (absl::Nanoseconds(env().MonotonicNanos() - start) > timeout) return PastDeadline(timeout);
    absl::MutexLock lock(&mu_);
    return closed_ ? Cancelled("the session was closed") : absl::OkStatus();
  };
}

PassEnvironment Coordinator::EnvironmentOf(const WorkerView& view) const {
  PassEnvironment env = options_.passes;
  // As in TensorFlow, of several tasks the first by name is preferred: all masters put a node in the same place.
  std::vector<const WorkerView::Of*> workers;
  for (const WorkerView::Of& w : view.workers) workers.push_back(&w);
  std::sort(workers.begin(), workers.end(), [](auto* a, auto* b) { return a->worker->task() < b->worker->task(); });
  for (const WorkerView::Of* w : workers) {
    if (w == &view.workers.front()) env.client = env.devices.size();
    for (const DeviceInfo& d : w->devices) {
      env.devices.push_back(DeviceName::Parse(d.name).value_or(DeviceName()));
      env.incarnations.push_back(d.incarnation);
      env.own_memory.push_back(d.own_memory);
      env.memory_limits.push_back(d.memory_bytes);
    }
  }
  return env;
}

StatusOr<std::vector<Partition>> Coordinator::CompileAside(const RunSignature& signature, CompileReport* report) {
  MessageCall call(*this);
  MR_RETURN_IF_ERROR(call.Begin());
  MR_ASSIGN_OR_RETURN(const WorkerViewPtr view, ConnectWithin(call));
  PruneOptions prune;
  prune.calls.keep_going = KeepGoing(options_.default_timeout);
  prune.calls.differentiate = options_.calls.differentiate;
  prune.calls.devices = HostDevicesOf(*view);
  const auto lend = [&](absl::FunctionRef<Status(const Graph&)> use) {
    return LendGraphTo(use, prune.calls.keep_going);
  };
  return CompileGraph(lend, signature, prune, EnvironmentOf(*view), report);
}

StatusOr<Explanation> Coordinator::Explain(const RunSignature& signature) {
  return WithoutExceptions([&]() -> StatusOr<Explanation> {
    CompileReport report;
    MR_ASSIGN_OR_RETURN(const std::vector<Partition> partitions, CompileAside(signature, &report));
    MR_RETURN_IF_ERROR(AddCuts(signature, &report));
    return Explanation{ReportText(report, partitions), ReportJson(report, partitions)};
  });
}

Status Coordinator::AddCuts(const RunSignature& signature, CompileReport* report) {
  MessageCall call(*this);
  MR_RETURN_IF_ERROR(call.Begin());
  const std::function<Status()> keep_going = KeepGoing(options_.default_timeout);
  const StatusOr<CompiledPtr> compiled = AwaitCompiled(RunSignatureView::Of(signature, false), keep_going);
  if (!compiled.ok()) {
    MR_RETURN_IF_ERROR(keep_going());
    report->refusal = compiled.status().ToString();
    return absl::OkStatus();
  }
  const auto add = [report](const char* stage, int64_t nanos) {
    for (StageReport& s : report->stages) s.nanos += s.name == stage ? nanos : 0;
  };
  for (const CompiledPart& part : (*compiled)->parts) {
    add(kOrderUpdatesStage, part.cut.order_nanos);
    add(kCutStage, part.cut.nanos);
    report->cuts.push_back({std::string((*compiled)->view->workers[part.worker].worker->task()), part.cut.segments,
                            part.cut.longest, part.cut.single_nodes});
  }
  return absl::OkStatus();
}

StatusOr<std::vector<wire::GraphDef>> Coordinator::PartitionGraphs(const RunSignature& signature) {
  return WithoutExceptions([&]() -> StatusOr<std::vector<wire::GraphDef>> {
    MR_ASSIGN_OR_RETURN(const std::vector<Partition> partitions, CompileAside(signature, nullptr));
    std::vector<wire::GraphDef> graphs;
    for (const Partition& p : partitions) {
      MR_ASSIGN_OR_RETURN(wire::GraphDef graph, GraphToProto(*p.graph));
      for (wire::NodeDef& n : graph.node) n.device = p.device;
      graphs.push_back(std::move(graph));
    }
    return graphs;
  });
}

StatusOr<Coordinator::Lookup> Coordinator::LookUp(const RunSignatureView& view, CompiledReply done) {
  if (closed_) return Cancelled("the session was closed");
  Lookup result;
  result.found = cache_.Find(view);
  if (result.found) return result;
  const auto at = compiling_.find(view);
  // Nobody can wait here for what is compiled further up on this stack.
  const bool is_nested = at != compiling_.end() && CompilingHere::Has(at->second.get());
  if (at != compiling_.end() && !is_nested) {
    at->second->when_done.push_back({std::move(done), nullptr});
    result.compilation = at->second;
    return result;
  }
  result.compilation = std::make_shared<Compilation>(view);
  result.compilation->when_done.push_back({std::move(done), nullptr});
  all_compiling_.reserve(all_compiling_.size() + 1);
  if (!is_nested) compiling_.emplace(result.compilation->key(), result.compilation);
  all_compiling_.push_back(result.compilation);
  result.is_new = true;
  return result;
}

StatusOr<CompiledPtr> Coordinator::AwaitCompiled(
    const RunSignatureView& view, const std::function<Status()>& keep_going, CancellationManager* caller) {
  for (;;) {
    const auto answer = std::make_shared<Awaited<CompiledPtr>>();
    Lookup at;
    {
      absl::MutexLock lock(&mu_);
      MR_ASSIGN_OR_RETURN(at, LookUp(view, [answer](const StatusOr<CompiledPtr>& result, bool) {
                            answer->Give(result);
                            return WhatFollows();
                          }));
    }
    if (at.found) return std::move(at.found);
    CancellationManager::Token token = CancellationManager::kInvalid;
    if (at.is_new && caller != nullptr) {
      token = caller->Register([caller, mine = at.compilation] { mine->cancellation.Cancel(caller->reason()); });
      if (token == CancellationManager::kInvalid) at.compilation->cancellation.Cancel(caller->reason());
    }
    const absl::Cleanup forget = [&] {
      if (token != CancellationManager::kInvalid) caller->Deregister(token);
    };
    if (at.is_new) Compile(at.compilation, keep_going);
    Status why;
    StatusOr<CompiledPtr> result = answer->Wait(env(), kInterruptPeriod, [&] { return why = keep_going(); });
    if (at.is_new && !why.ok()) at.compilation->cancellation.Cancel(why);
    if (result.ok() || at.is_new || !why.ok() || !MayTryAgain(result.status())) return result;
  }
}

void Coordinator::Compile(const std::shared_ptr<Compilation>& mine, const std::function<Status()>& keep_going) {
  const CompilingHere here(mine.get());
  const Status s = WithoutExceptions([&] {
    workers_.Connect(&mine->cancellation, [this, mine, keep_going](const StatusOr<WorkerViewPtr>& connected) {
      const CompilingHere also_here(mine.get());
      Status begun = connected.status();
      if (begun.ok()) begun = WithoutExceptions([&] { return CompileAndRegister(mine, *connected, keep_going); });
      if (!begun.ok()) EndCompilation(mine, begun);
    });
    return absl::OkStatus();
  });
  if (!s.ok()) EndCompilation(mine, s);
}

// OK: it goes on, or is over.
Status Coordinator::CompileAndRegister(const std::shared_ptr<Compilation>& mine, const WorkerViewPtr& view,
                                       const std::function<Status()>& keep_going) {
  const RunSignature& signature = mine->signature;
  auto compiled = std::make_shared<Compiled>(view);
  compiled->signature = signature;
  compiled->through_rendezvous = mine->through_rendezvous;
  PruneOptions prune;
  prune.through_rendezvous = mine->through_rendezvous;
  prune.client_device = view->workers.front().devices.front().name;
  prune.client_incarnation = view->workers.front().devices.front().incarnation;
  prune.calls.differentiate = options_.calls.differentiate;
  prune.calls.devices = HostDevicesOf(*view);
  prune.calls.keep_going = [&]() -> Status {
    MR_RETURN_IF_ERROR(mine->cancellation.reason());
    return keep_going();
  };
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
      return StatusOr<PartitionToRegister::Peer>(
          Internal("a partition was placed on ", device, ", which no worker has"));
    }
    const WorkerView::Of& w = view->workers[owner->second];
    return StatusOr<PartitionToRegister::Peer>({0, w.worker->task(), w.session.incarnation});
  }));
  if (mine->through_rendezvous) {
    for (Output o : signature.feeds) {
      compiled->feed_edges.push_back(edges.OfClientTensor(ClientTensorName("feed", o)).value_or(-1));
    }
    for (Output o : signature.fetches) {
      MR_ASSIGN_OR_RETURN(compiled->fetch_edges.emplace_back(), edges.OfClientTensor(ClientTensorName("fetch", o)));
    }
  }

  return Register(mine, std::move(compiled), std::move(wanted));
}

Status Coordinator::Register(const std::shared_ptr<Compilation>& mine, std::shared_ptr<Compiled> compiled,
                             std::vector<PartitionToRegister> partitions) {
  const WorkerViewPtr view = compiled->view;
  const size_t n = view->workers.size();
  const auto registration = std::make_shared<Registration>();
  registration->compilation = mine;
  registration->wanted.resize(n);
  std::vector<RegisterPartitionsRequest> requests(n);
  for (PartitionToRegister& p : partitions) {
    CompiledPart part;
    part.worker = view->worker_of_device.at(p.partition.device);
    MR_RETURN_IF_ERROR(RenumberArguments(*p.partition.graph, &part));
    compiled->num_nodes += static_cast<int64_t>(p.partition.graph->nodes().size());
    if (ChangesVariables(*p.partition.graph)) compiled->changes_variables = true;
    requests[part.worker].session = view->workers[part.worker].session;
    requests[part.worker].partitions.push_back(std::move(p));
    registration->wanted[part.worker].push_back(std::move(part));
  }
  compiled->parts.reserve(partitions.size());  // what is registered must find its place
  std::vector<std::pair<size_t, Reply<RegisterPartitionsResponse>>> asked;
  for (size_t w = 0; w < n; ++w) {
    if (requests[w].partitions.empty()) continue;
    asked.emplace_back(w, [this, registration, w](StatusOr<RegisterPartitionsResponse> response) {
      Registered(*registration, w, std::move(response));
    });
  }
  {
    absl::MutexLock lock(&registration->mu);
    registration->compiled = std::move(compiled);
    registration->left = asked.size() + 1;  // this function
    registration->failures.resize(n);
  }
  const auto token = mine->cancellation.Register([this, weak = std::weak_ptr(registration)] {
    const std::shared_ptr<Registration> given_up = weak.lock();
    if (!given_up) return;
    {
      absl::MutexLock lock(&given_up->mu);
      if (std::exchange(given_up->is_over, true)) return;
    }
    EndCompilation(given_up->compilation, GivenUp());
  });
  if (token == CancellationManager::kInvalid) return GivenUp();
  // From here on nothing throws. The answers name what must be deregistered, so none is given up.
  CallOptions call;
  call.stop_compiling = &mine->cancellation;
  for (auto& [w, reply] : asked) {
    view->workers[w].worker->RegisterPartitions(call, std::move(requests[w]), std::move(reply));
  }
  Registered(*registration, n, RegisterPartitionsResponse{});
  return absl::OkStatus();
}

// `this` is there as long as the registration is not over. `w`: the number of workers for who has sent the messages.
void Coordinator::Registered(Registration& r, size_t w, StatusOr<RegisterPartitionsResponse> response) {
  std::shared_ptr<Compiled> compiled;
  std::vector<Status> failures;
  Status s;
  {
    absl::MutexLock lock(&r.mu);
    if (w < r.wanted.size()) {
      std::vector<CompiledPart>& parts = r.wanted[w];
      if (response.ok() && (response->handles.size() != parts.size() || response->cuts.size() != parts.size())) {
        response = WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(r.mu) {
          return Internal("worker ", r.compiled->view->workers[w].worker->task(), " gave ", response->handles.size(),
                          " handles and ", response->cuts.size(), " cuts, want ", parts.size());
        });
      }
      r.failures[w] = response.status();
      if (r.first.ok()) r.first = response.status();
      for (size_t i = 0; response.ok() && i < parts.size(); ++i) {
        parts[i].handle = response->handles[i];
        parts[i].cut = response->cuts[i];
        r.compiled->parts.push_back(std::move(parts[i]));
      }
    }
    if (--r.left > 0 || std::exchange(r.is_over, true)) return;
    compiled = std::move(r.compiled);
    failures = std::move(r.failures);
    s = r.first;
  }
  for (size_t of = 0; of < r.wanted.size(); ++of) NoteRefusal(compiled->view->workers[of], failures[of]);
  std::sort(compiled->parts.begin(), compiled->parts.end(), [](const CompiledPart& a, const CompiledPart& b) {
    return std::pair(a.worker, a.handle) < std::pair(b.worker, b.handle);
  });
  if (s.ok() && compiled->parts.size() == 1) {
    CompiledPart& part = compiled->parts.front();
    const WorkerView::Of& of = compiled->view->workers[part.worker];
    s = WithoutExceptions([&] {
      part.inline_partition = of.worker->FindInline(of.session, part.handle);
      return absl::OkStatus();
    });
    compiled->simple = part.inline_partition != nullptr;
  }
  EndCompilation(r.compilation, s.ok() ? StatusOr<CompiledPtr>(std::move(compiled)) : StatusOr<CompiledPtr>(s));
}

void Coordinator::EndCompilation(const std::shared_ptr<Compilation>& compilation, StatusOr<CompiledPtr> result) {
  const std::shared_ptr<Compilation> mine = compilation;
  std::vector<CompiledPtr> dropped;  // freed outside the lock
  std::vector<Compilation::Waiting> when_done;
  {
    absl::MutexLock lock(&mu_);
    const auto own = compiling_.find(mine->key());
    const bool is_joined = own != compiling_.end() && own->second == mine;
    if (is_joined) compiling_.erase(own);
    const Status kept = WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      // A worker may have lost its session meanwhile, or a nested call of the client have compiled the same.
      const bool is_current = result.ok() && (*result)->view == workers_.view();
      if (is_current && cache_.Find(mine->key()) == nullptr) dropped = cache_.Insert(*result);
      return absl::OkStatus();
    });
    if (!kept.ok()) result = kept;
    when_done.swap(mine->when_done);
  }
  dropped.clear();
  bool is_own = true;  // the first has begun it
  for (Compilation::Waiting& waiting : when_done) {
    waiting.then = std::exchange(waiting.reply, nullptr)(result, std::exchange(is_own, false));
  }
  result = CompiledPtr();
  {
    absl::MutexLock lock(&mu_);
    std::erase(all_compiling_, mine);
  }
  // Nothing of the coordinator from here on, but in what follows for those who are still in flight.
  for (Compilation::Waiting& waiting : when_done) {
    if (waiting.then) std::move(waiting.then)();
  }
}

void Coordinator::CancelCompilations(const Status& why) {
  for (;;) {
    std::shared_ptr<Compilation> next;
    {
      absl::MutexLock lock(&mu_);
      const auto at = std::find_if(
          all_compiling_.begin(), all_compiling_.end(), [](const auto& c) { return !c->cancellation.IsCancelled(); });
      if (at == all_compiling_.end()) return;
      next = *at;
    }
    next->cancellation.Cancel(why);
  }
}

size_t Coordinator::NumCompilingHere() const {
  return static_cast<size_t>(std::count_if(
      all_compiling_.begin(), all_compiling_.end(), [](const auto& c) { return CompilingHere::Has(c.get()); }));
}

void Coordinator::NoteRefusal(const WorkerView::Of& worker, const Status& refusal) {
  if (!absl::IsAborted(refusal) || !workers_.Forget(worker.worker, worker.session)) return;
  std::list<CompiledPtr> dropped;  // freed outside the lock
  absl::MutexLock lock(&mu_);
  dropped = cache_.Clear();
}

void Coordinator::ForgetCompiled() {
  std::list<CompiledPtr> dropped;  // freed outside the lock
  absl::MutexLock lock(&mu_);
  dropped = cache_.Clear();
}

}  // namespace millrace
