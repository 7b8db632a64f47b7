// SPDX-License-Identifier: Apache-2.0
// Kernels through the C API: registration, attributes, calls that are wrong, kernels that wait.
#include <atomic>
#include <chrono>
#include <climits>
#include <stdexcept>
#include <thread>

#include "capi/plugin/test_ops.h"
#include "tensorflow/c/kernels.h"

namespace millrace::capi {
namespace {

TEST(KernelBuilderTest, RegistrationsThatAreWrongAreRefused) {
  const auto nothing = [](void*, TF_OpKernelContext*) {};
  ScopedStatus s;
  const auto refused = [&](TF_KernelBuilder* b, TF_Code code, const char* why) {
    TF_RegisterKernelBuilder("tested", b, s);
    EXPECT_EQ(s.code(), code) << s.message();
    EXPECT_TRUE(Contains(s.message(), why)) << s.message();
  };
  refused(TF_NewKernelBuilder(nullptr, "CPU", nullptr, nothing, nullptr), TF_INVALID_ARGUMENT, "names no op");
  refused(TF_NewKernelBuilder("X", nullptr, nullptr, nothing, nullptr), TF_INVALID_ARGUMENT, "type of device");
  refused(TF_NewKernelBuilder("X", "CPU", nullptr, nullptr, nullptr), TF_INVALID_ARGUMENT, "no compute function");
  refused(nullptr, TF_INVALID_ARGUMENT, "NULL");
  TF_KernelBuilder* same = TF_NewKernelBuilder("MatMul", "CPU", nullptr, nothing, nullptr);
  TF_KernelBuilder_TypeConstraint(same, "T", TF_FLOAT, s);
  refused(same, TF_ALREADY_EXISTS, "op MatMul has a CPU kernel");
  TF_KernelBuilder* types = TF_NewKernelBuilder("MatMul", "CPU", nullptr, nothing, nullptr);
  TF_KernelBuilder_TypeConstraint(types, "T", static_cast<TF_DataType>(999), s);
  EXPECT_EQ(s.code(), TF_UNIMPLEMENTED);
  TF_KernelBuilder_TypeConstraint(types, nullptr, TF_FLOAT, s);
  EXPECT_EQ(s.code(), TF_INVALID_ARGUMENT);
  TF_DeleteKernelBuilder(types);
  TF_RegisterKernelBuilderWithKernelDef(
      "\x0a\xff", "tested", TF_NewKernelBuilder("X", "CPU", nullptr, nothing, nullptr), s);
  EXPECT_EQ(s.code(), TF_INVALID_ARGUMENT) << s.message();
}

TEST(KernelBuilderTest, PriorityLabelAndDefDecide) {
  const auto give = [](TF_OpKernelContext* ctx, float v) {
    ScopedStatus s;
    TF_Tensor* out = TF_AllocateOutput(ctx, 0, TF_FLOAT, nullptr, 0, sizeof(float), s);
    *static_cast<float*>(TF_TensorData(out)) = v;
    TF_DeleteTensor(out);
  };
  static const auto kGive = give;
  AddOp("Prioritised", [](void*, TF_OpKernelContext* ctx) { kGive(ctx, 1); });
  std::vector<float> y;
  EXPECT_EQ(RunOp("Prioritised", {0}, &y), "");
  EXPECT_EQ(y, std::vector<float>({1}));
  ScopedStatus s;
  TF_KernelBuilder* labelled = TF_NewKernelBuilder(
      "Prioritised", "CPU", nullptr, [](void*, TF_OpKernelContext* ctx) { kGive(ctx, 2); }, nullptr);
  TF_KernelBuilder_Label(labelled, "special");
  TF_RegisterKernelBuilder("labelled", labelled, s);
  ASSERT_TF_OK(s);
  EXPECT_EQ(RunOp("Prioritised", {0}, &y), "");
  EXPECT_EQ(y, std::vector<float>({1}));
  // op 1: "Prioritised", device 2: "CPU", priority 6: 9
  TF_RegisterKernelBuilderWithKernelDef(
      "\x0a\x0bPrioritised\x12\x03"
      "CPU\x30\x09",
      "higher",
      TF_NewKernelBuilder("Other", "GPU", nullptr, [](void*, TF_OpKernelContext* ctx) { kGive(ctx, 3); }, nullptr), s);
  ASSERT_TF_OK(s);
  EXPECT_EQ(RunOp("Prioritised", {0}, &y), "");
  EXPECT_EQ(y, std::vector<float>({3}));
}

// What a kernel may get wrong. Each call must say so by its code; none may bring the process down.
void Misuse(void*, TF_OpKernelContext* ctx) {
  ScopedStatus s;
  std::string failures;
  const auto expect = [&](TF_Code code, const char* what) {
    if (s.code() != code) failures += std::string(what) + ": " + std::to_string(s.code()) + " " + s.message() + "; ";
  };
  TF_Tensor* t = nullptr;
  const int64_t two = 2, huge[] = {INT64_MAX, 4}, large = int64_t{1} << 50, negative = -1;
  for (int i : {-1, 1, INT_MAX, INT_MIN}) {
    TF_GetInput(ctx, i, &t, s), expect(TF_OUT_OF_RANGE, "GetInput");
    TF_SetOutput(ctx, i, t, s), expect(TF_OUT_OF_RANGE, "SetOutput");
    TF_GetMutableOutput(ctx, i, s), expect(TF_OUT_OF_RANGE, "GetMutableOutput");
    TF_AllocateOutput(ctx, i, TF_FLOAT, &two, 1, 8, s), expect(TF_INTERNAL, "AllocateOutput");
    TF_ForwardInputOrAllocateOutput(ctx, nullptr, 0, i, &two, 1, nullptr, s), expect(TF_INTERNAL, "Forward");
    TF_ForwardInputOrAllocateOutput(ctx, &i, 1, 0, &two, 1, nullptr, s), expect(TF_OUT_OF_RANGE, "Forward from");
    TF_IsHostMemoryInput(ctx, i, s), expect(TF_OUT_OF_RANGE, "IsHostMemoryInput");
    TF_IsHostMemoryOutput(ctx, i, s), expect(TF_OUT_OF_RANGE, "IsHostMemoryOutput");
    if (TF_ExpectedOutputDataType(ctx, i) != 0 || TF_InputDatatype(ctx, i) != 0) failures += "a type of nothing; ";
  }
  TF_GetInput(ctx, 0, nullptr, s), expect(TF_INVALID_ARGUMENT, "GetInput into NULL");
  TF_SetOutput(ctx, 0, nullptr, s), expect(TF_INVALID_ARGUMENT, "SetOutput of NULL");
  TF_GetMutableOutput(ctx, 0, s), expect(TF_FAILED_PRECONDITION, "an output without a value");
  TF_AllocateOutput(ctx, 0, TF_DOUBLE, &two, 1, 16, s), expect(TF_INVALID_ARGUMENT, "another type");
  TF_AllocateOutput(ctx, 0, TF_FLOAT, huge, 2, 8, s), expect(TF_INVALID_ARGUMENT, "huge dims");
  TF_AllocateOutput(ctx, 0, TF_FLOAT, &large, 1, 8, s), expect(TF_RESOURCE_EXHAUSTED, "a large dim");
  TF_AllocateOutput(ctx, 0, TF_FLOAT, &negative, 1, 8, s), expect(TF_INVALID_ARGUMENT, "a negative dim");
  TF_AllocateOutput(ctx, 0, TF_FLOAT, &two, -3, 8, s), expect(TF_INVALID_ARGUMENT, "a negative rank");
  TF_AllocateOutput(ctx, 0, TF_FLOAT, nullptr, 1, 8, s), expect(TF_INVALID_ARGUMENT, "dims of NULL");
  TF_AllocateOutput(ctx, 0, TF_FLOAT, &two, 1, 4096, s), expect(TF_INVALID_ARGUMENT, "too many bytes");
  TF_AllocateTemp(ctx, static_cast<TF_DataType>(77), &two, 1, nullptr, s), expect(TF_INVALID_ARGUMENT, "no type");
  TF_AllocateTemp(ctx, TF_FLOAT, huge, 2, nullptr, s), expect(TF_INVALID_ARGUMENT, "a huge temporary");
  TF_AllocatorAttributes unset = {0, 0};
  TF_AllocateTemp(ctx, TF_FLOAT, &two, 1, &unset, s), expect(TF_INVALID_ARGUMENT, "no struct size");
  TF_ForwardInputOrAllocateOutput(ctx, nullptr, 2, 0, &two, 1, nullptr, s),
      expect(TF_INVALID_ARGUMENT, "no candidates");
  TF_Tensor* other = TF_AllocateTemp(ctx, TF_INT32, &two, 1, nullptr, s);
  TF_SetOutput(ctx, 0, other, s), expect(TF_INVALID_ARGUMENT, "a tensor of another type");
  TF_DeleteTensor(other);
  TF_InputRange_Args range = {TF_InputRange_Args_STRUCT_SIZE, nullptr, 5, 5, s};
  TF_InputRange(ctx, "nothing", &range), expect(TF_INVALID_ARGUMENT, "an unknown argument");
  if (range.start != -1 || range.stop != -1) failures += "a range of nothing; ";
  TF_InputRange(ctx, nullptr, &range), expect(TF_INVALID_ARGUMENT, "an argument NULL");
  TF_InputRange(ctx, "x", nullptr);
  TF_GetStream(ctx, s), expect(TF_FAILED_PRECONDITION, "GetStream");
  TF_Buffer* buffer = TF_NewBuffer();
  TF_GetSerializedConfigProto(ctx, buffer, s), expect(TF_UNIMPLEMENTED, "ConfigProto");
  TF_GetSerializedFunctionDefLibrary(ctx, buffer, s), expect(TF_UNIMPLEMENTED, "FunctionDefLibrary");
  TF_GetSerializedResourceHandleProto(ctx, 0, buffer, s), expect(TF_INVALID_ARGUMENT, "no handle");
  TF_DeleteBuffer(buffer);
  MR_OpKernelContext_OnCancel(ctx, [](void*) {}, nullptr, s), expect(TF_FAILED_PRECONDITION, "not asynchronous");
  MR_OpKernelContext_ParallelFor(ctx, -1, 1, [](void*, int64_t, int64_t) {}, nullptr, s);
  expect(TF_INVALID_ARGUMENT, "a negative range");
  TF_SetStatus(s, TF_ABORTED, failures.c_str());
  if (!failures.empty()) TF_OpKernelContext_Failure(ctx, s);
  TF_SetStatus(s, TF_OK, "");
  TF_OpKernelContext_Failure(ctx, s);  // is none
  TF_OpKernelContext_Failure(ctx, nullptr);
  TF_GetInput(ctx, 0, &t, s);
  TF_SetOutput(ctx, 0, t, s);
  TF_DeleteTensor(t);
}

TEST(KernelContextTest, WrongCallsGiveAStatus) {
  AddOp("Misusing", &Misuse);
  std::vector<float> y;
  EXPECT_EQ(RunOp("Misusing", {3, 4}, &y), "");
  EXPECT_EQ(y, std::vector<float>({3, 4}));
}

TEST(KernelContextTest, FailuresNameTheOperation) {
  AddOp("GivesNothing", [](void*, TF_OpKernelContext*) {});
  AddOp("Throws", [](void*, TF_OpKernelContext*) { throw std::runtime_error("a bad day"); });
  AddOp("ThrowsInt", [](void*, TF_OpKernelContext*) { throw 1; });
  AddOp(
      "CannotBeMade", [](void*, TF_OpKernelContext*) {},
      [](TF_OpKernelConstruction* c) -> void* {
        ScopedStatus s;
        float f;
        TF_OpKernelConstruction_GetAttrFloat(c, "absent", &f, s);
        TF_OpKernelConstruction_Failure(c, s);
        return nullptr;
      });
  AddOp("Defers", [](void*, TF_OpKernelContext* ctx) { TF_IncNumDeferredOps(ctx); });
  AddOp("EndsDeferred", [](void*, TF_OpKernelContext* ctx) { TF_DecNumDeferredOps(ctx); });
  AddOp("Meets", [](void*, TF_OpKernelContext* ctx) { TF_GetRendezvous(ctx); });
  const struct {
    const char *op, *why;
    TF_Code code;
  } cases[] = {
      {"GivesNothing", "output 0", TF_INTERNAL},
      {"Throws", "a bad day", TF_INTERNAL},
      {"ThrowsInt", "unknown exception", TF_INTERNAL},
      {"CannotBeMade", "No attr named 'absent'", TF_NOT_FOUND},
      {"Defers", "TF_IncNumDeferredOps", TF_UNIMPLEMENTED},
      {"EndsDeferred", "TF_DecNumDeferredOps", TF_UNIMPLEMENTED},
      {"Meets", "TF_GetRendezvous", TF_UNIMPLEMENTED}};
  for (const auto& c : cases) {
    TF_Code code = TF_OK;
    const std::string message = RunOp(c.op, {1}, nullptr, &code);
    EXPECT_EQ(code, c.code) << message;
    for (const char* part : {c.op, c.why, "tested"}) EXPECT_TRUE(Contains(message, part)) << c.op << ": " << message;
  }
}

TEST(KernelContextTest, OutputsShareForwardedMemory) {
  AddOp("ForwardsTwice", [](void*, TF_OpKernelContext* ctx) {
    ScopedStatus s;
    const int64_t dims[] = {1, 2};
    const int candidate = 0;
    int forwarded = -2;
    TF_Tensor* out = TF_ForwardInputOrAllocateOutput(ctx, &candidate, 1, 0, dims, 2, &forwarded, s);
    TF_Tensor* x = nullptr;
    TF_GetInput(ctx, 0, &x, s);  // still there, with its own shape, whoever owns the memory
    const bool good =
        TF_NumDims(x) == 1 && TF_Dim(x, 0) == 2 && (forwarded == 0) == (TF_TensorData(x) == TF_TensorData(out));
    float* data = static_cast<float*>(TF_TensorData(out));
    const float* in = static_cast<const float*>(TF_TensorData(x));
    for (int i = 0; i < 2; ++i) data[i] = good ? in[i] * 2 : -1;
    TF_DeleteTensor(out);
    TF_DeleteTensor(x);
  });
  std::vector<float> y;
  EXPECT_EQ(RunOp("ForwardsTwice", {3, 4}, &y), "");
  EXPECT_EQ(y, std::vector<float>({6, 8}));
}

TEST(KernelContextTest, ParallelForCoversTheRange) {
  AddOp("Parallel", [](void*, TF_OpKernelContext* ctx) {
    ScopedStatus s;
    TF_Tensor* x = nullptr;
    TF_GetInput(ctx, 0, &x, s);
    const int64_t n = TF_Dim(x, 0);
    TF_Tensor* out = TF_AllocateOutput(ctx, 0, TF_FLOAT, &n, 1, TF_TensorByteSize(x), s);
    MR_OpKernelContext_ParallelFor(
        ctx, n, 1000,
        [](void* data, int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) static_cast<float*>(data)[i] = static_cast<float>(i);
        },
        TF_TensorData(out), s);
    if (TF_GetCode(s) != TF_OK || MR_OpKernelContext_IsCancelled(ctx)) TF_OpKernelContext_Failure(ctx, s);
    TF_DeleteTensor(out);
    TF_DeleteTensor(x);
  });
  std::vector<float> y;
  EXPECT_EQ(RunOp("Parallel", std::vector<float>(1000), &y), "");
  ASSERT_EQ(y.size(), 1000u);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], static_cast<float>(i));
}

