// SPDX-License-Identifier: BSD-3-Clause
// A target needs a source; the precompiled header is what this one is for (tests/CMakeLists.txt).
