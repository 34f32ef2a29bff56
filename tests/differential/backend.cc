// SPDX-License-Identifier: BSD-3-Clause
#include "tests/differential/backend.h"

namespace bx::differential {

Outcome run(const Program& program, const Backend& backend, const Outcome* expected) {
  return World(program, backend.make(), backend.hosts, backend.clock).run(expected);
}

Trial try_both(const Program& program, const Backend& ours, const Backend& theirs, Tolerance* tolerance) {
  Trial trial;
  trial.ours = run(program, ours);
  trial.theirs = run(program, theirs, &trial.ours);
  trial.difference = compare(program, trial.ours, trial.theirs, tolerance);
  return trial;
}

}  // namespace bx::differential