TEST(KernelContextTest, WhatAKernelWritesIsChecked) {
  ScopedStatus s;
  const auto add = [&](const char* name, const char* output, Compute compute) {
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
    TF_OpDefinitionBuilderAddInput(op, "x: float");
    TF_OpDefinitionBuilderAddOutput(op, output);
    TF_RegisterOpDefinition(op, s);
    ASSERT_TF_OK(s);
    TF_RegisterKernelBuilder(name, TF_NewKernelBuilder(name, "CPU", nullptr, compute, nullptr), s);
    ASSERT_TF_OK(s);
  };
  add("StrangeBools", "y: bool", [](void*, TF_OpKernelContext* ctx) {
    ScopedStatus status;
    const int64_t n = 4;
    TF_Tensor* out = TF_AllocateOutput(ctx, 0, TF_BOOL, &n, 1, 4, status);
    std::memcpy(TF_TensorData(out), "\x00\x01\x07\xff", 4);
    TF_DeleteTensor(out);
  });
  add("BrokenStrings", "y: string", [](void*, TF_OpKernelContext* ctx) {
    ScopedStatus status;
    TF_Tensor* out = TF_AllocateOutput(ctx, 0, TF_STRING, nullptr, 0, sizeof(TF_TString), status);
    auto* string = static_cast<TF_TString*>(TF_TensorData(out));
    string->u.view.size = (size_t{1} << 40) << 2 | TF_TSTR_VIEW;
    string->u.view.ptr = nullptr;
    TF_DeleteTensor(out);
  });
  TestGraph graph;
  TF_Operation* in = graph.Placeholder("x");
  TF_Operation* bools = graph.Op("StrangeBools", "bools", {in});
  TF_Operation* strings = graph.Op("BrokenStrings", "strings", {in});
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph.g, options, s);
  TF_DeleteSessionOptions(options);
  const TF_Output feed{in, 0};
  TF_Tensor* value = FloatTensor({1}, {1});
  for (TF_Operation* op : {bools, strings}) {
    const TF_Output fetch{op, 0};
    TF_Tensor* out = nullptr;
    TF_SessionRun(session, nullptr, &feed, &value, 1, &fetch, &out, 1, nullptr, 0, nullptr, s);
    if (op == strings) {
      EXPECT_EQ(s.code(), TF_INVALID_ARGUMENT) << s.message();
      EXPECT_EQ(out, nullptr);
    } else {
      ASSERT_TF_OK(s);
      EXPECT_EQ(std::memcmp(TF_TensorData(out), "\x00\x01\x01\x01", 4), 0);
    }
    TF_DeleteTensor(out);
  }
  TF_DeleteTensor(value);
  TF_DeleteSession(session, s);
}

