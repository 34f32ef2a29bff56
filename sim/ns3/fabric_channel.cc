// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/fabric_channel.h"

namespace bx::sim {

NS_OBJECT_ENSURE_REGISTERED(FabricChannel);

ns3::TypeId FabricChannel::GetTypeId() {
  static const ns3::TypeId id = ns3::TypeId("bx::sim::FabricChannel")
                                    .SetParent<ns3::Channel>()
                                    .SetGroupName("ByteExpress")
                                    .AddConstructor<FabricChannel>();
  return id;
}

void FabricChannel::DoDispose() {
  devices_.clear();
  ns3::Channel::DoDispose();
}

}  // namespace bx::sim
