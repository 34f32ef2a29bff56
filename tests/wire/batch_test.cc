// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/wire/batch.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/support/property.h"

namespace bx::wire {
namespace {

using Bytes = std::vector<std::byte>;

Bytes body_of(std::size_t size, unsigned salt) {
  Bytes body(size);
  for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<std::byte>(i * 7 + salt);
  return body;
}

Bytes first(MessageKind kind, const Bytes& body) {
  Message m;
  m.header.kind = kind;
  m.header.flags = MessageFlags::followed;
  m.header.session = 5;
  m.header.call = 6;
  m.header.payload_bytes = descriptor_bytes(kind) != 0 ? 0 : static_cast<std::uint32_t>(body.size());
  Bytes out(kHeaderBytes);
  store_header(m.header, out.data());
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

void add(Bytes& batch, FollowerHeader header, const Bytes& body) {
  header.body_bytes = static_cast<std::uint16_t>(body.size());
  batch.resize(follower_place(batch.size()));
  const auto* raw = reinterpret_cast<const std::byte*>(&header);
  batch.insert(batch.end(), raw, raw + kFollowerBytes);
  batch.insert(batch.end(), body.begin(), body.end());
}

// What a receiver reads; nothing if any of it is not well-formed.
std::optional<std::vector<Item>> read_all(const Bytes& bytes) {
  std::vector<Item> items;
  const Batch batch(bytes);
  std::uint32_t at = 0;
  do {
    Item item;
    if (!batch.read(at, item)) return std::nullopt;
    items.push_back(item);
    at = batch.after(item);
  } while (at > 0);
  return items;
}

bool begins(const Bytes& bytes) {
  return begins_batch(*LoadedHeader(bytes.data()));
}

TEST(Batch, begins_batch__only_for_kinds_that_cost_a_credit_and_offer_nothing) {
  for (const auto kind :
       {MessageKind::request, MessageKind::response, MessageKind::write_grant, MessageKind::transfer_done}) {
    EXPECT_TRUE(begins(first(kind, {})));
  }
  EXPECT_FALSE(begins(first(MessageKind::credit_grant, {})));
  Bytes spoilt = first(MessageKind::request, {});
  spoilt[2] = std::byte{5};  // offers as well
  EXPECT_FALSE(begins(spoilt));
  spoilt = first(MessageKind::request, {});
  spoilt[3] = std::byte{1};  // a status
  EXPECT_FALSE(begins(spoilt));
  spoilt = first(MessageKind::request, {});
  spoilt[0] = std::byte{2};
  EXPECT_FALSE(begins(spoilt));
}

TEST(Batch, begins_batch__what_decode_refuses) {
  EXPECT_FALSE(decode(first(MessageKind::request, body_of(4, 0))).has_value());
}

TEST(Batch, read__gives_back_every_kind_where_it_lies) {
  Bytes bytes = first(MessageKind::request, body_of(5, 1));
  add(bytes, {.kind = MessageKind::response, .status = 3, .session = 7, .call = 8}, {});
  add(bytes, {.kind = MessageKind::write_grant}, body_of(kWriteGrantBytes, 2));
  add(bytes, {.kind = MessageKind::transfer_done}, body_of(kTransferDoneBytes, 3));
  add(bytes, {.kind = MessageKind::request, .session = 9, .call = 10}, body_of(64, 4));
  const auto items = read_all(bytes);
  ASSERT_TRUE(items.has_value());
  ASSERT_EQ(items->size(), 5U);
  EXPECT_EQ((*items)[0].call, 6U);
  EXPECT_EQ((*items)[0].bytes, 5U);
  EXPECT_EQ((*items)[1].status, 3U);
  EXPECT_EQ((*items)[1].session, 7U);
  EXPECT_EQ((*items)[1].call, 8U);
  const Batch batch(bytes);
  EXPECT_TRUE(std::ranges::equal(batch.body((*items)[2]), body_of(kWriteGrantBytes, 2)));
  EXPECT_TRUE(std::ranges::equal(batch.body((*items)[4]), body_of(64, 4)));
  for (const Item& item : *items)
    EXPECT_TRUE(&item == &items->front() || item.offset % kFollowerAlignment == 0);
}

TEST(Batch, read__a_descriptor_may_be_first) {
  Bytes bytes = first(MessageKind::transfer_done, body_of(kTransferDoneBytes, 1));
  EXPECT_FALSE(read_all(bytes).has_value());  // of one
  add(bytes, {.kind = MessageKind::request}, {});
  ASSERT_TRUE(read_all(bytes).has_value());
  bytes[24] = std::byte{1};  // and a payload as well
  EXPECT_FALSE(read_all(bytes).has_value());
}

Bytes offer_body(std::uint64_t length) {
  Message m;
  m.header.kind = MessageKind::request;
  m.header.flags = MessageFlags::offered;
  m.offer = {.transfer = 1, .rkey = 2, .addr = 3, .length = length};
  Bytes out(kEnvelopeBytesMax);
  out.resize(encode_envelope(m, out));
  return {out.begin() + kHeaderBytes, out.end()};
}

constexpr MessageFlags kGrantedOffer = MessageFlags::offered | MessageFlags::granted_write;

TEST(Batch, begins_batch_by_offer__of_a_request_or_a_response) {
  const auto begins_so = [](MessageKind kind, MessageFlags flags, std::uint8_t status = 0) {
    MessageHeader header{.kind = kind, .flags = flags, .status = status};
    EXPECT_FALSE(begins_batch(header));
    return begins_batch_by_offer(header);
  };
  constexpr auto kFollowed = MessageFlags::followed;
  EXPECT_TRUE(begins_so(MessageKind::request, MessageFlags::offered | kFollowed));
  EXPECT_TRUE(begins_so(MessageKind::response, kGrantedOffer | kFollowed, 7));
  EXPECT_TRUE(begins_so(MessageKind::request, MessageFlags::offered | kFollowed | MessageFlags::asks_now));
  EXPECT_FALSE(begins_so(MessageKind::request, MessageFlags::offered));
  EXPECT_FALSE(begins_so(MessageKind::request, MessageFlags::granted_write | kFollowed));
  EXPECT_FALSE(begins_so(MessageKind::request, MessageFlags::offered | kFollowed, 1));
  EXPECT_FALSE(begins_so(MessageKind::transfer_done, MessageFlags::offered | kFollowed));
  EXPECT_FALSE(begins_so(MessageKind::credit_grant, MessageFlags::offered | kFollowed));
}

TEST(Batch, read__offers_first_and_behind_others) {
  Bytes bytes = first(MessageKind::request, {});
  bytes[2] = static_cast<std::byte>(MessageFlags::followed | MessageFlags::offered);
  const Bytes body = offer_body(9000);
  bytes.insert(bytes.end(), body.begin(), body.end());
  EXPECT_FALSE(read_all(bytes).has_value());  // of one
  add(bytes, {.kind = offering(MessageKind::response, kGrantedOffer), .status = 4, .session = 7, .call = 8},
      offer_body(70'000));
  add(bytes, {.kind = MessageKind::request}, body_of(3, 1));
  const auto items = read_all(bytes);
  ASSERT_TRUE(items.has_value());
  ASSERT_EQ(items->size(), 3U);
  const Message one = offer_message(Batch(bytes), (*items)[0]);
  EXPECT_EQ(one.header.kind, MessageKind::request);
  EXPECT_EQ(one.header.flags, MessageFlags::offered);
  EXPECT_EQ(one.header.session, 5U);
  EXPECT_EQ(one.header.call, 6U);
  EXPECT_EQ(one.offer, (Offer{.transfer = 1, .rkey = 2, .addr = 3, .length = 9000}));
  const Message two = offer_message(Batch(bytes), (*items)[1]);
  EXPECT_EQ(two.header.kind, MessageKind::response);
  EXPECT_EQ(two.header.flags, kGrantedOffer);
  EXPECT_EQ(two.header.status, 4U);
  EXPECT_EQ(two.header.session, 7U);
  EXPECT_EQ(two.header.call, 8U);
  EXPECT_EQ(two.offer.length, 70'000U);
}

TEST(Batch, read__refuses_offers_that_are_not_well_formed) {
  const auto reads = [](FollowerHeader header, const Bytes& body) {
    Bytes bytes = first(MessageKind::request, body_of(3, 0));
    add(bytes, header, body);
    return read_all(bytes).has_value();
  };
  constexpr auto kOffered = offering(MessageKind::request, MessageFlags::offered);
  EXPECT_TRUE(reads({.kind = kOffered}, offer_body(1)));
  EXPECT_FALSE(reads({.kind = kOffered}, offer_body(0)));  // of nothing
  EXPECT_FALSE(reads({.kind = kOffered}, body_of(kOfferBytes - 1, 1)));
  EXPECT_FALSE(reads({.kind = kOffered}, body_of(kOfferBytes + 1, 1)));
  EXPECT_FALSE(reads({.kind = kOffered, .status = 1}, offer_body(1)));
  EXPECT_FALSE(reads({.kind = offering(MessageKind::request, MessageFlags::granted_write)}, offer_body(1)));
  EXPECT_FALSE(reads({.kind = offering(MessageKind::transfer_done, MessageFlags::offered)}, offer_body(1)));
  EXPECT_FALSE(
      reads({.kind = offering(MessageKind::request, kGrantedOffer | MessageFlags::followed)}, offer_body(1)));
}

TEST(Batch, read__refuses_what_is_not_well_formed) {
  const auto with = [](FollowerHeader header, const Bytes& body) {
    Bytes bytes = first(MessageKind::request, body_of(3, 0));
    add(bytes, header, body);
    return bytes;
  };
  EXPECT_TRUE(read_all(with({.kind = MessageKind::request}, body_of(9, 1))).has_value());
  EXPECT_FALSE(read_all(with({.kind = MessageKind::credit_grant}, {})).has_value());
  EXPECT_FALSE(read_all(with({.kind = static_cast<MessageKind>(0)}, {})).has_value());
  EXPECT_FALSE(read_all(with({.kind = static_cast<MessageKind>(99)}, {})).has_value());
  EXPECT_FALSE(read_all(with({.kind = MessageKind::request, .status = 1}, {})).has_value());
  EXPECT_FALSE(
      read_all(with({.kind = MessageKind::write_grant}, body_of(kWriteGrantBytes - 1, 1))).has_value());
  EXPECT_FALSE(read_all(with({.kind = MessageKind::transfer_done, .call = 1}, body_of(4, 1))).has_value());
  Bytes tail = with({.kind = MessageKind::request}, body_of(8, 1));
  tail.resize(tail.size() + 1);  // bytes that are no message
  EXPECT_FALSE(read_all(tail).has_value());
}

TEST(Batch, read__cut_short_anywhere_is_refused) {
  Bytes bytes = first(MessageKind::response, body_of(10, 0));
  add(bytes, {.kind = MessageKind::request}, body_of(20, 1));
  add(bytes, {.kind = MessageKind::transfer_done}, body_of(4, 2));
  const std::size_t second = bytes.size() - kFollowerBytes - 4;
  const std::size_t end_of_first_two = second - (second - (kHeaderBytes + 12 + kFollowerBytes + 20));
  for (std::size_t size = kHeaderBytes; size < bytes.size(); ++size) {
    if (size == end_of_first_two) continue;  // a batch of two
    EXPECT_FALSE(
        read_all(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))).has_value())
        << size;
  }
}

TEST(Batch, read__never_leaves_the_bytes) {
  test::expect_property([] {
    auto raw = *rc::gen::container<std::vector<std::uint8_t>>(
        static_cast<std::size_t>(*rc::gen::inRange(28, 200)), rc::gen::inRange<std::uint8_t>(0, 12));
    Bytes bytes(raw.size());
    for (std::size_t i = 0; i < raw.size(); ++i) bytes[i] = static_cast<std::byte>(raw[i]);
    bytes[25] = bytes[26] = bytes[27] = std::byte{0};
    const Batch batch(bytes);
    std::uint32_t at = 0;
    do {
      Item item;
      if (!batch.read(at, item)) return;
      RC_ASSERT(item.offset >= at + kFollowerBytes);
      RC_ASSERT(std::size_t{item.offset} + item.bytes <= bytes.size());
      const std::uint32_t next = batch.after(item);
      RC_ASSERT(next == 0 || next > at);
      at = next;
    } while (at > 0);
  });
}

}  // namespace
}  // namespace bx::wire
