// SPDX-License-Identifier: Apache-2.0
// Convolution and pooling of NHWC images by plain loops.
#include <algorithm>
#include <limits>

#include "kernel.h"

namespace testacc {
namespace {

// One spatial dimension.
struct Extent {
  int64_t in = 0, window = 0, stride = 0, out = 0, before = 0;
};

struct WindowAttrs {
  std::vector<int64_t> strides;
  bool same = false;

  explicit WindowAttrs(const Attrs& attrs) : strides(attrs.Ints("strides")) {
    const std::string padding = attrs.String("padding"), format = attrs.String("data_format");
    if (format != "NHWC") throw Failed{TF_UNIMPLEMENTED, "data_format '" + format + "': this device has NHWC only"};
    if (padding != "SAME" && padding != "VALID") {
      throw Failed{TF_UNIMPLEMENTED, "padding '" + padding + "': this device has SAME and VALID only"};
    }
    same = padding == "SAME";
    Require(strides.size() == 4 && strides[0] == 1 && strides[3] == 1 && strides[1] > 0 && strides[2] > 0,
            "strides must be 1 for batch and channels");
  }

  Extent Of(size_t d, int64_t in, int64_t window) const {
    Extent e{in, window, strides[d], 0, 0};
    Require(window > 0, "the window is empty");
    if (same) {
      e.out = (in + e.stride - 1) / e.stride;
      e.before = std::max<int64_t>(0, (e.out - 1) * e.stride + window - in) / 2;
    } else {
      Require(window <= in, "Computed output size would be negative");
      e.out = (in - window) / e.stride + 1;
    }
    return e;
  }
};

void RequireNoDilation(const Attrs& attrs) {
  for (int64_t d : attrs.Ints("dilations")) {
    if (d != 1) throw Failed{TF_UNIMPLEMENTED, "dilated convolution on this device"};
  }
}

// For each product of the convolution, fn(image element, filter element, result element), by position.
struct Convolution {
  int64_t batch = 0, channels = 0, filters = 0;
  Extent rows, columns;

  Convolution(const WindowAttrs& window, const Dims& image, const Dims& filter) {
    Require(image.size() == 4 && filter.size() == 4, "input and filter must be 4-dimensional");
    Require(image[3] == filter[2], "input depth must be that of the filter");
    batch = image[0], channels = image[3], filters = filter[3];
    rows = window.Of(1, image[1], filter[0]);
    columns = window.Of(2, image[2], filter[1]);
  }
  Dims out() const { return {batch, rows.out, columns.out, filters}; }

  template <typename Fn>
  void ForEach(Fn fn) const {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t r = 0; r < rows.out; ++r) {
        for (int64_t q = 0; q < columns.out; ++q) {
          const int64_t to = ((b * rows.out + r) * columns.out + q) * filters;
          for (int64_t i = 0; i < rows.window; ++i) {
            const int64_t y = r * rows.stride - rows.before + i;
            if (y < 0 || y >= rows.in) continue;
            for (int64_t j = 0; j < columns.window; ++j) {
              const int64_t x = q * columns.stride - columns.before + j;
              if (x < 0 || x >= columns.in) continue;
              const int64_t from = ((b * rows.in + y) * columns.in + x) * channels;
              for (int64_t k = 0; k < channels; ++k) {
                const int64_t by = ((i * columns.window + j) * channels + k) * filters;
                for (int64_t f = 0; f < filters; ++f) fn(from + k, by + f, to + f);
              }
            }
          }
        }
      }
    }
  }
};

class Conv2D {
 public:
  explicit Conv2D(const Attrs& attrs) : window_(attrs) { RequireNoDilation(attrs); }
  void Run(Context& c) const {
    const Value image = c.Input(0), filter = c.Input(1);
    const Convolution plan(window_, image.dims, filter.dims);
    const Value y = c.Output(0, plan.out());
    c.Queue([=] {
      float* const out = y.as<float>();
      const float* const x = image.as<float>();
      const float* const w = filter.as<float>();
      std::fill_n(out, y.size, 0.0f);
      plan.ForEach([&](int64_t i, int64_t k, int64_t o) { out[o] += x[i] * w[k]; });
    });
  }

 private:
  const WindowAttrs window_;
};

class Conv2DBackpropInput {
 public:
  explicit Conv2DBackpropInput(const Attrs& attrs) : window_(attrs) { RequireNoDilation(attrs); }
  void Run(Context& c) const {
    const Value filter = c.Input(1), dy = c.Input(2);
    const Dims dims = c.HostInts(0);
    for (int64_t d : dims) Require(d >= 0, "a dimension is negative");
    const Convolution plan(window_, dims, filter.dims);
    Require(plan.out() == dy.dims, "out_backprop has not the shape of the convolution's output");
    const Value y = c.Output(0, dims);
    c.Queue([=] {
      float* const out = y.as<float>();
      const float* const w = filter.as<float>();
      const float* const from = dy.as<float>();
      std::fill_n(out, y.size, 0.0f);
      plan.ForEach([&](int64_t i, int64_t k, int64_t o) { out[i] += from[o] * w[k]; });
    });
  }

