// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <utility>

#include "io/bundle_format.h"
#include "io/bundle_writer.h"
#include "io/table.h"

namespace millrace {
namespace {

struct Merged {
  std::map<std::string, wire::BundleEntryProto> entries;
  std::vector<std::string> data_files;
};

// Parts of one tensor are under the same name in each input.
Status AddEntry(const std::string& key, wire::BundleEntryProto entry, Merged* merged) {
  const auto [it, is_new] = merged->entries.try_emplace(key, std::move(entry));
  if (is_new) return absl::OkStatus();
  wire::BundleEntryProto& have = it->second;
  if (have.slices.empty() || entry.slices.empty()) {
    return InvalidArgument("merged checkpoints both hold tensor \"", key, "\"");
  }
  const bool same_shape = static_cast<bool>(have.shape) == static_cast<bool>(entry.shape) &&
                          (!have.shape || wire::Equal(*have.shape, *entry.shape));
  if (have.dtype != entry.dtype || !same_shape) {
    return InvalidArgument("merged checkpoints disagree on shape or dtype of \"", key, "\"");
  }
  have.slices.insert(have.slices.end(), entry.slices.begin(), entry.slices.end());
  return absl::OkStatus();
}

Status AddBundle(Env& env, const std::string& prefix, Merged* merged) {
  auto file = env.NewRandomAccessFile(bundle_format::IndexPath(prefix));
  if (absl::IsNotFound(file.status())) return InvalidArgument("checkpoint to merge does not exist: ", prefix);
  MR_RETURN_IF_ERROR(file.status());
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<TableReader> table, TableReader::Open(*std::move(file)));
  MR_ASSIGN_OR_RETURN(const auto header_bytes, table->Find(""));
  if (!header_bytes) return DataLoss("checkpoint ", prefix, " has no header");
  MR_ASSIGN_OR_RETURN(const wire::BundleHeaderProto header, bundle_format::DecodeHeader(*header_bytes));
  if (header.endianness != wire::BundleHeaderProto::kLittle) {
    return InvalidArgument("checkpoint ", prefix, " has another byte order and cannot be merged");
  }
  std::map<int, int> shards;  // from the input's to the output's
  return table->ForEach([&](absl::string_view key, absl::string_view value) -> Status {
    if (key.empty()) return absl::OkStatus();
    wire::BundleEntryProto entry;
    if (const Status s = wire::Decode(value, &entry); !s.ok())
      return DataLoss("broken checkpoint entry: ", s.message());
    if (entry.slices.empty()) {
      if (entry.shard_id < 0 || entry.shard_id >= header.num_shards) {
        return DataLoss("checkpoint entry names shard ", entry.shard_id, " of ", header.num_shards);
      }
      const auto [shard, is_new] = shards.try_emplace(entry.shard_id, static_cast<int>(merged->data_files.size()));
      if (is_new) {
        merged->data_files.push_back(bundle_format::DataPath(prefix, entry.shard_id, header.num_shards));
        if (!env.FileExists(merged->data_files.back())) {
          return DataLoss("checkpoint lacks its data file ", merged->data_files.back());
        }
      }
      entry.shard_id = shard->second;
    }
    return AddEntry(std::string(key), std::move(entry), merged);
  });
}

}  // namespace

Status MergeBundles(Env& env, const std::vector<std::string>& prefixes, const std::string& destination,
                    bool delete_old_folders) {
  if (destination.empty()) return InvalidArgument("\"", destination, "\" is no prefix of a checkpoint");
  std::set<std::string> seen;
  Merged merged;
  for (const std::string& prefix : prefixes) {
    if (prefix == destination || !seen.insert(prefix).second) {
      return InvalidArgument("checkpoint ", prefix, " is named twice in a merge");
    }
    MR_RETURN_IF_ERROR(AddBundle(env, prefix, &merged));
  }
  if (const std::string folder = bundle_format::FolderOf(destination); folder != ".") {
    MR_RETURN_IF_ERROR(env.CreateDirs(folder));
  }
  MR_RETURN_IF_ERROR(bundle_format::Commit(env, destination, merged.data_files, merged.entries));
  for (const std::string& prefix : prefixes) {
    (void)env.DeleteFile(bundle_format::IndexPath(prefix));
  }
  if (!delete_old_folders) return absl::OkStatus();
  for (const std::string& prefix : prefixes) {
    const std::string folder = bundle_format::FolderOf(prefix);
    if (folder != bundle_format::FolderOf(destination)) (void)env.DeleteDir(folder);
  }
  return absl::OkStatus();
}

}  // namespace millrace
