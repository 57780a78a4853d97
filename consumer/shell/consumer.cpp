// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The application's side of a consumer: construction, and the states created, running, stopped. The I/O thread is in
// consumer_loop.cpp, the workers are in worker.cpp.
#include "shell/access.hpp"
#include "shell/clock.hpp"
#include "shell/consumer_impl.hpp"
#include "shell/options.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace onay {

namespace {

constexpr std::chrono::milliseconds status_patience(1000);
// A handler that stops its own consumer wants to go on, not to wait for a report.
constexpr std::chrono::milliseconds report_patience(200);
// Deliveries that wait at the workers beyond those that run, so that a worker never waits for the I/O thread. More
// would only be taken back more often.
constexpr std::uint32_t dispatch_ahead_max = 512;

// Whose thread this is, if it is one of a consumer's own.
thread_local const void* own_thread_of = nullptr;

core::consumer_config config_of(const consumer_options& o) {
  core::consumer_config c;
  c.logical_id = o.logical_id;
  c.instance = shell::random_bits();
  c.hash_seed = shell::random_bits();
  c.retry.attempts_max = o.attempts_max.bounded() ? std::optional(o.attempts_max.value()) : std::nullopt;
  c.retry.backoff = {o.backoff.base, o.backoff.cap, o.backoff.jitter};
  c.retry.retry_after_cap =
      o.backoff.retry_after_cap.bounded() ? std::optional(o.backoff.retry_after_cap.value()) : std::nullopt;
  c.retry.handler_is_idempotent = o.handler == idempotence::idempotent;
  c.bury = std::holds_alternative<discard>(o.dead_letters)   ? core::burial::discard
           : std::holds_alternative<collect>(o.dead_letters) ? core::burial::nowhere
                                                             : core::burial::dead_letter_link;
  c.concurrency = o.concurrency;
  c.dispatch_ahead = std::min(o.credit_max, dispatch_ahead_max);
  c.credit_max = o.credit_max;
  c.credit_bytes_max = o.credit_bytes_max.bytes;
  c.largest_message = shell::largest_message(o);
  c.inbox_max = o.inbox_max;
  c.dead_letters_max = o.dead_letters_max;
  c.result_max = o.result_max.bytes;
  c.attempt_timeout = o.attempt_timeout;
  c.age_max = o.age_max.bounded() ? std::optional(o.age_max.value()) : std::nullopt;
  c.abandon_after = o.abandon_after.bounded() ? std::optional(o.abandon_after.value()) : std::nullopt;
  if (c.bury == core::burial::nowhere) {
    c.retry.attempts_max.reset();  // a letter is tried until it is stored
    c.age_max.reset();
  }
  return c;
}

std::vector<std::string> all_addresses(const shell::socket_set& sources, const shell::dead_letter_link* letters) {
  auto all = sources.addresses();
  if (letters != nullptr) {
    all.insert(all.end(), letters->addresses().begin(), letters->addresses().end());
  }
  return all;
}

}  // namespace

consumer::impl::impl(consumer_options options, any_handler handle, zmq::context_t* context, shell::link_filter* filter,
                     shell::link_filter* dead_letter_filter)
    : options_(shell::validated(std::move(options), context == nullptr)),
      handle_(std::move(handle)),
      home_(std::make_shared<shell::workshop>(options_.concurrency + std::min(options_.credit_max, dispatch_ahead_max),
                                              options_.concurrency)),
      commands_(home_->bell),
      stop_callbacks_([this](std::vector<firing>& stops) {
        own_thread_of = this;
        for (auto& f : stops) {
          f.run->fire(f.generation);
        }
      }),
      own_context_(context != nullptr ? nullptr
                                      : shell::make_context(options_.io_threads, options_.endpoints.size() + 1)),
      sockets_(context != nullptr ? *context : *own_context_, options_.endpoints,
               shell::largest_frame(shell::largest_message(options_))),
      core_(config_of(options_), entropy_, shell::jitter(shell::random_bits())),
      link_(core_, sockets_, filter),
      letters_([&]() -> std::unique_ptr<shell::dead_letter_link> {
        const auto* to = std::get_if<dead_letter_to>(&options_.dead_letters);
        if (to == nullptr) {
          return nullptr;
        }
        return std::make_unique<shell::dead_letter_link>(context != nullptr ? *context : *own_context_, to->where,
                                                         options_.logical_id, shell::largest_message(options_),
                                                         dead_letter_filter);
      }()),
      addresses_(all_addresses(sockets_, letters_.get())) {
  const bool callable = std::visit([](const auto& h) { return static_cast<bool>(h); }, handle_);
  if (!callable) {
    throw configuration_error("handle", "{}", "it must be callable", "Pass a function, or a lambda, as the handler.");
  }
}

bool consumer::impl::on_own_thread() const { return own_thread_of == this; }

void consumer::impl::start() {
  const std::lock_guard lock(mutex_);
  if (stage_ != stage::created) {
    return;
  }
  // An asynchronous handler returns soon, so more threads than processors would only compete.
  const bool async = std::holds_alternative<async_handler>(handle_);
  const auto threads =
      async ? std::min(options_.concurrency, std::max(1U, std::thread::hardware_concurrency())) : options_.concurrency;
  try {
    for (std::uint32_t i = 0; i < threads; ++i) {
      workers_.emplace_back([self = shared_from_this()] {
        own_thread_of = self.get();
        self->work();
      });
    }
    // Set before the thread is there to read it.
    stage_ = stage::running;
    io_ = std::thread([self = shared_from_this()] { self->io_main(); });
  } catch (const std::system_error& e) {
    stage_ = stage::stopped;
    home_->queue.close();
    for (auto& w : workers_) {
      w.join();
    }
    workers_.clear();
    report_.clean = true;
    throw setup_error(std::string("cannot start a thread: ") + e.what() +
                      ". Lower concurrency, or raise the limit of threads; trying again needs a new consumer.");
  }
}

