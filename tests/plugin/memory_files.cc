// SPDX-License-Identifier: Apache-2.0
// A file system in memory, for "mem://", written for TensorFlow's interface alone: this source is compiled against
// TensorFlow's headers and against Millrace's, unchanged. "few://" has the required functions and those that the others
// are made of: files are read and written, folders made level by level.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"
#include "tensorflow/c/tf_status.h"

namespace {

using Contents = std::shared_ptr<std::string>;

struct Store {
  std::mutex mu;
  std::map<std::string, Contents> files;
  std::set<std::string> folders;
};

struct Writer {
  Store* store;
  Contents contents;
};

Store& In(const TF_Filesystem* system) { return *static_cast<Store*>(system->plugin_filesystem); }

std::string Parent(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string Plain(const char* path) {
  std::string plain = path;
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  return plain;
}
bool HasFolder(const Store& store, const std::string& path) {
  return path.empty() || path == "/" || store.folders.count(path) != 0;
}

// mem://a//b/../c is /a/c; few://, which has no such function, is named by what stands behind its host.
char* Translate(const TF_Filesystem*, const char* uri) {
  const std::string path = std::string("/") + (std::strstr(uri, "://") + 3);
  return strdup(std::filesystem::path(path).lexically_normal().c_str());
}

void Set(TF_Status* status, TF_Code code, const std::string& text) { TF_SetStatus(status, code, text.c_str()); }
void Done(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

void Init(TF_Filesystem* system, TF_Status* status) {
  system->plugin_filesystem = new Store;
  Done(status);
}
void Cleanup(TF_Filesystem* system) { delete static_cast<Store*>(system->plugin_filesystem); }

void OpenToRead(const TF_Filesystem* system, const char* path, TF_RandomAccessFile* file, TF_Status* status) {
  Store& store = In(system);
  const std::lock_guard<std::mutex> lock(store.mu);
  const auto found = store.files.find(Plain(path));
  if (found == store.files.end()) return Set(status, TF_NOT_FOUND, std::string("no file ") + path + " in memory");
  file->plugin_file = new Contents(found->second);
  Done(status);
}

int64_t Read(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer, TF_Status* status) {
  const std::string& all = **static_cast<Contents*>(file->plugin_file);
  if (offset >= all.size() && n > 0) return Set(status, TF_OUT_OF_RANGE, "the file ends before"), 0;
  const size_t there = all.size() - offset;
  if (n > 0) std::memcpy(buffer, all.data() + offset, n < there ? n : there);
  if (n > there) return Set(status, TF_OUT_OF_RANGE, "the file ends there"), static_cast<int64_t>(there);
  Done(status);
  return static_cast<int64_t>(n);
}
void CloseReader(TF_RandomAccessFile* file) { delete static_cast<Contents*>(file->plugin_file); }

void Open(const TF_Filesystem* system, const char* path, bool anew, TF_WritableFile* file, TF_Status* status) {
  Store& store = In(system);
  const std::lock_guard<std::mutex> lock(store.mu);
  const std::string name = Plain(path);
  if (HasFolder(store, name)) return Set(status, TF_FAILED_PRECONDITION, name + " is a folder");
  if (!HasFolder(store, Parent(name))) return Set(status, TF_NOT_FOUND, "no folder " + Parent(name) + " in memory");
  Contents& contents = store.files[name];
  if (anew || contents == nullptr) contents = std::make_shared<std::string>();
  file->plugin_file = new Writer{&store, contents};
  Done(status);
}
void OpenAnew(const TF_Filesystem* system, const char* path, TF_WritableFile* file, TF_Status* status) {
  Open(system, path, true, file, status);
}
void OpenToAppend(const TF_Filesystem* system, const char* path, TF_WritableFile* file, TF_Status* status) {
  Open(system, path, false, file, status);
}
void Append(const TF_WritableFile* file, const char* data, size_t n, TF_Status* status) {
  const Writer& writer = *static_cast<Writer*>(file->plugin_file);
  const std::lock_guard<std::mutex> lock(writer.store->mu);
  if (std::string(data, n).find("no room") != std::string::npos)
    return Set(status, TF_RESOURCE_EXHAUSTED, "memory is full");
  writer.contents->append(data, n);
  Done(status);
}
void CloseWriter(const TF_WritableFile*, TF_Status* status) { Done(status); }
void CleanWriter(TF_WritableFile* file) { delete static_cast<Writer*>(file->plugin_file); }

void CreateDir(const TF_Filesystem* system, const char* path, TF_Status* status) {
  Store& store = In(system);
  const std::lock_guard<std::mutex> lock(store.mu);
  const std::string name = Plain(path);
  if (HasFolder(store, name)) return Set(status, TF_ALREADY_EXISTS, name + " is there");
  if (!HasFolder(store, Parent(name))) return Set(status, TF_NOT_FOUND, "no folder " + Parent(name) + " in memory");
  store.folders.insert(name);
  Done(status);
}
void CreateDirs(const TF_Filesystem* system, const char* path, TF_Status* status) {
  Store& store = In(system);
  const std::lock_guard<std::mutex> lock(store.mu);
  for (std::string name = Plain(path); !HasFolder(store, name); name = Parent(name)) store.folders.insert(name);
  Done(status);
}
void DeleteFile(const TF_Filesystem* system, const char* path, TF_Status* status) {
  Store& store = In(system);
  const std::lock_guard<std::mutex> lock(store.mu);
  if (store.files.erase(Plain(path)) == 0) return Set(status, TF_NOT_FOUND, std::string("no file ") + path);
  Done(status);
}
void DeleteDir(const TF_Filesystem* system, const char* path, TF_Status* status) {
  Store& store = In(system);
  const std::lock_guard<std::mutex> lock(store.mu);
  const std::string name = Plain(path);
  if (store.folders.count(name) == 0) return Set(status, TF_NOT_FOUND, "no folder " + name);
  for (const auto& file : store.files) {
    if (Parent(file.first) == name) return Set(status, TF_FAILED_PRECONDITION, name + " is not empty");
  }
  for (const std::string& folder : store.folders) {
    if (Parent(folder) == name) return Set(status, TF_FAILED_PRECONDITION, name + " is not empty");
  }
  store.folders.erase(name);
  Done(status);
}
void Rename(const TF_Filesystem* system, const char* from, const char* to, TF_Status* status) {
  Store& store = In(system);
  const std::lock_guard<std::mutex> lock(store.mu);
  const auto found = store.files.find(Plain(from));
  if (found == store.files.end()) return Set(status, TF_NOT_FOUND, std::string("no file ") + from);
  const Contents contents = found->second;
  store.files.erase(found);
  store.files[Plain(to)] = contents;
  Done(status);
}
void PathExists(const TF_Filesystem* system, const char* path, TF_Status* status) {
  Store& store = In(system);
  const std::lock_guard<std::mutex> lock(store.mu);
  const std::string name = Plain(path);
  if (store.files.count(name) == 0 && !HasFolder(store, name)) return Set(status, TF_NOT_FOUND, "nothing at " + name);
  Done(status);
}
void Stat(const TF_Filesystem* system, const char* path, TF_FileStatistics* stats, TF_Status* status) {
  Store& store = In(system);
  const std::lock_guard<std::mutex> lock(store.mu);
  const std::string name = Plain(path);
  const auto found = store.files.find(name);
  if (found == store.files.end() && !HasFolder(store, name)) return Set(status, TF_NOT_FOUND, "nothing at " + name);
  stats->length = found == store.files.end() ? 0 : static_cast<int64_t>(found->second->size());
  stats->mtime_nsec = 1;
  stats->is_directory = found == store.files.end();
  Done(status);
}
int Children(const TF_Filesystem* system, const char* path, char*** entries, TF_Status* status) {
  Store& store = In(system);
  const std::lock_guard<std::mutex> lock(store.mu);
  std::string name = Plain(path);
  if (!HasFolder(store, name)) return Set(status, TF_NOT_FOUND, "no folder " + name), -1;
  if (name == "/") name.clear();
  std::set<std::string> names;
  for (const auto& file : store.files) {
    if (Parent(file.first) == name) names.insert(file.first.substr(name.size() + 1));
  }
  for (const std::string& folder : store.folders) {
    if (Parent(folder) == name) names.insert(folder.substr(name.size() + 1));
  }
  *entries = static_cast<char**>(std::malloc(sizeof(char*) * (names.size() + 2)));
  int n = 0;
  for (const std::string& child : names) (*entries)[n++] = strdup(child.c_str());
  // As some that walk folders of theirs do, and as one that means harm may.
  if (name == "/strange/dots") (*entries)[n++] = strdup(".");
  if (name == "/strange/up") (*entries)[n++] = strdup("../file");
  Done(status);
  return n;
}

template <typename T>
T* New() {
  return static_cast<T*>(std::calloc(1, sizeof(T)));
}

void Fill(TF_FilesystemPluginOps* ops, const char* scheme) {
  TF_SetFilesystemVersionMetadata(ops);
  ops->scheme = strdup(scheme);
  ops->filesystem_ops = New<TF_FilesystemOps>();
  ops->filesystem_ops->init = Init;
  ops->filesystem_ops->cleanup = Cleanup;
  ops->filesystem_ops->new_random_access_file = OpenToRead;
  ops->filesystem_ops->new_writable_file = OpenAnew;
  ops->filesystem_ops->create_dir = CreateDir;
  ops->filesystem_ops->delete_file = DeleteFile;
  ops->filesystem_ops->path_exists = PathExists;
  ops->filesystem_ops->stat = Stat;
  ops->random_access_file_ops = New<TF_RandomAccessFileOps>();
  ops->random_access_file_ops->cleanup = CloseReader;
  ops->random_access_file_ops->read = Read;
  ops->writable_file_ops = New<TF_WritableFileOps>();
  ops->writable_file_ops->cleanup = CleanWriter;
  ops->writable_file_ops->append = Append;
  ops->writable_file_ops->close = CloseWriter;
}

}  // namespace

extern "C" void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = [](size_t n) { return std::calloc(1, n); };
  info->plugin_memory_free = [](void* p) { std::free(p); };
  info->num_schemes = 2;
  info->ops = static_cast<TF_FilesystemPluginOps*>(std::calloc(2, sizeof(TF_FilesystemPluginOps)));
  Fill(&info->ops[0], "mem");
  info->ops[0].filesystem_ops->new_appendable_file = OpenToAppend;
  info->ops[0].filesystem_ops->translate_name = Translate;
  info->ops[0].filesystem_ops->recursively_create_dir = CreateDirs;
  info->ops[0].filesystem_ops->delete_dir = DeleteDir;
  info->ops[0].filesystem_ops->rename_file = Rename;
  info->ops[0].filesystem_ops->get_children = Children;
  Fill(&info->ops[1], "few");
}
