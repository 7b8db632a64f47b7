// SPDX-License-Identifier: Apache-2.0
#include "capi/entry_points.h"

#define MR_POINT(name) &name,
#define MR_PLUGIN_POINT(name) &TF_##name,
#define MR_FORM_POINT(name, old) &name,
#define MR_OLD_POINT(name, old) &old,
// clang-format off
extern "C" constinit const MR_Face MR_FACE_TABLE = {
    MR_API_PLUGIN_FUNCTIONS(MR_PLUGIN_POINT)
    MR_COMMON_POINTS(MR_POINT)
    MR_ENV_POINTS(MR_POINT)
    MR_EAGER_POINTS(MR_POINT)
    MR_FURTHER_POINTS(MR_POINT)
    MR_FORM_POINTS(MR_FORM_POINT)
    MR_FORM_POINTS(MR_OLD_POINT)
};
// clang-format on
