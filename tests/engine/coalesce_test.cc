// SPDX-License-Identifier: BSD-3-Clause
// Small messages of one turn to one peer share a SEND: a credit, a receive, a completion.
#include <deque>

#include "libbx/wire/batch.h"
#include "tests/engine/raw_peer.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;
using wire::MessageFlags;
using wire::MessageKind;

template <class ServiceType>
class Pair : public ::testing::Test {
 protected:
  void make(const Config& config) {
    server_ = world_.add("server", config);
    client_ = world_.add("client", config);
    EXPECT_TRUE(server_.worker().serve(kPort, service_).has_value());
    session_ = connect(client_, "server");
    run_dry(client_);
  }
  // All in one turn.
  void start(std::size_t count, std::size_t size, CallOptions options = {}) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t salt = calls_.size();
      session_.start_call(filled(client_.worker(), size, salt), calls_.emplace_back(), options);
    }
  }
  // Long enough for everything but a deadline.
  void settle() { client_.worker().reactor().run(client_.worker().now() + 1ms); }
  void expect_all_echoed() {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      ASSERT_TRUE(calls_[i].succeeded()) << i;
      EXPECT_TRUE(is_filled(calls_[i].answer.bytes(), i)) << i;
    }
  }
  void expect_rest() {
    run_dry(client_);
    expect_at_rest(client_);
    expect_at_rest(server_);
  }
  World world_;
  ServiceType service_;
  Node server_;
  Node client_;
  Session session_;
  std::deque<RecordedCall> calls_;
};

using CoalesceTest = Pair<EchoService>;

TEST_F(CoalesceTest, calls_of_a_turn__share_sends_both_ways) {
  make({});
  start(10, 64);
  run_dry(client_);
  expect_all_echoed();
  EXPECT_EQ(counter(client_, "messages.sent"), 10);
  EXPECT_EQ(counter(client_, "messages.coalesced"), 9);
  EXPECT_EQ(counter(server_, "messages.received"), 10);
  EXPECT_EQ(counter(server_, "messages.coalesced"), 9);
  calls_.clear();
  expect_rest();
}

TEST_F(CoalesceTest, without__each_goes_by_itself) {
  Config config;
  config.coalesce_max = 0;
  make(config);
  start(10, 64);
  run_dry(client_);
  expect_all_echoed();
  EXPECT_EQ(counter(client_, "messages.coalesced"), 0);
  EXPECT_EQ(counter(server_, "messages.coalesced"), 0);
  calls_.clear();
  expect_rest();
}

