// SPDX-License-Identifier: GPL-2.0-only
// An output-queued switch with a shared buffer (switch_buffer.h), PFC towards its peers and ECN marking.
//
//   in port --> priority --> route (ECMP) --> admit to the buffer --> mark --> queue of (out port, priority)
//                                                 |                                  |
//                                                 |                  scheduler <-----+
//                                                 |                      |
//                                                 |                      +--> out port
//                                                 +-- XOFF / XON: PFC frames back to the in port's peer,
//                                                     ahead of its queues
//
// Store and forward, no processing delay of its own. Ports may differ in rate. PFC frames go before
// everything and are never paused. ECN is marked at enqueue, by the length of the queue that the frame joins
// (Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015, section 3.1: the CP
// algorithm), or if asked for at dequeue, by that of the queue that it leaves behind. A paused peer hears
// XOFF again at half the pause's time for as long as the pause must last. When the link of a port is cut its
// queues are emptied, and until the routes avoid it what is sent there is lost. Not modelled: cells,
// cut-through.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "libbx/base/metrics.h"
#include "libbx/base/prng.h"
#include "libbx/base/result.h"
#include "sim/model/engine.h"
#include "sim/model/frame.h"
#include "sim/model/object_array.h"
#include "sim/model/port.h"
#include "sim/model/port_set.h"
#include "sim/model/switch_buffer.h"
#include "sim/model/switch_routes.h"
#include "sim/model/switch_scheduler.h"
#include "sim/model/switch_watchdog.h"
#include "sim/model/units.h"

namespace bx::sim {

// RED on the instantaneous length q of a queue: marks no frame while q <= kmin, every one from q >= kmax, and
// in between with probability pmax * (q - kmin) / (kmax - kmin). kmax = 0 marks nothing.
struct EcnConfig {
  std::uint64_t kmin_bytes = 0;
  std::uint64_t kmax_bytes = 0;
  double pmax = 0;
};

// When a frame is marked. A mark made at dequeue does not wait for the queue before it is seen.
enum class EcnPoint : std::uint8_t { enqueue, dequeue };

// What a frame's priority in this switch follows from. By default it is the one that the frame carries (its
// PCP); a frame leaves with the priority that it was given here.
enum class PriorityTrust : std::uint8_t { pcp, dscp };
struct PriorityMap {
  PriorityTrust trust = PriorityTrust::pcp;
  std::array<std::uint8_t, kPriorities> pcp{0, 1, 2, 3, 4, 5, 6, 7};
  std::array<std::uint8_t, kDscps> dscp = class_selectors();  // the top three bits

  [[nodiscard]] static constexpr std::array<std::uint8_t, kDscps> class_selectors() noexcept {
    std::array<std::uint8_t, kDscps> map{};
    for (std::size_t d = 0; d < map.size(); ++d) map[d] = static_cast<std::uint8_t>(d >> 3U);
    return map;
  }
  friend bool operator==(const PriorityMap&, const PriorityMap&) = default;
};

struct SwitchConfig {
  Rate rate{};                     // of every port,
  std::vector<Rate> port_rates{};  // unless this is not empty
  BufferConfig buffer{};
  std::array<EcnConfig, kPriorities> ecn{};
  EcnPoint ecn_point = EcnPoint::enqueue;
  PriorityMap priorities{};
  Weights weights{};                   // see switch_scheduler.h; all strict
  std::uint16_t pause_quanta = 65535;  // of an XOFF
  WatchdogConfig watchdog{};
};

// Of one (out port, priority).
struct QueueCounters {
  std::uint64_t bytes = 0;  // waiting now; a frame that is being sent no longer waits
  std::uint64_t bytes_max = 0;
  std::uint64_t frames = 0;    // sent or being sent
  std::uint64_t tx_bytes = 0;  // of these
  std::uint64_t ecn_marks = 0;
  std::uint64_t drops = 0;           // lossy class: at the dynamic threshold
  std::uint64_t watchdog_drops = 0;  // while the watchdog had the queue out of service
  std::uint64_t storms = 0;          // times that the watchdog did so
  std::uint64_t link_drops = 0;      // waiting when the link was cut
};
// Of one (in port, priority).
struct IngressCounters {
  std::uint64_t pause_frames = 0;   // sent, refreshes included
  std::uint64_t resume_frames = 0;  // sent
  std::uint64_t xoffs = 0;          // times that a pause was decided on
  std::uint64_t lossless_drops = 0;
  // Of a lossless class too, but because a link fault kept the pause from the peer: no fault of the buffer.
  std::uint64_t link_drops = 0;
};
// Sums, and the largest of the maxima.
struct SwitchTotals {
  std::uint64_t pause_frames = 0;
  std::uint64_t resume_frames = 0;
  std::uint64_t ecn_marks = 0;
  std::uint64_t drops = 0;
  std::uint64_t lossless_drops = 0;
  std::uint64_t unroutable_drops = 0;
  std::uint64_t watchdog_drops = 0;
  std::uint64_t storms = 0;
  std::uint64_t link_losses = 0;  // waiting for, on, or sent into a link that was cut, or unpaused by it
  std::uint64_t queue_bytes_max = 0;
  std::uint64_t buffer_bytes_max = 0;
  SwitchTotals& operator+=(const SwitchTotals& other) noexcept;
};
void report(const SwitchTotals& totals, MetricSink& sink);

// Errors: those of plan_buffer; invalid_argument for a rate of zero, rates of another number of ports, a
// pause of no quanta, an ECN ramp that does not rise, a priority above 7, or a watchdog with a time of zero.
[[nodiscard]] Result<BufferPlan> check_switch(const SwitchConfig& config);

// By how many bytes the headroom of the lossless class of the port that lacks most is too small for links of
// this delay and frames up to `frame_bytes`; 0 when every one has enough to lose nothing.
[[nodiscard]] std::uint64_t headroom_shortfall_bytes(const SwitchConfig& config, Picoseconds delay,
                                                     std::uint32_t frame_bytes) noexcept;

// Sees what a researcher traces, none of it on the way of a frame that is neither marked nor dropped.
class SwitchObserver {
 public:
  virtual void on_drop(const Frame& frame) = 0;  // for whatever reason; its counter says which
  virtual void on_mark(const Frame& frame, std::uint16_t out_port) = 0;
  virtual void on_xoff(std::uint16_t in_port, std::uint8_t priority) = 0;  // a pause was decided on

