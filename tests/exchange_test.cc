// SPDX-License-Identifier: Apache-2.0
// Barriers, staging areas and accumulators in steps: who waits for whom, what ends a wait, many clients at once.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "absl/time/clock.h"
#include "graph/graph_builder.h"
#include "system/system.h"

namespace millrace {
namespace {

using absl::StatusCode;
using Types = std::vector<DType>;
using Shapes = std::vector<PartialShape>;
using Feeds = std::vector<std::pair<Output, Tensor>>;

class Exchange : public ::testing::Test {
 protected:
  template <typename Fn>
  void Build(Fn fn) {
    {
      GraphLock lock(&graph_->mu);
      const GraphBuilder b(&graph_->graph);
      fn(b);
      ASSERT_TRUE(b.status().ok()) << b.status();
    }
    auto s = System::Default().NewSession(graph_, {});
    ASSERT_TRUE(s.ok()) << s.status();
    session_ = *std::move(s);
  }
  StatusOr<std::vector<Tensor>> Run(const std::vector<Output>& fetches, const std::vector<Node*>& targets = {},
                                    const Feeds& feeds = {}, int64_t timeout_ms = 0) {
    wire::RunOptions options;
    options.timeout_in_ms = timeout_ms;
    std::vector<Output> to;
    std::vector<Tensor> values, out;
    for (const auto& [o, v] : feeds) {
      to.push_back(o);
      values.push_back(v);
    }
    MR_RETURN_IF_ERROR(session_->Run(&options, to, values, fetches, targets, &out, nullptr));
    return out;
  }
  StatusCode CodeOf(Node* target, const Feeds& feeds = {}, int64_t timeout_ms = 0) {
    return Run({}, {target}, feeds, timeout_ms).status().code();
  }
  int64_t Int(Output o) {
    const auto out = Run({o});
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return -1;
    const Tensor& t = (*out)[0];
    return t.dtype() == DType::kInt32 ? *t.data<int32_t>() : *t.data<int64_t>();
  }
  Output Fed(const GraphBuilder& b, DType dtype) { return b.Op("Placeholder", {}, {{"dtype", dtype}}); }

  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  std::unique_ptr<Session> session_;
};

// ---- Barriers ----

class BarrierSteps : public Exchange {
 protected:
  void Make() {
    Build([&](const GraphBuilder& b) {
      const Output barrier = b.Op(
          "Barrier", {},
          {{"component_types", Types{DType::kInt64, DType::kFloat}},
           {"shapes", Shapes{PartialShape::Scalar(), PartialShape::Scalar()}}});
      keys_ = Fed(b, DType::kString);
      ints_ = Fed(b, DType::kInt64);
      floats_ = Fed(b, DType::kFloat);
      first_ = b.OpNode("BarrierInsertMany", {barrier, keys_, ints_}, {{"component_index", 0}});
      second_ = b.OpNode("BarrierInsertMany", {barrier, keys_, floats_}, {{"component_index", 1}});
      for (const bool small : {false, true}) {
        take_[small] =
            b.OpNode("BarrierTakeMany", {barrier, b.Scalar<int32_t>(2)},
                     {{"component_types", Types{DType::kInt64, DType::kFloat}}, {"allow_small_batch", small}});
      }
      close_ = b.OpNode("BarrierClose", {barrier});
      ready_ = b.Op("BarrierReadySize", {barrier});
      incomplete_ = b.Op("BarrierIncompleteSize", {barrier});
    });
  }
  StatusCode First(std::initializer_list<TString> keys, std::initializer_list<int64_t> v) {
    return CodeOf(first_, {{keys_, Tensor::Vector<TString>(keys)}, {ints_, Tensor::Vector<int64_t>(v)}});
  }
  StatusCode Second(std::initializer_list<TString> keys, std::initializer_list<float> v) {
    return CodeOf(second_, {{keys_, Tensor::Vector<TString>(keys)}, {floats_, Tensor::Vector<float>(v)}});
  }
  StatusOr<std::vector<Tensor>> Take(bool small = false, int64_t timeout_ms = 0) {
    std::vector<Output> all;
    for (int o = 0; o < 4; ++o) all.push_back(take_[small]->output(o));
    return Run(all, {}, {}, timeout_ms);
  }
  Output keys_, ints_, floats_, ready_, incomplete_;
  Node *first_ = nullptr, *second_ = nullptr, *take_[2] = {}, *close_ = nullptr;
};

TEST_F(BarrierSteps, ElementsAreTakenWhenTheyAreComplete) {
  Make();
  EXPECT_EQ(First({"a", "b", "c"}, {1, 2, 3}), StatusCode::kOk);
  EXPECT_EQ(Int(incomplete_), 3);
  EXPECT_EQ(Take(false, 10).status().code(), StatusCode::kDeadlineExceeded);
  std::thread other([&] {
    absl::SleepFor(absl::Milliseconds(10));
    EXPECT_EQ(Second({"c", "a"}, {30, 10}), StatusCode::kOk);
  });
  const auto out = Take();
  other.join();
  ASSERT_TRUE(out.ok()) << out.status();
  std::set<std::pair<int64_t, float>> got;
  for (size_t i = 0; i < 2; ++i) got.insert({(*out)[2].data<int64_t>()[i], (*out)[3].data<float>()[i]});
  EXPECT_EQ(got, (std::set<std::pair<int64_t, float>>{{1, 10.f}, {3, 30.f}}));
  EXPECT_EQ(First({"b"}, {9}), StatusCode::kInvalidArgument) << "it has that component";
  EXPECT_EQ(Int(incomplete_), 1);
  EXPECT_EQ(Int(ready_), 0);
}

TEST_F(BarrierSteps, AClosedBarrierGivesWhatItHas) {
  Make();
  EXPECT_EQ(First({"a"}, {1}), StatusCode::kOk);
  EXPECT_EQ(CodeOf(close_), StatusCode::kOk);
  EXPECT_EQ(First({"new"}, {1}), StatusCode::kCancelled);
  EXPECT_EQ(Take().status().code(), StatusCode::kOutOfRange) << "two will never be there";
  std::thread completes([&] {
    absl::SleepFor(absl::Milliseconds(10));
    EXPECT_EQ(Second({"a"}, {10}), StatusCode::kOk);
  });
  const auto out = Take(true);
  completes.join();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[1].data<TString>()[0].view(), "a");
  EXPECT_EQ(Take(true).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(CodeOf(close_), StatusCode::kCancelled);
}

// ---- Staging areas ----

TEST_F(Exchange, AFullStagingAreaWaits) {
  Node *put = nullptr, *clear = nullptr;
  Output take, fed, size;
  Build([&](const GraphBuilder& b) {
    const auto named = [](const char* name) { return std::pair<const char*, AttrValue>(name, "area"); };
    fed = Fed(b, DType::kInt64);
    const std::pair<const char*, AttrValue> types = {"dtypes", Types{DType::kInt64}}, capacity = {"capacity", 2};
    put = b.OpNode("Stage", {fed}, {types, capacity, named("shared_name")});
    take = b.Op("Unstage", {}, {types, capacity, named("shared_name")});
    size = b.Op("StageSize", {}, {types, capacity, named("shared_name")});
    clear = b.OpNode("StageClear", {}, {types, capacity, named("shared_name")});
  });
  const auto value = [&](int64_t v) { return Feeds{{fed, Tensor::Scalar(v)}}; };
  for (const int64_t v : {1, 2}) EXPECT_EQ(CodeOf(put, value(v)), StatusCode::kOk);
  EXPECT_EQ(CodeOf(put, value(3), 10), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Int(take), 1);
  EXPECT_EQ(CodeOf(clear), StatusCode::kOk);
  EXPECT_EQ(Int(size), 0);
  constexpr int64_t kMany = 500;
  std::thread fills([&] {
    for (int64_t v = 0; v < kMany; ++v) EXPECT_EQ(CodeOf(put, value(v)), StatusCode::kOk);
  });
  std::atomic<int64_t> sum{0};
  std::thread empties([&] {
    for (int64_t v = 0; v < kMany / 2; ++v) sum += Int(take);
  });
  for (int64_t v = 0; v < kMany / 2; ++v) sum += Int(take);
  fills.join();
  empties.join();
  EXPECT_EQ(sum, kMany * (kMany - 1) / 2);
}

TEST_F(Exchange, AMapWaitsForAllValuesOfAKey) {
  Node *first = nullptr, *second = nullptr;
  Output take, any, key, size, incomplete;
  Build([&](const GraphBuilder& b) {
    const Types types = {DType::kInt64, DType::kFloat};
    key = Fed(b, DType::kInt64);
    const Output zero = b.Vector<int32_t>({0}), one = b.Vector<int32_t>({1});
    first = b.OpNode("OrderedMapStage", {key, zero, b.Scalar<int64_t>(5)},
                     {{"dtypes", types}, {"fake_dtypes", Types{DType::kInt64}}, {"shared_name", "map"}});
    second = b.OpNode("OrderedMapStage", {key, one, b.Scalar(6.0f)},
                      {{"dtypes", types}, {"fake_dtypes", Types{DType::kFloat}}, {"shared_name", "map"}});
    take = b.Op("OrderedMapUnstage", {key, b.Vector<int32_t>({0, 1})}, {{"dtypes", types}, {"shared_name", "map"}});
    any = b.Op("OrderedMapUnstageNoKey", {b.Vector<int32_t>({0, 1})}, {{"dtypes", types}, {"shared_name", "map"}});
    size = b.Op("OrderedMapSize", {}, {{"dtypes", types}, {"shared_name", "map"}});
    incomplete = b.Op("OrderedMapIncompleteSize", {}, {{"dtypes", types}, {"shared_name", "map"}});
  });
  const auto at = [&](int64_t k) { return Feeds{{key, Tensor::Scalar(k)}}; };
  for (const int64_t k : {7, 3}) EXPECT_EQ(CodeOf(first, at(k)), StatusCode::kOk);
  EXPECT_EQ(CodeOf(first, at(3)), StatusCode::kInvalidArgument) << "it is there";
  EXPECT_EQ(Int(incomplete), 2);
  EXPECT_EQ(CodeOf(take.node, at(7), 10), StatusCode::kDeadlineExceeded);
  std::thread other([&] {
    absl::SleepFor(absl::Milliseconds(10));
    for (const int64_t k : {7, 3}) EXPECT_EQ(CodeOf(second, at(k)), StatusCode::kOk);
  });
  const auto out = Run({take}, {}, at(3));
  other.join();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*(*out)[0].data<int64_t>(), 5);
  EXPECT_EQ(Int(size), 1);
  EXPECT_EQ(Int(any), 7);
  EXPECT_EQ(CodeOf(any.node, {}, 10), StatusCode::kDeadlineExceeded);
}

// ---- Accumulators ----

// Workers that add side by side, and a chief that takes their mean step by step.
TEST_F(Exchange, WorkersTakeAStepTogether) {
  constexpr int kWorkers = 3, kSteps = 60;
  for (const char* form : {"", "Resource"}) {
    graph_ = MakeRef<SharedGraph>(&System::Default().ops());
    Node* apply = nullptr;
    Output take, step, gradient, count;
    Build([&](const GraphBuilder& b) {
      const auto op = [form](const char* name) { return std::string(form) + name; };
      const Output a =
          b.Op(op("ConditionalAccumulator"), {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2})}});
      step = Fed(b, DType::kInt64);
      gradient = Fed(b, DType::kFloat);
      apply = b.OpNode(op("AccumulatorApplyGradient"), {a, step, gradient});
      take = b.Op(op("AccumulatorTakeGradient"), {a, b.Scalar<int32_t>(kWorkers)}, {{"dtype", DType::kFloat}});
      count = b.Op(op("AccumulatorNumAccumulated"), {a});
    });
    std::vector<std::thread> workers;
    for (int w = 0; w < kWorkers; ++w) {
      workers.emplace_back([&, w] {
        for (int64_t s = 0; s < kSteps; ++s) {
          const Tensor g = Tensor::Vector<float>({static_cast<float>(w + 1), 1.0f});
          EXPECT_EQ(CodeOf(apply, {{step, Tensor::Scalar<int64_t>(kSteps)}, {gradient, g}}), StatusCode::kOk);
        }
      });
    }
    double sum = 0;
    for (int i = 0; i < kSteps * kWorkers; i += kWorkers) {
      // At most this many are left, perhaps all in the accumulator: one take has them all then.
      const auto out = Run({take}, {}, {}, i == 0 ? 0 : 20);
      if (!out.ok()) break;
      EXPECT_EQ((*out)[0].data<float>()[1], 1.0f);
      sum += static_cast<double>((*out)[0].data<float>()[0]);
    }
    for (std::thread& t : workers) t.join();
    EXPECT_GT(sum, 0);
    const Tensor stale = Tensor::Vector<float>({1, 1});
    const int64_t before = Int(count);
    EXPECT_EQ(CodeOf(apply, {{step, Tensor::Scalar<int64_t>(-1)}, {gradient, stale}}), StatusCode::kOk);
    EXPECT_EQ(Int(count), before) << "stale";
    const Tensor wrong = Tensor::Vector<float>({1, 1, 1});
    EXPECT_EQ(
        CodeOf(apply, {{step, Tensor::Scalar<int64_t>(kSteps)}, {gradient, wrong}}), StatusCode::kInvalidArgument);
  }
}

