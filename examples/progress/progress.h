// SPDX-License-Identifier: Apache-2.0
// One line that shows how far a run is, its rate and the time left; silent unless stderr is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

class Progress {
 public:
  Progress(int64_t first, int64_t total);
  // Redraws at most ten times a second. `note` stands at the end of the line.
  void Show(int64_t done, const std::string& note);
  // Clears the line, so that other output starts clean.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  const int64_t first_, total_;
  const Clock::time_point start_;
  Clock::time_point drawn_{};
  const bool terminal_;
};
