// SPDX-License-Identifier: BSD-3-Clause
// Payloads of more than 32 bits can count. Memory is mapped so that little of it is real: what nobody wrote
// is one page of zeros, and what must be written is one stretch of memory mapped again and again.
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "tests/engine/sparse.h"
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30U;
constexpr std::size_t kStretch = std::size_t{16} << 20U;

// `bytes` of address space, all of it the same kStretch of memory.
class Repeated {
 public:
  explicit Repeated(std::size_t bytes) : bytes_((bytes + kStretch - 1) / kStretch * kStretch) {
    const int file = memfd_create("repeated", 0);
    EXPECT_EQ(ftruncate(file, kStretch), 0);
    void* const at = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    base_ = static_cast<std::byte*>(at);
    for (std::size_t i = 0; i < bytes_; i += kStretch) {
      EXPECT_EQ(mmap(base_ + i, kStretch, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0),
                base_ + i);
    }
    close(file);
  }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
  ~Repeated() { munmap(base_, bytes_); }
  [[nodiscard]] std::span<std::byte> bytes() const { return {base_, bytes_}; }

 private:
  std::size_t bytes_;
  std::byte* base_ = nullptr;
};

// Long chunks, so that gigabytes take thousands of turns and not millions.
Config for_gigabytes() {
  Config config;
  config.rendezvous_chunk = 4U << 20U;
  config.window_per_peer = 16U << 20U;
  config.window_receiver = 16U << 20U;
  config.memory_arena = 4 * kGiB;
  config.memory_huge_pages = static_cast<std::uint64_t>(HugePages::prefer);  // fewer to be touched first
  config.memory_user = 8 * kGiB;
  return config;
}

class LargeTest : public ::testing::TestWithParam<RendezvousPolicy> {
 protected:
  void open(Service& service, Config config) {
    config.rendezvous_policy = static_cast<std::uint64_t>(GetParam());
    server_ = world_.add("server", config);
    ASSERT_TRUE(server_.worker().serve(kPort, service).has_value());
    client_ = world_.add("client", config);
    session_ = connect(client_, "server");
  }
  World world_;
  Node server_;
  Node client_;
  Session session_;
};

// Looks at the marks of the request below and answers with its length.
class MarksService final : public Service {
 public:
  void handle(Request request) noexcept override {
    const Buffer payload = std::move(request.payload());
    const auto bytes = payload.bytes();
    right = bytes.front() == std::byte{1} && bytes.back() == std::byte{4};
    if (bytes.size() > 2 * kGiB) {
      right = right && bytes[2 * kGiB - 1] == std::byte{2} && bytes[2 * kGiB] == std::byte{3};
      right = right && bytes[kGiB] == std::byte{0};
    }
    received = bytes.size();
    request.reply(Buffer{});
  }
  bool right = false;
  std::size_t received = 0;
};

// Over two gigabytes, every byte of them moved.
TEST_P(LargeTest, call__beyond_2_gib_is_all_there) {
  MarksService service;
  open(service, for_gigabytes());
  const std::size_t size = 2 * kGiB + 1 + kStretch;
  const Sparse memory(size);
  memory.bytes().front() = std::byte{1};
  memory.bytes()[2 * kGiB - 1] = std::byte{2};
  memory.bytes()[2 * kGiB] = std::byte{3};
  memory.bytes().back() = std::byte{4};
  {
    UserMemory user = client_.worker().register_memory(memory.bytes()).value();
    RecordedCall call;
    session_.start_call(user.buffer(), call, {.deadline = kNever});
    run_dry(client_);
    ASSERT_TRUE(call.succeeded()) << (call.error ? call.error->detail : "");
  }
  EXPECT_EQ(service.received, size);
  EXPECT_TRUE(service.right);
  EXPECT_EQ(counter(client_, "messages.bytes_sent"), static_cast<double>(size));
  expect_at_rest(client_);
  expect_at_rest(server_);
}

