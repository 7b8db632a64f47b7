// SPDX-License-Identifier: Apache-2.0
// Conditionals and loops through the C API: callbacks, blocks, and what hostile callers do with them.
#include <functional>
#include <thread>

#include "capi/test_support.h"
#include "millrace/c_api_control_flow.h"

namespace millrace::capi {
namespace {

struct Outs {
  Outs() : list(MR_NewOutputs()) {}
  ~Outs() { MR_DeleteOutputs(list); }
  operator MR_Outputs*() { return list; }  // NOLINT
  TF_Output operator[](int i) const { return MR_OutputsGet(list, i); }
  int size() const { return MR_OutputsSize(list); }
  MR_Outputs* list;
};

using Fn = std::function<void(const char* scope, const TF_Output* inputs, MR_Outputs* results, TF_Status* status)>;

void Call(void* data, TF_Graph*, const char* scope, const TF_Output* inputs, int, MR_Outputs* results,
          TF_Status* status) {
  (*static_cast<Fn*>(data))(scope, inputs, results, status);
}

class FlowTest : public ::testing::Test {
 protected:
  TF_Output Op(const char* type, const std::string& name, std::vector<TF_Output> inputs) {
    TF_OperationDescription* d = TF_NewOperation(t_.g, type, name.c_str());
    for (TF_Output o : inputs) TF_AddInput(d, o);
    return {TF_FinishOperation(d, t_.status), 0};
  }
  TF_Output Predicate() {
    TF_OperationDescription* d = TF_NewOperation(t_.g, "Placeholder", "p");
    TF_SetAttrType(d, "dtype", TF_BOOL);
    return {TF_FinishOperation(d, t_.status), 0};
  }
  int NumNodes() {
    int n = 0;
    for (size_t pos = 0; TF_GraphNextOperation(t_.g, &pos) != nullptr;) ++n;
    return n;
  }
  void ExpectRefused(int nodes) {
    EXPECT_NE(TF_GetCode(t_.status), TF_OK);
    EXPECT_EQ(results_.size(), 0);
    EXPECT_EQ(NumNodes(), nodes) << TF_Message(t_.status);
    // The graph is free again.
    const TF_Output after = Op("Neg", "after", {x_});
    EXPECT_EQ(TF_OperationNumControlInputs(after.oper), 0);
  }

