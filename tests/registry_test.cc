// SPDX-License-Identifier: Apache-2.0
// What must hold for every op of the system, generated from its declaration: it is complete, its examples run and have
// the shapes that its shape function promised, its gradient agrees with finite differences, and it survives GraphDef.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_join.h"
#include "autodiff/gradients.h"
#include "graph/graph_def.h"
#include "op/example.h"
#include "system/system.h"

namespace millrace {
namespace {

// Ops whose kernels are the executor's or plan's own.
bool RuntimeProvides(const std::string& op) { return op == "_Arg" || op == "_Retval" || op == "_Loop"; }
// Calls are expanded before a step.
bool IsExpanded(const OpDef& op) {
  return std::any_of(op.attrs.begin(), op.attrs.end(), [](const AttrDef& a) { return a.kind == AttrKind::kFunc; });
}

TEST(Registry, DeclarationsParse) {
  EXPECT_TRUE(System::Default().ops().status().ok()) << System::Default().ops().status();
}

TEST(Registry, EveryOpIsComplete) {
  std::vector<std::string> lacks;
  for (const OpDef* op : System::Default().ops().All()) {
    auto lack = [&](bool bad, const char* what) {
      if (bad) lacks.push_back(absl::StrCat(op->name, ": ", what));
    };
    lack(op->doc.size() < 20, "doc");
    lack(op->shape_fn == nullptr, "shape function");
    lack(op->gradient_kind == GradientKind::kUndecided, "gradient decision");
    lack(op->examples.empty() && op->no_example_reason.empty(), "example, or the reason why none");
    lack(!System::Default().kernels().HasAny(op->name) && !RuntimeProvides(op->name) && !IsExpanded(*op), "kernel");
  }
  EXPECT_TRUE(lacks.empty()) << absl::StrJoin(lacks, "\n");
}

TEST(Registry, EveryKernelHasAnOp) {
  for (const KernelSpec& spec : System::Default().kernels().All()) {
    const OpDef* op = System::Default().ops().Find(spec.op);
    EXPECT_NE(op, nullptr) << spec.op;
    for (const auto& [attr, types] : spec.types) {
      EXPECT_FALSE(types.empty()) << spec.op << "." << attr;
      if (op) {
        EXPECT_NE(op->FindAttr(attr), nullptr) << spec.op << " has no attribute " << attr;
      }
    }
  }
}

// One op on example values: differentiable inputs are placeholders, the others constants.
struct Case {
  RefPtr<SharedGraph> graph = MakeRef<SharedGraph>(&System::Default().ops());
  OpExample example;
  Node* node = nullptr;
  std::vector<Output> feeds;
  std::vector<Tensor> values;
};

// `example` with its float inputs as doubles, where the op takes doubles.
OpExample InDouble(const OpDef& op, OpExample example) {
  OpExample wide = example;
  for (Tensor& t : wide.inputs) {
    if (t.dtype() != DType::kFloat) continue;
    Tensor d = *Tensor::Make(DType::kDouble, t.shape());
    for (int64_t i = 0; i < t.num_elements(); ++i)
      d.mutable_data<double>()[i] = static_cast<double>(t.data<float>()[i]);
    t = d;
  }
  for (auto& [name, value] : wide.attrs) {
    if (const DType* t = value.get<DType>(); t && *t == DType::kFloat) value = DType::kDouble;
  }
  (void)op;
  return wide;
}

Status Build(const OpDef& op, const OpExample& example, Case* c) {
  millrace::GraphLock lock(&c->graph->mu);
  Graph& g = c->graph->graph;
  NodeSpec spec;
  spec.name = "op";
  spec.op = op.name;
  spec.attrs = example.attrs;
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const Tensor& value = example.inputs[i];
    const bool is_float = IsFloating(value.dtype());
    NodeSpec in;
    in.name = absl::StrCat("x", i);
    in.attrs["dtype"] = value.dtype();
    if (example.differentiate[i] && is_float) {
      in.op = "Placeholder";
      in.attrs["shape"] = PartialShape(value.shape());
    } else {
      in.op = "Const";
      in.attrs["value"] = value;
    }
    MR_ASSIGN_OR_RETURN(Node * n, g.AddNode(std::move(in)));
    spec.inputs.push_back(n->output(0));
    if (n->op_name() == "Placeholder") {
      c->feeds.push_back(n->output(0));
      c->values.push_back(value);
    }
  }
  c->example = example;
  MR_ASSIGN_OR_RETURN(c->node, g.AddNode(std::move(spec)));
  return absl::OkStatus();
}

StatusOr<std::vector<Tensor>> RunCase(Case& c, const std::vector<Output>& fetches, const std::vector<Tensor>& values) {
  MR_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, System::Default().NewSession(c.graph, wire::ConfigProto()));
  std::vector<Tensor> out;
  MR_RETURN_IF_ERROR(session->Run(nullptr, c.feeds, values, fetches, {}, &out, nullptr));
  return out;
}

