// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Catch2 as the system has it: version 3, or version 2 with its single header.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif
