// SPDX-License-Identifier: Apache-2.0
#include "capi/plugin/plugin_file_system.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "capi/plugin/foreign.h"

namespace millrace::capi {
namespace {

constexpr size_t kMaxSchemes = 64;

// call(status), which may throw.
template <typename Call>
Status Ask(Call&& call) {
  TF_Status reported;
  MR_RETURN_IF_ERROR(CallForeign([&] { call(&reported); }));
  return FromStatus(reported);
}

// A table that has more than ours, or less: what is not there is NULL.
template <typename Ops>
Ops CopyOf(const Ops* ops, size_t size) {
  Ops copy;
  std::memset(&copy, 0, sizeof(copy));
  if (ops != nullptr) std::memcpy(&copy, ops, std::min(size, sizeof(copy)));
  return copy;
}

Status CheckAbi(const char* table, int got, int want) {
  if (got == want) return absl::OkStatus();
  return FailedPrecondition("its table of ", table, " has ABI ", got, ", want ", want);
}

Status WantFunction(const char* name, bool is_there) {
  return is_there ? absl::OkStatus() : FailedPrecondition("its file system lacks the function ", name);
}

struct Tables {
  std::string scheme;
  TF_FilesystemOps system;
  TF_RandomAccessFileOps reading;
  TF_WritableFileOps writing;
  void (*free)(void*) = nullptr;
};

StatusOr<Tables> CheckedTables(const TF_FilesystemPluginOps& given, void (*free)(void*)) {
  if (given.scheme == nullptr) return InvalidArgument("it names no scheme of files");
  if (given.filesystem_ops == nullptr) return InvalidArgument("it has no functions for ", given.scheme, "://");
  MR_RETURN_IF_ERROR(CheckAbi("file systems", given.filesystem_ops_abi, TF_FILESYSTEM_OPS_ABI));
  Tables t{given.scheme, CopyOf(given.filesystem_ops, given.filesystem_ops_size),
           CopyOf(given.random_access_file_ops, given.random_access_file_ops_size),
           CopyOf(given.writable_file_ops, given.writable_file_ops_size), free};
  MR_RETURN_IF_ERROR(WantFunction("init", t.system.init != nullptr));
  MR_RETURN_IF_ERROR(WantFunction("cleanup", t.system.cleanup != nullptr));
  if (given.random_access_file_ops != nullptr) {
    MR_RETURN_IF_ERROR(CheckAbi("files to read", given.random_access_file_ops_abi, TF_RANDOM_ACCESS_FILE_OPS_ABI));
    MR_RETURN_IF_ERROR(WantFunction("cleanup of files to read", t.reading.cleanup != nullptr));
    MR_RETURN_IF_ERROR(WantFunction("read", t.reading.read != nullptr));
  }
  if (given.writable_file_ops != nullptr) {
    MR_RETURN_IF_ERROR(CheckAbi("files to write", given.writable_file_ops_abi, TF_WRITABLE_FILE_OPS_ABI));
    MR_RETURN_IF_ERROR(WantFunction("cleanup of files to write", t.writing.cleanup != nullptr));
    MR_RETURN_IF_ERROR(WantFunction("append", t.writing.append != nullptr));
  }
  return t;
}

class PluginWritableFile final : public WritableFile {
 public:
  PluginWritableFile(std::string path, const TF_WritableFileOps& ops, TF_WritableFile file)
      : path_(std::move(path)), ops_(ops), file_(file) {}
  ~PluginWritableFile() override {
    (void)Close();
    (void)CallForeign([&] { ops_.cleanup(&file_); });
  }

  Status Append(absl::string_view data) override {
    MR_RETURN_IF_ERROR(CheckOpen());
    if (data.empty()) return absl::OkStatus();
    return Did(Ask([&](TF_Status* s) { ops_.append(&file_, data.data(), data.size(), s); }));
  }
  Status Flush() override {
    MR_RETURN_IF_ERROR(CheckOpen());
    if (ops_.flush == nullptr) return absl::OkStatus();
    return Did(Ask([&](TF_Status* s) { ops_.flush(&file_, s); }));
  }
  Status Sync() override {
    if (ops_.sync == nullptr) return Flush();
    MR_RETURN_IF_ERROR(CheckOpen());
    return Did(Ask([&](TF_Status* s) { ops_.sync(&file_, s); }));
  }
  Status Close() override {
    if (std::exchange(is_closed_, true)) return absl::OkStatus();
    const Status closed = ops_.close == nullptr ? absl::OkStatus() : Ask([&](TF_Status* s) { ops_.close(&file_, s); });
    return failure_.ok() ? Annotate(closed, absl::StrCat("cannot close ", path_, ": ")) : failure_;
  }

