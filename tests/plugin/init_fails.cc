// SPDX-License-Identifier: Apache-2.0
// Adds an op, and then finds that it cannot work.
#include "one_op.h"

MR_DECLARE_PLUGIN();

static void Gradient(void*, TF_Operation*, const char*, const MR_Gradient*, int, MR_Gradient*, int, TF_Status*) {}
static void Function(void*, TF_Tensor**, int, TF_Tensor**, int, TF_Status*) {}

extern "C" TF_CAPI_EXPORT void MR_PluginInit(const MR_Api*, TF_Status* status) {
  AddOneOp("OfInitFails", status);
  MR_RegisterGradient("OfInitFails", Gradient, nullptr, status);
  MR_RegisterClientFunction("of init_fails", Function, nullptr, nullptr, status);
  TF_SetStatus(status, TF_UNAVAILABLE, "the accelerator is not plugged in");
}
