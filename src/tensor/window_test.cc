// SPDX-License-Identifier: Apache-2.0
#include "tensor/window.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace millrace {
namespace {

TEST(Window, SamePadsTheOddCellAfter) {
  auto w = ComputeWindow(5, 2, 2, 1, Padding::kSame);
  ASSERT_TRUE(w.ok());
  EXPECT_EQ(w->output, 3);
  EXPECT_EQ(w->pad_before, 0);
  EXPECT_EQ(w->pad_after, 1);
  w = ComputeWindow(224, 7, 2, 1, Padding::kSame);
  EXPECT_EQ(w->output, 112);
  EXPECT_EQ(w->pad_before, 2);
  EXPECT_EQ(w->pad_after, 3);
}

// Oracle: every window start that a brute-force walk over the padded cells accepts.
TEST(Window, AgreesWithAWalk) {
  for (int64_t in = 0; in <= 9; ++in)
    for (int64_t k = 1; k <= 4; ++k)
      for (int64_t s = 1; s <= 4; ++s)
        for (int64_t d = 1; d <= 3; ++d)
          for (int64_t p = 0; p <= 2; ++p) {
            const int64_t window = (k - 1) * d + 1;
            int64_t starts = 0;
            for (int64_t at = 0; at + window <= in + 2 * p; at += s) ++starts;
            auto w = ComputeWindowStrict(in, k, s, d, Padding::kExplicit, p, p);
            if (in + 2 * p < window) {
              EXPECT_FALSE(w.ok());
            } else {
              ASSERT_TRUE(w.ok());
              EXPECT_EQ(w->output, starts);
            }
          }
}

TEST(Window, SameCoversEveryCell) {
  for (int64_t in = 0; in <= 9; ++in)
    for (int64_t k = 1; k <= 4; ++k)
      for (int64_t s = 1; s <= 4; ++s) {
        auto w = ComputeWindow(in, k, s, 1, Padding::kSame);
        ASSERT_TRUE(w.ok());
        EXPECT_EQ(w->output, (in + s - 1) / s);
        if (in > 0 && k >= s) {
          EXPECT_EQ((w->output - 1) * s + k, in + w->pad_before + w->pad_after);
        }
        EXPECT_LE(w->pad_before, w->pad_after);
        EXPECT_LE(w->pad_after - w->pad_before, 1);
      }
}

TEST(Window, RefusesNonsense) {
  EXPECT_FALSE(ComputeWindow(5, 0, 1, 1, Padding::kSame).ok());
  EXPECT_FALSE(ComputeWindow(5, -1, 1, 1, Padding::kValid).ok());
  EXPECT_FALSE(ComputeWindow(5, 1, 0, 1, Padding::kSame).ok());
  EXPECT_FALSE(ComputeWindow(5, 1, 1, 0, Padding::kSame).ok());
  EXPECT_FALSE(ComputeWindow(-1, 1, 1, 1, Padding::kSame).ok());
  EXPECT_FALSE(ComputeWindow(1, 3, 1, 1, Padding::kValid).ok());
  EXPECT_FALSE(ComputeWindow(5, 3, 1, 1, Padding::kExplicit, -1, 0).ok());
  EXPECT_FALSE(ComputeWindow(5, 3, 1, 1, Padding::kExplicit, 0, kMaxExplicitPadding + 1).ok());
  EXPECT_TRUE(ComputeWindow(5, 3, 1, 1, Padding::kExplicit, 0, kMaxExplicitPadding).ok());
  EXPECT_FALSE(ComputeWindow(INT64_MAX, INT64_MAX, 1, INT64_MAX, Padding::kSame).ok());
  EXPECT_FALSE(ComputeWindow(INT64_MAX, INT64_MAX, 1, 1, Padding::kSame).ok());
  EXPECT_FALSE(ComputeWindow(INT64_MAX, 1, 7, 1, Padding::kExplicit, 1, 1).ok());
}

TEST(Window, ChecksAttributes) {
  WindowAttrs a;
  a.strides = {1, 2, 2, 1};
  EXPECT_TRUE(CheckWindowAttrs(&a, true).ok());
  EXPECT_EQ(a.dilations.size(), 4u);
  a.strides = {1, 2, 2, 2};
  EXPECT_FALSE(CheckWindowAttrs(&a, true).ok());
  a.strides = {1, 0, 1, 1};
  EXPECT_FALSE(CheckWindowAttrs(&a, true).ok());
  a.strides = {1, 1, 1};
  EXPECT_FALSE(CheckWindowAttrs(&a, true).ok());
  a.strides = {1, 1, 1, 1};
  a.padding = Padding::kExplicit;
  EXPECT_FALSE(CheckWindowAttrs(&a, true).ok());
  a.explicit_paddings = {0, 0, 1, 2, 0, 0, 0, 0};
  EXPECT_TRUE(CheckWindowAttrs(&a, true).ok());
  a.explicit_paddings[7] = 1;
  EXPECT_FALSE(CheckWindowAttrs(&a, true).ok());
}

}  // namespace
}  // namespace millrace