// Ten requests of a turn are offered in one SEND, are pulled, and their ends share SENDs with the answers.
TEST_F(CoalesceTest, offers_of_a_turn__share_a_send) {
  for (const RendezvousPolicy policy : {RendezvousPolicy::pull, RendezvousPolicy::granted_write}) {
    Config config;
    config.rendezvous_policy = static_cast<std::uint64_t>(policy);
    World world;
    HoldingService service;
    Node server = world.add("server", config);
    Node client = world.add("client", config);
    ASSERT_TRUE(server.worker().serve(kPort, service).has_value());
    Session session = connect(client, "server");
    std::deque<RecordedCall> calls;
    for (std::uint64_t i = 0; i < 10; ++i)
      session.start_call(filled(client.worker(), 20'000, i), calls.emplace_back());
    client.worker().reactor().run(client.worker().now() + 1ms);
    EXPECT_EQ(counter(client, "messages.offered"), 10);
    EXPECT_EQ(counter(client, "messages.coalesced"), 9);
    ASSERT_EQ(service.held.size(), 10U);
    const double before = counter(server, "messages.coalesced");
    service.answer();
    client.worker().reactor().run(client.worker().now() + 1ms);
    EXPECT_EQ(counter(server, "messages.offered"), 10);
    EXPECT_EQ(counter(server, "messages.coalesced") - before, 9);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      ASSERT_TRUE(calls[i].succeeded()) << i;
      EXPECT_TRUE(is_filled(calls[i].answer.bytes(), i)) << i;
    }
    calls.clear();
    run_dry(client);
    expect_at_rest(client);
    expect_at_rest(server);
  }
}

// What offers and requests share a SEND and find no place wait in its receive, in their order; answers that
// are offered wait apart from them.
TEST_F(CoalesceTest, transfers_max__offers_of_a_batch_wait_in_its_receive) {
  for (const std::uint64_t places : {1U, 2U, 5U}) {
    for (const std::uint64_t requests : {std::uint64_t{3}, std::uint64_t{1024}}) {
      Config server_config;
      server_config.requests_max = requests;
      server_config.transfers_max = places;
      Config client_config;
      client_config.transfers_max =
          64;  // it offers more at once than the server takes, and takes fewer answers
      World world;
      EchoService echo;
      Node server = world.add("server", server_config);
      Node client = world.add("client", client_config);
      ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
      CallLoop loop(client.worker(), connect(client, "server"), 120, 30, [](std::uint64_t n) {
        constexpr std::size_t kSizes[] = {9000, 40, 0, 20'000, 64, 8193};
        return kSizes[n * 5 % std::size(kSizes)];
      });
      loop.start();
      run_dry(client);
      EXPECT_TRUE(loop.complete()) << places;
      EXPECT_GT(counter(client, "messages.coalesced"), 0) << places;
      EXPECT_GT(counter(server, "stall.transfer"), 0) << places;
      expect_at_rest(client);
      expect_at_rest(server);
    }
  }
}

// The other way round: a client with one place for what it is offered.
TEST_F(CoalesceTest, transfers_max__offered_answers_of_a_batch_wait_while_others_are_taken) {
  Config config;
  config.transfers_max = 1;
  World world;
  HoldingService service;
  Node server = world.add("server");
  Node client = world.add("client", config);
  ASSERT_TRUE(server.worker().serve(kPort, service).has_value());
  Session session = connect(client, "server");
  std::deque<RecordedCall> calls;
  for (std::size_t i = 0; i < 8; ++i) session.start_call(Buffer{}, calls.emplace_back());
  client.worker().reactor().run(client.worker().now() + 1ms);
  ASSERT_EQ(service.held.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    const std::size_t size = i % 3 == 1 ? 16 : 10'000 + i;  // the second and the fifth bring theirs along
    service.held[i].reply(filled(server.worker(), size, i));
  }
  service.held.clear();
  run_dry(client);
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(calls[i].succeeded()) << i;
    EXPECT_TRUE(is_filled(calls[i].answer.bytes(), i)) << i;
  }
  EXPECT_EQ(counter(server, "messages.coalesced"), 7);
  EXPECT_GT(counter(client, "stall.transfer"), 0);
  calls.clear();
  run_dry(client);
  expect_at_rest(client);
  expect_at_rest(server);
}

// An offer may have to wait at its receiver, so it is not put into the SEND that took the last credit: with
// two credits one SEND of them leaves in a turn, and the rest when a credit has come back.
TEST_F(CoalesceTest, offers__do_not_take_the_last_credit) {
  Config config;
  config.credits_per_peer = 2;
  make(config);
  start(40, 9000);  // more than one SEND takes
  client_.worker().reactor().run(client_.worker().now());
  EXPECT_GE(client_.worker().gauges().credits_available, 1U);
  run_dry(client_);
  expect_all_echoed();
  calls_.clear();
  expect_rest();
}

// An answer may take the last credit; one that is offered does not join it in its SEND, where it may have to
// wait.
TEST_F(CoalesceTest, offers__do_not_join_an_answer_that_took_the_last_credit) {
  Config config;
  config.credits_per_peer = 2;
  World world;
  HoldingService service;
  Node server = world.add("server");
  Node client = world.add("client", config);
  ASSERT_TRUE(server.worker().serve(kPort, service).has_value());
  Session session = connect(client, "server");
  std::deque<RecordedCall> calls;
  for (std::size_t i = 0; i < 200; ++i) session.start_call(Buffer{}, calls.emplace_back());
  client.worker().reactor().run(client.worker().now() + 1ms);
  ASSERT_EQ(service.held.size(), calls.size());
  ASSERT_EQ(server.worker().gauges().credits_available, 2U);
  // The first is offered, and 30 short ones fill its SEND; others of them take the last credit for the next
  // one, in which there is room when the second offer comes.
  const auto size_of = [&](std::size_t i) { return i == 0 || i == 45 ? 20'000U : 16U; };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    service.held[i].reply(filled(server.worker(), size_of(i), i));
  }
  service.held.clear();
  server.worker().reactor().run(server.worker().now() + 500ns);  // its turn; nothing comes back yet
  EXPECT_EQ(server.worker().gauges().credits_available, 0U);
  EXPECT_EQ(counter(server, "messages.offered"), 1);
  run_dry(client);
  EXPECT_EQ(counter(server, "messages.offered"), 2);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ASSERT_TRUE(calls[i].succeeded()) << i;
    EXPECT_TRUE(is_filled(calls[i].answer.bytes(), i)) << i;
  }
  calls.clear();
  run_dry(client);
  expect_at_rest(client);
  expect_at_rest(server);
}

