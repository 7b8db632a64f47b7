// SPDX-License-Identifier: Apache-2.0
// Maps of how ops are shown in a language: what the OpDefs say, and over it what ApiDefs in text form say.
#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "capi/internal.h"
#include "wire/api_def.h"

using millrace::FailedPrecondition;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;
using millrace::wire::ApiArg;
using millrace::wire::ApiAttr;
using millrace::wire::ApiDef;

struct TF_ApiDefMap {
  absl::Mutex mu;
  std::map<std::string, ApiDef, std::less<>> defs ABSL_GUARDED_BY(mu);
  bool is_read ABSL_GUARDED_BY(mu) = false;  // nothing may be put any more: documentation names what was renamed
};

namespace {

std::vector<ApiArg> ArgsOf(const std::vector<millrace::wire::OpArgDef>& args) {
  std::vector<ApiArg> made;
  for (const auto& arg : args) made.push_back({arg.name, arg.name, arg.description, {}});
  return made;
}

ApiDef DefOf(const millrace::wire::OpDef& op) {
  ApiDef def;
  def.graph_op_name = op.name;
  def.visibility = ApiDef::kVisible;
  def.endpoint.emplace_back().name = op.name;
  def.in_arg = ArgsOf(op.input_arg);
  def.out_arg = ArgsOf(op.output_arg);
  for (const auto& arg : op.input_arg) def.arg_order.push_back(arg.name);
  for (const auto& attr : op.attr) {
    def.attr.push_back({attr.name, attr.name, attr.default_value, attr.description, {}});
  }
  def.summary = op.summary;
  def.description = op.description;
  return def;
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}, {"\r", "\\r"}}), "\"");
}

// ApiDef files may give a string as "field: <<END", lines, "END" on a line of its own (at any distance from its begin).
StatusOr<std::string> WithoutMultiline(absl::string_view text) {
  std::string out;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t at = lines[i].find("<<");
    const absl::string_view before = absl::StripTrailingAsciiWhitespace(lines[i].substr(0, at));
    if (at == absl::string_view::npos || !absl::EndsWith(before, ":")) {
      absl::StrAppend(&out, lines[i], "\n");
      continue;
    }
    const absl::string_view end = absl::StripTrailingAsciiWhitespace(lines[i].substr(at + 2));
    if (end.empty()) return millrace::InvalidArgument("line ", i + 1, ": << names no end");
    std::string value;
    const size_t begin = i;
    for (++i;; ++i) {
      if (i == lines.size()) return millrace::InvalidArgument("line ", begin + 1, ": the text has no end '", end, "'");
      if (absl::StartsWith(lines[i], end)) break;
      if (i > begin + 1) value += "\n";
      absl::StrAppend(&value, lines[i]);
    }
    absl::StrAppend(&out, before, " ", Quoted(value), lines[i].substr(end.size()), "\n");
  }
  return out;
}

Status MergeArgs(const std::string& op, const std::vector<ApiArg>& changes, std::vector<ApiArg>* args) {
  for (const ApiArg& change : changes) {
    const auto it = std::find_if(args->begin(), args->end(), [&](const ApiArg& a) { return a.name == change.name; });
    if (it == args->end()) return FailedPrecondition("Argument ", change.name, " not defined in base api for ", op);
    if (!change.rename_to.empty()) it->rename_to = change.rename_to;
    if (!change.description.empty()) it->description = change.description;
  }
  return absl::OkStatus();
}

Status MergeAttrs(const std::vector<ApiAttr>& changes, ApiDef* base) {
  for (const ApiAttr& change : changes) {
    const auto it =
        std::find_if(base->attr.begin(), base->attr.end(), [&](const ApiAttr& a) { return a.name == change.name; });
    if (it == base->attr.end()) {
      return FailedPrecondition("Attribute ", change.name, " not defined in base api for ", base->graph_op_name);
    }
    if (!change.rename_to.empty()) it->rename_to = change.rename_to;
    if (change.default_value) it->default_value = change.default_value;
    if (!change.description.empty()) it->description = change.description;
  }
  return absl::OkStatus();
}

Status MergeOrder(const std::vector<std::string>& order, ApiDef* base) {
  if (order.empty()) return absl::OkStatus();
  if (order.size() != base->arg_order.size()) {
    return FailedPrecondition("Invalid number of arguments ", order.size(), " for ", base->graph_op_name,
                              ". Expected: ", base->arg_order.size());
  }
  if (!std::is_permutation(order.begin(), order.end(), base->arg_order.begin())) {
    return FailedPrecondition(
        "Invalid arg_order: ", absl::StrJoin(order, ", "), " for ", base->graph_op_name,
        ". All elements in arg_order override must match base arg_order: ", absl::StrJoin(base->arg_order, ", "));
  }
  base->arg_order = order;
  return absl::OkStatus();
}

