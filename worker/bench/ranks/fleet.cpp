#include "worker/bench/ranks/fleet.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "worker/bench/ranks/start_line.hpp"

namespace chorus::bench {
namespace {

Error system_error(char const* what) {
  auto const code = std::error_code(errno, std::generic_category());
  return {code, std::string(what) + ": " + code.message()};
}

// Runs in the child after fork: only async-signal-safe calls.
[[noreturn]] void become_rank(std::vector<char*> const& arguments, pid_t parent, std::array<int, 3> descriptors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died first
  // First moves the descriptors away from 3, 4 and 5, then into place without the close-on-exec flag.
  for (auto& descriptor : descriptors) descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 10);
  for (std::size_t i = 0; i < descriptors.size(); ++i) dup2(descriptors[i], static_cast<int>(3 + i));
  execv("/proc/self/exe", arguments.data());
  _exit(127);
}

}  // namespace

Result<Fleet> Fleet::start(std::vector<std::string> const& arguments, std::uint32_t ranks) {
  Fleet fleet;
  auto const start_line = StartLine::make(ranks);
  if (start_line.has_error()) return start_line.error();
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
    if (pid == 0) become_rank(pointers, parent, {orders[0], answers[1], start_line->descriptor()});
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

Result<std::string> Fleet::hear_from(std::size_t rank, std::string const& word) {
  auto const line = processes_[rank].answers.next();
  auto const who = "rank " + std::to_string(rank);
  if (!line) return Error(std::make_error_code(std::errc::broken_pipe), who + " ended unexpectedly");
  if (line->substr(0, word.size() + 1) != word + " ")
    return Error(std::make_error_code(std::errc::protocol_error), who + ": " + *line);
  return line->substr(word.size() + 1);
}

Result<std::vector<std::string>> Fleet::hear(std::string const& word) {
  std::vector<std::string> lines(processes_.size());
  std::vector<pollfd> silent;
  for (auto const& process : processes_) silent.push_back({process.answers.descriptor(), POLLIN, 0});
  for (auto left = silent.size(); left > 0;) {
    if (poll(silent.data(), silent.size(), -1) < 0 && errno != EINTR) return system_error("poll");
    for (std::size_t rank = 0; rank < silent.size(); ++rank) {
      if (silent[rank].fd < 0 || silent[rank].revents == 0) continue;
      auto line = hear_from(rank, word);
      if (line.has_error()) return line.error();
      lines[rank] = std::move(*line);
      silent[rank] = {-1, 0, 0};  // ignored by poll
      --left;
    }
  }
  return lines;
}

}  // namespace chorus::bench
