// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/nn/nn_channels.h"

#include <algorithm>

#include "kernels/cpu/engine/elementwise_convert.h"
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

ChannelView::ChannelView(int64_t outer, int64_t channels, int64_t inner)
    : outer_(outer), channels_(channels), inner_(inner) {
  int64_t values = outer * channels;  // of a matrix
  if (planes()) {
    matrices_ = values;
    values = inner;
    wide_ = kWideColumns;
  } else {
    const int64_t repeat = channels_ > 0 && channels_ < kWideColumns ? (kWideColumns + channels_ - 1) / channels_ : 1;
    matrices_ = channels_ == 0 ? 0 : 1;
    wide_ = channels_ * repeat;
  }
  const int64_t width = std::max<int64_t>(1, wide_);
  wide_rows_ = values / width;
  tail_ = values % width;
  block_rows_ = std::max<int64_t>(1, kBlockValues / width);
  if (!planes()) block_rows_ = std::max(block_rows_, (wide_rows_ + kMaxBlocks - 1) / kMaxBlocks);
  blocks_ = (wide_rows_ + block_rows_ - 1) / block_rows_;
}

std::vector<float> ChannelView::Widen(const float* per_channel) const {
  std::vector<float> v(static_cast<size_t>(planes() ? channels_ * wide_ : wide_), 0.0f);
  if (per_channel == nullptr) return v;
  if (planes()) {
    for (int64_t c = 0; c < channels_; ++c) std::fill_n(v.data() + c * wide_, wide_, per_channel[c]);
  } else {
    for (int64_t at = 0; at < wide_; at += channels_) std::copy_n(per_channel, channels_, v.data() + at);
  }
  return v;
}

ChannelBlock ChannelView::BlockAt(int64_t i) const {
  const int64_t of_one = blocks_ + (tail_ > 0 ? 1 : 0), matrix = i / of_one, row = i % of_one * block_rows_;
  const int64_t at = planes() ? matrix % channels_ * wide_ : 0;
  const int64_t begin = matrix * (wide_rows_ * wide_ + tail_);
  if (i % of_one == blocks_) return {begin + wide_rows_ * wide_, 1, static_cast<size_t>(tail_), at};
  const int64_t rows = std::min(block_rows_, wide_rows_ - row);
  return {begin + row * wide_, static_cast<size_t>(rows), static_cast<size_t>(wide_), at};
}

size_t ChannelView::ChannelOf(int64_t i, size_t c) const {
  if (!planes()) return c % static_cast<size_t>(channels_);
  return static_cast<size_t>(i / (blocks() / matrices_) % channels_);
}

void ChannelView::ForBlocks(KernelContext& ctx, double nanoseconds_per_value, BlockFn fn) const {
  const double cost = 10 + nanoseconds_per_value * static_cast<double>(std::min(block_rows_, wide_rows_) * wide_);
  ctx.ParallelFor(blocks(), cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(BlockAt(i));
  });
}

template <typename T>
StatusOr<Tensor> ChannelView::Partials(KernelContext& ctx, double nanoseconds_per_value, int64_t size,
                                       PartialFn<T> fn) const {
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({blocks(), size}));
  MR_ASSIGN_OR_RETURN(Tensor partials, ctx.AllocateTemp(DTypeOf<T>::value, shape));
  T* const base = partials.mutable_data<T>();
  const double cost = 10 + nanoseconds_per_value * static_cast<double>(std::min(block_rows_, wide_rows_) * wide_);
  ctx.ParallelFor(blocks(), cost, [&](int64_t begin, int64_t end) {
    std::fill(base + begin * size, base + end * size, T(0));
    for (int64_t i = begin; i < end; ++i) fn(BlockAt(i), base + i * size);
  });
  return partials;
}

