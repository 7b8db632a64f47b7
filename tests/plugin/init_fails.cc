// SPDX-License-Identifier: Apache-2.0
// Adds an op, and then finds that it cannot work.
#include "one_op.h"

MR_DECLARE_PLUGIN();

extern "C" TF_CAPI_EXPORT void MR_PluginInit(const MR_Api*, TF_Status* status) {
  AddOneOp("OfInitFails", status);
  TF_SetStatus(status, TF_UNAVAILABLE, "the accelerator is not plugged in");
}
