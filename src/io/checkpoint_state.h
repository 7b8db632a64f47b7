// SPDX-License-Identifier: Apache-2.0
// The file `checkpoint` of a folder: which checkpoints are there, and which is the newest.
#pragma once

#include <string>
#include <vector>

#include "base/env.h"

namespace millrace {

struct CheckpointList {
  std::string latest;
  std::vector<std::string> all;  // oldest first; the last is `latest`
};

// Prefixes, joined to `folder` where they are relative. NotFound without the file, DataLoss when it cannot be read.
StatusOr<CheckpointList> ReadCheckpointState(Env& env, const std::string& folder,
                                             const std::string& file_name = "checkpoint");
// Durable and atomic. Prefixes in `folder` are written relative to it.
Status WriteCheckpointState(Env& env, const std::string& folder, const CheckpointList& list,
                            const std::string& file_name = "checkpoint");

// Whether OpenCheckpoint would find files for this prefix, of either format.
bool CheckpointExists(Env& env, const std::string& prefix);

// The newest checkpoint of the folder that is still there. NotFound when there is none.
StatusOr<std::string> LatestCheckpoint(Env& env, const std::string& folder);

}  // namespace millrace
