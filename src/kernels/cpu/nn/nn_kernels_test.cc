// SPDX-License-Identifier: Apache-2.0
// The kernels of this family against oracles in float64 that are written for clearness only.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "gtest/gtest.h"
#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/kernel_list.h"
#include "tensor/window.h"

namespace millrace {
namespace {

using Ints = std::vector<int64_t>;
using Values = std::vector<double>;

KernelRunner& Runner(int threads = 2) {
  static auto* one = new KernelRunner(RegisterNnKernels, 1);
  static auto* two = new KernelRunner(RegisterNnKernels, 2);
  return threads == 1 ? *one : *two;
}

Tensor MakeTensor(DType type, const Ints& dims, const Values& v) {
  Tensor t = *Tensor::Make(type, *Shape::Make(absl::MakeConstSpan(dims)));
  for (size_t i = 0; i < v.size(); ++i) {
    switch (type) {
      case DType::kFloat: t.mutable_data<float>()[i] = static_cast<float>(v[i]); break;
      case DType::kDouble: t.mutable_data<double>()[i] = v[i]; break;
      case DType::kHalf: t.mutable_data<Half>()[i] = Half(static_cast<float>(v[i])); break;
      case DType::kBFloat16: t.mutable_data<BFloat16>()[i] = BFloat16(static_cast<float>(v[i])); break;
      case DType::kInt32: t.mutable_data<int32_t>()[i] = static_cast<int32_t>(v[i]); break;
      default: ADD_FAILURE() << "type";
    }
  }
  return t;
}
Values ValuesOf(const Tensor& t) {
  Values v(static_cast<size_t>(t.num_elements()));
  for (size_t i = 0; i < v.size(); ++i) {
    switch (t.dtype()) {
      case DType::kFloat: v[i] = static_cast<double>(t.data<float>()[i]); break;
      case DType::kDouble: v[i] = t.data<double>()[i]; break;
      case DType::kHalf: v[i] = static_cast<double>(static_cast<float>(t.data<Half>()[i])); break;
      case DType::kBFloat16: v[i] = static_cast<double>(static_cast<float>(t.data<BFloat16>()[i])); break;
      case DType::kInt32: v[i] = t.data<int32_t>()[i]; break;
      default: ADD_FAILURE() << "type";
    }
  }
  return v;
}
size_t Product(const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return static_cast<size_t>(n);
}
// Multiples of 1/16 below 1, so that every type holds them exactly.
Values Random(size_t n, uint32_t seed) {
  std::mt19937 gen(seed);
  Values v(n);
  for (double& x : v) x = (static_cast<double>(gen() % 31) - 15) / 16;
  return v;
}
void ExpectClose(const Values& got, const Values& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double scale = 1;
  for (double w : want) scale = std::max(scale, std::fabs(w));
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance * scale) << what << " at " << i;
}
double Tolerance(DType t) {
  switch (t) {
    case DType::kDouble: return 1e-13;
    case DType::kHalf: return 1e-3;
    case DType::kBFloat16: return 8e-3;
    case DType::kInt32: return 0;
    default: return 2e-6;
  }
}

// ---- convolution ----

struct ConvCase {
  Ints in;                // n, [d,] h, w, c
  Ints filter;            // [d,] h, w, in, out
  Ints stride, dilation;  // spatial
  std::string padding = "SAME";
  Ints pads;  // before, after per spatial dimension, with EXPLICIT
  bool depthwise = false;
  bool channels_first = false;
  DType type = DType::kFloat;
};

struct ConvWalk {
  Ints out;
  // calls fn(input index, filter index, output index) for every product of the convolution
  template <typename Fn>
  void ForEach(const ConvCase& c, Fn fn) const {
    const size_t s = c.stride.size();
    const auto dim = [&](const Ints& v, size_t i) { return i < 3 - s ? 1 : v[i - (3 - s)]; };
    const Ints in_spatial(c.in.begin() + 1, c.in.end() - 1), out_spatial(out.begin() + 1, out.end() - 1);
    const Ints k_spatial(c.filter.begin(), c.filter.end() - 2);
    int64_t I[3], O[3], K[3], S[3], D[3], P[3];
    for (size_t i = 0; i < 3; ++i) {
      I[i] = dim(in_spatial, i), O[i] = dim(out_spatial, i), K[i] = dim(k_spatial, i), S[i] = dim(c.stride, i);
      D[i] = dim(c.dilation, i), P[i] = i < 3 - s ? 0 : before[i - (3 - s)];
    }
    const int64_t channels = c.in.back(), fi = c.filter[c.filter.size() - 2], fo = c.filter.back();
    const int64_t groups = c.depthwise ? channels : channels / fi;
    const int64_t gi = channels / groups, go = out.back() / groups;
    for (int64_t n = 0; n < out[0]; ++n)
      for (int64_t z = 0; z < O[0]; ++z)
        for (int64_t y = 0; y < O[1]; ++y)
          for (int64_t x = 0; x < O[2]; ++x)
            for (int64_t a = 0; a < K[0]; ++a)
              for (int64_t b = 0; b < K[1]; ++b)
                for (int64_t d = 0; d < K[2]; ++d) {
                  const int64_t iz = z * S[0] - P[0] + a * D[0], iy = y * S[1] - P[1] + b * D[1];
                  const int64_t ix = x * S[2] - P[2] + d * D[2];
                  if (iz < 0 || iz >= I[0] || iy < 0 || iy >= I[1] || ix < 0 || ix >= I[2]) continue;
                  for (int64_t o = 0; o < out.back(); ++o)
                    for (int64_t i = 0; i < gi; ++i) {
                      const int64_t ic = o / go * gi + i;
                      const int64_t tap = (a * K[1] + b) * K[2] + d;
                      const int64_t f = c.depthwise ? (tap * channels + ic) * fo + o % go : (tap * fi + i) * fo + o;
                      fn(static_cast<size_t>((((n * I[0] + iz) * I[1] + iy) * I[2] + ix) * channels + ic),
                         static_cast<size_t>(f),
                         static_cast<size_t>((((n * O[0] + z) * O[1] + y) * O[2] + x) * out.back() + o));
                    }
                }
  }
  Ints before;
};

ConvWalk WalkOf(const ConvCase& c) {
  ConvWalk w;
  w.out = c.in;
  w.out.back() = c.depthwise ? c.in.back() * c.filter.back() : c.filter.back();
  const Padding p = *ParsePadding(c.padding);
  for (size_t i = 0; i < c.stride.size(); ++i) {
    const auto e = ComputeWindow(
        c.in[i + 1], c.filter[i], c.stride[i], c.dilation[i], p, p == Padding::kExplicit ? c.pads[2 * i] : 0,
        p == Padding::kExplicit ? c.pads[2 * i + 1] : 0);
    w.out[i + 1] = e->output;
    w.before.push_back(e->pad_before);
  }
  return w;
}

Ints Permuted(const Ints& dims, bool channels_first) {
  if (!channels_first) return dims;
  Ints p = dims;
  p.pop_back();
  p.insert(p.begin() + 1, dims.back());
  return p;
}
// channels-last values <-> the case's own layout
Values Reorder(const Values& v, const Ints& dims, bool channels_first, bool back) {
  if (!channels_first) return v;
  const size_t n = static_cast<size_t>(dims[0]), c = static_cast<size_t>(dims.back()), s = v.size() / (n * c);
  Values r(v.size());
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < s; ++j)
      for (size_t k = 0; k < c; ++k) {
        const size_t last = (i * s + j) * c + k, first = (i * c + k) * s + j;
        back ? r[last] = v[first] : r[first] = v[last];
      }
  return r;
}

