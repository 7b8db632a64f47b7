// SPDX-License-Identifier: Apache-2.0
#include "service/local_worker.h"

#include <functional>

#include "kernel/late_work.h"
#include "runtime/executor.h"
#include "runtime/node_run.h"
#include "runtime/plan_width.h"
#include "service/ask_kernels.h"
#include "service/device_kernel.h"
#include "service/joint_rendezvous.h"
#include "service/plan_step.h"

namespace millrace {

LocalWorker::LocalWorker(std::vector<std::unique_ptr<Device>> devices, const KernelRegistry* kernels,
                         bool deterministic, Transport* transport)
    : devices_(std::move(devices)), kernels_(kernels), deterministic_(deterministic), transport_(transport) {
  for (const auto& d : devices_) {
    device_names_.insert(d->name());
    has_remote_device_ |= SpaceOf(*d) != nullptr;
  }
}

LocalWorker::~LocalWorker() { call_gate_->Close(); }

std::vector<DeviceInfo> LocalWorker::devices() const {
  std::vector<DeviceInfo> all;
  for (const auto& d : devices_) {
    all.push_back({d->name(), d->type(), d->memory_limit(), d->incarnation(), SpaceOf(*d) != nullptr});
  }
  return all;
}

void LocalWorker::ClearResources(const std::string& container) {
  for (const auto& d : devices_) {
    container.empty() ? d->resources().ClearAll() : d->resources().Clear(container);
  }
}

Device* LocalWorker::FindDevice(const std::string& name) const {
  for (const auto& d : devices_) {
    if (d->name() == name) return d.get();
  }
  return nullptr;
}

StatusOr<std::shared_ptr<Kernel>> LocalWorker::MakeKernel(const Node& node, Device& device) {
  const KernelInit init{*node.op(), node.name(), node.attrs(), node.signature(), device};
  const bool shared = node.op()->stateful && !node.Is(OpTrait::kInternal);
  if (!shared) {
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, kernels_->Create(init));
    return std::shared_ptr<Kernel>(std::move(kernel));
  }
  absl::MutexLock lock(&mu_);
  std::shared_ptr<Kernel>& kernel = stateful_[{device.name(), node.name()}];
  if (!kernel) {
    MR_ASSIGN_OR_RETURN(kernel, kernels_->Create(init));
    const auto waiting = waiting_positions_.find(node.name());
    auto* stream = dynamic_cast<RandomStream*>(kernel.get());
    if (stream != nullptr && waiting != waiting_positions_.end()) {
      stream->set_position(waiting->second);
      waiting_positions_.erase(waiting);
    }
  }
  return kernel;
}

void LocalWorker::GetRandomPositions(RandomPositions* positions) const {
  absl::MutexLock lock(&mu_);
  positions->insert(waiting_positions_.begin(), waiting_positions_.end());
  for (const auto& [key, kernel] : stateful_) {
    if (const auto* stream = dynamic_cast<const RandomStream*>(kernel.get())) {
      (*positions)[key.second] = stream->position();
    }
  }
}

void LocalWorker::SetRandomPositions(const RandomPositions& positions) {
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

StatusOr<int64_t> LocalWorker::Register(Partition partition) {
  Device* device = FindDevice(partition.device);
  if (!device) return NotFound("device ", partition.device, " is not one of this worker");
  Plan::Options options;
  options.device = device;
  options.node_by_node = deterministic_;
  options.loops = &partition.loops;
  MemorySpace* const space = SpaceOf(*device);
  std::shared_ptr<FunctionSource> functions;  // made where a kernel asks for them
  options.make_kernel = [&](const Node& n) -> StatusOr<std::shared_ptr<Kernel>> {
    StatusOr<std::shared_ptr<Kernel>> kernel = MakeKernel(n, *device);
    if (kernel.ok())
      MR_RETURN_IF_ERROR(GiveFunctions(**kernel, *partition.graph, *kernels_, *device, call_gate_, &functions));
    if (!kernel.ok()) return Annotate(kernel.status(), absl::StrCat(n.Describe(), ": "));
    if (space != nullptr) return WithMemoryChecks(*std::move(kernel), MemoryOf(n, device->type()));
    return kernel;
  };
  MR_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, Plan::Compile(*partition.graph, options));
  absl::MutexLock lock(&mu_);
  const int64_t handle = next_++;
  plans_.emplace(handle, Registered{std::move(plan), space});
  return handle;
}

