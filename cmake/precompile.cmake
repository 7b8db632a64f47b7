# SPDX-License-Identifier: Apache-2.0
# Standard headers that most sources include are parsed once: a build takes two thirds of the time. Sources include what
# they use all the same; a debug build, which precompiles nothing, finds those that do not. GCC only: it has one library
# of headers for the layers, one each for the kernels and the ops (which are compiled with other options) and one for
# their tests.
option(MILLRACE_PRECOMPILE "Parse standard headers once" ON)
if(NOT MILLRACE_PRECOMPILE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  return()
endif()
set(MILLRACE_HEADERS
    <algorithm> <atomic> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <optional> <set> <string>
    <utility> <vector> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
    <absl/container/inlined_vector.h> <absl/functional/any_invocable.h> <absl/status/statusor.h>
    <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/synchronization/mutex.h> <absl/time/time.h>
    <absl/types/span.h>)

function(millrace_targets_of folder all)
  get_property(here DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(inner IN LISTS folders)
    millrace_targets_of(${inner} more)
    list(APPEND here ${more})
  endforeach()
  set(${all} ${here} PARENT_SCOPE)
endfunction()

# The first target of a kind makes its headers, the others take them.
function(millrace_precompile target kind)
  target_compile_options(${target} PRIVATE -fpch-preprocess)  # ccache asks for it
  get_property(first GLOBAL PROPERTY millrace_precompiles_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${MILLRACE_HEADERS} ${ARGN})
    set_property(GLOBAL PROPERTY millrace_precompiles_${kind} ${target})
  endif()
endfunction()

millrace_targets_of(${PROJECT_SOURCE_DIR} targets)
foreach(target IN LISTS targets)
  get_target_property(type ${target} TYPE)
  get_target_property(imported ${target} IMPORTED)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if(imported)
    continue()
  elseif(target MATCHES "^millrace_(kernels_cpu|ops)$")
    millrace_precompile(${target} ${target})
  elseif(type STREQUAL STATIC_LIBRARY AND target MATCHES "^millrace_")
    millrace_precompile(${target} layers)
  elseif(type STREQUAL EXECUTABLE AND libraries MATCHES "millrace_.*GTest::gtest_main")
    millrace_precompile(${target} tests <gtest/gtest.h>)
    target_compile_options(${target} PRIVATE -Wno-array-bounds)  # GCC 12's false alarms of strings, for the reason above
  endif()
endforeach()
