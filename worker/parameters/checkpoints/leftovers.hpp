// Removes what was written of checkpoints and never committed.
#pragma once

#include <cstdint>
#include <string>

#include "collectives/core/result.hpp"
#include "worker/parameters/checkpoints/files.hpp"

namespace chorus::checkpoints {

// Removes the files of write_file with these arguments, and the directories if they are empty then, unless the
// checkpoint has been committed. Errors: the operating system's.
[[nodiscard]] Status discard_file(Files& files, std::string const& directory, std::uint64_t number,
                                  std::string const& name);

// Removes checkpoints that were begun in this directory and never committed, except those with a file that is being
// written. No other process may begin or commit a checkpoint in the directory meanwhile. Errors: the operating
// system's.
[[nodiscard]] Status remove_leftovers(Files& files, std::string const& directory);

// Removes incomplete files that no process is writing, and empty directories, from all checkpoint directories below
// `root`. May be called at any time: complete files stay. Ignores errors of removal.
void sweep(Files& files, std::string const& root);

}  // namespace chorus::checkpoints
