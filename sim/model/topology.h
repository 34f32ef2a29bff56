// SPDX-License-Identifier: GPL-2.0-only
// Switches and links, ready for hosts to be plugged in. Hosts are numbered from 0; a frame's src_host and
// dst_host are these numbers. The hosts' ports belong to their NICs.
#pragma once

#include <cstdint>

#include "libbx/base/prng.h"
#include "libbx/base/result.h"
#include "sim/model/engine.h"
#include "sim/model/frame.h"
#include "sim/model/port.h"
#include "sim/model/run_digest.h"
#include "sim/model/switch.h"
#include "sim/model/units.h"

namespace bx::sim {

class Topology {
 public:
  virtual ~Topology() = default;
  [[nodiscard]] virtual std::uint16_t hosts() const noexcept = 0;
  // Joins the host's NIC to its switch, once a host, and adds what arrives there to the run's digest.
  virtual void connect_host(std::uint16_t host, Port& nic_port) = 0;
  // Of all switches.
  [[nodiscard]] virtual SwitchTotals totals() const noexcept = 0;
  [[nodiscard]] virtual const RunDigest& digest() const noexcept = 0;
};

struct SingleSwitchConfig {
  std::uint16_t hosts = 0;
  Picoseconds delay{};    // of each link, one way
  SwitchConfig fabric{};  // buffer.ports is set to `hosts`
};

// N hosts around one switch; host i is on port i.
class SingleSwitch final : public Topology {
 public:
  // Errors: those of check_switch.
  [[nodiscard]] static Result<> check(const SingleSwitchConfig& config);
  // `config` must pass check.
  SingleSwitch(Engine& engine, FramePool& pool, const SingleSwitchConfig& config, const Prng& random);

  [[nodiscard]] std::uint16_t hosts() const noexcept override { return switch_.ports(); }
  void connect_host(std::uint16_t host, Port& nic_port) override;
  [[nodiscard]] SwitchTotals totals() const noexcept override { return switch_.totals(); }
  [[nodiscard]] const RunDigest& digest() const noexcept override { return digest_; }

  [[nodiscard]] Switch& fabric_switch() noexcept { return switch_; }
  [[nodiscard]] const Switch& fabric_switch() const noexcept { return switch_; }

 private:
  Picoseconds delay_;
  Switch switch_;
  RunDigest digest_;
};

}  // namespace bx::sim