// A batch costs one credit: more calls than credits leave in one turn.
TEST_F(CoalesceTest, credits__are_one_a_send) {
  Config config;
  config.credits_per_peer = 4;
  config.coalesce_max = 1024;
  make(config);
  start(30, 64);
  EXPECT_EQ(client_.worker().gauges().messages_queued, 0U);
  EXPECT_EQ(client_.worker().gauges().credits_available, 1U);  // three SENDs
  run_dry(client_);
  expect_all_echoed();
  calls_.clear();
  expect_rest();
}

TEST_F(CoalesceTest, sizes__of_all_kinds_mixed_arrive_whole) {
  for (const std::uint64_t coalesce : {0U, 100U, 300U, 1024U, 16384U}) {
    for (const RendezvousPolicy policy : {RendezvousPolicy::pull, RendezvousPolicy::granted_write}) {
      Config config;
      config.coalesce_max = coalesce;
      config.rendezvous_policy = static_cast<std::uint64_t>(policy);
      World world;
      EchoService echo;
      Node server = world.add("server", config);
      Node client = world.add("client", config);
      ASSERT_TRUE(server.worker().serve(kPort, echo).has_value());
      constexpr auto kSizeOf = [](std::uint64_t n) {
        constexpr std::size_t kSizes[] = {0, 1, 64, 191, 192, 193, 7, 8192, 3, 8193, 0, 30'000, 64, 64, 64};
        return kSizes[n * 7 % std::size(kSizes)];
      };
      CallLoop loop(client.worker(), connect(client, "server"), 400, 40, kSizeOf);
      loop.start();
      run_dry(client);
      EXPECT_TRUE(loop.complete()) << coalesce;
      EXPECT_EQ(counter(client, "messages.coalesced") > 0, coalesce > 0) << coalesce;
      expect_at_rest(client);
      expect_at_rest(server);
    }
  }
}

TEST_F(CoalesceTest, requests_max__the_rest_of_a_batch_waits_in_its_receive) {
  for (const std::uint64_t places : {1U, 2U, 7U}) {
    Config config;
    config.requests_max = places;
    World world;
    HoldingService service;
    Node server = world.add("server", config);
    Node client = world.add("client");
    ASSERT_TRUE(server.worker().serve(kPort, service).has_value());
    CallLoop loop(client.worker(), connect(client, "server"), 60, 20,
                  [](std::uint64_t) { return std::size_t{40}; });
    loop.start();
    for (int i = 0; i < 200 && !loop.complete(); ++i) {
      client.worker().reactor().run(client.worker().now() + 20us);
      ASSERT_LE(service.held.size(), places);
      server.worker().check_invariants();
      service.answer();
    }
    run_dry(client);
    EXPECT_TRUE(loop.complete()) << places;
    EXPECT_GT(counter(server, "stall.transfer"), 0);
    expect_at_rest(client);
    expect_at_rest(server);
  }
}

using HoldingTest = Pair<HoldingService>;

// The slot of a batch is the application's until the last of it is let go, and none may grow into another.
TEST_F(HoldingTest, payloads__share_the_slot) {
  make({});
  start(8, 64);
  settle();
  ASSERT_EQ(service_.held.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    Buffer& payload = service_.held[i].payload();
    EXPECT_TRUE(is_filled(payload.bytes(), i));
    EXPECT_EQ(payload.capacity(), 64U) << "it could grow into the next one";
  }
  // All but the last go; what others send must not touch it.
  std::vector<Request> last;
  last.push_back(std::move(service_.held.back()));
  service_.held.pop_back();
  service_.answer();
  for (int round = 0; round < 40; ++round) {
    start(8, 64);
    settle();
    service_.answer();
  }
  EXPECT_TRUE(is_filled(last[0].payload().bytes(), 7));
  service_.held = std::move(last);
  service_.answer();
  settle();
  expect_all_echoed();
  calls_.clear();
  expect_rest();
}

// One slot lent after it held a batch may be used to its end again.
TEST_F(HoldingTest, capacity__of_a_message_alone_is_that_of_its_slot) {
  make({});
  for (int round = 0; round < 200; ++round) {
    start(round % 2 == 0 ? 4 : 1, 16);
    settle();
    if (round % 2 == 1) {
      EXPECT_GT(service_.held.front().payload().capacity(), 8000U);
    }
    service_.answer();
  }
  settle();
  calls_.clear();
  expect_rest();
}

TEST_F(HoldingTest, deadline__of_some_in_a_batch) {
  make({});
  start(3, 32, {.deadline = client_.worker().now() + 50us});
  start(3, 32);
  client_.worker().reactor().run(client_.worker().now() + 100us);
  service_.answer();  // three too late, in one batch with three in time
  settle();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(calls_[i].failed_with(ErrorCode::deadline_exceeded));
  for (std::size_t i = 3; i < 6; ++i) EXPECT_TRUE(calls_[i].succeeded());
  calls_.clear();
  expect_rest();
}

TEST_F(HoldingTest, abandoned__while_it_is_staged_in_a_batch) {
  make({});
  start(4, 32);
  calls_.pop_front();
  calls_.pop_back();
  settle();
  EXPECT_EQ(service_.held.size(), 4U);  // they had left
  service_.answer();
  settle();
  EXPECT_TRUE(calls_[0].succeeded() && calls_[1].succeeded());
  calls_.clear();
  expect_rest();
}

// Ends its worker in the middle of a batch.
class Closing final : public Service {
 public:
  void handle(Request request) noexcept override {
    if (++served == 3) worker->close();
    kept.push_back(std::move(request));
  }
  std::optional<Worker> worker;
  std::vector<Request> kept;
  int served = 0;
};

using ClosingTest = Pair<Closing>;

TEST_F(ClosingTest, close__in_the_middle_of_a_batch) {
  make({});
  service_.worker = server_.worker();
  start(8, 64);
  run_dry(client_);
  EXPECT_EQ(service_.served, 3);
  for (const RecordedCall& call : calls_) EXPECT_EQ(call.completions, 1);
  server_.worker().check_invariants();
  client_.worker().check_invariants();
  service_.kept.clear();
  run_dry(client_);
  server_.worker().check_invariants();
}

// A client of a raw peer that has two calls outstanding.
class HostileBatchTest : public ::testing::Test {
 protected:
  HostileBatchTest() {
    client_ = world_.add("client");
    raw_.hello.capabilities = takes_batches_ ? wire::kCapabilityBatches : 0;
    raw_.listen(kPort);
    session_ = connect(client_, "raw");
    for (RecordedCall& call : calls_) {
      session_.start_call(filled(client_.worker(), 10, 1), call);
      settle();
    }
    for (const auto& one : raw_.received()) ids_.push_back(one.message.header.call);
  }
  void settle() { client_.worker().reactor().run(client_.worker().now() + 100us); }
  // The first answer as a batch to be added to.
  std::vector<std::byte> begin(std::uint64_t call) {
    wire::Message m = raw_.response_to(call);
    m.header.flags = MessageFlags::followed;
    std::vector<std::byte> bytes(wire::kHeaderBytes);
    wire::store_header(m.header, bytes.data());
    return bytes;
  }
  static void add(std::vector<std::byte>& bytes, const wire::FollowerHeader& header) {
    bytes.resize(wire::follower_place(bytes.size()));
    const auto* raw = reinterpret_cast<const std::byte*>(&header);
    bytes.insert(bytes.end(), raw, raw + wire::kFollowerBytes);
  }
  void expect_lost(const char* reason) {
    settle();
    EXPECT_TRUE(raw_.stream_lost());
    ASSERT_TRUE(calls_[1].error.has_value());
    EXPECT_EQ(calls_[1].error->code, ErrorCode::protocol);
    EXPECT_STREQ(calls_[1].error->detail, reason);
    run_dry(client_);
    EXPECT_TRUE(client_.worker().idle());
    client_.worker().check_invariants();
  }
  bool takes_batches_ = true;
  World world_;
  Node client_;
  RawPeer raw_{world_, "raw"};
  Session session_;
  std::array<RecordedCall, 2> calls_;
  std::vector<std::uint64_t> ids_;
};

TEST_F(HostileBatchTest, honest__is_taken) {
  auto bytes = begin(ids_[0]);
  add(bytes, {.kind = MessageKind::response, .call = ids_[1]});
  raw_.send_bytes(bytes);
  settle();
  EXPECT_TRUE(calls_[0].succeeded() && calls_[1].succeeded());
  EXPECT_FALSE(raw_.stream_lost());
}

TEST_F(HostileBatchTest, malformed__loses_the_lane_with_a_reason) {
  auto bytes = begin(ids_[0]);
  add(bytes, {.kind = MessageKind::response, .body_bytes = 1, .call = ids_[1]});  // a body that is not there
  raw_.send_bytes(bytes);
  expect_lost("a message in a batch that is not well-formed");
  EXPECT_TRUE(calls_[0].succeeded());  // what came before it
}

TEST_F(HostileBatchTest, of_one__loses_the_lane) {
  raw_.send_bytes(begin(ids_[0]));
  expect_lost("a message in a batch that is not well-formed");
}

TEST_F(HostileBatchTest, request_to_who_does_not_serve__loses_the_lane) {
  auto bytes = begin(ids_[0]);
  add(bytes, {.kind = MessageKind::request});
  raw_.send_bytes(bytes);
  expect_lost("a request to a worker that was not asked to serve");
}

TEST_F(HostileBatchTest, write_grant_of_what_was_not_offered__loses_the_lane) {
  auto bytes = begin(ids_[0]);
  add(bytes, {.kind = MessageKind::write_grant, .body_bytes = wire::kWriteGrantBytes});
  bytes.resize(bytes.size() + wire::kWriteGrantBytes);
  raw_.send_bytes(bytes);
  expect_lost("a WRITE grant for what was not offered");
}

TEST_F(HostileBatchTest, offer_of_nothing__loses_the_lane) {
  auto bytes = begin(ids_[0]);
  add(bytes, {.kind = wire::offering(MessageKind::response, MessageFlags::offered),
              .body_bytes = wire::kOfferBytes,
              .call = ids_[1]});
  bytes.resize(bytes.size() + wire::kOfferBytes);
  raw_.send_bytes(bytes);
  expect_lost("a message in a batch that is not well-formed");
}

TEST_F(HostileBatchTest, offered_request_to_who_does_not_serve__loses_the_lane) {
  auto bytes = begin(ids_[0]);
  add(bytes,
      {.kind = wire::offering(MessageKind::request, MessageFlags::offered), .body_bytes = wire::kOfferBytes});
  bytes.resize(bytes.size() + wire::kOfferBytes, std::byte{1});
  raw_.send_bytes(bytes);
  expect_lost("a request to a worker that was not asked to serve");
}

// The offer begins the batch; the call whose answer it is gets the bytes that it names, and the second answer
// to that call in the same SEND is one too many.
TEST_F(HostileBatchTest, second_answer_behind_an_offer__loses_the_lane) {
  wire::Message m = raw_.response_to(ids_[1]);
  m.header.flags = MessageFlags::offered | MessageFlags::followed;
  m.offer = {.transfer = 1, .rkey = raw_.rkey(), .addr = raw_.address(), .length = 9000};
  std::vector<std::byte> bytes(wire::kEnvelopeBytesMax);
  bytes.resize(wire::encode_envelope(m, bytes));
  add(bytes, {.kind = MessageKind::response, .call = ids_[0]});
  add(bytes, {.kind = MessageKind::response, .call = ids_[1]});
  raw_.send_bytes(bytes);
  expect_lost("a second answer to a call");
  EXPECT_TRUE(calls_[0].succeeded());
}

TEST_F(HostileBatchTest, pure_grant__cannot_be_followed) {
  wire::Message m = raw_.message(MessageKind::credit_grant);
  m.header.flags = MessageFlags::followed;
  std::vector<std::byte> bytes(wire::kHeaderBytes);
  wire::store_header(m.header, bytes.data());
  add(bytes, {.kind = MessageKind::response, .call = ids_[1]});
  raw_.send_bytes(bytes);
  expect_lost("unknown message flag");
}

// Every byte of a batch changed: the lane may be lost, but nothing else happens, and every call ends once.
TEST_F(HostileBatchTest, every_byte_changed__never_does_more_than_lose_the_lane) {
  auto bytes = begin(0);
  add(bytes, {.kind = MessageKind::response, .call = 1});
  add(bytes, {.kind = MessageKind::transfer_done, .body_bytes = wire::kTransferDoneBytes});
  bytes.resize(bytes.size() + wire::kTransferDoneBytes);
  add(bytes, {.kind = wire::offering(MessageKind::response, MessageFlags::offered),
              .body_bytes = wire::kOfferBytes,
              .call = 1});
  bytes.resize(bytes.size() + wire::kOfferBytes, std::byte{1});
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const unsigned mask : {0x01U, 0x04U, 0xffU}) {
      World world;
      RawPeer raw(world, "raw");
      raw.listen(kPort);
      Node client = world.add("client");
      Session session = connect(client, "raw");
      RecordedCall call;
      session.start_call(Buffer{}, call, {.deadline = client.worker().now() + 1ms});
      client.worker().reactor().run(client.worker().now() + 100us);
      auto spoilt = bytes;
      spoilt[at] ^= static_cast<std::byte>(mask);
      raw.send_bytes(spoilt);
      run_dry(client);
      EXPECT_EQ(call.completions, 1);
      client.worker().check_invariants();
    }
  }
}

