// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Faults on the frames of a real sender.
#pragma once

#include "faults.hpp"

#include "shell/link_filter.hpp"

#include <utility>

namespace onay::sim {

// Belongs to the sender's I/O thread; `counts` is for afterwards.
class fault_filter final : public shell::link_filter {
 public:
  explicit fault_filter(const fault_options& options) : queue_(options) {}

  void submit(time_point now, shell::filtered_frame f) override {
    const bool in = f.way == shell::filtered_frame::direction::in;
    const auto what = f.type == core::frame_type::settle    ? cargo::settle
                      : f.type == core::frame_type::deliver ? cargo::deliver
                                                            : cargo::other;
    auto lane = std::make_pair(in, f.where);
    queue_.submit(now, lane, in ? heading::arriving : heading::leaving, what, std::move(f));
  }
  std::optional<shell::filtered_frame> poll(time_point now) override { return queue_.poll(now); }
  [[nodiscard]] time_point next_deadline() const override { return queue_.next_deadline(); }

  [[nodiscard]] const fault_counts& counts() const { return queue_.counts(); }

 private:
  fault_queue<std::pair<bool, core::route>, shell::filtered_frame> queue_;
};

}  // namespace onay::sim