Status ChannelView::Reduce(KernelContext& ctx, double nanoseconds_per_value, SumFn fn, std::vector<double>* sum0,
                           std::vector<double>* sum1) const {
  sum0->assign(static_cast<size_t>(channels_), 0.0);
  sum1->assign(static_cast<size_t>(channels_), 0.0);
  if (channels_ == 0 || rows() == 0) return absl::OkStatus();
  if (planes()) {
    const auto add = [&](const ChannelBlock& block, double* p) {
      float sums[2][kWideColumns] = {};
      fn(block, sums[0], sums[1]);
      for (size_t c = 0; c < block.cols; ++c) {
        p[0] += static_cast<double>(sums[0][c]);
        p[1] += static_cast<double>(sums[1][c]);
      }
    };
    MR_ASSIGN_OR_RETURN(const Tensor partials, Partials<double>(ctx, nanoseconds_per_value, 2, add));
    for (int64_t i = 0; i < blocks(); ++i) {
      (*sum0)[ChannelOf(i, 0)] += partials.data<double>()[2 * i];
      (*sum1)[ChannelOf(i, 0)] += partials.data<double>()[2 * i + 1];
    }
    return absl::OkStatus();
  }
  const auto add = [&](const ChannelBlock& block, float* p) { fn(block, p, p + wide_); };
  MR_ASSIGN_OR_RETURN(const Tensor partials, Partials<float>(ctx, nanoseconds_per_value, 2 * wide_, add));
  for (int64_t i = 0; i < blocks(); ++i) {
    const float* p = partials.data<float>() + i * 2 * wide_;
    for (size_t c = 0; c < BlockAt(i).cols; ++c) {
      (*sum0)[ChannelOf(i, c)] += static_cast<double>(p[c]);
      (*sum1)[ChannelOf(i, c)] += static_cast<double>(p[wide_ + static_cast<int64_t>(c)]);
    }
  }
  return absl::OkStatus();
}

// Each block sums differences from a value near its own mean, so that squares stay small whatever the mean is and
// however the blocks differ; in double the blocks' moments become those of all (Chan, Golub, LeVeque, 1979). The
// block's first row (of a plane the first value) is near enough, but where it lies some deviations off; then the block
// is read again, about the mean just found.
Status ChannelView::Moments(KernelContext& ctx, double nanoseconds_per_value, ReadFn read, std::vector<double>* mean,
                            std::vector<double>* variance) const {
  mean->assign(static_cast<size_t>(channels_), 0.0);
  variance->assign(static_cast<size_t>(channels_), 0.0);
  if (channels_ == 0 || rows() == 0) return absl::OkStatus();
  return planes() ? MomentsOfPlanes(ctx, nanoseconds_per_value, read, mean, variance)
                  : MomentsOfColumns(ctx, nanoseconds_per_value, read, mean, variance);
}

Status ChannelView::MomentsOfColumns(KernelContext& ctx, double nanoseconds_per_value, ReadFn read,
                                     std::vector<double>* mean, std::vector<double>* variance) const {
  const auto add = [&](const ChannelBlock& block, float* p) {
    const float* x = read(block.offset, block.size());
    float *shift = p, *sum = p + wide_, *squares = p + 2 * wide_;
    std::copy_n(x, block.cols, shift);
    AddMoments(x, block.rows, block.cols, shift, sum, squares);
    const float n = static_cast<float>(block.rows);
    bool is_far = false;
    for (size_t c = 0; c < block.cols; ++c) is_far |= sum[c] * sum[c] > 15.0f / 16 * n * squares[c];
    if (!is_far) return;
    for (size_t c = 0; c < block.cols; ++c) shift[c] += sum[c] / n;
    std::fill_n(sum, 2 * wide_, 0.0f);
    AddMoments(x, block.rows, block.cols, shift, sum, squares);
  };
  MR_ASSIGN_OR_RETURN(const Tensor partials, Partials<float>(ctx, nanoseconds_per_value, 3 * wide_, add));
  const auto mean_of = [&](const float* p, size_t rows, size_t c) {
    return static_cast<double>(p[c]) +
           static_cast<double>(p[static_cast<size_t>(wide_) + c]) / static_cast<double>(rows);
  };
  const double all = static_cast<double>(rows());
  for (int64_t i = 0; i < blocks(); ++i) {
    const ChannelBlock block = BlockAt(i);
    const float* p = partials.data<float>() + i * 3 * wide_;
    for (size_t c = 0; c < block.cols; ++c) {
      (*mean)[ChannelOf(i, c)] += mean_of(p, block.rows, c) * static_cast<double>(block.rows) / all;
    }
  }
  for (int64_t i = 0; i < blocks(); ++i) {
    const ChannelBlock block = BlockAt(i);
    const float* p = partials.data<float>() + i * 3 * wide_;
    const double n = static_cast<double>(block.rows);
    for (size_t c = 0; c < block.cols; ++c) {
      const size_t channel = ChannelOf(i, c), wide = static_cast<size_t>(wide_);
      const double sum = static_cast<double>(p[wide + c]), off = mean_of(p, block.rows, c) - (*mean)[channel];
      const double within = static_cast<double>(p[2 * wide + c]) - sum * sum / n;
      (*variance)[channel] += ((within < 0 ? 0 : within) + n * off * off) / all;  // keeps NaN
    }
  }
  return absl::OkStatus();
}

