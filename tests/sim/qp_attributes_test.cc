// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/qp_attributes.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/sim/nic_world.h"

namespace bx::sim {
namespace {

using A = QpAttr;
using S = QpState;

constexpr std::array kStates{S::reset,    S::init, S::ready_to_receive, S::ready_to_send, S::sq_drain,
                             S::sq_error, S::error};
constexpr std::array kAttributes{A::state,
                                 A::cur_state,
                                 A::en_sqd_async_notify,
                                 A::access_flags,
                                 A::pkey_index,
                                 A::port,
                                 A::qkey,
                                 A::av,
                                 A::path_mtu,
                                 A::timeout,
                                 A::retry_cnt,
                                 A::rnr_retry,
                                 A::rq_psn,
                                 A::max_qp_rd_atomic,
                                 A::alt_path,
                                 A::min_rnr_timer,
                                 A::sq_psn,
                                 A::max_dest_rd_atomic,
                                 A::path_mig_state,
                                 A::cap,
                                 A::dest_qpn,
                                 A::rate_limit};

// The RC entries of ib_modify_qp_is_ok's table (Linux, drivers/infiniband/core/verbs.c) that are valid, bar
// those to RESET, from any state, and to ERR, from any state but RESET, which take no attribute.
struct Entry {
  S from;
  S to;
  std::vector<A> required;
  std::vector<A> optional;
};
const std::vector<Entry>& table() {
  static const std::vector<Entry> entries{
      {S::reset, S::init, {A::pkey_index, A::port, A::access_flags}, {}},
      {S::init, S::init, {}, {A::pkey_index, A::port, A::access_flags}},
      {S::init,
       S::ready_to_receive,
       {A::av, A::path_mtu, A::dest_qpn, A::rq_psn, A::max_dest_rd_atomic, A::min_rnr_timer},
       {A::alt_path, A::access_flags, A::pkey_index}},
      {S::ready_to_receive,
       S::ready_to_send,
       {A::timeout, A::retry_cnt, A::rnr_retry, A::sq_psn, A::max_qp_rd_atomic},
       {A::cur_state, A::alt_path, A::access_flags, A::min_rnr_timer, A::path_mig_state}},
      {S::ready_to_send,
       S::ready_to_send,
       {},
       {A::cur_state, A::access_flags, A::alt_path, A::path_mig_state, A::min_rnr_timer}},
      {S::ready_to_send, S::sq_drain, {}, {A::en_sqd_async_notify}},
      {S::sq_drain,
       S::ready_to_send,
       {},
       {A::cur_state, A::alt_path, A::access_flags, A::min_rnr_timer, A::path_mig_state}},
      {S::sq_drain,
       S::sq_drain,
       {},
       {A::port, A::av, A::timeout, A::retry_cnt, A::rnr_retry, A::max_qp_rd_atomic, A::max_dest_rd_atomic,
        A::alt_path, A::access_flags, A::pkey_index, A::min_rnr_timer, A::path_mig_state}},
      {S::sq_error, S::ready_to_send, {}, {}},
  };
  return entries;
}

const Entry* find_entry(S from, S to) {
  static const Entry bare{};
  if (to == S::reset || (to == S::error && from != S::reset)) return &bare;
  for (const Entry& entry : table()) {
    if (entry.from == from && entry.to == to) return &entry;
  }
  return nullptr;
}

A all_of(const std::vector<A>& attributes) {
  A all = A::none;
  for (const A attribute : attributes) all = all | attribute;
  return all;
}
bool holds(const std::vector<A>& attributes, A one) {
  return std::find(attributes.begin(), attributes.end(), one) != attributes.end();
}

QpAttributes values_for(S from, S to) {
  return {.state = to,
          .cur_state = from,
          .access = MemoryAccess::remote_read,
          .port = 1,
          .path = {.peer_host = 1, .peer_qp = 2, .mtu = 1024}};
}

tl::expected<void, QpRefusal> go(RcQueuePair& qp, S to, A extra = A::none) {
  const Entry* entry = find_entry(qp.state(), to);
  return qp.modify(values_for(qp.state(), to), A::state | extra | all_of(entry->required));
}

void bring_to(RcQueuePair& qp, S state) {
  if (state == S::error) return qp.to_error();
  for (const S step : {S::init, S::ready_to_receive, S::ready_to_send, S::sq_drain}) {
    if (qp.state() >= state) return;
    ASSERT_TRUE(go(qp, step));
  }
}

class ModifyTest : public testing::Test {
 protected:
  // Calls check(qp) with a fresh queue pair in `state`.
  template <class Check>
  void with_qp(S state, Check check) {
    RcQueuePair& qp = world.a.make_qp();
    bring_to(qp, state);
    ASSERT_EQ(qp.state(), state);
    check(qp);
    world.a.nic.destroy(qp);
  }
  void expect_refused(S from, S to, A given, QpFault fault, A attribute) {
    const QpRefusal refusal{fault, attribute, from, to};
    if (from == S::sq_error) {
      EXPECT_EQ(check_mask(from, to, given), refusal) << to_string(refusal);
      return;
    }
    with_qp(from, [&](RcQueuePair& qp) {
      const auto result = qp.modify(values_for(from, to), given);
      ASSERT_FALSE(result.has_value()) << to_string(refusal);
      EXPECT_EQ(result.error(), refusal) << to_string(result.error()) << ", not " << to_string(refusal);
      EXPECT_EQ(qp.state(), from);
    });
  }
  void expect_taken(S from, S to, A given) {
    if (from == S::sq_error) {
      EXPECT_EQ(check_mask(from, to, given), std::nullopt);
      return;
    }
    with_qp(from, [&](RcQueuePair& qp) {
      const auto result = qp.modify(values_for(from, to), given);
      ASSERT_TRUE(result.has_value()) << to_string(result.error());
      EXPECT_EQ(qp.state(), to);
    });
  }

