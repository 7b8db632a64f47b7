// SPDX-License-Identifier: Apache-2.0
#include "wire/rewriter_config.h"

#include "wire/enums.h"
#include "wire/table.h"

namespace millrace::wire {

const MessageInfo& RewriterConfig::Info() {
  static const MessageInfo& info =
      Table<RewriterConfig>("RewriterConfig")
          .Enum(4, "memory_optimization", &RewriterConfig::memory_optimization, kMemOptTypeEnum)
          .Enum(14, "remapping", &RewriterConfig::remapping, kToggleEnum)
          .Field(6, "memory_optimizer_target_node_name_scope", &RewriterConfig::memory_optimizer_target_node_name_scope)
          .Build();
  return info;
}

const MessageInfo& RewriteOptions::Info() {
  static const MessageInfo& info =
      Table<RewriteOptions>("GraphOptions").Field(10, "rewrite_options", &RewriteOptions::rewrite_options).Build();
  return info;
}

}  // namespace millrace::wire
