// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/logging.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

// Sets one variable for a scope.
class WithVariable {
 public:
  WithVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~WithVariable() { unsetenv(name_); }
  WithVariable(const WithVariable&) = delete;
  WithVariable& operator=(const WithVariable&) = delete;

 private:
  const char* const name_;
};

TEST(SettingsTest, OneSwitchesOnAndNonsenseIsTold) {
  static std::vector<std::string>& lines = *new std::vector<std::string>;
  SetLogListener([](LogLevel, const std::string& text) { lines.push_back(text); });
  constexpr char kName[] = "MILLRACE_GUARD_ALLOCATIONS";
  unsetenv(kName);
  EXPECT_FALSE(IsSwitchedOn(kName));
  for (const char* off : {"", "0"}) {
    const WithVariable set(kName, off);
    EXPECT_FALSE(IsSwitchedOn(kName)) << off;
  }
  {
    const WithVariable set(kName, "1");
    EXPECT_TRUE(IsSwitchedOn(kName));
  }
  EXPECT_TRUE(lines.empty());
  const WithVariable set(kName, "yes");
  EXPECT_FALSE(IsSwitchedOn(kName));
  SetLogListener(nullptr);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "ignoring a setting: MILLRACE_GUARD_ALLOCATIONS is 'yes', want 0 or 1");
}

TEST(SettingsTest, ValuesAreOfTheirKindAndRange) {
  const auto refusal = [](const char* name, const char* value) {
    return std::string(CheckSetting(*FindSetting(name), value).message());
  };
  EXPECT_EQ(refusal("MILLRACE_NUM_THREADS", "3"), "");
  EXPECT_EQ(refusal("MILLRACE_NUM_THREADS", ""), "") << "as if it were not there";
  EXPECT_EQ(refusal("MILLRACE_NUM_THREADS", "0"), "MILLRACE_NUM_THREADS is '0', want a number from 1 on");
  EXPECT_EQ(refusal("MILLRACE_PORT", "70000"), "MILLRACE_PORT is '70000', want a number from 1 to 65535");
  EXPECT_EQ(refusal("MILLRACE_DEAD_AFTER_SECONDS", "0.5"), "");
  for (const char* bad : {"-1", "nan", "inf", "1e300", "x"})
    EXPECT_NE(refusal("MILLRACE_DRAIN_SECONDS", bad), "") << bad;
  EXPECT_EQ(refusal("MILLRACE_MAX_ISA", "avx2"), "");
  EXPECT_EQ(refusal("MILLRACE_MAX_ISA", "avx"), "MILLRACE_MAX_ISA is 'avx', want one of sse2, sse4, avx2, avx512");
}

TEST(SettingsTest, TheDefaultIsTheDeclaredOne) {
  EXPECT_EQ(*NumberSetting("MILLRACE_MAX_STEPS"), 1000);
  EXPECT_EQ(*NumberSetting("MILLRACE_MEMORY_LIMIT_BYTES", 7), 7) << "none is declared";
  EXPECT_EQ(*SecondsSetting("MILLRACE_DRAIN_SECONDS"), 25);
  const WithVariable set("MILLRACE_MAX_STEPS", "12");
  EXPECT_EQ(*NumberSetting("MILLRACE_MAX_STEPS"), 12);
  EXPECT_EQ(NumberSetting("MILLRACE_NOBODY_KNOWS").status().code(), absl::StatusCode::kInternal);
}

TEST(SettingsTest, NamesThatAreNoneAreToldWithTheNearest) {
  const WithVariable near("MILLRACE_NUM_THREAD", "2"), far("MILLRACE_XYZZY_PLUGH", "2"),
      known("MILLRACE_MAX_STEPS", "x"), test("MILLRACE_TF_PYTHON", "x"), other("MILLRACES", "x");
  const std::vector<std::string> all = UnknownSettings();
  const auto has = [&](const std::string& line) { return std::find(all.begin(), all.end(), line) != all.end(); };
  EXPECT_TRUE(has("MILLRACE_NUM_THREAD is no setting; did you mean MILLRACE_NUM_THREADS?"));
  EXPECT_TRUE(has("MILLRACE_XYZZY_PLUGH is no setting: unset it"));
  EXPECT_TRUE(std::none_of(all.begin(), all.end(), [](const std::string& line) {
    return line.starts_with("MILLRACE_MAX_STEPS ") || line.starts_with("MILLRACE_TF_PYTHON ") ||
           line.starts_with("MILLRACES");
  }));
}

TEST(SettingsTest, DeclarationsAreWhole) {
  std::vector<std::string> names;
  for (const Setting& s : AllSettings()) {
    names.push_back(s.name);
    EXPECT_TRUE(names.back().starts_with("MILLRACE_"));
    EXPECT_NE(*s.means, '\0') << s.name;
    EXPECT_NE(*s.otherwise, '\0') << s.name;
    const bool is_number = s.kind == Setting::Kind::kNumber || s.kind == Setting::Kind::kSeconds;
    EXPECT_EQ(s.most > s.least, is_number) << s.name;
    EXPECT_EQ(*s.values != '\0', !is_number && s.kind != Setting::Kind::kSwitch) << s.name;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace millrace
