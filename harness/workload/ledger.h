// SPDX-License-Identifier: GPL-2.0-only
// What became of every planned call. Each call goes planned -> started -> served -> answered, each step once;
// anything else is a breach. With a process for each host every one of them keeps the part that it sees, a
// call's client or its server, and the coordinator puts the parts together (adopt...) and holds them against
// each other.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/measure/oracle.h"
#include "libbx/base/digest.h"
#include "libbx/base/result.h"
#include "libbx/base/time.h"

namespace bx::harness {

inline constexpr std::size_t kErrorCodes = static_cast<std::size_t>(kErrorCodeLast) + 1;

enum class CallState : std::uint8_t { planned, started, answered, failed };

struct CallRecord {
  Instant start{};
  Instant end{};
  Instant served_at{};       // when its request reached the server
  std::uint32_t client = 0;  // host numbers
  std::uint32_t server = 0;
  std::uint32_t served_by = 0;  // the server that had the request
  CallState state = CallState::planned;
  bool served = false;  // its request reached the server
};

enum class ByteChecks : std::uint8_t { off, on };
// Whether clients and servers tell the same ledger.
enum class LedgerScope : std::uint8_t { whole, part };

class Ledger {
 public:
  // ByteChecks::off: payloads may have any bytes, for the network moves only their lengths.
  Ledger(std::uint64_t calls, Oracle& oracle, ByteChecks checks = ByteChecks::on,
         LedgerScope scope = LedgerScope::whole)
      : records_(calls), oracle_(oracle), checks_(checks), scope_(scope) {}

  void on_start(std::uint64_t call, std::uint32_t client, std::uint32_t server, Instant now);
  // At the server: the request as it arrived.
  void on_request(std::uint64_t call, std::uint32_t server, std::span<const std::byte> payload,
                  Instant now = {});
  // At the client: the answer as it arrived, to be `expected_bytes` long.
  void on_answer(std::uint64_t call, Instant now, std::span<const std::byte> payload,
                 std::uint64_t expected_bytes);
  void on_failure(std::uint64_t call, Instant now, const Error& error);
  // A call that fails so is no breach: the scenario expects it.
  void tolerate(ErrorCode code) noexcept { tolerated_[static_cast<std::size_t>(code)] = true; }
  [[nodiscard]] bool is_tolerated(ErrorCode code) const noexcept {
    return tolerated_[static_cast<std::size_t>(code)];
  }
  // Breaches for every call that is not complete.
  void close();
  [[nodiscard]] std::uint64_t errors(ErrorCode code) const noexcept {
    return errors_[static_cast<std::size_t>(code)];
  }

  // Of another process: a call as its client saw it (`code` of one that failed), a request as its server did.
  // The client's process has judged bytes and failures. The error says what cannot be: the records are of no
  // use then.
  [[nodiscard]] Result<> adopt_call(std::uint64_t call, const CallRecord& seen, ErrorCode code);
  [[nodiscard]] Result<> adopt_request(std::uint64_t call, std::uint32_t server, Instant at);
  // When all are adopted: a breach for each request that came to the wrong server, and for each answered call
  // whose request never reached its server, unless `lost` says that what this one saw is not known.
  void hold_together(const std::function<bool(std::uint32_t server)>& lost);

  // Of a call that failed.
  [[nodiscard]] ErrorCode code_of(std::uint64_t call) const {
    const auto found = codes_.find(call);
    return found == codes_.end() ? ErrorCode{} : found->second;
  }
  [[nodiscard]] const CallRecord& record(std::uint64_t call) const { return records_[call]; }
  [[nodiscard]] std::uint64_t started() const noexcept { return started_; }
  [[nodiscard]] std::uint64_t answered() const noexcept { return answered_; }
  [[nodiscard]] std::uint64_t completed() const noexcept { return completed_; }
  [[nodiscard]] std::uint64_t answer_bytes() const noexcept { return answer_bytes_; }
  // Over every completion: call, instant, length. Independent of the provider's own digest.
  [[nodiscard]] std::uint64_t digest() const noexcept { return digest_.value(); }

 private:
  std::string describe(std::uint64_t call) const;
  bool complete(std::uint64_t call, Instant now, CallState state);

  std::vector<CallRecord> records_;
  Oracle& oracle_;
  ByteChecks checks_;
  LedgerScope scope_;
  std::map<std::uint64_t, ErrorCode> codes_;  // of calls that failed
  Digest digest_;
  std::uint64_t started_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t answer_bytes_ = 0;
  std::array<std::uint64_t, kErrorCodes> errors_{};
  std::array<bool, kErrorCodes> tolerated_{};
};

}  // namespace bx::harness
