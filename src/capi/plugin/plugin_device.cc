// SPDX-License-Identifier: Apache-2.0
// One MemorySpace for each device that is open; the devices of all sessions share it. Kernels have a stream, and copies
// in either direction have one each: a copy waits by an event for what kernels have queued before it, and kernels that
// are queued after a copy from the host wait for that. A copy to the host holds its source, so kernels need not wait
// for it.
#include "capi/plugin/plugin_device.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/synchronization/mutex.h"
#include "base/exceptions.h"
#include "capi/plugin/foreign.h"
#include "kernel/device_memory.h"

namespace millrace::capi {
namespace {

class PluginSpace final : public MemorySpace {
 public:
  PluginSpace(std::string name, const MR_DeviceFunctions& f, void* device)
      : name_(std::move(name)), f_(f), device_(device) {}

  Status MakeStreams() {
    for (SP_Stream* stream : {&kernels_, &from_host_, &to_host_}) {
      MR_RETURN_IF_ERROR(Call([&](TF_Status* status) { *stream = f_.create_stream(device_, status); }));
      if (*stream == nullptr) return Internal("it gave no stream");
    }
    return absl::OkStatus();
  }

  std::string name() const override { return name_; }
  void* native_stream() override { return kernels_; }
  int64_t memory_limit() const { return f_.memory_limit(device_); }
  std::string description() const {
    const char* text = f_.description ? f_.description(device_) : nullptr;
    return text ? text : "";
  }

  // What is freed is kept for the next who asks for about as much: what that one queues comes later. Only when the
  // device has no room this waits until nothing is queued, and gives everything back that is not in use.
  void* Allocate(size_t bytes) override {
    if (bytes > SIZE_MAX - kGranule) return nullptr;
    const size_t want = (bytes + kGranule - 1) / kGranule * kGranule;
    if (void* p = TakeIdle(want, bytes)) return p;
    Blocks made = NewBlock(want);  // first: what the device gives must find its place
    void* p = f_.allocate(device_, want);
    if (p == nullptr) {
      GiveIdleBack();
      p = f_.allocate(device_, want);
    }
    if (p == nullptr) return TakeIdle(want, bytes);
    Blocks::node_type block = made.extract(made.begin());
    block.key() = p;
    block.mapped().mapped() = p;
    absl::MutexLock lock(&mu_);
    blocks_.insert(std::move(block));
    CountAllocation(bytes);
    return p;
  }

  void Deallocate(void* p, size_t bytes) override {
    absl::MutexLock lock(&mu_);
    idle_.insert(std::move(blocks_.find(p)->second));
    stats_.bytes_in_use -= static_cast<int64_t>(bytes);
  }

  AllocatorStats Stats() const override {
    absl::MutexLock lock(&mu_);
    AllocatorStats s = stats_;
    s.bytes_limit = f_.memory_limit(device_);
    return s;
  }

  void CopyToHost(const void* from, void* to, size_t bytes, DoneCallback done) override {
    Queue(to_host_, std::move(done), [&] {
      MR_RETURN_IF_ERROR(Order(kernels_, to_host_));
      return Call([&](TF_Status* status) { f_.copy_to_host(device_, to_host_, to, from, bytes, status); });
    });
  }

  void CopyFromHost(const void* from, void* to, size_t bytes, DoneCallback done) override {
    Queue(from_host_, std::move(done), [&] {
      MR_RETURN_IF_ERROR(Order(kernels_, from_host_));
      MR_RETURN_IF_ERROR(
          Call([&](TF_Status* status) { f_.copy_from_host(device_, from_host_, to, from, bytes, status); }));
      return Order(from_host_, kernels_);
    });
  }

  Status CopyWithin(const void* from, void* to, size_t bytes) override {
    return Call([&](TF_Status* status) { f_.copy_within(device_, kernels_, to, from, bytes, status); });
  }

  void WhenIdle(DoneCallback done) override {
    Queue(kernels_, std::move(done), [] { return absl::OkStatus(); });
  }

