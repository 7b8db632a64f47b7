// SPDX-License-Identifier: Apache-2.0
// A small op and its kernel, for plugins that then go wrong.
#pragma once

#include "millrace/c_api.h"

inline void ComputeNothing(void*, TF_OpKernelContext* ctx) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* x = nullptr;
  TF_GetInput(ctx, 0, &x, s);
  TF_SetOutput(ctx, 0, x, s);
  TF_DeleteTensor(x);
  TF_DeleteStatus(s);
}

inline void AddOneOp(const char* name, TF_Status* status) {
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  TF_OpDefinitionBuilderAddInput(op, "x: float");
  TF_OpDefinitionBuilderAddOutput(op, "y: float");
  TF_RegisterOpDefinition(op, status);
  if (TF_GetCode(status) != TF_OK) return;
  TF_RegisterKernelBuilder(name, TF_NewKernelBuilder(name, "CPU", nullptr, ComputeNothing, nullptr), status);
}
