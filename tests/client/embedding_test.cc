// SPDX-License-Identifier: Apache-2.0
// Embeddings in several tables, losses over samples, batches and record files. Compiled twice, as client_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "client_modes.h"
#include "millrace/data.h"
#include "millrace/embedding.h"
#include "millrace/input.h"

namespace {

using millrace::DType;
using millrace::Graph;
using millrace::Operation;
using millrace::Output;
using millrace::Outputs;
using millrace::Scope;
using millrace::Session;
using millrace::Tensor;
using millrace::Variable;

struct Net {
  Graph graph;
  millrace::Model model{Scope(graph), 3};
  Scope s{graph};
};

CLIENT_TEST(LookUpsFindRowsInTheirTables) {
  Net net;
  const std::vector<Variable> tables =
      millrace::AddEmbedding(net.model, "words", 7, 2, 3, {"/job:ps/task:0", "/job:ps/task:1"});
  ASSERT_EQ(tables.size(), 3u);
  EXPECT_STREQ(millrace::Api().OperationDevice(tables[1].ref.get().oper), "/job:ps/task:1");
  EXPECT_EQ(tables[2].name(), "words/part_2");
  EXPECT_EQ(CodeOf([] {
              Net other;
              millrace::AddEmbedding(other.model, "w", 1, 2, 3);
              return millrace::internal::Finish(other.graph.status());
            }),
            TF_INVALID_ARGUMENT);

  Net local;
  std::vector<Variable> parts;
  for (int part = 0; part < 3; ++part) {  // row i is {i, 10 i}
    std::vector<float> rows;
    for (int i = part; i < 7; i += 3) rows.insert(rows.end(), {static_cast<float>(i), static_cast<float>(10 * i)});
    const auto count = static_cast<int64_t>(rows.size() / 2);
    parts.push_back(
        local.model.AddVariable("part_" + std::to_string(part), local.s.Const(Tensor::Of({count, 2}, rows))));
  }
  const Output ids = local.s.Const(Tensor::Of<int64_t>({2, 2}, {6, 0, 4, 6}));
  const Output rows = millrace::EmbeddingLookup(local.s, parts, ids);
  const Operation train =
      local.model.Minimize({"GradientDescent", {{"learning_rate", 0.25}}}, local.s.Op("L2Loss", {rows}));
  const Operation init = local.model.Initializer();
  const Session session(local.graph);
  MUST(session.RunTargets({init}));
  const Tensor found = Value(session.Run({rows}))[0];
  EXPECT_EQ(found.shape(), (millrace::Shape{2, 2, 2}));
  EXPECT_EQ(Value(found.values<float>()), (std::vector<float>{6, 60, 0, 0, 4, 40, 6, 60}));
  MUST(session.RunTargets({train}));  // row 6 is there twice: it loses a half, row 4 a quarter
  EXPECT_EQ(Value(Value(session.Run({rows}))[0].values<float>()), (std::vector<float>{3, 30, 0, 0, 3, 30, 3, 30}));
}

CLIENT_TEST(LookUpsFindRowsThatFollowEachOther) {
  Net net;
  std::vector<Variable> parts;
  int next = 0;
  for (int part = 0; part < 3; ++part) {  // seven rows: three in the first table, two in each other; row i is {i, 10 i}
    std::vector<float> rows;
    for (const int end = next + (part == 0 ? 3 : 2); next < end; ++next) {
      rows.insert(rows.end(), {static_cast<float>(next), static_cast<float>(10 * next)});
    }
    const auto count = static_cast<int64_t>(rows.size() / 2);
    parts.push_back(net.model.AddVariable("part_" + std::to_string(part), net.s.Const(Tensor::Of({count, 2}, rows))));
  }
  const Output ids = net.s.Placeholder(DType::kInt64, {-1});
  const Output rows = millrace::EmbeddingLookup(net.s, parts, ids, millrace::PartitionStrategy::kDiv);
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  const Tensor all = {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5}, int64_t{6}};
  EXPECT_EQ(Value(Value(session.Run({{ids, all}}, {rows}))[0].values<float>()),
            (std::vector<float>{0, 0, 1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60}));
  for (const int64_t bad : {int64_t{7}, int64_t{-1}}) {
    EXPECT_EQ(CodeOf([&] { return session.Run({{ids, Tensor({bad})}}, {rows}); }), TF_INVALID_ARGUMENT) << bad;
  }
}

