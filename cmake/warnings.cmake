# SPDX-License-Identifier: Apache-2.0
# Copyright The onay authors

# Warnings for one target of ours; private, so that no user of the library inherits them.
function(onay_warnings target)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    return()
  endif()
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow
    # Leaving a field at its default is what designated initialisers are for. (The public headers don't provoke it: the
    # package test compiles them with -Wextra alone.)
    -Wno-missing-field-initializers
    # GCC 12 sees uninitialised strings in temporaries that are all initialised.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    # Clang counts this one into -Wconversion, GCC doesn't: the same code has to pass with both.
    $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wno-sign-conversion>
    $<$<BOOL:${ONAY_WERROR}>:-Werror>)
endfunction()
