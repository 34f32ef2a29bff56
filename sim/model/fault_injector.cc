// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/fault_injector.h"

#include <algorithm>
#include <string>
#include <utility>

#include "libbx/base/check.h"

namespace bx::sim {
namespace {

constexpr std::uint8_t kStormPriority = 3;

bool acts_on_frames(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::loss:
    case FaultKind::drop:
    case FaultKind::corrupt:
    case FaultKind::reorder:
    case FaultKind::delay:
    case FaultKind::ecn_mark:
    case FaultKind::black_hole:
    case FaultKind::cnp_loss:
    case FaultKind::pause_loss:
    case FaultKind::wrong_class:
    case FaultKind::host_crash:
      return true;
    default:
      return false;
  }
}

// The ends whose sending the fault concerns.
std::vector<FaultTarget::End> senders(const FaultSpec& fault, const FaultTarget& target) {
  bool sent = fault.direction != FaultDirection::received;
  bool received = fault.direction != FaultDirection::sent;
  if (fault.kind == FaultKind::wrong_class || target.form == fault_target::kQueue) received = false;
  if (fault.kind == FaultKind::black_hole) {
    // What the switch sends: that is a port's own, and a host's peer's.
    sent = target.form == fault_target::kPort;
    received = !sent;
  }
  std::vector<FaultTarget::End> ends;
  for (const FaultTarget::End& each : target.ends) {
    if (sent) ends.push_back(each);
    if (received) ends.push_back({each.link, 1 - each.end});
  }
  return ends;
}

}  // namespace

struct FaultInjector::Attachment {
  explicit Attachment(Port& at) : port(at) { port.set_faults(&faults); }
  ~Attachment() { port.set_faults(nullptr); }
  Port& port;
  PortFaults faults;
};

struct FaultInjector::Entry {
  Entry(FaultInjector& injector, const FaultSpec& spec, const TopologyPlan& plan)
      : owner(injector), target(find_fault_target(plan, spec.target)) {
    record.spec = spec;
  }
  FaultInjector& owner;
  FaultTarget target;
  FaultRecord record;
  std::uint32_t times_left = 1;  // it begins
  std::vector<std::pair<Attachment*, std::size_t>> at_ports;
  std::unique_ptr<PacketPick> pick;
  std::unique_ptr<SlowReceiver> slow;
};

FaultInjector::FaultInjector(Engine& engine, FramePool& pool, Topology& topology, std::vector<Nic*> nics,
                             std::span<const FaultSpec> plan, const Prng& random)
    : engine_(engine), pool_(pool), topology_(topology), nics_(std::move(nics)), pauses_(nics_.size()) {
  for (const FaultSpec& spec : plan) {
    BX_CHECK(find_fault_error(spec, topology.plan()).empty(), "faults are checked before they are injected");
    Entry& entry = *entries_.emplace_back(std::make_unique<Entry>(*this, spec, topology.plan()));
    if (spec.kind == FaultKind::link_flap) entry.times_left = spec.count;
    attach(entry, entries_.size(), random);
    if (entry.pick != nullptr && spec.at.count() == 0) begin(entry);
  }
}

void FaultInjector::start() {
  if (std::exchange(started_, true)) return;
  for (const auto& entry : entries_) {
    if (entry->record.began) continue;
    if (entry->record.spec.at.count() == 0) {
      begin(*entry);
    } else {
      engine_.post(entry->record.spec.at, &on_begin, entry.get());
    }
  }
}

FaultInjector::~FaultInjector() {
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if ((*entry)->slow != nullptr) (*entry)->slow->leave();
  }
}

FaultInjector::Attachment& FaultInjector::attachment(Port& port) {
  for (const auto& each : attachments_) {
    if (&each->port == &port) return *each;
  }
  return *attachments_.emplace_back(std::make_unique<Attachment>(port));
}

PauseSender& FaultInjector::pauses_of(std::uint16_t host) {
  if (pauses_[host] == nullptr) {
    Nic& nic = *nics_[host];
    std::uint8_t port = 0;  // of a NIC with several hosts, each at a port of its own
    while (nic.host(port) != host) ++port;
    pauses_[host] = std::make_unique<PauseSender>(engine_, pool_, nic.port(port));
  }
  return *pauses_[host];
}

void FaultInjector::attach(Entry& entry, std::uint64_t number, const Prng& random) {
  const FaultSpec& spec = entry.record.spec;
  if (spec.kind == FaultKind::slow_receiver) {
    Nic& nic = *nics_[entry.target.host];
    entry.slow = std::make_unique<SlowReceiver>(engine_, nic, pauses_of(entry.target.host));
  }
  if (!acts_on_frames(spec.kind)) return;
  if (entry.target.form == fault_target::kQueue) {
    entry.pick = std::make_unique<PacketPick>(*nics_[entry.target.host], entry.target.queue_pair, spec);
  }
  const Prng stream = random.fork("fault" + std::to_string(number));
  for (const FaultTarget::End& end : senders(spec, entry.target)) {
    attach(entry, end,
           {.kind = spec.kind,
            .random = stream.fork(std::to_string(end.link) + '.' + std::to_string(end.end)),
            .probability = spec.probability,
            .pick = entry.pick.get(),
            .delay = spec.delay,
            .priority = spec.priority,
            .hits = &entry.record.hits});
  }
}