class ConvTester {
 public:
  explicit ConvTester(const ConvCase& c) : c_(c), w_(WalkOf(c)) {
    x_ = Random(Product(c.in), 1);
    f_ = Random(Product(c.filter), 2);
    g_ = Random(Product(w_.out), 3);
    if (c.type == DType::kInt32) {
      for (double& v : x_) v *= 16;
      for (double& v : f_) v *= 16;
    }
    const bool volumetric = c.stride.size() == 3;
    family_ = volumetric ? "Conv3D" : c.depthwise ? "DepthwiseConv2dNative" : "Conv2D";
    const size_t rank = c.in.size();
    const size_t first = c.channels_first ? 2 : 1;
    Ints strides(rank, 1), dilations(rank, 1), pads(2 * rank, 0);
    for (size_t i = 0; i < c.stride.size(); ++i) {
      strides[first + i] = c.stride[i];
      dilations[first + i] = c.dilation[i];
      if (!c.pads.empty()) {
        pads[2 * (first + i)] = c.pads[2 * i];
        pads[2 * (first + i) + 1] = c.pads[2 * i + 1];
      }
    }
    const char* format = volumetric ? (c.channels_first ? "NCDHW" : "NDHWC") : (c.channels_first ? "NCHW" : "NHWC");
    attrs_ = {{"strides", strides}, {"dilations", dilations}, {"padding", c.padding}, {"data_format", format}};
    if (!c.pads.empty()) attrs_["explicit_paddings"] = pads;
  }

  void Check() {
    Values y(g_.size()), dx(x_.size()), df(f_.size());
    w_.ForEach(c_, [&](size_t i, size_t f, size_t o) {
      y[o] += x_[i] * f_[f];
      dx[i] += g_[o] * f_[f];
      df[f] += g_[o] * x_[i];
    });
    Compare(0, y, w_.out, "forward");
    if (c_.type == DType::kInt32) return;
    Compare(1, dx, c_.in, "input");
    Compare(2, df, c_.filter, "filter");
  }

 private:
  Tensor Image(const Values& v, const Ints& dims) const {
    return MakeTensor(c_.type, Permuted(dims, c_.channels_first), Reorder(v, dims, c_.channels_first, false));
  }
  static Tensor Sizes(const Ints& dims) {
    return MakeTensor(DType::kInt32, {static_cast<int64_t>(dims.size())}, Values(dims.begin(), dims.end()));
  }

