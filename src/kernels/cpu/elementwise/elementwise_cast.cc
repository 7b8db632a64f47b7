// SPDX-License-Identifier: Apache-2.0
// Cast: the route of conversions is found once, then runs over blocks.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/elementwise/elementwise_host_cast.h"

namespace millrace {
namespace {

// Bits of the source's mantissa that the destination lacks; 0 where truncating and rounding are the same.
int SurplusBits(DType from, DType to) {
  auto mantissa = [](DType t) {
    switch (t) {
      case DType::kBFloat16: return 7;
      case DType::kHalf: return 10;
      case DType::kFloat:
      case DType::kComplex64: return 23;
      case DType::kDouble:
      case DType::kComplex128: return 52;
      default: return 0;
    }
  };
  const int have = mantissa(from);
  const int want = mantissa(to);
  return have >= 23 && want != 0 && have > want ? have - want : 0;
}

class CastKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    from_ = BaseType(init.input_type(0));
    to_ = BaseType(init.output_type(0));
    if (from_ == to_) return absl::OkStatus();
    route_ = FindConvert(from_, to_);
    if (!route_.found) return NoSuchCast();
    if (init.HasAttr("Truncate")) {
      MR_ASSIGN_OR_RETURN(const bool truncate, init.Attr<bool>("Truncate"));
      if (truncate) truncated_bits_ = SurplusBits(from_, to_);
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (from_ == to_) {
      ctx.set_output(0, x);
      return absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, x.shape()));
    const int64_t n = x.num_elements();
    const char* in = x.data<char>();
    char* to = out->mutable_data<char>();
    if (n <= 1024) {
      Run(in, to, n);
      return absl::OkStatus();
    }
    const int64_t blocks = (n + kElementwiseBlock - 1) / kElementwiseBlock;
    const int64_t in_size = route_.size[0];
    const int64_t out_size = route_.size[route_.steps];
    ctx.ParallelFor(blocks, 0.5 * route_.steps * kElementwiseBlock, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kElementwiseBlock;
      Run(in + first * in_size, to + first * out_size, std::min(n, end * kElementwiseBlock) - first);
    });
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  Status NoSuchCast() const {
    return Unimplemented("Cast ", DTypeName(from_), " to ", DTypeName(to_), " is not supported");
  }

  void Run(const char* in, char* out, int64_t n) const {
    if (truncated_bits_ == 0) return route_.Run(in, out, n);
    alignas(64) char tile[kConvertTile * 16];
    const int64_t parts = IsComplex(from_) ? 2 : 1;
    const bool wide = from_ == DType::kDouble || from_ == DType::kComplex128;
    for (int64_t i = 0; i < n; i += kConvertTile) {
      const int64_t k = std::min(kConvertTile, n - i);
      if (wide) {
        TruncateDoubles(
            reinterpret_cast<const double*>(in), reinterpret_cast<double*>(tile), k * parts, truncated_bits_);
      } else {
        TruncateFloats(reinterpret_cast<const float*>(in), reinterpret_cast<float*>(tile), k * parts, truncated_bits_);
      }
      route_.Run(tile, out, k);
      in += k * route_.size[0];
      out += k * route_.size[route_.steps];
    }
  }

  DType from_ = DType::kInvalid;
  DType to_ = DType::kInvalid;
  ConvertRoute route_;
  int truncated_bits_ = 0;
};

}  // namespace

void RegisterCastKernels(KernelRegistry& r) { r.Add<CastKernel>({.op = "Cast"}); }

void AddHostCastKernels(AnyDeviceKernels& r) { r.Add<CastKernel>("_HostCast", {"x", "y"}); }

}  // namespace millrace
