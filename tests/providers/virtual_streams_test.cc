// SPDX-License-Identifier: BSD-3-Clause
// Also of stream_world.cc and stream_connection.cc, which have no other users.
#include "libbx/providers/virtual/virtual_streams.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libbx/base/prng.h"
#include "libbx/providers/loopback/heap_loop.h"

namespace bx::virtual_time {
namespace {

using namespace std::chrono_literals;
using fabric::Stream;
using fabric::StreamState;

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string read_all(Stream& stream) {
  std::string text;
  char buffer[100];
  while (const std::size_t count = stream.read(std::as_writable_bytes(std::span(buffer)))) {
    text.append(buffer, count);
  }
  return text;
}

// Records the state at each event; tests may add an action.
struct Events final : fabric::StreamEvents {
  void on_stream(Stream& stream) noexcept override {
    states.push_back(stream.state());
    inside_call = inside_call || calls_open > 0;
    if (then) then(stream);
  }
  std::vector<StreamState> states;
  std::function<void(Stream&)> then;
  int calls_open = 0;
  bool inside_call = false;
};

struct Acceptor final : fabric::StreamAcceptor {
  void on_accept(std::unique_ptr<Stream> stream) noexcept override {
    ++accepted;
    streams.push_back(std::move(stream));
    if (then) then();
  }
  std::vector<std::unique_ptr<Stream>> streams;
  std::function<void()> then;
  int accepted = 0;
};

// One way takes 10 us, a byte 1 ns; buffers of 1000 bytes.
constexpr StreamConfig kConfig{
    .latency = 10us, .bytes_per_second = 1'000'000'000, .buffer_bytes = 1000, .backlog_max = 3};

class StreamsTest : public testing::Test {
 protected:
  struct Host {
    Host(StreamsTest& test, std::string_view name)
        : reactor(test.alarms, HostCpu(test.costs)), streams(test.world, reactor, name) {}
    VirtualReactor reactor;
    VirtualStreams streams;
  };
  static HostCpuCosts free_cpu() {
    HostCpuCosts costs;
    costs.turn = costs.wake_polled = costs.tcp_segment = Duration{0};
    costs.tcp_ps_byte = 0;
    return costs;
  }
  std::unique_ptr<Stream> connect(std::uint16_t port = 80) {
    auto stream = client->streams.connect("server", port, client_events);
    EXPECT_TRUE(stream.has_value());
    return std::move(*stream);
  }
  // Listens, connects and accepts.
  void open() {
    listener = std::move(*server->streams.listen(80, acceptor));
    a = connect();
    run(100us);
    ASSERT_EQ(acceptor.streams.size(), 1U);
    b = std::move(acceptor.streams.back());
    acceptor.streams.clear();
    b->set_events(&server_events);
    run(1us);
    ASSERT_EQ(a->state(), StreamState::open);
    ASSERT_EQ(b->state(), StreamState::open);
    client_events.states.clear();
    server_events.states.clear();
  }
  void run(Duration duration) { loop.run(loop.now() + duration); }

  loopback::HeapLoop loop;
  AlarmPool alarms{loop};
  HostCpuCosts costs = free_cpu();
  StreamWorld world{alarms, kConfig};
  std::unique_ptr<Host> client = std::make_unique<Host>(*this, "client");
  std::unique_ptr<Host> server = std::make_unique<Host>(*this, "server");
  Events client_events;
  Events server_events;
  Acceptor acceptor;
  std::unique_ptr<fabric::Listener> listener;
  std::unique_ptr<Stream> a;  // the client's end
  std::unique_ptr<Stream> b;
};

// Receives that a turn posts are the device's at the end of the turn, so bytes that promise them must not be
// earlier.
TEST_F(StreamsTest, write__in_a_dispatch_leaves_when_the_dispatch_is_paid_for) {
  open();
  struct Writer final : fabric::Turn {
    explicit Writer(Stream& to) : stream(to) {}
    fabric::TurnResult turn(Instant now) noexcept override {
      if (began != kNever) return {};
      began = now;
      stream.write(bytes("ab"));
      stream.write(bytes("cd"));
      stream.close_write();
      return {false, {.bytes_copied = 1'000'000}};  // 80 us
    }
    Stream& stream;
    Instant began = kNever;
  } writer(*a);
  Instant arrived = kNever;
  std::string text;
  server_events.then = [&](Stream& stream) {
    if (arrived == kNever) arrived = loop.now();
    text += read_all(stream);
  };
  client->reactor.attach(&writer);
  run(1ms);
  client->reactor.attach(nullptr);
  EXPECT_EQ(text, "abcd");
  EXPECT_EQ(arrived - writer.began, 80us + 4ns + 10us);
  EXPECT_EQ(b->state(), StreamState::peer_closed);
}

TEST_F(StreamsTest, reset__in_a_dispatch_that_has_written_reaches_the_peer) {
  open();
  struct Leaver final : fabric::Turn {
    explicit Leaver(std::unique_ptr<Stream>& of) : stream(of) {}
    fabric::TurnResult turn(Instant /*now*/) noexcept override {
      if (stream == nullptr) return {};
      stream->write(bytes("last words"));
      stream->reset();
      stream.reset();
      return {false, {.bytes_copied = 1'000'000}};
    }
    std::unique_ptr<Stream>& stream;
  } leaver(a);
  client->reactor.attach(&leaver);
  run(1ms);
  client->reactor.attach(nullptr);
  EXPECT_EQ(b->state(), StreamState::reset);
  EXPECT_EQ(read_all(*b), "");
}

TEST_F(StreamsTest, listen__refuses_port_0_and_a_port_that_is_taken) {
  EXPECT_EQ(server->streams.listen(0, acceptor).error().code, ErrorCode::invalid_argument);
  listener = std::move(*server->streams.listen(80, acceptor));
  EXPECT_EQ(server->streams.listen(80, acceptor).error().code, ErrorCode::exhausted);
  EXPECT_TRUE(client->streams.listen(80, acceptor).has_value());  // another host
  listener.reset();
  EXPECT_TRUE(server->streams.listen(80, acceptor).has_value());
}

TEST_F(StreamsTest, connect__takes_a_round_trip_and_is_accepted_after_half_of_it) {
  listener = std::move(*server->streams.listen(80, acceptor));
  a = connect();
  EXPECT_EQ(a->state(), StreamState::connecting);
  EXPECT_EQ(a->write(bytes("too early")), 0U);
  run(9us);
  EXPECT_EQ(acceptor.accepted, 0);
  run(1us);
  EXPECT_EQ(acceptor.accepted, 1);
  run(9us);
  EXPECT_EQ(a->state(), StreamState::connecting);
  EXPECT_TRUE(client_events.states.empty());
  run(1us);
  EXPECT_EQ(client_events.states, std::vector{StreamState::open});
  acceptor.streams.clear();
}

TEST_F(StreamsTest, connect__to_an_unknown_host_is_unreachable) {
  EXPECT_EQ(client->streams.connect("nowhere", 80, client_events).error().code, ErrorCode::unreachable);
}

TEST_F(StreamsTest, connect__to_a_port_without_a_listener_is_refused) {
  a = connect(81);
  EXPECT_EQ(a->state(), StreamState::connecting);
  run(100us);
  EXPECT_EQ(a->state(), StreamState::reset);
  EXPECT_EQ(client_events.states, std::vector{StreamState::reset});
}

TEST_F(StreamsTest, connect__beyond_the_backlog_is_refused) {
  listener = std::move(*server->streams.listen(80, acceptor));
  // A long turn keeps the server from accepting while the connections arrive.
  server->reactor.cpu().charge_turn(loop.now(), {.bytes_copied = 10'000'000});
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 5; ++i) streams.push_back(connect());
  run(2ms);
  EXPECT_EQ(acceptor.accepted, 3);
  int refused = 0;
  for (const auto& stream : streams) refused += stream->state() == StreamState::reset ? 1 : 0;
  EXPECT_EQ(refused, 2);
  acceptor.streams.clear();
}

TEST_F(StreamsTest, connect__to_the_own_host_works) {
  listener = std::move(*server->streams.listen(80, acceptor));
  auto self = server->streams.connect("server", 80, client_events);
  ASSERT_TRUE(self.has_value());
  run(100us);
  ASSERT_EQ(acceptor.streams.size(), 1U);
  EXPECT_EQ((*self)->write(bytes("me")), 2U);
  run(100us);
  EXPECT_EQ(read_all(*acceptor.streams[0]), "me");
  acceptor.streams.clear();
}

TEST_F(StreamsTest, write__arrives_in_order_after_latency_and_serialisation) {
  open();
  EXPECT_EQ(a->write(bytes("hello ")), 6U);
  EXPECT_EQ(a->write(bytes("world")), 5U);
  run(10us);
  EXPECT_EQ(read_all(*b), "");
  run(6ns);
  EXPECT_EQ(read_all(*b), "hello ");
  run(5ns);
  EXPECT_EQ(read_all(*b), "world");
  EXPECT_EQ(b->write(bytes("yes")), 3U);
  run(11us);
  EXPECT_EQ(read_all(*a), "yes");
}

TEST_F(StreamsTest, write__takes_a_prefix_when_the_buffer_is_full_and_events_tell_when_it_is_not) {
  open();
  const std::string large(1500, 'x');
  EXPECT_EQ(a->write(bytes(large)), 1000U);
  EXPECT_EQ(a->write(bytes("more")), 0U);
  run(1ms);
  EXPECT_EQ(a->write(bytes("more")), 0U);  // nobody has read
  client_events.states.clear();
  EXPECT_EQ(read_all(*b).size(), 1000U);
  EXPECT_EQ(a->write(bytes("more")), 0U);  // the credit has yet to travel
  run(11us);
  EXPECT_FALSE(client_events.states.empty());
  EXPECT_EQ(a->write(bytes(large)), 1000U);
}

TEST_F(StreamsTest, write__of_many_small_pieces_is_back_pressured_and_loses_nothing) {
  open();
  std::string sent;
  std::string received;
  for (int i = 0; sent.size() < 3000 && i < 100'000; ++i) {
    const char letter = static_cast<char>('a' + i % 26);
    if (a->write(bytes({&letter, 1})) == 1) {
      sent.push_back(letter);
    } else {
      run(5us);
      received += read_all(*b);
    }
  }
  run(1ms);
  received += read_all(*b);
  EXPECT_EQ(sent.size(), 3000U);
  EXPECT_EQ(received, sent);
}

TEST_F(StreamsTest, data__written_before_accept_waits_for_the_server) {
  listener = std::move(*server->streams.listen(80, acceptor));
  acceptor.then = [&] { EXPECT_EQ(acceptor.streams.back()->state(), StreamState::open); };
  a = connect();
  client_events.then = [&](Stream& stream) {
    if (stream.state() == StreamState::open) stream.write(bytes("first"));
  };
  run(100us);
  acceptor.streams.back()->set_events(&server_events);
  run(1us);
  EXPECT_EQ(server_events.states.size(), 1U);  // told of what came before it listened
  EXPECT_EQ(read_all(*acceptor.streams.back()), "first");
  acceptor.streams.clear();
}

TEST_F(StreamsTest, close_write__is_a_half_close_after_what_was_written) {
  open();
  a->write(bytes("last words"));
  a->close_write();
  EXPECT_EQ(a->write(bytes("no")), 0U);
  run(100us);
  EXPECT_EQ(b->state(), StreamState::peer_closed);
  EXPECT_EQ(read_all(*b), "last words");
  EXPECT_EQ(b->write(bytes("answer")), 6U);
  run(100us);
  EXPECT_EQ(a->state(), StreamState::open);
  EXPECT_EQ(read_all(*a), "answer");
  b->close_write();
  run(100us);
  EXPECT_EQ(a->state(), StreamState::peer_closed);
}

TEST_F(StreamsTest, destruction__closes_both_directions_after_what_was_written) {
  open();
  a->write(bytes("bye"));
  a.reset();
  run(100us);
  EXPECT_EQ(read_all(*b), "bye");
  EXPECT_EQ(b->state(), StreamState::peer_closed);
}

TEST_F(StreamsTest, write__to_a_destroyed_peer_ends_in_reset) {
  open();
  a.reset();
  run(100us);
  ASSERT_EQ(b->state(), StreamState::peer_closed);
  EXPECT_EQ(b->write(bytes("anyone?")), 7U);
  run(100us);
  EXPECT_EQ(b->state(), StreamState::reset);
  EXPECT_EQ(server_events.states.back(), StreamState::reset);
  EXPECT_EQ(b->write(bytes("no")), 0U);
}

TEST_F(StreamsTest, reset__is_seen_by_both_and_loses_unread_bytes) {
  open();
  a->write(bytes("lost"));
  run(50us);
  a->reset();
  EXPECT_EQ(a->state(), StreamState::reset);
  run(100us);
  EXPECT_EQ(b->state(), StreamState::reset);
  EXPECT_EQ(read_all(*b), "");
  EXPECT_EQ(b->write(bytes("no")), 0U);
  b->reset();
  run(100us);
}

TEST_F(StreamsTest, reset__while_connecting_ends_it) {
  listener = std::move(*server->streams.listen(80, acceptor));
  a = connect();
  a->reset();
  run(100us);
  EXPECT_EQ(a->state(), StreamState::reset);
  ASSERT_EQ(acceptor.streams.size(), 1U);
  EXPECT_EQ(acceptor.streams[0]->state(), StreamState::reset);
  acceptor.streams.clear();
}

TEST_F(StreamsTest, events__never_come_inside_a_call) {
  listener = std::move(*server->streams.listen(80, acceptor));
  ++client_events.calls_open;
  a = connect();
  --client_events.calls_open;
  run(100us);
  b = std::move(acceptor.streams.back());
  ++server_events.calls_open;
  b->set_events(&server_events);
  --server_events.calls_open;
  run(1us);
  for (int i = 0; i < 10; ++i) {
    ++client_events.calls_open;
    ++server_events.calls_open;
    a->write(bytes("x"));
    b->write(bytes("y"));
    read_all(*a);
    read_all(*b);
    if (i == 9) a->reset();
    --client_events.calls_open;
    --server_events.calls_open;
    run(15us);
  }
  EXPECT_FALSE(client_events.inside_call);
  EXPECT_FALSE(server_events.inside_call);
  EXPECT_FALSE(server_events.states.empty());
}

TEST_F(StreamsTest, set_events__to_null_silences) {
  open();
  b->set_events(nullptr);
  a->write(bytes("x"));
  run(100us);
  EXPECT_TRUE(server_events.states.empty());
  EXPECT_EQ(read_all(*b), "x");
}

TEST_F(StreamsTest, destruction__inside_the_streams_own_event_is_safe) {
  open();
  server_events.then = [&](Stream&) { b.reset(); };
  a->write(bytes("x"));
  run(100us);
  EXPECT_EQ(b, nullptr);
  EXPECT_EQ(a->state(), StreamState::peer_closed);
}

TEST_F(StreamsTest, destruction__of_the_listener_inside_on_accept_is_safe) {
  listener = std::move(*server->streams.listen(80, acceptor));
  acceptor.then = [&] { listener.reset(); };
  a = connect();
  auto second = connect();
  run(100us);
  EXPECT_EQ(acceptor.accepted, 1);
  EXPECT_EQ(a->state(), StreamState::open);
  EXPECT_EQ(second->state(), StreamState::reset);
  acceptor.streams.clear();
}

TEST_F(StreamsTest, destruction__of_the_listener_leaves_accepted_streams_alone) {
  open();
  listener.reset();
  a->write(bytes("still here"));
  run(100us);
  EXPECT_EQ(read_all(*b), "still here");
}

TEST_F(StreamsTest, destruction__of_a_stream_that_is_connecting_is_seen_as_its_end) {
  listener = std::move(*server->streams.listen(80, acceptor));
  a = connect();
  a.reset();
  run(100us);
  ASSERT_EQ(acceptor.streams.size(), 1U);
  EXPECT_EQ(acceptor.streams[0]->state(), StreamState::peer_closed);
  acceptor.streams.clear();
}

TEST_F(StreamsTest, host__that_disappears_resets_its_streams) {
  open();
  auto connecting = connect();
  b->write(bytes("unread"));
  b.reset();
  listener.reset();
  server.reset();
  run(100us);
  EXPECT_EQ(a->state(), StreamState::reset);
  EXPECT_EQ(connecting->state(), StreamState::reset);
  EXPECT_EQ(client->streams.connect("server", 80, client_events).error().code, ErrorCode::unreachable);
}

TEST_F(StreamsTest, host__that_disappears_leaves_held_streams_and_listeners_harmless) {
  open();
  server.reset();
  EXPECT_EQ(b->state(), StreamState::reset);
  EXPECT_EQ(b->write(bytes("x")), 0U);
  EXPECT_EQ(read_all(*b), "");
  b->close_write();
  b.reset();
  listener.reset();
  run(100us);
  EXPECT_EQ(a->state(), StreamState::reset);
}

TEST_F(StreamsTest, host__can_come_back_under_its_name) {
  open();
  b.reset();
  listener.reset();
  server.reset();
  run(100us);
  server = std::make_unique<Host>(*this, "server");
  a.reset();
  open();
  a->write(bytes("again"));
  run(100us);
  EXPECT_EQ(read_all(*b), "again");
}

TEST_F(StreamsTest, host__that_is_silent_neither_hears_nor_resets) {
  open();
  world.set_silent("server", true);
  EXPECT_EQ(a->write(bytes("lost")), 4U);
  b.reset();  // its process is gone, and nobody hears of it
  auto second = connect();
  run(10ms);
  EXPECT_EQ(a->state(), StreamState::open);
  EXPECT_EQ(second->state(), StreamState::connecting);
  EXPECT_TRUE(client_events.states.empty());
  // What was under way while it was silent never comes; new connections work.
  world.set_silent("server", false);
  run(10ms);
  EXPECT_EQ(a->state(), StreamState::open);
  auto third = connect();
  run(100us);
  EXPECT_EQ(third->state(), StreamState::open);
}

TEST_F(StreamsTest, cpu__is_charged_for_socket_work) {
  costs.tcp_segment = Duration{100};
  client.reset();
  server.reset();
  client = std::make_unique<Host>(*this, "client");
  server = std::make_unique<Host>(*this, "server");
  open();
  const std::string text(1000, 'x');
  a->write(bytes(text));
  EXPECT_EQ(client->reactor.cpu().breakdown().tcp, Duration{100});
  run(100us);
  read_all(*b);
  EXPECT_GE(server->reactor.cpu().breakdown().tcp, Duration{100});
}

TEST_F(StreamsTest, rate__of_a_host_is_shared_by_its_streams) {
  open();
  auto second = connect();
  run(100us);
  auto other = std::move(acceptor.streams.back());
  acceptor.streams.clear();
  const std::string text(1000, 'x');
  ASSERT_EQ(a->write(bytes(text)), 1000U);
  ASSERT_EQ(second->write(bytes(text)), 1000U);
  run(11us);
  EXPECT_EQ(read_all(*b).size(), 1000U);
  EXPECT_EQ(read_all(*other).size(), 0U);
  run(1us);
  EXPECT_EQ(read_all(*other).size(), 1000U);
}

// Random use of both ends: every byte arrives once and in order, and then the end.
TEST_F(StreamsTest, bytes__arrive_exactly_under_random_use) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng(seed);
    open();
    std::string sent[2];
    std::string received[2];
    for (int step = 0; step < 500; ++step) {
      const std::size_t side = prng.below(2);
      Stream& writer = side == 0 ? *a : *b;
      Stream& reader = side == 0 ? *b : *a;
      std::string text(prng.between(1, 400), '\0');
      for (char& letter : text) letter = static_cast<char>(prng.below(256));
      sent[side] += text.substr(0, writer.write(bytes(text)));
      run(Duration{static_cast<std::int64_t>(prng.below(8'000))});
      if (prng.chance(0.6)) received[side] += read_all(reader);
    }
    a->close_write();
    b->close_write();
    for (int i = 0; i < 20; ++i) {
      run(50us);
      received[0] += read_all(*b);
      received[1] += read_all(*a);
    }
    EXPECT_EQ(received[0], sent[0]);
    EXPECT_EQ(received[1], sent[1]);
    EXPECT_EQ(a->state(), StreamState::peer_closed);
    EXPECT_EQ(b->state(), StreamState::peer_closed);
    a.reset();
    b.reset();
    listener.reset();
    run(100us);
  }
}

}  // namespace
}  // namespace bx::virtual_time
