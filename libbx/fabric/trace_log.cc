// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/fabric/trace_log.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "libbx/base/check.h"
#include "libbx/base/result.h"
#include "libbx/fabric/types.h"

namespace bx::fabric {
namespace {

// The code of a record in words; empty where it has none.
std::string_view code_of(const TraceRecord& record) noexcept {
  switch (record.kind) {
    case TraceKind::completion:
      return to_string(static_cast<WcStatus>(record.code));
    case TraceKind::device_event:
      return to_string(static_cast<DeviceEventKind>(record.code));
    case TraceKind::refused:
      return to_string(static_cast<ErrorCode>(record.code));
    case TraceKind::post_send:
      return to_string(static_cast<Opcode>(record.code));
    case TraceKind::arm:
      return record.code == 0 ? "armed" : "pending";
    default:
      return "";
  }
}

}  // namespace

std::string_view to_string(TraceKind kind) noexcept {
  switch (kind) {
    case TraceKind::create_mr:
      return "create_mr";
    case TraceKind::create_cq:
      return "create_cq";
    case TraceKind::create_srq:
      return "create_srq";
    case TraceKind::create_qp:
      return "create_qp";
    case TraceKind::refused:
      return "refused";
    case TraceKind::connect:
      return "connect";
    case TraceKind::fail:
      return "fail";
    case TraceKind::destroy_qp:
      return "destroy_qp";
    case TraceKind::post_send:
      return "post_send";
    case TraceKind::post_short:
      return "post_short";
    case TraceKind::post_recv:
      return "post_recv";
    case TraceKind::completion:
      return "completion";
    case TraceKind::arm:
      return "arm";
    case TraceKind::wake:
      return "wake";
    case TraceKind::device_event:
      return "device_event";
  }
  return "unknown";
}

TraceLog::TraceLog(std::size_t capacity) : records_(capacity) {
  BX_CHECK(capacity > 0, "a trace needs room for a record");
}

void TraceLog::add(const TraceRecord& record) noexcept {
  records_[total_++ % records_.size()] = record;
  digest_.add(static_cast<std::uint64_t>(record.time.time_since_epoch().count()));
  digest_.add(record.wr_id);
  digest_.add(record.length);
  digest_.add(std::uint64_t{record.object} << 32U | std::uint64_t{record.host} << 16U |
              static_cast<std::uint64_t>(record.kind) << 8U | record.code);
}

std::size_t TraceLog::size() const noexcept {
  return static_cast<std::size_t>(std::min<std::uint64_t>(total_, records_.size()));
}

const TraceRecord& TraceLog::operator[](std::size_t i) const noexcept {
  BX_CHECK(i < size(), "index past the end of a trace");
  return records_[(total_ - size() + i) % records_.size()];
}

void TraceLog::dump(FunctionRef<void(std::string_view)> line) const {
  char text[192];
  const auto give = [&](int length) {
    line({text, std::min(sizeof(text) - 1, static_cast<std::size_t>(std::max(length, 0)))});
  };
  if (dropped() > 0) give(std::snprintf(text, sizeof(text), "... %" PRIu64 " older records", dropped()));
  for (std::size_t i = 0; i < size(); ++i) {
    const TraceRecord& record = (*this)[i];
    const std::string_view kind = to_string(record.kind);
    const std::string_view code = code_of(record);
    give(std::snprintf(
        text, sizeof(text),
        "%12" PRId64 " ns host %u %-12.*s object %#x wr_id %#" PRIx64 " length %" PRIu64 " %.*s",
        static_cast<std::int64_t>(record.time.time_since_epoch().count()), static_cast<unsigned>(record.host),
        static_cast<int>(kind.size()), kind.data(), record.object, record.wr_id, record.length,
        static_cast<int>(code.size()), code.data()));
  }
}

}  // namespace bx::fabric
