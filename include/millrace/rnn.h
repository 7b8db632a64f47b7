// SPDX-License-Identifier: Apache-2.0
// Recurrent networks. Cells are texts that the core understands (docs/decisions/0012-recurrent-cells.md); the functions
// here write such texts, and Recurrent holds a cell's variables.
//
//   millrace::Recurrent rnn(model, "rnn", millrace::MultiRNNCell({millrace::LSTMCell(128), millrace::LSTMCell(128)}),
//   64); auto [outputs, state] = rnn.Dynamic(inputs);   // inputs [batch, steps, 64]
#pragma once

#include <algorithm>

#include "millrace/train.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// A cell by its text. `options` are further attributes, as in TensorFlow: LSTMCell(128, "use_peepholes=true,
// num_proj=64").
class Cell {
 public:
  // By its text: "LSTMCell(num_units=128)".
  explicit Cell(std::string text) : text_(std::move(text)) {}
  // What the core reads.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

namespace internal {
inline Cell BasicCell(const char* kind, int64_t num_units, const std::string& options) {
  const std::string rest = options.empty() ? "" : ", " + options;
  return Cell(std::string(kind) + "(num_units=" + std::to_string(num_units) + rest + ")");
}
}  // namespace internal

// tanh(W [x, h] + b); one state [batch, num_units].
inline Cell BasicRNNCell(int64_t num_units, const std::string& options = "") {
  return internal::BasicCell("BasicRNNCell", num_units, options);
}
// Gated recurrent unit (Cho et al. 2014); one state [batch, num_units].
inline Cell GRUCell(int64_t num_units, const std::string& options = "") {
  return internal::BasicCell("GRUCell", num_units, options);
}
// Long short-term memory (Hochreiter and Schmidhuber 1997) with a forget gate, whose bias is 1; states c and h,
// [batch, num_units] each.
inline Cell BasicLSTMCell(int64_t num_units, const std::string& options = "") {
  return internal::BasicCell("BasicLSTMCell", num_units, options);
}
// The same with peepholes, projections and clipping where `options` ask for them; h is as wide as its projection.
inline Cell LSTMCell(int64_t num_units, const std::string& options = "") {
  return internal::BasicCell("LSTMCell", num_units, options);
}
// The fused forms, with the variables of LSTMCell and GRUCell: much faster, first-order gradients only.
inline Cell LSTMBlockCell(int64_t num_units, const std::string& options = "") {
  return internal::BasicCell("LSTMBlockCell", num_units, options);
}
// That of GRUCell.
inline Cell GRUBlockCell(int64_t num_units, const std::string& options = "") {
  return internal::BasicCell("GRUBlockCell", num_units, options);
}
// Cells on top of each other.
inline Cell MultiRNNCell(const std::vector<Cell>& cells) {
  std::string text;
  for (const Cell& c : cells) text += (text.empty() ? "" : ", ") + c.text();
  return Cell("MultiRNNCell(" + text + ")");
}
// options: "input_keep_prob=0.8, output_keep_prob=0.5, state_keep_prob=0.9, seed=7"
inline Cell DropoutWrapper(const Cell& cell, const std::string& options) {
  return Cell("DropoutWrapper(" + cell.text() + ", " + options + ")");
}
// The cell's output added to its input, which is as wide.
inline Cell ResidualWrapper(const Cell& cell) { return Cell("ResidualWrapper(" + cell.text() + ")"); }
// A cell that looks at its last attn_length states (Bahdanau et al. 2014).
inline Cell AttentionCellWrapper(const Cell& cell, int64_t attn_length, const std::string& options = "") {
  const std::string rest = options.empty() ? "" : ", " + options;
  return Cell("AttentionCellWrapper(" + cell.text() + ", attn_length=" + std::to_string(attn_length) + rest + ")");
}

// How a decoder asks a memory [batch, steps, memory_size] by keys of num_units: additively (Bahdanau et al. 2014;
// options: "normalize=true") or by products (Luong et al. 2015; num_units is then the width of the cell's output;
// options: "scale=true").
struct AttentionMechanism {
  // What AttentionWrapper reads.
  std::string text;
};
namespace internal {
inline AttentionMechanism Mechanism(const char* kind, int64_t num_units, int64_t memory_size,
                                    const std::string& options) {
  return {"mechanism=\"" + std::string(kind) + "\", num_units=" + std::to_string(num_units) +
          ", memory_size=" + std::to_string(memory_size) + (options.empty() ? "" : ", " + options)};
}
}  // namespace internal
// Additive.
inline AttentionMechanism BahdanauAttention(int64_t num_units, int64_t memory_size, const std::string& options = "") {
  return internal::Mechanism("Bahdanau", num_units, memory_size, options);
}
// By products.
inline AttentionMechanism LuongAttention(int64_t num_units, int64_t memory_size, const std::string& options = "") {
  return internal::Mechanism("Luong", num_units, memory_size, options);
}
// A decoder's cell, whose memory Recurrent::Attend gives. Its states are those of `cell`, what it read, and the weights
// by which it read it [batch, steps of the memory]. options: "attention_layer_size=128, output_attention=false"
inline Cell AttentionWrapper(const Cell& cell, const AttentionMechanism& mechanism, const std::string& options = "") {
  const std::string rest = options.empty() ? "" : ", " + options;
  return Cell("AttentionWrapper(" + cell.text() + ", " + mechanism.text + rest + ")");
}

// How a loop over steps begins and ends.
struct RnnOptions {
  std::vector<Output> initial_state = {};  // zeros by default
  Output sequence_length = {};             // int32 or int64 [batch]
  bool time_major = false;                 // [steps, batch, width] instead of [batch, steps, width]
};

// A cell with its variables ("<scope><name>/lstm_cell/kernel", ...). Steps and loops may be built from it many times;
// they all share the variables.
class Recurrent {
 public:
  // What a loop over steps gives.
  struct Result {
    // [batch, steps, width], or [steps, batch, width] where the inputs are so.
    Output outputs;
    // The last ones, in the order of state_sizes().
    std::vector<Output> state;
  };
  // What steps give that were stated one by one.
  struct Steps {
    // [batch, width] each.
    std::vector<Output> outputs;
    // The last ones, in the order of state_sizes().
    std::vector<Output> state;
  };
  // Of its loops.
  using Options = RnnOptions;

