// SPDX-License-Identifier: Apache-2.0
// The control groups (cgroups(7)) that a process is in, as the kernel's cgroup-v2.rst describes them, and those of
// version 1. A group is bound by the limits of those that it is in.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "base/env.h"

namespace millrace {

// Calls `visit` with each folder in which the limits of a group around this process may stand, and with whether it is
// of version 2; of version 1 those of `controller` ("cpu", "memory") alone. Within a container the files of its own
// group stand at the mount, whatever the group is called outside, so the mount's folder is always among them; what a
// folder lacks sets no limit. Files are read from `env`, below `root`, a folder that stands for "/" in tests.
void VisitControlGroups(Env& env, const std::string& root, absl::string_view controller,
                        absl::FunctionRef<void(const std::string& folder, bool is_version_2)> visit);

// The words of a short text; none if it cannot be read.
std::vector<std::string> WordsOf(Env& env, const std::string& path);

}  // namespace millrace
