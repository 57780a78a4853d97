// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A bad network, frame by frame, at the broker's side. Decides which frames are lost, doubled, swapped or late; the
// adapter to the library's own hook is in fault_filter.hpp.
#pragma once

#include "draws.hpp"

#include <onay/time.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace onay::sim {

// Probabilities are per frame and independent of each other.
struct fault_options {
  double drop_settle = 0;   // SETTLE frames that arrive at the sender
  double drop_deliver = 0;  // DELIVER frames that leave it
  double drop_any = 0;      // every frame, either way, greetings and heartbeats included
  double duplicate = 0;     // every frame, either way; the copy goes to the same peer
  double reorder = 0;       // every frame, either way; swapped with the next of the same peer and direction
  duration delay{};         // every frame, each way
  std::uint64_t seed = 1;

  [[nodiscard]] bool any() const {
    return drop_settle > 0 || drop_deliver > 0 || drop_any > 0 || duplicate > 0 || reorder > 0 ||
           delay > duration::zero();
  }
};

struct fault_counts {
  std::uint64_t frames = 0, dropped = 0, duplicated = 0, reordered = 0;
};

enum class heading : std::uint8_t { arriving, leaving };  // as the sender sees it
enum class cargo : std::uint8_t { settle, deliver, other };

// Frames on their way. `Lane` names peer and direction together; `Frame` is copied for a duplicate.
// One thread at a time.
template <class Lane, class Frame>
class fault_queue {
 public:
  // A swapped frame waits for its successor; on a quiet link none may come. Far below every heartbeat.
  static constexpr duration hold_max = std::chrono::milliseconds(50);

  explicit fault_queue(const fault_options& options) : options_(options), dice_(options.seed) {}

  [[nodiscard]] const fault_counts& counts() const { return counts_; }

  void submit(time_point now, const Lane& lane, heading where, cargo what, Frame frame) {
    ++counts_.frames;
    // All dice are thrown for every frame, so that one option doesn't shift what another one hits.
    const bool settle = dice_.chance(options_.drop_settle) && what == cargo::settle && where == heading::arriving;
    const bool deliver = dice_.chance(options_.drop_deliver) && what == cargo::deliver && where == heading::leaving;
    const bool any = dice_.chance(options_.drop_any);
    const bool twice = dice_.chance(options_.duplicate);
    const bool swap = dice_.chance(options_.reorder);
    if (settle || deliver || any) {
      ++counts_.dropped;
      return;
    }
    const auto held = held_.find(lane);
    if (twice) {
      ++counts_.duplicated;
      push(now, frame);
    }
    if (held == held_.end() && swap) {
      ++counts_.reordered;
      held_.emplace(lane, held_frame{now + hold_max, std::move(frame)});
      return;
    }
    push(now, std::move(frame));
    if (held != held_.end()) {
      push(now, std::move(held->second.frame));
      held_.erase(held);
    }
  }

  // The next frame that goes on; ask until there is none. Changes after `submit` and at `next_deadline`.
  [[nodiscard]] std::optional<Frame> poll(time_point now) {
    for (auto it = held_.begin(); it != held_.end();) {
      if (it->second.until > now) {
        ++it;
        continue;
      }
      push(it->second.until, std::move(it->second.frame));
      it = held_.erase(it);
    }
    if (queue_.empty() || queue_.front().due > now) return {};
    std::pop_heap(queue_.begin(), queue_.end(), later);
    auto frame = std::move(queue_.back().frame);
    queue_.pop_back();
    return frame;
  }

  // time_point::max() if nothing is on its way.
  [[nodiscard]] time_point next_deadline() const {
    auto next = queue_.empty() ? time_point::max() : queue_.front().due;
    for (const auto& [lane, held] : held_) next = std::min(next, held.until);
    return next;
  }

 private:
  struct held_frame {
    time_point until;
    Frame frame;
  };
  struct moving {
    time_point due;
    std::uint64_t order;  // frames that are due together keep their order
    Frame frame;
  };
  static bool later(const moving& a, const moving& b) { return a.due != b.due ? a.due > b.due : a.order > b.order; }

  void push(time_point from, Frame frame) {
    queue_.push_back({from + options_.delay, ++order_, std::move(frame)});
    std::push_heap(queue_.begin(), queue_.end(), later);
  }

  fault_options options_;
  sequence dice_;
  fault_counts counts_;
  std::map<Lane, held_frame> held_;
  std::vector<moving> queue_;
  std::uint64_t order_ = 0;
};

}  // namespace onay::sim
