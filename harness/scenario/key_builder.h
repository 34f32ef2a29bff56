// SPDX-License-Identifier: GPL-2.0-only
// For the files that declare keys: makes the reading and writing of a key from one function that names its
// member.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/scenario/key_table.h"

namespace bx::harness {

// A number as it would be written in a file.
std::string format_number(KeyKind kind, std::uint64_t number);
// A short list whole, of a long one only what differs from `standard`.
std::string format_numbers(const std::vector<std::uint64_t>& numbers,
                           const std::vector<std::uint64_t>& standard);

// `access` takes Settings&, FaultEntry& or WorkloadSpec&, const or not, to the member that the key sets.
template <class Member>
concept Optional = requires(const Member& member) {
  member.has_value();
};
template <class Member>
concept TimeSpan = requires(const Member& member) {
  member.count();
};
template <class Member>
concept Array = requires {
  std::tuple_size<Member>::value;
};

template <class Owner, class Access>
KeySpec with_access(KeySpec key, Access access) {
  using Member = std::remove_cvref_t<decltype(access(std::declval<Owner&>()))>;
  auto set = [access](Owner& owner, const Converted& value) {
    Member& member = access(owner);
    if constexpr (std::is_same_v<Member, HostList>) {
      member = value.hosts;
    } else if constexpr (std::is_same_v<Member, SizeMix>) {
      member = value.sizes;
    } else if constexpr (std::is_same_v<Member, std::string>) {
      member = value.text;
    } else if constexpr (std::is_same_v<Member, double>) {
      member = value.real;
    } else if constexpr (std::is_same_v<Member, int>) {
      member = value.exponent;
    } else if constexpr (Optional<Member>) {
      member.reset();
      if (!value.is_auto) member = static_cast<typename Member::value_type>(value.number);
    } else if constexpr (Array<Member>) {
      for (std::size_t i = 0; i < member.size(); ++i) {
        member[i] = static_cast<typename Member::value_type>(value.numbers.at(i));
      }
    } else {
      member = static_cast<Member>(value.number);
    }
  };
  if constexpr (Array<Member>) {
    const Owner standard{};
    for (const auto number : access(standard)) key.numbers.push_back(number);
  }
  auto get = [access, kind = key.kind, is_auto = key.zero_is_auto, choices = key.choices,
              numbers = key.numbers](const Owner& owner) -> std::string {
    const Member& member = access(owner);
    if constexpr (std::is_same_v<Member, HostList>) {
      return format_hosts(member);
    } else if constexpr (std::is_same_v<Member, SizeMix>) {
      return member.shown();
    } else if constexpr (std::is_same_v<Member, std::string>) {
      return member;
    } else if constexpr (std::is_same_v<Member, double>) {
      return is_auto && member == 0 ? "auto" : fmt::format("{}", member);
    } else if constexpr (std::is_same_v<Member, int>) {
      return fmt::format("{}", std::ldexp(1.0, member));
    } else if constexpr (std::is_enum_v<Member>) {
      return choices.at(static_cast<std::size_t>(member));
    } else if constexpr (TimeSpan<Member>) {
      return format_number(kind, static_cast<std::uint64_t>(member.count()));
    } else if constexpr (Optional<Member>) {
      return member ? format_number(kind, *member) : "auto";
    } else if constexpr (Array<Member>) {
      return format_numbers({member.begin(), member.end()}, numbers);
    } else {
      return is_auto && member == 0 ? "auto" : format_number(kind, member);
    }
  };
  if constexpr (std::is_same_v<Owner, Settings>) {
    key.set = set;
    key.get = get;
  } else if constexpr (std::is_same_v<Owner, FaultEntry>) {
    key.set_fault = set;
    key.get_fault = get;
  } else {
    key.set_workload = set;
    key.get_workload = get;
  }
  return key;
}

template <class Owner, class Access>
void add(std::vector<KeySpec>& keys, KeySpec key, Access access) {
  keys.push_back(with_access<Owner>(std::move(key), access));
}

// Conditions of KeySpec::needs.
inline Condition only_with(std::string key, std::vector<std::string> values) {
  return {std::move(key), Condition::Sense::one_of, std::move(values)};
}
inline Condition not_with(std::string key, std::vector<std::string> values) {
  return {std::move(key), Condition::Sense::none_of, std::move(values)};
}
// All keys that `add_them` adds have an effect only where `condition` holds.
template <class Add>
void add_under(std::vector<KeySpec>& keys, const Condition& condition, Add add_them) {
  const std::size_t first = keys.size();
  add_them();
  for (std::size_t i = first; i < keys.size(); ++i) keys[i].needs.push_back(condition);
}

void add_fabric_keys(std::vector<KeySpec>& keys);
void add_host_keys(std::vector<KeySpec>& keys);
void add_nic_keys(std::vector<KeySpec>& keys);
void add_topology_keys(std::vector<KeySpec>& keys);
void add_switch_keys(std::vector<KeySpec>& keys);
void add_congestion_keys(std::vector<KeySpec>& keys);
void add_recovery_keys(std::vector<KeySpec>& keys);
void add_workload_keys(std::vector<KeySpec>& keys);
void add_fault_keys(std::vector<KeySpec>& keys);

}  // namespace bx::harness
