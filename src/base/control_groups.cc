// SPDX-License-Identifier: Apache-2.0
#include "base/control_groups.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace millrace {
namespace {

void VisitUpwards(const std::string& mount, absl::string_view group, bool is_version_2,
                  absl::FunctionRef<void(const std::string&, bool)> visit) {
  visit(mount, is_version_2);
  for (; !group.empty() && group != "/"; group = Dirname(group)) visit(absl::StrCat(mount, group), is_version_2);
}

}  // namespace

std::vector<std::string> WordsOf(Env& env, const std::string& path) {
  const StatusOr<std::string> text = env.ReadFile(path, uint64_t{1} << 16);
  if (!text.ok()) return {};
  return absl::StrSplit(*text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

void VisitControlGroups(Env& env, const std::string& root, absl::string_view controller,
                        absl::FunctionRef<void(const std::string&, bool)> visit) {
  const std::string mount = absl::StrCat(root, "/sys/fs/cgroup");
  for (const std::string& line : WordsOf(env, absl::StrCat(root, "/proc/self/cgroup"))) {  // "ID:CONTROLLERS:GROUP"
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) {
      VisitUpwards(mount, parts[2], true, visit);
    } else if (std::find(controllers.begin(), controllers.end(), controller) != controllers.end()) {
      VisitUpwards(absl::StrCat(mount, "/", controller), parts[2], false, visit);
      VisitUpwards(absl::StrCat(mount, "/", parts[1]), parts[2], false, visit);
    }
  }
}

}  // namespace millrace