void LocalWorker::Deregister(int64_t partition) {
  std::shared_ptr<const Plan> doomed;  // freed outside the lock, once its last step is over
  absl::MutexLock lock(&mu_);
  auto it = plans_.find(partition);
  if (it == plans_.end()) return;
  doomed = std::move(it->second.plan);
  plans_.erase(it);
}

StatusOr<LocalWorker::Registered> LocalWorker::Find(int64_t partition) const {
  absl::ReaderMutexLock lock(&mu_);
  auto it = plans_.find(partition);
  if (it == plans_.end()) return NotFound("graph partition ", partition, " is not registered");
  return it->second;
}

namespace {

class InlinePlan final : public InlinePartition {
 public:
  explicit InlinePlan(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)), width_(*plan_) {}
  Status Run(StepContext& step, int inter_op_threads, absl::Span<const Tensor> args,
             std::vector<Tensor>* retvals) override {
    return width_.Run(
        step, {.trace = step.trace, .inter_op_threads = inter_op_threads},
        [&](const Plan& plan, Frame& frame) { return FillArgs(plan, args, frame); },
        [&](const Plan& plan, Frame& frame) { return TakeRetvals(plan, frame, retvals); });
  }

 private:
  const std::shared_ptr<const Plan> plan_;
  PlanWidth width_;
};

}  // namespace

std::shared_ptr<InlinePartition> LocalWorker::FindInline(int64_t partition) const {
  StatusOr<Registered> found = Find(partition);
  if (!found.ok() || found->space != nullptr || !found->plan->is_one_line()) return nullptr;
  return std::make_shared<InlinePlan>(std::move(found->plan));
}

class LocalWorker::OpenedStep final : public WorkerStep {
  // A partition that runs.
  class InFlight {
   public:
    InFlight(Registered partition, HeldFrame frame, std::vector<Tensor>* retvals, LateWork* late)
        : partition_(std::move(partition)), frame_(std::move(frame)), retvals_(retvals), late_(late) {}

    const Plan& plan() const { return *partition_.plan; }
    Frame& frame() const { return *frame_; }
    absl::AnyInvocable<void(Status) &&> done;

    // When the plan has run. What it has queued on a device belongs to the step: that is over when the device has done
    // it all, also when the step has failed.
    static void End(std::unique_ptr<InFlight> self, Status s) {
      MemorySpace* const space = self->partition_.space;
      if (space == nullptr) return Finish(std::move(self), std::move(s));
      InFlight* const flight = self.release();
      flight->result_ = std::move(s);
      flight->late_->Begin();
      space->WhenIdle([flight](const Status& of_device) { flight->late_->End(of_device); });
      flight->late_->WhenOver([flight](Status late) {
        // What others report after the device failed follows from it.
        Status result = late.ok() ? std::move(flight->result_) : std::move(late);
        Finish(std::unique_ptr<InFlight>(flight), std::move(result));
      });
    }

   private:
    static void Finish(std::unique_ptr<InFlight> self, Status s) {
      if (s.ok()) s = WithoutExceptions([&] { return self->Take(); });
      absl::AnyInvocable<void(Status) &&> done = std::move(self->done);
      self.reset();  // the step may be over, and the worker gone, when `done` returns
      std::move(done)(std::move(s));
    }

    Status Take() {
      MR_RETURN_IF_ERROR(TakeRetvals(plan(), frame(), retvals_));
      if (partition_.space == nullptr) return absl::OkStatus();
      for (const Tensor& t : *retvals_) MR_RETURN_IF_ERROR(CheckMayLeaveDevice(t));
      return absl::OkStatus();
    }

    const Registered partition_;
    const HeldFrame frame_;
    std::vector<Tensor>* const retvals_;
    LateWork* const late_;
    Status result_;
  };

