// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/nn/nn_columns.h"

#include <algorithm>

#include "kernels/cpu/nn/nn_simd.h"

namespace millrace {
namespace {

constexpr int64_t kWideColumns = 64;     // four vectors of the widest kind
constexpr int64_t kBlockValues = 16384;  // 64 KiB: stays in the second-level cache between passes
constexpr int64_t kMaxBlocks = 1024;

std::vector<float>& ThreadBuffer(int slot, size_t n) {
  thread_local std::vector<float> buffers[3];
  std::vector<float>& b = buffers[slot];
  if (b.size() < n) b.resize(n);
  return b;
}

}  // namespace

ColumnView::ColumnView(int64_t rows, int64_t channels) : rows_(rows), channels_(channels) {
  const int64_t repeat = channels_ > 0 && channels_ < kWideColumns ? (kWideColumns + channels_ - 1) / channels_ : 1;
  wide_ = channels_ * repeat;
  wide_rows_ = rows_ / repeat;
  tail_ = rows_ % repeat * channels_;
  block_rows_ = std::max<int64_t>(1, kBlockValues / std::max<int64_t>(1, wide_));
  block_rows_ = std::max(block_rows_, (wide_rows_ + kMaxBlocks - 1) / kMaxBlocks);
  blocks_ = (wide_rows_ + block_rows_ - 1) / block_rows_;
  if (channels_ == 0) blocks_ = 0;
}

std::vector<float> ColumnView::Widen(const float* per_channel) const {
  std::vector<float> v(static_cast<size_t>(wide_), 0.0f);
  if (per_channel == nullptr) return v;
  for (int64_t at = 0; at < wide_; at += channels_) std::copy_n(per_channel, channels_, v.data() + at);
  return v;
}

void ColumnView::ForBlocks(KernelContext& ctx, double nanoseconds_per_value, BlockFn fn) const {
  ctx.ParallelFor(
      blocks_, nanoseconds_per_value * static_cast<double>(block_rows_ * wide_), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t row = b * block_rows_;
          fn(row * wide_, static_cast<size_t>(std::min(block_rows_, wide_rows_ - row)), static_cast<size_t>(wide_));
        }
      });
  if (tail_ > 0) fn(wide_rows_ * wide_, 1, static_cast<size_t>(tail_));
}

StatusOr<Tensor> ColumnView::Partials(KernelContext& ctx, double nanoseconds_per_value, int64_t vectors,
                                      PartialFn fn) const {
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({blocks_ + 1, vectors, wide_}));  // the last one is the tail
  MR_ASSIGN_OR_RETURN(Tensor partials, ctx.AllocateTemp(DType::kFloat, shape));
  float* base = partials.mutable_data<float>();
  ForBlocks(ctx, nanoseconds_per_value, [&](int64_t offset, size_t rows, size_t cols) {
    const int64_t block = offset == wide_rows_ * wide_ ? blocks_ : offset / (block_rows_ * wide_);
    float* p = base + block * vectors * wide_;
    std::fill_n(p, vectors * wide_, 0.0f);
    fn(offset, rows, cols, p);
  });
  return partials;
}

template <typename Fn>
void ColumnView::ForPartials(const Tensor& partials, const Fn& fn) const {
  const int64_t size = partials.dim(1) * wide_;
  for (int64_t b = 0; b < blocks_; ++b) {
    fn(partials.data<float>() + b * size, std::min(block_rows_, wide_rows_ - b * block_rows_), wide_);
  }
  if (tail_ > 0) fn(partials.data<float>() + blocks_ * size, int64_t{1}, tail_);
}

Status ColumnView::Reduce(KernelContext& ctx, double nanoseconds_per_value, SumFn fn, std::vector<double>* sum0,
                          std::vector<double>* sum1) const {
  sum0->assign(static_cast<size_t>(channels_), 0.0);
  sum1->assign(static_cast<size_t>(channels_), 0.0);
  if (channels_ == 0 || rows_ == 0) return absl::OkStatus();
  const auto add = [&](int64_t offset, size_t rows, size_t cols, float* p) { fn(offset, rows, cols, p, p + wide_); };
  MR_ASSIGN_OR_RETURN(const Tensor partials, Partials(ctx, nanoseconds_per_value, 2, add));
  ForPartials(partials, [&](const float* p, int64_t, int64_t cols) {
    for (int64_t c = 0; c < cols; ++c) {
      (*sum0)[static_cast<size_t>(c % channels_)] += static_cast<double>(p[c]);
      (*sum1)[static_cast<size_t>(c % channels_)] += static_cast<double>(p[wide_ + c]);
    }
  });
  return absl::OkStatus();
}

