// SPDX-License-Identifier: BSD-3-Clause
// What the library says to people: one line an event, "key=value" words, so that a person can read it and a
// program can take it apart:
//
//   bx: error worker=client peer=host7:7000 qp=0x11 request=send status=retry_exceeded detail="..."
//   hint="..."
//
// Lines are made when something fails for good (a lane, a handshake), never on the way of a message. Nothing
// here allocates. Where they go is a LogSink's matter; there is no global one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libbx/base/time.h"

namespace bx {

enum class LogLevel : std::uint8_t {
  error,  // something is no longer usable
  dump,   // a line of a dump that somebody asked for
};
std::string_view to_string(LogLevel level) noexcept;

class LogSink {
 public:
  // `line` has no line end and is valid during the call only.
  virtual void line(LogLevel level, std::string_view line) noexcept = 0;

 protected:
  ~LogSink() = default;
};

// Builds one line in place. Values with anything but letters, digits and ".:-_/#" are quoted, and what would
// end the quotes or the line is replaced by '?': a peer's words cannot forge a line. What does not fit is cut
// off.
class LogLine {
 public:
  static constexpr std::size_t kBytesMax = 512;

  explicit LogLine(LogLevel level) noexcept;
  // What the line is about, `depth` levels below the first: "  peer".
  LogLine& nest(int depth, std::string_view object) noexcept;
  LogLine& add(std::string_view key, std::string_view value) noexcept;
  LogLine& add(std::string_view key, std::uint64_t value) noexcept;
  [[nodiscard]] std::string_view text() const noexcept { return {text_.data(), size_}; }

 private:
  void put(std::string_view text) noexcept;
  std::array<char, kBytesMax> text_{};
  std::size_t size_ = 0;
};

// At most kBurst lines at once and one more each kEvery; counts those it keeps back. The time is the
// caller's.
class LogLimit {
 public:
  static constexpr std::uint32_t kBurst = 16;
  static constexpr Duration kEvery{1'000'000'000};

  // Whether a line may be written now. `suppressed` is how many were not since the last that was.
  [[nodiscard]] bool admit(Instant now, std::uint64_t& suppressed) noexcept;

 private:
  std::uint32_t left_ = kBurst;
  Instant refilled_{};
  std::uint64_t suppressed_ = 0;
};

// To standard error.
class StderrLog final : public LogSink {
 public:
  void line(LogLevel level, std::string_view line) noexcept override;
};

}  // namespace bx
