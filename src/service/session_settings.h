// SPDX-License-Identifier: Apache-2.0
// What a session asks of everything that runs for it on its workers, also beyond a step, as functions of data sets do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct SessionSettings {
  int max_threads = 0;         // within a kernel; 0: the pool's width
  int inter_op_threads = 0;    // that run kernels at once, unless a step says otherwise; 0: the pool's width
  bool deterministic = false;  // one thread, ready nodes in a seeded order
  uint64_t order_seed = 0;
  std::vector<std::string> switched_off;  // stages of compilation; names that are none, or may not be, are passed over
  int64_t max_folded_bytes = 0;           // of a constant that compilation makes; 0: as the compiler likes
};

}  // namespace millrace
