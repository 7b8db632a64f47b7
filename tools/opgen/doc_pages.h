// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "op/op_def.h"

namespace millrace::opgen {

// Markdown pages by file name: index.md, one per first letter, composites.md.
std::map<std::string, std::string> DocPages(const std::vector<const OpDef*>& ops,
                                            const std::vector<const OpDef*>& composites);

}  // namespace millrace::opgen