CLIENT_TEST(SparseLookUpsCombineRows) {
  Net net;
  std::vector<Variable> parts;
  for (int part = 0; part < 2; ++part) {  // row i is {i, i * i}
    std::vector<float> rows;
    for (int i = part; i < 6; i += 2) rows.insert(rows.end(), {static_cast<float>(i), static_cast<float>(i * i)});
    parts.push_back(net.model.AddVariable("part_" + std::to_string(part), net.s.Const(Tensor::Of({3, 2}, rows))));
  }
  millrace::SparseIds ids;  // {1, 4, 4}, {2}, {5, 0}
  ids.indices = net.s.Const(Tensor::Of<int64_t>({6, 2}, {0, 0, 0, 1, 0, 2, 1, 0, 2, 0, 2, 1}));
  ids.values = net.s.Const(Tensor::Of<int64_t>({6}, {1, 4, 4, 2, 5, 0}));
  millrace::SparseIds weighted = ids;
  weighted.weights = net.s.Const(Tensor::Of<float>({6}, {2, 0.5f, 1, -3, 1, 7}));
  const std::vector<std::vector<int>> row_ids = {{1, 4, 4}, {2}, {5, 0}};
  const std::vector<std::vector<double>> row_weights = {{2, 0.5, 1}, {-3}, {1, 7}};
  Outputs outputs;
  std::vector<double> wanted;
  for (const bool has_weights : {false, true}) {
    for (const auto combiner : {millrace::Combiner::kSum, millrace::Combiner::kMean, millrace::Combiner::kSqrtN}) {
      outputs.push_back(millrace::EmbeddingLookupSparse(net.s, parts, has_weights ? weighted : ids, combiner));
      for (size_t r = 0; r < row_ids.size(); ++r) {
        double sum[2] = {0, 0}, weight = 0, squares = 0;
        for (size_t i = 0; i < row_ids[r].size(); ++i) {
          const double w = has_weights ? row_weights[r][i] : 1, id = row_ids[r][i];
          sum[0] += w * id;
          sum[1] += w * id * id;
          weight += w;
          squares += w * w;
        }
        const double by =
            combiner == millrace::Combiner::kSum ? 1
            : combiner == millrace::Combiner::kMean
                ? weight
                : std::sqrt(squares);
        for (const double s : sum) wanted.push_back(s / by);
      }
    }
  }
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  std::vector<float> got;
  for (const Tensor& t : Value(session.Run(outputs))) {
    EXPECT_EQ(t.shape(), (millrace::Shape{3, 2}));
    const std::vector<float> values = Value(t.values<float>());
    got.insert(got.end(), values.begin(), values.end());
  }
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

CLIENT_TEST(SampledLossesOverAllClassesAreWhole) {
  Net net;
  constexpr int kClasses = 5;
  std::vector<float> w, b;
  for (int i = 0; i < kClasses * 3; ++i) w.push_back(std::sin(static_cast<float>(i)));
  for (int i = 0; i < kClasses; ++i) b.push_back(std::cos(static_cast<float>(i)));
  const Output weights = net.s.Const(Tensor::Of({kClasses, 3}, w)), biases = net.s.Const(Tensor::Of({kClasses}, b));
  const Output inputs = net.s.Const(Tensor::Of<float>({2, 3}, {1, 2, 3, -1, 0.5f, 1}));
  const Output labels = net.s.Const({int64_t{4}, int64_t{1}});
  millrace::SampledOptions all;
  all.num_sampled = all.num_classes = kClasses;
  all.sampler = "Uniform";
  all.seed = 1;
  const Output softmax = millrace::SampledSoftmaxLoss(net.s, weights, biases, labels, inputs, all);
  const Output nce = millrace::NceLoss(net.s, weights, biases, labels, inputs, all);
  const Output logits = net.s.Op("BiasAdd", {net.s.Op("MatMul", {inputs, weights}, {{"transpose_b", true}}), biases});
  const Operation drawn =
      net.s.Op("UniformCandidateSampler", {net.s.Op("Reshape", {labels, Tensor({-1, 1})})},
               {{"num_true", 1}, {"num_sampled", kClasses}, {"unique", true}, {"range_max", kClasses}, {"seed", 1}});
  const std::vector<Tensor> out = Value(Session(net.graph).Run({softmax, nce, logits, drawn[2]}));
  const std::vector<float> l = Value(out[2].values<float>());
  const int label[] = {4, 1};
  for (size_t row = 0; row < 2; ++row) {
    double sum = 0;
    for (size_t c = 0; c < kClasses; ++c) sum += std::exp(static_cast<double>(l[row * kClasses + c]));
    const double wanted = std::log(sum) - static_cast<double>(l[row * kClasses + static_cast<size_t>(label[row])]);
    EXPECT_NEAR(Value(out[0].values<float>())[row], wanted, 1e-4) << "all classes are as likely to be drawn";
    // The label as a true one, then each class as a false one; all are expected as often.
    const double often = std::log(static_cast<double>(Value(out[3].values<float>())[0]));
    double nce_loss = 0;
    for (size_t c = 0; c < kClasses; ++c) {
      const double logit = static_cast<double>(l[row * kClasses + c]) - often;
      nce_loss += std::log1p(std::exp(logit));
      if (static_cast<int>(c) == label[row]) nce_loss += std::log1p(std::exp(-logit));
    }
    EXPECT_NEAR(Value(out[1].values<float>())[row], nce_loss, 1e-3);
  }
}

CLIENT_TEST(SampledLossesTakeSeveralLabels) {
  Net net;
  constexpr int kClasses = 5;
  std::vector<float> w, b;
  for (size_t i = 0; i < kClasses * 3; ++i) w.push_back(std::sin(static_cast<float>(i)));
  for (size_t i = 0; i < kClasses; ++i) b.push_back(std::cos(static_cast<float>(i)));
  const Output weights = net.s.Const(Tensor::Of({kClasses, 3}, w)), biases = net.s.Const(Tensor::Of({kClasses}, b));
  const Output inputs = net.s.Const(Tensor::Of<float>({2, 3}, {1, 2, 3, -1, 0.5f, 1}));
  const Output labels = net.s.Const(Tensor::Of<int64_t>({2, 2}, {4, 0, 1, 2}));
  millrace::SampledOptions all;
  all.num_sampled = all.num_classes = kClasses;
  all.num_true = 2;
  all.sampler = "Uniform";
  all.seed = 1;
  millrace::SampledOptions no_hits = all;
  no_hits.remove_accidental_hits = true;
  const Output softmax = millrace::SampledSoftmaxLoss(net.s, weights, biases, labels, inputs, all);
  const Output nce = millrace::NceLoss(net.s, weights, biases, labels, inputs, all);
  const Output nce_without = millrace::NceLoss(net.s, weights, biases, labels, inputs, no_hits);
  const Operation drawn =
      net.s.Op("UniformCandidateSampler", {labels},
               {{"num_true", 2}, {"num_sampled", kClasses}, {"unique", true}, {"range_max", kClasses}, {"seed", 1}});
  const Output logits = net.s.Op("BiasAdd", {net.s.Op("MatMul", {inputs, weights}, {{"transpose_b", true}}), biases});
  const std::vector<Tensor> out = Value(Session(net.graph).Run({softmax, nce, nce_without, logits, drawn[2]}));
  // TensorFlow 1.15.5's: all classes are as likely to be drawn, so that it does not matter how often.
  EXPECT_NEAR(Value(out[0].values<float>())[0], 1.595724106, 1e-5);
  EXPECT_NEAR(Value(out[0].values<float>())[1], 2.708896160, 1e-5);
  const std::vector<float> l = Value(out[3].values<float>());
  const double often = std::log(static_cast<double>(Value(out[4].values<float>())[0]));
  const std::set<size_t> label[] = {{4, 0}, {1, 2}};
  for (size_t row = 0; row < 2; ++row) {
    double both = 0, without = 0;
    for (size_t c = 0; c < kClasses; ++c) {
      const double logit = static_cast<double>(l[row * kClasses + c]) - often;
      const double tail = std::log1p(std::exp(logit));
      both += tail;
      if (label[row].count(c) == 0) {
        without += tail;
      } else {  // as a label it is one with a chance of a half
        both += tail - logit / 2;
        without += tail - logit / 2;
      }
    }
    EXPECT_NEAR(Value(out[1].values<float>())[row], both, 1e-3) << row;
    EXPECT_NEAR(Value(out[2].values<float>())[row], without, 1e-3) << row;
  }
}

CLIENT_TEST(LookUpsClipLongRows) {
  Net net;
  const Variable table = net.model.AddVariable("table", net.s.Const(Tensor::Of<float>({3, 2}, {3, 4, 0, 0.1f, 0, 0})));
  const auto kMod = millrace::PartitionStrategy::kMod;
  const Output rows =
      millrace::EmbeddingLookup(net.s, {table}, net.s.Const({int64_t{0}, int64_t{1}, int64_t{2}}), kMod, 1);
  const millrace::SparseIds ids = {.indices = net.s.Const(Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 1, 1, 0})),
                                   .values = net.s.Const({int64_t{0}, int64_t{1}, int64_t{2}})};
  const Output sums = millrace::EmbeddingLookupSparse(net.s, {table}, ids, millrace::Combiner::kSum, kMod, 1);
  const Output by = net.s.Const(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Output loss = net.s.Op("Sum", {net.s.Op("Mul", {rows, by}), Tensor({0, 1})});
  const Operation train = net.model.Minimize({"GradientDescent", {{"learning_rate", 1}}}, loss);
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  const std::vector<Tensor> out = Value(session.Run({rows, sums}));
  const auto near = [](const Tensor& got, const std::vector<float>& wanted) {
    const std::vector<float> values = Value(got.values<float>());
    ASSERT_EQ(values.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(values[i], wanted[i], 1e-5) << i;
  };
  near(out[0], {0.6f, 0.8f, 0, 0.1f, 0, 0});
  near(out[1], {0.6f, 0.9f, 0, 0});
  MUST(session.RunTargets({train}));  // gradients as of TensorFlow 1.15.5
  near(Value(session.Run({table.read}))[0], {3 + 0.064f, 4 - 0.048f, -3, 0.1f - 4, -5, -6});
}

CLIENT_TEST(SampledLossesTrain) {
  Net net;
  const Variable weights = net.model.Weights("w", {50, 4}), biases = net.model.Bias("b", 50);
  const Output inputs = net.s.Const(Tensor::Of<float>({2, 4}, {1, 0, 0, 0, 0, 1, 0, 0}));
  const Output labels = net.s.Const({int64_t{7}, int64_t{30}});
  millrace::SampledOptions some;
  some.num_sampled = 8;
  some.num_classes = 50;
  some.seed = 2;
  const Output each = millrace::NceLoss(net.s, weights.read, biases.read, labels, inputs, some);
  const Output loss = net.s.Op("Mean", {each, Tensor({0})});
  const Operation train = net.model.Minimize({"Adagrad", {{"learning_rate", 1}}}, loss);
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  const float before = Value(Value(session.Run({loss}))[0].scalar<float>());
  for (int i = 0; i < 100; ++i) MUST(session.RunTargets({train}));
  EXPECT_LT(Value(Value(session.Run({loss}))[0].scalar<float>()), before / 4);
}

// All batches until the end.
std::vector<std::vector<int64_t>> Batches(Net& net, const millrace::Iterator& it, const millrace::Batched& batch) {
  const Session session(net.graph);
  MUST(session.RunTargets({it.initializer}));
  millrace::Coordinator coordinator;
  batch.runner.Start(session, coordinator);
  std::vector<std::vector<int64_t>> all;
  std::vector<Tensor> values;
  millrace::Status status;
  while ((status = session.TryRun({}, batch.tensors, {}, &values)).ok())
    all.push_back(Value(values[0].values<int64_t>()));
  EXPECT_EQ(status.code(), TF_OUT_OF_RANGE) << status.message();
  coordinator.RequestStop();
  MUST(coordinator.Join());
  return all;
}

CLIENT_TEST(ThreadsMakeBatches) {
  Net net;
  const millrace::Iterator it = millrace::Dataset::Range(net.s, 0, 10).MakeIterator();
  millrace::BatchOptions four;
  four.size = 4;
  four.smaller_final_batch = true;
  using Lists = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(Batches(net, it, millrace::Batch(net.s, it.next, four)), (Lists{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
  four.seed = 5;
  four.threads = 2;
  std::vector<int64_t> seen;
  for (const auto& b : Batches(net, it, millrace::ShuffleBatch(net.s, it.next, four)))
    seen.insert(seen.end(), b.begin(), b.end());
  const std::vector<int64_t> whole = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_NE(seen, whole);
  EXPECT_TRUE(std::is_permutation(seen.begin(), seen.end(), whole.begin(), whole.end())) << seen.size();
}

CLIENT_TEST(RecordsAreReadAsTheyWereWritten) {
  const std::string path = testing::TempDir() + "client_records_" + std::to_string(MILLRACE_EXCEPTIONS);
  const std::vector<std::string> records = {"one", "", std::string("t\0wo", 4), std::string(100000, 'x')};
  millrace::RecordWriter writer(path);
  for (const std::string& r : records) MUST(writer.Write(r));
  MUST(writer.Close());
  Net net;
  const millrace::Iterator it = millrace::Dataset::TFRecord(net.s, {path}).MakeIterator();
  const Session session(net.graph);
  MUST(session.RunTargets({it.initializer}));
  for (const std::string& r : records) EXPECT_EQ(Value(Value(session.Run({it.next[0]}))[0].strings())[0], r);
  EXPECT_EQ(CodeOf([&] { return session.Run({it.next[0]}); }), TF_OUT_OF_RANGE);
  EXPECT_EQ(CodeOf([] {
              millrace::RecordWriter nowhere("/nowhere/at/all");
              return nowhere.Close();
            }),
            TF_NOT_FOUND);
}

}  // namespace
