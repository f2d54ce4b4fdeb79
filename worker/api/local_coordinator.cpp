#include "worker/api/local_coordinator.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

#include "worker/api/errc.hpp"

namespace chorus {
namespace {

constexpr std::chrono::seconds patience{10};  // between SIGTERM and SIGKILL
constexpr std::chrono::milliseconds look{20};
constexpr std::string_view program_name = "chorus-coordinator", announcement = "listening on ";
constexpr std::size_t longest_line = 4096;

Error failed(std::string text) { return {WorkerErrc::no_coordinator, std::move(text)}; }
std::string reason(int code) { return std::generic_category().message(code); }

bool may_run(std::filesystem::path const& path) {
  std::error_code unknown;
  return std::filesystem::is_regular_file(path, unknown) && access(path.c_str(), X_OK) == 0;
}

std::string find_program(std::string const& given) {
  if (!given.empty()) return given;
  std::vector<std::filesystem::path> folders;
  if (char const* const named = std::getenv("CHORUS_BIN")) folders.emplace_back(named);
  Dl_info here{};
  if (dladdr(reinterpret_cast<void const*>(&find_program), &here) != 0 && here.dli_fname != nullptr) {
    auto const beside = std::filesystem::path(here.dli_fname).parent_path();
    folders.push_back(beside);
    folders.push_back(beside.parent_path() / "bin");
  }
  char const* const listed = std::getenv("PATH");
  std::string_view rest = listed != nullptr ? listed : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    auto const colon = rest.find(':');
    folders.emplace_back(rest.substr(0, colon));
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  for (auto const& folder : folders)
    if (!folder.empty() && may_run(folder / program_name)) return (folder / program_name).string();
  return "";
}

// A descriptor that is closed.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor const&) = delete;
  Descriptor& operator=(Descriptor const&) = delete;
  void take(int number) {
    close();
    number_ = number;
  }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_;
};

}  // namespace

// The process is a child of a thread that lives as long as this object: the kernel ends a child with the thread that
// has started it.
class LocalCoordinator::Process {
 public:
  Process() = default;
  ~Process() {
    {
      std::lock_guard const lock(mutex_);
      ends_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }
  Process(Process const&) = delete;
  Process& operator=(Process const&) = delete;

  [[nodiscard]] Status start(CoordinatorOptions const& options, TimePoint deadline) {
    auto const program = find_program(options.program);
    if (program.empty())
      return failed(std::string(program_name) +
                    " was not found in CHORUS_BIN, beside this library or program, or on PATH");
    std::vector<std::string> words{program, "--host", options.host, "--port", std::to_string(options.port)};
    auto const is_loud = [](std::string const& word) { return word.starts_with("--log-level"); };
    if (std::none_of(options.arguments.begin(), options.arguments.end(), is_loud))
      words.insert(words.end(), {"--log-level", "error"});
    words.insert(words.end(), options.arguments.begin(), options.arguments.end());
    std::promise<Status> started;
    auto outcome = started.get_future();
    thread_ = std::thread([this, &started, words = std::move(words), deadline] { live(started, words, deadline); });
    return outcome.get();
  }

  [[nodiscard]] std::string const& url() const { return url_; }

 private:
  void live(std::promise<Status>& started, std::vector<std::string> words, TimePoint deadline) {
    Descriptor output;
    auto const child = spawn(words, output);
    if (child.has_error()) return started.set_value(child.error());
    auto heard = hear(output.get(), deadline);
    if (heard.has_error()) {
      end(*child);
      return started.set_value(failed(words.front() + " " + heard.error().detail));
    }
    url_ = std::move(*heard);
    started.set_value(ok());
    // What it says later is not read: it says no more.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ends_; });
    lock.unlock();
    end(*child);
  }

  [[nodiscard]] static Result<pid_t> spawn(std::vector<std::string>& words, Descriptor& output) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return failed("no pipe for " + words.front() + ": " + reason(errno));
    output.take(ends[0]);
    Descriptor const input(ends[1]);
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    auto const parent = getpid();
    int volatile why_not = 0;  // errno of execve
    sigset_t none;
    sigemptyset(&none);
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    // The child has this process's memory until it becomes the program, and so calls nothing but the system.
    auto const child = vfork();
    if (child == 0) {
      bool const is_ready = prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent &&
                            dup2(input.get(), STDOUT_FILENO) == STDOUT_FILENO;
      if (is_ready) {
        // A program inherits the mask of the thread and what is ignored: the coordinator is to hear SIGTERM anyway.
        sigaction(SIGTERM, &usual, nullptr);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        execve(arguments[0], arguments.data(), environ);
        why_not = errno;
      }
      _exit(127);
    }
    if (child > 0 && why_not != 0) {
      end(child);
      return failed(words.front() + " cannot be started: " + reason(why_not));
    }
    if (child < 0) return failed(words.front() + " cannot be started: " + reason(errno));
    return child;
  }

  // The URL that it announces.
  [[nodiscard]] static Result<std::string> hear(int output, TimePoint deadline) {
    std::string text;
    for (;;) {
      auto const left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return failed("did not listen until the deadline");
      pollfd waiting{output, POLLIN, 0};
      auto const most = std::chrono::milliseconds(60'000);
      auto const ready = poll(&waiting, 1, static_cast<int>(std::min(left, most).count()));
      if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
      char part[256];
      auto const count = read(output, part, sizeof part);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0 || text.size() > longest_line)
        return failed("has ended before it listened: standard error has its last words");
      text.append(part, static_cast<std::size_t>(count));
      auto const at = text.find(announcement);
      auto const line_end = at == std::string::npos ? at : text.find('\n', at);
      if (line_end == std::string::npos) continue;
      auto const begin = at + announcement.size();
      return text.substr(begin, line_end - begin);
    }
  }

  // Reaps it, whether it has ended by itself or not.
  static void end(pid_t child) {
    kill(child, SIGTERM);
    auto const give_up = std::chrono::steady_clock::now() + patience;
    while (waitpid(child, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() >= give_up) kill(child, SIGKILL);
      std::this_thread::sleep_for(look);
    }
  }

  std::string url_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

Result<LocalCoordinator> LocalCoordinator::start(CoordinatorOptions const& options, TimePoint deadline) {
  auto process = std::make_unique<Process>();
  if (auto const started = process->start(options, deadline); started.has_error()) return started.error();
  return LocalCoordinator(std::move(process));
}

LocalCoordinator::LocalCoordinator(std::unique_ptr<Process> process) : process_(std::move(process)) {}
LocalCoordinator::~LocalCoordinator() = default;
LocalCoordinator::LocalCoordinator(LocalCoordinator&&) noexcept = default;
LocalCoordinator& LocalCoordinator::operator=(LocalCoordinator&&) noexcept = default;

std::string const& LocalCoordinator::url() const { return process_->url(); }

}  // namespace chorus
