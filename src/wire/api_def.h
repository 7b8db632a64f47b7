// SPDX-License-Identifier: Apache-2.0
//
// How ops are shown to those who write programs: names, order of arguments and documentation over OpDef.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/graph.h"
#include "wire/message.h"

namespace millrace::wire {

struct ApiEndpoint {
  std::string name;
  bool deprecated = false;
  int32_t deprecation_version = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ApiArg {
  std::string name;
  std::string rename_to;
  std::string description;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ApiAttr {
  std::string name;
  std::string rename_to;
  Box<AttrValue> default_value;
  std::string description;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ApiDef {
  enum Visibility { kDefaultVisibility = 0, kVisible = 1, kSkip = 2, kHidden = 3 };

  std::string graph_op_name;
  std::string deprecation_message;
  int32_t deprecation_version = 0;
  int32_t visibility = kDefaultVisibility;
  std::vector<ApiEndpoint> endpoint;
  std::vector<ApiArg> in_arg;
  std::vector<ApiArg> out_arg;
  std::vector<std::string> arg_order;
  std::vector<ApiAttr> attr;
  std::string summary;
  std::string description;
  std::string description_prefix;
  std::string description_suffix;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ApiDefs {
  std::vector<ApiDef> op;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
