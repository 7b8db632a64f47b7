// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <unistd.h>

#include <cstdio>

Progress::Progress(int64_t first, int64_t total)
    : first_(first), total_(total), start_(Clock::now()), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::Show(int64_t done, const std::string& note) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || (done < total_ && now - drawn_ < std::chrono::milliseconds(100))) return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done - first_) / seconds : 0;
  const double left = rate > 0 ? static_cast<double>(total_ - done) / rate : 0;
  constexpr int kWidth = 30;
  const int filled = total_ > 0 ? static_cast<int>(kWidth * done / total_) : kWidth;
  std::string bar(static_cast<size_t>(filled), '=');
  bar.resize(kWidth, ' ');
  std::fprintf(stderr, "\r[%s] %lld/%lld steps  %.0f/s  %.0fs left  %s\033[K", bar.c_str(),
               static_cast<long long>(done), static_cast<long long>(total_), rate, left, note.c_str());
  std::fflush(stderr);
}

void Progress::Clear() {
  if (terminal_) std::fprintf(stderr, "\r\033[K");
}
