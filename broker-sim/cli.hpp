// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The command line.
#pragma once

namespace onay::sim {

// Runs what the arguments ask for. 0: it held, 1: it didn't, 2: the command line is wrong.
int run_command_line(int argc, char** argv);

}  // namespace onay::sim
