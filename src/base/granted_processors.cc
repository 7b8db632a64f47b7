// SPDX-License-Identifier: Apache-2.0
// Control groups are as cgroups(7) and the kernel's cgroup-v2.rst and sched-bwc.rst describe them: version 2 writes
// "QUOTA PERIOD" into cpu.max, "max" for no limit; version 1 has a file for each, and -1 for no limit. A group is bound
// by the limits of those that it is in.
#include "base/granted_processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace millrace {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::vector<std::string> WordsOf(Env& env, const std::string& path) {
  const StatusOr<std::string> text = env.ReadFile(path, uint64_t{1} << 16);
  if (!text.ok()) return {};
  return absl::StrSplit(*text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

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

// The least share of `group` below `mount` and of all that it is in. Within a container the files of its own group
// stand at the mount, whatever the group is called outside.
double LeastShare(Env& env, const std::string& mount, absl::string_view group, double share(Env&, const std::string&)) {
  double least = share(env, mount);
  for (; !group.empty() && group != "/"; group = Dirname(group))
    least = std::min(least, share(env, absl::StrCat(mount, group)));
  return least;
}

double GroupsShare(Env& env, const std::string& root) {
  double least = kNoLimit;
  const std::string mount = absl::StrCat(root, "/sys/fs/cgroup");
  for (const std::string& line : WordsOf(env, absl::StrCat(root, "/proc/self/cgroup"))) {  // "ID:CONTROLLERS:GROUP"
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (parts[1].empty())
      least = std::min(least, LeastShare(env, mount, parts[2], ShareOfVersion2));
    else if (std::find(controllers.begin(), controllers.end(), "cpu") != controllers.end())
      least = std::min({least, LeastShare(env, absl::StrCat(mount, "/cpu"), parts[2], ShareOfVersion1),
                        LeastShare(env, absl::StrCat(mount, "/", parts[1]), parts[2], ShareOfVersion1)});
  }
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
