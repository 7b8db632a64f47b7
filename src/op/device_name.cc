// SPDX-License-Identifier: Apache-2.0
#include "op/device_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace millrace {
namespace {

Status BadName(absl::string_view text, absl::string_view why) {
  return InvalidArgument("device name '", text, "' is not of the form /job:name/replica:0/task:0/device:TYPE:0: ", why);
}

bool IsIdentifier(absl::string_view s) {
  if (s.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(s[0]))) return false;
  for (char ch : s) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(ch)) && ch != '_' && ch != '-') return false;
  }
  return true;
}

// A non-negative number, or "*" (leaves -1).
bool ParseNumber(absl::string_view s, int* out) {
  if (s == "*") return true;
  return absl::SimpleAtoi(s, out) && *out >= 0;
}

// "CPU:0", "CPU:*", "CPU", "*".
bool ParseTypeAndId(absl::string_view s, DeviceName* out) {
  std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(s, absl::MaxSplits(':', 1));
  if (parts.first != "*") {
    if (!IsIdentifier(parts.first)) return false;
    out->type = absl::AsciiStrToUpper(parts.first);
  }
  return parts.second.empty() ? s.find(':') == s.npos : ParseNumber(parts.second, &out->id);
}

template <typename T>
bool MergePart(const T& a, const T& b, const T& unset, T* out) {
  if (a != unset && b != unset && a != b) return false;
  *out = a == unset ? b : a;
  return true;
}

}  // namespace

StatusOr<DeviceName> DeviceName::Parse(absl::string_view text) {
  DeviceName name;
  if (text.empty()) return name;
  if (text.size() > 4096) return InvalidArgument("device name of ", text.size(), " bytes is too long");
  if (text[0] != '/') {
    if (!ParseTypeAndId(text, &name)) return BadName(text, "expected TYPE:number");
    return name;
  }
  for (absl::string_view part : absl::StrSplit(text.substr(1), '/')) {
    const std::pair<absl::string_view, absl::string_view> kv = absl::StrSplit(part, absl::MaxSplits(':', 1));
    if (kv.first == "job") {
      if (kv.second != "*" && !IsIdentifier(kv.second)) return BadName(text, "bad job");
      name.job = kv.second == "*" ? "" : std::string(kv.second);
    } else if (kv.first == "replica") {
      if (!ParseNumber(kv.second, &name.replica)) return BadName(text, "bad replica");
    } else if (kv.first == "task") {
      if (!ParseNumber(kv.second, &name.task)) return BadName(text, "bad task");
    } else if (kv.first == "device") {
      if (!ParseTypeAndId(kv.second, &name)) return BadName(text, "bad device");
    } else if (!ParseTypeAndId(part, &name)) {  // the old form /cpu:0
      return BadName(text, absl::StrCat("'", part, "' is no part of a device name"));
    }
  }
  return name;
}

std::string DeviceName::ToString() const {
  std::string s;
  if (!job.empty()) absl::StrAppend(&s, "/job:", job);
  if (replica >= 0) absl::StrAppend(&s, "/replica:", replica);
  if (task >= 0) absl::StrAppend(&s, "/task:", task);
  if (!type.empty() || id >= 0) {
    absl::StrAppend(&s, "/device:", type.empty() ? "*" : type, ":");
    if (id >= 0) {
      absl::StrAppend(&s, id);
    } else {
      s += '*';
    }
  }
  return s;
}

bool DeviceName::Matches(const DeviceName& full) const {
  return (job.empty() || job == full.job) && (replica < 0 || replica == full.replica) &&
         (task < 0 || task == full.task) && (type.empty() || type == full.type) && (id < 0 || id == full.id);
}

StatusOr<DeviceName> DeviceName::Merge(const DeviceName& o) const {
  DeviceName r;
  const std::string none;
  if (!MergePart(job, o.job, none, &r.job) || !MergePart(replica, o.replica, -1, &r.replica) ||
      !MergePart(task, o.task, -1, &r.task) || !MergePart(type, o.type, none, &r.type) ||
      !MergePart(id, o.id, -1, &r.id)) {
    return InvalidArgument("devices '", ToString(), "' and '", o.ToString(), "' contradict");
  }
  return r;
}

}  // namespace millrace
