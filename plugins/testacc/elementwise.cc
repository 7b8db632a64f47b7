// SPDX-License-Identifier: Apache-2.0
// Element by element, two inputs by NumPy's rule of broadcasting.
#include <algorithm>
#include <cmath>

#include "kernel.h"

namespace testacc {
namespace {

// For each element of the result in order, fn(result, a, b) with the elements' positions.
struct Broadcast {
  Dims dims;
  Dims a_steps, b_steps;

  Broadcast(const Dims& a, const Dims& b) {
    const size_t rank = std::max(a.size(), b.size());
    const auto dim = [&](const Dims& d, size_t i) { return i + d.size() < rank ? 1 : d[i + d.size() - rank]; };
    for (size_t i = 0; i < rank; ++i) {
      const int64_t x = dim(a, i), y = dim(b, i);
      if (x != y && x != 1 && y != 1) Invalid("Incompatible shapes: " + Text(a) + " vs. " + Text(b));
      dims.push_back(x == 1 ? y : x);
    }
    a_steps = Steps(a);
    b_steps = Steps(b);
  }
  Dims Steps(const Dims& d) const {
    Dims steps(dims.size(), 0);
    int64_t step = 1;
    for (size_t i = d.size(); i-- > 0;) {
      if (d[i] != 1) steps[i + dims.size() - d.size()] = step;
      step *= d[i];
    }
    return steps;
  }
  template <typename Fn>
  void ForEach(Fn fn) const {
    const int64_t n = Count(dims);
    Dims at(dims.size(), 0);
    int64_t a = 0, b = 0;
    for (int64_t i = 0; i < n; ++i) {
      fn(i, a, b);
      for (size_t d = dims.size(); d-- > 0;) {
        a += a_steps[d], b += b_steps[d];
        if (++at[d] < dims[d]) break;
        a -= a_steps[d] * dims[d], b -= b_steps[d] * dims[d];
        at[d] = 0;
      }
    }
  }
};

template <typename T, typename R, R (*F)(T, T)>
void Binary(Context& c) {
  const Value a = c.Input(0), b = c.Input(1);
  const Broadcast plan(a.dims, b.dims);
  const Value y = c.Output(0, plan.dims);
  c.Queue([=] {
    plan.ForEach([&](int64_t i, int64_t k, int64_t m) { y.as<R>()[i] = F(a.as<T>()[k], b.as<T>()[m]); });
  });
}

// Both inputs and the result have one shape: gradients of element-wise functions.
template <typename T, T (*F)(T, T)>
void Pairwise(Context& c) {
  const Value a = c.Input(0), b = c.Input(1);
  Require(a.dims == b.dims, "the inputs must have one shape");
  const Value y = c.Output(0, a.dims);
  c.Queue([=] {
    for (int64_t i = 0; i < y.size; ++i) y.as<T>()[i] = F(a.as<T>()[i], b.as<T>()[i]);
  });
}

template <typename T, typename R, R (*F)(T)>
void Unary(Context& c) {
  const Value x = c.Input(0);
  const Value y = c.Output(0, x.dims);
  c.Queue([=] {
    for (int64_t i = 0; i < y.size; ++i) y.as<R>()[i] = F(x.as<T>()[i]);
  });
}

template <typename T>
struct Of {
  // Integers wrap around.
  static T Add(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    return a + b;
  }
  static T Sub(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    return a - b;
  }
  static T Mul(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    return a * b;
  }
  static T Div(T a, T b) { return a / b; }
  static T Max(T a, T b) { return a > b ? a : b; }
  static T Min(T a, T b) { return a < b ? a : b; }
  static T SquaredDifference(T a, T b) { return Mul(Sub(a, b), Sub(a, b)); }
  static bool Less(T a, T b) { return a < b; }
  static bool LessEqual(T a, T b) { return a <= b; }
  static bool Greater(T a, T b) { return a > b; }
  static bool GreaterEqual(T a, T b) { return a >= b; }
  static bool Equal(T a, T b) { return a == b; }
  static bool NotEqual(T a, T b) { return a != b; }
  static T Neg(T x) { return Sub(0, x); }
  static T MinusX(T x) { return -x; }
  static T Abs(T x) { return x < 0 ? Neg(x) : x; }
  static T AbsOfFloat(T x) { return std::abs(x); }
  static T Square(T x) { return Mul(x, x); }
  static T Sign(T x) { return static_cast<T>((x > 0) - (x < 0)); }
  static T Sqrt(T x) { return std::sqrt(x); }
  static T Rsqrt(T x) { return 1 / std::sqrt(x); }
  static T Exp(T x) { return std::exp(x); }
  static T Log(T x) { return std::log(x); }
  static T Log1p(T x) { return std::log1p(x); }
  static T Tanh(T x) { return std::tanh(x); }
  static T Sigmoid(T x) { return 1 / (1 + std::exp(-x)); }
  static T Reciprocal(T x) { return 1 / x; }
  static T Floor(T x) { return std::floor(x); }
  static T Relu(T x) { return x > 0 ? x : 0; }
  static T ReluGrad(T dy, T x) { return x > 0 ? dy : 0; }
  static T TanhGrad(T y, T dy) { return dy * (1 - y * y); }
  static T SigmoidGrad(T y, T dy) { return dy * y * (1 - y); }
  static T SqrtGrad(T y, T dy) { return dy * static_cast<T>(0.5) / y; }
  static T ReciprocalGrad(T y, T dy) { return -dy * y * y; }
  static T Zero(T) { return 0; }
  static T One(T) { return 1; }
};

bool And(bool a, bool b) { return a && b; }
bool Or(bool a, bool b) { return a || b; }
bool Not(bool x) { return !x; }

template <typename T>
void AddArithmetic(TF_Status* s) {
  constexpr TF_DataType t = TypeOf<T>::value;
  using F = Of<T>;
  AddFn<Binary<T, T, F::Add>>({"Add", {{"T", t}}}, s);
  AddFn<Binary<T, T, F::Add>>({"AddV2", {{"T", t}}}, s);
  AddFn<Binary<T, T, F::Sub>>({"Sub", {{"T", t}}}, s);
  AddFn<Binary<T, T, F::Mul>>({"Mul", {{"T", t}}}, s);
  AddFn<Binary<T, T, F::Max>>({"Maximum", {{"T", t}}}, s);
  AddFn<Binary<T, T, F::Min>>({"Minimum", {{"T", t}}}, s);
  AddFn<Binary<T, T, F::SquaredDifference>>({"SquaredDifference", {{"T", t}}}, s);
  AddFn<Binary<T, bool, F::Less>>({"Less", {{"T", t}}}, s);
  AddFn<Binary<T, bool, F::LessEqual>>({"LessEqual", {{"T", t}}}, s);
  AddFn<Binary<T, bool, F::Greater>>({"Greater", {{"T", t}}}, s);
  AddFn<Binary<T, bool, F::GreaterEqual>>({"GreaterEqual", {{"T", t}}}, s);
  AddFn<Binary<T, bool, F::Equal>>({"Equal", {{"T", t}}}, s);
  AddFn<Binary<T, bool, F::NotEqual>>({"NotEqual", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Square>>({"Square", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Sign>>({"Sign", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Zero>>({"ZerosLike", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::One>>({"OnesLike", {{"T", t}}}, s);
  if constexpr (std::is_integral_v<T>) {
    AddFn<Unary<T, T, F::Neg>>({"Neg", {{"T", t}}}, s);
    AddFn<Unary<T, T, F::Abs>>({"Abs", {{"T", t}}}, s);
  }
}

template <typename T>
void AddFunctions(TF_Status* s) {
  constexpr TF_DataType t = TypeOf<T>::value;
  using F = Of<T>;
  AddFn<Unary<T, T, F::MinusX>>({"Neg", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::AbsOfFloat>>({"Abs", {{"T", t}}}, s);
  AddFn<Binary<T, T, F::Div>>({"RealDiv", {{"T", t}}}, s);
  AddFn<Binary<T, T, F::Div>>({"Div", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Sqrt>>({"Sqrt", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Rsqrt>>({"Rsqrt", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Exp>>({"Exp", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Log>>({"Log", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Log1p>>({"Log1p", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Tanh>>({"Tanh", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Sigmoid>>({"Sigmoid", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Reciprocal>>({"Reciprocal", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Floor>>({"Floor", {{"T", t}}}, s);
  AddFn<Unary<T, T, F::Relu>>({"Relu", {{"T", t}}}, s);
  AddFn<Pairwise<T, F::ReluGrad>>({"ReluGrad", {{"T", t}}}, s);
  AddFn<Pairwise<T, F::TanhGrad>>({"TanhGrad", {{"T", t}}}, s);
  AddFn<Pairwise<T, F::SigmoidGrad>>({"SigmoidGrad", {{"T", t}}}, s);
  AddFn<Pairwise<T, F::SqrtGrad>>({"SqrtGrad", {{"T", t}}}, s);
  AddFn<Pairwise<T, F::ReciprocalGrad>>({"ReciprocalGrad", {{"T", t}}}, s);
}

// The sum of all inputs, from the first on.
template <typename T>
void AddN(Context& c) {
  std::vector<Value> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    inputs.push_back(c.Input(i));
    Require(inputs[static_cast<size_t>(i)].dims == inputs[0].dims, "Inputs to operation AddN must have the same shape");
  }
  const Value y = c.Output(0, inputs[0].dims);
  c.Queue([=] {
    for (int64_t i = 0; i < y.size; ++i) {
      T sum = inputs[0].as<T>()[i];
      for (size_t k = 1; k < inputs.size(); ++k) sum = Of<T>::Add(sum, inputs[k].template as<T>()[i]);
      y.as<T>()[i] = sum;
    }
  });
}

template <typename From, typename To>
To Converted(From x) {
  return static_cast<To>(x);
}
template <typename From, typename To>
void AddCast(TF_Status* s) {
  AddFn<Unary<From, To, Converted<From, To>>>(
      {"Cast", {{"SrcT", TypeOf<From>::value}, {"DstT", TypeOf<To>::value}}}, s);
}

template <typename T>
void Select(Context& c) {
  const Value which = c.Input(0), a = c.Input(1), b = c.Input(2);
  Require(a.dims == b.dims, "'then' and 'else' must have the same size");
  const bool by_row = which.rank() == 1 && a.rank() > 1 && which.size == a.dims[0];
  Require(which.rank() == 0 || by_row || which.dims == a.dims, "the shape of 'condition' does not fit");
  const int64_t run = which.rank() == 0 ? std::max<int64_t>(a.size, 1) : by_row && a.size > 0 ? a.size / a.dims[0] : 1;
  const Value y = c.Output(0, a.dims);
  c.Queue([=] {
    for (int64_t i = 0; i < y.size; ++i) y.as<T>()[i] = which.as<bool>()[i / run] ? a.as<T>()[i] : b.as<T>()[i];
  });
}

}  // namespace

void RegisterElementwise(TF_Status* s) {
  AddArithmetic<float>(s);
  AddArithmetic<double>(s);
  AddArithmetic<int32_t>(s);
  AddArithmetic<int64_t>(s);
  AddFunctions<float>(s);
  AddFunctions<double>(s);
  AddFn<Binary<bool, bool, And>>({"LogicalAnd"}, s);
  AddFn<Binary<bool, bool, Or>>({"LogicalOr"}, s);
  AddFn<Unary<bool, bool, Not>>({"LogicalNot"}, s);
  AddFn<AddN<float>>({"AddN", {{"T", TF_FLOAT}}}, s);
  AddFn<AddN<double>>({"AddN", {{"T", TF_DOUBLE}}}, s);
  AddFn<AddN<int32_t>>({"AddN", {{"T", TF_INT32}}}, s);
  AddFn<Select<float>>({"Select", {{"T", TF_FLOAT}}}, s);
  AddFn<Select<double>>({"Select", {{"T", TF_DOUBLE}}}, s);
  AddFn<Select<int32_t>>({"Select", {{"T", TF_INT32}}}, s);
  AddCast<bool, float>(s);
  AddCast<bool, int32_t>(s);
  AddCast<int32_t, float>(s);
  AddCast<int64_t, float>(s);
  AddCast<int32_t, int64_t>(s);
  AddCast<int64_t, int32_t>(s);
  AddCast<float, double>(s);
  AddCast<double, float>(s);
}

}  // namespace testacc
