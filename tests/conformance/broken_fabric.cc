// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/broken_fabric.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "libbx/base/ring.h"

namespace bx::conformance {
namespace {

using namespace fabric;

// What the broken objects of one host share.
struct Shared {
  Breakage breakage = Breakage::none;
  Reactor* reactor = nullptr;
  std::map<WrId, std::vector<Sge>> receives;                // posted, by id: where payload will be
  std::map<QpNum, std::uint32_t> mtu;                       // of connected queue pairs
  std::vector<std::unique_ptr<CompletionQueue>> graveyard;  // unchecked_destruction
  bool has(Breakage one) const noexcept { return breakage == one; }
};

// Payload that was taken away from a receive buffer, to be put back later.
struct Stolen {
  std::byte* at = nullptr;
  std::vector<std::byte> bytes;
};

class BrokenCq final : public CqDecorator {
 public:
  BrokenCq(Shared& shared, Waker* waker) : CqDecorator(waker), shared_(shared) {}
  ~BrokenCq() override {
    if (shared_.has(Breakage::unchecked_destruction)) shared_.graveyard.push_back(release_inner());
  }

  std::size_t poll(std::span<Completion> out) noexcept override {
    give_back();
    std::size_t count = 0;
    while (count < out.size() && next(out[count])) ++count;
    return count;
  }
  [[nodiscard]] ArmResult arm() noexcept override {
    if (!queue_.empty()) return ArmResult::pending;
    const ArmResult result = inner().arm();
    if (result == ArmResult::armed) return result;
    if (shared_.has(Breakage::never_pending)) return ArmResult::armed;
    if (!shared_.has(Breakage::wakes_inside_calls)) return result;
    wake_user();
    return ArmResult::armed;
  }

 protected:
  void on_wake() noexcept override {
    if (shared_.has(Breakage::never_wakes)) return;
    wake_user();
    if (shared_.has(Breakage::wakes_twice)) wake_user();
  }

 private:
  bool next(Completion& out) {
    while (queue_.empty() && refill()) continue;
    if (queue_.empty()) return false;
    out = queue_.pop();
    return true;
  }

  // Takes one completion from the inner queue, which may become none or two; false if there is none.
  bool refill() {
    Completion one;
    if (inner().poll({&one, 1}) == 0) return false;
    spoil(one);
    const bool flushed = one.status == WcStatus::flushed;
    if (shared_.has(Breakage::loses_completions) && ++polled_ % 7 == 0) return true;
    if (flushed && shared_.has(Breakage::misses_one_flush) && flushes_++ == 1) return true;
    if (flushed && shared_.has(Breakage::flushes_twice) && flushes_++ == 0) queue_.push(one);
    Completion second;
    if (shared_.has(Breakage::reorders_completions) && inner().poll({&second, 1}) == 1) queue_.push(second);
    queue_.push(one);
    return true;
  }

  void spoil(Completion& one) {
    const auto become = [&](Breakage breakage, std::initializer_list<WcStatus> from, WcStatus to) {
      const bool hit = std::ranges::find(from, one.status) != from.end();
      if (shared_.has(breakage) && hit) one.status = to;
    };
    become(Breakage::flushes_as_success, {WcStatus::flushed}, WcStatus::success);
    become(Breakage::ignores_rnr, {WcStatus::rnr_retry_exceeded, WcStatus::retry_exceeded},
           WcStatus::success);
    become(Breakage::swallows_faults,
           {WcStatus::remote_access, WcStatus::remote_invalid_request, WcStatus::local_length,
            WcStatus::local_protection},
           WcStatus::success);
    become(Breakage::confuses_statuses, {WcStatus::remote_access}, WcStatus::remote_operation);
    if (shared_.has(Breakage::loses_immediates)) one.has_imm = false;
    if (one.status != WcStatus::success || one.opcode != WcOpcode::recv || one.byte_len == 0) return;
    if (shared_.has(Breakage::wrong_byte_count)) ++one.byte_len;
    const auto receive = shared_.receives.find(one.wr_id);
    if (receive == shared_.receives.end() || receive->second.empty()) return;
    const Sge& first = receive->second.front();
    auto* bytes = reinterpret_cast<std::byte*>(first.addr);
    if (shared_.has(Breakage::announces_too_early)) steal(bytes, std::min(first.length, one.byte_len));
    const bool long_by_one = one.byte_len == shared_.mtu[one.qp] + 1 && first.length >= one.byte_len;
    if (shared_.has(Breakage::corrupts_mtu_plus_one) && long_by_one) bytes[one.byte_len - 1] ^= std::byte{1};
  }

  void steal(std::byte* at, std::size_t length) {
    stolen_.push_back({at, {at, at + length}});
    std::memset(at, 0, length);
  }
  void give_back() {
    for (const Stolen& one : stolen_) std::memcpy(one.at, one.bytes.data(), one.bytes.size());
    stolen_.clear();
  }

