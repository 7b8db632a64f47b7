// SPDX-License-Identifier: Apache-2.0
#include "io/bundle_format.h"

#include <algorithm>
#include <utility>

#include "absl/base/const_init.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "io/table.h"

namespace millrace::bundle_format {
namespace {

// Savers of one process that share a prefix commit one after the other.
ABSL_CONST_INIT absl::Mutex commit_mu(absl::kConstInit);

Status WriteIndex(Env& env, const std::string& path, int num_shards, const Entries& entries) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, env.NewWritableFile(path));
  TableWriter table(file.get());
  MR_RETURN_IF_ERROR(table.Add("", EncodeHeader(num_shards)));
  for (const auto& [key, entry] : entries) MR_RETURN_IF_ERROR(table.Add(key, wire::Encode(entry)));
  MR_RETURN_IF_ERROR(table.Finish());
  MR_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

std::string IndexPath(const std::string& prefix) { return prefix + ".index"; }

std::string DataPath(const std::string& prefix, int shard, int num_shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, num_shards);
}

std::string FolderOf(const std::string& path) {
  const absl::string_view folder = Dirname(path);
  return folder.empty() ? "." : std::string(folder);
}

std::string EncodeHeader(int num_shards) {
  wire::BundleHeaderProto header;
  header.num_shards = num_shards;
  header.version.Ensure().producer = kVersion;
  return wire::Encode(header);
}

StatusOr<wire::BundleHeaderProto> DecodeHeader(absl::string_view bytes) {
  wire::BundleHeaderProto header;
  if (const Status s = wire::Decode(bytes, &header); !s.ok())
    return DataLoss("broken checkpoint header: ", s.message());
  if (header.num_shards <= 0) return DataLoss("checkpoint header has ", header.num_shards, " shards");
  if (header.endianness != wire::BundleHeaderProto::kLittle && header.endianness != wire::BundleHeaderProto::kBig) {
    return DataLoss("checkpoint header has unknown byte order ", header.endianness);
  }
  if (header.version && header.version->min_consumer > kVersion) {
    return InvalidArgument(
        "checkpoint needs a reader of version ", header.version->min_consumer, ", this one is ", kVersion);
  }
  return header;
}

int ExistingShards(Env& env, const std::string& prefix) {
  auto file = env.NewRandomAccessFile(IndexPath(prefix));
  if (!file.ok()) return 0;
  const auto table = TableReader::Open(*std::move(file));
  if (!table.ok()) return 0;
  const auto bytes = (*table)->Find("");
  if (!bytes.ok() || !bytes->has_value()) return 0;
  const auto header = DecodeHeader(**bytes);
  return header.ok() ? header->num_shards : 0;
}

Status Commit(Env& env, const std::string& prefix, const std::vector<std::string>& data_files, const Entries& entries) {
  const std::string folder = FolderOf(prefix);
  const std::string temporary = absl::StrFormat("%s.tempstate%016x", IndexPath(prefix), env.Random64());
  auto remove_temporary = absl::MakeCleanup([&] { (void)env.DeleteFile(temporary); });

  absl::MutexLock lock(&commit_mu);
  const int old_shards = ExistingShards(env, prefix);
  const int files = static_cast<int>(data_files.size());
  const int least = std::max(files, 1);
  const int num_shards = least == old_shards ? least + 1 : least;
  MR_RETURN_IF_ERROR(WriteIndex(env, temporary, num_shards, entries));
  for (int i = 0; i < files; ++i) {
    MR_RETURN_IF_ERROR(env.RenameFile(data_files[static_cast<size_t>(i)], DataPath(prefix, i, num_shards)));
  }
  MR_RETURN_IF_ERROR(env.SyncDir(folder));
  MR_RETURN_IF_ERROR(env.RenameFile(temporary, IndexPath(prefix)));
  std::move(remove_temporary).Cancel();
  MR_RETURN_IF_ERROR(env.SyncDir(folder));
  // Nobody refers to these any more. A number from a file bounds nothing: the names that exist do.
  for (int i = 0; i < old_shards; ++i) {
    if (!env.DeleteFile(DataPath(prefix, i, old_shards)).ok()) break;
  }
  return absl::OkStatus();
}

}  // namespace millrace::bundle_format
