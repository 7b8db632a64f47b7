// SPDX-License-Identifier: Apache-2.0
#include "bad_inputs/harness.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "graph/graph_def.h"
#include "system/system.h"
#include "tensor/tensor_proto.h"

namespace millrace::bad_inputs {
namespace {

using Kind = wire::AttrValue::Kind;

wire::AttrValue Attr(Kind kind) {
  wire::AttrValue v;
  v.kind = kind;
  return v;
}

wire::TensorShapeProto ShapeProto(const Dims& dims) {
  wire::TensorShapeProto p;
  for (int64_t d : dims) p.dim.emplace_back().size = d;
  return p;
}

double CpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

long PeakKilobytes() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return u.ru_maxrss;
}

constexpr int64_t kTimeoutMs = 8000;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kCpuSeconds = 10;
#else
constexpr double kCpuSeconds = 1;
#endif

struct Feeds {
  std::vector<std::string> names;
  std::vector<Tensor> values;
};

// A session on a graph of its own, which holds a good node first.
class Bench {
 public:
  Bench() {
    GraphMaker good;
    good.F32("good_a", {}, {1}).F32("good_b", {}, {2}).Op("good", "AddV2", {"good_a", "good_b"});
    Status s = Import(good.def());
    EXPECT_TRUE(s.ok()) << s;
    auto session = System::Default().NewSession(graph_, {});
    EXPECT_TRUE(session.ok()) << session.status();
    if (session.ok()) session_ = *std::move(session);
    RunGood();
  }

  Status Import(const wire::GraphDef& def) {
    millrace::GraphLock lock(&graph_->mu);
    return ImportGraphDef(def, {}, &graph_->graph).status();
  }
  Status ImportAndRun(const wire::GraphDef& def, const Feeds& feeds) {
    MR_RETURN_IF_ERROR(Import(def));
    if (Has("init")) {
      const int64_t timeout_ms = std::exchange(timeout_ms_, kTimeoutMs);
      const Status s = Run("init", {});
      EXPECT_TRUE(s.ok()) << s;
      timeout_ms_ = timeout_ms;
    }
    return Run("bad", feeds);
  }
  Status RunAlone(const std::string& name) { return Run(name.c_str(), {}); }
  void set_timeout_ms(int64_t ms) { timeout_ms_ = ms; }
  void RunGood() {
    timeout_ms_ = kTimeoutMs;
    std::vector<Tensor> out;
    const Status s = Run("good", {}, &out);
    ASSERT_TRUE(s.ok()) << s;
    EXPECT_EQ(*out[0].data<float>(), 3.0f);
  }

 private:
  bool Has(const char* name) {
    millrace::GraphLock lock(&graph_->mu);
    return graph_->graph.Find(name) != nullptr;
  }
  Status Run(const char* name, const Feeds& feeds, std::vector<Tensor>* out = nullptr) {
    std::vector<Output> fed, fetches;
    std::vector<Node*> targets;
    {
      millrace::GraphLock lock(&graph_->mu);
      Node* node = graph_->graph.Find(name);
      if (node == nullptr) return Internal("the case has no node '", name, "'");
      if (node->num_outputs() > 0) {
        fetches.push_back(node->output(0));
      } else {
        targets.push_back(node);
      }
      for (const std::string& f : feeds.names) fed.push_back(graph_->graph.Find(f)->output(0));
    }
    wire::RunOptions options;
    options.timeout_in_ms = timeout_ms_;
    std::vector<Tensor> ignored;
    return session_->Run(&options, fed, feeds.values, fetches, targets, out ? out : &ignored, nullptr);
  }

  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  std::unique_ptr<Session> session_;
  int64_t timeout_ms_ = kTimeoutMs;
};

void Judge(const Codes& codes, const char* how, const std::function<Status(Bench&)>& step,
           double cpu_limit = kCpuSeconds) {
  SCOPED_TRACE(how);
  Bench bench;
  const double cpu = CpuSeconds();
  const long peak = PeakKilobytes();
  const Status s = step(bench);
  EXPECT_LT(CpuSeconds() - cpu, cpu_limit);
  EXPECT_LT(PeakKilobytes() - peak, 256 << 10);
  EXPECT_TRUE(std::find(codes.begin(), codes.end(), s.code()) != codes.end()) << s;
  EXPECT_TRUE(s.ok() || !s.message().empty());
  bench.RunGood();
}

// Constants whose value is sound become placeholders; an unsound one stays, to be refused by import.
wire::GraphDef Fed(const wire::GraphDef& def, Feeds* feeds) {
  wire::GraphDef out = def;
  for (wire::NodeDef& n : out.node) {
    if (n.name == "bad" || n.op != "Const" || n.attr["value"].kind != Kind::kTensor) continue;
    auto value = TensorFromProto(*n.attr["value"].tensor);
    if (!value.ok()) continue;
    feeds->names.push_back(n.name);
    n.op = "Placeholder";
    n.attr.clear();
    n.attr["dtype"] = Type(value->dtype());
    wire::AttrValue unknown = Attr(Kind::kShape);
    unknown.shape.Ensure().unknown_rank = true;
    n.attr["shape"] = unknown;
    feeds->values.push_back(*std::move(value));
  }
  return out;
}

}  // namespace

