# SPDX-License-Identifier: Apache-2.0
# Copyright The onay authors

# Sanitizers for one target of ours, as ONAY_SANITIZE says. Third-party code stays as it is: see tsan.supp.
function(onay_sanitize target)
  if(NOT ONAY_SANITIZE)
    return()
  endif()
  target_compile_options(${target} PRIVATE
    -fsanitize=${ONAY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(${target} PRIVATE -fsanitize=${ONAY_SANITIZE})
endfunction()

# The run-time options that our tests need, as a list of NAME=value.
function(onay_sanitizer_environment result)
  set(environment "")
  if(ONAY_SANITIZE MATCHES "thread")
    list(APPEND environment "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp:second_deadlock_stack=1")
  endif()
  if(ONAY_SANITIZE MATCHES "undefined")
    list(APPEND environment "UBSAN_OPTIONS=print_stacktrace=1")
  endif()
  set(${result} "${environment}" PARENT_SCOPE)
endfunction()
