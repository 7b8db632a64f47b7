// SPDX-License-Identifier: Apache-2.0
// Ops: Fourier transforms over the last axes, of complex and of real numbers. The gradient of a linear map is its
// adjoint.
#include "ops/signal/signal_ops.h"

#include "absl/strings/match.h"
#include "graph/gradient.h"
#include "op/shape_context.h"

namespace millrace {
namespace {

// 1, 2 or 3, as the op's name ends.
int AxesOf(absl::string_view op) { return absl::EndsWith(op, "3D") ? 3 : absl::EndsWith(op, "2D") ? 2 : 1; }

Status ComplexShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRankAtLeast(0, AxesOf(c.op().name)));
  c.set_output(0, in);
  return absl::OkStatus();
}

// The last axes have fft_length; of the last one the transform holds the n / 2 + 1 frequencies from 0 on.
Status RealShape(ShapeContext& c) {
  const int axes = AxesOf(c.op().name);
  const bool forward = !absl::StartsWith(c.op().name, "I");
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRankAtLeast(0, axes));
  MR_ASSIGN_OR_RETURN(const PartialShape lengths, c.WithRank(1, 1));
  if (lengths.dim(0) >= 0 && lengths.dim(0) != axes) {
    return InvalidArgument("Dimension must be ", axes, " but is ", lengths.dim(0), ": fft_length has a number an axis");
  }
  if (!in.has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const auto known, c.ConstantInts(1));
  std::vector<int64_t> dims = in.dims();
  for (int i = 0; i < axes; ++i) {
    int64_t& dim = dims[dims.size() - static_cast<size_t>(axes - i)];
    if (!known) {
      dim = -1;
      continue;
    }
    const int64_t n = (*known)[static_cast<size_t>(i)];
    if (n < 0) return InvalidArgument("fft_length[", i, "] must >= 0, but got: ", n);
    dim = forward && i + 1 == axes && n > 0 ? n / 2 + 1 : n;
  }
  c.set_output(0, PartialShape::Of(dims));
  return absl::OkStatus();
}

// How many numbers of `x`, or of the lengths, a transform over the last axes mixes, as a scalar of `dtype`.
Output LastDims(const GraphBuilder& b, Output x, int axes) {
  return b.Op(
      "StridedSlice", {b.Op("Shape", {x}), b.Vector<int32_t>({-axes}), b.Vector<int32_t>({0}), b.Vector<int32_t>({1})},
      {{"end_mask", 1}});
}
Output CountAs(const GraphBuilder& b, Output lengths, DType dtype) {
  Output count = b.Op("Prod", {lengths, b.Scalar<int32_t>(0)});
  return b.Op(
      "Cast", {b.Op("Cast", {count}, {{"DstT", IsComplex(dtype) ? DType::kDouble : dtype}})}, {{"DstT", dtype}});
}

Status ComplexGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const std::string& op = c.node()->op()->name;
  const bool inverse = absl::StartsWith(op, "I");
  const DType dtype = BaseType(c.x(0).dtype());
  Output count = CountAs(b, LastDims(b, c.dy(), AxesOf(op)), dtype);
  Output g = b.Op(inverse ? op.substr(1) : "I" + op, {c.dy()});
  c.set_dx(0, inverse ? b.Div(g, count) : b.Mul(g, count));
  return c.status();
}

// `g`, of an input cut to the lengths of its last axes, with zeros where it was cut.
Output PaddedLike(const GraphBuilder& b, Output g, Output x) {
  Output lacking = b.Sub(b.Op("Shape", {x}), b.Op("Shape", {g}));
  return b.Op("Pad", {g, b.Op("Pack", {b.ZerosLike(lacking), lacking}, {{"axis", 1}})});
}

// The real part of the adjoint: frequencies that were left out get zeros.
Status RealGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const int axes = AxesOf(c.node()->op()->name);
  Output lengths = c.x(1), rank = b.Op("Rank", {c.dy()});
  Output n = b.Op("StridedSlice", {lengths, b.Vector<int32_t>({-1}), b.Vector<int32_t>({0}), b.Vector<int32_t>({1})},
                  {{"end_mask", 1}});
  Output bins = LastDims(b, c.dy(), 1), zero = b.Scalar<int32_t>(0);
  Output whole = b.Op(
      "Pad",
      {c.dy(),
       b.Op("Pad",
            {b.Op("Reshape", {b.Sub(n, bins), b.Vector<int32_t>({1, 1})}),
             b.Op("Pack", {b.Op("Pack", {b.Sub(rank, b.Scalar<int32_t>(1)), zero}), b.Vector<int32_t>({1, 0})})})});
  const char* inverse = axes == 3 ? "IFFT3D" : axes == 2 ? "IFFT2D" : "IFFT";
  const DType real = BaseType(c.x(0).dtype());
  Output g = b.Op("Real", {b.Op(inverse, {whole})}, {{"Tout", real}});
  c.set_dx(0, PaddedLike(b, b.Mul(g, CountAs(b, lengths, real)), c.x(0)));
  return c.status();
}

