// SPDX-License-Identifier: BSD-3-Clause
// rapidcheck under GoogleTest with a fixed seed, so that a run repeats. BX_PROPERTY_RUNS sets how many cases
// are tried, for long runs; then the seed moves with it.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <sstream>
#include <utility>

namespace bx::test {

template <class Property>
void expect_property(Property&& property) {
  constexpr int kRuns = 300;
  const char* runs = std::getenv("BX_PROPERTY_RUNS");
  rc::detail::TestParams params;
  params.maxSuccess = runs == nullptr ? kRuns : std::atoi(runs);
  params.seed = static_cast<std::uint64_t>(params.maxSuccess);
  const auto result =
      rc::detail::checkTestable(std::forward<Property>(property), rc::detail::TestMetadata{}, params);
  if (!result.template is<rc::detail::SuccessResult>()) {
    std::ostringstream out;
    rc::detail::printResultMessage(result, out);
    ADD_FAILURE() << out.str();
  }
}

}  // namespace bx::test
