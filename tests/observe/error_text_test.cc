// SPDX-License-Identifier: BSD-3-Clause
// What is said when something fails for good: a line that names who, what, how and where to look.
#include "libbx/engine/error_text.h"

#include <set>

#include "libbx/fabric/fault_fabric.h"
#include "tests/engine/raw_peer.h"
#include "tests/observe/recorded_log.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;
using fabric::WcStatus;

TEST(ErrorText, text_of__each_status_has_a_word_and_a_hint) {
  std::set<std::string_view> words;
  for (int i = static_cast<int>(WcStatus::local_length); i <= static_cast<int>(WcStatus::fatal); ++i) {
    const engine::ErrorText text = engine::text_of(static_cast<WcStatus>(i));
    EXPECT_FALSE(text.hint.empty()) << i;
    EXPECT_NE(text.status, "unknown") << i;
    EXPECT_EQ(text.status.find(' '), std::string_view::npos);
    words.insert(text.status);
  }
  for (int i = 0; i <= static_cast<int>(kErrorCodeLast); ++i) {
    const engine::ErrorText text = engine::text_of(static_cast<ErrorCode>(i));
    EXPECT_FALSE(text.hint.empty()) << i;
    words.insert(text.status);
  }
  EXPECT_EQ(words.size(), 22U);  // ten statuses and twelve codes
}

TEST(ErrorText, text_of__a_device_error_is_named_by_its_status) {
  const Error of_completion{ErrorCode::device, ErrorScope::session,
                            static_cast<int>(WcStatus::retry_exceeded), ""};
  EXPECT_EQ(engine::text_of(of_completion).status, "retry_exceeded");
  EXPECT_EQ(engine::text_of(Error{ErrorCode::device, ErrorScope::device, 0, ""}).status, "device");
  EXPECT_EQ(engine::text_of(Error{ErrorCode::exhausted, ErrorScope::session, 64, ""}).status, "exhausted");
}

class FailedLane : public ::testing::TestWithParam<WcStatus> {};

TEST_P(FailedLane, line__names_peer_queue_pair_request_and_status) {
  fabric::FaultPlan plan;
  plan.error_status = GetParam();
  plan.planned = {{fabric::FaultKind::completion_error, 1, "client"}};
  fabric::FaultFabric fabric(std::make_unique<loopback::LoopbackFabric>(), plan);
  EchoService echo;
  RecordedLog log;
  Node server = open_node(fabric, "server");
  Node client = open_node(fabric, "client");
  server.worker().set_log(nullptr);
  client.worker().set_log(&log);
  ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
  Session session = connect(client, "server");
  RecordedCall call;
  session.start_call(filled(client.worker(), 4096, 1), call);
  run_dry(client);
  EXPECT_TRUE(call.failed_with(ErrorCode::device));
  ASSERT_EQ(log.errors.size(), 1U);
  const std::string& line = log.errors[0];
  EXPECT_TRUE(line.starts_with("bx: error worker=client peer=server:7000 qp=0x")) << line;
  const std::string status = " request=send status=" + std::string(engine::text_of(GetParam()).status) + " ";
  EXPECT_NE(line.find(status), std::string::npos) << line;
  EXPECT_NE(line.find(" hint=\""), std::string::npos) << line;
}

INSTANTIATE_TEST_SUITE_P(Statuses, FailedLane,
                         ::testing::Values(WcStatus::local_length, WcStatus::local_qp_operation,
                                           WcStatus::local_protection, WcStatus::flushed,
                                           WcStatus::remote_invalid_request, WcStatus::remote_access,
                                           WcStatus::remote_operation, WcStatus::retry_exceeded,
                                           WcStatus::rnr_retry_exceeded, WcStatus::fatal),
                         [](const auto& status) {
                           return std::string(engine::text_of(status.param).status);
                         });

class LogTest : public ::testing::Test {
 protected:
  LogTest() { client_.worker().set_log(&log_); }
  void expect_one_line(const std::string& part) {
    ASSERT_EQ(log_.errors.size(), 1U);
    EXPECT_NE(log_.errors[0].find(part), std::string::npos) << log_.errors[0];
  }
  World world_;
  EchoService echo_;
  RecordedLog log_;
  Node client_ = world_.add("client");
};

TEST_F(LogTest, nobody_there__is_a_handshake_that_failed) {
  Node idle = world_.add("idle");
  EXPECT_FALSE(try_connect(client_, "idle").has_value());
  expect_one_line("peer=idle:7000 qp=");
  expect_one_line("request=handshake status=unreachable detail=\"nobody answers at that address\"");
}

TEST_F(LogTest, refusal__says_which_limit) {
  Config one;
  one.peers_max = 1;
  RecordedLog of_server;
  Node server = world_.add("server", one);
  server.worker().set_log(&of_server);
  ASSERT_TRUE(server.worker().serve(kPort, echo_).has_value());
  Node first = world_.add("first");
  connect(first, "server");
  EXPECT_FALSE(try_connect(client_, "server").has_value());
  expect_one_line("request=handshake status=exhausted detail=\"the peer is at its peers.max\"");
  ASSERT_EQ(of_server.errors.size(), 1U);
  EXPECT_TRUE(of_server.errors[0].starts_with("bx: error worker=server peer=unknown request=handshake"));
}

TEST_F(LogTest, hostile_peer__is_named_with_what_it_did) {
  RawPeer raw(world_, "raw");
  raw.listen(kPort);
  connect(client_, "raw");
  raw.send_bytes(std::vector<std::byte>(40, std::byte{0xee}));
  run_dry(client_);
  expect_one_line("peer=raw:7000 qp=");
  expect_one_line("request=receive status=protocol detail=");
}

TEST_F(LogTest, orderly_end__says_nothing) {
  Node server = world_.add("server");
  RecordedLog of_server;
  server.worker().set_log(&of_server);
  ASSERT_TRUE(server.worker().serve(kPort, echo_).has_value());
  connect(client_, "server");
  client_.worker().close();
  run_dry(server);
  EXPECT_EQ(counter(server, "peers.failed"), 1);
  EXPECT_TRUE(log_.errors.empty());
  EXPECT_TRUE(of_server.errors.empty());
}

TEST_F(LogTest, flood__is_kept_to_the_limit) {
  Node idle = world_.add("idle");
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(try_connect(client_, "idle").has_value());
  EXPECT_EQ(log_.errors.size(), LogLimit::kBurst);
  client_.worker().reactor().run(client_.worker().now() + LogLimit::kEvery);
  EXPECT_FALSE(try_connect(client_, "idle").has_value());
  ASSERT_EQ(log_.errors.size(), LogLimit::kBurst + 2);
  EXPECT_EQ(log_.errors[LogLimit::kBurst], "bx: error worker=client suppressed=24");
}

}  // namespace
}  // namespace bx::testing
