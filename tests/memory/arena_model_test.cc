// SPDX-License-Identifier: BSD-3-Clause
// The arena against a model that knows only what a user may rely on: which buffers are out, of which side,
// and that a side never has more out than its quota.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "libbx/memory/arena.h"
#include "libbx/providers/loopback/loopback_fabric.h"
#include "tests/support/property.h"

namespace bx::memory {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kArena = 24 * kMiB;

// What is out, by address.
class Model {
 public:
  struct Out {
    Buffer buffer;
    Side side;
    bool pinned;
  };

  void add(Buffer buffer, Side side, bool pinned) {
    const std::byte* begin = buffer.data();
    const auto after = out_.lower_bound(begin);
    RC_ASSERT(after == out_.end() || begin + buffer.capacity() <= after->first);
    if (after != out_.begin()) {
      const auto before = std::prev(after);
      RC_ASSERT(before->first + before->second.buffer.capacity() <= begin);
    }
    bytes_[static_cast<std::size_t>(side)] += buffer.capacity();
    out_.emplace(begin, Out{std::move(buffer), side, pinned});
  }
  void remove(std::size_t which) {
    auto victim = out_.begin();
    std::advance(victim, static_cast<std::ptrdiff_t>(which % out_.size()));
    bytes_[static_cast<std::size_t>(victim->second.side)] -= victim->second.buffer.capacity();
    out_.erase(victim);
  }
  void remove_all() {
    out_.clear();
    bytes_ = {};
  }
  [[nodiscard]] bool empty() const { return out_.empty(); }
  [[nodiscard]] std::uint64_t bytes(Side side) const { return bytes_[static_cast<std::size_t>(side)]; }
  [[nodiscard]] std::uint64_t buffers(Side side) const {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        out_, [&](const auto& entry) { return entry.second.side == side && !entry.second.pinned; }));
  }

 private:
  std::map<const std::byte*, Out> out_;
  std::array<std::uint64_t, kSides> bytes_{};
};

class ArenaModelTest : public ::testing::Test {
 protected:
  std::unique_ptr<Arena> make(std::uint64_t send, std::uint64_t receive) {
    return std::move(*Arena::create(host_->device(), system_, {.bytes = kArena, .quota = {send, receive}}));
  }
  LinuxMemory system_;
  loopback::LoopbackFabric fabric_;
  std::unique_ptr<fabric::Host> host_ = fabric_.open_host("host").value();
};

void check(const Arena& arena, const Model& model) {
  arena.check_invariants();
  for (const Side side : {Side::send, Side::receive}) {
    const SideUsage usage = arena.usage(side);
    RC_ASSERT(usage.bytes == model.bytes(side));
    RC_ASSERT(usage.buffers == model.buffers(side));
    RC_ASSERT(usage.bytes <= usage.quota);
    RC_ASSERT(usage.bytes_peak <= usage.quota);
  }
}

void step(Arena& arena, Model& model, std::uint16_t random) {
  const Side side = random % 2 == 0 ? Side::send : Side::receive;
  if (random % 3 == 0 && !model.empty()) {
    model.remove(random / 8);
    return;
  }
  const std::size_t size = 1 + (std::size_t{random} << (random % 9));
  const bool pinned = random % 31 == 0;
  auto buffer = pinned ? arena.allocate_pinned(size, side) : arena.allocate(size, side);
  if (buffer) {
    RC_ASSERT(buffer->size() == size);
    RC_ASSERT(buffer->capacity() >= size);
    model.add(std::move(*buffer), side, pinned);
  } else {
    RC_ASSERT(buffer.error().code ==
              (size > arena.usage(side).quota ? ErrorCode::too_large : ErrorCode::exhausted));
  }
}

TEST_F(ArenaModelTest, random_use__of_both_sides_agrees_with_the_model) {
  test::expect_property([this] {
    auto arena = make(16 * kMiB, 12 * kMiB);
    Model model;
    const auto steps = *rc::gen::scale(3.0, rc::gen::arbitrary<std::vector<std::uint16_t>>());
    for (const std::uint16_t random : steps) {
      step(*arena, model, random);
      check(*arena, model);
    }
    model.remove_all();
    check(*arena, model);
    // All that was out is back, of whatever class it was.
    RC_ASSERT(arena->allocate(16 * kMiB, Side::send).has_value());
    RC_ASSERT(arena->allocate(12 * kMiB, Side::receive).has_value());
  });
}

// Whatever the application takes, the receive side gets what the send quota leaves of the arena.
TEST_F(ArenaModelTest, random_use__of_one_side_leaves_the_other_what_is_its_own) {
  test::expect_property([this](const std::vector<std::uint16_t>& steps) {
    auto arena = make(16 * kMiB, 24 * kMiB);
    std::vector<Buffer> taken;
    for (const std::uint16_t random : steps) {
      auto buffer = arena->allocate(1 + (std::size_t{random} << (random % 9)));
      if (buffer) taken.push_back(std::move(*buffer));
    }
    for (auto rest = arena->allocate(4 * kMiB); rest; rest = arena->allocate(4 * kMiB)) {
      taken.push_back(std::move(*rest));
    }
    std::vector<Buffer> received;
    for (int i = 0; i < 2; ++i) {
      auto buffer = arena->allocate(4 * kMiB, Side::receive);
      RC_ASSERT(buffer.has_value());
      received.push_back(std::move(*buffer));
    }
  });
}

TEST_F(ArenaModelTest, could_hold__agrees_with_what_is_left_when_all_else_is_back) {
  test::expect_property([this](const std::vector<std::uint16_t>& steps) {
    auto arena = make(16 * kMiB, 20 * kMiB);
    std::vector<Buffer> pinned;
    std::vector<Buffer> others;
    for (const std::uint16_t random : steps) {
      const std::size_t size = 1 + (std::size_t{random} << (random % 8));
      const Side side = random % 2 == 0 ? Side::send : Side::receive;
      auto buffer = random % 5 == 0 ? arena->allocate_pinned(size, side) : arena->allocate(size, side);
      if (buffer) (random % 5 == 0 ? pinned : others).push_back(std::move(*buffer));
    }
    const std::size_t wanted = 1 + *rc::gen::inRange<std::size_t>(0, 21 * kMiB);
    const Side side = *rc::gen::element(Side::send, Side::receive);
    const bool expected = arena->could_hold(wanted, side);
    others.clear();
    RC_ASSERT(arena->could_hold(wanted, side) == expected);
    RC_ASSERT(arena->allocate(wanted, side).has_value() == expected);
  });
}

// A NIC that is late writes into memory that is somebody else's by now, or nobody's. That may spoil payloads
// of whoever broke the rules; it must not spoil the arena.
TEST_F(ArenaModelTest, late_dma__anywhere_leaves_the_tables_as_they_are) {
  auto arena = make(0, 0);
  Model model;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    step(*arena, model, static_cast<std::uint16_t>(i * 40'503U));
    if (i % 50 == 0) std::memset(arena->bytes().data(), static_cast<int>(i), arena->bytes().size());
  }
  check(*arena, model);
  model.remove_all();
  EXPECT_TRUE(arena->allocate(kArena).has_value());
}

}  // namespace
}  // namespace bx::memory
