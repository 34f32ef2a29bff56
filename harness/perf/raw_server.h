// SPDX-License-Identifier: GPL-2.0-only
// The passive end of the raw measurement: takes one client, answers its SENDs where that is asked for, and
// keeps its receive queue full.
#pragma once

#include "harness/perf/raw_end.h"

namespace bx::harness {

class RawServer final : public RawEnd, private fabric::StreamAcceptor {
 public:
  explicit RawServer(fabric::Host& host) : RawEnd(host) {}
  // False if it cannot; see error(). The reactor is stopped when the client has finished or is gone.
  bool listen();
  // The client has measured all it wanted.
  [[nodiscard]] bool finished() const noexcept { return finished_; }

 private:
  void on_accept(std::unique_ptr<fabric::Stream> stream) noexcept override;
  void on_message(const RawMessage& message) override;
  void on_completion(const fabric::Completion& completion) override;
  void on_closed() override;

  std::unique_ptr<fabric::Listener> listener_;
  RawMessage point_{};
  bool finished_ = false;
};

}  // namespace bx::harness
