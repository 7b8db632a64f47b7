// SPDX-License-Identifier: Apache-2.0
// ExtractVolumePatches.
#include "base/checked.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/index/index_kernels.h"
#include "tensor/window.h"

namespace millrace {
namespace {

class VolumePatchesKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(ksize_, init.Attr<std::vector<int64_t>>("ksizes"));
    MR_ASSIGN_OR_RETURN(stride_, init.Attr<std::vector<int64_t>>("strides"));
    MR_ASSIGN_OR_RETURN(const std::string padding, init.Attr<std::string>("padding"));
    MR_ASSIGN_OR_RETURN(padding_, ParsePadding(padding));
    for (const std::vector<int64_t>* list : {&ksize_, &stride_}) {
      if (list->size() != 5) return InvalidArgument("ksizes and strides must have 5 elements, got ", list->size());
      if ((*list)[0] != 1 || (*list)[4] != 1) return Unimplemented("patches across batch or depth are not supported");
      for (const int64_t v : *list) {
        if (v < 1) return OutOfRange("ksizes or strides is out of range: ", v);
      }
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 5) return InvalidArgument("input must be 5-dimensional", in.shape().ToString());
    WindowExtent window[3];
    int64_t depth = in.dim(4);
    for (int i = 0; i < 3; ++i) {
      const auto d = static_cast<size_t>(i) + 1;
      MR_ASSIGN_OR_RETURN(window[i], ComputeWindow(in.dim(i + 1), ksize_[d], stride_[d], 1, padding_));
      if (!CheckedMul(depth, ksize_[d], &depth)) return InvalidArgument("patches do not fit in 64 bits");
    }
    MR_ASSIGN_OR_RETURN(
        const Shape shape, Shape::Make({in.dim(0), window[0].output, window[1].output, window[2].output, depth}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const int64_t channels = in.dim(4), places = shape.num_elements() / depth;
    const RunCopier copier(in.dtype(), channels);
    ctx.ParallelFor(places, 1.0 * static_cast<double>(depth), [&](int64_t begin, int64_t end) {
      ZeroElements(out->dtype(), out->mutable_raw(), begin * depth, (end - begin) * depth);
      for (int64_t p = begin; p < end; ++p) {
        int64_t at[3], rest = p;
        for (int i = 2; i >= 0; --i) {
          at[i] = rest % window[i].output * stride_[static_cast<size_t>(i) + 1] - window[i].pad_before;
          rest /= window[i].output;
        }
        CopyPatch(in, copier, rest, at, p * depth, out);
      }
    });
    return absl::OkStatus();
  }

 private:
  // The patch of volume `b` that begins at `at`.
  void CopyPatch(const Tensor& in, const RunCopier& copier, int64_t b, const int64_t* at, int64_t to,
                 Tensor* out) const {
    const int64_t channels = in.dim(4);
    const int64_t lo = std::max<int64_t>(0, -at[2]), hi = std::min(ksize_[3], in.dim(3) - at[2]);
    if (lo >= hi) return;
    for (int64_t i = 0; i < ksize_[1]; ++i) {
      if (!InRange(at[0] + i, in.dim(1))) continue;
      for (int64_t j = 0; j < ksize_[2]; ++j) {
        if (!InRange(at[1] + j, in.dim(2))) continue;
        const int64_t row = ((b * in.dim(1) + at[0] + i) * in.dim(2) + at[1] + j) * in.dim(3) + at[2] + lo;
        const int64_t place = (i * ksize_[2] + j) * ksize_[3] + lo;
        copier.Copy(out->mutable_raw(), to + place * channels, channels, in.raw(), row * channels, channels, hi - lo);
      }
    }
  }

  std::vector<int64_t> ksize_, stride_;
  Padding padding_ = Padding::kValid;
};

}  // namespace

void RegisterVolumePatchesKernels(KernelRegistry& r) {
  r.Add<VolumePatchesKernel>({.op = "ExtractVolumePatches", .types = {{"T", Types("REAL")}}});
}

}  // namespace millrace