Status Merge(const ApiDef& change, ApiDef* base) {
  if (change.visibility != ApiDef::kDefaultVisibility) base->visibility = change.visibility;
  if (!change.endpoint.empty()) base->endpoint = change.endpoint;
  if (!change.deprecation_message.empty()) base->deprecation_message = change.deprecation_message;
  if (change.deprecation_version != 0) base->deprecation_version = change.deprecation_version;
  MR_RETURN_IF_ERROR(MergeArgs(base->graph_op_name, change.in_arg, &base->in_arg));
  MR_RETURN_IF_ERROR(MergeArgs(base->graph_op_name, change.out_arg, &base->out_arg));
  MR_RETURN_IF_ERROR(MergeOrder(change.arg_order, base));
  MR_RETURN_IF_ERROR(MergeAttrs(change.attr, base));
  if (!change.summary.empty()) base->summary = change.summary;
  if (!change.description.empty()) base->description = change.description;
  if (!change.description_prefix.empty()) {
    base->description = absl::StrCat(change.description_prefix, "\n", base->description);
  }
  if (!change.description_suffix.empty()) absl::StrAppend(&base->description, "\n", change.description_suffix);
  return absl::OkStatus();
}

// Documentation names arguments in backquotes.
void RenameInDocs(ApiDef* def) {
  std::vector<std::pair<std::string, std::string>> names;
  const auto add = [&](const auto& list) {
    for (const auto& item : list) {
      if (item.rename_to != item.name) {
        names.emplace_back(absl::StrCat("`", item.name, "`"), absl::StrCat("`", item.rename_to, "`"));
      }
    }
  };
  add(def->in_arg), add(def->out_arg), add(def->attr);
  if (names.empty()) return;
  const auto rename = [&](std::string* text) { *text = absl::StrReplaceAll(*text, names); };
  rename(&def->summary), rename(&def->description);
  for (ApiArg& arg : def->in_arg) rename(&arg.description);
  for (ApiArg& arg : def->out_arg) rename(&arg.description);
  for (ApiAttr& attr : def->attr) rename(&attr.description);
}

}  // namespace

extern "C" {

TF_ApiDefMap* TF_NewApiDefMap(TF_Buffer* op_list_buffer, TF_Status* status) {
  return GuardedOr<TF_ApiDefMap*>(status, nullptr, [&]() -> StatusOr<TF_ApiDefMap*> {
    MR_CAPI_REQUIRE(op_list_buffer);
    millrace::wire::OpList list;
    if (!millrace::capi::DecodeBytes(op_list_buffer->data, op_list_buffer->length, "OpList", &list).ok()) {
      return millrace::InvalidArgument("Unparseable OpList");
    }
    auto made = std::make_unique<TF_ApiDefMap>();
    const absl::MutexLock lock(&made->mu);
    for (const auto& op : list.op) made->defs.insert_or_assign(op.name, DefOf(op));
    return made.release();
  });
}

void TF_DeleteApiDefMap(TF_ApiDefMap* api_def_map) { delete api_def_map; }

void TF_ApiDefMapPut(TF_ApiDefMap* api_def_map, const char* text, size_t text_len, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(api_def_map);
    if (text_len > 0) MR_CAPI_REQUIRE(text);
    const absl::MutexLock lock(&api_def_map->mu);
    if (api_def_map->is_read) {
      return FailedPrecondition("TF_ApiDefMapPut cannot be called after TF_ApiDefMapGet has been called.");
    }
    MR_ASSIGN_OR_RETURN(const std::string plain, WithoutMultiline(absl::string_view(text, text_len)));
    millrace::wire::ApiDefs changes;
    MR_RETURN_IF_ERROR(millrace::Annotate(millrace::wire::DecodeText(plain, &changes), "ApiDefs: "));
    for (const ApiDef& change : changes.op) {
      auto it = api_def_map->defs.find(change.graph_op_name);
      if (it != api_def_map->defs.end()) MR_RETURN_IF_ERROR(Merge(change, &it->second));
    }
    return absl::OkStatus();
  });
}

TF_Buffer* TF_ApiDefMapGet(TF_ApiDefMap* api_def_map, const char* name, size_t name_len, TF_Status* status) {
  return GuardedOr<TF_Buffer*>(status, nullptr, [&]() -> StatusOr<TF_Buffer*> {
    MR_CAPI_REQUIRE(api_def_map);
    MR_CAPI_REQUIRE(name);
    const absl::MutexLock lock(&api_def_map->mu);
    if (!api_def_map->is_read) {
      for (auto& [op, def] : api_def_map->defs) RenameInDocs(&def);
      api_def_map->is_read = true;
    }
    auto it = api_def_map->defs.find(absl::string_view(name, name_len));
    if (it == api_def_map->defs.end()) return static_cast<TF_Buffer*>(nullptr);
    return millrace::capi::MakeBuffer(millrace::wire::Encode(it->second));
  });
}

}  // extern "C"
