// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "broker-sim/audit.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <initializer_list>

using namespace onay::sim;

namespace {

const death killed{death::cause::killed, 1025};

struct told {
  std::uint64_t message;
  ending end;
};

// A run of ten messages, told in a few words. Time passes by one millisecond an event.
class story {
 public:
  explicit story(audit_input in = {}) {
    in.keys = &keys_;
    if (in.deaths.empty()) in.deaths.resize(3);
    audit_.emplace(std::move(in));
  }

  story& wait(std::uint32_t ms) {
    at_ += ms * 10;
    return *this;
  }
  story& start(std::uint64_t id, std::uint16_t life = 0, std::uint32_t age_ms = 0) {
    return say({.id = id, .at = at_ += 10, .age_ms = age_ms, .kind = event_kind::start, .life = life});
  }
  story& effect(std::uint64_t id, std::uint16_t life = 0) { return end(event_kind::effect, id, life); }
  story& failed(std::uint64_t id, std::uint16_t life = 0) { return end(event_kind::failed, id, life); }
  story& refused(std::uint64_t id, std::uint16_t life = 0) { return end(event_kind::refused, id, life); }
  story& done(std::uint64_t id, std::uint16_t life = 0) { return start(id, life).effect(id, life); }
  story& letter_for(std::uint64_t id, const char* why, const std::string& name = {}) {
    audit_->add(
        letter{.id = name.empty() ? std::to_string(id) : name, .operation_key = std::to_string(id), .why = why});
    return *this;
  }
  audit_result judge(std::initializer_list<told> endings) {
    receipt_book book(10);
    for (const auto& [message, end] : endings) book.assume(message, end);
    return audit_->judge(book);
  }

 private:
  story& say(const event& e) {
    audit_->add(e);
    return *this;
  }
  story& end(event_kind kind, std::uint64_t id, std::uint16_t life) {
    return say({.id = id, .at = at_ += 10, .kind = kind, .life = life});
  }

  key_catalog keys_{10};
  std::optional<audit> audit_;
  std::uint32_t at_ = 1000;
};

bool complains(const audit_result& r, const std::string& word) {
  return std::any_of(r.problems.begin(), r.problems.end(),
                     [&](const std::string& text) { return text.find(word) != std::string::npos; });
}

}  // namespace

TEST_CASE("a message that was done once and accepted is fine") {
  const auto r = story().done(1).done(2).judge({{0, ending::accepted}, {1, ending::accepted}});
  CHECK(r.ok());
  CHECK(r.messages == 2);
  CHECK(r.accepted == 2);
  CHECK(r.handler_starts == 2);
  CHECK(r.starts_beyond_first == 0);
}

TEST_CASE("a message without a receipt is lost") {
  const auto r = story().done(1).judge({{0, ending::open}});
  CHECK(r.lost == 1);
  CHECK_FALSE(r.ok());
  CHECK(story().done(1).judge({{0, ending::unknown}}).lost == 1);
}

TEST_CASE("a message that was accepted without an effect is lost") {
  const auto r = story().start(1).failed(1).judge({{0, ending::accepted}});
  CHECK(r.lost == 1);
  CHECK(complains(r, "lost"));
}

TEST_CASE("a dead message without its letter is lost") {
  CHECK(story().start(1).refused(1).judge({{0, ending::dead_lettered}}).lost == 1);
  CHECK(story().start(1).refused(1).letter_for(1, "rejected").judge({{0, ending::dead_lettered}}).ok());
}

TEST_CASE("without an effect file effects are not missed") {
  CHECK(story({.effects_known = false}).judge({{0, ending::accepted}}).ok());
}

TEST_CASE("messages that were never sent don't count") {
  const auto r = story().judge({});
  CHECK(r.ok());
  CHECK(r.messages == 0);
}

TEST_CASE("a second effect in the same life is never excused") {
  const auto r = story({.deaths = {killed}}).done(1).done(1).judge({{0, ending::accepted}});
  CHECK(r.duplicate_effects == 1);
  CHECK(r.excused_duplicates == 0);
  CHECK_FALSE(r.ok());
}

TEST_CASE("a second effect is excused if the life of the first one was killed") {
  const auto r = story({.deaths = {killed, {}}}).done(1, 0).done(1, 1).judge({{0, ending::accepted}});
  CHECK(r.duplicate_effects == 1);
  CHECK(r.excused_duplicates == 1);
  CHECK(r.ok());
}

TEST_CASE("a second effect isn't excused because some other life was killed") {
  const auto r = story({.deaths = {{}, killed}}).done(1, 0).done(1, 1).judge({{0, ending::accepted}});
  CHECK(r.excused_duplicates == 0);
  CHECK_FALSE(r.ok());
}

TEST_CASE("a second effect isn't excused by a kill that came after it") {
  const audit_input late{.deaths = {{death::cause::killed, 9000}, {}}};
  CHECK_FALSE(story(late).done(1, 0).done(1, 1).judge({{0, ending::accepted}}).ok());
}

