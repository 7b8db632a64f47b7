// SPDX-License-Identifier: Apache-2.0
#include "tensor/tstring.h"

#include <cstring>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace millrace {
namespace {

using Kind = TString::Kind;

std::string Pattern(size_t n) {
  std::string s(n, ' ');
  for (size_t i = 0; i < n; ++i) s[i] = static_cast<char>('a' + i % 26);
  return s;
}

// An offset string, which only foreign writers make, right before its bytes.
struct OffsetString {
  alignas(TString) unsigned char header[sizeof(TString)] = {};
  char bytes[8] = {'f', 'o', 'r', 'e', 'i', 'g', 'n', 0};
  TString& string() { return *reinterpret_cast<TString*>(header); }
  OffsetString() {
    const uint32_t words[3] = {(7u << 2) | 2u, sizeof(TString), 1};
    std::memcpy(header, words, sizeof(words));
  }
};

TEST(TStringTest, ZeroBytesAreTheEmptyString) {
  const TString s;
  EXPECT_TRUE(s.empty());
  EXPECT_EQ(s.kind(), Kind::kSmall);
  EXPECT_EQ(s.view(), "");
  unsigned char zeros[sizeof(TString)] = {};
  EXPECT_EQ(std::memcmp(&s, zeros, sizeof(zeros)), 0);
}

TEST(TStringTest, LayoutIsTheOneOfTheCApi) {
  const TString small("abc");
  const auto* bytes = reinterpret_cast<const unsigned char*>(&small);
  EXPECT_EQ(bytes[0], 3 << 2);
  EXPECT_EQ(std::memcmp(bytes + 1, "abc\0", 4), 0);
  const std::string text = Pattern(100);
  const TString large(text);
  uint64_t words[3];
  std::memcpy(words, &large, sizeof(words));
  EXPECT_EQ(words[0], (100u << 2) | 1u);
  EXPECT_GE(words[1], 100u);
  EXPECT_EQ(std::memcmp(reinterpret_cast<const char*>(words[2]), text.c_str(), 101), 0);
  TString view;
  view.AssignView(text);
  std::memcpy(words, &view, sizeof(words));
  EXPECT_EQ(words[0], (100u << 2) | 3u);
  EXPECT_EQ(words[1], reinterpret_cast<uint64_t>(text.data()));
}

TEST(TStringTest, SizesAroundTheInlineLimit) {
  for (size_t n : {0, 1, 21, 22, 23, 24, 63, 64, 1000, 100000}) {
    const std::string text = Pattern(n);
    TString s(text);
    EXPECT_EQ(s.kind(), n <= 22 ? Kind::kSmall : Kind::kLarge);
    EXPECT_EQ(s.view(), text);
    EXPECT_EQ(s.size(), n);
    EXPECT_GE(s.capacity(), n);
    EXPECT_EQ(s.data()[n], '\0');
  }
}

TEST(TStringTest, EveryKindCopiesMovesAndAssigns) {
  const std::string borrowed = Pattern(40);
  OffsetString offset;
  TString view;
  view.AssignView(borrowed);
  std::vector<TString> from;
  from.reserve(8);
  from.emplace_back();
  from.emplace_back("small");
  from.emplace_back(Pattern(22));
  from.emplace_back(Pattern(23));
  from.emplace_back(Pattern(500));
  std::vector<TString*> sources;
  for (TString& s : from) sources.push_back(&s);
  sources.push_back(&view);
  sources.push_back(&offset.string());
  EXPECT_EQ(offset.string().kind(), Kind::kOffset);
  for (TString* source : sources) {
    const std::string text = source->str();
    for (const TString* target : sources) {
      const TString copied(*source);
      EXPECT_EQ(copied.view(), text);
      TString assigned(*target);
      assigned = *source;
      EXPECT_EQ(assigned.view(), text);
      EXPECT_EQ(source->view(), text);
      TString moved_to(*target);
      moved_to = std::move(assigned);
      EXPECT_EQ(moved_to.view(), text);
      EXPECT_TRUE(assigned.empty());  // NOLINT: defined
    }
    const TString moved(std::move(*source));
    EXPECT_EQ(moved.view(), text);
    EXPECT_TRUE(source->empty());  // NOLINT: defined
  }
}

TEST(TStringTest, AssignFromItself) {
  for (size_t n : {5, 22, 23, 200}) {
    const std::string text = Pattern(n);
    TString s(text);
    const TString& same = s;
    s = same;
    EXPECT_EQ(s.view(), text);
    s.Assign(s.view().substr(2));
    EXPECT_EQ(s.view(), text.substr(2));
    s = std::move(const_cast<TString&>(same));
    EXPECT_EQ(s.view(), text.substr(2));
  }
  TString s(Pattern(200));
  s.Assign(s.view().substr(190));  // large to small, out of the memory that is freed
  EXPECT_EQ(s.view(), Pattern(200).substr(190));
}

TEST(TStringTest, CopiesOfViewsOwnTheirBytes) {
  std::string text = Pattern(50);
  TString view;
  view.AssignView(text);
  const TString copy(view);
  text[0] = '!';
  EXPECT_EQ(view.view()[0], '!');
  EXPECT_EQ(copy.view(), Pattern(50));
}

TEST(TStringTest, ComparesAndHoldsAnyBytes) {
  const std::string zeros("a\0b", 3);
  EXPECT_EQ(TString(zeros).view(), zeros);
  EXPECT_TRUE(TString("a") == TString("a"));
  EXPECT_TRUE(TString("a") < TString("b"));
  TString s("x");
  s.Clear();
  EXPECT_TRUE(s.empty());
}

}  // namespace
}  // namespace millrace
