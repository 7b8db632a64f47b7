// SPDX-License-Identifier: Apache-2.0
// What libraries call for their devices, and for kernels on these.
#include <algorithm>

#include "base/exceptions.h"
#include "capi/internal.h"
#include "capi/plugin/foreign.h"
#include "capi/plugin/plugin_device.h"
#include "capi/plugin/plugin_kernel.h"
#include "capi/plugin/registration.h"
#include "kernel/late_work.h"

using millrace::FailedPrecondition;
using millrace::InvalidArgument;
using millrace::LateWork;
using millrace::RefPtr;
using millrace::Status;
using millrace::StatusOr;
using millrace::Tensor;
using millrace::Variable;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;

struct MR_LateWork {
  LateWork& work;
  const millrace::NodeInfo& node;
};

namespace {

StatusOr<millrace::AllocatorStats> Memory(const char* type, int ordinal) {
  MR_CAPI_REQUIRE(type);
  return millrace::capi::PluginDeviceMemory(type, ordinal);
}

StatusOr<RefPtr<Variable>> VariableOf(const TF_OpKernelContext& c, int i) {
  if (i < 0 || i >= c.ctx.num_inputs()) return InvalidArgument("there is no input ", i);
  if (c.ctx.has_ref_input(i)) return RefPtr<Variable>::Share(&c.ctx.ref_input(i));
  return millrace::ResourceFromInput<Variable>(c.ctx, i);
}

// In the order of their addresses, which is the same for everybody.
void LockAll(const std::vector<RefPtr<Variable>>& variables) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<Variable*> order;
  for (const RefPtr<Variable>& v : variables) order.push_back(v.get());
  std::sort(order.begin(), order.end());
  for (const Variable* v : order) v->mu().Lock();
}

Status Lend(const TF_OpKernelContext& c, const int* inputs, TF_Tensor** values) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const millrace::MemorySpace* const space = SpaceOf(c.ctx.device());
  for (size_t k = 0; k < c.locked.size(); ++k) {
    Variable& v = *c.locked[k];
    if (!v.IsInitializedLocked()) {
      return FailedPrecondition("Attempting to use uninitialized value: input ", inputs[k], " of node '",
                                c.ctx.node_name(), "' is a variable without a value");
    }
    MR_ASSIGN_OR_RETURN(Tensor * value, v.ExclusiveLocked());
    if (SpaceOf(*value) != space) return BadHandle(c.ctx, inputs[k], "is a variable of another device");
    values[k] = new TF_Tensor{*value};
  }
  return absl::OkStatus();
}

}  // namespace

void TF_OpKernelContext::UnlockVariables() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (const RefPtr<Variable>& v : locked) v->mu().Unlock();
  locked.clear();
}

extern "C" {

void MR_RegisterDevice(const char* type, const MR_DeviceFunctions* functions, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_ASSIGN_OR_RETURN(millrace::DeviceType device, millrace::capi::MakeDeviceType(type, functions));
    return millrace::capi::RegisterDevice(std::move(device));
  });
}

int64_t MR_DeviceBytesInUse(const char* type, int ordinal, TF_Status* status) {
  return GuardedOr<int64_t>(status, 0, [&]() -> StatusOr<int64_t> {
    MR_ASSIGN_OR_RETURN(const millrace::AllocatorStats stats, Memory(type, ordinal));
    return stats.bytes_in_use;
  });
}

int64_t MR_DevicePeakBytesInUse(const char* type, int ordinal, TF_Status* status) {
  return GuardedOr<int64_t>(status, 0, [&]() -> StatusOr<int64_t> {
    MR_ASSIGN_OR_RETURN(const millrace::AllocatorStats stats, Memory(type, ordinal));
    return stats.peak_bytes_in_use;
  });
}

MR_LateWork* MR_OpKernelContext_BeginLateWork(TF_OpKernelContext* ctx, TF_Status* status) {
  return GuardedOr<MR_LateWork*>(status, nullptr, [&]() -> StatusOr<MR_LateWork*> {
    MR_CAPI_REQUIRE(ctx);
    LateWork* const work = ctx->memory != nullptr ? LateWork::Of(ctx->ctx.step()) : nullptr;
    if (work == nullptr) {
      return FailedPrecondition("node '", ctx->ctx.node_name(), "' is not on a device with memory of its own");
    }
    auto* const late = new MR_LateWork{*work, ctx->ctx.node()};
    work->Begin();
    return late;
  });
}

void MR_EndLateWork(MR_LateWork* work, const TF_Status* result) {
  if (work == nullptr) return;
  const std::unique_ptr<MR_LateWork> owned(work);
  const Status s = millrace::WithoutExceptions([&] {
    return result != nullptr ? millrace::capi::FromStatus(*result) : absl::OkStatus();
  });
  millrace::capi::Try(0, [&] {
    work->work.End(s.ok() ? s : NamedAfter(work->node, s));
    return 0;
  });
}

void MR_OpKernelContext_LockVariables(TF_OpKernelContext* ctx, const int* inputs, int num_inputs, TF_Tensor** values,
                                      TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(inputs, num_inputs, "inputs"));
    if (num_inputs > 0) MR_CAPI_REQUIRE(values);
    std::fill_n(values, num_inputs, nullptr);
    if (ctx->is_async || !ctx->locked.empty()) {
      return FailedPrecondition(
          "node '", ctx->ctx.node_name(), "' ", ctx->is_async ? "is asynchronous" : "has locked variables already");
    }
    std::vector<RefPtr<Variable>> variables;
    for (int k = 0; k < num_inputs; ++k) {
      MR_ASSIGN_OR_RETURN(RefPtr<Variable> v, VariableOf(*ctx, inputs[k]));
      if (std::find(variables.begin(), variables.end(), v) != variables.end()) {
        return InvalidArgument("input ", inputs[k], " of node '", ctx->ctx.node_name(), "' is a variable given twice");
      }
      variables.push_back(std::move(v));
    }
    LockAll(variables);
    ctx->locked = std::move(variables);
    const Status s = Lend(*ctx, inputs, values);
    if (s.ok()) return s;
    for (int k = 0; k < num_inputs; ++k) {
      delete values[k];
      values[k] = nullptr;
    }
    ctx->UnlockVariables();
    return s;
  });
}

void MR_OpKernelContext_ForwardRef(TF_OpKernelContext* ctx, int input, int output, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    if (input < 0 || input >= ctx->ctx.num_inputs() || !ctx->ctx.has_ref_input(input)) {
      return InvalidArgument("input ", input, " of node '", ctx->ctx.node_name(), "' is no reference to a variable");
    }
    const auto& types = ctx->ctx.node().signature.output_types;
    if (output < 0 || output >= ctx->ctx.num_outputs() || !millrace::IsRef(types[static_cast<size_t>(output)])) {
      return InvalidArgument("output ", output, " of node '", ctx->ctx.node_name(), "' is no reference to a variable");
    }
    ctx->ctx.ForwardRef(input, output);
    return absl::OkStatus();
  });
}

}  // extern "C"
