// SPDX-License-Identifier: Apache-2.0
// Codes, names and texts that TensorFlow's own tests of the C API, and its bindings, read.
#include "capi/test_support.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/kernels.h"
#include "wire/graph.h"

namespace millrace::capi {
namespace {

TF_Code FinishCode(TF_Graph* g, const char* op, const char* name, ScopedStatus& s) {
  TF_OperationDescription* d = TF_NewOperation(g, op, name);
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  return TF_FinishOperation(d, s), s.code();
}

wire::GraphDef DefOf(TF_Graph* g) {
  ScopedStatus s;
  TF_Buffer* bytes = TF_NewBuffer();
  TF_GraphToGraphDef(g, bytes, s);
  EXPECT_TF_OK(s.s);
  wire::GraphDef def;
  EXPECT_TRUE(wire::Decode(std::string(static_cast<const char*>(bytes->data), bytes->length), &def).ok());
  TF_DeleteBuffer(bytes);
  return def;
}

TEST(AnswersTest, NodesAreNamedAsTheProgramWants) {
  TestGraph t;
  ScopedStatus s;
  for (const char* good : {"const/0/[1 2 3 4]", "list(float) empty", "a\\b", "-a", "_a"}) {
    EXPECT_EQ(FinishCode(t.g, "Placeholder", good, s), TF_OK) << good << ": " << s.message();
  }
  for (const char* bad : {"", "^a", "a:0", "a;b", "tab\t", "\xc3\xa4", "_SOURCE", "_a"}) {
    EXPECT_EQ(FinishCode(t.g, "Placeholder", bad, s), TF_INVALID_ARGUMENT) << bad;
  }
  TF_Operation* x = TF_GraphOperationByName(t.g, "list(float) empty");
  TF_Operation* y = t.Op("Neg", "-(list)", {x});
  TF_Session* session = TF_NewSession(t.g, nullptr, s);
  const TF_Output in = {x, 0}, out = {y, 0};
  TF_Tensor *value = FloatTensor({1}, {3}), *result = nullptr;
  TF_SessionRun(session, nullptr, &in, &value, 1, &out, &result, 1, nullptr, 0, nullptr, s);
  ASSERT_TF_OK(s.s);
  EXPECT_EQ(Floats(result), std::vector<float>{-3});
  TF_DeleteTensor(value);
  TF_DeleteTensor(result);
  TF_DeleteSession(session, s);
}

TEST(AnswersTest, WhatIsNotRegistered) {
  TestGraph t;
  ScopedStatus s;
  EXPECT_EQ(FinishCode(t.g, "MyTest", "m", s), TF_INVALID_ARGUMENT);
  EXPECT_EQ(s.message().rfind("Op type not registered 'MyTest' in binary", 0), 0u) << s.message();
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphGetOpDef(t.g, "MyTest", def, s);
  EXPECT_EQ(s.code(), TF_NOT_FOUND);
  EXPECT_EQ(s.message().rfind("Op type not registered 'MyTest' in binary", 0), 0u) << s.message();
  TF_DeleteBuffer(def);
  EXPECT_EQ(TF_OpIsStateful("RandomUniform", s), 1);
  EXPECT_EQ(TF_OpIsStateful("Add", s), 0);
  EXPECT_EQ(TF_OpIsStateful("MyTest", s), -1);
}

TEST(AnswersTest, InputsOfAFixedType) {
  TestGraph t;
  ScopedStatus s;
  TF_OperationDescription* d = TF_NewOperation(t.g, "StringToHashBucketFast", "op");
  TF_AddInput(d, {t.Placeholder("x", TF_INT32), 0});
  TF_SetAttrInt(d, "num_buckets", 3);
  EXPECT_EQ(TF_FinishOperation(d, s), nullptr);
  EXPECT_EQ(s.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(s.message().rfind("Input 'input' passed int32 expected string while building NodeDef 'op'", 0), 0u)
      << s.message();
}

TEST(AnswersTest, AnEmptyValueClearsTheColocation) {
  TestGraph t;
  ScopedStatus s;
  TF_Operation* x = t.Placeholder("x");
  TF_OperationDescription* d = TF_NewOperation(t.g, "Neg", "y");
  TF_AddInput(d, {x, 0});
  TF_ColocateWith(d, x);
  TF_SetAttrValueProto(d, "_class", nullptr, 0, s);
  EXPECT_TF_OK(s.s);
  TF_Operation* y = TF_FinishOperation(d, s);
  ASSERT_TF_OK(s.s);
  TF_OperationGetAttrMetadata(y, "_class", s);
  EXPECT_EQ(s.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(s.message(), "Operation 'y' has no attr named '_class'.");
}

TEST(AnswersTest, OneElementIsAValueOfItsOwn) {
  TestGraph t;
  ScopedStatus s;
  TF_OperationDescription* d = TF_NewOperation(t.g, "Const", "three");
  TF_Tensor* three = TF_AllocateTensor(TF_INT32, nullptr, 0, 4);
  *static_cast<int32_t*>(TF_TensorData(three)) = 3;
  TF_SetAttrTensor(d, "value", three, s);
  TF_SetAttrType(d, "dtype", TF_INT32);
  t.Finish(d);
  TF_DeleteTensor(three);
  const wire::GraphDef def = DefOf(t.g);
  const wire::TensorProto& proto = *def.node[0].attr.find("value")->second.tensor;
  EXPECT_EQ(proto.int_val, std::vector<int32_t>{3});
  EXPECT_TRUE(proto.tensor_content.empty());
}

TEST(AnswersTest, GradientsAreNamedAfterTheirOps) {
  TestGraph t;
  ScopedStatus s;
  TF_Operation *a = t.Placeholder("a"), *b = t.Placeholder("b"), *y = t.Op("MatMul", "y", {a, b});
  TF_Output ys[] = {{y, 0}}, xs[] = {{a, 0}, {b, 0}}, dy[2];
  TF_AddGradients(t.g, ys, 1, xs, 2, nullptr, s, dy);
  ASSERT_TF_OK(s.s);
  EXPECT_STREQ(TF_OperationName(dy[0].oper), "gradients/MatMul");
  EXPECT_STREQ(TF_OperationName(dy[1].oper), "gradients/MatMul_1");
  EXPECT_NE(TF_GraphOperationByName(t.g, "gradients/OnesLike"), nullptr);
  TF_AddGradientsWithPrefix(t.g, "gradients/MatMul", ys, 1, xs, 2, nullptr, s, dy);
  EXPECT_EQ(s.code(), TF_INVALID_ARGUMENT) << "the prefix is a node's name";
}

TEST(AnswersTest, IntegersHaveGradients) {
  TestGraph t;
  ScopedStatus s;
  TF_Operation *x = t.Placeholder("x", TF_INT32), *z = t.Placeholder("z", TF_INT32), *y = t.Op("Mul", "y", {x, z});
  TF_Output ys[] = {{y, 0}}, xs[] = {{x, 0}}, dy[1];
  TF_AddGradients(t.g, ys, 1, xs, 1, nullptr, s, dy);
  ASSERT_TF_OK(s.s);
  TF_Session* session = TF_NewSession(t.g, nullptr, s);
  TF_Tensor* values[2];
  for (TF_Tensor*& v : values) {
    v = TF_AllocateTensor(TF_INT32, nullptr, 0, 4);
    *static_cast<int32_t*>(TF_TensorData(v)) = 7;
  }
  const TF_Output feeds[] = {{x, 0}, {z, 0}};
  TF_Tensor* result = nullptr;
  TF_SessionRun(session, nullptr, feeds, values, 2, dy, &result, 1, nullptr, 0, nullptr, s);
  ASSERT_TF_OK(s.s);
  EXPECT_EQ(*static_cast<int32_t*>(TF_TensorData(result)), 7);
  for (TF_Tensor* v : values) TF_DeleteTensor(v);
  TF_DeleteTensor(result);
  TF_DeleteSession(session, s);
}

TEST(AnswersTest, FunctionsHaveTensorFlowsHash) {
  // feed (a Placeholder of int32) -> neg, as c_api_function_test.cc of TensorFlow has it.
  TestGraph t;
  ScopedStatus s;
  TF_Operation *feed = t.Placeholder("feed", TF_INT32), *neg = t.Op("Neg", "neg", {feed});
  const TF_Output in = {feed, 0}, out = {neg, 0};
  TF_Function* f =
      TF_GraphToFunction(t.g, "base", 1, -1, nullptr, 1, &in, 1, &out, nullptr, nullptr, "Return something", s);
  ASSERT_TF_OK(s.s);
  EXPECT_STREQ(TF_FunctionName(f), "base_qaJ8jA8UmGY");
  TF_DeleteFunction(f);
  const TF_Output missing = {neg, 3};
  EXPECT_EQ(TF_GraphToFunction(t.g, "f", 0, -1, nullptr, 1, &in, 1, &missing, nullptr, nullptr, nullptr, s), nullptr);
  EXPECT_EQ(s.code(), TF_OUT_OF_RANGE);
  EXPECT_EQ(s.message(),
            "Node 'neg' (type: 'Neg', num of outputs: 1) does not have output 3\n\tEncountered while "
            "processing output 0 from function 'f'");
}

TEST(AnswersTest, ADeprecatedSessionWantsAGraph) {
  ScopedStatus s;
  TF_DeprecatedSession* session = TF_NewDeprecatedSession(nullptr, s);
  TF_Run(session, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr, 0, nullptr, s);
  EXPECT_EQ(s.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(s.message(), "Session was not created with a graph before Run()!");
  TF_DeleteDeprecatedSession(session, s);
}

TEST(AnswersTest, WhatIsNotThereSaysSo) {
  ScopedStatus s;
  const auto expect = [&](const char* function) {
    EXPECT_EQ(s.code(), TF_UNIMPLEMENTED) << function;
    EXPECT_EQ(s.message().rfind(function, 0), 0u) << s.message();
    TF_SetStatus(s, TF_OK, "");
  };
#define EXPECT_UNIMPLEMENTED(function, ...) function(__VA_ARGS__, s), expect(#function)
  EXPECT_UNIMPLEMENTED(TF_AddWhileInputHack, nullptr, {nullptr, 0}, nullptr);
  EXPECT_UNIMPLEMENTED(TF_SetHandleShapeAndType, nullptr, {nullptr, 0}, nullptr, 0);
  EXPECT_UNIMPLEMENTED(TF_GraphImportGraphDefWithResultsNoSerialization, nullptr, nullptr, nullptr);
  EXPECT_UNIMPLEMENTED(TF_DequeueNamedTensor, nullptr, 0);
  EXPECT_UNIMPLEMENTED(TF_EnqueueNamedTensor, nullptr, 0, nullptr);
  EXPECT_UNIMPLEMENTED(TF_LoadPluggableDeviceLibrary, "device.so");
  EXPECT_UNIMPLEMENTED(TF_GraphRemoveFunction, nullptr, "f");
  EXPECT_UNIMPLEMENTED(TF_GetSerializedFunctionDefLibrary, nullptr, nullptr);
  EXPECT_UNIMPLEMENTED(TF_GetSerializedConfigProto, nullptr, nullptr);
  EXPECT_UNIMPLEMENTED(TFE_ContextSetServerDef, nullptr, 0, nullptr, 0);
  EXPECT_UNIMPLEMENTED(TFE_ContextRemoveFunction, nullptr, "f");
  EXPECT_UNIMPLEMENTED(TFE_ContextExportRunMetadata, nullptr, nullptr);
  EXPECT_UNIMPLEMENTED(TFE_GetServerDef, "");
  EXPECT_UNIMPLEMENTED(TFE_EnableCollectiveOps, nullptr, nullptr, 0);
#undef EXPECT_UNIMPLEMENTED
}

TEST(AnswersTest, TypesThatAreKnownByNameOnly) {
  TestGraph t;
  ScopedStatus s;
  for (int type = TF_FLOAT8_E5M2; type <= TF_FLOAT4_E2M1FN; ++type) {
    const auto dtype = static_cast<TF_DataType>(type);
    EXPECT_EQ(TF_DataTypeSize(dtype), 0u);
    EXPECT_EQ(TF_AllocateTensor(dtype, nullptr, 0, 8), nullptr);
    TF_OperationDescription* d = TF_NewOperation(t.g, "Placeholder", "x");
    TF_SetAttrType(d, "dtype", dtype);
    EXPECT_EQ(TF_FinishOperation(d, s), nullptr);
    EXPECT_EQ(s.code(), TF_UNIMPLEMENTED) << s.message();
  }
  TF_OperationDescription* d = TF_NewOperation(t.g, "Placeholder", "x");
  TF_SetAttrType(d, "dtype", TF_INT4);
  TF_FinishOperation(d, s);
  EXPECT_NE(s.message().find("data type int4 is not provided"), std::string::npos) << s.message();
}

// The value of a constant that was made of `value`, of which `change` made something else afterwards.
template <typename Change>
TF_Tensor* ConstantOf(TestGraph& t, TF_Tensor* value, Change&& change) {
  TF_OperationDescription* d = TF_NewOperation(t.g, "Const", "held");
  TF_SetAttrType(d, "dtype", TF_TensorType(value));
  TF_SetAttrTensor(d, "value", value, t.status);
  EXPECT_TF_OK(t.status.s);
  change();
  const TF_Output held = {t.Finish(d), 0};
  TF_Session* session = TF_NewSession(t.g, nullptr, t.status);
  TF_Tensor* result = nullptr;
  TF_SessionRun(session, nullptr, nullptr, nullptr, 0, &held, &result, 1, nullptr, 0, nullptr, t.status);
  EXPECT_TF_OK(t.status.s);
  TF_DeleteSession(session, t.status);
  TF_DeleteTensor(value);
  return result;
}

TEST(AnswersTest, AttributesAreCopies) {
  TestGraph numbers, strings;
  TF_Tensor* value = FloatTensor({2}, {1, 2});
  TF_Tensor* held = ConstantOf(numbers, value, [&] { static_cast<float*>(TF_TensorData(value))[0] = 5; });
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(Floats(held), (std::vector<float>{1, 2}));
  TF_DeleteTensor(held);
  std::string text(100, 'a');
  value = TF_AllocateTensor(TF_STRING, nullptr, 0, sizeof(TF_TString));
  TF_StringAssignView(static_cast<TF_TString*>(TF_TensorData(value)), text.data(), text.size());
  held = ConstantOf(strings, value, [&] { text.assign(100, 'b'); });
  ASSERT_NE(held, nullptr);
  const auto* s = static_cast<const TF_TString*>(TF_TensorData(held));
  EXPECT_EQ(std::string(TF_StringGetDataPointer(s), TF_StringGetSize(s)), std::string(100, 'a'));
  TF_DeleteTensor(held);
}

TEST(AnswersTest, ProgramsAndCheckpoints) {
  ScopedStatus s;
  EXPECT_EQ(TF_NewCheckpointReader("/none/such", s), nullptr);
  EXPECT_NE(s.code(), TF_OK);
  TF_InitMain(nullptr, nullptr, nullptr);
  TF_Buffer* config = TF_CreateConfig(1, 1, 2);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetConfig(options, config->data, config->length, s);
  EXPECT_TF_OK(s.s);
  TF_Graph* g = TF_NewGraph();
  TF_Session* session = TF_NewSession(g, options, s);
  TF_DeviceList* devices = TF_SessionListDevices(session, s);
  EXPECT_EQ(TF_DeviceListCount(devices), 2);
  TF_DeleteDeviceList(devices);
  TF_DeleteSession(session, s);
  TF_DeleteGraph(g);
  TF_DeleteSessionOptions(options);
  TF_DeleteBuffer(config);
}

}  // namespace
}  // namespace millrace::capi
