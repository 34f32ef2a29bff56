# SPDX-License-Identifier: BSD-3-Clause
# Installs libbx for other programs: static libraries, the headers an application or a provider of its own needs (those
# of the engine and of the machines below it stay here), a CMake package and pkg-config files. One component, "bx", so
# that it can be installed from a tree that has built nothing else:
#   cmake --install BUILD --component bx --prefix PREFIX
include(CMakePackageConfigHelpers)

set_target_properties(bx_flags PROPERTIES EXPORT_NAME flags)
set(_parts base wire core fabric memory engine virtual loopback native)
if(TARGET bx_verbs)
  list(APPEND _parts verbs)
endif()
foreach(_part IN LISTS _parts)
  set_target_properties(bx_${_part} PROPERTIES EXPORT_NAME ${_part})
  list(APPEND _targets bx_${_part})
endforeach()
set_target_properties(bx_api PROPERTIES EXPORT_NAME bx)
install(TARGETS bx_flags bx_api ${_targets} EXPORT bxTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT bx)

install(DIRECTORY include/bx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT bx FILES_MATCHING PATTERN "*.h")
foreach(_layer base fabric providers/virtual providers/loopback providers/native)
  install(DIRECTORY ${_layer}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/libbx/${_layer} COMPONENT bx
          FILES_MATCHING PATTERN "*.h")
endforeach()

if(TARGET bx_verbs)
  install(FILES providers/verbs/verbs_fabric.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/libbx/providers/verbs COMPONENT bx)
endif()

# A file of its own, since whoever uses it needs prometheus-cpp as well.
if(TARGET bx_prometheus)
  set_target_properties(bx_prometheus PROPERTIES EXPORT_NAME prometheus)
  install(TARGETS bx_prometheus EXPORT bxPrometheusTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          COMPONENT bx-prometheus)
  install(DIRECTORY exporters/prometheus/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/libbx/exporters/prometheus
          COMPONENT bx-prometheus FILES_MATCHING PATTERN "*.h")
  install(EXPORT bxPrometheusTargets NAMESPACE bx:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/bx
          COMPONENT bx-prometheus)
endif()

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/bx)
configure_package_config_file(package/bxConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/bxConfig.cmake
                              INSTALL_DESTINATION ${_package_dir})
# Before 1.0 a minor version may break what was there before it.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/bxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/bxConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/bxConfigVersion.cmake
        DESTINATION ${_package_dir} COMPONENT bx)
install(EXPORT bxTargets NAMESPACE bx:: DESTINATION ${_package_dir} COMPONENT bx)

# The .pc files find their prefix from where they lie, so an installed tree may be moved.
file(RELATIVE_PATH BX_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
set(_pkg_config_files bx.pc bx-loopback.pc)
if(TARGET bx_verbs)
  list(APPEND _pkg_config_files bx-verbs.pc)
endif()
foreach(_file IN LISTS _pkg_config_files)
  configure_file(package/${_file}.in ${CMAKE_CURRENT_BINARY_DIR}/${_file} @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${_file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT bx)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSES/BSD-3-Clause.txt DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT bx)
