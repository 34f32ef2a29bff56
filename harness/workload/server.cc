// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/server.h"

#include <fmt/format.h>

#include "harness/workload/pattern.h"

namespace bx::harness {

void Server::handle(Request request) noexcept {
  const std::span<const std::byte> payload = request.payload().bytes();
  const auto header = read_request_header(payload);
  if (!header) {
    oracle_.breach(promise::kRightBytes, fmt::format("host{} got a request of {} bytes; the shortest has {}",
                                                     host_, payload.size(), kRequestHeaderBytes));
    return request.reject(ErrorCode::protocol);
  }
  ledger_.on_request(header->call, host_, payload.subspan(kRequestHeaderBytes),
                     clock_ != nullptr ? clock_->now() : Instant{});
  request.payload() = {};  // its receive slot is free while the answer is made
  Result<Buffer> answer = request.allocate(header->answer_bytes);
  if (!answer) return request.reject(answer.error().code);
  fill_pattern(PatternOf::answer, header->call, answer->bytes());
  request.reply(std::move(*answer));
}

}  // namespace bx::harness
