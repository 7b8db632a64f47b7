// SPDX-License-Identifier: Apache-2.0
// The cells that compute: plain, gated (Cho et al. 2014), LSTM (Hochreiter and Schmidhuber 1997, Sak et al. 2014), and
// the fused forms of the last two. Parameters and their names are TensorFlow's, so that its checkpoints fit.
#include "ops/rnn/rnn_cell.h"

namespace millrace {
namespace {

constexpr int64_t kMaxUnits = int64_t{1} << 24;

#define MR_ACTIVATION "activation in {Tanh,Relu,Relu6,Sigmoid,Elu,Softsign,Identity}=\"Tanh\""

struct BasicOptions {
  int64_t units = 0;
  std::string activation = "Tanh";

  Status Read(const AttrMap& attrs) {
    MR_ASSIGN_OR_RETURN(units, GetAttr<int64_t>(attrs, "num_units"));
    if (units > kMaxUnits) return InvalidArgument("num_units is ", units, ", want at most ", kMaxUnits);
    if (attrs.find("activation") != attrs.end()) {
      MR_ASSIGN_OR_RETURN(activation, GetAttr<std::string>(attrs, "activation"));
    }
    return absl::OkStatus();
  }
};

// Names of nodes are those that TensorFlow 1.x gives; some of its cells state their arithmetic by operators ("mul"),
// some by functions ("Mul").
std::vector<Output> Split(const GraphBuilder& split, Output axis, Output x, int parts) {
  Node* node = split.WithName("/").OpNode("Split", {axis, x}, {{"num_split", parts}});
  std::vector<Output> out(static_cast<size_t>(parts));
  for (int i = 0; node && i < parts; ++i) out[static_cast<size_t>(i)] = node->output(i);
  return out;
}

// The constant that tf.split makes of how many parts it is asked for, and nobody reads.
void NoteParts(const GraphBuilder& b, int parts) { b.Scalar<int32_t>(parts); }

std::vector<Output> SplitColumns(const GraphBuilder& b, Output x, int parts) {
  NoteParts(b, parts);
  const GraphBuilder split = b.Scope("split");
  const Output axis = split.WithName("split_dim").Scalar<int32_t>(1);
  return Split(split, axis, x, parts);
}

Output Mul(const GraphBuilder& b, Output x, Output y) { return b.WithName("mul").Mul(x, y); }
Output Add(const GraphBuilder& b, Output x, Output y) { return b.WithName("add").Add(x, y); }
Output AddNumber(const GraphBuilder& b, Output x, double number) {
  const GraphBuilder add = b.Scope("add");
  const Output y = add.WithName("y").ScalarOf(BaseType(x.dtype()), number);
  return add.WithName("/").Add(x, y);
}

Output Clip(const GraphBuilder& b, Output x, float limit) {
  if (!(limit > 0)) return x;
  const DType t = BaseType(x.dtype());
  const double most = static_cast<double>(limit);
  const GraphBuilder clip = b.Scope("clip_by_value");
  const Output high = clip.WithName("Minimum/y").ScalarOf(t, most);
  const Output below = clip.Op("Minimum", {x, high});
  const Output low = clip.WithName("y").ScalarOf(t, -most);
  return clip.WithName("/").Op("Maximum", {below, low});
}

// A cell whose step has a scope of its own.
class BasicCell : public RnnCell {
 public:
  StatusOr<Output> Step(const GraphBuilder& b, Output input, CellRun& run) const final {
    return StepInside(CellScope(b, scope_name(), run), input, run);
  }

