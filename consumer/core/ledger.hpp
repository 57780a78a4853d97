// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The sender's record of unsettled messages: numbers, keys, attempts, and which message is due next. It knows nothing
// of peers. In memory; a durable outbox writes the same rows beside it.
#pragma once

#include "core/frames.hpp"
#include "core/hash_index.hpp"
#include "core/indexed_heap.hpp"
#include "core/instant.hpp"
#include "core/prefetch.hpp"
#include "core/sequence_table.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace onay::core {

struct sender_session;

// One message as `send` took it, and everything the sender knows of it. Bytes and record share one allocation, because
// a million of them may wait (perf: at most 400 bytes beside key and payload).
struct stored_message {
  enum class place : std::uint8_t {
    ready,      // due; waits for credit
    parked,     // waits for its time
    delivered,  // named by an open tag of some session
    burying,    // its letter is on this sender's own dead-letter link
    settled,    // accepted late; an open tag elsewhere still names its number
  };

  // `hash`: of the key, by the ledger that the message is for.
  [[nodiscard]] static std::unique_ptr<stored_message> make(std::string_view key, std::uint64_t hash,
                                                            std::string_view headers, std::string_view payload) {
    const trailing bytes{key.size() + headers.size() + payload.size()};
    std::unique_ptr<stored_message> m(new (bytes) stored_message(key, headers, payload));
    m->key_hash = hash;
    return m;
  }
  static void operator delete(void* p) { ::operator delete(p); }

  [[nodiscard]] std::string_view key() const { return {bytes(), key_size}; }
  [[nodiscard]] std::string_view headers() const { return {bytes() + key_size, headers_size}; }
  [[nodiscard]] std::string_view payload() const { return {bytes() + key_size + headers_size, payload_size}; }
  [[nodiscard]] std::uint64_t size() const { return key_size + headers_size + payload_size; }

  const std::uint32_t key_size;
  const std::uint32_t headers_size;
  const std::uint64_t payload_size;

  std::uint64_t number = 0;
  std::uint64_t key_hash = 0;
  time_point born{};
  time_point limit = never;     // no attempt starts later
  time_point due{};             // parked: when
  std::uint32_t attempts = 0;   // counted handler starts
  std::uint32_t uncounted = 0;  // starts that were released; counted beyond twice the attempt limit
  place where = place::ready;
  bool condemned = false;
  bool suspect = false;           // was held by a peer that was lost
  bool may_have_started = false;  // a confirmed start of a handler that isn't idempotent was lost
  bool delivered_once = false;
  bool alone_in_frame = false;  // a frame that held it could not be read
  error_class last_error = error_class::none;
  reason why = reason::none;
  std::unique_ptr<std::string> error_text;
  utc_time first_attempt{};  // zero: none yet
  utc_time last_attempt{};
  utc_time born_utc{};

  // Whoever waits for the outcome; opaque here.
  std::shared_ptr<void> receipt;
  std::unique_ptr<std::vector<std::shared_ptr<void>>> joined;

  // The open tag that names it, while it is delivered, or settled with that tag still open.
  sender_session* holder = nullptr;
  std::uint64_t tag = 0;

  // Links of the ready list.
  stored_message* next = nullptr;
  std::uint32_t heap_index = 0xffffffff;

 private:
  // How many bytes follow the object in its allocation.
  struct trailing {
    std::size_t bytes;
  };
  static void* operator new(std::size_t size, trailing extra) { return ::operator new(size + extra.bytes); }
  static void operator delete(void* p, trailing) { ::operator delete(p); }

  stored_message(std::string_view key, std::string_view headers, std::string_view payload)
      : key_size(std::uint32_t(key.size())), headers_size(std::uint32_t(headers.size())), payload_size(payload.size()) {
    auto* at = reinterpret_cast<char*>(this + 1);
    for (auto part : {key, headers, payload}) {
      if (!part.empty()) {
        std::memcpy(at, part.data(), part.size());
      }
      at += part.size();
    }
  }
  [[nodiscard]] const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
};

