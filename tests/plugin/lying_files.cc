// SPDX-License-Identifier: Apache-2.0
// A library of files whose functions do not say the truth: of lies://bytes_N a read gives N bytes, lies://size has -1
// bytes, lies://list_N lists N names without any, lies://gaps lists some that are NULL. What its start says is taken
// from the environment variable LYING_FILES.
#include <cstdlib>
#include <cstring>
#include <string>

#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"
#include "tensorflow/c/tf_status.h"

namespace {

void Done(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

int NumberBehind(const char* path) { return std::atoi(std::strchr(path, '_') + 1); }

void Open(const TF_Filesystem*, const char* path, TF_RandomAccessFile* file, TF_Status* status) {
  file->plugin_file = strdup(path);
  Done(status);
}
void Close(TF_RandomAccessFile* file) { std::free(file->plugin_file); }
int64_t Read(const TF_RandomAccessFile* file, uint64_t, size_t, char*, TF_Status* status) {
  Done(status);
  return NumberBehind(static_cast<char*>(file->plugin_file));
}

int64_t SizeOf(const TF_Filesystem*, const char* path, TF_Status* status) {
  Done(status);
  return std::strstr(path, "size") == nullptr ? 100 : -1;
}

int List(const TF_Filesystem*, const char* path, char*** names, TF_Status* status) {
  Done(status);
  if (std::strstr(path, "gaps") == nullptr) return NumberBehind(path);
  *names = static_cast<char**>(std::calloc(3, sizeof(char*)));
  (*names)[1] = strdup("x");
  return 3;
}

// As it is written for stores: the level of the host is none of its folders.
void CreateDir(const TF_Filesystem*, const char* path, TF_Status* status) {
  if (std::strcmp(path, "/") == 0) return TF_SetStatus(status, TF_INVALID_ARGUMENT, "the host is no folder");
  if (std::strstr(path, "never") != nullptr) return TF_SetStatus(status, TF_PERMISSION_DENIED, "never");
  Done(status);
}

char* Translate(const TF_Filesystem*, const char* uri) {
  const char* const host = std::strstr(uri, "://") + 3;
  const char* const path = std::strchr(host, '/');
  return std::strstr(uri, "nameless") != nullptr ? nullptr : strdup(path == nullptr ? "/" : path);
}

}  // namespace

extern "C" void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  const char* const set = std::getenv("LYING_FILES");
  const std::string lie = set == nullptr ? "" : set;
  info->plugin_memory_allocate = [](size_t n) { return std::calloc(1, n); };
  if (lie != "no free") info->plugin_memory_free = [](void* p) { std::free(p); };
  info->num_schemes = lie == "none" ? 0 : lie == "many" ? SIZE_MAX : 1;
  if (lie == "no table") return;
  info->ops = static_cast<TF_FilesystemPluginOps*>(std::calloc(1, sizeof(TF_FilesystemPluginOps)));
  TF_FilesystemPluginOps& ops = info->ops[0];
  TF_SetFilesystemVersionMetadata(&ops);
  if (lie == "no scheme") return;
  ops.scheme = strdup("lies");
  if (lie == "no functions") return;
  ops.filesystem_ops = static_cast<TF_FilesystemOps*>(std::calloc(1, sizeof(TF_FilesystemOps)));
  if (lie != "no start") ops.filesystem_ops->init = [](TF_Filesystem*, TF_Status* status) { Done(status); };
  ops.filesystem_ops->cleanup = [](TF_Filesystem*) {};
  ops.filesystem_ops->new_random_access_file = Open;
  ops.filesystem_ops->get_file_size = SizeOf;
  ops.filesystem_ops->get_children = List;
  ops.filesystem_ops->create_dir = CreateDir;
  ops.filesystem_ops->translate_name = Translate;
  ops.random_access_file_ops = static_cast<TF_RandomAccessFileOps*>(std::calloc(1, sizeof(TF_RandomAccessFileOps)));
  ops.random_access_file_ops->cleanup = Close;
  if (lie != "no read") ops.random_access_file_ops->read = Read;
}
