// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "base/logging.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

TEST(SettingsTest, OneSwitchesOnAndNonsenseIsTold) {
  static std::vector<std::string>& lines = *new std::vector<std::string>;
  SetLogListener([](LogLevel, const std::string& text) { lines.push_back(text); });
  unsetenv("MILLRACE_A_SWITCH");
  EXPECT_FALSE(IsSwitchedOn("MILLRACE_A_SWITCH"));
  for (const char* off : {"", "0"}) {
    setenv("MILLRACE_A_SWITCH", off, 1);
    EXPECT_FALSE(IsSwitchedOn("MILLRACE_A_SWITCH")) << off;
  }
  setenv("MILLRACE_A_SWITCH", "1", 1);
  EXPECT_TRUE(IsSwitchedOn("MILLRACE_A_SWITCH"));
  EXPECT_TRUE(lines.empty());
  setenv("MILLRACE_A_SWITCH", "yes", 1);
  EXPECT_FALSE(IsSwitchedOn("MILLRACE_A_SWITCH"));
  SetLogListener(nullptr);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "ignoring MILLRACE_A_SWITCH=yes: want 0 or 1");
}

}  // namespace
}  // namespace millrace
