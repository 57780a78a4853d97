// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
/// @file
/// Everything.
#pragma once

#include <onay/consumer.hpp>
#include <onay/dead_letter.hpp>
#include <onay/sender.hpp>
#include <onay/version.hpp>