 private:
  static constexpr size_t kGranule = 256;
  using Idle = std::multimap<size_t, void*>;  // by size
  // All memory that is ours, with its entry in `Idle` while it is in use: to free it takes no memory.
  using Blocks = std::map<void*, Idle::node_type>;

  // At most a quarter is wasted.
  void* TakeIdle(size_t want, size_t bytes) {
    absl::MutexLock lock(&mu_);
    const auto it = idle_.lower_bound(want);
    if (it == idle_.end() || it->first - want > want / 4) return nullptr;
    void* const p = it->second;
    blocks_.find(p)->second = idle_.extract(it);
    CountAllocation(bytes);
    return p;
  }
  static Blocks NewBlock(size_t size) {
    Idle entry;
    entry.emplace(size, nullptr);
    Blocks block;
    block.emplace(nullptr, entry.extract(entry.begin()));
    return block;
  }
  void GiveIdleBack() {
    Idle idle;
    {
      absl::MutexLock lock(&mu_);
      idle.swap(idle_);
      for (const auto& [size, memory] : idle) blocks_.erase(memory);
    }
    Wait();
    for (const auto& [size, memory] : idle) f_.deallocate(device_, memory, size);
  }
  void CountAllocation(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    stats_.bytes_in_use += static_cast<int64_t>(bytes);
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    ++stats_.num_allocations;
  }

  template <typename Function>
  static Status Call(Function&& function) {
    TF_Status status;
    function(&status);
    return FromStatus(status);
  }

  // What is queued on `later` from now on waits for what is queued on `first` now.
  Status Order(SP_Stream first, SP_Stream later) {
    void* event = nullptr;
    MR_RETURN_IF_ERROR(Call([&](TF_Status* status) { event = f_.create_event(device_, status); }));
    Status s = Call([&](TF_Status* status) { f_.record_event(device_, first, event, status); });
    if (s.ok()) s = Call([&](TF_Status* status) { f_.wait_for_event(device_, later, event, status); });
    f_.destroy_event(device_, event);
    return s;
  }

  struct Waiting {
    DoneCallback done;
  };
  static void Reached(void* arg, TF_Status* of_stream) {
    const std::unique_ptr<Waiting> waiting(static_cast<Waiting*>(arg));
    std::move(waiting->done)(of_stream != nullptr ? FromStatus(*of_stream) : absl::OkStatus());
  }

  // `done` runs when `stream` has come past what `work` queues, all or some of it.
  template <typename Work>
  void Queue(SP_Stream stream, DoneCallback done, Work work) {
    auto waiting = std::make_unique<Waiting>(Waiting{std::move(done)});  // from here on nothing throws
    Status queued = WithoutExceptions([&]() -> Status {
      MR_RETURN_IF_ERROR(work());
      return Call([&](TF_Status* status) { f_.callback(device_, stream, &Reached, waiting.get(), status); });
    });
    if (queued.ok()) {
      static_cast<void>(waiting.release());  // Reached has it
      return;
    }
    Synchronize(stream);
    std::move(waiting->done)(std::move(queued));
  }

  void Synchronize(SP_Stream stream) {
    TF_Status ignored;  // who queued what fails is told
    f_.synchronize(device_, stream, &ignored);
  }
  void Wait() {
    for (SP_Stream stream : {kernels_, from_host_, to_host_}) Synchronize(stream);
  }

  const std::string name_;
  const MR_DeviceFunctions f_;
  void* const device_;
  SP_Stream kernels_ = nullptr;
  SP_Stream from_host_ = nullptr;
  SP_Stream to_host_ = nullptr;
  mutable absl::Mutex mu_;
  Idle idle_ ABSL_GUARDED_BY(mu_);
  Blocks blocks_ ABSL_GUARDED_BY(mu_);
  AllocatorStats stats_ ABSL_GUARDED_BY(mu_);
};

class PluginDevice final : public RemoteDevice {
 public:
  PluginDevice(DeviceName name, uint64_t incarnation, PluginSpace& space, ThreadPool& pool)
      : RemoteDevice(std::move(name), incarnation, space), space_(space), pool_(pool) {}
  ThreadPool& thread_pool() override { return pool_; }
  int64_t memory_limit() const override { return space_.memory_limit(); }
  std::string description() const override { return space_.description(); }
  ResourceManager& resources() override { return resources_; }

