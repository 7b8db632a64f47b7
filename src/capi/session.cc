// SPDX-License-Identifier: Apache-2.0
// Sessions and steps. TF_SessionRun is the hot path: it copies small structs into arrays on the stack and shares
// buffers.
#include <cstring>

#include "capi/internal.h"
#include "system/system.h"

struct TF_DeviceList {
  std::vector<millrace::DeviceInfo> devices;
};

namespace millrace::capi {
namespace {

void ClearOutputs(TF_Tensor** values, int count) {
  if (values == nullptr) return;
  for (int i = 0; i < count; ++i) values[i] = nullptr;
}

template <size_t N>
Status AddOutputs(const TF_Output* outputs, int count, const char* what, absl::InlinedVector<Output, N>* list) {
  if (count <= 0 || outputs == nullptr) return CheckArray(outputs, count, what);
  list->reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    if (!IsOutput(outputs[i])) {
      const Status status = NoSuchOutput(outputs[i], what, i);
      // TensorFlow's code for a step; where nodes are made it is InvalidArgument.
      const bool known = outputs[i].oper != nullptr && AsNode(outputs[i].oper)->op();
      return known ? OutOfRange(status.message()) : status;
    }
    list->push_back(AsOutput(outputs[i]));
  }
  return absl::OkStatus();
}

Status AddTargets(const TF_Operation* const* opers, int count, absl::InlinedVector<Node*, 8>* list) {
  if (count <= 0 || opers == nullptr) return CheckArray(opers, count, "target_opers");
  list->reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    if (opers[i] == nullptr) return InvalidArgument("target ", i, " is NULL");
    list->push_back(AsNode(opers[i]));
  }
  return absl::OkStatus();
}

Status Collect(const TF_Output* inputs, int ninputs, const TF_Output* outputs, int noutputs,
               const TF_Operation* const* target_opers, int ntargets, StepArguments* step) {
  MR_RETURN_IF_ERROR(AddOutputs(inputs, ninputs, "input", &step->feeds));
  MR_RETURN_IF_ERROR(AddOutputs(outputs, noutputs, "output", &step->fetches));
  return AddTargets(target_opers, ntargets, &step->targets);
}

// Runs with the rare extras: options and metadata.
Status RunWithOptions(Session& session, const TF_Buffer* run_options, const StepArguments& step,
                      std::vector<Tensor>* fetched, TF_Buffer* run_metadata) {
  wire::RunOptions options;
  if (run_options != nullptr) {
    MR_RETURN_IF_ERROR(DecodeBytes(run_options->data, run_options->length, "RunOptions", &options));
  }
  if (run_metadata != nullptr && run_metadata->data != nullptr) {
    return InvalidArgument("run_metadata must be an empty buffer");
  }
  wire::RunMetadata metadata;
  const Status s = session.Run(run_options ? &options : nullptr, step.feeds, step.values, step.fetches, step.targets,
                               fetched, run_metadata ? &metadata : nullptr);
  if (run_metadata != nullptr) MR_RETURN_IF_ERROR(FillWithMessage(run_metadata, metadata, "run_metadata"));
  return s;
}

}  // namespace

Status StepArguments::AddFeedValues(TF_Tensor* const* tensors, int count) {
  if (count <= 0 || tensors == nullptr) return CheckArray(tensors, count, "input values");
  values.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    if (tensors[i] == nullptr) return InvalidArgument("the value of input ", i, " is NULL");
    const DType dtype = tensors[i]->tensor.dtype();
    if (dtype != DType::kBool && dtype != DType::kString && dtype != DType::kInvalid) {
      values.push_back(tensors[i]->tensor);
      continue;
    }
    MR_ASSIGN_OR_RETURN(Tensor value, FeedValue(tensors[i]));
    values.push_back(std::move(value));
  }
  return absl::OkStatus();
}

Status RunStep(Session& session, const TF_Buffer* run_options, const StepArguments& step, TF_Tensor** outputs,
               TF_Buffer* run_metadata) {
  std::vector<Tensor> fetched;
  if (run_options == nullptr && run_metadata == nullptr) {
    MR_RETURN_IF_ERROR(session.Run(nullptr, step.feeds, step.values, step.fetches, step.targets, &fetched, nullptr));
  } else {
    MR_RETURN_IF_ERROR(RunWithOptions(session, run_options, step, &fetched, run_metadata));
  }
  return ReturnTensors(fetched, outputs, static_cast<int>(step.fetches.size()));
}

Status RunPartialStep(Session& session, const char* handle, const StepArguments& step, TF_Tensor** outputs) {
  MR_CAPI_REQUIRE(handle);
  std::vector<Tensor> fetched;
  MR_RETURN_IF_ERROR(session.PartialRun(handle, step.feeds, step.values, step.fetches, &fetched));
  return ReturnTensors(fetched, outputs, static_cast<int>(step.fetches.size()));
}