  std::vector<Tensor> Inputs(int pass) const {
    const Tensor x = Image(x_, c_.in), g = Image(g_, w_.out), f = MakeTensor(c_.type, c_.filter, f_);
    if (pass == 0) return {x, f};
    if (pass == 1) return {Sizes(Permuted(c_.in, c_.channels_first)), f, g};
    return {x, Sizes(c_.filter), g};
  }

  void Compare(int pass, const Values& want, const Ints& dims, const char* what) {
    std::string op = family_;
    std::string args = "(a:T, b:T)";
    const char* suffix = family_ == "Conv3D" ? "V2" : "";
    if (pass == 1) op += std::string("BackpropInput") + suffix, args = "(a:i32, b:T, c:T)";
    if (pass == 2) op += std::string("BackpropFilter") + suffix, args = "(a:T, b:i32, c:T)";
    const std::string schema =
        op + args +
        " -> (output:T) | T in FLT|i32; strides:list(int); dilations:list(int); "
        "padding:string; data_format:string; explicit_paddings:list(int)=[]";
    AttrMap attrs = attrs_;
    attrs["T"] = c_.type;
    auto got = Runner(2).Run(schema, attrs, Inputs(pass));
    ASSERT_TRUE(got.ok()) << got.status() << " " << Name() << what;
    const Values v = Reorder(ValuesOf((*got)[0]), dims, c_.channels_first && pass != 2, true);
    ExpectClose(v, want, Tolerance(c_.type), Name() + what);
    auto single = Runner(1).Run(schema, attrs, Inputs(pass));
    ASSERT_TRUE(single.ok());
    EXPECT_EQ(0, std::memcmp((*got)[0].raw(), (*single)[0].raw(), (*got)[0].TotalBytes())) << Name() << what;
  }

  std::string Name() const {
    std::string s = family_ + " " + DTypeName(c_.type) + " in";
    for (int64_t d : c_.in) s += " " + std::to_string(d);
    s += " filter";
    for (int64_t d : c_.filter) s += " " + std::to_string(d);
    s += " stride";
    for (int64_t d : c_.stride) s += " " + std::to_string(d);
    s += " dilation";
    for (int64_t d : c_.dilation) s += " " + std::to_string(d);
    return s + " " + c_.padding + " ";
  }

  ConvCase c_;
  ConvWalk w_;
  Values x_, f_, g_;
  std::string family_;
  AttrMap attrs_;
};

constexpr DType kFloats[] = {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16};

TEST(Conv2D, SmallShapesAgreeWithOracle) {
  for (DType type : kFloats)
    for (bool first : {false, true})
      for (const char* padding : {"SAME", "VALID", "EXPLICIT"})
        for (int64_t s = 1; s <= 3; ++s)
          for (int64_t d = 1; d <= 2; ++d) {
            ConvCase c{{2, 9, 8, 3}, {3, 2, 3, 5}, {s, 1 + s % 2}, {d, 1}, padding};
            if (c.padding == "EXPLICIT") c.pads = {2, 0, 1, 3};
            c.type = type;
            c.channels_first = first;
            ConvTester(c).Check();
          }
}

TEST(Conv2D, RandomGeometriesAgreeWithOracle) {
  std::mt19937 gen(7);
  const auto pick = [&gen](std::initializer_list<int64_t> v) { return v.begin()[gen() % v.size()]; };
  for (int i = 0; i < 120; ++i) {
    ConvCase c;
    const int64_t groups = pick({1, 1, 1, 2, 4});
    const int64_t in = pick({1, 3, 8, 16, 20}), out = pick({1, 4, 7, 16, 32});
    c.in = {pick({1, 2, 5}), pick({1, 4, 7, 12}), pick({1, 3, 9, 17}), in * groups};
    c.filter = {pick({1, 2, 3, 5}), pick({1, 3, 4}), in, out * groups};
    c.stride = {pick({1, 1, 2, 3}), pick({1, 1, 2})};
    c.dilation = {pick({1, 1, 2}), pick({1, 1, 3})};
    c.padding = i % 3 == 0 ? "EXPLICIT" : "SAME";
    if (i % 3 == 0) c.pads = {pick({0, 1, 4}), pick({4, 5, 9}), pick({0, 2}), pick({9, 12})};
    c.type = i % 4 == 3 ? DType::kDouble : DType::kFloat;
    ConvTester(c).Check();
  }
}

// Where some versions of oneDNN write past their scratch memory.
TEST(Conv2D, StridedOneByOne) {
  for (const DType type : {DType::kFloat, DType::kBFloat16})
    for (const int64_t channels : {3, 4, 8, 15, 16, 17})
      ConvTester({.in = {8, 16, 16, channels},
                  .filter = {1, 1, channels, 8},
                  .stride = {2, 2},
                  .dilation = {1, 1},
                  .type = type})
          .Check();
}

