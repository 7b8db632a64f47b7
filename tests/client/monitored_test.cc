// SPDX-License-Identifier: Apache-2.0
// The training loop of the C++ client. Compiled twice, as client_test.cc.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "client_modes.h"
#include "millrace/monitored_session.h"
#include "millrace/train.h"

namespace {

using millrace::Graph;
using millrace::Hook;
using millrace::MonitoredSession;
using millrace::MonitoredSessionOptions;
using millrace::Operation;
using millrace::Output;
using millrace::RunContext;
using millrace::Status;
using millrace::Variable;

// w = 1 halves in each step: gradient descent on w^2 / 2.
struct Halving {
  Graph graph;
  millrace::Model model{millrace::Scope(graph)};
  Variable w, step;
  Output loss;
  Operation train, init;
  std::string folder;

  explicit Halving(const std::string& name, bool fresh = true) {
    millrace::Scope& s = model.scope();
    w = model.AddVariable("w", s.Const(1.0f));
    step = model.GlobalStep();
    loss = s.Op("L2Loss", {w.read});
    train = model.Minimize({"GradientDescent", {{"learning_rate", 0.5}}}, loss, step);
    init = model.Initializer();
    folder = testing::TempDir() + "client_monitored_" + std::to_string(MILLRACE_EXCEPTIONS) + name;
    if (fresh) std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  MonitoredSessionOptions Options() const { return {.checkpoint_dir = folder, .init = init, .global_step = step}; }
  float Weight(const millrace::Session& session) const {
    return Value(Value(session.Run({w.read}))[0].scalar<float>());
  }
};

CLIENT_TEST(TrainingStopsSavesAndGoesOn) {
  Halving net("goes_on");
  {
    MonitoredSession training(
        net.graph, net.Options(),
        {millrace::CheckpointSaverHook(millrace::Saver(net.graph, 3), net.folder + "/m", 2),
         millrace::StopAtStepHook(5)});
    int runs = 0;
    for (; !training.ShouldStop(); ++runs) Value(training.Run({}, {net.loss}, {net.train}));
    EXPECT_EQ(runs, 5);
    EXPECT_EQ(training.step(), 5);
    MUST(training.Close());
    EXPECT_EQ(CodeOf([&] { return training.Run({}, {}, {net.train}); }), TF_FAILED_PRECONDITION);
  }
  EXPECT_EQ(millrace::LatestCheckpoint(net.folder), net.folder + "/m-5");
  EXPECT_TRUE(std::filesystem::exists(net.folder + "/m-2.index")) << "of 0, 2, 4 and 5 the last three stay";
  EXPECT_FALSE(std::filesystem::exists(net.folder + "/m-0.index"));

  Halving later("goes_on", false);
  MonitoredSession training(later.graph, later.Options(), {millrace::StopAtStepHook(7)});
  EXPECT_EQ(training.step(), 5);
  EXPECT_EQ(later.Weight(training.session()), 1 / 32.f);
  while (!training.ShouldStop()) Value(training.Run({}, {}, {later.train}));
  EXPECT_EQ(later.Weight(training.session()), 1 / 128.f);
  MUST(training.Close());
  EXPECT_EQ(CodeOf([&] {
              MonitoredSession done(later.graph, later.Options(), {millrace::StopAtStepHook(4)});
              return done.Close();
            }),
            TF_OUT_OF_RANGE);
}

CLIENT_TEST(LostStepsBeginAnewFromTheCheckpoint) {
  Halving net("lost");
  int calls = 0;
  Hook fails;
  fails.after_run = [&](const RunContext&) {
    return ++calls == 4 ? Status(TF_UNAVAILABLE, "a machine went away") : Status();
  };
  MonitoredSession training(
      net.graph, net.Options(),
      {millrace::CheckpointSaverHook(millrace::Saver(net.graph), net.folder + "/m", 2), fails,
       millrace::StopAtStepHook(6)});
  std::vector<int64_t> steps;
  while (!training.ShouldStop()) {
    Value(training.Run({}, {}, {net.train}));
    steps.push_back(training.step());
  }
  // Step 4 was saved before the failure was met, so that the call went on to 5.
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3, 5, 6}));
  EXPECT_EQ(training.recoveries(), 1);
  EXPECT_EQ(net.Weight(training.session()), 1 / 64.f);
  MUST(training.Close());
}

