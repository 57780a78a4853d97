// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "records.hpp"

#include "draws.hpp"

#include <fmt/format.h>
#include <array>
#include <ostream>
#include <string_view>

namespace onay::sim {
namespace {

constexpr std::array<std::string_view, 8> cities{"Ankara", "Bursa",  "Edirne", "Izmir",
                                                 "Kars",   "Mersin", "Sivas",  "Van"};
constexpr std::array<std::string_view, 10> goods{"tea",    "coffee", "lamp",  "kettle", "notebook",
                                                 "carpet", "chair",  "radio", "honey",  "umbrella"};

}  // namespace

void write_records(std::ostream& out, std::uint64_t count, std::uint64_t seed) {
  for (std::uint64_t n = 1; n <= count; ++n) {
    const auto pick = [&](std::uint64_t question, std::uint64_t below) {
      return draw(seed, stream::records, n, question) % below;
    };
    std::uint64_t cents = 0;
    std::string lines;
    for (std::uint64_t line = 0, lines_wanted = 1 + pick(0, 4); line < lines_wanted; ++line) {
      const auto quantity = 1 + pick(10 + line, 5), price = 99 + pick(20 + line, 20'000);
      cents += quantity * price;
      lines += fmt::format(R"({}{{"item":"{}","quantity":{},"cents":{}}})", line == 0 ? "" : ",",
                           goods[pick(30 + line, goods.size())], quantity, price);
    }
    out << fmt::format(R"({{"id":"order-{:07}","customer":{},"city":"{}","total_cents":{},"lines":[{}]}})", n,
                       1000 + pick(1, 9000), cities[pick(2, cities.size())], cents, lines)
        << "\n";
  }
}

}  // namespace onay::sim
