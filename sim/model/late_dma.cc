// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/late_dma.h"

#include <cstring>

#include "libbx/base/check.h"

namespace bx::sim {

LateDma::~LateDma() {
  for (Write* write = first_; write != nullptr; write = write->next) frames_.free_payload(write->payload);
}

void LateDma::write(Picoseconds at, std::uint32_t key, std::uint64_t addr, std::span<const std::byte> bytes,
                    MemoryAccess access) {
  BX_CHECK(bytes.size() <= kPayloadMax && (last_ == nullptr || last_->at <= at), "late writes are in order");
  if (free_ == nullptr) free_ = &writes_.emplace_back();
  Write* write = free_;
  free_ = write->next;
  *write = {.payload = frames_.make_payload(),
            .at = at,
            .addr = addr,
            .bytes = static_cast<std::uint32_t>(bytes.size()),
            .key = key,
            .access = access};
  std::memcpy(write->payload->bytes.data(), bytes.data(), bytes.size());
  (first_ == nullptr ? first_ : last_->next) = write;
  last_ = write;
  schedule();
}

void LateDma::land_first() {
  Write* write = first_;
  first_ = write->next;
  if (first_ == nullptr) last_ = nullptr;
  if (memory_.covers(write->key, write->addr, write->bytes, write->access)) {
    std::memcpy(memory_at(write->addr), write->payload->bytes.data(), write->bytes);
  }
  frames_.free_payload(write->payload);
  write->next = free_;
  free_ = write;
}

void LateDma::land_due() {
  while (first_ != nullptr && first_->at <= engine_.now()) land_first();
}

void LateDma::land_all() {
  while (first_ != nullptr) land_first();
}

void LateDma::schedule() {
  if (scheduled_ || first_ == nullptr) return;
  scheduled_ = true;
  engine_.post(first_->at - engine_.now(), &on_due, this);
}

void LateDma::on_due(void* dma, void* /*unused*/) {
  auto& self = *static_cast<LateDma*>(dma);
  self.scheduled_ = false;
  self.land_due();
  self.schedule();
}

}  // namespace bx::sim
