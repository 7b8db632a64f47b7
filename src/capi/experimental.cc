// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/c/c_api_experimental.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "capi/eager.h"
#include "capi/internal.h"
#include "io/checkpoint_reader.h"
#include "system/system.h"

using millrace::CheckpointReader;
using millrace::OpDef;
using millrace::Status;
using millrace::StatusOr;
using millrace::Unimplemented;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;
using millrace::capi::Try;

struct TF_CheckpointReader {
  std::unique_ptr<CheckpointReader> reader;
  std::vector<std::string> names;  // sorted
};

namespace {

char* CopyText(const std::string& text, size_t* len) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, text.c_str(), text.size() + 1);
  if (len) *len = text.size();
  return copy;
}

StatusOr<const OpDef*> FindOp(const char* name) {
  MR_CAPI_REQUIRE(name);
  const OpDef* def = millrace::System::Default().ops().Find(name);
  if (def == nullptr)
    return millrace::NotFound("Op type not registered '", name, "' in binary running in this process.");
  return def;
}

StatusOr<CheckpointReader::Info> LookUp(TF_CheckpointReader* reader, const char* name) {
  MR_CAPI_REQUIRE(reader);
  MR_CAPI_REQUIRE(name);
  return reader->reader->Lookup(name);
}

}  // namespace

extern "C" {

void TF_InitMain(const char*, int*, char***) {}
void TF_EnableXLACompilation(TF_SessionOptions*, unsigned char) {}

void TF_MakeInternalErrorStatus(TF_Status* status, const char* err_msg) {
  if (status) TF_SetStatus(status, TF_INTERNAL, err_msg);
}

TF_Buffer* TF_CreateConfig(unsigned char, unsigned char gpu_memory_allow_growth, unsigned int num_cpu_devices) {
  return Try<TF_Buffer*>(nullptr, [&] {
    millrace::wire::ConfigProto config;
    config.device_count.insert_or_assign("CPU", static_cast<int32_t>(std::min(num_cpu_devices, 1u << 16)));
    config.gpu_options.Ensure().allow_growth = gpu_memory_allow_growth != 0;
    return millrace::capi::MakeBuffer(millrace::wire::Encode(config));
  });
}

TF_Buffer* TF_CreateRunOptions(unsigned char enable_full_trace) {
  return Try<TF_Buffer*>(nullptr, [&] {
    millrace::wire::RunOptions options;
    options.trace_level = enable_full_trace ? 3 : 0;  // FULL_TRACE, NO_TRACE
    return millrace::capi::MakeBuffer(millrace::wire::Encode(options));
  });
}

const char* TF_GraphDebugString(TF_Graph* graph, size_t* len) {
  if (graph == nullptr) return nullptr;
  return Try<const char*>(nullptr, [&]() -> const char* {
    millrace::GraphReaderLock lock(&graph->shared->mu);
    const StatusOr<millrace::wire::GraphDef> def = millrace::GraphToProto(graph->shared->graph);
    return def.ok() ? CopyText(millrace::wire::EncodeText(*def), len) : nullptr;
  });
}

char* TF_FunctionDebugString(TF_Function* func, size_t* len) {
  if (func == nullptr) return nullptr;
  return Try<char*>(nullptr, [&] { return CopyText(millrace::wire::EncodeText(func->def), len); });
}

int TF_OpIsStateful(const char* op_type, TF_Status* status) {
  return GuardedOr<int>(status, -1, [&]() -> StatusOr<int> {
    MR_ASSIGN_OR_RETURN(const OpDef* def, FindOp(op_type));
    return def->stateful ? 1 : 0;
  });
}

const char* TF_GetNumberAttrForOpListInput(const char* op_name, int input_index, TF_Status* status) {
  return GuardedOr<const char*>(status, nullptr, [&]() -> StatusOr<const char*> {
    MR_ASSIGN_OR_RETURN(const OpDef* def, FindOp(op_name));
    if (input_index < 0 || static_cast<size_t>(input_index) >= def->inputs.size()) {
      return millrace::InvalidArgument("op ", op_name, " has ", def->inputs.size(), " inputs, no input ", input_index);
    }
    const std::string& attr = def->inputs[static_cast<size_t>(input_index)].number_attr;
    return attr.empty() ? nullptr : attr.c_str();
  });
}

TF_CheckpointReader* TF_NewCheckpointReader(const char* filename, TF_Status* status) {
  return GuardedOr<TF_CheckpointReader*>(status, nullptr, [&]() -> StatusOr<TF_CheckpointReader*> {
    MR_CAPI_REQUIRE(filename);
    MR_ASSIGN_OR_RETURN(auto reader, millrace::OpenCheckpoint(millrace::Env::Default(), filename));
    std::vector<std::string> names = reader->Names();
    return new TF_CheckpointReader{std::move(reader), std::move(names)};
  });
}
void TF_DeleteCheckpointReader(TF_CheckpointReader* reader) { delete reader; }

int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader, const char* name) {
  return reader && name && std::binary_search(reader->names.begin(), reader->names.end(), absl::string_view(name));
}
const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader, int index) {
  if (reader == nullptr || index < 0 || static_cast<size_t>(index) >= reader->names.size()) return nullptr;
  return reader->names[static_cast<size_t>(index)].c_str();
}
int TF_CheckpointReaderSize(TF_CheckpointReader* reader) { return reader ? static_cast<int>(reader->names.size()) : 0; }

TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader* reader, const char* name) {
  return Try<TF_DataType>(static_cast<TF_DataType>(0), [&] {
    const auto info = LookUp(reader, name);
    return static_cast<TF_DataType>(info.ok() ? static_cast<int>(info->dtype) : 0);
  });
}
void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader, const char* name, int64_t* dims, int num_dims,
                                         TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_ASSIGN_OR_RETURN(const CheckpointReader::Info info, LookUp(reader, name));
    if (num_dims != info.shape.rank()) {
      return millrace::InvalidArgument("Expected rank is ", num_dims, " but actual rank is ", info.shape.rank());
    }
    if (num_dims > 0) MR_CAPI_REQUIRE(dims);
    for (int i = 0; i < num_dims; ++i) dims[i] = info.shape.dim(i);
    return absl::OkStatus();
  });
}
int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader, const char* name) {
  return Try<int>(-1, [&] {
    const auto info = LookUp(reader, name);
    return info.ok() ? info->shape.rank() : -1;
  });
}
TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader, const char* name, TF_Status* status) {
  return GuardedOr<TF_Tensor*>(status, nullptr, [&]() -> StatusOr<TF_Tensor*> {
    MR_CAPI_REQUIRE(reader);
    MR_CAPI_REQUIRE(name);
    MR_ASSIGN_OR_RETURN(millrace::Tensor value, reader->reader->Read(name));
    return new TF_Tensor{std::move(value)};
  });
}

TFE_TensorHandle* TFE_NewTensorHandleFromScalar(TF_DataType data_type, void* data, size_t len, TF_Status* status) {
  return GuardedOr<TFE_TensorHandle*>(status, nullptr, [&]() -> StatusOr<TFE_TensorHandle*> {
    MR_CAPI_REQUIRE(data);
    const size_t size = TF_DataTypeSize(data_type);
    if (size == 0 || size != len) {
      return millrace::InvalidArgument(len, " bytes are no element of data type ", static_cast<int>(data_type));
    }
    const std::unique_ptr<TF_Tensor> t(TF_AllocateTensor(data_type, nullptr, 0, len));
    if (!t) return millrace::ResourceExhausted("out of memory");
    std::memcpy(t->tensor.mutable_raw(), data, len);
    return TFE_NewTensorHandle(t.get(), nullptr);
  });
}

TF_Tensor* TF_DequeueNamedTensor(TF_Session*, int, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TF_DequeueNamedTensor: run a dequeue op of the graph"); });
  return nullptr;
}
void TF_EnqueueNamedTensor(TF_Session*, int, TF_Tensor*, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TF_EnqueueNamedTensor: run an enqueue op of the graph"); });
}
TF_Library* TF_LoadPluggableDeviceLibrary(const char*, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TF_LoadPluggableDeviceLibrary: the CPU is the only device"); });
  return nullptr;
}
void TF_DeletePluggableDeviceLibraryHandle(TF_Library*) {}
void TF_GraphRemoveFunction(TF_Graph*, const char*, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TF_GraphRemoveFunction: a graph keeps its functions"); });
}
TF_Buffer* TFE_GetServerDef(const char*, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TFE_GetServerDef: this build has no servers"); });
  return nullptr;
}
void TFE_EnableCollectiveOps(TFE_Context*, const void*, size_t, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TFE_EnableCollectiveOps: this build has no servers"); });
}

}  // extern "C"