  TestGraph t_;
  TF_Output x_ = {t_.Placeholder("x"), 0};
  Outs results_;
  Fn same_ = [this](const char*, const TF_Output*, MR_Outputs* r, TF_Status*) { MR_OutputsAppend(r, x_); };
};

TEST_F(FlowTest, BuildsAConditional) {
  const TF_Output p = Predicate();
  Fn negate = [&](const char* scope, const TF_Output*, MR_Outputs* r, TF_Status*) {
    EXPECT_STREQ(scope, "choice/");
    MR_OutputsAppend(r, Op("Neg", std::string(scope) + "neg", {x_}));
  };
  MR_FlowOptions options = {};
  options.struct_size = sizeof(options);
  options.name = "choice";
  MR_Cond(t_.g, &options, p, Call, &negate, Call, &same_, results_, t_.status);
  ASSERT_TF_OK(t_.status.s);
  ASSERT_EQ(results_.size(), 1);
  EXPECT_STREQ(TF_OperationName(results_[0].oper), "choice/Merge");
  EXPECT_STREQ(
      TF_OperationName(TF_OperationInput({TF_GraphOperationByName(t_.g, "choice/neg"), 0}).oper), "choice/neg/Switch");
}

TEST_F(FlowTest, CallbacksMayFail) {
  const TF_Output p = Predicate();
  const int nodes = NumNodes();
  Fn fails = [&](const char* scope, const TF_Output*, MR_Outputs*, TF_Status* s) {
    Op("Neg", std::string(scope) + "neg", {x_});
    TF_SetStatus(s, TF_DATA_LOSS, "lost");
  };
  MR_Cond(t_.g, nullptr, p, Call, &same_, Call, &fails, results_, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_DATA_LOSS);
  EXPECT_STREQ(TF_Message(t_.status), "lost");
  ExpectRefused(nodes);
}

TEST_F(FlowTest, CallbacksMayThrow) {
  const TF_Output p = Predicate();
  const int nodes = NumNodes();
  Fn throws = [&](const char*, const TF_Output*, MR_Outputs*, TF_Status*) { throw std::runtime_error("thrown"); };
  MR_Cond(t_.g, nullptr, p, Call, &throws, Call, &same_, results_, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_INTERNAL);
  ExpectRefused(nodes);
}

TEST_F(FlowTest, RefusesWrongArguments) {
  const TF_Output p = Predicate();
  const int nodes = NumNodes();
  MR_Cond(t_.g, nullptr, p, Call, &same_, nullptr, nullptr, results_, t_.status);
  ExpectRefused(nodes);
  MR_Cond(t_.g, nullptr, {p.oper, 7}, Call, &same_, Call, &same_, results_, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_INVALID_ARGUMENT);
  MR_FlowOptions options = {};
  MR_Cond(t_.g, &options, p, Call, &same_, Call, &same_, results_, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_INVALID_ARGUMENT) << "no struct_size";
  options.struct_size = sizeof(options);
  options.num_control_inputs = -1;
  MR_Cond(t_.g, &options, p, Call, &same_, Call, &same_, results_, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_INVALID_ARGUMENT);
  Fn garbage = [&](const char*, const TF_Output*, MR_Outputs* r, TF_Status*) { MR_OutputsAppend(r, {x_.oper, 1000}); };
  MR_Cond(t_.g, nullptr, p, Call, &garbage, Call, &same_, results_, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_INVALID_ARGUMENT);
  const int rank = -3;
  options = {};
  options.struct_size = sizeof(options);
  options.invariant_ranks = &rank;
  MR_WhileLoop(t_.g, &options, &x_, 1, Call, &same_, Call, &same_, results_, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_INVALID_ARGUMENT);
  MR_WhileLoop(t_.g, nullptr, nullptr, 0, Call, &same_, Call, &same_, results_, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_INVALID_ARGUMENT);
}

TEST_F(FlowTest, NoStepStartsInsideACallback) {
  const TF_Output p = Predicate();
  Fn runs = [&](const char*, const TF_Output*, MR_Outputs* r, TF_Status*) {
    TF_Tensor* value = FloatTensor({}, {1});
    TF_Tensor* out = nullptr;
    ScopedStatus s;
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Session* session = TF_NewSession(t_.g, options, s);
    TF_DeleteSessionOptions(options);
    TF_SessionRun(session, nullptr, &x_, &value, 1, &x_, &out, 1, nullptr, 0, nullptr, s);
    EXPECT_EQ(s.code(), TF_FAILED_PRECONDITION);
    ScopedStatus deleted;
    TF_DeleteSession(session, deleted);
    TF_DeleteTensor(value);
    TF_DeleteTensor(out);
    MR_OutputsAppend(r, x_);
  };
  MR_Cond(t_.g, nullptr, p, Call, &runs, Call, &same_, results_, t_.status);
  ASSERT_TF_OK(t_.status.s);
}

TEST_F(FlowTest, BlocksDoWhatCallbacksDo) {
  const TF_Output p = Predicate();
  MR_Block* cond = MR_CondBegin(t_.g, nullptr, p, t_.status);
  ASSERT_TF_OK(t_.status.s);
  EXPECT_STREQ(MR_BlockScope(cond), "cond/");
  Outs inputs, after;
  MR_Block* loop = MR_WhileBegin(t_.g, nullptr, &x_, 1, inputs, t_.status);
  ASSERT_TF_OK(t_.status.s);
  MR_WhileBody(loop, Op("IsFinite", "cond/while/finite", {inputs[0]}), inputs, t_.status);
  ASSERT_TF_OK(t_.status.s);
  ASSERT_EQ(inputs.size(), 2);
  MR_CondElse(cond, &x_, 1, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_FAILED_PRECONDITION) << "the loop has not ended";
  const TF_Output next = Op("Neg", "cond/while/neg", {inputs[1]});
  MR_WhileEnd(loop, &next, 1, after, t_.status);
  ASSERT_TF_OK(t_.status.s);
  const TF_Output exit = after[0];
  MR_WhileBody(cond, p, inputs, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_FAILED_PRECONDITION) << "it is no loop";
  MR_CondElse(cond, &exit, 1, t_.status);
  ASSERT_TF_OK(t_.status.s);
  MR_CondEnd(cond, &x_, 1, results_, t_.status);
  ASSERT_TF_OK(t_.status.s);
  EXPECT_EQ(results_.size(), 1);
  EXPECT_EQ(TF_OperationNumControlInputs(Op("Neg", "after", {x_}).oper), 0);
}

TEST_F(FlowTest, AbortTakesBackInnerBlocksToo) {
  const TF_Output p = Predicate();
  const int nodes = NumNodes();
  MR_Block* outer = MR_CondBegin(t_.g, nullptr, p, t_.status);
  MR_Block* inner = MR_CondBegin(t_.g, nullptr, p, t_.status);
  ASSERT_TF_OK(t_.status.s);
  MR_BlockAbort(outer);
  MR_CondElse(inner, nullptr, 0, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_FAILED_PRECONDITION);
  MR_BlockAbort(inner);
  MR_CondEnd(nullptr, nullptr, 0, results_, t_.status);
  ExpectRefused(nodes);
}

TEST_F(FlowTest, ACallbackMustEndItsBlocks) {
  const TF_Output p = Predicate();
  const int nodes = NumNodes();
  MR_Block* left = nullptr;
  Fn leaves = [&](const char*, const TF_Output*, MR_Outputs* r, TF_Status* s) {
    left = MR_CondBegin(t_.g, nullptr, p, s);
    MR_OutputsAppend(r, x_);
  };
  MR_Cond(t_.g, nullptr, p, Call, &leaves, Call, &same_, results_, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_FAILED_PRECONDITION);
  MR_BlockAbort(left);
  ExpectRefused(nodes);
}

TEST_F(FlowTest, ACallbackCannotEndBlocksAroundIt) {
  const TF_Output p = Predicate();
  MR_Block* outer = MR_CondBegin(t_.g, nullptr, p, t_.status);
  Fn meddles = [&](const char*, const TF_Output*, MR_Outputs* r, TF_Status*) {
    ScopedStatus s;
    MR_CondElse(outer, nullptr, 0, s);
    EXPECT_EQ(s.code(), TF_FAILED_PRECONDITION);
    MR_BlockAbort(outer);
    MR_OutputsAppend(r, x_);
  };
  MR_Cond(t_.g, nullptr, p, Call, &meddles, Call, &same_, results_, t_.status);
  ASSERT_TF_OK(t_.status.s);
  MR_BlockAbort(outer);
  EXPECT_EQ(TF_OperationNumControlInputs(Op("Neg", "after", {x_}).oper), 0);
}

TEST_F(FlowTest, ABlockBelongsToItsThread) {
  const TF_Output p = Predicate();
  MR_Block* block = MR_CondBegin(t_.g, nullptr, p, t_.status);
  std::thread([&] {
    ScopedStatus s;
    MR_CondElse(block, nullptr, 0, s);
    EXPECT_EQ(s.code(), TF_FAILED_PRECONDITION);
    MR_BlockAbort(block);
  }).join();
  MR_CondElse(block, nullptr, 0, t_.status);
  ASSERT_TF_OK(t_.status.s);
  MR_BlockAbort(block);
}

TEST_F(FlowTest, AFailedEndLeavesTheBlockToBeAborted) {
  const TF_Output p = Predicate();
  MR_Block* block = MR_CondBegin(t_.g, nullptr, p, t_.status);
  MR_CondElse(block, &x_, 1, t_.status);
  MR_CondEnd(block, &p, 1, results_, t_.status);
  EXPECT_EQ(TF_GetCode(t_.status), TF_INVALID_ARGUMENT) << "bool is no float";
  MR_BlockAbort(block);
  EXPECT_EQ(TF_OperationNumControlInputs(Op("Neg", "after", {x_}).oper), 0);
}

}  // namespace
}  // namespace millrace::capi
