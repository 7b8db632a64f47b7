// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of shapes and lengths that make none, and optimizers of variables that do not fit.
#include <limits>

#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

TEST(BadInput, FourierLengths) {
  for (const char* op : {"RFFT", "RFFT2D", "RFFT3D"}) {
    const auto axes = static_cast<int32_t>(op[4] == '\0' ? 1 : op[4] - '0');
    for (const int32_t n : {-1, INT32_MIN, INT32_MAX, 7}) {
      GraphMaker g;
      g.F32("x", {6, 6, 6, 6}).I32("n", {axes}, {n}).Op("bad", op, {"x", "n"});
      Check(g);
      GraphMaker back;
      back.F32("re", {4, 4, 4, 4}).Op("x", "Complex", {"re", "re"}).I32("n", {axes}, {n == 7 ? 8 : n});
      back.Op("bad", std::string("I") + op, {"x", "n"});
      Check(back);
    }
    for (const Dims& dims : {Dims{}, Dims{axes + 1}, Dims{axes, 1}, Dims{0}}) {
      GraphMaker g;
      g.F32("x", {6, 6, 6, 6}).I32("n", dims, {2}).Op("bad", op, {"x", "n"});
      Check(g);
    }
    GraphMaker low;
    low.F32("x", Dims(static_cast<size_t>(axes - 1), 3)).I32("n", {axes}, {2}).Op("bad", op, {"x", "n"});
    Check(low);
    GraphMaker none;  // no numbers, and very many wanted
    none.F32("x", {4096, 4096, 0}).I32("n", {axes}, {INT32_MAX}).Op("bad", op, {"x", "n"});
    Check(none, kTooLarge);
    GraphMaker empty;
    empty.F32("x", {2, 2, 2}).I32("n", {axes}, {0}).Op("bad", op, {"x", "n"});
    Check(empty, kOk);
  }
  for (const char* op : {"FFT", "IFFT2D", "BatchFFT3D"}) {
    GraphMaker g;
    g.F32("re", {}).Op("x", "Complex", {"re", "re"}).Op("bad", op, {"x"});
    Check(g);
  }
}

}  // namespace
}  // namespace millrace::bad_inputs
