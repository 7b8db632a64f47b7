// SPDX-License-Identifier: Apache-2.0
// The texts by which TensorFlow's programs declare attributes and arguments of ops.
#pragma once

#include "wire/graph.h"

#include "base/status.h"

namespace millrace::capi {

// "T: {float, int32} = DT_FLOAT", "n: int >= 2", "name: list(string) = []", ... InvalidArgument.
Status AddAttrSpec(absl::string_view spec, wire::OpDef* def);
// "x: T", "xs: N * float", "values: Ts", "ref: Ref(T)". The attributes come first: they tell what a name refers to. The
// length of a list becomes at least 1 unless its attribute says otherwise.
Status AddArgSpec(absl::string_view spec, bool is_output, wire::OpDef* def);
// CamelCase, or the like within a library: "Add", "Mine>Add", "_Internal".
bool IsOpName(absl::string_view name);

}  // namespace millrace::capi
