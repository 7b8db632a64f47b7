// SPDX-License-Identifier: Apache-2.0
// The C++ client of Millrace, header-only over its C API.
//
//   millrace::Graph graph;
//   millrace::Scope scope(graph);
//   auto y = scope.Op("Mul", {scope.Const({1.f, 2.f}), 3.f});
//   auto result = millrace::Session(graph).Run({y});   // Result<std::vector<Tensor>>; or throws, see status.h
#pragma once

#include "millrace/session.h"
