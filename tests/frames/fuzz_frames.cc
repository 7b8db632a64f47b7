// SPDX-License-Identifier: Apache-2.0
// Sends changed messages to the methods of servers: fuzz_frames [--frames N] [--seed S] [--method NAME]
//
// N, or 1,000,000, to each method, or to the one. Says how many were accepted and refused; exits with 1 when one was
// not answered once, or a client afterwards does not find what it should.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "frames/frame_fuzzer.h"

namespace {

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

int main(int argc, char** argv) {
  int64_t frames = 1'000'000;
  uint64_t seed = 1;
  std::string only;
  for (int i = 1; i < argc; i += 2) {
    const bool has_value = i + 1 < argc;
    if (has_value && std::strcmp(argv[i], "--frames") == 0) {
      frames = std::atoll(argv[i + 1]);
    } else if (has_value && std::strcmp(argv[i], "--seed") == 0) {
      seed = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (has_value && std::strcmp(argv[i], "--method") == 0) {
      only = argv[i + 1];
    } else {
      std::fprintf(stderr, "usage: fuzz_frames [--frames N] [--seed S] [--method NAME]\n");
      return 2;
    }
  }
  setenv("MILLRACE_MIN_LOG_LEVEL", "2", /*overwrite=*/0);  // what servers tell people
  bool is_known = false, all_well = true;
  for (const std::string& method : millrace::FrameFuzzer::Methods()) {
    if (!only.empty() && method != only) continue;
    is_known = true;
    const double start = Seconds();
    millrace::FrameFuzzer fuzzer(seed);
    millrace::FrameCounts counts;
    const std::string failure = fuzzer.Run(method, frames, &counts);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("%-30s %9lld frames, %9lld accepted, %9lld refused; %.0f s, at most %ld MB%s%s\n", method.c_str(),
                static_cast<long long>(counts.frames), static_cast<long long>(counts.accepted),
                static_cast<long long>(counts.refused), Seconds() - start, usage.ru_maxrss / 1024,
                failure.empty() ? "" : "\nFAILED: ", failure.c_str());
    std::fflush(stdout);
    all_well &= failure.empty();
  }
  if (!is_known) std::fprintf(stderr, "there is no method %s\n", only.c_str());
  return !is_known ? 2 : all_well ? 0 : 1;
}
