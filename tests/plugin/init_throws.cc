// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "one_op.h"

extern "C" TF_CAPI_EXPORT void TF_InitKernel(void) {
  TF_Status* status = TF_NewStatus();
  AddOneOp("OfInitThrows", status);
  TF_DeleteStatus(status);
  throw std::runtime_error("no licence found");
}
