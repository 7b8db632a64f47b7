// SPDX-License-Identifier: Apache-2.0
// Metrics by thresholds and rankings, and gradients that are checked. Compiled twice, as client_test.cc. What is wanted
// is counted here, example by example.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "client_modes.h"
#include "millrace/gradient_check.h"
#include "millrace/ranking_metrics.h"

namespace {

using millrace::DType;
using millrace::Graph;
using millrace::Metric;
using millrace::Output;
using millrace::Scope;
using millrace::Session;
using millrace::Shape;
using millrace::Tensor;
namespace metrics = millrace::metrics;

std::vector<float> Floats(const Session& session, Output o) {
  return Value(Value(session.Run({o}))[0].values<float>());
}

CLIENT_TEST(ThresholdsSeparate) {
  Graph graph;
  Scope s(graph);
  const Output labels = s.Placeholder(DType::kBool, {-1}), said = s.Placeholder(DType::kFloat, {-1}),
               weights = s.Placeholder(DType::kFloat, {-1});
  const std::vector<float> at = {0.2f, 0.5f, 0.9f};
  const std::vector<Metric> all = {
      metrics::TruePositivesAtThresholds(s, labels, said, at, weights),
      metrics::FalsePositivesAtThresholds(s, labels, said, at, weights),
      metrics::TrueNegativesAtThresholds(s, labels, said, at, weights),
      metrics::FalseNegativesAtThresholds(s, labels, said, at, weights),
      metrics::PrecisionAtThresholds(s, labels, said, at, weights),
      metrics::RecallAtThresholds(s, labels, said, at, weights)};
  const Metric sensitivity = metrics::SensitivityAtSpecificity(s, labels, said, 0.5f, weights, 11),
               specificity = metrics::SpecificityAtSensitivity(s, labels, said, 0.5f, weights, 11);
  const Session session(graph);
  for (const Metric& m : all) MUST(session.RunTargets({m.reset}));
  MUST(session.RunTargets({sensitivity.reset, specificity.reset}));
  std::mt19937 random(7);
  std::vector<float> p, w;
  std::vector<bool> l;
  std::vector<std::vector<float>> last(all.size());
  for (int batch = 0; batch < 3; ++batch) {
    std::vector<float> bp, bw;
    bool bl[20];
    for (bool& is : bl) {
      bp.push_back(static_cast<float>(random() % 1000) / 1000.f + 0.0005f);
      bw.push_back(static_cast<float>(random() % 4));
      is = random() % 2 == 0;
      l.push_back(is);
    }
    p.insert(p.end(), bp.begin(), bp.end());
    w.insert(w.end(), bw.begin(), bw.end());
    const std::vector<millrace::Feed> feeds = {
        {labels, Tensor::Of({20}, bl, 20)}, {said, Tensor::Of({20}, bp)}, {weights, Tensor::Of({20}, bw)}};
    for (size_t m = 0; m < all.size(); ++m) {
      last[m] = Value(Value(session.Run(feeds, {all[m].update}))[0].values<float>());
    }
    Value(session.Run(feeds, {sensitivity.update, specificity.update}));
  }
  const auto counts = [&](float threshold) {
    std::vector<double> c(4, 0);  // tp, fp, tn, fn
    for (size_t i = 0; i < p.size(); ++i) c[p[i] > threshold ? (l[i] ? 0 : 1) : (l[i] ? 3 : 2)] += w[i];
    return c;
  };
  for (size_t t = 0; t < at.size(); ++t) {
    const std::vector<double> c = counts(at[t]);
    const double wanted[] = {c[0], c[1], c[2], c[3], c[0] / (c[0] + c[1] + 1e-7), c[0] / (c[0] + c[3] + 1e-7)};
    for (size_t m = 0; m < all.size(); ++m) {
      EXPECT_NEAR(Floats(session, all[m].value)[t], wanted[m], 1e-5) << m << " at " << at[t];
      EXPECT_EQ(last[m], Floats(session, all[m].value)) << m;
    }
  }
  const auto rate = [&](bool of_true, float threshold) {
    const std::vector<double> c = counts(threshold);
    return of_true ? c[0] / (c[0] + c[3] + 1e-7) : c[2] / (c[2] + c[1] + 1e-7);
  };
  for (const bool of_true : {true, false}) {
    double nearest = 2, wanted = 0;
    for (int i = 0; i <= 10; ++i) {
      const float threshold = i == 0 ? -1e-7f : i == 10 ? 1 + 1e-7f : static_cast<float>(i) / 10.f;
      const double off = std::abs(rate(!of_true, threshold) - 0.5);
      if (off < nearest - 1e-6) nearest = off, wanted = rate(of_true, threshold);
    }
    EXPECT_NEAR(Floats(session, of_true ? sensitivity.value : specificity.value)[0], wanted, 1e-5) << of_true;
  }
}

CLIENT_TEST(RankingsAreMeasured) {
  Graph graph;
  Scope s(graph);
  constexpr int kClasses = 7, kBatch = 5, kLabels = 3;
  const Output labels = s.Placeholder(DType::kInt64, {-1, kLabels}),
               said = s.Placeholder(DType::kFloat, {-1, kClasses}), weights = s.Placeholder(DType::kFloat, {-1});
  const Metric recall = metrics::RecallAtK(s, labels, said, 2),
               precision = metrics::PrecisionAtK(s, labels, said, 3, weights),
               average = metrics::AveragePrecisionAtK(s, labels, said, 4);
  const Output one_label = s.Placeholder(DType::kInt64, {-1});
  const Metric recall_of_one = metrics::RecallAtK(s, one_label, said, 2);
  const Session session(graph);
  MUST(session.RunTargets({recall.reset, precision.reset, average.reset, recall_of_one.reset}));
  std::mt19937 random(11);
  double hits = 0, wanted_hits = 0, in_top = 0, top = 0, averages = 0, examples = 0, one_hits = 0;
  for (int batch = 0; batch < 4; ++batch) {
    std::vector<float> p, w;
    std::vector<int64_t> l, first;
    for (int e = 0; e < kBatch; ++e) {
      std::vector<int> order(kClasses);
      for (int c = 0; c < kClasses; ++c) order[static_cast<size_t>(c)] = c;
      std::shuffle(order.begin(), order.end(), random);
      std::vector<float> row(kClasses);
      for (int r = 0; r < kClasses; ++r)
        row[static_cast<size_t>(order[static_cast<size_t>(r)])] = static_cast<float>(kClasses - r);
      p.insert(p.end(), row.begin(), row.end());
      w.push_back(static_cast<float>(random() % 3));
      std::set<int64_t> set;
      for (int i = 0; i < kLabels; ++i) l.push_back(static_cast<int64_t>(random() % kClasses)), set.insert(l.back());
      first.push_back(l[l.size() - kLabels]);
      const auto is_label = [&](int r) { return set.contains(order[static_cast<size_t>(r)]); };
      hits += is_label(0) + is_label(1);
      wanted_hits += static_cast<double>(set.size());
      one_hits += order[0] == first.back() || order[1] == first.back();
      in_top += w.back() * (is_label(0) + is_label(1) + is_label(2));
      top += 3 * w.back();
      double sum = 0, so_far = 0;
      for (int r = 0; r < 4; ++r) {
        if (is_label(r)) sum += ++so_far / (r + 1);
      }
      averages += sum / std::min<double>(4, static_cast<double>(set.size()));
      ++examples;
    }
    Value(session.Run(
        {{labels, Tensor::Of({kBatch, kLabels}, l)},
         {one_label, Tensor::Of({kBatch}, first)},
         {said, Tensor::Of({kBatch, kClasses}, p)},
         {weights, Tensor::Of({kBatch}, w)}},
        {recall.update, precision.update, average.update, recall_of_one.update}));
  }
  EXPECT_NEAR(Floats(session, recall.value)[0], hits / wanted_hits, 1e-5);
  EXPECT_NEAR(Floats(session, recall_of_one.value)[0], one_hits / examples, 1e-5);
  EXPECT_NEAR(Floats(session, precision.value)[0], in_top / top, 1e-5);
  EXPECT_NEAR(Floats(session, average.value)[0], averages / examples, 1e-5);
}

CLIENT_TEST(ClassesAndPartsAreCounted) {
  Graph graph;
  Scope s(graph);
  const Output labels = s.Placeholder(DType::kInt64, {-1}), said = s.Placeholder(DType::kInt64, {-1}),
               weights = s.Placeholder(DType::kFloat, {-1});
  const Metric classes = metrics::MeanPerClassAccuracy(s, labels, said, 4, weights),
               below = metrics::PercentageBelow(s, weights, 1.5f);
  const Session session(graph);
  MUST(session.RunTargets({classes.reset, below.reset}));
  const auto run = [&](const Tensor& l, const Tensor& p, const Tensor& w) {
    Value(session.Run({{labels, l}, {said, p}, {weights, w}}, {classes.update, below.update}));
  };
  run({int64_t{0}, int64_t{0}, int64_t{1}}, {int64_t{0}, int64_t{2}, int64_t{1}}, {3.f, 1.f, 2.f});
  run({int64_t{2}, int64_t{2}}, {int64_t{2}, int64_t{3}}, {1.f, 1.f});
  EXPECT_NEAR(Floats(session, classes.value)[0], (3 / 4.0 + 1 + 1 / 2.0 + 0) / 4, 1e-6) << "class 3 is nowhere";
  EXPECT_NEAR(Floats(session, below.value)[0], 3 / 5.0, 1e-6);
}

// Two batches, and what TensorFlow 1.15.5 says of them.
CLIENT_TEST(AreasAreThoseOfPython) {
  Graph graph;
  Scope s(graph);
  const Output labels = s.Placeholder(DType::kBool, {-1}), said = s.Placeholder(DType::kFloat, {-1}),
               weights = s.Placeholder(DType::kFloat, {-1});
  using metrics::Curve;
  using metrics::Summation;
  struct Case {
    Curve curve;
    Summation summation;
    float wanted;
  };
  const Case cases[] = {
      {Curve::kRoc, Summation::kTrapezoidal, 0.8854165077f},
      {Curve::kRoc, Summation::kCarefulInterpolation, 0.8854165077f},
      {Curve::kRoc, Summation::kMinoring, 0.8749998212f},
      {Curve::kRoc, Summation::kMajoring, 0.8958331347f},
      {Curve::kPrecisionRecall, Summation::kTrapezoidal, 0.9456114173f},
      {Curve::kPrecisionRecall, Summation::kCarefulInterpolation, 0.9455237389f},
      {Curve::kPrecisionRecall, Summation::kMinoring, 0.9428569674f},
      {Curve::kPrecisionRecall, Summation::kMajoring, 0.9483658075f}};
  std::vector<Metric> all;
  for (const Case& c : cases) all.push_back(metrics::Auc(s, labels, said, weights, 11, c.curve, c.summation));
  const Session session(graph);
  for (const Metric& m : all) MUST(session.RunTargets({m.reset}));
  const auto run = [&](const bool(&l)[4], const std::vector<float>& p, const std::vector<float>& w) {
    for (const Metric& m : all) {
      Value(session.Run(
          {{labels, Tensor::Of({4}, l, 4)}, {said, Tensor::Of({4}, p)}, {weights, Tensor::Of({4}, w)}}, {m.update}));
    }
  };
  run({false, true, true, false}, {.1f, .8f, .35f, .6f}, {1, 2, .5f, 1});
  run({true, false, false, true}, {.9f, .2f, .55f, .05f}, {3, 1, 1, .5f});
  for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(Floats(session, all[i].value)[0], cases[i].wanted, 1e-6) << i;
}

CLIENT_TEST(MeansOfErrorsAndElementsAreThoseOfPython) {
  Graph graph;
  Scope s(graph);
  const Output labels = s.Placeholder(DType::kFloat, {4}), said = s.Placeholder(DType::kFloat, {4}),
               weights = s.Placeholder(DType::kFloat, {4});
  const Output a = s.Placeholder(DType::kFloat, {2, 2}), b = s.Placeholder(DType::kFloat, {2, 2}),
               by_row = s.Placeholder(DType::kFloat, {2, 1});
  const Metric relative = metrics::MeanRelativeError(s, labels, said, labels, weights),
               cosine = metrics::MeanCosineDistance(s, a, b, 1, by_row), each = metrics::MeanTensor(s, a, by_row);
  const Session session(graph);
  MUST(session.RunTargets({relative.reset, cosine.reset, each.reset}));
  const auto run = [&](std::vector<float> l, std::vector<float> p, std::vector<float> w, std::vector<float> x,
                       std::vector<float> y, std::vector<float> r) {
    Value(session.Run(
        {{labels, Tensor::Of({4}, l)},
         {said, Tensor::Of({4}, p)},
         {weights, Tensor::Of({4}, w)},
         {a, Tensor::Of({2, 2}, x)},
         {b, Tensor::Of({2, 2}, y)},
         {by_row, Tensor::Of({2, 1}, r)}},
        {relative.update, cosine.update, each.update}));
  };
  run({1, 2, 4, 0}, {2, 2, 3, 5}, {1, 1, 2, 1}, {.6f, .8f, 1, 0}, {.8f, .6f, 0, 1}, {1, 2});
  run({5, 1, 1, 1}, {4, 1, 1, 1}, {1, 1, 1, 1}, {0, 1, .8f, .6f}, {.6f, .8f, .8f, .6f}, {.5f, 0});
  EXPECT_NEAR(Floats(session, relative.value)[0], (1 + 0 + 2 * 0.25 + 0 + 0.2) / 9, 1e-6) << "0 where the label is 0";
  EXPECT_NEAR(Floats(session, cosine.value)[0], 0.6114285588f, 1e-6);
  const std::vector<float> means = Floats(session, each.value), wanted = {0.4f, 0.8666666150f, 1, 0};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(means[i], wanted[i], 1e-6) << i;
  EXPECT_EQ(CodeOf([] {
              Graph g;
              Scope scope(g);
              metrics::MeanTensor(scope, scope.Placeholder(DType::kFloat, {-1}));
              return millrace::internal::Finish(g.status());
            }),
            TF_INVALID_ARGUMENT);
}

CLIENT_TEST(RankingsOfOneClassAreThoseOfPython) {
  Graph graph;
  Scope s(graph);
  const Output labels = s.Placeholder(DType::kInt64, {-1, 2}), said = s.Placeholder(DType::kFloat, {-1, 4}),
               weights = s.Placeholder(DType::kFloat, {-1});
  const std::vector<Metric> all = {
      metrics::RecallAtK(s, labels, said, 2, weights, 1), metrics::PrecisionAtK(s, labels, said, 2, weights, 1),
      metrics::RecallAtK(s, labels, said, 2, weights, 2), metrics::PrecisionAtK(s, labels, said, 2, weights, 2)};
  const Session session(graph);
  for (const Metric& m : all) MUST(session.RunTargets({m.reset}));
  const auto run = [&](std::vector<int64_t> l, std::vector<float> p, std::vector<float> w) {
    for (const Metric& m : all) {
      Value(session.Run(
          {{labels, Tensor::Of({3, 2}, l)}, {said, Tensor::Of({3, 4}, p)}, {weights, Tensor::Of({3}, w)}}, {m.update}));
    }
  };
  run({1, 2, 2, 2, 3, 0}, {.1f, .4f, .3f, .2f, .5f, .1f, .3f, .1f, .2f, .2f, .1f, .5f}, {1, 2, .5f});
  run({1, 1, 0, 2, 2, 3}, {.6f, .3f, .05f, .05f, .1f, .2f, .4f, .3f, .3f, .4f, .2f, .1f}, {1, 1, 3});
  const float wanted[] = {1, 0.4f, 0.5714285714f, 1};
  for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(Floats(session, all[i].value)[0], wanted[i], 1e-6) << i;
}

CLIENT_TEST(GradientsAreChecked) {
  Graph graph;
  Scope s(graph);
  const Output x = s.Placeholder(DType::kDouble, {2, 2}), other = s.Placeholder(DType::kDouble, {2, 3});
  const Output y = s.Op("MatMul", {s.Op("Tanh", {x}), other});
  const millrace::GradientCheck right(s, x, y), wrong(s, x, s.Op("Add", {y, s.Op("StopGradient", {y})})),
      none(s, x, s.Op("Mul", {other, other}));
  const Session session(graph);
  const Tensor at = Tensor::Of({2, 2}, std::vector<double>{0.5, -1, 2, 0.1});
  const std::vector<millrace::Feed> feeds = {{other, Tensor::Of({2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6})}};
  const millrace::Jacobians j = Value(right.Run(session, at, feeds, 1e-5));
  ASSERT_EQ(j.of_gradients.size(), 24u);
  // y[0, k] = tanh(x[0, 0]) * other[0, k] + ...
  EXPECT_NEAR(j.of_gradients[1], (1 - std::tanh(0.5) * std::tanh(0.5)) * 2, 1e-12);
  EXPECT_EQ(j.of_gradients[3], 0) << "y[1, 0] does not depend on x[0, 0]";
  EXPECT_LT(j.MaxError(), 1e-8);
  EXPECT_LT(Value(right.Error(session, at, feeds, 1e-5)), 1e-8);
  EXPECT_GT(Value(wrong.Error(session, at, feeds, 1e-5)), 1) << "half of it is hidden from the gradient";
  EXPECT_EQ(Value(none.Error(session, at, feeds, 1e-5)), 0);
  EXPECT_EQ(CodeOf([&] { return right.Run(session, Tensor(1.0f), feeds); }), TF_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { return right.Run(session, at, feeds, 0); }), TF_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([] {
              Graph g;
              Scope scope(g);
              const Output n = scope.Placeholder(DType::kInt32);
              const millrace::GradientCheck check(scope, n, n);
              return millrace::internal::Finish(g.status());
            }),
            TF_INVALID_ARGUMENT);
}

}  // namespace
