// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A seam for tests and the simulator: sees every frame of one I/O thread, on that thread, in both directions, and may
// drop, double, delay or reorder it.
#pragma once

#include "core/frames.hpp"
#include "core/instant.hpp"

#include <onay/time.hpp>

#include <optional>
#include <string>

namespace onay::shell {

struct filtered_frame {
  enum class direction { in, out };
  direction way = direction::in;
  core::route where;                                // from whom, or to whom
  core::frame_type type = core::frame_type::error;  // the first element; 0 if that can't be read
  std::string bytes;
};

class link_filter {
 public:
  virtual ~link_filter() = default;
  // Takes a frame; what `poll` returns later goes on.
  virtual void submit(time_point now, filtered_frame f) = 0;
  // The next frame that goes on now. Asked until it has none.
  virtual std::optional<filtered_frame> poll(time_point now) = 0;
  // When `poll` will have one without another `submit`.
  [[nodiscard]] virtual time_point next_deadline() const = 0;
};

}  // namespace onay::shell
