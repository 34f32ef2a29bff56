// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/cnp_source.h"

#include "sim/model/rc_queue_pair.h"

namespace bx::sim {

void CnpSource::start(const CnpConfig& config) {
  dscp_ = config.dscp;
  priority_ = static_cast<std::uint8_t>(config.dscp >> 3U);
  last_ = CnpLimiter::kLongAgo;
  if (config.scope == CnpScope::address_pair) {
    qp_.environment().cnp_limiter().add_peer(qp_.path().peer_host);
  }
}

void CnpSource::stop() noexcept {
  pending_ = false;
  unlink();
}

void CnpSource::on_marked(const CnpConfig& config) {
  RcEnvironment& environment = qp_.environment();
  const Picoseconds now = environment.now();
  Picoseconds& last = last_of(config.scope);
  if (now - last < config.interval) return;
  last = now;
  if (config.delay.count() == 0) return request();
  environment.schedule_timer(qp_, RcTimer::notify, now + config.delay);
}

Picoseconds& CnpSource::last_of(CnpScope scope) noexcept {
  CnpLimiter& limiter = qp_.environment().cnp_limiter();
  switch (scope) {
    case CnpScope::port:
      return limiter.last_of_port(port());
    case CnpScope::address_pair:
      return limiter.last_to(qp_.path().peer_host);
    case CnpScope::queue_pair:
      break;
  }
  return last_;
}

void CnpSource::request() {
  pending_ = true;
  qp_.environment().activate(*this, TxClass::control);
}

Frame* CnpSource::produce() {
  if (!pending_) return nullptr;
  pending_ = false;
  ++qp_.environment().counters().cnps_tx;
  Frame* frame = qp_.make_frame(BthOpcode::cnp, 0);
  frame->priority = priority_;
  frame->dscp = dscp_;
  frame->ecn = Ecn::not_capable;
  return frame;
}

}  // namespace bx::sim
