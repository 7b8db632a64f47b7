// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

namespace testacc {

int64_t Count(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

std::string Text(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

int64_t Attrs::Int(const char* name) const {
  ScopedStatus s;
  int64_t value = 0;
  TF_OpKernelConstruction_GetAttrInt64(c_, name, &value, s);
  s.ThrowIfFailed();
  return value;
}

bool Attrs::Bool(const char* name) const {
  ScopedStatus s;
  TF_Bool value = 0;
  TF_OpKernelConstruction_GetAttrBool(c_, name, &value, s);
  s.ThrowIfFailed();
  return value != 0;
}

TF_DataType Attrs::Type(const char* name) const {
  ScopedStatus s;
  TF_DataType value = TF_FLOAT;
  TF_OpKernelConstruction_GetAttrType(c_, name, &value, s);
  s.ThrowIfFailed();
  return value;
}

std::string Attrs::String(const char* name) const {
  ScopedStatus s;
  int32_t list = 0, size = 0;
  TF_OpKernelConstruction_GetAttrSize(c_, name, &list, &size, s);
  s.ThrowIfFailed();
  std::string value(static_cast<size_t>(size < 0 ? 0 : size), ' ');
  TF_OpKernelConstruction_GetAttrString(c_, name, value.data(), value.size(), s);
  s.ThrowIfFailed();
  return value;
}

std::vector<int64_t> Attrs::Ints(const char* name) const {
  ScopedStatus s;
  int32_t size = 0, total = 0;
  TF_OpKernelConstruction_GetAttrSize(c_, name, &size, &total, s);
  s.ThrowIfFailed();
  std::vector<int64_t> values(static_cast<size_t>(size < 0 ? 0 : size));
  TF_OpKernelConstruction_GetAttrInt64List(c_, name, values.data(), size, s);
  s.ThrowIfFailed();
  return values;
}

Context::Context(TF_OpKernelContext* c) : c_(c), device_(AcceleratorOf(TF_GetDeviceId(c))) {}

Context::~Context() {
  for (TF_Tensor* t : held_) TF_DeleteTensor(t);
}

Value Context::Describe(TF_Tensor* tensor, bool on_host) {
  held_.push_back(tensor);
  Value v;
  v.type = TF_TensorType(tensor);
  for (int d = 0; d < TF_NumDims(tensor); ++d) v.dims.push_back(TF_Dim(tensor, d));
  v.size = TF_TensorElementCount(tensor);
  void* const address = TF_TensorData(tensor);
  v.data = on_host || address == nullptr ? static_cast<char*>(address) : device_.Mapped(address);
  return v;
}

Value Context::Input(int i) {
  ScopedStatus s;
  TF_Tensor* tensor = nullptr;
  TF_GetInput(c_, i, &tensor, s);
  s.ThrowIfFailed();
  return Describe(tensor, TF_IsHostMemoryInput(c_, i, s));
}

Value Context::Output(int o, const Dims& dims) {
  ScopedStatus s;
  TF_Tensor* const tensor =
      TF_AllocateOutput(c_, o, TF_ExpectedOutputDataType(c_, o), dims.data(), static_cast<int>(dims.size()), 0, s);
  s.ThrowIfFailed();
  return Describe(tensor, TF_IsHostMemoryOutput(c_, o, s));
}

std::vector<int64_t> Context::HostInts(int i) {
  const Value v = Input(i);
  if (v.type == TF_INT32) return {v.as<int32_t>(), v.as<int32_t>() + v.size};
  Require(v.type == TF_INT64, "expected integers");
  return {v.as<int64_t>(), v.as<int64_t>() + v.size};
}

int64_t Context::HostInt(int i) {
  const std::vector<int64_t> values = HostInts(i);
  Require(values.size() == 1, "expected one integer");
  return values[0];
}

Value Context::Temporary(TF_DataType type, const Dims& dims) {
  ScopedStatus s;
  TF_Tensor* const tensor = TF_AllocateTemp(c_, type, dims.data(), static_cast<int>(dims.size()), nullptr, s);
  s.ThrowIfFailed();
  return Describe(tensor, false);
}

std::vector<Value> Context::Variables(const std::vector<int>& inputs) {
  ScopedStatus s;
  std::vector<TF_Tensor*> tensors(inputs.size());
  MR_OpKernelContext_LockVariables(c_, inputs.data(), static_cast<int>(inputs.size()), tensors.data(), s);
  s.ThrowIfFailed();
  std::vector<Value> values;
  for (TF_Tensor* t : tensors) values.push_back(Describe(t, false));
  return values;
}

void Context::ForwardRef(int input, int output) {
  ScopedStatus s;
  MR_OpKernelContext_ForwardRef(c_, input, output, s);
  s.ThrowIfFailed();
}

void Context::Reshape(int i, int o, const Dims& dims) {
  ScopedStatus s;
  TF_Tensor* tensor = nullptr;
  TF_GetInput(c_, i, &tensor, s);
  s.ThrowIfFailed();
  held_.push_back(tensor);
  TF_SetShape(tensor, dims.data(), static_cast<int>(dims.size()));
  TF_SetOutput(c_, o, tensor, s);
  s.ThrowIfFailed();
}

void Context::Queue(std::function<void()> work) {
  ScopedStatus s;
  auto* const stream = reinterpret_cast<Stream*>(TF_GetStream(c_, s));
  s.ThrowIfFailed();
  MR_LateWork* const late = MR_OpKernelContext_BeginLateWork(c_, s);
  s.ThrowIfFailed();
  const TF_StringView name = TF_GetOpKernelName(c_);
  const bool must_fail = MustFail(std::string(name.data, name.len));
  stream->Queue([work = std::move(work), late, must_fail] {
    ScopedStatus result;
    try {
      if (must_fail) throw Failed{TF_INTERNAL, "the accelerator failed, as it was asked to"};
      work();
    } catch (const Failed& failed) {
      TF_SetStatus(result, failed.code, failed.message.c_str());
    } catch (const std::exception& e) {
      TF_SetStatus(result, TF_INTERNAL, e.what());
    }
    MR_EndLateWork(late, result);
  });
}

void RegisterKernel(const Registration& r, void* (*create)(TF_OpKernelConstruction*),
                    void (*compute)(void*, TF_OpKernelContext*), void (*destroy)(void*), TF_Status* status) {
  if (TF_GetCode(status) != TF_OK) return;
  TF_KernelBuilder* const builder = TF_NewKernelBuilder(r.op, "TESTACC", create, compute, destroy);
  for (const auto& [attr, type] : r.types) TF_KernelBuilder_TypeConstraint(builder, attr, type, status);
  for (const char* arg : r.host) TF_KernelBuilder_HostMemory(builder, arg);
  TF_RegisterKernelBuilder(r.op, builder, status);
}

void ReportFailure(TF_OpKernelContext* c, const Failed& failed) {
  ScopedStatus s;
  TF_SetStatus(s, failed.code, failed.message.c_str());
  TF_OpKernelContext_Failure(c, s);
}

}  // namespace testacc
