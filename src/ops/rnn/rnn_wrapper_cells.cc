// SPDX-License-Identifier: Apache-2.0
// Cells made of cells: stacks, dropout, residual connections.
#include "ops/rnn/rnn_cell.h"

namespace millrace {
namespace {

class MultiCell : public RnnCell {
 public:
  explicit MultiCell(CellChildren cells) : cells_(std::move(cells)) {}
  static StatusOr<RnnCellPtr> Make(const AttrMap&, CellChildren children) {
    return std::make_unique<MultiCell>(std::move(children));
  }
  StatusOr<int64_t> Describe(int64_t inputs, const std::string& scope, CellLayout* layout) const override {
    for (size_t i = 0; i < cells_.size(); ++i) {
      MR_ASSIGN_OR_RETURN(
          inputs, cells_[i]->Describe(inputs, absl::StrCat(scope, "multi_rnn_cell/cell_", i, "/"), layout));
    }
    return inputs;
  }
  size_t num_states() const override {
    size_t n = 0;
    for (const RnnCellPtr& c : cells_) n += c->num_states();
    return n;
  }
  const char* kind() const override { return "MultiRNNCell"; }
  StatusOr<std::vector<Output>> ZeroState(const GraphBuilder& b, ZeroStates& zeros) const override {
    const GraphBuilder inside = b.Scope(absl::StrCat(kind(), "ZeroState"));
    std::vector<Output> states;
    for (const RnnCellPtr& c : cells_) {
      MR_ASSIGN_OR_RETURN(const std::vector<Output> of_cell, c->ZeroState(inside, zeros));
      states.insert(states.end(), of_cell.begin(), of_cell.end());
    }
    return states;
  }
  StatusOr<Output> Step(const GraphBuilder& b, Output input, CellRun& run) const override {
    return StepInside(CellScope(b, "multi_rnn_cell", run), input, run);
  }
  StatusOr<Output> StepInside(const GraphBuilder& b, Output input, CellRun& run) const override {
    for (size_t i = 0; i < cells_.size(); ++i) {
      MR_ASSIGN_OR_RETURN(input, cells_[i]->Step(CellScope(b, absl::StrCat("cell_", i), run), input, run));
    }
    return input;
  }
  bool HasSequence() const override {
    for (const RnnCellPtr& c : cells_) {
      if (!c->HasSequence()) return false;
    }
    return true;
  }
  StatusOr<Output> Sequence(const GraphBuilder& b, Output inputs, CellRun& run) const override {
    for (size_t i = 0; i < cells_.size(); ++i) {
      MR_ASSIGN_OR_RETURN(inputs, cells_[i]->Sequence(b.Scope(absl::StrCat("cell_", i)), inputs, run));
    }
    return inputs;
  }

 private:
  CellChildren cells_;
};

class DropoutCell : public RnnCell {
 public:
  static StatusOr<RnnCellPtr> Make(const AttrMap& attrs, CellChildren children) {
    auto cell = std::make_unique<DropoutCell>();
    cell->cell_ = std::move(children[0]);
    MR_ASSIGN_OR_RETURN(cell->input_, Probability(attrs, "input_keep_prob"));
    MR_ASSIGN_OR_RETURN(cell->output_, Probability(attrs, "output_keep_prob"));
    MR_ASSIGN_OR_RETURN(cell->state_, Probability(attrs, "state_keep_prob"));
    MR_ASSIGN_OR_RETURN(cell->seed_, GetAttr<int64_t>(attrs, "seed"));
    return cell;
  }
  StatusOr<int64_t> Describe(int64_t inputs, const std::string& scope, CellLayout* layout) const override {
    return cell_->Describe(inputs, scope, layout);
  }
  size_t num_states() const override { return cell_->num_states(); }
  const char* kind() const override { return "DropoutWrapper"; }
  StatusOr<std::vector<Output>> ZeroState(const GraphBuilder& b, ZeroStates& zeros) const override {
    return cell_->ZeroState(b.Scope(absl::StrCat(kind(), "ZeroState")), zeros);
  }
  StatusOr<Output> Step(const GraphBuilder& b, Output input, CellRun& run) const override {
    const size_t first = run.new_states.size();
    MR_ASSIGN_OR_RETURN(const Output out, cell_->Step(b, Drop(b, input, input_, 0, run), run));
    for (size_t i = first; i < run.new_states.size(); ++i) {
      if (!run.memories[i])
        run.new_states[i] = Drop(b, run.new_states[i], state_, 2 + static_cast<int64_t>(i - first), run);
    }
    return Drop(b, out, output_, 1, run);
  }
  bool HasSequence() const override { return state_ >= 1 && cell_->HasSequence(); }
  StatusOr<Output> Sequence(const GraphBuilder& b, Output inputs, CellRun& run) const override {
    MR_ASSIGN_OR_RETURN(const Output out, cell_->Sequence(b, Drop(b, inputs, input_, 0, run), run));
    return Drop(b, out, output_, 1, run);
  }

