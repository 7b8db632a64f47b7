// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "simulation/fake_env.h"

namespace millrace {
namespace {

using Prefixes = std::vector<std::string>;

CheckpointScores Of(FakeEnv& env) { return *CheckpointScores::Read(env, "run"); }

TEST(CheckpointScores, TheBestStay) {
  FakeEnv env;
  ASSERT_TRUE(env.CreateDirs("run").ok());
  EXPECT_TRUE(Of(env).Best(9, false).empty());
  const double scores[] = {0.1, 0.9, 0.9, -0.5};
  for (int i = 0; i < 4; ++i) {
    const auto forgotten = Of(env).Add(env, absl::StrCat("run/m-", i), scores[i], 3, false);
    ASSERT_TRUE(forgotten.ok()) << forgotten.status();
    EXPECT_EQ(*forgotten, i == 3 ? Prefixes{"run/m-3"} : Prefixes{});
  }
  EXPECT_EQ(Of(env).Best(2, false), (Prefixes{"run/m-2", "run/m-1"})) << "of equals the newer";
  EXPECT_EQ(Of(env).Best(1, true), (Prefixes{"run/m-0"}));
  ASSERT_TRUE(Of(env).Add(env, "run/m-1", 2, 3, false).ok());
  EXPECT_EQ(Of(env).Best(9, false), (Prefixes{"run/m-1", "run/m-2", "run/m-0"})) << "a new score of an old one";
  EXPECT_EQ(Of(env).Add(env, "run/m-9", std::nan(""), 3, false).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CheckpointScores, EveryNumberAndNameComesBack) {
  FakeEnv env;
  ASSERT_TRUE(env.CreateDirs("run").ok());
  const double infinity = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(Of(env).Add(env, "run/a \"b\" \\ ch\u00e9", infinity, 5, false).ok());
  ASSERT_TRUE(Of(env).Add(env, "/elsewhere/m", 0.1 + 0.2, 5, false).ok());
  ASSERT_TRUE(Of(env).Add(env, "run/least", -infinity, 5, false).ok());
  EXPECT_EQ(Of(env).Best(9, false), (Prefixes{"run/a \"b\" \\ ch\u00e9", "/elsewhere/m", "run/least"}));
  EXPECT_NE(env.ReadFile("run/checkpoint.scores")->find("\"/elsewhere/m\": 0.30000000000000004"), std::string::npos);
}

TEST(CheckpointScores, OtherFilesAreRefused) {
  FakeEnv env;
  ASSERT_TRUE(env.CreateDirs("run").ok());
  for (const char* const text : {"", "[1]", "{\"m-1\": }", "{\"m-1\": \"good\"}", "{\"m-1\": [1]}", "{\"m-1\": 1} {"}) {
    ASSERT_TRUE(WriteFileAtomically(env, "run/checkpoint.scores", text).ok());
    EXPECT_EQ(CheckpointScores::Read(env, "run").status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace millrace
