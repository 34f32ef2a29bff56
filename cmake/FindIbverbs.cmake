# SPDX-License-Identifier: BSD-3-Clause
# Finds rdma-core's libibverbs (Debian package libibverbs-dev) through its pkg-config file.
#
#   find_package(Ibverbs 1.14 REQUIRED)
#   target_link_libraries(t PRIVATE Ibverbs::ibverbs)
find_path(Ibverbs_INCLUDE_DIR infiniband/verbs.h)
find_library(Ibverbs_LIBRARY ibverbs)
file(GLOB _ibverbs_pc /usr/lib/*/pkgconfig/libibverbs.pc /usr/lib64/pkgconfig/libibverbs.pc)
if(_ibverbs_pc)
  list(GET _ibverbs_pc 0 _ibverbs_pc)
  file(STRINGS "${_ibverbs_pc}" _ibverbs_version REGEX "^Version:")
  string(REGEX REPLACE "^Version: *" "" Ibverbs_VERSION "${_ibverbs_version}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Ibverbs REQUIRED_VARS Ibverbs_INCLUDE_DIR Ibverbs_LIBRARY VERSION_VAR Ibverbs_VERSION
  REASON_FAILURE_MESSAGE "install it with scripts/setup (Debian package libibverbs-dev), or say -DBX_BUILD_VERBS=OFF")
if(Ibverbs_FOUND AND NOT TARGET Ibverbs::ibverbs)
  add_library(Ibverbs::ibverbs SHARED IMPORTED)
  set_target_properties(Ibverbs::ibverbs PROPERTIES
    IMPORTED_LOCATION "${Ibverbs_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Ibverbs_INCLUDE_DIR}")
endif()
