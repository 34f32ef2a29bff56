// SPDX-License-Identifier: BSD-3-Clause
// A peer that does not keep the rules loses its lane, and nobody else notices.
#include "tests/engine/raw_peer.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;
using wire::MessageFlags;
using wire::MessageKind;

// A worker whose session leads to a raw peer, and another to an honest one.
class HostileTest : public ::testing::Test {
 protected:
  explicit HostileTest(RendezvousPolicy policy = RendezvousPolicy::pull) {
    config_.rendezvous_policy = static_cast<std::uint64_t>(policy);
    config_.memory_arena = 64U << 20U;
    honest_ = world_.add("honest");
    EXPECT_TRUE(honest_.worker().serve(kPort, echo_).has_value());
    client_ = world_.add("client", config_);
    raw_.listen(kPort);
    to_raw_ = connect(client_, "raw");
    to_honest_ = connect(client_, "honest");
  }
  void run_for(Duration time) { client_.worker().reactor().run(client_.worker().now() + time); }
  void settle() { run_for(100us); }

  // Starts a call to the raw peer and returns its id there.
  std::uint64_t start(RecordedCall& call, std::size_t size = 10) {
    to_raw_.start_call(filled(client_.worker(), size, 1), call);
    settle();
    for (const auto& one : raw_.received()) {
      if (one.message.header.kind == MessageKind::request) {
        offer_ = one.message.offer;
        return one.message.header.call;
      }
    }
    ADD_FAILURE() << "no request came";
    return 0;
  }
  void expect_honest_unharmed() {
    RecordedCall call;
    to_honest_.start_call(filled(client_.worker(), 100'000, 2), call);
    run_for(1ms);
    EXPECT_TRUE(call.succeeded()) << (call.error ? call.error->detail : "not complete");
  }
  void expect_lane_lost(const RecordedCall& call, ErrorCode code) {
    settle();
    ASSERT_TRUE(call.done());
    ASSERT_TRUE(call.error.has_value());
    EXPECT_EQ(call.error->code, code) << call.error->detail;
    EXPECT_EQ(call.error->scope, ErrorScope::session);
    EXPECT_TRUE(raw_.stream_lost());
    EXPECT_EQ(counter(client_, "peers.failed"), 1);
    expect_honest_unharmed();
    run_dry(client_);
    EXPECT_TRUE(client_.worker().idle());
    client_.worker().check_invariants();
  }
  void expect_lane_kept() {
    settle();
    EXPECT_FALSE(raw_.stream_lost());
    EXPECT_EQ(counter(client_, "peers.failed"), 0);
    expect_honest_unharmed();
  }

  World world_;
  Config config_;
  EchoService echo_;
  Node honest_;
  Node client_;
  RawPeer raw_{world_, "raw"};
  Session to_raw_;
  Session to_honest_;
  RecordedCall call_;
  wire::Offer offer_;  // of the last request that offered its payload
};

class HostileWriteTest : public HostileTest {
 protected:
  HostileWriteTest() : HostileTest(RendezvousPolicy::granted_write) {}
};

TEST_F(HostileTest, honest_bytes__are_taken) {
  const std::uint64_t id = start(call_);
  const std::vector<std::byte> answer(700, std::byte{5});
  raw_.send(raw_.response_to(id), answer);
  settle();
  ASSERT_TRUE(call_.succeeded());
  EXPECT_EQ(call_.answer.size(), 700U);
  expect_lane_kept();
}

TEST_F(HostileTest, garbage__loses_the_lane) {
  start(call_);
  raw_.send_bytes(std::vector<std::byte>(40, std::byte{0xee}));
  expect_lane_lost(call_, ErrorCode::protocol);
}

TEST_F(HostileTest, empty_message__loses_the_lane) {
  start(call_);
  raw_.send_bytes({});
  expect_lane_lost(call_, ErrorCode::protocol);
}

TEST_F(HostileTest, every_byte_of_a_header_flipped__never_does_more_than_lose_the_lane) {
  for (std::size_t at = 0; at < wire::kHeaderBytes; ++at) {
    for (const unsigned mask : {0x01U, 0x80U, 0xffU}) {
      World world;
      RawPeer raw(world, "raw");
      raw.listen(kPort);
      Node client = world.add("client");
      Session session = connect(client, "raw");
      RecordedCall call;
      session.start_call(Buffer{}, call, {.deadline = client.worker().now() + 1ms});
      client.worker().reactor().run(client.worker().now() + 100us);
      wire::Message m = raw.response_to(raw.received().at(0).message.header.call);
      std::vector<std::byte> bytes(wire::kEnvelopeBytesMax);
      bytes.resize(wire::encode_envelope(m, bytes));
      bytes[at] ^= static_cast<std::byte>(mask);
      raw.send_bytes(bytes);
      run_dry(client);
      EXPECT_EQ(call.completions, 1);
      client.worker().check_invariants();
    }
  }
}

TEST_F(HostileTest, another_epoch__loses_the_lane) {
  wire::Message m = raw_.response_to(start(call_));
  ++m.header.epoch;
  raw_.send(m);
  expect_lane_lost(call_, ErrorCode::protocol);
}

TEST_F(HostileTest, more_credit_than_it_said__loses_the_lane) {
  wire::Message m = raw_.response_to(start(call_));
  m.header.credit_grant = raw_.hello.credits + 2;  // one was used
  raw_.send(m);
  expect_lane_lost(call_, ErrorCode::protocol);
}

TEST_F(HostileTest, acknowledgement_of_a_grant_never_sent__loses_the_lane) {
  wire::Message m = raw_.response_to(start(call_));
  m.header.control_ack = 1;
  raw_.send(m);
  expect_lane_lost(call_, ErrorCode::protocol);
}

TEST_F(HostileTest, messages_without_credit__lose_the_lane) {
  start(call_);
  for (std::uint64_t i = 0; i < config_.credits_per_peer + 1; ++i) raw_.send(raw_.response_to(0));
  expect_lane_lost(call_, ErrorCode::protocol);
}

TEST_F(HostileTest, announcements_without_credit__lose_the_lane) {
  start(call_);
  for (std::uint64_t i = 0; i < config_.credits_per_peer; ++i) raw_.send(raw_.response_to(0));
  raw_.announce({});
  expect_lane_lost(call_, ErrorCode::protocol);
}

TEST_F(HostileTest, too_many_pure_grants__lose_the_lane) {
  start(call_);
  for (int i = 0; i < 3; ++i) raw_.send(raw_.message(MessageKind::credit_grant));
  expect_lane_lost(call_, ErrorCode::protocol);
}

TEST_F(HostileTest, announcement_of_what_was_not_granted__loses_the_lane) {
  start(call_);
  raw_.announce({.target = 0, .control_ack = 0});
  expect_lane_lost(call_, ErrorCode::protocol);
}

TEST_F(HostileTest, request_to_who_does_not_serve__loses_the_lane) {
  start(call_);
  raw_.send(raw_.message(MessageKind::request));
  expect_lane_lost(call_, ErrorCode::protocol);
}

TEST_F(HostileTest, longer_than_a_receive__loses_the_lane) {
  start(call_);
  raw_.send(raw_.response_to(0), std::vector<std::byte>(10'000));
  expect_lane_lost(call_, ErrorCode::device);
}

TEST_F(HostileTest, write_to_what_is_not_its_own__loses_the_lane) {
  start(call_);
  raw_.write(0x1000, 0x80000055, 64);
  expect_lane_lost(call_, ErrorCode::device);
}

TEST_F(HostileTest, offer_of_memory_that_is_not_there__loses_the_lane) {
  wire::Message m = raw_.response_to(start(call_));
  m.header.flags = MessageFlags::offered;
  m.offer = {.transfer = 1, .rkey = raw_.rkey() + 0x100, .addr = raw_.address(), .length = 100'000};
  raw_.send(m);
  expect_lane_lost(call_, ErrorCode::device);
}

TEST_F(HostileTest, two_offers_for_one_call__lose_the_lane) {
  wire::Message m = raw_.response_to(start(call_));
  m.header.flags = MessageFlags::offered;
  m.offer = {.transfer = 1, .rkey = raw_.rkey(), .addr = raw_.address(), .length = 900'000};
  raw_.send(m);
  m.offer.transfer = 2;
  raw_.send(m);
  expect_lane_lost(call_, ErrorCode::protocol);
}

TEST_F(HostileTest, answer_beside_an_offer__loses_the_lane) {
  const std::uint64_t id = start(call_);
  wire::Message m = raw_.response_to(id);
  m.header.flags = MessageFlags::offered;
  m.offer = {.transfer = 1, .rkey = raw_.rkey(), .addr = raw_.address(), .length = 900'000};
  raw_.send(m);
  raw_.send(raw_.response_to(id));
  expect_lane_lost(call_, ErrorCode::protocol);
}

TEST_F(HostileTest, second_answer__is_ignored) {
  const std::uint64_t id = start(call_);
  raw_.send(raw_.response_to(id));
  raw_.send(raw_.response_to(id));
  raw_.send(raw_.response_to(id), std::vector<std::byte>(500));
  expect_lane_kept();
  EXPECT_TRUE(call_.succeeded());
}

TEST_F(HostileTest, answer_to_another_peers_call__is_ignored) {
  HoldingService holding;
  ASSERT_TRUE(honest_.worker().serve(kPort + 1, holding).has_value());
  Session session = connect(client_, "honest", kPort + 1);
  RecordedCall other;
  session.start_call(Buffer{}, other);
  const std::uint64_t id = start(call_);
  for (std::uint64_t guess = id - 3; guess < id + 3; ++guess) {
    if (guess != id) raw_.send(raw_.response_to(guess), std::vector<std::byte>(9));
  }
  settle();
  EXPECT_FALSE(other.done());
  holding.answer();
  settle();
  EXPECT_TRUE(other.succeeded());
  EXPECT_FALSE(call_.done());
  expect_lane_kept();
}

TEST_F(HostileTest, unknown_status__is_a_protocol_error_of_the_call) {
  wire::Message m = raw_.response_to(start(call_));
  m.header.status = 200;
  raw_.send(m);
  settle();
  EXPECT_TRUE(call_.failed_with(ErrorCode::protocol));
  EXPECT_EQ(call_.error->scope, ErrorScope::operation);
  expect_lane_kept();
}

TEST_F(HostileTest, huge_offers__fail_the_call_and_take_no_memory) {
  for (const std::uint64_t length : {std::uint64_t{64} << 20U, std::uint64_t{1} << 40U, ~std::uint64_t{0}}) {
    RecordedCall call;
    wire::Message m = raw_.response_to(start(call));
    m.header.flags = MessageFlags::offered;
    m.offer = {.transfer = 9, .rkey = raw_.rkey(), .addr = raw_.address(), .length = length};
    const double in_use = counter(client_, "memory.arena_in_use");
    raw_.send(m);
    settle();
    EXPECT_TRUE(call.failed_with(ErrorCode::too_large));
    EXPECT_EQ(counter(client_, "memory.arena_in_use"), in_use);
    bool told = false;
    for (const auto& one : raw_.received()) {
      told =
          told || (one.message.header.kind == MessageKind::transfer_done && one.message.done.transfer == 9);
    }
    EXPECT_TRUE(told);
  }
  expect_lane_kept();
}

TEST_F(HostileTest, end_of_a_transfer_that_is_not_ours__is_ignored) {
  RecordedCall honest;
  HoldingService holding;
  Config one;
  one.requests_max = 1;
  Node slow = world_.add("slow", one);
  ASSERT_TRUE(slow.worker().serve(kPort, holding).has_value());
  Session session = connect(client_, "slow");
  RecordedCall first;
  session.start_call(Buffer{}, first);
  settle();
  session.start_call(filled(client_.worker(), 200'000, 7), honest);  // offered, and waits there
  settle();
  start(call_);
  for (std::uint32_t index = 0; index < 4; ++index) {
    for (std::uint32_t generation = 1; generation < 4; ++generation) {
      wire::Message m = raw_.message(MessageKind::transfer_done);
      m.done.transfer = generation << 16U | index;
      raw_.send(m);
      settle();
    }
  }
  expect_lane_kept();
  for (int i = 0; i < 3; ++i) {
    holding.answer();
    run_for(1ms);
  }
  ASSERT_TRUE(honest.succeeded());
  EXPECT_TRUE(is_filled(honest.answer.bytes(), 7));
}

TEST_F(HostileWriteTest, grants_within_the_offer__are_written_and_announced) {
  const std::uint64_t id = start(call_, 20'000);
  wire::Message m = raw_.message(MessageKind::write_grant);
  m.grant = {.transfer = offer_.transfer,
             .target = 77,
             .offset = 100,
             .length = 5000,
             .addr = raw_.address(),
             .rkey = raw_.rkey()};
  raw_.send(m);
  settle();
  const auto received = raw_.received();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_TRUE(received[0].announcement);
  EXPECT_EQ(wire::decode_announcement(received[0].imm).target, 77);
  raw_.send(raw_.response_to(id));
  settle();
  EXPECT_TRUE(call_.succeeded());
  expect_lane_kept();
}

TEST_F(HostileWriteTest, grants_beyond_the_offer__lose_the_lane) {
  struct Case {
    std::uint64_t offset;
    std::uint64_t length;
  };
  for (const auto& [offset, length] : {Case{0, 20'001}, Case{20'001, 1}, Case{20'000, 1}, Case{0, 0},
                                       Case{~0ULL, 2}, Case{2, ~0ULL}, Case{0, 1ULL << 40U}}) {
    SCOPED_TRACE(::testing::Message() << offset << '+' << length);
    World world;
    RawPeer raw(world, "raw");
    raw.listen(kPort);
    Node client = world.add("client", config_);
    Session session = connect(client, "raw");
    RecordedCall call;
    session.start_call(filled(client.worker(), 20'000, 1), call);
    client.worker().reactor().run(client.worker().now() + 100us);
    wire::Message m = raw.message(MessageKind::write_grant);
    m.grant = {.transfer = raw.received().at(0).message.offer.transfer,
               .offset = offset,
               .length = length,
               .addr = raw.address(),
               .rkey = raw.rkey()};
    raw.send(m);
    run_dry(client);
    EXPECT_TRUE(call.failed_with(ErrorCode::protocol));
    EXPECT_TRUE(client.worker().idle());
    client.worker().check_invariants();
  }
}

TEST_F(HostileWriteTest, grants_of_a_foreign_transfer__lose_the_lane) {
  HoldingService holding;
  Config one = config_;
  one.requests_max = 1;
  Node slow = world_.add("slow", one);
  ASSERT_TRUE(slow.worker().serve(kPort, holding).has_value());
  Session session = connect(client_, "slow");
  RecordedCall first;
  RecordedCall offered;
  session.start_call(Buffer{}, first);
  settle();
  session.start_call(filled(client_.worker(), 200'000, 7), offered);
  settle();
  start(call_, 20'000);
  wire::Message m = raw_.message(MessageKind::write_grant);
  m.grant = {.transfer = offer_.transfer - 1, .length = 100, .addr = raw_.address(), .rkey = raw_.rkey()};
  raw_.send(m);
  settle();
  EXPECT_TRUE(call_.failed_with(ErrorCode::protocol));
  for (int i = 0; i < 3; ++i) {
    holding.answer();
    run_for(1ms);
  }
  EXPECT_TRUE(offered.succeeded());
}

TEST_F(HostileWriteTest, more_grants_than_agreed__lose_the_lane) {
  start(call_, 20'000);
  wire::Message m = raw_.message(MessageKind::write_grant);
  m.grant = {.transfer = offer_.transfer, .length = 1, .addr = raw_.address(), .rkey = raw_.rkey()};
  // All its credits in one burst, and the window closed by none of them.
  for (std::uint64_t i = 0; i < config_.credits_per_peer; ++i) raw_.send(m);
  settle();
  EXPECT_EQ(counter(client_, "peers.failed"), 0);  // sixteen are allowed: reads_max
}

TEST_F(HostileWriteTest, grant_of_memory_that_is_not_there__loses_the_lane) {
  start(call_, 20'000);
  wire::Message m = raw_.message(MessageKind::write_grant);
  m.grant = {.transfer = offer_.transfer, .length = 100, .addr = raw_.address(), .rkey = raw_.rkey() + 0x300};
  raw_.send(m);
  expect_lane_lost(call_, ErrorCode::device);
}

// Raw clients of an honest server.
class HostileClientTest : public ::testing::Test {
 protected:
  HostileClientTest() {
    Config config;
    config.requests_max = 4;
    server_ = world_.add("server", config);
    EXPECT_TRUE(server_.worker().serve(kPort, echo_).has_value());
    honest_ = world_.add("honest");
    session_ = connect(honest_, "server");
  }
  void run_for(Duration time) { honest_.worker().reactor().run(honest_.worker().now() + time); }
  void expect_honest_unharmed() {
    CallLoop loop(honest_.worker(), session_, 50, 5, [](std::uint64_t n) { return std::size_t{n * 1111}; });
    loop.start();
    run_for(20ms);
    EXPECT_TRUE(loop.complete());
    EXPECT_EQ(counter(honest_, "peers.failed"), 0);
    server_.worker().check_invariants();
  }
  World world_;
  EchoService echo_;
  Node server_;
  Node honest_;
  Session session_;
};

TEST_F(HostileClientTest, requests_within_the_rules__are_answered) {
  RawPeer raw(world_, "raw");
  raw.connect("server", kPort);
  run_for(1ms);
  raw.send(raw.message(MessageKind::request), std::vector<std::byte>(300, std::byte{1}));
  run_for(1ms);
  const auto received = raw.received();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].message.payload.size(), 300U);
  expect_honest_unharmed();
}

TEST_F(HostileClientTest, huge_requests__are_refused) {
  RawPeer raw(world_, "raw");
  raw.connect("server", kPort);
  run_for(1ms);
  wire::Message m = raw.message(MessageKind::request);
  m.header.flags = MessageFlags::offered;
  m.offer = {.transfer = 3, .rkey = raw.rkey(), .addr = raw.address(), .length = ~std::uint64_t{0}};
  raw.send(m);
  run_for(1ms);
  bool refused = false;
  for (const auto& one : raw.received()) {
    refused = refused || one.message.header.status == wire::status_of(ErrorCode::too_large);
  }
  EXPECT_TRUE(refused);
  expect_honest_unharmed();
}

// More messages at once than it has receives: it takes what others were promised, which is made good before
// they can notice, for none of them is sending at that moment.
TEST_F(HostileClientTest, flood__loses_its_lane_and_gives_the_receives_back) {
  RawPeer raw(world_, "raw");
  raw.connect("server", kPort);
  run_for(1ms);
  for (int i = 0; i < 30; ++i) raw.send(raw.message(MessageKind::request), std::vector<std::byte>(100));
  run_for(1ms);
  EXPECT_TRUE(raw.failed() || raw.stream_lost());
  EXPECT_EQ(counter(server_, "peers.failed"), 1);
  expect_honest_unharmed();
}

TEST_F(HostileClientTest, requests_that_wait__go_with_their_peer) {
  HoldingService holding;
  ASSERT_TRUE(server_.worker().serve(kPort + 1, holding).has_value());
  for (int round = 0; round < 40; ++round) {
    RawPeer raw(world_, "raw");
    raw.connect("server", kPort + 1);
    run_for(1ms);
    for (int i = 0; i < 10; ++i) raw.send(raw.message(MessageKind::request), std::vector<std::byte>(100));
    run_for(1ms);
  }
  run_for(1ms);  // the last one's end is noticed
  holding.held.clear();
  expect_honest_unharmed();
}

TEST_F(HostileClientTest, impossible_hello__is_rejected_with_the_reason) {
  const auto reject_of = [&](auto spoil) {
    RawPeer raw(world_, "raw");
    spoil(raw.hello);
    raw.connect("server", kPort);
    run_for(1ms);
    EXPECT_TRUE(raw.stream_lost());
    const auto* reject = raw.heard.size() == 1 ? std::get_if<wire::Reject>(&raw.heard[0]) : nullptr;
    EXPECT_NE(reject, nullptr);
    return reject == nullptr ? wire::Reject{} : *reject;
  };
  const wire::Reject incompatible{wire::RejectReason::incompatible, 0};
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.credits = 0; }), incompatible);
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.credits = 0xffffffff; }), incompatible);
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.control_slots = 1; }), incompatible);
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.mtu_bytes = 1500; }), incompatible);
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.mtu_bytes = 128; }), incompatible);
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.mtu_bytes = 8192; }), incompatible);
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.receive_bytes = 60; }), incompatible);
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.reads_max = 0; }), incompatible);
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.weight = 0; }), incompatible);
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.weight = 1025; }), incompatible);
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.credits_max = 0xffffffff; }), incompatible);
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.qp = 0; }), incompatible);
  EXPECT_EQ(reject_of([](wire::Hello& h) { h.version = 2; }), (wire::Reject{wire::RejectReason::version, 1}));
  expect_honest_unharmed();
}

TEST_F(HostileClientTest, garbage_on_the_stream__before_and_after_the_handshake) {
  {
    RawPeer raw(world_, "raw");
    raw.connect("server", kPort);
    run_for(1ms);
    EXPECT_FALSE(raw.stream_lost());
    raw.say(std::vector<std::byte>(5000, std::byte{0x5a}));
    run_for(1ms);
    EXPECT_TRUE(raw.stream_lost());
    EXPECT_EQ(counter(server_, "peers.failed"), 1);
  }
  expect_honest_unharmed();
}

TEST_F(HostileTest, answer_with_another_epoch__fails_the_connect) {
  RawPeer liar(world_, "liar");
  liar.echo_epoch = false;
  liar.hello.epoch = 999;
  liar.listen(kPort);
  EXPECT_EQ(try_connect(client_, "liar").error().code, ErrorCode::protocol);
}

}  // namespace
}  // namespace bx::testing
