// SPDX-License-Identifier: Apache-2.0
// Composites: recurrent networks over the steps of one tensor. A cell that can run a whole sequence does so; others run
// in a loop.
#include <algorithm>

#include "graph/control_flow.h"
#include "ops/formula.h"
#include "ops/rnn/rnn_composites.h"

namespace millrace {
namespace {

using Outputs = StatusOr<std::vector<Output>>;

Output SwapFirstTwo(const GraphBuilder& b, Output x) {
  const Output rank = b.WithName("Rank").Scalar<int32_t>(3);
  const GraphBuilder range = b.Scope("range");
  const Output from = range.WithName("start").Scalar<int32_t>(2), by = range.WithName("delta").Scalar<int32_t>(1);
  const Output rest = range.WithName("/").Op("Range", {from, rank, by});
  const GraphBuilder concat = b.Scope("concat");
  const Output two = concat.WithName("values_0").Vector<int32_t>({1, 0}), at = concat.WithName("axis").Scalar(0);
  const Output order = concat.WithName("/").Op("ConcatV2", {std::vector<Output>{two, rest}, at});
  return b.WithName("transpose").Op("Transpose", {x, order});
}

// Outputs [steps, batch, width] with zeros beyond each example's length.
Output MaskBeyond(const GraphBuilder& b, Output outputs, Output lengths) {
  const Output shape = b.Shape(outputs, DType::kInt64);
  const Output steps = b.Op("GatherV2", {shape, b.Scalar<int64_t>(0), b.Scalar<int32_t>(0)});
  const Output times = b.Op("Range", {b.Scalar<int64_t>(0), steps, b.Scalar<int64_t>(1)});
  const Output running = b.Op("Less", {b.Op("ExpandDims", {times, b.Scalar<int32_t>(1)}), lengths});
  return b.Op("SelectV2",
              {b.Op("ExpandDims", {running, b.Scalar<int32_t>(2)}), outputs, b.ScalarOf(BaseType(outputs.dtype()), 0)});
}

// A loop that reads the steps of `inputs` from one tensor array and writes outputs to another. Its nodes, their names
// order and colocation (with what is first written to an array) are those of TensorFlow 1.x's dynamic_rnn, and the same
// in Python (python/millrace/ops/rnn.py).
class StepLoop {
 public:
  // `lengths`: int32 [batch], or null. `batch`: how many examples there are, or null.
  StepLoop(const RnnCell& cell, const GraphBuilder& b, Output inputs, Output lengths, Output batch,
           const std::vector<Output>& parameters)
      : cell_(cell),
        b_(b),
        inputs_(inputs),
        lengths_(lengths),
        batch_(batch),
        parameters_(parameters),
        dtype_(BaseType(inputs.dtype())) {}

  StatusOr<RnnResult> Run(const std::vector<Output>& states, LoopOptions options) {
    MR_RETURN_IF_ERROR(Prepare());
    options.maximum_iterations = steps_;
    std::vector<Output> variables = {time_, written_->output(1)};
    variables.insert(variables.end(), states.begin(), states.end());
    MR_ASSIGN_OR_RETURN(
        const std::vector<Output> last,
        WhileLoop(
            b_, variables, [this](const GraphBuilder& b, const std::vector<Output>& v) { return Condition(b, v); },
            [this](const GraphBuilder& b, const std::vector<Output>& v) { return Body(b, v); }, options));
    RnnResult r;
    const GraphBuilder stack = b_.ColocateWith(written_).Scope("TensorArrayStack");
    const Output size = stack.Op("TensorArraySizeV3", {written_->output(0), last[1]}), places = Count(stack, size);
    r.outputs = stack.Op("TensorArrayGatherV3", {written_->output(0), places, last[1]},
                         {{"dtype", dtype_}, {"element_shape", element_}});
    MR_RETURN_IF_ERROR(b_.status());
    MR_RETURN_IF_ERROR(b_.graph().RefineShape(
        r.outputs, PartialShape::Of({inputs_.shape().dim(0), element_.dim(0), element_.dim(1)})));
    r.states.assign(last.begin() + 2, last.end());
    // Of the static shape of the outputs, in TensorFlow.
    const int64_t steps = inputs_.shape().dim(0), batch = inputs_.shape().dim(1);
    if (steps >= 0 && batch >= 0) b_.Vector<int32_t>({static_cast<int32_t>(steps), static_cast<int32_t>(batch)});
    b_.Vector<int32_t>({static_cast<int32_t>(element_.dim(1))});
    return r;
  }

