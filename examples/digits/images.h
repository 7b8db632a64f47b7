// SPDX-License-Identifier: Apache-2.0
// Labelled images from IDX files (LeCun's format; plain or gzip).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct Images {
  int64_t count = 0, height = 0, width = 0;
  std::vector<float> pixels;    // count x height x width, in [0, 1]
  std::vector<int64_t> labels;  // 0..9
};

// Reads the first "*images-idx3-ubyte*" of a folder and its labels. Throws std::runtime_error saying what is wrong.
Images LoadImages(const std::string& folder);

// The order of `n` examples in one epoch: a permutation fixed by both numbers.
std::vector<int64_t> ShuffledOrder(int64_t n, uint64_t seed, uint64_t epoch);
