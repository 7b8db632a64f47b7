// SPDX-License-Identifier: Apache-2.0
#include "op/einsum_equation.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(EinsumEquation, Parses) {
  const auto e = EinsumEquation::Parse("...ij, jk -> ...ik");
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->inputs, (std::vector<std::string>{".ij", "jk"}));
  EXPECT_EQ(e->output, ".ik");
  EXPECT_EQ(EinsumEquation::Write(e->output), "...ik");
}

TEST(EinsumEquation, Refuses) {
  for (const char* text : {"", "i", "i->i->i", "i,j,k->i", "i..->i", "......->", "i1->i", "i->j", "...i...->i"}) {
    EXPECT_EQ(EinsumEquation::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(EinsumEquation, LabelsCountTheEllipsisFromTheRight) {
  EXPECT_EQ(*LabelsOf("i.j", 4), (EinsumLabels{'i', kEllipsisBase + 1, kEllipsisBase, 'j'}));
  EXPECT_EQ(*LabelsOf(".", 0), EinsumLabels());
  EXPECT_FALSE(LabelsOf("ij", 3).ok());
  EXPECT_FALSE(LabelsOf("i.j", 1).ok());
  EXPECT_FALSE(OutputLabelsOf("ij", 1).ok());
  EXPECT_EQ(BroadcastRank(*OutputLabelsOf("j.", 2)), 2);
}

}  // namespace
}  // namespace millrace
