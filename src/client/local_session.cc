// SPDX-License-Identifier: Apache-2.0
#include "client/local_session.h"

#include <map>
#include <set>

#include "autodiff/gradients.h"
#include "base/exceptions.h"
#include "base/flushed_denormals.h"
#include "client/interruptible.h"
#include "client/random_state.h"
#include "kernel/device_env.h"
#include "passes/compile.h"
#include "service/ask_kernels.h"
#include "service/local_directory.h"
#include "service/master_session.h"
#include "service/session_config.h"
#include "service/worker.h"
#include "tensor/prepared.h"

namespace millrace {
namespace {

constexpr absl::Duration kClosePatience = absl::Seconds(10);

// A session's own: kept by the session, and by who resets it.
struct SessionCore {
  SessionCore(std::unique_ptr<ThreadPool> own_pool, std::vector<DeviceList> lists, const KernelRegistry* kernels)
      : pool(std::move(own_pool)), env(EnvOf(*lists.front().front())) {
    WorkerDirectory* const peers = lists.size() > 1 ? &directory : nullptr;
    for (DeviceList& devices : lists) {
      workers.push_back(std::make_unique<Worker>(std::move(devices), kernels, peers, env.Random64()));
      directory.Add(workers.back().get());
    }
  }
  ~SessionCore() {
    session.reset();
    ResetWorkers({});
    workers.clear();
    DropUnusedPreparedForms();  // of the variables and constants that went with it
  }
  // Drops what is in these containers, all when empty, once nothing runs any more.
  void ResetWorkers(const std::vector<std::string>& containers) {
    for (const auto& w : workers)
      w->Reset({}, {containers, /*closes_all=*/true}, [](const StatusOr<ResetResponse>&) {});
  }

  Coordinator& coordinator() const { return session->coordinator(); }

  const std::unique_ptr<ThreadPool> pool;  // null: the devices use the process's
  Env& env;                                // that of the devices
  LocalDirectory directory;
  std::vector<std::unique_ptr<Worker>> workers;
  std::unique_ptr<MasterSession> session;
};

// When nobody holds it any more, which may be inside something that one of its own steps called. What still runs is
// waited for by a thread of its own then; where there can be none, the session is never freed.
void EndSession(SessionCore* core) {
  if (!core->session || (!core->coordinator().IsInside() && core->coordinator().Close(absl::ZeroDuration()).ok())) {
    delete core;
    return;
  }
  Env& env = core->env;
  WithoutExceptions([&] { return env.StartThread([core] { delete core; }); }).IgnoreError();
}

struct LiveSessions {
  absl::Mutex mu;
  std::map<const SessionCore*, std::weak_ptr<SessionCore>> all ABSL_GUARDED_BY(mu);
  static LiveSessions& Get() {
    static LiveSessions* live = new LiveSessions();  // sessions may outlive static destruction
    return *live;
  }
};

class LocalSession final : public Session, public Interruptible {
 public:
  LocalSession(RefPtr<SharedGraph> graph, const wire::ConfigProto& config, CoordinatorOptions options,
               std::vector<DeviceList> workers, const KernelRegistry* kernels, const Determinism& determinism,
               std::unique_ptr<ThreadPool> pool, TraceFiles trace_files)
      : core_(new SessionCore(std::move(pool), std::move(workers), kernels), &EndSession) {
    options.env = &core_->env;
    options.has_own_workers = true;
    options.deterministic = determinism.on;
    options.order_seed = determinism.order_seed;
    if (determinism.on) options.max_threads = 1;
    AskKernels(*kernels, core_->workers.front()->host(), &options.passes);
    options.calls.differentiate = AddDenseGradients;
    std::vector<WorkerInterface*> all;
    for (const auto& w : core_->workers) all.push_back(w.get());
    core_->session = std::make_unique<MasterSession>(
        std::move(graph), config, std::move(all), core_->env.Random64(), std::move(options), std::move(trace_files));
    absl::MutexLock lock(&LiveSessions::Get().mu);
    LiveSessions::Get().all.emplace(core_.get(), core_);
  }
  // Once, before all else.
  Status Connect() { return core_->coordinator().Connect(); }

  ~LocalSession() override {
    {
      absl::MutexLock lock(&LiveSessions::Get().mu);
      LiveSessions::Get().all.erase(core_.get());
    }
    // Here, also when a step of the session deletes it, or somebody resets it just now: they hold the core.
    core_->coordinator().Close(kClosePatience).IgnoreError();
  }

