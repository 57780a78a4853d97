// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "broker-sim/load.hpp"

#include "support/catch.hpp"

#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace onay::sim;

namespace {

class text_file {
 public:
  explicit text_file(const std::string& text) {
    path_ = (std::filesystem::temp_directory_path() / "onay-load-XXXXXX").string();
    ::close(::mkstemp(path_.data()));
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~text_file() { std::filesystem::remove(path_); }
  text_file(const text_file&) = delete;
  text_file& operator=(const text_file&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string refusal(const std::string& text) {
  const text_file file(text);
  try {
    const load l({.input = file.path(), .key_field = "id"});
  } catch (const bad_input& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("made-up messages have numbered keys and the wanted size") {
  load l({.messages = 3, .payload = 100});
  CHECK(l.size() == 3);
  CHECK(l.current().key.bytes() == "m000000001");
  CHECK(l.current().payload.size() == 100);
  const auto first = l.current().payload;
  l.advance();
  CHECK(l.current().key.bytes() == "m000000002");
  CHECK(l.current().payload != first);
  CHECK(load({.messages = 1, .payload = 0}).current().payload.empty());
}

TEST_CASE("lines are messages, numbered from one") {
  const text_file file("alpha\n\ngamma");
  load l({.input = file.path()});
  CHECK(l.size() == 3);
  CHECK(l.current().key.bytes() == "1");
  CHECK(l.current().payload == "alpha");
  l.advance();
  CHECK(l.current().payload.empty());
  l.advance();
  CHECK(l.current().key.bytes() == "3");
  CHECK(l.current().payload == "gamma");
  CHECK(load({.messages = 2, .input = file.path()}).size() == 2);
}

TEST_CASE("keys are taken from a field of the lines") {
  const text_file file("{\"id\":\"a\",\"x\":1}\n{\"id\":17}\n{\"id\":\"a\",\"x\":1}\n");
  load l({.input = file.path(), .key_field = "id"});
  CHECK(l.size() == 3);
  CHECK(l.keys().operations() == 2);
  CHECK(l.current().key.bytes() == "a");
  CHECK(l.current().payload == "{\"id\":\"a\",\"x\":1}");
  l.advance();
  CHECK(l.current().key.bytes() == "17");
  CHECK(l.keys().find(hash_text("17")) == l.keys().operation_of(1));
}

TEST_CASE("a line without a usable key is named") {
  CHECK(refusal("{\"id\":\"a\"}\n[]\n").find("line 2 isn't a JSON object") != std::string::npos);
  CHECK(refusal("{\"id\":\"a\"}\n{\"x\":1}\n").find("line 2 has no field \"id\"") != std::string::npos);
  CHECK(refusal("{\"id\":\"\"}\n").find("line 1") != std::string::npos);
  CHECK(refusal("{\"id\":1.5}\n").find("line 1") != std::string::npos);
  CHECK(refusal("{\"id\":\"" + std::string(256, 'k') + "\"}\n").find("line 1") != std::string::npos);
  CHECK_FALSE(refusal("").empty());
  CHECK(refusal("{\"id\":\"a\"}\n").empty());
}
