// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "cli.hpp"

int main(int argc, char** argv) { return onay::sim::run_command_line(argc, argv); }
