// SPDX-License-Identifier: Apache-2.0
// The world that a thread pool works in.
#pragma once

#include <memory>

#include "base/env.h"
#include "base/thread_pool.h"

namespace millrace {

// That of the process, but for pools of NewThreadPool.
Env& EnvOf(const ThreadPool& pool);
// Without threads of its own: Schedule is `env`'s, and ParallelFor runs on its caller alone. `env` outlives it.
std::unique_ptr<ThreadPool> NewThreadPool(Env& env);

}  // namespace millrace
