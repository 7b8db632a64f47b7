// SPDX-License-Identifier: Apache-2.0
#include "simulation/sim_cluster.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "autodiff/gradients.h"
#include "base/pool_env.h"
#include "device/cpu/cpu_device.h"
#include "system/system.h"

namespace millrace {

SimTask::SimTask(SimCluster& cluster, std::string job, int index, uint64_t seed)
    : cluster_(cluster), job_(std::move(job)), index_(index), host_(cluster.world(), absl::StrCat(job_, index), seed) {}

Status SimTask::Start() {
  host_.SetDead(false);
  pool_ = NewThreadPool(host_);
  channels_ = std::make_unique<Channels>(host_, [this]() -> StatusOr<std::unique_ptr<RpcTransport>> {
    return cluster_.network().NewTransport(machine(), host_);
  });
  wire::ServerDef def;
  def.cluster.Ensure() = cluster_.def();
  def.job_name = job_;
  def.task_index = index_;
  def.protocol = "grpc";
  ServerParts parts;
  parts.make_devices = [this](const DeviceName& task, const wire::ConfigProto&) {
    DeviceName name = task;
    name.type = "CPU";
    name.id = 0;
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(NewCpuDevice(name, host_.Random64(), *pool_));
    return StatusOr<std::vector<std::unique_ptr<Device>>>(std::move(devices));
  };
  parts.master.env = &host_;
  parts.master.ops = &System::Default().ops();
  parts.master.kernels = &System::Default().kernels();
  parts.master.differentiate = AddDenseGradients;
  parts.channels = channels_.get();
  parts.all_by_messages = true;
  MR_ASSIGN_OR_RETURN(server_, Server::New(def, parts));
  MR_RETURN_IF_ERROR(server_->Start());
  is_up_ = true;
  cluster_.Note(absl::StrCat(machine(), " is up"));
  if (!program_) return absl::OkStatus();
  ++num_programs_;
  return host_.StartThread([this, life = life_] {
    if (life_ == life) program_(*this);  // the machine may have died before it got to that
    --num_programs_;
  });
}

void SimTask::AwaitPrograms() {
  cluster_.world().Wait([this] { return num_programs_ == 0; }, absl::InfiniteDuration());
}

void SimTask::Discard() {
  AwaitPrograms();
  server_.reset();
  channels_.reset();
  pool_.reset();
}

void SimTask::Crash(FakeDisk::Survival survival, uint64_t seed) {
  cluster_.Note(absl::StrCat(machine(), " dies"));
  ++life_;
  is_up_ = false;
  host_.disk().CrashAfter(0);
  host_.SetPaused(false);
  host_.SetDead(true);
  host_.SetDiskDelay(absl::ZeroDuration());
  cluster_.network().Kill(machine());
  Discard();
  host_.disk().Restart(survival, seed);
}

void SimTask::Stop() {
  is_up_ = false;
  Discard();
}

SimCluster::SimCluster(uint64_t seed, int num_ps, int num_workers)
    : world_(seed), network_(world_, seed * 3 + 1), num_ps_(num_ps) {
  const auto add = [&](const char* job, int n) {
    wire::JobDef& j = def_.job.emplace_back();
    j.name = job;
    for (int i = 0; i < n; ++i) {
      tasks_.push_back(std::make_unique<SimTask>(*this, job, i, seed * 5 + tasks_.size()));
      j.tasks[i] = tasks_.back()->address();
    }
  };
  add("ps", num_ps);
  add("worker", num_workers);
}

void SimCluster::WriteTrace() {
  writes_trace_ = true;
  network_.SetTrace([this](const std::string& what) { Note(what); });
}

void SimCluster::Note(const std::string& what) {
  if (!writes_trace_) return;
  const double seconds = static_cast<double>(world_.MonotonicNanos()) * 1e-9;
  trace_.push_back(absl::StrFormat("%10.4f s  %s", seconds, what));
}

}  // namespace millrace
