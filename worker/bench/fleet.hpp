// The rank processes of a benchmark: started, asked, and reaped.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/bench/line_pipe.hpp"

namespace chorus::bench {

class Fleet {
 public:
  // Starts this program again, once per rank, with `arguments` and `--rank-process R`; pipes are its descriptors 3
  // (orders) and 4 (answers), and 5 is the ranks' start line. Errors: what the system said.
  [[nodiscard]] static Result<Fleet> start(std::vector<std::string> const& arguments, std::uint32_t ranks);
  ~Fleet();  // kills the processes that have not ended
  Fleet(Fleet&&) noexcept = default;
  Fleet& operator=(Fleet&&) = delete;

  // Tells every rank to end, and waits until they have.
  void finish();

  // Sends one line to every rank.
  void tell(std::string const& line);
  // One line from every rank, all beginning with `word`, which is removed. Errors: what the first rank says that says
  // something else, or that one is gone, while others may still be waiting for it.
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
