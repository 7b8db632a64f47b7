// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/instruction_sets.h"

#include "base/logging.h"
#include "base/settings.h"
#include "hwy/highway.h"

namespace millrace {

void LimitInstructionSets() {
  const StatusOr<std::string> given = CheckedSetting("MILLRACE_MAX_ISA");
  const std::string name = given.value_or("");
#if HWY_ARCH_X86
  // Better targets have lower bits.
  if (name == "sse2") return hwy::DisableTargets(HWY_STATIC_TARGET - 1);
  if (name == "sse4") return hwy::DisableTargets(HWY_SSE4 - 1);
  if (name == "avx2") return hwy::DisableTargets(HWY_AVX2 - 1);
  if (name == "avx512") return hwy::DisableTargets(HWY_AVX3 - 1);
#endif
  if (!given.ok()) LogWarning("ignoring a setting: ", given.status().message());
  if (!name.empty()) LogWarning("ignoring MILLRACE_MAX_ISA=", name, ": this is no x86-64");
}

}  // namespace millrace
