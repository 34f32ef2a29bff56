// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/connection.h"

#include <string>
#include <vector>

#include "tests/engine/world.h"

namespace bx::engine {
namespace {

using namespace std::chrono_literals;

// A stream whose other end is the test.
class ScriptedStream final : public fabric::Stream {
 public:
  [[nodiscard]] fabric::StreamState state() const noexcept override { return state_; }
  std::size_t write(std::span<const std::byte> bytes) noexcept override {
    const std::size_t count = std::min(bytes.size(), room);
    room -= count;
    parser.feed(bytes.first(count));
    return count;
  }
  std::size_t read(std::span<std::byte> out) noexcept override {
    const std::size_t count = std::min({out.size(), incoming.size(), per_read});
    std::copy_n(incoming.begin(), count, out.begin());
    incoming.erase(incoming.begin(), incoming.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  void close_write() noexcept override {}
  void reset() noexcept override { state_ = fabric::StreamState::reset; }
  void set_events(fabric::StreamEvents* events) noexcept override { events_ = events; }

  void become(fabric::StreamState state) {
    state_ = state;
    notify();
  }
  void say(const wire::HandshakeFrame& frame) { say(wire::encode_frame(frame)); }
  void say(const std::vector<std::byte>& bytes) {
    incoming.insert(incoming.end(), bytes.begin(), bytes.end());
    notify();
  }
  void notify() {
    if (events_ != nullptr) events_->on_stream(*this);
  }
  // The next frame that the connection wrote; nothing if there is none.
  std::optional<wire::HandshakeFrame> heard() { return parser.next().value(); }

  wire::FrameParser parser;
  std::vector<std::byte> incoming;
  std::size_t room = 10'000;
  std::size_t per_read = 10'000;

 private:
  fabric::StreamState state_ = fabric::StreamState::connecting;
  fabric::StreamEvents* events_ = nullptr;
};

class ConnectionTest : public ::testing::Test, public ConnectionListener {
 protected:
  Result<> on_hello(Connection& connection, const wire::Hello& hello, wire::Reject& reject) override {
    log_.push_back("hello " + std::to_string(hello.qp));
    if (refusal_) {
      reject = *refusal_;
      return fail(ErrorCode::exhausted, ErrorScope::session, "refused");
    }
    if (connection.role() == Role::acceptor) connection.set_hello(hello_of(200));
    return {};
  }
  void on_established(Connection&) override { log_.push_back("established"); }
  void on_lost(Connection&, const Error& error) override {
    log_.push_back("lost");
    lost_ = error;
  }
  static wire::Hello hello_of(std::uint32_t qp) {
    wire::Hello hello;
    hello.qp = qp;
    return hello;
  }
  void make(Role role) {
    connection_ = std::make_unique<Connection>(*this, host_->reactor(), role, Instant(1ms));
    auto stream = std::make_unique<ScriptedStream>();
    stream_ = stream.get();
    if (role == Role::opener) connection_->set_hello(hello_of(100));
    connection_->attach(std::move(stream));
  }
  void open(Role role) {
    make(role);
    stream_->become(fabric::StreamState::open);
  }
  void run() { host_->reactor().run(Instant(2ms)); }
  using Log = std::vector<std::string>;

  loopback::LoopbackFabric fabric_;
  std::unique_ptr<fabric::Host> host_ = fabric_.open_host("host").value();
  std::unique_ptr<Connection> connection_;
  ScriptedStream* stream_ = nullptr;
  std::optional<wire::Reject> refusal_;
  Log log_;
  Error lost_;
};

TEST_F(ConnectionTest, opener__says_hello_when_open_and_ready_when_answered) {
  make(Role::opener);
  EXPECT_FALSE(stream_->heard().has_value());
  stream_->become(fabric::StreamState::open);
  EXPECT_EQ(std::get<wire::Hello>(*stream_->heard()).qp, 100U);
  stream_->say(hello_of(7));
  EXPECT_TRUE(std::holds_alternative<wire::Ready>(*stream_->heard()));
  EXPECT_EQ(log_, (Log{"hello 7", "established"}));
  run();  // the deadline is off
  EXPECT_EQ(log_.size(), 2U);
}

TEST_F(ConnectionTest, acceptor__answers_a_hello_and_waits_for_ready) {
  open(Role::acceptor);
  EXPECT_FALSE(stream_->heard().has_value());
  stream_->say(hello_of(9));
  EXPECT_EQ(std::get<wire::Hello>(*stream_->heard()).qp, 200U);
  EXPECT_EQ(log_, (Log{"hello 9"}));
  stream_->say(wire::Ready{});
  EXPECT_EQ(log_, (Log{"hello 9", "established"}));
  run();
  EXPECT_EQ(log_.size(), 2U);
}

TEST_F(ConnectionTest, acceptor__takes_what_came_before_it_looked) {
  make(Role::acceptor);
  const auto bytes = wire::encode_frame(hello_of(9));
  stream_->incoming = bytes;
  stream_->become(fabric::StreamState::open);
  connection_->start();
  EXPECT_EQ(log_, (Log{"hello 9"}));
}

TEST_F(ConnectionTest, both__take_bytes_one_by_one_and_write_when_there_is_room) {
  open(Role::acceptor);
  stream_->per_read = 1;
  stream_->room = 10;
  stream_->say(hello_of(9));
  EXPECT_EQ(log_, (Log{"hello 9"}));
  EXPECT_FALSE(stream_->heard().has_value());
  stream_->room = 1000;
  stream_->notify();
  EXPECT_EQ(std::get<wire::Hello>(*stream_->heard()).qp, 200U);
}

TEST_F(ConnectionTest, acceptor__tells_why_not) {
  refusal_ = wire::Reject{wire::RejectReason::peers_exhausted, 3};
  open(Role::acceptor);
  stream_->say(hello_of(9));
  EXPECT_EQ(std::get<wire::Reject>(*stream_->heard()), *refusal_);
  EXPECT_EQ(log_, (Log{"hello 9", "lost"}));
  EXPECT_TRUE(connection_->lost());
}

TEST_F(ConnectionTest, opener__learns_why_not) {
  struct Case {
    wire::RejectReason reason;
    ErrorCode code;
  };
  for (const auto& [reason, code] : {Case{wire::RejectReason::peers_exhausted, ErrorCode::exhausted},
                                     Case{wire::RejectReason::memory_exhausted, ErrorCode::exhausted},
                                     Case{wire::RejectReason::version, ErrorCode::protocol},
                                     Case{wire::RejectReason::incompatible, ErrorCode::protocol},
                                     Case{wire::RejectReason{99}, ErrorCode::protocol}}) {
    log_.clear();
    open(Role::opener);
    stream_->say(wire::Reject{reason, 42});
    EXPECT_EQ(log_, (Log{"lost"}));
    EXPECT_EQ(lost_.code, code);
    EXPECT_EQ(lost_.sys, 42);
    EXPECT_EQ(lost_.scope, ErrorScope::session);
  }
}

TEST_F(ConnectionTest, opener__does_not_reject_back) {
  refusal_ = wire::Reject{};
  open(Role::opener);
  (void)stream_->heard();
  stream_->say(hello_of(7));
  EXPECT_FALSE(stream_->heard().has_value());
  EXPECT_EQ(log_, (Log{"hello 7", "lost"}));
}

TEST_F(ConnectionTest, frames_out_of_turn__lose_the_connection) {
  for (const Role role : {Role::opener, Role::acceptor}) {
    for (const wire::HandshakeFrame& frame :
         {wire::HandshakeFrame(wire::Ready{}), wire::HandshakeFrame(wire::Reject{})}) {
      if (role == Role::opener && std::holds_alternative<wire::Reject>(frame)) continue;
      log_.clear();
      open(role);
      stream_->say(frame);
      EXPECT_EQ(log_, (Log{"lost"}));
      EXPECT_EQ(lost_.code, ErrorCode::protocol);
    }
    log_.clear();
    open(role);
    stream_->say(hello_of(1));
    stream_->say(hello_of(1));  // once is enough
    EXPECT_EQ(log_.back(), "lost");
    EXPECT_EQ(lost_.code, ErrorCode::protocol);
  }
}

TEST_F(ConnectionTest, garbage__loses_the_connection_once) {
  open(Role::acceptor);
  stream_->say(std::vector<std::byte>(2000, std::byte{0xee}));
  stream_->say(hello_of(1));
  EXPECT_EQ(log_, (Log{"lost"}));
  EXPECT_EQ(lost_.code, ErrorCode::protocol);
}

TEST_F(ConnectionTest, deadline__loses_an_unfinished_handshake) {
  open(Role::acceptor);
  stream_->say(hello_of(9));
  run();
  EXPECT_EQ(log_, (Log{"hello 9", "lost"}));
  EXPECT_EQ(lost_.code, ErrorCode::deadline_exceeded);
}

TEST_F(ConnectionTest, reset__before_and_after_it_is_established) {
  make(Role::opener);
  stream_->become(fabric::StreamState::reset);
  EXPECT_EQ(lost_.code, ErrorCode::unreachable);
  open(Role::opener);
  stream_->say(hello_of(7));
  stream_->become(fabric::StreamState::reset);
  EXPECT_EQ(lost_.code, ErrorCode::closed);
  EXPECT_EQ(log_, (Log{"lost", "hello 7", "established", "lost"}));
}

TEST_F(ConnectionTest, peer_closed__after_its_last_words_were_heard) {
  open(Role::opener);
  const auto reject = wire::encode_frame(wire::Reject{wire::RejectReason::peers_exhausted, 1});
  stream_->incoming = reject;
  stream_->become(fabric::StreamState::peer_closed);
  EXPECT_EQ(log_, (Log{"lost"}));
  EXPECT_EQ(lost_.code, ErrorCode::exhausted);
  open(Role::opener);
  stream_->become(fabric::StreamState::peer_closed);
  EXPECT_EQ(lost_.code, ErrorCode::closed);
}

TEST_F(ConnectionTest, close__says_nothing_to_the_listener) {
  open(Role::opener);
  connection_->close();
  EXPECT_TRUE(connection_->lost());
  run();
  EXPECT_TRUE(log_.empty());
}

}  // namespace
}  // namespace bx::engine