 private:
  Status CheckOpen() const {
    if (!failure_.ok()) return failure_;
    return is_closed_ ? FailedPrecondition("file is closed: ", path_) : absl::OkStatus();
  }
  // After a failed write nobody knows what the file holds: it stays failed.
  Status Did(const Status& status) {
    failure_ = Annotate(status, absl::StrCat("cannot write ", path_, ": "));
    return failure_;
  }

  const std::string path_;
  const TF_WritableFileOps ops_;
  TF_WritableFile file_;
  bool is_closed_ = false;
  Status failure_;
};

class PluginRandomAccessFile final : public RandomAccessFile {
 public:
  PluginRandomAccessFile(std::string path, const TF_RandomAccessFileOps& ops, TF_RandomAccessFile file, uint64_t size)
      : path_(std::move(path)), ops_(ops), file_(file), size_(size) {}
  ~PluginRandomAccessFile() override {
    (void)CallForeign([&] { ops_.cleanup(&file_); });
  }

  Status Read(uint64_t offset, size_t n, char* out) const override {
    if (offset > size_ || n > size_ - offset) return PastEnd(offset, n);
    while (n > 0) {
      int64_t got = -1;
      const Status s = Ask([&](TF_Status* status) { got = ops_.read(&file_, offset, n, out, status); });
      if (absl::IsOutOfRange(s)) return PastEnd(offset, n);  // somebody cut the file
      MR_RETURN_IF_ERROR(Annotate(s, absl::StrCat("cannot read ", path_, ": ")));
      if (got <= 0 || static_cast<uint64_t>(got) > n) {
        return Internal("cannot read ", path_, ": its file system says that it read ", got, " of ", n, " bytes");
      }
      out += got;
      n -= static_cast<size_t>(got);
      offset += static_cast<uint64_t>(got);
    }
    return absl::OkStatus();
  }
  uint64_t size() const override { return size_; }

 private:
  Status PastEnd(uint64_t offset, size_t n) const { return ReadPastEnd(path_, size_, offset, n); }

