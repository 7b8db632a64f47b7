// SPDX-License-Identifier: Apache-2.0
#include "wire/api_def.h"

#include "wire/table.h"

namespace millrace::wire {
namespace {

constexpr EnumValue kVisibilityValues[] = {{0, "DEFAULT_VISIBILITY"}, {1, "VISIBLE"}, {2, "SKIP"}, {3, "HIDDEN"}};
constexpr EnumInfo kVisibilityEnum = {"ApiDef.Visibility", kVisibilityValues};

}  // namespace

const MessageInfo& ApiEndpoint::Info() {
  static const MessageInfo& info =
      Table<ApiEndpoint>("ApiDef.Endpoint")
          .Field(1, "name", &ApiEndpoint::name)
          .Field(3, "deprecated", &ApiEndpoint::deprecated)
          .Field(4, "deprecation_version", &ApiEndpoint::deprecation_version)
          .Build();
  return info;
}

const MessageInfo& ApiArg::Info() {
  static const MessageInfo& info =
      Table<ApiArg>("ApiDef.Arg")
          .Field(1, "name", &ApiArg::name)
          .Field(2, "rename_to", &ApiArg::rename_to)
          .Field(3, "description", &ApiArg::description)
          .Build();
  return info;
}

const MessageInfo& ApiAttr::Info() {
  static const MessageInfo& info =
      Table<ApiAttr>("ApiDef.Attr")
          .Field(1, "name", &ApiAttr::name)
          .Field(2, "rename_to", &ApiAttr::rename_to)
          .Field(3, "default_value", &ApiAttr::default_value)
          .Field(4, "description", &ApiAttr::description)
          .Build();
  return info;
}

const MessageInfo& ApiDef::Info() {
  static const MessageInfo& info =
      Table<ApiDef>("ApiDef")
          .Field(1, "graph_op_name", &ApiDef::graph_op_name)
          .Enum(2, "visibility", &ApiDef::visibility, kVisibilityEnum)
          .Field(3, "endpoint", &ApiDef::endpoint)
          .Field(4, "in_arg", &ApiDef::in_arg)
          .Field(5, "out_arg", &ApiDef::out_arg)
          .Field(6, "attr", &ApiDef::attr)
          .Field(7, "summary", &ApiDef::summary)
          .Field(8, "description", &ApiDef::description)
          .Field(9, "description_prefix", &ApiDef::description_prefix)
          .Field(10, "description_suffix", &ApiDef::description_suffix)
          .Field(11, "arg_order", &ApiDef::arg_order)
          .Field(12, "deprecation_message", &ApiDef::deprecation_message)
          .Field(13, "deprecation_version", &ApiDef::deprecation_version)
          .Build();
  return info;
}

const MessageInfo& ApiDefs::Info() {
  static const MessageInfo& info = Table<ApiDefs>("ApiDefs").Field(1, "op", &ApiDefs::op).Build();
  return info;
}

}  // namespace millrace::wire
