// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Settings as words of a command line, for the workers that a run starts. cli.cpp reads them back.
#pragma once

#include "worker.hpp"

#include <string>
#include <vector>

namespace onay::sim {

[[nodiscard]] std::vector<std::string> to_arguments(const worker_settings& settings);

}  // namespace onay::sim
