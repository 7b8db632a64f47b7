// SPDX-License-Identifier: Apache-2.0
// Weights that kernels keep in packed form (tensor/prepared.h), through whole steps: each version of a variable is
// seen, and what is computed from packed weights is the same to the last bit.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "client/variables.h"
#include "graph/control_flow.h"
#include "system/system.h"
#include "tensor/prepared.h"

namespace millrace {
namespace {

using List = std::vector<Output>;

constexpr int64_t kChannels = 64;
constexpr float kTerms = 9 * kChannels;  // of one sum in the middle of an image of ones

Tensor Filled(std::initializer_list<int64_t> dims, float value) {
  Tensor t = *Tensor::Make(DType::kFloat, *Shape::Make(absl::MakeConstSpan(dims.begin(), dims.size())));
  for (float& v : t.mutable_flat<float>()) v = value;
  return t;
}
Tensor Random(std::initializer_list<int64_t> dims) {
  static std::mt19937 generator(17);
  std::normal_distribution<float> normal;
  Tensor t = Filled(dims, 0);
  for (float& v : t.mutable_flat<float>()) v = normal(generator);
  return t;
}
Tensor Filter(float value) { return Filled({3, 3, kChannels, kChannels}, value); }

class PreparedWeights : public ::testing::Test {
 protected:
  void SetUp() override { DropUnusedPreparedForms(); }
  template <typename Fn>
  void Build(Fn fn) {
    millrace::GraphLock lock(&graph_->mu);
    GraphBuilder b(&graph_->graph);
    fn(b);
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  void Open() {
    StatusOr<std::unique_ptr<Session>> s = System::Default().NewSession(graph_, {});
    ASSERT_TRUE(s.ok()) << s.status();
    session_ = *std::move(s);
    if (init_ != nullptr) {
      ASSERT_TRUE(Run({}, {init_}).ok());
    }
  }
  StatusOr<std::vector<Tensor>> Run(const List& fetches, const std::vector<Node*>& targets = {}) {
    std::vector<Tensor> out;
    MR_RETURN_IF_ERROR(session_->Run(nullptr, fed_, values_, fetches, targets, &out, nullptr));
    return out;
  }
  // A convolution of ones by a variable, of which one value in the middle of the image is fetched.
  void BuildConvolution(const GraphBuilder& b, bool resource = false) {
    const Output first = b.Const(Filter(1));
    v_ = resource ? *AddResourceVariable(b, "v", first) : *AddVariable(b, "v", first);
    y_ = Convolve(b, v_.read);
    init_ = *AddInitializer(b, "init");
  }
  static Output Convolve(const GraphBuilder& b, Output filter) {
    const Output y = b.Op("Conv2D", {b.Const(Filled({1, 4, 4, kChannels}, 1)), filter},
                          {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", std::string("SAME")}});
    return b.Op("Slice", {y, b.Vector<int32_t>({0, 1, 1, 0}), b.Vector<int32_t>({1, 1, 1, 1})});
  }
  float Value(Output y) {
    const StatusOr<std::vector<Tensor>> out = Run({y});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *(*out)[0].data<float>() : NAN;
  }
  // Runs so often that the weights are packed, and says whether each step gave the same.
  void ExpectSteady(float value) {
    for (int i = 0; i < 4; ++i) EXPECT_EQ(Value(y_), value * kTerms);
  }

  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  std::unique_ptr<Session> session_;
  Node* init_ = nullptr;
  ClientVariable v_;
  Output y_;
  List fed_;  // in every step
  std::vector<Tensor> values_;
};

TEST_F(PreparedWeights, AreKeptForOneVersion) {
  Node *assign = nullptr, *add = nullptr, *apply = nullptr, *scatter = nullptr;
  Build([&](const GraphBuilder& b) {
    BuildConvolution(b);
    assign =
        b.OpNode("Assign", {v_.ref, b.Op("Fill", {b.Vector<int32_t>({3, 3, kChannels, kChannels}), b.Scalar(5.0f)})});
    add = b.OpNode("AssignAdd", {v_.ref, b.Const(Filter(1))});
    apply = b.OpNode("ApplyGradientDescent", {v_.ref, b.Scalar(0.5f), b.Const(Filter(2))});
    scatter =
        b.OpNode("ScatterAdd", {v_.ref, b.Vector<int32_t>({1}), b.Const(Filled({1, 3, kChannels, kChannels}, 3))});
  });
  Open();
  const auto bytes = static_cast<int64_t>(Filter(1).TotalBytes());
  const int64_t before = PreparedBytes();
  EXPECT_EQ(Value(y_), kTerms);
  EXPECT_EQ(PreparedBytes(), before) << "seen once";
  ExpectSteady(1);
  EXPECT_EQ(PreparedBytes() - before, bytes);
  ASSERT_TRUE(Run({}, {add}).ok());  // into a copy: the first value is the graph's, and stays, with its form
  ExpectSteady(2);
  EXPECT_EQ(PreparedBytes() - before, 2 * bytes);
  ASSERT_TRUE(Run({}, {apply}).ok());
  EXPECT_EQ(PreparedBytes() - before, bytes) << "an update in place drops what was packed";
  ExpectSteady(1);
  ASSERT_TRUE(Run({}, {scatter}).ok());
  EXPECT_EQ(PreparedBytes() - before, bytes);
  ExpectSteady(2);  // a row of three taps has grown by three
  ASSERT_TRUE(Run({}, {assign}).ok());
  ExpectSteady(5);
  session_.reset();
  EXPECT_EQ(PreparedBytes() - before, bytes) << "of the first value";
  graph_.reset();
  DropUnusedPreparedForms();
  EXPECT_EQ(PreparedBytes(), before);
}

TEST_F(PreparedWeights, OfResourceVariables) {
  Node *assign = nullptr, *scatter = nullptr;
  Build([&](const GraphBuilder& b) {
    BuildConvolution(b, /*resource=*/true);
    assign = b.OpNode("AssignVariableOp", {v_.ref, b.Const(Filter(5))});
    scatter = b.OpNode(
        "ResourceScatterUpdate", {v_.ref, b.Vector<int32_t>({0}), b.Const(Filled({1, 3, kChannels, kChannels}, 8))});
  });
  Open();
  ExpectSteady(1);
  ASSERT_TRUE(Run({}, {assign}).ok());
  ExpectSteady(5);
  ASSERT_TRUE(Run({}, {scatter}).ok());
  ExpectSteady(6);
}

TEST_F(PreparedWeights, AreMadeAgainAfterTheyWereDropped) {
  Build([&](const GraphBuilder& b) { BuildConvolution(b); });
  Open();
  ExpectSteady(1);
  const int64_t packed = PreparedBytes();
  EXPECT_GE(DropPreparedForms(), static_cast<int64_t>(Filter(1).TotalBytes()));
  EXPECT_EQ(PreparedBytes(), 0);
  int steps = 0;
  while (PreparedBytes() == 0 && steps < 1000) {
    EXPECT_EQ(Value(y_), kTerms);
    ++steps;
  }
  EXPECT_GT(steps, 10);
  EXPECT_LE(PreparedBytes(), packed);
}

TEST_F(PreparedWeights, ServeEveryPlanOfASession) {
  Output doubled;
  Build([&](const GraphBuilder& b) {
    BuildConvolution(b);
    doubled = b.Add(Convolve(b, v_.read), y_);
  });
  Open();
  const int64_t before = PreparedBytes();
  ExpectSteady(1);
  const int64_t packed = PreparedBytes();
  EXPECT_GT(packed, before);
  EXPECT_EQ(Value(doubled), 2 * kTerms);
  EXPECT_EQ(PreparedBytes(), packed);
}

// Each iteration reads the variable twice, so that the second reading finds it packed, and then changes it.
TEST_F(PreparedWeights, OfAVariableThatALoopChanges) {
  Output sum;
  Build([&](const GraphBuilder& b) {
    BuildConvolution(b, /*resource=*/true);
    const auto read = [&](const GraphBuilder& s) {
      return s.Op("ReadVariableOp", {v_.ref}, {{"dtype", DType::kFloat}});
    };
    const StatusOr<List> r = WhileLoop(
        b, {b.Scalar<int32_t>(0), b.Const(Filled({1, 1, 1, 1}, 0))},
        [](const GraphBuilder& s, const List& v) -> StatusOr<List> {
          return List{s.Op("Less", {v[0], s.Scalar<int32_t>(4)})};
        },
        [&](const GraphBuilder& s, const List& v) -> StatusOr<List> {
          const GraphBuilder in = s.WithControl({v[1].node});
          const Output once = Convolve(in, read(in));
          const GraphBuilder then = in.WithControl({once.node});
          const Output twice = Convolve(then, read(then));
          Node* const change =
              then.WithControl({twice.node}).OpNode("AssignAddVariableOp", {v_.ref, s.Const(Filter(1))});
          const GraphBuilder after = s.WithControl({change});
          return List{after.Add(v[0], s.Scalar<int32_t>(1)), after.Add(v[1], after.Add(once, twice))};
        });
    ASSERT_TRUE(r.ok()) << r.status();
    sum = (*r)[1];
  });
  Open();
  EXPECT_EQ(Value(sum), 2 * (1 + 2 + 3 + 4) * kTerms);
  EXPECT_EQ(Value(sum), 2 * (5 + 6 + 7 + 8) * kTerms);
}

TEST_F(PreparedWeights, OfAVariableThatChangesDuringSteps) {
  Node* add = nullptr;
  Build([&](const GraphBuilder& b) {
    BuildConvolution(b, /*resource=*/true);
    add = b.OpNode("AssignAddVariableOp", {v_.ref, b.Const(Filter(1))});
  });
  Open();
  constexpr int kUpdates = 30;
  std::atomic<int> version{1};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 8; ++t) {
    readers.emplace_back([&] {
      while (version.load() <= kUpdates) {
        const int from = version.load();
        const StatusOr<std::vector<Tensor>> out = Run({y_});
        const int to = version.load() + 1;  // an update may be under way
        const float value = out.ok() ? *(*out)[0].data<float>() / kTerms : -1;
        wrong += value < static_cast<float>(from) || value > static_cast<float>(to) || value != std::floor(value);
      }
    });
  }
  for (int i = 0; i < kUpdates; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (i % 7 == 0) DropPreparedForms();
    EXPECT_TRUE(Run({}, {add}).ok());
    ++version;
  }
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Value(y_), (kUpdates + 1) * kTerms);
}

class PackedOp : public PreparedWeights {
 protected:
  // Steps from weights that are not packed and from packed ones.
  void ExpectSameBits(const std::function<Output(const GraphBuilder&)>& build) {
    session_.reset();
    graph_ = MakeRef<SharedGraph>(&System::Default().ops());
    DropUnusedPreparedForms();
    fed_.clear();
    values_.clear();
    Build([&](const GraphBuilder& b) { y_ = build(b); });
    Open();
    const int64_t before = PreparedBytes();
    const StatusOr<std::vector<Tensor>> first = Run({y_});
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(PreparedBytes(), before);
    for (int step = 0; step < 4; ++step) {
      const StatusOr<std::vector<Tensor>> again = Run({y_});
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(std::memcmp((*first)[0].raw(), (*again)[0].raw(), (*first)[0].TotalBytes()), 0) << "step " << step;
    }
    EXPECT_GT(PreparedBytes(), before) << "nothing was packed";
  }
  Output Fed(const GraphBuilder& b, std::initializer_list<int64_t> dims) {
    fed_.push_back(b.Op("Placeholder", {}, {{"dtype", DType::kFloat}}));
    values_.push_back(Random(dims));
    return fed_.back();
  }
};

TEST_F(PackedOp, Convolutions) {
  struct Case {
    int64_t batch, side, in, out, kernel, stride;
  };
  for (const Case& c : {Case{1, 7, 128, 128, 3, 1}, Case{2, 24, 512, 256, 1, 1}, Case{2, 14, 64, 256, 3, 2},
                        Case{1, 30, 3, 32, 5, 2}, Case{3, 28, 64, 48, 3, 1}}) {
    SCOPED_TRACE(c.in);
    ExpectSameBits([&](const GraphBuilder& b) {
      return b.Op(
          "Conv2D", {Fed(b, {c.batch, c.side, c.side, c.in}), b.Const(Random({c.kernel, c.kernel, c.in, c.out}))},
          {{"strides", std::vector<int64_t>{1, c.stride, c.stride, 1}}, {"padding", std::string("SAME")}});
    });
  }
}

TEST_F(PackedOp, ConvolutionsBackward) {
  for (const int64_t stride : {1, 2}) {
    SCOPED_TRACE(stride);
    ExpectSameBits([&](const GraphBuilder& b) {
      const int64_t side = 14 / stride;
      return b.Op("Conv2DBackpropInput",
                  {b.Vector<int32_t>({2, 14, 14, 128}), b.Const(Random({3, 3, 128, 64})), Fed(b, {2, side, side, 64})},
                  {{"strides", std::vector<int64_t>{1, stride, stride, 1}}, {"padding", std::string("SAME")}});
    });
  }
}

TEST_F(PackedOp, Products) {
  struct Case {
    int64_t m, k, n;
  };
  for (const Case& c : {Case{32, 1024, 1024}, Case{4, 512, 2048}, Case{48, 300, 700}, Case{200, 640, 1500}}) {
    SCOPED_TRACE(c.m);
    ExpectSameBits([&](const GraphBuilder& b) { return b.MatMul(Fed(b, {c.m, c.k}), b.Const(Random({c.k, c.n}))); });
  }
}

TEST_F(PackedOp, StacksOfProductsByOneMatrix) {
  ExpectSameBits([&](const GraphBuilder& b) {
    return b.Op("BatchMatMulV2", {Fed(b, {4, 16, 1024}), b.Const(Random({1024, 1024}))});
  });
}

constexpr int64_t kBatch = 16, kInputs = 256, kUnits = 256;

TEST_F(PackedOp, CellsOfGatedUnits) {
  ExpectSameBits([&](const GraphBuilder& b) {
    Node* const cell = b.OpNode(
        "GRUBlockCell",
        {Fed(b, {kBatch, kInputs}), Fed(b, {kBatch, kUnits}), b.Const(Random({kInputs + kUnits, 2 * kUnits})),
         b.Const(Random({kInputs + kUnits, kUnits})), b.Const(Random({2 * kUnits})), b.Const(Random({kUnits}))});
    return cell->output(3);
  });
}

TEST_F(PackedOp, CellsOfLongShortTermMemory) {
  ExpectSameBits([&](const GraphBuilder& b) {
    const Output none = b.Const(Random({kUnits}));
    Node* const cell = b.OpNode(
        "LSTMBlockCell",
        {Fed(b, {kBatch, kInputs}), Fed(b, {kBatch, kUnits}), Fed(b, {kBatch, kUnits}),
         b.Const(Random({kInputs + kUnits, 4 * kUnits})), none, none, none, b.Const(Random({4 * kUnits}))});
    return cell->output(6);
  });
}

// A sequence meets its weights often enough to pack them within one step.
TEST_F(PackedOp, SequencesPackWithinAStep) {
  const int64_t before = PreparedBytes();
  List h;
  Build([&](const GraphBuilder& b) {
    const Output w = b.Const(Random({kInputs + kUnits, 4 * kUnits})), none = b.Const(Random({kUnits}));
    const Output bias = b.Const(Random({4 * kUnits}));
    const Output x = Fed(b, {5, kBatch, kInputs}), cs = Fed(b, {kBatch, kUnits}), state = Fed(b, {kBatch, kUnits});
    Node* const sequence = b.OpNode("BlockLSTM", {b.Scalar<int64_t>(5), x, cs, state, w, none, none, none, bias});
    // The same, a step at a time.
    Output c = cs, s = state;
    for (int32_t t = 0; t < 5; ++t) {
      const Output row = b.Op("Slice", {x, b.Vector<int32_t>({t, 0, 0}), b.Vector<int32_t>({1, -1, -1})});
      Node* const cell = b.OpNode(
          "LSTMBlockCell", {b.Reshape(row, b.Vector<int32_t>({kBatch, kInputs})), c, s, w, none, none, none, bias},
          AttrMap{{"cell_clip", 3.0f}});
      c = cell->output(1);
      s = cell->output(6);
    }
    h = {sequence->output(6), s};
  });
  Open();
  for (int step = 0; step < 3; ++step) {
    const StatusOr<std::vector<Tensor>> out = Run(h);
    ASSERT_TRUE(out.ok()) << out.status();
    const float* last = (*out)[0].data<float>() + 4 * kBatch * kUnits;
    for (int64_t i = 0; i < kBatch * kUnits; ++i) ASSERT_NEAR(last[i], (*out)[1].data<float>()[i], 1e-3) << i;
    EXPECT_GT(PreparedBytes(), before);
  }
}

}  // namespace
}  // namespace millrace
