// SPDX-License-Identifier: Apache-2.0
// Shared libraries that add ops, kernels, devices and file systems.
#pragma once

#include <string>

#include "base/status.h"
#include "wire/graph.h"

namespace millrace::capi {

// Opens the library, lets it register what it has (by static constructors, TF_InitKernel, TF_InitPlugin,
// MR_PluginInit), and publishes that, or nothing and an error that names the file. A library is loaded once: later
// calls give what the first one gave, also when it failed. It stays in memory, since nobody knows what refers to it.
// The result is the list of its ops.
//
// NotFound: cannot be opened. InvalidArgument: it adds nothing here. FailedPrecondition: made for another version.
StatusOr<wire::OpList> LoadPlugin(const std::string& path);

}  // namespace millrace::capi
