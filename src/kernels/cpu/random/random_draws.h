// SPDX-License-Identifier: Apache-2.0
// What samplers of one number after the other share.
#pragma once

#include "kernel/kernel.h"
#include "kernels/shared/philox.h"

namespace millrace {

// The numbers of one sample, which has a region of the stream to itself. TensorFlow's order: a block gives two numbers,
// of which the second is used first, and uniform and normal ones take blocks in the order in which they run out.
class Draws {
 public:
  static constexpr uint64_t kBlocks = 256;  // of a region
  Draws(Philox start, int64_t sample, uint64_t blocks = kBlocks) : generator_(start) {
    generator_.Skip(static_cast<uint64_t>(sample) * blocks);
  }
  double Uniform() {
    if (uniform_left_ == 0) {
      const Philox::Block x = generator_();
      uniform_[0] = UnitDouble(x[0], x[1]);
      uniform_[1] = UnitDouble(x[2], x[3]);
      uniform_left_ = 2;
    }
    return uniform_[--uniform_left_];
  }
  double Normal() {
    if (normal_left_ == 0) {
      const Philox::Block x = generator_();
      BoxMuller(x[0], x[1], x[2], x[3], &normal_[0], &normal_[1]);
      normal_left_ = 2;
    }
    return normal_[--normal_left_];
  }

 private:
  Philox generator_;
  double uniform_[2] = {}, normal_[2] = {};
  int uniform_left_ = 0, normal_left_ = 0;
};

// Element i of a tensor of any of the types that parameters have.
double ValueAt(const Tensor& t, int64_t i);
// Of integers the nearest that is not negative; of NaN, as TensorFlow's on most processors, the lowest.
void StoreAt(Tensor& t, int64_t i, double v);

// InvalidArgument unless `shape` ends with `parameter`.
Status CheckEnd(const Shape& shape, const Shape& parameter);

}  // namespace millrace