  // Makes the cell's variables, of type float, for inputs of that width.
  Recurrent(Model& model, const std::string& name, const Cell& cell, int64_t inputs)
      : Recurrent(model, name, cell, inputs, DType::kFloat) {}
  // The same of another type.
  Recurrent(Model& model, const std::string& name, const Cell& cell, int64_t inputs, DType dtype)
      : outer_(model.scope()), name_(name), text_(cell.text()) {
    internal::CallStatus status;
    std::vector<int64_t> sizes(kMax);
    const int states = MR_CellStates(text_.c_str(), inputs, sizes.data(), kMax, &output_size_, status);
    model.Note(status.Get());
    state_sizes_.assign(sizes.begin(), sizes.begin() + states);
    std::vector<TF_Output> refs(kMax), reads(kMax);
    const int n = MR_AddCellVariables(
        model.scope().graph().get(), (model.scope().prefix() + name).c_str(), text_.c_str(), inputs,
        static_cast<TF_DataType>(dtype), model.seed(), refs.data(), reads.data(), kMax, status);
    model.Note(status.Get());
    for (int i = 0; i < n; ++i) {
      const auto k = static_cast<size_t>(i);
      if (refs[k].oper != nullptr) {
        variables_.push_back({Output(refs[k]), Output(reads[k])});
      } else if (given_.empty() || k > given_.back() + 2) {
        given_.push_back(k);
      }
      parameters_.push_back(Output(reads[k]));
    }
    model.Adopt(variables_);
  }

  // The width of its outputs.
  int64_t output_size() const { return output_size_; }
  // The widths of its states, each [batch, width].
  const std::vector<int64_t>& state_sizes() const { return state_sizes_; }
  // Which the model trains.
  const std::vector<Variable>& variables() const { return variables_; }

  // What the AttentionWrappers in the cell read from now on: [batch, steps, depth], of which examples have `lengths`
  // steps (int32 or int64 [batch]; null: all). To be called before anything is built from such a cell.
  void Attend(Output memory, Output lengths = {}) {
    const std::vector<Output> limits = lengths ? std::vector<Output>{lengths} : std::vector<Output>();
    for (size_t place : given_) {
      const std::vector<Output> made =
          outer_.WithName(name_).Composite("AttentionMemory", {memory, parameters_[place - 1], limits});
      if (made.size() != 3) return;
      std::copy(made.begin(), made.end(), parameters_.begin() + static_cast<std::ptrdiff_t>(place));
    }
    memory_ = {memory};
  }

