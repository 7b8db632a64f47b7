// SPDX-License-Identifier: Apache-2.0
// Settings that the environment gives. Each is declared once, in settings_table.cc: what checks them, `millrace doctor`
// and the table of docs/running.md come from there. Nobody else asks the environment for MILLRACE_ names
// (python/tests/test_settings.py looks at the sources).
//
// An empty variable is an unset one. Wrong values: functions that return a StatusOr say so and let the caller refuse;
// the others log it once and go on with the default. Thread-safe as long as nobody changes the environment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status.h"

namespace millrace {

struct Setting {
  enum class Kind {
    kSwitch,   // 0 or 1
    kNumber,   // whole, `least` to `most`
    kSeconds,  // a number, `least` to `most`
    kChoice,   // one of `values`, which has commas between them
    // As `values` describes it. Who reads one of these checks it; `millrace doctor` looks whether it has the form, and
    // whether there is such a file or could be such a folder.
    kText,
    kFile,
    kFolder,
    kSteps,    // 0-9,100
    kPairs,    // name=value,name=value
    kAddress,  // [HOST:]PORT
    kPlace,    // HOST or HOST:PORT
  };
  const char* name;  // MILLRACE_NUM_THREADS
  Kind kind;
  const char* values;
  int64_t least, most;
  const char* otherwise;  // what holds when it is unset, for people; the number itself where it is one
  const char* means;      // in Markdown, as docs/running.md shows it
};

inline constexpr int64_t kNoMost = INT64_MAX;

absl::Span<const Setting> AllSettings();
const Setting* FindSetting(absl::string_view name);  // null: there is none
// What tests, benchmarks and tools ask the environment for, which nobody else needs to know.
absl::Span<const char* const> NamesOfTests();
// Of names such as MILLRACE_NUM_THREAD: "is no setting; did you mean MILLRACE_NUM_THREADS?" The environment's, in their
// order; said in the log by who starts the process's system.
std::vector<std::string> UnknownSettings();
std::string WantedBy(const Setting& setting);  // "a number from 1 on"
// InvalidArgument: "MILLRACE_NUM_THREADS is 'x', want a number from 1 on". OK for an empty value.
Status CheckSetting(const Setting& setting, absl::string_view value);

// All of these are Internal (or the default) for a name that is not declared.
std::string TextSetting(const char* name);  // unchecked
StatusOr<std::string> CheckedSetting(const char* name);
StatusOr<bool> SwitchSetting(const char* name, bool otherwise);
// `otherwise` counts where the declared default is no number.
StatusOr<int64_t> NumberSetting(const char* name, int64_t otherwise = 0);
StatusOr<double> SecondsSetting(const char* name);
// With a warning where the value is wrong.
bool IsSwitchedOn(const char* name);
int64_t NumberOr(const char* name, int64_t otherwise = 0);

// A line a setting: name, kind, values, least, most, default, meaning, with tabs between them; for other languages.
// Names of tests follow, of the kind "test".
std::string SettingsTable();

}  // namespace millrace
