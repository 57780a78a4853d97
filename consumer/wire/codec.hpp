// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Turns the protocol's commands into bytes and back, and knows nothing else. docs/protocol.md has the grammar.
#pragma once

#include "core/frames.hpp"

#include <onay/dead_letter.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onay::wire {

// Appends nothing: replaces `out`. `out` keeps its capacity, so one buffer serves a whole loop.
void encode(const core::frame& f, std::string& out);

// What could be read of a frame that can't be read: enough to answer it.
struct unreadable {
  std::uint8_t type = 0;  // 0: not even that
  std::optional<core::session_id> session;
  std::string text;  // for people: which field, what was expected. Never bytes of the frame.
};

inline constexpr std::size_t logical_id_size_max = 255;

// What one frame may hold in any case, however short its items are. A reader that takes such a frame and keeps within
// four times its size plus 1 MiB of memory refuses denser ones, so a writer splits there. Plain ranges: 65,536 a list
// and 80,000 a frame.
inline constexpr std::size_t deliveries_per_frame = 2'048;
inline constexpr std::size_t settlements_per_frame = 16'384;  // `others` and `late` together
inline constexpr std::size_t answers_per_frame = 4'096;       // of `SETTLED`, the same

struct decode_limits {
  std::uint64_t ranges_max = 65'536;    // per list
  std::uint64_t items_max = 1U << 20U;  // deliveries, settlements, answers per frame
  std::uint32_t text_max = 1024;        // error texts; longer ones are cut when encoding and refused when decoding
};

// Reads one command into `out`. Views in `out` point into `bytes`. Reuses the vectors of `out` where the command is of
// the same type as what it held. Counts, sizes and nesting are checked before anything is allocated; memory taken is at
// most proportional to `bytes`. Unknown trailing fields are ignored; bytes after the command are not.
// A DELIVER whose frame is sound but one of whose documents isn't decodes; that item's `state` says so.
[[nodiscard]] std::optional<unreadable> decode(std::string_view bytes, core::frame& out,
                                               const decode_limits& limits = {});

// Headers as the document carries them: a flat array of name, value, name, value.
[[nodiscard]] std::string encode_headers(std::span<const header> headers);
// False if `bytes` isn't that.
[[nodiscard]] bool decode_headers(std::string_view bytes, std::vector<header_view>& out);

// A dead letter's payload. `headers` is encoded as above.
struct dead_letter_parts {
  message_id id;
  std::string_view origin;
  reason why = reason::none;
  const retry_record* record = nullptr;
  std::string_view headers;
  std::string_view payload;
};
void encode_dead_letter(const dead_letter_parts& parts, std::string& out);
// The operation key of a dead letter: its message id, 24 bytes big-endian.
[[nodiscard]] std::string dead_letter_key(const message_id& id);

}  // namespace onay::wire
