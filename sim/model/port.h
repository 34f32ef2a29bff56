// SPDX-License-Identifier: GPL-2.0-only
// One end of a full-duplex link. A port pulls: when its transmitter is idle it asks its owner for the next
// frame, so that queues and scheduling live in one place, the owner (a NIC or a switch). The port itself does
// serialisation, propagation, and the receiving side of PFC: it keeps which priorities the peer has paused
// and until when.
//
// Each direction of a link can be cut. What was on the wire is lost; the transmitter goes on at its rate,
// into nothing, as a MAC without carrier discards what it is given. Its pauses are forgotten.
#pragma once

#include <array>
#include <cstdint>

#include "sim/model/engine.h"
#include "sim/model/frame.h"
#include "sim/model/run_digest.h"
#include "sim/model/units.h"

namespace bx::sim {

class Mailbox;
class Port;
class PortFaults;

enum class LinkState : std::uint8_t { down, up };
enum class Direction : std::uint8_t { received, sent };

// Sees the frames of a port, for captures: a frame that is sent when its first bit leaves, one that is
// received when it has arrived whole. PFC frames included, lost ones not.
class PortTap {
 public:
  virtual void on_frame(const Port& port, Direction direction, const Frame& frame) = 0;

 protected:
  ~PortTap() = default;
};

// What an owner gives a port to send. An event at the end of each frame would be half of all events of a
// large network, and most of them would find nothing to do: the owner says whether it must be told then.
enum class Notice : std::uint8_t {
  at_end,  // transmitted() at the end of the frame, and then next_frame()
  later,   // transmitted() at any time after it; next_frame() when the owner kicks the port
};
struct NextFrame {
  NextFrame(Frame* given, Notice wanted = Notice::at_end) noexcept  // NOLINT(google-explicit-constructor)
      : frame(given), notice(wanted) {}
  Frame* frame;  // null: nothing to send
  Notice notice;
};

class PortOwner {
 public:
  // The next frame to send, or null. Must not return a RoCE frame of a priority that port.paused(); PFC
  // frames are never paused. Called only while the transmitter is idle; ownership passes to the port.
  virtual NextFrame next_frame(Port& port) = 0;
  // A frame has arrived whole (store and forward). Ownership passes to the owner. PFC frames are handled by
  // the port itself and do not come here.
  virtual void receive(Port& port, Frame* frame) = 0;
  // The last bit of a frame has left; the frame itself is on its way to the peer. `wire_bytes`, `priority`
  // and `ingress_port` are those of the frame (PFC frames included): a switch gives buffer back here. Once a
  // frame, when its Notice says.
  virtual void transmitted(Port& port, std::uint32_t wire_bytes, std::uint8_t priority,
                           std::uint16_t ingress_port) = 0;
  // Soon `frame` will have arrived, or (null) a frame will have been sent: what receive(), transmitted() and
  // next_frame() will touch may be fetched. Of the frame only its ingress_port may be written.
  virtual void approach(Port& /*port*/, Frame* /*frame*/, Approach /*approach*/) {}
  // The peer has paused priorities that were not (bit p: priority p).
  virtual void pause_began(Port& /*port*/, std::uint8_t /*priorities*/) {}
  // Frames can leave again, or no longer.
  virtual void link_changed(Port& /*port*/, LinkState /*state*/) {}
  // The peer may have forgotten what this end has told it to pause, or never heard of it.
  virtual void pauses_lost(Port& /*port*/) {}

 protected:
  ~PortOwner() = default;
};

struct PortCounters {
  std::uint64_t rx_frames = 0;
  std::uint64_t rx_bytes = 0;  // wire bytes
  std::uint64_t tx_frames = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t pfc_pause_rx = 0;  // PFC frames received that pause at least one priority
  std::uint64_t pfc_resume_rx = 0;
  std::uint64_t link_losses = 0;  // frames sent from here that a cut link lost
  Picoseconds paused_time{};      // of pauses that have ended, summed over priorities
};

// What a PFC quantum is worth at a rate (IEEE 802.1Q-2018, 36.1.3.2: 512 bit times each).
[[nodiscard]] Picoseconds pfc_quanta_time(std::uint16_t quanta, Rate rate) noexcept;

class alignas(64) Port {
 public:
  Port(Engine& engine, FramePool& pool, PortOwner& owner, std::uint16_t index, Rate rate);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // Joins two ports by a link of the given one-way propagation delay; both must be unconnected and of equal
  // rate.
  static void connect(Port& a, Port& b, Picoseconds delay);

