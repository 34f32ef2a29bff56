// SPDX-License-Identifier: GPL-2.0-only
// What ns-3 promises about its simulator, asked of ours and of the stock one alike.
#include "sim/model/fast_simulator.h"

#include <gtest/gtest.h>
#include <ns3/make-event.h>
#include <ns3/map-scheduler.h>
#include <ns3/nstime.h>
#include <ns3/object-factory.h>
#include <ns3/simulator.h>

#include <memory>
#include <vector>

#include "sim/model/engine.h"

namespace bx::sim {
namespace {

using ns3::EventId;
using ns3::NanoSeconds;
using ns3::Simulator;

class SimulatorImplTest : public testing::TestWithParam<EngineKind> {
 protected:
  SimulatorImplTest() : engine_(std::make_unique<Engine>(GetParam())) {}
  auto marker(int m) {
    return [this, m] { marks_.push_back(m); };
  }
  EventId schedule(std::uint64_t ns, int m) { return Simulator::Schedule(NanoSeconds(ns), marker(m)); }
  std::unique_ptr<Engine> engine_;
  std::vector<int> marks_;
};
using Marks = std::vector<int>;

TEST_P(SimulatorImplTest, Destroy__runs_destroy_events_in_order_also_those_added_meanwhile) {
  Simulator::ScheduleDestroy(marker(1));
  Simulator::ScheduleDestroy([this] {
    marks_.push_back(2);
    Simulator::ScheduleDestroy(marker(4));
    Simulator::Schedule(NanoSeconds(1), marker(99));
  });
  const EventId cancelled = Simulator::ScheduleDestroy(marker(98));
  const EventId removed = Simulator::ScheduleDestroy(marker(97));
  Simulator::ScheduleDestroy(marker(3));
  EXPECT_FALSE(Simulator::IsExpired(cancelled));
  Simulator::Cancel(cancelled);
  EXPECT_TRUE(Simulator::IsExpired(cancelled));
  Simulator::Remove(removed);
  EXPECT_TRUE(Simulator::IsExpired(removed));
  Simulator::Run();
  EXPECT_TRUE(marks_.empty());
  engine_.reset();
  EXPECT_EQ(marks_, (Marks{1, 2, 3, 4}));
}

TEST_P(SimulatorImplTest, Destroy__frees_the_events_that_still_wait) {
  const auto token = std::make_shared<int>(0);
  for (std::uint64_t ns : {1, 10, 100'000'000}) {
    Simulator::Schedule(NanoSeconds(ns), [token] {});
  }
  EXPECT_EQ(token.use_count(), 4);
  Simulator::Stop(NanoSeconds(5));
  Simulator::Run();
  EXPECT_EQ(token.use_count(), 3);
  engine_.reset();
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(SimulatorImplTest, IsFinished__when_nothing_waits) {
  EXPECT_TRUE(Simulator::IsFinished());
  schedule(1, 1);
  EXPECT_FALSE(Simulator::IsFinished());
  Simulator::Run();
  EXPECT_TRUE(Simulator::IsFinished());
}

TEST_P(SimulatorImplTest, Stop__with_a_delay_leaves_later_events_for_the_next_run) {
  schedule(10, 1);
  Simulator::Stop(NanoSeconds(10));
  schedule(10, 2);
  Simulator::Run();
  EXPECT_EQ(marks_, (Marks{1}));
  EXPECT_EQ(Simulator::Now(), NanoSeconds(10));
  Simulator::Run();
  EXPECT_EQ(marks_, (Marks{1, 2}));
}

TEST_P(SimulatorImplTest, Schedule__orders_by_time_then_by_order_of_scheduling) {
  schedule(20, 4);
  schedule(10, 1);
  schedule(10, 2);
  Simulator::ScheduleNow(marker(0));
  schedule(15, 3);
  Simulator::Run();
  EXPECT_EQ(marks_, (Marks{0, 1, 2, 3, 4}));
  EXPECT_EQ(Simulator::Now(), NanoSeconds(20));
  EXPECT_EQ(Simulator::GetEventCount(), 5U);
}

TEST_P(SimulatorImplTest, Schedule__inherits_the_context_of_the_event_that_schedules) {
  std::vector<std::uint32_t> contexts;
  const auto note = [&contexts] { contexts.push_back(Simulator::GetContext()); };
  Simulator::ScheduleWithContext(5, NanoSeconds(1), [&, note] {
    note();
    Simulator::Schedule(NanoSeconds(5), note);
    Simulator::ScheduleNow(note);
    Simulator::ScheduleWithContext(6, NanoSeconds(2), note);
  });
  Simulator::Schedule(NanoSeconds(2), note);
  Simulator::Run();
  EXPECT_EQ(contexts, (std::vector<std::uint32_t>{5, 5, Simulator::NO_CONTEXT, 6, 5}));
}

TEST_P(SimulatorImplTest, Schedule__one_event_object_may_be_scheduled_again_and_again) {
  int runs = 0;
  ns3::Ptr<ns3::EventImpl> event;
  event = ns3::Ptr<ns3::EventImpl>(ns3::MakeEvent([&] {
                                     if (++runs < 3) Simulator::Schedule(NanoSeconds(1), event);
                                   }),
                                   false);
  const EventId first = Simulator::Schedule(NanoSeconds(1), event);
  Simulator::Run();
  EXPECT_EQ(runs, 3);
  EXPECT_TRUE(Simulator::IsExpired(first));
  EXPECT_EQ(event->GetReferenceCount(), 2U);  // ours and the id's
}

TEST_P(SimulatorImplTest, Remove__takes_the_event_out_so_that_the_clock_never_reaches_it) {
  schedule(10, 1);
  const EventId near = schedule(20, 98);
  const EventId far = schedule(500'000'000, 99);
  Simulator::Remove(near);
  Simulator::Remove(far);
  EXPECT_TRUE(Simulator::IsExpired(near));
  EXPECT_TRUE(Simulator::IsExpired(far));
  Simulator::Remove(far);  // nothing more happens
  Simulator::Run();
  EXPECT_EQ(marks_, (Marks{1}));
  EXPECT_EQ(Simulator::Now(), NanoSeconds(10));
}

TEST_P(SimulatorImplTest, Remove__of_an_event_of_the_same_instant) {
  EventId victim;
  Simulator::Schedule(NanoSeconds(10), [&] { Simulator::Remove(victim); });
  schedule(10, 1);
  victim = schedule(10, 99);
  schedule(10, 2);
  Simulator::Run();
  EXPECT_EQ(marks_, (Marks{1, 2}));
}

TEST_P(SimulatorImplTest, Cancel__suppresses_the_event) {
  const EventId id = schedule(10, 99);
  schedule(5, 1);
  Simulator::Cancel(id);
  EXPECT_TRUE(Simulator::IsExpired(id));
  Simulator::Run();
  EXPECT_EQ(marks_, (Marks{1}));
  EXPECT_EQ(Simulator::Now(), NanoSeconds(10));  // cancelled, not removed
}

TEST_P(SimulatorImplTest, IsExpired__before_during_and_after) {
  EventId earlier;
  EventId self;
  EventId later;
  std::vector<bool> expired;
  earlier = schedule(10, 1);
  self = Simulator::Schedule(NanoSeconds(10), [&] {
    for (const EventId& id : {earlier, self, later}) expired.push_back(Simulator::IsExpired(id));
  });
  later = schedule(10, 2);
  EXPECT_TRUE(Simulator::IsExpired(EventId()));
  EXPECT_FALSE(Simulator::IsExpired(self));
  Simulator::Run();
  EXPECT_EQ(expired, (std::vector<bool>{true, true, false}));
  EXPECT_TRUE(Simulator::IsExpired(later));
}

TEST_P(SimulatorImplTest, GetDelayLeft__of_an_event_to_come_and_of_one_gone) {
  const EventId id = schedule(10, 1);
  schedule(4, 2);
  EXPECT_EQ(Simulator::GetDelayLeft(id), NanoSeconds(10));
  Simulator::Stop(NanoSeconds(4));
  Simulator::Run();
  EXPECT_EQ(Simulator::GetDelayLeft(id), NanoSeconds(6));
  Simulator::Run();
  EXPECT_EQ(Simulator::GetDelayLeft(id), NanoSeconds(0));
}

INSTANTIATE_TEST_SUITE_P(Kinds, SimulatorImplTest, testing::Values(EngineKind::fast, EngineKind::stock),
                         [](const auto& kind) { return kind.param == EngineKind::fast ? "fast" : "stock"; });

class FastSimulatorTest : public testing::Test {
 protected:
  FastSimulatorTest() : engine_(EngineKind::fast) {
    impl_ = ns3::DynamicCast<FastSimulatorImpl>(Simulator::GetImplementation());
  }
  Engine engine_;
  ns3::Ptr<FastSimulatorImpl> impl_;
};

TEST_F(FastSimulatorTest, GetTypeId__is_known_to_ns3_by_name) {
  ns3::ObjectFactory factory;
  factory.SetTypeId("bx::sim::FastSimulatorImpl");
  EXPECT_NE(factory.Create<ns3::SimulatorImpl>(), nullptr);
}

TEST_F(FastSimulatorTest, SetScheduler__is_ignored) {
  int runs = 0;
  Simulator::Schedule(NanoSeconds(1), [&] { ++runs; });
  ns3::ObjectFactory factory;
  factory.SetTypeId(ns3::MapScheduler::GetTypeId());
  Simulator::SetScheduler(factory);
  Simulator::Run();
  EXPECT_EQ(runs, 1);
}

TEST_F(FastSimulatorTest, GetMaximumSimulationTime__is_the_largest_time_step) {
  EXPECT_EQ(Simulator::GetMaximumSimulationTime().GetTimeStep(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(Simulator::GetSystemId(), 0U);
}

// An EventId has 32 bits of the event's number; a long run passes them.
TEST_F(FastSimulatorTest, IsExpired__is_right_when_event_numbers_pass_32_bits) {
  const EventId first = Simulator::Schedule(NanoSeconds(10), [] {});
  std::vector<bool> expired;
  EventId old_one;
  EventId young;
  EventId second;
  Simulator::Schedule(NanoSeconds(10), [&] {
    for (const EventId& id : {first, old_one, young, second}) expired.push_back(Simulator::IsExpired(id));
    Simulator::Cancel(young);
    Simulator::Remove(second);
  });
  int ran = 0;
  old_one = Simulator::Schedule(NanoSeconds(10), [&] { ++ran; });
  impl_->loop().skip_to_sequence((1ULL << 32U) - 1);
  Simulator::Schedule(NanoSeconds(10), [&] { ++ran; });  // number 2^32 - 1
  // The next four numbers' low halves are the reserved ones: 0 is "invalid", 2 is "at destroy".
  young = Simulator::Schedule(NanoSeconds(10), [&] { ran += 100; });
  EXPECT_GE(young.GetUid(), static_cast<std::uint32_t>(EventId::UID::VALID));
  second = Simulator::Schedule(NanoSeconds(10), [&] { ran += 100; });
  EXPECT_EQ(young.GetUid(), first.GetUid());  // a whole turn of the numbers apart
  Simulator::Run();
  EXPECT_EQ(expired, (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(ran, 2);
  for (const EventId& id : {first, old_one, young, second}) EXPECT_TRUE(Simulator::IsExpired(id));
}

TEST_F(FastSimulatorTest, Run__keeps_the_order_when_event_numbers_pass_32_bits) {
  std::vector<int> order;
  impl_->loop().skip_to_sequence((1ULL << 32U) - 3);
  for (int i = 0; i < 10; ++i) Simulator::Schedule(NanoSeconds(10), [&order, i] { order.push_back(i); });
  Simulator::Run();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace bx::sim
