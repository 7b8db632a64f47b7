// SPDX-License-Identifier: Apache-2.0
// What stands behind the opaque types of the C API, and how its functions report. A TF_Operation is a Node: the pointer
// is the same, the type is never defined.
#pragma once

#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/exceptions.h"
#include "capi/encoded_strings.h"
#include "client/session.h"
#include "graph/graph_def.h"
#include "graph/shared_graph.h"
#include "millrace/c_api.h"
#include "wire/config.h"

struct TF_Status {
  TF_Code code = TF_OK;
  std::string message;
  std::vector<std::pair<std::string, std::string>> payloads;
};

// Whoever asks for a tensor's strings gets them in the form of the library that it is linked to (entry_points.h),
// whichever made the tensor. FeedValue() is what it holds.
struct TF_Tensor {
  millrace::Tensor tensor;  // while `encoded` is the source: nothing, or what was made of it for a reader
  millrace::RefPtr<millrace::capi::EncodedStrings> encoded = nullptr;
  bool strings_by_client = false;  // TString written by a program into its own memory or ours: to be checked
};

struct TF_Graph {
  millrace::RefPtr<millrace::SharedGraph> shared;
  // Of the condition of a loop that is being built: where the loop goes, and what it starts from.
  millrace::RefPtr<millrace::SharedGraph> loop_parent = nullptr;
  std::vector<millrace::Output> loop_inputs = {};
};

struct TF_OperationDescription {
  millrace::RefPtr<millrace::SharedGraph> shared;
  millrace::NodeSpec spec;
  std::vector<int> arg_sizes;  // one per TF_AddInput or TF_AddInputList
  bool has_list = false;
  std::set<std::string> colocation;  // values of attribute _class
  millrace::Status error;            // the first thing that was wrong
};

struct TF_Function {
  millrace::wire::FunctionDef def;
};

struct TF_SessionOptions {
  millrace::wire::ConfigProto config;
  std::string target;
  millrace::Determinism determinism;
};

struct TF_Session {
  millrace::RefPtr<millrace::SharedGraph> shared;
  std::unique_ptr<millrace::Session> session;
};

namespace millrace::capi {

// Sets *status (which may be null). Never throws.
void Report(TF_Status* status, const Status& s) noexcept;

// Runs body() -> Status and reports what it returns; an exception becomes a status.
template <typename Body>
void Guarded(TF_Status* status, Body&& body) noexcept {
  try {
    Report(status, body());
  } catch (...) {
    Report(status, StatusFromException());
  }
}

// Runs body() -> StatusOr<T>, reports its status and returns its value, or `fallback`.
template <typename T, typename Body>
T GuardedOr(TF_Status* status, T fallback, Body&& body) noexcept {
  try {
    StatusOr<T> result = body();
    Report(status, result.status());
    if (result.ok()) return *std::move(result);
  } catch (...) {
    Report(status, StatusFromException());
  }
  return fallback;
}

// For functions without a status.
template <typename T, typename Body>
T Try(T fallback, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return fallback;
  }
}

// Runs body() -> Status as a step of a description, which keeps the first error for TF_FinishOperation.
template <typename Body>
void Describe(TF_OperationDescription* desc, Body&& body) noexcept {
  if (desc == nullptr) return;
  try {
    Status s = body();
    if (desc->error.ok()) desc->error = std::move(s);
  } catch (...) {
    if (desc->error.ok()) desc->error = StatusFromException();
  }
}
inline constexpr char kColocationAttr[] = "_class";

inline Status NullArgument(const char* what) { return InvalidArgument(what, " is NULL"); }

