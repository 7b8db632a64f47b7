// SPDX-License-Identifier: Apache-2.0
#include "simulation/fake_env.h"

#include <functional>
#include <set>

#include "gtest/gtest.h"

namespace millrace {
namespace {

using Survival = FakeEnv::Survival;

Status WriteNaively(Env& env, const std::string& path, absl::string_view contents) {
  MR_ASSIGN_OR_RETURN(const auto file, env.NewWritableFile(path));
  MR_RETURN_IF_ERROR(file->Append(contents));
  return file->Close();
}

// What may be found in "d/f", written durably as "old" and then by `write`, after a crash at any point of `write`.
std::set<std::string> AfterAnyCrash(const std::function<Status(Env&)>& write, Survival survival) {
  std::set<std::string> found;
  bool finished = false;
  for (int64_t n = 0; !finished; ++n) {
    for (uint64_t seed = 0; seed < 30; ++seed) {
      FakeEnv env;
      EXPECT_TRUE(env.CreateDirs("d").ok());
      EXPECT_TRUE(WriteFileAtomically(env, "d/f", "old").ok());
      env.CrashAfter(n);
      finished = write(env).ok();
      env.Restart(survival, seed);
      const auto content = env.ReadFile("d/f");
      found.insert(content.ok() ? *content : "(none)");
    }
  }
  return found;
}

TEST(FakeEnvTest, BehavesLikeAFileSystem) {
  FakeEnv env;
  EXPECT_EQ(env.NewWritableFile("a/f").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(env.CreateDirs("/a/b/").ok());
  EXPECT_TRUE(WriteNaively(env, "/a//f", "123").ok());
  EXPECT_EQ(*env.ReadFile("/a/f"), "123");
  EXPECT_EQ(*env.FileSize("/a/f"), 3u);
  EXPECT_EQ(*env.ListDir("/a"), (std::vector<std::string>{"b", "f"}));
  {
    auto file = env.NewAppendableFile("/a/f");
    EXPECT_TRUE((*file)->Append("45").ok());
  }
  auto reader = env.NewRandomAccessFile("/a/f");
  char bytes[2];
  EXPECT_TRUE((*reader)->Read(3, 2, bytes).ok());
  EXPECT_EQ(absl::string_view(bytes, 2), "45");
  EXPECT_EQ((*reader)->Read(4, 2, bytes).code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(env.RenameFile("/a/f", "/a/g").ok());
  EXPECT_FALSE(env.FileExists("/a/f"));
  EXPECT_TRUE(env.FileExists("/a/g"));
  EXPECT_FALSE(env.DeleteDir("/a").ok());
  EXPECT_TRUE(env.DeleteFile("/a/g").ok());
  EXPECT_EQ(env.DeleteFile("/a/g").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(env.DeleteDir("/a/b").ok());
  EXPECT_TRUE(env.DeleteDir("/a").ok());
}

TEST(FakeEnvTest, OnlySyncedBytesAndEntriesAreSure) {
  FakeEnv env;
  auto file = *env.NewWritableFile("f");
  EXPECT_TRUE(file->Append("durable").ok());
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_TRUE(env.SyncDir(".").ok());
  EXPECT_TRUE(file->Append(" and not").ok());
  EXPECT_TRUE(WriteNaively(env, "g", "x").ok());
  env.Restart(Survival::kNothing);
  EXPECT_EQ(*env.ReadFile("f"), "durable");
  EXPECT_FALSE(env.FileExists("g"));
  EXPECT_EQ(file->Append("late").code(), absl::StatusCode::kFailedPrecondition);
}

TEST(FakeEnvTest, AtomicWritesSurviveAnyCrash) {
  const auto write = [](Env& env) { return WriteFileAtomically(env, "d/f", "new contents"); };
  const std::set<std::string> both = {"new contents", "old"};
  EXPECT_EQ(AfterAnyCrash(write, Survival::kRandom), both);
  EXPECT_EQ(AfterAnyCrash(write, Survival::kNothing), both);
  EXPECT_EQ(AfterAnyCrash(write, Survival::kEverything), both);
}

TEST(FakeEnvTest, NaiveWritesDoNot) {
  const auto write = [](Env& env) { return WriteNaively(env, "d/f", "new contents"); };
  EXPECT_GT(AfterAnyCrash(write, Survival::kRandom).size(), 2u);
  // Renaming without a sync first leaves an empty or torn file behind a complete name.
  const auto rename = [](Env& env) {
    MR_RETURN_IF_ERROR(WriteNaively(env, "d/t", "new contents"));
    return env.RenameFile("d/t", "d/f");
  };
  EXPECT_GT(AfterAnyCrash(rename, Survival::kRandom).size(), 2u);
}

TEST(FakeEnvTest, AnErrorAtAnyOperationIsReported) {
  FakeEnv counting;
  ASSERT_TRUE(WriteFileAtomically(counting, "f", "x").ok());
  for (int64_t n = 0; n < counting.operations(); ++n) {
    FakeEnv env;
    env.FailOnce(n, ResourceExhausted("disk full"));
    EXPECT_EQ(WriteFileAtomically(env, "f", "x").code(), absl::StatusCode::kResourceExhausted) << n;
    // Whatever failed, no temporary file stays.
    const auto names = env.ListDir("");
    for (const std::string& name : *names) EXPECT_EQ(name, "f");
    EXPECT_TRUE(WriteFileAtomically(env, "f", "y").ok());
  }
}

TEST(FakeEnvTest, ClockAndRandomnessAreReproducible) {
  FakeEnv a(5);
  FakeEnv b(5);
  EXPECT_EQ(a.Random64(), b.Random64());
  const absl::Time before = a.Now();
  EXPECT_EQ(a.Now(), before);
  a.AdvanceClock(absl::Seconds(3));
  EXPECT_EQ(a.Now() - before, absl::Seconds(3));
}

}  // namespace
}  // namespace millrace
