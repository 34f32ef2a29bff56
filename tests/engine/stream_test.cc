// SPDX-License-Identifier: BSD-3-Clause
// Answers in parts: order, bounds, and every way they can end.
#include "libbx/wire/stream.h"

#include <vector>

#include "tests/engine/raw_peer.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

// Part i of a stream: uneven, some short enough to be inlined, some so long that they are fetched and so come
// later than the short ones behind them.
std::size_t part_bytes(std::size_t i) {
  constexpr std::array<std::size_t, 5> kBytes = {10, 50'000, 1, 9000, 4000};
  return kBytes[i % kBytes.size()];
}

// Writes `parts` parts to each who asks, as fast as they are taken, or at a pace.
class PartsService : public Service {
 public:
  explicit PartsService(std::size_t count) : parts(count) {}
  void handle(Request request) noexcept override { request.reply(Buffer{}); }
  void open(StreamWriter writer) noexcept override { worker->spawn(produce(std::move(writer))); }

  std::optional<Worker> worker;
  std::size_t parts;
  Duration pace{0};
  ErrorCode ending = ErrorCode::closed;  // with which to fail; closed: it finishes
  std::size_t written = 0;
  std::optional<Error> stopped;

 private:
  Task<> produce(StreamWriter writer) {
    for (std::size_t i = 0; i < parts; ++i) {
      if (pace > Duration::zero()) co_await worker->sleep_until(worker->now() + pace);
      Buffer part = writer.allocate(part_bytes(i)).value();
      fill(part.bytes(), i);
      if (auto sent = co_await writer.write(std::move(part)); !sent) {
        stopped = sent.error();
        co_return;
      }
      ++written;
    }
    ending == ErrorCode::closed ? writer.finish() : writer.fail(ending);
  }
};

// Reads a stream to its end, or `stop_after` parts of it.
struct Reading {
  std::size_t read = 0;
  std::size_t wrong = 0;
  bool ended = false;
  std::optional<Error> error;
  std::size_t stop_after = 1'000'000;
  Duration pace{0};
};

Task<> read_all(Worker worker, Session session, StreamOptions options, Reading& out) {
  auto reader = co_await session.open_stream(filled(worker, 20, 1), options);
  if (!reader) {
    out.error = reader.error();
    co_return;
  }
  while (out.read < out.stop_after) {
    if (out.pace > Duration::zero()) co_await worker.sleep_until(worker.now() + out.pace);
    auto part = co_await reader->next();
    if (!part) {
      out.error = part.error();
      co_return;
    }
    if (!*part) {
      out.ended = true;
      co_return;
    }
    const Buffer bytes = std::move(**part);
    if (bytes.size() != part_bytes(out.read) || !is_filled(bytes.bytes(), out.read)) ++out.wrong;
    ++out.read;
  }
}

class StreamTest : public ::testing::Test {
 protected:
  void open(PartsService& service, const Config& config = {}, ServeOptions options = {}) {
    end(client_);
    end(server_);
    world_ = std::make_unique<World>();
    server_ = world_->add("server", config);
    service.worker.emplace(server_.worker());
    ASSERT_TRUE(server_.worker().serve(kPort, service, options).has_value());
    client_ = world_->add("client", config);
    session_ = connect(client_, "server");
  }
  void start(Reading& reading, StreamOptions options = {}) {
    client_.worker().spawn(read_all(client_.worker(), session_, options, reading));
  }
  void run_for(Duration time) { client_.worker().reactor().run(client_.worker().now() + time); }
  void expect_rest() {
    expect_at_rest(client_);
    expect_at_rest(server_);
    EXPECT_EQ(counter(client_, "memory.receive_buffers"), 0);
    EXPECT_EQ(counter(server_, "memory.send_buffers"), 0);
  }

  std::unique_ptr<World> world_ = std::make_unique<World>();
  Node server_;
  Node client_;
  Session session_;
};

TEST_F(StreamTest, next__gives_every_part_in_order_and_then_the_end) {
  for (const std::uint32_t window : {1U, 2U, 8U}) {
    PartsService service(60);
    open(service);
    Reading reading;
    start(reading, {.window = window});
    run_dry(client_);
    EXPECT_TRUE(reading.ended) << (reading.error ? reading.error->detail : "");
    EXPECT_EQ(reading.read, 60U);
    EXPECT_EQ(reading.wrong, 0U);
    EXPECT_EQ(counter(server_, "streams.parts"), 60);
    expect_rest();
  }
}

TEST_F(StreamTest, tiny_limits__still_bring_all) {
  PartsService service(30);
  open(service, tiny());
  Reading readings[3];
  for (Reading& reading : readings) start(reading, {.window = 4});
  run_dry(client_);
  for (const Reading& reading : readings) {
    EXPECT_TRUE(reading.ended) << (reading.error ? reading.error->detail : "");
    EXPECT_EQ(reading.read, 30U);
    EXPECT_EQ(reading.wrong, 0U);
  }
  expect_rest();
}

TEST_F(StreamTest, stream__of_no_parts_ends) {
  PartsService service(0);
  open(service);
  Reading reading;
  start(reading);
  run_dry(client_);
  EXPECT_TRUE(reading.ended);
  EXPECT_EQ(reading.read, 0U);
  expect_rest();
}

// The writer is held back by the reader: never more than the window, and the part that waits to be taken.
TEST_F(StreamTest, slow_reader__holds_the_writer_back) {
  PartsService service(100);
  open(service);
  Reading reading;
  reading.pace = 1ms;
  start(reading, {.window = 3});
  for (int i = 0; i < 60; ++i) {
    run_for(1ms);
    EXPECT_LE(service.written, reading.read + 3);
  }
  run_dry(client_);
  EXPECT_TRUE(reading.ended);
  EXPECT_EQ(reading.read, 100U);
  expect_rest();
}

TEST_F(StreamTest, slow_writer__keeps_the_reader_waiting) {
  PartsService service(20);
  service.pace = 5ms;
  open(service);
  Reading reading;
  start(reading);
  run_for(52ms);
  EXPECT_GE(reading.read, 9U);
  EXPECT_LE(reading.read, 10U);
  run_dry(client_);
  EXPECT_TRUE(reading.ended);
  expect_rest();
}

TEST_F(StreamTest, cancel__by_the_reader_stops_the_writer) {
  PartsService service(1000);
  open(service);
  Reading reading;
  reading.stop_after = 10;  // then the reader goes away
  start(reading, {.window = 4});
  run_dry(client_);
  EXPECT_EQ(reading.read, 10U);
  ASSERT_TRUE(service.stopped.has_value());
  EXPECT_EQ(service.stopped->code, ErrorCode::cancelled);
  EXPECT_LE(service.written, 15U);
  expect_rest();
}

TEST_F(StreamTest, fail__comes_after_the_parts_before_it) {
  PartsService service(7);
  service.ending = ErrorCode::invalid_argument;
  open(service);
  Reading reading;
  start(reading, {.window = 4});
  run_dry(client_);
  EXPECT_EQ(reading.read, 7U);
  EXPECT_FALSE(reading.ended);
  ASSERT_TRUE(reading.error.has_value());
  EXPECT_EQ(reading.error->code, ErrorCode::invalid_argument);
  expect_rest();
}

class ForgetfulService final : public PartsService {
 public:
  using PartsService::PartsService;
  void open(StreamWriter /*writer*/) noexcept override {}
};

TEST_F(StreamTest, writer__that_goes_away_says_cancelled) {
  ForgetfulService service(1);
  open(service);
  Reading reading;
  start(reading);
  run_dry(client_);
  ASSERT_TRUE(reading.error.has_value());
  EXPECT_EQ(reading.error->code, ErrorCode::cancelled);
  expect_rest();
}

TEST_F(StreamTest, service__without_streams_says_unsupported) {
  EchoService echo;
  server_ = world_->add("server");
  ASSERT_TRUE(server_.worker().serve(kPort, echo).has_value());
  client_ = world_->add("client");
  session_ = connect(client_, "server");
  Reading reading;
  start(reading);
  run_dry(client_);
  ASSERT_TRUE(reading.error.has_value());
  EXPECT_EQ(reading.error->code, ErrorCode::unsupported);
  expect_rest();
}

TEST_F(StreamTest, deadline__ends_both_ends) {
  PartsService service(1000);
  service.pace = 1ms;
  open(service);
  Reading reading;
  start(reading, {.deadline = client_.worker().now() + 20ms});
  run_dry(client_);
  ASSERT_TRUE(reading.error.has_value());
  EXPECT_EQ(reading.error->code, ErrorCode::deadline_exceeded);
  EXPECT_LE(reading.read, 20U);
  ASSERT_TRUE(service.stopped.has_value());
  EXPECT_EQ(service.stopped->code, ErrorCode::cancelled);
  expect_rest();
}

// A caller that asks for nothing does not keep the service for ever.
TEST_F(StreamTest, reader__that_reads_nothing_is_given_up_after_the_deadline_of_calls) {
  PartsService service(100);
  open(service);
  Reading reading;
  reading.pace = 60s;  // calls.deadline is 10 s
  start(reading);
  run_dry(client_);
  ASSERT_TRUE(service.stopped.has_value());
  EXPECT_EQ(service.stopped->code, ErrorCode::deadline_exceeded);
  ASSERT_TRUE(reading.error.has_value());
  expect_rest();
}

TEST_F(StreamTest, peer__that_is_gone_ends_the_other_end) {
  {
    PartsService service(1000);
    service.pace = 1ms;
    open(service);
    Reading reading;
    start(reading);
    run_for(10ms);
    client_.worker().close();
    run_dry(server_);
    ASSERT_TRUE(service.stopped.has_value());
    EXPECT_GE(service.stopped->code, ErrorCode::closed);
    EXPECT_TRUE(server_.worker().idle());
    server_.worker().check_invariants();
  }
  {
    PartsService service(1000);
    service.pace = 1ms;
    open(service);
    Reading reading;
    start(reading);
    run_for(10ms);
    server_.context.reset();
    run_dry(client_);
    ASSERT_TRUE(reading.error.has_value());
    EXPECT_EQ(reading.error->code, ErrorCode::closed);
  }
}

TEST_F(StreamTest, limits__are_refused_with_exhausted_at_either_end) {
  PartsService service(50);
  service.pace = 1ms;
  Config config;
  config.streams_max = 2;
  open(service, config);
  Reading readings[3];
  for (Reading& reading : readings) start(reading);
  run_dry(client_);
  EXPECT_TRUE(readings[0].ended && readings[1].ended);
  ASSERT_TRUE(readings[2].error.has_value());
  EXPECT_EQ(readings[2].error->code, ErrorCode::exhausted);
  EXPECT_EQ(readings[2].error->sys, 2);
  expect_rest();
}

TEST_F(StreamTest, concurrency__counts_an_open_stream_as_one_request) {
  PartsService service(20);
  service.pace = 1ms;
  open(service, {}, {.concurrency_max = 2});
  Reading readings[3];
  for (Reading& reading : readings) start(reading, {.window = 8});
  run_for(5ms);
  ASSERT_TRUE(readings[2].error.has_value());
  EXPECT_EQ(readings[2].error->code, ErrorCode::exhausted);
  run_dry(client_);
  EXPECT_TRUE(readings[0].ended && readings[1].ended);
  Reading next;
  start(next);
  run_dry(client_);
  EXPECT_TRUE(next.ended);
  expect_rest();
}

Task<> drain_and_note(Worker worker, bool& drained) {
  drained = (co_await worker.drain()).has_value();
}

TEST_F(StreamTest, drain__lets_streams_finish_and_opens_no_more) {
  PartsService service(20);
  service.pace = 1ms;
  open(service);
  Reading reading;
  Reading late;
  start(reading);
  run_for(5ms);
  bool drained = false;
  server_.worker().spawn(drain_and_note(server_.worker(), drained));
  run_for(1ms);
  start(late);
  run_for(1ms);
  ASSERT_TRUE(late.error.has_value());
  EXPECT_EQ(late.error->code, ErrorCode::draining);
  EXPECT_FALSE(drained);
  run_dry(client_);
  EXPECT_TRUE(reading.ended);
  EXPECT_EQ(reading.read, 20U);
  EXPECT_TRUE(drained);
}

TEST(StreamVersion, peer__without_streams_is_unsupported) {
  World world;
  RawPeer raw(world, "raw");  // says nothing of streams
  raw.listen(kPort);
  const Node client = world.add("client");
  const Session session = connect(client, "raw");
  Reading reading;
  client.worker().spawn(read_all(client.worker(), session, {}, reading));
  client.worker().reactor().run(client.worker().now() + 1ms);
  ASSERT_TRUE(reading.error.has_value());
  EXPECT_EQ(reading.error->code, ErrorCode::unsupported);
  EXPECT_TRUE(raw.received().empty());
}

// Asks for what it may not.
class HostileStreamTest : public ::testing::Test {
 protected:
  HostileStreamTest() {
    server_ = world_.add("server");
    service_.worker.emplace(server_.worker());
    EXPECT_TRUE(server_.worker().serve(kPort, service_).has_value());
    raw_.connect("server", kPort);
    other_.connect("server", kPort);
    settle();
  }
  void settle() { server_.worker().reactor().run(server_.worker().now() + 1ms); }
  struct Answer {
    std::uint8_t status = 255;  // none came
    std::vector<std::byte> payload;
  };
  Answer ask(RawPeer& from, std::uint32_t session, std::span<const std::byte> payload) {
    wire::Message m = from.message(wire::MessageKind::request);
    m.header.session = session;
    m.header.call = ++call_;
    from.send(m, payload);
    settle();
    for (const auto& one : from.received()) {
      if (one.message.header.kind != wire::MessageKind::response || one.message.header.call != call_)
        continue;
      return {one.message.header.status, {one.message.payload.begin(), one.message.payload.end()}};
    }
    return {};
  }
  std::uint64_t open_stream() {
    const Answer answer = ask(raw_, wire::kStreamOpenBit | 1, {});
    std::uint64_t number = 0;
    EXPECT_EQ(answer.payload.size(), sizeof number);
    std::memcpy(&number, answer.payload.data(), std::min(sizeof number, answer.payload.size()));
    return number;
  }
  Answer pull(RawPeer& from, const wire::StreamPull& what) {
    std::array<std::byte, wire::kStreamPullBytes> bytes;
    wire::write_pull(what, bytes);
    return ask(from, wire::kStreamPullBit | 1, bytes);
  }
  static constexpr std::uint8_t kCancelled = wire::status_of(ErrorCode::cancelled);

  PartsService service_{3};
  World world_;
  Node server_;
  RawPeer raw_{world_, "raw"};
  RawPeer other_{world_, "other"};
  std::uint64_t call_ = 0;
};

TEST_F(HostileStreamTest, pulls__of_what_is_not_there_are_refused_and_do_nothing) {
  const std::uint64_t stream = open_stream();
  EXPECT_EQ(pull(raw_, {.stream = stream + 1}).status, kCancelled);              // no such stream
  EXPECT_EQ(pull(raw_, {.stream = stream + (1ULL << 32U)}).status, kCancelled);  // of another generation
  EXPECT_EQ(pull(raw_, {.stream = stream, .number = 100}).status, kCancelled);   // too far ahead
  EXPECT_EQ(pull(raw_, {.stream = stream, .number = 5}).status, 255);            // waits
  EXPECT_EQ(pull(raw_, {.stream = stream, .number = 5}).status, kCancelled);     // twice
  EXPECT_EQ(pull(other_, {.stream = stream, .number = 0}).status, kCancelled);   // not its own
  EXPECT_EQ(pull(other_, {.stream = stream, .ask = wire::StreamAsk::cancel}).status, 0);
  const Answer part = pull(raw_, {.stream = stream, .number = 0});
  EXPECT_EQ(part.status, 0);
  EXPECT_TRUE(part.payload.size() == part_bytes(0) && is_filled(part.payload, 0));
  EXPECT_EQ(pull(raw_, {.stream = stream, .number = 0}).status, kCancelled);  // once more
  EXPECT_EQ(counter(server_, "peers.failed"), 0);
  EXPECT_EQ(pull(raw_, {.stream = stream, .ask = wire::StreamAsk::cancel}).status, 0);
  EXPECT_EQ(service_.stopped->code, ErrorCode::cancelled);
  EXPECT_TRUE(server_.worker().idle());
  server_.worker().check_invariants();
}

TEST_F(HostileStreamTest, pull__that_is_not_well_formed_loses_the_lane) {
  open_stream();
  ask(raw_, wire::kStreamPullBit | 1, std::array<std::byte, 15>{});
  settle();
  EXPECT_EQ(counter(server_, "peers.failed"), 1);
  ASSERT_TRUE(service_.stopped.has_value());
  EXPECT_EQ(service_.stopped->code, ErrorCode::protocol);
  EXPECT_TRUE(server_.worker().idle());
  server_.worker().check_invariants();
}

TEST(StreamPull, read__takes_only_what_is_well_formed) {
  std::array<std::byte, wire::kStreamPullBytes> bytes;
  const wire::StreamPull pull{.stream = 0x0000'0007'0000'0003, .number = 9, .ask = wire::StreamAsk::cancel};
  wire::write_pull(pull, bytes);
  wire::StreamPull back;
  ASSERT_TRUE(wire::read_pull(bytes, back));
  EXPECT_EQ(back.stream, pull.stream);
  EXPECT_EQ(back.number, pull.number);
  EXPECT_EQ(back.ask, pull.ask);
  EXPECT_FALSE(wire::read_pull(std::span(bytes).first(15), back));
  bytes[12] = std::byte{2};
  EXPECT_FALSE(wire::read_pull(bytes, back));
}

}  // namespace
}  // namespace bx::testing
