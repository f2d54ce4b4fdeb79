#include "tests/support/coordinator_lives.hpp"

#include <signal.h>
#include <sys/wait.h>

namespace chorus::testing {

CoordinatorLives::CoordinatorLives() { start(); }

void CoordinatorLives::start() {
  run({binary("chorus-coordinator"), "--port", port_.text(), "--journal", journal(), "--log-level", "error"});
}

void CoordinatorLives::start_one_that_dies_at(int point) {
  run({binary("crashing_coordinator"), journal(), port_.text(), std::to_string(point)});
}

void CoordinatorLives::kill() {
  coordinator().process.signal(SIGKILL);
  coordinator().process.wait();
}

bool CoordinatorLives::coordinator_has_died() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(coordinator_->process.pid()), &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
         info.si_pid != 0;
}

void CoordinatorLives::run(std::vector<std::string> arguments) {
  coordinator_.reset();
  coordinator_ = std::make_unique<Service>("coordinator", std::move(arguments));
}

}  // namespace chorus::testing