std::vector<Output> AllOutputs(Node* n) {
  std::vector<Output> all;
  for (int i = 0; i < n->num_outputs(); ++i) all.push_back(n->output(i));
  return all;
}

void ForEachExample(const std::function<void(const OpDef&, const OpExample&)>& fn) {
  for (const OpDef* op : System::Default().ops().All()) {
    for (const std::string& text : op->examples) {
      SCOPED_TRACE(absl::StrCat(op->name, " on ", text));
      StatusOr<OpExample> example = ParseExample(*op, text);
      ASSERT_TRUE(example.ok()) << example.status();
      fn(*op, *example);
    }
  }
}

// A hostile graph may give an op fewer inputs than it declares, of any shapes.
TEST(Registry, EveryKernelEstimatesAnyShapes) {
  const AttrMap attrs = {{"ksize", std::vector<int64_t>{-3, 1 << 30, 0}}};
  const auto of = [](std::initializer_list<PartialShape> shapes) {
    std::vector<CostContext::Value> values;
    for (const PartialShape& s : shapes) values.push_back({DType::kFloat, s});
    return values;
  };
  const PartialShape unknown,
      scalar = PartialShape::Of({}), empty = PartialShape::Of({0, 3, 0}),
      vast = PartialShape::Of({int64_t{1} << 60, -1, int64_t{1} << 60});
  for (const KernelSpec& spec : System::Default().kernels().All()) {
    for (const auto& inputs : {of({}), of({scalar}), of({unknown, vast}), of({vast, empty, scalar, unknown})}) {
      for (const auto& outputs : {of({}), of({unknown}), of({empty, vast})}) {
        const OpCost cost = (spec.cost != nullptr ? spec.cost : ElementCost)({attrs, inputs, outputs});
        EXPECT_TRUE(cost.operations >= 0 && cost.bytes >= 0) << spec.op;  // no NaN either
      }
    }
  }
}

TEST(Registry, KernelsTellDearWorkFromCheap) {
  const AttrMap none;
  const PartialShape side = PartialShape::Of({64, 64});
  const CostContext node{none, {{DType::kFloat, side}, {DType::kFloat, side}}, {{DType::kFloat, side}}};
  const auto operations = [&](const char* op) {
    const KernelRegistry& kernels = System::Default().kernels();
    const OpDef* const def = System::Default().ops().Find(op);
    // An accelerator's kernel that names no estimate works as much as the CPU's.
    EXPECT_EQ(
        kernels.CostOf(*def, {{"T", DType::kFloat}}, "NONE"), kernels.CostOf(*def, {{"T", DType::kFloat}}, "CPU"));
    return kernels.CostOf(*def, {{"T", DType::kFloat}}, "CPU")(node).operations;
  };
  EXPECT_EQ(operations("MatMul"), 2 * 64 * 64 * 64);
  EXPECT_EQ(operations("Cholesky"), 64 * 64 * 64);
  EXPECT_EQ(operations("Add"), 64 * 64);
  EXPECT_GT(operations("Tanh"), operations("Add"));
  EXPECT_GT(operations("Softmax"), operations("Add"));
  EXPECT_EQ(operations("Shape"), 0);
  EXPECT_EQ(operations("Identity"), 0);
}

TEST(Registry, ExamplesRunAndHaveThePromisedShapes) {
  ForEachExample([](const OpDef& op, const OpExample& example) {
    Case c;
    ASSERT_TRUE(Build(op, example, &c).ok()) << Build(op, example, &c);
    if (op.name == "Placeholder" || op.name == "PlaceholderV2" || op.name == "PreventGradient") return;
    StatusOr<std::vector<Tensor>> out = RunCase(c, AllOutputs(c.node), c.values);
    ASSERT_TRUE(out.ok()) << out.status();
    for (size_t i = 0; i < out->size(); ++i) {
      const PartialShape promised = c.node->shape(static_cast<int>(i));
      EXPECT_TRUE(promised.IsCompatibleWith((*out)[i].shape()))
          << "output " << i << ": promised " << promised.ToString() << ", got " << (*out)[i].shape().ToString();
    }
  });
}