 private:
  static StatusOr<float> Probability(const AttrMap& attrs, const char* name) {
    MR_ASSIGN_OR_RETURN(const float p, GetAttr<float>(attrs, name));
    if (p > 0 && p <= 1) return p;
    return InvalidArgument("DropoutWrapper: ", name, " is ", p, ", want one in (0, 1]");
  }
  // With a seed, every place and every unrolled step gets numbers of its own.
  Output Drop(const GraphBuilder& b, Output x, float keep, int64_t place, const CellRun& run) const {
    if (keep >= 1 || !x) return x;
    const DType t = BaseType(x.dtype());
    const int64_t seed2 = seed_ == 0 ? 0 : 1 + place + 64 * run.step;
    const Output u = b.Op("RandomUniform", {b.Shape(x)}, {{"dtype", t}, {"seed", seed_}, {"seed2", seed2}});
    const Output kept = b.Cast(b.Op("Less", {u, b.ScalarOf(t, static_cast<double>(keep))}), t);
    return b.Mul(b.Mul(x, b.ScalarOf(t, 1.0 / static_cast<double>(keep))), kept);
  }

  RnnCellPtr cell_;
  float input_ = 1, output_ = 1, state_ = 1;
  int64_t seed_ = 0;
};

class ResidualCell : public RnnCell {
 public:
  explicit ResidualCell(RnnCellPtr cell) : cell_(std::move(cell)) {}
  static StatusOr<RnnCellPtr> Make(const AttrMap&, CellChildren children) {
    return std::make_unique<ResidualCell>(std::move(children[0]));
  }
  StatusOr<int64_t> Describe(int64_t inputs, const std::string& scope, CellLayout* layout) const override {
    MR_ASSIGN_OR_RETURN(const int64_t outputs, cell_->Describe(inputs, scope, layout));
    if (outputs == inputs) return outputs;
    return InvalidArgument("ResidualWrapper: the cell turns ", inputs, " inputs into ", outputs, " outputs");
  }
  size_t num_states() const override { return cell_->num_states(); }
  const char* kind() const override { return "ResidualWrapper"; }
  StatusOr<std::vector<Output>> ZeroState(const GraphBuilder& b, ZeroStates& zeros) const override {
    return cell_->ZeroState(b.Scope(absl::StrCat(kind(), "ZeroState")), zeros);
  }
  StatusOr<Output> Step(const GraphBuilder& b, Output input, CellRun& run) const override {
    MR_ASSIGN_OR_RETURN(const Output out, cell_->Step(b, input, run));
    return b.Add(input, out);
  }
  bool HasSequence() const override { return cell_->HasSequence(); }
  StatusOr<Output> Sequence(const GraphBuilder& b, Output inputs, CellRun& run) const override {
    MR_ASSIGN_OR_RETURN(const Output out, cell_->Sequence(b, inputs, run));
    return b.Add(inputs, out);
  }

 private:
  RnnCellPtr cell_;
};

}  // namespace

std::vector<CellKind> WrapperCellKinds() {
  return {
      {"MultiRNNCell() -> ()", 1, 1024, MultiCell::Make},
      {"DropoutWrapper() -> () | input_keep_prob:float=1.0; output_keep_prob:float=1.0; state_keep_prob:float=1.0; "
       "seed:int=0",
       1, 1, DropoutCell::Make},
      {"ResidualWrapper() -> ()", 1, 1, ResidualCell::Make},
  };
}

}  // namespace millrace
