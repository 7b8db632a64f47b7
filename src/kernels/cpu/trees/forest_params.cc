// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trees/forest_params.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace millrace {
namespace {

constexpr int64_t kMostDenseOutputs = 1 << 20;

template <typename Kind>
Status TakeKind(const char* name, int32_t number, std::initializer_list<Kind> kinds, Kind* kind) {
  if (number < 0 || number >= static_cast<int32_t>(kinds.size())) {
    return InvalidArgument(name, " is ", number, ", want 0 to ", kinds.size() - 1);
  }
  *kind = kinds.begin()[number];
  return absl::OkStatus();
}

// Of numbers that older releases had, some are gone.
Status TakeKinds(const wire::ForestSettings& s, ForestParams* params) {
  if (s.leaf_type == 3 || s.stats_type == 3) {
    return InvalidArgument("classes that are sparse, then dense, are not supported: choose dense or sparse ones");
  }
  if (s.collection_type != 0) return InvalidArgument("collection_type is ", s.collection_type, ", want 0");
  using Leaf = ForestLeafKind;
  using Stats = ForestStatsKind;
  MR_RETURN_IF_ERROR(TakeKind("leaf_type", s.leaf_type, {Leaf::kDense, Leaf::kSparse, Leaf::kMeans}, &params->leaves));
  MR_RETURN_IF_ERROR(TakeKind(
      "stats_type", s.stats_type, {Stats::kDense, Stats::kSparse, Stats::kMeans, Stats::kFixedSize, Stats::kFixedSize},
      &params->stats));
  if ((params->leaves == Leaf::kMeans) != (params->stats == Stats::kMeans)) {
    return InvalidArgument(
        "leaf_type ", s.leaf_type, " and stats_type ", s.stats_type, " are not of one kind of forest");
  }
  using Finish = ForestFinishKind;
  using Prune = ForestPruningKind;
  if (s.finish_type) {
    MR_RETURN_IF_ERROR(TakeKind(
        "finish_type", s.finish_type->type, {Finish::kBasic, Finish::kBasic, Finish::kHoeffding, Finish::kBootstrap},
        &params->finish));
  }
  if (s.pruning_type) {
    MR_RETURN_IF_ERROR(TakeKind(
        "pruning_type", s.pruning_type->type,
        {Prune::kNone, Prune::kHalf, Prune::kQuarter, Prune::kTenth, Prune::kHoeffding}, &params->pruning));
  }
  return absl::OkStatus();
}

Status CheckNumbers(const wire::ForestSettings& s, const ForestParams& params) {
  const bool is_dense = params.has_dense_leaves() || params.stats == ForestStatsKind::kDense;
  if (s.num_outputs < 1 || (is_dense && s.num_outputs > kMostDenseOutputs)) {
    return InvalidArgument("num_outputs is ", s.num_outputs, ", want 1 to ", kMostDenseOutputs);
  }
  for (const int32_t n : {s.num_features, s.max_nodes, s.num_classes_to_track}) {
    if (n < 0) return InvalidArgument("num_features, max_nodes and num_classes_to_track must not be negative, got ", n);
  }
  if (s.inequality_test_type < 0 || s.inequality_test_type > 1) {
    return InvalidArgument("inequality_test_type is ", s.inequality_test_type, ", want 0 or 1");
  }
  if (params.stats == ForestStatsKind::kFixedSize && s.num_classes_to_track == 0) {
    return InvalidArgument("num_classes_to_track must be positive where so many classes are tracked");
  }
  if (params.finish != ForestFinishKind::kBasic && !(s.dominate_fraction && s.min_split_samples)) {
    return InvalidArgument("dominate_fraction and min_split_samples required for early-finish strategy.");
  }
  if (params.pruning == ForestPruningKind::kHoeffding && !s.dominate_fraction) {
    return InvalidArgument("dominate_fraction required for pruning by Hoeffding's bound");
  }
  return absl::OkStatus();
}

// Reads "name: value" pairs, with lists in brackets and columns in braces.
class SpecReader {
 public:
  explicit SpecReader(absl::string_view text) : rest_(text) {}

  bool Take(absl::string_view word) {
    SkipSpace();
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  Status Expect(absl::string_view word) {
    if (Take(word)) return absl::OkStatus();
    return InvalidArgument("wants ", word, " before ", rest_.empty() ? "the end" : rest_.substr(0, 20));
  }
  StatusOr<int64_t> Number() {
    SkipSpace();
    size_t n = !rest_.empty() && rest_[0] == '-' ? 1 : 0;
    while (n < rest_.size() && absl::ascii_isdigit(static_cast<unsigned char>(rest_[n]))) ++n;
    int64_t number = 0;
    if (!absl::SimpleAtoi(rest_.substr(0, n), &number)) {
      return InvalidArgument("wants a number before ", rest_.empty() ? "the end" : rest_.substr(0, 20));
    }
    rest_.remove_prefix(n);
    return number;
  }
  // Names may hold anything; the type stands behind the last.
  Status SkipName() {
    const size_t end = std::min(rest_.find(" original_type: "), rest_.size());
    rest_.remove_prefix(end);
    return absl::OkStatus();
  }
  void SkipSpace() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }
  bool AtEnd() {
    SkipSpace();
    return rest_.empty();
  }

