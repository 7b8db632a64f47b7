// SPDX-License-Identifier: Apache-2.0
// Tiles on strings.
#include "absl/strings/str_cat.h"
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"
#include "tensor/tstring.h"

namespace millrace {
namespace HWY_NAMESPACE {
namespace {

// Strings are objects: out is never in place.
template <int AStep, int BStep>
void Concatenate(const void* a_in, const void* b_in, void* out_in, int64_t n) {
  const TString* a = static_cast<const TString*>(a_in);
  const TString* b = static_cast<const TString*>(b_in);
  TString* out = static_cast<TString*>(out_in);
  for (int64_t i = 0; i < n; ++i) out[i].Assign(absl::StrCat(a[AStep * i].view(), b[BStep * i].view()));
}
template <int AStep, int BStep, bool kWhenEqual>
void Compare(const void* a_in, const void* b_in, void* out_in, int64_t n) {
  const TString* a = static_cast<const TString*>(a_in);
  const TString* b = static_cast<const TString*>(b_in);
  uint8_t* out = static_cast<uint8_t*>(out_in);
  for (int64_t i = 0; i < n; ++i) out[i] = (a[AStep * i] == b[BStep * i]) == kWhenEqual;
}
template <bool kWhenEqual>
TileFn StringCompare() {
  TileFn fn;
  fn.in = DType::kString;
  fn.out = DType::kBool;
  fn.cost = 10;
  fn.vv = &Compare<1, 1, kWhenEqual>;
  fn.vs = &Compare<1, 0, kWhenEqual>;
  fn.sv = &Compare<0, 1, kWhenEqual>;
  return fn;
}

}  // namespace
}  // namespace HWY_NAMESPACE

void AddObjectTiles(TileTable& t) {
  using namespace HWY_NAMESPACE;  // NOLINT
  t.Add("Equal", StringCompare<true>());
  t.Add("NotEqual", StringCompare<false>());
  TileFn add;
  add.in = add.out = DType::kString;
  add.cost = 40;
  add.vv = &Concatenate<1, 1>;
  add.vs = &Concatenate<1, 0>;
  add.sv = &Concatenate<0, 1>;
  t.Add("Add", add);
}

}  // namespace millrace