// Frequencies that stand for themselves and their mirror image count twice.
Status RealInverseGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const std::string& op = c.node()->op()->name;
  Output lengths = c.x(1), zero = b.Scalar<int32_t>(0), one = b.Scalar<int32_t>(1);
  const DType complex = BaseType(c.x(0).dtype()), real = BaseType(c.dy().dtype());
  Output g = b.Op(op.substr(1), {c.dy(), lengths}, {{"Tcomplex", complex}});
  Output n = b.Op("Squeeze", {LastDims(b, c.dy(), 1)}), bins = b.Op("Squeeze", {LastDims(b, g, 1)});
  Output k = b.Op("Range", {zero, bins, one});
  auto as_real = [&](Output x) { return b.Op("Cast", {x}, {{"DstT", real}}); };
  Output single = b.Add(as_real(b.Op("Equal", {k, zero})), as_real(b.Op("Equal", {b.Add(k, k), n})));
  Output weight = b.Div(b.Sub(b.ScalarOf(real, 2.0), single), CountAs(b, lengths, real));
  g = b.Mul(g, b.Op("Cast", {weight}, {{"DstT", complex}}));
  // Of no frequencies the transform makes zeros as many as it is told: then there are more of them than of x.
  Output sizes = b.Op("Minimum", {b.Op("Shape", {g}), b.Op("Shape", {c.x(0)})});
  c.set_dx(0, PaddedLike(b, b.Op("Slice", {g, b.ZerosLike(sizes), sizes}), c.x(0)));
  return c.status();
}

struct Axes {
  const char* suffix;
  const char* text;
  const char* complex_example;
  const char* real_example;
  const char* inverse_example;
};
constexpr Axes kAxes[] = {
    {"", "last axis", "c64[2,6]~", "f32[2,7]~, !i32[1]{6}", "c64[2,4]~, !i32[1]{6}"},
    {"2D", "last two axes", "c64[2,3,4]~", "f32[2,4,5]~, !i32[2]{3 4}", "c64[2,4,3]~, !i32[2]{3 4}"},
    {"3D", "last three axes", "c64[2,3,4]~", "f32[3,2,5]~, !i32[3]{2 2 5}", "c64[2,3,3]~, !i32[3]{2 3 5}"},
};

void RegisterAxes(OpRegistry& r, const Axes& a) {
  const char* const complex_args = "(input:Tcomplex) -> (output:Tcomplex) | Tcomplex in CPX=c64";
  const char* const real_types = " | Treal in FD=f32; Tcomplex in CPX=c64";
  const std::string forward =
      absl::StrCat("The discrete Fourier transform over the ", a.text, ": sums of x[j] exp(-2 pi i j k / n).");
  const std::string inverse = absl::StrCat(
      "The inverse discrete Fourier transform over the ", a.text,
      ": sums of x[k] exp(2 pi i j k / n), divided by the number of terms.");
  r.Add(absl::StrCat("FFT", a.suffix, complex_args))
      .Doc(forward)
      .Shape(ComplexShape)
      .Gradient(ComplexGrad)
      .Example(a.complex_example);
  r.Add(absl::StrCat("IFFT", a.suffix, complex_args))
      .Doc(inverse)
      .Shape(ComplexShape)
      .Gradient(ComplexGrad)
      .Example(a.complex_example);
  for (const char* direction : {"FFT", "IFFT"}) {
    r.Add(absl::StrCat("Batch", direction, a.suffix, "(input:c64) -> (output:c64) | D15"))
        .Doc(absl::StrCat(direction, a.suffix, " under its name of before 0.8."))
        .Shape(ComplexShape)
        .NoGradient(absl::StrCat("use ", direction, a.suffix, "; TensorFlow has none"))
        .Example(a.complex_example);
  }
  r.Add(absl::StrCat("RFFT", a.suffix, "(input:Treal, fft_length:i32) -> (output:Tcomplex)", real_types))
      .Doc(absl::StrCat(forward,
                        " Of real numbers: along the last axis the frequencies 0 to n / 2, which determine the "
                        "others. The input is cut to fft_length."))
      .Shape(RealShape)
      .Gradient(RealGrad)
      .Example(a.real_example);
  r.Add(absl::StrCat("IRFFT", a.suffix, "(input:Tcomplex, fft_length:i32) -> (output:Treal)", real_types))
      .Doc(absl::StrCat(inverse,
                        " To real numbers, of the frequencies 0 to n / 2 along the last axis; fft_length says how "
                        "many numbers there are, and cuts the input."))
      .Shape(RealShape)
      .Gradient(RealInverseGrad)
      .Example(a.inverse_example);
}

}  // namespace

void RegisterSignalOps(OpRegistry& r) {
  for (const Axes& a : kAxes) RegisterAxes(r, a);
}

}  // namespace millrace
