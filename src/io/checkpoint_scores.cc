// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_scores.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "base/file_system.h"
#include "base/json.h"

namespace millrace {
namespace {

constexpr uint64_t kMaxScoresBytes = 16 << 20;

// A number as JSON, and in quotes where JSON has none for it; the same double comes back.
std::string Number(double v) {
  return std::isinf(v) ? JsonQuoted(v < 0 ? "-Infinity" : "Infinity") : absl::StrFormat("%.17g", v);
}

Status ReadScore(JsonReader& json, double* score) {
  bool quoted = false;
  std::string text;
  MR_RETURN_IF_ERROR(json.Scalar(&quoted, &text));
  if (absl::SimpleAtod(text, score) && !std::isnan(*score)) return absl::OkStatus();
  return json.Fail(absl::StrCat("'", text.substr(0, 80), "' is no number"));
}

}  // namespace

StatusOr<CheckpointScores> CheckpointScores::Read(Env& env, const std::string& folder, const std::string& state_file) {
  CheckpointScores scores;
  scores.folder_ = folder;
  scores.file_ = JoinPath(folder, state_file + ".scores");
  if (!env.FileExists(scores.file_)) return scores;
  MR_ASSIGN_OR_RETURN(const std::string text, env.ReadFile(scores.file_, kMaxScoresBytes));
  JsonReader json(text);
  Status s = json.Object([&](const std::string& name) {
    scores.all_.emplace_back(IsAbsolutePath(name) ? name : JoinPath(folder, name), 0);
    return ReadScore(json, &scores.all_.back().second);
  });
  if (s.ok() && json.Peek() != '\0') s = json.Fail("extraneous characters");
  if (!s.ok()) return DataLoss(scores.file_, " holds no scores: ", s.message());
  return scores;
}

std::vector<std::string> CheckpointScores::Best(size_t count, bool best_is_least) const {
  std::vector<size_t> order(all_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;  // newest first, which stays for equals
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return best_is_least ? all_[a].second < all_[b].second : all_[a].second > all_[b].second;
  });
  std::vector<std::string> best;
  for (size_t i = 0; i < std::min(count, order.size()); ++i) best.push_back(all_[order[i]].first);
  return best;
}

StatusOr<std::vector<std::string>> CheckpointScores::Add(
    Env& env, const std::string& prefix, double score, size_t count, bool best_is_least) {
  if (std::isnan(score)) return InvalidArgument("the score of ", prefix, " is not a number");
  std::erase_if(all_, [&](const auto& noted) { return noted.first == prefix; });
  all_.emplace_back(prefix, score);
  const std::vector<std::string> best = Best(count, best_is_least);
  std::vector<std::string> forgotten;
  std::erase_if(all_, [&](const auto& noted) {
    if (std::find(best.begin(), best.end(), noted.first) != best.end()) return false;
    forgotten.push_back(noted.first);
    return true;
  });
  std::string text = "{";
  for (const auto& [noted, value] : all_) {
    const std::string name = Dirname(noted) == folder_ ? std::string(Basename(noted)) : noted;
    absl::StrAppend(&text, text.size() > 1 ? ",\n " : "\n ", JsonQuoted(name), ": ", Number(value));
  }
  MR_RETURN_IF_ERROR(WriteFileAtomically(env, file_, text + "\n}"));
  return forgotten;
}

}  // namespace millrace
