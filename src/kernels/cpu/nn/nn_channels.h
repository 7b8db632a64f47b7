// SPDX-License-Identifier: Apache-2.0
// Tensors of images as matrices in which a column belongs to a channel, for ops that work channel by channel (biases,
// batch normalisation).
//
// Channels last it is [rows][channels]. Narrow matrices are seen as wide ones: with few channels, several rows together
// make one wide row, and per-channel vectors are repeated accordingly, so that vector code stays busy. Channels first
// each plane is a matrix of its own, whose columns all belong to the plane's channel. Reductions sum fixed blocks in
// float32 and the blocks in double, in order: the result depends on the shape only.
#pragma once

#include <functional>
#include <vector>

#include "kernels/cpu/nn/nn_layout.h"

namespace millrace {

// What of a tensor a function is called for: `rows` rows of `cols` values from element `offset` on, and where in a
// widened vector the columns' values begin.
struct ChannelBlock {
  int64_t offset;
  size_t rows, cols;
  int64_t at;
  size_t size() const { return rows * cols; }
};

class ChannelView {
 public:
  // [outer][channels][inner], which is channels last where inner is 1.
  ChannelView(int64_t outer, int64_t channels, int64_t inner);
  int64_t rows() const { return outer_ * inner_; }  // values of a channel
  int64_t channels() const { return channels_; }
  int64_t wide() const { return wide_; }  // the most columns of a block

  // A per-channel vector as blocks read it. What is missing (null) is zeros.
  std::vector<float> Widen(const float* per_channel) const;

  // Calls fn for blocks that cover the tensor, in parallel.
  using BlockFn = absl::FunctionRef<void(const ChannelBlock& block)>;
  void ForBlocks(KernelContext& ctx, double nanoseconds_per_value, BlockFn fn) const;

  // Per channel: sums over what fn adds into its two rows of `cols` values, for each block.
  using SumFn = absl::FunctionRef<void(const ChannelBlock& block, float* sum0, float* sum1)>;
  Status Reduce(KernelContext& ctx, double nanoseconds_per_value, SumFn fn, std::vector<double>* sum0,
                std::vector<double>* sum1) const;

  // Per channel: the mean, and the mean square of what differs from it. read(offset, n) gives n values from `offset`
  // on, valid until it is called again on the same thread.
  using ReadFn = absl::FunctionRef<const float*(int64_t offset, size_t n)>;
  Status Moments(KernelContext& ctx, double nanoseconds_per_value, ReadFn read, std::vector<double>* mean,
                 std::vector<double>* variance) const;

 private:
  bool planes() const { return inner_ != 1; }
  int64_t blocks() const { return matrices_ * (blocks_ + (tail_ > 0 ? 1 : 0)); }
  ChannelBlock BlockAt(int64_t i) const;
  // The channel of column c of block i.
  size_t ChannelOf(int64_t i, size_t c) const;
  // What fn wrote into `vectors` rows of `width` values, which were zero, for each block.
  template <typename T>
  using PartialFn = absl::FunctionRef<void(const ChannelBlock& block, T* partial)>;
  template <typename T>
  StatusOr<Tensor> Partials(KernelContext& ctx, double nanoseconds_per_value, int64_t size, PartialFn<T> fn) const;
  Status MomentsOfColumns(KernelContext& ctx, double nanoseconds_per_value, ReadFn read, std::vector<double>* mean,
                          std::vector<double>* variance) const;
  Status MomentsOfPlanes(KernelContext& ctx, double nanoseconds_per_value, ReadFn read, std::vector<double>* mean,
                         std::vector<double>* variance) const;

  int64_t outer_, channels_, inner_;
  // One matrix, or one of each plane: wide_rows_ rows of wide_ values and a last one of tail_; without it, in blocks.
  int64_t matrices_, wide_, wide_rows_, tail_, block_rows_, blocks_;
};

// Reads and writes blocks of a tensor as float32: directly where it is float32, else through a buffer of this thread
// (`slot` 0..2 tells several buffers apart).
const float* ReadBlock(const Tensor& t, int64_t offset, size_t n, int slot);
float* WriteBuffer(Tensor* t, int64_t offset, size_t n, int slot);
void FinishWrite(Tensor* t, int64_t offset, size_t n, const float* buffer);

}  // namespace millrace
