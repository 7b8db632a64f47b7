// SPDX-License-Identifier: Apache-2.0
// libtensorflow.so.1 and libtensorflow.so.2: each function of TensorFlow's C API is a jump to where the table of
// libmillrace points. MR_FACE is 1 or 2, the form that strings have (docs/decisions/0020-two-faces.md).
#include "capi/entry_points.h"

#define MR_TEXT(x) #x
#define MR_TEXT_OF(x) MR_TEXT(x)
#define MR_TABLE MR_TEXT_OF(MR_FACE_TABLE)

#if defined(__x86_64__)
#define MR_JUMP             \
  "endbr64\n"               \
  "movq " MR_TABLE          \
  "@GOTPCREL(%rip), %r11\n" \
  "jmpq *mr_place(%r11)\n"
#elif defined(__aarch64__)
#define MR_JUMP                        \
  "hint 34\n"                          \
  "adrp x16, :got:" MR_TABLE           \
  "\n"                                 \
  "ldr x16, [x16, :got_lo12:" MR_TABLE \
  "]\n"                                \
  "ldr x16, [x16, mr_place]\n"         \
  "br x16\n"
#else
#error "the jump for this processor is not written"
#endif

#define MR_POINT(name)                                           \
  ".globl " #name                                                \
  "\n"                                                           \
  ".type " #name                                                 \
  ", @function\n"                                                \
  ".p2align 4\n" #name ":\n" MR_JUMP ".size " #name ", .-" #name \
  "\n"                                                           \
  ".set mr_place, mr_place + 8\n"
#define MR_PLUGIN_POINT(name) MR_POINT(TF_##name)
#define MR_SKIPPED(name, old) ".set mr_place, mr_place + 8\n"
#define MR_FORM_POINT(name, old) MR_POINT(name)

// clang-format off
asm(".text\n"
    ".set mr_place, 0\n"
    MR_API_PLUGIN_FUNCTIONS(MR_PLUGIN_POINT)
    MR_COMMON_POINTS(MR_POINT)
    MR_ENV_POINTS(MR_POINT)
    MR_EAGER_POINTS(MR_POINT)
    MR_FURTHER_POINTS(MR_POINT)
#if MR_FACE == 1
    MR_FORM_POINTS(MR_SKIPPED)
#endif
    MR_FORM_POINTS(MR_FORM_POINT));
// clang-format on
static_assert(sizeof(void (*)()) == 8);