TEST_F(Exchange, SparseRowsAreAveragedOneByOne) {
  Node* apply = nullptr;
  Node* take = nullptr;
  Output indices, values;
  Build([&](const GraphBuilder& b) {
    const Output a =
        b.Op("SparseConditionalAccumulator", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({-1, 1})}});
    indices = Fed(b, DType::kInt64);
    values = Fed(b, DType::kFloat);
    apply = b.OpNode("SparseAccumulatorApplyGradient",
                     {a, b.Scalar<int64_t>(0), indices, values, b.Vector<int64_t>({})}, {{"has_known_shape", false}});
    take = b.OpNode("SparseAccumulatorTakeGradient", {a, b.Scalar<int32_t>(2)}, {{"dtype", DType::kFloat}});
  });
  const auto add = [&](std::initializer_list<int64_t> i, std::initializer_list<float> v) {
    const Tensor rows = *Tensor::Vector<float>(v).Reshaped(*Shape::Make({static_cast<int64_t>(v.size()), 1}));
    return CodeOf(apply, {{indices, Tensor::Vector<int64_t>(i)}, {values, rows}});
  };
  EXPECT_EQ(add({5, 1, 5}, {1, 2, 3}), StatusCode::kOk);
  EXPECT_EQ(add({-1}, {1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(add({1, 2}, {1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(add({5, 2}, {6, 7}), StatusCode::kOk);
  const auto out = Run({take->output(0), take->output(1), take->output(2)});
  ASSERT_TRUE(out.ok()) << out.status();
  const auto i = (*out)[0].flat<int64_t>(), s = (*out)[2].flat<int64_t>();
  const auto v = (*out)[1].flat<float>();
  EXPECT_EQ(std::vector<int64_t>(i.begin(), i.end()), (std::vector<int64_t>{1, 2, 5}));
  EXPECT_EQ(std::vector<float>(v.begin(), v.end()), (std::vector<float>{2, 7, 5})) << "(1 + 3 + 6) / 2";
  EXPECT_EQ(std::vector<int64_t>(s.begin(), s.end()), (std::vector<int64_t>{-1, 1}));
}

}  // namespace
}  // namespace millrace
