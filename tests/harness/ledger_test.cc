// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/ledger.h"

#include <gtest/gtest.h>

#include "harness/workload/pattern.h"

namespace bx::harness {
namespace {

Instant at(std::int64_t ns) {
  return Instant{} + Duration(ns);
}

struct LedgerTest : ::testing::Test {
  Oracle oracle;
  Ledger ledger{2, oracle};
  std::vector<std::byte> answer = std::vector<std::byte>(100);

  void start(std::uint64_t call) { ledger.on_start(call, 0, 7, at(10)); }
  void serve(std::uint64_t call) {
    std::vector<std::byte> request(32);
    fill_pattern(PatternOf::request, call, request);
    ledger.on_request(call, 7, request);
  }
  void finish(std::uint64_t call) {
    fill_pattern(PatternOf::answer, call, answer);
    ledger.on_answer(call, at(50), answer, 100);
  }
  std::string breaches() {
    std::string text;
    for (const Breach& breach : oracle.breaches()) text += breach.promise + ": " + breach.detail + "\n";
    return text;
  }
};

TEST(Ledger, byte_checks__off_takes_any_bytes_and_no_other_length) {
  Oracle oracle;
  Ledger ledger(1, oracle, ByteChecks::off);
  ledger.on_start(0, 0, 7, at(10));
  ledger.on_request(0, 7, std::vector<std::byte>(32));
  ledger.on_answer(0, at(50), std::vector<std::byte>(100), 100);
  EXPECT_TRUE(oracle.ok());
  Oracle other;
  Ledger short_answer(1, other, ByteChecks::off);
  short_answer.on_start(0, 0, 7, at(10));
  short_answer.on_request(0, 7, std::vector<std::byte>(32));
  short_answer.on_answer(0, at(50), std::vector<std::byte>(99), 100);
  EXPECT_FALSE(other.ok());
}

TEST_F(LedgerTest, on_answer__a_good_call_is_counted_and_breaches_nothing) {
  for (const std::uint64_t call : {0U, 1U}) start(call), serve(call), finish(call);
  ledger.close();
  EXPECT_EQ(breaches(), "");
  EXPECT_EQ(ledger.answered(), 2U);
  EXPECT_EQ(ledger.answer_bytes(), 200U);
  EXPECT_EQ(ledger.record(0).end - ledger.record(0).start, Duration(40));
}

TEST_F(LedgerTest, on_answer__twice) {
  start(0), serve(0), finish(0), finish(0);
  EXPECT_EQ(breaches(), "exactly-once: call 0 from host0 to host7 completed when it was answered\n");
}

TEST_F(LedgerTest, on_answer__that_was_never_asked_for) {
  finish(0);
  EXPECT_EQ(breaches(), "exactly-once: call 0 from host0 to host0 completed when it was never started\n");
}

TEST_F(LedgerTest, on_answer__without_a_request_at_the_server) {
  start(0), finish(0);
  EXPECT_EQ(
      breaches(),
      "exactly-once: call 0 from host0 to host7 was answered, but its request never reached the server\n");
}

TEST_F(LedgerTest, on_answer__wrong_length_and_wrong_bytes) {
  start(0), serve(0), start(1), serve(1);
  fill_pattern(PatternOf::answer, 0, answer);
  ledger.on_answer(0, at(50), std::span(answer).first(99), 100);
  fill_pattern(PatternOf::answer, 1, answer);
  answer[42] ^= std::byte{0x80};
  ledger.on_answer(1, at(50), answer, 100);
  EXPECT_EQ(breaches(),
            "right-bytes: the answer of call 0 from host0 to host7 has 99 bytes instead of 100\n"
            "right-bytes: the answer of call 1 from host0 to host7 is wrong from byte 42 of 100\n");
}

TEST_F(LedgerTest, on_request__twice_unknown_misdirected_or_damaged) {
  start(0), serve(0), serve(0);
  ledger.on_request(99, 7, {});
  ledger.on_request(1, 3, {});
  EXPECT_EQ(breaches(),
            "exactly-once: call 0 from host0 to host7 reached its server twice\n"
            "right-bytes: host7 got a request that names call 99, which does not exist\n"
            "right-bytes: host3 got the request of call 1 from host0 to host0\n");
}

TEST_F(LedgerTest, on_failure__names_the_error) {
  start(0);
  ledger.on_failure(0, at(60), {ErrorCode::deadline_exceeded, ErrorScope::operation, 0, "too late"});
  ledger.on_failure(0, at(60), {});
  EXPECT_EQ(ledger.record(0).state, CallState::failed);
  EXPECT_EQ(oracle.breaches()[0].promise, promise::kCallFailed);
  EXPECT_NE(oracle.breaches()[0].detail.find("call 0 from host0 to host7: "), std::string::npos);
  EXPECT_NE(oracle.breaches()[0].detail.find("too late"), std::string::npos);
  EXPECT_EQ(oracle.breaches()[1].promise, promise::kOnce);
}

TEST_F(LedgerTest, close__says_what_is_unfinished_and_where_it_is) {
  start(0), serve(0);
  ledger.close();
  EXPECT_EQ(breaches(),
            "finished: call 0 from host0 to host7 is unfinished: started at 10 ns, its request was served\n"
            "finished: 1 of 2 calls were never started\n");
}

TEST_F(LedgerTest, digest__depends_on_what_and_when) {
  start(0), serve(0), finish(0);
  Oracle other_oracle;
  Ledger other(2, other_oracle);
  EXPECT_NE(ledger.digest(), other.digest());
  other.on_start(0, 0, 7, at(10));
  std::vector<std::byte> request;
  other.on_request(0, 7, request);
  other.on_answer(0, at(51), answer, 100);
  EXPECT_NE(ledger.digest(), other.digest());
}

}  // namespace
}  // namespace bx::harness
