// SPDX-License-Identifier: Apache-2.0
// The time that control groups grant is as sched-bwc.rst and cgroup-v2.rst of the kernel describe it: version 2 writes
// "QUOTA PERIOD" into cpu.max, "max" for no limit; version 1 has a file for each, and -1 for no limit.
#include "base/granted_processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/control_groups.h"

namespace millrace {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

double Share(const std::vector<std::string>& quota_and_period) {
  double quota = 0;
  double period = 0;
  if (quota_and_period.size() < 2 || !absl::SimpleAtod(quota_and_period[0], &quota) ||
      !absl::SimpleAtod(quota_and_period[1], &period) || !(quota > 0) || !(period > 0))
    return kNoLimit;
  return quota / period;
}

double ShareOfVersion2(Env& env, const std::string& folder) {
  return Share(WordsOf(env, absl::StrCat(folder, "/cpu.max")));
}

double ShareOfVersion1(Env& env, const std::string& folder) {
  std::vector<std::string> words = WordsOf(env, absl::StrCat(folder, "/cpu.cfs_quota_us"));
  for (std::string& word : WordsOf(env, absl::StrCat(folder, "/cpu.cfs_period_us"))) words.push_back(std::move(word));
  return Share(words);
}

double GroupsShare(Env& env, const std::string& root) {
  double least = kNoLimit;
  VisitControlGroups(env, root, "cpu", [&](const std::string& folder, bool is_version_2) {
    least = std::min(least, is_version_2 ? ShareOfVersion2(env, folder) : ShareOfVersion1(env, folder));
  });
  return least;
}

int ProcessorsOfThread() {
  for (size_t most = 1024; most <= size_t{1} << 20; most *= 4) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(most), [](cpu_set_t* s) { CPU_FREE(s); });
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(most);
    if (sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int GrantedProcessors(Env& env, const std::string& root) {
  const double processors = std::max(1, ProcessorsOfThread());
  return static_cast<int>(std::max(1.0, std::min(processors, std::ceil(GroupsShare(env, root)))));
}

}  // namespace millrace
