# chorus_embed(OUT file.cpp BASE directory FILES a.css b.js): files as bytes in the binary.
#
# Generates the definition of `chorus::ui::embedded_files()` at build time, again when a file changes. The
# header server/ui/embedded.hpp declares the struct: name, bytes, and the SHA-256 of the bytes in hexadecimal digits.
set(_chorus_embed_script ${CMAKE_CURRENT_LIST_DIR}/embed_files.cmake)

function(chorus_embed)
  cmake_parse_arguments(E "" "OUT;BASE" "FILES" ${ARGN})
  set(paths)
  foreach(file IN LISTS E_FILES)
    list(APPEND paths ${E_BASE}/${file})
  endforeach()
  add_custom_command(
    OUTPUT ${E_OUT}
    COMMAND ${CMAKE_COMMAND} -DOUT=${E_OUT} -DBASE=${E_BASE} "-DFILES=${E_FILES}" -P ${_chorus_embed_script}
    DEPENDS ${paths} ${_chorus_embed_script}
    COMMENT "Embedding ${E_BASE}"
    VERBATIM)
endfunction()
