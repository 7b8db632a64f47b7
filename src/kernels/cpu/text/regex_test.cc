// SPDX-License-Identifier: Apache-2.0
// Regular expressions: what RE2 says of them, and patterns made to be slow or large.
#include "kernels/cpu/text/regex.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::string Replaced(absl::string_view pattern, absl::string_view text, absl::string_view rewrite, bool global = true) {
  const StatusOr<Regex> regex = Regex::Compile(pattern);
  return regex.ok() ? regex->Replace(text, rewrite, global) : std::string(regex.status().message());
}

TEST(Regex, FindsTheLeftmostMatchInTheOrderOfAlternatives) {
  EXPECT_EQ(Replaced("a|ab", "abab", "-"), "-b-b");
  EXPECT_EQ(Replaced("(a*)(b?)", "aab", "<\\1,\\2>", false), "<aa,b>");
  EXPECT_EQ(Replaced("(|a)*", "aa", "-"), "-a-a-") << "an empty round ends the loop";
  EXPECT_EQ(Replaced("(|a)+?b", "aab", "[\\1]"), "[a]");
  EXPECT_EQ(Replaced("(?m)^", "a\nb", "> "), "> a\n> b");
  EXPECT_EQ(Replaced("(?i)[b-d]É?", "aBCé", "."), "a..é") << "only ASCII has cases";
  EXPECT_EQ(Replaced("\\Q(.)\\E+", "(.)))", "x"), "x");
  EXPECT_EQ(Replaced("\\C", "\xff\xc3\xa9", "."), "..");
  EXPECT_EQ(Replaced(".",
                     "\xff"
                     "a",
                     "."),
            "\xff.")
      << "a byte that is no character is nothing";
  EXPECT_EQ(Replaced("\\bb", "ab b", "x"), "ab x") << "a place without a match is no end";
}

TEST(Regex, LeavesTheTextWhereTheRewriteIsWrong) {
  for (const char* rewrite : {"\\1", "\\x", "\\"}) EXPECT_EQ(Replaced("a", "banana", rewrite), "banana");
  EXPECT_EQ(Replaced("a", "ba", "\\\\\\0"), "b\\a");
}

TEST(Regex, SaysWhatIsWrongWithAPattern) {
  for (const char* pattern : {"(", ")", "[", "[a", "a**", "*", "a{3,2}", "a{1001}", "\\", "\\8", "[z-a]", "(?x)",
                              "(?P<n", "\xff", "[[:no:]]", "\\x{110000}", "\\pL"}) {
    EXPECT_EQ(Regex::Compile(pattern).status().code(), absl::StatusCode::kInvalidArgument) << pattern;
  }
  EXPECT_TRUE(Regex::Compile("a{,2}b{x").ok()) << "no count: text";
}

TEST(Regex, IsNotLedAstrayByItsPattern) {
  std::string deep(100000, '(');
  EXPECT_FALSE(Regex::Compile(deep).ok());
  EXPECT_FALSE(Regex::Compile("((a{1000}){1000}){1000}").ok());
  EXPECT_FALSE(Regex::Compile("(?:(?:(?:(?:){1000}){1000}){1000}){1000}").ok());
  const std::string text(3000, 'a');
  EXPECT_FALSE(Regex::Compile("(a*)*(a|aa)*(a?){20}b")->FullMatch(text)) << "and soon";
  EXPECT_EQ(Replaced("(x+x+)+y", std::string(3000, 'x'), ""), std::string(3000, 'x'));
}

}  // namespace
}  // namespace millrace
