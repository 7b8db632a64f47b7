// SPDX-License-Identifier: Apache-2.0
#include "service/worker_session.h"

#include <algorithm>

#include "base/pool_env.h"
#include "service/ask_kernels.h"
#include "service/collectives.h"
#include "service/device_kernel.h"

namespace millrace {
namespace {

constexpr size_t kMostPartitions = 100'000;  // which masters let go of long before

// The containers that stateful nodes name, also those in bodies of functions.
void AddContainers(const Graph& graph, std::set<std::string>* all) {
  const auto add = [&](const std::string& c) { all->insert(c.empty() ? ResourceManager::kDefaultContainer : c); };
  for (const Node* n : graph.nodes()) {
    if (n->op() == nullptr || !n->op()->stateful) continue;
    if (const StatusOr<std::string> container = n->Attr<std::string>("container"); container.ok()) add(*container);
  }
  for (const wire::FunctionDef* f : graph.Functions()) {
    for (const wire::NodeDef& n : f->node_def) {
      if (const auto at = n.attr.find("container"); at != n.attr.end()) add(at->second.s);
    }
  }
}

std::set<std::string> ContainersOf(const Partition& partition) {
  std::set<std::string> all;
  AddContainers(*partition.graph, &all);
  for (const auto& [name, loop] : partition.loops) {
    AddContainers(*loop.predicate, &all);
    AddContainers(*loop.body, &all);
  }
  return all;
}

}  // namespace

WorkerSession::WorkerSession(WorkerEnv& env, uint64_t id, std::unique_ptr<WorkerEnv> own, SessionSettings settings)
    : ground_(new Ground{WorkerEnv::Hold(env), std::move(own)}),
      env_(ground_->own ? *ground_->own : env),
      id_(id),
      calls_(std::make_shared<SessionCalls>(EnvOf(env.pool()), id, std::move(settings))),
      functions_stay_(!ground_->own && env.outlives_sessions),
      inline_steps_(std::make_shared<InlineSteps>(EnvOf(env.pool()))) {}

WorkerSession::~WorkerSession() {
  if (functions_stay_) {
    env_.KeepOpen(calls_);
  } else {
    calls_->gate.CloseWithoutWait(ground_);
  }
}

void WorkerSession::BeginEpoch(int64_t epoch) {
  int64_t present = epoch_.load();
  while (present < epoch && !epoch_.compare_exchange_weak(present, epoch)) {
  }
}

void WorkerSession::HearOfMaster(absl::Duration lease) {
  heard_nanos_.store(EnvOf(env_.pool()).MonotonicNanos());
  lease_nanos_.store(absl::ToInt64Nanoseconds(lease));
}

void WorkerSession::HearOfMaster() { heard_nanos_.store(EnvOf(env_.pool()).MonotonicNanos()); }

bool WorkerSession::IsLost() const {
  const int64_t lease = lease_nanos_.load();
  return lease > 0 && EnvOf(env_.pool()).MonotonicNanos() - heard_nanos_.load() > lease;
}

bool WorkerSession::Uses(absl::Span<const std::string> containers) const {
  absl::MutexLock lock(&mu_);
  if (containers.empty()) return !containers_.empty();
  return std::any_of(containers.begin(), containers.end(), [&](const auto& c) ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return containers_.contains(c);
  });
}

void WorkerSession::Close(const Status& why) {
  for (const auto& [id, step] : steps_.Close(why)) step->Abort(why);
  inline_steps_->Close(why, steps_, shared_from_this());
  if (!functions_stay_) calls_->gate.session().Cancel(why);
  std::map<int64_t, RegisteredPartition> doomed;  // freed outside of the lock
  absl::MutexLock lock(&mu_);
  doomed.swap(partitions_);
}

StatusOr<std::shared_ptr<Kernel>> WorkerSession::MakeKernel(
    const Node& node, Device& device, absl::FunctionRef<Status(Kernel&)> prepare) {
  const KernelInit init{*node.op(), node.name(), node.attrs(), node.signature(), device};
  const bool shared = node.op()->stateful && !node.Is(OpTrait::kInternal);
  if (!shared) {
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, env_.kernels->Create(init));
    MR_RETURN_IF_ERROR(prepare(*kernel));
    return std::shared_ptr<Kernel>(std::move(kernel));
  }
  const std::pair<std::string, std::string> key(device.name(), node.name());
  {
    absl::MutexLock lock(&mu_);
    const auto at = stateful_.find(key);
    if (at != stateful_.end()) return at->second;
  }
  // Made outside of the lock, perhaps by several at once: the first that is kept is everybody's.
  MR_ASSIGN_OR_RETURN(std::shared_ptr<Kernel> made, env_.kernels->Create(init));
  MR_RETURN_IF_ERROR(prepare(*made));
  absl::MutexLock lock(&mu_);
  const auto [at, is_new] = stateful_.emplace(key, made);
  auto* stream = dynamic_cast<RandomStream*>(made.get());
  if (const auto waiting = waiting_positions_.find(node.name());
      is_new && stream != nullptr && waiting != waiting_positions_.end()) {
    stream->set_position(waiting->second);
    waiting_positions_.erase(waiting);
  }
  return at->second;
}

