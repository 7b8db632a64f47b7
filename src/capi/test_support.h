// SPDX-License-Identifier: Apache-2.0
// Short forms for tests that speak through the C API only.
#pragma once

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "millrace/c_api.h"

namespace millrace::capi {

struct ScopedStatus {
  ScopedStatus() : s(TF_NewStatus()) {}
  ~ScopedStatus() { TF_DeleteStatus(s); }
  ScopedStatus(const ScopedStatus&) = delete;
  ScopedStatus& operator=(const ScopedStatus&) = delete;
  operator TF_Status*() { return s; }  // NOLINT
  TF_Code code() const { return TF_GetCode(s); }
  std::string message() const { return TF_Message(s); }
  TF_Status* s;
};

#define EXPECT_TF_OK(status) EXPECT_EQ(TF_GetCode(status), TF_OK) << TF_Message(status)
#define ASSERT_TF_OK(status) ASSERT_EQ(TF_GetCode(status), TF_OK) << TF_Message(status)

inline TF_Tensor* FloatTensor(std::vector<int64_t> dims, std::vector<float> values) {
  TF_Tensor* t = TF_AllocateTensor(TF_FLOAT, dims.data(), static_cast<int>(dims.size()), values.size() * sizeof(float));
  if (t != nullptr && !values.empty()) std::memcpy(TF_TensorData(t), values.data(), values.size() * sizeof(float));
  return t;
}

inline std::vector<float> Floats(const TF_Tensor* t) {
  const auto* data = static_cast<const float*>(TF_TensorData(t));
  return std::vector<float>(data, data + TF_TensorElementCount(t));
}

// A graph with short ways to add operations.
struct TestGraph {
  TestGraph() : g(TF_NewGraph()) {}
  ~TestGraph() { TF_DeleteGraph(g); }
  TestGraph(const TestGraph&) = delete;
  TestGraph& operator=(const TestGraph&) = delete;

  TF_Operation* Placeholder(const char* name, TF_DataType type = TF_FLOAT) {
    TF_OperationDescription* d = TF_NewOperation(g, "Placeholder", name);
    TF_SetAttrType(d, "dtype", type);
    return Finish(d);
  }
  TF_Operation* Op(const char* type, const char* name, std::initializer_list<TF_Operation*> inputs) {
    TF_OperationDescription* d = TF_NewOperation(g, type, name);
    for (TF_Operation* input : inputs) TF_AddInput(d, {input, 0});
    return Finish(d);
  }
  TF_Operation* Finish(TF_OperationDescription* d) {
    TF_Operation* op = TF_FinishOperation(d, status);
    EXPECT_TF_OK(status);
    return op;
  }

  TF_Graph* g;
  ScopedStatus status;
};

}  // namespace millrace::capi
