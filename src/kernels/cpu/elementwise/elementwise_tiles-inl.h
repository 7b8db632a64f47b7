// SPDX-License-Identifier: Apache-2.0
// Loops of tile functions. Included once per instruction set (by the files that use hwy/foreach_target.h) or once by
// plain files; the loops are written so that the compiler turns them into vector code for the target in force.
// `ivdep`: out may be exactly a or b, which carries nothing from one iteration to the next.
// clang-format off
#if defined(MILLRACE_ELEMENTWISE_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_ELEMENTWISE_TILES_INL_H_
#undef MILLRACE_ELEMENTWISE_TILES_INL_H_
#else
#define MILLRACE_ELEMENTWISE_TILES_INL_H_
#endif
// clang-format on

#include "hwy/highway.h"
#include "kernels/cpu/elementwise/elementwise_table.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

// The C++ type that stores a tile's result: bool as a byte, which vectorises.
template <typename R>
struct StoredAs {
  using type = R;
};
template <>
struct StoredAs<bool> {
  using type = uint8_t;
};

template <class Op, typename T, typename R>
struct UnaryLoop {
  using Stored = typename StoredAs<R>::type;
  static void Run(const void* a_in, void* out_in, int64_t n) {
    const T* a = static_cast<const T*>(a_in);
    Stored* out = static_cast<Stored*>(out_in);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Stored>(Op::Do(a[i]));
  }
};

template <class Op, typename T, typename R>
struct BinaryLoop {
  using Stored = typename StoredAs<R>::type;
  static void VV(const void* a_in, const void* b_in, void* out_in, int64_t n) {
    const T* a = static_cast<const T*>(a_in);
    const T* b = static_cast<const T*>(b_in);
    Stored* out = static_cast<Stored*>(out_in);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Stored>(Op::Do(a[i], b[i]));
  }
  static void VS(const void* a_in, const void* b_in, void* out_in, int64_t n) {
    const T* a = static_cast<const T*>(a_in);
    const T b = *static_cast<const T*>(b_in);
    Stored* out = static_cast<Stored*>(out_in);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Stored>(Op::Do(a[i], b));
  }
  static void SV(const void* a_in, const void* b_in, void* out_in, int64_t n) {
    const T a = *static_cast<const T*>(a_in);
    const T* b = static_cast<const T*>(b_in);
    Stored* out = static_cast<Stored*>(out_in);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Stored>(Op::Do(a, b[i]));
  }
};

template <class Op, typename T, typename R = T>
void AddUnary(TileTable& t, const char* name, float cost = 1) {
  TileFn fn;
  fn.in = DTypeOf<T>::value;
  fn.out = DTypeOf<R>::value;
  fn.cost = cost;
  fn.unary = &UnaryLoop<Op, T, R>::Run;
  t.Add(name, fn);
}

template <class Op, typename T, typename R = T>
void AddBinary(TileTable& t, const char* name, float cost = 1, OperandCheck check = nullptr) {
  TileFn fn;
  fn.in = DTypeOf<T>::value;
  fn.out = DTypeOf<R>::value;
  fn.cost = cost;
  fn.vv = &BinaryLoop<Op, T, R>::VV;
  fn.vs = &BinaryLoop<Op, T, R>::VS;
  fn.sv = &BinaryLoop<Op, T, R>::SV;
  fn.check_b = check;
  t.Add(name, fn);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif
