// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/kernel_registry.h"
#include "op/op_def.h"

namespace millrace::opgen {

// Markdown pages by file name: index.md, and one for each op and composite.
std::map<std::string, std::string> DocPages(const std::vector<const OpDef*>& ops,
                                            const std::vector<const OpDef*>& composites, const KernelRegistry& kernels);

}  // namespace millrace::opgen
