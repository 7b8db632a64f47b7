// SPDX-License-Identifier: Apache-2.0
// The loops are plain C++ that the compiler vectorises, but for narrow floats; Highway compiles them once per
// instruction set.
#include "kernels/cpu/training/training_rules.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/training/training_rules.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>
#include <utility>

#include "kernels/cpu/engine/narrow_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {

template <typename T>
HWY_INLINE T Root(T x) {
  if constexpr (requires { hwy::HWY_NAMESPACE::Vec<WideTag>{x}; } && !std::is_same_v<T, float>) {
    return hwy::HWY_NAMESPACE::Sqrt(hwy::HWY_NAMESPACE::Vec<WideTag>{x}).raw;
  } else {
    return std::sqrt(x);
  }
}

// Rules that only calculate: S is the type of the scalars, V that of elements, S or a vector of floats. `v` are an
// element of the variable and of its slots, `g` is one of the gradient. `set` is the flag of the rule as a type, so
// that loops have no branch.
template <typename S>
struct GradientDescent {
  static constexpr int kVariables = 1;
  static constexpr bool flag = false;
  const S alpha;
  GradientDescent(const S* s, const RuleFlags&) : alpha(s[0]) {}
  template <typename V>
  HWY_INLINE void operator()(V* v, V g, auto) const {
    v[0] -= alpha * g;
  }
};

template <typename S>
struct Momentum {
  static constexpr int kVariables = 2;
  const S lr, momentum;
  const bool flag;  // Nesterov's
  Momentum(const S* s, const RuleFlags& f) : lr(s[0]), momentum(s[1]), flag(f.use_nesterov) {}
  template <typename V>
  HWY_INLINE void operator()(V* v, V g, auto set) const {
    v[1] = v[1] * momentum + g;
    if constexpr (set) {
      v[0] -= g * lr + v[1] * momentum * lr;
    } else {
      v[0] -= v[1] * lr;
    }
  }
};

template <typename S>
struct KerasMomentum {
  static constexpr int kVariables = 2;
  const S lr, momentum;
  const bool flag;  // Nesterov's
  KerasMomentum(const S* s, const RuleFlags& f) : lr(s[0]), momentum(s[1]), flag(f.use_nesterov) {}
  template <typename V>
  HWY_INLINE void operator()(V* v, V g, auto set) const {
    v[1] = v[1] * momentum - g * lr;
    if constexpr (set) {
      v[0] += v[1] * momentum - g * lr;
    } else {
      v[0] += v[1];
    }
  }
};

template <typename S>
struct Adagrad {
  static constexpr int kVariables = 2;
  const S lr;
  const bool flag;  // whether slots change
  Adagrad(const S* s, const RuleFlags& f) : lr(s[0]), flag(f.update_slots) {}
  template <typename V>
  HWY_INLINE void operator()(V* v, V g, auto set) const {
    if constexpr (set) v[1] += g * g;
    v[0] -= g * lr / Root(v[1]);
  }
};

template <typename S>
struct AdagradV2 {
  static constexpr int kVariables = 2;
  const S lr, epsilon;
  const bool flag;  // whether slots change
  AdagradV2(const S* s, const RuleFlags& f) : lr(s[0]), epsilon(s[1]), flag(f.update_slots) {}
  template <typename V>
  HWY_INLINE void operator()(V* v, V g, auto set) const {
    if constexpr (set) v[1] += g * g;
    v[0] -= g * lr / (Root(v[1]) + epsilon);
  }
};

template <typename S>
struct Adadelta {
  static constexpr int kVariables = 3;
  static constexpr bool flag = false;
  const S lr, rho, epsilon;
  Adadelta(const S* s, const RuleFlags&) : lr(s[0]), rho(s[1]), epsilon(s[2]) {}
  template <typename V>
  HWY_INLINE void operator()(V* v, V g, auto) const {
    v[1] = v[1] * rho + g * g * (S(1) - rho);
    const V update = Root(v[2] + epsilon) / Root(v[1] + epsilon) * g;
    v[0] -= update * lr;
    v[2] = v[2] * rho + update * update * (S(1) - rho);
  }
};

