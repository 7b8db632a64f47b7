// SPDX-License-Identifier: Apache-2.0
// What a kernel does while it computes.
#include <algorithm>

#include "base/stop_scope.h"
#include "capi/internal.h"
#include "capi/plugin/foreign.h"
#include "capi/plugin/plugin_kernel.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/c/kernels.h"

using millrace::DType;
using millrace::FailedPrecondition;
using millrace::Internal;
using millrace::InvalidArgument;
using millrace::OutOfRange;
using millrace::Shape;
using millrace::Status;
using millrace::StatusOr;
using millrace::Tensor;
using millrace::Unimplemented;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;
using millrace::capi::MakeShape;

namespace {

bool IsInput(const TF_OpKernelContext& c, int i) { return i >= 0 && i < c.ctx.num_inputs(); }
bool IsOutput(const TF_OpKernelContext& c, int i) { return i >= 0 && i < c.ctx.num_outputs(); }
Status NoInput() { return OutOfRange("input index out of range"); }
Status NoOutput() { return OutOfRange("output index out of range"); }

// Input i as a value of its own, also when its memory has become an output's.
StatusOr<Tensor> InputValue(const TF_OpKernelContext& c, int i) {
  if (c.ctx.has_ref_input(i)) {
    return Unimplemented("input ", i, " of node '", c.ctx.node_name(),
                         "' is a reference to a variable, which kernels of libraries cannot read");
  }
  for (const auto& [input, output] : c.forwarded) {
    if (input == i) return c.ctx.mutable_output(output)->Reshaped(c.ctx.input(i).shape());
  }
  return c.ctx.input(i);
}

Status CheckOutput(const TF_OpKernelContext& c, int index) {
  if (index < 0) return Internal("allocate_output with bad index=", index, " kernel=", c.ctx.node_name());
  if (!IsOutput(c, index)) {
    return Internal(
        "allocate_output with bad index=", index, " num_outputs=", c.ctx.num_outputs(), " kernel=", c.ctx.node_name());
  }
  if (millrace::IsRef(c.ctx.node().signature.output_types[static_cast<size_t>(index)])) {
    return Unimplemented("output ", index, " of node '", c.ctx.node_name(),
                         "' is a reference to a variable, which kernels of libraries cannot give");
  }
  return absl::OkStatus();
}

// For functions without a status: the operation fails.
void FailUnimplemented(TF_OpKernelContext* context, const char* message) {
  if (context == nullptr) return;
  millrace::capi::Try(0, [&] { return context->failure.Update(Unimplemented(message)), 0; });
}

// A tensor that the kernel may write to.
TF_Tensor* Writable(Tensor t) {
  const bool strings = t.dtype() == DType::kString;
  return new TF_Tensor{std::move(t), nullptr, strings};
}

StatusOr<TF_Tensor*> Allocated(TF_OpKernelContext& c, int index, const Shape& shape) {
  if (!c.IsOutputOnHost(index)) {
    millrace::MemorySpace& space = *SpaceOf(c.ctx.device());
    MR_ASSIGN_OR_RETURN(Tensor remote, MakeTensorIn(space, c.ctx.output_dtype(index), shape));
    c.ctx.set_output(index, remote);
    return Writable(std::move(remote));
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, c.ctx.AllocateOutput(index, shape));
  return Writable(*out);
}

// Input i as the output, when its memory is free to be taken; else null.
StatusOr<TF_Tensor*> Forwarded(TF_OpKernelContext& c, int i, int index, const Shape& shape) {
  if (c.ctx.has_ref_input(i) || c.IsInputOnHost(i) != c.IsOutputOnHost(index)) return nullptr;
  const Tensor& in = c.ctx.input(i);
  if (in.dtype() != c.ctx.output_dtype(index) || in.num_elements() != shape.num_elements()) return nullptr;
  Tensor* out = c.ctx.ForwardOwned(i, index);
  if (out == nullptr) return nullptr;
  c.forwarded.emplace_back(i, index);
  if (!(out->shape() == shape)) {
    MR_ASSIGN_OR_RETURN(*out, out->Reshaped(shape));
  }
  return Writable(*out);
}

struct ParallelWork {
  void (*fn)(void*, int64_t, int64_t);
  void* data;
  millrace::capi::FirstFailure failure;
};

}  // namespace

