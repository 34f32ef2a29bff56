// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/session_traffic.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "libbx/base/check.h"
#include "sim/provider/network_plan.h"

namespace bx::sim {
namespace {

constexpr Picoseconds kForever = std::chrono::seconds{1000};
constexpr std::uint8_t kLosslessClass = 3U << 5U;  // traffic class of priority 3
constexpr std::uint32_t kSendDepth = 4;
constexpr std::uint32_t kBytesMax = 1U << 20U;
constexpr std::size_t kBatch = 64;

// Of a full 64-bit mix (SplitMix64): lengths that look random and are known to both ends.
std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

}  // namespace

// What every message begins with.
struct SessionTraffic::Header {
  std::uint32_t session = 0;
  std::uint32_t message = 0;
  std::uint32_t slot = 0;  // of the window: which memory the answer takes, and the next request
  std::uint32_t length = 0;
};

// One host: its memory is so many slots to send from, and as many to receive into.
class SessionTraffic::End final : public CompletionListener {
 public:
  End(SessionTraffic& traffic, Nic& nic, std::uint32_t slots)
      : traffic_(traffic),
        nic_(nic),
        slots_(slots),
        stride_((traffic.config_.bytes_max + 63U) / 64U * 64U),
        memory_(std::size_t{2} * slots * stride_),
        cq_(*nic.create_cq(4 * slots, this).value()),
        srq_(*nic.create_srq(slots, 1).value()),
        keys_(nic.memory().add(memory_, MemoryAccess::local_write).value()) {
    for (std::uint32_t slot = 0; slot < slots; ++slot) post_receive(slot);
    BX_CHECK(cq_.arm(ArmFor::any), "a new completion queue is empty");
  }

  RcQueuePair& make_queue_pair() {
    return *nic_.create_qp({.send_cq = &cq_,
                            .receive_cq = &cq_,
                            .srq = &srq_,
                            .send = {.depth = kSendDepth, .segments_max = 1, .inline_max = 0}})
                .value();
  }
  [[nodiscard]] RcQueuePair* find(std::uint32_t number) const noexcept { return nic_.find_qp(number); }

  void post_receive(std::uint32_t slot) {
    const Segment segment{address(slots_ + slot), stride_, keys_.lkey};
    const ReceiveRequest request{slot, {&segment, 1}};
    BX_CHECK(srq_.post({&request, 1}) == 1, "a receive queue has room for what it gave");
    srq_.ring();
  }
  // False: the send queue is full.
  [[nodiscard]] bool send(RcQueuePair& qp, std::uint32_t slot, const Header& header) {
    std::memcpy(memory_.data() + std::size_t{slot} * stride_, &header, sizeof header);
    const Segment segment{address(slot), header.length, keys_.lkey};
    const SendRequest request{.id = slot, .segments = {&segment, 1}, .opcode = RequestOpcode::send};
    if (qp.post_send({&request, 1}).value_or(0) != 1) return false;
    nic_.ring(qp);
    return true;
  }
  [[nodiscard]] Header received(const WorkCompletion& completion) const {
    Header header;
    std::memcpy(&header, memory_.data() + (slots_ + completion.id) * stride_, sizeof header);
    return header;
  }

  void on_wake(CompletionQueue& cq) override {
    std::array<WorkCompletion, kBatch> batch;
    do {
      while (const std::size_t count = cq.poll(batch)) {
        for (std::size_t i = 0; i < count; ++i) take(batch[i]);
      }
    } while (!cq.arm(ArmFor::any));
  }

 private:
  void take(const WorkCompletion& completion) {
    if (completion.status != CompletionStatus::success) {
      ++traffic_.totals_.failed;
    } else if (completion.opcode != CompletionOpcode::recv) {
      ++traffic_.totals_.sends_completed;
    } else if (nic_.config().host == 0) {
      traffic_.on_answer(*this, completion);
    } else {
      traffic_.on_request(*this, completion);
    }
  }
  [[nodiscard]] std::uint64_t address(std::uint32_t slot) const noexcept {
    return reinterpret_cast<std::uintptr_t>(memory_.data()) + std::size_t{slot} * stride_;
  }