class ledger {
 public:
  explicit ledger(std::uint64_t hash_seed) : seed_(hash_seed) {}

  // --- getters ---
  [[nodiscard]] std::uint64_t lowest_held() const;  // the next number if nothing is held
  [[nodiscard]] std::size_t held() const { return by_number_.size(); }
  [[nodiscard]] std::size_t ready() const { return ready_count_; }
  [[nodiscard]] std::size_t parked() const { return parked_.size(); }
  [[nodiscard]] std::size_t condemned() const { return condemned_; }
  [[nodiscard]] std::uint64_t ready_bytes() const { return ready_bytes_; }
  stored_message* find(std::uint64_t number);
  // The hash of a key, which a message has to have when it comes here. Any thread.
  [[nodiscard]] std::uint64_t hash(std::string_view key) const;
  // Of a message that will be looked up soon and is loaded itself.
  void prefetch_lookup(const stored_message& m) const { by_key_.prefetch(m.key_hash); }
  // The held message with the key of `m`; null if there is none.
  stored_message* find_same_key(const stored_message& m);
  [[nodiscard]] retry_record record_of(const stored_message& m, instant now, final_state state) const;

  // --- commands ---
  // Gives it a number; it is ready. `find_same_key` must have found nothing.
  stored_message* add(std::unique_ptr<stored_message> m);
  // The oldest ready message: null if none.
  stored_message* front();
  void pop_front();                              // it is delivered
  void make_ready(stored_message* m);            // from delivered or parked
  void park(stored_message* m, time_point due);  // from delivered
  // Parks without a time (`never`) what is ready but condemned or past its limit; gives the numbers.
  void set_overdue_aside(time_point now, std::vector<std::uint64_t>& numbers);
  void condemn(stored_message* m, reason why, error_class cls, std::string_view text);
  void bury(stored_message* m);      // from parked: on its way over the sender's own link
  void settle(stored_message* m);    // the key may be sent anew; the number is held until `remove`
  void remove(stored_message* m);    // of a settled one: frees it
  void handle_time(time_point now);  // parked messages that are due become ready
  [[nodiscard]] time_point next_due() const;
  // Every held message by rising number.
  template <class F>
  void for_each(F&& visit) {
    by_number_.for_each([&](std::uint64_t, entry& e) { visit(*e.message); });
  }
  static void note_attempt(stored_message& m, utc_time at);

  // Of a message that will be settled soon and is loaded itself.
  void prefetch_settling(const stored_message& m) const {
    by_key_.prefetch(m.key_hash);
    prefetch(m.receipt.get());
  }

  // Removed ones that are small, up to `removed_max`: for the thread that allocated them to free. An allocator is at
  // its slowest where one thread allocates what another one frees.
  std::vector<std::unique_ptr<stored_message>> removed;
  static constexpr std::size_t removed_max = 1024;
  static constexpr std::uint64_t removed_bytes_max = 4096;  // of one

 private:
  struct entry {
    std::unique_ptr<stored_message> message;
    explicit operator bool() const { return message != nullptr; }
  };

  struct older {
    bool operator()(const stored_message& a, const stored_message& b) const { return a.number < b.number; }
  };
  struct sooner {
    bool operator()(const stored_message& a, const stored_message& b) const {
      return a.due != b.due ? a.due < b.due : a.number < b.number;
    }
  };

  void take_from_where_it_is(stored_message* m);

  const std::uint64_t seed_;
  std::uint64_t last_number_ = 0;
  sequence_table<entry> by_number_;
  hash_index<stored_message*> by_key_;
  // Fresh messages come in rising order and need no more than a list; those that come back are older and few, a heap.
  stored_message* fresh_first_ = nullptr;
  stored_message* fresh_last_ = nullptr;
  indexed_heap<stored_message, older> again_;
  indexed_heap<stored_message, sooner> parked_;
  std::size_t ready_count_ = 0;
  std::uint64_t ready_bytes_ = 0;
  std::size_t condemned_ = 0;
};

}  // namespace onay::core