  // Zeros for as many examples as dimension `batch_dim` of `inputs` counts.
  std::vector<Output> ZeroState(Output inputs, int64_t batch_dim = 0) { return ZeroStateIn(outer_, inputs, batch_dim); }
  // One step: input [batch, width].
  Result Step(Output input, const std::vector<Output>& state) {
    return Split(Here(Inside()).Composite("RNNCell", {input, state, parameters_}, {{"cell", text_}}));
  }
  // Unrolled over a list of steps [batch, width].
  Steps Static(const std::vector<Output>& inputs, Options options = {}) {
    const Scope inside = Inside();
    if (options.initial_state.empty() && !inputs.empty()) options.initial_state = ZeroStateIn(inside, inputs[0], 0);
    const std::vector<Output> all = Here(inside).Composite(
        "StaticRNN", {inputs, Lengths(options), options.initial_state, parameters_}, {{"cell", text_}});
    Steps s;
    for (size_t i = 0; i < all.size(); ++i) (i < inputs.size() ? s.outputs : s.state).push_back(all[i]);
    return s;
  }
  // A loop over the steps of one tensor.
  Result Dynamic(Output inputs, Options options = {}) {
    const Scope inside = Inside();
    if (!options.time_major) inputs = Transposed(inside, inputs);
    if (options.sequence_length) {
      options.sequence_length = inside.WithName("sequence_length").Op("Identity", {options.sequence_length});
    }
    const std::vector<Output> batch = BatchOf(inside, inputs, 1);
    if (options.initial_state.empty()) options.initial_state = ZeroStateIn(inside, inputs, 1, batch);
    Result r = Split(Here(inside).Composite(
        "DynamicRNN", {inputs, Lengths(options), options.initial_state, parameters_, batch},
        {{"cell", text_}, {"time_major", true}}));
    if (!options.time_major && r.outputs) r.outputs = Transposed(inside, r.outputs);
    return r;
  }

  // A loop in each direction over the steps of one tensor; `options` are for both, initial states are zeros.
  struct BothResults {
    // The backward one's outputs stand at the steps that they are of.
    Result forward, backward;
  };
  // Both loops.
  static BothResults Bidirectional(Recurrent& forward, Recurrent& backward, Output inputs,
                                   const Options& options = {}) {
    const int64_t batch_dim = options.time_major ? 1 : 0;
    const std::vector<Output> all =
        forward.outer_.WithName(forward.name_)
            .Composite("BidirectionalDynamicRNN",
                       {inputs, Lengths(options), forward.ZeroState(inputs, batch_dim),
                        backward.ZeroState(inputs, batch_dim), forward.parameters_, backward.parameters_},
                       {{"cell_fw", forward.text_}, {"cell_bw", backward.text_}, {"time_major", options.time_major}});
    BothResults r;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i < 2) {
        (i == 0 ? r.forward : r.backward).outputs = all[i];
      } else {
        (i - 2 < forward.state_sizes_.size() ? r.forward : r.backward).state.push_back(all[i]);
      }
    }
    return r;
  }

 private:
  static constexpr int kMax = 1 << 14;
  static std::vector<Output> Lengths(const Options& options) {
    return options.sequence_length ? std::vector<Output>{options.sequence_length} : std::vector<Output>();
  }
  static Result Split(const std::vector<Output>& all) {
    if (all.empty()) return {};
    return {all[0], std::vector<Output>(all.begin() + 1, all.end())};
  }

  // Each use of the cell has a scope of its own: "rnn", "rnn_1", ...
  Scope Inside() const { return outer_.SubScope(name_); }
  static Scope Here(const Scope& scope) { return scope.WithName("/"); }
  static Output Transposed(const Scope& scope, Output x) {
    const Output rank = scope.WithName("Rank").Const(int32_t{3});
    Scope range = scope.SubScope("range"), concat = scope.SubScope("concat");
    const Output from = range.WithName("start").Const(int32_t{2}), by = range.WithName("delta").Const(int32_t{1});
    const Output rest = range.WithName("/").Op("Range", {from, rank, by});
    const Output two = concat.WithName("values_0").Const({1, 0}), at = concat.WithName("axis").Const(int32_t{0});
    const Output order = concat.WithName("/").Op("ConcatV2", {Outputs{two, rest}, at});
    return scope.WithName("transpose").Op("Transpose", {x, order});
  }
  // How many examples x has, where its shape does not tell.
  static std::vector<Output> BatchOf(Scope scope, Output x, int32_t dim) {
    Shape known;
    const auto at = static_cast<size_t>(dim);
    if (!x || (scope.graph().ShapeOf(x, &known) && known.size() > at && known[at] >= 0)) return {};
    const Output shape = scope.Op("Shape", {x});
    Scope slice = scope.SubScope("strided_slice");
    const Output from = slice.WithName("stack").Const({dim}), to = slice.WithName("stack_1").Const({dim + 1});
    const Output by = slice.WithName("stack_2").Const({1});
    return {slice.WithName("/").Op("StridedSlice", {shape, from, to, by}, {{"shrink_axis_mask", int64_t{1}}})};
  }
  std::vector<Output> ZeroStateIn(const Scope& scope, Output inputs, int64_t batch_dim,
                                  const std::vector<Output>& batch = {}) const {
    return Here(scope).Composite(
        "ZeroState", {inputs, memory_, batch},
        {{"cell", text_}, {"batch_dim", batch_dim}, {"S", static_cast<int64_t>(state_sizes_.size())}});
  }

  Scope outer_;
  std::string name_, text_;
  int64_t output_size_ = 0;
  std::vector<int64_t> state_sizes_;
  std::vector<Variable> variables_;
  std::vector<Output> parameters_;
  std::vector<size_t> given_;  // where three tensors of a memory stand among the parameters
  std::vector<Output> memory_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
