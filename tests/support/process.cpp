#include "tests/support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace chorus::testing {

void pause_briefly() { ::poll(nullptr, 0, 5); }

std::uint64_t number_from_environment(char const* variable, std::uint64_t otherwise) {
  auto const* const set = std::getenv(variable);
  std::string_view const text(set == nullptr ? "" : set);
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}

bool under_sanitizer() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
  if (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)) return true;
#endif
  return std::getenv("CHORUS_BINARIES") != nullptr;
}

// Programs in the directory CHORUS_BINARIES are preferred, such as those of a build with a sanitizer.
std::string binary(std::string const& name) {
  if (auto const* const others = std::getenv("CHORUS_BINARIES")) {
    auto path = std::string(others) + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return std::string(CHORUS_BINARY_DIR) + "/" + name;
}

Process::Process(std::vector<std::string> arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves no process behind
    ::dup2(ends[1], STDOUT_FILENO);
    if (std::getenv("CHORUS_TEST_QUIET") != nullptr) ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  output_ = ends[0];
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      buffered_(std::move(other.buffered_)) {}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (output_ >= 0) ::close(output_);
}

bool Process::fill(std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    auto const left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd readable{output_, POLLIN, 0};
    if (left <= 0 || ::poll(&readable, 1, static_cast<int>(left)) == 0) throw std::runtime_error("no output in time");
    char chunk[4096];
    auto const got = ::read(output_, chunk, sizeof chunk);
    if (got > 0) {
      buffered_.append(chunk, static_cast<std::size_t>(got));
      return true;
    }
    if (got == 0) return false;
  }
}

std::string Process::read_line(std::chrono::milliseconds limit) {
  auto const deadline = std::chrono::steady_clock::now() + limit;
  while (buffered_.find('\n') == std::string::npos)
    if (!fill(deadline)) throw std::runtime_error("the process ended its output: " + buffered_);
  auto const end = buffered_.find('\n');
  auto line = buffered_.substr(0, end);
  buffered_.erase(0, end + 1);
  return line;
}

std::string Process::read_all(std::chrono::milliseconds limit) {
  auto const deadline = std::chrono::steady_clock::now() + limit;
  while (fill(deadline)) continue;
  return std::exchange(buffered_, {});
}

bool Process::has_ended() const {
  if (pid_ <= 0) return true;  // wait() has reaped it
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid != 0;
}

void Process::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);  // -1 would be every process
}

int Process::wait(std::chrono::milliseconds limit) {
  int status = 0;
  bool const ended = eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, limit);
  if (!ended) throw std::runtime_error("the process did not end in time");
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace chorus::testing