extern "C" {

void TF_OpKernelContext_Failure(TF_OpKernelContext* ctx, TF_Status* status) {
  if (ctx == nullptr || status == nullptr) return;
  millrace::capi::Try(0, [&] { return ctx->failure.Update(millrace::capi::FromStatus(*status)), 0; });
}

int TF_NumInputs(TF_OpKernelContext* ctx) { return ctx ? ctx->ctx.num_inputs() : 0; }
int TF_NumOutputs(TF_OpKernelContext* ctx) { return ctx ? ctx->ctx.num_outputs() : 0; }

void TF_GetInput(TF_OpKernelContext* ctx, int i, TF_Tensor** tensor, TF_Status* status) {
  if (tensor != nullptr) *tensor = nullptr;
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(tensor);
    if (!IsInput(*ctx, i)) return NoInput();
    MR_ASSIGN_OR_RETURN(Tensor value, InputValue(*ctx, i));
    *tensor = new TF_Tensor{std::move(value)};
    return absl::OkStatus();
  });
}

TF_DataType TF_InputDatatype(TF_OpKernelContext* ctx, int index) {
  if (ctx == nullptr || !IsInput(*ctx, index)) return static_cast<TF_DataType>(0);
  return static_cast<TF_DataType>(ctx->ctx.input_dtype(index));
}

void TF_InputRange(TF_OpKernelContext* ctx, const char* name, TF_InputRange_Args* args) {
  if (args == nullptr || args->struct_size < TF_InputRange_Args_STRUCT_SIZE) return;
  args->start = args->stop = -1;
  Guarded(args->status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(name);
    const millrace::OpDef& op = *ctx->ctx.node().op;
    for (const millrace::ArgDef& a : op.inputs) {
      if (a.name != name) continue;
      const millrace::ArgRange range = ctx->ctx.input_arg(name);
      args->start = range.begin;
      args->stop = range.end;
      return absl::OkStatus();
    }
    return InvalidArgument("Unknown input name: ", name);
  });
}

void TF_SetOutput(TF_OpKernelContext* ctx, int i, const TF_Tensor* tensor, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    if (!IsOutput(*ctx, i)) return NoOutput();
    MR_CAPI_REQUIRE(tensor);
    MR_RETURN_IF_ERROR(CheckOutput(*ctx, i));
    const DType got = millrace::capi::DTypeOfTensor(tensor);
    if (got != ctx->ctx.output_dtype(i)) {
      return InvalidArgument(
          "output ", i, " of node '", ctx->ctx.node_name(), "' (", ctx->ctx.node().op->name, ") is declared as ",
          millrace::DTypeName(ctx->ctx.output_dtype(i)), ", got ", millrace::DTypeName(got));
    }
    if (SpaceOf(tensor->tensor) != nullptr) {
      ctx->ctx.set_output(i, tensor->tensor);
      return absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(Tensor value, millrace::capi::FeedValue(tensor));
    ctx->ctx.set_output(i, std::move(value));
    return absl::OkStatus();
  });
}

TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  return GuardedOr<TF_Tensor*>(status, nullptr, [&]() -> StatusOr<TF_Tensor*> {
    MR_CAPI_REQUIRE(ctx);
    if (!IsOutput(*ctx, i)) return NoOutput();
    const Tensor& out = *ctx->ctx.mutable_output(i);
    if (!out.IsInitialized()) {
      return FailedPrecondition("output ", i, " of node '", ctx->ctx.node_name(), "' has no value yet");
    }
    return Writable(out);
  });
}

TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* ctx, int i) {
  if (ctx == nullptr || !IsOutput(*ctx, i)) return static_cast<TF_DataType>(0);
  return static_cast<TF_DataType>(ctx->ctx.node().signature.output_types[static_cast<size_t>(i)]);
}

TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index, TF_DataType dtype, const int64_t* dims,
                             int num_dims, size_t len, TF_Status* status) {
  return GuardedOr<TF_Tensor*>(status, nullptr, [&]() -> StatusOr<TF_Tensor*> {
    MR_CAPI_REQUIRE(context);
    MR_RETURN_IF_ERROR(CheckOutput(*context, index));
    const DType want = context->ctx.output_dtype(index);
    if (static_cast<DType>(dtype) != want) {
      return InvalidArgument(
          "output ", index, " of node '", context->ctx.node_name(), "' (", context->ctx.node().op->name,
          ") is declared as ", millrace::DTypeName(want), ", allocated as data type ", static_cast<int>(dtype));
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, num_dims));
    const size_t element = millrace::IsPlain(want) ? millrace::DTypeSize(want) : 0;
    if (element > 0 && len / element > static_cast<size_t>(shape.num_elements())) {
      return InvalidArgument("output ", index, " of node '", context->ctx.node_name(), "': ", len,
                             " bytes are more than ", millrace::DTypeName(want), shape.ToString(), " has");
    }
    return Allocated(*context, index, shape);
  });
}

