// SPDX-License-Identifier: Apache-2.0
// The session over workers in this process.
#pragma once

#include "base/thread_pool.h"
#include "client/session.h"
#include "kernel/kernel_registry.h"

namespace millrace {

using DeviceList = std::vector<std::unique_ptr<Device>>;

// One worker for each list of devices. `pool`, which they use, may be the session's own. They belong to the session:
// its variables live and die with it. InvalidArgument: no worker, one without devices, a device or a task named twice.
StatusOr<std::unique_ptr<Session>> NewLocalSession(
    RefPtr<SharedGraph> graph, const wire::ConfigProto& config, std::vector<DeviceList> workers,
    const KernelRegistry* kernels, const Determinism& determinism = {}, std::unique_ptr<ThreadPool> pool = nullptr);

// Closes every local session that is alive, and drops its resources of these containers (all when empty).
Status ResetLocalSessions(const std::vector<std::string>& containers);

}  // namespace millrace
