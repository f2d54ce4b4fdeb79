// The rank processes of a benchmark: starting, talking and reaping.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/bench/ranks/line_pipe.hpp"

namespace chorus::bench {

class Fleet {
 public:
  // Starts this program again, once per rank, with `arguments` and `--rank-process R`; its descriptors 3 (orders) and 4
  // (answers) are pipes, and 5 is the ranks' start line. Errors: the system's.
  [[nodiscard]] static Result<Fleet> start(std::vector<std::string> const& arguments, std::uint32_t ranks);
  ~Fleet();  // kills processes that have not ended
  Fleet(Fleet&&) noexcept = default;
  Fleet& operator=(Fleet&&) = delete;

  // Tells every rank to end, and waits until all have.
  void finish();

  // Sends one line to every rank.
  void tell(std::string const& line);
  // Reads one line from every rank; all begin with `word`, which is removed. Errors: the line of the first rank that
  // says something else, or that a rank is gone, while others may still wait for it.
  [[nodiscard]] Result<std::vector<std::string>> hear(std::string const& word);

 private:
  struct Process {
    pid_t pid;
    LineWriter orders;
    LineReader answers;
  };
  Fleet() = default;
  [[nodiscard]] Result<std::string> hear_from(std::size_t rank, std::string const& word);
  void reap();
  std::vector<Process> processes_;
};

}  // namespace chorus::bench