TEST_CASE("a second effect is excused by a cut around the first one") {
  // The first effect is at 1020, the second one at 1040.
  const auto with_cut = [](std::uint32_t at) {
    return story({.cuts = {at}, .cut_reach = 100}).done(1, 0).done(1, 1).judge({{0, ending::accepted}});
  };
  CHECK(with_cut(1030).ok());
  CHECK(with_cut(950).ok());
  CHECK_FALSE(with_cut(900).ok());
  CHECK_FALSE(with_cut(1050).ok());
}

TEST_CASE("accepted and dead-lettered at once is noticed") {
  const auto r = story().start(1).refused(1).done(1).letter_for(1, "rejected").judge({{0, ending::accepted}});
  CHECK(r.both_ends == 1);
  CHECK_FALSE(r.ok());
}

TEST_CASE("an effect of a dead-lettered message needs a kill or a cut") {
  const auto tell = [](audit_input in) {
    return story(std::move(in))
        .done(1, 0)
        .start(1, 1)
        .refused(1, 1)
        .letter_for(1, "rejected")
        .judge({{0, ending::dead_lettered}});
  };
  CHECK_FALSE(tell({}).ok());
  CHECK(tell({.deaths = {killed, {}}}).ok());
}

TEST_CASE("a letter that is stored twice is noticed") {
  const auto r = story()
                     .start(1)
                     .refused(1)
                     .letter_for(1, "rejected", "a-b-1")
                     .letter_for(1, "rejected", "a-b-1")
                     .judge({{0, ending::dead_lettered}});
  CHECK(r.repeated_letters == 1);
  CHECK_FALSE(r.ok());
}

TEST_CASE("a letter needs its reason") {
  const audit_input three{.attempts_max = 3};
  CHECK_FALSE(story().start(1).failed(1).letter_for(1, "rejected").judge({{0, ending::dead_lettered}}).ok());
  CHECK_FALSE(
      story(three).start(1).failed(1).letter_for(1, "attempts_exhausted").judge({{0, ending::dead_lettered}}).ok());
  CHECK(story(three)
            .start(1)
            .failed(1)
            .start(1)
            .failed(1)
            .start(1)
            .failed(1)
            .letter_for(1, "attempts_exhausted")
            .judge({{0, ending::dead_lettered}})
            .ok());
}

TEST_CASE("only poison may be dead-lettered for crashing its worker") {
  const auto tell = [](std::vector<std::uint64_t> poison, death last) {
    return story({.deaths = {killed, last}, .attempts_max = 2, .poison = std::move(poison)})
        .start(1, 0)
        .start(1, 1)
        .letter_for(1, "attempts_exhausted")
        .judge({{0, ending::dead_lettered}});
  };
  const death crashed{death::cause::crashed, 1040};
  CHECK(tell({1}, crashed).ok());
  CHECK(complains(tell({2}, crashed), "near a poison one"));
  // Killed from outside while it ran alone: it can't be told from poison.
  CHECK(tell({2}, killed).ok());
}

TEST_CASE("a kill may take an attempt before it starts") {
  const audit_input disturbed{.deaths = {killed, {}}, .attempts_max = 3};
  CHECK(
      story(disturbed).start(1).failed(1).letter_for(1, "attempts_exhausted").judge({{0, ending::dead_lettered}}).ok());
}

TEST_CASE("runs of one key that overlap in a life are noticed") {
  CHECK(story().start(1).start(1).effect(1).judge({{0, ending::accepted}}).overlaps == 1);
  CHECK(story().start(1, 0).start(1, 1).effect(1, 1).judge({{0, ending::accepted}}).overlaps == 0);
  CHECK(story().start(1).failed(1).start(1).effect(1).judge({{0, ending::accepted}}).overlaps == 0);
}

TEST_CASE("a start past the age limit is noticed") {
  const audit_input second{.age_max_ms = 1000};
  CHECK(story(second).start(1, 0, 1000).effect(1).judge({{0, ending::accepted}}).late_starts == 0);
  CHECK(story(second).start(1, 0, 1001).effect(1).judge({{0, ending::accepted}}).late_starts == 1);
}

TEST_CASE("the age is measured by the audit itself as well") {
  std::vector<std::uint32_t> sent(10, 0);  // the first start comes 101 ms later
  CHECK(story({.age_max_ms = 10, .sent_at = &sent}).done(1).judge({{0, ending::accepted}}).late_starts == 0);
  // With slack for the transit and a busy machine: 250 ms.
  CHECK(story({.age_max_ms = 10, .sent_at = &sent}).wait(300).done(1).judge({{0, ending::accepted}}).late_starts == 1);
}

TEST_CASE("waiting is the time from a failure to the next start") {
  const auto r = story().start(1).failed(1).done(1).done(2).judge({{0, ending::accepted}, {1, ending::accepted}});
  CHECK(r.waits == 1);
  CHECK(r.waiting_ms == 1);  // ten ticks
  CHECK(r.starts_beyond_first == 1);
  CHECK(r.failed_attempts == 1);
}

TEST_CASE("keys that nobody sent are noticed") {
  CHECK(story().start(11).judge({}).unknown_keys == 1);
  CHECK(story().letter_for(11, "rejected").judge({}).unknown_keys == 1);
}