// Attributes that TensorFlow's Python cannot be made to give; the rest is in tests/plugin.
void* ReadRareAttrs(TF_OpKernelConstruction* c) {
  ScopedStatus s;
  std::string failures;
  const auto expect = [&](bool ok, const char* what) {
    if (!ok) failures += std::string(what) + ": " + s.message() + "; ";
  };
  TF_Tensor* t = nullptr;
  TF_OpKernelConstruction_GetAttrTensor(c, "value", &t, s);
  expect(t != nullptr && TF_NumDims(t) == 1 && static_cast<int32_t*>(TF_TensorData(t))[1] == 8, "tensor");
  TF_DeleteTensor(t);
  TF_Tensor* list[3] = {nullptr, nullptr, nullptr};
  TF_OpKernelConstruction_GetAttrTensorList(c, "values", list, 3, s);
  expect(list[0] != nullptr && list[1] != nullptr && list[2] == nullptr, "tensors");
  for (TF_Tensor* each : list) TF_DeleteTensor(each);
  TF_OpKernelConstruction_GetAttrTensorList(c, "values", nullptr, 3, s);
  expect(TF_GetCode(s) == TF_INVALID_ARGUMENT, "tensors into NULL");
  int64_t dims[4] = {0, 0, 0, 0};
  expect(MR_OpKernelConstruction_GetAttrShape(c, "shape", dims, 4, s) == 2 && dims[0] == 2 && dims[1] == -1, "shape");
  expect(MR_OpKernelConstruction_GetAttrShape(c, "value", dims, 4, s) == -1 && TF_GetCode(s) != TF_OK, "no shape");
  for (const char* bytes : {"function", "def"}) {
    TF_Buffer* b =
        *bytes == 'f' ? TF_OpKernelConstruction_GetAttrFunction(c, "f", s) : TF_OpKernelConstruction_GetNodeDef(c, s);
    expect(b != nullptr, bytes);
    if (b == nullptr) continue;
    const std::string text(static_cast<const char*>(b->data), b->length);
    expect(Contains(text, "body") && (*bytes == 'f' || Contains(text, "RareAttrs")), bytes);
    TF_DeleteBuffer(b);
  }
  TF_Bool bools[2] = {7, 7};
  TF_OpKernelConstruction_GetAttrBoolList(c, "bools", bools, 2, s);
  expect(bools[0] == 1 && bools[1] == 0, "bools");
  int32_t small = 0;
  TF_OpKernelConstruction_GetAttrInt32List(c, "large", &small, 1, s);
  expect(TF_GetCode(s) == TF_INVALID_ARGUMENT, "an integer that does not fit");
  TF_OpKernelConstruction_GetAttrInt32List(c, "large", &small, -1, s);
  expect(TF_GetCode(s) == TF_INVALID_ARGUMENT, "a negative count");
  int32_t size = 0, total = 0;
  TF_OpKernelConstruction_GetAttrSize(c, "shape", &size, &total, s);
  expect(size == -1 && total == 2, "the size of a shape");
  TF_OpKernelConstruction_GetAttrSize(c, "nothing", &size, &total, s);
  expect(size == -1 && total == -1 && TF_GetCode(s) == TF_INVALID_ARGUMENT, "the size of nothing");
  TF_SetStatus(s, failures.empty() ? TF_OK : TF_ABORTED, failures.c_str());
  TF_OpKernelConstruction_Failure(c, s);
  return nullptr;
}

