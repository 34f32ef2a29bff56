# SPDX-License-Identifier: GPL-2.0-only
# Writes OUTPUT, a header that says which commit SOURCE is at; leaves it alone if that has not changed, so that
# nothing is rebuilt. Run at build time, because a commit needs no new configuration.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=40 --exclude=*
                OUTPUT_VARIABLE _commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _failed)
if(_failed OR _commit STREQUAL "")
  set(_commit "unknown")
endif()
set(_text "#pragma once\n#define BX_BUILD_COMMIT \"${_commit}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} _old)
endif()
if(NOT _old STREQUAL _text)
  file(WRITE ${OUTPUT} "${_text}")
endif()
