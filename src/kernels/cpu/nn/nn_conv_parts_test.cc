// SPDX-License-Identifier: Apache-2.0
// How many threads a convolution can occupy, without having them.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/cpu/nn/nn_conv.h"

namespace millrace {
namespace {

ConvGeometry Image(int64_t batch, int64_t side, int64_t in, int64_t out, int64_t kernel) {
  ConvGeometry g;
  g.batch = batch;
  g.in_channels = in;
  g.out_channels = out;
  g.in = g.out = {1, side, side};
  g.kernel = {1, kernel, kernel};
  g.pad_before = g.pad_after = {0, kernel / 2, kernel / 2};
  return g;
}

// The share of the time of so many threads that is work, when each takes the next part as soon as it is free.
double Busy(const std::vector<double>& parts, size_t threads) {
  std::vector<double> free_at(threads, 0.0);
  for (const double part : parts) *std::min_element(free_at.begin(), free_at.end()) += part;
  const double work = std::accumulate(parts.begin(), parts.end(), 0.0);
  return work / (static_cast<double>(threads) * *std::max_element(free_at.begin(), free_at.end()));
}

TEST(ConvParts, AllOfTheWorkAndNoMore) {
  const ConvGeometry g = Image(8, 14, 256, 256, 3);
  for (const ConvPass pass : {ConvPass::kForward, ConvPass::kBackwardInput, ConvPass::kBackwardFilter}) {
    const std::vector<double> parts = OneDnnConvParts(pass, g);
    EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0), g.flops(), 1e-6 * g.flops());
  }
}

TEST(ConvParts, LargeOnesOccupyManyThreads) {
  struct Case {
    ConvGeometry g;
    double least;
  };
  const Case cases[] = {
      {Image(64, 56, 64, 64, 3), 0.95}, {Image(32, 14, 256, 256, 3), 0.7}, {Image(8, 28, 512, 256, 1), 0.7},
      {Image(8, 7, 512, 512, 3), 0.7},  {Image(1, 112, 128, 128, 3), 0.7},
  };
  for (const Case& c : cases) {
    for (const ConvPass pass : {ConvPass::kForward, ConvPass::kBackwardInput}) {
      EXPECT_GE(Busy(OneDnnConvParts(pass, c.g), 64), c.least) << c.g.batch << " images of " << c.g.in[1];
    }
  }
}

TEST(ConvParts, SoDoFilterGradients) {
  struct Case {
    ConvGeometry g;
    double least;
  };
  const Case cases[] = {
      {Image(64, 56, 64, 64, 3), 0.95}, {Image(32, 14, 256, 256, 3), 0.5}, {Image(8, 28, 512, 256, 1), 0.7},
      {Image(8, 7, 512, 512, 3), 0.25}, {Image(1, 112, 128, 128, 3), 0.7}, {Image(32, 7, 512, 2048, 1), 0.9},
  };
  for (const Case& c : cases) {
    const std::vector<double> parts = OneDnnConvParts(ConvPass::kBackwardFilter, c.g);
    EXPECT_GE(Busy(parts, 64), c.least) << c.g.batch << " images of " << c.g.in[1] << ", " << parts.size() << " parts";
    EXPECT_LE(parts.size(), 256u) << "of a few milliseconds of work";
  }
  EXPECT_EQ(OneDnnConvParts(ConvPass::kBackwardFilter, Image(2, 7, 16, 16, 3)).size(), 1u) << "little work";
}

TEST(ConvParts, OneSmallImageOccupiesTwo) {
  EXPECT_GE(Busy(OneDnnConvParts(ConvPass::kForward, Image(1, 7, 1024, 1024, 1)), 2), 0.9);
  EXPECT_GE(Busy(OneDnnConvParts(ConvPass::kForward, Image(1, 14, 512, 512, 1)), 2), 0.9);
  EXPECT_EQ(OneDnnConvParts(ConvPass::kForward, Image(1, 7, 16, 16, 1)).size(), 1u);
}

// Few operations on each value, all of which must be moved.
TEST(ConvParts, DepthwiseOnesOccupyTwo) {
  for (const int64_t stride : {1, 2}) {
    ConvGeometry g = Image(32, 28, 128, 128, 3);
    g.groups = 128;
    g.stride = {1, stride, stride};
    g.out = {1, 28 / stride, 28 / stride};
    for (const ConvPass pass : {ConvPass::kForward, ConvPass::kBackwardInput, ConvPass::kBackwardFilter}) {
      EXPECT_GE(Busy(OneDnnConvParts(pass, g), 2), 0.9) << "stride " << stride;
    }
  }
}

}  // namespace
}  // namespace millrace