 protected:
  virtual const char* scope_name() const = 0;
};

class PlainCell : public BasicCell {
 public:
  static StatusOr<RnnCellPtr> Make(const AttrMap& attrs, CellChildren) {
    auto cell = std::make_unique<PlainCell>();
    MR_RETURN_IF_ERROR(cell->o_.Read(attrs));
    return cell;
  }
  StatusOr<int64_t> Describe(int64_t inputs, const std::string& scope, CellLayout* layout) const override {
    layout->parameters.push_back({scope + "basic_rnn_cell/kernel", {inputs + o_.units, o_.units}});
    layout->parameters.push_back({scope + "basic_rnn_cell/bias", {o_.units}, CellInitial::kZeros});
    layout->state_sizes.push_back(o_.units);
    return o_.units;
  }
  size_t num_states() const override { return 1; }
  const char* kind() const override { return "BasicRNNCell"; }
  const char* scope_name() const override { return "basic_rnn_cell"; }
  StatusOr<Output> StepInside(const GraphBuilder& b, Output input, CellRun& run) const override {
    const Output kernel = run.TakeParameter(), bias = run.TakeParameter(), h = run.TakeState();
    const Output out = b.Op(o_.activation, {Linear(b, {input, h}, kernel, bias)});
    run.Give(out);
    return out;
  }

 private:
  BasicOptions o_;
};

Status DescribeGru(int64_t inputs, int64_t units, const std::string& scope, CellLayout* layout) {
  layout->parameters.push_back({scope + "gru_cell/gates/kernel", {inputs + units, 2 * units}});
  layout->parameters.push_back({scope + "gru_cell/gates/bias", {2 * units}, CellInitial::kOnes});
  layout->parameters.push_back({scope + "gru_cell/candidate/kernel", {inputs + units, units}});
  layout->parameters.push_back({scope + "gru_cell/candidate/bias", {units}, CellInitial::kZeros});
  layout->state_sizes.push_back(units);
  return absl::OkStatus();
}

template <bool kFused>
class GruCell : public BasicCell {
 public:
  static StatusOr<RnnCellPtr> Make(const AttrMap& attrs, CellChildren) {
    auto cell = std::make_unique<GruCell>();
    MR_RETURN_IF_ERROR(cell->o_.Read(attrs));
    return cell;
  }
  StatusOr<int64_t> Describe(int64_t inputs, const std::string& scope, CellLayout* layout) const override {
    MR_RETURN_IF_ERROR(DescribeGru(inputs, o_.units, scope, layout));
    return o_.units;
  }
  size_t num_states() const override { return 1; }
  const char* kind() const override { return kFused ? "GRUBlockCell" : "GRUCell"; }
  const char* scope_name() const override { return "gru_cell"; }
  StatusOr<Output> StepInside(const GraphBuilder& b, Output input, CellRun& run) const override {
    const Output gates_kernel = run.TakeParameter(), gates_bias = run.TakeParameter();
    const Output kernel = run.TakeParameter(), bias = run.TakeParameter(), h = run.TakeState();
    Output out;
    if constexpr (kFused) {
      Node* n = b.OpNode("GRUBlockCell", {input, h, gates_kernel, kernel, gates_bias, bias});
      if (n) out = n->output(3);
    } else {
      const Output gates = b.Op("Sigmoid", {Linear(b, {input, h}, gates_kernel, gates_bias)});
      const std::vector<Output> ru = SplitColumns(b, gates, 2);
      const Output past = Mul(b, ru[0], h);
      const Output candidate = b.Op(o_.activation, {Linear(b, {input, past}, kernel, bias)});
      const Output kept = Mul(b, ru[1], h);
      const GraphBuilder sub = b.Scope("sub");
      const Output one = sub.WithName("x").ScalarOf(BaseType(input.dtype()), 1);
      const Output rest = sub.WithName("/").Sub(one, ru[1]);
      const Output added = Mul(b, rest, candidate);
      out = Add(b, kept, added);
    }
    run.Give(out);
    return out;
  }

