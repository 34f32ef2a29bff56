// SPDX-License-Identifier: GPL-2.0-only
// Every key that a scenario's settings may have, declared once: the reader, `--set`, variants, `bx show`, the
// JSON Schema and the table in docs/scenarios.md all come from here. The [library] keys are bx::knobs().
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/document.h"
#include "harness/scenario/settings.h"

namespace bx::harness {

enum class KeyKind : std::uint8_t {
  flag,          // true or false
  count,         // a whole number
  real,          // a number
  power_of_two,  // 0.125 or "1/8"; held as its binary logarithm
  duration,      // "1us", held in nanoseconds
  bytes,         // "64KiB" or a whole number of bytes
  rate,          // "100Gbps", held in bits per second
  hosts,         // 0 or "1..64"
  sizes,         // a size, a range or a list of sizes
  choice,        // one of `choices`
  numbers,       // a whole number for each index: [0, 0, 2] or { 2 = 2 }
  members,       // a set of whole numbers: [3, 4]; held as bits
  text,
};

// A value after its unit and range were checked.
struct Converted {
  std::uint64_t number = 0;  // flag, count, duration, bytes, rate; index of a choice; bits of members
  bool is_auto = false;      // "auto" was written
  std::vector<std::uint64_t> numbers;
  double real = 0;
  int exponent = 0;  // of power_of_two
  std::string text;  // of a choice or text
  HostList hosts;
  SizeMix sizes;
};

// What must be so for a key to have any effect: the value of another one. Of a key of [[workload]] or
// [[fault]] one that has the value is enough.
struct Condition {
  enum class Sense : std::uint8_t { one_of, none_of };
  std::string key;
  Sense sense = Sense::one_of;
  std::vector<std::string> values;  // as `get` writes them

  [[nodiscard]] bool holds(const Settings& settings) const;
  // "fabric.trust = dscp", "fabric.topology other than single-switch or file"
  [[nodiscard]] std::string shown() const;
};

// Which kinds of workload a key of [[workload]] is for.
enum class KeyUse : std::uint8_t { every, calls, flows };

struct KeySpec {
  std::string
      name;  // "fabric.pfc.enabled"; keys of [[workload]] begin with "workload.", of [[fault]] with "fault."
  KeyKind kind = KeyKind::count;
  std::string sentence;
  std::uint64_t minimum = 0;
  std::uint64_t maximum = std::numeric_limits<std::int64_t>::max();
  double real_maximum = 1;  // of kind real, whose minimum is 0
  std::vector<std::string> choices{};
  std::vector<std::uint64_t>
      numbers{};              // of kind numbers: as many as there are, and what they are by default
  bool zero_is_auto = false;  // "auto" may be written, and is held as 0, or as nothing by an optional
  bool required = false;      // of every [[workload]] that it is for, and of every [[fault]]
  KeyUse use = KeyUse::every;
  std::vector<Condition> needs{};  // all of them, or the key changes nothing (idle_keys.h)

  // One of the three pairs is set.
  std::function<void(Settings&, const Converted&)> set{};
  std::function<std::string(const Settings&)> get{};
  std::function<void(WorkloadSpec&, const Converted&)> set_workload{};
  std::function<std::string(const WorkloadSpec&)> get_workload{};
  std::function<void(FaultEntry&, const Converted&)> set_fault{};
  std::function<std::string(const FaultEntry&)> get_fault{};

  [[nodiscard]] bool of_workload() const { return static_cast<bool>(set_workload); }
  // Of a key of [[workload]]: whether workloads of this kind have it.
  [[nodiscard]] bool is_for(std::string_view workload_kind) const {
    return use == KeyUse::every || (use == KeyUse::flows) == (workload_kind == "flows");
  }
  [[nodiscard]] bool of_fault() const { return static_cast<bool>(set_fault); }
  [[nodiscard]] bool of_settings() const { return static_cast<bool>(set); }
  // "answer" of "workload.answer".
  [[nodiscard]] std::string last_word() const { return name.substr(name.rfind('.') + 1); }
  // As it would be written in a file; empty for a required key.
  [[nodiscard]] std::string default_text() const;
  // "duration, 1ns to 1s" or "one of: none".
  [[nodiscard]] std::string allowed() const;
};

// In the order of the documentation. Built once a process, never changed.
const std::vector<KeySpec>& scenario_keys();
const KeySpec* find_key(std::string_view name);
// All names, for "did you mean".
const std::vector<std::string>& key_names();

// Checks type, unit and range. The error is a whole message: "'fabric.rate' = 'fast' is not a quantity; ...".
Parsed<Converted> convert(const KeySpec& key, const Value& value);

}  // namespace bx::harness
