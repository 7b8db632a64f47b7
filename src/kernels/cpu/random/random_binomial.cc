// SPDX-License-Identifier: Apache-2.0
// CPU kernels of binomial numbers: by inversion, which adds geometric numbers until they exceed the count (Devroye
// 1986), where fewer than ten successes are to be expected, else by transformed rejection (Hoermann 1993, algorithm
// BTRS).
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stop_scope.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cpu/random/random_draws.h"

namespace millrace {

double ValueAt(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case DType::kFloat: return static_cast<double>(t.data<float>()[i]);
    case DType::kDouble: return t.data<double>()[i];
    case DType::kHalf: return static_cast<double>(static_cast<float>(t.data<Half>()[i]));
    case DType::kBFloat16: return static_cast<double>(static_cast<float>(t.data<BFloat16>()[i]));
    case DType::kInt8: return static_cast<double>(t.data<int8_t>()[i]);
    case DType::kInt16: return static_cast<double>(t.data<int16_t>()[i]);
    case DType::kInt32: return static_cast<double>(t.data<int32_t>()[i]);
    case DType::kInt64: return static_cast<double>(t.data<int64_t>()[i]);
    case DType::kUInt8: return static_cast<double>(t.data<uint8_t>()[i]);
    case DType::kUInt16: return static_cast<double>(t.data<uint16_t>()[i]);
    case DType::kUInt32: return static_cast<double>(t.data<uint32_t>()[i]);
    case DType::kUInt64: return static_cast<double>(t.data<uint64_t>()[i]);
    default: return 0;
  }
}

namespace {

template <typename T>
T ToCount(double v, double most) {
  return std::isnan(v) ? std::numeric_limits<T>::min() : static_cast<T>(std::clamp(v, 0.0, most));
}

}  // namespace

void StoreAt(Tensor& t, int64_t i, double v) {
  switch (t.dtype()) {
    case DType::kFloat: t.mutable_data<float>()[i] = static_cast<float>(v); break;
    case DType::kDouble: t.mutable_data<double>()[i] = v; break;
    case DType::kHalf: t.mutable_data<Half>()[i] = Half(static_cast<float>(v)); break;
    case DType::kBFloat16: t.mutable_data<BFloat16>()[i] = BFloat16(static_cast<float>(v)); break;
    case DType::kInt32: t.mutable_data<int32_t>()[i] = ToCount<int32_t>(v, 2147483647.0); break;
    case DType::kInt64: t.mutable_data<int64_t>()[i] = ToCount<int64_t>(v, 9.2e18); break;
    default: break;
  }
}

Status CheckEnd(const Shape& shape, const Shape& parameter) {
  const int front = shape.rank() - parameter.rank();
  bool ends = front >= 0;
  for (int i = 0; ends && i < parameter.rank(); ++i) ends = shape.dim(front + i) == parameter.dim(i);
  if (ends) return absl::OkStatus();
  return InvalidArgument("Shape passed in must end with broadcasted shape. Shape ", shape.ToString(),
                         " does not end with that of the parameters, ", parameter.ToString());
}

