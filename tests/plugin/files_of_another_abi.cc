// SPDX-License-Identifier: Apache-2.0
// Two file systems, of which the second has tables of another layout.
#include <cstdlib>
#include <cstring>

#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"

extern "C" void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = [](size_t n) { return std::calloc(1, n); };
  info->plugin_memory_free = [](void* p) { std::free(p); };
  info->num_schemes = 2;
  info->ops = static_cast<TF_FilesystemPluginOps*>(std::calloc(2, sizeof(TF_FilesystemPluginOps)));
  for (size_t i = 0; i < 2; ++i) {
    TF_FilesystemPluginOps& ops = info->ops[i];
    TF_SetFilesystemVersionMetadata(&ops);
    ops.scheme = strdup(i == 0 ? "first" : "second");
    ops.filesystem_ops = static_cast<TF_FilesystemOps*>(std::calloc(1, sizeof(TF_FilesystemOps)));
    ops.filesystem_ops->init = [](TF_Filesystem*, TF_Status*) {};
    ops.filesystem_ops->cleanup = [](TF_Filesystem*) {};
  }
  info->ops[1].filesystem_ops_abi = 7;
}
