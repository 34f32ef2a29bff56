// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/report.h"

#include <algorithm>
#include <cstdio>

#include "libbx/engine/worker.h"

namespace bx::engine {
namespace {

double number(std::uint64_t count) noexcept {
  return static_cast<double>(count);
}
double number(Duration time) noexcept {
  return static_cast<double>(time.count());
}

// The calls of a session that have completed are those whose latency was counted.
void add_calls(const SessionStats& session, Stats& sum) noexcept {
  sum.calls_started += session.calls_started;
  sum.calls_failed += session.calls_failed;
  sum.calls_completed += session.latency.count();
}

void add_peer(const Peer& peer, Stats& sum) noexcept {
#define BX_PEER_STAT_ADD(member) sum.member += peer.stats.member;
  BX_PEER_STATS(BX_PEER_STAT_ADD)
#undef BX_PEER_STAT_ADD
  for (const auto& session : peer.session_stats) add_calls(*session, sum);
}

constexpr std::array<StallReason, 4> kReasons = {StallReason::credit, StallReason::slot, StallReason::lane,
                                                 StallReason::window};
constexpr std::array<std::string_view, 4> kStallTimes = {"stall.credit_time", "stall.slot_time",
                                                         "stall.lane_time", "stall.window_time"};

struct Unit {
  std::string_view name;
  std::string_view unit;
};
// Of a member of Stats.
#define BX_STAT_UNIT(member, name, unit) constexpr Unit kUnit_##member{name, unit};
BX_STATS(BX_STAT_UNIT)
#undef BX_STAT_UNIT

// One peer, with its lanes and its sessions below it. What is the peer's has the first lane's label.
class PeerReport {
 public:
  PeerReport(const Peer& peer, std::string_view worker, LabelledMetricSink& sink)
      : peer_(peer),
        sink_(sink),
        name_(name_of(peer)),
        lane_(name_of(peer.lanes[0].lane->qp().address().qp)),
        labels_{{{"worker", worker}, {"peer", name_}, {"lane", lane_}, {"session", {}}}} {}

  void write(Instant now) {
#define BX_PEER_STAT_WRITE(member) counter(kUnit_##member, number(peer_.stats.member));
    BX_PEER_STATS(BX_PEER_STAT_WRITE)
#undef BX_PEER_STAT_WRITE
    for (std::size_t i = 0; i < kReasons.size(); ++i) {
      counter({kStallTimes[i], "ns"}, number(peer_.stall.time(kReasons[i], now)));
    }
    gauge({"credits.available", "count"}, number(peer_.credits.available()));
    gauge({"messages.queued", "count"}, number(peer_.queued));
    gauge({"window.bytes_out", "bytes"}, number(peer_.window_out.in_flight()));
    gauge({"window.limit_out", "bytes"}, number(peer_.window_out.limit()));
    gauge({"window.bytes_in", "bytes"}, number(peer_.window_in.in_flight()));
    for (const PeerLane& each : peer_.all_lanes()) write(each);
    labels_[2].value = lane_;
    for (const auto& session : peer_.session_stats) write(*session);
  }

 private:
  void write(const PeerLane& each) {
    const std::string name = name_of(each.lane->qp().address().qp);
    labels_[2].value = name;
    gauge({"lane.requests_outstanding", "count"}, number(each.lane->outstanding()));
    gauge({"lane.reads_outstanding", "count"}, number(each.reads_outstanding));
    counter({"lane.requests_posted", "count"}, number(each.lane->posted()));
  }
  void write(const SessionStats& session) {
    const std::string id = std::to_string(session.session);
    labels_.back().value = id;
    depth_ = labels_.size();
    counter({"session.calls_started", "count"}, number(session.calls_started));
    counter({"session.calls_failed", "count"}, number(session.calls_failed));
    counter({"session.bytes_out", "bytes"}, number(session.bytes_out));
    counter({"session.bytes_in", "bytes"}, number(session.bytes_in));
    sink_.histogram({"session.latency", labels(), "ns"}, session.latency);
  }
  [[nodiscard]] std::span<const MetricLabel> labels() const noexcept {
    return std::span(labels_).first(depth_);
  }
  void counter(Unit of, double value) {
    sink_.metric({of.name, labels(), of.unit}, value);
  }
  void gauge(Unit of, double value) {
    sink_.metric({of.name, labels(), of.unit, MetricKind::gauge}, value);
  }

