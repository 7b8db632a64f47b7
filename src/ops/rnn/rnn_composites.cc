// SPDX-License-Identifier: Apache-2.0
// Composites: recurrent networks. Every loop takes any cell (rnn_cell.h).
#include "ops/rnn/rnn_composites.h"

#include <algorithm>

namespace millrace {

StatusOr<RnnCellPtr> CellOf(const CompositeCall& call, absl::string_view attr) {
  MR_ASSIGN_OR_RETURN(const std::string text, call.Attr<std::string>(attr));
  return ParseRnnCell(text);
}

StatusOr<RnnResult> UnrollCell(const RnnCell& cell, const GraphBuilder& b, const std::vector<Output>& inputs,
                               Output lengths, const std::vector<Output>& states,
                               const std::vector<Output>& parameters) {
  RnnResult r;
  r.states = states;
  Output zeros;
  for (size_t t = 0; t < inputs.size(); ++t) {
    CellRun run(parameters, r.states, static_cast<int64_t>(t));
    MR_ASSIGN_OR_RETURN(Output out, RunStep(cell, b, inputs[t], run));
    if (lengths) {
      const Output running = b.Op("Less", {b.Scalar<int64_t>(static_cast<int64_t>(t)), lengths});
      if (!zeros) zeros = b.ZerosLike(out);
      out = b.Op("Select", {running, out, zeros});
      for (size_t i = 0; i < r.states.size(); ++i) {
        run.new_states[i] = b.Op("Select", {running, run.new_states[i], r.states[i]});
      }
    }
    r.list.push_back(out);
    std::vector<Output> next = std::move(run.new_states);
    r.states = std::move(next);
  }
  MR_RETURN_IF_ERROR(b.status());
  return r;
}

StatusOr<Output> LengthsOf(const GraphBuilder& b, const CompositeCall& c, absl::string_view name, DType type) {
  const std::vector<Output> list = c.list(name);
  if (list.size() > 1) return InvalidArgument(name, " is one vector, got ", list.size());
  return list.empty() ? Output() : b.Cast(list[0], type);
}

namespace {

using Outputs = StatusOr<std::vector<Output>>;

std::vector<Output> Flat(std::vector<Output> first, const std::vector<Output>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Outputs OneStep(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const RnnCellPtr cell, CellOf(c, "cell"));
  const std::vector<Output> parameters = c.list("parameters"), states = c.list("state");
  CellRun run(parameters, states);
  MR_ASSIGN_OR_RETURN(const Output out, RunStep(*cell, b, c.x("inputs"), run));
  return Flat({out}, run.new_states);
}

// The composite of basic cell kIndex: attributes in place of a text.
template <size_t kIndex>
Outputs NamedStep(const GraphBuilder& b, const CompositeCall& c) {
  const CellKind kind = BasicCellKinds()[kIndex];
  MR_ASSIGN_OR_RETURN(const RnnCellPtr cell, kind.make(c.attrs(), {}));
  const std::vector<Output> parameters = c.list("parameters"), states = c.list("state");
  CellRun run(parameters, states);
  MR_ASSIGN_OR_RETURN(const Output out, RunStepInside(*cell, b, c.x("inputs"), run));
  return Flat({out}, run.new_states);
}

Outputs ZeroState(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const RnnCellPtr cell, CellOf(c, "cell"));
  MR_ASSIGN_OR_RETURN(const int64_t dim, c.Attr<int64_t>("batch_dim"));
  MR_ASSIGN_OR_RETURN(const int64_t count, c.Attr<int64_t>("S"));
  const Output x = c.x("inputs");
  const int64_t width = x.shape().dim(x.shape().rank() - 1);
  if (width < 0) return InvalidArgument("ZeroState: the last dimension of ", x.ToString(), " is not known");
  if (dim < 0 || dim >= x.shape().rank()) return InvalidArgument("ZeroState: batch_dim is ", dim);
  MR_ASSIGN_OR_RETURN(const CellLayout layout, DescribeCell(*cell, width));
  if (count != static_cast<int64_t>(layout.state_sizes.size())) {
    return InvalidArgument("ZeroState: S is ", count, ", the cell has ", layout.state_sizes.size(), " states");
  }
  const int64_t known = x.shape().dim(static_cast<int>(dim));
  Output batch = c.x("batch");
  if (known < 0 && !batch) batch = ElementOf(b, b.Shape(x), static_cast<int>(dim));
  const std::vector<Output> memories = c.list("memory");
  ZeroStates zeros(BaseType(x.dtype()), batch, known, layout.state_sizes, memories);
  return cell->ZeroState(b, zeros);
}

Outputs StaticRnn(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const RnnCellPtr cell, CellOf(c, "cell"));
  MR_ASSIGN_OR_RETURN(const Output lengths, LengthsOf(b, c, "sequence_length"));
  MR_ASSIGN_OR_RETURN(
      RnnResult r, UnrollCell(*cell, b, c.list("inputs"), lengths, c.list("initial_state"), c.list("parameters")));
  return Flat(std::move(r.list), r.states);
}