// A peer that does not say it takes batches is sent none.
TEST_F(CoalesceTest, capability__is_asked_for) {
  RawPeer raw(world_, "raw");
  raw.listen(kPort);
  Node client = world_.add("asking");
  Session session = connect(client, "raw");
  for (int i = 0; i < 5; ++i) session.start_call(filled(client.worker(), 10, 1), calls_.emplace_back());
  client.worker().reactor().run(client.worker().now() + 100us);
  EXPECT_EQ(raw.received().size(), 5U);
  EXPECT_EQ(counter(client, "messages.coalesced"), 0);
  client.worker().close();
  run_dry(client);
}

// Nor are offers put into batches for one that takes only batches without: each of them ends one.
TEST_F(CoalesceTest, capability__of_offers_is_asked_for_apart) {
  RawPeer raw(world_, "raw");
  raw.hello.capabilities = wire::kCapabilityBatches;
  raw.listen(kPort);
  Node client = world_.add("asking");
  Session session = connect(client, "raw");
  for (const std::size_t size : {10U, 9000U, 9000U, 10U, 10U})
    session.start_call(filled(client.worker(), size, 1), calls_.emplace_back());
  client.worker().reactor().run(client.worker().now() + 100us);
  EXPECT_EQ(counter(client, "messages.offered"), 2);
  EXPECT_EQ(counter(client, "messages.coalesced"), 1);  // the last
  client.worker().close();
  run_dry(client);
}

}  // namespace
}  // namespace bx::testing
