// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/c/eager/c_api.h"

#include <thread>

#include "capi/test_support.h"

namespace millrace::capi {
namespace {

class EagerTest : public ::testing::Test {
 protected:
  EagerTest() {
    TFE_ContextOptions* options = TFE_NewContextOptions();
    context_ = TFE_NewContext(options, status_);
    EXPECT_TF_OK(status_.s);
    TFE_DeleteContextOptions(options);
  }
  ~EagerTest() override {
    for (TFE_TensorHandle* h : handles_) TFE_DeleteTensorHandle(h);
    TFE_DeleteContext(context_);
  }

  TFE_TensorHandle* Kept(TFE_TensorHandle* h) { return handles_.push_back(h), h; }
  TFE_TensorHandle* Floats2(std::vector<int64_t> dims, std::vector<float> values) {
    TF_Tensor* t = FloatTensor(std::move(dims), std::move(values));
    TFE_TensorHandle* h = TFE_NewTensorHandle(t, status_);
    EXPECT_TF_OK(status_.s);
    TF_DeleteTensor(t);
    return Kept(h);
  }
  TFE_Op* NewOp(const char* name, std::initializer_list<TFE_TensorHandle*> inputs = {}) {
    TFE_Op* op = TFE_NewOp(context_, name, status_);
    EXPECT_TF_OK(status_.s);
    for (TFE_TensorHandle* input : inputs) TFE_OpAddInput(op, input, status_);
    return op;
  }
  // Deletes the op.
  std::vector<TFE_TensorHandle*> Execute(TFE_Op* op, int room = 4) {
    std::vector<TFE_TensorHandle*> made(static_cast<size_t>(room));
    TFE_Execute(op, made.data(), &room, status_);
    TFE_DeleteOp(op);
    made.resize(status_.code() == TF_OK ? static_cast<size_t>(room) : 0);
    for (TFE_TensorHandle* h : made) handles_.push_back(h);
    return made;
  }
  std::vector<float> Read(TFE_TensorHandle* h) {
    TF_Tensor* t = TFE_TensorHandleResolve(h, status_);
    EXPECT_TF_OK(status_.s);
    std::vector<float> values = Floats(t);
    TF_DeleteTensor(t);
    return values;
  }