// Around the lengths at which a narrower count would turn over.
TEST_P(LargeTest, call__around_64_mib_in_parts) {
  MarksService service;
  open(service, for_gigabytes());
  constexpr std::size_t k64 = std::size_t{64} << 20U;
  for (const std::size_t size : {k64 - 1, k64, k64 + 1}) {
    Gather message;
    const Sparse memory(size);
    memory.bytes().front() = std::byte{1};
    memory.bytes().back() = std::byte{4};
    UserMemory user = client_.worker().register_memory(memory.bytes()).value();
    ASSERT_TRUE(message.add(user.buffer(0, 1)).has_value());
    ASSERT_TRUE(message.add(user.buffer(1, size - 1)).has_value());
    RecordedCall call;
    session_.start_call(std::move(message), call);
    run_dry(client_);
    ASSERT_TRUE(call.succeeded());
    EXPECT_EQ(service.received, size);
    EXPECT_TRUE(service.right);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, LargeTest,
                         ::testing::Values(RendezvousPolicy::pull, RendezvousPolicy::granted_write),
                         [](const auto& way) {
                           return way.param == RendezvousPolicy::pull ? "pull" : "granted_write";
                         });

class LargeOneSided : public ::testing::Test {
 protected:
  LargeOneSided() {
    const Config config = for_gigabytes();
    owner_ = world_.add("owner", config);
    EXPECT_TRUE(owner_.worker().serve(kPort, echo_).has_value());
    client_ = world_.add("client", config);
    session_ = connect(client_, "owner");
  }
  World world_;
  EchoService echo_;
  Node owner_;
  Node client_;
  Session session_;
};

// Both ends wrap round the same stretch, so a chunk that went elsewhere by other than whole stretches shows.
TEST_F(LargeOneSided, get__beyond_4_gib_and_put_beyond_2_gib) {
  const Repeated theirs(4 * kGiB + 1);
  fill(theirs.bytes().first(kStretch), 5);
  const Repeated ours(4 * kGiB + 1);
  UserMemory owned = owner_.worker().register_memory(theirs.bytes()).value();
  UserMemory local = client_.worker().register_memory(ours.bytes()).value();
  Exposed table = owner_.worker().expose(owned.buffer()).value();
  const auto same = [&] {
    return std::equal(ours.bytes().begin(), ours.bytes().begin() + kStretch, theirs.bytes().begin());
  };
  fill(ours.bytes().first(kStretch), 1);
  RecordedCall get;
  session_.start_get(local.buffer(0, 4 * kGiB + 1), table.remote(), get);
  run_dry(client_);
  ASSERT_TRUE(get.succeeded()) << (get.error ? get.error->detail : "");
  EXPECT_EQ(get.answer.size(), 4 * kGiB + 1);
  EXPECT_TRUE(same());
  fill(ours.bytes().first(kStretch), 7);
  RecordedCall put;
  session_.start_put(local.buffer(0, 2 * kGiB + 1), table.remote(), put);
  run_dry(client_);
  ASSERT_TRUE(put.succeeded()) << (put.error ? put.error->detail : "");
  EXPECT_TRUE(same());
  table.revoke();
}

TEST_F(LargeOneSided, too_large__names_the_limit) {
  const auto buffer = client_.worker().allocate(3 * kGiB + 1);
  ASSERT_FALSE(buffer.has_value());
  EXPECT_EQ(buffer.error().code, ErrorCode::too_large);
  EXPECT_EQ(buffer.error().sys, 3072);  // three quarters of memory.arena, in MiB
  const Sparse memory(9 * kGiB);
  const auto user = client_.worker().register_memory(memory.bytes());
  ASSERT_FALSE(user.has_value());
  EXPECT_EQ(user.error().code, ErrorCode::too_large);
  EXPECT_EQ(user.error().sys, 8192);
  // What this end can send, the other need not be able to hold.
  UserMemory most = client_.worker().register_memory(memory.bytes().first(7 * kGiB)).value();
  RecordedCall call;
  session_.start_call(most.buffer(), call);
  run_dry(client_);
  EXPECT_TRUE(call.failed_with(ErrorCode::too_large));
}

}  // namespace
}  // namespace bx::testing
