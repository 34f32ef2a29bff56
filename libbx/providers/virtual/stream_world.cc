// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/virtual/stream_world.h"

#include <memory>

#include "libbx/base/check.h"

namespace bx::virtual_time {

StreamWorld::StreamWorld(AlarmPool& alarms, const StreamConfig& config) : alarms_(alarms), config_(config) {
  BX_CHECK(config.bytes_per_second > 0 && config.buffer_bytes > 0 && config.latency >= Duration{0},
           "a stream network needs a rate and a buffer above zero");
}

StreamWorld::~StreamWorld() {
  BX_CHECK(hosts_.empty(), "a host outlived its stream network");
  while (StreamConnection* connection = connections_.pop_front()) {
    BX_CHECK(!connection->held(), "a stream outlived its network");
    delete connection;
  }
}

void StreamWorld::add_host(std::string_view name, VirtualStreams& host) {
  const bool added = hosts_.emplace(std::string(name), &host).second;
  BX_CHECK(added, "two hosts of one stream network have the same name");
}

void StreamWorld::set_silent(std::string_view name, bool silent) {
  if (silent) {
    silent_.emplace(name);
  } else if (const auto found = silent_.find(name); found != silent_.end()) {
    silent_.erase(found);
  }
}

void StreamWorld::remove_host(std::string_view name) noexcept {
  const auto found = hosts_.find(name);
  if (found != hosts_.end()) hosts_.erase(found);
}

VirtualStreams* StreamWorld::find_host(std::string_view name) noexcept {
  const auto found = hosts_.find(name);
  return found == hosts_.end() ? nullptr : found->second;
}

StreamConnection& StreamWorld::make_connection(VirtualStreams& client, VirtualStreams& server,
                                               std::uint16_t port) {
  auto connection = std::make_unique<StreamConnection>(*this, client, server, port);
  connections_.push_back(*connection);
  return *connection.release();
}

void StreamWorld::vanish(VirtualStreams& host) noexcept {
  StreamConnection* next = connections_.front();
  while (StreamConnection* connection = next) {
    next = connections_.next(*connection);
    for (const std::size_t side : {StreamConnection::kClient, StreamConnection::kServer}) {
      if (connection->host(side) == &host) connection->vanish(side);
    }
    reap(*connection);
  }
}

void StreamWorld::reap(StreamConnection& connection) noexcept {
  if (!connection.dead()) return;
  static_cast<ListHook<StreamConnection::WorldTag>&>(connection).unlink();
  delete &connection;
}

}  // namespace bx::virtual_time
