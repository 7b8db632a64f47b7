// SPDX-License-Identifier: Apache-2.0
// Short forms for tests of ops and kernels that come through the C API.
#pragma once

#include <functional>

#include "capi/test_support.h"

namespace millrace::capi {

inline bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// An op x -> y of floats with a kernel, and what it does. Names are taken for the life of the process.
using Compute = void (*)(void*, TF_OpKernelContext*);
inline void AddOp(const char* name, Compute compute, void* (*create)(TF_OpKernelConstruction*) = nullptr,
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
inline std::string RunOp(const char* name, std::vector<float> x, std::vector<float>* y = nullptr,
                         TF_Code* code = nullptr) {
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

}  // namespace millrace::capi
