// SPDX-License-Identifier: Apache-2.0
#include "base/limited_env.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file_system.h"
#include "base/file_uri.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

// Absolute and without symbolic links, as far as it exists. Nothing for what cannot be told.
StatusOr<fs::path> Resolve(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(std::string(WithoutFileScheme(path)), error);
  if (error) return InvalidArgument("path '", path, "': ", error.message());
  fs::path resolved = fs::weakly_canonical(absolute, error);
  if (error) return InvalidArgument("path '", path, "': ", error.message());
  // A link to what does not exist was not followed; whoever creates the file would follow it.
  if (fs::is_symlink(fs::symlink_status(resolved, error))) {
    return InvalidArgument("path '", path, "' is a symbolic link to what does not exist");
  }
  if (!resolved.has_filename()) resolved = resolved.parent_path();
  return resolved;
}

absl::string_view WithoutSlashes(absl::string_view folder) {
  while (absl::ConsumeSuffix(&folder, "/")) {
  }
  return folder;
}
// Of files of others. They know no links that a graph could make, but ".." may mean what they like.
bool IsBeneathText(absl::string_view path, absl::string_view folder) {
  if (FileScheme(folder).empty() || !absl::ConsumePrefix(&path, WithoutSlashes(folder))) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  return parts.front().empty() && std::find(parts.begin(), parts.end(), "..") == parts.end();
}

bool IsBeneath(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

class LimitedEnv final : public Env {
 public:
  LimitedEnv(Env& base, EnvLimits limits) : base_(base), limits_(std::move(limits)) {}
  const EnvLimits& limits() const { return limits_; }

  absl::Time Now() override { return base_.Now(); }
  int64_t MonotonicNanos() override { return base_.MonotonicNanos(); }
  uint64_t Random64() override { return base_.Random64(); }
  void Schedule(absl::AnyInvocable<void() &&> fn) override { base_.Schedule(std::move(fn)); }
  Status StartThread(absl::AnyInvocable<void() &&> fn) override { return base_.StartThread(std::move(fn)); }
  TimerId StartTimer(absl::Duration period, absl::AnyInvocable<bool()> fn) override {
    return base_.StartTimer(period, std::move(fn));
  }
  void StopTimer(TimerId id) override { base_.StopTimer(id); }
  bool Await(absl::Mutex& mu, const absl::Condition& condition, absl::Duration patience) override {
    return base_.Await(mu, condition, patience);
  }
  void WaitWhile(std::atomic<uint32_t>& word, uint32_t seen, int64_t nanos) override {
    base_.WaitWhile(word, seen, nanos);
  }
  void WakeOne(std::atomic<uint32_t>& word) override { base_.WakeOne(word); }
  bool IsSimulated() const override { return base_.IsSimulated(); }

  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override {
    MR_RETURN_IF_ERROR(Check(path));
    return base_.NewWritableFile(path);
  }
  StatusOr<std::unique_ptr<WritableFile>> NewAppendableFile(const std::string& path) override {
    MR_RETURN_IF_ERROR(Check(path));
    return base_.NewAppendableFile(path);
  }
  StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override {
    MR_RETURN_IF_ERROR(Check(path));
    return base_.NewRandomAccessFile(path);
  }
  StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes) override {
    MR_RETURN_IF_ERROR(Check(path));
    return base_.ReadFile(path, max_bytes);
  }
  Status RenameFile(const std::string& from, const std::string& to) override {
    MR_RETURN_IF_ERROR(Check(from));
    MR_RETURN_IF_ERROR(Check(to));
    return base_.RenameFile(from, to);
  }
  Status DeleteFile(const std::string& path) override {
    MR_RETURN_IF_ERROR(Check(path));
    return base_.DeleteFile(path);
  }
  Status DeleteDir(const std::string& path) override {
    MR_RETURN_IF_ERROR(Check(path));
    return base_.DeleteDir(path);
  }
  Status CreateDirs(const std::string& path) override {
    MR_RETURN_IF_ERROR(Check(path));
    return base_.CreateDirs(path);
  }
  Status SyncDir(const std::string& path) override {
    MR_RETURN_IF_ERROR(Check(path));
    return base_.SyncDir(path);
  }
  bool FileExists(const std::string& path) override { return Check(path).ok() && base_.FileExists(path); }
  StatusOr<uint64_t> FileSize(const std::string& path) override {
    MR_RETURN_IF_ERROR(Check(path));
    return base_.FileSize(path);
  }
  StatusOr<std::vector<std::string>> ListDir(const std::string& path) override {
    MR_RETURN_IF_ERROR(Check(path));
    return base_.ListDir(path);
  }

 private:
  StatusOr<bool> IsAllowed(const std::string& path) const {
    if (!FileScheme(path).empty()) {
      return limits_.allows_all_schemes ||
             std::any_of(limits_.folders.begin(), limits_.folders.end(), [&](const std::string& folder) {
               return IsBeneathText(path, folder);
             });
    }
    MR_ASSIGN_OR_RETURN(const fs::path resolved, Resolve(path));
    return std::any_of(limits_.folders.begin(), limits_.folders.end(), [&](const std::string& folder) {
      if (!FileScheme(folder).empty()) return false;
      const StatusOr<fs::path> root = Resolve(folder);  // each time: it may have been made since
      return root.ok() && IsBeneath(resolved, *root);
    });
  }

  Status Check(const std::string& path) const {
    MR_ASSIGN_OR_RETURN(const bool is_allowed, IsAllowed(path));
    if (is_allowed) return absl::OkStatus();
    return PermissionDenied(
        "file ", path.substr(0, 300), ": graphs on this server may use ",
        limits_.folders.empty() ? "no files" : "files beneath " + absl::StrJoin(limits_.folders, ", ") + " only",
        "; --allow-files or MILLRACE_ALLOW_FILES names folders");
  }

  Env& base_;
  const EnvLimits limits_;
};

}  // namespace

std::unique_ptr<Env> NewLimitedEnv(Env& base, EnvLimits limits) {
  return std::make_unique<LimitedEnv>(base, std::move(limits));
}

Status CheckMayCallClientFunctions(const Env& env) {
  const auto* const limited = dynamic_cast<const LimitedEnv*>(&env);
  if (limited == nullptr || limited->limits().allows_client_functions) return absl::OkStatus();
  return PermissionDenied(
      "graphs on this server may not call functions of its program; --allow-py-func or MILLRACE_ALLOW_PY_FUNC=1 "
      "allows it");
}

}  // namespace millrace
