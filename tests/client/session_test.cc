// SPDX-License-Identifier: Apache-2.0
// Options and traces of steps, partial runs, callables, devices, servers. Compiled twice, as client_test.cc.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "client_modes.h"
#include "millrace/server.h"
#include "millrace/timeline.h"

namespace {

using millrace::DType;
using millrace::Graph;
using millrace::Operation;
using millrace::Output;
using millrace::RunMetadata;
using millrace::RunOptions;
using millrace::Scope;
using millrace::Session;
using millrace::Tensor;
using millrace::TraceLevel;

std::string Scratch(const std::string& name) { return testing::TempDir() + "client_session_" + name; }

CLIENT_TEST(StepsStopAtTheirTimeout) {
  Graph graph;
  Scope s(graph);
  const Operation queue = s.Op("FIFOQueue", {}, {{"component_types", std::vector<DType>{DType::kFloat}}});
  const Operation forever = s.Op("QueueDequeue", {queue}, {{"component_types", std::vector<DType>{DType::kFloat}}});
  const Session session(graph);
  EXPECT_EQ(CodeOf([&] { return session.Run({}, {forever}, {}, {.timeout_in_ms = 50}); }), TF_DEADLINE_EXCEEDED);
  millrace::SessionOptions impatient;
  impatient.config = millrace::Config{.intra_op_parallelism_threads = 1, .operation_timeout_in_ms = 50}.Encode();
  const Session other(graph, impatient);
  EXPECT_EQ(CodeOf([&] { return other.Run({forever}); }), TF_DEADLINE_EXCEEDED);
}

CLIENT_TEST(TracesTellWhatAStepDid) {
  Graph graph;
  Scope s(graph);
  const Output x = s.WithName("x").Placeholder(DType::kFloat, {64, 64});
  const Operation y = s.WithName("product").Op("MatMul", {x, x});
  const Session session(graph);
  const Tensor ones = Tensor::Of({64, 64}, std::vector<float>(64 * 64, 1));
  RunMetadata told;
  EXPECT_EQ(
      Value(session.Run({{x, ones}}, {y}, {}, {.trace_level = TraceLevel::kFull}, &told))[0].data<float>()[0], 64);
  const millrace::StepStats stats = Value(millrace::ReadStepStats(told));
  int64_t bytes = -1, duration = 0;
  for (const millrace::NodeStats& n : stats.nodes) {
    if (n.name != "product") continue;
    bytes = n.output_bytes;
    EXPECT_NE(n.device.find("CPU:0"), std::string::npos) << n.device;
    EXPECT_EQ(n.start_nanos / 1000, n.start_micros);
    EXPECT_EQ(n.duration_nanos / 1000, n.duration_micros);
    EXPECT_GT(n.duration_nanos, 0);
    duration = n.duration_nanos;
  }
  EXPECT_EQ(bytes, 64 * 64 * 4);

  const std::string path = Scratch("timeline.json");
  EXPECT_EQ(CodeOf([&] { return millrace::WriteTimeline(told, path); }), TF_OK);
  std::stringstream json;
  json << std::ifstream(path).rdbuf();
  EXPECT_NE(json.str().find("\"name\":\"product\""), std::string::npos) << json.str();
  EXPECT_EQ(json.str().substr(0, 16), "{\"traceEvents\":[");
  EXPECT_NE(json.str().find(",\"ts\":0.000,"), std::string::npos) << "times are since the first node began";
  const std::string digits = std::to_string(duration % 1000);
  const std::string micros = std::to_string(duration / 1000) + "." + std::string(3 - digits.size(), '0') + digits;
  EXPECT_NE(json.str().find(",\"dur\":" + micros + ","), std::string::npos) << micros << " in " << json.str();
  EXPECT_NE(CodeOf([&] { return millrace::WriteTimeline(told, "/nowhere/at/all.json"); }), TF_OK);
  EXPECT_EQ(CodeOf([&] { return millrace::ReadStepStats({"\x0a\x7f"}); }), TF_DATA_LOSS);

  Value(session.Run({{x, ones}}, {y}, {}, {}, &told));
  EXPECT_TRUE(Value(millrace::ReadStepStats(told)).nodes.empty()) << "a step that nobody asked to trace";
}

CLIENT_TEST(PartialRunsGoOnFromWhereTheyWere) {
  Graph graph;
  Scope s(graph);
  const Output a = s.Placeholder(DType::kFloat), b = s.Placeholder(DType::kFloat);
  const Operation twice = s.Op("Mul", {a, 2.0f}), sum = s.Op("Add", {twice, b});
  const Session session(graph);
  const millrace::PartialRun run = Value(session.SetupPartialRun({a, b}, {twice, sum}));
  const float first = Value(Value(run.Run({{a, 3.0f}}, {twice}))[0].scalar<float>());
  EXPECT_EQ(first, 6);
  EXPECT_EQ(Value(Value(run.Run({{b, first * 10}}, {sum}))[0].scalar<float>()), 66);
  EXPECT_NE(CodeOf([&] { return run.Run({{a, 1.0f}}, {twice}); }), TF_OK) << "the step is over";
  {
    const millrace::PartialRun left = Value(session.SetupPartialRun({a, b}, {sum}));
    Value(left.Run({{a, 3.0f}}, {}));
  }  // ends a step that waits for b
  EXPECT_EQ(CodeOf([&] { return session.SetupPartialRun({Output()}, {sum}); }), TF_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { return millrace::PartialRun().Run({}, {}); }), TF_FAILED_PRECONDITION);
}

