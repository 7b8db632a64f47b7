// SPDX-License-Identifier: Apache-2.0
#include "millrace/c_api.h"

namespace {

// The types of the entries are those of the declarations, so a wrong definition fails to link, a missing one too.
#define MR_ENTRY(name) &TF_##name,
#define MR_OWN_ENTRY(name) &MR_##name,
// clang-format off
constexpr MR_Api kApi = {
    sizeof(MR_Api), MR_API_VERSION, &MR_Version, &MR_SetLocation, &MR_OperationLocation,
    MR_API_FUNCTIONS(MR_ENTRY)
    MR_API_OWN_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_LATER_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_FLOW_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_SESSION_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_CALLBACK_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_PLUGIN_FUNCTIONS(MR_ENTRY)
    MR_API_OWN_PLUGIN_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_COMPILE_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_DEVICE_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_SOLVER_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_SERVER_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_SNAPSHOT_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_SERVER_STEPS_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_FILE_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_PATH_FUNCTIONS(MR_OWN_ENTRY)
    MR_API_REFERENCE_FUNCTIONS(MR_OWN_ENTRY)
};
// clang-format on
#undef MR_ENTRY
#undef MR_OWN_ENTRY

}  // namespace

extern "C" const MR_Api* MR_GetApi(void) { return &kApi; }
