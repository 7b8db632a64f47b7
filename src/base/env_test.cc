// SPDX-License-Identifier: Apache-2.0
#include "base/env.h"

#include <sys/stat.h>

#include <new>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

class EnvTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = JoinPath(testing::TempDir(), absl::StrCat("millrace-", env_.Random64()));
    ASSERT_TRUE(env_.CreateDirs(folder_).ok());
  }
  void TearDown() override {
    const auto names = env_.ListDir(folder_);
    for (const std::string& name : *names) {
      if (env_.DeleteFile(Path(name)).ok()) continue;
      EXPECT_TRUE(env_.DeleteDir(Path(name)).ok());
    }
    EXPECT_TRUE(env_.DeleteDir(folder_).ok());
  }
  std::string Path(const std::string& name) const { return JoinPath(folder_, name); }

  Env& env_ = Env::Default();
  std::string folder_;
};

TEST(PathTest, Helpers) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("a", "/b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", ""), "a");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(Dirname("a/b/c"), "a/b");
  EXPECT_EQ(Dirname("/c"), "/");
  EXPECT_EQ(Dirname("c"), "");
  EXPECT_EQ(Dirname("gs://b/c"), "gs://b");
  EXPECT_EQ(Dirname("gs://b"), "gs://");
  EXPECT_EQ(Basename("a/b"), "b");
  EXPECT_EQ(Basename("b"), "b");
  EXPECT_EQ(Basename("b/"), "");
}

