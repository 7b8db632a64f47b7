// SPDX-License-Identifier: Apache-2.0
// Names and numbers that writer, reader and merger of V2 checkpoints share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/env.h"
#include "wire/checkpoint.h"

namespace millrace::bundle_format {

inline constexpr int kVersion = 1;

std::string IndexPath(const std::string& prefix);
std::string DataPath(const std::string& prefix, int shard, int num_shards);
std::string FolderOf(const std::string& path);  // "." for a bare name

std::string EncodeHeader(int num_shards);
StatusOr<wire::BundleHeaderProto> DecodeHeader(absl::string_view bytes);

// The number of shards of the checkpoint with this prefix; 0 when there is none that can be read.
int ExistingShards(Env& env, const std::string& prefix);

using Entries = std::map<std::string, wire::BundleEntryProto>;

// Makes the checkpoint `prefix` consist of `data_files` (synced; they are renamed to their final names) and an index of
// `entries`. All is durable and visible, or the old checkpoint of that prefix still is: the data files get names that
// the old one does not use, which is what the number of shards in their names is varied for, and the rename of the
// index is the commit.
Status Commit(Env& env, const std::string& prefix, const std::vector<std::string>& data_files, const Entries& entries);

}  // namespace millrace::bundle_format
