// SPDX-License-Identifier: Apache-2.0
// An OpDef back in the notation of op/op_def.h, in one canonical form: what the golden list holds.
#pragma once

#include <string>

#include "op/op_def.h"

namespace millrace::opgen {

std::string TypeText(DType t);                           // "f32"
std::string TypeSetText(const std::vector<DType>& set);  // "FLT", "f32|i32"
std::string ArgText(const ArgDef& arg);                  // "x:T", "values:N*T", "ref:&T"
std::string AttrText(const AttrDef& attr, const OpDef& op);
// "MatMul(a:T, b:T) -> (product:T) | transpose_a:bool=false; ... | S". Parses to the same declaration.
std::string SchemaText(const OpDef& op);

}  // namespace millrace::opgen