  const Peer& peer_;
  LabelledMetricSink& sink_;
  std::string name_;
  std::string lane_;
  std::array<MetricLabel, 4> labels_;
  std::size_t depth_ = 3;  // labels in use: the last is a session's
};

// The plain report of memory, as that of one worker.
class MemoryReport final : public MetricSink {
 public:
  MemoryReport(LabelledMetricSink& sink, std::span<const MetricLabel> labels)
      : sink_(sink), labels_(labels) {}
  void metric(std::string_view name, double value, std::string_view unit) override {
    pass_on(name, value, unit, MetricKind::counter);
  }
  void level(std::string_view name, double value, std::string_view unit) override {
    pass_on(name, value, unit, MetricKind::gauge);
  }

 private:
  void pass_on(std::string_view name, double value, std::string_view unit, MetricKind kind) {
    const std::string full = "worker." + std::string(name);
    sink_.metric({full, labels_, unit, kind}, value);
  }

  LabelledMetricSink& sink_;
  std::span<const MetricLabel> labels_;
};

}  // namespace

void Departed::add(const Peer& peer, Instant now) noexcept {
  add_peer(peer, stats);
  for (const auto& session : peer.session_stats) latency.add(session->latency);
  for (const StallReason reason : kReasons) {
    stalled[static_cast<std::size_t>(reason)] += peer.stall.time(reason, now);
  }
}

std::string name_of(fabric::QpNum qp) {
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), "0x%x", static_cast<unsigned>(qp));
  return text.data();
}

std::string name_of(const Peer& peer) {
  if (!peer.host.empty()) return peer.host + ":" + std::to_string(peer.port);
  const fabric::Gid& gid = peer.lanes[0].remote.gid;
  std::string name;
  std::array<char, 8> text;
  constexpr fabric::Gid kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(gid.begin(), gid.begin() + 12, kMapped.begin())) {
    for (std::size_t i = 12; i < gid.size(); ++i) name += (i > 12 ? "." : "") + std::to_string(gid[i]);
  } else {
    for (std::size_t i = 0; i < gid.size(); i += 2) {
      std::snprintf(text.data(), text.size(), "%s%x", i > 0 ? ":" : "", gid[i] * 256U + gid[i + 1]);
      name += text.data();
    }
  }
  return name + "/qp" + name_of(peer.lanes[0].remote.qp);
}

Stats Worker::totals() const noexcept {
  Stats sum = stats_;
#define BX_STAT_ADD(member, name, unit) sum.member += departed_.stats.member;
  BX_STATS(BX_STAT_ADD)
#undef BX_STAT_ADD
  for (const auto& peer : peers_) {
    if (peer != nullptr) add_peer(*peer, sum);
  }
  return sum;
}

void Worker::report(MetricSink& sink) const {
  const Stats sum = totals();
#define BX_STAT_REPORT(member, name, unit) sink.metric(name, number(sum.member), unit);
  BX_STATS(BX_STAT_REPORT)
#undef BX_STAT_REPORT
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    Duration time = departed_.stalled[static_cast<std::size_t>(kReasons[i])];
    for (const auto& peer : peers_) {
      if (peer != nullptr) time += peer->stall.time(kReasons[i], reactor_.now());
    }
    sink.metric(kStallTimes[i], number(time), "ns");
  }
  report_memory(sink);
}

// The worker's own sums are over all that it ever had; those of peers and sessions are there while they are.
void Worker::report(LabelledMetricSink& sink) const {
  const std::array<MetricLabel, 1> labels = {{{"worker", host_.name()}}};
  const auto gauge = [&](std::string_view name, double value, std::string_view unit) {
    sink.metric({name, labels, unit, MetricKind::gauge}, value);
  };
  const Stats sum = totals();
#define BX_STAT_REPORT(member, name, unit) sink.metric({"worker." name, labels, unit}, number(sum.member));
  BX_STATS(BX_STAT_REPORT)
#undef BX_STAT_REPORT
  LogHistogram latency = departed_.latency;
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    for (const auto& session : peer->session_stats) latency.add(session->latency);
  }
  sink.histogram({"worker.calls.latency", labels, "ns"}, latency);
  MemoryReport memory(sink, labels);
  report_memory(memory);
  gauge("worker.calls.outstanding", number(calls_.size()), "count");
  gauge("worker.requests.serving", number(serving_), "count");
  gauge("worker.peers.live", number(peers_live_), "count");
  gauge("worker.window.bytes_in", number(budget_.outstanding()), "bytes");
  gauge("worker.window.limit_in", number(budget_.budget()), "bytes");
  gauge("worker.window.bytes_out", number(nic_window_.in_flight()), "bytes");
  gauge("worker.transfers.incoming", number(in_transfers_.size()), "count");
  gauge("worker.transfers.outgoing", number(out_transfers_.size()), "count");
  for (const auto& peer : peers_) {
    if (peer != nullptr) PeerReport(*peer, host_.name(), sink).write(reactor_.now());
  }
}

}  // namespace bx::engine
