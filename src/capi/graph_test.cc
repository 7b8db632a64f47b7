// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "capi/test_support.h"

namespace millrace::capi {
namespace {

std::string Take(TF_Buffer* b) {
  std::string bytes(static_cast<const char*>(b->data), b->length);
  TF_DeleteBuffer(b);
  return bytes;
}

std::string GraphBytes(TF_Graph* g) {
  ScopedStatus status;
  TF_Buffer* b = TF_NewBuffer();
  TF_GraphToGraphDef(g, b, status);
  EXPECT_TF_OK(status.s);
  return Take(b);
}

TEST(OperationTest, ReportsWhatIsWrongWhenFinished) {
  TestGraph t;
  TF_Operation* x = t.Placeholder("x");
  const auto fails = [&](TF_OperationDescription* d) {
    ScopedStatus status;
    EXPECT_EQ(TF_FinishOperation(d, status), nullptr);
    EXPECT_NE(status.code(), TF_OK);
    EXPECT_NE(status.message(), "");
    return status.code();
  };
  fails(TF_NewOperation(t.g, "NoSuchOp", "a"));
  fails(TF_NewOperation(t.g, "Neg", "a"));          // no input
  fails(TF_NewOperation(t.g, "Placeholder", "a"));  // no dtype
  TF_OperationDescription* d = TF_NewOperation(t.g, "Neg", "a");
  TF_AddInput(d, {x, 1});
  EXPECT_EQ(fails(d), TF_INVALID_ARGUMENT);
  d = TF_NewOperation(t.g, "Neg", "a");
  TF_AddInput(d, {nullptr, 0});
  EXPECT_EQ(fails(d), TF_INVALID_ARGUMENT);
  d = TF_NewOperation(t.g, "Placeholder", "x");  // the name is taken
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  EXPECT_EQ(fails(d), TF_INVALID_ARGUMENT);
  d = TF_NewOperation(t.g, "Placeholder", "y");
  TF_SetAttrType(d, "dtype", static_cast<TF_DataType>(77));
  EXPECT_EQ(fails(d), TF_INVALID_ARGUMENT);
  d = TF_NewOperation(t.g, "Placeholder", nullptr);
  EXPECT_EQ(fails(d), TF_INVALID_ARGUMENT);
  d = TF_NewOperation(t.g, "Neg", "a");
  TF_AddInputList(d, nullptr, 2);
  EXPECT_EQ(fails(d), TF_INVALID_ARGUMENT);
  size_t pos = 0;
  EXPECT_EQ(TF_GraphNextOperation(t.g, &pos), x);
  EXPECT_EQ(TF_GraphNextOperation(t.g, &pos), nullptr);
}

TEST(OperationTest, ShowsItsConnections) {
  TestGraph t;
  TF_Operation* x = t.Placeholder("x");
  TF_Operation* y = t.Placeholder("y");
  TF_Operation* sum = t.Op("AddV2", "sum", {x, y});
  TF_OperationDescription* d = TF_NewOperation(t.g, "Identity", "after");
  TF_AddInput(d, {x, 0});
  TF_AddControlInput(d, sum);
  TF_ColocateWith(d, y);
  TF_SetDevice(d, "/device:CPU:0");
  TF_Operation* after = t.Finish(d);
  ASSERT_NE(after, nullptr);
  EXPECT_STREQ(TF_OperationName(after), "after");
  EXPECT_STREQ(TF_OperationOpType(after), "Identity");
  EXPECT_STREQ(TF_OperationDevice(after), "/device:CPU:0");
  EXPECT_EQ(TF_GraphOperationByName(t.g, "sum"), sum);
  EXPECT_EQ(TF_GraphOperationByName(t.g, "none"), nullptr);
  EXPECT_EQ(TF_OperationNumInputs(sum), 2);
  EXPECT_EQ(TF_OperationInput({sum, 1}).oper, y);
  EXPECT_EQ(TF_OperationInput({sum, 2}).oper, nullptr);
  EXPECT_EQ(TF_OperationInputType({sum, 0}), TF_FLOAT);
  EXPECT_EQ(TF_OperationInputType({sum, -1}), 0);
  EXPECT_EQ(TF_OperationOutputType({sum, 0}), TF_FLOAT);
  TF_Output inputs[2];
  TF_OperationAllInputs(sum, inputs, 2);
  EXPECT_EQ(inputs[0].oper, x);
  EXPECT_EQ(TF_OperationOutputNumConsumers({x, 0}), 2);
  TF_Input consumers[2] = {};
  EXPECT_EQ(TF_OperationOutputConsumers({x, 0}, consumers, 1), 1);
  EXPECT_EQ(TF_OperationOutputConsumers({x, 0}, consumers, 2), 2);
  EXPECT_EQ(consumers[0].oper, sum);
  TF_Operation* control = nullptr;
  EXPECT_EQ(TF_OperationNumControlInputs(after), 1);
  EXPECT_EQ(TF_OperationGetControlInputs(after, &control, 1), 1);
  EXPECT_EQ(control, sum);
  EXPECT_EQ(TF_OperationNumControlOutputs(sum), 1);
  EXPECT_EQ(TF_OperationGetControlOutputs(sum, &control, 1), 1);
  EXPECT_EQ(control, after);
  ScopedStatus status;
  EXPECT_EQ(TF_OperationInputListLength(sum, "x", status), 1);
  EXPECT_EQ(TF_OperationOutputListLength(sum, "nothing", status), -1);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  const TF_AttrMetadata m = TF_OperationGetAttrMetadata(after, "_class", status);
  ASSERT_TF_OK(status.s);
  EXPECT_EQ(m.is_list, 1);
  EXPECT_EQ(m.list_size, 1);
  EXPECT_EQ(m.type, TF_ATTR_STRING);
  EXPECT_EQ(m.total_size, 6);
  void* value = nullptr;
  size_t length = 0;
  char storage[6];
  TF_OperationGetAttrStringList(after, "_class", &value, &length, 1, storage, sizeof(storage), status);
  ASSERT_TF_OK(status.s);
  EXPECT_EQ(std::string(static_cast<char*>(value), length), "loc:@y");
  TF_OperationGetAttrStringList(after, "_class", &value, &length, 1, storage, 5, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
}

TEST(OperationTest, AttributesRoundTrip) {
  TestGraph t;
  TF_OperationDescription* d = TF_NewOperation(t.g, "NoOp", "n");
  TF_SetAttrString(d, "_s", "text", 4);
  const void* strings[] = {"a", "bcd"};
  const size_t lengths[] = {1, 3};
  TF_SetAttrStringList(d, "_sl", strings, lengths, 2);
  TF_SetAttrInt(d, "_i", -5);
  const int64_t ints[] = {1, 2, 3};
  TF_SetAttrIntList(d, "_il", ints, 3);
  TF_SetAttrFloat(d, "_f", 1.5f);
  const float floats[] = {0.5f};
  TF_SetAttrFloatList(d, "_fl", floats, 1);
  TF_SetAttrBool(d, "_b", 7);
  const unsigned char bools[] = {0, 2};
  TF_SetAttrBoolList(d, "_bl", bools, 2);
  TF_SetAttrType(d, "_t", TF_HALF);
  const TF_DataType types[] = {TF_INT8, TF_STRING};
  TF_SetAttrTypeList(d, "_tl", types, 2);
  const int64_t dims[] = {2, -1};
  TF_SetAttrShape(d, "_sh", dims, 2);
  TF_SetAttrShape(d, "_shu", nullptr, -1);
  const int64_t* shapes[] = {dims, nullptr, dims};
  const int ranks[] = {2, -1, 1};
  TF_SetAttrShapeList(d, "_shl", shapes, ranks, 3);
  TF_Tensor* tensor = FloatTensor({2}, {1, 2});
  TF_SetAttrTensor(d, "_te", tensor, t.status);
  ASSERT_TF_OK(t.status.s);
  TF_SetAttrTensorList(d, "_tel", &tensor, 1, t.status);
  ASSERT_TF_OK(t.status.s);
  TF_DeleteTensor(tensor);
  TF_SetAttrFuncName(d, "_fn", "F", 1);
  TF_Operation* n = t.Finish(d);
  ASSERT_NE(n, nullptr);

  ScopedStatus st;
  const auto expect = [&](const char* name, unsigned char is_list, int64_t size, TF_AttrType type, int64_t total) {
    const TF_AttrMetadata m = TF_OperationGetAttrMetadata(n, name, st);
    ASSERT_TF_OK(st.s);
    EXPECT_EQ(m.is_list, is_list) << name;
    EXPECT_EQ(m.list_size, size) << name;
    EXPECT_EQ(m.type, type) << name;
    EXPECT_EQ(m.total_size, total) << name;
  };
  expect("_s", 0, -1, TF_ATTR_STRING, 4);
  expect("_sl", 1, 2, TF_ATTR_STRING, 4);
  expect("_i", 0, -1, TF_ATTR_INT, -1);
  expect("_shl", 1, 3, TF_ATTR_SHAPE, 3);
  expect("_sh", 0, -1, TF_ATTR_SHAPE, 2);
  expect("_shu", 0, -1, TF_ATTR_SHAPE, -1);
  expect("_te", 0, -1, TF_ATTR_TENSOR, -1);
  expect("_fn", 0, -1, TF_ATTR_FUNC, -1);

  char text[4];
  TF_OperationGetAttrString(n, "_s", text, 4, st);
  EXPECT_EQ(std::string(text, 4), "text");
  int64_t i = 0, il[3] = {};
  TF_OperationGetAttrInt(n, "_i", &i, st);
  EXPECT_EQ(i, -5);
  TF_OperationGetAttrIntList(n, "_il", il, 3, st);
  EXPECT_EQ(il[2], 3);
  float f = 0;
  TF_OperationGetAttrFloat(n, "_f", &f, st);
  EXPECT_EQ(f, 1.5f);
  unsigned char b = 0, bl[2] = {};
  TF_OperationGetAttrBool(n, "_b", &b, st);
  EXPECT_EQ(b, 1);
  TF_OperationGetAttrBoolList(n, "_bl", bl, 2, st);
  EXPECT_EQ(bl[1], 1);
  TF_DataType type, tl[2];
  TF_OperationGetAttrType(n, "_t", &type, st);
  EXPECT_EQ(type, TF_HALF);
  TF_OperationGetAttrTypeList(n, "_tl", tl, 2, st);
  EXPECT_EQ(tl[1], TF_STRING);
  int64_t shape[2] = {};
  TF_OperationGetAttrShape(n, "_sh", shape, 2, st);
  EXPECT_EQ(shape[1], -1);
  int64_t* shape_dims[3];
  int shape_ranks[3];
  int64_t storage[3];
  TF_OperationGetAttrShapeList(n, "_shl", shape_dims, shape_ranks, 3, storage, 3, st);
  ASSERT_TF_OK(st.s);
  EXPECT_EQ(shape_ranks[1], -1);
  EXPECT_EQ(shape_dims[2][0], 2);
  TF_OperationGetAttrShapeList(n, "_shl", shape_dims, shape_ranks, 3, storage, 2, st);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
  TF_Tensor* value = nullptr;
  TF_OperationGetAttrTensor(n, "_te", &value, st);
  ASSERT_TF_OK(st.s);
  EXPECT_EQ(Floats(value), (std::vector<float>{1, 2}));
  TF_DeleteTensor(value);

  TF_OperationGetAttrInt(n, "_s", &i, st);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
  TF_OperationGetAttrInt(n, "_none", &i, st);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_OperationGetNumAttrs(n), 16);
  const int name_length = TF_OperationGetAttrNameLength(n, 0);
  std::string name(static_cast<size_t>(name_length), ' ');
  TF_OperationGetAttrName(n, 0, name.data(), st);
  EXPECT_EQ(name, "_b");

  // The encoded form of one operation's value sets another's.
  TF_Buffer* encoded = TF_NewBuffer();
  TF_OperationGetAttrValueProto(n, "_il", encoded, st);
  ASSERT_TF_OK(st.s);
  d = TF_NewOperation(t.g, "NoOp", "m");
  TF_SetAttrValueProto(d, "_copy", encoded->data, encoded->length, st);
  ASSERT_TF_OK(st.s);
  TF_SetAttrValueProto(d, "_bad", "\xff\xff", 2, st);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
  TF_DeleteBuffer(encoded);
  TF_Operation* m = t.Finish(d);
  TF_OperationGetAttrIntList(m, "_copy", il, 3, st);
  EXPECT_TF_OK(st.s);
}

TEST(GraphTest, ShapesAreRefined) {
  TestGraph t;
  TF_Operation* x = t.Placeholder("x");
  ScopedStatus st;
  EXPECT_EQ(TF_GraphGetTensorNumDims(t.g, {x, 0}, st), -1);
  EXPECT_TF_OK(st.s);
  const int64_t dims[] = {2, -1}, other[] = {3, -1};
  TF_GraphSetTensorShape(t.g, {x, 0}, dims, 2, st);
  EXPECT_TF_OK(st.s);
  TF_GraphSetTensorShape(t.g, {x, 0}, nullptr, -1, st);
  EXPECT_TF_OK(st.s);
  TF_GraphSetTensorShape(t.g, {x, 0}, other, 2, st);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_GraphGetTensorNumDims(t.g, {x, 0}, st), 2);
  int64_t got[2] = {};
  TF_GraphGetTensorShape(t.g, {x, 0}, got, 2, st);
  EXPECT_TF_OK(st.s);
  EXPECT_EQ(got[0], 2);
  EXPECT_EQ(got[1], -1);
  TF_GraphGetTensorShape(t.g, {x, 0}, got, 1, st);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_GraphGetTensorNumDims(t.g, {x, 5}, st), -1);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
}