TEST(Registry, ExamplesSurviveGraphDef) {
  ForEachExample([](const OpDef& op, const OpExample& example) {
    Case c;
    ASSERT_TRUE(Build(op, example, &c).ok());
    millrace::GraphLock lock(&c.graph->mu);
    if (op.deprecation_version > 0) {  // only graphs of before may hold it
      wire::VersionDef versions = c.graph->graph.versions();
      versions.producer = op.deprecation_version - 1;
      c.graph->graph.set_versions(std::move(versions));
    }
    StatusOr<wire::GraphDef> def = GraphToProto(c.graph->graph);
    ASSERT_TRUE(def.ok()) << def.status();
    Graph again(&System::Default().ops());
    StatusOr<ImportResult> imported = ImportGraphDef(*def, {}, &again);
    ASSERT_TRUE(imported.ok()) << imported.status();
    StatusOr<wire::GraphDef> back = GraphToProto(again);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(wire::Encode(*def), wire::Encode(*back));
  });
}

// Sum over the float outputs of y times fixed weights: one number whose gradient exercises every element.
StatusOr<Output> WeightedSum(const GraphBuilder& b, Node* node) {
  Output total;
  int k = 0;
  for (int i = 0; i < node->num_outputs(); ++i) {
    if (node->output_type(i) != DType::kDouble) continue;
    MR_ASSIGN_OR_RETURN(const Shape shape, node->shape(i).ToShape());
    MR_ASSIGN_OR_RETURN(Tensor w, Tensor::Make(DType::kDouble, shape));
    for (int64_t e = 0; e < w.num_elements(); ++e) w.mutable_data<double>()[e] = 0.3 + 0.7 * std::sin(1.7 * ++k);
    std::vector<int32_t> axes;
    for (int d = 0; d < shape.rank(); ++d) axes.push_back(d);
    const Output part = b.Sum(b.Mul(node->output(i), b.Const(w)), b.Const(Tensor::Vector<int32_t>(axes)));
    total = total ? b.Add(total, part) : part;
  }
  MR_RETURN_IF_ERROR(b.status());
  if (!total) return NotFound("no output to differentiate");
  return total;
}

void CheckGradient(const OpDef& op, const OpExample& example) {
  Case c;
  if (!Build(op, InDouble(op, example), &c).ok() || c.feeds.empty()) return;  // the op has no double form
  Output total;
  std::vector<Gradient> grads;
  {
    millrace::GraphLock lock(&c.graph->mu);
    GraphBuilder b(&c.graph->graph);
    StatusOr<Output> sum = WeightedSum(b, c.node);
    if (!sum.ok()) return;
    total = *sum;
    StatusOr<std::vector<Gradient>> made = AddGradients(b, {total}, c.feeds);
    ASSERT_TRUE(made.ok()) << made.status();
    grads = *std::move(made);
    for (Gradient& g : grads) {
      if (g.sparse) g.dense = Densify(b, *g.sparse);
    }
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  StatusOr<std::unique_ptr<Session>> session = System::Default().NewSession(c.graph, wire::ConfigProto());
  ASSERT_TRUE(session.ok());
  auto value = [&](const std::vector<Tensor>& at) {
    std::vector<Tensor> out;
    const Status s = (*session)->Run(nullptr, c.feeds, at, {total}, {}, &out, nullptr);
    EXPECT_TRUE(s.ok()) << s;
    return s.ok() ? *out[0].data<double>() : NAN;
  };
  constexpr double kStep = 1e-5;
  for (size_t k = 0; k < c.feeds.size(); ++k) {
    if (!grads[k].dense || c.values[k].dtype() != DType::kDouble) continue;
    std::vector<Tensor> out;
    const Status s = (*session)->Run(nullptr, c.feeds, c.values, {grads[k].dense}, {}, &out, nullptr);
    ASSERT_TRUE(s.ok()) << s;
    ASSERT_EQ(out[0].shape(), c.values[k].shape()) << "gradient of input " << k;
    for (int64_t e = 0; e < c.values[k].num_elements(); ++e) {
      std::vector<Tensor> up = c.values, down = c.values;
      up[k] = *c.values[k].Clone();
      down[k] = *c.values[k].Clone();
      up[k].mutable_data<double>()[e] += kStep;
      down[k].mutable_data<double>()[e] -= kStep;
      const double want = (value(up) - value(down)) / (2 * kStep);
      EXPECT_NEAR(out[0].data<double>()[e], want, 1e-5 + 1e-4 * std::abs(want)) << "input " << k << " element " << e;
    }
  }
}

TEST(Registry, GradientsAgreeWithFiniteDifferences) {
  ForEachExample([](const OpDef& op, const OpExample& example) {
    if (op.gradient_kind == GradientKind::kFunction && !op.stateful) CheckGradient(op, example);
  });
}

}  // namespace
}  // namespace millrace
