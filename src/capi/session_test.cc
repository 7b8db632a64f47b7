// SPDX-License-Identifier: Apache-2.0
#include "capi/test_support.h"

namespace millrace::capi {
namespace {

struct TestSession : TestGraph {
  TF_Session* session() {
    if (s == nullptr) {
      s = TF_NewSession(g, nullptr, status);
      EXPECT_TF_OK(status);
    }
    return s;
  }
  ~TestSession() { TF_DeleteSession(s, status); }
  // One feed, one fetch; deletes the feed.
  std::vector<float> Run(TF_Operation* feed, TF_Tensor* value, TF_Output fetch) {
    const TF_Output in = {feed, 0};
    TF_Tensor* out = nullptr;
    TF_SessionRun(session(), nullptr, &in, &value, 1, &fetch, &out, 1, nullptr, 0, nullptr, status);
    TF_DeleteTensor(value);
    EXPECT_TF_OK(status);
    if (out == nullptr) return {};
    std::vector<float> result = Floats(out);
    TF_DeleteTensor(out);
    return result;
  }
  TF_Session* s = nullptr;
};

TEST(SessionTest, RunsAndSeesAGrowingGraph) {
  TestSession t;
  TF_Operation* x = t.Placeholder("x");
  TF_Operation* sum = t.Op("AddV2", "sum", {x, x});
  EXPECT_EQ(t.Run(x, FloatTensor({2}, {1, 2}), {sum, 0}), (std::vector<float>{2, 4}));
  TF_Operation* product = t.Op("Mul", "product", {sum, x});
  EXPECT_EQ(t.Run(x, FloatTensor({2}, {1, 2}), {product, 0}), (std::vector<float>{2, 8}));
}

TEST(SessionTest, DoesNotWriteIntoWhatItIsFed) {
  TestSession t;
  TF_Operation* x = t.Placeholder("x");
  TF_Operation* neg = t.Op("Neg", "neg", {x});
  alignas(64) float data[2] = {1, 2};
  const int64_t dims[] = {2};
  EXPECT_EQ(t.Run(x, TF_NewTensor(TF_FLOAT, dims, 1, data, sizeof(data), nullptr, nullptr), {neg, 0}),
            (std::vector<float>{-1, -2}));
  EXPECT_EQ(data[0], 1);
  TF_Tensor* own = FloatTensor({2}, {3, 4});
  const TF_Output in = {x, 0}, out = {neg, 0};
  TF_Tensor* result = nullptr;
  TF_SessionRun(t.session(), nullptr, &in, &own, 1, &out, &result, 1, nullptr, 0, nullptr, t.status);
  ASSERT_TF_OK(t.status.s);
  EXPECT_EQ(Floats(own), (std::vector<float>{3, 4}));
  TF_DeleteTensor(own);
  TF_DeleteTensor(result);
}

TEST(SessionTest, NormalisesBools) {
  TestSession t;
  TF_Operation* x = t.Placeholder("x", TF_BOOL);
  const int64_t dims[] = {9};
  TF_Tensor* fed = TF_AllocateTensor(TF_BOOL, dims, 1, 9);
  std::memset(TF_TensorData(fed), 0xfe, 9);
  const TF_Output port = {x, 0};
  TF_Tensor* out = nullptr;
  TF_SessionRun(t.session(), nullptr, &port, &fed, 1, &port, &out, 1, nullptr, 0, nullptr, t.status);
  TF_DeleteTensor(fed);
  ASSERT_TF_OK(t.status.s);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(static_cast<unsigned char*>(TF_TensorData(out))[i], 1);
  TF_DeleteTensor(out);
}

TEST(SessionTest, RefusesMisuse) {
  TestSession t;
  TF_Operation* x = t.Placeholder("x");
  const TF_Output port = {x, 0}, none = {nullptr, 0}, wrong = {x, 3};
  TF_Tensor* value = FloatTensor({}, {1});
  TF_Tensor* out = value;
  TF_Status* st = t.status;
  TF_SessionRun(nullptr, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr, 0, nullptr, st);
  EXPECT_EQ(TF_GetCode(st), TF_INVALID_ARGUMENT);
  for (const TF_Output& bad : {none, wrong}) {
    const TF_Code code = bad.oper == nullptr ? TF_INVALID_ARGUMENT : TF_OUT_OF_RANGE;
    TF_SessionRun(t.session(), nullptr, &bad, &value, 1, &port, &out, 1, nullptr, 0, nullptr, st);
    EXPECT_EQ(TF_GetCode(st), code);
    EXPECT_EQ(out, nullptr);
    TF_SessionRun(t.session(), nullptr, &port, &value, 1, &bad, &out, 1, nullptr, 0, nullptr, st);
    EXPECT_EQ(TF_GetCode(st), code);
  }
  TF_Tensor* null_value = nullptr;
  TF_SessionRun(t.session(), nullptr, &port, &null_value, 1, &port, &out, 1, nullptr, 0, nullptr, st);
  EXPECT_EQ(TF_GetCode(st), TF_INVALID_ARGUMENT);
  TF_SessionRun(t.session(), nullptr, nullptr, nullptr, 0, &port, &out, 1, nullptr, 0, nullptr, st);
  EXPECT_EQ(TF_GetCode(st), TF_INVALID_ARGUMENT) << "a placeholder must be fed";
  TF_SessionRun(t.session(), nullptr, nullptr, nullptr, -1, &port, &out, 1, nullptr, 0, nullptr, st);
  EXPECT_EQ(TF_GetCode(st), TF_INVALID_ARGUMENT);
  const TF_Operation* no_target = nullptr;
  TF_SessionRun(t.session(), nullptr, &port, &value, 1, nullptr, nullptr, 0, &no_target, 1, nullptr, st);
  EXPECT_EQ(TF_GetCode(st), TF_INVALID_ARGUMENT);
  TF_Buffer* bad_options = TF_NewBufferFromString("\xff", 1);
  TF_SessionRun(t.session(), bad_options, &port, &value, 1, &port, &out, 1, nullptr, 0, nullptr, st);
  EXPECT_EQ(TF_GetCode(st), TF_INVALID_ARGUMENT);
  TF_SessionRun(t.session(), nullptr, &port, &value, 1, &port, &out, 1, nullptr, 0, bad_options, st);
  EXPECT_EQ(TF_GetCode(st), TF_INVALID_ARGUMENT) << "metadata must be an empty buffer";
  TF_DeleteBuffer(bad_options);
  TF_CloseSession(t.session(), st);
  EXPECT_EQ(TF_GetCode(st), TF_OK);
  TF_SessionRun(t.session(), nullptr, &port, &value, 1, &port, &out, 1, nullptr, 0, nullptr, st);
  EXPECT_EQ(TF_GetCode(st), TF_CANCELLED);
  TF_DeleteTensor(value);
}

TEST(SessionTest, OutlivesItsGraphHandle) {
  ScopedStatus st;
  TF_Graph* g = TF_NewGraph();
  TF_OperationDescription* d = TF_NewOperation(g, "Placeholder", "x");
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_Operation* x = TF_FinishOperation(d, st);
  TF_Session* s = TF_NewSession(g, nullptr, st);
  ASSERT_TF_OK(st.s);
  TF_DeleteGraph(g);
  const TF_Output port = {x, 0};
  TF_Tensor *value = FloatTensor({}, {1}), *out = nullptr;
  TF_SessionRun(s, nullptr, &port, &value, 1, &port, &out, 1, nullptr, 0, nullptr, st);
  EXPECT_TF_OK(st.s);
  TF_DeleteTensor(value);
  TF_DeleteTensor(out);
  TF_DeleteSession(s, st);
}

TEST(SessionTest, ListsDevices) {
  TestSession t;
  TF_DeviceList* list = TF_SessionListDevices(t.session(), t.status);
  ASSERT_TF_OK(t.status.s);
  ASSERT_GE(TF_DeviceListCount(list), 1);
  EXPECT_STREQ(TF_DeviceListType(list, 0, t.status), "CPU");
  EXPECT_NE(std::string(TF_DeviceListName(list, 0, t.status)), "");
  EXPECT_NE(TF_DeviceListIncarnation(list, 0, t.status), 0u);
  EXPECT_EQ(TF_DeviceListName(list, 99, t.status), nullptr);
  EXPECT_EQ(TF_GetCode(t.status), TF_INVALID_ARGUMENT);
  TF_DeleteDeviceList(list);
}

TEST(GradientTest, DifferentiatesAndNamesNothingWhereThereIsNoPath) {
  TestSession t;
  TF_Operation* x = t.Placeholder("x");
  TF_Operation* y = t.Placeholder("y");
  TF_Operation* square = t.Op("Mul", "square", {x, x});
  TF_Output ys[] = {{square, 0}}, xs[] = {{x, 0}, {y, 0}}, dy[2];
  TF_AddGradients(t.g, ys, 1, xs, 2, nullptr, t.status, dy);
  ASSERT_TF_OK(t.status.s);
  ASSERT_NE(dy[0].oper, nullptr);
  EXPECT_EQ(dy[1].oper, nullptr);
  EXPECT_EQ(t.Run(x, FloatTensor({2}, {3, 4}), dy[0]), (std::vector<float>{6, 8}));
  TF_AddGradientsWithPrefix(t.g, "again", ys, 1, xs, 1, nullptr, t.status, dy);
  ASSERT_TF_OK(t.status.s);
  EXPECT_EQ(std::string(TF_OperationName(dy[0].oper)).rfind("again/", 0), 0u);
  TF_AddGradientsWithPrefix(t.g, "again", ys, 1, xs, 1, nullptr, t.status, dy);
  EXPECT_EQ(TF_GetCode(t.status), TF_INVALID_ARGUMENT);
  TF_AddGradients(t.g, nullptr, 1, xs, 1, nullptr, t.status, dy);
  EXPECT_EQ(TF_GetCode(t.status), TF_INVALID_ARGUMENT);
}

// while (x < 10) x += y, with y a loop variable too.
TEST(WhileTest, BuildsALoop) {
  TestSession t;
  TF_Operation* x = t.Placeholder("x");
  TF_Operation* y = t.Placeholder("y");
  TF_Output inputs[] = {{x, 0}, {y, 0}}, outputs[2];
  TF_WhileParams loop = TF_NewWhile(t.g, inputs, 2, t.status);
  ASSERT_TF_OK(t.status.s);
  ASSERT_EQ(loop.ninputs, 2);
  const auto constant = [&](TF_Graph* g, float value) {
    TF_OperationDescription* d = TF_NewOperation(g, "Const", "c");
    TF_Tensor* tensor = FloatTensor({}, {value});
    TF_SetAttrTensor(d, "value", tensor, t.status);
    TF_SetAttrType(d, "dtype", TF_FLOAT);
    TF_DeleteTensor(tensor);
    return t.Finish(d);
  };
  TF_OperationDescription* d = TF_NewOperation(loop.cond_graph, "Less", "less");
  TF_AddInput(d, loop.cond_inputs[0]);
  TF_AddInput(d, {constant(loop.cond_graph, 10), 0});
  loop.cond_output = {t.Finish(d), 0};
  d = TF_NewOperation(loop.body_graph, "AddV2", "add");
  TF_AddInput(d, loop.body_inputs[0]);
  TF_AddInput(d, loop.body_inputs[1]);
  loop.body_outputs[0] = {t.Finish(d), 0};
  loop.body_outputs[1] = loop.body_inputs[1];
  loop.name = "loop";
  TF_FinishWhile(&loop, t.status, outputs);
  ASSERT_TF_OK(t.status.s);
  TF_Tensor* values[] = {FloatTensor({}, {1}), FloatTensor({}, {4})};
  TF_Tensor* results[2] = {};
  TF_SessionRun(t.session(), nullptr, inputs, values, 2, outputs, results, 2, nullptr, 0, nullptr, t.status);
  ASSERT_TF_OK(t.status.s);
  EXPECT_EQ(Floats(results[0]), std::vector<float>{13});
  EXPECT_EQ(Floats(results[1]), std::vector<float>{4});
  for (TF_Tensor* v : values) TF_DeleteTensor(v);
  for (TF_Tensor* r : results) TF_DeleteTensor(r);
}

TEST(WhileTest, RefusesWhatIsIncomplete) {
  TestSession t;
  TF_Output input = {t.Placeholder("x"), 0}, output;
  TF_WhileParams none = TF_NewWhile(t.g, nullptr, 0, t.status);
  EXPECT_EQ(TF_GetCode(t.status), TF_INVALID_ARGUMENT);
  TF_AbortWhile(&none);
  TF_WhileParams loop = TF_NewWhile(t.g, &input, 1, t.status);
  ASSERT_TF_OK(t.status.s);
  loop.name = "loop";
  loop.cond_output = loop.cond_inputs[0];  // no bool
  TF_FinishWhile(&loop, t.status, &output);
  EXPECT_EQ(TF_GetCode(t.status), TF_INVALID_ARGUMENT);
  TF_WhileParams aborted = TF_NewWhile(t.g, &input, 1, t.status);
  TF_AbortWhile(&aborted);
}

TEST(DeprecatedSessionTest, GrowsByGraphDefsAndRunsByName) {
  TestGraph first;
  first.Op("Neg", "neg", {first.Placeholder("x")});
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphToGraphDef(first.g, def, first.status);
  ScopedStatus st;
  TF_DeprecatedSession* s = TF_NewDeprecatedSession(nullptr, st);
  ASSERT_TF_OK(st.s);
  TF_ExtendGraph(s, def->data, def->length, st);
  ASSERT_TF_OK(st.s);
  TF_ExtendGraph(s, def->data, def->length, st);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT) << "the names are taken";
  TF_DeleteBuffer(def);
  // A node "more" (Neg) that reads "neg", as an encoded GraphDef.
  std::string extension("\x0a?\x0a\x04more\x12\x03Neg\x1a\x03neg\x2a\x07\x0a\x01T\x12\x02\x30\x01", 27);
  extension[1] = static_cast<char>(extension.size() - 2);
  TF_ExtendGraph(s, extension.data(), extension.size(), st);
  ASSERT_TF_OK(st.s);
  const char* inputs[] = {"x"};
  const char* outputs[] = {"more:0", "neg"};
  TF_Tensor *value = FloatTensor({1}, {5}), *out[2] = {};
  TF_Run(s, nullptr, inputs, &value, 1, outputs, out, 2, nullptr, 0, nullptr, st);
  ASSERT_TF_OK(st.s);
  EXPECT_EQ(Floats(out[0]), std::vector<float>{5});
  EXPECT_EQ(Floats(out[1]), std::vector<float>{-5});
  for (TF_Tensor* t : out) TF_DeleteTensor(t);
  const char* unknown[] = {"nothing:0"};
  TF_Run(s, nullptr, inputs, &value, 1, unknown, out, 1, nullptr, 0, nullptr, st);
  EXPECT_EQ(st.code(), TF_NOT_FOUND);
  TF_DeleteTensor(value);
  TF_CloseDeprecatedSession(s, st);
  TF_DeleteDeprecatedSession(s, st);
}

TEST(SavedModelTest, SaysWhatIsMissing) {
  ScopedStatus st;
  TF_Graph* g = TF_NewGraph();
  const char* tags[] = {"serve"};
  EXPECT_EQ(TF_LoadSessionFromSavedModel(nullptr, nullptr, "/nonexistent", tags, 1, g, nullptr, st), nullptr);
  EXPECT_EQ(st.code(), TF_NOT_FOUND);
  EXPECT_EQ(TF_LoadSessionFromSavedModel(nullptr, nullptr, nullptr, tags, 1, g, nullptr, st), nullptr);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
  TF_DeleteGraph(g);
}

TEST(ServerTest, ADefinitionWithoutAProtocolIsRefused) {
  ScopedStatus st;
  EXPECT_EQ(TF_NewServer("", 0, st), nullptr);
  EXPECT_EQ(st.code(), TF_NOT_FOUND) << st.message();
  EXPECT_EQ(TF_NewServer("x", 1, st), nullptr);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT) << "no ServerDef";
  TF_ServerStart(nullptr, st);
  EXPECT_EQ(st.code(), TF_INVALID_ARGUMENT);
  EXPECT_STREQ(TF_ServerTarget(nullptr), "");
  TF_DeleteServer(nullptr);
}

}  // namespace
}  // namespace millrace::capi
