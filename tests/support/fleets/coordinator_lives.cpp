#include "tests/support/fleets/coordinator_lives.hpp"

#include <signal.h>

#include <filesystem>

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

void CoordinatorLives::copy_journal() const {
  for (auto const* part : {"", "-wal"}) std::filesystem::copy_file(journal() + part, journal() + ".copy" + part);
}

void CoordinatorLives::restore_copy() const {
  for (auto const* part : {"", "-wal"}) std::filesystem::rename(journal() + ".copy" + part, journal() + part);
}

bool CoordinatorLives::coordinator_has_died() const { return coordinator_->process.has_ended(); }

void CoordinatorLives::run(std::vector<std::string> arguments) {
  coordinator_.reset();
  coordinator_ = std::make_unique<Service>("coordinator", std::move(arguments));
}

}  // namespace chorus::testing
