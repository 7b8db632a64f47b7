// SPDX-License-Identifier: Apache-2.0
// Layers, gradients and rules, averages and metrics of the C++ client. Compiled twice, as client_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "client_modes.h"
#include "millrace/initializers.h"
#include "millrace/io.h"
#include "millrace/layers.h"
#include "millrace/metrics.h"
#include "millrace/moving_averages.h"

namespace {

using millrace::DType;
using millrace::Gradient;
using millrace::Graph;
using millrace::Metric;
using millrace::Model;
using millrace::Operation;
using millrace::Output;
using millrace::Outputs;
using millrace::Scope;
using millrace::Session;
using millrace::Tensor;
using millrace::Variable;
namespace layers = millrace::layers;
namespace metrics = millrace::metrics;

struct Net {
  Graph graph;
  Model model{Scope(graph), 3};
  Scope s{graph};
  std::vector<float> Floats(const Session& session, Output o, const std::vector<millrace::Feed>& feeds = {}) {
    return Value(Value(session.Run(feeds, {o}))[0].values<float>());
  }
  float Float(const Session& session, Output o, const std::vector<millrace::Feed>& feeds = {}) {
    const std::vector<float> all = Floats(session, o, feeds);
    return all.size() == 1 ? all[0] : NAN;
  }
};

CLIENT_TEST(BatchNormUsesTheBatchOrTheAverages) {
  Net net;
  const Output x = net.s.Placeholder(DType::kFloat, {-1, 1, 1, 1}),
               training = net.s.Placeholder(DType::kBool, millrace::Shape{});
  const Output y = net.model.BatchNorm("bn", x, 1, 0.5, 0, training);
  const Output later = net.model.BatchNormInference("bn", x, 0);
  const Output mean = net.graph.Find("bn/moving_mean/read");
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  const Tensor values = Tensor::Of<float>({2, 1, 1, 1}, {2, 6});  // mean 4, variance 4, and 8 of the two as a sample
  const std::vector<millrace::Feed> train = {{x, values}, {training, true}}, test = {{x, values}, {training, false}};
  EXPECT_EQ(net.Floats(session, y, train), (std::vector<float>{-1, 1}));
  EXPECT_EQ(net.Floats(session, y, test), (std::vector<float>{2, 6})) << "the averages are 0 and 1 at first";
  MUST(session.RunTargets(net.model.updates(), train));
  MUST(session.RunTargets(net.model.updates(), test));  // leaves them
  EXPECT_EQ(net.Float(session, mean), 2);
  const float deviation = std::sqrt(4.5f);  // (1 + 8) / 2
  const std::vector<float> inferred = net.Floats(session, y, test), other = net.Floats(session, later, {{x, values}});
  EXPECT_NEAR(inferred[1], 4 / deviation, 1e-6);
  EXPECT_EQ(inferred, other);
}

CLIENT_TEST(LayersHaveTheRightSizesAndValues) {
  Net net;
  const Output x = net.s.Const(Tensor::Of<float>({1, 2, 2, 1}, {1, 2, 3, 4}));
  const Output most = layers::MaxPooling2D(net.s, x), middle = layers::AveragePooling2D(net.s, x);
  const Output flat = layers::Flatten(net.s, x);
  const Output image = net.s.Placeholder(DType::kFloat, {-1, 7, 9, 3});
  const auto shape = [&](Output o) {
    millrace::Shape known;
    EXPECT_TRUE(net.graph.ShapeOf(o, &known));
    return known;
  };
  const layers::Convolution valid = {.height = 3, .width = 5, .stride = 2, .padding = "VALID", .activation = "Relu"};
  EXPECT_EQ(shape(layers::Conv2D(net.model, "conv", image, 3, 4, valid)), (millrace::Shape{-1, 3, 3, 4}));
  EXPECT_EQ(shape(layers::SeparableConv2D(net.model, "sep", image, 3, 4, valid, 2)), (millrace::Shape{-1, 3, 3, 4}));
  const Output grown = layers::Conv2DTranspose(net.model, "up", image, 2, {.stride = 2});
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  EXPECT_EQ(net.Float(session, most), 4);
  EXPECT_EQ(net.Float(session, middle), 2.5f);
  EXPECT_EQ(net.Floats(session, flat).size(), 4u);
  const Tensor zeros = Tensor::Of({2, 7, 9, 3}, std::vector<float>(2 * 7 * 9 * 3, 0));
  EXPECT_EQ(Value(session.Run({{image, zeros}}, {grown}))[0].shape(), (millrace::Shape{2, 14, 18, 2}));
}

CLIENT_TEST(DropoutDropsInTrainingOnly) {
  Net net;
  const Output training = net.s.Placeholder(DType::kBool, millrace::Shape{});
  const Output ones = net.s.Const(Tensor::Of({10000}, std::vector<float>(10000, 1)));
  const Output y = layers::Dropout(net.s, ones, 0.25f, training, 5);
  const Session session(net.graph);
  const std::vector<float> dropped = net.Floats(session, y, {{training, true}});
  const auto zeros = std::count(dropped.begin(), dropped.end(), 0.0f);
  EXPECT_NEAR(static_cast<double>(zeros), 2500, 6 * std::sqrt(10000 * 0.25 * 0.75));
  EXPECT_EQ(std::count(dropped.begin(), dropped.end(), 1 / 0.75f), 10000 - zeros);
  EXPECT_EQ(net.Floats(session, y, {{training, false}}), std::vector<float>(10000, 1));
}

// w = {3, 4}, loss = |w|^2 / 2: the gradient is w.
struct Bowl : Net {
  Variable w, step;
  Output loss;
  Bowl() {
    w = model.AddVariable("w", s.Const({3.0f, 4.0f}));
    step = model.GlobalStep();
    loss = s.Op("L2Loss", {w.read});
  }
};

CLIENT_TEST(GradientsAreClipped) {
  Bowl net;
  const std::vector<Gradient> g = net.model.ComputeGradients(net.loss);
  ASSERT_EQ(g.size(), 1u);
  const Output whole = millrace::ClipByGlobalNorm(net.s, g, 1)[0].dense,
               each = millrace::ClipByNorm(net.s, g, 10)[0].dense,
               cut = millrace::ClipByValue(net.s, g, -1, 3.5f)[0].dense;
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  EXPECT_NEAR(net.Floats(session, whole)[0], 0.6, 1e-6);
  EXPECT_EQ(net.Floats(session, each), (std::vector<float>{3, 4}));
  EXPECT_EQ(net.Floats(session, cut), (std::vector<float>{3, 3.5f}));
}

CLIENT_TEST(UsersWriteRules) {
  Bowl net;
  // Momentum by hand: m = 0.5 m + g; w -= 0.1 m.
  const Model::Rule rule = [](Scope s, const Gradient& g, const std::vector<Variable>& slots) {
    const Output m = s.Op("Add", {s.Op("Mul", {slots[0].read, 0.5f}), g.dense});
    const Operation keep = s.Op("Assign", {slots[0].ref, m});
    return s.WithControl({keep}).Op("AssignSub", {g.variable.ref, s.Op("Mul", {m, 0.1f})});
  };
  const Operation train = net.model.ApplyGradients("Mine", rule, net.model.ComputeGradients(net.loss), 1, net.step);
  EXPECT_TRUE(millrace::FindVariable(net.graph, "w/Mine").ref);
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  double w = 3, m = 0;
  for (int i = 0; i < 5; ++i) {
    MUST(session.RunTargets({train}));
    m = 0.5 * m + w;
    w -= 0.1 * m;
  }
  EXPECT_NEAR(net.Floats(session, net.w.read)[0], w, 1e-6);
  EXPECT_EQ(Value(Value(session.Run({net.step.read}))[0].scalar<int64_t>()), 5);
}

CLIENT_TEST(VariablesLieOnTheDeviceOfTheirScope) {
  Graph graph;
  Model model(Scope(graph).WithDevice("/device:CPU:1"));
  const Variable v = model.AddVariable("v", model.scope().Const({1.f, 2.f}));
  const Output loss = model.scope().Op("L2Loss", {v.read});
  const Model::Rule rule = [](Scope s, const Gradient& g, const std::vector<Variable>& slots) {
    return s.WithControl({s.Op("AssignAdd", {slots[0].ref, g.dense})}).Op("AssignSub", {g.variable.ref, g.dense});
  };
  const Operation train = model.ApplyGradients("Mine", rule, model.ComputeGradients(loss), 1);
  const Operation init = model.Initializer();
  for (const char* name : {"v", "v/Assign", "v/read", "v/Mine", "v/Mine/Assign", "v/Mine/read"}) {
    EXPECT_EQ(graph.Find(name).device(), "/device:CPU:1") << name;
  }
  ASSERT_TRUE(Model(Scope(graph)).AddVariable("free", Scope(graph).Const(1.f)).ref);
  EXPECT_EQ(graph.Find("free/Assign").device(), "");
  millrace::SessionOptions two;
  two.config = millrace::Config{.device_count = {{"CPU", 2}}}.Encode();
  const Session session(graph, two);
  MUST(session.RunTargets({init}));
  MUST(session.RunTargets({train}));
  EXPECT_EQ(Value(Value(session.Run({v.read}))[0].values<float>()), (std::vector<float>{0, 0}));
}

CLIENT_TEST(SparseGradientsAreRowsOrDense) {
  Net net;
  const Variable table = net.model.AddVariable("table", net.s.Const(Tensor::Of<float>({3, 1}, {1, 2, 3})));
  const Output rows = net.s.Op("Gather", {table.read, Tensor({2, 0, 2})});
  const std::vector<Gradient> g = net.model.ComputeGradients(net.s.Op("L2Loss", {rows}));
  ASSERT_TRUE(g[0].values && !g[0].dense);
  const Output dense = millrace::DenseGradient(net.s, g[0]);
  const Operation train = net.model.ApplyGradients({"GradientDescent", {{"learning_rate", 0.5}}}, g);
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  EXPECT_EQ(net.Floats(session, dense), (std::vector<float>{1, 0, 6}));
  MUST(session.RunTargets({train}));
  EXPECT_EQ(net.Floats(session, table.read), (std::vector<float>{0.5f, 2, 0}));
}

CLIENT_TEST(RegularizersAndRates) {
  Bowl net;
  const Output l2 = millrace::L2Regularizer(net.s, 0.1f, {net.w}), l1 = millrace::L1Regularizer(net.s, 0.1f, {net.w});
  const Output halved = millrace::decay::Exponential(net.s, 1, net.step, 2, 0.5f, true);
  const Output inverse = millrace::decay::InverseTime(net.s, 1, net.step, 2, 1);
  const Output pieces = millrace::decay::PiecewiseConstant(net.s, net.step, {2, 4}, {1, 0.5f, 0.25f});
  const Output line = millrace::decay::Polynomial(net.s, 1, net.step, 6, 0.0f);
  const Output cosine = millrace::decay::Cosine(net.s, 1, net.step, 6);
  const Output natural = millrace::decay::NaturalExp(net.s, 1, net.step, 1, 0.5f);
  const Output cycles = millrace::decay::Polynomial(net.s, 1, net.step, 2, 0.0f, 1, true);
  const Output again = millrace::decay::CosineRestarts(net.s, 1, net.step, 2, 1, 0.5f);
  const Output longer = millrace::decay::CosineRestarts(net.s, 1, net.step, 1, 2, 0.5f);
  const Output wavy = millrace::decay::LinearCosine(net.s, 1, net.step, 6, 0.5f, 0.25f, 0.125f);
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  EXPECT_NEAR(net.Float(session, l2), 1.25, 1e-6);
  EXPECT_NEAR(net.Float(session, l1), 0.7, 1e-6);
  MUST(session.RunTargets({net.s.Op("Assign", {net.step.ref, int64_t{3}})}));
  EXPECT_EQ(net.Float(session, halved), 0.5f);
  EXPECT_NEAR(net.Float(session, inverse), 0.4, 1e-6);
  EXPECT_EQ(net.Float(session, pieces), 0.5f);
  EXPECT_NEAR(net.Float(session, line), 0.5, 1e-6);
  EXPECT_NEAR(net.Float(session, cosine), 0.5, 1e-6);
  EXPECT_NEAR(net.Float(session, natural), std::exp(-1.5), 1e-6);
  EXPECT_NEAR(net.Float(session, cycles), 0.25, 1e-6);  // a quarter of four steps is left
  EXPECT_NEAR(net.Float(session, again), 0.25, 1e-6);   // half of the second wave, half as high
  EXPECT_NEAR(net.Float(session, longer), 0.25, 1e-6);  // at the start of the third, which begins behind 1 + 2 steps
  EXPECT_NEAR(net.Float(session, wavy), 0.75 * 0.5 + 0.125, 1e-6);
}

CLIENT_TEST(AveragesFollowVariablesAndAreRestored) {
  Bowl net;
  const Operation train = net.model.Minimize({"GradientDescent", {{"learning_rate", 0.5}}}, net.loss);
  millrace::ExponentialMovingAverage averages(0.75f);
  const Operation update = averages.Apply(net.model, {net.w}, {train});
  EXPECT_EQ(averages.AverageName(net.w), "w/ExponentialMovingAverage");
  millrace::Saver saver(net.graph);
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  MUST(session.RunTargets({update}));
  MUST(session.RunTargets({update}));
  // w: 3, 1.5, 0.75. Average: 3, 2.625, 2.15625.
  EXPECT_EQ(net.Floats(session, net.w.read)[0], 0.75f);
  EXPECT_EQ(net.Floats(session, averages.Average(net.w).read)[0], 2.15625f);
  const std::string path =
      Value(saver.Save(session, testing::TempDir() + "client_train_average" + std::to_string(MILLRACE_EXCEPTIONS), -1));
  const std::map<std::string, Variable> named = averages.VariablesToRestore(net.graph);
  EXPECT_EQ(named.size(), 2u) << "w and global_step";
  millrace::Saver evaluation(net.graph, named);
  MUST(evaluation.Restore(session, path));
  EXPECT_EQ(net.Floats(session, net.w.read)[0], 2.15625f);
}

CLIENT_TEST(AveragesBeginSlowlyByTheNumberOfUpdates) {
  Bowl net;
  millrace::ExponentialMovingAverage averages(0.999f, net.step.read);
  const Operation update = averages.Apply(net.model, {net.w});
  const Operation to_zero = net.s.Op("Assign", {net.w.ref, Tensor({0.0f, 0.0f})});
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  MUST(session.RunTargets({to_zero}));
  MUST(session.RunTargets({update}));
  EXPECT_NEAR(net.Floats(session, averages.Average(net.w).read)[0], 0.3, 1e-6) << "decay 1 / 10";
}

CLIENT_TEST(MetricsCountOverSteps) {
  Net net;
  const Output labels = net.s.Placeholder(DType::kInt64, {-1}), said = net.s.Placeholder(DType::kInt64, {-1}),
               weights = net.s.Placeholder(DType::kFloat, {-1});
  const Metric accuracy = metrics::Accuracy(net.s, labels, said),
               weighted = metrics::Accuracy(net.s, labels, said, weights),
               precision = metrics::Precision(net.s, labels, said), recall = metrics::Recall(net.s, labels, said),
               mean = metrics::Mean(net.s, weights);
  const Session session(net.graph);
  const std::vector<Metric> all = {accuracy, weighted, precision, recall, mean};
  Outputs values, updates;
  for (const Metric& m : all) {
    MUST(session.RunTargets({m.reset}));
    values.push_back(m.value);
    updates.push_back(m.update);
  }
  const auto scalars = [&](const std::vector<Tensor>& tensors) {
    std::vector<float> list;
    for (const Tensor& t : tensors) list.push_back(Value(t.scalar<float>()));
    return list;
  };
  EXPECT_EQ(scalars(Value(session.Run(values))), (std::vector<float>{0, 0, 0, 0, 0}));
  const std::vector<float> first = scalars(Value(session.Run(
      {{labels, {int64_t{1}, int64_t{0}, int64_t{1}}},
       {said, {int64_t{1}, int64_t{1}, int64_t{0}}},
       {weights, {2.f, 1.f, 1.f}}},
      updates)));
  EXPECT_EQ(first, (std::vector<float>{1 / 3.f, 0.5f, 0.5f, 0.5f, 4 / 3.f}));
  Value(session.Run({{labels, {int64_t{1}}}, {said, {int64_t{1}}}, {weights, {4.f}}}, updates));
  const std::vector<float> second = scalars(Value(session.Run(values)));
  EXPECT_EQ(second, (std::vector<float>{0.5f, 0.75f, 2 / 3.f, 2 / 3.f, 2}));
  MUST(session.RunTargets({accuracy.reset}));
  EXPECT_EQ(net.Float(session, accuracy.value), 0);
}

CLIENT_TEST(ConfusionIsCounted) {
  Net net;
  const Output labels = net.s.Placeholder(DType::kInt64, {-1}), said = net.s.Placeholder(DType::kInt64, {-1}),
               weights = net.s.Placeholder(DType::kFloat, {-1});
  const Metric tp = metrics::TruePositives(net.s, labels, said), fp = metrics::FalsePositives(net.s, labels, said),
               tn = metrics::TrueNegatives(net.s, labels, said, weights),
               fn = metrics::FalseNegatives(net.s, labels, said), iou = metrics::MeanIou(net.s, labels, said, 4),
               weighted = metrics::MeanIou(net.s, labels, said, 4, weights);
  const Session session(net.graph);
  const std::vector<Metric> all = {tp, fp, tn, fn, iou, weighted};
  for (const Metric& m : all) MUST(session.RunTargets({m.reset}));
  EXPECT_EQ(net.Float(session, iou.value), 0);
  const auto update = [&](const Tensor& l, const Tensor& p, const Tensor& w) {
    for (const Metric& m : all) Value(session.Run({{labels, l}, {said, p}, {weights, w}}, {m.update}));
  };
  update({int64_t{0}, int64_t{1}, int64_t{2}}, {int64_t{0}, int64_t{2}, int64_t{0}}, {3.f, 1.f, 2.f});
  update({int64_t{2}, int64_t{0}}, {int64_t{2}, int64_t{1}}, {1.f, 1.f});
  EXPECT_EQ(net.Float(session, tp.value), 2);  // (1, 2) and (2, 2)
  EXPECT_EQ(net.Float(session, fp.value), 1);  // (0, 1)
  EXPECT_EQ(net.Float(session, fn.value), 1);  // (2, 0)
  EXPECT_EQ(net.Float(session, tn.value), 3);  // (0, 0) of weight 3
  // Class 0: one of (0,0), (2,0), (0,1); class 1: none of two; class 2: one of three; class 3 is nowhere.
  EXPECT_NEAR(net.Float(session, iou.value), (1 / 3.0 + 0 + 1 / 3.0) / 3, 1e-6);
  EXPECT_NEAR(net.Float(session, weighted.value), (3 / 6.0 + 0 + 1 / 4.0) / 3, 1e-6);
  const std::vector<millrace::Feed> none_such = {{labels, {int64_t{4}}}, {said, {int64_t{0}}}};
  EXPECT_EQ(CodeOf([&] { return session.Run(none_such, {iou.update}); }), TF_INVALID_ARGUMENT);
}

CLIENT_TEST(VariablesBeginWithValuesOfManyKinds) {
  namespace initializers = millrace::initializers;
  Net net;
  const auto begin = [&](const char* name, Output value) { return net.model.AddVariable(name, value).read; };
  const millrace::Shape shape = {300, 200};
  struct Case {
    const char* name;
    Output value;
    double mean, deviation, most;  // no value is further from the mean
  };
  const double normal = 1 / 0.8796;  // of a normal number without what lies beyond two deviations: 0.8796
  const std::vector<Case> cases = {
      {"constant", begin("constant", initializers::Constant(net.s, shape, 2.5f)), 2.5, 0, 0},
      {"normal", begin("normal", initializers::RandomNormal(net.s, shape, 1, 2, 5)), 1, 2, 20},
      {"truncated", begin("truncated", initializers::TruncatedNormal(net.s, shape, 0, 2, 5)), 0, 2 / normal, 4},
      {"uniform", begin("uniform", initializers::RandomUniform(net.s, shape, -1, 3, 5)), 1, 4 / std::sqrt(12), 2},
      {"glorot", begin("glorot", initializers::GlorotUniform(net.s, shape, 5)), 0, std::sqrt(2 / 500.0),
       std::sqrt(6 / 500.0) * 1.00001},
      {"he", begin("he", initializers::HeNormal(net.s, shape, 5)), 0, std::sqrt(2 / 300.0),
       2 * std::sqrt(2 / 300.0) * normal * 1.001},
      {"lecun", begin("lecun", initializers::LecunUniform(net.s, shape, 5)), 0, std::sqrt(1 / 300.0),
       std::sqrt(3 / 300.0) * 1.00001},
  };
  const Output tall = begin("tall", initializers::Orthogonal(net.s, {2, 10, 7}, 3, 5));
  const Output wide = begin("wide", initializers::Orthogonal(net.s, {7, 20}, 1, 5));
  Net other;
  EXPECT_EQ(CodeOf([&] { return initializers::Orthogonal(other.s, {7}), other.s.status(); }), TF_INVALID_ARGUMENT);
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  for (const Case& c : cases) {
    const std::vector<float> values = net.Floats(session, c.value);
    ASSERT_EQ(values.size(), 60000u);
    double sum = 0, squares = 0, most = 0;
    for (const float v : values) {
      sum += v;
      squares += (v - c.mean) * (v - c.mean);
      most = std::max(most, std::abs(v - c.mean));
    }
    EXPECT_NEAR(sum / 60000, c.mean, 0.02 * c.deviation + 1e-9) << c.name;
    EXPECT_NEAR(std::sqrt(squares / 60000), c.deviation, 0.02 * c.deviation + 1e-9) << c.name;
    EXPECT_LE(most, c.most) << c.name;
  }
  // Columns (or rows) have the length of the gain and are at right angles.
  const auto product = [](const std::vector<float>& m, size_t a, size_t b, size_t count, size_t step, size_t next) {
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += double{m[a * step + i * next]} * double{m[b * step + i * next]};
    return sum;
  };
  const std::vector<float> t = net.Floats(session, tall), w = net.Floats(session, wide);
  for (size_t a = 0; a < 7; ++a) {
    for (size_t b = 0; b < 7; ++b) {
      EXPECT_NEAR(product(t, a, b, 20, 1, 7), a == b ? 9 : 0, 1e-4);
      EXPECT_NEAR(product(w, a, b, 20, 20, 1), a == b ? 1 : 0, 1e-5);
    }
  }
}

CLIENT_TEST(ErrorsAndAreasAreMeasured) {
  Net net;
  const Output labels = net.s.Placeholder(DType::kFloat, {-1}), said = net.s.Placeholder(DType::kFloat, {-1});
  const Metric mse = metrics::MeanSquaredError(net.s, labels, said),
               rmse = metrics::RootMeanSquaredError(net.s, labels, said),
               mae = metrics::MeanAbsoluteError(net.s, labels, said), auc = metrics::Auc(net.s, labels, said);
  const Session session(net.graph);
  MUST(session.RunTargets({mse.reset, rmse.reset, mae.reset, auc.reset}));
  // Of the four pairs of a true one and a false one, three are in the right order.
  const std::vector<millrace::Feed> batch = {{labels, {0.f, 0.f, 1.f, 1.f}}, {said, {0.1f, 0.4f, 0.35f, 0.8f}}};
  Value(session.Run(batch, {mse.update, rmse.update, mae.update, auc.update}));
  EXPECT_NEAR(net.Float(session, mse.value), (0.01 + 0.16 + 0.4225 + 0.04) / 4, 1e-6);
  EXPECT_NEAR(net.Float(session, rmse.value), std::sqrt((0.01 + 0.16 + 0.4225 + 0.04) / 4), 1e-6);
  EXPECT_NEAR(net.Float(session, mae.value), (0.1 + 0.4 + 0.65 + 0.2) / 4, 1e-6);
  EXPECT_NEAR(net.Float(session, auc.value), 0.75, 1e-4);
}

CLIENT_TEST(CheckpointsHaveNoMetrics) {
  Net net;
  const Variable w = net.model.AddVariable("w", net.s.Const(1.0f));
  const Metric mean = metrics::Mean(net.s, w.read);
  EXPECT_TRUE(mean.value);
  millrace::Saver saver(net.graph);
  const Operation init = net.model.Initializer();
  const Session session(net.graph);
  MUST(session.RunTargets({init}));
  const std::string path =
      Value(saver.Save(session, testing::TempDir() + "client_train_local" + std::to_string(MILLRACE_EXCEPTIONS), -1));
  EXPECT_EQ(millrace::CheckpointReader(path).names(), std::vector<std::string>{"w"});
}

}  // namespace