  SessionTraffic& traffic_;
  Nic& nic_;
  std::uint32_t slots_;
  std::uint32_t stride_;
  std::vector<std::byte> memory_;
  CompletionQueue& cq_;
  SharedReceiveQueue& srq_;
  MemoryKeys keys_;
};

Result<std::unique_ptr<SessionTraffic>> SessionTraffic::create(const SessionTrafficConfig& config) {
  const auto invalid = [](const char* detail) {
    return fail(ErrorCode::invalid_argument, ErrorScope::device, detail);
  };
  const Result<NetworkPlan> plan = plan_network(config.network);
  if (!plan) return tl::unexpected<Error>(plan.error());
  if (config.network.hosts < 2) return invalid("sessions need a peer");
  if (config.network.partitions != 1) {
    return invalid("partitions: the checks of sessions need one; several are for RawTraffic");
  }
  if (config.sessions == 0 || config.messages == 0 || config.window == 0) {
    return invalid("sessions: give a number of sessions, messages and a window");
  }
  if (config.queue_pairs < (config.network.hosts - 1) * config.window) {
    return invalid("sessions: give as many queue pairs as messages may be under way, or more");
  }
  if (config.bytes_max < sizeof(Header) || config.bytes_max > kBytesMax) {
    return invalid("sessions: messages have 16 bytes to 1 MiB");
  }
  return std::unique_ptr<SessionTraffic>(
      new SessionTraffic(config, std::make_unique<SimNetwork>(config.network, *plan)));
}

SessionTraffic::SessionTraffic(const SessionTrafficConfig& config, std::unique_ptr<SimNetwork> network)
    : config_(config), network_(std::move(network)) {
  const auto hosts = static_cast<std::uint32_t>(network_->hosts());
  for (std::uint32_t host = 0; host < hosts; ++host) {
    const std::uint32_t slots = config_.window * (host == 0 ? hosts - 1 : 1);
    ends_.push_back(std::make_unique<End>(*this, *network_->slot(host).nic, slots));
  }
  cursors_.resize(hosts - 1);
}

SessionTraffic::~SessionTraffic() = default;

void SessionTraffic::open_queue_pairs() {
  queue_pairs_.reserve(config_.queue_pairs);
  for (std::uint32_t i = 0; i < config_.queue_pairs; ++i) connect(i);
}

void SessionTraffic::open_sessions() {
  sessions_.resize(config_.sessions);
}

void SessionTraffic::connect(std::uint32_t queue_pair) {
  const std::array<std::uint16_t, 2> hosts{0, static_cast<std::uint16_t>(1 + queue_pair % peers())};
  const std::array<RcQueuePair*, 2> pair{&ends_[0]->make_queue_pair(), &ends_[hosts[1]]->make_queue_pair()};
  for (std::size_t end = 0; end < 2; ++end) {
    const RcPath path{.peer_host = hosts[1 - end],
                      .peer_qp = pair[1 - end]->number(),
                      .mtu = config_.network.mtu,
                      .rnr_retry = 0,  // there is a receive for every message
                      .traffic_class = kLosslessClass};
    BX_CHECK(pair[end]->to_init() && pair[end]->to_ready_to_receive(path) && pair[end]->to_ready_to_send(),
             "the path is legal");
  }
  queue_pairs_.push_back(pair[0]);
}

std::uint32_t SessionTraffic::length_of(const Header& header, bool answer) const noexcept {
  const std::uint64_t which =
      (std::uint64_t{header.session} << 32U) | (header.message << 1U) | (answer ? 1U : 0U);
  return static_cast<std::uint32_t>(sizeof(Header) + mix(which) % (config_.bytes_max - sizeof(Header) + 1));
}

bool SessionTraffic::run() {
  for (std::uint32_t slot = 0; slot < config_.window; ++slot) {
    for (std::uint32_t peer = 0; peer < peers(); ++peer) send_next(peer, slot);
  }
  const Engine& engine = network_->engine();
  const bool ended = network_->engine().run(engine.now() + kForever);
  const std::uint64_t messages = std::uint64_t{config_.sessions} * config_.messages;
  totals_.sessions_complete = static_cast<std::uint64_t>(
      std::count_if(sessions_.begin(), sessions_.end(), [&](const Session& session) {
        return session.sent == config_.messages && session.served == config_.messages &&
               session.answered == config_.messages;
      }));
  return ended && totals_.faults() == 0 && totals_.sessions_complete == config_.sessions &&
         totals_.requests == messages && totals_.answers == messages &&
         totals_.sends_completed == 2 * messages;
}

bool SessionTraffic::next_session(std::uint32_t peer, std::uint32_t& session) {
  Cursor& cursor = cursors_[peer];
  while (cursor.message < config_.messages) {
    const std::uint64_t queue_pair = peer + std::uint64_t{peers()} * cursor.place;
    const std::uint64_t next = queue_pair + std::uint64_t{config_.queue_pairs} * cursor.round;
    if (queue_pair < config_.queue_pairs && next < config_.sessions) {
      ++cursor.place;
      session = static_cast<std::uint32_t>(next);
      return true;
    }
    // Past the last queue pair of this peer comes the next round; a round without a first session is over.
    const bool over = cursor.place == 0;
    cursor = {.message = static_cast<std::uint16_t>(cursor.message + (over ? 1 : 0)),
              .round = over ? 0 : cursor.round + 1,
              .place = 0};
  }
  return false;
}

void SessionTraffic::send_next(std::uint32_t peer, std::uint32_t slot) {
  Header header{.slot = slot};
  if (!next_session(peer, header.session)) return;
  Session& session = sessions_[header.session];
  header.message = session.sent++;
  header.length = length_of(header, false);
  RcQueuePair& qp = *queue_pairs_[header.session % config_.queue_pairs];
  if (!ends_[0]->send(qp, peer * config_.window + slot, header)) ++totals_.refused;
}

bool SessionTraffic::is_right(const Header& header, const WorkCompletion& completion, bool answer) {
  if (header.session >= config_.sessions || header.slot >= config_.window) {
    ++totals_.out_of_turn;
    return false;
  }
  const Session& session = sessions_[header.session];
  if (header.message != (answer ? session.answered : session.served) || header.message >= session.sent) {
    ++totals_.out_of_turn;
    return false;
  }
  if (completion.byte_len != length_of(header, answer) || header.length != completion.byte_len) {
    ++totals_.wrong_length;
    return false;
  }
  const RcQueuePair& expected = *queue_pairs_[header.session % config_.queue_pairs];
  if (completion.qp != (answer ? expected.number() : expected.path().peer_qp)) {
    ++totals_.wrong_place;
    return false;
  }
  totals_.bytes += completion.byte_len;
  totals_.packets += (completion.byte_len + config_.network.mtu - 1) / config_.network.mtu;
  return true;
}

void SessionTraffic::on_request(End& end, const WorkCompletion& completion) {
  Header header = end.received(completion);
  end.post_receive(static_cast<std::uint32_t>(completion.id));
  if (!is_right(header, completion, false)) return;
  ++sessions_[header.session].served;
  ++totals_.requests;
  header.length = length_of(header, true);
  if (!end.send(*end.find(completion.qp), header.slot, header)) ++totals_.refused;
}

void SessionTraffic::on_answer(End& end, const WorkCompletion& completion) {
  const Header header = end.received(completion);
  end.post_receive(static_cast<std::uint32_t>(completion.id));
  if (!is_right(header, completion, true)) return;
  ++sessions_[header.session].answered;
  ++totals_.answers;
  send_next((header.session % config_.queue_pairs) % peers(), header.slot);
}

}  // namespace bx::sim
