// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/fabric/decorator.h"

namespace bx::fabric {

Result<std::unique_ptr<CompletionQueue>> DeviceDecorator::create_cq(const CqConfig& config) {
  auto decorated = decorate_cq(config);
  auto made = inner_.create_cq({.depth = config.depth, .waker = decorated->inner_waker()});
  if (!made) return tl::unexpected<Error>(made.error());
  decorated->set_inner(std::move(*made));
  return decorated;
}

Result<std::unique_ptr<SharedReceiveQueue>> DeviceDecorator::create_srq(const SrqConfig& config) {
  auto made = inner_.create_srq(config);
  if (!made) return tl::unexpected<Error>(made.error());
  return decorate_srq(std::move(*made));
}

Result<std::unique_ptr<QueuePair>> DeviceDecorator::create_qp(const QpConfig& config) {
  QpConfig unwrapped = config;
  if (config.send_cq != nullptr) unwrapped.send_cq = &static_cast<CqDecorator&>(*config.send_cq).inner();
  if (config.recv_cq != nullptr) unwrapped.recv_cq = &static_cast<CqDecorator&>(*config.recv_cq).inner();
  if (config.srq != nullptr) unwrapped.srq = &static_cast<SrqDecorator&>(*config.srq).inner();
  auto made = inner_.create_qp(unwrapped);
  if (!made) return tl::unexpected<Error>(made.error());
  return decorate_qp(std::move(*made), config);
}

std::unique_ptr<CqDecorator> DeviceDecorator::decorate_cq(const CqConfig& config) {
  return std::make_unique<CqDecorator>(config.waker);
}

std::unique_ptr<SrqDecorator> DeviceDecorator::decorate_srq(std::unique_ptr<SharedReceiveQueue> inner) {
  return std::make_unique<SrqDecorator>(std::move(inner));
}

std::unique_ptr<QpDecorator> DeviceDecorator::decorate_qp(std::unique_ptr<QueuePair> inner, const QpConfig&) {
  return std::make_unique<QpDecorator>(std::move(inner));
}

Result<std::unique_ptr<Host>> FabricDecorator::open_host(std::string_view host) {
  auto opened = inner_->open_host(host);
  if (!opened) return tl::unexpected<Error>(opened.error());
  return decorate_host(std::move(*opened));
}

}  // namespace bx::fabric