  const std::string path_;
  const TF_RandomAccessFileOps ops_;
  mutable TF_RandomAccessFile file_;
  const uint64_t size_;
};

// What stands behind scheme and host, without what means nothing.
std::string CleanPath(absl::string_view uri) {
  uri.remove_prefix(std::min(uri.size(), uri.find("://") + 3));
  uri.remove_prefix(std::min(uri.size(), uri.find('/')));
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(uri, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  return absl::StrCat("/", absl::StrJoin(parts, "/"));
}

class TableFileSystem final : public FileSystem {
 public:
  explicit TableFileSystem(Tables tables) : t_(std::move(tables)) {}
  // Only of one that was never published: others stay for ever.
  ~TableFileSystem() override {
    if (is_started_) (void)CallForeign([&] { t_.system.cleanup(&system_); });
  }

  Status Start() {
    MR_RETURN_IF_ERROR(Ask([&](TF_Status* s) { t_.system.init(&system_, s); }));
    is_started_ = true;
    return absl::OkStatus();
  }

  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override {
    return NewFileToWrite("new_writable_file", t_.system.new_writable_file, path);
  }
  StatusOr<std::unique_ptr<WritableFile>> NewAppendableFile(const std::string& path) override {
    return NewFileToWrite("new_appendable_file", t_.system.new_appendable_file, path);
  }
  StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override {
    TF_RandomAccessFile file{};
    const bool can = t_.system.new_random_access_file != nullptr && t_.reading.read != nullptr;
    MR_RETURN_IF_ERROR(OnPath("new_random_access_file", can, path, [&](const char* name, TF_Status* s) {
      t_.system.new_random_access_file(&system_, name, &file, s);
    }));
    auto close = absl::MakeCleanup([&] { (void)CallForeign([&] { t_.reading.cleanup(&file); }); });
    MR_ASSIGN_OR_RETURN(const uint64_t size, SizeOf(path));
    std::move(close).Cancel();
    return std::make_unique<PluginRandomAccessFile>(path, t_.reading, file, size);
  }

  Status RenameFile(const std::string& from, const std::string& to) override {
    MR_ASSIGN_OR_RETURN(const std::string source, Translated(from));
    MR_ASSIGN_OR_RETURN(const std::string target, Translated(to));
    if (t_.system.rename_file == nullptr) {
      if (source == target) return Stat(from).status();
      const Status copied = Copy(from, to);
      if (!copied.ok()) (void)DeleteFile(to);
      return copied.ok() ? DeleteFile(from) : copied;
    }
    return OnPath("rename_file", true, from, [&](const char* name, TF_Status* s) {
      t_.system.rename_file(&system_, name, target.c_str(), s);
    });
  }
  Status DeleteFile(const std::string& path) override { return On("delete_file", t_.system.delete_file, path); }
  Status DeleteDir(const std::string& path) override { return On("delete_dir", t_.system.delete_dir, path); }
  Status CreateDir(const std::string& path) override { return On("create_dir", t_.system.create_dir, path); }
  Status CreateDirs(const std::string& path) override {
    if (t_.system.recursively_create_dir != nullptr) {
      const Status made = On("recursively_create_dir", t_.system.recursively_create_dir, path);
      return absl::IsAlreadyExists(made) ? absl::OkStatus() : made;
    }
    const size_t host = path.find("://") + 3;
    Status made;
    for (size_t start = host, end; start < path.size(); start = end) {
      MR_RETURN_IF_ERROR(made);
      end = std::min(path.find('/', start + 1), path.size());
      if (path[start] == '/' && end == start + 1) continue;  // "a//b"
      made = CreateDir(path.substr(0, end));
      // A host may be no folder; where it had to be one, what is below it fails.
      if (absl::IsAlreadyExists(made) || (start == host && end < path.size())) made = absl::OkStatus();
    }
    return made;
  }

  StatusOr<FileInfo> Stat(const std::string& path) override {
    TF_FileStatistics found{};
    MR_RETURN_IF_ERROR(OnPath("stat", t_.system.stat != nullptr, path, [&](const char* name, TF_Status* s) {
      t_.system.stat(&system_, name, &found, s);
    }));
    if (found.length < 0) return Internal("its file system says that ", path, " has ", found.length, " bytes");
    return FileInfo{static_cast<uint64_t>(found.length), found.mtime_nsec, found.is_directory};
  }

  StatusOr<std::vector<std::string>> ListDir(const std::string& path) override {
    char** entries = nullptr;
    int count = -1;
    MR_RETURN_IF_ERROR(OnPath(
        "get_children", t_.system.get_children != nullptr, path,
        [&](const char* name, TF_Status* s) { count = t_.system.get_children(&system_, name, &entries, s); }));
    if (count < 0 || (count > 0 && entries == nullptr)) {
      return Internal("its file system lists ", count, " names in ", path);
    }
    std::vector<std::string> names;
    std::string strange;
    for (int i = 0; i < count; ++i) {
      if (entries[i] == nullptr) continue;
      const absl::string_view name = absl::StripSuffix(entries[i], "/");  // of folders
      if (absl::StrContains(name, '/')) strange = std::string(name);
      if (!name.empty() && name != "." && name != "..") names.emplace_back(name);
      t_.free(entries[i]);
    }
    if (entries != nullptr) t_.free(entries);
    if (!strange.empty()) return Internal("its file system lists '", strange, "' in ", path, ", which is no name");
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  using OfPath = void (*)(const TF_Filesystem*, const char*, TF_Status*);
  using OpenToWrite = void (*)(const TF_Filesystem*, const char*, TF_WritableFile*, TF_Status*);

  StatusOr<std::string> Translated(const std::string& uri) const {
    if (uri.find('\0') != std::string::npos) return InvalidArgument("path contains a NUL character: ", uri.c_str());
    if (t_.system.translate_name == nullptr) return CleanPath(uri);
    char* name = nullptr;
    MR_RETURN_IF_ERROR(CallForeign([&] { name = t_.system.translate_name(&system_, uri.c_str()); }));
    if (name == nullptr) return Internal("its file system has no name for ", uri);
    std::string translated = name;
    t_.free(name);
    return translated;
  }

  // call(translated path, status) of the function of this name.
  template <typename Call>
  Status OnPath(const char* function, bool is_there, const std::string& path, Call&& call) const {
    if (!is_there) return Unimplemented("the file system of ", path, " has no function ", function);
    MR_ASSIGN_OR_RETURN(const std::string name, Translated(path));
    return Ask([&](TF_Status* s) { call(name.c_str(), s); });
  }
  Status On(const char* name, OfPath function, const std::string& path) const {
    return OnPath(name, function != nullptr, path, [&](const char* translated, TF_Status* s) {
      function(&system_, translated, s);
    });
  }

  StatusOr<std::unique_ptr<WritableFile>> NewFileToWrite(const char* name, OpenToWrite open, const std::string& path) {
    TF_WritableFile file{};
    const bool can = open != nullptr && t_.writing.append != nullptr;
    MR_RETURN_IF_ERROR(
        OnPath(name, can, path, [&](const char* translated, TF_Status* s) { open(&system_, translated, &file, s); }));
    return std::make_unique<PluginWritableFile>(path, t_.writing, file);
  }

  StatusOr<uint64_t> SizeOf(const std::string& path) {
    if (t_.system.get_file_size == nullptr) {
      MR_ASSIGN_OR_RETURN(const FileInfo info, Stat(path));
      return info.bytes;
    }
    int64_t size = -1;
    MR_RETURN_IF_ERROR(OnPath("get_file_size", true, path, [&](const char* name, TF_Status* s) {
      size = t_.system.get_file_size(&system_, name, s);
    }));
    if (size < 0) return Internal("its file system says that ", path, " has ", size, " bytes");
    return static_cast<uint64_t>(size);
  }

  Status Copy(const std::string& from, const std::string& to) {
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> source, NewRandomAccessFile(from));
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> target, NewWritableFile(to));
    MR_RETURN_IF_ERROR(CopyContents(*source, *target));
    return target->Close();
  }

  const Tables t_;
  TF_Filesystem system_{};
  bool is_started_ = false;
};

void GiveBack(const TF_FilesystemPluginInfo& info) {
  for (size_t i = 0; info.ops != nullptr && i < info.num_schemes; ++i) {
    const TF_FilesystemPluginOps& ops = info.ops[i];
    for (void* const given :
         {static_cast<void*>(ops.scheme), static_cast<void*>(ops.filesystem_ops),
          static_cast<void*>(ops.random_access_file_ops), static_cast<void*>(ops.writable_file_ops),
          static_cast<void*>(ops.read_only_memory_region_ops)}) {
      if (given != nullptr) info.plugin_memory_free(given);
    }
  }
  if (info.ops != nullptr) info.plugin_memory_free(info.ops);
}

}  // namespace

StatusOr<std::vector<PluginFileSystem>> InitFileSystems(void (*init_plugin)(TF_FilesystemPluginInfo*)) {
  TF_FilesystemPluginInfo info{};
  MR_RETURN_IF_ERROR(CallForeign([&] { init_plugin(&info); }));
  if (info.plugin_memory_free == nullptr || info.plugin_memory_allocate == nullptr) {
    return FailedPrecondition("its TF_InitPlugin names no functions that allocate and free");
  }
  if (info.num_schemes == 0 || info.num_schemes > kMaxSchemes || info.ops == nullptr) {
    return InvalidArgument(
        "its TF_InitPlugin tells of ", info.num_schemes, " schemes of files, want 1 to ", kMaxSchemes);
  }
  const absl::Cleanup give_back = [&] { (void)CallForeign([&] { GiveBack(info); }); };
  std::vector<PluginFileSystem> systems;
  for (size_t i = 0; i < info.num_schemes; ++i) {
    MR_ASSIGN_OR_RETURN(Tables tables, CheckedTables(info.ops[i], info.plugin_memory_free));
    std::string scheme = tables.scheme;
    auto files = std::make_unique<TableFileSystem>(std::move(tables));
    MR_RETURN_IF_ERROR(Annotate(files->Start(), absl::StrCat("its file system for ", scheme, ":// does not start: ")));
    systems.push_back({std::move(scheme), std::move(files)});
  }
  return systems;
}

}  // namespace millrace::capi
