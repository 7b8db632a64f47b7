# SPDX-License-Identifier: Apache-2.0
# MILLRACE_PORTABLE: a folder that script/wheel has filled, with static libraries of what Millrace uses (lib/), oneDNN and what
# it needs of OpenMP (shared/, include/), glibc's symbols as of 2.28 (glibc/) and headers of Python versions (python/). What
# links to millrace_portable then needs nothing of the machine but glibc and GCC's own libraries. Everything is compiled as
# ever, so that ccache knows it; only oneDNN is another version, and what calls it is compiled for that.
set(MILLRACE_PORTABLE "" CACHE PATH "Folder of script/wheel: link libraries that run on any Linux")
if(NOT MILLRACE_PORTABLE)
  return()
endif()
file(GLOB MILLRACE_ARCHIVES ${MILLRACE_PORTABLE}/lib/*.a)
set(MILLRACE_SHARED ${MILLRACE_PORTABLE}/shared/libmillrace_dnnl.so ${MILLRACE_PORTABLE}/shared/libmillrace_serial.so)
if(NOT MILLRACE_ARCHIVES OR NOT EXISTS ${MILLRACE_PORTABLE}/glibc/libc.so)
  message(FATAL_ERROR "${MILLRACE_PORTABLE} is not a folder that script/wheel has filled")
endif()
add_library(glibc_since STATIC ${PROJECT_SOURCE_DIR}/cmake/portable/glibc_since.c)
add_library(millrace_portable INTERFACE)
target_link_options(millrace_portable INTERFACE -static-libstdc++ -L${MILLRACE_PORTABLE}/glibc)
target_link_libraries(millrace_portable INTERFACE glibc_since -lpthread -ldl)
add_library(millrace_bundled INTERFACE)
target_link_libraries(millrace_bundled INTERFACE -Wl,--start-group ${MILLRACE_ARCHIVES} -Wl,--end-group ${MILLRACE_SHARED})
target_link_options(millrace_bundled INTERFACE -Wl,-z,defs)
install(FILES ${MILLRACE_SHARED} DESTINATION lib)
install(DIRECTORY ${MILLRACE_PORTABLE}/licenses DESTINATION share/doc/millrace)
if(SKBUILD)
  install(FILES ${MILLRACE_SHARED} DESTINATION millrace COMPONENT python)
  install(DIRECTORY ${MILLRACE_PORTABLE}/licenses DESTINATION millrace COMPONENT python)
endif()
