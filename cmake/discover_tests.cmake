# SPDX-License-Identifier: Apache-2.0
# Copyright The onay authors
#
# Writes one CTest entry per test case of a Catch2 executable. Catch2 brings such a script, but version 2's tears names
# with a semicolon apart, and the pieces then name no test case, which passes.
#   cmake -D executable=... -D output=... -D catch=<major version> -D label=... -D timeout=... -D environment=... -P this

if(catch VERSION_LESS 3)
  set(list_names --list-test-names-only)  # its exit code is the number of tests
else()
  set(list_names --list-tests --verbosity quiet)
endif()
execute_process(COMMAND ${executable} ${list_names}
  OUTPUT_VARIABLE names ERROR_VARIABLE errors RESULT_VARIABLE result)
if(NOT result MATCHES "^[0-9]+$" OR NOT errors STREQUAL "")
  message(FATAL_ERROR "${executable} can't list its tests (${result}):\n${names}${errors}")
endif()

set(script "")
while(names MATCHES "^([^\n]*)\n(.*)$")
  set(name "${CMAKE_MATCH_1}")
  set(names "${CMAKE_MATCH_2}")
  if(NOT name STREQUAL "")
    # What has a meaning in Catch2's test specifications.
    string(REGEX REPLACE "([][\\,])" "\\\\\\1" spec "${name}")
    string(APPEND script
      "add_test([==[${label}/${name}]==] [==[${executable}]==] [==[${spec}]==])\n"
      "set_tests_properties([==[${label}/${name}]==] PROPERTIES LABELS ${label} TIMEOUT ${timeout}"
      " ENVIRONMENT [==[${environment}]==])\n")
  endif()
endwhile()
if(script STREQUAL "")
  message(FATAL_ERROR "${executable} has no tests")
endif()
file(WRITE ${output} "${script}")
