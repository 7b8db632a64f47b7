// SPDX-License-Identifier: Apache-2.0
// TF_KernelBuilder.
#include <cstring>

#include "capi/internal.h"
#include "capi/plugin/plugin_kernel.h"
#include "capi/plugin/registration.h"

using millrace::DType;
using millrace::InvalidArgument;
using millrace::Status;
using millrace::capi::Guarded;
using millrace::capi::PluginKernelFunctions;

struct TF_KernelBuilder {
  millrace::KernelSpec spec;
  PluginKernelFunctions functions;
  Status error;  // the first thing that was wrong
};

namespace {

TF_KernelBuilder* NewBuilder(const char* op_name, const char* device_name, PluginKernelFunctions functions) {
  return millrace::capi::Try<TF_KernelBuilder*>(nullptr, [&] {
    auto builder = std::make_unique<TF_KernelBuilder>();
    if (op_name == nullptr || *op_name == '\0') builder->error.Update(InvalidArgument("a kernel names no op"));
    if (device_name == nullptr || *device_name == '\0') {
      builder->error.Update(InvalidArgument("a kernel of op ", op_name ? op_name : "", " names no type of device"));
    }
    if (functions.compute == nullptr && functions.compute_async == nullptr) {
      builder->error.Update(InvalidArgument("a kernel of op ", op_name ? op_name : "", " has no compute function"));
    }
    builder->spec.op = op_name ? op_name : "";
    builder->spec.device = device_name ? device_name : "";
    builder->spec.cost = nullptr;  // as of the kernel of the CPU
    builder->functions = std::move(functions);
    return builder.release();
  });
}

// What an encoded KernelDef says in place of the builder.
Status ReadKernelDef(const char* encoded, TF_KernelBuilder* builder) {
  millrace::wire::KernelDef def;
  MR_RETURN_IF_ERROR(millrace::capi::DecodeBytes(encoded, std::strlen(encoded), "KernelDef", &def));
  millrace::KernelSpec spec{
      .op = def.op, .device = def.device_type, .types = {}, .label = def.label, .priority = def.priority};
  if (spec.op.empty() || spec.device.empty()) return InvalidArgument("a KernelDef names no op or no type of device");
  for (const auto& constraint : def.constraint) {
    std::vector<DType> types;
    if (constraint.allowed_values) {
      MR_ASSIGN_OR_RETURN(const millrace::AttrValue allowed, millrace::AttrFromProto(*constraint.allowed_values));
      if (const auto* list = allowed.get<std::vector<DType>>()) types = *list;
    }
    if (types.empty()) {
      return InvalidArgument(
          "the KernelDef of op ", def.op, " has a constraint on '", constraint.name, "' that is no list of types");
    }
    spec.types.emplace_back(constraint.name, std::move(types));
  }
  builder->spec = std::move(spec);
  builder->functions.host_memory = def.host_memory_arg;
  return absl::OkStatus();
}

}  // namespace

extern "C" {

TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_func)(void*, TF_OpKernelContext*), void (*delete_func)(void*)) {
  return NewBuilder(op_name, device_name, {"", create_func, compute_func, nullptr, delete_func, {}});
}

TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback* done),
    void (*delete_func)(void*)) {
  return NewBuilder(op_name, device_name, {"", create_func, nullptr, compute_async_func, delete_func, {}});
}

void TF_DeleteKernelBuilder(TF_KernelBuilder* builder) { delete builder; }

void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* kernel_builder, const char* attr_name, const TF_DataType type,
                                     TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(kernel_builder);
    MR_CAPI_REQUIRE(attr_name);
    const auto dtype = millrace::DTypeFromNumber(static_cast<int32_t>(type));
    if (!dtype) return millrace::Unimplemented("Unexpected type ", static_cast<int>(type));
    kernel_builder->spec.types.emplace_back(attr_name, std::vector<DType>{*dtype});
    return absl::OkStatus();
  });
}

void TF_KernelBuilder_HostMemory(TF_KernelBuilder* kernel_builder, const char* arg_name) {
  if (kernel_builder == nullptr || arg_name == nullptr) return;
  millrace::capi::Try(0, [&] { return kernel_builder->functions.host_memory.emplace_back(arg_name), 0; });
}

void TF_KernelBuilder_Priority(TF_KernelBuilder* kernel_builder, int32_t priority_number) {
  if (kernel_builder != nullptr) kernel_builder->spec.priority = priority_number;
}

void TF_KernelBuilder_Label(TF_KernelBuilder* kernel_builder, const char* label) {
  if (kernel_builder == nullptr || label == nullptr) return;
  millrace::capi::Try(0, [&] { return kernel_builder->spec.label = label, 0; });
}

void TF_RegisterKernelBuilder(const char* kernel_name, TF_KernelBuilder* builder, TF_Status* status) {
  TF_RegisterKernelBuilderWithKernelDef(nullptr, kernel_name, builder, status);
}

void TF_RegisterKernelBuilderWithKernelDef(const char* serialized_kernel_def, const char* name,
                                           TF_KernelBuilder* builder, TF_Status* status) {
  const std::unique_ptr<TF_KernelBuilder> owned(builder);
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(builder);
    builder->functions.name = name ? name : builder->spec.op;
    const std::string prefix = absl::StrCat("kernel '", builder->functions.name, "': ");
    MR_RETURN_IF_ERROR(millrace::Annotate(builder->error, prefix));
    if (serialized_kernel_def != nullptr) {
      MR_RETURN_IF_ERROR(millrace::Annotate(ReadKernelDef(serialized_kernel_def, builder), prefix));
    }
    auto functions = std::make_shared<const PluginKernelFunctions>(std::move(builder->functions));
    return millrace::Annotate(
        millrace::capi::RegisterKernel(
            {std::move(builder->spec), millrace::capi::MakePluginKernelFactory(functions), functions->host_memory}),
        prefix);
  });
}

}  // extern "C"
