// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The handler's view of one attempt.
#include "shell/run.hpp"
#include "wire/codec.hpp"

#include <onay/delivery.hpp>

#include <algorithm>

namespace onay {

delivery::~delivery() {
  if (run_ != nullptr) {
    run_->drop();
  }
}

std::string_view delivery::key() const noexcept { return run_ == nullptr ? std::string_view() : run_->key; }
std::string_view delivery::payload() const noexcept { return run_ == nullptr ? std::string_view() : run_->payload; }
message_id delivery::id() const noexcept { return run_ == nullptr ? message_id{} : run_->id; }

std::vector<header_view> delivery::headers() const {
  std::vector<header_view> result;
  // Checked when the frame was decoded.
  if (run_ != nullptr && !wire::decode_headers(run_->headers, result)) {
    result.clear();
  }
  return result;
}

std::optional<std::string_view> delivery::header(std::string_view name) const {
  const auto all = headers();
  const auto found = std::find_if(all.begin(), all.end(), [&](const header_view& h) { return h.name == name; });
  return found == all.end() ? std::nullopt : std::optional(found->value);
}

void delivery::settle(outcome result) && {
  if (auto* r = std::exchange(run_, nullptr)) {
    r->settle(std::move(result));
  }
}

duration context::age() const noexcept { return std::max(boot_clock::now() - born_, duration::zero()); }
duration context::time_left() const noexcept { return std::max(deadline_ - boot_clock::now(), duration::zero()); }
std::stop_token context::stop_token() const { return run_->token(); }
bool context::stop_requested() const noexcept { return run_->stopped(); }

}  // namespace onay
