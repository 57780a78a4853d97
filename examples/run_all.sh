#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The onay authors
#
# Runs the examples as the README does: a collector, a worker, and a producer whose order must come back accepted. Then
# both are told to stop, and must leave clean.
set -euo pipefail
programs=$1

"$programs/collector" &
collector=$!
"$programs/worker" &
worker=$!
trap 'kill $collector $worker 2>/dev/null || true' EXIT

answer=$(timeout 30 "$programs/producer")
echo "producer: $answer"
[[ $answer == "accepted: shipped" ]]

kill -TERM "$worker"
wait "$worker"
kill -TERM "$collector"
wait "$collector"
trap - EXIT
