// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/run_set.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/base/child_process.h"
#include "harness/base/stopwatch.h"
#include "harness/run/interrupt.h"

namespace bx::harness {
namespace {

constexpr double kProgressInterval = 0.1;  // seconds of real time between two progress lines of a child

// In the child: tells the parent.
class PipeObserver final : public RunObserver {
 public:
  explicit PipeObserver(int fd) : fd_(fd) {}
  void on_progress(const Progress& progress) override {
    const double now = stopwatch_.seconds();
    if (now < next_) return;
    next_ = now + kProgressInterval;
    write_all(fd_, fmt::format("P {} {} {} {} {}\n", now, progress.simulated_ns, progress.events,
                               progress.fraction, progress.phase));
  }
  bool interrupted() override { return interrupted_ = interrupted_ || interrupt_.take(); }

 private:
  int fd_;
  Interrupt interrupt_;
  Stopwatch stopwatch_;
  double next_ = kProgressInterval;
  bool interrupted_ = false;
};

bool run_in_child(const RunJob& job, const BackendChoice& choice, int fd) {
  PipeObserver observer(fd);
  BackendChoice with_capture = choice;
  with_capture.capture_file = job.capture_file;
  const VariantResult result = run_variant(*job.scenario, *job.variant, with_capture, observer);
  return write_all(fd, "R " + to_wire(result) + "\n");
}

// A child as the parent sees it.
struct Child {
  const RunJob* job = nullptr;
  std::size_t index = 0;
  ChildProcess process;
  std::string pending;  // the beginning of a line
  std::optional<VariantResult> result;
};

class RunSet {
 public:
  RunSet(const std::vector<RunJob>& jobs, const BackendChoice& choice, std::size_t parallel,
         RunSetObserver& observer)
      : jobs_(jobs),
        choice_(choice),
        parallel_(std::max<std::size_t>(1, parallel)),
        observer_(observer),
        results_(jobs.size()) {}

  RunSetOutcome run() {
    while (!children_.empty() || (next_ < jobs_.size() && !interrupted_)) {
      while (children_.size() < parallel_ && next_ < jobs_.size() && !interrupted_) start();
      wait_for_news();
    }
    RunSetOutcome outcome;
    outcome.interrupted = interrupted_;
    for (auto& result : results_) {
      if (result) outcome.results.push_back(std::move(*result));
    }
    return outcome;
  }

 private:
  void start() {
    const RunJob& job = jobs_[next_];
    const std::size_t index = next_++;
    observer_.on_start(job);
    std::vector<int> not_for_child;
    for (const auto& other : children_) not_for_child.push_back(other->process.fd);
    const Result<ChildProcess> process =
        start_child([&](int fd) { return run_in_child(job, choice_, fd); }, not_for_child);
    if (!process) {
      return lost(job, index,
                  fmt::format("{}: {}", process.error().detail, std::strerror(process.error().sys)));
    }
    children_.push_back(std::make_unique<Child>(Child{&job, index, *process, {}, std::nullopt}));
  }

  void wait_for_news() {
    if (children_.empty()) return;
    std::vector<pollfd> polled{{interrupt_.fd(), POLLIN, 0}};
    for (const auto& child : children_) polled.push_back({child->process.fd, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0) return;
    while (interrupt_.take()) {
      for (const auto& child : children_) ::kill(child->process.pid, interrupted_ ? SIGKILL : SIGINT);
      interrupted_ = true;
    }
    for (std::size_t i = children_.size(); i-- > 0;) {
      if (polled[i + 1].revents != 0 && !read_from(*children_[i])) {
        finish(*children_[i]);
        children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  // False at the end of what the child has to say.
  bool read_from(Child& child) {
    char buffer[65536];
    const ssize_t length = ::read(child.process.fd, buffer, sizeof buffer);
    if (length < 0 && errno == EINTR) return true;
    if (length <= 0) return false;
    child.pending.append(buffer, static_cast<std::size_t>(length));
    std::size_t start = 0;
    for (std::size_t end; (end = child.pending.find('\n', start)) != std::string::npos; start = end + 1) {
      on_line(child, child.pending.substr(start, end - start));
    }
    child.pending.erase(0, start);
    return true;
  }

  void on_line(Child& child, const std::string& line) {
    if (line.starts_with("R ")) {
      try {
        child.result = from_wire(std::string_view(line).substr(2));
      } catch (const std::exception&) {
        child.result.reset();  // finish() reports it as lost
      }
      return;
    }
    double wall = 0;
    unsigned long long simulated_ns = 0;
    unsigned long long events = 0;
    double fraction = 0;
    char phase[32] = "";
    if (std::sscanf(line.c_str(), "P %lf %llu %llu %lf %31s", &wall, &simulated_ns, &events, &fraction,
                    phase) == 5) {
      observer_.on_progress(*child.job, {phase, simulated_ns, events, fraction}, wall);
    }
  }

  void finish(Child& child) {
    const std::string wrong = end_child(child.process);
    if (!wrong.empty() || !child.result) {
      return lost(*child.job, child.index,
                  fmt::format("the run {}{}", wrong.empty() ? "ended well" : wrong,
                              child.result ? "" : " and gave no result"));
    }
    observer_.on_end(*child.job, *child.result);
    results_[child.index] = std::move(child.result);
  }

  void lost(const RunJob& job, std::size_t index, std::string why) {
    VariantResult result;
    result.name = job.variant->name;
    result.seed = job.variant->settings.fabric.seed;
    result.status = RunStatus::crashed;
    result.message = why;
    result.breaches.push_back({std::string(promise::kAlive), std::move(why)});
    observer_.on_end(job, result);
    results_[index] = std::move(result);
  }

  const std::vector<RunJob>& jobs_;
  const BackendChoice& choice_;
  std::size_t parallel_;
  RunSetObserver& observer_;
  Interrupt interrupt_;
  std::vector<std::unique_ptr<Child>> children_;
  std::vector<std::optional<VariantResult>> results_;
  std::size_t next_ = 0;
  bool interrupted_ = false;
};

}  // namespace

RunSetOutcome run_all(const std::vector<RunJob>& jobs, const BackendChoice& choice, std::size_t parallel,
                      RunSetObserver& observer) {
  return RunSet(jobs, choice, parallel, observer).run();
}

}  // namespace bx::harness