TF_Tensor* TF_ForwardInputOrAllocateOutput(
    TF_OpKernelContext* context, const int* candidate_input_indices, int num_candidate_input_indices, int output_index,
    const int64_t* output_dims, int output_num_dims, int* forwarded_input, TF_Status* status) {
  if (forwarded_input != nullptr) *forwarded_input = -1;
  return GuardedOr<TF_Tensor*>(status, nullptr, [&]() -> StatusOr<TF_Tensor*> {
    MR_CAPI_REQUIRE(context);
    MR_RETURN_IF_ERROR(CheckOutput(*context, output_index));
    MR_RETURN_IF_ERROR(
        millrace::capi::CheckArray(candidate_input_indices, num_candidate_input_indices, "candidate_input_indices"));
    MR_ASSIGN_OR_RETURN(const Shape shape, MakeShape(output_dims, output_num_dims));
    for (int k = 0; k < num_candidate_input_indices; ++k) {
      if (!IsInput(*context, candidate_input_indices[k])) return NoInput();
    }
    for (int k = 0; k < num_candidate_input_indices; ++k) {
      const int i = candidate_input_indices[k];
      MR_ASSIGN_OR_RETURN(TF_Tensor * out, Forwarded(*context, i, output_index, shape));
      if (out == nullptr) continue;
      if (forwarded_input != nullptr) *forwarded_input = i;
      return out;
    }
    return Allocated(*context, output_index, shape);
  });
}

TF_Tensor* TF_AllocateTemp(TF_OpKernelContext* context, TF_DataType dtype, const int64_t* dims, int num_dims,
                           TF_AllocatorAttributes* attributes, TF_Status* status) {
  return GuardedOr<TF_Tensor*>(status, nullptr, [&]() -> StatusOr<TF_Tensor*> {
    MR_CAPI_REQUIRE(context);
    if (attributes != nullptr && attributes->struct_size == 0) {
      return InvalidArgument(
          "TF_AllocatorAttributes struct size member must be set to TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE");
    }
    MR_ASSIGN_OR_RETURN(const DType type, millrace::capi::MakeDType(dtype));
    MR_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, num_dims));
    const bool on_host = (attributes != nullptr && attributes->on_host) || !millrace::IsPlain(type);
    millrace::MemorySpace* const space = on_host ? nullptr : SpaceOf(context->ctx.device());
    MR_ASSIGN_OR_RETURN(Tensor t, space ? MakeTensorIn(*space, type, shape) : context->ctx.AllocateTemp(type, shape));
    return Writable(std::move(t));
  });
}

bool TF_IsHostMemoryInput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  return GuardedOr<bool>(status, false, [&]() -> StatusOr<bool> {
    MR_CAPI_REQUIRE(ctx);
    if (!IsInput(*ctx, i)) return NoInput();
    return ctx->IsInputOnHost(i);
  });
}
bool TF_IsHostMemoryOutput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  return GuardedOr<bool>(status, false, [&]() -> StatusOr<bool> {
    MR_CAPI_REQUIRE(ctx);
    if (!IsOutput(*ctx, i)) return NoOutput();
    return ctx->IsOutputOnHost(i);
  });
}

int64_t TF_StepId(TF_OpKernelContext* ctx) { return ctx ? ctx->ctx.step().step_id : -1; }
int64_t TF_GetStepId(TF_OpKernelContext* ctx) { return TF_StepId(ctx); }
uint64_t TF_GetFrameId(TF_OpKernelContext* ctx) { return ctx ? ctx->ctx.step().frame : 0; }
int64_t TF_GetIterId(TF_OpKernelContext* ctx) { return ctx ? ctx->ctx.step().iteration : -1; }
int TF_GetDeviceId(TF_OpKernelContext* ctx) { return ctx ? ctx->ctx.device().parsed_name().id : -1; }

TF_StringView TF_GetDeviceName(TF_OpKernelContext* ctx) {
  if (ctx == nullptr) return {nullptr, 0};
  return {ctx->ctx.device().name().data(), ctx->ctx.device().name().size()};
}
TF_StringView TF_GetOpKernelName(TF_OpKernelContext* ctx) {
  if (ctx == nullptr) return {nullptr, 0};
  return {ctx->ctx.node_name().data(), ctx->ctx.node_name().size()};
}
TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext* ctx) {
  static constexpr absl::string_view kDefault = "localhost";
  if (ctx == nullptr) return {nullptr, 0};
  return {kDefault.data(), kDefault.size()};
}

