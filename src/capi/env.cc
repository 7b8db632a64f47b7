// SPDX-License-Identifier: Apache-2.0
// Files, the clock, threads and libraries for programs. What the core does with them goes through Env.
#include "tensorflow/c/env.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "base/env.h"
#include "base/file_system.h"
#include "capi/internal.h"
#include "millrace/c_api_files.h"

using millrace::Env;
using millrace::FileInfo;
using millrace::FileSystem;
using millrace::FileSystemOf;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;
using millrace::capi::Try;

struct TF_WritableFileHandle {
  std::unique_ptr<millrace::WritableFile> file;
};

struct MR_FileReader {
  std::unique_ptr<millrace::RandomAccessFile> file;
};

struct TF_StringStream {
  std::vector<std::string> strings;
  size_t next = 0;
};

struct TF_Thread {
  pthread_t thread;
  void (*work)(void*);
  void* param;
};

namespace {

// A file of others: of_others(FileSystem&) -> Status. One of the machine's: done() -> 0, or -1 with errno.
template <typename OfOthers, typename Done>
void OnPath(const char* path, TF_Status* status, OfOthers&& of_others, Done&& done) {
  bool is_the_machines = false;
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(path);
    MR_ASSIGN_OR_RETURN(FileSystem* const files, FileSystemOf(path));
    is_the_machines = files == nullptr;
    return is_the_machines ? absl::OkStatus() : of_others(*files);
  });
  if (!is_the_machines || done() == 0) return;
  TF_SetStatusFromIOError(status, errno, path);
}

template <typename Use>
void OnFile(TF_WritableFileHandle* handle, TF_Status* status, Use&& use) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(handle);
    return use(*handle->file);
  });
}

struct Undeleted {
  int64_t files = 0, folders = 0;
};

void DeleteTree(const std::filesystem::path& folder, Undeleted* left) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory(error) && !it->is_symlink(error)) {
      DeleteTree(it->path(), left);
    } else if (::unlink(it->path().c_str()) != 0) {
      ++left->files;
    }
  }
  if (::rmdir(folder.c_str()) != 0) ++left->folders;
}

constexpr int kMaxDepth = 1000;  // of folders that others tell of

void DeleteTree(FileSystem& files, const std::string& folder, Undeleted* left, int depth = 0) {
  if (depth > kMaxDepth) {
    ++left->folders;
    return;
  }
  const StatusOr<std::vector<std::string>> names = files.ListDir(folder);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    const std::string path = millrace::JoinPath(folder, name);
    const StatusOr<FileInfo> info = files.Stat(path);
    if (info.ok() && info->is_folder) {
      DeleteTree(files, path, left, depth + 1);
    } else if (!files.DeleteFile(path).ok()) {
      ++left->files;
    }
  }
  if (!files.DeleteDir(folder).ok()) ++left->folders;
}

// What is left of a folder or file that was there.
StatusOr<Undeleted> DeleteAll(FileSystem& files, const std::string& path) {
  MR_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(path));
  Undeleted left;
  if (info.is_folder) {
    DeleteTree(files, path, &left);
  } else if (!files.DeleteFile(path).ok()) {
    left.files = 1;
  }
  return left;
}
StatusOr<Undeleted> DeleteAll(const char* path) {
  struct stat info;
  if (::lstat(path, &info) != 0) return millrace::NotFound(path, ": there is no such folder");
  Undeleted left;
  if (S_ISDIR(info.st_mode)) {
    DeleteTree(std::filesystem::path(path), &left);
  } else if (::unlink(path) != 0) {
    left.files = 1;
  }
  return left;
}

bool IsFolder(const char* path) {
  struct stat info;
  return path != nullptr && ::stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

std::vector<std::string> TempFolders() {
  std::vector<std::string> folders;
  for (const char* path :
       {static_cast<const char*>(std::getenv("TEST_TMPDIR")), static_cast<const char*>(std::getenv("TMPDIR")),
        static_cast<const char*>(std::getenv("TMP")), "/tmp", "."}) {
    if (IsFolder(path)) folders.emplace_back(path);
  }
  return folders;
}

void* RunThread(void* thread) {
  const TF_Thread& t = *static_cast<TF_Thread*>(thread);
  t.work(t.param);
  return nullptr;
}

Status LinkerError(const char* what) {
  const char* text = dlerror();
  return millrace::NotFound(text ? text : what);
}

}  // namespace