Status StartPartialStep(Session& session, const StepArguments& step, const char** handle) {
  MR_ASSIGN_OR_RETURN(const std::string made, session.PartialRunSetup(step.feeds, step.fetches, step.targets));
  char* copy = new char[made.size() + 1];
  std::memcpy(copy, made.c_str(), made.size() + 1);
  *handle = copy;
  return absl::OkStatus();
}

StatusOr<Node*> FindNode(const Graph& graph, absl::string_view name) {
  Node* node = graph.Find(name);
  if (node == nullptr) return NotFound("there is no operation '", name, "' in the graph");
  return node;
}

StatusOr<Output> FindOutput(const Graph& graph, absl::string_view name) {
  MR_ASSIGN_OR_RETURN(const TensorName parsed, ParseTensorName(name));
  MR_ASSIGN_OR_RETURN(Node * node, FindNode(graph, parsed.node));
  if (parsed.port < 0 || parsed.port >= node->num_outputs()) {
    return InvalidArgument("'", name, "' names no output: operation '", node->name(), "' has ", node->num_outputs());
  }
  return Output{node, parsed.port};
}

StatusOr<TF_DeviceList*> MakeDeviceList(Session& session) {
  MR_ASSIGN_OR_RETURN(std::vector<DeviceInfo> devices, session.ListDevices());
  return new TF_DeviceList{std::move(devices)};
}

namespace {

StatusOr<const DeviceInfo*> DeviceAt(const TF_DeviceList* list, int index) {
  MR_CAPI_REQUIRE(list);
  if (index < 0 || static_cast<size_t>(index) >= list->devices.size()) {
    return InvalidArgument("there is no device ", index, " in a list of ", list->devices.size());
  }
  return &list->devices[static_cast<size_t>(index)];
}

}  // namespace
}  // namespace millrace::capi

using millrace::InvalidArgument;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;
using millrace::capi::StepArguments;

extern "C" {

TF_SessionOptions* TF_NewSessionOptions(void) {
  return millrace::capi::Try<TF_SessionOptions*>(nullptr, [] { return new TF_SessionOptions(); });
}
void TF_DeleteSessionOptions(TF_SessionOptions* options) { delete options; }

void TF_SetTarget(TF_SessionOptions* options, const char* target) {
  if (options == nullptr) return;
  millrace::capi::Try(0, [&] { return options->target = target ? target : "", 0; });
}

void TF_SetConfig(TF_SessionOptions* options, const void* proto, size_t proto_len, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(options);
    millrace::wire::ConfigProto config;
    MR_RETURN_IF_ERROR(millrace::capi::DecodeBytes(proto, proto_len, "ConfigProto", &config));
    options->config = std::move(config);
    return absl::OkStatus();
  });
}

void MR_SetDeterministic(TF_SessionOptions* options, uint64_t order_seed) {
  if (options != nullptr) options->determinism = {true, order_seed};
}

TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions* opts, TF_Status* status) {
  return GuardedOr<TF_Session*>(status, nullptr, [&]() -> StatusOr<TF_Session*> {
    MR_CAPI_REQUIRE(graph);
    if (graph->shared->is_view()) return millrace::FailedPrecondition("the graph of a gradient function cannot be run");
    static const TF_SessionOptions& defaults = *new TF_SessionOptions();
    const TF_SessionOptions& options = opts ? *opts : defaults;
    MR_ASSIGN_OR_RETURN(
        std::unique_ptr<millrace::Session> session,
        millrace::System::Default().NewSession(graph->shared, options.config, options.target, options.determinism));
    return new TF_Session{graph->shared, std::move(session)};
  });
}

void TF_CloseSession(TF_Session* session, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    return session->session->Close();
  });
}

void TF_DeleteSession(TF_Session* session, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    delete session;
    return absl::OkStatus();
  });
}

void TF_ExtendSession(TF_Session* session, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    return absl::OkStatus();
  });
}

void TF_SessionRun(TF_Session* session, const TF_Buffer* run_options, const TF_Output* inputs,
                   TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs, TF_Tensor** output_values,
                   int noutputs, const TF_Operation* const* target_opers, int ntargets, TF_Buffer* run_metadata,
                   TF_Status* status) {
  millrace::capi::ClearOutputs(output_values, noutputs);
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    if (noutputs > 0) MR_CAPI_REQUIRE(output_values);
    StepArguments step;
    MR_RETURN_IF_ERROR(millrace::capi::Collect(inputs, ninputs, outputs, noutputs, target_opers, ntargets, &step));
    MR_RETURN_IF_ERROR(step.AddFeedValues(input_values, ninputs));
    return millrace::capi::RunStep(*session->session, run_options, step, output_values, run_metadata);
  });
}

void TF_SessionPRunSetup(TF_Session* session, const TF_Output* inputs, int ninputs, const TF_Output* outputs,
                         int noutputs, const TF_Operation* const* target_opers, int ntargets, const char** handle,
                         TF_Status* status) {
  if (handle) *handle = nullptr;
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    MR_CAPI_REQUIRE(handle);
    StepArguments step;
    MR_RETURN_IF_ERROR(millrace::capi::Collect(inputs, ninputs, outputs, noutputs, target_opers, ntargets, &step));
    return millrace::capi::StartPartialStep(*session->session, step, handle);
  });
}

