// SPDX-License-Identifier: Apache-2.0
// Special functions of one element, in double. NaN where they are not defined.
#pragma once

#include <cstdint>

namespace millrace {

// B_2j / (2j)! from j = 1 on, with the Bernoulli numbers B: the weights of the Euler-Maclaurin formula.
inline constexpr double kEulerMaclaurin[] = {
    1.0 / 12,
    -1.0 / 720,
    1.0 / 30240,
    -1.0 / 1209600,
    1.0 / 47900160,
    -691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
    -3617.0 / 10670622842880000.0};

// Modified Bessel functions of the first kind, and scaled by exp(-|x|).
double BesselI0(double x);
double BesselI1(double x);
double BesselI0Scaled(double x);
double BesselI1Scaled(double x);
// Of the second kind, and scaled by exp(x); infinite where x is not positive.
double BesselK0(double x);
double BesselK1(double x);
double BesselK0Scaled(double x);
double BesselK1Scaled(double x);
// Bessel functions of the first and of the second kind; the latter are -infinity where x is not positive.
double BesselJ0(double x);
double BesselJ1(double x);
double BesselY0(double x);
double BesselY1(double x);

// The inverse of the error function, and that of the normal distribution function. NaN outside of their ranges.
double InverseErf(double x);
double NormalQuantile(double p);

// The regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x), and the derivative of P by a.
double IncompleteGammaP(double a, double x);
double IncompleteGammaQ(double a, double x);
double IncompleteGammaPByA(double a, double x);
// The derivative by a of a Gamma(a, 1) sample x whose probability P(a, x) stays as it is.
double GammaSampleByA(double a, double x);

// The regularised incomplete beta function I_x(a, b).
double IncompleteBeta(double a, double b, double x);
// Of n elements, as far as float needs. Operands are a, b and x; their steps are 1, or 0 for one element.
void IncompleteBetas(const float* const operands[3], const int64_t steps[3], float* out, int64_t n);

// log |Gamma(x)|.
double LogGamma(double x);

// The digamma function. NaN at its poles.
double Digamma(double x);

// Hurwitz zeta: sum over k >= 0 of (q+k)^-s, by the Euler-Maclaurin formula. NaN where the terms are not real or the
// sum diverges, and for q below -1e4, where the direct part would not end soon.
double Zeta(double s, double q);

// The n-th derivative of the digamma function; n is a whole number.
double Polygamma(double n, double x);

}  // namespace millrace
