// SPDX-License-Identifier: GPL-2.0-only
// Runs with a process for each host, without devices: one process that plays all hosts on loopback is the
// real agent, and scripted ones die, hang and lie. Every process is a child of the test.
#include "harness/cluster/cluster_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "harness/cluster/agent.h"
#include "harness/workload/plan.h"

namespace bx::harness {
namespace {

constexpr std::uint64_t kCalls = 12;
constexpr std::int64_t kSlowNs = 300'000'000;

Scenario scenario(const std::string& more = "") {
  Diagnostics diagnostics;
  auto parsed = parse_scenario(
      "name = 'x'\n[fabric]\nhosts = 5\n[[workload]]\nkind = 'incast'\nclients = 0\nservers = '1..4'\n"
      "answer = ['64B', '256KiB']\nwarm_up = 1\ncalls = 3\n" +
          more,
      "s.toml", {}, diagnostics);
  EXPECT_TRUE(parsed) << diagnostics.text();
  return std::move(*parsed);
}

class Observer final : public RunObserver {
 public:
  explicit Observer(std::string interrupt_in = {}) : interrupt_in_(std::move(interrupt_in)) {}
  void on_progress(const Progress& progress) override { phase_ = progress.phase; }
  bool interrupted() override { return !interrupt_in_.empty() && phase_ == interrupt_in_; }

 private:
  std::string interrupt_in_;
  std::string phase_;
};

// Has done every phase at once, with a call that it answered, and misbehaves where it is told to.
class ScriptedPlayer final : public Player {
 public:
  enum class Script : std::uint8_t { good, no_device, dies, hangs, never_done, slow };
  ScriptedPlayer(Script script, std::uint32_t host) : script_(script), host_(host) {}

  Parsed<void> open(const AgentSetup& setup) override {
    plan_ = make_plan(setup.settings);
    if (script_ == Script::no_device)
      return tl::unexpected(std::string("no RDMA device has the address 10.0.0.9"));
    return {};
  }
  ReadyReport ready() override { return {counters(), {}}; }
  [[nodiscard]] std::int64_t now_ns() const override {
    return static_cast<std::int64_t>(clock_.seconds() * 1e9);
  }
  void begin(Phase phase) override {
    phase_ = phase;
    began_ns_ = now_ns();
    if (phase != Phase::measure) return;
    if (script_ == Script::dies) ::raise(SIGKILL);
    while (script_ == Script::hangs) ::pause();
  }
  bool done() override {
    if (phase_ != Phase::measure) return true;
    return script_ != Script::never_done && (script_ != Script::slow || now_ns() - began_ns_ > kSlowNs);
  }
  void run(std::int64_t) override { ::usleep(1000); }
  Beat beat() override { return {.now_ns = now_ns(), .started = host_ == 0 ? 1U : 0U}; }
  HostReport report() override {
    HostReport report{.metrics = counters()};
    for (const ClientPlan& client : plan_.clients) {
      for (std::uint64_t i = 0; i < client.calls.size(); ++i) {
        const std::uint32_t server = client.calls[i].server;
        if (client.host == host_) {
          CallRecord record{.start = Instant{} + Duration(1000), .end = Instant{} + Duration(5000)};
          record.client = host_;
          record.server = server;
          record.state = CallState::answered;
          report.calls.push_back({client.first_call + i, record, {}});
        }
        if (server == host_) report.requests.push_back({client.first_call + i, host_, 2000});
      }
    }
    return report;
  }

