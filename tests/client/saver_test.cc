// SPDX-License-Identifier: Apache-2.0
// Savers of the C++ client. Compiled twice, as client_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "client_modes.h"
#include "millrace/io.h"
#include "millrace/saved_model.h"
#include "millrace/train.h"

namespace {

using millrace::Graph;
using millrace::Operation;
using millrace::Output;
using millrace::Saver;
using millrace::Session;
using millrace::Tensor;
using millrace::Variable;

std::string Fresh(const std::string& name) {
  const std::string folder = testing::TempDir() + "client_saver_" + std::to_string(MILLRACE_EXCEPTIONS) + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

// Two variables, a = {1, 2} and b = 3, and an operation that doubles a.
struct Net {
  Graph graph;
  millrace::Model model{millrace::Scope(graph)};
  Variable a, b;
  millrace::Operation init, twice;

  Net() {
    millrace::Scope& s = model.scope();
    a = model.AddVariable("a", s.Const({1.0f, 2.0f}));
    b = model.AddVariable("part/b", s.Const(3.0f));
    twice = s.Op("AssignAdd", {a.ref, a.read});
    init = model.Initializer();
  }
};

std::vector<float> Floats(const Session& session, const Variable& v) {
  return Value(Value(session.Run({v.read}))[0].values<float>());
}

CLIENT_TEST(SavesChosenVariables) {
  Net net;
  Saver some(net.graph, {net.b});
  const Session session(net.graph);
  MUST(session.RunTargets({net.init}));
  const std::string path = Value(some.Save(session, Fresh("chosen") + "/model", 7));
  EXPECT_EQ(path.substr(path.size() - 8), "/model-7");
  const millrace::CheckpointReader reader(path);
  EXPECT_EQ(reader.names(), std::vector<std::string>{"part/b"});
  EXPECT_EQ(Value(Value(reader.Read("part/b")).scalar<float>()), 3);
  EXPECT_EQ(CodeOf([&] { return reader.Read("a"); }), TF_NOT_FOUND);
  EXPECT_EQ(CodeOf([&] { return Saver(net.graph, std::vector<Variable>{}).ToDef(); }), TF_INVALID_ARGUMENT);
}

CLIENT_TEST(RestoresByOtherNames) {
  Net net;
  Saver saver(net.graph, {{"old/a", net.a}, {"old/b", net.b}});
  const Session session(net.graph);
  MUST(session.RunTargets({net.init}));
  const std::string path = Value(saver.Save(session, Fresh("names") + "/model", -1));
  EXPECT_EQ(millrace::CheckpointReader(path).names(), (std::vector<std::string>{"old/a", "old/b"}));

  Net other;
  Saver part(other.graph, {{"old/a", other.b}});  // of another shape
  Saver good(other.graph, {{"old/a", other.a}});
  Saver all(other.graph);
  const Session second(other.graph);
  MUST(second.RunTargets({other.init, other.twice}));
  MUST(good.Restore(second, path));
  EXPECT_EQ(Floats(second, other.a), (std::vector<float>{1, 2}));
  EXPECT_EQ(CodeOf([&] { return part.Restore(second, path); }), TF_INVALID_ARGUMENT);
  const Ending missing = EndOf([&] { return all.Restore(second, path); });
  EXPECT_EQ(missing.code, TF_NOT_FOUND);
  EXPECT_NE(missing.message.find("not in the checkpoint:\n    a\n    part/b"), std::string::npos) << missing.message;
  EXPECT_NE(missing.message.find("in the checkpoint alone:\n    old/a\n    old/b"), std::string::npos);
}

CLIENT_TEST(SavesInTheBackgroundWhatTheVariablesWere) {
  Net net;
  Saver saver(net.graph, millrace::SaverOptions{.asynchronous = true});
  const Session session(net.graph);
  MUST(session.RunTargets({net.init}));
  const std::string folder = Fresh("background");
  std::vector<std::string> paths;
  for (int step = 0; step < 4; ++step) {
    paths.push_back(Value(saver.Save(session, folder + "/model", step)));
    MUST(session.RunTargets({net.twice}));
  }
  MUST(saver.Wait());
  for (size_t step = 0; step < 4; ++step) {
    const std::vector<float> a = Value(Value(millrace::CheckpointReader(paths[step]).Read("a")).values<float>());
    const auto twice = static_cast<float>(1 << step);
    EXPECT_EQ(a, (std::vector<float>{twice, 2 * twice}));
  }
  EXPECT_EQ(millrace::LatestCheckpoint(folder), paths[3]);
  Value(saver.Save(session, folder + "/checkpoint/below_a_file", 0));
  EXPECT_NE(CodeOf([&] { return saver.Wait(); }), TF_OK) << "the next call tells";
  MUST(saver.Wait());
  EXPECT_EQ(CodeOf([&] { return saver.Save(Session(), folder + "/model", 9); }), TF_INVALID_ARGUMENT);
}

CLIENT_TEST(ConsistentCheckpointsAreOfOneMoment) {
  Net net;
  millrace::Scope& s = net.model.scope();
  const Operation first = s.Op("AssignAdd", {net.a.ref, s.Const({1.0f, 1.0f})});
  Output work = s.WithControl({first}).Op("RandomUniform", {Tensor({300, 300})}, {{"dtype", millrace::DType::kFloat}});
  for (int i = 0; i < 3; ++i) work = s.Op("MatMul", {work, work});
  const Operation second = s.WithControl({Operation(work.get().oper)}).Op("AssignAdd", {net.b.ref, 1.0f});
  const std::string folder = Fresh("consistent");
  for (const bool asynchronous : {false, true}) {
    Saver saver(net.graph, millrace::SaverOptions{.max_to_keep = 0, .asynchronous = asynchronous, .consistent = true});
    const Session session(net.graph);
    MUST(session.RunTargets({net.init}));
    std::atomic<bool> over = false;
    std::vector<std::thread> trains;
    for (int i = 0; i < 2; ++i) {
      trains.emplace_back([&] {
        std::vector<Tensor> none;
        while (!over && session.TryRun({}, {}, {second}, &none).ok()) {
        }
      });
    }
    std::vector<std::string> paths;
    for (int i = 0; i < 6; ++i) paths.push_back(Value(saver.Save(session, folder + "/c", i)));
    MUST(saver.Wait());
    over = true;
    for (std::thread& t : trains) t.join();
    for (const std::string& path : paths) {
      const millrace::CheckpointReader reader(path);
      const float a = Value(Value(reader.Read("a")).values<float>())[0];
      EXPECT_EQ(a - 1, Value(Value(reader.Read("part/b")).scalar<float>()) - 3) << path;
    }
  }
}

CLIENT_TEST(ShardsAreOneCheckpoint) {
  Net net;
  millrace::Api().SetRequestedDevice(net.graph.get(), net.a.ref.get().oper, "/job:localhost/task:0/device:CPU:0");
  Saver sharded(net.graph, millrace::SaverOptions{.sharded = true, .restore_sequentially = true});
  Saver plain(net.graph);
  const Session session(net.graph);
  MUST(session.RunTargets({net.init}));
  const std::string folder = Fresh("sharded");
  const std::string path = Value(sharded.Save(session, folder + "/m", 1));
  std::vector<std::string> files;
  for (const auto& f : std::filesystem::directory_iterator(folder)) files.push_back(f.path().filename());
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files, (std::vector<std::string>{
                       "checkpoint", "m-1.data-00000-of-00002", "m-1.data-00001-of-00002", "m-1.index", "m-1.meta"}));
  EXPECT_EQ(millrace::CheckpointReader(path).names(), (std::vector<std::string>{"a", "part/b"}));
  for (Saver* saver : {&sharded, &plain}) {
    MUST(session.RunTargets({net.twice}));
    MUST(saver->Restore(session, path));
    EXPECT_EQ(Floats(session, net.a), (std::vector<float>{1, 2}));
    EXPECT_EQ(Floats(session, net.b), (std::vector<float>{3}));
  }
}

CLIENT_TEST(RestoredValuesMayTakeTheVariablesShapes) {
  Net net;
  Saver saver(net.graph, {net.a});
  const Session session(net.graph);
  MUST(session.RunTargets({net.init}));
  const std::string path = Value(saver.Save(session, Fresh("reshape") + "/m", 1));
  Graph other;
  millrace::Model model{millrace::Scope(other)};
  const Variable column = model.AddVariable("a", model.scope().Const(Tensor::Of<float>({2, 1}, {0, 0})));
  Saver same(other), reshaped(other, millrace::SaverOptions{.reshape = true});
  const Session second(other);
  EXPECT_EQ(CodeOf([&] { return same.Restore(second, path); }), TF_INVALID_ARGUMENT);
  MUST(reshaped.Restore(second, path));
  EXPECT_EQ(Floats(second, column), (std::vector<float>{1, 2}));
}

CLIENT_TEST(KeepsTheBest) {
  Net net;
  const std::string folder = Fresh("best");
  const Session session(net.graph);
  MUST(session.RunTargets({net.init}));
  const auto there = [&] {
    std::string steps;
    for (int step = 0; step < 9; ++step) {
      if (std::filesystem::exists(folder + "/m-" + std::to_string(step) + ".index")) steps += std::to_string(step);
    }
    return steps;
  };
  Saver saver(net.graph, millrace::SaverOptions{.max_to_keep = 2, .asynchronous = true, .keep_best = 1});
  const std::vector<double> scores = {0.2, 0.9, 0.1, 0.3, 0.4};
  for (size_t i = 0; i < scores.size(); ++i)
    Value(saver.Save(session, folder + "/m", static_cast<int64_t>(i), scores[i]));
  MUST(saver.Wait());
  EXPECT_EQ(there(), "134");
  EXPECT_EQ(millrace::BestCheckpoint(folder), folder + "/m-1");

  // Another process goes on: what was best makes room for what is better.
  Saver later(net.graph, millrace::SaverOptions{.max_to_keep = 2, .keep_best = 1});
  MUST(later.RecoverLastCheckpoints(saver.last_checkpoints()));
  Value(later.Save(session, folder + "/m", 5, 0.95));
  Value(later.Save(session, folder + "/m", 6));
  Value(later.Save(session, folder + "/m", 7));
  EXPECT_EQ(there(), "567");
  EXPECT_EQ(millrace::BestCheckpoint(folder), folder + "/m-5");
  EXPECT_EQ(CodeOf([&] { return later.Save(session, folder + "/m", 8, std::nan("")); }), TF_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { return Saver(net.graph).Save(session, folder + "/m", 8, 0.5); }), TF_INVALID_ARGUMENT);
  std::ofstream(folder + "/checkpoint.scores") << "nonsense";
  EXPECT_EQ(CodeOf([&] { return later.Save(session, folder + "/m", 8, 0.5); }), TF_DATA_LOSS);
}