TEST(Conv2D, LargeOnesAreSplit) {
  ConvTester({{1, 40, 40, 16}, {3, 3, 16, 32}, {1, 1}, {1, 1}, "SAME"}).Check();   // by rows
  ConvTester({{9, 16, 16, 16}, {3, 3, 16, 32}, {1, 1}, {1, 1}, "VALID"}).Check();  // by images, unevenly
  ConvTester({{7, 20, 20, 16}, {3, 3, 16, 32}, {2, 2}, {1, 1}, "SAME"}).Check();
  ConvTester({{2, 33, 33, 3}, {7, 7, 3, 32}, {2, 2}, {1, 1}, "VALID"}).Check();
  ConvTester({{2, 30, 30, 32}, {1, 1, 32, 48}, {1, 1}, {1, 1}, "VALID"}).Check();
  ConvTester({{1, 7, 7, 256}, {3, 3, 256, 256}, {1, 1}, {1, 1}, "SAME"}).Check();   // by channels
  ConvTester({{1, 10, 7, 128}, {3, 3, 128, 256}, {1, 1}, {1, 1}, "SAME"}).Check();  // by rows, unevenly, and channels
  ConvTester({{1, 14, 14, 64}, {3, 3, 64, 128}, {1, 1}, {1, 1}, "SAME"}).Check();
  ConvTester({{2, 9, 9, 256}, {3, 3, 256, 256}, {2, 2}, {1, 1}, "VALID"}).Check();
  ConvTester({{2, 20, 24, 64}, {3, 3, 64, 96}, {1, 1}, {1, 1}, "SAME"}).Check();  // the filter's gradient by all three
  ConvTester({{3, 31, 8, 64}, {3, 1, 64, 64}, {2, 1}, {1, 1}, "VALID"}).Check();
}

TEST(Conv2D, OneByOneOfFewCells) {  // a product of matrices
  for (DType type : {DType::kFloat, DType::kBFloat16}) {
    for (const int64_t batch : {1, 3}) {
      ConvCase c{{batch, 7, 5, 128}, {1, 1, 128, 72}, {1, 1}, {1, 1}, "SAME"};
      c.type = type;
      ConvTester(c).Check();
      c.channels_first = true;
      ConvTester(c).Check();
    }
  }
}

TEST(Conv2D, FewPixels) {  // from the filter as it lies in memory, by panels of 64 channels and one of 16
  for (const int64_t batch : {1, 3, 40}) {
    ConvTester({{batch, 4, 5, 72}, {3, 3, 72, 80}, {1, 1}, {1, 1}, "SAME"}).Check();
    ConvTester({{batch, 5, 4, 64}, {3, 2, 64, 80}, {2, 1}, {1, 1}, "VALID"}).Check();
  }
  ConvTester({{1, 9, 8, 144}, {3, 3, 144, 64}, {1, 1}, {2, 3}, "SAME"}).Check();
  ConvTester({{1, 1, 2, 64}, {5, 5, 64, 64}, {1, 1}, {1, 1}, "SAME"}).Check();  // most taps reach nothing
  ConvCase volume{{2, 3, 4, 5, 64}, {2, 2, 3, 64, 96}, {1, 2, 1}, {1, 1, 1}, "SAME"};
  ConvTester(volume).Check();
  volume.channels_first = true;
  ConvTester(volume).Check();
}

TEST(Conv2D, WindowsOfWholeRows) {  // products of matrices whose rows overlap, or of one row an image
  for (const int64_t stride : {1, 2, 5}) {
    ConvTester({{3, 84, 6, 5}, {4, 6, 5, 17}, {stride, 1}, {1, 1}, "VALID"}).Check();
  }
  ConvTester({{5, 6, 7, 16}, {6, 7, 16, 33}, {1, 1}, {1, 1}, "VALID"}).Check();
  ConvTester({{2, 40, 1, 8}, {3, 1, 8, 20}, {1, 1}, {1, 1}, "VALID"}).Check();
}

TEST(Conv2D, OneByOneWithChannelsFirst) {
  for (DType type : kFloats) {
    for (const int64_t side : {1, 5, 16}) {
      ConvCase c{{3, side, side, 12}, {1, 1, 12, 7}, {1, 1}, {1, 1}, "SAME"};
      c.type = type;
      c.channels_first = true;
      ConvTester(c).Check();
    }
  }
}

TEST(Conv2D, Int32) {
  ConvCase c{{2, 5, 6, 3}, {3, 3, 3, 4}, {1, 2}, {1, 1}, "SAME"};
  c.type = DType::kInt32;
  ConvTester(c).Check();
}

TEST(Conv3D, AgreesWithOracle) {
  for (DType type : kFloats)
    for (bool first : {false, true})
      for (const char* padding : {"SAME", "VALID"})
        for (int64_t s = 1; s <= 2; ++s) {
          ConvCase c{{2, 4, 5, 6, 3}, {2, 3, 3, 3, 4}, {s, 1, s}, {1, 1, 1}, padding};
          c.type = type;
          c.channels_first = first;
          ConvTester(c).Check();
        }
  ConvTester({{1, 12, 14, 14, 8}, {3, 3, 3, 8, 16}, {1, 1, 1}, {1, 1, 1}, "SAME"}).Check();
}

TEST(Depthwise, AgreesWithOracle) {
  for (DType type : kFloats)
    for (int64_t multiplier : {1, 2, 3})
      for (int64_t channels : {1, 3, 16})
        for (int64_t s = 1; s <= 2; ++s) {
          ConvCase c{{2, 7, 6, channels}, {3, 2, channels, multiplier}, {s, s}, {1, 1}, "SAME"};
          c.depthwise = true;
          c.type = type;
          c.channels_first = channels == 3;
          ConvTester(c).Check();
        }
}

TEST(Conv2D, RefusesBadShapes) {
  const char* forward =
      "Conv2D(a:T, b:T) -> (output:T) | T in FLT; strides:list(int); padding:string; "
      "explicit_paddings:list(int)=[]; data_format:string=\"NHWC\"; dilations:list(int)=[1,1,1,1]";
  const auto run = [&](const Ints& in, const Ints& filter, AttrMap attrs) {
    attrs.emplace("padding", "VALID");
    attrs.emplace("strides", Ints{1, 1, 1, 1});
    attrs["T"] = DType::kFloat;
    return Runner()
        .Run(forward, attrs,
             {MakeTensor(DType::kFloat, in, Values(Product(in))),
              MakeTensor(DType::kFloat, filter, Values(Product(filter)))})
        .status();
  };
  EXPECT_TRUE(run({1, 4, 4, 1}, {2, 2, 1, 1}, {}).ok());
  EXPECT_TRUE(run({0, 4, 4, 1}, {2, 2, 1, 1}, {}).ok());
  EXPECT_TRUE(run({1, 4, 4, 1}, {2, 2, 1, 0}, {}).ok());
  const std::vector<std::pair<Ints, Ints>> shapes = {
      {{1, 4, 4, 1}, {0, 2, 1, 1}}, {{1, 4, 4, 1}, {2, 2, 0, 1}}, {{1, 4, 4, 3}, {2, 2, 2, 1}},
      {{4, 4, 1}, {2, 2, 1, 1}},    {{1, 4, 4, 1}, {2, 2, 1}},    {{1, 1, 1, 1}, {3, 3, 1, 1}},
      {{1, 4, 4, 4}, {2, 2, 2, 3}}};
  for (const auto& [in, filter] : shapes) EXPECT_EQ(run(in, filter, {}).code(), absl::StatusCode::kInvalidArgument);
  const std::vector<AttrMap> attrs = {
      {{"strides", Ints{1, 0, 1, 1}}},
      {{"strides", Ints{1, 1, 1}}},
      {{"dilations", Ints{1, 0, 1, 1}}},
      {{"dilations", Ints{1, int64_t{1} << 62, 1, 1}}},
      {{"padding", "EXPLICIT"}, {"explicit_paddings", Ints{0, 0, -1, 0, 0, 0, 0, 0}}},
      {{"padding", "EXPLICIT"}, {"explicit_paddings", Ints{0, 0, int64_t{1} << 40, 0, 0, 0, 0, 0}}},
      {{"padding", "EXPLICIT"}}};
  for (const AttrMap& a : attrs) {
    EXPECT_EQ(run({1, 4, 4, 1}, {2, 2, 1, 1}, a).code(), absl::StatusCode::kInvalidArgument);
  }
}

// ---- pooling ----

const char* kPoolAttrs = "T in REAL; ksize:list(int); strides:list(int); padding:string; data_format:string=\"NHWC\"";

struct PoolOracle {
  Ints in{2, 7, 6, 5}, out;
  Ints k{1, 3, 2, 1}, s{1, 2, 1, 1};
  std::string padding = "SAME";
  // fn(output index, cells) for every output element
  template <typename Fn>
  void ForEach(Fn fn) {
    WindowExtent w[2];
    for (size_t i = 0; i < 2; ++i) w[i] = *ComputeWindow(in[i + 1], k[i + 1], s[i + 1], 1, *ParsePadding(padding));
    out = {in[0], w[0].output, w[1].output, in[3]};
    size_t o = 0;
    for (int64_t n = 0; n < out[0]; ++n)
      for (int64_t y = 0; y < out[1]; ++y)
        for (int64_t x = 0; x < out[2]; ++x)
          for (int64_t c = 0; c < in[3]; ++c, ++o) {
            std::vector<size_t> cells;
            for (int64_t a = 0; a < k[1]; ++a)
              for (int64_t b = 0; b < k[2]; ++b) {
                const int64_t iy = y * s[1] - w[0].pad_before + a, ix = x * s[2] - w[1].pad_before + b;
                if (iy < 0 || iy >= in[1] || ix < 0 || ix >= in[2]) continue;
                cells.push_back(static_cast<size_t>(((n * in[1] + iy) * in[2] + ix) * in[3] + c));
              }
            fn(o, cells);
          }
  }
};

