// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/instruction_sets.h"

#include <cstdlib>
#include <string_view>

#include "base/logging.h"
#include "hwy/highway.h"

namespace millrace {

void LimitInstructionSets() {
  const char* text = std::getenv("MILLRACE_MAX_ISA");
  if (text == nullptr) return;
  const std::string_view name = text;
#if HWY_ARCH_X86
  // Better targets have lower bits.
  if (name == "sse2") return hwy::DisableTargets(HWY_STATIC_TARGET - 1);
  if (name == "sse4") return hwy::DisableTargets(HWY_SSE4 - 1);
  if (name == "avx2") return hwy::DisableTargets(HWY_AVX2 - 1);
  if (name == "avx512") return hwy::DisableTargets(HWY_AVX3 - 1);
#endif
  LogWarning("ignoring MILLRACE_MAX_ISA=", text, ": not sse2, sse4, avx2 or avx512 on x86-64");
}

}  // namespace millrace