TEST(GraphTest, EvaluatesConstants) {
  TestGraph t;
  TF_OperationDescription* d = TF_NewOperation(t.g, "Const", "c");
  TF_Tensor* value = FloatTensor({2}, {3, 4});
  TF_SetAttrTensor(d, "value", value, t.status);
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_DeleteTensor(value);
  TF_Operation* c = t.Finish(d);
  TF_Operation* x = t.Placeholder("x");
  TF_Tensor* result = nullptr;
  ScopedStatus st;
  EXPECT_EQ(TF_TryEvaluateConstant(t.g, {c, 0}, &result, st), 1);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(Floats(result), (std::vector<float>{3, 4}));
  TF_DeleteTensor(result);
  EXPECT_EQ(TF_TryEvaluateConstant(t.g, {x, 0}, &result, st), 0);
  EXPECT_EQ(result, nullptr);
  EXPECT_TF_OK(st.s);
}

TEST(ImportTest, MapsPrefixesAndReturns) {
  TestGraph t;
  TF_Operation* x = t.Placeholder("x");
  t.Op("Neg", "neg", {x});
  const std::string bytes = GraphBytes(t.g);

  TestGraph u;
  TF_Operation* z = u.Placeholder("z");
  TF_Buffer* def = TF_NewBufferFromString(bytes.data(), bytes.size());
  TF_ImportGraphDefOptions* opts = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(opts, "p");
  TF_ImportGraphDefOptionsAddInputMapping(opts, "x", 0, {z, 0});
  TF_ImportGraphDefOptionsAddInputMapping(opts, "nowhere", 2, {z, 0});
  TF_ImportGraphDefOptionsAddReturnOutput(opts, "neg", 0);
  TF_ImportGraphDefOptionsAddReturnOperation(opts, "neg");
  EXPECT_EQ(TF_ImportGraphDefOptionsNumReturnOutputs(opts), 1);
  EXPECT_EQ(TF_ImportGraphDefOptionsNumReturnOperations(opts), 1);
  ScopedStatus st;
  TF_ImportGraphDefResults* results = TF_GraphImportGraphDefWithResults(u.g, def, opts, st);
  ASSERT_TF_OK(st.s);
  int count = 0;
  TF_Output* outputs = nullptr;
  TF_ImportGraphDefResultsReturnOutputs(results, &count, &outputs);
  ASSERT_EQ(count, 1);
  EXPECT_STREQ(TF_OperationName(outputs[0].oper), "p/neg");
  EXPECT_EQ(TF_OperationInput({outputs[0].oper, 0}).oper, z);
  TF_Operation** opers = nullptr;
  TF_ImportGraphDefResultsReturnOperations(results, &count, &opers);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(opers[0], outputs[0].oper);
  const char** names = nullptr;
  int* indexes = nullptr;
  TF_ImportGraphDefResultsMissingUnusedInputMappings(results, &count, &names, &indexes);
  ASSERT_EQ(count, 1);
  EXPECT_STREQ(names[0], "nowhere");
  EXPECT_EQ(indexes[0], 2);
  TF_DeleteImportGraphDefResults(results);

  TF_GraphImportGraphDef(u.g, def, opts, st);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT) << "the names are taken";
  TF_Output one;
  TF_GraphImportGraphDefWithReturnOutputs(u.g, def, opts, &one, 2, st);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
  TF_DeleteImportGraphDefOptions(opts);
  TF_DeleteBuffer(def);
  def = TF_NewBufferFromString("\x0a\xff", 2);
  TF_GraphImportGraphDef(u.g, def, nullptr, st);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
  TF_DeleteBuffer(def);
}