CLIENT_TEST(ModelsAnswerBySignature) {
  Net net;
  millrace::Scope& s = net.model.scope();
  const Output x = s.WithName("x").Placeholder(millrace::DType::kFloat, {-1, 2});
  const Output y = s.WithName("y").Op("Add", {s.Op("Mul", {x, net.a.read}), net.b.read});
  const std::string folder = Fresh("model"), asset = folder + "/count.txt";
  std::ofstream(asset) << "10";
  const Output file = s.WithName("file").Const(Tensor(asset));
  const Output count = s.Op("StringToNumber", {s.Op("ReadFile", {file})});
  const Operation loaded = s.WithName("when_loaded").Op("AssignAdd", {net.b.ref, count});
  const Session session(net.graph);
  MUST(session.RunTargets({net.init}));
  const std::map<std::string, millrace::Signature> signatures = {
      {"serving_default", {.inputs = {{"in", x}}, .outputs = {{"out", y}}}}};
  millrace::SavedModelOptions options;
  options.main_op = loaded;
  options.assets = {{asset, file}};
  MUST(millrace::SaveModel(session, net.graph, folder + "/saved", signatures, options));
  std::filesystem::remove(asset);

  const millrace::SavedModel model = Value(millrace::SavedModel::Load(folder + "/saved"));
  ASSERT_EQ(model.signatures().count("serving_default"), 1u);
  const Tensor in = Tensor::Of<float>({1, 2}, {10, 10});
  const auto out = Value(model.Run("serving_default", {{"in", in}}));
  EXPECT_EQ(Value(out.at("out").values<float>()), (std::vector<float>{23, 33})) << "b is 3, and 10 from the asset";
  const Ending unknown = EndOf([&] { return model.Run("classify", {}); });
  EXPECT_EQ(unknown.code, TF_NOT_FOUND);
  EXPECT_NE(unknown.message.find("serving_default"), std::string::npos);
  EXPECT_EQ(CodeOf([&] { return model.Run("serving_default", {{"x", in}}); }), TF_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { return millrace::SavedModel::Load(folder + "/saved", {"train"}); }), TF_NOT_FOUND);
  EXPECT_EQ(CodeOf([&] { return millrace::SaveModel(session, net.graph, folder + "/saved", signatures); }),
            TF_ALREADY_EXISTS);
  EXPECT_EQ(CodeOf([&] {
              return millrace::SaveModel(session, net.graph, folder + "/new", {{"f", {.inputs = {{"x", {}}}}}});
            }),
            TF_INVALID_ARGUMENT);
}

}  // namespace