TEST(Pooling, AgreesWithOracle) {
  for (DType type : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kInt32})
    for (bool first : {false, true})
      for (const char* padding : {"SAME", "VALID"})
        for (int64_t channels : {1, 5, 70})
          for (int64_t stride : {1, 2, 4}) {
            PoolOracle p;
            p.in[3] = channels;
            p.s = {1, stride, 2, 1};
            p.padding = padding;
            Values x = Random(Product(p.in), 5);  // with many ties
            if (type == DType::kInt32)
              for (double& v : x) v *= 16;
            Values max, mean, dmax(x.size()), dmean(x.size()), g;
            p.ForEach([&](size_t o, const std::vector<size_t>& cells) {
              size_t best = cells[0];
              double sum = 0;
              for (size_t i : cells) best = x[i] > x[best] ? i : best, sum += x[i];
              const double n = static_cast<double>(cells.size());
              max.push_back(x[best]);
              mean.push_back(sum / n);
              g.push_back(static_cast<double>(o % 13) - 6);
              dmax[best] += g.back();
              for (size_t i : cells) dmean[i] += g.back() / n;
            });
            const auto image = [&](const Values& v, const Ints& dims) {
              return MakeTensor(type, Permuted(dims, first), Reorder(v, dims, first, false));
            };
            AttrMap attrs = {
                {"T", type},
                {"ksize", Permuted(p.k, first)},
                {"strides", Permuted(p.s, first)},
                {"padding", padding},
                {"data_format", first ? "NCHW" : "NHWC"}};
            const auto check =
                [&](const char* schema, std::vector<Tensor> inputs, const Values& want, const Ints& dims) {
                  auto got = Runner().Run(std::string(schema) + kPoolAttrs, attrs, std::move(inputs));
                  ASSERT_TRUE(got.ok()) << got.status() << schema;
                  ExpectClose(Reorder(ValuesOf((*got)[0]), dims, first, true), want, Tolerance(type), schema);
                };
            check("MaxPool(a:T) -> (y:T) | ", {image(x, p.in)}, max, p.out);
            check("MaxPoolGrad(a:T, b:T, c:T) -> (y:T) | ", {image(x, p.in), image(max, p.out), image(g, p.out)}, dmax,
                  p.in);
            Values second;
            p.ForEach([&](size_t o, const std::vector<size_t>& cells) {
              for (size_t i : cells) {
                if (x[i] == max[o]) {
                  second.push_back(dmax[i]);
                  return;
                }
              }
            });
            check("MaxPoolGradGrad(a:T, b:T, c:T) -> (y:T) | ", {image(x, p.in), image(max, p.out), image(dmax, p.in)},
                  second, p.out);
            if (type == DType::kInt32) continue;
            check("AvgPool(a:T) -> (y:T) | ", {image(x, p.in)}, mean, p.out);
            const Ints own = Permuted(p.in, first);
            check("AvgPoolGrad(a:i32, c:T) -> (y:T) | ",
                  {MakeTensor(DType::kInt32, {4}, Values(own.begin(), own.end())), image(g, p.out)}, dmean, p.in);
          }
}

