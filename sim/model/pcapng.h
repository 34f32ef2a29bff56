// SPDX-License-Identifier: GPL-2.0-only
// Writes pcapng files (IETF draft-ietf-opsawg-pcapng): one section, an interface for each captured port, one
// Enhanced Packet Block a frame. Timestamps are picoseconds of simulated time (if_tsresol 12).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "libbx/base/result.h"
#include "sim/model/port.h"
#include "sim/model/units.h"

namespace bx::sim {

class PcapngWriter {
 public:
  // Errors: invalid_argument with the errno of opening the file. An existing file is replaced.
  static Result<std::unique_ptr<PcapngWriter>> create(const std::string& path);
  ~PcapngWriter() = default;
  PcapngWriter(const PcapngWriter&) = delete;
  PcapngWriter& operator=(const PcapngWriter&) = delete;

  // Returns the interface's number.
  std::uint32_t add_interface(std::string_view name, Rate speed);
  // Frames of one interface are written in the order of their times.
  void write(std::uint32_t interface, Picoseconds time, Direction direction,
             std::span<const std::byte> frame);
  [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }
  // Writes out what is buffered. Errors: exhausted with the errno of this or of any write before it.
  Result<> flush();

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
  };
  explicit PcapngWriter(std::FILE* file) noexcept : file_(file) {}
  void put(const void* data, std::size_t bytes) noexcept;
  void put_padding(std::size_t bytes) noexcept;
  void put_u16(std::uint16_t value) noexcept;
  void put_u32(std::uint32_t value) noexcept;
  void put_option(std::uint16_t code, const void* data, std::uint16_t bytes) noexcept;
  void put_section_header();

  std::unique_ptr<std::FILE, Close> file_;
  std::uint32_t interfaces_ = 0;
  std::uint64_t frames_ = 0;
  int error_ = 0;  // errno of the first write that failed
};

}  // namespace bx::sim
