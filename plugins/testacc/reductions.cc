// SPDX-License-Identifier: Apache-2.0
// Reductions along axes, in the order of the elements.
#include <algorithm>
#include <limits>

#include "kernel.h"

namespace testacc {
namespace {

// Which dimensions go, and where the elements of the result are found.
struct Axes {
  std::vector<bool> reduced;
  Dims dims;         // of the result
  Dims steps;        // in the result, for a step in each dimension of the input; 0: reduced
  int64_t each = 1;  // elements that become one

  Axes(const Dims& in, const std::vector<int64_t>& axes, bool keep) : reduced(in.size()), steps(in.size(), 0) {
    const auto rank = static_cast<int64_t>(in.size());
    for (int64_t a : axes) {
      if (a < -rank || a >= rank) Invalid("Invalid reduction dimension " + std::to_string(a));
      reduced[static_cast<size_t>(a < 0 ? a + rank : a)] = true;
    }
    int64_t step = 1;
    for (size_t d = in.size(); d-- > 0;) {
      if (reduced[d]) {
        each *= in[d];
      } else {
        steps[d] = step;
        step *= in[d];
      }
    }
    for (size_t d = 0; d < in.size(); ++d) {
      if (!reduced[d]) dims.push_back(in[d]);
      if (reduced[d] && keep) dims.push_back(1);
    }
  }
};

template <typename T>
struct Sum {
  static T First() { return 0; }
  static T Next(T a, T b) { return a + b; }
  static T Last(T a, int64_t) { return a; }
};
template <typename T>
struct Mean : Sum<T> {
  static T Last(T a, int64_t n) { return a / static_cast<T>(n); }
};
template <typename T>
struct Prod : Sum<T> {
  static T First() { return 1; }
  static T Next(T a, T b) { return a * b; }
};
template <typename T>
struct Max : Sum<T> {
  static T First() { return std::numeric_limits<T>::lowest(); }
  static T Next(T a, T b) { return b > a ? b : a; }
};
template <typename T>
struct Min : Sum<T> {
  static T First() { return std::numeric_limits<T>::max(); }
  static T Next(T a, T b) { return b < a ? b : a; }
};
struct All : Sum<bool> {
  static bool First() { return true; }
  static bool Next(bool a, bool b) { return a && b; }
};
struct Any : Sum<bool> {
  static bool First() { return false; }
  static bool Next(bool a, bool b) { return a || b; }
};

template <typename T, typename How>
class Reduce {
 public:
  explicit Reduce(const Attrs& attrs) : keep_(attrs.Bool("keep_dims")) {}
  void Run(Context& c) const {
    const Value x = c.Input(0);
    const Axes axes(x.dims, c.HostInts(1), keep_);
    const Value y = c.Output(0, axes.dims);
    c.Queue([=] {
      std::fill_n(y.as<T>(), y.size, How::First());
      Dims at(x.dims.size(), 0);
      int64_t to = 0;
      for (int64_t i = 0; i < x.size; ++i) {
        T& out = y.as<T>()[to];
        out = How::Next(out, x.as<T>()[i]);
        for (size_t d = x.dims.size(); d-- > 0;) {
          to += axes.steps[d];
          if (++at[d] < x.dims[d]) break;
          to -= axes.steps[d] * x.dims[d];
          at[d] = 0;
        }
      }
      for (int64_t i = 0; i < y.size; ++i) y.as<T>()[i] = How::Last(y.as<T>()[i], axes.each);
    });
  }

 private:
  const bool keep_;
};

template <typename T, typename I, bool kMax>
void ArgBest(Context& c) {
  const Value x = c.Input(0);
  const int64_t axis = c.HostInt(1), rank = x.rank();
  Require(axis >= -rank && axis < rank, "Expected dimension in the range of the rank");
  const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  Require(x.dims[at] > 0, "Reduction axis is empty");
  Dims dims = x.dims;
  dims.erase(dims.begin() + static_cast<int64_t>(at));
  const Value y = c.Output(0, dims);
  int64_t inner = 1;
  for (size_t d = at + 1; d < x.dims.size(); ++d) inner *= x.dims[d];
  const int64_t n = x.dims[at];
  c.Queue([=] {
    for (int64_t i = 0; i < y.size; ++i) {
      const T* const from = x.as<T>() + i / inner * inner * n + i % inner;
      int64_t best = 0;
      for (int64_t k = 1; k < n; ++k) {
        const T now = from[k * inner], before = from[best * inner];
        if (kMax ? now > before : now < before) best = k;
      }
      y.as<I>()[i] = static_cast<I>(best);
    }
  });
}

void L2Loss(Context& c) {
  const Value x = c.Input(0);
  const Value y = c.Output(0, {});
  c.Queue([=] {
    float sum = 0;
    for (int64_t i = 0; i < x.size; ++i) sum += x.as<float>()[i] * x.as<float>()[i];
    *y.as<float>() = sum / 2;
  });
}

template <typename T>
void AddNumbers(TF_Status* s) {
  constexpr TF_DataType t = TypeOf<T>::value;
  AddClass<Reduce<T, Sum<T>>>({"Sum", {{"T", t}}, {"reduction_indices"}}, s);
  AddClass<Reduce<T, Mean<T>>>({"Mean", {{"T", t}}, {"reduction_indices"}}, s);
  AddClass<Reduce<T, Prod<T>>>({"Prod", {{"T", t}}, {"reduction_indices"}}, s);
  AddClass<Reduce<T, Max<T>>>({"Max", {{"T", t}}, {"reduction_indices"}}, s);
  AddClass<Reduce<T, Min<T>>>({"Min", {{"T", t}}, {"reduction_indices"}}, s);
}

}  // namespace

void RegisterReductions(TF_Status* s) {
  AddNumbers<float>(s);
  AddNumbers<double>(s);
  AddNumbers<int32_t>(s);
  AddClass<Reduce<bool, All>>({"All", {}, {"reduction_indices"}}, s);
  AddClass<Reduce<bool, Any>>({"Any", {}, {"reduction_indices"}}, s);
  AddFn<ArgBest<float, int64_t, true>>({"ArgMax", {{"T", TF_FLOAT}, {"output_type", TF_INT64}}, {"dimension"}}, s);
  AddFn<ArgBest<float, int32_t, true>>({"ArgMax", {{"T", TF_FLOAT}, {"output_type", TF_INT32}}, {"dimension"}}, s);
  AddFn<ArgBest<float, int64_t, false>>({"ArgMin", {{"T", TF_FLOAT}, {"output_type", TF_INT64}}, {"dimension"}}, s);
  AddFn<L2Loss>({"L2Loss", {{"T", TF_FLOAT}}}, s);
}

}  // namespace testacc
