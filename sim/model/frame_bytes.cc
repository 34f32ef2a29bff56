// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/frame_bytes.h"

#include <algorithm>
#include <cstring>

#include "libbx/base/check.h"
#include "sim/model/wire_size.h"

namespace bx::sim {
namespace {

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kUdpBytes = 8;
constexpr std::size_t kBthBytes = 12;
constexpr std::size_t kIcrcBytes = 4;
constexpr std::size_t kEthernetMinimum = 60;  // without FCS
constexpr std::uint8_t kBecn = 0x40;

// Writes in network byte order.
class Writer {
 public:
  explicit Writer(std::span<std::byte> out) noexcept : out_(out) {}
  void u8(std::uint64_t value) noexcept {
    BX_CHECK(size_ < out_.size(), "a frame is larger than the largest");
    out_[size_++] = static_cast<std::byte>(value);
  }
  void u16(std::uint64_t value) noexcept { number(value, 2); }
  void u24(std::uint64_t value) noexcept { number(value, 3); }
  void u32(std::uint64_t value) noexcept { number(value, 4); }
  void u64(std::uint64_t value) noexcept { number(value, 8); }
  void zeros(std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) u8(0);
  }
  void address(const MacAddress& mac) noexcept {
    for (const std::uint8_t byte : mac) u8(byte);
  }
  void bytes(const std::byte* data, std::size_t count) noexcept {
    BX_CHECK(size_ + count <= out_.size(), "a frame is larger than the largest");
    std::memcpy(out_.data() + size_, data, count);
    size_ += count;
  }
  void skip(std::size_t count) noexcept { size_ += count; }  // bytes that are there already
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<std::byte> from(std::size_t offset) const noexcept {
    return out_.subspan(offset, size_ - offset);
  }

 private:
  void number(std::uint64_t value, unsigned count) noexcept {
    for (unsigned i = count; i > 0; --i) u8(value >> (8 * (i - 1)));
  }
  std::span<std::byte> out_;
  std::size_t size_ = 0;
};

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0xedb88320U : 0U);
    table[i] = value;
  }
  return table;
}();

constexpr std::uint32_t crc_step(std::uint32_t crc, std::uint8_t byte) noexcept {
  return kCrcTable[(crc ^ byte) & 0xffU] ^ (crc >> 8U);
}

// RFC 1071.
std::uint16_t internet_checksum(std::span<const std::byte> header) noexcept {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < header.size(); i += 2) {
    sum += std::to_integer<std::uint32_t>(header[i]) << 8U | std::to_integer<std::uint32_t>(header[i + 1]);
  }
  while ((sum >> 16U) != 0) sum = (sum & 0xffffU) + (sum >> 16U);
  return static_cast<std::uint16_t>(~sum);
}

std::uint32_t pad_of(const Frame& frame) noexcept {
  return (4U - frame.payload_bytes % 4U) % 4U;
}

std::size_t udp_length(const Frame& frame) noexcept {
  return kUdpBytes + kBthBytes + extended_header_bytes(frame.opcode) + frame.payload_bytes + pad_of(frame) +
         kIcrcBytes;
}

void write_ipv4(const Frame& frame, Writer& out) noexcept {
  const std::size_t begin = out.size();
  out.u8(0x45);  // version 4, five words
  out.u8(static_cast<unsigned>(frame.dscp) << 2U | static_cast<unsigned>(frame.ecn));
  out.u16(kIpv4Bytes + udp_length(frame));
  out.u16(0);
  out.u16(0x4000);  // do not fragment
  out.u8(64);
  out.u8(17);  // UDP
  out.u16(0);
  out.u32(host_ipv4(frame.src_host));
  out.u32(host_ipv4(frame.dst_host));
  const std::span<std::byte> header = out.from(begin);
  const std::uint16_t checksum = internet_checksum(header);
  header[10] = static_cast<std::byte>(checksum >> 8U);
  header[11] = static_cast<std::byte>(checksum);
}

void write_bth(const Frame& frame, Writer& out) noexcept {
  out.u8(static_cast<std::uint8_t>(frame.opcode));
  // Solicited event, MigReq (migrated: the only state of a port without automatic path migration), pad count,
  // transport version 0.
  out.u8((frame.solicited ? 0x80U : 0U) | 0x40U | pad_of(frame) << 4U);
  out.u16(0xffff);
  out.u8(frame.opcode == BthOpcode::cnp ? kBecn : 0U);
  out.u24(frame.dst_qp);
  out.u8(frame.ack_req ? 0x80U : 0U);
  out.u24(frame.psn);
}

void write_reth(const Frame& frame, Writer& out) noexcept {
  out.u64(frame.va);
  out.u32(frame.rkey);
  out.u32(frame.dma_length);
}

