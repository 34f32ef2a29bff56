// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/ledger.h"

#include <fmt/format.h>

#include "harness/workload/pattern.h"

namespace bx::harness {
namespace {

std::string_view to_string(CallState state) {
  switch (state) {
    case CallState::planned:
      return "never started";
    case CallState::started:
      return "under way";
    case CallState::answered:
      return "answered";
    case CallState::failed:
      return "failed";
  }
  return "unknown";
}

std::int64_t to_ns(Instant instant) {
  return instant.time_since_epoch().count();
}

}  // namespace

std::string Ledger::describe(std::uint64_t call) const {
  const CallRecord& record = records_[call];
  return fmt::format("call {} from host{} to host{}", call, record.client, record.server);
}

void Ledger::on_start(std::uint64_t call, std::uint32_t client, std::uint32_t server, Instant now) {
  CallRecord& record = records_[call];
  record.client = client;
  record.server = server;
  record.start = now;
  if (record.state != CallState::planned) {
    oracle_.breach(promise::kOnce, describe(call) + " was started twice by the harness");
  }
  record.state = CallState::started;
  ++started_;
}

void Ledger::on_request(std::uint64_t call, std::uint32_t server, std::span<const std::byte> payload,
                        Instant now) {
  if (call >= records_.size()) {
    return oracle_.breach(
        promise::kRightBytes,
        fmt::format("host{} got a request that names call {}, which does not exist", server, call));
  }
  CallRecord& record = records_[call];
  if (scope_ == LedgerScope::whole && (record.state == CallState::planned || record.server != server)) {
    oracle_.breach(promise::kRightBytes, fmt::format("host{} got the request of {}", server, describe(call)));
  }
  if (record.served) oracle_.breach(promise::kOnce, describe(call) + " reached its server twice");
  record.served = true;
  record.served_at = now;
  record.served_by = server;
  if (checks_ == ByteChecks::off) return;
  if (const auto wrong = find_wrong_byte(PatternOf::request, call, payload)) {
    oracle_.breach(promise::kRightBytes,
                   fmt::format("the request of {} is wrong from byte {} of {}", describe(call),
                               *wrong + kRequestHeaderBytes, payload.size() + kRequestHeaderBytes));
  }
}

bool Ledger::complete(std::uint64_t call, Instant now, CallState state) {
  CallRecord& record = records_[call];
  if (record.state != CallState::started) {
    oracle_.breach(promise::kOnce,
                   fmt::format("{} completed when it was {}", describe(call), to_string(record.state)));
    return false;
  }
  record.state = state;
  record.end = now;
  ++completed_;
  digest_.add(call);
  digest_.add(static_cast<std::uint64_t>(to_ns(now)));
  return true;
}

void Ledger::on_answer(std::uint64_t call, Instant now, std::span<const std::byte> payload,
                       std::uint64_t expected_bytes) {
  if (!complete(call, now, CallState::answered)) return;
  digest_.add(payload.size());
  ++answered_;
  answer_bytes_ += payload.size();
  if (scope_ == LedgerScope::whole && !records_[call].served) {
    oracle_.breach(promise::kOnce,
                   describe(call) + " was answered, but its request never reached the server");
  }
  if (payload.size() != expected_bytes) {
    return oracle_.breach(promise::kRightBytes, fmt::format("the answer of {} has {} bytes instead of {}",
                                                            describe(call), payload.size(), expected_bytes));
  }
  if (checks_ == ByteChecks::off) return;
  if (const auto wrong = find_wrong_byte(PatternOf::answer, call, payload)) {
    oracle_.breach(promise::kRightBytes, fmt::format("the answer of {} is wrong from byte {} of {}",
                                                     describe(call), *wrong, payload.size()));
  }
}

void Ledger::on_failure(std::uint64_t call, Instant now, const Error& error) {
  if (!complete(call, now, CallState::failed)) return;
  digest_.add(~std::uint64_t{0} - static_cast<std::uint64_t>(error.code));
  ++errors_[static_cast<std::size_t>(error.code)];
  if (scope_ == LedgerScope::part) codes_[call] = error.code;
  if (tolerated_[static_cast<std::size_t>(error.code)]) return;
  oracle_.breach(promise::kCallFailed, fmt::format("{}: {} ({}): {}", describe(call), to_string(error.code),
                                                   to_string(error.scope), error.detail));
}

Result<> Ledger::adopt_call(std::uint64_t call, const CallRecord& seen, ErrorCode code) {
  if (call >= records_.size()) {
    return fail(ErrorCode::protocol, ErrorScope::operation, "a call that does not exist");
  }
  CallRecord& record = records_[call];
  if (record.state != CallState::planned || seen.state == CallState::planned || seen.end < seen.start) {
    return fail(ErrorCode::protocol, ErrorScope::operation,
                "a call that was told of twice, or ran backwards");
  }
  const CallRecord served = record;
  record = seen;
  record.served = served.served;
  record.served_at = served.served_at;
  record.served_by = served.served_by;
  ++started_;
  if (seen.state == CallState::started) return {};
  ++completed_;
  if (seen.state == CallState::answered) ++answered_;
  if (seen.state == CallState::failed) ++errors_[static_cast<std::size_t>(code)];
  return {};
}

Result<> Ledger::adopt_request(std::uint64_t call, std::uint32_t server, Instant at) {
  if (call >= records_.size() || records_[call].served) {
    return fail(ErrorCode::protocol, ErrorScope::operation,
                "a request that does not exist, or two servers had");
  }
  records_[call].served = true;
  records_[call].served_at = at;
  records_[call].served_by = server;
  return {};
}

void Ledger::hold_together(const std::function<bool(std::uint32_t server)>& lost) {
  for (std::uint64_t call = 0; call < records_.size(); ++call) {
    const CallRecord& record = records_[call];
    if (record.state == CallState::planned) continue;
    if (record.served && record.served_by != record.server) {
      oracle_.breach(promise::kRightBytes,
                     fmt::format("host{} got the request of {}", record.served_by, describe(call)));
    } else if (!record.served && record.state == CallState::answered && !lost(record.server)) {
      oracle_.breach(promise::kOnce,
                     describe(call) + " was answered, but its request never reached the server");
    }
  }
}

void Ledger::close() {
  std::uint64_t never_started = 0;
  for (std::uint64_t call = 0; call < records_.size(); ++call) {
    const CallRecord& record = records_[call];
    if (record.state == CallState::planned) ++never_started;
    if (record.state != CallState::started) continue;
    oracle_.breach(
        promise::kFinished,
        fmt::format("{} is unfinished: started at {} ns, its request {}", describe(call), to_ns(record.start),
                    record.served ? "was served" : "never reached the server"));
  }
  if (never_started != 0) {
    oracle_.breach(promise::kFinished,
                   fmt::format("{} of {} calls were never started", never_started, records_.size()));
  }
}

}  // namespace bx::harness