 private:
  BasicOptions o_;
};

// BasicLSTMCell is the one without peepholes, projection and clipping, under a name of its own.
class LstmCell : public BasicCell {
 public:
  static StatusOr<RnnCellPtr> Make(const AttrMap& attrs, CellChildren) {
    auto cell = std::make_unique<LstmCell>();
    MR_RETURN_IF_ERROR(cell->o_.Read(attrs));
    MR_ASSIGN_OR_RETURN(cell->forget_bias_, GetAttr<float>(attrs, "forget_bias"));
    cell->is_basic_ = attrs.find("num_proj") == attrs.end();
    if (cell->is_basic_) return cell;
    MR_ASSIGN_OR_RETURN(cell->peepholes_, GetAttr<bool>(attrs, "use_peepholes"));
    MR_ASSIGN_OR_RETURN(cell->cell_clip_, GetAttr<float>(attrs, "cell_clip"));
    MR_ASSIGN_OR_RETURN(cell->num_proj_, GetAttr<int64_t>(attrs, "num_proj"));
    MR_ASSIGN_OR_RETURN(cell->proj_clip_, GetAttr<float>(attrs, "proj_clip"));
    if (cell->num_proj_ > kMaxUnits)
      return InvalidArgument("num_proj is ", cell->num_proj_, ", want at most ", kMaxUnits);
    return cell;
  }
  StatusOr<int64_t> Describe(int64_t inputs, const std::string& scope, CellLayout* layout) const override {
    const std::string here = absl::StrCat(scope, scope_name(), "/");
    const int64_t units = o_.units, outputs = num_proj_ > 0 ? num_proj_ : units;
    layout->parameters.push_back({here + "kernel", {inputs + outputs, 4 * units}});
    layout->parameters.push_back({here + "bias", {4 * units}, CellInitial::kZeros});
    if (peepholes_) {
      for (const char* name : {"w_f_diag", "w_i_diag", "w_o_diag"})
        layout->parameters.push_back({here + name, {units}});
    }
    if (num_proj_ > 0) layout->parameters.push_back({here + "projection/kernel", {units, num_proj_}});
    layout->state_sizes.push_back(units);
    layout->state_sizes.push_back(outputs);
    return outputs;
  }
  size_t num_states() const override { return 2; }
  const char* kind() const override { return is_basic_ ? "BasicLSTMCell" : "LSTMCell"; }
  const char* scope_name() const override { return is_basic_ ? "basic_lstm_cell" : "lstm_cell"; }
  StatusOr<Output> StepInside(const GraphBuilder& b, Output input, CellRun& run) const override {
    return is_basic_ ? BasicStep(b, input, run) : FullStep(b, input, run);
  }

 private:
  // Gates stand in the order input, candidate, forget, output.
  StatusOr<Output> BasicStep(const GraphBuilder& b, Output input, CellRun& run) const {
    const Output kernel = run.TakeParameter(), bias = run.TakeParameter(), c = run.TakeState(), h = run.TakeState();
    const Output axis = b.Scalar<int32_t>(1);
    const Output gates = Linear(b, {input, h}, kernel, bias);
    NoteParts(b, 4);
    const std::vector<Output> g = Split(b.Scope("split"), axis, gates, 4);
    const Output forget_bias = b.ScalarOf(BaseType(input.dtype()), static_cast<double>(forget_bias_));
    const GraphBuilder add = b.WithName("Add");
    const Output forget = b.Op("Sigmoid", {add.Add(g[2], forget_bias)});
    const Output kept = b.Mul(c, forget);
    const Output in = b.Op("Sigmoid", {g[0]});
    const Output candidate = b.Op(o_.activation, {g[1]});
    const Output added = b.Mul(in, candidate);
    const Output new_c = add.Add(kept, added);
    const Output shown = b.Op(o_.activation, {new_c});
    const Output out = b.Mul(shown, b.Op("Sigmoid", {g[3]}));
    run.Give(new_c, true);
    run.Give(out);
    return out;
  }