// With Nesterov momentum the step looks ahead along m; otherwise from_m and from_g reduce to m itself.
template <typename S>
struct Adam {
  static constexpr int kVariables = 3;
  static constexpr bool flag = false;
  const S alpha, beta1, beta2, epsilon, from_m, from_g;
  Adam(const S* s, const RuleFlags& f)
      : alpha(s[2] * std::sqrt(S(1) - s[1]) / (S(1) - s[0])),
        beta1(s[3]),
        beta2(s[4]),
        epsilon(s[5]),
        from_m(f.use_nesterov ? beta1 : S(1)),
        from_g(f.use_nesterov ? S(1) - beta1 : S(0)) {}
  template <typename V>
  HWY_INLINE void operator()(V* v, V g, auto) const {
    v[1] += (g - v[1]) * (S(1) - beta1);
    v[2] += (g * g - v[2]) * (S(1) - beta2);
    v[0] -= (v[1] * from_m + g * from_g) * alpha / (Root(v[2]) + epsilon);
  }
};

template <typename S>
struct RmsProp {
  static constexpr int kVariables = 3;
  static constexpr bool flag = false;
  const S lr, rho, momentum, epsilon;
  RmsProp(const S* s, const RuleFlags&) : lr(s[0]), rho(s[1]), momentum(s[2]), epsilon(s[3]) {}
  template <typename V>
  HWY_INLINE void operator()(V* v, V g, auto) const {
    v[1] += (g * g - v[1]) * (S(1) - rho);
    v[2] = v[2] * momentum + g * lr / Root(v[1] + epsilon);
    v[0] -= v[2];
  }
};

// Slots: the mean of gradients, of their squares, the momentum.
template <typename S>
struct CenteredRmsProp {
  static constexpr int kVariables = 4;
  static constexpr bool flag = false;
  const S lr, rho, momentum, epsilon;
  CenteredRmsProp(const S* s, const RuleFlags&) : lr(s[0]), rho(s[1]), momentum(s[2]), epsilon(s[3]) {}
  template <typename V>
  HWY_INLINE void operator()(V* v, V g, auto) const {
    v[2] += (g * g - v[2]) * (S(1) - rho);
    v[1] += (g - v[1]) * (S(1) - rho);
    v[3] = v[3] * momentum + g * lr / Root(v[2] - v[1] * v[1] + epsilon);
    v[0] -= v[3];
  }
};

// Calls run(std::bool_constant) with the rule's flag.
template <class Rule, typename Run>
HWY_INLINE void WithFlag(const Rule& rule, const Run& run) {
  if (rule.flag) {
    run(std::true_type());
  } else {
    run(std::false_type());
  }
}

// A rule that calculates, over elements of its own type. A pointer for each variable, and no loop over them: so the
// compiler makes vector code of it.
template <class Rule, typename T, class Flag, size_t... K>
HWY_INLINE void EachOf(const Rule& rule, T* const* v, const T* __restrict g, int64_t n, Flag flag,
                       std::index_sequence<K...>) {
  const auto run = [&](auto* __restrict... at) HWY_ATTR {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      T value[] = {at[i]...};
      rule(value, g[i], flag);
      ((at[i] = value[K]), ...);
    }
  };
  run(v[K]...);
}
template <class Rule, typename T>
void Each(const T* s, const RuleFlags& f, T* const* v, const T* g, int64_t n) {
  const Rule rule(s, f);
  WithFlag(
      rule, [&](auto flag) HWY_ATTR { EachOf(rule, v, g, n, flag, std::make_index_sequence<Rule::kVariables>()); });
}

