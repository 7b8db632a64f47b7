// SPDX-License-Identifier: Apache-2.0
// CPU kernels: tensors of one repeated value, and the check that all values are finite.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "kernels/cpu/array/array_kernels.h"
#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {
namespace {

template <typename T>
void Put(T v, void* bytes) {
  std::memcpy(bytes, &v, sizeof(T));
}

// The number one as an element; false for types that have none.
bool PutOne(DType t, void* bytes) {
  switch (t) {
    case DType::kHalf: Put(Half(1.0f), bytes); return true;
    case DType::kBFloat16: Put(BFloat16(1.0f), bytes); return true;
    case DType::kFloat: Put(1.0f, bytes); return true;
    case DType::kDouble: Put(1.0, bytes); return true;
    case DType::kComplex64: Put(complex64(1.0f), bytes); return true;
    case DType::kComplex128: Put(complex128(1.0), bytes); return true;
    default: break;
  }
  if (!IsInteger(t) && t != DType::kBool) return false;
  std::memset(bytes, 0, DTypeSize(t));
  *static_cast<uint8_t*>(bytes) = 1;  // little-endian, as everything here
  return true;
}

struct Element {
  alignas(16) char bytes[16] = {};
};

Status ZerosLike(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.dtype() == DType::kString) return ctx.AllocateOutput(0, in.shape()).status();
  if (!IsPlain(in.dtype())) return Unimplemented("ZerosLike of ", DTypeName(in.dtype()));
  const Shape shape = in.shape();
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, shape));
  const Element zero;
  FillElements(&ctx, out->dtype(), out->mutable_raw(), zero.bytes, shape.num_elements());
  return absl::OkStatus();
}

Status OnesLike(KernelContext& ctx) {
  Element one;
  if (!PutOne(ctx.output_dtype(0), one.bytes)) return Unimplemented("OnesLike of ", DTypeName(ctx.output_dtype(0)));
  const Shape shape = ctx.input(0).shape();
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, shape));
  FillElements(&ctx, out->dtype(), out->mutable_raw(), one.bytes, shape.num_elements());
  return absl::OkStatus();
}

Status Fill(KernelContext& ctx) {
  // Old graphs have a number for a vector of one number, and the other way.
  Tensor dims = ctx.input(0);
  if (dims.rank() == 0) {
    MR_ASSIGN_OR_RETURN(dims, dims.Reshaped(Shape::Vector(1)));
  }
  MR_ASSIGN_OR_RETURN(Shape shape, ShapeOf(dims, "dims"));
  const Tensor& value = ctx.input(1);
  if (value.rank() > 1 || value.num_elements() != 1)
    return InvalidArgument("value must be a scalar, got shape ", value.shape().ToString());
  if (shape.rank() == 0 && value.rank() == 0) {
    ctx.set_output(0, value);
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  FillElements(&ctx, out->dtype(), out->mutable_raw(), value.raw(), shape.num_elements());
  return absl::OkStatus();
}

class EmptyKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(zero_, init.Attr<bool>("init"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Shape shape, ShapeOf(ctx.input(0), "shape"));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const Element zero;
    if (zero_ && IsPlain(out->dtype())) {
      FillElements(&ctx, out->dtype(), out->mutable_raw(), zero.bytes, shape.num_elements());
    }
    return absl::OkStatus();
  }

 private:
  bool zero_ = false;
};

// A number is NaN or infinite when all bits of its exponent are set. Tiles of a fixed length become vector code.
template <typename U>
bool AnyNotFinite(const void* data, int64_t begin, int64_t end, U exponent) {
  const U* p = static_cast<const U*>(data);
  constexpr int64_t kTile = 256;
  int64_t i = begin;
  for (; i + kTile <= end; i += kTile) {
    U bad = 0;
    for (int64_t k = 0; k < kTile; ++k) bad = static_cast<U>(bad | ((p[i + k] & exponent) == exponent ? 1 : 0));
    if (bad != 0) return true;
  }
  for (; i < end; ++i) {
    if ((p[i] & exponent) == exponent) return true;
  }
  return false;
}

bool AnyNotFinite(const Tensor& t, int64_t begin, int64_t end) {
  switch (t.dtype()) {
    case DType::kHalf: return AnyNotFinite<uint16_t>(t.raw(), begin, end, 0x7c00);
    case DType::kBFloat16: return AnyNotFinite<uint16_t>(t.raw(), begin, end, 0x7f80);
    case DType::kFloat: return AnyNotFinite<uint32_t>(t.raw(), begin, end, 0x7f800000u);
    default: return AnyNotFinite<uint64_t>(t.raw(), begin, end, 0x7ff0000000000000u);
  }
}

double AsDouble(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case DType::kHalf: return static_cast<double>(static_cast<float>(t.data<Half>()[i]));
    case DType::kBFloat16: return static_cast<double>(static_cast<float>(t.data<BFloat16>()[i]));
    case DType::kFloat: return static_cast<double>(t.data<float>()[i]);
    default: return t.data<double>()[i];
  }
}

class CheckNumericsKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(message_, init.Attr<std::string>("message"));
    tells_signs_ = init.op.name == "CheckNumericsV2";
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    std::atomic<bool> bad{false};
    ctx.ParallelFor(in.num_elements(), 0.2, [&](int64_t begin, int64_t end) {
      if (!bad.load(std::memory_order_relaxed) && AnyNotFinite(in, begin, end)) bad = true;
    });
    if (bad) return Explain(in);
    ctx.set_output(0, in);
    return absl::OkStatus();
  }

 private:
  Status Explain(const Tensor& in) const {
    bool nan = false, negative = false, positive = false;
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      const double v = AsDouble(in, i);
      nan = nan || std::isnan(v);
      negative = negative || (std::isinf(v) && v < 0);
      positive = positive || (std::isinf(v) && v > 0);
    }
    std::vector<const char*> found;
    if (tells_signs_ && negative) found.push_back("-Inf");
    if (tells_signs_ && positive) found.push_back("+Inf");
    if (!tells_signs_ && (negative || positive)) found.push_back("Inf");
    if (nan) found.push_back("NaN");
    const std::string all = found.size() == 3 ? "-Inf, +Inf, and NaN" : absl::StrJoin(found, " and ");
    return InvalidArgument(message_, " : Tensor had ", all, " values");
  }
  std::string message_;
  bool tells_signs_ = false;
};

}  // namespace

void RegisterArrayFillKernels(KernelRegistry& r) {
  r.AddFn({.op = "ZerosLike"}, ZerosLike);
  r.AddFn({.op = "OnesLike"}, OnesLike);
  r.AddFn({.op = "Fill"}, Fill);
  r.Add<EmptyKernel>({.op = "Empty"});
  for (const char* op : {"CheckNumerics", "CheckNumericsV2"}) {
    r.Add<CheckNumericsKernel>({.op = op, .types = {{"T", Types("FLT")}}});
  }
}

}  // namespace millrace
