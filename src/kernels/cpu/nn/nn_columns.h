// SPDX-License-Identifier: Apache-2.0
// Channels-last tensors as matrices, [rows][channels], for ops that work channel by channel (biases, batch
// normalisation).
//
// Narrow matrices are seen as wide ones: with few channels, several rows together make one wide row, and per-channel
// vectors are repeated accordingly, so that vector code stays busy. Reductions sum fixed blocks in float32 and the
// blocks in double, in order: the result depends on the shape only.
#pragma once

#include <functional>
#include <vector>

#include "kernels/cpu/nn/nn_layout.h"

namespace millrace {

class ColumnView {
 public:
  ColumnView(int64_t rows, int64_t channels);
  int64_t rows() const { return rows_; }
  int64_t channels() const { return channels_; }
  int64_t wide() const { return wide_; }  // values in a wide row

  // A per-channel vector repeated to a wide row. What is missing (null) is zeros.
  std::vector<float> Widen(const float* per_channel) const;

  // Calls fn(offset, rows, cols) for blocks that cover the matrix: `rows` rows of `cols` values from `offset` on, where
  // column j belongs to channel j % channels. In parallel.
  using BlockFn = absl::FunctionRef<void(int64_t offset, size_t rows, size_t cols)>;
  void ForBlocks(KernelContext& ctx, double nanoseconds_per_value, BlockFn fn) const;

  // Per channel: sums[0] and sums[1] over what fn adds into its two rows of `cols` values, for each block.
  using SumFn = absl::FunctionRef<void(int64_t offset, size_t rows, size_t cols, float* sum0, float* sum1)>;
  Status Reduce(KernelContext& ctx, double nanoseconds_per_value, SumFn fn, std::vector<double>* sum0,
                std::vector<double>* sum1) const;

  // Per channel: the mean, and the mean square of what differs from it. read(offset, n) gives n values from `offset`
  // on, valid until it is called again on the same thread.
  using ReadFn = absl::FunctionRef<const float*(int64_t offset, size_t n)>;
  Status Moments(KernelContext& ctx, double nanoseconds_per_value, ReadFn read, std::vector<double>* mean,
                 std::vector<double>* variance) const;

 private:
  // What fn wrote into `vectors` wide rows, which were zero, for each block.
  using PartialFn = absl::FunctionRef<void(int64_t offset, size_t rows, size_t cols, float* partial)>;
  StatusOr<Tensor> Partials(KernelContext& ctx, double nanoseconds_per_value, int64_t vectors, PartialFn fn) const;
  // Calls fn(partial, its rows, its columns) for the blocks in order.
  template <typename Fn>
  void ForPartials(const Tensor& partials, const Fn& fn) const;

  int64_t rows_, channels_, wide_, wide_rows_, tail_, block_rows_, blocks_;
};

// Reads and writes blocks of a tensor as float32: directly where it is float32, else through a buffer of this thread
// (`slot` 0..2 tells several buffers apart).
const float* ReadBlock(const Tensor& t, int64_t offset, size_t n, int slot);
float* WriteBuffer(Tensor* t, int64_t offset, size_t n, int slot);
void FinishWrite(Tensor* t, int64_t offset, size_t n, const float* buffer);

}  // namespace millrace
