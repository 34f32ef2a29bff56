// SPDX-License-Identifier: BSD-3-Clause
// Also of tcp_stream.cc. Kernel TCP over 127.0.0.1: two hosts of one process on one loop.
#include "libbx/providers/native/tcp_streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bx::native {
namespace {

using namespace std::chrono_literals;
using fabric::Stream;
using fabric::StreamState;

// Tests run side by side, a process each.
const std::uint16_t kPort = static_cast<std::uint16_t>(20'000 + ::getpid() % 12'000);

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct Events final : fabric::StreamEvents {
  void on_stream(Stream& stream) noexcept override {
    ++count;
    if (then) then(stream);
  }
  int count = 0;
  std::function<void(Stream&)> then;
};

struct Acceptor final : fabric::StreamAcceptor {
  void on_accept(std::unique_ptr<Stream> stream) noexcept override {
    stream->set_events(&events);
    streams.push_back(std::move(stream));
  }
  Events events;
  std::vector<std::unique_ptr<Stream>> streams;
};

// 127.0.0.2 serves, 127.0.0.3 connects.
class TcpStreamsTest : public testing::Test {
 protected:
  // Runs until `done`; a test in which that does not come fails.
  void run_until(const std::function<bool()>& done) {
    const Instant end = loop->now() + 20s;
    while (!done()) {
      ASSERT_LT(loop->now(), end) << "what the test waits for did not come";
      loop->run(loop->now() + 100us);
    }
  }
  std::unique_ptr<Stream> connect(std::string_view host = "server") {
    auto made = client.connect(host, kPort, events);
    return made ? std::move(*made) : nullptr;
  }
  // Both ends of an open stream.
  void open() {
    listener = std::move(*server.listen(kPort, acceptor));
    here = connect();
    ASSERT_NE(here, nullptr);
    EXPECT_EQ(here->state(), StreamState::connecting);
    run_until([&] { return here->state() != StreamState::connecting && !acceptor.streams.empty(); });
    ASSERT_EQ(here->state(), StreamState::open);
    there = acceptor.streams[0].get();
  }
  std::string read(Stream& stream, std::size_t count) {
    std::string text;
    run_until([&] {
      std::array<char, 4096> buffer;
      while (text.size() < count) {
        const std::size_t got = stream.read(std::as_writable_bytes(std::span(buffer)));
        if (got == 0) break;
        text.append(buffer.data(), got);
      }
      return text.size() >= count || stream.state() != StreamState::open;
    });
    return text;
  }

  std::unique_ptr<NativeLoop> loop = std::move(*NativeLoop::create({.mode = WaitMode::event}));
  NativeReactor reactor{*loop};
  HostTable hosts{{{.name = "server", .address = "127.0.0.2"}, {.name = "client", .address = "127.0.0.3"}}};
  TcpStreams server{*loop, reactor, hosts, "127.0.0.2"};
  TcpStreams client{*loop, reactor, hosts, "127.0.0.3"};
  Events events;
  Acceptor acceptor;
  std::unique_ptr<fabric::Listener> listener;
  std::unique_ptr<Stream> here;
  Stream* there = nullptr;
};

TEST_F(TcpStreamsTest, connect__opens_both_ends_and_carries_bytes_both_ways) {
  open();
  EXPECT_EQ(here->write(bytes("hello")), 5U);
  // Told before it is read: what has been read already may never be told of.
  run_until([&] { return acceptor.events.count > 0; });
  EXPECT_EQ(read(*there, 5), "hello");
  EXPECT_EQ(there->write(bytes("and back")), 8U);
  EXPECT_EQ(read(*here, 8), "and back");
  EXPECT_GT(events.count, 0);
}

TEST_F(TcpStreamsTest, connect__to_an_address_without_a_name) {
  listener = std::move(*server.listen(kPort, acceptor));
  here = connect("127.0.0.2");
  run_until([&] { return here->state() == StreamState::open; });
}

TEST_F(TcpStreamsTest, connect__to_a_port_nobody_listens_at_is_reset) {
  here = connect();
  ASSERT_NE(here, nullptr);
  run_until([&] { return here->state() == StreamState::reset; });
  EXPECT_GT(events.count, 0);
}

TEST_F(TcpStreamsTest, connect__to_an_unknown_name_is_refused_at_once) {
  const auto made = client.connect("nobody", kPort, events);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::unreachable);
}

TEST_F(TcpStreamsTest, listen__at_a_port_that_is_taken) {
  listener = std::move(*server.listen(kPort, acceptor));
  const auto again = server.listen(kPort, acceptor);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::exhausted);
  const auto elsewhere = client.listen(kPort, acceptor);  // another host's address
  EXPECT_TRUE(elsewhere.has_value());
}

TEST_F(TcpStreamsTest, listen__at_an_address_of_another_machine) {
  TcpStreams foreign{*loop, reactor, hosts, "192.0.2.1"};
  const auto made = foreign.listen(kPort, acceptor);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::invalid_argument);
}

TEST_F(TcpStreamsTest, write__takes_a_prefix_when_the_buffer_is_full_and_tells_when_there_is_room) {
  open();
  const std::string block(1 << 20, 'x');
  std::size_t written = 0;
  while (const std::size_t taken = here->write(bytes(block))) written += taken;
  EXPECT_GT(written, 0U);
  const int before = events.count;
  EXPECT_EQ(read(*there, written).size(), written);
  run_until([&] { return events.count > before; });
  EXPECT_GT(here->write(bytes("more")), 0U);
}

TEST_F(TcpStreamsTest, close_write__is_the_end_for_the_reader_who_can_still_answer) {
  open();
  here->write(bytes("question"));
  here->close_write();
  EXPECT_EQ(read(*there, 8), "question");
  run_until([&] { return there->state() == StreamState::peer_closed; });
  EXPECT_EQ(there->write(bytes("answer")), 6U);
  EXPECT_EQ(read(*here, 6), "answer");
}

TEST_F(TcpStreamsTest, destruction__loses_nothing_that_was_written) {
  open();
  here->write(bytes("unread by the one that goes"));
  there->write(bytes("unread by the other"));
  run_until([&] { return events.count > 1; });  // it has come, and nobody reads it
  here.reset();
  EXPECT_EQ(read(*there, 27), "unread by the one that goes");
  run_until([&] { return there->state() == StreamState::peer_closed; });
}

TEST_F(TcpStreamsTest, reset__resets_the_other_end) {
  open();
  here->reset();
  EXPECT_EQ(here->state(), StreamState::reset);
  EXPECT_EQ(here->write(bytes("x")), 0U);
  run_until([&] {
    std::array<std::byte, 1> one;
    there->read(one);
    return there->state() == StreamState::reset;
  });
}

TEST_F(TcpStreamsTest, stream__may_be_destroyed_in_its_own_event) {
  open();
  bool gone = false;
  acceptor.events.then = [&](Stream&) {
    acceptor.streams.clear();
    gone = true;
  };
  here->write(bytes("x"));
  run_until([&] { return gone; });
}

}  // namespace
}  // namespace bx::native
