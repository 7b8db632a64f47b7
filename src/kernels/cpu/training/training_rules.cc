// SPDX-License-Identifier: Apache-2.0
// The loops are plain C++ that the compiler vectorises; Highway compiles them once per instruction set.
#include "kernels/cpu/training/training_rules.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/training/training_rules.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cmath>
#include <complex>

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {

template <typename T>
void GradientDescent(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  const T alpha = s[0];
  T* __restrict var = v[0];
  for (int64_t i = 0; i < n; ++i) var[i] -= alpha * g[i];
}

template <typename T>
void Momentum(const T* s, const RuleFlags& f, T* const* v, const T* __restrict g, int64_t n) {
  const T lr = s[0], momentum = s[1];
  T* __restrict var = v[0];
  T* __restrict accum = v[1];
  if (f.use_nesterov) {
    for (int64_t i = 0; i < n; ++i) {
      accum[i] = accum[i] * momentum + g[i];
      var[i] -= g[i] * lr + accum[i] * momentum * lr;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      accum[i] = accum[i] * momentum + g[i];
      var[i] -= accum[i] * lr;
    }
  }
}

template <typename T>
void Adagrad(const T* s, const RuleFlags& f, T* const* v, const T* __restrict g, int64_t n) {
  const T lr = s[0];
  T* __restrict var = v[0];
  T* __restrict accum = v[1];
  if (f.update_slots) {
    for (int64_t i = 0; i < n; ++i) {
      accum[i] += g[i] * g[i];
      var[i] -= g[i] * lr / std::sqrt(accum[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) var[i] -= g[i] * lr / std::sqrt(accum[i]);
  }
}

template <typename T>
void Adadelta(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  const T lr = s[0], rho = s[1], epsilon = s[2];
  T* __restrict var = v[0];
  T* __restrict accum = v[1];
  T* __restrict accum_update = v[2];
  for (int64_t i = 0; i < n; ++i) {
    accum[i] = accum[i] * rho + g[i] * g[i] * (T(1) - rho);
    const T update = std::sqrt(accum_update[i] + epsilon) / std::sqrt(accum[i] + epsilon) * g[i];
    var[i] -= update * lr;
    accum_update[i] = accum_update[i] * rho + update * update * (T(1) - rho);
  }
}

template <typename T>
void Adam(const T* s, const RuleFlags& f, T* const* v, const T* __restrict g, int64_t n) {
  const T beta1_power = s[0], beta2_power = s[1], lr = s[2], beta1 = s[3], beta2 = s[4], epsilon = s[5];
  const T alpha = lr * std::sqrt(T(1) - beta2_power) / (T(1) - beta1_power);
  T* __restrict var = v[0];
  T* __restrict m = v[1];
  T* __restrict s2 = v[2];
  // With Nesterov momentum the step looks ahead along m; otherwise these reduce to m itself.
  const T from_m = f.use_nesterov ? beta1 : T(1);
  const T from_g = f.use_nesterov ? T(1) - beta1 : T(0);
  for (int64_t i = 0; i < n; ++i) {
    m[i] += (g[i] - m[i]) * (T(1) - beta1);
    s2[i] += (g[i] * g[i] - s2[i]) * (T(1) - beta2);
    var[i] -= (m[i] * from_m + g[i] * from_g) * alpha / (std::sqrt(s2[i]) + epsilon);
  }
}

template <typename T>
void RmsProp(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  const T lr = s[0], rho = s[1], momentum = s[2], epsilon = s[3];
  T* __restrict var = v[0];
  T* __restrict ms = v[1];
  T* __restrict mom = v[2];
  for (int64_t i = 0; i < n; ++i) {
    ms[i] += (g[i] * g[i] - ms[i]) * (T(1) - rho);
    mom[i] = mom[i] * momentum + g[i] * lr / std::sqrt(ms[i] + epsilon);
    var[i] -= mom[i];
  }
}

template <typename T>
void CenteredRmsProp(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  const T lr = s[0], rho = s[1], momentum = s[2], epsilon = s[3];
  T* __restrict var = v[0];
  T* __restrict mg = v[1];
  T* __restrict ms = v[2];
  T* __restrict mom = v[3];
  for (int64_t i = 0; i < n; ++i) {
    ms[i] += (g[i] * g[i] - ms[i]) * (T(1) - rho);
    mg[i] += (g[i] - mg[i]) * (T(1) - rho);
    mom[i] = mom[i] * momentum + g[i] * lr / std::sqrt(ms[i] - mg[i] * mg[i] + epsilon);
    var[i] -= mom[i];
  }
}

template <typename T>
void AdaMax(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  const T beta1_power = s[0], lr = s[1], beta1 = s[2], beta2 = s[3], epsilon = s[4];
  T* __restrict var = v[0];
  T* __restrict m = v[1];
  T* __restrict u = v[2];
  const T alpha = lr / (T(1) - beta1_power);
  for (int64_t i = 0; i < n; ++i) {
    m[i] += (g[i] - m[i]) * (T(1) - beta1);
    const T decayed = beta2 * u[i], magnitude = std::abs(g[i]);
    u[i] = decayed > magnitude ? decayed : magnitude;
    var[i] -= alpha * m[i] / (u[i] + epsilon);
  }
}

template <bool Root, typename T>
void FtrlBy(const T lr, const T l1, const T l2, const T l2_shrinkage, const T lr_power, T* const* v,
            const T* __restrict g, int64_t n) {
  T* __restrict var = v[0];
  T* __restrict accum = v[1];
  T* __restrict linear = v[2];
  const auto power = [lr_power](T x) { return Root ? std::sqrt(x) : std::pow(x, -lr_power); };
  for (int64_t i = 0; i < n; ++i) {
    const T next = accum[i] + g[i] * g[i];
    const T power_next = power(next);
    const T z = linear[i] + (g[i] + T(2) * l2_shrinkage * var[i] - (power_next - power(accum[i])) / lr * var[i]);
    const T shrunk = ((z < T(0) ? -l1 : l1) - z) / (power_next / lr + T(2) * l2);
    var[i] = std::abs(z) > l1 ? shrunk : T(0);
    linear[i] = z;
    accum[i] = next;
  }
}
template <typename T>
void FtrlStep(const T lr, const T l1, const T l2, const T l2_shrinkage, const T lr_power, T* const* v, const T* g,
              int64_t n) {
  const auto step = lr_power == T(-0.5) ? FtrlBy<true, T> : FtrlBy<false, T>;
  step(lr, l1, l2, l2_shrinkage, lr_power, v, g, n);
}

template <typename T>
void Ftrl(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  FtrlStep(s[0], s[1], s[2], T(0), s[3], v, g, n);
}
template <typename T>
void FtrlV2(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  FtrlStep(s[0], s[1], s[2], s[3], s[4], v, g, n);
}

template <typename T>
void AdagradV2(const T* s, const RuleFlags& f, T* const* v, const T* __restrict g, int64_t n) {
  const T lr = s[0], epsilon = s[1];
  T* __restrict var = v[0];
  T* __restrict accum = v[1];
  if (f.update_slots) {
    for (int64_t i = 0; i < n; ++i) {
      accum[i] += g[i] * g[i];
      var[i] -= g[i] * lr / (std::sqrt(accum[i]) + epsilon);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) var[i] -= g[i] * lr / (std::sqrt(accum[i]) + epsilon);
  }
}

template <typename T>
void KerasMomentum(const T* s, const RuleFlags& f, T* const* v, const T* __restrict g, int64_t n) {
  const T lr = s[0], momentum = s[1];
  T* __restrict var = v[0];
  T* __restrict accum = v[1];
  if (f.use_nesterov) {
    for (int64_t i = 0; i < n; ++i) {
      accum[i] = accum[i] * momentum - g[i] * lr;
      var[i] += accum[i] * momentum - g[i] * lr;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      accum[i] = accum[i] * momentum - g[i] * lr;
      var[i] += accum[i];
    }
  }
}

template <typename T>
void AdamWithAmsgrad(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  const T beta1_power = s[0], beta2_power = s[1], lr = s[2], beta1 = s[3], beta2 = s[4], epsilon = s[5];
  const T alpha = lr * std::sqrt(T(1) - beta2_power) / (T(1) - beta1_power);
  T* __restrict var = v[0];
  T* __restrict m = v[1];
  T* __restrict s2 = v[2];
  T* __restrict largest = v[3];
  for (int64_t i = 0; i < n; ++i) {
    m[i] += (g[i] - m[i]) * (T(1) - beta1);
    s2[i] += (g[i] * g[i] - s2[i]) * (T(1) - beta2);
    largest[i] = largest[i] > s2[i] ? largest[i] : s2[i];
    var[i] -= m[i] * alpha / (std::sqrt(largest[i]) + epsilon);
  }
}

template <typename T>
T SignOf(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;  // of NaN NaN
}

template <typename T>
void AddSign(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  const T lr = s[0], alpha = s[1], sign_decay = s[2], beta = s[3];
  T* __restrict var = v[0];
  T* __restrict m = v[1];
  for (int64_t i = 0; i < n; ++i) {
    m[i] = m[i] * beta + g[i] * (T(1) - beta);
    var[i] -= lr * (alpha + sign_decay * SignOf(g[i]) * SignOf(m[i])) * g[i];
  }
}

// The exponent is one of three: of g and m of one sign, of different signs, and where one is 0.
template <typename T>
void PowerSign(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  const T lr = s[0], exponent = s[1] * s[2], beta = s[3];
  const T up = std::exp(exponent), down = std::exp(-exponent);
  T* __restrict var = v[0];
  T* __restrict m = v[1];
  for (int64_t i = 0; i < n; ++i) {
    m[i] = m[i] * beta + g[i] * (T(1) - beta);
    const T sign = SignOf(g[i]) * SignOf(m[i]);
    const T of_others = sign < T(0) ? down : T(1) + sign, factor = sign > T(0) ? up : of_others;
    var[i] -= lr * factor * g[i];
  }
}

// What of x the proximal step with weight l1 leaves.
template <typename T>
T Shrunk(T x, T l1) {
  const T left = std::abs(x) - l1;
  return (left <= T(0)) | (x == T(0)) ? T(0) : std::copysign(left, x);  // of NaN NaN
}

template <typename T>
void ProximalGradientDescent(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  const T alpha = s[0], l1 = s[1] > T(0) ? alpha * s[1] : T(0), l2 = s[2];
  T* __restrict var = v[0];
  const T scale = T(1) + alpha * l2;
  for (int64_t i = 0; i < n; ++i) var[i] = Shrunk(var[i] - g[i] * alpha, l1) / scale;
}

template <typename T>
void ProximalAdagrad(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  const T lr = s[0], l1 = s[1], l2 = s[2];
  T* __restrict var = v[0];
  T* __restrict accum = v[1];
  for (int64_t i = 0; i < n; ++i) {
    accum[i] += g[i] * g[i];
    const T rate = lr / std::sqrt(accum[i]);  // may be infinite
    var[i] = Shrunk(var[i] - g[i] * rate, l1 > T(0) ? rate * l1 : T(0)) / (T(1) + l2 * rate);
  }
}

template <typename T>
void AdagradDa(const T* s, const RuleFlags&, T* const* v, const T* __restrict g, int64_t n) {
  const T lr = s[0], l2 = s[2], steps = s[3], l1 = s[1] > T(0) ? s[1] * steps : T(0);
  T* __restrict var = v[0];
  T* __restrict sum = v[1];
  T* __restrict squares = v[2];
  for (int64_t i = 0; i < n; ++i) {
    sum[i] += g[i];
    squares[i] += g[i] * g[i];
    var[i] = -lr * Shrunk(sum[i], l1) / (l2 * steps * lr + std::sqrt(squares[i]));
  }
}

template <typename T>
RuleFn<T> Find(const std::string& name) {
  if (name == "GradientDescent") return GradientDescent<T>;
  if (name == "Momentum") return Momentum<T>;
  if (name == "Adagrad") return Adagrad<T>;
  if (name == "Adadelta") return Adadelta<T>;
  if (name == "Adam") return Adam<T>;
  if (name == "RMSProp") return RmsProp<T>;
  if (name == "CenteredRMSProp") return CenteredRmsProp<T>;
  if (name == "AdagradV2") return AdagradV2<T>;
  if (name == "KerasMomentum") return KerasMomentum<T>;
  if constexpr (std::is_floating_point_v<T>) {
    if (name == "AdaMax") return AdaMax<T>;
    if (name == "Ftrl") return Ftrl<T>;
    if (name == "FtrlV2") return FtrlV2<T>;
    if (name == "AdamWithAmsgrad") return AdamWithAmsgrad<T>;
    if (name == "AddSign") return AddSign<T>;
    if (name == "PowerSign") return PowerSign<T>;
    if (name == "ProximalGradientDescent") return ProximalGradientDescent<T>;
    if (name == "ProximalAdagrad") return ProximalAdagrad<T>;
    if (name == "AdagradDA") return AdagradDa<T>;
  }
  return nullptr;
}

RuleFn<float> FindFloat(const std::string& name) { return Find<float>(name); }
RuleFn<double> FindDouble(const std::string& name) { return Find<double>(name); }
#if HWY_TARGET == HWY_STATIC_TARGET
RuleFn<complex64> FindComplex64(const std::string& name) { return Find<complex64>(name); }
RuleFn<complex128> FindComplex128(const std::string& name) { return Find<complex128>(name); }
#endif

}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(FindFloat);
HWY_EXPORT(FindDouble);

template <>
RuleFn<float> FindRule<float>(const std::string& name) {
  return HWY_DYNAMIC_DISPATCH(FindFloat)(name);
}
template <>
RuleFn<double> FindRule<double>(const std::string& name) {
  return HWY_DYNAMIC_DISPATCH(FindDouble)(name);
}
template <>
RuleFn<complex64> FindRule<complex64>(const std::string& name) {
  return HWY_STATIC_DISPATCH(FindComplex64)(name);
}
template <>
RuleFn<complex128> FindRule<complex128>(const std::string& name) {
  return HWY_STATIC_DISPATCH(FindComplex128)(name);
}

}  // namespace millrace
#endif