wire::AttrValue TypeNumber(int32_t t) {
  wire::AttrValue v = Attr(Kind::kType);
  v.type = t;
  return v;
}
wire::AttrValue Type(DType t) { return TypeNumber(static_cast<int32_t>(t)); }
wire::AttrValue Int(int64_t i) {
  wire::AttrValue v = Attr(Kind::kI);
  v.i = i;
  return v;
}
wire::AttrValue Ints(std::vector<int64_t> values) {
  wire::AttrValue v = Attr(Kind::kList);
  v.list.Ensure().i = std::move(values);
  return v;
}
wire::AttrValue Float(float f) {
  wire::AttrValue v = Attr(Kind::kF);
  v.f = f;
  return v;
}
wire::AttrValue Bool(bool b) {
  wire::AttrValue v = Attr(Kind::kB);
  v.b = b;
  return v;
}
wire::AttrValue Str(std::string s) {
  wire::AttrValue v = Attr(Kind::kS);
  v.s = std::move(s);
  return v;
}
wire::AttrValue ShapeOf(const Dims& dims) {
  wire::AttrValue v = Attr(Kind::kShape);
  v.shape.Ensure() = ShapeProto(dims);
  return v;
}
wire::AttrValue TensorOf(wire::TensorProto t) {
  wire::AttrValue v = Attr(Kind::kTensor);
  v.tensor.Ensure() = std::move(t);
  return v;
}
wire::AttrValue Func(std::string name) {
  wire::AttrValue v = Attr(Kind::kFunc);
  v.func.Ensure().name = std::move(name);
  return v;
}

wire::TensorProto Values(DType t, const Dims& dims) {
  wire::TensorProto p;
  p.dtype = static_cast<int32_t>(t);
  p.tensor_shape.Ensure() = ShapeProto(dims);
  return p;
}

GraphMaker& GraphMaker::Const(const std::string& name, DType t, wire::TensorProto value) {
  return Raw(name, "Const", {}, {{"dtype", Type(t)}, {"value", TensorOf(std::move(value))}});
}
GraphMaker& GraphMaker::F32(const std::string& name, const Dims& dims, std::vector<float> v) {
  wire::TensorProto p = Values(DType::kFloat, dims);
  p.float_val = std::move(v);
  return Const(name, DType::kFloat, std::move(p));
}
GraphMaker& GraphMaker::I32(const std::string& name, const Dims& dims, std::vector<int32_t> v) {
  wire::TensorProto p = Values(DType::kInt32, dims);
  p.int_val = std::move(v);
  return Const(name, DType::kInt32, std::move(p));
}
GraphMaker& GraphMaker::I64(const std::string& name, const Dims& dims, std::vector<int64_t> v) {
  wire::TensorProto p = Values(DType::kInt64, dims);
  p.int64_val = std::move(v);
  return Const(name, DType::kInt64, std::move(p));
}
GraphMaker& GraphMaker::Bools(const std::string& name, const Dims& dims, std::vector<bool> v) {
  wire::TensorProto p = Values(DType::kBool, dims);
  p.bool_val = std::move(v);
  return Const(name, DType::kBool, std::move(p));
}
GraphMaker& GraphMaker::Strings(const std::string& name, const Dims& dims, std::vector<std::string> v) {
  wire::TensorProto p = Values(DType::kString, dims);
  p.string_val = std::move(v);
  return Const(name, DType::kString, std::move(p));
}

GraphMaker& GraphMaker::Raw(const std::string& name, const std::string& op, std::vector<std::string> inputs,
                            const Attrs& attrs, const std::string& device) {
  wire::NodeDef& n = def_.node.emplace_back();
  n.name = name;
  n.op = op;
  n.input = std::move(inputs);
  n.device = device;
  for (const auto& [key, value] : attrs) n.attr[key] = value;
  return *this;
}

