// SPDX-License-Identifier: BSD-3-Clause
// A stream at its two ends (bx/stream.h, wire/stream.h). Each end is in a table of its worker's while the
// application holds its handle or something of it is outstanding.
#pragma once

#include <bx/service.h>
#include <bx/stream.h>

#include <array>
#include <cstdint>
#include <optional>

#include "libbx/base/intrusive_list.h"
#include "libbx/core/slot_table.h"
#include "libbx/fabric/reactor.h"
#include "libbx/wire/stream.h"

namespace bx::engine {

class Worker;
struct InStream;

// A part that was asked for, or the caller's last word.
struct PullOp final : CallOp {
  void on_complete() noexcept override;
  InStream* stream = nullptr;
  bool asked = false;     // outstanding
  bool answered = false;  // and not read yet
};

// The caller's end. Part n is asked for by pulls[n % window], so parts are read in order, whatever order they
// come in.
// On the worker's `short_of_calls` while it has something to ask that found no place among the calls.
struct InStream : ListHook<> {
  InStream(Worker& owner, Session of_session, const StreamOptions& with) noexcept
      : worker(&owner), session(of_session), options(with) {
    for (PullOp& pull : pulls) pull.stream = this;
    farewell.stream = this;
  }
  Worker* worker;
  Session session;
  StreamOptions options;
  core::SlotHandle handle = 0;
  std::uint64_t number = 0;  // the service's name of the stream
  std::uint32_t next_asked = 0;
  std::uint32_t next_read = 0;
  std::array<PullOp, kStreamWindowMax> pulls;
  PullOp farewell;  // tells the service that nobody reads any more
  IntrusiveList<Waiter> reader;
  std::optional<Error> error;
  bool ended = false;
  bool dropped = false;       // the application's handle is gone
  bool farewell_due = false;  // it has not been asked yet

  [[nodiscard]] PullOp& pull(std::uint32_t n) noexcept { return pulls[n % options.window]; }
  [[nodiscard]] bool over() const noexcept { return ended || error.has_value(); }
};

// The service's end. The timer runs while the next part has not been asked for.
struct OutStream final : fabric::Timer {
  OutStream(Worker& owner, const RequestId& by) noexcept : worker(&owner), opened(by) {}
  void on_timer(Instant now) noexcept override;

  struct Pull {
    bool there = false;
    RequestId request;
  };
  Worker* worker;
  RequestId opened;  // the request that did
  core::SlotHandle handle = 0;
  std::uint32_t next = 0;                    // number of the part to be written next
  std::array<Pull, kStreamWindowMax> pulls;  // that wait for their part n, at n modulo their count
  IntrusiveList<Waiter> writer;
  bool writing = true;      // the service has not ended it
  bool reading = true;      // the caller has not been told the end, has not cancelled and is not gone
  std::uint8_t status = 0;  // how the service ended it
  Error error{};            // why the caller does not read

  [[nodiscard]] Pull& pull(std::uint32_t n) noexcept { return pulls[n % kStreamWindowMax]; }
};

}  // namespace bx::engine
