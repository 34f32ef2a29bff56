// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/qp_index.h"

#include <map>

#include "libbx/engine/peer.h"
#include "tests/engine/world.h"
#include "tests/support/property.h"

namespace bx::engine {
namespace {

TEST(QpIndex, find__knows_what_was_inserted_and_not_erased) {
  QpIndex index(2);
  Peer a;
  Peer b;
  EXPECT_EQ(index.find(fabric::QpNum{0}), nullptr);
  index.insert(fabric::QpNum{7}, a);
  index.insert(fabric::QpNum{0}, b);  // a number like any other
  EXPECT_EQ(index.find(fabric::QpNum{7}), &a);
  EXPECT_EQ(index.find(fabric::QpNum{0}), &b);
  index.erase(fabric::QpNum{7});
  EXPECT_EQ(index.find(fabric::QpNum{7}), nullptr);
  EXPECT_EQ(index.find(fabric::QpNum{0}), &b);
  index.insert(fabric::QpNum{7}, b);
  EXPECT_EQ(index.find(fabric::QpNum{7}), &b);
}

// Against std::map, in a table so small that most numbers are displaced.
TEST(QpIndex, random_use__agrees_with_a_map) {
  test::expect_property([](const std::vector<std::uint8_t>& steps) {
    constexpr std::size_t kCapacity = 5;
    QpIndex index(kCapacity);
    std::map<std::uint32_t, Peer*> model;
    std::array<Peer, 3> peers;
    for (const std::uint8_t step : steps) {
      const std::uint32_t qp = step % 23U;
      if (model.contains(qp)) {
        index.erase(fabric::QpNum{qp});
        model.erase(qp);
      } else if (model.size() < kCapacity) {
        index.insert(fabric::QpNum{qp}, peers[step % peers.size()]);
        model[qp] = &peers[step % peers.size()];
      }
      for (std::uint32_t other = 0; other < 23; ++other) {
        RC_ASSERT(index.find(fabric::QpNum{other}) == (model.contains(other) ? model[other] : nullptr));
      }
    }
  });
}

TEST(QpIndexDeathTest, insert__beyond_the_capacity_or_twice_dies) {
  QpIndex index(1);
  Peer peer;
  index.insert(fabric::QpNum{3}, peer);
  EXPECT_DEATH(index.insert(fabric::QpNum{4}, peer), "more than peers.max");
  QpIndex roomy(2);
  roomy.insert(fabric::QpNum{3}, peer);
  EXPECT_DEATH(roomy.insert(fabric::QpNum{3}, peer), "of two peers");
}

}  // namespace
}  // namespace bx::engine
