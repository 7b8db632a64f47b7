// SPDX-License-Identifier: Apache-2.0
// An op that lives outside of Millrace: log(cosh(x)), a smooth absolute value, with its gradient. Built against the
// installed headers and library alone; docs/custom_ops.md goes through it.
#include <cmath>
#include <string>
#include <vector>

#include "millrace/millrace.h"

namespace {

using millrace::Graph;
using millrace::Output;
using millrace::Scope;

// log(cosh(x)) = |x| + log1p(exp(-2 |x|)) - log(2), which does not overflow.
template <typename T>
T LogCosh(T x) {
  const T a = std::abs(x);
  return a + std::log1p(std::exp(-2 * a)) - static_cast<T>(0.69314718055994530942);
}

template <typename T>
struct Part {
  const T* x;
  T* y;
};

template <typename T>
void Compute(void*, TF_OpKernelContext* ctx) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor *x = nullptr, *y = nullptr;
  TF_GetInput(ctx, 0, &x, status);
  if (TF_GetCode(status) == TF_OK) {
    std::vector<int64_t> dims;
    for (int i = 0; i < TF_NumDims(x); ++i) dims.push_back(TF_Dim(x, i));
    y = TF_AllocateOutput(
        ctx, 0, TF_TensorType(x), dims.data(), static_cast<int>(dims.size()), TF_TensorByteSize(x), status);
  }
  if (TF_GetCode(status) == TF_OK) {
    Part<T> part = {static_cast<const T*>(TF_TensorData(x)), static_cast<T*>(TF_TensorData(y))};
    const auto compute = [](void* data, int64_t begin, int64_t end) {
      const auto& p = *static_cast<Part<T>*>(data);
      for (int64_t i = begin; i < end; ++i) p.y[i] = LogCosh(p.x[i]);
    };
    MR_OpKernelContext_ParallelFor(ctx, TF_TensorElementCount(x), /*cost_per_unit=*/15, compute, &part, status);
  }
  if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(ctx, status);
  TF_DeleteTensor(x);
  TF_DeleteTensor(y);
  TF_DeleteStatus(status);
}

void Shape(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(ctx, 0, shape, status);
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(ctx, 0, shape, status);
  TF_DeleteShapeHandle(shape);
}

// dx = dy * tanh(x)
void Gradient(void*, TF_Graph* graph, const MR_Scope* where, TF_Operation* oper, const MR_Gradient* dys, int,
              MR_Gradient* dxs, int, TF_Status* status) {
  Scope scope(Graph::Borrow(graph), where->name);
  const Output x(TF_OperationInput({oper, 0})), dy(dys[0].dense);
  const Output dx = scope.Op("Mul", {dy, scope.Op("Tanh", {x})});
  if (scope.status().ok()) {
    dxs[0].dense = dx.get();
  } else {
    TF_SetStatus(status, scope.status().code(), scope.status().message().c_str());
  }
}

void AddKernel(const char* name, void (*compute)(void*, TF_OpKernelContext*), TF_DataType type, TF_Status* status) {
  if (TF_GetCode(status) != TF_OK) return;
  TF_KernelBuilder* kernel = TF_NewKernelBuilder("LogCosh", "CPU", nullptr, compute, nullptr);
  TF_KernelBuilder_TypeConstraint(kernel, "T", type, status);
  TF_RegisterKernelBuilder(name, kernel, status);
}

}  // namespace

MR_DECLARE_PLUGIN();

extern "C" TF_CAPI_EXPORT void MR_PluginInit(const MR_Api*, TF_Status* status) {
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("LogCosh");
  TF_OpDefinitionBuilderAddAttr(op, "T: {float, double}");
  TF_OpDefinitionBuilderAddInput(op, "x: T");
  TF_OpDefinitionBuilderAddOutput(op, "y: T");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, &Shape);
  MR_OpDefinitionBuilderSetGradient(op, &Gradient, nullptr);
  MR_OpDefinitionBuilderSetDoc(op, "The logarithm of cosh(x), element by element.");
  TF_RegisterOpDefinition(op, status);
  AddKernel("LogCoshFloat", &Compute<float>, TF_FLOAT, status);
  AddKernel("LogCoshDouble", &Compute<double>, TF_DOUBLE, status);
}