 public:
  OpenedStep(LocalWorker* worker, const StepSpec& spec)
      : worker_(worker),
        options_{.trace = spec.trace,
                 .single_thread = spec.single_thread(),
                 .order_seed = spec.deterministic ? spec.order_seed : 0,
                 .inter_op_threads = spec.inter_op_threads,
                 .caller = spec.caller},
        rendezvous_(worker->transport_ ? NewJointRendezvous(spec.id, worker->device_names_, worker->transport_)
                                       : NewLocalRendezvous()),
        late_(worker->has_remote_device_ ? MakeRef<LateWork>([this](const Status& why) { Stop(why); }) : nullptr) {
    context_.step_id = spec.id;
    context_.rendezvous = rendezvous_.get();
    context_.cancellation = &cancellation_;
    context_.step_resources = &resources_;
    context_.max_threads = spec.max_threads;
    context_.trace = spec.trace;
  }
  ~OpenedStep() override {
    if (worker_->transport_ == nullptr) return;
    absl::MutexLock lock(&worker_->mu_);
    worker_->open_steps_.erase(context_.step_id);
  }

  // Lets kernels find what they share in this step, and other workers ask about it.
  Status Publish() {
    if (late_) MR_RETURN_IF_ERROR(LateWork::Attach(late_, resources_));
    if (worker_->transport_ == nullptr) return absl::OkStatus();
    absl::MutexLock lock(&worker_->mu_);
    const bool added = worker_->open_steps_.emplace(context_.step_id, rendezvous_).second;
    return added ? absl::OkStatus() : Internal("step ", context_.step_id, " is open already");
  }

  void Stop(const Status& why) override {
    cancellation_.Cancel();
    rendezvous_->Abort(why);
  }
  Rendezvous& rendezvous() override { return *rendezvous_; }

  void RunAsync(const PartitionRun& run, absl::AnyInvocable<void(Status) &&> done) override {
    std::unique_ptr<InFlight> flight;
    Status s = WithoutExceptions([&]() -> Status {
      MR_ASSIGN_OR_RETURN(Registered partition, worker_->Find(run.partition));
      MR_ASSIGN_OR_RETURN(HeldFrame frame, partition.plan->AcquireFrame());
      flight = std::make_unique<InFlight>(std::move(partition), std::move(frame), run.retvals, late_.get());
      return FillArgs(flight->plan(), run.args, flight->frame());
    });
    if (!s.ok()) {
      flight.reset();
      return std::move(done)(std::move(s));
    }
    const Plan& plan = flight->plan();
    Frame& frame = flight->frame();
    flight->done = std::move(done);
    if (!plan.is_one_line()) {
      const auto end = [](InFlight* f, Status result) {
        InFlight::End(std::unique_ptr<InFlight>(f), std::move(result));
      };
      return RunByReadiness(plan, frame, context_, options_, std::bind_front(end, flight.release()));
    }
    s = WithoutExceptions([&] { return RunInOrder(plan, frame, context_, options_); });
    if (!s.ok()) Stop(s);  // others must not wait for what this partition would have sent
    InFlight::End(std::move(flight), std::move(s));
  }

 private:
  LocalWorker* const worker_;
  const ExecutorOptions options_;
  const RefPtr<Rendezvous> rendezvous_;
  CancellationManager cancellation_;
  ResourceManager resources_;
  StepContext context_;
  const RefPtr<LateWork> late_;  // null: the worker's devices have no memory of their own
};

StatusOr<std::unique_ptr<WorkerStep>> LocalWorker::OpenStep(const StepSpec& spec) {
  auto step = std::make_unique<OpenedStep>(this, spec);
  MR_RETURN_IF_ERROR(step->Publish());
  return std::unique_ptr<WorkerStep>(std::move(step));
}

void LocalWorker::ServeRecv(int64_t step_id, absl::string_view key, Rendezvous::DoneCallback done) {
  RefPtr<Rendezvous> rendezvous;
  {
    absl::ReaderMutexLock lock(&mu_);
    auto it = open_steps_.find(step_id);
    if (it != open_steps_.end()) rendezvous = it->second;
  }
  if (!rendezvous) {
    return std::move(done)(
        Aborted("step ", step_id, " is not open on the worker that is to send '", key, "'"), Tensor(), false);
  }
  rendezvous->RecvAsync(key, std::move(done));
}

}  // namespace millrace