TEST(KernelConstructionTest, RareAttributes) {
  AddOp(
      "RareAttrs",
      [](void*, TF_OpKernelContext* ctx) {
        ScopedStatus s;
        TF_Tensor* x = nullptr;
        TF_GetInput(ctx, 0, &x, s);
        TF_SetOutput(ctx, 0, x, s);
        TF_DeleteTensor(x);
      },
      &ReadRareAttrs,
      [](TF_OpDefinitionBuilder* b) {
        for (const char* attr :
             {"value: tensor = { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 7 int_val: 8 }",
              "values: list(tensor) = [{ dtype: DT_INT32 tensor_shape { } int_val: 7 }, { dtype: DT_FLOAT tensor_shape "
              "{ } }]",
              "shape: shape = { dim { size: 2 } dim { size: -1 } }", "f: func = { name: 'body' }",
              "bools: list(bool) = [true, false]", "large: list(int) = [5000000000]"}) {
          TF_OpDefinitionBuilderAddAttr(b, attr);
        }
      });
  EXPECT_EQ(RunOp("RareAttrs", {1}), "");
  ScopedStatus s;
  TF_KernelBuilder* host = TF_NewKernelBuilder("RareAttrs", "CPU", nullptr, [](void*, TF_OpKernelContext*) {}, nullptr);
  TF_KernelBuilder_HostMemory(host, "no_such_argument");
  TF_KernelBuilder_Priority(host, 1);
  TF_RegisterKernelBuilder("host", host, s);
  ASSERT_TF_OK(s);
  EXPECT_TRUE(Contains(RunOp("RareAttrs", {1}), "HostMemory args 'no_such_argument' not found"));
}

