// SPDX-License-Identifier: Apache-2.0
// A cell that looks back: its state keeps a window of its own last outputs, and each step reads a weighted mean of them
// (Bahdanau et al. 2014, over the cell's own past). Parameters as in TensorFlow's contrib.rnn.AttentionCellWrapper.
#include "ops/rnn/rnn_cell.h"

namespace millrace {
namespace {

class AttentionCell : public RnnCell {
 public:
  static StatusOr<RnnCellPtr> Make(const AttrMap& attrs, CellChildren children) {
    constexpr int64_t kMax = int64_t{1} << 24;
    auto cell = std::make_unique<AttentionCell>();
    cell->cell_ = std::move(children[0]);
    const std::pair<const char*, int64_t*> sizes[] = {
        {"attn_length", &cell->length_},
        {"attn_size", &cell->size_},
        {"attn_vec_size", &cell->vector_},
        {"input_size", &cell->input_}};
    for (const auto& [name, value] : sizes) {
      MR_ASSIGN_OR_RETURN(*value, GetAttr<int64_t>(attrs, name));
      if (*value > kMax)
        return InvalidArgument("AttentionCellWrapper: ", name, " is ", *value, ", want at most ", kMax);
    }
    return cell;
  }

  StatusOr<int64_t> Describe(int64_t inputs, const std::string& scope, CellLayout* layout) const override {
    const std::string here = scope + "attention_cell_wrapper/";
    const int64_t inner_inputs = input_ > 0 ? input_ : inputs;
    const size_t kernel_at = layout->parameters.size(), first_state = layout->state_sizes.size();
    layout->parameters.resize(kernel_at + 2);
    MR_ASSIGN_OR_RETURN(const int64_t outputs, cell_->Describe(inner_inputs, here, layout));
    const Sizes s = Resolve(outputs);
    int64_t query = 0;
    for (size_t i = first_state; i < layout->state_sizes.size(); ++i) {
      if (layout->state_sizes[i] < 0) return InvalidArgument("AttentionCellWrapper: its cell may not read a memory");
      query += layout->state_sizes[i];
    }
    layout->parameters[kernel_at] = {here + "kernel", {inputs + s.size, inner_inputs}};
    layout->parameters[kernel_at + 1] = {here + "bias", {inner_inputs}, CellInitial::kZeros};
    layout->parameters.push_back({here + "attention/attn_w", {1, 1, s.size, s.vector}});
    layout->parameters.push_back({here + "attention/attn_v", {s.vector}});
    layout->parameters.push_back({here + "attention/kernel", {query, s.vector}});
    layout->parameters.push_back({here + "attention/bias", {s.vector}, CellInitial::kZeros});
    layout->parameters.push_back({here + "attn_output_projection/kernel", {outputs + s.size, s.size}});
    layout->parameters.push_back({here + "attn_output_projection/bias", {s.size}, CellInitial::kZeros});
    layout->state_sizes.push_back(s.size);
    layout->state_sizes.push_back(s.size * length_);
    return s.size;
  }
  size_t num_states() const override { return cell_->num_states() + 2; }
  const char* kind() const override { return "AttentionCellWrapper"; }

  StatusOr<Output> Step(const GraphBuilder& b, Output input, CellRun& run) const override {
    const size_t first = run.new_states.size();
    const Output kernel = run.TakeParameter(), bias = run.TakeParameter();
    const Output read = run.PeekState(cell_->num_states());
    if (!read) return InvalidArgument("the cell takes more states than were given");
    MR_ASSIGN_OR_RETURN(const Output cell_output, cell_->Step(b, Linear(b, {input, read}, kernel, bias), run));
    run.TakeState();
    const Output window = run.TakeState();
    const std::vector<Output> inner(run.new_states.begin() + static_cast<std::ptrdiff_t>(first), run.new_states.end());
    MR_ASSIGN_OR_RETURN(const Sizes s, SizesOf(read));
    const Output past = b.Reshape(window, b.Vector<int64_t>({-1, length_, s.size}));
    const Output new_read = Attend(b.Scope("attention"), ConcatColumns(b, inner), past, s, run);
    const Output out_kernel = run.TakeParameter(), out_bias = run.TakeParameter();
    const Output out = Linear(b, {cell_output, new_read}, out_kernel, out_bias);
    const Output kept = b.Op("Slice", {past, b.Vector<int64_t>({0, 1, 0}), b.Vector<int64_t>({-1, -1, -1})});
    const Output axis = b.Scalar<int32_t>(1);
    const Output grown = b.Op("ConcatV2", {std::vector<Output>{kept, b.Op("ExpandDims", {out, axis})}, axis});
    run.Give(new_read);
    run.Give(b.Reshape(grown, b.Vector<int64_t>({-1, length_ * s.size})));
    return out;
  }

 private:
  struct Sizes {
    int64_t size, vector;
  };
  Sizes Resolve(int64_t outputs) const {
    const int64_t size = size_ > 0 ? size_ : outputs;
    return {size, vector_ > 0 ? vector_ : size};
  }
  StatusOr<Sizes> SizesOf(Output read) const {
    const int64_t size = size_ > 0 ? size_ : read.shape().dim(1);
    if (size < 0) return InvalidArgument("AttentionCellWrapper: state ", read.ToString(), " has no known width");
    return Resolve(size);
  }

  // The mean of `past` [batch, length, size], weighted by how well each fits the query.
  Output Attend(const GraphBuilder& b, Output query, Output past, Sizes s, CellRun& run) const {
    const Output w = run.TakeParameter(), v = run.TakeParameter();
    const Output kernel = run.TakeParameter(), bias = run.TakeParameter();
    const Output flat = b.Reshape(past, b.Vector<int64_t>({-1, s.size}));
    const Output projected = b.MatMul(flat, b.Reshape(w, b.Vector<int64_t>({s.size, s.vector})));
    const Output features = b.Reshape(projected, b.Vector<int64_t>({-1, length_, s.vector}));
    const Output y = b.Op("ExpandDims", {Linear(b, {query}, kernel, bias), b.Scalar<int32_t>(1)});
    const Output scores = b.Sum(b.Mul(v, b.Op("Tanh", {b.Add(features, y)})), b.Vector<int32_t>({2}));
    const Output weights = b.Op("ExpandDims", {b.Op("Softmax", {scores}), b.Scalar<int32_t>(2)});
    return b.Sum(b.Mul(weights, past), b.Vector<int32_t>({1}));
  }

  RnnCellPtr cell_;
  int64_t length_ = 1, size_ = 0, vector_ = 0, input_ = 0;
};

}  // namespace

std::vector<CellKind> AttentionCellKinds() {
  return {
      {"AttentionCellWrapper() -> () | attn_length:int>=1; attn_size:int>=0=0; attn_vec_size:int>=0=0; "
       "input_size:int>=0=0",
       1, 1, AttentionCell::Make}};
}

}  // namespace millrace
