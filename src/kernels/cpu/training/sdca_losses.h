// SPDX-License-Identifier: Apache-2.0
// The losses of stochastic dual coordinate ascent. Each maximises the dual objective in one example's variable, the
// others kept (Shalev-Shwartz and Zhang 2013), with the step that Ma et al. (2015) take where others work on parts of
// the examples. Losses are of an example whose weight is 1.
#pragma once

#include "absl/strings/string_view.h"

namespace millrace {

struct DualStep {
  double label = 0;       // as AdmitLabel made it
  double dual = 0;        // so far
  double prediction = 0;  // so far
  double curvature = 0;   // parts of the examples * weight of the example * |x|^2 / l2
};

struct SdcaLoss {
  const char* name;
  double smoothness;  // gamma, where the derivative is 1/gamma-Lipschitz; 0 where it is not
  double (*updated)(const DualStep& step);
  double (*primal)(double prediction, double label);
  double (*derivative)(double prediction, double label);  // of the primal loss
  double (*conjugate)(double dual, double label);         // of -dual; infinite where there is none
  bool (*admit)(float* label);                            // whether it is a label; classes 0 and 1 become -1 and 1
  const char* labels;                                     // which there are, as errors say it
};

// Null: there is none of this name.
const SdcaLoss* FindSdcaLoss(absl::string_view name);

}  // namespace millrace
