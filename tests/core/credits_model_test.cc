// SPDX-License-Identifier: BSD-3-Clause
// Two sides with everything to send to each other over lanes that delay, overtake each other and repeat: no
// message ever finds no receive, credits are conserved, and some step is always enabled.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "libbx/core/credits.h"
#include "tests/support/property.h"

namespace bx::core {
namespace {

// A request may be kept waiting; a prompt message never is. An announcement is prompt, and has no room for a
// grant.
enum class Kind { request, prompt, announcement, pure };

struct Message {
  Kind kind;
  CreditIssuer::Notice notice;
  CreditRequest asks = CreditRequest::none;
};

struct Side {
  CreditLedger ledger;
  CreditIssuer issuer;
  std::uint32_t window = 0;               // the other side's, for us
  std::uint32_t posted = 0;               // receives the network may consume
  std::uint32_t kept = 0;                 // requests that lie in their receives
  std::vector<Message> arriving;          // on their way to this side, in any order
  std::vector<CreditIssuer::Notice> old;  // heard before; may be heard again
};

class Model {
 public:
  Model(std::uint32_t window_a, std::uint32_t window_b, std::uint32_t counted) {
    const std::array<std::uint32_t, 2> windows = {window_a, window_b};
    for (std::size_t i = 0; i < 2; ++i) {
      sides_[i].issuer = CreditIssuer(windows[i], counted);
      sides_[i].issuer.set_unordered();
      sides_[i].posted = windows[i] + kControlSlots;
      sides_[1 - i].ledger = CreditLedger(windows[i], counted);
      sides_[1 - i].window = windows[i];
    }
  }

  [[nodiscard]] bool may_send(std::size_t from, Kind kind) const {
    const Side& side = sides_[from];
    if (kind == Kind::pure) return side.issuer.pure_grant_due();
    return side.ledger.available() >= (kind == Kind::request ? 1 + kCreditsReserved : 1);
  }
  void send(std::size_t from, Kind kind) {
    Side& side = sides_[from];
    if (!may_send(from, kind)) return;
    Message message{kind, {}, CreditRequest::none};
    if (kind == Kind::pure) {
      message.notice = side.issuer.pure_grant();
    } else {
      side.ledger.consume();
      if (kind == Kind::announcement) {
        message.notice.control_ack = side.issuer.control_ack();
      } else {
        message.notice = side.issuer.notice();
        message.asks = side.ledger.ask(side.window);
      }
    }
    sides_[1 - from].arriving.push_back(message);
  }
  void deliver(std::size_t to, std::size_t which) {
    Side& side = sides_[to];
    if (side.arriving.empty()) return;
    auto at = side.arriving.begin() + static_cast<std::ptrdiff_t>(which % side.arriving.size());
    // Pure grants go by one lane, and so keep their order.
    const auto pure = [](const Message& m) { return m.kind == Kind::pure; };
    if (pure(*at)) at = std::find_if(side.arriving.begin(), side.arriving.end(), pure);
    const Message message = *at;
    side.arriving.erase(at);
    RC_ASSERT(side.posted > 0U);  // receiver not ready
    --side.posted;
    if (message.kind == Kind::announcement) {
      RC_ASSERT(side.issuer.on_control_ack(message.notice.control_ack));
    } else {
      hear(to, message.notice);
      side.old.push_back(message.notice);
    }
    if (message.kind == Kind::pure) {
      RC_ASSERT(side.issuer.on_pure_grant());
      ++side.posted;
      return;
    }
    RC_ASSERT(side.issuer.on_received());
    side.issuer.on_request(message.asks);
    ++side.kept;
    if (message.kind != Kind::request) take(to);
  }
  // A request is taken out of its receive, which is posted again.
  void take(std::size_t at) {
    Side& side = sides_[at];
    if (side.kept == 0) return;
    --side.kept;
    ++side.posted;
    side.issuer.on_reposted();
  }
  void repeat(std::size_t to, std::size_t which) {
    Side& side = sides_[to];
    if (side.old.empty()) return;
    const std::uint32_t before = side.ledger.available();
    hear(to, side.old[which % side.old.size()]);
    RC_ASSERT(side.ledger.available() == before);  // nothing is minted
  }
  void check() const {
    for (std::size_t i = 0; i < 2; ++i) {
      const Side& side = sides_[i];
      const Side& peer = sides_[1 - i];
      side.issuer.check_invariants();
      side.ledger.check_invariants(side.window);
      std::uint32_t data = 0;
      std::uint32_t pure = 0;
      for (const Message& m : peer.arriving) ++(m.kind == Kind::pure ? pure : data);
      // Every credit and every message under way has its receive over there.
      RC_ASSERT(peer.posted >= side.ledger.available() + data + pure);
      RC_ASSERT(peer.posted + peer.kept == side.window + kControlSlots);
      RC_ASSERT(pure <= kControlSlots);
    }
  }
  // Everything under way arrives and every pure grant that is due is sent, until nothing more happens.
  void settle() {
    for (int round = 0; round < 100; ++round) {
      for (std::size_t i = 0; i < 2; ++i) {
        while (!sides_[i].arriving.empty()) deliver(i, 0);
        send(i, Kind::pure);
      }
      check();
    }
    RC_ASSERT((sides_[0].arriving.empty() && sides_[1].arriving.empty()));
  }
  [[nodiscard]] const Side& side(std::size_t i) const { return sides_[i]; }

