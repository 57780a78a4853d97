# SPDX-License-Identifier: Apache-2.0
# Copyright The onay authors
#
# broker-sim: its deciding parts as test cases, the program by its command line. Included by broker-sim/CMakeLists.txt,
# so that a build without the simulator has no tests of it.

set(here ${CMAKE_CURRENT_LIST_DIR})
onay_test(onay_sim_support_tests LABEL sim LIBRARIES onay_sim_support SOURCES
  ${here}/audit_test.cpp
  ${here}/draws_test.cpp
  ${here}/effects_test.cpp
  ${here}/faults_test.cpp
  ${here}/load_test.cpp
  ${here}/relay_test.cpp
  ${here}/units_test.cpp)

onay_sanitizer_environment(environment)
if(environment)
  list(JOIN environment "\\;" environment)
  set(environment ENVIRONMENT ${environment})
endif()

# Each case is a function of cli_test.cmake.
foreach(case
    help_names_units_and_defaults
    a_wrong_command_line_is_refused_with_2
    settings_that_workers_refuse_are_a_wrong_command_line
    records_are_the_same_for_the_same_seed
    a_run_without_faults_accepts_everything
    frame_faults_lose_and_double_nothing
    any_frame_may_be_dropped
    rejected_messages_are_dead_lettered
    failures_are_retried_until_they_succeed
    killed_workers_lose_nothing_and_poison_is_dead_lettered
    a_poison_message_takes_its_attempts_and_no_more
    without_a_collector_healthy_messages_flow_and_dead_ones_wait
    killing_a_worker_again_and_again_dead_letters_nobody
    cut_links_lose_nothing
    workers_may_bind
    old_messages_are_dead_lettered_and_not_started
    an_input_file_is_sent_by_its_keys
    attempts_may_have_no_limit
    a_delay_shows_in_the_latency
    json_has_every_field)
  add_test(NAME "broker-sim: ${case}" COMMAND ${CMAKE_COMMAND}
    -D case=${case} -D sim=$<TARGET_FILE:broker-sim> -D work=${PROJECT_BINARY_DIR}/tests/sim_cli/${case}
    -P ${here}/cli_test.cmake)
  set_tests_properties("broker-sim: ${case}" PROPERTIES LABELS sim TIMEOUT 120 ${environment})
endforeach()