extern "C" {

void TF_CreateDir(const char* dirname, TF_Status* status) {
  OnPath(
      dirname, status, [&](FileSystem& files) { return files.CreateDir(dirname); },
      [&] { return ::mkdir(dirname, 0755); });
}
void TF_DeleteDir(const char* dirname, TF_Status* status) {
  OnPath(
      dirname, status, [&](FileSystem& files) { return files.DeleteDir(dirname); }, [&] { return ::rmdir(dirname); });
}
void TF_DeleteFile(const char* filename, TF_Status* status) {
  OnPath(
      filename, status, [&](FileSystem& files) { return files.DeleteFile(filename); },
      [&] { return ::unlink(filename); });
}

void TF_DeleteRecursively(const char* dirname, int64_t* undeleted_file_count, int64_t* undeleted_dir_count,
                          TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(dirname);
    Undeleted left{0, 1};  // where nothing can be begun
    const absl::Cleanup tell = [&] {
      if (undeleted_file_count) *undeleted_file_count = left.files;
      if (undeleted_dir_count) *undeleted_dir_count = left.folders;
    };
    MR_ASSIGN_OR_RETURN(FileSystem* const files, FileSystemOf(dirname));
    MR_ASSIGN_OR_RETURN(left, files != nullptr ? DeleteAll(*files, dirname) : DeleteAll(dirname));
    if (left.files + left.folders == 0) return absl::OkStatus();
    return millrace::FailedPrecondition(dirname, ": ", left.files, " files and ", left.folders, " folders remain");
  });
}

void TF_FileStat(const char* filename, TF_FileStatistics* stats, TF_Status* status) {
  if (stats == nullptr) return millrace::capi::Report(status, millrace::capi::NullArgument("stats"));
  const auto of_others = [&](FileSystem& files) -> Status {
    MR_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(filename));
    *stats = {static_cast<int64_t>(info.bytes), info.changed_nanos, info.is_folder};
    return absl::OkStatus();
  };
  OnPath(filename, status, of_others, [&] {
    struct stat info;
    if (::stat(filename, &info) != 0) return -1;
    stats->length = info.st_size;
    stats->mtime_nsec = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    stats->is_directory = S_ISDIR(info.st_mode);
    return 0;
  });
}

void TF_NewWritableFile(const char* filename, TF_WritableFileHandle** handle, TF_Status* status) {
  if (handle) *handle = nullptr;
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(filename);
    MR_CAPI_REQUIRE(handle);
    MR_ASSIGN_OR_RETURN(auto file, Env::Default().NewWritableFile(filename));
    *handle = new TF_WritableFileHandle{std::move(file)};
    return absl::OkStatus();
  });
}

TF_WritableFileHandle* MR_NewAppendableFile(const char* path, TF_Status* status) {
  return GuardedOr<TF_WritableFileHandle*>(status, nullptr, [&]() -> StatusOr<TF_WritableFileHandle*> {
    MR_CAPI_REQUIRE(path);
    MR_ASSIGN_OR_RETURN(auto file, Env::Default().NewAppendableFile(path));
    return new TF_WritableFileHandle{std::move(file)};
  });
}
void MR_RenameFile(const char* from, const char* to, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(from);
    MR_CAPI_REQUIRE(to);
    return Env::Default().RenameFile(from, to);
  });
}
void MR_CopyFile(const char* from, const char* to, unsigned char overwrite, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(from);
    MR_CAPI_REQUIRE(to);
    Env& env = Env::Default();
    MR_ASSIGN_OR_RETURN(const auto source, env.NewRandomAccessFile(from));
    if (!overwrite && env.FileExists(to)) return millrace::AlreadyExists("file already exists: ", to);
    const std::string part = absl::StrCat(to, ".part", env.Random64());  // `to` may be the source by another name
    absl::Cleanup remove = [&] { (void)env.DeleteFile(part); };
    MR_ASSIGN_OR_RETURN(const auto target, env.NewWritableFile(part));
    MR_RETURN_IF_ERROR(millrace::CopyContents(*source, *target));
    MR_RETURN_IF_ERROR(target->Close());
    MR_RETURN_IF_ERROR(env.RenameFile(part, to));
    std::move(remove).Cancel();
    return absl::OkStatus();
  });
}
void MR_CreateDirs(const char* path, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(path);
    return Env::Default().CreateDirs(path);
  });
}
MR_FileReader* MR_FileReaderOpen(const char* path, TF_Status* status) {
  return GuardedOr<MR_FileReader*>(status, nullptr, [&]() -> StatusOr<MR_FileReader*> {
    MR_CAPI_REQUIRE(path);
    MR_ASSIGN_OR_RETURN(auto file, Env::Default().NewRandomAccessFile(path));
    return new MR_FileReader{std::move(file)};
  });
}
size_t MR_FileReaderRead(MR_FileReader* reader, uint64_t offset, void* data, size_t size, TF_Status* status) {
  return GuardedOr<size_t>(status, 0, [&]() -> StatusOr<size_t> {
    MR_CAPI_REQUIRE(reader);
    if (size > 0) MR_CAPI_REQUIRE(data);
    const uint64_t left = reader->file->size() - std::min(offset, reader->file->size());
    const size_t n = static_cast<size_t>(std::min<uint64_t>(size, left));
    if (n > 0) MR_RETURN_IF_ERROR(reader->file->Read(offset, n, static_cast<char*>(data)));
    return n;
  });
}
uint64_t MR_FileReaderSize(MR_FileReader* reader) { return reader == nullptr ? 0 : reader->file->size(); }
void MR_FileReaderDelete(MR_FileReader* reader) { delete reader; }

