// SPDX-License-Identifier: Apache-2.0
#include "service/trace_writer.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulation/fake_env.h"

namespace millrace {
namespace {

class TraceWriterTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, size_t bytes = 100) {
    writer_->Write("/t/" + name, bytes, [this, name] {
      encoded_.push_back(name);
      return "trace " + name;
    });
  }
  std::vector<std::string> Files() {
    const StatusOr<std::vector<std::string>> files = env_.ListDir("/t");
    return files.ok() ? *files : std::vector<std::string>();
  }
  using Names = std::vector<std::string>;

  FakeEnv env_;
  Names encoded_;
  std::unique_ptr<TraceWriter> writer_ = std::make_unique<TraceWriter>(env_);
};

TEST_F(TraceWriterTest, WritesBehindTheStepsInTheirOrder) {
  for (const char* name : {"c", "a", "b"}) Write(name);
  EXPECT_EQ(encoded_, Names()) << "a step waits for it";
  env_.RunFor(absl::Milliseconds(50));
  EXPECT_EQ(encoded_, (Names{"c", "a", "b"}));
  EXPECT_EQ(Files(), (Names{"a", "b", "c"}));
  EXPECT_EQ(*env_.ReadFile("/t/a"), "trace a");
  env_.RunFor(absl::Seconds(1));  // its thread has ended
  Write("d");
  env_.RunFor(absl::Milliseconds(50));
  EXPECT_EQ(Files().size(), 4u);
}

TEST_F(TraceWriterTest, WhoFlushesFindsTheFiles) {
  EXPECT_TRUE(writer_->Flush(absl::ZeroDuration())) << "nothing to wait for";
  Write("a");
  Write("b");
  const int64_t before = env_.MonotonicNanos();
  EXPECT_TRUE(writer_->Flush(absl::Seconds(10)));
  EXPECT_LT(env_.MonotonicNanos() - before, 10'000'000) << "it waits for no pause";
  EXPECT_EQ(Files(), (Names{"a", "b"}));
  Write("c");
  writer_ = nullptr;
  EXPECT_EQ(Files(), (Names{"a", "b", "c"}));
}

TEST_F(TraceWriterTest, OfNothingThereIsNoFile) {
  writer_->Write("/t/a", 0, [] { return std::string(); });
  EXPECT_TRUE(writer_->Flush(absl::Seconds(10)));
  EXPECT_EQ(Files(), Names());
}

TEST_F(TraceWriterTest, WhatCannotBeWrittenIsLeftOut) {
  Write("a");
  ASSERT_TRUE(writer_->Flush(absl::Seconds(10)));
  for (int64_t operation = 0; operation < 4; ++operation) {
    const std::string lost = absl::StrCat("lost", operation);
    env_.FailOnce(operation, absl::ResourceExhaustedError("no space left"));
    writer_->Write("/t/" + lost, 1, [] { return "x"; });
    ASSERT_TRUE(writer_->Flush(absl::Seconds(10)));
  }
  writer_->Write("/t/thrown", 1, []() -> std::string { throw std::bad_alloc(); });
  Write("b");
  ASSERT_TRUE(writer_->Flush(absl::Seconds(10)));
  for (const std::string& file : Files()) EXPECT_FALSE(file.ends_with(".part")) << file;
  EXPECT_TRUE(env_.FileExists("/t/a") && env_.FileExists("/t/b"));
  EXPECT_LT(Files().size(), 6u);
}

TEST_F(TraceWriterTest, WhatWouldBeTooMuchIsDropped) {
  Write("whole", 2 * TraceWriter::kMostBytes);  // of one trace there is always room
  Write("dropped", 1);
  ASSERT_TRUE(writer_->Flush(absl::Seconds(10)));
  EXPECT_EQ(Files(), (Names{"whole"}));
  Write("next", 1);
  ASSERT_TRUE(writer_->Flush(absl::Seconds(10)));
  EXPECT_EQ(encoded_, (Names{"whole", "next"}));
}

TEST(TraceWriterInARealWorld, SessionsAndThreadsDoNotWaitForEachOther) {
  Env& env = Env::Default();
  const std::string folder = JoinPath(::testing::TempDir(), "traces of many");
  constexpr int kThreads = 8, kTraces = 50;
  {
    TraceWriter shared(env);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        TraceWriter own(env);
        for (int i = 0; i < kTraces; ++i) {
          for (TraceWriter* writer : {&own, &shared}) {
            const std::string name = absl::StrCat(writer == &own ? "own" : "shared", t, "-", i);
            writer->Write(JoinPath(folder, name), 1000, [name] { return name; });
          }
          if (i % 10 == t) {
            EXPECT_TRUE(shared.Flush(absl::Seconds(60)));
          }
        }
      });
    }
    for (std::thread& t : threads) t.join();
  }
  const StatusOr<std::vector<std::string>> files = env.ListDir(folder);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->size(), size_t{2} * kThreads * kTraces);
  for (const std::string& file : *files) {
    EXPECT_EQ(*env.ReadFile(JoinPath(folder, file)), file);
    EXPECT_TRUE(env.DeleteFile(JoinPath(folder, file)).ok());
  }
  EXPECT_TRUE(env.DeleteDir(folder).ok());
}

}  // namespace
}  // namespace millrace