stop_report consumer::impl::run() {
  start();
  return wait_stopped();
}

stop_report consumer::impl::wait_stopped() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stage_ == stage::stopped; });
  return report_;
}

stop_report consumer::impl::stop(duration deadline) {
  request_stop(deadline);
  if (!on_own_thread()) {
    return wait_stopped();
  }
  auto so_far = shell::ask<stop_report>(
      commands_,
      [this](core::instant) {
        auto r = report();
        r.clean = false;  // it isn't over
        return r;
      },
      report_patience);
  if (so_far) {
    return *so_far;
  }
  const std::lock_guard lock(mutex_);
  return report_;
}

void consumer::impl::request_stop(duration deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (stage_ == stage::created) {
      stage_ = stage::stopped;
      report_.clean = true;
      // No thread has them: the addresses are free again from here on.
      sockets_.close(std::chrono::milliseconds(0));
      if (letters_) {
        letters_->close(std::chrono::milliseconds(0));
      }
      final_ = look();
      changed_.notify_all();
    }
    if (stage_ == stage::stopped) {
      return;
    }
  }
  const auto until = core::after(boot_clock::now(), std::max(deadline, duration::zero()));
  commands_.post([this, until](core::instant now) { begin_stop(now, until); });
}

void consumer::impl::pause() {
  home_->hold.store(true, std::memory_order_release);
  commands_.post([this](core::instant now) {
    home_->hold.store(true, std::memory_order_release);
    core_.pause();
    reclaim(now);
  });
}

void consumer::impl::resume() {
  commands_.post([this](core::instant) {
    core_.resume();
    home_->hold.store(core_.draining(), std::memory_order_release);
  });
}

consumer_status consumer::impl::status() {
  {
    const std::lock_guard lock(mutex_);
    if (stage_ == stage::created) {
      return look();  // no other thread is there yet, and none can start while this lock is held
    }
  }
  auto answer = shell::ask<consumer_status>(
      commands_, [this](core::instant) { return look(); }, status_patience);
  const std::lock_guard lock(mutex_);
  if (answer) {
    final_ = std::move(*answer);
  } else if (stage_ == stage::stopped) {
    final_.running = home_->queue.running();  // handlers that the stop has left behind
    final_.why_idle = final_.running > 0 ? idle_reason::busy : idle_reason::stopped;
  }
  return final_;
}

void consumer::impl::destroy() {
  request_stop(duration::zero());
  if (on_own_thread()) {
    // Nobody can wait here for the thread that it is. All of them hold this object; the last one takes it along.
    const std::lock_guard lock(mutex_);
    for (auto& w : workers_) {
      w.detach();
    }
    if (io_.joinable()) {
      io_.detach();
    }
    return;
  }
  wait_stopped();
  if (io_.joinable()) {
    io_.join();
  }
  for (auto& w : workers_) {
    w.join();
  }
  stop_callbacks_.finish();
}

// --- the public class ---

consumer::consumer(consumer_options options, onay::handler handle)
    : impl_(std::make_shared<impl>(std::move(options), std::move(handle), nullptr, nullptr, nullptr)) {}
consumer::consumer(consumer_options options, async_handler handle)
    : impl_(std::make_shared<impl>(std::move(options), std::move(handle), nullptr, nullptr, nullptr)) {}
consumer::consumer(zmq::context_t& context, consumer_options options, onay::handler handle)
    : impl_(std::make_shared<impl>(std::move(options), std::move(handle), &context, nullptr, nullptr)) {}
consumer::consumer(zmq::context_t& context, consumer_options options, async_handler handle)
    : impl_(std::make_shared<impl>(std::move(options), std::move(handle), &context, nullptr, nullptr)) {}
consumer::consumer(std::shared_ptr<impl> i) : impl_(std::move(i)) {}
consumer::~consumer() { impl_->destroy(); }

stop_report consumer::run() { return impl_->run(); }
void consumer::start() { impl_->start(); }
stop_report consumer::stop(duration deadline) { return impl_->stop(deadline); }
void consumer::request_stop(duration deadline) { impl_->request_stop(deadline); }
void consumer::pause() { impl_->pause(); }
void consumer::resume() { impl_->resume(); }
consumer_status consumer::status() const { return impl_->status(); }
std::vector<std::string> consumer::addresses() const { return impl_->addresses(); }

namespace shell {

std::unique_ptr<consumer> access::make(consumer_options options, handler handle, link_filter& filter,
                                       link_filter* dead_letters, zmq::context_t* context) {
  return std::unique_ptr<consumer>(new consumer(
      std::make_shared<consumer::impl>(std::move(options), std::move(handle), context, &filter, dead_letters)));
}

std::unique_ptr<consumer> access::make(consumer_options options, async_handler handle, link_filter& filter,
                                       link_filter* dead_letters, zmq::context_t* context) {
  return std::unique_ptr<consumer>(new consumer(
      std::make_shared<consumer::impl>(std::move(options), std::move(handle), context, &filter, dead_letters)));
}

}  // namespace shell
}  // namespace onay
