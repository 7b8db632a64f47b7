// SPDX-License-Identifier: Apache-2.0
// Recurrent cells. A cell says what one step computes from an input [batch, width] and its states [batch, size]; the
// loops of rnn_composites.cc run any cell over a sequence. Clients name a cell by a text, with TensorFlow's names:
//
//   MultiRNNCell(DropoutWrapper(LSTMCell(num_units=128, use_peepholes=true), output_keep_prob=0.5),
//   GRUCell(num_units=64))
//
// A cell holds no variables: it describes its parameters in a fixed order, and takes them in that order in each step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/graph_builder.h"

namespace millrace {

// kKernel: Glorot uniform. kGiven: no variable, but a tensor that the caller has (a memory).
enum class CellInitial : uint8_t { kKernel, kZeros, kOnes, kValue, kGiven };

struct CellParameter {
  std::string name;  // below the scope of the layer, e.g. "lstm_cell/kernel"
  std::vector<int64_t> dims;
  CellInitial initial = CellInitial::kKernel;
  double value = 0;  // of kValue
};

struct CellLayout {
  std::vector<CellParameter> parameters;
  std::vector<int64_t> state_sizes;  // -1: as many as a memory has steps
  int64_t output_size = 0;
};

// What one step, or one run over a sequence, takes and gives.
class CellRun {
 public:
  CellRun(const std::vector<Output>& parameters, const std::vector<Output>& states, int64_t at_step = 0)
      : step(at_step), parameters_(parameters), states_(states) {}

  Output TakeParameter() { return Take(parameters_, &next_parameter_, "parameters"); }
  Output TakeState() { return Take(states_, &next_state_, "states"); }
  // The state after the one that TakeState would give by `ahead`.
  Output PeekState(size_t ahead) const {
    return next_state_ + ahead < states_.size() ? states_[next_state_ + ahead] : Output();
  }
  // States in the order in which they were taken. A memory is what dropout spares (an LSTM's c).
  void Give(Output state, bool memory = false) {
    new_states.push_back(state);
    memories.push_back(memory);
  }
  // InvalidArgument when there were too few or too many.
  Status Finish() const;

  int64_t step;    // number of the step where steps are unrolled, so that random ops differ
  Output lengths;  // for a sequence: int64 [batch], or null when all run to the end
  std::vector<Output> new_states;
  std::vector<bool> memories;

 private:
  Output Take(const std::vector<Output>& from, size_t* next, const char* what);
  const std::vector<Output>& parameters_;
  const std::vector<Output>& states_;
  size_t next_parameter_ = 0, next_state_ = 0;
  std::string missing_;
};

// Makes zeros of [batch, size], state by state in the order of CellLayout.
class ZeroStates {
 public:
  // `batch`: a scalar, or null when `known_batch` >= 0. `memories`: see CellLayout::state_sizes.
  ZeroStates(DType dtype, Output batch, int64_t known_batch, const std::vector<int64_t>& sizes,
             const std::vector<Output>& memories)
      : dtype_(dtype), batch_(batch), known_batch_(known_batch), sizes_(sizes), memories_(memories) {}
  StatusOr<Output> Next(const GraphBuilder& b);

 private:
  const DType dtype_;
  const Output batch_;
  const int64_t known_batch_;
  const std::vector<int64_t>& sizes_;
  const std::vector<Output>& memories_;
  size_t next_ = 0, memories_used_ = 0;
};

class RnnCell {
 public:
  virtual ~RnnCell() = default;
  // Appends parameters (names below `scope`, which is empty or ends in '/') and states for inputs of this width, and
  // returns the width of the output.
  virtual StatusOr<int64_t> Describe(int64_t inputs, const std::string& scope, CellLayout* layout) const = 0;
  virtual size_t num_states() const = 0;
  // TensorFlow's name of the kind.
  virtual const char* kind() const = 0;
  // Zeros for all states, below the scope that TensorFlow gives them.
  virtual StatusOr<std::vector<Output>> ZeroState(const GraphBuilder& b, ZeroStates& zeros) const;
  // One step, below a scope of the cell's own where it has one.
  virtual StatusOr<Output> Step(const GraphBuilder& b, Output input, CellRun& run) const = 0;
  // One step, when `b` is that scope.
  virtual StatusOr<Output> StepInside(const GraphBuilder& b, Output input, CellRun& run) const {
    return Step(b, input, run);
  }
  // Whether Sequence is there: a whole sequence without a loop.
  virtual bool HasSequence() const { return false; }
  // Inputs and outputs [steps, batch, width]. Outputs beyond an example's length may be anything.
  virtual StatusOr<Output> Sequence(const GraphBuilder& b, Output inputs, CellRun& run) const;
};

using RnnCellPtr = std::unique_ptr<const RnnCell>;

// InvalidArgument names the part of the text that is wrong.
StatusOr<RnnCellPtr> ParseRnnCell(absl::string_view text);
// Every kind of cell in the notation of schemas, for documentation: "LSTMCell() -> () | num_units:int>=1; ...".
std::vector<std::string> RnnCellKinds();

StatusOr<CellLayout> DescribeCell(const RnnCell& cell, int64_t inputs);

// Steps checked: as many parameters and states as the cell takes, no fewer states given than taken.
StatusOr<Output> RunStep(const RnnCell& cell, const GraphBuilder& b, Output input, CellRun& run);
StatusOr<Output> RunStepInside(const RnnCell& cell, const GraphBuilder& b, Output input, CellRun& run);

// Factories, from complete attributes and children (rnn_basic_cells.cc, rnn_wrapper_cells.cc, rnn_attention_*.cc).
using CellChildren = std::vector<RnnCellPtr>;
using CellFactory = StatusOr<RnnCellPtr> (*)(const AttrMap& attrs, CellChildren children);
struct CellKind {
  const char* schema;
  int min_children, max_children;
  CellFactory make;
};
std::vector<CellKind> BasicCellKinds();
std::vector<CellKind> WrapperCellKinds();
std::vector<CellKind> AttentionCellKinds();
std::vector<CellKind> AttentionWrapperKinds();

// The scope of a cell or a part of it: a new one in the first step, the same one in later steps that are unrolled.
GraphBuilder CellScope(const GraphBuilder& b, absl::string_view name, const CellRun& run);

// Zeros [batch, size]; `batch` is a scalar, or null when `known_batch` >= 0.
Output ZerosOf(const GraphBuilder& b, DType dtype, Output batch, int64_t known_batch, int64_t size);
// Element i of a vector.
Output ElementOf(const GraphBuilder& b, Output vector, int i);

// [a, b] along the columns.
Output ConcatColumns(const GraphBuilder& b, const std::vector<Output>& parts);
// [parts...] @ kernel + bias (bias may be null).
Output Linear(const GraphBuilder& b, const std::vector<Output>& parts, Output kernel, Output bias);

}  // namespace millrace