  StatusOr<Output> FullStep(const GraphBuilder& b, Output input, CellRun& run) const {
    const Output kernel = run.TakeParameter(), bias = run.TakeParameter();
    Output w_f, w_i, w_o;
    if (peepholes_) w_f = run.TakeParameter(), w_i = run.TakeParameter(), w_o = run.TakeParameter();
    const Output projection = num_proj_ > 0 ? run.TakeParameter() : Output();
    const Output c = run.TakeState(), h = run.TakeState();
    const std::vector<Output> g = SplitColumns(b, Linear(b, {input, h}, kernel, bias), 4);
    Output forget = AddNumber(b, g[2], static_cast<double>(forget_bias_));
    if (peepholes_) forget = Add(b, forget, Mul(b, w_f, c));
    forget = b.Op("Sigmoid", {forget});
    const Output kept = Mul(b, forget, c);
    Output in = peepholes_ ? Add(b, g[0], Mul(b, w_i, c)) : g[0];
    in = b.Op("Sigmoid", {in});
    const Output candidate = b.Op(o_.activation, {g[1]});
    const Output added = Mul(b, in, candidate);
    const Output new_c = Clip(b, Add(b, kept, added), cell_clip_);
    const Output open = b.Op("Sigmoid", {peepholes_ ? Add(b, g[3], Mul(b, w_o, new_c)) : g[3]});
    const Output shown = b.Op(o_.activation, {new_c});
    Output out = Mul(b, open, shown);
    if (num_proj_ > 0) out = Clip(b, b.MatMul(out, projection), proj_clip_);
    run.Give(new_c, true);
    run.Give(out);
    return out;
  }

  BasicOptions o_;
  bool is_basic_ = false;
  float forget_bias_ = 1, cell_clip_ = 0, proj_clip_ = 0;
  bool peepholes_ = false;
  int64_t num_proj_ = 0;
};

// Row lengths[k] of example k in [initial; steps], which is the state after that many steps.
Output StateAt(const GraphBuilder& b, Output initial, Output steps, Output lengths) {
  const int64_t known = steps.shape().dim(0);
  if (!lengths && known > 0) return b.Op("GatherV2", {steps, b.Scalar<int64_t>(known - 1), b.Scalar<int32_t>(0)});
  const Output zero = b.Scalar<int32_t>(0);
  const Output all = b.Op("ConcatV2", {std::vector<Output>{b.Op("ExpandDims", {initial, zero}), steps}, zero});
  const Output shape = b.Shape(steps, DType::kInt64);
  auto dim = [&](int64_t i) { return b.Op("GatherV2", {shape, b.Scalar<int64_t>(i), b.Scalar<int32_t>(0)}); };
  if (!lengths) return b.Op("GatherV2", {all, dim(0), zero});
  const Output examples = b.Op("Range", {b.Scalar<int64_t>(0), dim(1), b.Scalar<int64_t>(1)});
  return b.Op("GatherNd", {all, b.Op("Pack", {std::vector<Output>{lengths, examples}}, {{"axis", 1}})});
}

class LstmBlockCell : public BasicCell {
 public:
  static StatusOr<RnnCellPtr> Make(const AttrMap& attrs, CellChildren) {
    auto cell = std::make_unique<LstmBlockCell>();
    MR_RETURN_IF_ERROR(cell->o_.Read(attrs));
    MR_ASSIGN_OR_RETURN(cell->forget_bias_, GetAttr<float>(attrs, "forget_bias"));
    MR_ASSIGN_OR_RETURN(cell->clip_, GetAttr<float>(attrs, "cell_clip"));
    MR_ASSIGN_OR_RETURN(cell->peepholes_, GetAttr<bool>(attrs, "use_peephole"));
    return cell;
  }
  StatusOr<int64_t> Describe(int64_t inputs, const std::string& scope, CellLayout* layout) const override {
    const int64_t units = o_.units;
    layout->parameters.push_back({scope + "lstm_cell/kernel", {inputs + units, 4 * units}});
    layout->parameters.push_back({scope + "lstm_cell/bias", {4 * units}, CellInitial::kZeros});
    if (peepholes_) {
      for (const char* name : {"w_i_diag", "w_f_diag", "w_o_diag"}) {
        layout->parameters.push_back({absl::StrCat(scope, "lstm_cell/", name), {units}});
      }
    }
    layout->state_sizes.push_back(units);
    layout->state_sizes.push_back(units);
    return units;
  }
  size_t num_states() const override { return 2; }
  const char* kind() const override { return "LSTMBlockCell"; }
  const char* scope_name() const override { return "lstm_cell"; }
  StatusOr<Output> StepInside(const GraphBuilder& b, Output input, CellRun& run) const override {
    std::vector<Arg> args;
    TakeAll(b, input, run, &args);
    Node* n = b.OpNode("LSTMBlockCell", std::move(args),
                       {{"forget_bias", forget_bias_}, {"cell_clip", clip_}, {"use_peephole", peepholes_}});
    const Output h = n ? n->output(6) : Output();
    run.Give(n ? n->output(1) : Output(), true);
    run.Give(h);
    return h;
  }
  bool HasSequence() const override { return true; }
  StatusOr<Output> Sequence(const GraphBuilder& b, Output inputs, CellRun& run) const override {
    const int64_t known = inputs.shape().dim(0);
    Output steps =
        known >= 0 ? b.Scalar<int64_t>(known)
                   : b.Op("GatherV2", {b.Shape(inputs, DType::kInt64), b.Scalar<int64_t>(0), b.Scalar<int32_t>(0)});
    if (run.lengths) {
      steps = b.Op("Minimum",
                   {steps, b.Op("Maximum", {b.Op("Max", {run.lengths, b.Scalar<int32_t>(0)}), b.Scalar<int64_t>(0)})});
    }
    std::vector<Arg> args = {steps};
    const Output c = run.PeekState(0), h = run.PeekState(1);
    TakeAll(b, inputs, run, &args);
    Node* n = b.OpNode("BlockLSTM", std::move(args),
                       {{"forget_bias", forget_bias_}, {"cell_clip", clip_}, {"use_peephole", peepholes_}});
    if (!n) return b.status();
    run.Give(StateAt(b, c, n->output(1), run.lengths), true);
    run.Give(StateAt(b, h, n->output(6), run.lengths));
    return n->output(6);
  }

