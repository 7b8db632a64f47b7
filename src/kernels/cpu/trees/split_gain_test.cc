// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trees/split_gain.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::vector<float> Weights(const std::vector<float>& gradients, const std::vector<float>& hessians) {
  std::vector<float> weights(gradients.size());
  BestLeaf(gradients, hessians, {}, absl::MakeSpan(weights));
  return weights;
}

// What a diagonal does not determine is 0, as of the matrix that it is of.
TEST(SplitGain, ADiagonalIsItsMatrix) {
  const std::vector<float> gradients = {1, -2, 3, 4, 5};
  for (const std::vector<float>& diagonal : std::vector<std::vector<float>>{
           {2, 0, -4, 1, 8}, {0, 0, 0, 0, 0}, {1e10f, 1, 0, 1e-3f, -1e-30f}, {1e-30f, 0, 1e-25f, 0, 0}}) {
    std::vector<float> matrix(25);
    for (size_t i = 0; i < 5; ++i) matrix[6 * i] = diagonal[i];
    EXPECT_EQ(Weights(gradients, diagonal), Weights(gradients, matrix)) << diagonal[0];
  }
  EXPECT_EQ(Weights(gradients, {2, 0, -4, 1, 8}), std::vector<float>({-0.5f, 0, 0.75f, -4, -0.625f}));
}

// Without a square of it.
TEST(SplitGain, OfManyLogits) {
  constexpr size_t kLogits = 1'000'000;
  std::vector<float> gradients(kLogits, 2), hessians(kLogits, 4);
  hessians[7] = 0;
  const std::vector<float> weights = Weights(gradients, hessians);
  EXPECT_EQ(weights[6], -0.5f);
  EXPECT_EQ(weights[7], 0);
}

}  // namespace
}  // namespace millrace
