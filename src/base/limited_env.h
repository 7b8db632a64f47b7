// SPDX-License-Identifier: Apache-2.0
// A world of which graphs that others send may use a part only: no files but those beneath some folders, and no
// functions of the program. Clocks, timers and threads are those of the world behind it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/thread_pool.h"

namespace millrace {

struct EnvLimits {
  std::vector<std::string> folders;      // beneath which files may be read, written and deleted
  bool allows_client_functions = false;  // whether graphs may call functions that the program has registered
  bool allows_all_schemes = false;       // whether the files of all file systems that libraries add may be used
};

// `base` outlives it. A path outside of the folders is PermissionDenied, and does not exist for FileExists. Symbolic
// links are followed before a path is looked at; graphs cannot make any.
std::unique_ptr<Env> NewLimitedEnv(Env& base, EnvLimits limits);

// PermissionDenied where graphs may not call functions of the program.
Status CheckMayCallClientFunctions(const Env& env);

// As ThreadPool(parallelism), in the world `env`, which outlives it.
std::unique_ptr<ThreadPool> NewThreadPool(Env& env, int parallelism);

}  // namespace millrace
