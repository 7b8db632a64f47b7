// SPDX-License-Identifier: Apache-2.0
// Ops and kernels through the C API: declarations, calls that are wrong, gradients, kernels that wait.
#include <atomic>
#include <chrono>
#include <climits>
#include <functional>
#include <thread>

#include "capi/test_support.h"

namespace millrace::capi {
namespace {

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// An op x -> y of floats with a kernel, and what it does. Names are taken for the life of the process.
using Compute = void (*)(void*, TF_OpKernelContext*);
void AddOp(const char* name, Compute compute, void* (*create)(TF_OpKernelConstruction*) = nullptr,
           const std::function<void(TF_OpDefinitionBuilder*)>& more = nullptr) {
  ScopedStatus s;
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  if (more) more(op);
  TF_OpDefinitionBuilderAddInput(op, "x: float");
  TF_OpDefinitionBuilderAddOutput(op, "y: float");
  TF_RegisterOpDefinition(op, s);
  ASSERT_TF_OK(s);
  TF_RegisterKernelBuilder(name, TF_NewKernelBuilder(name, "CPU", create, compute, nullptr), s);
  ASSERT_TF_OK(s);
}

// Runs one op on a float vector; the message of its failure.
std::string RunOp(const char* name, std::vector<float> x, std::vector<float>* y = nullptr, TF_Code* code = nullptr) {
  TestGraph graph;
  TF_Operation* in = graph.Placeholder("x");
  TF_Operation* op = graph.Op(name, "tested", {in});
  ScopedStatus s;
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph.g, options, s);
  TF_DeleteSessionOptions(options);
  const TF_Output feed{in, 0}, fetch{op, 0};
  TF_Tensor* value = FloatTensor({static_cast<int64_t>(x.size())}, x);
  TF_Tensor* out = nullptr;
  TF_SessionRun(session, nullptr, &feed, &value, 1, &fetch, &out, 1, nullptr, 0, nullptr, s);
  if (code != nullptr) *code = s.code();
  std::string message = s.message();
  if (out != nullptr && y != nullptr) *y = Floats(out);
  TF_DeleteTensor(out);
  TF_DeleteTensor(value);
  TF_DeleteSession(session, s);
  return message;
}

TEST(OpDefinitionTest, TextsThatAreWrongAreRefused) {
  const struct {
    const char *name, *attr, *input, *why;
  } cases[] = {
      {"lower", nullptr, nullptr, "CamelCase"},
      {"", nullptr, nullptr, "CamelCase"},
      {"Bad1", "T", nullptr, "Trouble parsing '<name>:'"},
      {"Bad2", "T: nonsense", nullptr, "Trouble parsing type string"},
      {"Bad3", "T: {float, nonsense}", nullptr, "Unrecognized type string 'nonsense'"},
      {"Bad4", "T: {float, ", nullptr, "Unrecognized"},
      {"Bad5", "n: int >= x", nullptr, "lower limit"},
      {"Bad6", "n: int = 1.5", nullptr, "Extra"},
      {"Bad7", "n: int >= 3 = 2", nullptr, "at least 3"},
      {"Bad8", "s: string = 'open", nullptr, "default value"},
      {"Bad9", "s: {'a','b'} = 'c'", nullptr, "allowed list"},
      {"Bad10", "l: list(int = []", nullptr, "Expected ) to close 'list('"},
      {"Bad11", "t: tensor = { dtype: DT_FLOAT tensor_shape { dim { size: -5 } } }", nullptr, "dim"},
      {"Bad12", "b: bool = maybe", nullptr, "neither true nor false"},
      {"Bad13", nullptr, "x", "Trouble parsing 'name:'"},
      {"Bad14", nullptr, "x: T", "Reference to unknown attr 'T'"},
      {"Bad15", nullptr, "X: float", "Trouble parsing 'name:'"},
      {"Bad16", "n: int", "x: n", "isn't type or list(type)"},
      {"Bad17", nullptr, "x: Ref(float", "closing ')'"},
      {"Bad18", "n: int", "x: m * float", "unknown attr 'm'"},
      {"Bad19", nullptr, "x: float extra", "Extra 'extra'"},
      {"MatMul", nullptr, nullptr, "Op with name MatMul"},
  };
  for (const auto& c : cases) {
    ScopedStatus s;
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(c.name);
    if (c.attr != nullptr) TF_OpDefinitionBuilderAddAttr(op, c.attr);
    if (c.input != nullptr) TF_OpDefinitionBuilderAddInput(op, c.input);
    TF_RegisterOpDefinition(op, s);
    EXPECT_EQ(s.code(), std::string(c.name) == "MatMul" ? TF_ALREADY_EXISTS : TF_INVALID_ARGUMENT) << c.name;
    EXPECT_TRUE(Contains(s.message(), c.why)) << c.name << ": " << s.message();
  }
  ScopedStatus s;
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("NullText");
  TF_OpDefinitionBuilderAddAttr(op, nullptr);
  TF_RegisterOpDefinition(op, s);
  EXPECT_EQ(s.code(), TF_INVALID_ARGUMENT);
}

TEST(OpDefinitionTest, EveryKindOfDeclaration) {
  ScopedStatus s;
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("AllKinds");
  for (const char* attr :
       {"T: numbertype", "R: realnumbertype = DT_INT8", "Q: quantizedtype = DT_QINT8", "N: int", "Ts: list(type)",
        "names: list({'a', 'b', }) = ['b']", "shape: shape = { dim { size: 2 } dim { size: -1 } }",
        "shapes: list(shape) >= 0 = [{}, { unknown_rank: true }]",
        "value: tensor = { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 7 }", "f: func = { name: 'body' }",
        "text: string = \"a\\nb\"", "x: float = -1.5e-3", "on: bool = false"}) {
    TF_OpDefinitionBuilderAddAttr(op, attr);
  }
  for (const char* input : {"a: T", "list: N * T", "any: Ts", "fixed: int64", "ref: Ref(T)"}) {
    TF_OpDefinitionBuilderAddInput(op, input);
  }
  TF_OpDefinitionBuilderAddOutput(op, "out: Ref(float)");
  TF_OpDefinitionBuilderSetIsCommutative(op, true);
  TF_OpDefinitionBuilderSetIsStateful(op, false);
  TF_OpDefinitionBuilderDeprecated(op, 20, "Use another.");
  MR_OpDefinitionBuilderSetDoc(op, "All that there is.");
  TF_RegisterOpDefinition(op, s);
  ASSERT_TF_OK(s);
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphGetOpDef(graph, "AllKinds", def, s);
  ASSERT_TF_OK(s);
  const std::string bytes(static_cast<const char*>(def->data), def->length);
  for (const char* part : {"AllKinds", "list(string)", "body", "a\nb", "Use another.", "All that there is."}) {
    EXPECT_TRUE(Contains(bytes, part)) << part;
  }
  TF_DeleteBuffer(def);
  TF_DeleteGraph(graph);
}

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
  const struct {
    const char *op, *why;
    TF_Code code;
  } cases[] = {
      {"GivesNothing", "output 0", TF_INTERNAL},
      {"Throws", "a bad day", TF_INTERNAL},
      {"ThrowsInt", "unknown exception", TF_INTERNAL},
      {"CannotBeMade", "No attr named 'absent'", TF_NOT_FOUND},
      {"Defers", "TF_IncNumDeferredOps", TF_UNIMPLEMENTED}};
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

// ---- Gradients

// d(x * x) = 2 * x * dy, by operations of the C API.
void SquareGradient(void*, TF_Graph* graph, const MR_Scope* scope, TF_Operation* oper, const MR_Gradient* dys, int,
                    MR_Gradient* dxs, int, TF_Status* status) {
  const TF_Output x = TF_OperationInput({oper, 0});
  TF_OperationDescription* d = TF_NewOperation(graph, "AddV2", (std::string(scope->name) + "/twice").c_str());
  TF_AddInput(d, x);
  TF_AddInput(d, x);
  TF_Operation* twice = TF_FinishOperation(d, status);
  if (TF_GetCode(status) != TF_OK) return;
  d = TF_NewOperation(graph, "Mul", (std::string(scope->name) + "/mul").c_str());
  TF_AddInput(d, {twice, 0});
  TF_AddInput(d, dys[0].dense);
  dxs[0].dense = {TF_FinishOperation(d, status), 0};
  ScopedStatus own;
  EXPECT_EQ(TF_NewSession(graph, nullptr, own), nullptr);
}

void Square(void*, TF_OpKernelContext* ctx) {
  ScopedStatus s;
  TF_Tensor* x = nullptr;
  TF_GetInput(ctx, 0, &x, s);
  const int64_t n = TF_Dim(x, 0);
  TF_Tensor* out = TF_AllocateOutput(ctx, 0, TF_FLOAT, &n, 1, TF_TensorByteSize(x), s);
  for (int64_t i = 0; i < n; ++i) {
    const float v = static_cast<const float*>(TF_TensorData(x))[i];
    static_cast<float*>(TF_TensorData(out))[i] = v * v;
  }
  TF_DeleteTensor(out);
  TF_DeleteTensor(x);
}

TEST(OpGradientTest, TheFunctionBuildsIt) {
  AddOp("OwnSquare", &Square, nullptr,
        [](TF_OpDefinitionBuilder* b) { MR_OpDefinitionBuilderSetGradient(b, &SquareGradient, nullptr); });
  AddOp("Opaque", &Square);
  AddOp("Blocking", &Square, nullptr,
        [](TF_OpDefinitionBuilder* b) { MR_OpDefinitionBuilderSetNotDifferentiable(b, "it counts"); });
  AddOp("BadGradient", &Square, nullptr, [](TF_OpDefinitionBuilder* b) {
    MR_OpDefinitionBuilderSetGradient(
        b,
        [](void*, TF_Graph*, const MR_Scope*, TF_Operation*, const MR_Gradient*, int, MR_Gradient* dxs, int,
           TF_Status*) {
          dxs[0].dense.index = 7;
          throw std::runtime_error("lost the thread");
        },
        nullptr);
  });
  TestGraph graph;
  TF_Operation* in = graph.Placeholder("x");
  TF_Operation* y = graph.Op("OwnSquare", "square", {graph.Op("OwnSquare", "inner", {in})});
  const TF_Output ys{y, 0}, xs{in, 0};
  TF_Output dx{nullptr, 0};
  ScopedStatus s;
  TF_AddGradients(graph.g, const_cast<TF_Output*>(&ys), 1, const_cast<TF_Output*>(&xs), 1, nullptr, s, &dx);
  ASSERT_TF_OK(s);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph.g, options, s);
  TF_DeleteSessionOptions(options);
  TF_Tensor* value = FloatTensor({2}, {3, -2});
  TF_Tensor* out = nullptr;
  TF_SessionRun(session, nullptr, &xs, &value, 1, &dx, &out, 1, nullptr, 0, nullptr, s);
  ASSERT_TF_OK(s);
  EXPECT_EQ(Floats(out), std::vector<float>({108, -32}));  // 4 x^3
  TF_DeleteTensor(out);
  TF_DeleteTensor(value);
  TF_DeleteSession(session, s);