 private:
  PluginSpace& space_;
  ThreadPool& pool_;
  ResourceManager resources_;
};

// Those that are open, for the life of the process.
struct OpenSpaces {
  absl::Mutex mu;
  std::map<std::pair<std::string, int>, PluginSpace*> all ABSL_GUARDED_BY(mu);
  static OpenSpaces& Get() {
    static auto* const spaces = new OpenSpaces;
    return *spaces;
  }
};

StatusOr<PluginSpace*> Open(const std::string& type, const MR_DeviceFunctions& f, int ordinal) {
  OpenSpaces& open = OpenSpaces::Get();
  absl::MutexLock lock(&open.mu);
  PluginSpace*& space = open.all[{type, ordinal}];
  if (space != nullptr) return space;
  TF_Status status;
  void* const device = f.open(f.data, ordinal, &status);
  const std::string name = absl::StrCat("/device:", type, ":", ordinal);
  MR_RETURN_IF_ERROR(Annotate(FromStatus(status), absl::StrCat("device ", name, ": ")));
  auto made = std::make_unique<PluginSpace>(name, f, device);
  MR_RETURN_IF_ERROR(Annotate(made->MakeStreams(), absl::StrCat("device ", name, ": ")));
  return space = made.release();
}

Status CheckTable(const MR_DeviceFunctions& f) {
  if (f.struct_size < sizeof(MR_DeviceFunctions)) {
    return InvalidArgument("its table has ", f.struct_size, " bytes, want ", sizeof(MR_DeviceFunctions));
  }
  const bool complete =
      f.count && f.open && f.memory_limit && f.allocate && f.deallocate && f.create_stream && f.create_event &&
      f.destroy_event && f.record_event && f.wait_for_event && f.copy_to_host && f.copy_from_host && f.copy_within &&
      f.callback && f.synchronize;
  return complete ? absl::OkStatus() : InvalidArgument("a function of its table is NULL");
}

}  // namespace

StatusOr<DeviceType> MakeDeviceType(const char* type, const MR_DeviceFunctions* functions) {
  MR_CAPI_REQUIRE(type);
  MR_CAPI_REQUIRE(functions);
  const std::string name = type;
  const auto allowed = [](char c) { return absl::ascii_isupper(c) || absl::ascii_isdigit(c) || c == '_'; };
  if (name.empty() || !absl::ascii_isupper(name[0]) || !std::all_of(name.begin(), name.end(), allowed)) {
    return InvalidArgument("'", name, "' is no type of device: want capital letters, digits and '_'");
  }
  MR_RETURN_IF_ERROR(Annotate(CheckTable(*functions), absl::StrCat("device type ", name, ": ")));
  const MR_DeviceFunctions f = *functions;
  return DeviceType{
      name, [f] { return f.count(f.data); },
      [f, name](
          DeviceName device, uint64_t incarnation, int ordinal, ThreadPool& pool) -> StatusOr<std::unique_ptr<Device>> {
        MR_ASSIGN_OR_RETURN(PluginSpace * space, Open(name, f, ordinal));
        return std::unique_ptr<Device>(std::make_unique<PluginDevice>(std::move(device), incarnation, *space, pool));
      }};
}

StatusOr<AllocatorStats> PluginDeviceMemory(const std::string& type, int ordinal) {
  OpenSpaces& open = OpenSpaces::Get();
  absl::MutexLock lock(&open.mu);
  const auto it = open.all.find({type, ordinal});
  if (it == open.all.end() || it->second == nullptr) {
    return NotFound("no session has used a device ", type, ":", ordinal);
  }
  return it->second->Stats();
}

}  // namespace millrace::capi
