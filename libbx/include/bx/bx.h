// SPDX-License-Identifier: BSD-3-Clause
// All of the public interface.
#pragma once

#include <bx/block_on.h>
#include <bx/buffer.h>
#include <bx/config.h>
#include <bx/context.h>
#include <bx/gather.h>
#include <bx/memory.h>
#include <bx/preflight.h>
#include <bx/region.h>
#include <bx/service.h>
#include <bx/session.h>
#include <bx/stream.h>
#include <bx/task.h>
#include <bx/worker.h>
