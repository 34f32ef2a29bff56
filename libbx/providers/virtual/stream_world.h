// SPDX-License-Identifier: BSD-3-Clause
// The network that the streams of one fabric share: the hosts by name and all connections between them. It
// owns the connections, so that bytes written before a stream was closed still arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "libbx/base/intrusive_list.h"
#include "libbx/providers/virtual/alarm.h"
#include "libbx/providers/virtual/stream_connection.h"

namespace bx::virtual_time {

class VirtualStreams;

struct StreamConfig {
  Duration latency{10'000};                          // one way, kernels and wire together
  std::uint64_t bytes_per_second = 1'250'000'000;    // of a host towards all its peers: 10 Gb/s
  std::size_t buffer_bytes = std::size_t{1} << 18U;  // a direction of a connection, in flight and unread
  std::uint32_t backlog_max = 4096;                  // connections that wait for on_accept; more are refused
};

// Must outlive its hosts, and every stream and listener made from them.
class StreamWorld {
 public:
  StreamWorld(AlarmPool& alarms, const StreamConfig& config);
  ~StreamWorld();
  StreamWorld(const StreamWorld&) = delete;
  StreamWorld& operator=(const StreamWorld&) = delete;

  [[nodiscard]] const StreamConfig& config() const noexcept { return config_; }
  [[nodiscard]] AlarmPool& alarms() noexcept { return alarms_; }
  // A silent host's segments, and those for it, vanish without a trace: nothing is reset. For a host that has
  // crashed; its connections do not recover.
  void set_silent(std::string_view name, bool silent);
  [[nodiscard]] bool silent(std::string_view name) const noexcept {
    return !silent_.empty() && silent_.contains(name);
  }

  [[nodiscard]] Instant now() const noexcept { return alarms_.loop().now(); }

  // For VirtualStreams only.
  void add_host(std::string_view name, VirtualStreams& host);  // the name must be free
  void remove_host(std::string_view name) noexcept;
  [[nodiscard]] VirtualStreams* find_host(std::string_view name) noexcept;  // null: no such host now
  StreamConnection& make_connection(VirtualStreams& client, VirtualStreams& server, std::uint16_t port);
  // Resets every connection that has an end at `host`.
  void vanish(VirtualStreams& host) noexcept;
  // Frees the connection if nobody can notice it any more.
  void reap(StreamConnection& connection) noexcept;

 private:
  AlarmPool& alarms_;
  StreamConfig config_;
  std::map<std::string, VirtualStreams*, std::less<>> hosts_;
  std::set<std::string, std::less<>> silent_;
  IntrusiveList<StreamConnection, StreamConnection::WorldTag> connections_;
};

}  // namespace bx::virtual_time