  World world;
};

TEST_F(ModifyTest, masks__every_transition_with_each_attribute_missing_and_each_too_many) {
  std::size_t cases = 0;
  for (const S from : kStates) {
    for (const S to : kStates) {
      const Entry* entry = find_entry(from, to);
      if (entry == nullptr) {
        expect_refused(from, to, A::state, QpFault::no_such_transition, A::none);
        ++cases;
        continue;
      }
      const A needed = A::state | all_of(entry->required);
      expect_taken(from, to, needed);
      for (const A missing : entry->required) {
        expect_refused(from, to, without(needed, missing), QpFault::missing, missing);
      }
      for (const A extra : kAttributes) {
        if (any(needed & extra)) continue;
        ++cases;
        if (!holds(entry->optional, extra)) {
          expect_refused(from, to, needed | extra, QpFault::not_allowed, extra);
        } else if (extra == A::alt_path) {
          expect_refused(from, to, needed | extra, QpFault::not_on_roce, extra);
        } else {
          expect_taken(from, to, needed | extra);
        }
      }
      cases += 1 + entry->required.size();
    }
  }
  EXPECT_EQ(cases, 27U + 22U * 22U);  // 27 pairs are no transition; 22 are, each against 22 attributes
}

TEST_F(ModifyTest, masks__without_a_state_the_present_one_stays) {
  for (const S state : kStates) {
    if (state == S::sq_error) continue;
    const Entry* entry = find_entry(state, state);
    for (const A attribute : kAttributes) {
      if (attribute == A::state || attribute == A::alt_path) continue;
      if (entry == nullptr) {
        expect_refused(state, state, attribute, QpFault::no_such_transition, A::none);
      } else if (holds(entry->optional, attribute)) {
        with_qp(state, [&](RcQueuePair& qp) {
          EXPECT_TRUE(qp.modify(values_for(state, state), attribute)) << to_string(attribute);
          EXPECT_EQ(qp.state(), state);
        });
      } else {
        expect_refused(state, state, attribute, QpFault::not_allowed, attribute);
      }
    }
  }
}

TEST_F(ModifyTest, cur_state__must_be_the_present_state) {
  for (const auto& [from, to] :
       {std::pair{S::ready_to_receive, S::ready_to_send}, std::pair{S::ready_to_send, S::ready_to_send},
        std::pair{S::sq_drain, S::ready_to_send}}) {
    for (const S claimed : kStates) {
      with_qp(from, [&](RcQueuePair& qp) {
        QpAttributes values = values_for(from, to);
        values.cur_state = claimed;
        const A given = A::state | A::cur_state | all_of(find_entry(from, to)->required);
        const auto result = qp.modify(values, given);
        EXPECT_EQ(result.has_value(), claimed == from);
        if (!result) {
          EXPECT_EQ(result.error(), (QpRefusal{QpFault::wrong_state, A::cur_state, from, to}));
        }
      });
    }
  }
}

TEST_F(ModifyTest, values__out_of_range_are_refused_by_name_and_change_nothing) {
  struct Case {
    S from;
    S to;
    A attribute;
    void (*spoil)(QpAttributes&);
  };
  const Case cases[] = {
      {S::reset, S::init, A::port, [](QpAttributes& v) { v.port = 0; }},
      {S::reset, S::init, A::port, [](QpAttributes& v) { v.port = 2; }},
      {S::reset, S::init, A::pkey_index, [](QpAttributes& v) { v.pkey_index = 1; }},
      {S::reset, S::init, A::access_flags, [](QpAttributes& v) { v.access = static_cast<MemoryAccess>(16); }},
      {S::init, S::ready_to_receive, A::path_mtu, [](QpAttributes& v) { v.path.mtu = 1500; }},
      {S::init, S::ready_to_receive, A::path_mtu, [](QpAttributes& v) { v.path.mtu = 8192; }},
      {S::init, S::ready_to_receive, A::dest_qpn, [](QpAttributes& v) { v.path.peer_qp = 1U << 24U; }},
      {S::init, S::ready_to_receive, A::rq_psn, [](QpAttributes& v) { v.path.receive_psn = 1U << 24U; }},
      {S::init, S::ready_to_receive, A::min_rnr_timer, [](QpAttributes& v) { v.path.min_rnr_timer = 32; }},
      {S::init, S::ready_to_receive, A::max_dest_rd_atomic,
       [](QpAttributes& v) { v.path.rd_atomic_dest_max = 129; }},
      {S::ready_to_receive, S::ready_to_send, A::timeout, [](QpAttributes& v) { v.path.ack_timeout = 32; }},
      {S::ready_to_receive, S::ready_to_send, A::retry_cnt, [](QpAttributes& v) { v.path.retry_cnt = 8; }},
      {S::ready_to_receive, S::ready_to_send, A::rnr_retry, [](QpAttributes& v) { v.path.rnr_retry = 8; }},
      {S::ready_to_receive, S::ready_to_send, A::sq_psn,
       [](QpAttributes& v) { v.path.send_psn = 1U << 24U; }},
      {S::ready_to_receive, S::ready_to_send, A::max_qp_rd_atomic,
       [](QpAttributes& v) { v.path.rd_atomic_max = 129; }},
  };
  for (const Case& c : cases) {
    with_qp(c.from, [&](RcQueuePair& qp) {
      QpAttributes values = values_for(c.from, c.to);
      c.spoil(values);
      const QpAttributes before = qp.query();
      const A given = A::state | all_of(find_entry(c.from, c.to)->required);
      const auto result = qp.modify(values, given);
      ASSERT_FALSE(result.has_value()) << to_string(c.attribute);
      EXPECT_EQ(result.error(), (QpRefusal{QpFault::out_of_range, c.attribute, c.from, c.to}));
      EXPECT_EQ(qp.query().state, before.state);
      EXPECT_EQ(qp.query().port, before.port);
      EXPECT_EQ(qp.query().path.mtu, before.path.mtu);
    });
  }
  with_qp(S::ready_to_send, [&](RcQueuePair& qp) {
    QpAttributes values = values_for(S::ready_to_send, S::ready_to_send);
    values.path_migration = PathMigration::rearm;
    EXPECT_EQ(qp.modify(values, A::path_mig_state).error().fault, QpFault::not_on_roce);
  });
}

TEST_F(ModifyTest, refusals__name_the_transition_the_attribute_and_the_range) {
  EXPECT_EQ(to_string(QpRefusal{QpFault::missing, A::timeout, S::ready_to_receive, S::ready_to_send}),
            "RTR -> RTS needs IBV_QP_TIMEOUT");
  EXPECT_EQ(to_string(QpRefusal{QpFault::not_allowed, A::timeout, S::init, S::ready_to_receive}),
            "INIT -> RTR does not take IBV_QP_TIMEOUT");
  EXPECT_EQ(to_string(QpRefusal{QpFault::no_such_transition, A::none, S::reset, S::ready_to_send}),
            "RESET -> RTS is no transition of an RC queue pair");
  EXPECT_EQ(to_string(QpRefusal{QpFault::out_of_range, A::retry_cnt, S::sq_drain, S::sq_drain}),
            "SQD -> SQD: the value of IBV_QP_RETRY_CNT must be 0 to 7");
  std::vector<std::string> names;
  for (const A attribute : kAttributes) names.emplace_back(to_string(attribute));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

TEST_F(ModifyTest, query__gives_back_what_was_set_and_reset_forgets_it) {
  RcQueuePair& qp = world.a.make_qp();
  bring_to(qp, S::init);
  QpAttributes values = values_for(S::init, S::ready_to_receive);
  values.path = {.peer_host = 1,
                 .peer_qp = 77,
                 .send_psn = 5,
                 .receive_psn = 6,
                 .mtu = 512,
                 .ack_timeout = 9,
                 .retry_cnt = 3,
                 .rnr_retry = 2,
                 .min_rnr_timer = 21,
                 .rd_atomic_max = 4,
                 .rd_atomic_dest_max = 8,
                 .traffic_class = 96};
  ASSERT_TRUE(qp.modify(values, A::state | all_of(find_entry(S::init, S::ready_to_receive)->required)));
  values.state = S::ready_to_send;
  ASSERT_TRUE(
      qp.modify(values, A::state | all_of(find_entry(S::ready_to_receive, S::ready_to_send)->required)));
  const QpAttributes got = qp.query();
  EXPECT_EQ(got.state, S::ready_to_send);
  EXPECT_EQ(got.access, MemoryAccess::remote_read);
  EXPECT_EQ(got.path.peer_qp, 77U);
  EXPECT_EQ(got.path.send_psn, 5U);
  EXPECT_EQ(got.path.receive_psn, 6U);
  EXPECT_EQ(got.path.mtu, 512U);
  EXPECT_EQ(got.path.ack_timeout, 9U);
  EXPECT_EQ(got.path.retry_cnt, 3U);
  EXPECT_EQ(got.path.rnr_retry, 2U);
  EXPECT_EQ(got.path.min_rnr_timer, 21U);
  EXPECT_EQ(got.path.rd_atomic_max, 4U);
  EXPECT_EQ(got.path.rd_atomic_dest_max, 8U);
  EXPECT_EQ(got.path.traffic_class, 96U);
  ASSERT_TRUE(qp.modify({.state = S::reset}, A::state));
  EXPECT_EQ(qp.query().path.peer_qp, 0U);
  EXPECT_EQ(qp.query().state, S::reset);
}

}  // namespace
}  // namespace bx::sim
