#include "worker/bench/fleet.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace chorus::bench {
namespace {

Error system_error(char const* what) {
  auto const code = std::error_code(errno, std::generic_category());
  return {code, std::string(what) + ": " + code.message()};
}

// In the child, after fork: only what is safe there.
[[noreturn]] void become_rank(std::vector<char*> const& arguments, pid_t parent, int orders, int answers) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before that
  // First out of the way of 3 and 4, then into place without the close-on-exec flag.
  int const high_orders = fcntl(orders, F_DUPFD_CLOEXEC, 10);
  int const high_answers = fcntl(answers, F_DUPFD_CLOEXEC, 10);
  dup2(high_orders, 3);
  dup2(high_answers, 4);
  execv("/proc/self/exe", arguments.data());
  _exit(127);
}

}  // namespace

Result<Fleet> Fleet::start(std::vector<std::string> const& arguments, std::uint32_t ranks) {
  Fleet fleet;
  auto const parent = getpid();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    auto words = arguments;
    words.insert(words.end(), {"--rank-process", std::to_string(rank)});
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    std::array<int, 2> orders{}, answers{};
    if (pipe2(orders.data(), O_CLOEXEC) != 0) return system_error("pipe");
    if (pipe2(answers.data(), O_CLOEXEC) != 0) return system_error("pipe");
    auto const pid = fork();
    if (pid < 0) return system_error("fork");
    if (pid == 0) become_rank(pointers, parent, orders[0], answers[1]);
    close(orders[0]);
    close(answers[1]);
    fleet.processes_.push_back({pid, LineWriter(orders[1]), LineReader(answers[0])});
  }
  return fleet;
}

Fleet::~Fleet() {
  for (auto const& process : processes_) kill(process.pid, SIGKILL);
  reap();
}

void Fleet::finish() {
  tell("end");
  reap();
}

void Fleet::reap() {
  for (auto const& process : processes_)
    while (waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) {}
  processes_.clear();
}

void Fleet::tell(std::string const& line) {
  for (auto& process : processes_) process.orders.put(line);
}

Result<std::vector<std::string>> Fleet::hear(std::string const& word) {
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    auto line = processes_[rank].answers.next();
    auto const who = "rank " + std::to_string(rank);
    if (!line) return Error(std::make_error_code(std::errc::broken_pipe), who + " ended unexpectedly");
    if (line->substr(0, word.size() + 1) != word + " ")
      return Error(std::make_error_code(std::errc::protocol_error), who + ": " + *line);
    lines.push_back(line->substr(word.size() + 1));
  }
  return lines;
}

}  // namespace chorus::bench
