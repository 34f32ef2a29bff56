// SPDX-License-Identifier: BSD-3-Clause
// Memory that peers may put to and get from by themselves, without the owner's program taking part.
//
//   owner:  Exposed table = worker.expose(std::move(buffer)).value();   send table.remote() in any message
//   peer:   co_await session.put(std::move(rows), remote.at(offset))
#pragma once

#include <bx/buffer.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "libbx/fabric/device.h"

namespace bx {

namespace engine {
class Worker;
}

// Names exposed memory, or a part of it, at a peer. A plain value of four numbers that programs send one
// another as they like; it is void once the owner has revoked it or has been started again.
struct RemoteRegion {
  std::uint64_t addr = 0;
  std::uint64_t length = 0;
  std::uint32_t rkey = 0;
  std::uint32_t owner = 0;  // which worker's: told in its handshake, another after every start

  // The part from `offset` on; of no length if there is none.
  [[nodiscard]] constexpr RemoteRegion at(std::uint64_t offset) const noexcept {
    if (offset > length) return {.addr = addr, .length = 0, .rkey = rkey, .owner = owner};
    return {.addr = addr + offset, .length = length - offset, .rkey = rkey, .owner = owner};
  }
  friend bool operator==(const RemoteRegion&, const RemoteRegion&) = default;
};

// Exposed memory at its owner: a Buffer with a registration of its own. Move-only, goes before its worker
// does. From revoke() (or destruction) on no NIC reads or writes it for anybody; a put or a get that is under
// way then fails at its caller with the lane.
class Exposed {
 public:
  Exposed(Exposed&&) noexcept = default;
  Exposed& operator=(Exposed&& other) noexcept {
    region_.reset();  // before the memory goes
    buffer_ = std::move(other.buffer_);
    region_ = std::move(other.region_);
    remote_ = other.remote_;
    return *this;
  }
  ~Exposed() { region_.reset(); }

  [[nodiscard]] const RemoteRegion& remote() const noexcept { return remote_; }
  // What peers put there is to be looked at only after a message from them says so (Session::put).
  [[nodiscard]] std::span<std::byte> bytes() noexcept { return buffer_.bytes(); }
  // Ends all remote access and gives the memory back.
  Buffer revoke() noexcept {
    region_.reset();
    return std::move(buffer_);
  }

 private:
  friend class engine::Worker;
  Exposed(Buffer&& buffer, std::unique_ptr<fabric::MemoryRegion> region, const RemoteRegion& remote) noexcept
      : buffer_(std::move(buffer)), region_(std::move(region)), remote_(remote) {}
  Buffer buffer_;
  std::unique_ptr<fabric::MemoryRegion> region_;
  RemoteRegion remote_;
};

}  // namespace bx
