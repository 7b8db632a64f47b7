// SPDX-License-Identifier: Apache-2.0
// Sessions that own their graph and speak of tensors by name, as in TensorFlow 0.x.
#include "capi/internal.h"
#include "graph/extend_graph.h"
#include "system/system.h"

using millrace::Graph;
using millrace::Node;
using millrace::Output;
using millrace::SharedGraph;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::CheckArray;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;
using millrace::capi::StepArguments;

struct TF_DeprecatedSession {
  bool has_graph = false;
  millrace::RefPtr<SharedGraph> shared;
  std::unique_ptr<millrace::Session> session;
};

namespace {

// find(name) -> StatusOr<item>
template <typename List, typename Find>
Status LookUp(const char* const* names, int count, const char* what, List* list, Find&& find) {
  MR_RETURN_IF_ERROR(CheckArray(names, count, what));
  for (int i = 0; i < count; ++i) {
    if (names[i] == nullptr) return millrace::capi::NullArgument(what);
    MR_ASSIGN_OR_RETURN(auto item, find(names[i]));
    list->push_back(item);
  }
  return absl::OkStatus();
}

Status FindAll(const Graph& graph, const char** input_names, int ninputs, const char** output_names, int noutputs,
               const char** target_names, int ntargets, StepArguments* step) {
  const auto find_output = [&](const char* name) { return millrace::capi::FindOutput(graph, name); };
  MR_RETURN_IF_ERROR(LookUp(input_names, ninputs, "input_names", &step->feeds, find_output));
  MR_RETURN_IF_ERROR(LookUp(output_names, noutputs, "output_names", &step->fetches, find_output));
  return LookUp(target_names, ntargets, "target_oper_names", &step->targets, [&](const char* name) {
    return millrace::capi::FindNode(graph, name);
  });
}

Status CollectNames(TF_DeprecatedSession& session, const char** input_names, int ninputs, const char** output_names,
                    int noutputs, const char** target_names, int ntargets, StepArguments* step) {
  millrace::GraphReaderLock lock(&session.shared->mu);
  if (!session.has_graph) return millrace::InvalidArgument("Session was not created with a graph before Run()!");
  return FindAll(session.shared->graph, input_names, ninputs, output_names, noutputs, target_names, ntargets, step);
}

void ClearTensors(TF_Tensor** values, int count) {
  for (int i = 0; values != nullptr && i < count; ++i) values[i] = nullptr;
}

}  // namespace

extern "C" {

TF_DeprecatedSession* TF_NewDeprecatedSession(const TF_SessionOptions* options, TF_Status* status) {
  return GuardedOr<TF_DeprecatedSession*>(status, nullptr, [&]() -> StatusOr<TF_DeprecatedSession*> {
    static const TF_SessionOptions& defaults = *new TF_SessionOptions();
    const TF_SessionOptions& opts = options ? *options : defaults;
    auto made = std::make_unique<TF_DeprecatedSession>();
    made->shared = millrace::MakeRef<SharedGraph>(&millrace::System::Default().ops());
    MR_ASSIGN_OR_RETURN(made->session, millrace::System::Default().NewSession(made->shared, opts.config, opts.target));
    return made.release();
  });
}

void TF_CloseDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    return session->session->Close();
  });
}

void TF_DeleteDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    delete session;
    return absl::OkStatus();
  });
}

void TF_Reset(const TF_SessionOptions* opt, const char** containers, int ncontainers, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    std::vector<std::string> names;
    MR_RETURN_IF_ERROR(LookUp(containers, ncontainers, "containers", &names,
                              [](const char* name) -> StatusOr<std::string> { return std::string(name); }));
    static const TF_SessionOptions& defaults = *new TF_SessionOptions();
    const TF_SessionOptions& options = opt ? *opt : defaults;
    return millrace::System::Default().Reset(names, options.config, options.target);
  });
}

void TF_ExtendGraph(TF_DeprecatedSession* session, const void* proto, size_t proto_len, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    millrace::wire::GraphDef def;
    MR_RETURN_IF_ERROR(millrace::capi::DecodeBytes(proto, proto_len, "GraphDef", &def));
    millrace::GraphLock lock(&session->shared->mu);
    MR_RETURN_IF_ERROR(millrace::ExtendGraph(def, &session->shared->graph));
    session->has_graph = true;
    return absl::OkStatus();
  });
}

void TF_Run(TF_DeprecatedSession* session, const TF_Buffer* run_options, const char** input_names, TF_Tensor** inputs,
            int ninputs, const char** output_names, TF_Tensor** outputs, int noutputs, const char** target_oper_names,
            int ntargets, TF_Buffer* run_metadata, TF_Status* status) {
  ClearTensors(outputs, noutputs);
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    if (noutputs > 0) MR_CAPI_REQUIRE(outputs);
    StepArguments step;
    MR_RETURN_IF_ERROR(
        CollectNames(*session, input_names, ninputs, output_names, noutputs, target_oper_names, ntargets, &step));
    MR_RETURN_IF_ERROR(step.AddFeedValues(inputs, ninputs));
    return millrace::capi::RunStep(*session->session, run_options, step, outputs, run_metadata);
  });
}

void TF_PRunSetup(TF_DeprecatedSession* session, const char** input_names, int ninputs, const char** output_names,
                  int noutputs, const char** target_oper_names, int ntargets, const char** handle, TF_Status* status) {
  if (handle) *handle = nullptr;
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    MR_CAPI_REQUIRE(handle);
    StepArguments step;
    MR_RETURN_IF_ERROR(
        CollectNames(*session, input_names, ninputs, output_names, noutputs, target_oper_names, ntargets, &step));
    return millrace::capi::StartPartialStep(*session->session, step, handle);
  });
}

void TF_PRun(TF_DeprecatedSession* session, const char* handle, const char** input_names, TF_Tensor** inputs,
             int ninputs, const char** output_names, TF_Tensor** outputs, int noutputs, const char** target_oper_names,
             int ntargets, TF_Status* status) {
  ClearTensors(outputs, noutputs);
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(session);
    if (noutputs > 0) MR_CAPI_REQUIRE(outputs);
    StepArguments step;
    MR_RETURN_IF_ERROR(
        CollectNames(*session, input_names, ninputs, output_names, noutputs, target_oper_names, ntargets, &step));
    MR_RETURN_IF_ERROR(step.AddFeedValues(inputs, ninputs));
    return millrace::capi::RunPartialStep(*session->session, handle, step, outputs);
  });
}

TF_DeviceList* TF_DeprecatedSessionListDevices(TF_DeprecatedSession* session, TF_Status* status) {
  return GuardedOr<TF_DeviceList*>(status, nullptr, [&]() -> StatusOr<TF_DeviceList*> {
    MR_CAPI_REQUIRE(session);
    return millrace::capi::MakeDeviceList(*session->session);
  });
}

}  // extern "C"
