// SPDX-License-Identifier: Apache-2.0
#include "io/glob.h"

#include <unistd.h>

#include "gtest/gtest.h"
#include "simulation/fake_env.h"

namespace millrace {
namespace {

TEST(Glob, Names) {
  EXPECT_TRUE(MatchesPattern("part-00001", "part-*"));
  EXPECT_TRUE(MatchesPattern("", "*"));
  EXPECT_TRUE(MatchesPattern("abcbc", "a*bc"));
  EXPECT_TRUE(MatchesPattern("a.csv", "?.c[a-s]v"));
  EXPECT_TRUE(MatchesPattern("a]b", "a[]]b"));
  EXPECT_TRUE(MatchesPattern("a*b", "a\\*b"));
  EXPECT_TRUE(MatchesPattern("a[b", "a[b"));
  EXPECT_FALSE(MatchesPattern("axb", "a\\*b"));
  EXPECT_FALSE(MatchesPattern("a1", "a[^0-9]"));
  EXPECT_FALSE(MatchesPattern("ab", "a"));
  EXPECT_FALSE(MatchesPattern("a", "a?"));
}

TEST(Glob, ManyStarsEndSoon) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesPattern(std::string(5000, 'a') + "b", pattern));
}

TEST(Glob, Files) {
  FakeEnv env;
  for (const char* path : {"/d/a/1.txt", "/d/a/2.txt", "/d/b/1.txt", "/d/b/1.csv"}) {
    ASSERT_TRUE(env.CreateDirs(std::string(path, 4)).ok());
    auto file = env.NewWritableFile(path);
    ASSERT_TRUE(file.ok() && (*file)->Close().ok());
  }
  using Paths = std::vector<std::string>;
  EXPECT_EQ(*MatchFiles(env, "/d/*/1.*"), (Paths{"/d/a/1.txt", "/d/b/1.csv", "/d/b/1.txt"}));
  EXPECT_EQ(*MatchFiles(env, "/d/a/[12].txt"), (Paths{"/d/a/1.txt", "/d/a/2.txt"}));
  EXPECT_EQ(*MatchFiles(env, "/d/a/1.txt"), (Paths{"/d/a/1.txt"}));
  EXPECT_EQ(*MatchFiles(env, "/d/c/*"), Paths());
  EXPECT_EQ(*MatchFiles(env, "/nowhere"), Paths());
  EXPECT_EQ(*MatchFiles(env, ""), Paths());
  EXPECT_EQ(*MatchFiles(Env::Default(), "no such * file"), Paths());
  const std::string name = absl::StrCat("millrace_glob_test_", ::getpid());
  ASSERT_TRUE(WriteFileAtomically(Env::Default(), name, "").ok());
  EXPECT_EQ(*MatchFiles(Env::Default(), name + "*"), Paths{"./" + name}) << "of the working folder";
  EXPECT_EQ(*MatchFiles(Env::Default(), name), Paths{"./" + name});
  EXPECT_TRUE(Env::Default().DeleteFile(name).ok());
  EXPECT_TRUE(absl::IsUnimplemented(MatchFiles(Env::Default(), "nobodys://a/*").status()));
}

}  // namespace
}  // namespace millrace
