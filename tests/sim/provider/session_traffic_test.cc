// SPDX-License-Identifier: GPL-2.0-only
// Sessions over queue pairs: what `bx perf sim sessions-1m` does with a million over 100 000, here with
// 10 000 over 1000; and that its checks notice what is not as it should be.
#include "sim/provider/session_traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "sim/provider/network_audit.h"
#include "tests/support/allocation_guard.h"

namespace bx::sim {
namespace {

SessionTrafficConfig small() {
  SessionTrafficConfig config{.queue_pairs = 1000, .sessions = 10'000, .messages = 2};
  config.network.hosts = 32;
  config.network.mtu = 1024;
  config.network.topology.shape = "leaf-spine";
  config.network.payload = "lengths";
  config.network.payload_kept_bytes = 16;
  return config;
}

std::unique_ptr<SessionTraffic> open(const SessionTrafficConfig& config) {
  auto made = SessionTraffic::create(config);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().detail);
  (*made)->open_queue_pairs();
  (*made)->open_sessions();
  return std::move(*made);
}

TEST(session_traffic, create__refuses_what_cannot_be) {
  const auto refused = [](const std::function<void(SessionTrafficConfig&)>& spoil) {
    SessionTrafficConfig config = small();
    spoil(config);
    return !SessionTraffic::create(config).has_value();
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& c) { c.network.hosts = 1; }));
  EXPECT_TRUE(refused([](auto& c) { c.network.mtu = 1000; }));
  EXPECT_TRUE(refused([](auto& c) { c.sessions = 0; }));
  EXPECT_TRUE(refused([](auto& c) { c.messages = 0; }));
  EXPECT_TRUE(refused([](auto& c) { c.window = 0; }));
  EXPECT_TRUE(refused([](auto& c) { c.queue_pairs = 31 * 16 - 1; }));
  EXPECT_FALSE(refused([](auto& c) { c.queue_pairs = 31 * 16; }));
  EXPECT_TRUE(refused([](auto& c) { c.bytes_max = 15; }));
}

TEST(session_traffic, run__every_message_of_every_session_is_seen_once) {
  const auto traffic = open(small());
  EXPECT_TRUE(traffic->run());
  const SessionTotals& totals = traffic->totals();
  EXPECT_EQ(totals.sessions_complete, 10'000U);
  EXPECT_EQ(totals.requests, 20'000U);
  EXPECT_EQ(totals.answers, 20'000U);
  EXPECT_EQ(totals.sends_completed, 40'000U);
  EXPECT_EQ(totals.faults(), 0U);
  // Lengths are spread over 16 to 1536 bytes.
  EXPECT_NEAR(static_cast<double>(totals.bytes) / 40'000, 776, 10);
  const Audit audit = audit_network(traffic->network());
  EXPECT_TRUE(audit.breaches.empty()) << audit.breaches[0];
  EXPECT_EQ(audit.payload_bytes_delivered, totals.bytes);
  // All queue pairs of the hub have carried something.
  EXPECT_EQ(traffic->network().nic(0).counters().completions, 40'000U);
}

TEST(session_traffic, run__lengths_only_is_the_run_with_bytes) {
  SessionTrafficConfig config = small();
  config.sessions = 3001;  // divides by nothing
  const auto digest = [&] {
    const auto traffic = open(config);
    EXPECT_TRUE(traffic->run());
    return traffic->network().topology().digest().value();
  };
  const std::uint64_t lengths = digest();
  config.network.payload = "moved";
  EXPECT_EQ(digest(), lengths);
}

TEST(session_traffic, open__a_session_takes_its_record_and_no_more) {
  auto made = SessionTraffic::create(small());
  ASSERT_TRUE(made);
  (*made)->open_queue_pairs();
  const std::uint64_t before = test::allocated_bytes();
  (*made)->open_sessions();
  EXPECT_EQ((test::allocated_bytes() - before) / 10'000, 6U);
  EXPECT_TRUE((*made)->run());
}

// Changes the headers of messages on their way to the hub.
class Forger final : public FrameFilter {
 public:
  explicit Forger(std::function<void(std::uint32_t (&)[4])> change) : change_(std::move(change)) {}
  void filter(Nic& nic, Frame* frame) override {
    if (frame->payload != nullptr && ++seen_ == 100) {
      std::uint32_t words[4];
      std::memcpy(words, frame->payload->bytes.data(), sizeof words);
      change_(words);
      std::memcpy(frame->payload->bytes.data(), words, sizeof words);
    }
    nic.accept(frame);
  }

 private:
  std::function<void(std::uint32_t (&)[4])> change_;
  int seen_ = 0;
};

SessionTotals forged(std::function<void(std::uint32_t (&)[4])> change) {
  Forger forger(std::move(change));
  SessionTrafficConfig config = small();
  config.sessions = 1000;
  const auto traffic = open(config);
  traffic->network().slot(0).nic->set_filter(&forger);
  EXPECT_FALSE(traffic->run());
  return traffic->totals();
}

TEST(session_traffic, run__notices_an_answer_that_is_not_what_it_should_be) {
  // The second is the session's next answer, whose turn never comes.
  EXPECT_EQ(forged([](auto& words) { words[0] = 20'000; }).out_of_turn, 2U);
  EXPECT_EQ(forged([](auto& words) { words[1] += 1; }).out_of_turn, 2U);
  EXPECT_EQ(forged([](auto& words) { words[3] += 1; }).wrong_length, 1U);
  // Another session's answer: of the wrong length most likely, or else over the wrong queue pair.
  const SessionTotals other = forged([](auto& words) { words[0] += 1; });
  EXPECT_GE(other.wrong_length + other.wrong_place + other.out_of_turn, 1U);
}

TEST(session_traffic, run__notices_messages_that_never_come) {
  const auto traffic = open(small());
  traffic->network().topology().set_link(5, LinkState::down);
  EXPECT_FALSE(traffic->run());
  EXPECT_GT(traffic->totals().failed, 0U);
  EXPECT_LT(traffic->totals().sessions_complete, 10'000U);
}

}  // namespace
}  // namespace bx::sim