Outputs StaticBidirectionalRnn(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const RnnCellPtr forward, CellOf(c, "cell_fw"));
  MR_ASSIGN_OR_RETURN(const RnnCellPtr backward, CellOf(c, "cell_bw"));
  MR_ASSIGN_OR_RETURN(const Output lengths, LengthsOf(b, c, "sequence_length"));
  const std::vector<Output> inputs = c.list("inputs");
  // Each example's own steps are turned around, not its padding.
  auto reversed = [&](std::vector<Output> list) {
    if (!lengths) {
      std::reverse(list.begin(), list.end());
      return list;
    }
    const Output turned = b.Op("ReverseSequence", {b.Op("Pack", {list}), lengths}, {{"seq_dim", 0}, {"batch_dim", 1}});
    Node* n = b.OpNode("Unpack", {turned}, {{"num", static_cast<int64_t>(list.size())}});
    for (size_t i = 0; n && i < list.size(); ++i) list[i] = n->output(static_cast<int>(i));
    return list;
  };
  MR_ASSIGN_OR_RETURN(
      const RnnResult f,
      UnrollCell(*forward, b.Scope("fw"), inputs, lengths, c.list("initial_state_fw"), c.list("parameters_fw")));
  MR_ASSIGN_OR_RETURN(const RnnResult r, UnrollCell(*backward, b.Scope("bw"), reversed(inputs), lengths,
                                                    c.list("initial_state_bw"), c.list("parameters_bw")));
  const std::vector<Output> back = reversed(r.list);
  std::vector<Output> out;
  for (size_t i = 0; i < inputs.size(); ++i) out.push_back(ConcatColumns(b, {f.list[i], back[i]}));
  return Flat(Flat(std::move(out), f.states), r.states);
}

template <size_t kIndex>
void AddNamed(CompositeRegistry& r, absl::string_view doc, absl::string_view example) {
  const std::string schema = BasicCellKinds()[kIndex].schema;  // "Name() -> () | attributes"
  const size_t open = schema.find('('), bar = schema.find('|');
  r.Add(absl::StrCat(schema.substr(0, open),
                     "(inputs:T, state:S*T, parameters:P*T) -> (output:T, new_state:S*T) | "
                     "T in FLT; S:int>=1; P:int>=1;",
                     schema.substr(bar + 1)))
      .Doc(doc)
      .Expand(NamedStep<kIndex>)
      .Example(example);
}

// "BasicRNNCell (num_units:int>=1; ...), GRUCell (...), ..."
std::string KindsInWords() {
  std::string words;
  for (const std::string& schema : RnnCellKinds()) {
    const size_t open = schema.find('('), bar = schema.find("| ");
    absl::StrAppend(&words, words.empty() ? "" : ", ", schema.substr(0, open));
    if (bar != std::string::npos) absl::StrAppend(&words, " (", schema.substr(bar + 2), ")");
  }
  return words;
}

