// SPDX-License-Identifier: Apache-2.0
#include "io/event_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "io/histogram.h"
#include "simulation/fake_env.h"

namespace millrace {
namespace {

wire::Summary Scalar(float v) {
  wire::Summary summary;
  wire::SummaryValue& value = summary.value.emplace_back();
  value.tag = "loss";
  value.kind = wire::SummaryValue::Kind::kSimpleValue;
  value.simple_value = v;
  return summary;
}

TEST(EventFile, RoundTrip) {
  FakeEnv env;
  auto writer = EventFileWriter::Open(env, "logs/run", ".x");
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_TRUE(absl::StartsWith((*writer)->path(), "logs/run/events.out.tfevents.1000000000."));
  EXPECT_TRUE(absl::EndsWith((*writer)->path(), ".x"));
  ASSERT_TRUE((*writer)->WriteGraph("graph").ok());
  ASSERT_TRUE((*writer)->WriteSummary(7, Scalar(0.5)).ok());
  wire::Event never;
  never.wall_time = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->Write(never)));
  ASSERT_TRUE((*writer)->Close().ok());

  auto reader = EventFileReader::Open(env, (*writer)->path());
  ASSERT_TRUE(reader.ok());
  wire::Event event;
  ASSERT_TRUE(*(*reader)->Read(&event));
  EXPECT_EQ(event.file_version, "brain.Event:2");
  EXPECT_EQ(event.wall_time, 1e9);
  ASSERT_TRUE(*(*reader)->Read(&event));
  EXPECT_EQ(event.graph_def, "graph");
  ASSERT_TRUE(*(*reader)->Read(&event));
  EXPECT_EQ(event.step, 7);
  EXPECT_TRUE(wire::Equal(*event.summary, Scalar(0.5)));
  EXPECT_FALSE(*(*reader)->Read(&event));
}

TEST(EventFile, WritersOfOneSecondDoNotShareAFile) {
  FakeEnv env;
  auto a = EventFileWriter::Open(env, "logs");
  auto b = EventFileWriter::Open(env, "logs");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE((*a)->path(), (*b)->path());
}

// Whatever a crash leaves of the file, the whole events before the cut are read, and then it ends.
TEST(EventFile, CutAnywhere) {
  FakeEnv env;
  auto writer = EventFileWriter::Open(env, "logs");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE((*writer)->WriteSummary(i, Scalar(1)).ok());
  ASSERT_TRUE((*writer)->Close().ok());
  const std::string good = *env.ReadFile((*writer)->path());
  for (size_t n = 0; n <= good.size(); ++n) {
    {
      auto file = env.NewWritableFile("cut");
      ASSERT_TRUE((*file)->Append(good.substr(0, n)).ok() && (*file)->Close().ok());
    }
    auto reader = EventFileReader::Open(env, "cut");
    ASSERT_TRUE(reader.ok());
    wire::Event event;
    int events = 0;
    while (true) {
      auto more = (*reader)->Read(&event);
      ASSERT_TRUE(more.ok()) << n << " " << more.status();
      if (!*more) break;
      ++events;
    }
    EXPECT_LE(events, 4);
    EXPECT_EQ(events == 4, n == good.size());
  }
}

TEST(EventFile, IsFlushedAfterASecond) {
  FakeEnv env;
  auto writer = EventFileWriter::Open(env, "logs");
  env.AdvanceClock(absl::Seconds(2));
  ASSERT_TRUE((*writer)->WriteSummary(1, Scalar(1)).ok());
  auto reader = EventFileReader::Open(env, (*writer)->path());
  wire::Event event;
  ASSERT_TRUE(*(*reader)->Read(&event));
  ASSERT_TRUE(*(*reader)->Read(&event));
  EXPECT_EQ(event.step, 1);
}

TEST(Histogram, MergedAsCountedTogether) {
  Histogram all, merged, parts[3];
  for (int i = 0; i < 300; ++i) {
    const double v = (i % 7 - 3) * std::pow(1.3, i % 40);
    all.Add(v);
    merged.AddToSums(v);
    parts[i % 3].Count(v);
  }
  for (const Histogram& part : parts) merged.MergeCounts(part);
  EXPECT_EQ(wire::Encode(merged.ToProto()), wire::Encode(all.ToProto()));
}

TEST(Histogram, Buckets) {
  EXPECT_EQ(Histogram().ToProto().bucket_limit, (std::vector<double>{std::numeric_limits<double>::max()}));
  Histogram h;
  for (double v : {1.0, 1.0, -2.0, 0.0, std::numeric_limits<double>::max(), -std::numeric_limits<double>::max()})
    h.Add(v);
  const wire::HistogramProto proto = h.ToProto();
  ASSERT_EQ(proto.bucket.size(), proto.bucket_limit.size());
  double total = 0;
  for (size_t i = 0; i < proto.bucket.size(); ++i) {
    total += proto.bucket[i];
    if (i > 0) {
      EXPECT_LT(proto.bucket_limit[i - 1], proto.bucket_limit[i]);
    }
  }
  EXPECT_EQ(total, 6);
  EXPECT_EQ(proto.num, 6);
}

}  // namespace
}  // namespace millrace
