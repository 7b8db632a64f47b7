# SPDX-License-Identifier: Apache-2.0
# cmake --install: headers, both libraries, find_package(millrace CONFIG) and pkg-config files. The prefix may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(libraries millrace)
set(packages millrace tensorflow tensorflow-1)
if(NOT MILLRACE_PORTABLE)  # the static library is linked with those of the machine
  list(APPEND libraries millrace_static)
  list(APPEND packages millrace-static)
endif()
foreach(target IN LISTS libraries)
  target_compile_features(${target} INTERFACE cxx_std_20)
endforeach()
install(TARGETS ${libraries} EXPORT millrace_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET millrace_grpc)  # found there by the library itself: nobody links it
  install(TARGETS millrace_grpc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS tensorflow_1 tensorflow_2 LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# What -ltensorflow means is the program's choice: without one, today's form.
foreach(link libtensorflow.so=libtensorflow.so.2 libtensorflow_framework.so=libtensorflow.so.2
        libtensorflow_framework.so.2=libtensorflow.so.2 libtensorflow_framework.so.1=libtensorflow.so.1
        tensorflow-1/libtensorflow.so=../libtensorflow.so.1 tensorflow-1/libtensorflow_framework.so=../libtensorflow.so.1)
  string(REPLACE "=" ";" link ${link})
  list(GET link 0 name)
  list(GET link 1 file)
  get_filename_component(folder ${name} DIRECTORY)
  get_filename_component(name ${name} NAME)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/links/${folder})
  file(CREATE_LINK ${file} ${PROJECT_BINARY_DIR}/links/${folder}/${name} SYMBOLIC)
  install(FILES ${PROJECT_BINARY_DIR}/links/${folder}/${name} DESTINATION ${CMAKE_INSTALL_LIBDIR}/${folder})
endforeach()
install(DIRECTORY include/millrace include/tensorflow DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/include/millrace/ops.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/millrace)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/millrace)
install(EXPORT millrace_targets NAMESPACE millrace:: FILE millrace-targets.cmake DESTINATION ${package_folder})
configure_package_config_file(cmake/millrace-config.cmake.in ${PROJECT_BINARY_DIR}/millrace-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/millrace-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/millrace-config.cmake ${PROJECT_BINARY_DIR}/millrace-config-version.cmake
        DESTINATION ${package_folder})

# pkg-config finds the prefix from where its file lies.
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH MILLRACE_PC_PREFIX /p/${pkgconfig_folder} /p)
get_target_property(libraries millrace_static INTERFACE_LINK_LIBRARIES)
list(FILTER libraries INCLUDE REGEX "^absl::")
list(TRANSFORM libraries REPLACE "^absl::" "absl_")
list(JOIN libraries ", " MILLRACE_PC_REQUIRES)
foreach(name IN LISTS packages)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${pkgconfig_folder})
endforeach()
