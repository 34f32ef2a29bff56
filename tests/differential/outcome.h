// SPDX-License-Identifier: BSD-3-Clause
// What a program led to on one fabric, and how two of those are compared.
//
// Compared: for each queue pair its send completions in order and its receive completions in order, what
// calls returned, and all memory after each step. Free, because verbs leave it free: the order between queue
// pairs and between sends and receives, `byte_len` of what returns no data, everything but the status of a
// completion in error, and bytes of a buffer whose request ended in error (the world overwrites them).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libbx/base/result.h"
#include "libbx/fabric/types.h"
#include "tests/differential/program.h"

namespace bx::differential {

enum class Queue : std::uint8_t { send, receive };

// One queue of one queue pair.
struct Stream {
  std::uint8_t connection = 0;
  Side side{};
  Queue queue{};
  friend auto operator<=>(const Stream&, const Stream&) = default;
};

struct Event {
  std::uint32_t id = 0;  // of the request or receive
  fabric::WcStatus status{};
  // Only of a success; else as initialised.
  fabric::WcOpcode opcode{};
  std::uint32_t length = 0;
  std::uint32_t imm = 0;
  bool has_imm = false;
  Fault fault = Fault::none;  // of the request or receive, as the generator meant it
  friend bool operator==(const Event&, const Event&) = default;
};

struct Call {
  std::uint32_t action = 0;
  std::string returned{};
  friend bool operator==(const Call&, const Call&) = default;
};

struct StepOutcome {
  std::map<Stream, std::vector<Event>> streams{};
  std::vector<Call> calls{};
  std::array<std::vector<std::uint64_t>, 2> memory{};  // a digest a slot, of each side
  std::vector<std::string> breaches{};                 // of what must hold whatever another fabric does
  [[nodiscard]] std::size_t completions() const noexcept;
};
using Outcome = std::vector<StepOutcome>;

struct Difference {
  std::size_t step = 0;
  std::string what{};
  // `what` without its numbers: the same for a smaller program that shows the same.
  [[nodiscard]] std::string kind() const;
};

// Knows how one fabric differs from the standard: see expectation.h.
class Tolerance {
 public:
  virtual ~Tolerance() = default;
  // Whether two completions that are not equal are as they are known to be.
  [[nodiscard]] virtual bool accepts(const Stream& stream, const Event& ours, const Event& theirs) = 0;
  // The same of one that only the other fabric has, behind all of its stream.
  [[nodiscard]] virtual bool accepts_surplus(const Stream& stream, const Event& theirs) = 0;
  // Whether a completion that both have is what only the other one is known to have: ours has become wrong.
  [[nodiscard]] virtual bool is_wrong_on_both(const Stream& stream, const Event& event) const = 0;
};

// Nothing if they agree. `racy` steps are compared as verbs allow: see Step.
std::optional<Difference> compare(const Program& program, const Outcome& ours, const Outcome& theirs,
                                  Tolerance* tolerance = nullptr);

std::string to_string(const Stream& stream);
std::string to_string(const Event& event);
std::string to_string(const StepOutcome& outcome);

}  // namespace bx::differential