// ---- Asynchronous kernels

std::atomic<int> cancelled_calls{0};

void AddAsyncOp(const char* name, void (*compute)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*)) {
  ScopedStatus s;
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  TF_OpDefinitionBuilderAddInput(op, "x: float");
  TF_OpDefinitionBuilderAddOutput(op, "y: float");
  TF_OpDefinitionBuilderSetIsStateful(op, true);
  TF_RegisterOpDefinition(op, s);
  ASSERT_TF_OK(s);
  TF_RegisterKernelBuilder(name, TF_NewAsyncKernelBuilder(name, "CPU", nullptr, compute, nullptr), s);
  ASSERT_TF_OK(s);
}

void PassOn(TF_OpKernelContext* ctx) {
  ScopedStatus s;
  TF_Tensor* x = nullptr;
  TF_GetInput(ctx, 0, &x, s);
  TF_SetOutput(ctx, 0, x, s);
  TF_DeleteTensor(x);
}

TEST(AsyncKernelTest, DoneMayBeRunHereOrThereAndTwice) {
  AddAsyncOp("DoneHere", [](void*, TF_OpKernelContext* ctx, TF_AsyncOpKernelDoneCallback* done) {
    PassOn(ctx);
    TF_RunAsyncOpKernelDoneCallback(done);
    TF_RunAsyncOpKernelDoneCallback(done);
  });
  AddAsyncOp("DoneThere", [](void*, TF_OpKernelContext* ctx, TF_AsyncOpKernelDoneCallback* done) {
    std::thread([ctx, done] {
      PassOn(ctx);
      TF_RunAsyncOpKernelDoneCallback(done);
      TF_RunAsyncOpKernelDoneCallback(done);
    }).detach();
  });
  AddAsyncOp("ThrowsBefore", [](void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*) {
    throw std::runtime_error("not today");
  });
  for (const char* op : {"DoneHere", "DoneThere"}) {
    for (int i = 0; i < 20; ++i) {
      std::vector<float> y;
      EXPECT_EQ(RunOp(op, {1, 2, 3}, &y), "") << op;
      EXPECT_EQ(y, std::vector<float>({1, 2, 3})) << op;
    }
  }
  EXPECT_TRUE(Contains(RunOp("ThrowsBefore", {1}), "not today"));
  TF_RunAsyncOpKernelDoneCallback(nullptr);
}

