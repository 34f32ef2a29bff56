// SPDX-License-Identifier: GPL-2.0-only
#include "harness/perf/raw_message.h"

#include <cstring>

namespace bx::harness {
namespace {

constexpr std::uint32_t kMagic = 0x31505842;  // "BXP1": the format's version with it

class Writer {
 public:
  explicit Writer(RawBytes& bytes) : bytes_(bytes) {}
  void put(std::uint64_t value, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) bytes_[at_++] = static_cast<std::byte>(value >> (8 * i));
  }

 private:
  RawBytes& bytes_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte, kRawMessageBytes> bytes) : bytes_(bytes) {}
  std::uint64_t take(std::size_t length) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < length; ++i) value |= static_cast<std::uint64_t>(bytes_[at_++]) << (8 * i);
    return value;
  }

 private:
  std::span<const std::byte, kRawMessageBytes> bytes_;
  std::size_t at_ = 0;
};

}  // namespace

RawBytes encode(const RawMessage& message) {
  RawBytes bytes{};
  Writer writer(bytes);
  writer.put(kMagic, 4);
  writer.put(static_cast<std::uint64_t>(message.kind), 1);
  writer.put(static_cast<std::uint64_t>(message.which), 1);
  writer.put(0, 2);
  writer.put(message.size, 4);
  for (const std::uint8_t byte : message.address.gid) writer.put(byte, 1);
  writer.put(static_cast<std::uint32_t>(message.address.qp), 4);
  writer.put(message.address.psn, 4);
  writer.put(message.memory, 8);
  writer.put(message.rkey, 4);
  writer.put(message.mtu_max, 4);
  writer.put(message.rd_atomic_max, 4);
  return bytes;
}

std::optional<RawMessage> decode(std::span<const std::byte, kRawMessageBytes> bytes) {
  constexpr std::uint64_t kKinds = 4;
  Reader reader(bytes);
  if (reader.take(4) != kMagic) return std::nullopt;
  const std::uint64_t kind = reader.take(1);
  const std::uint64_t which = reader.take(1);
  reader.take(2);
  RawMessage message;
  message.size = static_cast<std::uint32_t>(reader.take(4));
  if (kind >= kKinds || which >= perf_cases().size() || message.size > kPerfSizeMax) return std::nullopt;
  message.kind = static_cast<RawMessage::Kind>(kind);
  message.which = static_cast<PerfCase>(which);
  for (std::uint8_t& byte : message.address.gid) byte = static_cast<std::uint8_t>(reader.take(1));
  message.address.qp = static_cast<fabric::QpNum>(reader.take(4));
  message.address.psn = static_cast<std::uint32_t>(reader.take(4));
  message.memory = reader.take(8);
  message.rkey = static_cast<std::uint32_t>(reader.take(4));
  message.mtu_max = static_cast<std::uint32_t>(reader.take(4));
  message.rd_atomic_max = static_cast<std::uint32_t>(reader.take(4));
  return message;
}

}  // namespace bx::harness