 private:
  absl::string_view rest_;
};

StatusOr<ForestInputSpec::Column> ReadColumn(SpecReader& in) {
  ForestInputSpec::Column column;
  MR_RETURN_IF_ERROR(in.Expect("name:"));
  MR_RETURN_IF_ERROR(in.SkipName());
  MR_RETURN_IF_ERROR(in.Expect("original_type:"));
  MR_ASSIGN_OR_RETURN(const int64_t type, in.Number());
  if (type != 0 && type != 1) return InvalidArgument("original_type is ", type, ", want 0 (numbers) or 1 (categories)");
  column.is_categorical = type == 1;
  MR_RETURN_IF_ERROR(in.Expect("size:"));
  MR_ASSIGN_OR_RETURN(column.size, in.Number());
  MR_RETURN_IF_ERROR(in.Expect("}"));
  return column;
}

Status ReadColumns(SpecReader& in, std::vector<ForestInputSpec::Column>* columns) {
  MR_RETURN_IF_ERROR(in.Expect("["));
  while (in.Take("{")) {
    MR_ASSIGN_OR_RETURN(const ForestInputSpec::Column column, ReadColumn(in));
    columns->push_back(column);
    in.Take(",");
  }
  return in.Expect("]");
}

StatusOr<ForestInputSpec> ReadSpec(absl::string_view text) {
  ForestInputSpec spec;
  SpecReader in(text);
  while (!in.AtEnd()) {
    if (in.Take("dense_features_size:")) {
      MR_ASSIGN_OR_RETURN(spec.dense_features, in.Number());
    } else if (in.Take("dense:")) {
      MR_RETURN_IF_ERROR(ReadColumns(in, &spec.dense));
    } else {
      MR_RETURN_IF_ERROR(in.Expect("sparse:"));
      MR_RETURN_IF_ERROR(ReadColumns(in, &spec.sparse));
    }
  }
  if (spec.dense_features < 0) return InvalidArgument("dense_features_size is ", spec.dense_features);
  return spec;
}

}  // namespace

StatusOr<ForestParams> ParseForestParams(absl::string_view bytes) {
  ForestParams params;
  MR_RETURN_IF_ERROR(wire::Decode(bytes, &params.settings));
  MR_RETURN_IF_ERROR(TakeKinds(params.settings, &params));
  MR_RETURN_IF_ERROR(CheckNumbers(params.settings, params));
  params.outputs = params.settings.num_outputs;
  return params;
}

StatusOr<ForestParams> ForestParamsOf(const KernelInit& init) {
  MR_ASSIGN_OR_RETURN(const std::string bytes, init.Attr<std::string>("params"));
  StatusOr<ForestParams> params = ParseForestParams(bytes);
  if (!params.ok()) return Annotate(params.status(), "attribute params: ");
  return params;
}

Status CheckSameForest(const ForestParams& made, const ForestParams& asked) {
  if (made.outputs == asked.outputs && made.leaves == asked.leaves && made.stats == asked.stats) {
    return absl::OkStatus();
  }
  return InvalidArgument("params are of another forest, with ", asked.outputs,
                         " outputs, than what the handle stands for, with ", made.outputs);
}

Status CheckForestNumbers(int64_t rows, const ForestParams& params) {
  constexpr int64_t kBytesOfNumber = 7;
  const int64_t most = std::numeric_limits<int32_t>::max() / kBytesOfNumber;
  if (rows <= most / params.outputs) return absl::OkStatus();
  return ResourceExhausted("there are ", rows, " times ", params.outputs,
                           " numbers of leaves or candidates, more than a message holds, which is ", most);
}

float AtDepth(const wire::Box<wire::ForestByDepth>& param, int32_t depth) {
  if (!param) return 0;
  const auto d = static_cast<float>(depth);
  using Kind = wire::ForestByDepth::Kind;
  if (param->kind == Kind::kLinear && param->linear) {
    const wire::ForestLinear& p = *param->linear;
    return std::min(std::max(p.slope * d + p.y_intercept, p.min_val), p.max_val);
  }
  if (param->kind == Kind::kExponential && param->exponential) {
    const wire::ForestExponential& p = *param->exponential;
    return p.bias + p.multiplier * std::pow(p.base, p.depth_multiplier * d);
  }
  if (param->kind == Kind::kThreshold && param->threshold) {
    const wire::ForestThreshold& p = *param->threshold;
    return d >= p.threshold ? p.on_value : p.off_value;
  }
  return param->constant_value;
}

bool ForestInputSpec::IsCategorical(int64_t feature) const {
  for (const Column& column : dense) {
    if (feature < column.size) return column.is_categorical;
    feature -= std::max<int64_t>(column.size, 0);
  }
  return !sparse.empty() && sparse[0].is_categorical;
}

StatusOr<ForestInputSpec> ParseForestInputSpec(absl::string_view text) {
  StatusOr<ForestInputSpec> spec = ReadSpec(text);
  if (!spec.ok()) return Annotate(spec.status(), "attribute input_spec: ");
  return spec;
}

}  // namespace millrace
