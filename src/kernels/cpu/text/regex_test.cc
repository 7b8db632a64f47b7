// SPDX-License-Identifier: Apache-2.0
// Regular expressions: what RE2 says of them, and patterns made to be slow or large.
#include "kernels/cpu/text/regex.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace millrace {
namespace {

std::string Replaced(absl::string_view pattern, absl::string_view text, absl::string_view rewrite, bool global = true) {
  const StatusOr<Regex> regex = Regex::Compile(pattern);
  return regex.ok() ? RegexMatcher(*regex).Replace(text, rewrite, global) : std::string(regex.status().message());
}

bool FullMatch(absl::string_view pattern, absl::string_view text) {
  const StatusOr<Regex> regex = Regex::Compile(pattern);
  return regex.ok() && RegexMatcher(*regex).FullMatch(text);
}

// The automaton against Pike's machine, which a place that always holds keeps the pattern to.
TEST(Regex, TheSameWithAndWithoutAutomaton) {
  std::mt19937 random(5);
  const auto pick = [&](const std::vector<std::string>& list) { return list[random() % list.size()]; };
  const std::vector<std::string> parts = {
      "a", "b", "[ab]", ".", "é", "[^a]", "\\C", "^", "$", "(a|ab)", "(b|)", "(é|a)", "((a)|b)"};
  const std::vector<std::string> counts = {"", "", "", "*", "+", "?", "*?", "+?", "??", "{2}"};
  const std::vector<std::string> letters = {"a", "b", "c", "é", "\xff", "\n"};
  for (int round = 0; round < 3000; ++round) {
    std::string pattern, text;
    for (size_t i = 0; i <= random() % 4; ++i) {
      const std::string part = pick(parts);
      pattern += part + (part == "^" || part == "$" ? "" : pick(counts));
      if (random() % 4 == 0) pattern += "|";
    }
    for (size_t i = 0; i < random() % 12; ++i) text += pick(letters);
    if (pattern.find("(") == std::string::npos) pattern = "(" + pattern + ")";
    const std::string slow = "(?:" + pattern + ")(?:\\b|\\B)";
    EXPECT_EQ(FullMatch(pattern, text), FullMatch(slow, text)) << pattern << " on " << text;
    for (const char* rewrite : {"<\\0>", "-", "<\\1>", "<\\2,\\1>"}) {
      EXPECT_EQ(Replaced(pattern, text, rewrite), Replaced(slow, text, rewrite)) << pattern << " on " << text;
      EXPECT_EQ(Replaced(pattern, text, rewrite, false), Replaced(slow, text, rewrite, false)) << pattern;
    }
  }
}

// Groups of a pattern with more ways from step to step than are kept, and of a match that is too long for that.
TEST(Regex, GroupsOfLargePatternsAndLongMatches) {
  const std::string long_text = std::string(40000, 'a') + "ab";
  for (const auto& [pattern, text] : std::vector<std::pair<std::string, std::string>>{
           {"((a)?b?){600}", std::string(200, 'a') + "b"}, {"(a|b)*(ab)", long_text}, {"((a|ab)(b|)(a+?))+", "abab"}}) {
    const std::string rewrite = "<\\1,\\2>";
    EXPECT_EQ(Replaced(pattern, text, rewrite), Replaced(pattern + "(?:\\b|\\B)", text, rewrite)) << pattern;
  }
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
  EXPECT_FALSE(FullMatch("(a*)*(a|aa)*(a?){20}b", text)) << "and soon";
  EXPECT_FALSE(FullMatch("(a|b)*a(a|b){200}", std::string(3000, 'b'))) << "2^200 states";
  EXPECT_TRUE(FullMatch("(a|b)*a(a|b){20}", std::string(2979, 'b') + "a" + std::string(20, 'b')));
  EXPECT_EQ(Replaced("(x+x+)+y", std::string(3000, 'x'), ""), std::string(3000, 'x'));
}

}  // namespace
}  // namespace millrace
