// SPDX-License-Identifier: Apache-2.0
// Version 2 of control groups limits main memory (memory.max) and swap (memory.swap.max), "max" for no limit; version 1
// main memory, and both together (memory.limit_in_bytes, memory.memsw.limit_in_bytes), by a number that no machine has
// for no limit. Without the second file, as where the kernel does not count swap, swap has no limit of its own.
#include "base/granted_memory.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/control_groups.h"

namespace millrace {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

int64_t LimitIn(Env& env, const std::string& folder, absl::string_view file) {
  const std::vector<std::string> words = WordsOf(env, absl::StrCat(folder, "/", file));
  int64_t limit = 0;
  return !words.empty() && absl::SimpleAtoi(words[0], &limit) && limit >= 0 ? limit : kNoLimit;
}

}  // namespace

MemoryGrant GrantedMemory(Env& env, const std::string& root) {
  struct sysinfo info{};
  int64_t main = kNoLimit, swap = 0, both = kNoLimit;
  if (::sysinfo(&info) == 0) {
    main = static_cast<int64_t>(info.totalram) * info.mem_unit;
    swap = static_cast<int64_t>(info.totalswap) * info.mem_unit;
  }
  VisitControlGroups(env, root, "memory", [&](const std::string& folder, bool is_version_2) {
    main = std::min(main, LimitIn(env, folder, is_version_2 ? "memory.max" : "memory.limit_in_bytes"));
    if (is_version_2) {
      swap = std::min(swap, LimitIn(env, folder, "memory.swap.max"));
    } else {
      both = std::min(both, LimitIn(env, folder, "memory.memsw.limit_in_bytes"));
    }
  });
  return {main, std::max(main, std::min(both, main > kNoLimit - swap ? kNoLimit : main + swap))};
}

const MemoryGrant& GrantedMemory() {
  static const MemoryGrant memory = GrantedMemory(Env::Default());
  return memory;
}

}  // namespace millrace
