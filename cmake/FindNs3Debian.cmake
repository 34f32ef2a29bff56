# SPDX-License-Identifier: BSD-3-Clause
# Finds ns-3 as Debian's libns3-dev installs it. Debian's own ns3Config.cmake asks for packages that libns3-dev does
# not pull in and adds include folders that break a C++20 build, so this module looks for headers and libraries itself.
#
#   find_package(Ns3Debian 3.37 REQUIRED COMPONENTS core network)
#   target_link_libraries(t PRIVATE Ns3::core)
#
# Defines one imported target Ns3::<component> a component.
find_path(Ns3_INCLUDE_DIR ns3/simulator.h)
file(GLOB _ns3_pc /usr/lib/*/pkgconfig/ns3-core.pc)
if(_ns3_pc)
  list(GET _ns3_pc 0 _ns3_pc)
  file(STRINGS "${_ns3_pc}" _ns3_version REGEX "^Version:")
  string(REGEX REPLACE "^Version: *" "" Ns3Debian_VERSION "${_ns3_version}")
endif()
foreach(_component IN LISTS Ns3Debian_FIND_COMPONENTS)
  find_library(Ns3_${_component}_LIBRARY NAMES ns3-${_component} ns3.${Ns3Debian_VERSION}-${_component})
  if(Ns3_${_component}_LIBRARY)
    set(Ns3Debian_${_component}_FOUND TRUE)
    if(NOT TARGET Ns3::${_component})
      add_library(Ns3::${_component} SHARED IMPORTED)
      set_target_properties(Ns3::${_component} PROPERTIES
        IMPORTED_LOCATION "${Ns3_${_component}_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Ns3_INCLUDE_DIR}")
    endif()
  endif()
endforeach()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Ns3Debian REQUIRED_VARS Ns3_INCLUDE_DIR VERSION_VAR Ns3Debian_VERSION HANDLE_COMPONENTS
  REASON_FAILURE_MESSAGE "install it with scripts/setup (Debian package libns3-dev)")