 private:
  // x, cs_prev, h_prev, w, wci, wcf, wco, b
  void TakeAll(const GraphBuilder& b, Output input, CellRun& run, std::vector<Arg>* args) const {
    const Output kernel = run.TakeParameter(), bias = run.TakeParameter();
    std::vector<Output> diagonals;
    for (int i = 0; i < 3; ++i) {
      diagonals.push_back(
          peepholes_ ? run.TakeParameter()
          : i > 0    ? diagonals[0]
                     : b.Op("Fill", {b.Vector<int64_t>({o_.units}), b.ScalarOf(BaseType(input.dtype()), 0)}));
    }
    const Output c = run.TakeState(), h = run.TakeState();
    for (Output o : {input, c, h, kernel, diagonals[0], diagonals[1], diagonals[2], bias}) args->emplace_back(o);
  }

  BasicOptions o_;
  float forget_bias_ = 1, clip_ = 0;
  bool peepholes_ = false;
};

}  // namespace

std::vector<CellKind> BasicCellKinds() {
  return {
      {"BasicRNNCell() -> () | num_units:int>=1; " MR_ACTIVATION, 0, 0, PlainCell::Make},
      {"GRUCell() -> () | num_units:int>=1; " MR_ACTIVATION, 0, 0, GruCell<false>::Make},
      {"BasicLSTMCell() -> () | num_units:int>=1; forget_bias:float=1.0; " MR_ACTIVATION, 0, 0, LstmCell::Make},
      {"LSTMCell() -> () | num_units:int>=1; use_peepholes:bool=false; cell_clip:float=0.0; num_proj:int>=0=0; "
       "proj_clip:float=0.0; forget_bias:float=1.0; " MR_ACTIVATION,
       0, 0, LstmCell::Make},
      {"LSTMBlockCell() -> () | num_units:int>=1; forget_bias:float=1.0; cell_clip:float=0.0; use_peephole:bool=false",
       0, 0, LstmBlockCell::Make},
      {"GRUBlockCell() -> () | num_units:int>=1", 0, 0, GruCell<true>::Make},
  };
}

}  // namespace millrace