 private:
  static MetricSet counters() {
    MetricSet set;
    set.set("calls.completed", 1, "count");
    return set;
  }
  Script script_;
  std::uint32_t host_;
  Plan plan_;
  Phase phase_ = Phase::connect;
  std::int64_t began_ns_ = 0;
  Stopwatch clock_;
};
using Script = ScriptedPlayer::Script;

// A child that does `body` and then ends without a word.
Parsed<std::unique_ptr<Process>> child(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    body();
    ::_exit(0);
  }
  return std::make_unique<Process>(pid);
}

// A process for each host; `odd` is that of host 3.
ClusterHosts scripted(Script odd, std::function<void(AgentOptions&)> change = {}) {
  ClusterHosts hosts;
  hosts.coordinator = {.start_seconds = 20, .silence_seconds = 1.5};
  hosts.launch = [odd, change](std::uint32_t host, std::uint16_t port, const std::string& token) {
    return child([&] {
      AgentOptions options{.address = "127.0.0.1", .port = port, .host = host, .token = token};
      if (host == 3 && change) change(options);
      ScriptedPlayer player(host == 3 ? odd : Script::good, host);
      (void)run_agent(options, player);
    });
  };
  return hosts;
}

VariantResult run(const Scenario& what, ClusterHosts hosts, const std::string& interrupt_in = {}) {
  Observer observer(interrupt_in);
  return run_on_hosts(what, what.variants.front(), BackendKind::verbs, std::move(hosts), observer);
}

std::string breaches(const VariantResult& result) {
  std::string text;
  for (const Breach& breach : result.breaches) text += breach.promise + ": " + breach.detail + "\n";
  return text;
}

TEST(cluster_run, run_on_hosts__the_real_agent_plays_a_scenario) {
  ClusterHosts hosts;
  hosts.agent_backend = "loopback";
  hosts.processes = {0};
  hosts.plays = [](std::uint32_t) { return HostList{0, 1, 2, 3, 4}; };
  hosts.launch = [](std::uint32_t host, std::uint16_t port, const std::string& token) {
    return child([&] {
      const std::unique_ptr<Player> player = make_host_player();
      (void)run_agent({.address = "127.0.0.1", .port = port, .host = host, .token = token}, *player);
    });
  };
  const Scenario what = scenario("[[expect]]\nmetric = 'workload.calls'\nequals = 12\n");
  const VariantResult result = run(what, std::move(hosts));
  EXPECT_EQ(result.status, RunStatus::completed) << result.message;
  EXPECT_EQ(breaches(result), "");
  EXPECT_TRUE(result.good());
  EXPECT_EQ(result.metrics.value_or("workload.calls", 0), kCalls);
  EXPECT_EQ(result.metrics.value_or("calls.completed", 0),
            kCalls);  // the library's own count, without the warm-up's
  EXPECT_GT(result.metrics.value_or("call.latency.p50", 0), 0);
  EXPECT_GT(result.metrics.value_or("call.request.p50", 0), 0);
  EXPECT_LT(result.metrics.value_or("call.request.p50", 0), result.metrics.value_or("call.latency.p50", 0));
  EXPECT_GT(result.metrics.value_or("cpu.clients.time", 0), 0);
  EXPECT_FALSE(result.knobs.empty());
  EXPECT_FALSE(result.settings.empty());
}

TEST(cluster_run, run_on_hosts__a_process_for_each_host_and_one_result) {
  const VariantResult result = run(scenario(), scripted(Script::good));
  EXPECT_EQ(result.status, RunStatus::completed) << result.message;
  EXPECT_EQ(breaches(result), "");
  EXPECT_EQ(result.metrics.value_or("workload.calls", 0), kCalls);
  EXPECT_EQ(result.metrics.value_or("calls.completed", 0), 5);  // summed over the hosts
  EXPECT_EQ(result.metrics.value_or("call.latency.p99", 0), 4000);
  EXPECT_NE(result.metrics.find("clock.error_max"), nullptr);
}

TEST(cluster_run, run_on_hosts__a_host_that_dies_is_named_and_what_is_known_is_kept) {
  const VariantResult result = run(scenario(), scripted(Script::dies));
  EXPECT_EQ(result.status, RunStatus::crashed);
  EXPECT_EQ(result.message, "host3: its process was ended by signal 9 (Killed)");
  EXPECT_NE(breaches(result).find("alive: host3"), std::string::npos) << breaches(result);
  EXPECT_EQ(result.metrics.value_or("workload.calls", 0), kCalls);  // the client's own report
  EXPECT_EQ(breaches(result).find("exactly-once"), std::string::npos)
      << "what a dead server saw is not known";
  EXPECT_FALSE(result.good());
}

TEST(cluster_run, run_on_hosts__a_host_that_hangs_is_given_up_by_its_silence) {
  const VariantResult result = run(scenario(), scripted(Script::hangs));
  EXPECT_EQ(result.status, RunStatus::crashed);
  EXPECT_TRUE(result.message.starts_with("host3: it hangs: no sign of life for ")) << result.message;
}

TEST(cluster_run, run_on_hosts__a_host_without_its_device_says_why) {
  const VariantResult result = run(scenario(), scripted(Script::no_device));
  EXPECT_EQ(result.status, RunStatus::crashed);
  EXPECT_EQ(result.message, "host3: no RDMA device has the address 10.0.0.9");
}

TEST(cluster_run, run_on_hosts__a_wrong_token_is_not_let_in) {
  const VariantResult result =
      run(scenario(), scripted(Script::good, [](AgentOptions& options) { options.token[5] ^= 1; }));
  EXPECT_EQ(result.status, RunStatus::crashed);
  EXPECT_TRUE(result.message.starts_with("host3: its process ended")) << result.message;
}

TEST(cluster_run, run_on_hosts__another_version_is_refused_by_name) {
  const VariantResult result =
      run(scenario(), scripted(Script::good, [](AgentOptions& options) { options.protocol = 99; }));
  EXPECT_EQ(result.status, RunStatus::crashed);
  EXPECT_TRUE(result.message.starts_with("host3: its bx speaks another version")) << result.message;
}

TEST(cluster_run, run_on_hosts__another_build_is_refused_by_name) {
  ClusterHosts hosts = scripted(Script::good, [](AgentOptions& options) { options.commit = "other"; });
  hosts.coordinator.commit = "";  // of any
  EXPECT_EQ(run(scenario(), hosts).status, RunStatus::completed);
  hosts.coordinator.commit = "this";
  const VariantResult result = run(scenario(), hosts);
  EXPECT_EQ(result.status, RunStatus::crashed);
  EXPECT_NE(result.message.find("is of commit"), std::string::npos) << result.message;
}

TEST(cluster_run, run_on_hosts__a_killed_server_is_a_fault_and_no_loss) {
  const VariantResult result =
      run(scenario("[[fault]]\nkind = 'process-kill'\ntarget = 'host3'\nat = '10ms'\n"),
          scripted(Script::never_done));
  EXPECT_EQ(result.status, RunStatus::completed) << result.message;
  EXPECT_EQ(breaches(result), "");
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_TRUE(result.faults[0].began);
  EXPECT_EQ(result.faults[0].hits, 1U);
}

TEST(cluster_run, run_on_hosts__a_killed_server_is_started_again_and_joins_in) {
  ClusterHosts hosts;
  std::uint32_t launches = 0;
  hosts.launch = [&](std::uint32_t host, std::uint16_t port, const std::string& token) {
    const bool again = host == 3 && launches++ > 0;
    return child([&] {
      ScriptedPlayer player(host == 3 && !again ? Script::never_done : Script::slow, host);
      (void)run_agent({.address = "127.0.0.1", .port = port, .host = host, .token = token}, player);
    });
  };
  const VariantResult result =
      run(scenario("[[fault]]\nkind = 'process-kill'\ntarget = 'host3'\nat = '10ms'\nduration = '20ms'\n"),
          hosts);
  EXPECT_EQ(result.status, RunStatus::completed) << result.message;
  EXPECT_EQ(result.hang.reason, "");
  EXPECT_EQ(launches, 2U);
  EXPECT_TRUE(result.faults.at(0).ended);
  EXPECT_EQ(result.metrics.value_or("calls.completed", 0), 5);  // the new process reports as well
}

TEST(cluster_run, run_on_hosts__a_run_in_which_nothing_gets_done_is_given_up) {
  const VariantResult result = run(scenario("[measure]\nhang = '300ms'\n"), scripted(Script::never_done));
  EXPECT_EQ(result.status, RunStatus::completed) << result.message;
  EXPECT_NE(result.hang.reason.find("nothing has got done"), std::string::npos) << result.hang.reason;
  EXPECT_EQ(result.metrics.value_or("run.hung", 0), 1);
  EXPECT_NE(breaches(result).find("finished"), std::string::npos);
}

TEST(cluster_run, run_on_hosts__ctrl_c_keeps_what_was_measured) {
  const VariantResult result = run(scenario(), scripted(Script::never_done), "measure");
  EXPECT_EQ(result.status, RunStatus::interrupted);
  EXPECT_EQ(result.metrics.value_or("workload.calls", 0), kCalls);
  EXPECT_TRUE(result.verdicts.empty());
}

TEST(cluster_run, run_on_hosts__strangers_are_refused_and_disturb_nobody) {
  ClusterHosts hosts = scripted(Script::good);
  hosts.launch = [launch = hosts.launch](std::uint32_t host, std::uint16_t port, const std::string& token) {
    const Parsed<int> fd = Channel::dial("127.0.0.1", port, 5);
    if (fd) {
      const std::string rubbish =
          host == 1 ? std::string("\xff\xff\xff\xff") : frame_of({{"kind", "report"}});
      EXPECT_EQ(::write(*fd, rubbish.data(), rubbish.size()), static_cast<ssize_t>(rubbish.size()));
      ::close(*fd);
    }
    return launch(host, port, token);
  };
  const VariantResult result = run(scenario(), std::move(hosts));
  EXPECT_EQ(result.status, RunStatus::completed) << result.message;
  EXPECT_EQ(breaches(result), "");
}

}  // namespace
}  // namespace bx::harness
