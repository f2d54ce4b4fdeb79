#include "tests/support/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace chorus::testing {
namespace {

winsize size_of(std::size_t columns, std::size_t rows) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = static_cast<unsigned short>(rows);
  return size;
}

}  // namespace

Screen::Screen(std::size_t columns, std::size_t rows) : columns_(columns), rows_(rows), lines_(rows) {}

void Screen::clear() { lines_.assign(rows_, {}); }

void Screen::resize(std::size_t columns, std::size_t rows) {
  columns_ = columns;
  rows_ = rows;
  row_ = column_ = 0;
  clear();
}

// A new line at the bottom removes the top line.
void Screen::feed_line() {
  if (++row_ < rows_) return;
  row_ = rows_ - 1;
  lines_.erase(lines_.begin());
  lines_.emplace_back();
}

void Screen::put(char c) {
  if (column_ == columns_) {
    column_ = 0;
    feed_line();
  }
  auto& line = lines_[row_];
  line.resize(std::max(line.size(), column_ + 1), ' ');
  line[column_++] = c;
}

bool Screen::obey_escape() {
  if (escape_.size() < 3) return false;
  auto const last = escape_.back();
  if (last == '?' || (last >= '0' && last <= '9')) return false;
  if (escape_ == "\x1b[H")
    row_ = column_ = 0;
  else if (escape_ == "\x1b[2J")
    clear();
  else if (escape_ == "\x1b[K")
    lines_[row_].resize(std::min(lines_[row_].size(), column_));
  else if (escape_ == "\x1b[?1049h" || escape_ == "\x1b[?1049l")
    is_second_ = last == 'h';
  else if (escape_ == "\x1b[?25l" || escape_ == "\x1b[?25h")
    hides_cursor_ = last == 'l';
  else
    throw std::runtime_error("an escape that this terminal does not know: " + escape_.substr(1));
  escape_.clear();
  return true;
}

void Screen::write(std::string const& bytes) {
  for (char const c : bytes) {
    if (c == '\x1b' || !escape_.empty()) {
      escape_ += c;
      static_cast<void>(obey_escape());
    } else if (c == '\r') {
      column_ = 0;
    } else if (c == '\n') {
      feed_line();
    } else {
      put(c);
    }
  }
}

std::string Screen::text() const {
  std::string all;
  for (auto const& line : lines_) (all += line) += '\n';
  return all;
}

Terminal::Terminal(std::vector<std::string> arguments, std::size_t columns, std::size_t rows) : screen_(columns, rows) {
  auto const size = size_of(columns, rows);
  if (::openpty(&ours_, &theirs_, nullptr, nullptr, &size) != 0) throw std::runtime_error("no terminal can be had");
  ::fcntl(ours_, F_SETFD, FD_CLOEXEC);
  ::fcntl(theirs_, F_SETFD, FD_CLOEXEC);
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("no process can be had");
  if (child_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setsid();
    ::ioctl(theirs_, TIOCSCTTY, 0);
    for (int const standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(theirs_, standard);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
}

Terminal::~Terminal() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ::close(theirs_);
  ::close(ours_);
}

void Terminal::read() {
  for (pollfd readable{ours_, POLLIN, 0}; ::poll(&readable, 1, 0) > 0;) {
    char bytes[4096];
    auto const got = ::read(ours_, bytes, sizeof bytes);
    if (got <= 0) return;
    screen_.write(std::string(bytes, static_cast<std::size_t>(got)));
  }
}

Screen const& Terminal::screen() {
  read();
  return screen_;
}

bool Terminal::shows(std::string const& text) {
  return eventually([&] { return screen().text().find(text) != std::string::npos; }, std::chrono::seconds(20));
}

void Terminal::press(std::string const& keys) const {
  if (::write(ours_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
    throw std::runtime_error("the terminal takes no keys");
}

void Terminal::resize(std::size_t columns, std::size_t rows) {
  read();
  screen_.resize(columns, rows);
  auto const size = size_of(columns, rows);
  ::ioctl(ours_, TIOCSWINSZ, &size);
}

bool Terminal::is_raw() const {
  termios state{};
  ::tcgetattr(theirs_, &state);
  return (state.c_lflag & (ICANON | ECHO)) == 0;
}

void Terminal::signal(int number) const { ::kill(child_, number); }

int Terminal::wait() {
  int status = 0;
  bool const ended = eventually([&] {
    read();  // a process that writes to a terminal blocks until its output is read
    return ::waitpid(child_, &status, WNOHANG) == child_;
  });
  if (!ended) throw std::runtime_error("the program did not end in time");
  child_ = -1;
  read();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace chorus::testing
