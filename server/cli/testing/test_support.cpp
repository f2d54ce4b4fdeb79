#include "server/cli/testing/test_support.hpp"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <stdexcept>

namespace chorus::cli {
namespace {

// A file that takes any amount of output without a reader, unlike a pipe.
class Capture {
 public:
  Capture() : file_(memfd_create("output", MFD_CLOEXEC)) {
    if (file_ < 0) throw std::runtime_error("memfd_create failed");
  }
  ~Capture() { close(file_); }
  Capture(Capture const&) = delete;
  Capture& operator=(Capture const&) = delete;

  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] std::string text() const {
    std::string text;
    std::array<char, 65536> part;
    for (ssize_t got; (got = pread(file_, part.data(), part.size(), static_cast<off_t>(text.size()))) > 0;)
      text.append(part.data(), static_cast<std::size_t>(got));
    return text;
  }

 private:
  int file_;
};

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (auto& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Run run_program(std::string const& program, std::vector<std::string> const& arguments,
                std::vector<std::string> environment) {
  Capture out, err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out.file(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.file(), STDERR_FILENO);
  auto words = arguments;
  words.insert(words.begin(), program);
  pid_t child = -1;
  auto const failed = posix_spawn(&child, program.c_str(), &actions, nullptr, pointers_to(words).data(),
                                  pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot start " + program);
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out.text(), err.text()};
}

Run chorus(std::vector<std::string> const& arguments, std::vector<std::string> environment) {
  return run_program(CHORUS_BINARY, arguments, std::move(environment));
}

FakeCoordinator::FakeCoordinator() {
  auto const handler = [this](httplib::Request const& request, httplib::Response& response) {
    reply(request, response);
  };
  server_.Get(".*", handler);
  server_.Put(".*", handler);
  server_.Post(".*", handler);
  server_.Delete(".*", handler);
  auto const port = server_.bind_to_any_port("127.0.0.1");
  url = "http://127.0.0.1:" + std::to_string(port);
  thread_ = std::thread([this] { server_.listen_after_bind(); });
  while (!server_.is_running()) std::this_thread::yield();  // a stop() before that would be ignored
}

FakeCoordinator::~FakeCoordinator() {
  server_.stop();
  thread_.join();
}

void FakeCoordinator::answer(std::string const& question, int status, std::string body) {
  std::lock_guard const lock(mutex_);
  answers_[question] = {status, std::move(body)};
}

std::vector<std::string> FakeCoordinator::questions() {
  std::lock_guard const lock(mutex_);
  return questions_;
}

std::string FakeCoordinator::body_of(std::string const& question) {
  std::lock_guard const lock(mutex_);
  return bodies_[question];
}

void FakeCoordinator::reply(httplib::Request const& request, httplib::Response& response) {
  std::lock_guard const lock(mutex_);
  auto question = request.method + " " + request.target;
  if (request.has_header("Last-Event-ID")) question += " after " + request.get_header_value("Last-Event-ID");
  questions_.push_back(question);
  bodies_[question] = request.body;
  auto const found = answers_.find(question);
  response.status = found == answers_.end() ? 404 : found->second.first;
  if (found != answers_.end()) response.set_content(found->second.second, "application/json");
  if (auto const at = locations_.find(question); at != locations_.end()) response.set_header("Location", at->second);
}

void FakeCoordinator::redirect(std::string const& question, std::string const& location) {
  answer(question, 307, R"({"code":"not_leader","status":307,"detail":"this is a standby"})");
  std::lock_guard const lock(mutex_);
  locations_[question] = location;
}

Run at(FakeCoordinator& coordinator, std::vector<std::string> const& arguments) {
  return chorus::cli::chorus(arguments, {"CHORUS_COORDINATOR=" + coordinator.url});
}

std::vector<std::string> lines_of(std::string const& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace chorus::cli
