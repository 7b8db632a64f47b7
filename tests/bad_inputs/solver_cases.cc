// SPDX-License-Identifier: Apache-2.0
// Dual coordinate ascent and alternating least squares: numbers of examples, features, rows and columns that must not
// be trusted, lengths that do not agree, and numbers that are none.
#include <cmath>
#include <functional>
#include <limits>

#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

using absl::StatusCode;
const wire::AttrValue kF32 = Type(DType::kFloat);
const float kNan = std::numeric_limits<float>::quiet_NaN();

// Two examples; "sdca" is a good step, but for what `change` makes bad.
struct Pass {
  std::vector<int64_t> examples = {0, 1}, features = {5, 7}, known = {5, 7};
  std::vector<float> values = {1, 2}, weights = {0.5, 0.5}, costs = {1, 1}, labels = {0, 1}, state = {0};
  Dims dense = {2, 3}, dense_weights = {3}, state_shape = {2, 4};
  std::string loss = "logistic_loss";
  float l1 = 0, l2 = 1;
  bool adaptive = false;

  GraphMaker Graph() const {
    const auto length = [](const auto& v) { return Dims{static_cast<int64_t>(v.size())}; };
    GraphMaker g;
    g.I64("examples", length(examples), examples).I64("features", length(features), features);
    g.F32("values", length(values), values).F32("dense", dense, {1}).F32("costs", length(costs), costs);
    g.F32("labels", length(labels), labels).I64("known", length(known), known);
    g.F32("weights", length(weights), weights).F32("dense_weights", dense_weights, {1});
    g.F32("state", state_shape, state);
    g.Op("bad", "SdcaOptimizerV2",
         {"examples", "features", "values", "dense", "costs", "labels", "known", "weights", "dense_weights", "state"},
         {{"loss_type", Str(loss)},
          {"adaptive", Bool(adaptive)},
          {"num_sparse_features", Int(1)},
          {"num_sparse_features_with_values", Int(1)},
          {"num_dense_features", Int(1)},
          {"l1", Float(l1)},
          {"l2", Float(l2)},
          {"num_loss_partitions", Int(1)},
          {"num_inner_iterations", Int(1)}});
    return g;
  }
};

void Refuses(const std::function<void(Pass&)>& change) {
  for (const bool adaptive : {false, true}) {
    Pass pass;
    pass.adaptive = adaptive;
    change(pass);
    Check(pass.Graph());
  }
}

