// SPDX-License-Identifier: Apache-2.0
// Every function of the table, called with nothing but zeros: none may crash, and those that take a graph, session,
// operation or description beside a status must refuse.
#include <set>
#include <type_traits>

#include "capi/entry_points.h"
#include "capi/test_support.h"

namespace millrace::capi {
namespace {

template <typename T>
T Zero(TF_Status* status) {
  if constexpr (std::is_same_v<T, TF_Status*>) {
    return status;
  } else {
    return T{};
  }
}

template <typename T>
constexpr bool kIsSubject =
    std::is_same_v<T, TF_Graph*> || std::is_same_v<T, TF_Session*> || std::is_same_v<T, TF_Operation*> ||
    std::is_same_v<T, TF_OperationDescription*> || std::is_same_v<T, TF_DeprecatedSession*> ||
    std::is_same_v<T, TF_Function*> || std::is_same_v<T, const TF_DeviceList*>;

template <typename R, typename... Args>
void CallWithZeros(const char* name, R (*function)(Args...)) {
  static const std::set<std::string> make_something = {
      "NewDeprecatedSession", "NewBufferFromString",   "GetAllRegisteredKernels",
      "NewKernelBuilder",     "NewAsyncKernelBuilder", "NewOpDefinitionBuilder",
      "TF_GetTempFileName",   "TF_CreateConfig",       "TF_CreateRunOptions"};
  if (sizeof...(Args) == 0 || make_something.count(name) > 0) return;
  function(Zero<Args>(nullptr)...);
  if (name == std::string("DeleteStatus")) return;
  ScopedStatus status;
  function(Zero<Args>(status)...);
  static const std::set<std::string> may_do_nothing = {"DeleteSession", "DeleteDeprecatedSession"};
  if constexpr ((std::is_same_v<Args, TF_Status*> || ...) && (kIsSubject<Args> || ...)) {
    if (may_do_nothing.count(name) > 0) return;
    EXPECT_NE(status.code(), TF_OK) << name;
  }
}

template <typename R, typename... Args>
void CallWithZeros(const char*, R (*function)(Args..., ...)) {
  function(Zero<Args>(nullptr)...);
}

TEST(NullTest, NoFunctionCrashes) {
#define CALL(name) CallWithZeros(#name, &TF_##name);
  MR_API_FUNCTIONS(CALL)
  MR_API_PLUGIN_FUNCTIONS(CALL)
#undef CALL
#define CALL(name) CallWithZeros(#name, &MR_##name);
  MR_API_OWN_FUNCTIONS(CALL)
  MR_API_LATER_FUNCTIONS(CALL)
  MR_API_FLOW_FUNCTIONS(CALL)
  MR_API_OWN_PLUGIN_FUNCTIONS(CALL)
  MR_API_COMPILE_FUNCTIONS(CALL)
  MR_API_DEVICE_FUNCTIONS(CALL)
  MR_API_SOLVER_FUNCTIONS(CALL)
  MR_API_SERVER_FUNCTIONS(CALL)
  MR_API_SNAPSHOT_FUNCTIONS(CALL)
  MR_API_SERVER_STEPS_FUNCTIONS(CALL)
  MR_API_FILE_FUNCTIONS(CALL)
  MR_API_PATH_FUNCTIONS(CALL)
  MR_API_REFERENCE_FUNCTIONS(CALL)
#undef CALL
#define CALL(name) CallWithZeros(#name, &name);
  MR_ENV_POINTS(CALL)
  MR_EAGER_POINTS(CALL)
  MR_FURTHER_POINTS(CALL)
#undef CALL
#define CALL(name, old) CallWithZeros(#old, &old);
  MR_FORM_POINTS(CALL)
#undef CALL
  MR_SetLocation(nullptr, nullptr, 0);
  EXPECT_EQ(MR_OpInputName(nullptr, 0), nullptr);
  EXPECT_STREQ(MR_OperationLocation(nullptr), "");
}

}  // namespace
}  // namespace millrace::capi
