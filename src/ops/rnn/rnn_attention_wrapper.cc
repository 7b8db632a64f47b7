// SPDX-License-Identifier: Apache-2.0
// A decoder's cell that reads a memory in each step (contrib.seq2seq.AttentionWrapper of TensorFlow 1.x, with its
// parameters): its input is joined by what it read last, its output asks the memory, and a layer joins both. The
// memory, its keys and their mask (composite AttentionMemory) stand among its parameters, behind the kernel that makes
// the keys.
#include <cmath>

#include "ops/rnn/rnn_attention.h"
#include "ops/rnn/rnn_cell.h"

namespace millrace {
namespace {

class AttentionWrapper : public RnnCell {
 public:
  static StatusOr<RnnCellPtr> Make(const AttrMap& attrs, CellChildren children) {
    constexpr int64_t kMax = int64_t{1} << 24;
    auto cell = std::make_unique<AttentionWrapper>();
    cell->cell_ = std::move(children[0]);
    const std::pair<const char*, int64_t*> sizes[] = {
        {"num_units", &cell->units_}, {"memory_size", &cell->depth_}, {"attention_layer_size", &cell->layer_}};
    for (const auto& [name, value] : sizes) {
      MR_ASSIGN_OR_RETURN(*value, GetAttr<int64_t>(attrs, name));
      if (*value > kMax) return InvalidArgument("AttentionWrapper: ", name, " is ", *value, ", want at most ", kMax);
    }
    std::string mechanism;
    MR_ASSIGN_OR_RETURN(mechanism, GetAttr<std::string>(attrs, "mechanism"));
    cell->additive_ = absl::string_view(mechanism) == "Bahdanau";
    MR_ASSIGN_OR_RETURN(cell->normalize_, GetAttr<bool>(attrs, "normalize"));
    MR_ASSIGN_OR_RETURN(cell->scale_, GetAttr<bool>(attrs, "scale"));
    MR_ASSIGN_OR_RETURN(cell->output_attention_, GetAttr<bool>(attrs, "output_attention"));
    if (cell->additive_ ? cell->scale_ : cell->normalize_) {
      return InvalidArgument(
          "AttentionWrapper: ", mechanism, "'s mechanism has no '", cell->additive_ ? "scale" : "normalize", "'");
    }
    return cell;
  }

  StatusOr<int64_t> Describe(int64_t inputs, const std::string& scope, CellLayout* layout) const override {
    const std::string here = scope + "attention_wrapper/";
    std::vector<CellParameter>& p = layout->parameters;
    p.push_back({scope + "memory_layer/kernel", {depth_, units_}});
    for (const char* name : {"values", "keys", "mask"}) p.push_back({here + name, {}, CellInitial::kGiven});
    MR_ASSIGN_OR_RETURN(const int64_t outputs, cell_->Describe(inputs + Width(), here, layout));
    if (!additive_ && outputs != units_) {
      return InvalidArgument("AttentionWrapper: Luong's mechanism compares the output of the cell, ", outputs,
                             " wide, with keys that are ", units_, " wide (num_units)");
    }
    if (additive_) {
      const std::string name = here + "bahdanau_attention/";
      p.push_back({name + "query_layer/kernel", {outputs, units_}});
      p.push_back({name + "attention_v", {units_}});
      if (normalize_) {
        p.push_back({name + "attention_g", {}, CellInitial::kValue, 1 / std::sqrt(static_cast<double>(units_))});
        p.push_back({name + "attention_b", {units_}, CellInitial::kZeros});
      }
    } else if (scale_) {
      p.push_back({here + "luong_attention/attention_g", {}, CellInitial::kOnes});
    }
    if (layer_ > 0) p.push_back({here + "attention_layer/kernel", {outputs + depth_, layer_}});
    layout->state_sizes.push_back(Width());
    layout->state_sizes.push_back(-1);
    return output_attention_ ? Width() : outputs;
  }
  size_t num_states() const override { return cell_->num_states() + 2; }
  const char* kind() const override { return "AttentionWrapper"; }

  StatusOr<Output> Step(const GraphBuilder& b, Output input, CellRun& run) const override {
    run.TakeParameter();  // made the keys
    const Output memory = run.TakeParameter(), keys = run.TakeParameter(), mask = run.TakeParameter();
    const Output before = run.PeekState(cell_->num_states());
    if (!before || !mask) return InvalidArgument("the cell takes more states or parameters than were given");
    MR_ASSIGN_OR_RETURN(const Output out, cell_->Step(b, ConcatColumns(b, {input, before}), run));
    run.TakeState();  // what was read
    run.TakeState();  // and the weights
    const Output scores = Scores(b.Scope(additive_ ? "bahdanau_attention" : "luong_attention"), out, keys, run);
    const Output weights = b.Op("Softmax", {b.Add(scores, mask)});
    const Output context = ReadMemory(b, weights, memory);
    Output attention = context;
    if (layer_ > 0) attention = b.MatMul(ConcatColumns(b, {out, context}), run.TakeParameter());
    run.Give(attention, /*memory=*/true);
    run.Give(weights, /*memory=*/true);
    return output_attention_ ? attention : out;
  }

 private:
  int64_t Width() const { return layer_ > 0 ? layer_ : depth_; }

  Output Scores(const GraphBuilder& b, Output query, Output keys, CellRun& run) const {
    if (!additive_) {
      const Output scores = MultiplicativeScores(b, query, keys);
      return scale_ ? b.Mul(scores, run.TakeParameter()) : scores;
    }
    const Output kernel = run.TakeParameter();
    Output v = run.TakeParameter(), bias;
    if (normalize_) {
      const Output g = run.TakeParameter();
      bias = run.TakeParameter();
      const Output norm = b.Op("Rsqrt", {b.Sum(b.Mul(v, v), b.Vector<int32_t>({0}))});
      v = b.Mul(v, b.Mul(g, norm));
    }
    return AdditiveScores(b, b.MatMul(query, kernel), keys, v, bias);
  }

  RnnCellPtr cell_;
  int64_t units_ = 0, depth_ = 0, layer_ = 0;
  bool additive_ = true, normalize_ = false, scale_ = false, output_attention_ = true;
};

}  // namespace

std::vector<CellKind> AttentionWrapperKinds() {
  return {
      {"AttentionWrapper() -> () | mechanism in {Bahdanau,Luong}; num_units:int>=1; memory_size:int>=1; "
       "attention_layer_size:int>=0=0; normalize:bool=false; scale:bool=false; output_attention:bool=true",
       1, 1, AttentionWrapper::Make}};
}

}  // namespace millrace