StatusOr<RegisteredPartition> WorkerSession::Compile(const PartitionToRegister& wanted,
                                                     const CancellationManager* cancellation) {
  const Partition& partition = wanted.partition;
  Device* const device = env_.FindDevice(partition.device);
  if (!device) return NotFound("device ", partition.device, " is not one of worker ", env_.task);
  Plan::Options options;
  options.device = device;
  options.updates_early = partition.updates_early;
  options.in_segments = partition.in_segments;
  options.loops = &partition.loops;
  RegisteredPartition registered{.space = SpaceOf(*device)};
  std::shared_ptr<FunctionSource> functions;  // made where a kernel asks for them
  options.make_kernel = [&](const Node& n) -> StatusOr<std::shared_ptr<Kernel>> {
    if (cancellation && cancellation->IsCancelled()) {
      return Cancelled("the registration of partitions was given up: ", cancellation->reason().message());
    }
    StatusOr<std::shared_ptr<Kernel>> kernel = MakeKernel(n, *device, [&](Kernel& made) {
      if (auto* user = dynamic_cast<CollectiveUser*>(&made)) {
        if (!env_.collectives) return Unimplemented("collective ops in a session that has a ConfigProto.cluster_def");
        user->SetExecutor(env_.collectives, id_);
      }
      return GiveFunctions(made, *partition.graph, *env_.kernels, *device, calls_, &functions);
    });
    if (!kernel.ok()) return Annotate(kernel.status(), absl::StrCat(n.Describe(), ": "));
    registered.uses_functions |= dynamic_cast<UsesFunctions*>(kernel->get()) != nullptr;
    if (registered.space != nullptr) return WithMemoryChecks(*std::move(kernel), MemoryOf(n, device->type()));
    return kernel;
  };
  MR_ASSIGN_OR_RETURN(registered.plan, Plan::Compile(*partition.graph, options));
  if (registered.space == nullptr && registered.plan->is_one_line()) {
    registered.width = std::make_shared<PlanWidth>(registered.plan);
  }
  {
    std::set<std::string> containers = ContainersOf(partition);
    absl::MutexLock lock(&mu_);
    containers_.merge(containers);
  }
  if (!wanted.peers.empty()) {
    auto peers = std::make_shared<std::map<int64_t, EdgePeer>>();
    for (const PartitionToRegister::Peer& peer : wanted.peers) {
      WorkerInterface* const worker = env_.peers ? env_.peers->Find(peer.task) : nullptr;
      if (!worker) {
        return Unavailable("worker ", env_.task, " knows no worker ", peer.task, ", the other end of edge ", peer.edge);
      }
      peers->emplace(peer.edge, EdgePeer{worker, {id_, peer.incarnation, epoch()}, peer.is_pushed});
    }
    registered.peers = std::move(peers);
  }
  return registered;
}

StatusOr<RegisterPartitionsResponse> WorkerSession::Register(
    std::vector<PartitionToRegister> partitions, const CancellationManager* cancellation) {
  {
    absl::ReaderMutexLock lock(&mu_);
    if (partitions_.size() + partitions.size() > kMostPartitions) {
      return ResourceExhausted("the session has ", partitions_.size(), " graph partitions on this worker; with ",
                               partitions.size(), " more there would be more than ", kMostPartitions);
    }
  }
  std::vector<RegisteredPartition> compiled;
  for (const PartitionToRegister& p : partitions) {
    MR_ASSIGN_OR_RETURN(compiled.emplace_back(), Compile(p, cancellation));
  }
  RegisterPartitionsResponse response;
  response.handles.reserve(compiled.size());
  for (const RegisteredPartition& p : compiled) response.cuts.push_back(p.plan->cut());
  std::map<int64_t, RegisteredPartition> added;
  absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(steps_.closed());
  for (RegisteredPartition& p : compiled) {
    response.handles.push_back(next_ + static_cast<int64_t>(added.size()));
    added.emplace(response.handles.back(), std::move(p));
  }
  next_ += static_cast<int64_t>(added.size());
  partitions_.merge(added);  // throws nothing
  return response;
}

void WorkerSession::Deregister(absl::Span<const int64_t> handles) {
  for (const int64_t handle : handles) {
    RegisteredPartition doomed;  // freed outside of the lock, once its last step is over
    absl::MutexLock lock(&mu_);
    auto it = partitions_.find(handle);
    if (it == partitions_.end()) continue;
    doomed = std::move(it->second);
    partitions_.erase(it);
  }
}

StatusOr<RegisteredPartition> WorkerSession::Find(int64_t handle) const {
  absl::ReaderMutexLock lock(&mu_);
  auto it = partitions_.find(handle);
  if (it == partitions_.end()) return NotFound("graph partition ", handle, " is not registered");
  return it->second;
}

void WorkerSession::GetRandomPositions(RandomPositions* positions) const {
  absl::MutexLock lock(&mu_);
  positions->insert(waiting_positions_.begin(), waiting_positions_.end());
  for (const auto& [key, kernel] : stateful_) {
    if (const auto* stream = dynamic_cast<const RandomStream*>(kernel.get())) {
      (*positions)[key.second] = stream->position();
    }
  }
}

void WorkerSession::SetRandomPositions(const RandomPositions& positions) {
  absl::MutexLock lock(&mu_);
  waiting_positions_ = positions;
  for (const auto& [key, kernel] : stateful_) {
    const auto at = positions.find(key.second);
    auto* stream = dynamic_cast<RandomStream*>(kernel.get());
    if (stream == nullptr || at == positions.end()) continue;
    stream->set_position(at->second);
    waiting_positions_.erase(key.second);
  }
}

}  // namespace millrace
