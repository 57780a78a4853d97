// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What a worker does: take a delivery, see that it may start, call the handler, post the end.
#include "shell/consumer_impl.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <typeinfo>
#include <utility>

namespace onay {

namespace {

std::string readable(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return name ? std::string(name.get()) : std::string(mangled);
}

}  // namespace

void consumer::impl::work() {
  if (const auto* handle = std::get_if<onay::handler>(&handle_)) {
    const auto r = std::make_shared<shell::run>(home_, false);
    home_->add(*r);
    work_sync(*handle, *r);
    home_->remove(*r);
  } else {
    work_async(std::get<async_handler>(handle_));
  }
}

void consumer::impl::work_sync(const onay::handler& handle, shell::run& r) {
  const auto d = shell::run::make_delivery(r);
  auto c = r.make_context({});
  for (bool again = false; auto* h = home_->queue.take(again); again = true) {
    // Seen by the I/O thread first, checked then: whatever it decides in between is found by the check.
    r.begin(h);
    const auto now = boot_clock::now();
    core::run_end end;
    end.delivery = h;
    end.started = may_start(*h, now);
    if (end.started) {
      r.rewrite(c, deadline_of(*h, now));
      r.start(now);
      try {
        end.outcome = handle(d, c);
      } catch (...) {
        end.outcome = thrown(r.stopped());
      }
    }
    r.end();
    home_->ends.post(std::move(end));
  }
}

void consumer::impl::work_async(const async_handler& handle) {
  while (auto* h = home_->queue.take(false)) {
    auto r = std::make_shared<shell::run>(home_, true);
    r->begin(h);
    home_->add(*r);
    const auto now = boot_clock::now();
    if (!may_start(*h, now)) {
      home_->remove(*r);
      home_->queue.give_back();
      core::run_end end;
      end.delivery = h;
      end.started = false;
      home_->ends.post(std::move(end));
      continue;
    }
    auto c = r->make_context(deadline_of(*h, now));
    r->start(now);
    r->self = r;
    try {
      const shell::calling marked(*r);
      handle(shell::run::make_delivery(*r), std::move(c));
    } catch (...) {
      if (r->thrown_out) {
        r->settle(thrown(r->stopped()));
      }
      continue;  // otherwise the delivery is somebody's, and so is its settlement
    }
    if (r->thrown_out) {
      r->drop();  // destroyed by an exception that the handler itself caught
    }
  }
}

bool consumer::impl::may_start(const core::held& d, time_point now) const {
  return !home_->hold.load(std::memory_order_acquire) && now < d.limit && d.startable_until != nullptr &&
         now.time_since_epoch().count() < d.startable_until->load(std::memory_order_relaxed);
}

time_point consumer::impl::deadline_of(const core::held& d, time_point now) const {
  return std::min(d.limit, core::after(now, options_.attempt_timeout));
}

// The verdict on the exception that is being handled. After the stop token fired it mostly says just that.
outcome consumer::impl::thrown(bool stopped) const {
  const auto cls = stopped                              ? error_class::uncertain
                   : options_.unclassified_is_transient ? error_class::transient
                                                        : error_class::permanent;
  try {
    throw;
  } catch (const std::exception& e) {
    const char* what = e.what();
    return failure(cls, what != nullptr && *what != '\0' ? std::string(what) : readable(typeid(e).name()));
  } catch (...) {
    const auto* type = abi::__cxa_current_exception_type();
    return failure(cls, "unknown exception" + (type == nullptr ? std::string() : " (" + readable(type->name()) + ")"));
  }
}

}  // namespace onay
