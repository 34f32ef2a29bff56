// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/pcapng.h"

#include <array>
#include <cerrno>

namespace bx::sim {
namespace {

// Blocks are written in the byte order of the machine, which the magic number tells the reader.
constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint32_t kInterface = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint16_t kEthernet = 1;  // LINKTYPE_ETHERNET
constexpr std::uint16_t kEndOfOptions = 0;
constexpr std::uint16_t kInterfaceName = 2;
constexpr std::uint16_t kInterfaceSpeed = 8;
constexpr std::uint16_t kTimestampResolution = 9;
constexpr std::uint16_t kPacketFlags = 2;
constexpr std::uint16_t kApplication = 4;
constexpr std::string_view kWriter = "ByteExpress simulated fabric";
constexpr std::uint8_t kPicosecondDigits = 12;

constexpr std::uint32_t padded(std::size_t bytes) noexcept {
  return static_cast<std::uint32_t>((bytes + 3U) & ~std::size_t{3});
}
constexpr std::uint32_t option_bytes(std::size_t bytes) noexcept {
  return 4 + padded(bytes);
}

}  // namespace

Result<std::unique_ptr<PcapngWriter>> PcapngWriter::create(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return fail(ErrorCode::invalid_argument, ErrorScope::operation, "the capture file cannot be written",
                errno);
  }
  std::unique_ptr<PcapngWriter> writer(new PcapngWriter(file));
  writer->put_section_header();
  return writer;
}

void PcapngWriter::put(const void* data, std::size_t bytes) noexcept {
  if (bytes == 0) return;  // and `data` may be null
  if (std::fwrite(data, 1, bytes, file_.get()) != bytes && error_ == 0) error_ = errno != 0 ? errno : EIO;
}

void PcapngWriter::put_padding(std::size_t bytes) noexcept {
  constexpr std::array<char, 4> kZeros{};
  put(kZeros.data(), padded(bytes) - bytes);
}

void PcapngWriter::put_u16(std::uint16_t value) noexcept {
  put(&value, sizeof value);
}

void PcapngWriter::put_u32(std::uint32_t value) noexcept {
  put(&value, sizeof value);
}

void PcapngWriter::put_option(std::uint16_t code, const void* data, std::uint16_t bytes) noexcept {
  put_u16(code);
  put_u16(bytes);
  put(data, bytes);
  put_padding(bytes);
}

void PcapngWriter::put_section_header() {
  const std::uint32_t length = 28 + option_bytes(kWriter.size()) + option_bytes(0);
  put_u32(kSectionHeader);
  put_u32(length);
  put_u32(kByteOrderMagic);
  put_u16(1);  // version 1.0
  put_u16(0);
  put_u32(UINT32_MAX);  // the section's length is not said
  put_u32(UINT32_MAX);
  put_option(kApplication, kWriter.data(), static_cast<std::uint16_t>(kWriter.size()));
  put_option(kEndOfOptions, nullptr, 0);
  put_u32(length);
}

std::uint32_t PcapngWriter::add_interface(std::string_view name, Rate speed) {
  const std::uint32_t length = 20 + option_bytes(name.size()) + option_bytes(sizeof speed.bits_per_second) +
                               option_bytes(1) + option_bytes(0);
  put_u32(kInterface);
  put_u32(length);
  put_u16(kEthernet);
  put_u16(0);
  put_u32(0);  // frames are written whole
  put_option(kInterfaceName, name.data(), static_cast<std::uint16_t>(name.size()));
  put_option(kInterfaceSpeed, &speed.bits_per_second, sizeof speed.bits_per_second);
  put_option(kTimestampResolution, &kPicosecondDigits, 1);
  put_option(kEndOfOptions, nullptr, 0);
  put_u32(length);
  return interfaces_++;
}

void PcapngWriter::write(std::uint32_t interface, Picoseconds time, Direction direction,
                         std::span<const std::byte> frame) {
  const std::uint32_t flags = direction == Direction::received ? 1 : 2;
  const std::uint32_t length = 32 + padded(frame.size()) + option_bytes(sizeof flags) + option_bytes(0);
  const auto ticks = static_cast<std::uint64_t>(time.count());
  put_u32(kEnhancedPacket);
  put_u32(length);
  put_u32(interface);
  put_u32(static_cast<std::uint32_t>(ticks >> 32U));
  put_u32(static_cast<std::uint32_t>(ticks));
  put_u32(static_cast<std::uint32_t>(frame.size()));
  put_u32(static_cast<std::uint32_t>(frame.size()));
  put(frame.data(), frame.size());
  put_padding(frame.size());
  put_option(kPacketFlags, &flags, sizeof flags);
  put_option(kEndOfOptions, nullptr, 0);
  put_u32(length);
  ++frames_;
}

Result<> PcapngWriter::flush() {
  if (std::fflush(file_.get()) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0) return {};
  return fail(ErrorCode::exhausted, ErrorScope::operation, "the capture file could not be written whole",
              error_);
}

}  // namespace bx::sim