 private:
  // 0, 1, ... before `limit`.
  static Output Count(const GraphBuilder& b, Output limit) {
    const GraphBuilder range = b.Scope("range");
    const Output start = range.WithName("start").Scalar<int32_t>(0);
    const Output delta = range.WithName("delta").Scalar<int32_t>(1);
    return range.WithName("/").Op("Range", {start, limit, delta});
  }

  Status Prepare() {
    const PartialShape shape = inputs_.shape();
    if (shape.dim(2) < 0) return InvalidArgument("the width of ", inputs_.ToString(), " must be known");
    MR_ASSIGN_OR_RETURN(const CellLayout layout, DescribeCell(cell_, shape.dim(2)));
    element_ = PartialShape::Of({shape.dim(1), layout.output_size});
    if (lengths_) {
      const bool counted = batch_ || shape.dim(1) >= 0;
      lengths_ = Checked(lengths_, counted ? batch_ : ElementOf(b_, b_.Shape(inputs_), 1));
    }
    steps_ = ElementOf(b_, ShapeOf(b_, inputs_), 0);
    Output last_step = steps_;
    const Output batch = shape.dim(1) < 0 ? ElementOf(b_, b_.Shape(inputs_), 1) : Output();
    zeros_ = ZerosOf(b_, dtype_, batch, shape.dim(1), layout.output_size);
    if (lengths_) {
      b_.Op("Min", {lengths_, b_.Vector<int32_t>({0})});  // TensorFlow's, which nobody reads
      last_step = b_.Op("Max", {lengths_, b_.Vector<int32_t>({0})});
    }
    time_ = b_.WithName("time").Scalar<int32_t>(0);
    MR_RETURN_IF_ERROR(MakeArrays(shape));
    // One step at least, so that there are outputs to stack.
    const GraphBuilder maximum = b_.Scope("Maximum");
    const Output one = maximum.WithName("x").Scalar<int32_t>(1);
    limit_ = b_.Op("Minimum", {steps_, maximum.WithName("/").Op("Maximum", {one, last_step})});
    return b_.status();
  }

  Status MakeArrays(const PartialShape& shape) {
    const std::string base = b_.Scope("dynamic_rnn").scope();
    const auto array = [&](const char* name, const PartialShape& element) {
      return b_.WithName("TensorArray")
          .OpNode("TensorArrayV3", {steps_},
                  {{"dtype", dtype_},
                   {"element_shape", element},
                   {"identical_element_shapes", true},
                   {"tensor_array_name", absl::StrCat(base, "/", name)}});
    };
    written_ = array("output_0", element_);
    read_ = array("input_0", PartialShape::Of({shape.dim(1), shape.dim(2)}));
    if (!read_ || !written_) return b_.status();
    const GraphBuilder unstack = b_.Scope("TensorArrayUnstack");
    const Output count = ElementOf(unstack, ShapeOf(unstack, inputs_), 0);
    const Output order = Count(unstack, count);
    read_flow_ = unstack.ColocateWith(inputs_.node)
                     .Scope("TensorArrayScatter")
                     .Op("TensorArrayScatterV3", {read_->output(0), order, inputs_, read_->output(1)});
    return b_.status();
  }

  // The lengths, once it is seen that there is one for each example.
  Output Checked(Output lengths, Output batch) const {
    const int64_t known = inputs_.shape().dim(1);
    const Output got = ShapeOf(b_, lengths);
    const GraphBuilder stack = b_.WithName("stack");
    const Output want = known < 0 ? stack.Op("Pack", {std::vector<Output>{batch}})
                                  : stack.Vector<int32_t>({static_cast<int32_t>(known)});
    const Output same = b_.Op("Equal", {got, want}), all = b_.Op("All", {same, b_.Vector<int32_t>({0})});
    const GraphBuilder check = b_.Scope("Assert");
    const TString shape(absl::StrCat("Expected shape for Tensor ", lengths.ToString(), " is ")),
        saw(" but saw shape: ");
    check.Scalar(shape);  // TensorFlow states both twice
    check.Scalar(saw);
    const GraphBuilder inside = check.Scope("Assert");
    const Output first = inside.WithName("data_0").Scalar(shape), third = inside.WithName("data_2").Scalar(saw);
    Node* const assertion = inside.WithName("/").OpNode("Assert", {all, std::vector<Output>{first, want, third, got}});
    if (assertion == nullptr) return {};
    return b_.WithControl({assertion}).WithName("CheckSeqLen").Identity(lengths);
  }