void FaultInjector::attach(Entry& entry, const FaultTarget::End& at, const PortFault& fault) {
  Port* port = topology_.port_of(at.link, at.end);
  BX_CHECK(port != nullptr, "faults are injected into a network that has all its hosts");
  PortFault here = fault;
  if (here.kind == FaultKind::reorder && here.delay.count() == 0) {
    // Two full frames and a little pass meanwhile.
    here.delay = 5 * Serialiser(port->rate()).time_for(kFrameBytesMax) / 2;
  }
  Attachment& attached = attachment(*port);
  entry.at_ports.emplace_back(&attached, attached.faults.add(here));
}

void FaultInjector::on_begin(void* argument, void* /*unused*/) {
  auto& entry = *static_cast<Entry*>(argument);
  entry.owner.begin(entry);
}

void FaultInjector::on_end(void* argument, void* /*unused*/) {
  auto& entry = *static_cast<Entry*>(argument);
  entry.owner.end(entry);
}

void FaultInjector::begin(Entry& entry) {
  const FaultSpec& spec = entry.record.spec;
  entry.record.began = true;
  --entry.times_left;
  switch_on(entry, true);
  if (entry.times_left > 0) engine_.post(spec.period, &on_begin, &entry);
  if (spec.kind == FaultKind::qp_error) {
    entry.record.ended = true;
  } else if (spec.duration.count() > 0) {
    engine_.post(spec.duration, &on_end, &entry);
  } else if (spec.kind == FaultKind::nic_reset) {
    end(entry);
  }
}

void FaultInjector::end(Entry& entry) {
  switch_on(entry, false);
  entry.record.ended = entry.times_left == 0;
}

void FaultInjector::cut(Entry& entry, LinkState state) {
  const FaultSpec& spec = entry.record.spec;
  for (const FaultTarget::End& end : senders(spec, entry.target)) {
    topology_.set_direction(end.link, end.end, state);
  }
}

void FaultInjector::switch_on(Entry& entry, bool on) {
  const FaultSpec& spec = entry.record.spec;
  const std::uint16_t host = entry.target.host;
  for (const auto& [attached, index] : entry.at_ports) {
    attached->faults.set_active(index, on);
    if (!on && spec.kind == FaultKind::pause_loss) attached->port.tell_pauses_again();
  }
  switch (spec.kind) {
    case FaultKind::nic_reset:
      if (on) nics_[host]->fail_all_qps();
      [[fallthrough]];
    case FaultKind::link_down:
    case FaultKind::link_flap:
      entry.record.hits += on ? 1 : 0;
      return cut(entry, on ? LinkState::down : LinkState::up);
    case FaultKind::qp_error:
      if (RcQueuePair* qp = nics_[host]->find_qp(kFirstQp + entry.target.queue_pair - 1); qp != nullptr) {
        ++entry.record.hits;
        nics_[host]->fail_qp(*qp);
      }
      return;
    case FaultKind::pause_storm: {
      const bool given = (spec.given & fault_field::kPriority) != 0;
      const unsigned priority = given ? spec.priority : kStormPriority;
      return pauses_of(host).pause(on ? static_cast<std::uint8_t>(1U << priority) : std::uint8_t{0});
    }
    case FaultKind::slow_receiver:
      return on ? entry.slow->start(spec.rate) : entry.slow->stop();
    case FaultKind::process_kill:
      entry.record.hits += on ? 1 : 0;
      [[fallthrough]];
    case FaultKind::host_crash:
      if (listener_ != nullptr) listener_->on_host_fault(host, spec.kind, on);
      return;
    default:
      return;
  }
}

std::vector<FaultRecord> FaultInjector::records() const {
  std::vector<FaultRecord> records;
  for (const auto& entry : entries_) {
    FaultRecord& record = records.emplace_back(entry->record);
    const FaultKind kind = record.spec.kind;
    if (kind == FaultKind::pause_storm || kind == FaultKind::slow_receiver) {
      const auto& sender = pauses_[entry->target.host];
      record.hits = sender == nullptr ? 0 : sender->frames();
    }
  }
  return records;
}

std::size_t FaultInjector::pending() const noexcept {
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
    const FaultRecord& record = entry->record;
    return !record.began || (!record.ended && record.spec.duration.count() > 0);
  }));
}

}  // namespace bx::sim
