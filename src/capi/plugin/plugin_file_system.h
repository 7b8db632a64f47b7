// SPDX-License-Identifier: Apache-2.0
// File systems that shared libraries add, as filesystem_interface.h has them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"

namespace millrace::capi {

struct PluginFileSystem {
  std::string scheme;
  std::unique_ptr<FileSystem> files;
};

// Lets a library's TF_InitPlugin tell what it has, checks it, and starts each file system. The library stays loaded.
// InvalidArgument, FailedPrecondition: tables that cannot be used, or a failing start; none is left running.
StatusOr<std::vector<PluginFileSystem>> InitFileSystems(void (*init_plugin)(TF_FilesystemPluginInfo*));

}  // namespace millrace::capi
