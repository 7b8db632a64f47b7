// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trees/forest_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "base/checked.h"
#include "base/stop_scope.h"

namespace millrace {
namespace {

constexpr int64_t kMostCandidates = 1 << 20;
constexpr int64_t kMostCandidateNumbers = 1 << 26;  // of all candidates of a slot
constexpr int kMostResamplings = 1000;

int64_t CandidatesWanted(const ForestParams& params, int32_t depth) {
  const float wanted = AtDepth(params.settings.num_splits_to_consider, depth);
  const int64_t most = std::min(kMostCandidates, std::max<int64_t>(1, kMostCandidateNumbers / params.outputs));
  if (!(wanted >= 1)) return 1;
  return wanted >= static_cast<float>(most) ? most : static_cast<int64_t>(wanted);
}

// Whether `weight` has passed a multiple of `every` since the last time.
bool IsTime(float weight, float every, int64_t* times) {
  if (!(every > 0)) return true;
  const double passed = std::floor(static_cast<double>(weight) / static_cast<double>(every));
  if (!(passed >= 1)) return false;  // also where both are infinite
  const auto now = static_cast<int64_t>(std::min(passed, 9e15));
  if (now <= *times) return false;
  *times = now;
  return true;
}

// The weight times Gini's impurity, each of the classes counted once more.
double SmoothedGini(double weight, double squares, double classes) {
  const double all = weight + classes;
  return weight * (1 - (squares + 2 * weight + classes) / (all * all));
}

float Square(float v) { return v * v; }

Status TakeVector(const wire::Box<wire::ForestVector>& from, int64_t most, std::vector<float>* to) {
  if (!from) return absl::OkStatus();
  if (std::ssize(from->value) > most) return InvalidArgument("has ", from->value.size(), " numbers, want ", most);
  return ForEachForestNumber(*from, [&](int64_t, float number) -> Status {
    if (!std::isfinite(number)) return InvalidArgument("has a count that is not finite");
    to->push_back(number);
    return absl::OkStatus();
  });
}

}  // namespace

// ---- Labels ----

void ForestLabelStats::Add(const ForestParams& params, const float* labels, float weight) {
  weight_ += weight;
  const auto label = static_cast<int64_t>(params.is_regression() ? 0 : labels[0]);
  switch (params.stats) {
    case ForestStatsKind::kDense:
      dense_.resize(static_cast<size_t>(params.outputs));
      dense_[static_cast<size_t>(label)] += weight;
      return;
    case ForestStatsKind::kSparse: sparse_[label] += weight; return;
    case ForestStatsKind::kFixedSize: AddToFixedSize(label, weight, params.settings.num_classes_to_track); return;
    case ForestStatsKind::kMeans: break;
  }
  dense_.resize(static_cast<size_t>(params.outputs));
  squares_.resize(dense_.size());
  for (size_t i = 0; i < dense_.size(); ++i) {
    dense_[i] += weight * labels[i];
    squares_[i] += weight * Square(labels[i]);
  }
}

// A class that is not tracked may have as much as the least of those that are: half of it is what is expected. It takes
// that one's place.
void ForestLabelStats::AddToFixedSize(int64_t label, float weight, int64_t most) {
  const auto found = sparse_.find(label);
  if (found != sparse_.end()) {
    found->second += weight;
    return;
  }
  if (std::ssize(sparse_) < most) {
    sparse_[label] = weight;
    return;
  }
  const auto least = std::min_element(
      sparse_.begin(), sparse_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const float expected = least->second / 2;
  sparse_.erase(least);
  sparse_[label] = expected + weight;
}

bool ForestLabelStats::HasSeveralClasses() const {
  int64_t classes = 0;
  ForEachClass([&](int64_t, float) { ++classes; });
  return classes > 1;
}

float ForestLabelStats::CountOf(const ForestParams& params, int64_t label) const {
  if (InRange(label, std::ssize(dense_))) return dense_[static_cast<size_t>(label)];
  const auto found = sparse_.find(label);
  if (found != sparse_.end()) return found->second;
  if (params.stats != ForestStatsKind::kFixedSize || std::ssize(sparse_) < params.settings.num_classes_to_track)
    return 0;
  float least = std::numeric_limits<float>::max();
  for (const auto& [other, count] : sparse_) least = std::min(least, count);
  return least / 2;
}

ForestLabelStats ForestLabelStats::Minus(const ForestLabelStats& part) const {
  ForestLabelStats rest = *this;
  rest.weight_ -= part.weight_;
  const auto subtract = [](const std::vector<float>& from, std::vector<float>* to) {
    for (size_t i = 0; i < std::min(from.size(), to->size()); ++i) (*to)[i] -= from[i];
  };
  subtract(part.dense_, &rest.dense_);
  subtract(part.squares_, &rest.squares_);
  for (const auto& [label, count] : part.sparse_) {
    const auto found = rest.sparse_.find(label);
    if (found != rest.sparse_.end() && (found->second -= count) <= 0) rest.sparse_.erase(found);
  }
  return rest;
}

double ForestLabelStats::Impurity(const ForestParams& params) const {
  if (!(weight_ > 0)) return 0;
  double sum = 0;
  if (!params.is_regression()) {
    ForEachClass([&](int64_t, float count) { sum += static_cast<double>(count) * static_cast<double>(count); });
    return SmoothedGini(static_cast<double>(weight_), sum, static_cast<double>(params.outputs));
  }
  const auto weight = static_cast<double>(weight_);
  for (size_t i = 0; i < squares_.size(); ++i) {
    const double mean = static_cast<double>(dense_[i]) / weight;
    sum += static_cast<double>(squares_[i]) / weight - mean * mean;
  }
  return sum;
}

ForestTreeNode ForestLabelStats::Leaf(const ForestParams& params) const {
  ForestTreeNode leaf;
  if (params.is_regression()) {
    for (const float sum : dense_) leaf.dense.push_back(weight_ > 0 ? sum / weight_ : 0);
  } else if (params.has_dense_leaves()) {
    leaf.dense.resize(static_cast<size_t>(params.outputs));
    ForEachClass([&](int64_t label, float count) {
      if (label < params.outputs) leaf.dense[static_cast<size_t>(label)] = count;
    });
  } else {
    ForEachClass([&](int64_t label, float count) { leaf.sparse[label] = count; });
  }
  return leaf;
}

wire::ForestLeafStats ForestLabelStats::Message(const ForestParams& params, bool with_weight) const {
  wire::ForestLeafStats message;
  if (with_weight || params.is_regression()) message.weight_sum = weight_;
  if (params.is_regression()) {
    message.kind = wire::ForestLeafStats::Kind::kRegression;
    wire::ForestMeanStats& means = message.regression.Ensure();
    AddForestNumbers(dense_, params.outputs, &means.mean_output.Ensure());
    AddForestNumbers(squares_, params.outputs, &means.mean_output_squares.Ensure());
    return message;
  }
  message.kind = wire::ForestLeafStats::Kind::kClassification;
  wire::ForestClassStats& classes = message.classification.Ensure();
  if (params.stats == ForestStatsKind::kDense) {
    classes.kind = wire::ForestClassStats::Kind::kDense;
    AddForestNumbers(dense_, params.outputs, &classes.dense_counts.Ensure());
  } else {
    classes.kind = wire::ForestClassStats::Kind::kSparse;
    AddForestNumbers(sparse_, &classes.sparse_counts.Ensure());
  }
  return message;
}

StatusOr<ForestLabelStats> ForestLabelStats::Parse(const wire::ForestLeafStats& message, const ForestParams& params) {
  ForestLabelStats stats;
  using Kind = wire::ForestLeafStats::Kind;
  if (message.kind == Kind::kRegression && message.regression && params.is_regression()) {
    MR_RETURN_IF_ERROR(TakeVector(message.regression->mean_output, params.outputs, &stats.dense_));
    MR_RETURN_IF_ERROR(TakeVector(message.regression->mean_output_squares, params.outputs, &stats.squares_));
    stats.squares_.resize(stats.dense_.size());
    stats.weight_ = message.weight_sum;
  } else if (message.kind == Kind::kClassification && message.classification && !params.is_regression()) {
    const wire::ForestClassStats& classes = *message.classification;
    const bool is_dense = params.stats == ForestStatsKind::kDense;
    if (classes.kind == wire::ForestClassStats::Kind::kDense && is_dense) {
      MR_RETURN_IF_ERROR(TakeVector(classes.dense_counts, params.outputs, &stats.dense_));
    } else if (classes.kind == wire::ForestClassStats::Kind::kSparse && classes.sparse_counts && !is_dense) {
      MR_RETURN_IF_ERROR(ForEachForestNumber(*classes.sparse_counts, [&](int64_t label, float number) -> Status {
        if (label < 0 || !std::isfinite(number)) return InvalidArgument("counts ", number, " of class ", label);
        stats.sparse_[label] = number;
        return absl::OkStatus();
      }));
    } else if (classes.kind != wire::ForestClassStats::Kind::kNone) {
      return InvalidArgument("counts classes in another way than the forest does");
    }
    stats.ForEachClass([&](int64_t, float count) { stats.weight_ += count; });
  } else if (message.kind != Kind::kNone) {
    return InvalidArgument("has statistics of another kind of forest");
  }
  if (!std::isfinite(stats.weight_)) return InvalidArgument("has a weight that is not finite");
  return stats;
}

// ---- Slots ----

bool ForestSlot::IsReady(const ForestParams& params) const {
  if (total_.weight() > 0) return true;
  if (std::ssize(candidates_) < CandidatesWanted(params, depth_)) return false;
  return std::none_of(
      candidates_.begin(), candidates_.end(), [](const ForestCandidate& c) { return c.first_label >= 0; });
}

void ForestSlot::AddCandidate(const ForestParams& params, const ForestInput& input, int64_t example,
                              const ForestInput::Feature* feature, bool is_categorical, const float* labels) {
  const auto label = static_cast<int32_t>(std::clamp(labels[0], 0.0f, 1e9f));
  FillThresholds(input, example, label);
  if (feature == nullptr || std::ssize(candidates_) >= CandidatesWanted(params, depth_)) return;
  ForestCandidate& candidate = candidates_.emplace_back();
  candidate.test.feature = feature->number;
  if (is_categorical) {
    candidate.test.kind = ForestTest::Kind::kMatches;
    candidate.test.values.push_back(feature->value);
    return;
  }
  candidate.test.kind = params.settings.inequality_test_type == 0 ? ForestTest::Kind::kAtMost : ForestTest::Kind::kLess;
  candidate.test.threshold = feature->value;
  if (params.settings.initialize_average_splits) candidate.first_label = label;
}

// Thresholds that wait for an example with another label are set between the first one and this.
void ForestSlot::FillThresholds(const ForestInput& input, int64_t example, int32_t label) {
  for (ForestCandidate& c : candidates_) {
    if (c.first_label < 0 || c.first_label == label) continue;
    c.test.threshold = c.test.threshold / 2 + input.At(example, c.test.feature) / 2;
    c.first_label = -1;
  }
}

void ForestSlot::AddExample(const ForestParams& params, const ForestInput& input, int64_t example, const float* labels,
                            float weight, PhiloxWords& random) {
  total_.Add(params, labels, weight);
  for (ForestCandidate& c : candidates_) {
    if (c.test.Holds(input, example)) {
      c.left.Add(params, labels, weight);
    } else if (params.stats == ForestStatsKind::kFixedSize) {
      c.right.Add(params, labels, weight);
    }
  }
  const wire::ForestSettings& s = params.settings;
  if (params.pruning != ForestPruningKind::kNone &&
      IsTime(total_.weight(), AtDepth(s.pruning_type->prune_every_samples, depth_), &prunings_)) {
    Prune(params);
  }
  if (params.finish != ForestFinishKind::kBasic && total_.weight() >= AtDepth(s.min_split_samples, depth_) &&
      IsTime(total_.weight(), AtDepth(s.finish_type->check_every_steps, depth_), &checks_)) {
    is_dominated_ = is_dominated_ || Dominates(params, random);
  }
}

double ForestSlot::WorkOf(const ForestParams& params, int64_t examples) const {
  const bool is_sparse = params.stats == ForestStatsKind::kSparse || params.stats == ForestStatsKind::kFixedSize;
  const auto numbers = static_cast<double>(is_sparse ? total_.size() + examples : params.outputs);
  const int64_t candidates =
      std::max(std::ssize(candidates_), std::min(CandidatesWanted(params, depth_), std::ssize(candidates_) + examples));
  auto work = static_cast<double>(candidates);
  for (const ForestCandidate& c : candidates_) work += static_cast<double>(c.test.values.size());
  const bool compares = params.pruning != ForestPruningKind::kNone || params.finish != ForestFinishKind::kBasic;
  if (params.is_regression() || compares || params.stats == ForestStatsKind::kFixedSize)
    work += static_cast<double>(candidates) * numbers;
  if (params.finish == ForestFinishKind::kBootstrap) work += kMostResamplings * 4 * numbers;
  return work * static_cast<double>(examples);
}

bool ForestSlot::IsFinished(const ForestParams& params) const {
  if (is_dominated_) return true;
  if (!(total_.weight() > 0) || total_.weight() < AtDepth(params.settings.split_after_samples, depth_)) return false;
  return params.is_regression() || total_.HasSeveralClasses();
}

ForestLabelStats ForestSlot::RightOf(const ForestParams& params, const ForestCandidate& candidate) const {
  return params.stats == ForestStatsKind::kFixedSize ? candidate.right : total_.Minus(candidate.left);
}

double ForestSlot::ScoreOf(const ForestParams& params, const ForestCandidate& candidate) const {
  return candidate.left.Impurity(params) + RightOf(params, candidate).Impurity(params);
}

std::vector<double> ForestSlot::Scores(const ForestParams& params) const {
  std::vector<double> scores;
  StopNowAndThen pause;
  for (const ForestCandidate& c : candidates_) {
    pause(1 + total_.size());
    scores.push_back(ScoreOf(params, c));
  }
  return scores;
}

const ForestCandidate* ForestSlot::Best(const ForestParams& params) const {
  const ForestCandidate* best = nullptr;
  double least = 0;
  StopNowAndThen pause;
  for (const ForestCandidate& c : candidates_) {
    pause(1 + total_.size());
    if (!(c.left.weight() > 0) || !(c.left.weight() < total_.weight())) continue;
    const double score = ScoreOf(params, c);
    if (best != nullptr && !(score < least)) continue;
    best = &c;
    least = score;
  }
  return best;
}

// ---- Candidates that fall behind ----

// How far sums of so many examples are from what they stand for, with the probability that is asked for.
double ForestSlot::HoeffdingBound(const ForestParams& params) const {
  const double doubt = 1 - static_cast<double>(AtDepth(params.settings.dominate_fraction, depth_));
  if (doubt <= 0) return std::numeric_limits<double>::infinity();
  const auto weight = static_cast<double>(total_.weight());
  const double range = weight * (1 - 1 / static_cast<double>(params.outputs));
  return range * std::sqrt(std::max(0.0, 0.5 * std::log(1 / doubt)) / weight);
}

void ForestSlot::Prune(const ForestParams& params) {
  const std::vector<double> scores = Scores(params);
  if (scores.empty()) return;
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  size_t kept = scores.size();
  switch (params.pruning) {
    case ForestPruningKind::kNone: return;
    case ForestPruningKind::kHalf: kept -= kept / 2; break;
    case ForestPruningKind::kQuarter: kept -= kept / 4; break;
    case ForestPruningKind::kTenth: kept -= kept / 10; break;
    case ForestPruningKind::kHoeffding:
      const double most = scores[order[0]] + HoeffdingBound(params);
      while (kept > 1 && scores[order[kept - 1]] > most) --kept;
      break;
  }
  order.resize(kept);
  std::sort(order.begin(), order.end());
  std::vector<ForestCandidate> rest;
  for (const size_t i : order) rest.push_back(std::move(candidates_[i]));
  candidates_ = std::move(rest);
}

bool ForestSlot::Dominates(const ForestParams& params, PhiloxWords& random) const {
  const std::vector<double> scores = Scores(params);
  if (scores.size() < 2) return false;
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::partial_sort(
      order.begin(), order.begin() + 2, order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  if (params.finish == ForestFinishKind::kHoeffding)
    return scores[order[1]] - scores[order[0]] > HoeffdingBound(params);
  return WinsResampled(params, order[0], order[1], random);
}

namespace {

double Normal(PhiloxWords& random) {
  const double u = (static_cast<double>(random()) + 1) / 4294967297.0, v = static_cast<double>(random()) / 4294967296.0;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// The impurity of counts as another draw of so many examples might have given them.
double Resampled(const ForestParams& params, const ForestLabelStats& stats, PhiloxWords& random) {
  double weight = 0, squares = 0;
  StopNowAndThen pause;
  stats.ForEachClass([&](int64_t, float count) {
    pause();
    const double drawn =
        std::max(0.0, static_cast<double>(count) + std::sqrt(static_cast<double>(count) + 1) * Normal(random));
    weight += drawn;
    squares += drawn * drawn;
  });
  return SmoothedGini(weight, squares, static_cast<double>(params.outputs));
}

}  // namespace

bool ForestSlot::WinsResampled(const ForestParams& params, size_t best, size_t second, PhiloxWords& random) const {
  const double wanted = std::clamp(static_cast<double>(AtDepth(params.settings.dominate_fraction, depth_)), 0.0, 1.0);
  const int draws = static_cast<int>(std::min<double>(kMostResamplings, std::ceil(1 / std::max(1 - wanted, 1e-3))));
  const ForestLabelStats right_of_best = RightOf(params, candidates_[best]),
                         right_of_second = RightOf(params, candidates_[second]);
  int wins = 0;
  StopNowAndThen pause;
  for (int i = 0; i < draws; ++i) {
    pause(1 + total_.size());
    const double first = Resampled(params, candidates_[best].left, random) + Resampled(params, right_of_best, random);
    const double other =
        Resampled(params, candidates_[second].left, random) + Resampled(params, right_of_second, random);
    wins += first < other ? 1 : 0;
  }
  return wins >= wanted * draws;
}

// ---- Messages ----

std::string ForestSlot::Message(const ForestParams& params, int32_t node) const {
  std::string text;
  wire::ForestSlotState message;
  message.node_id = node;
  message.depth = depth_;
  if (params.settings.checkpoint_stats) {
    for (const ForestCandidate& c : candidates_) {
      StopIfAsked();
      wire::ForestCandidateState candidate;
      SetForestTest(c.test, &candidate.split.Ensure());
      candidate.left_stats.Ensure() = c.left.Message(params, false);
      if (params.stats == ForestStatsKind::kFixedSize) candidate.right_stats.Ensure() = c.right.Message(params, false);
      AppendForestPart(wire::Encode(candidate), &text);
    }
    message.post_init_leaf_stats.Ensure() = total_.Message(params, true);
  }
  wire::AppendEncoded(message, &text);
  return text;
}

StatusOr<ForestSlot> ForestSlot::Parse(const wire::ForestSlotState& message, const ForestParams& params) {
  if (message.depth < 0) return InvalidArgument("has depth ", message.depth);
  ForestSlot slot(message.depth);
  if (message.post_init_leaf_stats) {
    MR_ASSIGN_OR_RETURN(slot.total_, ForestLabelStats::Parse(*message.post_init_leaf_stats, params));
  }
  if (std::ssize(message.candidates) > CandidatesWanted(params, message.depth)) {
    return InvalidArgument("has ", message.candidates.size(), " candidates, which is more than are considered");
  }
  for (const wire::ForestCandidateState& c : message.candidates) {
    if (!c.split) return InvalidArgument("has a candidate without a test");
    ForestCandidate& candidate = slot.candidates_.emplace_back();
    MR_ASSIGN_OR_RETURN(candidate.test, ForestTestOf(*c.split));
    if (c.left_stats) {
      MR_ASSIGN_OR_RETURN(candidate.left, ForestLabelStats::Parse(*c.left_stats, params));
    }
    if (c.right_stats) {
      MR_ASSIGN_OR_RETURN(candidate.right, ForestLabelStats::Parse(*c.right_stats, params));
    }
  }
  return slot;
}

StatusOr<ForestStatsState> ParseForestStats(absl::string_view bytes, const ForestParams& params) {
  ForestStatsState state;
  state.params = params;
  if (bytes.empty()) {
    state.slots.emplace(0, ForestSlot(0));
    return state;
  }
  wire::ForestStatsState message;
  MR_RETURN_IF_ERROR(wire::Decode(bytes, &message));
  StopNowAndThen pause;
  for (const wire::ForestSlotState& m : message.node_to_slot) {
    pause();
    if (m.node_id < 0) return InvalidArgument("there is a slot of node ", m.node_id);
    StatusOr<ForestSlot> slot = ForestSlot::Parse(m, params);
    if (!slot.ok()) return Annotate(slot.status(), absl::StrCat("the slot of node ", m.node_id, " "));
    if (!state.slots.emplace(m.node_id, *std::move(slot)).second)
      return InvalidArgument("there are two slots of node ", m.node_id);
  }
  return state;
}

StatusOr<std::string> SerializeForestStats(const ForestStatsState& state) {
  const bool is_regression = state.params.is_regression();
  if (state.params.settings.checkpoint_stats && (is_regression || state.params.stats == ForestStatsKind::kDense)) {
    int64_t rows = 0;
    for (const auto& [node, slot] : state.slots) rows += 1 + std::ssize(slot.candidates());
    MR_RETURN_IF_ERROR(CheckForestNumbers(is_regression ? 2 * rows : rows, state.params));
  }
  std::string text;
  for (const auto& [node, slot] : state.slots) {
    StopIfAsked();
    AppendForestPart(slot.Message(state.params, node), &text);
  }
  return text;
}

std::string ForestStats::DebugString() const {
  return Read([](const ForestStatsState& state) {
    return absl::StrCat("statistics of ", state.slots.size(), " leaves");
  });
}

}  // namespace millrace
