# chorus_add_commit(TARGET): adds to TARGET a source with the commit that is built, as chorus::metrics::commit_of_sources.
#
# The commit is looked up with each build, and the source written where it is another: then one file is compiled, and
# programs are linked. It comes from CHORUS_COMMIT (images, packages: what has no repository), or from git, or from
# cmake/commit, which `git archive` fills in.
set(CHORUS_COMMIT "" CACHE STRING "The commit that is built; empty: what git says, or the archive")

# Also a script: cmake -DSOURCE_DIR=... -DCOMMIT=... -DOUTPUT=... -P ChorusCommit.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_policy(VERSION 3.25)
  if(NOT COMMIT)
    find_program(git git)
    if(git)
      set(in_sources ${git} -c safe.directory=* -C ${SOURCE_DIR})
      execute_process(COMMAND ${in_sources} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      file(REAL_PATH "${SOURCE_DIR}" here)
      # Not the repository of somebody who has these sources within his own.
      if(top STREQUAL here)
        execute_process(COMMAND ${in_sources} describe --always --abbrev=12 --exclude=* --dirty=+changes
          OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      endif()
    endif()
  endif()
  if(NOT COMMIT)
    file(STRINGS ${SOURCE_DIR}/cmake/commit COMMIT LIMIT_COUNT 1)
    string(SUBSTRING "${COMMIT}" 0 12 COMMIT)
  endif()
  if(NOT COMMIT MATCHES "^[0-9A-Za-z._+-]+$")
    set(COMMIT unknown)
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
    "namespace chorus::metrics {\nextern char const* const commit_of_sources;\nchar const* const commit_of_sources = \"@COMMIT@\";\n}\n" @ONLY)
  return()
endif()

function(chorus_add_commit target)
  set(source ${chorus_BINARY_DIR}/generated/commit.cpp)
  set(look_up ${CMAKE_COMMAND} -DSOURCE_DIR=${chorus_SOURCE_DIR} -DCOMMIT=${CHORUS_COMMIT} -DOUTPUT=${source}
    -P ${chorus_SOURCE_DIR}/cmake/ChorusCommit.cmake)
  add_custom_target(chorus_commit BYPRODUCTS ${source} COMMAND ${look_up} VERBATIM COMMENT "Looking up the commit")
  target_sources(${target} PRIVATE ${source})
  add_dependencies(${target} chorus_commit)
endfunction()