 private:
  void hear(std::size_t at, const CreditIssuer::Notice& notice) {
    Side& side = sides_[at];
    RC_ASSERT(side.ledger.on_grant(notice.credit_grant, side.window));
    RC_ASSERT(side.issuer.on_control_ack(notice.control_ack));
  }
  std::array<Side, 2> sides_;
};

Model random_model() {
  const auto counted = *rc::gen::element<std::uint32_t>(0, 0xfffffff0, 0xfff0, 0x7ffffff8);
  return {*rc::gen::inRange<std::uint32_t>(2, 9), *rc::gen::inRange<std::uint32_t>(2, 9), counted};
}

void random_step(Model& model, std::uint16_t step) {
  const std::size_t side = step & 1U;
  const std::size_t which = step >> 5U;
  switch ((step >> 1U) & 15U) {
    case 0:
    case 1:
    case 2:
    case 3:
      return model.send(side, Kind::request);
    case 4:
      return model.send(side, Kind::prompt);
    case 5:
      return model.send(side, Kind::announcement);
    case 6:
    case 7:
      return model.send(side, Kind::pure);
    case 8:
    case 9:
    case 10:
    case 11:
      return model.deliver(side, which);
    case 12:
    case 13:
      return model.take(side);
    default:
      return model.repeat(side, which);
  }
}

TEST(CreditsModel, any_schedule__keeps_receives_behind_every_credit) {
  test::expect_property([] {
    Model model = random_model();
    const auto steps = *rc::gen::scale(5.0, rc::gen::arbitrary<std::vector<std::uint16_t>>());
    for (const std::uint16_t step : steps) {
      random_step(model, step);
      model.check();
    }
  });
}

// Whatever is kept waiting, a prompt message can go: ends of transfers and eager answers never starve.
TEST(CreditsModel, any_schedule__leaves_a_credit_for_prompt_messages_even_if_all_requests_are_kept) {
  test::expect_property([] {
    Model model = random_model();
    const auto steps = *rc::gen::scale(5.0, rc::gen::arbitrary<std::vector<std::uint16_t>>());
    for (const std::uint16_t step : steps) random_step(model, step);
    model.settle();
    for (std::size_t i = 0; i < 2; ++i) {
      RC_ASSERT(model.may_send(i, Kind::prompt));
      // And as often as one likes.
      for (int again = 0; again < 20; ++again) {
        model.send(i, again % 3 == 0 ? Kind::prompt : Kind::announcement);
        model.settle();
        RC_ASSERT(model.may_send(i, Kind::prompt));
      }
    }
  });
}

TEST(CreditsModel, any_schedule__lets_requests_go_once_the_receiver_takes_them) {
  test::expect_property([] {
    Model model = random_model();
    const auto steps = *rc::gen::scale(5.0, rc::gen::arbitrary<std::vector<std::uint16_t>>());
    for (const std::uint16_t step : steps) random_step(model, step);
    model.settle();
    for (std::size_t i = 0; i < 2; ++i) {
      while (model.side(i).kept > 0) model.take(i);
    }
    model.settle();
    for (std::size_t i = 0; i < 2; ++i) RC_ASSERT(model.may_send(i, Kind::request));
  });
}

// One side only talks, the other only listens: the grants that come back are acknowledged by what they allow.
TEST(CreditsModel, one_way_traffic__never_stops) {
  for (std::uint32_t window = 2; window < 20; ++window) {
    CreditLedger ledger(window);
    CreditIssuer issuer(window);
    CreditIssuer listener_to_us(window);  // our issuer: it only acknowledges
    for (int sent = 0; sent < 1000; ++sent) {
      ASSERT_GE(ledger.available(), 1 + kCreditsReserved) << "window " << window << " after " << sent;
      ledger.consume();
      ASSERT_TRUE(issuer.on_control_ack(listener_to_us.notice().control_ack));
      ASSERT_TRUE(issuer.on_received());
      issuer.on_reposted();
      if (!issuer.pure_grant_due()) continue;
      ASSERT_TRUE(ledger.on_grant(issuer.pure_grant().credit_grant, window));
      ASSERT_TRUE(listener_to_us.on_pure_grant());
    }
  }
}

}  // namespace
}  // namespace bx::core