void RegisterCells(CompositeRegistry& r) {
  r.Add(
       "RNNCell(inputs:T, state:S*T, parameters:P*T) -> (output:T, new_state:S*T) | T in FLT; S:int>=1; P:int>=1; "
       "cell:string")
      .Doc(absl::StrCat("One step of a recurrent cell, given as a text such as \"LSTMCell(num_units=128)\" or "
                        "\"MultiRNNCell(GRUCell(num_units=64), ResidualWrapper(GRUCell(num_units=64)))\". States and "
                        "parameters stand in the order in which the cell has them. The cells and their attributes: ",
                        KindsInWords(), "."))
      .Expand(OneStep)
      .Example("f32[2,3]~, f32[2,4]~, f32[7,4]~, f32[4]~ | cell=\"BasicRNNCell(num_units=4)\"; S=1; P=2");
  AddNamed<0>(r,
              "One step of a plain recurrent cell: activation([inputs, h] kernel + bias). State h; parameters kernel "
              "[inputs + units, units] and bias.",
              "f32[2,3]~, f32[2,4]~, f32[7,4]~, f32[4]~ | num_units=4; S=1; P=2");
  AddNamed<1>(r,
              "One step of a gated recurrent unit (Cho et al. 2014). State h; parameters gates/kernel, gates/bias, "
              "candidate/kernel, candidate/bias; the columns of the gates are reset, update.",
              "f32[2,3]~, f32[2,4]~, f32[7,8]~, f32[8]~, f32[7,4]~, f32[4]~ | num_units=4; S=1; P=4");
  AddNamed<2>(
      r,
      "One step of an LSTM cell (Hochreiter and Schmidhuber 1997). States c, h; parameters kernel and bias, whose "
      "columns are input gate, candidate, forget gate, output gate.",
      "f32[2,3]~, f32[2,4]~, f32[2,4]~, f32[7,16]~, f32[16]~ | num_units=4; S=2; P=2");
  AddNamed<3>(
      r,
      "One step of an LSTM cell with peepholes, clipping and a projection of its output (Sak et al. 2014), each if "
      "asked for. States c, h; parameters kernel, bias, then w_f_diag, w_i_diag, w_o_diag, then projection/kernel.",
      "f32[2,3]~, f32[2,4]~, f32[2,2]~, f32[5,16]~, f32[16]~, f32[4]~, f32[4]~, f32[4]~, f32[4,2]~ | num_units=4; "
      "use_peepholes=true; num_proj=2; cell_clip=3.0; S=2; P=6");
}

void RegisterStaticLoops(CompositeRegistry& r) {
  r.Add(
       "ZeroState(inputs:T, memory:M*T, batch:B*i32) -> (state:S*T) | T in FLT; M:int>=0; S:int>=1; B:int>=0=0; "
       "cell:string; batch_dim:int=0")
      .Doc(
          "The zero state of a cell for inputs [..., width] whose examples are counted by dimension batch_dim. A cell "
          "that reads memories needs them, one for all or one each: their steps are as many as its weights. The number "
          "of examples may be given as `batch` (a list of none or one scalar).")
      .Expand(ZeroState)
      .Example("f32[2,3]~ | cell=\"BasicLSTMCell(num_units=4)\"; M=0; S=2; B=0");
  r.Add(
       "StaticRNN(inputs:N*T, sequence_length:L*Tlen, initial_state:S*T, parameters:P*T) -> (outputs:N*T, state:S*T) | "
       "T in FLT; Tlen in IDX=i32; N:int>=1; L:int>=0; S:int>=1; P:int>=1; cell:string")
      .Doc(
          "A recurrent network unrolled over a list of steps [batch, width]. With a sequence_length (a list of none or "
          "one vector) the outputs of an example are zero beyond its length and its state stays what it was there.")
      .Expand(StaticRnn)
      .Example(
          "f32[2,3]~, f32[2,3]~, i32[2]{1 2}, f32[2,4]~, f32[7,4]~, f32[4]~ | cell=\"BasicRNNCell(num_units=4)\"; "
          "N=2; L=1; S=1; P=2");
  r.Add(
       "StaticBidirectionalRNN(inputs:N*T, sequence_length:L*Tlen, initial_state_fw:S*T, initial_state_bw:R*T, "
       "parameters_fw:P*T, parameters_bw:Q*T) -> (outputs:N*T, state_fw:S*T, state_bw:R*T) | T in FLT; Tlen in "
       "IDX=i32; N:int>=1; L:int>=0; S:int>=1; R:int>=1; P:int>=1; Q:int>=1; cell_fw:string; cell_bw:string")
      .Doc(
          "Two recurrent networks over a list of steps, one from each end (Schuster and Paliwal 1997); the outputs of "
          "both stand side by side.")
      .Expand(StaticBidirectionalRnn)
      .Example(
          "f32[2,3]~, f32[2,3]~, f32[2,4]~, f32[2,2]~, f32[7,4]~, f32[4]~, f32[5,2]~, f32[2]~ | "
          "cell_fw=\"BasicRNNCell(num_units=4)\"; cell_bw=\"BasicRNNCell(num_units=2)\"; N=2; L=0; S=1; R=1; P=2; Q=2");
}

}  // namespace

void RegisterRnnComposites(CompositeRegistry& r) {
  RegisterCells(r);
  RegisterStaticLoops(r);
  RegisterDynamicLoops(r);
  RegisterAttention(r);
  RegisterSequenceLosses(r);
}

}  // namespace millrace