  [[nodiscard]] std::uint16_t index() const noexcept { return index_; }
  [[nodiscard]] Rate rate() const noexcept { return serialiser_.rate(); }
  [[nodiscard]] bool busy() const noexcept { return choosing_ || engine_.now() < busy_until_; }
  [[nodiscard]] bool paused(std::uint8_t priority) const noexcept {
    return ((paused_ >> priority) & 1U) != 0;
  }
  [[nodiscard]] std::uint8_t paused_mask() const noexcept { return paused_; }  // bit p: paused(p)
  [[nodiscard]] PortCounters counters() const noexcept;
  // PFC frames received that pause this priority.
  [[nodiscard]] std::uint64_t pause_frames_rx(std::uint8_t priority) const noexcept {
    return pause_frames_rx_[priority];
  }
  [[nodiscard]] LinkState link_state() const noexcept {
    return (hooks_ & kCut) != 0 ? LinkState::down : LinkState::up;
  }
  // Cuts or mends the direction from this port to its peer. The port must be connected.
  void set_link(LinkState state);
  // Up to this instant, pauses that still last included.
  [[nodiscard]] Picoseconds paused_time() const noexcept;
  // Every frame that arrives at this port is added to `digest`; null ends it. For ports of hosts.
  void set_digest(RunDigest* digest) noexcept { digest_ = digest; }
  // The peer is in another partition: what is sent goes through `mailbox`, and arrives() there.
  void set_mailbox(Mailbox& mailbox) noexcept;
  void arrives(Picoseconds delay, Frame* frame) { engine_.post(delay, &on_delivered, this, frame); }
  // Null ends it.
  void set_tap(PortTap* tap) noexcept;
  // Null ends it. What becomes of each frame sent from here.
  void set_faults(PortFaults* faults) noexcept;
  // A frame that goes before all of the owner's, and whatever is paused: for faults. Ownership passes.
  void inject(Frame* frame);
  // The owner is asked to tell again what it has paused.
  void tell_pauses_again() { owner_.pauses_lost(*this); }
  // Pauses that we send may be lost now.
  [[nodiscard]] bool loses_pauses() const noexcept;
  // Since when the peer has paused this priority; only while it has.
  [[nodiscard]] Picoseconds paused_since(std::uint8_t priority) const noexcept {
    return paused_since_[priority];
  }
  // The owner has something to send: starts the transmitter now if it is idle, else when it will be.
  void kick();
  // Of a frame that was given with Notice::later: says that it has left, if it has and that was not said yet.
  void settle();
  // Makes the notice of a frame that is still being sent one at its end.
  void notice_at_end();
  // Of the last frame sent.
  [[nodiscard]] std::uint8_t tx_priority() const noexcept { return tx_priority_; }
  [[nodiscard]] std::uint16_t tx_ingress_port() const noexcept { return tx_ingress_port_; }
  static constexpr std::size_t kUsualBytes = 128;  // of its beginning: what a frame touches
  // For TimingWheel::announce_to().
  static void approach(const Event& event, Approach approach);

 private:
  static void on_transmitted(void* port, void*);
  static void on_delivered(void* port, void* frame);
  static void on_pause_check(void* port, void* priority);
  void start(const NextFrame& next);
  [[nodiscard]] NextFrame next_hooked();
  // False: the frame is lost. `late` is by how much it arrives later.
  [[nodiscard]] bool start_hooked(Frame* frame, Picoseconds serialisation, Picoseconds& late);
  [[nodiscard]] bool deliver_hooked(Frame& frame);  // true: it has arrived
  void handle_pfc(const Frame& frame);
  void pause(std::size_t priority, Picoseconds duration);
  void resume(std::size_t priority);
  void schedule_pause_check(std::size_t priority);

  // What every frame touches comes first and fills two cache lines, of which one that arrives needs only the
  // first.
  PortOwner& owner_;
  RunDigest* digest_ = nullptr;
  Port* peer_ = nullptr;
  Picoseconds delay_{};
  Picoseconds busy_until_{};
  static constexpr std::uint8_t kTapped = 1;
  static constexpr std::uint8_t kCut = 2;  // what we send is lost
  static constexpr std::uint8_t kLosing =
      4;  // what arrives up to lose_until_ was on the wire when it was cut
  static constexpr std::uint8_t kFaulty = 8;
  static constexpr std::uint8_t kInjecting = 16;
  static constexpr std::uint8_t kLate = 32;  // the last frame sent is tx_late_ later than the link makes it
  static constexpr std::uint8_t kCrosses = 64;  // what is sent goes through mailbox_
  std::uint8_t hooks_ = 0;                      // zero, the usual case, costs one test a frame
  std::uint8_t paused_ = 0;                     // bit p: priority p may not send
  bool choosing_ = false;                       // the owner is asked for a frame
  bool end_scheduled_ = false;                  // on_transmitted will come, at busy_until_
  bool unsettled_ = false;                      // transmitted() is still to be called for the last frame
  std::uint8_t tx_priority_ = 0;                // of the last frame, as what follows
  std::uint16_t index_;
  std::uint64_t rx_frames_ = 0;
  std::uint64_t rx_bytes_ = 0;

  Engine& engine_;
  FramePool& pool_;
  std::uint32_t tx_wire_bytes_ = 0;
  std::uint16_t tx_ingress_port_ = 0;
  Serialiser serialiser_;
  std::uint64_t tx_frames_ = 0;
  std::uint64_t tx_bytes_ = 0;

  PortCounters rare_;  // those that the four above are not
  Mailbox* mailbox_ = nullptr;
  PortTap* tap_ = nullptr;
  PortFaults* faults_ = nullptr;
  FrameQueue injected_;
  Picoseconds tx_late_{};
  Picoseconds lose_until_{};
  Picoseconds fifo_delivery_{};  // when the last frame that may not be overtaken is to arrive
  std::array<std::uint32_t, kPriorities> pause_frames_rx_{};
  std::array<Picoseconds, kPriorities> paused_until_{};
  std::array<Picoseconds, kPriorities> paused_since_{};
  // When the pending on_pause_check of a priority comes; while it is paused one does, by paused_until_.
  std::array<Picoseconds, kPriorities> check_at_{};
};

}  // namespace bx::sim
