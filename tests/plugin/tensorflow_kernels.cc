// SPDX-License-Identifier: Apache-2.0
// Ops and kernels written for TensorFlow's C API alone: this source is compiled against TensorFlow's headers and
// against Millrace's, unchanged, and does the same in both (beside_tensorflow.py).
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/c/tf_tstring.h"

namespace {

struct OwnStatus {
  OwnStatus() : s(TF_NewStatus()) {}
  ~OwnStatus() { TF_DeleteStatus(s); }
  operator TF_Status*() const { return s; }
  bool ok() const { return TF_GetCode(s) == TF_OK; }
  TF_Status* s;
};

struct OwnTensor {
  explicit OwnTensor(TF_Tensor* tensor = nullptr) : t(tensor) {}
  ~OwnTensor() {
    if (t != nullptr) TF_DeleteTensor(t);
  }
  OwnTensor(const OwnTensor&) = delete;
  template <typename T>
  T* data() const {
    return static_cast<T*>(TF_TensorData(t));
  }
  std::vector<int64_t> dims() const {
    std::vector<int64_t> d;
    for (int i = 0; i < TF_NumDims(t); ++i) d.push_back(TF_Dim(t, i));
    return d;
  }
  int64_t count() const { return TF_TensorElementCount(t); }
  TF_Tensor* t;
};

bool Failed(TF_OpKernelContext* ctx, const OwnStatus& s) {
  if (s.ok()) return false;
  TF_OpKernelContext_Failure(ctx, s);
  return true;
}

// ---- PluginAxpy: a * x + y, in the memory of x where that is free.

struct Axpy {
  float a = 0;
};

void* MakeAxpy(TF_OpKernelConstruction* ctx) {
  OwnStatus s;
  auto* axpy = new Axpy;
  TF_OpKernelConstruction_GetAttrFloat(ctx, "a", &axpy->a, s);
  if (!s.ok()) TF_OpKernelConstruction_Failure(ctx, s);
  return axpy;
}

template <typename T>
void ComputeAxpy(void* kernel, TF_OpKernelContext* ctx) {
  OwnStatus s;
  OwnTensor x, y;
  TF_GetInput(ctx, 1, &y.t, s);
  if (Failed(ctx, s)) return;
  {
    OwnTensor shape;
    TF_GetInput(ctx, 0, &shape.t, s);
    if (Failed(ctx, s)) return;
    if (shape.dims() != y.dims()) {
      TF_SetStatus(s, TF_INVALID_ARGUMENT, "x and y have different shapes");
      Failed(ctx, s);
      return;
    }
  }
  TF_GetInput(ctx, 0, &x.t, s);
  if (Failed(ctx, s)) return;
  const std::vector<int64_t> dims = x.dims();
  const int candidates[] = {0};
  int forwarded = -2;
  OwnTensor out(TF_ForwardInputOrAllocateOutput(
      ctx, candidates, 1, 0, dims.data(), static_cast<int>(dims.size()), &forwarded, s));
  if (Failed(ctx, s)) return;
  const T a = static_cast<T>(static_cast<Axpy*>(kernel)->a);
  for (int64_t i = 0; i < out.count(); ++i) out.data<T>()[i] = a * x.data<T>()[i] + y.data<T>()[i];
}

void DeleteAxpy(void* kernel) { delete static_cast<Axpy*>(kernel); }

void SameShape(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(ctx, 0, shape, status);
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(ctx, 0, shape, status);
  TF_DeleteShapeHandle(shape);
}

// ---- PluginSum: the sum of a list of tensors, as a scalar.

void ComputeSum(void*, TF_OpKernelContext* ctx) {
  OwnStatus s;
  TF_InputRange_Args range;
  range.struct_size = TF_InputRange_Args_STRUCT_SIZE;
  range.priv = nullptr;
  range.status = s;
  TF_InputRange(ctx, "xs", &range);
  if (Failed(ctx, s)) return;
  double total = 0;
  for (int i = range.start; i < range.stop; ++i) {
    OwnTensor x;
    TF_GetInput(ctx, i, &x.t, s);
    if (Failed(ctx, s)) return;
    for (int64_t k = 0; k < x.count(); ++k) total += x.data<float>()[k];
  }
  OwnTensor out(TF_AllocateOutput(ctx, 0, TF_ExpectedOutputDataType(ctx, 0), nullptr, 0, sizeof(double), s));
  if (Failed(ctx, s)) return;
  *out.data<double>() = total;
}

void ScalarShape(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  TF_ShapeHandle* scalar = TF_ShapeInferenceContextScalar(ctx);
  TF_ShapeInferenceContextSetOutput(ctx, 0, scalar, status);
  TF_DeleteShapeHandle(scalar);
}

// ---- PluginAttrs: a text of everything that it was told.

struct Attrs {
  std::string text;
};

template <typename T>
std::string Joined(const std::vector<T>& list) {
  std::string out;
  for (const T& v : list) out += std::to_string(v) + ",";
  return out;
}

void* MakeAttrs(TF_OpKernelConstruction* ctx) {
  OwnStatus s;
  auto* attrs = new Attrs;
  std::string& out = attrs->text;
  int32_t size = 0, total = 0;
  TF_OpKernelConstruction_GetAttrSize(ctx, "s", &size, &total, s);
  out += "s " + std::to_string(size) + " " + std::to_string(total);
  std::vector<char> chars(static_cast<size_t>(total));
  TF_OpKernelConstruction_GetAttrString(ctx, "s", chars.data(), chars.size(), s);
  out += " " + std::string(chars.begin(), chars.end());
  int64_t i64 = 0;
  int32_t i32 = 0;
  TF_OpKernelConstruction_GetAttrInt64(ctx, "i", &i64, s);
  TF_OpKernelConstruction_GetAttrInt32(ctx, "small", &i32, s);
  out += " i " + std::to_string(i64) + " " + std::to_string(i32);
  float f = 0;
  TF_OpKernelConstruction_GetAttrFloat(ctx, "f", &f, s);
  out += " f " + std::to_string(f);
  unsigned char b = 0;
  TF_OpKernelConstruction_GetAttrBool(ctx, "b", &b, s);
  out += " b " + std::to_string(b);
  TF_DataType type = TF_FLOAT;
  TF_OpKernelConstruction_GetAttrType(ctx, "t", &type, s);
  out += " t " + std::to_string(static_cast<int>(type));
  TF_OpKernelConstruction_GetAttrSize(ctx, "ints", &size, &total, s);
  std::vector<int64_t> is(static_cast<size_t>(size));
  TF_OpKernelConstruction_GetAttrInt64List(ctx, "ints", is.data(), size, s);
  out += " is " + std::to_string(total) + ":" + Joined(is);
  TF_OpKernelConstruction_GetAttrSize(ctx, "fs", &size, &total, s);
  std::vector<float> fs(static_cast<size_t>(size));
  TF_OpKernelConstruction_GetAttrFloatList(ctx, "fs", fs.data(), size, s);
  out += " fs " + Joined(fs);
  TF_OpKernelConstruction_GetAttrSize(ctx, "ss", &size, &total, s);
  std::vector<char*> values(static_cast<size_t>(size));
  std::vector<size_t> lengths(static_cast<size_t>(size));
  std::vector<char> storage(static_cast<size_t>(total > 0 ? total : 0));
  TF_OpKernelConstruction_GetAttrStringList(
      ctx, "ss", values.data(), lengths.data(), size, storage.data(), storage.size(), s);
  out += " ss";
  for (size_t k = 0; k < values.size(); ++k) out += " " + std::string(values[k], lengths[k]);
  TF_OpKernelConstruction_GetAttrSize(ctx, "ts", &size, &total, s);
  std::vector<TF_DataType> ts(static_cast<size_t>(size));
  TF_OpKernelConstruction_GetAttrTypeList(ctx, "ts", ts.data(), size, s);
  for (TF_DataType t : ts) out += " " + std::to_string(static_cast<int>(t));
  if (!s.ok()) TF_OpKernelConstruction_Failure(ctx, s);
  out += TF_OpKernelConstruction_HasAttr(ctx, "f", s) ? " has" : " lacks";
  out += TF_OpKernelConstruction_HasAttr(ctx, "nothing", s) ? " has" : " lacks";
  TF_OpKernelConstruction_GetAttrInt64(ctx, "nothing", &i64, s);
  out += " " + std::to_string(static_cast<int>(TF_GetCode(s)));
  TF_OpKernelConstruction_GetAttrInt64(ctx, "f", &i64, s);
  out += " " + std::to_string(static_cast<int>(TF_GetCode(s)));
  TF_OpKernelConstruction_GetAttrInt64List(ctx, "i", &i64, 1, s);
  out += " " + std::to_string(static_cast<int>(TF_GetCode(s)));
  TF_OpKernelConstruction_GetAttrInt32(ctx, "i", &i32, s);
  out += " " + std::to_string(static_cast<int>(TF_GetCode(s)));
  const TF_StringView name = TF_OpKernelConstruction_GetName(ctx);
  out += " " + std::string(name.data, name.len);
  return attrs;
}

void ComputeAttrs(void* kernel, TF_OpKernelContext* ctx) {
  OwnStatus s;
  const std::string& text = static_cast<Attrs*>(kernel)->text;
  OwnTensor out(TF_AllocateOutput(ctx, 0, TF_STRING, nullptr, 0, sizeof(TF_TString), s));
  if (Failed(ctx, s)) return;
  TF_StringCopy(out.data<TF_TString>(), text.data(), text.size());
}

void DeleteAttrs(void* kernel) { delete static_cast<Attrs*>(kernel); }

// ---- PluginHead: x without its last dimension's rest, and codes of calls that are wrong.

void HeadShape(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  TF_ShapeHandle *x = TF_NewShapeHandle(), *head = TF_NewShapeHandle(), *tail = TF_NewShapeHandle();
  TF_DimensionHandle* last = TF_NewDimensionHandle();
  TF_ShapeInferenceContextGetInput(ctx, 0, x, status);
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextWithRankAtLeast(ctx, x, 1, x, status);
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSubshape(ctx, x, 0, -1, head, status);
  if (TF_GetCode(status) == TF_OK) {
    TF_ShapeInferenceContextDim(ctx, x, -1, last);
    if (TF_DimensionHandleValueKnown(last) && TF_DimensionHandleValue(last) == 0) {
      TF_SetStatus(status, TF_INVALID_ARGUMENT, "the last dimension must not be 0");
    }
  }
  if (TF_GetCode(status) == TF_OK) {
    TF_ShapeHandle* one = TF_ShapeInferenceContextVectorFromSize(ctx, 1);
    TF_ShapeInferenceContextConcatenateShapes(ctx, head, one, tail, status);
    TF_DeleteShapeHandle(one);
  }
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(ctx, 0, tail, status);
  TF_DeleteDimensionHandle(last);
  for (TF_ShapeHandle* h : {x, head, tail}) TF_DeleteShapeHandle(h);
}

void ComputeHead(void*, TF_OpKernelContext* ctx) {
  OwnStatus s;
  TF_Tensor* none = nullptr;
  for (int i : {-1, 1}) {  // these fail, and the operation does not
    TF_GetInput(ctx, i, &none, s);
    if (TF_GetCode(s) != TF_OUT_OF_RANGE) return;
    TF_SetOutput(ctx, i, nullptr, s);
    if (TF_GetCode(s) != TF_OUT_OF_RANGE) return;
  }
  OwnTensor x;
  TF_GetInput(ctx, 0, &x.t, s);
  if (Failed(ctx, s)) return;
  std::vector<int64_t> dims = x.dims();
  const int64_t width = dims.back();
  dims.back() = 1;
  int64_t rows = 1;
  for (int64_t d : dims) rows *= d;
  OwnTensor out(TF_AllocateTemp(ctx, TF_FLOAT, dims.data(), static_cast<int>(dims.size()), nullptr, s));
  if (Failed(ctx, s)) return;
  for (int64_t r = 0; r < rows; ++r) out.data<float>()[r] = x.data<float>()[r * width];
  TF_SetOutput(ctx, 0, out.t, s);
  Failed(ctx, s);
}

// ---- PluginFails: an error of its own.

void ComputeFails(void*, TF_OpKernelContext* ctx) {
  OwnStatus s;
  TF_SetStatus(s, TF_DATA_LOSS, "nothing but losses");
  TF_OpKernelContext_Failure(ctx, s);
  TF_SetStatus(s, TF_ABORTED, "a second failure");
  TF_OpKernelContext_Failure(ctx, s);
}

// ---- PluginLater: x + 1, from another thread. TensorFlow's `done` is gone when this function returns.

void ComputeLater(void*, TF_OpKernelContext* ctx, TF_AsyncOpKernelDoneCallback* done) {
  std::thread([ctx, done] {
    {
      OwnStatus s;
      OwnTensor x;
      TF_GetInput(ctx, 0, &x.t, s);
      const std::vector<int64_t> dims = x.dims();
      OwnTensor out(
          TF_AllocateOutput(ctx, 0, TF_FLOAT, dims.data(), static_cast<int>(dims.size()), TF_TensorByteSize(x.t), s));
      if (!Failed(ctx, s)) {
        for (int64_t i = 0; i < out.count(); ++i) out.data<float>()[i] = x.data<float>()[i] + 1;
      }
    }
    TF_RunAsyncOpKernelDoneCallback(done);
  }).join();
}

struct Op {
  explicit Op(const char* name) : b(TF_NewOpDefinitionBuilder(name)) {}
  Op& Attr(const char* spec) { return TF_OpDefinitionBuilderAddAttr(b, spec), *this; }
  Op& In(const char* spec) { return TF_OpDefinitionBuilderAddInput(b, spec), *this; }
  Op& Out(const char* spec) { return TF_OpDefinitionBuilderAddOutput(b, spec), *this; }
  Op& Shape(void (*fn)(TF_ShapeInferenceContext*, TF_Status*)) {
    return TF_OpDefinitionBuilderSetShapeInferenceFunction(b, fn), *this;
  }
  ~Op() {
    OwnStatus s;
    TF_RegisterOpDefinition(b, s);
    if (!s.ok()) abort();
  }
  TF_OpDefinitionBuilder* b;
};

void AddKernel(TF_KernelBuilder* builder, const char* name, const char* attr = nullptr, TF_DataType type = TF_FLOAT) {
  OwnStatus s;
  if (attr != nullptr) TF_KernelBuilder_TypeConstraint(builder, attr, type, s);
  if (s.ok()) TF_RegisterKernelBuilder(name, builder, s);
  if (!s.ok()) abort();
}

struct AtLoad {
  AtLoad() {
    Op("PluginAxpy")
        .Attr("T: {float, double}")
        .Attr("a: float = 2.0")
        .In("x: T")
        .In("y: T")
        .Out("z: T")
        .Shape(SameShape);
    AddKernel(TF_NewKernelBuilder("PluginAxpy", "CPU", MakeAxpy, ComputeAxpy<float>, DeleteAxpy), "AxpyFloat", "T");
    AddKernel(TF_NewKernelBuilder("PluginAxpy", "CPU", MakeAxpy, ComputeAxpy<double>, DeleteAxpy), "AxpyDouble", "T",
              TF_DOUBLE);
    Op("PluginSum").Attr("N: int >= 1").In("first: float").In("xs: N * float").Out("sum: double").Shape(ScalarShape);
    AddKernel(TF_NewKernelBuilder("PluginSum", "CPU", nullptr, ComputeSum, nullptr), "Sum");
    Op("PluginAttrs")
        .Attr("s: string = 'a \\'word\\''")
        .Attr("i: int = 5000000000")
        .Attr("small: int = -7")
        .Attr("f: float = 0.5")
        .Attr("b: bool = true")
        .Attr("t: {int32, string} = DT_STRING")
        .Attr("ints: list(int) >= 1 = [3, -4]")
        .Attr("fs: list(float) = []")
        .Attr("ss: list(string) = ['x', 'yz']")
        .Attr("ts: list(type) = [DT_FLOAT, DT_BOOL]")
        .Out("text: string")
        .Shape(ScalarShape);
    AddKernel(TF_NewKernelBuilder("PluginAttrs", "CPU", MakeAttrs, ComputeAttrs, DeleteAttrs), "Attrs");
    Op("PluginHead").In("x: float").Out("y: float").Shape(HeadShape);
    AddKernel(TF_NewKernelBuilder("PluginHead", "CPU", nullptr, ComputeHead, nullptr), "Head");
    Op("PluginFails").In("x: float").Out("y: float").Shape(SameShape);
    AddKernel(TF_NewKernelBuilder("PluginFails", "CPU", nullptr, ComputeFails, nullptr), "Fails");
    Op("PluginLater").In("x: float").Out("y: float").Shape(SameShape);
    AddKernel(TF_NewAsyncKernelBuilder("PluginLater", "CPU", nullptr, ComputeLater, nullptr), "Later");
  }
} at_load;

}  // namespace
