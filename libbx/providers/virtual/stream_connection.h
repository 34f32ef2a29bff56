// SPDX-License-Identifier: BSD-3-Clause
// One connection between two hosts of a StreamWorld: two sides, and from each side a lane that carries
// segments in order.
//
//   side 0 (client)  -- lane: syn, data, credit, fin, reset -->  side 1 (server)
//                    <-- lane: open, data, credit, fin, reset --
//
// Bytes lie in the receiver's FIFO from the moment they are written; a data segment only says when how many
// of them have arrived. The writer's space shrinks by what it writes and grows by the credits that the reader
// sends back, so no more than buffer_bytes are ever in flight or unread. No user code runs in here: users are
// told through tasks of their reactor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "libbx/base/intrusive_list.h"
#include "libbx/base/ring.h"
#include "libbx/fabric/stream.h"
#include "libbx/providers/virtual/alarm.h"
#include "libbx/providers/virtual/byte_fifo.h"
#include "libbx/providers/virtual/virtual_reactor.h"

namespace bx::virtual_time {

class StreamWorld;
class VirtualStream;
class VirtualStreams;

struct ConnectionWorldTag;
struct ConnectionPendingTag;

class StreamConnection : public ListHook<ConnectionWorldTag>, public ListHook<ConnectionPendingTag> {
 public:
  using WorldTag = ConnectionWorldTag;
  using PendingTag = ConnectionPendingTag;  // waits for its listener's on_accept
  static constexpr std::size_t kClient = 0;
  static constexpr std::size_t kServer = 1;

  StreamConnection(StreamWorld& world, VirtualStreams& client, VirtualStreams& server, std::uint16_t port);

  // What a stream asks of its side.
  [[nodiscard]] fabric::StreamState state(std::size_t side) const noexcept { return sides_[side].state; }
  std::size_t write(std::size_t side, std::span<const std::byte> bytes) noexcept;
  std::size_t read(std::size_t side, std::span<std::byte> out) noexcept;
  void close_write(std::size_t side) noexcept;
  void reset(std::size_t side) noexcept;
  [[nodiscard]] VirtualStreams* host(std::size_t side) const noexcept { return sides_[side].host; }
  // The stream of this side comes to be, or is destroyed (which closes both directions).
  void set_user(std::size_t side, VirtualStream& user) noexcept { sides_[side].user = &user; }
  void let_go(std::size_t side) noexcept;
  // The server will never accept: the client is refused. Also used when it waits in vain.
  void refuse() noexcept;
  // The host of this side is gone.
  void vanish(std::size_t side) noexcept;
  [[nodiscard]] bool held() const noexcept;  // by a stream
  // Nobody holds a side and nothing is under way.
  [[nodiscard]] bool dead() const noexcept;

 private:
  enum class Kind : std::uint8_t { syn, open, data, credit, fin, reset };
  struct Segment {
    Instant arrival{};
    std::size_t bytes = 0;
    Kind kind = Kind::data;
  };
  // Data and credits stop at this many segments under way; syn, open, fin and reset use what is above it.
  static constexpr std::size_t kSegmentsMax = 256;
  static constexpr std::size_t kSegmentsReserve = 8;
  // A credit is sent when this fraction of the buffer has been read.
  static constexpr std::size_t kCreditFraction = 8;

  // Its doorbell rings when what was written in a dispatch leaves.
  struct Side final : Doorbell {
    Side(StreamConnection& owner, VirtualStreams& at, Alarm::Fn deliver, std::size_t buffer_bytes);
    StreamConnection& connection;
    VirtualStreams* host;           // null once the host has vanished
    VirtualStream* user = nullptr;  // null before accept and after let_go
    fabric::StreamState state = fabric::StreamState::connecting;
    bool gone = false;  // let go, refused or vanished: what arrives here is answered with a reset
    bool mute = false;  // what it sends is lost: a host was silent
    bool fin_sent = false;
    bool reset_sent = false;
    ByteFifo received;        // written by the peer, not yet read here
    std::size_t arrived = 0;  // of `received`, how many may be read
    std::size_t space = 0;    // how many bytes may be written here
    std::size_t owed = 0;     // read here, not yet given back to the peer as credit
    Ring<Segment> lane{kSegmentsMax + kSegmentsReserve};  // towards the peer, oldest first
    Alarm alarm;                                          // arrival of the lane's first segment
    std::size_t held_bytes = 0;                           // written in a dispatch that is not paid for yet
    bool held_fin = false;                                // likewise, and after them
    void on_doorbell() noexcept override { connection.send_held(*this); }
  };

  template <std::size_t kFrom>
  static void on_arrival(void* side);
  void deliver(std::size_t from) noexcept;
  [[nodiscard]] bool unheard() const noexcept;
  void handle(std::size_t to, const Segment& segment) noexcept;
  void handle_syn() noexcept;
  void handle_data(std::size_t to, std::size_t bytes) noexcept;
  // Data and fin of a dispatch leave at its end, as the work requests do that are posted in it: what they
  // tell of (receives that are posted) is then there before them.
  void send(std::size_t from, Kind kind, std::size_t bytes) noexcept;
  void send_held(Side& self) noexcept;
  void put_under_way(Side& self, Kind kind, std::size_t bytes) noexcept;
  void send_credit(std::size_t side) noexcept;
  void send_reset(std::size_t side) noexcept;
  void become_reset(std::size_t side) noexcept;
  void notify(std::size_t side) noexcept;

  StreamWorld& world_;
  std::uint16_t port_;
  std::array<Side, 2> sides_;
};

}  // namespace bx::virtual_time
