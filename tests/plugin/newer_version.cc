// SPDX-License-Identifier: Apache-2.0
#include "one_op.h"

extern "C" TF_CAPI_EXPORT const MR_PluginInfo MR_Plugin;
const MR_PluginInfo MR_Plugin = {sizeof(MR_PluginInfo), MR_API_VERSION + 1, sizeof(MR_Api)};

extern "C" TF_CAPI_EXPORT void MR_PluginInit(const MR_Api*, TF_Status* status) { AddOneOp("OfNewerVersion", status); }
