// SPDX-License-Identifier: Apache-2.0
// CPU kernels: rows of a table of distances matched with its columns, and the parts that pixels of images make.
#include <algorithm>
#include <numeric>
#include <vector>

#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/image/image.h"

namespace millrace {
namespace {

class BipartiteMatchKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(top_k_, init.Attr<int64_t>("top_k"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& distances = ctx.input(0);
    if (distances.rank() != 2) {
      return InvalidArgument("distance_mat should be 2-dimensional, but got ", distances.shape().ToString());
    }
    if (ctx.input(1).num_elements() != 1) {
      return InvalidArgument(
          "num_valid_rows argument should be a tensor with 1 element, but got ", ctx.input(1).num_elements());
    }
    const int64_t rows = distances.dim(0), columns = distances.dim(1);
    if (std::max(rows, columns) > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("distance_mat is too large: ", distances.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const int64_t valid, ValidRows(*ctx.input(1).data<float>(), rows));
    MR_ASSIGN_OR_RETURN(Tensor * of_row, ctx.AllocateOutput(0, Shape::Vector(rows)));
    MR_ASSIGN_OR_RETURN(Tensor * of_column, ctx.AllocateOutput(1, Shape::Vector(columns)));
    int32_t *const row_match = of_row->mutable_data<int32_t>(), *const column_match =
                                                                    of_column->mutable_data<int32_t>();
    std::fill_n(row_match, rows, -1);
    std::fill_n(column_match, columns, -1);
    MR_ASSIGN_OR_RETURN(Tensor order, ctx.AllocateTemp(DType::kInt64, Shape::Vector(valid * columns)));
    int64_t *const first = order.mutable_data<int64_t>(), *const last = first + valid * columns;
    std::iota(first, last, int64_t{0});
    const float* const far = distances.data<float>();
    std::sort(first, last, [far](int64_t a, int64_t b) {
      const float x = far[a], y = far[b];
      if (x < y || y < x) return x < y;
      const bool x_is_none = x != x, y_is_none = y != y;
      return x_is_none != y_is_none ? y_is_none : a < b;
    });
    int64_t left = std::min(valid, columns);
    if (top_k_ > 0) left = std::min(left, top_k_);
    StopNowAndThen pause;
    for (const int64_t* at = first; at != last && left > 0; ++at) {
      pause();
      const int64_t r = *at / columns, c = *at % columns;
      if (row_match[r] >= 0 || column_match[c] >= 0) continue;
      row_match[r] = static_cast<int32_t>(c);
      column_match[c] = static_cast<int32_t>(r);
      --left;
    }
    return absl::OkStatus();
  }

 private:
  // A count that is given as a float, which may be a little less than it; negative: all.
  static StatusOr<int64_t> ValidRows(float given, int64_t rows) {
    if (!(given >= 0)) return rows;
    const double count = static_cast<double>(given) + 0.1;
    if (count >= static_cast<double>(rows) + 1) {
      return InvalidArgument(
          "There should be at least ", given, " rows in distance_mat, but only got ", rows, " rows.");
    }
    return static_cast<int64_t>(count);
  }
  int64_t top_k_ = -1;
};

// The first pixel of the part that a pixel belongs to; the way there becomes shorter.
int64_t FirstOf(int64_t* parents, int64_t i) {
  while (parents[i] != i) i = parents[i] = parents[parents[i]];
  return i;
}

template <typename T>
bool AreEqual(const T& a, const T& b) {
  if constexpr (kIsHalf<T>) {
    return static_cast<float>(a) == static_cast<float>(b);
  } else {
    return a == b;
  }
}
// Zero, false or empty.
template <typename T>
bool IsNothing(const T& pixel) {
  return AreEqual(pixel, T());
}

// Each pixel's number is that of a pixel of its part that is no later, until all parts are known: then one more than
// that of the first.
template <typename T>
void FindComponents(const T* pixels, int64_t begin, int64_t height, int64_t width, int64_t* out) {
  StopNowAndThen pause;
  const auto join = [&](int64_t i, int64_t before) {
    if (!AreEqual(pixels[i], pixels[before])) return;
    const int64_t a = FirstOf(out, i), b = FirstOf(out, before);
    out[std::max(a, b)] = std::min(a, b);
  };
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      pause();
      const int64_t i = begin + y * width + x;
      out[i] = i;
      if (IsNothing(pixels[i])) continue;
      if (x > 0) join(i, i - 1);
      if (y > 0) join(i, i - width);
    }
  }
  // From the end on: what a pixel leads to lies before it and still leads on.
  for (int64_t i = begin + height * width - 1; i >= begin; --i) {
    pause();
    out[i] = IsNothing(pixels[i]) ? 0 : FirstOf(out, i) + 1;
  }
}

Status ImageConnectedComponents(KernelContext& ctx) {
  const Tensor& images = ctx.input(0);
  if (images.rank() != 3) return InvalidArgument("Input images must have rank 3, got ", images.shape().ToString());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, images.shape()));
  const int64_t height = images.dim(1), width = images.dim(2), size = height * width;
  VisitTypes<Half, float, double, int64_t, int32_t, int16_t, int8_t, uint16_t, uint8_t, bool, TString>(
      images.dtype(), [&]<typename T>() {
        ctx.ParallelFor(images.dim(0), 10 * static_cast<double>(size), [&](int64_t begin, int64_t end) {
          for (int64_t n = begin; n < end; ++n) {
            FindComponents(images.data<T>(), n * size, height, width, out->mutable_data<int64_t>());
          }
        });
      });
  return absl::OkStatus();
}

}  // namespace

void RegisterImageMatchKernels(KernelRegistry& r) {
  r.Add<BipartiteMatchKernel>({.op = "BipartiteMatch"});
  r.AddFn({.op = "ImageConnectedComponents"}, ImageConnectedComponents);
}

}  // namespace millrace