TEST_F(EnvTest, WritesAndReads) {
  const std::string large(300000, 'x');
  {
    auto file = env_.NewWritableFile(Path("f"));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Append("head").ok());
    EXPECT_TRUE((*file)->Append(large).ok());
    EXPECT_TRUE((*file)->Append("tail").ok());
    EXPECT_TRUE((*file)->Sync().ok());
    EXPECT_EQ(*env_.FileSize(Path("f")), large.size() + 8);
    EXPECT_TRUE((*file)->Close().ok());
    EXPECT_TRUE((*file)->Close().ok());
    EXPECT_EQ((*file)->Append("x").code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(*env_.ReadFile(Path("f")), absl::StrCat("head", large, "tail"));
  EXPECT_EQ(env_.ReadFile(Path("f"), 100).status().code(), absl::StatusCode::kResourceExhausted);
  auto reader = env_.NewRandomAccessFile(Path("f"));
  ASSERT_TRUE(reader.ok());
  char bytes[4];
  EXPECT_TRUE((*reader)->Read((*reader)->size() - 4, 4, bytes).ok());
  EXPECT_EQ(absl::string_view(bytes, 4), "tail");
  EXPECT_EQ((*reader)->Read((*reader)->size() - 3, 4, bytes).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ((*reader)->Read(UINT64_MAX, 4, bytes).code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE((*reader)->Read((*reader)->size(), 0, bytes).ok());
  {
    auto file = env_.NewAppendableFile(Path("f"));
    EXPECT_TRUE((*file)->Append("!").ok());  // closed by its destructor
  }
  EXPECT_EQ(*env_.FileSize(Path("f")), large.size() + 9);
}

TEST_F(EnvTest, ErrorsNameThePath) {
  const Status missing = env_.ReadFile(Path("nothing")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.message().find(Path("nothing")), absl::string_view::npos);
  EXPECT_EQ(env_.NewRandomAccessFile(Path("nothing")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(env_.NewWritableFile(Path("no/where")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(env_.NewRandomAccessFile(folder_).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(env_.ReadFile(folder_).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(env_.DeleteFile(Path("nothing")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(env_.ListDir(Path("nothing")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(env_.ReadFile("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(env_.ReadFile(std::string("/etc/hosts\0x", 12)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(env_.FileExists(Path("nothing")));
}

TEST_F(EnvTest, NamesMayBeginWithAScheme) {
  const std::string folder = absl::StrCat("file://", folder_), file = absl::StrCat("file://", Path("f"));
  EXPECT_TRUE(env_.CreateDirs(folder).ok());
  ASSERT_TRUE(WriteFileAtomically(env_, file, "x").ok());
  EXPECT_EQ(*env_.ReadFile(Path("f")), "x");
  EXPECT_EQ(*env_.ReadFile(file), "x");
  EXPECT_TRUE(env_.FileExists(file));
  EXPECT_EQ(env_.ListDir(folder)->size(), 1u);
  EXPECT_EQ(env_.ReadFile("file://").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(EnvTest, Folders) {
  const std::string deep = Path("a/b//c/");
  EXPECT_TRUE(env_.CreateDirs(deep).ok());
  EXPECT_TRUE(env_.CreateDirs(deep).ok());
  EXPECT_TRUE(env_.FileExists(Path("a/b/c")));
  EXPECT_EQ(*env_.ListDir(Path("a")), std::vector<std::string>{"b"});
  EXPECT_FALSE(env_.DeleteDir(Path("a")).ok());
  EXPECT_TRUE(WriteFileAtomically(env_, Path("f"), "x").ok());
  EXPECT_EQ(env_.CreateDirs(Path("f/g")).code(), absl::StatusCode::kFailedPrecondition);
  for (const char* path : {"a/b/c", "a/b"}) EXPECT_TRUE(env_.DeleteDir(Path(path)).ok());
}

TEST_F(EnvTest, AtomicWriteReplacesAndLeavesNothingElse) {
  EXPECT_TRUE(WriteFileAtomically(env_, Path("f"), "one").ok());
  EXPECT_TRUE(WriteFileAtomically(env_, Path("f"), "two").ok());
  EXPECT_EQ(*env_.ReadFile(Path("f")), "two");
  // A folder in the way: the rename fails, and the temporary file goes.
  EXPECT_TRUE(env_.CreateDirs(Path("d")).ok());
  EXPECT_FALSE(WriteFileAtomically(env_, Path("d"), "x").ok());
  EXPECT_EQ(*env_.ListDir(folder_), (std::vector<std::string>{"d", "f"}));
}

TEST_F(EnvTest, FilesThatTheKernelMakesUp) {
  const auto text = env_.ReadFile("/proc/self/status");
  ASSERT_TRUE(text.ok());
  EXPECT_FALSE(text->empty());
}

TEST_F(EnvTest, PipesAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(env_.NewRandomAccessFile(Path("pipe")).status()));
}

TEST_F(EnvTest, ClockAndRandomness) {
  const int64_t before = env_.MonotonicNanos();
  EXPECT_GE(env_.MonotonicNanos(), before);
  EXPECT_NE(env_.Random64(), env_.Random64());
  EXPECT_GT(env_.Now(), absl::FromUnixSeconds(1'500'000'000));
}

TEST_F(EnvTest, WorkRunsOnOtherThreads) {
  absl::Notification scheduled, started;
  env_.Schedule([&] { scheduled.Notify(); });
  EXPECT_TRUE(env_.StartThread([&] {
                    scheduled.WaitForNotification();
                    started.Notify();
                  })
                  .ok());
  started.WaitForNotification();
}

TEST_F(EnvTest, TimersRunOnceOrUntilTheyAreStopped) {
  absl::Mutex mu;
  int once = 0, often = 0;
  const auto is_done = [&] { return once == 1 && often >= 3; };
  const int64_t start = env_.MonotonicNanos();
  env_.ScheduleAfter(absl::Milliseconds(20), [&] {
    absl::MutexLock lock(&mu);
    ++once;
  });
  const Env::TimerId never = env_.ScheduleAfter(absl::Hours(1), [&] { ADD_FAILURE(); });
  const Env::TimerId timer = env_.StartTimer(absl::Milliseconds(5), [&] {
    absl::MutexLock lock(&mu);
    ++often;
    return true;
  });
  {
    absl::MutexLock lock(&mu);
    EXPECT_TRUE(env_.Await(mu, absl::Condition(&is_done)));
  }
  EXPECT_GE(env_.MonotonicNanos() - start, 20'000'000);
  env_.StopTimer(timer);
  env_.StopTimer(never);
  const int before = often;  // nobody writes it any more
  const bool nothing = false;
  absl::MutexLock lock(&mu);
  EXPECT_FALSE(env_.Await(mu, absl::Condition(&nothing), absl::Milliseconds(20)));
  EXPECT_EQ(often, before);
}

TEST_F(EnvTest, ATimerStopsItself) {
  absl::Notification stopped;
  Env::TimerId own = 0;
  absl::Mutex mu;
  mu.Lock();
  own = env_.StartTimer(absl::ZeroDuration(), [&] {
    absl::MutexLock lock(&mu);
    env_.StopTimer(own);
    stopped.Notify();  // twice would end the process
    return true;
  });
  mu.Unlock();
  stopped.WaitForNotification();
  env_.StopTimer(own);
}

TEST_F(EnvTest, WhatATimerThrowsEndsNothing) {
  absl::Notification again;
  int calls = 0;
  const Env::TimerId timer = env_.StartTimer(absl::ZeroDuration(), [&] {
    if (++calls == 1) throw std::bad_alloc();
    again.Notify();
    return false;
  });
  again.WaitForNotification();
  env_.StopTimer(timer);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace millrace