 private:
  const WindowAttrs window_;
};

class Conv2DBackpropFilter {
 public:
  explicit Conv2DBackpropFilter(const Attrs& attrs) : window_(attrs) { RequireNoDilation(attrs); }
  void Run(Context& c) const {
    const Value image = c.Input(0), dy = c.Input(2);
    const Dims dims = c.HostInts(1);
    for (int64_t d : dims) Require(d >= 0, "a dimension is negative");
    const Convolution plan(window_, image.dims, dims);
    Require(plan.out() == dy.dims, "out_backprop has not the shape of the convolution's output");
    const Value y = c.Output(0, dims);
    c.Queue([=] {
      float* const out = y.as<float>();
      const float* const x = image.as<float>();
      const float* const from = dy.as<float>();
      std::fill_n(out, y.size, 0.0f);
      plan.ForEach([&](int64_t i, int64_t k, int64_t o) { out[k] += x[i] * from[o]; });
    });
  }

 private:
  const WindowAttrs window_;
};

// Each result is the largest element of its window, the first of equals.
struct Pooling {
  Dims image;
  Extent rows, columns;

  Pooling(const WindowAttrs& window, const std::vector<int64_t>& ksize, const Dims& dims) : image(dims) {
    Require(dims.size() == 4, "the input must be 4-dimensional");
    Require(ksize.size() == 4 && ksize[0] == 1 && ksize[3] == 1, "ksize must be 1 for batch and channels");
    rows = window.Of(1, dims[1], ksize[1]);
    columns = window.Of(2, dims[2], ksize[2]);
  }
  Dims out() const { return {image[0], rows.out, columns.out, image[3]}; }

  // fn(result element, the element of `x` that it is)
  template <typename Fn>
  void ForEachLargest(const float* x, Fn fn) const {
    const int64_t channels = image[3];
    int64_t to = 0;
    for (int64_t b = 0; b < image[0]; ++b) {
      for (int64_t r = 0; r < rows.out; ++r) {
        for (int64_t q = 0; q < columns.out; ++q) {
          for (int64_t k = 0; k < channels; ++k, ++to) {
            int64_t best = -1;
            for (int64_t i = 0; i < rows.window; ++i) {
              const int64_t y = r * rows.stride - rows.before + i;
              if (y < 0 || y >= rows.in) continue;
              for (int64_t j = 0; j < columns.window; ++j) {
                const int64_t z = q * columns.stride - columns.before + j;
                if (z < 0 || z >= columns.in) continue;
                const int64_t at = ((b * rows.in + y) * columns.in + z) * channels + k;
                if (best < 0 || x[at] > x[best]) best = at;
              }
            }
            if (best >= 0) fn(to, best);
          }
        }
      }
    }
  }
};

class MaxPool {
 public:
  explicit MaxPool(const Attrs& attrs) : window_(attrs), ksize_(attrs.Ints("ksize")) {}
  void Run(Context& c) const {
    const Value x = c.Input(0);
    const Pooling plan(window_, ksize_, x.dims);
    const Value y = c.Output(0, plan.out());
    c.Queue([=] {
      std::fill_n(y.as<float>(), y.size, std::numeric_limits<float>::lowest());
      plan.ForEachLargest(x.as<float>(), [&](int64_t o, int64_t i) { y.as<float>()[o] = x.as<float>()[i]; });
    });
  }

 private:
  const WindowAttrs window_;
  const std::vector<int64_t> ksize_;
};

class MaxPoolGrad {
 public:
  explicit MaxPoolGrad(const Attrs& attrs) : window_(attrs), ksize_(attrs.Ints("ksize")) {}
  void Run(Context& c) const {
    const Value x = c.Input(0), pooled = c.Input(1), dy = c.Input(2);
    const Pooling plan(window_, ksize_, x.dims);
    Require(plan.out() == pooled.dims && plan.out() == dy.dims, "grad has not the shape of the pooling's output");
    const Value y = c.Output(0, x.dims);
    c.Queue([=] {
      std::fill_n(y.as<float>(), y.size, 0.0f);
      plan.ForEachLargest(x.as<float>(), [&](int64_t o, int64_t i) { y.as<float>()[i] += dy.as<float>()[o]; });
    });
  }

 private:
  const WindowAttrs window_;
  const std::vector<int64_t> ksize_;
};

}  // namespace

void RegisterImages(TF_Status* s) {
  AddClass<Conv2D>({"Conv2D", {{"T", TF_FLOAT}}}, s);
  AddClass<Conv2DBackpropInput>({"Conv2DBackpropInput", {{"T", TF_FLOAT}}, {"input_sizes"}}, s);
  AddClass<Conv2DBackpropFilter>({"Conv2DBackpropFilter", {{"T", TF_FLOAT}}, {"filter_sizes"}}, s);
  AddClass<MaxPool>({"MaxPool", {{"T", TF_FLOAT}}}, s);
  AddClass<MaxPoolGrad>({"MaxPoolGrad", {{"T", TF_FLOAT}}}, s);
}

}  // namespace testacc
