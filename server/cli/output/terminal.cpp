#include "server/cli/output/terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace chorus::cli {

bool LiveScreen::is_possible() { return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0; }

ScreenSize LiveScreen::size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

LiveScreen::LiveScreen() {
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGHUP);
  sigprocmask(SIG_BLOCK, &ending, &mask_before_);
  signals_ = signalfd(-1, &ending, SFD_CLOEXEC);
  tcgetattr(STDIN_FILENO, &before_);
  auto raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  std::fputs("\x1b[?1049h\x1b[?25l", stdout);
  std::fflush(stdout);
}

LiveScreen::~LiveScreen() {
  std::fputs("\x1b[?25h\x1b[?1049l", stdout);
  std::fflush(stdout);
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  // A signal that arrived and was not read is still pending: it ends the program now.
  close(signals_);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<char> LiveScreen::key_within(std::chrono::milliseconds time) {
  std::array<pollfd, 2> inputs{{{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}}};
  if (poll(inputs.data(), inputs.size(), static_cast<int>(time.count())) <= 0) return std::nullopt;
  if (signalfd_siginfo came{}; inputs[1].revents != 0 && read(signals_, &came, sizeof came) == sizeof came) return 'q';
  char key = 0;
  return read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
}

}  // namespace chorus::cli
