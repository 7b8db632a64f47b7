// SPDX-License-Identifier: Apache-2.0
// One op of its own, and one that there is already; it does not look at the status.
#include "one_op.h"

extern "C" TF_CAPI_EXPORT void TF_InitKernel(void) {
  TF_Status* status = TF_NewStatus();
  AddOneOp("OfTakenName", status);
  AddOneOp("MatMul", status);
  TF_DeleteStatus(status);
}