void TF_CloseWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  const std::unique_ptr<TF_WritableFileHandle> owned(handle);
  OnFile(handle, status, [](millrace::WritableFile& file) { return file.Close(); });
}
void TF_SyncWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  OnFile(handle, status, [](millrace::WritableFile& file) { return file.Sync(); });
}
void TF_FlushWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  OnFile(handle, status, [](millrace::WritableFile& file) { return file.Flush(); });
}
void TF_AppendWritableFile(TF_WritableFileHandle* handle, const char* data, size_t length, TF_Status* status) {
  OnFile(handle, status, [&](millrace::WritableFile& file) -> Status {
    if (length > 0) MR_CAPI_REQUIRE(data);
    return file.Append(absl::string_view(data, length));
  });
}

bool TF_StringStreamNext(TF_StringStream* list, const char** result) {
  const bool more = list != nullptr && list->next < list->strings.size();
  if (result) *result = more ? list->strings[list->next].c_str() : nullptr;
  if (more) ++list->next;
  return more;
}
void TF_StringStreamDone(TF_StringStream* list) { delete list; }

TF_StringStream* TF_GetChildren(const char* filename, TF_Status* status) {
  return GuardedOr<TF_StringStream*>(status, nullptr, [&]() -> StatusOr<TF_StringStream*> {
    MR_CAPI_REQUIRE(filename);
    MR_ASSIGN_OR_RETURN(std::vector<std::string> names, Env::Default().ListDir(filename));
    return new TF_StringStream{std::move(names)};
  });
}

TF_StringStream* TF_GetLocalTempDirectories(void) {
  return Try<TF_StringStream*>(nullptr, [] { return new TF_StringStream{TempFolders()}; });
}

char* TF_GetTempFileName(const char* extension) {
  return Try<char*>(nullptr, [&]() -> char* {
    const std::string suffix = extension && *extension ? absl::StrCat(".", extension) : "";
    for (const std::string& folder : TempFolders()) {
      std::string path = absl::StrCat(folder, "/millrace_XXXXXX", suffix);
      const int file = ::mkstemps(path.data(), static_cast<int>(suffix.size()));
      if (file < 0) continue;
      ::close(file);
      return ::strdup(path.c_str());
    }
    return nullptr;
  });
}

uint64_t TF_NowNanos(void) { return static_cast<uint64_t>(absl::ToUnixNanos(Env::Default().Now())); }
uint64_t TF_NowMicros(void) { return static_cast<uint64_t>(absl::ToUnixMicros(Env::Default().Now())); }
uint64_t TF_NowSeconds(void) { return static_cast<uint64_t>(absl::ToUnixSeconds(Env::Default().Now())); }

void TF_DefaultThreadOptions(TF_ThreadOptions* options) {
  if (options) *options = {0, 0, -1};
}

TF_Thread* TF_StartThread(const TF_ThreadOptions* options, const char* thread_name, void (*work_func)(void*),
                          void* param) {
  if (work_func == nullptr) return nullptr;
  std::unique_ptr<TF_Thread> thread(new (std::nothrow) TF_Thread{{}, work_func, param});
  pthread_attr_t attributes;
  if (!thread || pthread_attr_init(&attributes) != 0) return nullptr;
  // Sizes that the system does not take leave its own.
  if (options && options->stack_size > 0) pthread_attr_setstacksize(&attributes, options->stack_size);
  if (options && options->guard_size > 0) pthread_attr_setguardsize(&attributes, options->guard_size);
  const int error = pthread_create(&thread->thread, &attributes, RunThread, thread.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) return nullptr;
  if (thread_name != nullptr) {
    char name[16] = {};  // as long as the system's may be
    std::strncpy(name, thread_name, sizeof(name) - 1);
    pthread_setname_np(thread->thread, name);
  }
  return thread.release();
}

void TF_JoinThread(TF_Thread* thread) {
  if (thread == nullptr) return;
  pthread_join(thread->thread, nullptr);
  delete thread;
}

void* TF_LoadSharedLibrary(const char* library_filename, TF_Status* status) {
  return GuardedOr<void*>(status, nullptr, [&]() -> StatusOr<void*> {
    MR_CAPI_REQUIRE(library_filename);
    void* handle = dlopen(library_filename, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return LinkerError("the library cannot be opened");
    return handle;
  });
}

void* TF_GetSymbolFromLibrary(void* handle, const char* symbol_name, TF_Status* status) {
  return GuardedOr<void*>(status, nullptr, [&]() -> StatusOr<void*> {
    MR_CAPI_REQUIRE(handle);
    MR_CAPI_REQUIRE(symbol_name);
    void* symbol = dlsym(handle, symbol_name);
    if (symbol == nullptr) return LinkerError("the symbol was not found");
    return symbol;
  });
}

}  // extern "C"