// Each block sums differences from a row near its own mean, so that squares stay small whatever the mean is and however
// the blocks differ; in double the blocks' moments become those of all (Chan, Golub, LeVeque, 1979). The block's first
// row is near enough, but where it lies some deviations off; then the block is read again, about the mean just found.
Status ColumnView::Moments(KernelContext& ctx, double nanoseconds_per_value, ReadFn read, std::vector<double>* mean,
                           std::vector<double>* variance) const {
  mean->assign(static_cast<size_t>(channels_), 0.0);
  variance->assign(static_cast<size_t>(channels_), 0.0);
  if (channels_ == 0 || rows_ == 0) return absl::OkStatus();
  const auto add = [&](int64_t offset, size_t rows, size_t cols, float* p) {
    const float* x = read(offset, rows * cols);
    float *shift = p, *sum = p + wide_, *squares = p + 2 * wide_;
    std::copy_n(x, cols, shift);
    AddMoments(x, rows, cols, shift, sum, squares);
    const float n = static_cast<float>(rows);
    bool is_far = false;
    for (size_t c = 0; c < cols; ++c) is_far |= sum[c] * sum[c] > 15.0f / 16 * n * squares[c];
    if (!is_far) return;
    for (size_t c = 0; c < cols; ++c) shift[c] += sum[c] / n;
    std::fill_n(sum, 2 * wide_, 0.0f);
    AddMoments(x, rows, cols, shift, sum, squares);
  };
  MR_ASSIGN_OR_RETURN(const Tensor partials, Partials(ctx, nanoseconds_per_value, 3, add));
  const auto mean_of = [&](const float* p, int64_t rows, int64_t c) {
    return static_cast<double>(p[c]) + static_cast<double>(p[wide_ + c]) / static_cast<double>(rows);
  };
  const double all = static_cast<double>(rows_);
  ForPartials(partials, [&](const float* p, int64_t rows, int64_t cols) {
    for (int64_t c = 0; c < cols; ++c) {
      (*mean)[static_cast<size_t>(c % channels_)] += mean_of(p, rows, c) * static_cast<double>(rows) / all;
    }
  });
  ForPartials(partials, [&](const float* p, int64_t rows, int64_t cols) {
    const double n = static_cast<double>(rows);
    for (int64_t c = 0; c < cols; ++c) {
      const size_t channel = static_cast<size_t>(c % channels_);
      const double sum = static_cast<double>(p[wide_ + c]), off = mean_of(p, rows, c) - (*mean)[channel];
      const double within = static_cast<double>(p[2 * wide_ + c]) - sum * sum / n;
      (*variance)[channel] += ((within < 0 ? 0 : within) + n * off * off) / all;  // keeps NaN
    }
  });
  return absl::OkStatus();
}

const float* ReadBlock(const Tensor& t, int64_t offset, size_t n, int slot) {
  if (t.dtype() == DType::kFloat) return t.data<float>() + offset;
  std::vector<float>& b = ThreadBuffer(slot, n);
  WidenToFloat(t.dtype(), t.data<uint16_t>() + offset, b.data(), n);
  return b.data();
}

float* WriteBuffer(Tensor* t, int64_t offset, size_t n, int slot) {
  if (t->dtype() == DType::kFloat) return t->mutable_data<float>() + offset;
  return ThreadBuffer(slot, n).data();
}

void FinishWrite(Tensor* t, int64_t offset, size_t n, const float* buffer) {
  if (t->dtype() != DType::kFloat) NarrowFromFloat(t->dtype(), buffer, t->mutable_data<uint16_t>() + offset, n);
}

}  // namespace millrace