void TF_GetSerializedResourceHandleProto(TF_OpKernelContext* ctx, int i, TF_Buffer* serialized_resource_handle_proto,
                                         TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(serialized_resource_handle_proto);
    if (!IsInput(*ctx, i)) return NoInput();
    const Tensor& t = ctx->ctx.input(i);
    if (t.dtype() != DType::kResource || t.num_elements() != 1) {
      return InvalidArgument("input ", i, " of node '", ctx->ctx.node_name(), "' is not one resource handle");
    }
    MR_ASSIGN_OR_RETURN(const millrace::wire::TensorProto proto, millrace::TensorToProto(t));
    if (proto.resource_handle_val.empty()) return Internal("a handle without a value");
    return millrace::capi::FillWithMessage(
        serialized_resource_handle_proto, proto.resource_handle_val[0], "serialized_resource_handle_proto");
  });
}

void TF_GetSerializedFunctionDefLibrary(TF_OpKernelContext*, TF_Buffer*, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TF_GetSerializedFunctionDefLibrary is not provided"); });
}
void TF_GetSerializedConfigProto(TF_OpKernelContext*, TF_Buffer*, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TF_GetSerializedConfigProto is not provided"); });
}
SP_Stream TF_GetStream(TF_OpKernelContext* ctx, TF_Status* status) {
  return GuardedOr<SP_Stream>(status, nullptr, [&]() -> StatusOr<SP_Stream> {
    millrace::MemorySpace* const space = ctx ? SpaceOf(ctx->ctx.device()) : nullptr;
    if (space == nullptr) return FailedPrecondition("Accessing device stream is not supported for a CPU device.");
    return static_cast<SP_Stream>(space->native_stream());
  });
}
void TF_IncNumDeferredOps(TF_OpKernelContext* context) {
  FailUnimplemented(context, "TF_IncNumDeferredOps is not provided; see TF_NewAsyncKernelBuilder");
}
void TF_DecNumDeferredOps(TF_OpKernelContext* context) {
  FailUnimplemented(context, "TF_DecNumDeferredOps is not provided; see TF_NewAsyncKernelBuilder");
}
TF_RendezvousThunk TF_GetRendezvous(TF_OpKernelContext* ctx) {
  FailUnimplemented(ctx, "TF_GetRendezvous is not provided; use the ops Send and Recv");
  return {};
}
int TF_GetGraphDefVersion(TF_OpKernelContext*) { return -1; }
TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext*, size_t) { return {nullptr, 0}; }

int MR_OpKernelContext_IsCancelled(TF_OpKernelContext* ctx) {
  if (ctx == nullptr) return 0;
  const millrace::CancellationManager* cancellation = ctx->ctx.step().cancellation;
  if (cancellation != nullptr && cancellation->IsCancelled()) return 1;
  millrace::StopScope* scope = ctx->is_async ? nullptr : millrace::CurrentStopScope();
  return scope != nullptr && scope->Ask() ? 1 : 0;
}

void MR_OpKernelContext_OnCancel(TF_OpKernelContext* ctx, void (*callback)(void* data), void* data, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(callback);
    if (!ctx->is_async) {
      return FailedPrecondition("the kernel of node '", ctx->ctx.node_name(), "' is not asynchronous");
    }
    if (ctx->hook) return FailedPrecondition("node '", ctx->ctx.node_name(), "' has a callback already");
    millrace::CancellationManager* cancellation = ctx->ctx.step().cancellation;
    if (cancellation == nullptr) return absl::OkStatus();  // nothing cancels this step
    auto hook = std::make_shared<millrace::capi::CancelHook>(callback, data);
    ctx->hook = hook;
    const auto token = cancellation->Register([hook] { hook->Run(); });
    if (token != millrace::CancellationManager::kInvalid) {
      hook->SetToken(token);  // the context may be gone: the callback may have run, and `done` with it
      return absl::OkStatus();
    }
    ctx->hook = nullptr;
    return cancellation->reason();
  });
}

void MR_OpKernelContext_ParallelFor(TF_OpKernelContext* ctx, int64_t n, double cost_per_unit,
                                    void (*fn)(void* data, int64_t begin, int64_t end), void* data, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(fn);
    if (n < 0 || !(cost_per_unit >= 0)) {
      return InvalidArgument("ParallelFor over ", n, " indices of ", cost_per_unit, " ns");
    }
    ParallelWork work{fn, data, {}};
    try {
      ctx->ctx.ParallelFor(n, cost_per_unit, [&work](int64_t begin, int64_t end) {
        const Status s = millrace::capi::CallForeign([&] { work.fn(work.data, begin, end); });
        if (!s.ok()) work.failure.Update(s);
      });
    } catch (const millrace::WorkStopped&) {
      ctx->stopped = true;
      ctx->failure.Update(millrace::Cancelled("the step was stopped"));
      return millrace::Cancelled("the step was stopped");
    }
    return work.failure.Get();
  });
}

}  // extern "C"