// The same over narrow floats, in vectors of floats; the last one is filled up.
template <class Rule, typename H, class Flag>
HWY_INLINE void NarrowStep(const Rule& rule, H* const* at, const H* g, Flag flag) {
  const WideTag d;
  using V = decltype(hwy::HWY_NAMESPACE::Vec<WideTag>::raw);
  V value[Rule::kVariables];
  for (int k = 0; k < Rule::kVariables; ++k) value[k] = LoadWide(d, at[k]).raw;
  rule(value, LoadWide(d, g).raw, flag);
  for (int k = 0; k < Rule::kVariables; ++k) {
    StoreNarrow(hwy::HWY_NAMESPACE::Vec<WideTag>{value[k]}, d, at[k]);
  }
}
template <class Rule, typename H>
void EachNarrow(const float* s, const RuleFlags& f, H* const* v, const H* g, int64_t n) {
  constexpr int64_t kLanes = hwy::HWY_NAMESPACE::MaxLanes(WideTag());
  const Rule rule(s, f);
  WithFlag(rule, [&](auto flag) HWY_ATTR {
    H* at[Rule::kVariables];
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int k = 0; k < Rule::kVariables; ++k) at[k] = v[k] + i;
      NarrowStep(rule, at, g + i, flag);
    }
    if (i == n) return;
    H rest[Rule::kVariables + 1][kLanes] = {};
    for (int k = 0; k < Rule::kVariables; ++k) std::copy(v[k] + i, v[k] + n, at[k] = rest[k]);
    std::copy(g + i, g + n, rest[Rule::kVariables]);
    NarrowStep(rule, at, rest[Rule::kVariables], flag);
    for (int k = 0; k < Rule::kVariables; ++k) std::copy(rest[k], rest[k] + (n - i), v[k] + i);
  });
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

// What `use` gives for the rule of this name, if it is one that calculates.
template <typename S, typename Use>
auto FindCalculating(const std::string& name, const Use& use) -> decltype(use.template operator()<Adam<S>>()) {
  if (name == "GradientDescent") return use.template operator()<GradientDescent<S>>();
  if (name == "Momentum") return use.template operator()<Momentum<S>>();
  if (name == "Adagrad") return use.template operator()<Adagrad<S>>();
  if (name == "Adadelta") return use.template operator()<Adadelta<S>>();
  if (name == "Adam") return use.template operator()<Adam<S>>();
  if (name == "RMSProp") return use.template operator()<RmsProp<S>>();
  if (name == "CenteredRMSProp") return use.template operator()<CenteredRmsProp<S>>();
  if (name == "AdagradV2") return use.template operator()<AdagradV2<S>>();
  if (name == "KerasMomentum") return use.template operator()<KerasMomentum<S>>();
  return nullptr;
}

template <typename T>
RuleFn<T> Find(const std::string& name) {
  const auto each = []<class Rule>() -> RuleFn<T> { return Each<Rule, T>; };
  if (const RuleFn<T> fn = FindCalculating<T>(name, each)) return fn;
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
template <typename H>
RuleFn<H> FindNarrow(const std::string& name) {
  if constexpr (kConvertsInVectors<H>) {
    return FindCalculating<float>(name, []<class Rule>() -> RuleFn<H> { return EachNarrow<Rule, H>; });
  } else {
    return nullptr;
  }
}

RuleFn<float> FindFloat(const std::string& name) { return Find<float>(name); }
RuleFn<double> FindDouble(const std::string& name) { return Find<double>(name); }
RuleFn<Half> FindHalf(const std::string& name) { return FindNarrow<Half>(name); }
RuleFn<BFloat16> FindBFloat16(const std::string& name) { return FindNarrow<BFloat16>(name); }
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
HWY_EXPORT(FindHalf);
HWY_EXPORT(FindBFloat16);

template <>
RuleFn<float> FindRule<float>(const std::string& name) {
  return HWY_DYNAMIC_DISPATCH(FindFloat)(name);
}
template <>
RuleFn<double> FindRule<double>(const std::string& name) {
  return HWY_DYNAMIC_DISPATCH(FindDouble)(name);
}
template <>
RuleFn<Half> FindRule<Half>(const std::string& name) {
  return HWY_DYNAMIC_DISPATCH(FindHalf)(name);
}
template <>
RuleFn<BFloat16> FindRule<BFloat16>(const std::string& name) {
  return HWY_DYNAMIC_DISPATCH(FindBFloat16)(name);
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