  Status Run(const wire::RunOptions* options, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
             absl::Span<const Output> fetches, absl::Span<Node* const> targets, std::vector<Tensor>* outputs,
             wire::RunMetadata* metadata) override {
    const FlushedDenormals flushed;
    return held()->session->Run({}, options, feeds, feed_values, fetches, targets, outputs, metadata);
  }

  StatusOr<std::string> PartialRunSetup(absl::Span<const Output> feeds, absl::Span<const Output> fetches,
                                        absl::Span<Node* const> targets) override {
    const FlushedDenormals flushed;
    return held()->coordinator().PartialRunSetup(
        {{feeds.begin(), feeds.end()}, {fetches.begin(), fetches.end()}, {targets.begin(), targets.end()}});
  }
  Status PartialRun(const std::string& handle, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
                    absl::Span<const Output> fetches, std::vector<Tensor>* outputs) override {
    const FlushedDenormals flushed;
    return held()->coordinator().PartialRun(handle, feeds, feed_values, fetches, outputs);
  }
  Status ReleasePartialRun(const std::string& handle) override {
    return held()->coordinator().ReleasePartialRun(handle);
  }

  StatusOr<std::vector<DeviceInfo>> ListDevices() override { return held()->coordinator().ListDevices(); }

  StatusOr<Explanation> Explain(absl::Span<const Output> feeds, absl::Span<const Output> fetches,
                                absl::Span<Node* const> targets) override {
    const FlushedDenormals flushed;
    return held()->coordinator().Explain(
        {{feeds.begin(), feeds.end()}, {fetches.begin(), fetches.end()}, {targets.begin(), targets.end()}});
  }
  StatusOr<std::string> RandomState() override {
    MR_ASSIGN_OR_RETURN(const RandomPositions positions, held()->coordinator().GetRandomPositions());
    return EncodeRandomPositions(positions);
  }
  Status SetRandomState(absl::string_view state) override {
    MR_ASSIGN_OR_RETURN(const RandomPositions positions, DecodeRandomPositions(state));
    return held()->coordinator().SetRandomPositions(positions);
  }

  void SetInterruptCheck(const InterruptCheck& check) override { core_->coordinator().SetInterruptCheck(check); }
  Status Close() override {
    const std::shared_ptr<SessionCore> core = held();
    Status s = core->coordinator().Close(kClosePatience);
    core->session->FlushTraces(kClosePatience);
    return s;
  }

 private:
  // For one call, in which a step may delete the session.
  std::shared_ptr<SessionCore> held() const { return core_; }

  const std::shared_ptr<SessionCore> core_;
};

}  // namespace

StatusOr<std::unique_ptr<Session>> NewLocalSession(
    RefPtr<SharedGraph> graph, const wire::ConfigProto& config, std::vector<DeviceList> workers,
    const KernelRegistry* kernels, const Determinism& determinism, std::unique_ptr<ThreadPool> pool) {
  if (workers.empty()) return InvalidArgument("a session needs at least one worker");
  std::set<std::string> names, tasks;
  for (const DeviceList& devices : workers) {
    if (devices.empty()) return InvalidArgument("a worker needs at least one device");
    if (!tasks.insert(TaskOf(devices.front()->parsed_name())).second) {
      return InvalidArgument("two workers are task ", TaskOf(devices.front()->parsed_name()));
    }
    for (const auto& d : devices) {
      if (!names.insert(d->name()).second) return InvalidArgument("two devices are called ", d->name());
    }
  }
  MR_ASSIGN_OR_RETURN(CoordinatorOptions options, OptionsFrom(config));
  MR_ASSIGN_OR_RETURN(TraceFiles trace_files, TraceFiles::FromEnvironment());
  auto session = std::make_unique<LocalSession>(
      std::move(graph), config, std::move(options), std::move(workers), kernels, determinism, std::move(pool),
      std::move(trace_files));
  MR_RETURN_IF_ERROR(session->Connect());
  return std::unique_ptr<Session>(std::move(session));
}

Status ResetLocalSessions(const std::vector<std::string>& containers) {
  std::vector<std::shared_ptr<SessionCore>> live;
  {
    absl::MutexLock lock(&LiveSessions::Get().mu);
    for (const auto& [core, weak] : LiveSessions::Get().all) {
      if (std::shared_ptr<SessionCore> held = weak.lock()) live.push_back(std::move(held));
    }
  }
  Status first;
  for (const auto& core : live) first.Update(core->coordinator().Close(kClosePatience));
  for (const auto& core : live) core->ResetWorkers(containers);
  return first;
}

}  // namespace millrace
