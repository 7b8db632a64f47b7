// SPDX-License-Identifier: Apache-2.0
#include "capi/eager.h"
#include "op/device_name.h"
#include "system/system.h"

using millrace::Node;
using millrace::Status;
using millrace::StatusOr;
using millrace::Unimplemented;
using millrace::capi::EagerStep;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;
using millrace::capi::Try;

namespace {

void AppendSized(std::string* key, absl::string_view part) { absl::StrAppend(key, part.size(), ":", part, ";"); }

// All that decides which node an op becomes.
StatusOr<std::string> SignatureOf(const TFE_Op& op) {
  std::string key;
  const millrace::NodeSpec& spec = op.desc.spec;
  AppendSized(&key, spec.op);
  AppendSized(&key, spec.device);
  for (const TFE_TensorHandle& input : op.inputs) absl::StrAppend(&key, static_cast<int>(input.tensor.dtype()), ",");
  if (op.desc.has_list) {
    for (int size : op.desc.arg_sizes) absl::StrAppend(&key, "/", size);
  }
  for (const auto& [name, value] : spec.attrs) {
    MR_ASSIGN_OR_RETURN(const millrace::wire::AttrValue message, millrace::AttrToProto(value));
    AppendSized(&key, name);
    AppendSized(&key, millrace::wire::Encode(message));
  }
  return key;
}

StatusOr<std::vector<millrace::Output>> AddPlaceholders(millrace::Graph& graph, const TFE_Op& op) {
  std::vector<millrace::Output> made;
  for (const TFE_TensorHandle& input : op.inputs) {
    millrace::NodeSpec spec;
    spec.op = "Placeholder";
    spec.name = graph.UniqueName("input");
    spec.attrs.emplace("dtype", input.tensor.dtype());
    MR_ASSIGN_OR_RETURN(Node * node, graph.AddNode(std::move(spec)));
    made.push_back(node->output(0));
  }
  return made;
}

}  // namespace

StatusOr<std::string> TFE_Context::FindDevice(absl::string_view device) const {
  if (device.empty()) return devices[0];
  MR_ASSIGN_OR_RETURN(const millrace::DeviceName wanted, millrace::DeviceName::Parse(device));
  for (const std::string& name : devices) {
    const StatusOr<millrace::DeviceName> full = millrace::DeviceName::Parse(name);
    if (full.ok() && wanted.Matches(*full)) return name;
  }
  return millrace::InvalidArgument(device, " unknown device.");
}

StatusOr<std::unique_ptr<const EagerStep>> TFE_Context::MakeStep(const TFE_Op& op) {
  auto step = std::make_unique<EagerStep>();
  MR_ASSIGN_OR_RETURN(step->device, FindDevice(op.desc.spec.device));
  millrace::GraphLock lock(&shared->mu);
  millrace::Graph& graph = shared->graph;
  const int mark = graph.num_node_ids();
  const auto make = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(shared->mu) -> Status {
    MR_ASSIGN_OR_RETURN(const std::vector<millrace::Output> inputs, AddPlaceholders(graph, op));
    millrace::NodeSpec spec = op.desc.spec;
    spec.name = graph.UniqueName(spec.op);
    spec.inputs = inputs;
    if (op.desc.has_list) spec.input_arg_sizes = op.desc.arg_sizes;
    MR_ASSIGN_OR_RETURN(Node * node, graph.AddNode(std::move(spec)));
    // Of an output that is a reference the step fetches the value.
    for (int i = 0; i < node->num_outputs(); ++i) step->fetches.push_back(node->output(i));
    for (int i = 0; i < node->num_inputs(); ++i) {
      if (millrace::IsRef(node->input_type(i))) {
        return Unimplemented("op ", node->op_name(), " takes a reference to a variable: it runs in graphs only");
      }
    }
    step->feeds.assign(inputs.begin(), inputs.end());
    if (step->fetches.empty()) step->targets.push_back(node);
    return absl::OkStatus();
  };
  Status status = make();
  if (!status.ok()) {
    graph.RollbackTo(mark);
    return status;
  }
  return step;
}

StatusOr<const EagerStep*> TFE_Context::FindStep(const TFE_Op& op) {
  MR_ASSIGN_OR_RETURN(const std::string key, SignatureOf(op));
  const absl::MutexLock lock(&mu);
  std::unique_ptr<const EagerStep>& entry = steps[key];
  if (!entry) {
    auto made = MakeStep(op);
    if (!made.ok()) {
      steps.erase(key);
      return made.status();
    }
    entry = *std::move(made);
  }
  return entry.get();
}