Status ChannelView::MomentsOfPlanes(KernelContext& ctx, double nanoseconds_per_value, ReadFn read,
                                    std::vector<double>* mean, std::vector<double>* variance) const {
  // Of a block: its mean, and the sum of squares of what differs from it.
  const auto add = [&](const ChannelBlock& block, double* p) {
    const float* x = read(block.offset, block.size());
    const double n = static_cast<double>(block.size());
    float shift = x[0];
    for (int pass = 0;; ++pass) {
      float shifts[kWideColumns], sums[kWideColumns] = {}, squares[kWideColumns] = {};
      std::fill_n(shifts, block.cols, shift);
      AddMoments(x, block.rows, block.cols, shifts, sums, squares);
      double sum = 0, square = 0;
      for (size_t c = 0; c < block.cols; ++c) {
        sum += static_cast<double>(sums[c]);
        square += static_cast<double>(squares[c]);
      }
      const double within = square - sum * sum / n;
      p[0] = static_cast<double>(shift) + sum / n;
      p[1] = within < 0 ? 0 : within;  // keeps NaN
      if (pass > 0 || !(sum * sum > 15.0 / 16 * n * square)) return;
      shift = static_cast<float>(p[0]);
    }
  };
  MR_ASSIGN_OR_RETURN(const Tensor partials, Partials<double>(ctx, nanoseconds_per_value, 2, add));
  const double* p = partials.data<double>();
  const double all = static_cast<double>(rows());
  for (int64_t i = 0; i < blocks(); ++i) {
    (*mean)[ChannelOf(i, 0)] += p[2 * i] * static_cast<double>(BlockAt(i).size()) / all;
  }
  for (int64_t i = 0; i < blocks(); ++i) {
    const size_t channel = ChannelOf(i, 0);
    const double off = p[2 * i] - (*mean)[channel];
    (*variance)[channel] += (p[2 * i + 1] + static_cast<double>(BlockAt(i).size()) * off * off) / all;
  }
  return absl::OkStatus();
}

const float* ReadBlock(const Tensor& t, int64_t offset, size_t n, int slot) {
  if (t.dtype() == DType::kFloat) return t.data<float>() + offset;
  std::vector<float>& b = ThreadBuffer(slot, n);
  WidenToFloat(t.dtype(), t.data<uint16_t>() + offset, b.data(), static_cast<int64_t>(n));
  return b.data();
}

float* WriteBuffer(Tensor* t, int64_t offset, size_t n, int slot) {
  if (t->dtype() == DType::kFloat) return t->mutable_data<float>() + offset;
  return ThreadBuffer(slot, n).data();
}

void FinishWrite(Tensor* t, int64_t offset, size_t n, const float* buffer) {
  if (t->dtype() != DType::kFloat)
    NarrowFromFloat(t->dtype(), buffer, t->mutable_data<uint16_t>() + offset, static_cast<int64_t>(n));
}

}  // namespace millrace
