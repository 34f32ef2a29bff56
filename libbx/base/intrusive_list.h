// SPDX-License-Identifier: BSD-3-Clause
// A doubly linked list whose links live in the elements: no allocation, O(1) insertion and removal anywhere.
// An element derives from ListHook<Tag> and may be on one list per tag; it must not be destroyed while
// linked.
#pragma once

#include "libbx/base/check.h"

namespace bx {

template <class Tag = void>
class ListHook {
 public:
  ListHook() = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { BX_CHECK(next_ == nullptr, "an element was destroyed while still on a list"); }
  [[nodiscard]] bool linked() const noexcept { return next_ != nullptr; }
  // Takes the element off whatever list it is on; nothing happens if it is on none.
  void unlink() noexcept {
    if (next_ == nullptr) return;
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = nullptr;
  }

 private:
  template <class T, class U>
  friend class IntrusiveList;
  ListHook* next_ = nullptr;
  ListHook* prev_ = nullptr;
};

template <class T, class Tag = void>
class IntrusiveList {
 public:
  IntrusiveList() noexcept { root_.next_ = root_.prev_ = &root_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  ~IntrusiveList() {
    BX_CHECK(empty(), "a list was destroyed with elements on it");
    root_.next_ = root_.prev_ = nullptr;
  }

  [[nodiscard]] bool empty() const noexcept { return root_.next_ == &root_; }
  [[nodiscard]] T* front() noexcept { return empty() ? nullptr : owner(root_.next_); }
  void push_back(T& element) noexcept { insert_before(root_, element); }
  void push_front(T& element) noexcept { insert_before(*root_.next_, element); }
  T* pop_front() noexcept {
    T* element = front();
    if (element != nullptr) static_cast<ListHook<Tag>*>(element)->unlink();
    return element;
  }
  // Moves all elements of `other` to the end of this list.
  void splice_back(IntrusiveList& other) noexcept {
    if (other.empty()) return;
    Hook* const first = other.root_.next_;
    Hook* const last = other.root_.prev_;
    other.root_.next_ = other.root_.prev_ = &other.root_;
    first->prev_ = root_.prev_;
    root_.prev_->next_ = first;
    last->next_ = &root_;
    root_.prev_ = last;
  }
  void clear() noexcept {
    while (pop_front() != nullptr) {
    }
  }
  // The element after `element`, or null at the end.
  [[nodiscard]] T* next(T& element) noexcept {
    Hook* hook = static_cast<Hook&>(element).next_;
    return hook == &root_ ? nullptr : owner(hook);
  }

 private:
  using Hook = ListHook<Tag>;
  static T* owner(Hook* hook) noexcept { return static_cast<T*>(hook); }
  void insert_before(Hook& position, T& element) noexcept {
    Hook& hook = element;
    BX_CHECK(!hook.linked(), "an element may be on one list at a time");
    hook.prev_ = position.prev_;
    hook.next_ = &position;
    position.prev_->next_ = &hook;
    position.prev_ = &hook;
  }
  Hook root_;
};

}  // namespace bx