namespace {

constexpr uint64_t kBlocksOfInversion = 42;

double Invert(double count, double p, Draws& draws) {
  const double log_failure = std::log1p(-p);
  double sum = 0;
  StopNowAndThen pause;
  for (int64_t successes = 0;; ++successes) {
    pause();
    sum += std::ceil(std::log(draws.Uniform()) / log_failure);
    if (sum > count) return static_cast<double>(successes);
  }
}

// log k! less Stirling's formula.
double StirlingTail(double k) {
  constexpr double kFirst[] = {
      0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
      0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return kFirst[static_cast<size_t>(std::max(k, 0.0))];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// p <= 1/2.
double Reject(double count, double p, Draws& draws) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = count * p + 0.5;
  const double tight = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * p);
  StopNowAndThen pause;
  for (;;) {
    pause();
    const double u = draws.Uniform() - 0.5, v = draws.Uniform();
    const double us = 0.5 - std::abs(u), k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= tight) return k;
    if (k < 0 || k > count) continue;
    const double bound =
        (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
        (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
        (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + StirlingTail(mode) + StirlingTail(count - mode) -
        StirlingTail(k) - StirlingTail(count - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
  }
}

// A number in the precision of the parameters.
double RoundedTo(DType dtype, double v) {
  switch (dtype) {
    case DType::kFloat: return static_cast<double>(static_cast<float>(v));
    case DType::kHalf: return static_cast<double>(static_cast<float>(Half(static_cast<float>(v))));
    default: return v;
  }
}

double Sample(DType dtype, double count, double p, const Philox& start, int64_t region) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  if (!(std::isfinite(count) && std::isfinite(p))) return std::numeric_limits<double>::quiet_NaN();
  const bool is_rare = p <= 0.5;
  const double rarer = is_rare ? p : RoundedTo(dtype, 1 - p);
  const bool is_many = RoundedTo(dtype, count * rarer) >= 10;
  Draws draws(start, region, is_many ? Draws::kBlocks : kBlocksOfInversion);
  const double k = is_many ? Reject(count, rarer, draws) : Invert(count, rarer, draws);
  return is_rare ? k : count - k;
}

// Where element i of a broadcast shape comes from.
class BroadcastIndex {
 public:
  BroadcastIndex(const Shape& from, const Shape& to) {
    int64_t stride = 1, from_stride = 1;
    for (int i = to.rank() - 1, j = from.rank() - 1; i >= 0; --i, --j) {
      if (j >= 0 && from.dim(j) > 1) dims_.push_back({stride, to.dim(i), from_stride});
      if (j >= 0) from_stride *= from.dim(j);
      stride *= to.dim(i);
    }
  }
  int64_t operator()(int64_t i) const {
    int64_t at = 0;
    for (const Dim& d : dims_) at += i / d.stride % d.size * d.from_stride;
    return at;
  }

 private:
  struct Dim {
    int64_t stride, size, from_stride;
  };
  std::vector<Dim> dims_;
};

StatusOr<Shape> Broadcast(const Shape& a, const Shape& b) {
  std::vector<int64_t> dims(static_cast<size_t>(std::max(a.rank(), b.rank())));
  for (size_t i = 0; i < dims.size(); ++i) {
    const int at = static_cast<int>(i) + 1;
    const int64_t x = at <= a.rank() ? a.dim(a.rank() - at) : 1, y = at <= b.rank() ? b.dim(b.rank() - at) : 1;
    if (x != y && x != 1 && y != 1) {
      return InvalidArgument(
          "counts and probs must have compatible batch dimensions: ", a.ToString(), " vs. ", b.ToString());
    }
    dims[dims.size() - 1 - i] = x == 1 ? y : x;
  }
  return Shape::Make(dims);
}

// Samples along the last dimensions of the shape, which are those of the parameters.
Status StatelessBinomial(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const Shape shape, ShapeInput(ctx, 0));
  const Tensor &counts = ctx.input(2), &probs = ctx.input(3);
  MR_ASSIGN_OR_RETURN(const Shape batch, Broadcast(counts.shape(), probs.shape()));
  MR_RETURN_IF_ERROR(CheckEnd(shape, batch));
  MR_ASSIGN_OR_RETURN(const Philox start, StreamOf(ctx, Source::kSeed, 0));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const int64_t n = shape.num_elements(), width = batch.num_elements(), samples = width > 0 ? n / width : 0;
  const BroadcastIndex count_of(counts.shape(), batch), prob_of(probs.shape(), batch);
  ctx.ParallelFor(n, 300.0, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t parameter = i % width;
      const double count = ValueAt(counts, count_of(parameter)), p = ValueAt(probs, prob_of(parameter));
      StoreAt(*out, i, Sample(probs.dtype(), count, p, start, parameter * samples + i / width));
    }
  });
  return absl::OkStatus();
}

// As TensorFlow 1.15 has it: parameters of the rows along the first dimension, or of all.
Status StatefulBinomial(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const Shape shape, ShapeInput(ctx, 2));
  const Tensor &counts = ctx.input(3), &probs = ctx.input(4);
  const int64_t rows = shape.rank() > 0 ? shape.dim(0) : 1;
  for (const Tensor* parameter : {&counts, &probs}) {
    if (parameter->rank() <= 1 && (parameter->num_elements() == 1 || parameter->num_elements() == rows)) continue;
    return InvalidArgument("Input ", parameter == &counts ? "counts" : "probs",
                           " should have length 1 or shape[0], got shape: ", parameter->shape().ToString());
  }
  const int64_t n = shape.num_elements();
  MR_ASSIGN_OR_RETURN(const Philox start, StreamOf(ctx, Source::kState, n));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const int64_t row = n > 0 ? n / rows : 0;
  ctx.ParallelFor(n, 300.0, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double count = ValueAt(counts, counts.num_elements() == 1 ? 0 : i / row);
      const double p = ValueAt(probs, probs.num_elements() == 1 ? 0 : i / row);
      StoreAt(*out, i, Sample(probs.dtype(), count, p, start, i));
    }
  });
  return absl::OkStatus();
}

}  // namespace

void RegisterRandomBinomial(KernelRegistry& r) {
  r.AddFn({.op = "StatefulRandomBinomial"}, StatefulBinomial);
  r.AddFn({.op = "StatelessRandomBinomial"}, StatelessBinomial);
}

}  // namespace millrace