extern "C" {

TFE_ContextOptions* TFE_NewContextOptions(void) { return new (std::nothrow) TFE_ContextOptions(); }
void TFE_DeleteContextOptions(TFE_ContextOptions* options) { delete options; }

void TFE_ContextOptionsSetConfig(TFE_ContextOptions* options, const void* proto, size_t proto_len, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(options);
    millrace::wire::ConfigProto config;
    MR_RETURN_IF_ERROR(millrace::capi::DecodeBytes(proto, proto_len, "ConfigProto", &config));
    options->config = std::move(config);
    return absl::OkStatus();
  });
}

void TFE_ContextOptionsSetAsync(TFE_ContextOptions*, unsigned char) {}

void TFE_ContextOptionsSetDevicePlacementPolicy(TFE_ContextOptions* options, TFE_ContextDevicePlacementPolicy policy) {
  if (options != nullptr) options->policy = policy;
}

TFE_Context* TFE_NewContext(const TFE_ContextOptions* opts, TF_Status* status) {
  return GuardedOr<TFE_Context*>(status, nullptr, [&]() -> StatusOr<TFE_Context*> {
    MR_CAPI_REQUIRE(opts);
    auto context = std::make_unique<TFE_Context>();
    context->shared = millrace::MakeRef<millrace::SharedGraph>(&millrace::System::Default().ops());
    context->policy = opts->policy;
    MR_ASSIGN_OR_RETURN(context->session, millrace::System::Default().NewSession(context->shared, opts->config));
    MR_ASSIGN_OR_RETURN(std::vector<millrace::DeviceInfo> devices, context->session->ListDevices());
    for (millrace::DeviceInfo& device : devices) context->devices.push_back(std::move(device.name));
    if (context->devices.empty()) return millrace::Internal("the context has no devices");
    return context.release();
  });
}

void TFE_DeleteContext(TFE_Context* ctx) { delete ctx; }

TF_DeviceList* TFE_ContextListDevices(TFE_Context* ctx, TF_Status* status) {
  return GuardedOr<TF_DeviceList*>(status, nullptr, [&]() -> StatusOr<TF_DeviceList*> {
    MR_CAPI_REQUIRE(ctx);
    return millrace::capi::MakeDeviceList(*ctx->session);
  });
}

void TFE_ContextClearCaches(TFE_Context*) {}

void TFE_ContextSetThreadLocalDevicePlacementPolicy(TFE_Context* ctx, TFE_ContextDevicePlacementPolicy policy) {
  if (ctx == nullptr) return;
  const absl::MutexLock lock(&ctx->mu);
  ctx->policy = policy;
}

TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(TFE_Context* ctx) {
  if (ctx == nullptr) return TFE_DEVICE_PLACEMENT_SILENT;
  const absl::MutexLock lock(&ctx->mu);
  return ctx->policy;
}

void TFE_ContextSetServerDef(TFE_Context*, int, const void*, size_t, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TFE_ContextSetServerDef: this build has no servers"); });
}

void TFE_ContextAddFunctionDef(TFE_Context* ctx, const char* serialized_function_def, size_t size, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    millrace::wire::FunctionDef def;
    MR_RETURN_IF_ERROR(millrace::capi::DecodeBytes(serialized_function_def, size, "FunctionDef", &def));
    millrace::GraphLock lock(&ctx->shared->mu);
    return ctx->shared->graph.AddFunction(std::move(def));
  });
}

void TFE_ContextAddFunction(TFE_Context* ctx, TF_Function* function, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(function);
    millrace::GraphLock lock(&ctx->shared->mu);
    return ctx->shared->graph.AddFunction(function->def);
  });
}

void TFE_ContextRemoveFunction(TFE_Context*, const char*, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TFE_ContextRemoveFunction: a context keeps its functions"); });
}

unsigned char TFE_ContextHasFunction(TFE_Context* ctx, const char* name) {
  if (ctx == nullptr || name == nullptr) return 0;
  return Try<unsigned char>(0, [&]() -> unsigned char {
    millrace::GraphReaderLock lock(&ctx->shared->mu);
    return ctx->shared->graph.FindFunction(name) != nullptr ? 1 : 0;
  });
}

void TFE_ContextEnableRunMetadata(TFE_Context*) {}
void TFE_ContextDisableRunMetadata(TFE_Context*) {}
void TFE_ContextExportRunMetadata(TFE_Context*, TF_Buffer*, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TFE_ContextExportRunMetadata: ops that run at once are not traced"); });
}
void TFE_ContextStartStep(TFE_Context*) {}
void TFE_ContextEndStep(TFE_Context*) {}

}  // extern "C"