  TF_Output none{graph.Op("Opaque", "opaque", {in}), 0};
  TF_AddGradients(graph.g, &none, 1, const_cast<TF_Output*>(&xs), 1, nullptr, s, &dx);
  EXPECT_NE(s.code(), TF_OK);
  EXPECT_TRUE(Contains(s.message(), "Opaque")) << s.message();
  TF_Output bad{graph.Op("BadGradient", "bad", {in}), 0};
  TF_AddGradients(graph.g, &bad, 1, const_cast<TF_Output*>(&xs), 1, nullptr, s, &dx);
  EXPECT_TRUE(Contains(s.message(), "lost the thread")) << s.message();
  EXPECT_TRUE(Contains(s.message(), "bad")) << s.message();
}

// ---- Shape functions

TEST(ShapeFunctionTest, WrongCallsGiveAStatus) {
  static std::string failures;
  failures.clear();
  AddOp(
      "MisusesShapes", [](void*, TF_OpKernelContext*) {}, nullptr,
      [](TF_OpDefinitionBuilder* b) {
        TF_OpDefinitionBuilderAddAttr(b, "n: int = 5");
        TF_OpDefinitionBuilderSetShapeInferenceFunction(b, [](TF_ShapeInferenceContext* ctx, TF_Status* result) {
          ScopedStatus s;
          const auto expect = [&](TF_Code code, const char* what) {
            if (s.code() != code) failures += std::string(what) + ": " + s.message() + "; ";
          };
          TF_ShapeHandle* h = TF_NewShapeHandle();
          TF_ShapeHandle* out = TF_NewShapeHandle();
          TF_DimensionHandle* d = TF_NewDimensionHandle();
          if (TF_ShapeInferenceContextRankKnown(ctx, h) || TF_ShapeInferenceContextRank(ctx, h) != -1)
            failures += "a rank; ";
          for (int i : {-1, 1, INT_MAX}) {
            TF_ShapeInferenceContextGetInput(ctx, i, h, s), expect(TF_INVALID_ARGUMENT, "GetInput");
            TF_ShapeInferenceContextSetOutput(ctx, i, h, s), expect(TF_INVALID_ARGUMENT, "SetOutput");
            MR_ShapeInferenceContextInputValue(ctx, i, s), expect(TF_INVALID_ARGUMENT, "InputValue");
          }
          TF_ShapeInferenceContextGetInput(ctx, 0, nullptr, s), expect(TF_INVALID_ARGUMENT, "into NULL");
          const int64_t dims[] = {2, -1, 4}, negative = -2, huge[] = {INT64_MAX, INT64_MAX};
          MR_ShapeInferenceContextMakeShape(ctx, dims, 3, h, s), expect(TF_OK, "MakeShape");
          MR_ShapeInferenceContextMakeShape(ctx, &negative, 1, out, s), expect(TF_INVALID_ARGUMENT, "a negative dim");
          MR_ShapeInferenceContextMakeShape(ctx, huge, 2, out, s), expect(TF_INVALID_ARGUMENT, "huge dims");
          for (int64_t rank : {int64_t{2}, int64_t{-1}, INT64_MAX}) {
            TF_ShapeInferenceContextWithRank(ctx, h, rank, out, s), expect(TF_INVALID_ARGUMENT, "WithRank");
          }
          TF_ShapeInferenceContextWithRankAtLeast(ctx, h, 4, out, s), expect(TF_INVALID_ARGUMENT, "AtLeast");
          TF_ShapeInferenceContextWithRankAtMost(ctx, h, 2, out, s), expect(TF_INVALID_ARGUMENT, "AtMost");
          TF_ShapeInferenceContextSubshape(ctx, h, 2, 1, out, s), expect(TF_INVALID_ARGUMENT, "Subshape");
          TF_ShapeInferenceContextSubshape(ctx, h, INT64_MIN, 1, out, s), expect(TF_INVALID_ARGUMENT, "Subshape from");
          TF_ShapeInferenceContextSubshape(ctx, h, 1, INT64_MAX, out, s), expect(TF_OK, "Subshape to the end");
          if (TF_ShapeInferenceContextRank(ctx, out) != 2) failures += "not two dimensions; ";
          for (int64_t i : {INT64_MIN, int64_t{-4}, int64_t{1}, int64_t{3}, INT64_MAX}) {
            TF_ShapeInferenceContextDim(ctx, h, i, d);
            if (TF_DimensionHandleValueKnown(d) || TF_DimensionHandleValue(d) != -1) failures += "a dimension; ";
          }
          TF_ShapeInferenceContextDim(ctx, h, -1, d);
          if (TF_DimensionHandleValue(d) != 4) failures += "not 4; ";
          TF_ShapeInferenceContextConcatenateShapes(ctx, h, nullptr, out, s),
              expect(TF_INVALID_ARGUMENT, "Concatenate");
          for (int i = 0; i < 9; ++i) TF_ShapeInferenceContextConcatenateShapes(ctx, h, h, h, s);
          expect(TF_INVALID_ARGUMENT, "a rank without end");
          TF_DataType type = TF_FLOAT;
          TF_ShapeInferenceContext_GetAttrType(ctx, "T", &type, s), expect(TF_INVALID_ARGUMENT, "no attribute");
          int64_t n = 0;
          MR_ShapeInferenceContextGetAttrInt(ctx, "n", &n, s), expect(TF_OK, "GetAttrInt");
          TF_ShapeHandle* vector = TF_ShapeInferenceContextVectorFromSize(ctx, SIZE_MAX);
          TF_ShapeInferenceContextDim(ctx, vector, 0, d);
          if (TF_DimensionHandleValueKnown(d)) failures += "a size above all; ";
          TF_DeleteShapeHandle(vector);
          vector = TF_ShapeInferenceContextVectorFromSize(ctx, static_cast<size_t>(n));
          TF_ShapeInferenceContextSetOutput(ctx, 0, vector, s), expect(TF_OK, "SetOutput");
          for (TF_ShapeHandle* each : {h, out, vector}) TF_DeleteShapeHandle(each);
          TF_DeleteDimensionHandle(d);
          TF_SetStatus(result, TF_OK, "");
        });
      });
  TestGraph graph;
  TF_Operation* op = graph.Op("MisusesShapes", "m", {graph.Placeholder("x")});
  EXPECT_EQ(failures, "");
  ScopedStatus s;
  int64_t dim = 0;
  TF_GraphGetTensorShape(graph.g, {op, 0}, &dim, 1, s);
  EXPECT_TF_OK(s);
  EXPECT_EQ(dim, 5);
}

}  // namespace
}  // namespace millrace::capi
