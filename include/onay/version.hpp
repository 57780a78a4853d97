// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#pragma once

#define ONAY_VERSION_MAJOR 0
#define ONAY_VERSION_MINOR 1
#define ONAY_VERSION_PATCH 0
