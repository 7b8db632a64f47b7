// SPDX-License-Identifier: Apache-2.0
// The file `checkpoint.scores` of a folder: how good its checkpoints are, for savers that keep the best. It outlives
// the process, as the file `checkpoint` does.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/env.h"

namespace millrace {

class CheckpointScores {
 public:
  // None where there is no file. DataLoss: the file holds something else.
  static StatusOr<CheckpointScores> Read(Env& env, const std::string& folder,
                                         const std::string& state_file = "checkpoint");
  // The `count` best prefixes, the best first; of equal scores the newer.
  std::vector<std::string> Best(size_t count, bool best_is_least) const;
  // Notes a score, forgets all but the `count` best, and writes the file: durable and atomic. Returns what it forgot.
  // InvalidArgument: the score is not a number.
  StatusOr<std::vector<std::string>> Add(Env& env, const std::string& prefix, double score, size_t count,
                                         bool best_is_least);

 private:
  std::string folder_, file_;
  std::vector<std::pair<std::string, double>> all_;  // by prefix, in the order in which they were noted
};

}  // namespace millrace
