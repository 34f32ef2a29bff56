// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/wire/message.h"

#include "libbx/wire/codec.h"

namespace bx::wire {
namespace {

tl::unexpected<Error> refuse(const char* detail) {
  return fail(ErrorCode::protocol, ErrorScope::queue_pair, detail);
}

bool carries_offer(const MessageHeader& header) noexcept {
  return has(header.flags, MessageFlags::offered) &&
         (header.kind == MessageKind::request || header.kind == MessageKind::response);
}

const char* fault_in(const MessageHeader& header) noexcept {
  const auto kind = static_cast<unsigned>(header.kind);
  if (kind < 1 || kind > 5) return "unknown message kind";
  if (static_cast<unsigned>(without_asks(header.flags)) > 3) return "unknown message flag";
  const bool offered = has(header.flags, MessageFlags::offered);
  if (has(header.flags, MessageFlags::granted_write) && !offered) return "granted_write without offered";
  if (offered && !carries_offer(header)) return "only a request or a response can offer a payload";
  if (header.status != 0 && header.kind != MessageKind::response) return "only a response has a status";
  return nullptr;
}

Offer get_offer(Reader& r) noexcept {
  Offer offer;
  offer.transfer = r.get<std::uint32_t>();
  offer.rkey = r.get<std::uint32_t>();
  offer.addr = r.get<std::uint64_t>();
  offer.length = r.get<std::uint64_t>();
  return offer;
}

WriteGrant get_write_grant(Reader& r) noexcept {
  WriteGrant grant;
  grant.transfer = r.get<std::uint32_t>();
  grant.target = r.get<std::uint16_t>();
  grant.offset = r.get<std::uint64_t>();
  grant.length = r.get<std::uint64_t>();
  grant.addr = r.get<std::uint64_t>();
  grant.rkey = r.get<std::uint32_t>();
  return grant;
}

}  // namespace

std::size_t encode_envelope(const Message& message, std::span<std::byte> out) noexcept {
  BX_CHECK(out.size() >= kHeaderBytes, "a wire buffer is too small for its header");
  const MessageHeader& h = message.header;
  store_header(h, out.data());
  Writer w(out.subspan(kHeaderBytes));
  if (carries_offer(h)) {
    w.put(message.offer.transfer);
    w.put(message.offer.rkey);
    w.put(message.offer.addr);
    w.put(message.offer.length);
  } else if (h.kind == MessageKind::write_grant) {
    w.put(message.grant.transfer);
    w.put(message.grant.target);
    w.put(message.grant.offset);
    w.put(message.grant.length);
    w.put(message.grant.addr);
    w.put(message.grant.rkey);
  } else if (h.kind == MessageKind::transfer_done) {
    w.put(message.done.transfer);
  }
  return kHeaderBytes + w.size();
}

Offer read_offer(std::span<const std::byte> bytes) noexcept {
  Reader r(bytes);
  return get_offer(r);
}

WriteGrant read_write_grant(std::span<const std::byte> bytes) noexcept {
  Reader r(bytes);
  return get_write_grant(r);
}

TransferDone read_transfer_done(std::span<const std::byte> bytes) noexcept {
  return {Reader(bytes).get<std::uint32_t>()};
}

Result<Message> decode(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < kHeaderBytes) return refuse("a message shorter than its header");
  Message m;
  m.header = *LoadedHeader(bytes.data());
  const MessageHeader& h = m.header;
  Reader r(bytes.subspan(kHeaderBytes));
  if (h.version != kVersion) return refuse("unknown message version");
  if (const char* fault = fault_in(h)) return refuse(fault);
  if (carries_offer(h)) {
    m.offer = get_offer(r);
  } else if (h.kind == MessageKind::write_grant) {
    m.grant = get_write_grant(r);
  } else if (h.kind == MessageKind::transfer_done) {
    m.done.transfer = r.get<std::uint32_t>();
  }
  if (!r.ok()) return refuse("a message shorter than its descriptor");
  m.payload = r.rest();
  if (m.payload.size() != h.payload_bytes) return refuse("a payload length that is not that of the message");
  const bool carries_payload =
      !carries_offer(h) && (h.kind == MessageKind::request || h.kind == MessageKind::response);
  if (!m.payload.empty() && !carries_payload) return refuse("a payload in a message that has none");
  if (carries_offer(h) && m.offer.length == 0) return refuse("an offer of nothing");
  return m;
}

}  // namespace bx::wire
