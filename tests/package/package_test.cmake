# SPDX-License-Identifier: Apache-2.0
# Copyright The onay authors
#
# Installs the library into a scratch prefix and builds the same small program against it in every way that users do.

set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

# run(what command...): ends the test if the command fails.
function(run what)
  message(STATUS "${what}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed (${result}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(toolchain -G ${generator} -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher})
set(here ${CMAKE_CURRENT_LIST_DIR})

run("install" ${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${prefix})

# Nothing that users include may need a header of ZeroMQ or msgpack.
file(GLOB headers ${prefix}/include/onay/*.hpp)
if(NOT headers)
  message(FATAL_ERROR "no header was installed")
endif()
foreach(header IN LISTS headers)
  file(STRINGS ${header} leak REGEX "# *include *<(zmq|msgpack)")
  if(leak)
    message(FATAL_ERROR "${header}: ${leak}")
  endif()
endforeach()

run("find_package: configure" ${CMAKE_COMMAND} -S ${here}/find_package -B ${work}/find_package ${toolchain}
  -D CMAKE_BUILD_TYPE=${config} -D CMAKE_PREFIX_PATH=${prefix} -D WANTED=${version})
run("find_package: build" ${CMAKE_COMMAND} --build ${work}/find_package)
run("find_package: run" ${work}/find_package/user)
message(STATUS "${output}")

message(STATUS "find_package: an absent version is refused")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${here}/find_package -B ${work}/absent ${toolchain}
    -D CMAKE_PREFIX_PATH=${prefix} -D WANTED=99.0
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
string(REGEX REPLACE "[ \n]+" " " unwrapped "${output}")
if(result EQUAL 0 OR NOT unwrapped MATCHES "compatible with requested version \"99.0\"")
  message(FATAL_ERROR "version 99.0 was not refused:\n${output}")
endif()

# A moved prefix has to work too: pkg-config reads the paths relative to the file.
file(RENAME ${prefix} ${work}/moved)
set(ENV{PKG_CONFIG_PATH} ${work}/moved/${libdir}/pkgconfig)
run("pkg-config: version" pkg-config --exact-version=${version} onay)
run("pkg-config: flags" pkg-config --cflags --libs onay)
string(STRIP "${output}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
# With the warnings that users may have on.
run("pkg-config: build" ${compiler} -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror ${here}/main.cpp -o ${work}/pkg_config_user ${flags})
set(ENV{LD_LIBRARY_PATH} ${work}/moved/${libdir})
run("pkg-config: run" ${work}/pkg_config_user)
message(STATUS "${output}")

# As a subproject, and as a shared library: one build shows both. Not optimised, to be quick.
run("add_subdirectory: configure" ${CMAKE_COMMAND} -S ${here}/add_subdirectory -B ${work}/add_subdirectory ${toolchain}
  -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=-O0 -D BUILD_SHARED_LIBS=ON -D ONAY_SOURCE=${source})
run("add_subdirectory: build" ${CMAKE_COMMAND} --build ${work}/add_subdirectory)
run("add_subdirectory: run" ${work}/add_subdirectory/user)
message(STATUS "${output}")