TEST(BadInput, DualAscentWithIndicesOutOfRange) {
  Check(Pass().Graph(), kOk);
  for (const int64_t i : {int64_t{-1}, int64_t{2}, int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
    Refuses([i](Pass& p) { p.examples = {0, i}; });
    Refuses([i](Pass& p) { p.features = {5, i}; });
  }
  Refuses([](Pass& p) { p.examples = {1, 0}; });                       // not sorted
  Refuses([](Pass& p) { p.examples = {1, 1}, p.features = {5, 5}; });  // twice in an example
}

TEST(BadInput, DualAscentWithLengthsThatDoNotAgree) {
  Refuses([](Pass& p) { p.examples = {0}; });
  Refuses([](Pass& p) { p.features = {5, 7, 7}; });
  Refuses([](Pass& p) { p.values = {1}; });
  Refuses([](Pass& p) { p.weights = {1}; });
  Refuses([](Pass& p) { p.known = {5, 7, 9}; });
  Refuses([](Pass& p) { p.costs = {1, 1, 1}; });
  Refuses([](Pass& p) { p.labels = {1}; });
  for (const Dims& shape : {Dims{}, Dims{6}, Dims{1, 3}, Dims{3, 2}, Dims{2, 4}, Dims{2, 2}, Dims{2, 3, 1}}) {
    Refuses([&](Pass& p) { p.dense = shape; });
  }
  for (const Dims& shape : {Dims{}, Dims{8}, Dims{4, 2}, Dims{2, 3}, Dims{0, 4}}) {
    Refuses([&](Pass& p) { p.state_shape = shape; });
  }
}

TEST(BadInput, DualAscentWithLabelsAndPenaltiesThatAreNone) {
  for (const char* loss : {"logistic_loss", "hinge_loss", "smooth_hinge_loss"}) {
    for (const float label : {-1.0f, 0.5f, kNan}) {
      Refuses([&](Pass& p) { p.loss = loss, p.labels = {0, label}; });
    }
  }
  Refuses([](Pass& p) { p.loss = "poisson_loss", p.labels = {0, -1}; });
  Refuses([](Pass& p) { p.loss = "another_loss"; });
  for (const float l2 : {0.0f, -1.0f, kNan}) Refuses([l2](Pass& p) { p.l2 = l2; });
  for (const float l1 : {-1.0f, kNan}) Refuses([l1](Pass& p) { p.l1 = l1; });
}

// What cannot be a number anywhere else is one more number.
TEST(BadInput, DualAscentWithoutNumbers) {
  for (const char* loss : {"logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss"}) {
    for (const float x : {kNan, INFINITY, -INFINITY, 1e38f, 0.0f, -1.0f}) {
      for (const bool adaptive : {false, true}) {
        Pass pass;
        pass.loss = loss, pass.adaptive = adaptive;
        Pass values = pass, weights = pass, costs = pass, state = pass;
        values.values = {x, 1}, weights.weights = {x, 1}, costs.costs = {x, 1}, state.state = {x};
        for (const Pass& p : {values, weights, costs, state}) Check(p.Graph(), kOk);
      }
    }
  }
}

TEST(BadInput, DualAscentShrinksVariablesOnly) {
  GraphMaker g;
  g.Raw("v", "VariableV2", {}, {{"dtype", kF32}, {"shape", ShapeOf({2})}});
  g.Op("bad", "SdcaShrinkL1", {"v"}, {{"num_features", Int(1)}, {"l1", Float(1)}, {"l2", Float(1)}});
  Check(g, {StatusCode::kFailedPrecondition}, How::kConstants);
  GraphMaker constant;
  constant.F32("v", {2}).Op(
      "bad", "SdcaShrinkL1", {"v"}, {{"num_features", Int(1)}, {"l1", Float(1)}, {"l2", Float(1)}});
  Check(constant, kInvalid, How::kConstants);
  GraphMaker fingerprint;
  fingerprint.Strings("s", {}, {"a"}).Op("bad", "SdcaFprint", {"s"});
  Check(fingerprint);
}

TEST(BadInput, ElementsOfAProductThatAreNotThere) {
  const auto graph = [](const Dims& a, const Dims& b, const Dims& mask, std::vector<int64_t> at) {
    GraphMaker g;
    g.F32("a", a, {1}).F32("b", b, {1}).I64("mask", mask, std::move(at)).Bools("no", {}, {false});
    return g.Op("bad", "MaskedMatmul", {"a", "b", "mask", "no", "no"});
  };
  Check(graph({2, 3}, {3, 4}, {1, 2}, {1, 3}), kOk);
  for (const int64_t i : {int64_t{-1}, int64_t{4}, int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
    Check(graph({2, 3}, {3, 4}, {1, 2}, {i, 0}));
    Check(graph({2, 3}, {3, 4}, {1, 2}, {0, i}));
  }
  Check(graph({2, 3}, {4, 3}, {1, 2}, {0}));
  Check(graph({2, 3}, {3, 4}, {1, 3}, {0}));
  Check(graph({2, 3}, {3, 4}, {2}, {0}));
  Check(graph({6}, {3, 4}, {1, 2}, {0}));
  Check(graph({2, 3}, {12}, {1, 2}, {0}));
}

struct Equations {
  Dims factors = {3, 2}, factor_weights = {0}, input_weights = {0}, indices = {2, 2}, values = {2}, entry_weights = {2};
  std::vector<int64_t> at = {0, 2, 1, 0};
  float weight = 1;
  int64_t rows = 2;
  bool transpose = false;

  GraphMaker Graph() const {
    GraphMaker g;
    g.F32("factors", factors, {1}).F32("factor_weights", factor_weights, {weight}).F32("unobserved", {}, {1});
    g.F32("input_weights", input_weights, {1}).I64("indices", indices, at).F32("values", values, {1});
    g.F32("entry_weights", entry_weights, {weight}).I64("rows", {}, {rows}).Bools("transpose", {}, {transpose});
    return g.Op("bad", "WALSComputePartialLhsAndRhs",
                {"factors", "factor_weights", "unobserved", "input_weights", "indices", "values", "entry_weights",
                 "rows", "transpose"});
  }
};

void RefusesEquations(const std::function<void(Equations&)>& change, const Codes& codes = kInvalid) {
  Equations e;
  change(e);
  Check(e.Graph(), codes);
}

TEST(BadInput, LeastSquaresOfEntriesThatAreNotThere) {
  RefusesEquations([](Equations&) {}, kOk);
  for (const int64_t i : {int64_t{-1}, int64_t{3}, int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
    RefusesEquations([i](Equations& e) { e.at = {0, 2, i, 0}; });
    RefusesEquations([i](Equations& e) { e.at = {0, 2, 1, i}; });
  }
  RefusesEquations([](Equations& e) { e.transpose = true; });  // then row 2 is there, and column 2 is not
  RefusesEquations([](Equations& e) { e.rows = -1; });
  RefusesEquations([](Equations& e) { e.rows = INT64_MIN; });
  RefusesEquations([](Equations& e) { e.rows = INT64_MAX; }, kTooLarge);
  RefusesEquations([](Equations& e) { e.rows = int64_t{1} << 45; }, kTooLarge);
}

TEST(BadInput, LeastSquaresOfLengthsThatDoNotAgree) {
  RefusesEquations([](Equations& e) { e.values = {3}; });
  RefusesEquations([](Equations& e) { e.entry_weights = {1}; });
  RefusesEquations([](Equations& e) { e.entry_weights = {0}; });
  RefusesEquations([](Equations& e) { e.input_weights = {2}; });
  RefusesEquations([](Equations& e) { e.entry_weights = {0}, e.input_weights = {1}, e.factor_weights = {3}; });
  RefusesEquations([](Equations& e) { e.entry_weights = {0}, e.input_weights = {2}, e.factor_weights = {2}; });
  RefusesEquations([](Equations& e) { e.factors = {6}; });
  RefusesEquations([](Equations& e) { e.indices = {4}; });
  RefusesEquations([](Equations& e) { e.indices = {2, 3}; });
  for (const float weight : {-1.0f, kNan}) RefusesEquations([weight](Equations& e) { e.weight = weight; });
}

TEST(BadInput, LeastSquaresOfAWideRow) {
  constexpr int64_t kEntries = 20'000, kUnknowns = 2'000;
  GraphMaker g;  // all entries are of one row
  g.F32("factors", {1, kUnknowns}, {1}).F32("none", {0}).F32("unobserved", {}, {1});
  g.I64("at", {kEntries, 2}).F32("entries", {kEntries}, {1}).I64("rows", {}, {1}).Bools("turned", {}, {false});
  g.Op("bad", "WALSComputePartialLhsAndRhs",
       {"factors", "none", "unobserved", "none", "at", "entries", "entries", "rows", "turned"});
  CheckEndless(g);
}

}  // namespace
}  // namespace millrace::bad_inputs