CLIENT_TEST(LossesInARowEndTheTrainingWithWhatHappened) {
  Halving net("row");
  int calls = 0;
  bool always = false;
  Hook fails;
  fails.after_run = [&](const RunContext&) {
    return ++calls % 3 != 0 || always
               ? Status(TF_UNAVAILABLE, "machine " + std::to_string(calls) + " went away")
               : Status();
  };
  MonitoredSessionOptions options = net.Options();
  options.max_recoveries = 7;
  options.first_pause = std::chrono::milliseconds(1);
  options.longest_pause = std::chrono::milliseconds(4);
  MonitoredSession training(
      net.graph, options, {millrace::CheckpointSaverHook(millrace::Saver(net.graph), net.folder + "/m", 1), fails});
  for (int i = 0; i < 5; ++i) Value(training.Run({}, {}, {net.train}));
  EXPECT_EQ(training.recoveries(), 10) << "a good step begins to count anew";
  always = true;
  const Ending end = EndOf([&] { return training.Run({}, {}, {net.train}); });
  EXPECT_EQ(end.code, TF_UNAVAILABLE);
  EXPECT_NE(end.message.find("machine 23 went away\nNo step has gone well since 8 failures:\n  3 more\n  machine 19"),
            std::string::npos)
      << end.message;
  EXPECT_TRUE(training.ShouldStop());

  options.patience = std::chrono::milliseconds(0);
  {
    MonitoredSession hasty(net.graph, options, {fails});
    EXPECT_EQ(CodeOf([&] { return hasty.Run({}, {}, {net.train}); }), TF_UNAVAILABLE);
    EXPECT_EQ(hasty.recoveries(), 0);
  }
  options = net.Options();
  options.first_pause = options.longest_pause = std::chrono::hours(1);
  Hook loses;
  MonitoredSession* waits = nullptr;
  loses.after_run = [&](const RunContext&) {
    waits->RequestStop();
    return Status(TF_ABORTED, "lost");
  };
  MonitoredSession long_pause(net.graph, options, {loses});
  waits = &long_pause;
  EXPECT_EQ(CodeOf([&] { return long_pause.Run({}, {}, {net.train}); }), TF_ABORTED) << "it does not wait";
}

CLIENT_TEST(ADamagedCheckpointIsPassedOver) {
  Halving net("damaged");
  {
    MonitoredSession training(
        net.graph, net.Options(),
        {millrace::CheckpointSaverHook(millrace::Saver(net.graph), net.folder + "/m", 1), millrace::StopAtStepHook(3)});
    while (!training.ShouldStop()) Value(training.Run({}, {}, {net.train}));
    MUST(training.Close());
  }
  const auto begins_at = [&] {
    Halving later("damaged", false);
    MonitoredSession training(later.graph, later.Options());
    return std::pair(training.step(), later.Weight(training.session()));
  };
  EXPECT_EQ(begins_at(), std::pair(int64_t{3}, 1 / 8.f));
  std::filesystem::resize_file(net.folder + "/m-3.data-00000-of-00001", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(begins_at(), std::pair(int64_t{2}, 1 / 4.f));
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("m-3 is damaged"), std::string::npos) << told;
  std::filesystem::remove(net.folder + "/m-2.data-00000-of-00001");
  std::filesystem::resize_file(net.folder + "/m-1.index", 10);
  testing::internal::CaptureStderr();
  EXPECT_EQ(begins_at(), std::pair(int64_t{0}, 1.f));
  testing::internal::GetCapturedStderr();

  Graph other;  // a checkpoint that lacks variables is whole
  millrace::Model model{millrace::Scope(other)};
  model.AddVariable("another", model.scope().Const(1.0f));
  const Variable step = model.GlobalStep();
  testing::internal::CaptureStderr();
  EXPECT_EQ(CodeOf([&] {
              MonitoredSession training(
                  other, {.checkpoint_dir = net.folder, .init = model.Initializer(), .global_step = step});
              return training.Close();
            }),
            TF_NOT_FOUND);
  testing::internal::GetCapturedStderr();
}

CLIENT_TEST(OtherErrorsEndTheTraining) {
  Halving net("nan");
  millrace::Scope& s = net.model.scope();
  const Output given = s.Placeholder(millrace::DType::kFloat);
  MonitoredSession training(net.graph, net.Options(), {millrace::NanTensorHook(given)});
  Value(training.Run({{given, 1.0f}}, {}, {net.train}));
  const Ending end = EndOf([&] { return training.Run({{given, std::nanf("")}}, {}, {net.train}); });
  EXPECT_EQ(end.code, TF_INVALID_ARGUMENT);
  EXPECT_NE(end.message.find("nan after step 2"), std::string::npos) << end.message;
  EXPECT_TRUE(training.ShouldStop());
  EXPECT_EQ(CodeOf([&] { return training.Close(); }), TF_INVALID_ARGUMENT);

  Halving other("end");
  MonitoredSession reading(other.graph, other.Options());
  const Operation queue = other.model.scope().Op(
      "FIFOQueue", {}, {{"component_types", std::vector<millrace::DType>{millrace::DType::kFloat}}});
  const Operation close = other.model.scope().Op("QueueClose", {queue});
  const Operation next = other.model.scope().Op(
      "QueueDequeue", {queue}, {{"component_types", std::vector<millrace::DType>{millrace::DType::kFloat}}});
  MUST(reading.session().RunTargets({close}));
  EXPECT_TRUE(Value(reading.Run({}, {next})).empty());
  EXPECT_TRUE(reading.ShouldStop()) << "the data have ended";
  MUST(reading.Close());
}

