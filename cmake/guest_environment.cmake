# SPDX-License-Identifier: Apache-2.0
# MILLRACE_GUEST_ENVIRONMENT: what a process that is not of this build (Python) needs in its environment to load the
# library. AddressSanitizer's runtime has to be there before, with libstdc++, whose exceptions it looks up when it starts;
# what the process itself does not free is not ours.
set(MILLRACE_GUEST_ENVIRONMENT)
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_CXX_FLAGS_DEBUG MATCHES "fsanitize=address")
  foreach(runtime libasan.so libstdc++.so.6)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${runtime}
                    OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND runtimes ${path})
  endforeach()
  list(JOIN runtimes ":" runtimes)
  set(MILLRACE_GUEST_ENVIRONMENT LD_PRELOAD=${runtimes} ASAN_OPTIONS=detect_leaks=0)
endif()
