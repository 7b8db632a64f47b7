// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/logging.h"

namespace millrace {
namespace {

constexpr const char* kKindNames[] = {
    "switch", "number", "seconds", "choice", "text", "file", "folder", "steps", "pairs", "address", "place"};
constexpr absl::string_view kPrefix = "MILLRACE_";

bool IsOneOf(absl::string_view value, absl::string_view values) {
  const std::vector<absl::string_view> all = absl::StrSplit(values, ", ");
  return std::find(all.begin(), all.end(), value) != all.end();
}

// What a value is read as where it may be wrong.
template <typename T>
T OrWarned(const StatusOr<T>& value, T otherwise) {
  if (value.ok()) return *value;
  LogWarning("ignoring a setting: ", value.status().message());
  return otherwise;
}

}  // namespace

const Setting* FindSetting(absl::string_view name) {
  const absl::Span<const Setting> all = AllSettings();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Setting& s) { return name == s.name; });
  return at == all.end() ? nullptr : &*at;
}

std::string WantedBy(const Setting& setting) {
  switch (setting.kind) {
    case Setting::Kind::kSwitch: return "0 or 1";
    case Setting::Kind::kNumber:
      if (setting.most == kNoMost) return absl::StrCat("a number from ", setting.least, " on");
      return absl::StrCat("a number from ", setting.least, " to ", setting.most);
    case Setting::Kind::kSeconds: return absl::StrCat("seconds from ", setting.least, " to ", setting.most);
    case Setting::Kind::kChoice: return absl::StrCat("one of ", setting.values);
    default: return setting.values;
  }
}

Status CheckSetting(const Setting& setting, absl::string_view value) {
  int64_t number = 0;
  double seconds = 0;
  bool is_right = true;
  switch (setting.kind) {
    case Setting::Kind::kSwitch: is_right = value == "0" || value == "1"; break;
    case Setting::Kind::kNumber:
      is_right = absl::SimpleAtoi(value, &number) && number >= setting.least && number <= setting.most;
      break;
    case Setting::Kind::kSeconds:
      is_right = absl::SimpleAtod(value, &seconds) && seconds >= static_cast<double>(setting.least) &&
                 seconds <= static_cast<double>(setting.most);  // no NaN
      break;
    case Setting::Kind::kChoice: is_right = IsOneOf(value, setting.values); break;
    default: break;
  }
  if (is_right || value.empty()) return absl::OkStatus();
  return InvalidArgument(setting.name, " is '", value.substr(0, 100), "', want ", WantedBy(setting));
}

std::string TextSetting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

namespace {

struct Given {
  const Setting* setting = nullptr;
  std::string text;
};
Status Read(const char* name, Given* given) {
  given->setting = FindSetting(name);
  if (given->setting == nullptr) return Internal(name, " is not declared in settings_table.cc");
  given->text = TextSetting(name);
  return CheckSetting(*given->setting, given->text);
}

}  // namespace

StatusOr<std::string> CheckedSetting(const char* name) {
  Given given;
  MR_RETURN_IF_ERROR(Read(name, &given));
  return std::move(given.text);
}

StatusOr<bool> SwitchSetting(const char* name, bool otherwise) {
  Given given;
  MR_RETURN_IF_ERROR(Read(name, &given));
  return given.text.empty() ? otherwise : given.text == "1";
}

StatusOr<int64_t> NumberSetting(const char* name, int64_t otherwise) {
  Given given;
  MR_RETURN_IF_ERROR(Read(name, &given));
  if (given.text.empty()) given.text = given.setting->otherwise;
  int64_t number = 0;
  return absl::SimpleAtoi(given.text, &number) ? number : otherwise;
}

StatusOr<double> SecondsSetting(const char* name) {
  Given given;
  MR_RETURN_IF_ERROR(Read(name, &given));
  if (given.text.empty()) given.text = given.setting->otherwise;
  double seconds = 0;
  if (!absl::SimpleAtod(given.text, &seconds)) return Internal(name, " is declared as no number");
  return seconds;
}

bool IsSwitchedOn(const char* name) { return OrWarned(SwitchSetting(name, false), false); }

int64_t NumberOr(const char* name, int64_t otherwise) { return OrWarned(NumberSetting(name, otherwise), otherwise); }

// How many letters must be taken away, put in or changed.
static size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
      corner = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

static std::string OfUnknown(absl::string_view name) {
  const absl::string_view own = name.substr(kPrefix.size());
  const Setting* nearest = nullptr;
  size_t least = std::max<size_t>(3, own.size() / 3) + 1;
  for (const Setting& s : AllSettings()) {
    const size_t distance = Distance(own, absl::string_view(s.name).substr(kPrefix.size()));
    if (distance >= least) continue;
    least = distance;
    nearest = &s;
  }
  if (nearest == nullptr) return absl::StrCat(name, " is no setting: unset it");
  return absl::StrCat(name, " is no setting; did you mean ", nearest->name, "?");
}

std::vector<std::string> UnknownSettings() {
  std::vector<std::string> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view name = absl::string_view(*entry).substr(0, absl::string_view(*entry).find('='));
    if (!absl::StartsWith(name, kPrefix) || FindSetting(name) != nullptr) continue;
    const auto tests = NamesOfTests();
    if (std::find(tests.begin(), tests.end(), name) == tests.end()) unknown.push_back(OfUnknown(name.substr(0, 100)));
  }
  return unknown;
}

std::string SettingsTable() {
  std::string table;
  for (const Setting& s : AllSettings()) {
    absl::StrAppend(&table, s.name, "\t", kKindNames[static_cast<int>(s.kind)], "\t", s.values, "\t", s.least, "\t",
                    s.most, "\t", s.otherwise, "\t", s.means, "\n");
  }
  for (const char* const name : NamesOfTests()) absl::StrAppend(&table, name, "\ttest\t\t0\t0\t\t\n");
  return table;
}

}  // namespace millrace
