// SPDX-License-Identifier: Apache-2.0
#include "ops/rnn/rnn_cell.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "op/attr_text.h"

namespace millrace {
namespace {

constexpr size_t kMaxText = 1 << 16;
constexpr int kMaxDepth = 16;

struct KnownKind {
  OpDef def;  // name and attributes
  CellKind kind;
};

StatusOr<std::vector<KnownKind>> MakeKinds() {
  std::vector<KnownKind> known;
  for (const std::vector<CellKind>& list :
       {BasicCellKinds(), WrapperCellKinds(), AttentionCellKinds(), AttentionWrapperKinds()}) {
    for (const CellKind& kind : list) {
      MR_ASSIGN_OR_RETURN(OpDef def, ParseSchema(kind.schema));
      known.push_back({std::move(def), kind});
    }
  }
  return known;
}

const StatusOr<std::vector<KnownKind>>& Kinds() {
  static const auto* kinds = new StatusOr<std::vector<KnownKind>>(MakeKinds());
  return *kinds;
}

StatusOr<const KnownKind*> FindKind(absl::string_view name) {
  const StatusOr<std::vector<KnownKind>>& kinds = Kinds();
  MR_RETURN_IF_ERROR(kinds.status());
  std::string names;
  for (const KnownKind& k : *kinds) {
    if (k.def.name == name) return &k;
    absl::StrAppend(&names, names.empty() ? "" : ", ", k.def.name);
  }
  return InvalidArgument("there is no cell '", name, "'; there are ", names);
}

StatusOr<RnnCellPtr> Parse(absl::string_view text, int depth) {
  text = absl::StripAsciiWhitespace(text);
  if (depth > kMaxDepth) return InvalidArgument("cells stand in one another more than ", kMaxDepth, " deep");
  const size_t open = text.find('(');
  if (open == absl::string_view::npos || text.back() != ')') {
    return InvalidArgument("'", text, "' is no cell; want Name(attribute=value, ...)");
  }
  MR_ASSIGN_OR_RETURN(const KnownKind* const kind, FindKind(absl::StripAsciiWhitespace(text.substr(0, open))));
  AttrMap attrs;
  CellChildren children;
  for (absl::string_view item : SplitOutside(text.substr(open + 1, text.size() - open - 2), ',')) {
    const size_t equals = FindOutside(item, '=');
    if (equals == absl::string_view::npos) {
      MR_ASSIGN_OR_RETURN(RnnCellPtr child, Parse(item, depth + 1));
      children.push_back(std::move(child));
      continue;
    }
    const absl::string_view name = absl::StripAsciiWhitespace(item.substr(0, equals));
    const AttrDef* def = kind->def.FindAttr(name);
    if (!def) return InvalidArgument("cell ", kind->def.name, " has no attribute '", name, "'");
    MR_ASSIGN_OR_RETURN(AttrValue value, ParseAttrText(def->kind, def->is_list, item.substr(equals + 1)));
    if (!attrs.emplace(std::string(name), std::move(value)).second) {
      return InvalidArgument("cell ", kind->def.name, ": attribute '", name, "' is given twice");
    }
  }
  const int count = static_cast<int>(children.size());
  if (count < kind->kind.min_children || count > kind->kind.max_children) {
    return InvalidArgument("cell ", kind->def.name, " holds ", count, " cells, wants ", kind->kind.min_children,
                           kind->kind.max_children > kind->kind.min_children ? " or more" : "");
  }
  std::vector<std::string> unknown;
  MR_RETURN_IF_ERROR(CompleteAttrs(kind->def, &attrs, &unknown));
  return kind->kind.make(attrs, std::move(children));
}

}  // namespace

Output CellRun::Take(const std::vector<Output>& from, size_t* next, const char* what) {
  if (*next < from.size()) return from[(*next)++];
  missing_ = what;
  return {};
}

Status CellRun::Finish() const {
  if (!missing_.empty()) return InvalidArgument("the cell takes more ", missing_, " than were given");
  if (next_parameter_ != parameters_.size()) {
    return InvalidArgument("the cell takes ", next_parameter_, " parameters, got ", parameters_.size());
  }
  if (next_state_ != states_.size()) {
    return InvalidArgument("the cell takes ", next_state_, " states, got ", states_.size());
  }
  return absl::OkStatus();
}

StatusOr<Output> RnnCell::Sequence(const GraphBuilder&, Output, CellRun&) const {
  return Internal("this cell runs step by step");
}

StatusOr<RnnCellPtr> ParseRnnCell(absl::string_view text) {
  if (text.size() > kMaxText) return InvalidArgument("the text of a cell is longer than ", kMaxText, " bytes");
  return Parse(text, 0);
}

std::vector<std::string> RnnCellKinds() {
  std::vector<std::string> schemas;
  const StatusOr<std::vector<KnownKind>>& kinds = Kinds();
  if (!kinds.ok()) return schemas;
  for (const KnownKind& k : *kinds) schemas.emplace_back(k.kind.schema);
  return schemas;
}

StatusOr<CellLayout> DescribeCell(const RnnCell& cell, int64_t inputs) {
  constexpr int64_t kMaxInputs = int64_t{1} << 31;
  if (inputs < 0 || inputs > kMaxInputs) return InvalidArgument("a cell for ", inputs, " inputs");
  CellLayout layout;
  MR_ASSIGN_OR_RETURN(layout.output_size, cell.Describe(inputs, "", &layout));
  return layout;
}

namespace {

StatusOr<Output> Checked(const GraphBuilder& b, const CellRun& run, StatusOr<Output> out) {
  MR_RETURN_IF_ERROR(run.Finish());  // tells more than what the missing values led to
  MR_RETURN_IF_ERROR(out.status());
  MR_RETURN_IF_ERROR(b.status());
  return out;
}

}  // namespace

StatusOr<Output> RunStep(const RnnCell& cell, const GraphBuilder& b, Output input, CellRun& run) {
  StatusOr<Output> out = cell.Step(b, input, run);
  return Checked(b, run, std::move(out));
}

StatusOr<Output> RunStepInside(const RnnCell& cell, const GraphBuilder& b, Output input, CellRun& run) {
  StatusOr<Output> out = cell.StepInside(b, input, run);
  return Checked(b, run, std::move(out));
}

GraphBuilder CellScope(const GraphBuilder& b, absl::string_view name, const CellRun& run) {
  return run.step == 0 ? b.Scope(name) : b.ScopeExact(name);
}

Output ElementOf(const GraphBuilder& b, Output vector, int i) {
  const GraphBuilder slice = b.Scope("strided_slice");
  const Output from = slice.WithName("stack").Vector<int32_t>({i});
  const Output to = slice.WithName("stack_1").Vector<int32_t>({i + 1});
  const Output steps = slice.WithName("stack_2").Vector<int32_t>({1});
  return slice.WithName("/").Op("StridedSlice", {vector, from, to, steps}, {{"shrink_axis_mask", int64_t{1}}});
}

namespace {

Output Joined(const GraphBuilder& b, const std::vector<Output>& parts, int32_t axis) {
  const GraphBuilder concat = b.Scope("concat");
  const Output at = concat.WithName("axis").Scalar(axis);
  return concat.WithName("/").Op("ConcatV2", {parts, at});
}

Output Expanded(const GraphBuilder& b, Output scalar) {
  const GraphBuilder expand = b.Scope("ExpandDims");
  const Output dim = expand.WithName("dim").Scalar<int32_t>(0);
  return expand.WithName("/").Op("ExpandDims", {scalar, dim});
}

Output Filled(const GraphBuilder& b, DType dtype, Output dims) {
  const GraphBuilder zeros = b.Scope("zeros");
  const Output zero = zeros.ScalarOf(dtype, 0);
  return zeros.WithName("/").Op("Fill", {dims, zero});
}

}  // namespace

namespace {

// The sizes [batch] and [size] as vectors: nodes of TensorFlow's states of zeros, which states them twice.
std::vector<Output> Sizes(const GraphBuilder& b, Output batch, int64_t known_batch, int64_t size) {
  const Output rows = known_batch < 0 ? Expanded(b, batch) : b.Vector<int32_t>({static_cast<int32_t>(known_batch)});
  return {rows, b.Vector<int32_t>({static_cast<int32_t>(size)})};
}

}  // namespace

Output ZerosOf(const GraphBuilder& b, DType dtype, Output batch, int64_t known_batch, int64_t size) {
  return Filled(b, dtype, Joined(b, Sizes(b, batch, known_batch, size), 0));
}

StatusOr<Output> ZeroStates::Next(const GraphBuilder& b) {
  if (next_ == sizes_.size()) return Internal("the cell has more states than its layout tells");
  int64_t size = sizes_[next_++];
  if (size >= 0) {
    const Output state = ZerosOf(b, dtype_, batch_, known_batch_, size);
    Sizes(b, batch_, known_batch_, size);
    return state;
  }
  if (memories_.empty()) return InvalidArgument("ZeroState: the cell reads a memory, which must be given");
  const Output memory = memories_[std::min(memories_used_++, memories_.size() - 1)];
  size = memory.shape().dim(1);
  if (size >= 0) return ZerosOf(b, dtype_, batch_, known_batch_, size);
  const Output rows = known_batch_ >= 0 ? b.Vector<int32_t>({static_cast<int32_t>(known_batch_)}) : Expanded(b, batch_);
  const Output columns = Expanded(b, ElementOf(b, b.Shape(memory), 1));
  return Filled(b, dtype_, Joined(b, {rows, columns}, 0));
}

StatusOr<std::vector<Output>> RnnCell::ZeroState(const GraphBuilder& b, ZeroStates& zeros) const {
  const GraphBuilder inside = b.Scope(absl::StrCat(kind(), "ZeroState"));
  std::vector<Output> states;
  for (size_t i = 0; i < num_states(); ++i) {
    MR_ASSIGN_OR_RETURN(const Output state, zeros.Next(inside));
    states.push_back(state);
  }
  MR_RETURN_IF_ERROR(b.status());
  return states;
}

Output ConcatColumns(const GraphBuilder& b, const std::vector<Output>& parts) {
  return parts.size() == 1 ? parts[0] : Joined(b, parts, 1);
}

Output Linear(const GraphBuilder& b, const std::vector<Output>& parts, Output kernel, Output bias) {
  const Output product = b.MatMul(ConcatColumns(b, parts), kernel);
  return bias ? b.Op("BiasAdd", {product, bias}) : product;
}

}  // namespace millrace
