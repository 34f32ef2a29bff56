// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/roce_objects.h"

#include <ns3/trace-source-accessor.h>
#include <ns3/uinteger.h>

#include "libbx/base/check.h"

namespace bx::sim {
namespace {

// A read-only attribute that a member function computes.
template <class Get>
void add_count(ns3::TypeId& id, const char* name, const char* help, Get get) {
  id.AddAttribute(name, help, ns3::TypeId::ATTR_GET, ns3::UintegerValue(0), ns3::MakeUintegerAccessor(get),
                  ns3::MakeUintegerChecker<std::uint64_t>());
}

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(RoceNic);
NS_OBJECT_ENSURE_REGISTERED(RoceSwitch);

ns3::TypeId RoceNic::GetTypeId() {
  static const ns3::TypeId id = [] {
    ns3::TypeId made = ns3::TypeId("bx::sim::RoceNic")
                           .SetParent<ns3::Object>()
                           .SetGroupName("ByteExpress")
                           .AddConstructor<RoceNic>();
    add_count(made, "Host", "Number of the host.", &RoceNic::host);
    add_count(made, "PacketsTx", "Packets sent.", &RoceNic::packets_tx);
    add_count(made, "PacketsRx", "Packets received.", &RoceNic::packets_rx);
    add_count(made, "Retransmissions", "Packets sent again.", &RoceNic::retransmissions);
    made.AddAttribute("DataRate", "Rate of the port.", ns3::TypeId::ATTR_GET, ns3::DataRateValue(),
                      ns3::MakeDataRateAccessor(&RoceNic::data_rate), ns3::MakeDataRateChecker());
    made.AddAttribute("PausedTime", "Summed over priorities, up to now.", ns3::TypeId::ATTR_GET,
                      ns3::TimeValue(), ns3::MakeTimeAccessor(&RoceNic::paused_time), ns3::MakeTimeChecker());
    made.AddTraceSource("Cnp", "A congestion notification came: source host, our QP.",
                        ns3::MakeTraceSourceAccessor(&RoceNic::cnp_), "bx::sim::RoceNic::QpTrace");
    made.AddTraceSource("Pause", "The switch has paused priorities that were not: a bit each.",
                        ns3::MakeTraceSourceAccessor(&RoceNic::pause_), "bx::sim::RoceNic::PauseTrace");
    made.AddTraceSource("Discard", "A frame came that is nobody's: source host, QP it named.",
                        ns3::MakeTraceSourceAccessor(&RoceNic::discard_), "bx::sim::RoceNic::QpTrace");
    return made;
  }();
  return id;
}

void RoceNic::attach(Nic& nic) {
  BX_CHECK(nic_ == nullptr, "an object stands for one NIC");
  nic_ = &nic;
  nic.set_observer(this);
}

void RoceNic::DoDispose() {
  if (nic_ != nullptr) nic_->set_observer(nullptr);
  nic_ = nullptr;
  ns3::Object::DoDispose();
}

ns3::DataRate RoceNic::data_rate() const {
  return ns3::DataRate(nic_->port().rate().bits_per_second);
}

ns3::Time RoceNic::paused_time() const {
  return ns3::PicoSeconds(static_cast<std::uint64_t>(nic_->port().paused_time().count()));
}

ns3::TypeId RoceSwitch::GetTypeId() {
  static const ns3::TypeId id = [] {
    ns3::TypeId made = ns3::TypeId("bx::sim::RoceSwitch")
                           .SetParent<ns3::Object>()
                           .SetGroupName("ByteExpress")
                           .AddConstructor<RoceSwitch>();
    add_count(made, "Ports", "Number of ports.", &RoceSwitch::ports);
    add_count(made, "BufferBytes", "Bytes buffered now.", &RoceSwitch::buffer_bytes);
    add_count(made, "BufferBytesMax", "Most bytes ever buffered.", &RoceSwitch::buffer_bytes_max);
    add_count(made, "PauseFrames", "Pause frames sent, refreshes included.", &RoceSwitch::pause_frames);
    add_count(made, "Drops", "Frames of lossy classes dropped for want of buffer.", &RoceSwitch::drops);
    add_count(made, "LosslessDrops", "Frames of lossless classes dropped.", &RoceSwitch::lossless_drops);
    made.AddTraceSource("Drop", "A frame was dropped: source host, priority.",
                        ns3::MakeTraceSourceAccessor(&RoceSwitch::drop_), "bx::sim::RoceSwitch::FrameTrace");
    made.AddTraceSource("Mark", "A frame was marked (ECN): egress port, priority.",
                        ns3::MakeTraceSourceAccessor(&RoceSwitch::mark_), "bx::sim::RoceSwitch::FrameTrace");
    made.AddTraceSource("Xoff", "A pause was decided on: ingress port, priority.",
                        ns3::MakeTraceSourceAccessor(&RoceSwitch::xoff_), "bx::sim::RoceSwitch::FrameTrace");
    return made;
  }();
  return id;
}

void RoceSwitch::attach(Switch& fabric_switch) {
  BX_CHECK(switch_ == nullptr, "an object stands for one switch");
  switch_ = &fabric_switch;
  fabric_switch.set_observer(this);
}

void RoceSwitch::DoDispose() {
  if (switch_ != nullptr) switch_->set_observer(nullptr);
  switch_ = nullptr;
  ns3::Object::DoDispose();
}

}  // namespace bx::sim
