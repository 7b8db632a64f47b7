// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "base/file_system.h"
#include "io/v1_checkpoint.h"
#include "wire/checkpoint.h"

namespace millrace {
namespace {

constexpr uint64_t kMaxStateBytes = 16 << 20;

std::string Absolute(const std::string& folder, const std::string& path) {
  return IsAbsolutePath(path) ? path : JoinPath(folder, path);
}

std::string Relative(const std::string& folder, const std::string& path) {
  // "folder/" is a prefix too: of files whose names begin with a dot.
  return Dirname(path) == folder && !Basename(path).empty() ? std::string(Basename(path)) : path;
}

}  // namespace

StatusOr<CheckpointList> ReadCheckpointState(Env& env, const std::string& folder, const std::string& file_name) {
  const std::string path = JoinPath(folder, file_name);
  MR_ASSIGN_OR_RETURN(const std::string text, env.ReadFile(path, kMaxStateBytes));
  wire::CheckpointState state;
  if (const Status s = wire::DecodeText(text, &state); !s.ok())
    return DataLoss("cannot read ", path, ": ", s.message());
  CheckpointList list;
  if (state.model_checkpoint_path.empty()) return list;
  list.latest = Absolute(folder, state.model_checkpoint_path);
  for (const std::string& p : state.all_model_checkpoint_paths) list.all.push_back(Absolute(folder, p));
  if (list.all.empty() || list.all.back() != list.latest) list.all.push_back(list.latest);
  return list;
}

Status WriteCheckpointState(Env& env, const std::string& folder, const CheckpointList& list,
                            const std::string& file_name) {
  wire::CheckpointState state;
  state.model_checkpoint_path = Relative(folder, list.latest);
  for (const std::string& p : list.all) state.all_model_checkpoint_paths.push_back(Relative(folder, p));
  return WriteFileAtomically(env, JoinPath(folder, file_name), wire::EncodeText(state));
}

bool CheckpointExists(Env& env, const std::string& prefix) {
  if (env.FileExists(prefix + ".index") || env.FileExists(prefix)) return true;
  return absl::StrContains(Basename(prefix), '?') && OpenV1Checkpoint(env, prefix).ok();
}

StatusOr<std::string> LatestCheckpoint(Env& env, const std::string& folder) {
  MR_ASSIGN_OR_RETURN(const CheckpointList list, ReadCheckpointState(env, folder));
  for (auto it = list.all.rbegin(); it != list.all.rend(); ++it) {
    if (CheckpointExists(env, *it)) return *it;
  }
  return NotFound("no checkpoint in ", folder);
}

}  // namespace millrace