TEST(FunctionTest, IsMadeOfAGraph) {
  TestGraph t;
  TF_Operation* x = t.Placeholder("A/x");
  TF_Operation* y = t.Placeholder("a_x");
  TF_Operation* sum = t.Op("AddV2", "Sum/a", {x, y});
  const TF_Output inputs[] = {{x, 0}, {y, 0}}, outputs[] = {{sum, 0}, {x, 0}};
  ScopedStatus st;
  TF_Function* f = TF_GraphToFunction(t.g, "F", 0, -1, nullptr, 2, inputs, 2, outputs, nullptr, nullptr, "d", st);
  ASSERT_TF_OK(st.s);
  EXPECT_STREQ(TF_FunctionName(f), "F");
  TF_Buffer* b = TF_NewBuffer();
  TF_FunctionToFunctionDef(f, b, st);
  const std::string bytes = Take(b);
  TF_Function* again = TF_FunctionImportFunctionDef(bytes.data(), bytes.size(), st);
  ASSERT_TF_OK(st.s);
  TestGraph u;
  TF_GraphCopyFunction(u.g, f, nullptr, st);
  EXPECT_TF_OK(st.s);
  TF_GraphCopyFunction(u.g, again, nullptr, st);
  EXPECT_TF_OK(st.s) << "the same function may come twice";
  EXPECT_EQ(TF_GraphNumFunctions(u.g), 1);
  TF_Function* got[2] = {};
  EXPECT_EQ(TF_GraphGetFunctions(u.g, got, 2, st), 1);
  TF_DeleteFunction(got[0]);
  b = TF_NewBuffer();
  EXPECT_STREQ(MR_OpInputName("Reshape", 1), "shape");
  EXPECT_STREQ(MR_OpInputName("ClipByGlobalNorm", 1), "clip_norm");
  for (const int index : {-1, 2}) EXPECT_EQ(MR_OpInputName("Reshape", index), nullptr);
  EXPECT_EQ(MR_OpInputName("Nothing", 0), nullptr);
  TF_GraphGetOpDef(u.g, "F", b, st);
  EXPECT_TF_OK(st.s);
  const std::string op_def = Take(b);
  for (const char* name : {"a_x_0", "a_x_1", "sum_a"}) EXPECT_NE(op_def.find(name), std::string::npos) << name;
  TF_DeleteFunction(again);
  TF_DeleteFunction(f);

  const TF_Operation* body[] = {sum};
  f = TF_GraphToFunction(t.g, "G", 1, 1, body, 1, inputs, 1, outputs, nullptr, nullptr, nullptr, st);
  EXPECT_EQ(f, nullptr);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT) << "input y is not available";
  const TF_Output twice[] = {{x, 0}, {x, 0}};
  f = TF_GraphToFunction(t.g, "G", 0, -1, nullptr, 2, twice, 0, nullptr, nullptr, nullptr, nullptr, st);
  EXPECT_EQ(f, nullptr);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
  const char* const names[] = {"same", "same"};
  f = TF_GraphToFunction(t.g, "G", 0, -1, nullptr, 2, inputs, 2, outputs, names, nullptr, nullptr, st);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
  const TF_Output outside[] = {{sum, 7}};
  f = TF_GraphToFunction(t.g, "G", 0, -1, nullptr, 2, inputs, 1, outside, nullptr, nullptr, nullptr, st);
  EXPECT_EQ(st.code(), TF_OUT_OF_RANGE);
  EXPECT_EQ(TF_FunctionImportFunctionDef("", 0, st), nullptr);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
}

TEST(RegistryTest, ListsOpsAndKernels) {
  TF_Buffer* ops = TF_GetAllOpList();
  ASSERT_NE(ops, nullptr);
  EXPECT_NE(Take(ops).find("Placeholder"), std::string::npos);
  ScopedStatus st;
  TF_Buffer* kernels = TF_GetAllRegisteredKernels(st);
  ASSERT_TF_OK(st.s);
  EXPECT_GT(Take(kernels).size(), 0u);
  TF_Buffer* none = TF_GetRegisteredKernelsForOp("NoSuchOp", st);
  ASSERT_TF_OK(st.s);
  EXPECT_EQ(none->length, 0u);
  TF_DeleteBuffer(none);
  EXPECT_EQ(TF_LoadLibrary("/nonexistent.so", st), nullptr);
  EXPECT_EQ(st.code(), TF_NOT_FOUND);
  EXPECT_EQ(TF_LoadLibrary("libz.so.1", st), nullptr);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace millrace::capi
