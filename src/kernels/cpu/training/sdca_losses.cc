// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/training/sdca_losses.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace millrace {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int kNewtonSteps = 10;  // it converges quadratically

bool AdmitClass(float* label) {
  if (*label == 0)
    *label = -1;
  else if (*label != 1)
    return false;
  return true;
}
bool AdmitAny(float*) { return true; }
bool AdmitCount(float* label) { return !(*label < 0); }

// Duals of the losses with a margin lie between 0 and the label.
double ToMargin(double dual, double label) {
  if (label * dual < 0) return 0;
  return label * dual > 1 ? label : dual;
}

// ---- log(1 + exp(-label * prediction)) ----

// The dual is (1 + tanh x) / 2 * label: all x are allowed, and Newton's method finds the best.
double UpdatedLogistic(const DualStep& s) {
  double x = 0;
  for (int i = 0; i < kNewtonSteps; ++i) {
    const double t = std::tanh(x);
    const double value = -2 * s.label * x - s.prediction - s.curvature * (0.5 * (1 + t) / s.label - s.dual);
    const double slope = -2 * s.label - s.curvature * (1 - t * t) * 0.5 / s.label;
    x -= value / slope;
  }
  return 0.5 * (1 + std::tanh(x)) / s.label;
}
double PrimalLogistic(double prediction, double label) {
  const double margin = label * prediction;
  return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
}
double DerivativeLogistic(double prediction, double label) {
  const double margin = label * prediction, small = std::exp(-std::abs(margin));
  return -label * (margin > 0 ? small : 1) / (1 + small);
}
double ConjugateLogistic(double dual, double label) {
  const auto entropy = [](double p) { return p > 0 ? p * std::log(p) : 0; };
  return entropy(dual * label) + entropy(1 - dual * label);
}

// ---- (prediction - label)^2 / 2 ----

double UpdatedSquared(const DualStep& s) { return s.dual + (s.label - s.dual - s.prediction) / (1 + s.curvature); }
double PrimalSquared(double prediction, double label) { return 0.5 * (prediction - label) * (prediction - label); }
double DerivativeSquared(double prediction, double label) { return prediction - label; }
double ConjugateSquared(double dual, double label) { return dual * (0.5 * dual - label); }

// ---- max(0, 1 - label * prediction) ----

double UpdatedHinge(const DualStep& s) {
  const double gap = s.label - s.prediction;
  if (gap == 0) return ToMargin(s.dual, s.label);  // also where nothing depends on the example
  return ToMargin(s.dual + gap / s.curvature, s.label);
}
double PrimalHinge(double prediction, double label) { return std::max(0.0, 1 - label * prediction); }
double DerivativeHinge(double prediction, double label) { return label * prediction < 1 ? -label : 0; }
double ConjugateHinge(double dual, double label) {
  const double at = dual * label;
  return at < 0 || at > 1 ? kInfinite : -at;
}

// ---- The hinge with a parabola of this width at its corner ----

constexpr double kGamma = 1;

double UpdatedSmoothHinge(const DualStep& s) {
  return ToMargin(s.dual + (s.label - s.prediction - kGamma * s.dual) / (s.curvature + kGamma), s.label);
}
double PrimalSmoothHinge(double prediction, double label) {
  const double gap = 1 - label * prediction;
  if (gap <= 0) return 0;
  return gap >= kGamma ? gap - kGamma / 2 : gap * gap * 0.5 / kGamma;
}
double DerivativeSmoothHinge(double prediction, double label) {
  const double gap = 1 - label * prediction;
  if (gap <= 0) return 0;
  return gap >= kGamma ? -label : (prediction - label) / kGamma;
}
double ConjugateSmoothHinge(double dual, double label) {
  const double at = dual * label;
  return at < 0 || at > 1 ? kInfinite : -at + 0.5 * kGamma * dual * dual;
}

// ---- exp(prediction) - label * prediction ----

// The dual is label - exp(x).
double UpdatedPoisson(const DualStep& s) {
  const double left = s.label - s.dual;
  double x = left > 0 ? std::log(left) : 0;
  for (int i = 0; i < kNewtonSteps; ++i) {
    const double e = std::exp(x);
    x -= (x - s.prediction - s.curvature * (left - e)) / (1 + s.curvature * e);
  }
  return s.label - std::exp(x);
}
double PrimalPoisson(double prediction, double label) { return std::exp(prediction) - prediction * label; }
double DerivativePoisson(double prediction, double label) { return std::exp(prediction) - label; }
double ConjugatePoisson(double dual, double label) {
  const double left = label - dual;
  if (left == 0) return 0;
  return left < 0 ? kInfinite : left * (std::log(left) - 1);
}

constexpr char kClasses[] = "Only labels of 0.0 or 1.0 are supported right now.";

constexpr SdcaLoss kLosses[] = {
    {"logistic_loss", 4, UpdatedLogistic, PrimalLogistic, DerivativeLogistic, ConjugateLogistic, AdmitClass, kClasses},
    {"squared_loss", 1, UpdatedSquared, PrimalSquared, DerivativeSquared, ConjugateSquared, AdmitAny, ""},
    {"hinge_loss", 0, UpdatedHinge, PrimalHinge, DerivativeHinge, ConjugateHinge, AdmitClass, kClasses},
    {"smooth_hinge_loss", kGamma, UpdatedSmoothHinge, PrimalSmoothHinge, DerivativeSmoothHinge, ConjugateSmoothHinge,
     AdmitClass, kClasses},
    {"poisson_loss", 1, UpdatedPoisson, PrimalPoisson, DerivativePoisson, ConjugatePoisson, AdmitCount,
     "Only non-negative labels can be used with the Poisson log loss."},
};

}  // namespace

const SdcaLoss* FindSdcaLoss(absl::string_view name) {
  for (const SdcaLoss& loss : kLosses) {
    if (name == loss.name) return &loss;
  }
  return nullptr;
}

}  // namespace millrace