 protected:
  ~SwitchObserver() = default;
};

class Switch final : public PortOwner {
 public:
  // `config` must pass check_switch. `random` is the switch's own stream.
  Switch(Engine& engine, FramePool& pool, const SwitchConfig& config, Prng random);
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;
  ~Switch();

  [[nodiscard]] std::uint16_t ports() const noexcept { return config_.buffer.ports; }
  [[nodiscard]] Port& port(std::uint16_t index) noexcept;
  // Frames for `host` leave by one of `ports`, the same for all frames of one (source, destination, UDP
  // source port). Replaces an earlier route; an empty list takes it away.
  void set_route(std::uint16_t host, std::span<const std::uint16_t> ports);
  void set_observer(SwitchObserver* observer) noexcept { observer_ = observer; }
  // For many hosts at once.
  [[nodiscard]] SwitchRoutes& routes() noexcept { return routes_; }

  [[nodiscard]] const SwitchConfig& config() const noexcept { return config_; }
  // As it is at this instant.
  [[nodiscard]] const SharedBuffer& buffer() {
    settle();
    return buffer_;
  }
  [[nodiscard]] const QueueCounters& queue(std::uint16_t port, std::uint8_t priority) const noexcept;
  [[nodiscard]] const IngressCounters& ingress(std::uint16_t port, std::uint8_t priority) const noexcept;
  // Whether frames that came in by `in_port` wait in a queue; walks it.
  [[nodiscard]] bool holds(std::uint16_t port, std::uint8_t priority, std::uint16_t in_port) const noexcept;
  [[nodiscard]] SwitchTotals totals() const noexcept;

  NextFrame next_frame(Port& port) override;
  void receive(Port& port, Frame* frame) override;
  void transmitted(Port& port, std::uint32_t wire_bytes, std::uint8_t priority,
                   std::uint16_t ingress_port) override;
  void approach(Port& port, Frame* frame, Approach approach) override;
  void pause_began(Port& port, std::uint8_t priorities) override;
  void link_changed(Port& port, LinkState state) override;
  void pauses_lost(Port& port) override;

 private:
  struct Queue;
  struct Side;  // a port with its queues and its pauses
  // EcnConfig in integers: what the decision compares.
  struct Ramp {
    std::uint64_t kmin = 0;
    std::uint64_t kmax = 0;
    std::uint64_t pmax = 0;  // in 2^-32
  };

  void settle();
  void notice_all_ends();
  [[nodiscard]] Admission admit(const Frame& frame, std::uint16_t ingress_port, std::uint64_t egress_bytes);
  [[nodiscard]] std::uint8_t priority_of(const Frame& frame) const noexcept;
  [[nodiscard]] bool marks(const Ramp& ramp, std::uint64_t queue_bytes) noexcept;
  void mark(Frame& frame, Queue& queue, std::uint16_t out_port);
  void drop(Frame* frame, std::uint64_t& counter) noexcept;
  // Of a frame that found no buffer.
  [[nodiscard]] std::uint64_t& drop_counter(Side& in, Queue& queue, std::uint8_t priority) noexcept;
  void send_xoff(Side& side, std::uint8_t priority);
  void request_pfc(Side& side, std::uint8_t priority);
  [[nodiscard]] Frame* make_pfc(Side& side);
  void schedule_refresh(Side& side, std::uint8_t priority, Picoseconds delay);
  static void on_refresh(void* side, void* priority);
  // Gives up what waits there, and counts it.
  void flush(Side& side, std::uint8_t priority, std::uint64_t& counter);
  void schedule_watch(Side& side);
  static void on_watch(void* side, void* unused);
  // True: it is still to be watched.
  [[nodiscard]] bool watch(Side& side, std::uint8_t priority);

  void approach_sent(const Port& port, Approach approach) const;

  // What every frame touches comes first.
  Engine& engine_;
  FramePool& pool_;
  ObjectArray<Side> sides_;
  SwitchRoutes routes_;
  // Ports that have sent, or are sending, a frame whose buffer is given back when somebody needs to know.
  PortSet unsettled_;
  bool maps_priorities_;
  bool marks_leaving_;
  SharedBuffer buffer_;
  std::array<Ramp, kPriorities> ramps_{};          // of frames that join a queue; empty if marks_leaving_
  std::array<Ramp, kPriorities> leaving_ramps_{};  // of frames that leave one
  SchedulerPlan scheduler_plan_;
  SwitchObserver* observer_ = nullptr;
  Prng random_;
  SwitchConfig config_;
  std::uint64_t unroutable_drops_ = 0;
};

}  // namespace bx::sim