void write_aeth(const Frame& frame, Writer& out) noexcept {
  out.u8(frame.syndrome);
  out.u24(frame.msn);
}

void write_extended_headers(const Frame& frame, Writer& out) noexcept {
  switch (frame.opcode) {
    case BthOpcode::send_last_imm:
    case BthOpcode::send_only_imm:
    case BthOpcode::write_last_imm:
      return out.u32(frame.imm);
    case BthOpcode::send_last_inv:
    case BthOpcode::send_only_inv:
      return out.u32(frame.rkey);
    case BthOpcode::write_first:
    case BthOpcode::write_only:
    case BthOpcode::read_request:
      return write_reth(frame, out);
    case BthOpcode::write_only_imm:
      write_reth(frame, out);
      return out.u32(frame.imm);
    case BthOpcode::read_response_first:
    case BthOpcode::read_response_last:
    case BthOpcode::read_response_only:
    case BthOpcode::acknowledge:
      return write_aeth(frame, out);
    case BthOpcode::atomic_acknowledge:
      write_aeth(frame, out);
      return out.u64(frame.atomic_original);
    case BthOpcode::cmp_swap:
    case BthOpcode::fetch_add:
      out.u64(frame.va);
      out.u32(frame.rkey);
      out.u64(frame.swap_add);
      return out.u64(frame.compare);
    default:  // without extended headers, and the reserved bytes of a CNP
      return out.zeros(extended_header_bytes(frame.opcode));
  }
}

void write_roce(const Frame& frame, Writer& out) noexcept {
  out.address(host_mac(frame.dst_host));
  out.address(host_mac(frame.src_host));
  out.u16(0x0800);
  write_ipv4(frame, out);
  out.u16(frame.udp_src_port);
  out.u16(kRoceUdpPort);
  out.u16(udp_length(frame));
  out.u16(0);
  write_bth(frame, out);
  write_extended_headers(frame, out);
  if (frame.payload != nullptr) {
    out.bytes(frame.payload->bytes.data(), frame.payload_bytes);
  } else {
    out.zeros(frame.payload_bytes);
  }
  out.zeros(pad_of(frame));
  const std::uint32_t icrc = icrc_of(out.from(kEthernetBytes));
  for (unsigned i = 0; i < kIcrcBytes; ++i) out.u8(icrc >> (8 * i));
}

void write_pfc(const Frame& frame, const MacAddress& source, Writer& out) noexcept {
  out.address({0x01, 0x80, 0xc2, 0x00, 0x00, 0x01});
  out.address(source);
  out.u16(0x8808);  // MAC control
  out.u16(0x0101);  // priority-based flow control
  out.u16(frame.pfc_enable);
  for (const std::uint16_t quanta : frame.pfc_quanta) out.u16(quanta);
}

}  // namespace

std::size_t write_frame(const Frame& frame, const MacAddress& pfc_source,
                        std::span<std::byte, kCapturedBytesMax> out) noexcept {
  Writer writer(out);
  if (frame.kind == FrameKind::pfc) {
    write_pfc(frame, pfc_source, writer);
  } else if (frame.kind == FrameKind::ip) {
    writer.skip(frame.rider->write(out, frame.ecn));
  } else {
    write_roce(frame, writer);
  }
  if (writer.size() < kEthernetMinimum) writer.zeros(kEthernetMinimum - writer.size());
  return writer.size();
}

std::uint32_t icrc_of(std::span<const std::byte> ip_packet) noexcept {
  constexpr std::size_t kDummyLrhBytes = 8;
  constexpr std::size_t kUdp = kIpv4Bytes;
  constexpr std::size_t kBth = kUdp + kUdpBytes;
  constexpr std::array<std::size_t, 7> kMasked{1, 8, 10, 11, kUdp + 6, kUdp + 7, kBth + 4};
  std::uint32_t crc = UINT32_MAX;
  for (std::size_t i = 0; i < kDummyLrhBytes; ++i) crc = crc_step(crc, 0xff);
  const std::size_t headers = std::min(ip_packet.size(), kBth + kBthBytes);
  for (std::size_t i = 0; i < headers; ++i) {
    const bool masked = std::find(kMasked.begin(), kMasked.end(), i) != kMasked.end();
    crc = crc_step(crc, masked ? std::uint8_t{0xff} : std::to_integer<std::uint8_t>(ip_packet[i]));
  }
  for (std::size_t i = headers; i < ip_packet.size(); ++i) {
    crc = crc_step(crc, std::to_integer<std::uint8_t>(ip_packet[i]));
  }
  return ~crc;
}

}  // namespace bx::sim