struct Waiting {
  TF_OpKernelContext* ctx;
  TF_AsyncOpKernelDoneCallback* done;
};

TEST(AsyncKernelTest, ACancelledStepEndsItsKernels) {
  AddAsyncOp("WaitsForever", [](void*, TF_OpKernelContext* ctx, TF_AsyncOpKernelDoneCallback* done) {
    ScopedStatus s;
    MR_OpKernelContext_OnCancel(
        ctx,
        [](void* data) {
          auto* waiting = static_cast<Waiting*>(data);
          ScopedStatus why;
          TF_SetStatus(why, TF_CANCELLED, "told to stop");
          TF_OpKernelContext_Failure(waiting->ctx, why);
          TF_RunAsyncOpKernelDoneCallback(waiting->done);
          delete waiting;
          ++cancelled_calls;
        },
        new Waiting{ctx, done}, s);
    if (TF_GetCode(s) == TF_OK) return;
    TF_OpKernelContext_Failure(ctx, s);
    TF_RunAsyncOpKernelDoneCallback(done);
  });
  TestGraph graph;
  TF_Operation* in = graph.Placeholder("x");
  TF_Operation* op = graph.Op("WaitsForever", "waits", {in});
  ScopedStatus s;
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph.g, options, s);
  TF_DeleteSessionOptions(options);
  const TF_Output feed{in, 0}, fetch{op, 0};
  TF_Tensor* value = FloatTensor({1}, {1});
  TF_Tensor* out = nullptr;
  const char timeout[] = "\x10\x32";  // RunOptions: timeout_in_ms 50
  TF_Buffer* run_options = TF_NewBufferFromString(timeout, 2);
  TF_SessionRun(session, run_options, &feed, &value, 1, &fetch, &out, 1, nullptr, 0, nullptr, s);
  EXPECT_EQ(s.code(), TF_DEADLINE_EXCEEDED) << s.message();
  for (int i = 0; i < 1000 && cancelled_calls == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(cancelled_calls, 1);
  TF_DeleteBuffer(run_options);
  TF_DeleteTensor(value);
  TF_DeleteSession(session, s);
}

}  // namespace
}  // namespace millrace::capi
