// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Makes senders and consumers with what the public constructors don't offer. For tests and the simulator.
#pragma once

#include "shell/link_filter.hpp"

#include <onay/consumer.hpp>
#include <onay/sender.hpp>

#include <memory>

namespace onay::shell {

struct access {
  // The filters must outlive the object. A null context makes one. `dead_letters`: of the consumer's own dead-letter
  // link; null for none.
  static std::unique_ptr<sender> make(sender_options options, link_filter& filter, zmq::context_t* context = nullptr);
  static std::unique_ptr<consumer> make(consumer_options options, handler handle, link_filter& filter,
                                        link_filter* dead_letters = nullptr, zmq::context_t* context = nullptr);
  static std::unique_ptr<consumer> make(consumer_options options, async_handler handle, link_filter& filter,
                                        link_filter* dead_letters = nullptr, zmq::context_t* context = nullptr);
};

}  // namespace onay::shell