TEST(Pooling, RefusesBadShapes) {
  const auto max = [](Ints in, Ints k, Ints s) {
    return Runner()
        .Run(std::string("MaxPool(a:T) -> (y:T) | ") + kPoolAttrs,
             {{"T", DType::kFloat}, {"ksize", k}, {"strides", s}, {"padding", "VALID"}},
             {MakeTensor(DType::kFloat, in, Values(Product(in)))})
        .status();
  };
  EXPECT_TRUE(max({1, 4, 4, 1}, {1, 2, 2, 1}, {1, 2, 2, 1}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(max({1, 4, 4, 1}, {1, 0, 2, 1}, {1, 2, 2, 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(max({1, 4, 4, 1}, {1, -2, 2, 1}, {1, 2, 2, 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(max({1, 4, 4, 1}, {1, 2, 2, 1}, {1, 0, 2, 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(max({4, 4, 1}, {1, 2, 2, 1}, {1, 2, 2, 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(max({1, 1, 1, 1}, {1, 3, 3, 1}, {1, 1, 1, 1})));
  EXPECT_TRUE(absl::IsUnimplemented(max({1, 4, 4, 2}, {1, 2, 2, 2}, {1, 2, 2, 2})));
  const Tensor one = MakeTensor(DType::kFloat, {1, 1, 1, 1}, {1}), none = MakeTensor(DType::kFloat, {0, 0, 0, 0}, {});
  const AttrMap attrs = {
      {"T", DType::kFloat}, {"ksize", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 1, 1, 1}}, {"padding", "VALID"}};
  EXPECT_TRUE(absl::IsInvalidArgument(
      Runner()
          .Run(std::string("MaxPoolGrad(a:T, b:T, c:T) -> (y:T) | ") + kPoolAttrs, attrs, {one, one, none})
          .status()));
  const double d = -536870912;
  EXPECT_TRUE(absl::IsInvalidArgument(
      Runner()
          .Run(std::string("AvgPoolGrad(a:i32, c:T) -> (y:T) | ") + kPoolAttrs, attrs,
               {MakeTensor(DType::kInt32, {4}, {d, d, d, d}), MakeTensor(DType::kFloat, {1, 5, 7, 1}, Values(35))})
          .status()));
}

// ---- batch normalisation ----

const char* kNormAttrs =
    "T in f16|bf16|f32; U in f32; epsilon:float=0.0001; data_format:string=\"NHWC\"; is_training:bool=true";

TEST(FusedBatchNorm, AgreesWithOracle) {
  for (DType type : {DType::kFloat, DType::kHalf, DType::kBFloat16})
    for (bool first : {false, true})
      for (bool training : {true, false})
        for (int64_t channels : {1, 3, 17, 64, 70})
          for (double mean_shift : {0.0, 1000.0}) {
            if (mean_shift != 0 && type != DType::kFloat) continue;
            const Ints dims = {3, 11, 13, channels};
            const size_t n = 3 * 11 * 13, C = static_cast<size_t>(channels);
            Values x = Random(Product(dims), 11), g = Random(Product(dims), 12);
            for (double& v : x) v += mean_shift;
            Values scale = Random(C, 13), offset = Random(C, 14), mean(C, 0.25), var(C, 2.0);
            if (training) {
              for (size_t c = 0; c < C; ++c) {
                mean[c] = var[c] = 0;
                for (size_t i = 0; i < n; ++i) mean[c] += x[i * C + c] / static_cast<double>(n);
                for (size_t i = 0; i < n; ++i) var[c] += std::pow(x[i * C + c] - mean[c], 2) / static_cast<double>(n);
              }
            }
            Values y(x.size()), dx(x.size()), dscale(C), doffset(C), unbiased(C);
            for (size_t c = 0; c < C; ++c) {
              const double eps = static_cast<double>(1e-4f), r = 1 / std::sqrt(var[c] + eps),
                           N = static_cast<double>(n);
              unbiased[c] = training ? var[c] * N / (N - 1) : var[c];
              double sum = 0, dot = 0;
              for (size_t i = c; i < x.size(); i += C) {
                y[i] = (x[i] - mean[c]) * r * scale[c] + offset[c];
                sum += g[i];
                dot += g[i] * (x[i] - mean[c]);
              }
              dscale[c] = dot * r;
              doffset[c] = sum;
              for (size_t i = c; i < x.size(); i += C) {
                const double centred = training ? g[i] - sum / N - (x[i] - mean[c]) * dot * r * r / N : g[i];
                dx[i] = scale[c] * r * centred;
              }
            }
            const auto image = [&](const Values& v) {
              return MakeTensor(type, Permuted(dims, first), Reorder(v, dims, first, false));
            };
            const auto vec = [&](const Values& v) {
              return MakeTensor(DType::kFloat, {static_cast<int64_t>(v.size())}, v);
            };
            const AttrMap attrs = {
                {"T", type}, {"U", DType::kFloat}, {"data_format", first ? "NCHW" : "NHWC"}, {"is_training", training}};
            auto got = Runner().Run(
                std::string("FusedBatchNormV2(x:T, a:U, b:U, c:U, d:U) -> (y:T, m:U, v:U, r:U, s:U) | ") + kNormAttrs,
                attrs,
                {image(x), vec(scale), vec(offset), training ? vec({}) : vec(mean), training ? vec({}) : vec(var)});
            ASSERT_TRUE(got.ok()) << got.status();
            const double tolerance = std::max(Tolerance(type), mean_shift != 0 ? 1e-4 : 0);
            ExpectClose(Reorder(ValuesOf((*got)[0]), dims, first, true), y, tolerance, "y");
            ExpectClose(ValuesOf((*got)[1]), mean, 2e-6, "mean");
            ExpectClose(ValuesOf((*got)[2]), unbiased, 2e-6, "variance");
            auto back = Runner().Run(
                std::string("FusedBatchNormGradV2(g:T, x:T, a:f32, b:U, c:U) -> (dx:T, ds:U, db:U, r:U, s:U) | ") +
                    kNormAttrs,
                attrs, {image(g), image(x), vec(scale), vec(ValuesOf((*got)[3])), vec(ValuesOf((*got)[4]))});
            ASSERT_TRUE(back.ok()) << back.status();
            ExpectClose(Reorder(ValuesOf((*back)[0]), dims, first, true), dx, tolerance, "dx");
            ExpectClose(ValuesOf((*back)[1]), dscale, std::max(1e-5, tolerance), "dscale");
            ExpectClose(ValuesOf((*back)[2]), doffset, 1e-5, "doffset");
          }
}

// Whatever the statistics, which are no numbers there.
TEST(FusedBatchNorm, GradientsOfAnEmptyBatchAreZero) {
  const Values nan(2, std::nan(""));
  const auto vec = [](const Values& v) { return MakeTensor(DType::kFloat, {2}, v); };
  for (const Ints& dims : {Ints{0, 3, 3, 2}, Ints{2, 0, 3, 2}})
    for (bool training : {true, false}) {
      const AttrMap attrs = {{"T", DType::kFloat}, {"U", DType::kFloat}, {"is_training", training}};
      const Tensor nothing = MakeTensor(DType::kFloat, dims, {});
      auto back = Runner().Run(
          std::string("FusedBatchNormGradV2(g:T, x:T, a:f32, b:U, c:U) -> (dx:T, ds:U, db:U, r:U, s:U) | ") +
              kNormAttrs,
          attrs, {nothing, nothing, vec({1, 1}), vec(nan), vec(nan)});
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ((*back)[0].shape(), nothing.shape());
      EXPECT_EQ(ValuesOf((*back)[1]), Values(2, 0));
      EXPECT_EQ(ValuesOf((*back)[2]), Values(2, 0));
    }
}

TEST(FusedBatchNorm, RefusesShortVectors) {
  const auto vec = [](int64_t n) { return MakeTensor(DType::kFloat, {n}, Values(static_cast<size_t>(n), 1)); };
  const auto run = [&](int64_t scale, int64_t mean, bool training) {
    return Runner()
        .Run(std::string("FusedBatchNormV2(x:T, a:U, b:U, c:U, d:U) -> (y:T, m:U, v:U, r:U, s:U) | ") + kNormAttrs,
             {{"T", DType::kFloat}, {"U", DType::kFloat}, {"is_training", training}},
             {MakeTensor(DType::kFloat, {1, 2, 2, 3}, Values(12)), vec(scale), vec(3), vec(mean), vec(mean)})
        .status();
  };
  EXPECT_TRUE(run(3, 0, true).ok());
  EXPECT_TRUE(run(3, 3, false).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(run(2, 3, true)));
  EXPECT_TRUE(absl::IsInvalidArgument(run(0, 3, true)));
  EXPECT_TRUE(absl::IsInvalidArgument(run(3, 0, false)));
  EXPECT_TRUE(absl::IsInvalidArgument(run(3, 2, false)));
}

// ---- biases and LRN ----

TEST(Bias, AgreesWithOracle) {
  for (DType type : kFloats)
    for (bool first : {false, true})
      for (int64_t channels : {1, 3, 64, 130}) {
        const Ints dims = {5, 9, 7, channels};
        const size_t C = static_cast<size_t>(channels);
        const Values x = Random(Product(dims), 21), b = Random(C, 22);
        Values y = x, sum(C);
        for (size_t i = 0; i < x.size(); ++i) y[i] += b[i % C], sum[i % C] += x[i];
        const Tensor value = MakeTensor(type, Permuted(dims, first), Reorder(x, dims, first, false));
        const AttrMap attrs = {{"T", type}, {"data_format", first ? "NCHW" : "NHWC"}};
        auto got = Runner().Run("BiasAdd(x:T, b:T) -> (y:T) | T in NUM; data_format:string", attrs,
                                {value, MakeTensor(type, {channels}, b)});
        ASSERT_TRUE(got.ok()) << got.status();
        ExpectClose(Reorder(ValuesOf((*got)[0]), dims, first, true), y, Tolerance(type), "bias");
        auto grad = Runner().Run("BiasAddGrad(x:T) -> (y:T) | T in NUM; data_format:string", attrs, {value});
        ASSERT_TRUE(grad.ok()) << grad.status();
        ExpectClose(ValuesOf((*grad)[0]), sum, Tolerance(type), "bias gradient");
      }
}

TEST(Lrn, AgreesWithOracle) {
  for (double beta : {0.5, 0.75, 1.0, 1.3})
    for (int64_t radius : {0, 2, 30})
      for (int64_t channels : {1, 7, 40}) {
        const Ints dims = {2, 2, 3, channels};
        const Values x = Random(Product(dims), 31), g = Random(Product(dims), 32);
        Values y(x.size()), dx(x.size()), norm(x.size());
        const int64_t C = channels;
        for (size_t i = 0; i < x.size(); ++i) {
          const int64_t c = static_cast<int64_t>(i) % C;
          norm[i] = 1.5;
          for (int64_t k = std::max<int64_t>(0, c - radius); k < std::min(C, c + radius + 1); ++k) {
            norm[i] += 0.25 * std::pow(x[i + static_cast<size_t>(k) - static_cast<size_t>(c)], 2);
          }
          y[i] = x[i] * std::pow(norm[i], -beta);
        }
        for (size_t i = 0; i < x.size(); ++i) {
          const int64_t c = static_cast<int64_t>(i) % C;
          dx[i] = g[i] * std::pow(norm[i], -beta);
          for (int64_t k = std::max<int64_t>(0, c - radius); k < std::min(C, c + radius + 1); ++k) {
            const size_t j = i + static_cast<size_t>(k) - static_cast<size_t>(c);
            dx[i] -= 2 * 0.25 * beta * x[i] * g[j] * y[j] / norm[j];
          }
        }
        const AttrMap attrs = {
            {"T", DType::kFloat},
            {"depth_radius", radius},
            {"bias", 1.5f},
            {"alpha", 0.25f},
            {"beta", static_cast<float>(beta)}};
        const std::string types = "T in f16|f32; depth_radius:int; bias:float; alpha:float; beta:float";
        const auto t = [&](const Values& v) { return MakeTensor(DType::kFloat, dims, v); };
        auto got = Runner().Run("LRN(x:T) -> (y:T) | " + types, attrs, {t(x)});
        ASSERT_TRUE(got.ok()) << got.status();
        ExpectClose(ValuesOf((*got)[0]), y, 2e-6, "LRN");
        auto grad = Runner().Run("LRNGrad(g:T, x:T, y:T) -> (dx:T) | " + types, attrs, {t(g), t(x), (*got)[0]});
        ASSERT_TRUE(grad.ok()) << grad.status();
        ExpectClose(ValuesOf((*grad)[0]), dx, 2e-6, "LRN gradient");
      }
}

}  // namespace
}  // namespace millrace