  Shared& shared_;
  Ring<Completion> queue_{2};
  std::vector<Stolen> stolen_;
  int polled_ = 0;
  int flushes_ = 0;
};

class BrokenSrq final : public SrqDecorator {
 public:
  BrokenSrq(std::unique_ptr<SharedReceiveQueue> made, Shared& shared)
      : SrqDecorator(std::move(made)), shared_(shared) {}
  std::size_t post_recv(std::span<const RecvWr> requests) noexcept override {
    const std::size_t count = inner().post_recv(requests);
    const bool needed =
        shared_.has(Breakage::announces_too_early) || shared_.has(Breakage::corrupts_mtu_plus_one);
    if (!needed) return count;
    for (const RecvWr& wr : requests.first(count))
      shared_.receives[wr.wr_id] = {wr.sges.begin(), wr.sges.end()};
    return count;
  }

 private:
  Shared& shared_;
};

class BrokenQp final : public QpDecorator, private Timer {
 public:
  BrokenQp(std::unique_ptr<QueuePair> made, Shared& shared, const QpConfig& config)
      : QpDecorator(std::move(made)), shared_(shared), config_(config) {}
  Result<> connect(const QpAddress& peer, const PathConfig& path) override {
    PathConfig changed = path;
    shared_.mtu[address().qp] = path.mtu_bytes;
    if (shared_.has(Breakage::retries_for_ever) && path.rnr_retry < 7) changed.rnr_retry = 7;
    if (shared_.has(Breakage::retries_for_ever) && path.ack_timeout < 32) changed.ack_timeout = 0;
    if (shared_.has(Breakage::wrong_rnr_timer) && path.min_rnr_timer < 32) changed.min_rnr_timer = 1;
    return inner().connect(peer, changed);
  }
  std::size_t post_send(std::span<const SendWr> requests) noexcept override {
    if (shared_.has(Breakage::allocates_in_post)) scratch_ = std::make_unique<char>();
    if (shared_.has(Breakage::claims_all_accepted)) {
      inner().post_send(requests);
      return requests.size();
    }
    if (shared_.has(Breakage::drops_last_element)) return post_without_last(requests);
    if (shared_.has(Breakage::reads_elements_late)) return post_later(requests);
    return inner().post_send(requests);
  }
  void fail() noexcept override { inner().fail(); }

 private:
  std::size_t post_without_last(std::span<const SendWr> requests) noexcept {
    std::size_t count = 0;
    for (SendWr wr : requests) {
      if (wr.sges.size() == config_.sges_max && wr.sges.size() > 1)
        wr.sges = wr.sges.first(wr.sges.size() - 1);
      if (inner().post_send({&wr, 1}) == 0) break;
      ++count;
    }
    return count;
  }
  // Keeps the spans and posts when the loop runs: by then the caller may have reused its array.
  std::size_t post_later(std::span<const SendWr> requests) noexcept {
    const std::size_t room = std::min<std::size_t>(requests.size(), config_.send_depth - late_.size());
    for (const SendWr& wr : requests.first(room)) late_.push_back(wr);
    shared_.reactor->arm(*this, shared_.reactor->now());
    return room;
  }
  void on_timer(Instant) noexcept override {
    for (; !late_.empty(); late_.pop_front()) {
      if (inner().post_send({&late_.front(), 1}) == 0) return;
    }
  }

  Shared& shared_;
  QpConfig config_;
  std::unique_ptr<char> scratch_;
  std::deque<SendWr> late_;
};

class BrokenDevice final : public DeviceDecorator {
 public:
  BrokenDevice(Device& made, Shared& shared) : DeviceDecorator(made), shared_(shared) {}
  std::size_t poll_events(std::span<DeviceEvent> out) noexcept override {
    const std::size_t count = inner().poll_events(out);
    if (!shared_.has(Breakage::silent_overrun)) return count;
    const auto kept =
        std::remove_if(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count),
                       [](const DeviceEvent& event) { return event.kind == DeviceEventKind::cq_overrun; });
    return static_cast<std::size_t>(kept - out.begin());
  }

 protected:
  std::unique_ptr<CqDecorator> decorate_cq(const CqConfig& config) override {
    return std::make_unique<BrokenCq>(shared_, config.waker);
  }
  std::unique_ptr<SrqDecorator> decorate_srq(std::unique_ptr<SharedReceiveQueue> made) override {
    return std::make_unique<BrokenSrq>(std::move(made), shared_);
  }
  std::unique_ptr<QpDecorator> decorate_qp(std::unique_ptr<QueuePair> made, const QpConfig& config) override {
    return std::make_unique<BrokenQp>(std::move(made), shared_, config);
  }

 private:
  Shared& shared_;
};

class BrokenHost final : public HostDecorator {
 public:
  BrokenHost(std::unique_ptr<Host> opened, Breakage breakage)
      : HostDecorator(std::move(opened)),
        shared_{breakage, &reactor(), {}, {}, {}},
        device_(inner().device(), shared_) {}
  Device& device() noexcept override { return device_; }

 private:
  Shared shared_;
  BrokenDevice device_;
};

}  // namespace

std::unique_ptr<Host> BrokenFabric::decorate_host(std::unique_ptr<Host> inner) {
  return std::make_unique<BrokenHost>(std::move(inner), breakage_);
}

}  // namespace bx::conformance
