# cmake -DOUT=.. -DBASE=.. -DFILES="a;b" -P embed_files.cmake: writes the source file that chorus_embed() promises.
set(arrays "")
set(entries "")
set(index 0)
foreach(file IN LISTS FILES)
  file(READ ${BASE}/${file} hex HEX)
  file(SHA256 ${BASE}/${file} digest)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char file_${index}[] = {\n${bytes}};\n")
  string(APPEND entries "    {\"${file}\", file_${index}, \"${digest}\"},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT} "#include \"server/ui/embedded.hpp\"

namespace chorus::ui {
namespace {

${arrays}
constexpr EmbeddedFile files[] = {
${entries}};

}  // namespace

std::span<EmbeddedFile const> embedded_files() { return files; }

}  // namespace chorus::ui
")
