// SPDX-License-Identifier: BSD-3-Clause
// Something ends in the middle of everything: at each of many instants of the same busy run a worker is
// closed, a host vanishes, a device or a port fails, or callers give up. Whatever the instant, each call
// completes exactly once, nothing leaks, and a later connection works.
#include <ostream>

#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::size_t, 7> kSizes = {0, 150, 250, 4000, 30'000, 100'000, 150'000};

// Echoes, but keeps every third request until told.
class SlowService final : public Service {
 public:
  void handle(Request request) noexcept override {
    if (++seen % 3 == 0 && !prompt) return held.push_back(std::move(request));
    Buffer payload = std::move(request.payload());
    request.reply(std::move(payload));
  }
  void answer() {
    for (Request& request : std::exchange(held, {})) {
      Buffer payload = std::move(request.payload());
      request.reply(std::move(payload));
    }
  }
  std::vector<Request> held;
  int seen = 0;
  bool prompt = false;  // keeps none
};

enum class Event { nothing, close, vanish, fail_device, port_down, blink, abandon, deadline };

struct Interruption {
  const char* name;
  Event event;
};

void PrintTo(const Interruption& interruption, std::ostream* out) {
  *out << interruption.name;
}

// Two workers, each serving and calling the other.
struct Scene {
  struct Side {
    SlowService service;
    Node node;
    Session session;
    double memory_idle = 0;
    std::vector<std::unique_ptr<RecordedCall>> calls;
  };

  explicit Scene(RendezvousPolicy policy) {
    config.rendezvous_policy = static_cast<std::uint64_t>(policy);
    config.memory_arena = 64U << 20U;
    config.credits_per_peer = 4;
    config.send_depth = 16;
    config.receive_spare = 2;
    config.requests_max = 6;
    config.transfers_max = 2;
    config.rendezvous_chunk = 16'384;
    config.path_ack_timeout = 8;  // about 1 ms, eight times
    config.peers_max = 4;
    open(a, "a");
    open(b, "b");
    a.session = connect(a.node, "b");
    b.session = connect(b.node, "a");
    run_dry(a.node);
    for (Side* side : {&a, &b}) side->memory_idle = counter(side->node, "memory.arena_in_use");
  }
  ~Scene() {
    close(a);
    close(b);
  }

  void open(Side& side, const char* name) {
    side.node = world.add(name, config);
    EXPECT_TRUE(side.node.worker().serve(kPort, side.service).has_value());
  }
  static void close(Side& side) {
    side.service.held.clear();
    side.calls.clear();
    side.node.context.reset();
    side.node.host.reset();
  }
  static void call(Side& side, Instant deadline = kNever) {
    for (std::size_t i = 0; i < 2 * kSizes.size(); ++i) {
      side.calls.push_back(std::make_unique<RecordedCall>());
      side.session.start_call(filled(side.node.worker(), kSizes[i % kSizes.size()], i), *side.calls.back(),
                              {.deadline = deadline});
    }
  }
  // Everything ends: held requests are answered until none comes any more. Time is given in small steps, for
  // a request that is held reaches its deadline if the world runs dry.
  void finish() {
    Worker worker = a.node.worker();
    for (int step = 0; step < 100; ++step) {
      for (Side* side : {&a, &b}) side->service.answer();
      worker.reactor().run(worker.now() + 1ms);
    }
    worker.reactor().run(kNever);
  }

  World world;
  Config config;
  Side a;
  Side b;
};

class Interrupted : public ::testing::TestWithParam<std::tuple<Interruption, RendezvousPolicy>> {
 protected:
  static void interrupt(Scene& scene, Event event) {
    switch (event) {
      case Event::nothing:
      case Event::deadline:
        return;
      case Event::close:
        return scene.b.node.worker().close();
      case Event::vanish:
        return Scene::close(scene.b);
      case Event::fail_device:
        return scene.world.fabric.fail_device("b");
      case Event::port_down:
        return scene.world.fabric.set_port("b", loopback::PortState::down);
      case Event::blink:
        scene.world.fabric.set_port("b", loopback::PortState::down);
        scene.a.node.worker().reactor().run(scene.a.node.worker().now() + 2ms);
        return scene.world.fabric.set_port("b", loopback::PortState::up);
      case Event::abandon:
        for (std::size_t i = 0; i < scene.a.calls.size(); i += 2) scene.a.calls[i].reset();
        return;
    }
  }
  static bool fatal(Event event) {
    return event == Event::close || event == Event::vanish || event == Event::fail_device ||
           event == Event::port_down;
  }

