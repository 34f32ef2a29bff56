// SPDX-License-Identifier: GPL-2.0-only
#include "harness/swarm/swarm.h"

#include <utility>

#include "harness/swarm/member.h"
#include "harness/swarm/network.h"
#include "libbx/base/digest.h"

namespace bx::harness {

namespace {
constexpr Duration kBusy = std::chrono::milliseconds{3};  // how long members start calls
}  // namespace

void SwarmReport::add_counts(const SwarmReport& other) noexcept {
  for (const auto count : kSwarmCounts) this->*count += other.*count;
}

Swarm::Swarm(const SwarmPlan& plan) : plan_(plan), prng_(Prng(plan.seed).fork("swarm")) {
  auto network = SwarmNetwork::create(plan_);
  if (!network) {
    fault("start", std::string("no network: ") + network.error().detail);
    return;
  }
  network_ = std::move(*network);
  for (std::size_t i = 0; i < plan_.hosts.size(); ++i) {
    members_.push_back(std::make_unique<Member>(*this, i, prng_.fork("host" + std::to_string(i))));
  }
}

Swarm::~Swarm() {
  members_.clear();
}

void Swarm::fault(std::string checker, std::string what) {
  if (report_.faults.size() < kFaultsMax) report_.faults.push_back({std::move(checker), std::move(what)});
}

void Swarm::run_until(Instant limit) {
  for (const auto& member : members_) {
    if (!member->running()) continue;
    member->reactor().run(limit);
    return;
  }
}

void Swarm::live() {
  Instant now{};
  while (now < Instant(kBusy)) {
    now += Duration(static_cast<std::int64_t>(prng_.between(50'000, 1'500'000)));
    run_until(now);
    if (plan_.honest() || !prng_.chance(0.5)) continue;
    Member& victim = *members_[prng_.below(members_.size() - 1) + 1];  // one stays, to run the world
    if (victim.running()) {
      victim.stop();
    } else {
      victim.start();
    }
  }
}

// Everything is given back, the workers last.
void Swarm::close() {
  for (const auto& member : members_) member->close();
  run_until(kNever);
  for (const auto& member : members_) member->check_memory();
}

SwarmReport Swarm::run() {
  if (network_ == nullptr) return report_;
  for (const auto& member : members_) member->start();
  network_->start_faults();
  live();
  for (const auto& member : members_) member->wind_down();
  run_until(kNever);
  for (const auto& member : members_) member->check_end();
  for (const std::string& breach : network_->breaches()) fault("network", breach);
  if (const std::uint64_t naks = network_->rnr_naks(); naks > 0) {
    fault("no-rnr", std::to_string(naks) + " receiver-not-ready NAKs");
  }
  close();
  Digest digest;
  digest.add(network_->digest());
  digest.add(network_->events());
  for (const auto count : kSwarmCounts) digest.add(report_.*count);
  digest.add(static_cast<std::uint64_t>(report_.faults.size()));
  report_.digest = digest.value();
  for (const auto& member : members_) member->stop();
  return report_;
}

}  // namespace bx::harness