  ScopedStatus status_;
  TFE_Context* context_ = nullptr;
  std::vector<TFE_TensorHandle*> handles_;
};

TEST_F(EagerTest, RunsOpsOnValues) {
  TFE_TensorHandle* a = Floats2({2, 2}, {1, 2, 3, 4});
  for (int i = 0; i < 3; ++i) {
    auto product = Execute(NewOp("MatMul", {a, a}));
    ASSERT_TF_OK(status_.s);
    ASSERT_EQ(product.size(), 1u);
    EXPECT_EQ(Read(product[0]), (std::vector<float>{7, 10, 15, 22}));
    EXPECT_EQ(TFE_TensorHandleDataType(product[0]), TF_FLOAT);
    EXPECT_EQ(TFE_TensorHandleNumDims(product[0], status_), 2);
    EXPECT_EQ(TFE_TensorHandleDim(product[0], 1, status_), 2);
    EXPECT_EQ(TFE_TensorHandleNumElements(product[0], status_), 4);
    EXPECT_STREQ(TFE_TensorHandleDeviceName(product[0], status_), "/job:localhost/replica:0/task:0/device:CPU:0");
  }
  TFE_Op* transposed = NewOp("MatMul", {a, a});
  TFE_OpSetAttrBool(transposed, "transpose_a", 1);
  EXPECT_EQ(Read(Execute(transposed)[0]), (std::vector<float>{10, 14, 14, 20})) << "another set of attributes";
  TFE_TensorHandle* wide = Floats2({1, 3}, {1, 2, 3});
  EXPECT_EQ(Read(Execute(NewOp("Neg", {wide}))[0]), (std::vector<float>{-1, -2, -3})) << "a step takes any shape";
  EXPECT_EQ(Read(Execute(NewOp("Neg", {a}))[0]), (std::vector<float>{-1, -2, -3, -4}));
  TFE_TensorHandleDim(wide, 2, status_);
  EXPECT_EQ(status_.code(), TF_INVALID_ARGUMENT);
}

TEST_F(EagerTest, ListsOfInputsAndOutputs) {
  TFE_TensorHandle* parts[] = {Floats2({1, 2}, {1, 2}), Floats2({1, 2}, {3, 4})};
  TFE_Op* pack = NewOp("Pack");
  TFE_OpAddInputList(pack, parts, 2, status_);
  EXPECT_EQ(TFE_OpGetInputLength(pack, "values", status_), 2);
  EXPECT_EQ(TFE_OpGetOutputLength(pack, "output", status_), 1);
  EXPECT_EQ(TFE_OpGetFlatInputCount(pack, status_), 2);
  EXPECT_EQ(TFE_OpGetInputLength(pack, "none", status_), -1);
  EXPECT_EQ(status_.code(), TF_INVALID_ARGUMENT);
  auto packed = Execute(pack);
  ASSERT_TF_OK(status_.s);
  EXPECT_EQ(TFE_TensorHandleNumDims(packed[0], status_), 3);
  TFE_Op* unpack = NewOp("Unpack", {packed[0]});
  EXPECT_EQ(TFE_OpGetOutputLength(unpack, "output", status_), -1) << "nothing says it yet";
  TFE_OpSetAttrInt(unpack, "num", 2);
  EXPECT_EQ(TFE_OpGetOutputLength(unpack, "output", status_), 2);
  auto rows = Execute(unpack);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(Read(rows[1]), (std::vector<float>{3, 4}));
}

TEST_F(EagerTest, VariablesLiveInTheContext) {
  const auto handle = [&] {
    TFE_Op* op = NewOp("VarHandleOp");
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_OpSetAttrShape(op, "shape", nullptr, 0, status_);
    TFE_OpSetAttrString(op, "shared_name", "v", 1);
    return Execute(op)[0];
  };
  TFE_TensorHandle* v = handle();
  EXPECT_EQ(TFE_TensorHandleDataType(v), TF_RESOURCE);
  TFE_TensorHandle* one = Floats2({}, {1});
  EXPECT_EQ(Execute(NewOp("AssignVariableOp", {v, one})).size(), 0u);
  ASSERT_TF_OK(status_.s);
  for (int i = 0; i < 3; ++i) Execute(NewOp("AssignAddVariableOp", {handle(), one}));
  TFE_Op* read = NewOp("ReadVariableOp", {v});
  TFE_OpSetAttrType(read, "dtype", TF_FLOAT);
  auto value = Execute(read);
  ASSERT_TF_OK(status_.s);
  EXPECT_EQ(Read(value[0]), std::vector<float>{4});
}

TEST_F(EagerTest, WhatIsWrongIsSaid) {
  EXPECT_EQ(TFE_NewOp(context_, "NoSuchOp", status_), nullptr);
  EXPECT_EQ(status_.code(), TF_NOT_FOUND);
  TFE_TensorHandle* a = Floats2({2, 2}, {1, 2, 3, 4});
  TFE_TensorHandle* b = Floats2({3}, {1, 2, 3});
  Execute(NewOp("MatMul", {a, b}));
  EXPECT_EQ(status_.code(), TF_INVALID_ARGUMENT);
  Execute(NewOp("MatMul", {a}));
  EXPECT_EQ(status_.code(), TF_INVALID_ARGUMENT);
  TFE_Op* bad = NewOp("Neg", {a});
  TFE_OpSetAttrFunctionName(bad, nullptr, "f", 1);
  Execute(bad);
  EXPECT_EQ(status_.code(), TF_INVALID_ARGUMENT) << "what a setter without a status found";
  Execute(NewOp("Neg", {a}), 0);
  EXPECT_EQ(status_.code(), TF_INVALID_ARGUMENT) << "no room for the output";
  TFE_Op* placed = NewOp("Neg", {a});
  TFE_OpSetDevice(placed, "/gpu:0", status_);
  EXPECT_EQ(status_.code(), TF_INVALID_ARGUMENT);
  TFE_OpSetDevice(placed, "/cpu:0", status_);
  EXPECT_TF_OK(status_.s);
  EXPECT_EQ(Execute(placed).size(), 1u);
  Execute(NewOp("Assign", {a, a}));
  EXPECT_NE(status_.code(), TF_OK) << "a value is no reference";
  TFE_Op* queue = NewOp("FIFOQueue");
  const TF_DataType types[] = {TF_FLOAT};
  TFE_OpSetAttrTypeList(queue, "component_types", types, 1);
  auto made = Execute(queue);
  ASSERT_TF_OK(status_.s);
  EXPECT_EQ(TFE_TensorHandleDataType(made[0]), TF_STRING) << "the value of a reference";
  TFE_ContextSetServerDef(context_, 0, nullptr, 0, status_);
  EXPECT_EQ(status_.code(), TF_UNIMPLEMENTED);
  EXPECT_EQ(Read(Execute(NewOp("Neg", {a}))[0])[3], -4) << "the context goes on";
}

TEST_F(EagerTest, AttributesOfOps) {
  unsigned char is_list = 9;
  EXPECT_EQ(TFE_OpNameGetAttrType(context_, "Conv2D", "strides", &is_list, status_), TF_ATTR_INT);
  EXPECT_EQ(is_list, 1);
  EXPECT_EQ(TFE_OpNameGetAttrType(context_, "Conv2D", "T", &is_list, status_), TF_ATTR_TYPE);
  EXPECT_EQ(is_list, 0);
  TFE_OpNameGetAttrType(context_, "Conv2D", "none", &is_list, status_);
  EXPECT_EQ(status_.code(), TF_INVALID_ARGUMENT);
  TFE_Op* constant = NewOp("Const");
  TF_Tensor* value = FloatTensor({2}, {5, 6});
  TFE_OpSetAttrTensor(constant, "value", value, status_);
  TFE_OpSetAttrType(constant, "dtype", TF_FLOAT);
  TF_DeleteTensor(value);
  EXPECT_EQ(Read(Execute(constant)[0]), (std::vector<float>{5, 6}));
}

TEST_F(EagerTest, FunctionsAreOps) {
  TestGraph body;
  TF_Operation* x = body.Placeholder("x");
  TF_Operation* y = body.Op("Square", "y", {x});
  const TF_Output in = {x, 0}, out = {y, 0};
  TF_Function* f =
      TF_GraphToFunction(body.g, "Squared", 0, -1, nullptr, 1, &in, 1, &out, nullptr, nullptr, nullptr, status_);
  ASSERT_TF_OK(status_.s);
  TFE_ContextAddFunction(context_, f, status_);
  ASSERT_TF_OK(status_.s);
  TF_DeleteFunction(f);
  EXPECT_EQ(TFE_ContextHasFunction(context_, "Squared"), 1);
  EXPECT_EQ(TFE_ContextHasFunction(context_, "Cubed"), 0);
  EXPECT_EQ(Read(Execute(NewOp("Squared", {Floats2({2}, {3, 4})}))[0]), (std::vector<float>{9, 16}));
}

TEST_F(EagerTest, SeveralThreadsShareAContext) {
  TFE_TensorHandle* a = Floats2({2}, {1, 2});
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&, k] {
      ScopedStatus status;
      for (int i = 0; i < 50; ++i) {
        TFE_Op* op = TFE_NewOp(context_, (i + k) % 2 ? "Neg" : "Square", status);
        TFE_OpAddInput(op, a, status);
        TFE_TensorHandle* out = nullptr;
        int n = 1;
        TFE_Execute(op, &out, &n, status);
        good += status.code() == TF_OK && TFE_TensorHandleNumElements(out, status) == 2;
        TFE_DeleteTensorHandle(out);
        TFE_DeleteOp(op);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, 200);
}

}  // namespace
}  // namespace millrace::capi
