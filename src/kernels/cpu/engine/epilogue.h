// SPDX-License-Identifier: Apache-2.0
// What follows a convolution or a product, done to its output while that is still in the cache: the same arithmetic, in
// the same order, as the kernels of the ops that it stands for, so every bit is theirs.
#pragma once

#include <cstdint>

namespace millrace {

enum class Activation : uint8_t { kNone, kRelu, kRelu6 };

// In this order; what is null is left out. Vectors have a value a channel; the residual has the output's shape.
struct Epilogue {
  const float* bias = nullptr;  // + bias
  const float* mean = nullptr;  // (x - mean) * factor + offset: all three or none
  const float* factor = nullptr;
  const float* offset = nullptr;
  const float* row = nullptr;       // + row
  const float* residual = nullptr;  // + residual
  Activation activation = Activation::kNone;
  int64_t channels = 0;  // of the output
};

// Some channels of some pixels (rows of a product) that follow each other, as they were made.
struct EpilogueBlock {
  const float* from = nullptr;
  int64_t stride = 0;  // between pixels of `from`
  int64_t first_pixel = 0, num_pixels = 0;
  int64_t first_channel = 0, num_channels = 0;
};

// Finishes a block and puts it where it belongs in `output`, which may be the memory of `from` (then with the same
// stride) or of the residual.
void ApplyEpilogue(const Epilogue& epilogue, const EpilogueBlock& block, float* output);

}  // namespace millrace