#define MR_CAPI_REQUIRE(pointer) \
  if ((pointer) == nullptr) return ::millrace::capi::NullArgument(#pointer)

inline Node* AsNode(const TF_Operation* oper) { return reinterpret_cast<Node*>(const_cast<TF_Operation*>(oper)); }
inline TF_Operation* AsOperation(Node* node) { return reinterpret_cast<TF_Operation*>(node); }
inline Output AsOutput(TF_Output o) { return {AsNode(o.oper), o.index}; }
inline TF_Output AsTfOutput(Output o) { return {AsOperation(o.node), o.node ? o.index : -1}; }

inline bool IsOutput(TF_Output o) {
  return o.oper != nullptr && o.index >= 0 && o.index < AsNode(o.oper)->num_outputs();
}
Status NoSuchOutput(TF_Output o, const char* what, int position);
inline Status CheckOutput(TF_Output o, const char* what = "output", int position = -1) {
  return IsOutput(o) ? absl::OkStatus() : NoSuchOutput(o, what, position);
}
// A count and the array that it counts.
Status CheckArray(const void* array, int count, const char* what);

// Bytes into an empty caller's buffer.
Status FillBuffer(TF_Buffer* buffer, const std::string& bytes, const char* what);
TF_Buffer* MakeBuffer(const std::string& bytes);  // throws std::bad_alloc
template <typename M>
Status FillWithMessage(TF_Buffer* buffer, const M& message, const char* what) {
  return FillBuffer(buffer, wire::Encode(message), what);
}
template <typename M>
Status DecodeBytes(const void* data, size_t size, const char* what, M* message) {
  if (data == nullptr && size > 0) return NullArgument(what);
  return Annotate(wire::Decode(absl::string_view(static_cast<const char*>(data), size), message),
                  absl::StrCat("cannot read ", what, ": "));
}

StatusOr<Shape> MakeShape(const int64_t* dims, int num_dims);
StatusOr<PartialShape> MakePartialShape(const int64_t* dims, int num_dims);  // num_dims -1: unknown rank
StatusOr<DType> MakeDType(TF_DataType type);
TF_AttrType AttrTypeOf(AttrKind kind);
inline bool IsEncoded(const TF_Tensor* t) { return t->encoded && t->encoded->is_source; }
inline DType DTypeOfTensor(const TF_Tensor* t) { return IsEncoded(t) ? DType::kString : t->tensor.dtype(); }
inline const Shape& ShapeOfTensor(const TF_Tensor* t) { return IsEncoded(t) ? t->encoded->shape : t->tensor.shape(); }
// The tensor for one who reads elements as they are here; null when strings that a program wrote are malformed.
const Tensor* ForReader(const TF_Tensor& t);
// What `t` holds: strings that a program wrote are checked, and bool bytes that are not 0 or 1 made 1 in a copy.
StatusOr<Tensor> FeedValue(const TF_Tensor* t);

// Moves fetched tensors out to the caller.
Status ReturnTensors(std::vector<Tensor>& fetched, TF_Tensor** values, int count);

// What a step takes and gives, as the session wants it. Small steps need no allocation.
struct StepArguments {
  absl::InlinedVector<Output, 8> feeds;
  absl::InlinedVector<Tensor, 4> values;
  absl::InlinedVector<Output, 8> fetches;
  absl::InlinedVector<Node*, 8> targets;

  Status AddFeedValues(TF_Tensor* const* tensors, int count);
};
// One step of `session`. `outputs` are NULL after an error.
Status RunStep(Session& session, const TF_Buffer* run_options, const StepArguments& step, TF_Tensor** outputs,
               TF_Buffer* run_metadata);
Status RunPartialStep(Session& session, const char* handle, const StepArguments& step, TF_Tensor** outputs);
Status StartPartialStep(Session& session, const StepArguments& step, const char** handle);

// The node or output that a name such as "a/b:1" means. NotFound. The graph must not change meanwhile.
StatusOr<Node*> FindNode(const Graph& graph, absl::string_view name);
StatusOr<Output> FindOutput(const Graph& graph, absl::string_view name);

StatusOr<std::vector<Output>> MakeOutputs(const TF_Output* outputs, int count, const char* what);

StatusOr<TF_DeviceList*> MakeDeviceList(Session& session);

}  // namespace millrace::capi
