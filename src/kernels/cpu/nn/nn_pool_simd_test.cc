// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/nn/nn_pool_simd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace millrace {
namespace {

constexpr int64_t kColumns = 6;

// Windows of `side` x `side` cells, `stride` apart, in a row of an image of `side` rows.
template <typename T>
class Windows {
 public:
  Windows(int64_t side, int64_t stride, size_t channels, size_t apart) : image_(Numbers<T>(side * kColumns, apart)) {
    for (int64_t r = 0; r < side; ++r) {
      for (int64_t c = 0; c < side; ++c) offsets_.push_back((r * kColumns + c) * static_cast<int64_t>(apart));
    }
    run_ = {offsets_.data(),
            offsets_.size(),
            static_cast<size_t>((kColumns - side) / stride + 1),
            stride * static_cast<int64_t>(apart),
            channels,
            apart,
            offsets_.size()};
  }
  const WindowRun& run() const { return run_; }
  std::vector<T>& image() { return image_; }
  size_t results() const { return run_.windows * run_.channels_stride; }
  // Calls fn(window, channel, result's place, places of the cells).
  template <typename Fn>
  void ForEach(Fn fn) const {
    for (size_t w = 0; w < run_.windows; ++w) {
      for (size_t c = 0; c < run_.channels; ++c) {
        std::vector<size_t> cells;
        for (const int64_t offset : offsets_) {
          cells.push_back(static_cast<size_t>(static_cast<int64_t>(w) * run_.step + offset) + c);
        }
        fn(w * run_.channels_stride + c, cells);
      }
    }
  }
  template <typename U>
  static std::vector<U> Numbers(int64_t n, size_t each) {
    std::mt19937 generator(static_cast<uint32_t>(n));
    std::vector<U> v(static_cast<size_t>(n) * each);
    for (U& x : v) x = static_cast<U>(static_cast<int>(generator() % 64) - 32);
    return v;
  }

 private:
  std::vector<T> image_;
  std::vector<int64_t> offsets_;
  WindowRun run_;
};

template <typename T>
void Check(Windows<T> windows) {
  const WindowRun& run = windows.run();
  SCOPED_TRACE(testing::Message() << run.cells << " cells, " << run.channels << " channels of " << run.channels_stride
                                  << ", step " << run.step);
  std::vector<T>& image = windows.image();
  image[0] = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> g = Windows<T>::template Numbers<T>(static_cast<int64_t>(windows.results()), 1);
  constexpr T kUntouched = 77;
  std::vector<T> largest(windows.results(), kUntouched), mean(largest), want_largest(largest), want_mean(largest);
  std::vector<T> spread(image.size(), 1), scattered(spread), want_spread(spread), want_scattered(spread);
  windows.ForEach([&](size_t to, const std::vector<size_t>& cells) {
    size_t best = cells[0];
    T sum = 0;
    for (const size_t cell : cells) {
      if (!std::isnan(image[best]) && (std::isnan(image[cell]) || image[cell] > image[best])) best = cell;
      sum += image[cell];
      want_spread[cell] += g[to] / static_cast<T>(cells.size());
    }
    want_largest[to] = image[best];
    want_mean[to] = sum / static_cast<T>(cells.size());
    want_scattered[best] += g[to];
  });
  MaxOfWindows<T>(run, image.data(), largest.data());
  MeanOfWindows<T>(run, image.data(), mean.data());
  SpreadToWindows<T>(run, spread.data(), g.data());
  ScatterToMax<T>(run, image.data(), scattered.data(), g.data());
  const auto expect_equal = [](const std::vector<T>& got, const std::vector<T>& want, const char* what) {
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(want[i])) {
        ASSERT_TRUE(std::isnan(got[i])) << what << " at " << i;
      } else {
        ASSERT_NEAR(got[i], want[i], 1e-4) << what << " at " << i;
      }
    }
  };
  expect_equal(largest, want_largest, "largest");
  expect_equal(mean, want_mean, "mean");
  expect_equal(spread, want_spread, "spread");
  expect_equal(scattered, want_scattered, "scattered");
}

template <typename T>
void CheckAll() {
  for (const size_t channels : {1U, 3U, 7U, 16U, 33U, 41U, 1100U}) {
    for (const int64_t side : {1, 2, 3, 5}) {
      for (const int64_t stride : {1, 2}) {
        Check(Windows<T>(side, stride, channels, channels));
        Check(Windows<T>(side, stride, channels, channels + 5));
      }
    }
  }
}

TEST(PoolWindowsTest, FloatsEqualTheDefinition) { CheckAll<float>(); }
TEST(PoolWindowsTest, DoublesEqualTheDefinition) { CheckAll<double>(); }

}  // namespace
}  // namespace millrace
