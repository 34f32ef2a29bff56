// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/function_ref.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace bx {
namespace {

int apply(FunctionRef<int(int)> f, int x) {
  return f(x);
}

int add_five(int x) {
  return x + 5;
}

TEST(FunctionRef, call__reaches_a_lambda_and_its_captures) {
  int calls = 0;
  EXPECT_EQ(apply(
                [&calls](int x) {
                  ++calls;
                  return 2 * x;
                },
                21),
            42);
  EXPECT_EQ(calls, 1);
}

TEST(FunctionRef, call__reaches_the_callable_itself_not_a_copy) {
  struct Counter {
    int count = 0;
    int operator()(int x) { return count += x; }
  } counter;
  EXPECT_EQ(apply(counter, 3), 3);
  EXPECT_EQ(apply(counter, 4), 7);
  EXPECT_EQ(counter.count, 7);
}

TEST(FunctionRef, call__reaches_a_const_callable) {
  const auto f = [](int x) { return x - 1; };
  EXPECT_EQ(apply(f, 1), 0);
}

TEST(FunctionRef, call__reaches_a_function_through_its_pointer) {
  auto* pointer = &add_five;
  EXPECT_EQ(apply(pointer, 1), 6);
}

TEST(FunctionRef, call__passes_move_only_arguments) {
  const auto f = [](std::unique_ptr<int> value) { return *value; };
  const FunctionRef<int(std::unique_ptr<int>)> ref = f;
  EXPECT_EQ(ref(std::make_unique<int>(9)), 9);
}

TEST(FunctionRef, call__passes_references_and_converts_the_result) {
  const auto f = [](std::string& text) {
    text += "!";
    return 3;
  };
  const FunctionRef<long(std::string&)> ref = f;
  std::string text = "hey";
  EXPECT_EQ(ref(text), 3L);
  EXPECT_EQ(text, "hey!");
}

TEST(FunctionRef, copy__refers_to_the_same_callable) {
  int calls = 0;
  const auto f = [&calls] { ++calls; };
  const FunctionRef<void()> first = f;
  const FunctionRef<void()> second = first;
  first();
  second();
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace bx
