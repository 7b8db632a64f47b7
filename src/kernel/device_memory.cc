// SPDX-License-Identifier: Apache-2.0
#include "kernel/device_memory.h"

#include <algorithm>
#include <map>

#include "absl/synchronization/mutex.h"
#include "base/exceptions.h"
#include "kernel/device_env.h"
#include "kernel/late_work.h"

namespace millrace {
namespace {

// By type of device and op: the registrations, as the registry has them.
struct HostMemoryTable {
  struct Entry {
    KernelSpec spec;
    std::vector<std::string> args;
  };
  absl::Mutex mu;
  std::map<std::pair<std::string, std::string>, std::vector<Entry>> entries ABSL_GUARDED_BY(mu);
  static HostMemoryTable& Get() {
    static auto* const table = new HostMemoryTable;
    return *table;
  }
};

bool Serves(const KernelSpec& spec, const AttrMap& attrs) {
  return std::all_of(spec.types.begin(), spec.types.end(), [&](const auto& constraint) {
    const auto it = attrs.find(constraint.first);
    if (it == attrs.end()) return false;
    const DType* t = it->second.template get<DType>();
    const std::vector<DType>& served = constraint.second;
    return t == nullptr || std::find(served.begin(), served.end(), *t) != served.end();
  });
}

void Mark(const std::vector<ArgDef>& args, const std::vector<ArgRange>& ranges, const std::vector<std::string>& names,
          std::vector<bool>* host) {
  for (size_t a = 0; a < args.size(); ++a) {
    if (std::find(names.begin(), names.end(), args[a].name) == names.end()) continue;
    for (int i = ranges[a].begin; i < ranges[a].end; ++i) (*host)[static_cast<size_t>(i)] = true;
  }
}

}  // namespace

MemorySpace* SpaceOf(const Device& device) {
  const auto* remote = dynamic_cast<const RemoteDevice*>(&device);
  return remote ? &remote->space() : nullptr;
}

void SetHostMemory(const KernelSpec& spec, std::vector<std::string> args) {
  HostMemoryTable& table = HostMemoryTable::Get();
  absl::MutexLock lock(&table.mu);
  table.entries[{spec.device, spec.op}].push_back({spec, std::move(args)});
}

ArgMemory MemoryOf(const OpDef& op, const AttrMap& attrs, const NodeSignature& signature,
                   absl::string_view device_type) {
  ArgMemory memory;
  for (DType t : signature.input_types) memory.host_inputs.push_back(!IsPlain(BaseType(t)));
  for (DType t : signature.output_types) memory.host_outputs.push_back(!IsPlain(BaseType(t)));
  std::string label;
  if (const auto it = attrs.find("_kernel"); it != attrs.end()) {
    if (const std::string* s = it->second.get<std::string>()) label = *s;
  }
  HostMemoryTable& table = HostMemoryTable::Get();
  absl::ReaderMutexLock lock(&table.mu);
  const auto it = table.entries.find({std::string(device_type), op.name});
  if (it == table.entries.end()) return memory;
  const HostMemoryTable::Entry* best = nullptr;
  for (const HostMemoryTable::Entry& e : it->second) {
    if (e.spec.label != label || !Serves(e.spec, attrs)) continue;
    if (best == nullptr || e.spec.priority > best->spec.priority) best = &e;
  }
  if (best == nullptr) return memory;
  Mark(op.inputs, signature.input_args, best->args, &memory.host_inputs);
  Mark(op.outputs, signature.output_args, best->args, &memory.host_outputs);
  return memory;
}

StatusOr<Tensor> CopyToDevice(const KernelContext& ctx, const Tensor& value) {
  MemorySpace* const space = SpaceOf(ctx.device());
  if (space == nullptr || !IsPlain(value.dtype())) return value;
  MR_RETURN_IF_ERROR(CheckOnHost(value));
  MR_ASSIGN_OR_RETURN(Tensor copy, MakeTensorIn(*space, value.dtype(), value.shape()));
  const size_t bytes = value.TotalBytes();
  if (bytes == 0) return copy;
  if (LateWork* const late = LateWork::Of(ctx.step())) {
    late->Begin();
    const Status queued = WithoutExceptions([&] {
      space->CopyFromHost(
          value.raw(), copy.mutable_raw(), bytes, [late, node = &ctx.node(), held = value](Status s) mutable {
            held = Tensor();  // a client's memory is not read after its step
            late->End(s.ok() ? s : NamedAfter(*node, s));
          });
      return absl::OkStatus();
    });
    if (!queued.ok()) {
      late->End(queued);
      return queued;
    }
    return copy;
  }
  absl::Mutex mu;
  bool is_over = false;
  Status result;
  space->CopyFromHost(value.raw(), copy.mutable_raw(), bytes, [&](Status s) {
    absl::MutexLock lock(&mu);
    result = std::move(s);
    is_over = true;
  });
  {
    absl::MutexLock lock(&mu);
    EnvOf(ctx.device()).Await(mu, absl::Condition(&is_over));
  }
  MR_RETURN_IF_ERROR(result);
  return copy;
}

void CopyToHost(const Tensor& value, absl::AnyInvocable<void(StatusOr<Tensor>) &&> done) {
  MemorySpace* const space = SpaceOf(value);
  if (space == nullptr) return std::move(done)(value);
  struct Copy {
    Tensor from, to;
    absl::AnyInvocable<void(StatusOr<Tensor>) &&> done;
    static void End(Copy* ended, Status s) {
      const std::unique_ptr<Copy> copy(ended);
      copy->from = Tensor();
      if (!s.ok()) return std::move(copy->done)(std::move(s));
      std::move(copy->done)(std::move(copy->to));
    }
  };
  StatusOr<std::unique_ptr<Copy>> made = WithoutExceptions([&]() -> StatusOr<std::unique_ptr<Copy>> {
    MR_ASSIGN_OR_RETURN(Tensor to, Tensor::Make(value.dtype(), value.shape()));
    return std::make_unique<Copy>(Copy{value, std::move(to), nullptr});
  });
  if (!made.ok()) return std::move(done)(made.status());
  Copy* const copy = made->release();
  copy->done = std::move(done);
  const size_t bytes = value.TotalBytes();
  if (bytes == 0) return Copy::End(copy, absl::OkStatus());
  const Status queued = WithoutExceptions([&] {
    space->CopyToHost(value.raw(), copy->to.mutable_raw(), bytes, [copy](Status s) { Copy::End(copy, std::move(s)); });
    return absl::OkStatus();
  });
  if (!queued.ok()) Copy::End(copy, queued);
}

Status CheckMayLeaveDevice(const Tensor& handles) {
  if (handles.dtype() != DType::kResource) return absl::OkStatus();
  for (const ResourceHandle& h : handles.flat<ResourceHandle>()) {
    const auto* variable = dynamic_cast<const Variable*>(h.resource.get());
    if (variable == nullptr) continue;
    return InvalidArgument("the handle of variable '", h.name, "', whose value is in the memory of ", h.device,
                           ", is wanted elsewhere; read the variable on its device instead");
  }
  return absl::OkStatus();
}

}  // namespace millrace
