// SPDX-License-Identifier: Apache-2.0
// MR_Gradient and what it stands for.
#pragma once

#include "capi/internal.h"
#include "graph/gradient.h"
#include "millrace/c_api_training.h"

namespace millrace::capi {

inline constexpr TF_Output kNoOutput = {nullptr, -1};
inline constexpr MR_Gradient kNoGradient = {kNoOutput, kNoOutput, kNoOutput, kNoOutput};

MR_Gradient GradientToC(const Gradient& g);
// InvalidArgument naming the position when it refers to no output of an operation.
StatusOr<Gradient> GradientFromC(const MR_Gradient& g, int position);

}  // namespace millrace::capi
