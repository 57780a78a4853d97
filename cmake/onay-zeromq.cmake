# SPDX-License-Identifier: Apache-2.0
# Copyright The onay authors
#
# Defines onay::libzmq, for the build and for the installed package: a libzmq built with CMake brings a package, most
# distributions' only brings a pkg-config file.
set(ONAY_LIBZMQ_VERSION 4.3.4)

if(NOT TARGET onay::libzmq)
  if(NOT TARGET libzmq AND NOT TARGET libzmq-static)
    find_package(ZeroMQ ${ONAY_LIBZMQ_VERSION} CONFIG QUIET)
  endif()
  if(TARGET libzmq)
    set(onay_libzmq libzmq)
  elseif(TARGET libzmq-static)
    set(onay_libzmq libzmq-static)
  else()
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND)
      pkg_check_modules(ONAY_LIBZMQ QUIET IMPORTED_TARGET GLOBAL libzmq>=${ONAY_LIBZMQ_VERSION})
    endif()
    if(ONAY_LIBZMQ_FOUND)
      set(onay_libzmq PkgConfig::ONAY_LIBZMQ)
    endif()
  endif()
  if(onay_libzmq)
    add_library(onay::libzmq INTERFACE IMPORTED GLOBAL)
    target_link_libraries(onay::libzmq INTERFACE ${onay_libzmq})
  endif()
  unset(onay_libzmq)
endif()