CLIENT_TEST(CallablesTakeValuesInOrder) {
  Graph graph;
  Scope s(graph);
  const Output a = s.Placeholder(DType::kFloat), b = s.Placeholder(DType::kFloat);
  const Operation difference = s.Op("Sub", {a, b});
  millrace::Callable subtract = Session(graph).MakeCallable({a, b}, {difference});
  EXPECT_EQ(Value(Value(subtract({5.0f, 2.0f}))[0].scalar<float>()), 3) << "it keeps its session";
  EXPECT_EQ(Value(Value(subtract({2.0f, 5.0f}))[0].scalar<float>()), -3);
  EXPECT_EQ(CodeOf([&] { return subtract({2.0f}); }), TF_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { return millrace::Callable()(); }), TF_FAILED_PRECONDITION);
}

CLIENT_TEST(ListsDevicesAndExplains) {
  Graph graph;
  Scope s(graph);
  const Operation y = s.WithName("negative").Op("Neg", {s.WithName("given").Placeholder(DType::kFloat)});
  millrace::SessionOptions two;
  two.config = millrace::Config{.device_count = {{"CPU", 2}}}.Encode();
  const Session session(graph, two);
  const std::vector<millrace::Device> devices = Value(session.Devices());
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[1].name, "/job:localhost/replica:0/task:0/device:CPU:1");
  EXPECT_EQ(devices[1].type, "CPU");
  EXPECT_GT(devices[1].memory_bytes, 0);
  EXPECT_NE(Value(session.Explain({}, {y})).find("negative"), std::string::npos);
  EXPECT_EQ(CodeOf([&] { return Session().Devices(); }), TF_FAILED_PRECONDITION);
}

CLIENT_TEST(SessionsOfAServerShareVariables) {
  const millrace::Server server = millrace::Server::Local();
  ASSERT_EQ(server.target().substr(0, 7), "grpc://");
  Graph graph;
  Scope s(graph);
  const Operation v =
      s.WithName("v").Op("VariableV2", {}, {{"shape", millrace::Attr::OfShape({})}, {"dtype", DType::kFloat}});
  const Operation assign = s.Op("Assign", {v, 4.0f}), add = s.Op("AssignAdd", {v, 1.0f});
  const Session one(graph, {server.target()});
  Value(one.Run({assign}));
  const Session other(graph, {server.target()});
  EXPECT_EQ(Value(Value(other.Run({add}))[0].scalar<float>()), 5);
  EXPECT_EQ(Value(Value(one.Run({v}))[0].scalar<float>()), 5);
  EXPECT_EQ(Value(one.Devices())[0].name, "/job:local/replica:0/task:0/device:CPU:0");
  EXPECT_NE(Value(server.Describe()).find("\"job\""), std::string::npos) << Value(server.Describe());
  EXPECT_EQ(CodeOf([] {
              const millrace::Server none({{"worker", {"localhost:0"}}}, "ps", 0);
              return none.Start();
            }),
            TF_INVALID_ARGUMENT);
}

}  // namespace
