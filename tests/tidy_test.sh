#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The onay authors
#
# Rules about the sources that no compiler checks. Usage: tidy_test.sh [project directory]
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"
shopt -s nullglob

failed=0
complain() { # rule, lines that break it
  if [[ -n $2 ]]; then
    printf '%s:\n%s\n\n' "$1" "$2"
    failed=1
  fi
}

# Lines of code that match, comments left out.
code_matching() { # pattern, file...
  local pattern=$1 file
  shift
  for file in "$@"; do
    sed 's://.*$::' "$file" | grep -nE -- "$pattern" | sed "s|^|  $file:|" || true
  done
}

including() { # regex of header names, file...
  local names=$1
  shift
  code_matching "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($names)[>\"]" "$@"
}

public=(include/onay/*.hpp)
core=(consumer/core/*.[ch]pp)
wire=(consumer/wire/*.[ch]pp)
all=(include/onay/*.hpp consumer/*/*.[ch]pp)
[[ ${#public[@]} -gt 0 && ${#core[@]} -gt 0 ]] || { echo "no sources found in $PWD"; exit 1; }

# The core and the wire wait for nothing: what they know comes in as arguments.
threads='thread|mutex|shared_mutex|condition_variable|future|semaphore|latch|barrier'
system='fstream|iostream|filesystem|cstdio|stdio\.h|ctime|time\.h|unistd\.h|signal\.h|csignal|sys/.*|netinet/.*|poll\.h'
complain "core and wire use no sockets, threads or files" \
  "$(including "zmq\.hpp|zmq\.h|zmq_addon\.hpp|$threads|$system" "${core[@]}" "${wire[@]}")"
complain "core and wire read no clock: \`now\` is an argument" \
  "$(code_matching '(clock|Clock)::now *\(|clock_gettime|gettimeofday|[^_[:alnum:].>]time *\( *(0|NULL|nullptr|&)' \
    "${core[@]}" "${wire[@]}")"
complain "core and wire have no entropy of their own: generators are injected" \
  "$(code_matching 'random_device|getrandom|getentropy|[^_[:alnum:]]s?rand *\(' "${core[@]}" "${wire[@]}")"
complain "core and wire don't sleep, print or read the environment" \
  "$(code_matching 'this_thread|sleep_(for|until)|[^_[:alnum:]]u?sleep *\(|printf *\(|std::c(out|err|log)|getenv' \
    "${core[@]}" "${wire[@]}")"

# core <- wire <- shell.
complain "core knows neither the wire nor the shell" "$(including '(wire|shell)/.*|msgpack.*' "${core[@]}")"
complain "the wire doesn't know the shell" "$(including 'shell/.*' "${wire[@]}")"
complain "public headers include only the standard library and each other" \
  "$(including '(core|wire|shell|support)/.*|zmq.*|msgpack.*' "${public[@]}")"

for file in "${all[@]}"; do
  [[ $(head -n 1 "$file") == "// SPDX-License-Identifier: Apache-2.0" ]] ||
    complain "a source file starts with its SPDX line" "  $file"
  [[ $file != *.hpp ]] || grep -qx '#pragma once' "$file" || complain "a header has #pragma once" "  $file"
done

# A file that no list names is dead, and nobody would notice.
for file in consumer/*/*.cpp include/onay/*.hpp; do
  grep -qE "(^|[[:space:]/])${file#consumer/}([[:space:])]|\$)" consumer/CMakeLists.txt ||
    complain "consumer/CMakeLists.txt lists every file" "  $file"
done

complain "the worker in README.md is examples/worker.cpp" \
  "$(diff <(awk '/^```cpp/ {inside = 1; next} /^```/ {if (inside) exit} inside' README.md) \
    <(grep -v '^// SPDX' examples/worker.cpp) || true)"

[[ $failed == 0 ]] && echo "tidy"
exit $failed