  StatusOr<std::vector<Output>> Condition(const GraphBuilder& b, const std::vector<Output>& v) const {
    return std::vector<Output>{b.Op("Less", {v[0], limit_})};
  }

  // Variables: the number of the step, the flow of the outputs' array, the states.
  StatusOr<std::vector<Output>> Body(const GraphBuilder& b, const std::vector<Output>& v) const {
    const Output x =
        b.ColocateWith(read_).Op("TensorArrayReadV3", {read_->output(0), v[0], read_flow_}, {{"dtype", dtype_}});
    MR_RETURN_IF_ERROR(b.status());
    MR_RETURN_IF_ERROR(b.graph().RefineShape(x, PartialShape::Of({inputs_.shape().dim(1), inputs_.shape().dim(2)})));
    const std::vector<Output> states(v.begin() + 2, v.end());
    const Output ended = lengths_ ? b.Op("GreaterEqual", {v[0], lengths_}) : Output();
    CellRun run(parameters_, states);
    MR_ASSIGN_OR_RETURN(Output out, RunStep(cell_, b, x, run));
    if (lengths_) {
      out = b.Op("Select", {ended, zeros_, out});
      for (size_t i = 0; i < states.size(); ++i) {
        run.new_states[i] = b.Op("Select", {ended, states[i], run.new_states[i]});
      }
    }
    const Output flow =
        b.ColocateWith(out.node)
            .Scope("TensorArrayWrite")
            .Op("TensorArrayWriteV3", {written_->output(0), v[0], out, v[1]});
    const GraphBuilder add = b.Scope("add");
    const Output one = add.WithName("y").Scalar<int32_t>(1);
    std::vector<Output> next = {add.WithName("/").Op("Add", {v[0], one}), flow};
    next.insert(next.end(), run.new_states.begin(), run.new_states.end());
    return next;
  }

  const RnnCell& cell_;
  const GraphBuilder b_;
  const Output inputs_;
  Output lengths_;
  const Output batch_;
  const std::vector<Output>& parameters_;
  const DType dtype_;
  PartialShape element_;
  Node *read_ = nullptr, *written_ = nullptr;
  Output time_, steps_, limit_, read_flow_, zeros_;
};

// `inputs` has the steps first.
StatusOr<RnnResult> RunSequence(const RnnCell& cell, const GraphBuilder& b, Output inputs, Output lengths,
                                const std::vector<Output>& states, const std::vector<Output>& parameters) {
  CellRun run(parameters, states);
  run.lengths = lengths ? b.Cast(lengths, DType::kInt64) : Output();
  lengths = run.lengths;
  StatusOr<Output> outputs = cell.Sequence(b, inputs, run);
  MR_RETURN_IF_ERROR(run.Finish());
  MR_RETURN_IF_ERROR(outputs.status());
  RnnResult r;
  r.outputs = lengths ? MaskBeyond(b, *outputs, lengths) : *outputs;
  r.states = run.new_states;
  MR_RETURN_IF_ERROR(b.status());
  return r;
}

}  // namespace

StatusOr<RnnResult> LoopCell(const RnnCell& cell, const GraphBuilder& b, Output inputs, Output lengths,
                             const std::vector<Output>& states, const std::vector<Output>& parameters,
                             const LoopOptions& options, Output batch) {
  MR_RETURN_IF_ERROR(b.status());
  if (inputs.shape().has_rank() && inputs.shape().rank() != 3) {
    return InvalidArgument("inputs must be [steps, batch, width], got ", inputs.shape().ToString());
  }
  if (cell.HasSequence()) return RunSequence(cell, b, inputs, lengths, states, parameters);
  StepLoop loop(cell, b, inputs, lengths, batch, parameters);
  return loop.Run(states, options);
}

namespace {

struct Direction {
  const char *cell, *initial_state, *parameters;
};

StatusOr<RnnResult> RunDirection(const GraphBuilder& b, const CompositeCall& c, const Direction& d, Output inputs,
                                 Output lengths) {
  MR_ASSIGN_OR_RETURN(const RnnCellPtr cell, CellOf(c, d.cell));
  LoopOptions options;
  MR_ASSIGN_OR_RETURN(const int64_t parallel, c.Attr<int64_t>("parallel_iterations"));
  options.parallel_iterations = static_cast<int>(std::min<int64_t>(parallel, 1 << 20));
  MR_ASSIGN_OR_RETURN(options.swap_memory, c.Attr<bool>("swap_memory"));
  return LoopCell(*cell, b, inputs, lengths, c.list(d.initial_state), c.list(d.parameters), options, c.x("batch"));
}

Outputs DynamicRnn(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const bool time_major, c.Attr<bool>("time_major"));
  const Output inputs = time_major ? c.x("inputs") : SwapFirstTwo(b, c.x("inputs"));
  MR_ASSIGN_OR_RETURN(const Output lengths, LengthsOf(b, c, "sequence_length", DType::kInt32));
  MR_ASSIGN_OR_RETURN(RnnResult r, RunDirection(b, c, {"cell", "initial_state", "parameters"}, inputs, lengths));
  std::vector<Output> out = {time_major ? r.outputs : SwapFirstTwo(b, r.outputs)};
  out.insert(out.end(), r.states.begin(), r.states.end());
  return out;
}

Outputs BidirectionalDynamicRnn(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const bool time_major, c.Attr<bool>("time_major"));
  MR_ASSIGN_OR_RETURN(const Output lengths, LengthsOf(b, c, "sequence_length", DType::kInt32));
  const Output inputs = time_major ? c.x("inputs") : SwapFirstTwo(b, c.x("inputs"));
  // Each example's own steps are turned around, not its padding.
  auto reversed = [&](Output x) {
    if (!lengths) return b.Op("ReverseV2", {x, b.Vector<int32_t>({0})});
    return b.Op("ReverseSequence", {x, lengths}, {{"seq_dim", 0}, {"batch_dim", 1}});
  };
  MR_ASSIGN_OR_RETURN(
      const RnnResult f,
      RunDirection(b.Scope("fw"), c, {"cell_fw", "initial_state_fw", "parameters_fw"}, inputs, lengths));
  MR_ASSIGN_OR_RETURN(
      const RnnResult r,
      RunDirection(b.Scope("bw"), c, {"cell_bw", "initial_state_bw", "parameters_bw"}, reversed(inputs), lengths));
  const Output backward = reversed(r.outputs);
  std::vector<Output> out;
  for (Output o : {f.outputs, backward}) out.push_back(time_major ? o : SwapFirstTwo(b, o));
  out.insert(out.end(), f.states.begin(), f.states.end());
  out.insert(out.end(), r.states.begin(), r.states.end());
  return out;
}

}  // namespace