GraphMaker& GraphMaker::Op(const std::string& name, const std::string& op, std::vector<std::string> inputs,
                           Attrs attrs) {
  std::map<std::string, wire::AttrValue> dtypes;
  for (wire::NodeDef& n : def_.node) {
    if (n.op == "Const") dtypes[n.name] = n.attr["dtype"];
  }
  const auto known = [&](const std::string& key) {
    return std::any_of(attrs.begin(), attrs.end(), [&](const auto& a) { return a.first == key; });
  };
  const OpDef* def = System::Default().ops().Find(op);
  EXPECT_NE(def, nullptr) << op;
  size_t at = 0;
  for (size_t i = 0; def != nullptr && i < def->inputs.size(); ++i) {
    const ArgDef& arg = def->inputs[i];
    if (!arg.type_attr.empty() && !known(arg.type_attr) && at < inputs.size() && dtypes.contains(inputs[at])) {
      attrs.emplace_back(arg.type_attr, dtypes[inputs[at]]);
    }
    size_t count = 1;
    if (!arg.number_attr.empty()) {
      count = inputs.size() - (def->inputs.size() - 1);
      if (!known(arg.number_attr)) attrs.emplace_back(arg.number_attr, Int(static_cast<int64_t>(count)));
    }
    at += count;
  }
  return Raw(name, op, std::move(inputs), attrs);
}

GraphMaker& GraphMaker::CallingFunction(const std::string& name, const std::string& callee, int times) {
  wire::FunctionDef& f = def_.library.Ensure().function.emplace_back();
  wire::OpDef& sig = f.signature.Ensure();
  sig.name = name;
  sig.input_arg.emplace_back().name = "x";
  sig.output_arg.emplace_back().name = "y";
  sig.input_arg[0].type = sig.output_arg[0].type = static_cast<int32_t>(DType::kFloat);
  std::string from = "x";
  const bool primitive = System::Default().ops().Find(callee) != nullptr;
  for (int i = 0; i < times; ++i) {
    wire::NodeDef& n = f.node_def.emplace_back();
    n.name = absl::StrCat("n", i);
    n.op = callee;
    n.input = {from};
    if (primitive) n.attr["T"] = Type(DType::kFloat);
    from = absl::StrCat(n.name, ":y:0");
  }
  f.ret["y"] = from;
  return *this;
}

bool HasOp(const std::string& name) { return System::Default().ops().Find(name) != nullptr; }

void Check(const GraphMaker& g, const Codes& codes, How how) {
  if (how != How::kFed) {
    Judge(codes, "constants", [&](Bench& b) {
      wire::GraphDef def;
      MR_RETURN_IF_ERROR(wire::Decode(wire::Encode(g.def()), &def));
      return b.ImportAndRun(def, {});
    });
  }
  if (how != How::kConstants) {
    Judge(codes, "fed", [&](Bench& b) {
      Feeds feeds;
      const wire::GraphDef def = Fed(g.def(), &feeds);
      return b.ImportAndRun(def, feeds);
    });
  }
}

void CheckEndless(const GraphMaker& g) {
  Judge(
      {absl::StatusCode::kDeadlineExceeded}, "endless",
      [&](Bench& b) {
        b.set_timeout_ms(300);
        return b.ImportAndRun(g.def(), {});
      },
      4.0);
}

void CheckAtOnce(const GraphMaker& g, const std::string& one, const std::string& other, int times, const Codes& codes) {
  Bench bench;
  ASSERT_TRUE(bench.Import(g.def()).ok());
  ASSERT_TRUE(bench.RunAlone("init").ok());
  const auto run = [&](const std::string& name) {
    const Status s = bench.RunAlone(name);
    EXPECT_TRUE(std::find(codes.begin(), codes.end(), s.code()) != codes.end()) << s;
  };
  std::atomic<bool> is_done = false;
  std::thread beside([&] {
    while (!is_done) run(other);
  });
  for (int i = 0; i < times; ++i) run(one);
  is_done = true;
  beside.join();
  bench.RunGood();
}

void CheckBytes(const std::string& bytes, const Codes& codes) {
  Judge(codes, "bytes", [&](Bench& b) {
    wire::GraphDef def;
    MR_RETURN_IF_ERROR(wire::Decode(bytes, &def));
    return b.ImportAndRun(def, {});
  });
}

}  // namespace millrace::bad_inputs
