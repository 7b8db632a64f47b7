// SPDX-License-Identifier: Apache-2.0
#include "base/env.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace millrace {

Env::TimerId Env::ScheduleAfter(absl::Duration after, absl::AnyInvocable<void() &&> fn) {
  return StartTimer(after, [fn = std::move(fn), called = false]() mutable {
    if (!std::exchange(called, true)) std::move(fn)();  // again when it threw
    return false;
  });
}

std::string JoinPath(absl::string_view a, absl::string_view b) {
  if (a.empty()) return std::string(b);
  if (b.empty()) return std::string(a);
  while (b.size() > 1 && b.front() == '/') b.remove_prefix(1);
  if (a.back() == '/') return absl::StrCat(a, b == "/" ? "" : b);
  return b == "/" ? absl::StrCat(a, b) : absl::StrCat(a, "/", b);
}

absl::string_view Dirname(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return {};
  const absl::string_view root = "://";  // of files of others
  if (absl::EndsWith(path.substr(0, slash + 1), root)) return path.substr(0, slash + 1);
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

absl::string_view Basename(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

Status WriteFileAtomically(Env& env, const std::string& path, absl::string_view contents) {
  const std::string temporary = absl::StrFormat("%s.tmp-%016x", path, env.Random64());
  auto remove_temporary = absl::MakeCleanup([&] { (void)env.DeleteFile(temporary); });
  {
    MR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, env.NewWritableFile(temporary));
    MR_RETURN_IF_ERROR(file->Append(contents));
    MR_RETURN_IF_ERROR(file->Sync());
    MR_RETURN_IF_ERROR(file->Close());
  }
  MR_RETURN_IF_ERROR(env.RenameFile(temporary, path));
  std::move(remove_temporary).Cancel();
  const absl::string_view folder = Dirname(path);
  return env.SyncDir(folder.empty() ? "." : std::string(folder));
}

}  // namespace millrace