void RegisterDynamicLoops(CompositeRegistry& r) {
  r.Add(
       "DynamicRNN(inputs:T, sequence_length:L*Tlen, initial_state:S*T, parameters:P*T, batch:B*i32) -> (outputs:T, "
       "state:S*T) | T in FLT; Tlen in IDX=i32; L:int>=0; S:int>=1; P:int>=1; B:int>=0=0; cell:string; "
       "time_major:bool=false; "
       "parallel_iterations:int>=1=32; swap_memory:bool=false")
      .Doc(
          "A recurrent network over inputs [batch, steps, width] (time_major: [steps, batch, width]). With a "
          "sequence_length (a list of none or one vector) the outputs of an example are zero beyond its length and its "
          "state stays what it was there. Stacks of LSTMBlockCell need no loop. The number of examples may be given as "
          "`batch` (a list of none or one scalar), where the program has computed it already.")
      .Expand(DynamicRnn)
      .Example(
          "f32[2,3,3]~, i32[2]{1 3}, f32[2,4]~, f32[2,4]~, f32[7,16]~, f32[16]~ | "
          "cell=\"LSTMBlockCell(num_units=4)\"; L=1; S=2; P=2; B=0");
  r.Add(
       "BidirectionalDynamicRNN(inputs:T, sequence_length:L*Tlen, initial_state_fw:S*T, initial_state_bw:R*T, "
       "parameters_fw:P*T, parameters_bw:Q*T) -> (outputs_fw:T, outputs_bw:T, state_fw:S*T, state_bw:R*T) | T in FLT; "
       "Tlen in IDX=i32; L:int>=0; S:int>=1; R:int>=1; P:int>=1; Q:int>=1; cell_fw:string; cell_bw:string; "
       "time_major:bool=false; parallel_iterations:int>=1=32; swap_memory:bool=false")
      .Doc("Two recurrent networks over the steps of one tensor, one from each end (Schuster and Paliwal 1997).")
      .Expand(BidirectionalDynamicRnn)
      .Example(
          "f32[2,2,3]~, f32[2,4]~, f32[2,4]~, f32[2,4]~, f32[2,4]~, f32[7,16]~, f32[16]~, f32[7,16]~, f32[16]~ | "
          "cell_fw=\"LSTMBlockCell(num_units=4)\"; cell_bw=\"LSTMBlockCell(num_units=4)\"; L=0; S=2; R=2; P=2; Q=2");
}

}  // namespace millrace