CLIENT_TEST(SummariesAndProgress) {
  Halving net("summaries");
  const Output summary = net.model.scope().Op("ScalarSummary", {"loss", net.loss});
  const millrace::EventWriter writer(net.folder);
  testing::internal::CaptureStderr();
  MonitoredSession training(
      net.graph, net.Options(),
      {millrace::SummarySaverHook(writer, summary, 2), millrace::ProgressHook(4, true), millrace::StopAtStepHook(4)});
  while (!training.ShouldStop()) Value(training.Run({}, {}, {net.train}));
  MUST(training.Close());
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_NE(shown.find("step 1 of 4"), std::string::npos) << shown;
  uintmax_t size = 0;
  for (const auto& file : std::filesystem::directory_iterator(net.folder)) size += file.file_size();
  EXPECT_GT(size, 2 * sizeof("loss")) << "two summaries";
  EXPECT_EQ(millrace::ProgressLine(0, 30, 100, 2), "step 30 of 100, 15.0 steps/s, 0:05 left");
  EXPECT_EQ(millrace::ProgressLine(20, 30, 100030, 10), "step 30 of 100030, 1.0 steps/s, 27:46:40 left");
  EXPECT_EQ(millrace::ProgressLine(5, 5, 10, 0), "step 5 of 10");
}

// The events of the only event file in a folder, encoded.
std::vector<std::string> EventsIn(const std::string& folder) {
  std::vector<std::string> events;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find("tfevents") == std::string::npos) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    uint64_t size = 0;
    char checksum[4];
    while (file.read(reinterpret_cast<char*>(&size), sizeof size) && file.read(checksum, sizeof checksum)) {
      std::string& event = events.emplace_back(static_cast<size_t>(size), '\0');
      file.read(event.data(), static_cast<std::streamsize>(size)).read(checksum, sizeof checksum);
    }
  }
  return events;
}

// The bytes of a field of a message, empty where it has none.
std::string Field(const std::string& message, uint32_t field) {
  millrace::internal::Decoder d(message);
  while (d.Next()) {
    if (d.field() == field) return d.text();
  }
  return "";
}

CLIENT_TEST(NumbersOfTheProgramAndTracesAreEvents) {
  Halving net("events");
  const millrace::EventWriter writer(net.folder);
  testing::internal::CaptureStderr();
  MonitoredSession training(
      net.graph, net.Options(),
      {millrace::StepCounterHook(writer, 2), millrace::LoggingTensorHook({{"loss", net.loss}}, 2),
       millrace::StopAtStepHook(4)});
  while (!training.ShouldStop()) Value(training.Run({}, {}, {net.train}));
  millrace::RunMetadata metadata;
  const millrace::RunOptions options = {.trace_level = millrace::TraceLevel::kFull};
  Value(training.session().Run({}, {net.loss}, {}, options, &metadata));
  MUST(training.Close());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "loss = 0.5 (step 1)\nloss = 0.03125 (step 3)\n");
  millrace::EventWriter own = writer;
  MUST(own.AddScalar("examples", 64, 4));
  MUST(own.AddRunMetadata(metadata, "step 4", 4));
  const std::vector<std::string> events = EventsIn(net.folder);
  ASSERT_EQ(events.size(), 5u) << "the version, two rates, one number, one trace";
  for (const size_t i : {1u, 2u}) EXPECT_EQ(Field(Field(Field(events[i], 5), 1), 1), "global_step/sec");
  const std::string number = Field(Field(events[3], 5), 1);
  float value = 0;
  ASSERT_EQ(Field(number, 2).size(), sizeof value);
  std::memcpy(&value, Field(number, 2).data(), sizeof value);
  EXPECT_EQ(Field(number, 1), "examples");
  EXPECT_EQ(value, 64);
  EXPECT_EQ(Field(Field(events[4], 8), 1), "step 4");
  EXPECT_EQ(Field(Field(events[4], 8), 2), metadata.encoded);
  EXPECT_FALSE(metadata.encoded.empty());
}

CLIENT_TEST(OnlyFloatsAreLogged) {
  Halving net("logs");
  MonitoredSession training(net.graph, net.Options(), {millrace::LoggingTensorHook({{"step", net.step.read}}, 1)});
  EXPECT_EQ(CodeOf([&] { return training.Run({}, {}, {net.train}); }), TF_INVALID_ARGUMENT);
}

}  // namespace