void TF_SessionPRun(TF_Session* session, const char* handle, const TF_Output* inputs, TF_Tensor* const* input_values,
                    int ninputs, const TF_Output* outputs, TF_Tensor** output_values, int noutputs,
                    const TF_Operation* const* target_opers, int ntargets, TF_Status* status) {
  millrace::capi::ClearOutputs(output_values, noutputs);
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    if (noutputs > 0) MR_CAPI_REQUIRE(output_values);
    StepArguments step;
    MR_RETURN_IF_ERROR(millrace::capi::Collect(inputs, ninputs, outputs, noutputs, target_opers, ntargets, &step));
    MR_RETURN_IF_ERROR(step.AddFeedValues(input_values, ninputs));
    return millrace::capi::RunPartialStep(*session->session, handle, step, output_values);
  });
}

void TF_DeletePRunHandle(const char* handle) { delete[] handle; }

void MR_ReleasePartialRun(TF_Session* session, const char* handle, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    MR_CAPI_REQUIRE(handle);
    return session->session->ReleasePartialRun(handle);
  });
}

TF_DeviceList* TF_SessionListDevices(TF_Session* session, TF_Status* status) {
  return GuardedOr<TF_DeviceList*>(status, nullptr, [&]() -> StatusOr<TF_DeviceList*> {
    MR_CAPI_REQUIRE(session);
    return millrace::capi::MakeDeviceList(*session->session);
  });
}

void MR_SessionRandomState(TF_Session* session, TF_Buffer* state, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    MR_CAPI_REQUIRE(state);
    MR_ASSIGN_OR_RETURN(const std::string text, session->session->RandomState());
    return millrace::capi::FillBuffer(state, text, "state");
  });
}

void MR_SetSessionRandomState(TF_Session* session, const void* state, size_t state_len, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    MR_CAPI_REQUIRE(state);
    return session->session->SetRandomState(absl::string_view(static_cast<const char*>(state), state_len));
  });
}

void MR_SessionExplain(TF_Session* session, const TF_Output* inputs, int ninputs, const TF_Output* outputs,
                       int noutputs, const TF_Operation* const* target_opers, int ntargets, TF_Buffer* text,
                       TF_Status* status) {
  MR_SessionExplainBoth(session, inputs, ninputs, outputs, noutputs, target_opers, ntargets, text, nullptr, status);
}

void MR_SessionExplainBoth(TF_Session* session, const TF_Output* inputs, int ninputs, const TF_Output* outputs,
                           int noutputs, const TF_Operation* const* target_opers, int ntargets, TF_Buffer* text,
                           TF_Buffer* json, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    MR_CAPI_REQUIRE(text);
    StepArguments step;
    MR_RETURN_IF_ERROR(millrace::capi::Collect(inputs, ninputs, outputs, noutputs, target_opers, ntargets, &step));
    MR_ASSIGN_OR_RETURN(
        const millrace::Explanation told, session->session->Explain(step.feeds, step.fetches, step.targets));
    if (json != nullptr) MR_RETURN_IF_ERROR(millrace::capi::FillBuffer(json, told.json, "json"));
    return millrace::capi::FillBuffer(text, told.text, "text");
  });
}

void TF_DeleteDeviceList(TF_DeviceList* list) { delete list; }
int TF_DeviceListCount(const TF_DeviceList* list) { return list ? static_cast<int>(list->devices.size()) : -1; }

const char* TF_DeviceListName(const TF_DeviceList* list, int index, TF_Status* status) {
  return GuardedOr<const char*>(status, nullptr, [&]() -> StatusOr<const char*> {
    MR_ASSIGN_OR_RETURN(const millrace::DeviceInfo* device, millrace::capi::DeviceAt(list, index));
    return device->name.c_str();
  });
}
const char* TF_DeviceListType(const TF_DeviceList* list, int index, TF_Status* status) {
  return GuardedOr<const char*>(status, nullptr, [&]() -> StatusOr<const char*> {
    MR_ASSIGN_OR_RETURN(const millrace::DeviceInfo* device, millrace::capi::DeviceAt(list, index));
    return device->type.c_str();
  });
}
int64_t TF_DeviceListMemoryBytes(const TF_DeviceList* list, int index, TF_Status* status) {
  return GuardedOr<int64_t>(status, -1, [&]() -> StatusOr<int64_t> {
    MR_ASSIGN_OR_RETURN(const millrace::DeviceInfo* device, millrace::capi::DeviceAt(list, index));
    return device->memory_bytes;
  });
}
uint64_t TF_DeviceListIncarnation(const TF_DeviceList* list, int index, TF_Status* status) {
  return GuardedOr<uint64_t>(status, 0, [&]() -> StatusOr<uint64_t> {
    MR_ASSIGN_OR_RETURN(const millrace::DeviceInfo* device, millrace::capi::DeviceAt(list, index));
    return device->incarnation;
  });
}

}  // extern "C"