  static void expect_ended_once(const Scene::Side& side, Event event) {
    for (std::size_t i = 0; i < side.calls.size(); ++i) {
      const RecordedCall* call = side.calls[i].get();
      if (call == nullptr) continue;
      ASSERT_EQ(call->completions, 1) << "call " << i;
      if (!call->error) {
        EXPECT_TRUE(is_filled(call->answer.bytes(), i)) << "call " << i;
        EXPECT_EQ(call->answer.size(), kSizes[i % kSizes.size()]);
      } else if (event == Event::deadline) {
        EXPECT_EQ(call->error->code, ErrorCode::deadline_exceeded) << call->error->detail;
      } else {
        EXPECT_TRUE(fatal(event)) << call->error->detail;
        EXPECT_GE(call->error->scope, ErrorScope::session) << call->error->detail;
        EXPECT_TRUE(call->error->code == ErrorCode::closed || call->error->code == ErrorCode::device)
            << call->error->detail;
      }
    }
  }
  static void expect_no_leak(Scene::Side& side, Event event) {
    if (side.node.context == nullptr) return;
    for (auto& call : side.calls) call.reset();
    Worker worker = side.node.worker();
    EXPECT_TRUE(worker.idle());
    worker.check_invariants();
    const double in_use = counter(side.node, "memory.arena_in_use");
    if (fatal(event)) {
      EXPECT_LT(in_use, side.memory_idle);  // the lanes' headers came back as well
      EXPECT_GT(in_use, side.memory_idle - 100'000);
    } else {
      EXPECT_EQ(in_use, side.memory_idle);
      EXPECT_EQ(counter(side.node, "peers.failed"), 0);
    }
    EXPECT_EQ(worker.gauges().bytes_in_flight_in, 0U);
    EXPECT_EQ(worker.gauges().bytes_in_flight_out, 0U);
    EXPECT_EQ(worker.gauges().messages_queued, 0U);
  }

  static void run_once(Event event, RendezvousPolicy policy, Duration after) {
    Scene scene(policy);
    const Instant start = scene.a.node.worker().now();
    const Instant deadline = event == Event::deadline ? start + after : kNever;
    Scene::call(scene.a, deadline);
    Scene::call(scene.b, deadline);
    scene.a.node.worker().reactor().run(start + after);
    interrupt(scene, event);
    scene.finish();
    scene.a.service.prompt = scene.b.service.prompt = true;
    expect_ended_once(scene.a, event);
    expect_ended_once(scene.b, event);
    if (HasFatalFailure()) return;
    expect_no_leak(scene.a, event);
    expect_no_leak(scene.b, event);
    if (event == Event::vanish) {
      scene.open(scene.b, "b");
      EXPECT_FALSE(scene.a.session.connected() && call_works(scene.a));  // the old session stays closed
      scene.a.session = connect(scene.a.node, "b");
      EXPECT_TRUE(call_works(scene.a));
    } else if (!fatal(event)) {
      EXPECT_TRUE(call_works(scene.a));
      EXPECT_TRUE(call_works(scene.b));
    }
  }
  static bool call_works(Scene::Side& side) {
    RecordedCall call;
    side.session.start_call(filled(side.node.worker(), 50'000, 5), call);
    run_dry(side.node);
    return call.succeeded() && is_filled(call.answer.bytes(), 5);
  }
};

TEST_P(Interrupted, at_every_instant__ends_each_call_once_and_leaks_nothing) {
  const auto [interruption, policy] = GetParam();
  // The steps share no factor with anything in it.
  for (Duration after{0}; after < 300us; after += 7'327ns) {
    SCOPED_TRACE(::testing::Message() << "after " << after.count() << " ns");
    run_once(interruption.event, policy, after);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Events, Interrupted,
    ::testing::Combine(
        ::testing::Values(Interruption{"nothing", Event::nothing}, Interruption{"close", Event::close},
                          Interruption{"vanish", Event::vanish},
                          Interruption{"fail_device", Event::fail_device},
                          Interruption{"port_down", Event::port_down}, Interruption{"blink", Event::blink},
                          Interruption{"abandon", Event::abandon}, Interruption{"deadline", Event::deadline}),
        ::testing::Values(RendezvousPolicy::pull, RendezvousPolicy::granted_write)),
    [](const auto& param) {
      return std::string(std::get<0>(param.param).name) +
             (std::get<1>(param.param) == RendezvousPolicy::pull ? "_pull" : "_write");
    });

}  // namespace
}  // namespace bx::testing
