// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A question to an I/O thread, and the wait for its answer.
#pragma once

#include "core/instant.hpp"
#include "shell/mailbox.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace onay::shell {

// What an I/O thread is asked to do between two turns.
using command = std::function<void(core::instant)>;

// Lets `answer` run on the I/O thread behind `mail` and returns what it returned. Nothing if that thread has ended, or
// doesn't answer within `patience`: whoever asks for a status must not hang with it. (std::promise would do, but its
// exceptions cross into a library that thread sanitizers can't see.)
template <class R>
std::optional<R> ask(mailbox<command>& mail, std::function<R(core::instant)> answer,
                     std::chrono::milliseconds patience) {
  struct slot {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<R> answer;
    bool over = false;
  };
  auto s = std::make_shared<slot>();
  // Its last copy goes with the command, whether that ran or was dropped.
  std::shared_ptr<void> ended(static_cast<void*>(nullptr), [s](void*) {
    const std::lock_guard lock(s->mutex);
    s->over = true;
    s->changed.notify_all();
  });
  const bool posted = mail.post([s, f = std::move(answer), ended](core::instant now) {
    auto value = f(now);
    const std::lock_guard lock(s->mutex);
    s->answer = std::move(value);
  });
  if (!posted) {
    return {};
  }
  ended.reset();
  std::unique_lock lock(s->mutex);
  s->changed.wait_for(lock, patience, [&] { return s->over; });
  return std::move(s->answer);
}

}  // namespace onay::shell
