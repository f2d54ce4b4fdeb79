#include "tests/monitoring/several_coordinators.hpp"

#include <algorithm>

#include "tests/monitoring/expect.hpp"

namespace chorus::testing {

SeveralCoordinators::SeveralCoordinators() {
  for (auto const* const name : {"a", "b"})
    coordinators_.push_back(std::make_unique<Service>(
        name, std::vector<std::string>{binary("chorus-coordinator"), "--port", "0", "--etcd", etcd_.urls(),
                                       "--etcd-lease-s", "60", "--log-level", "error"}));
  expect(
      eventually([this] { return std::ranges::any_of(coordinators_, &Service::is_ready); }, std::chrono::seconds(30)),
      "none of two coordinators leads");
  worker_ =
      std::make_unique<Service>("w", std::vector<std::string>{binary("chorus-worker"), "--port", "0", "--coordinator",
                                                              coordinators_[0]->url + "," + coordinators_[1]->url,
                                                              "--id", "w", "--log-level", "error"});
  expect(eventually([this] { return worker_->is_ready(); }, std::chrono::seconds(30)), "the worker does not join");
}

std::vector<std::string> SeveralCoordinators::urls() const { return {coordinators_[0]->url, coordinators_[1]->url}; }

Service& SeveralCoordinators::leader() {
  auto const found = std::ranges::find_if(coordinators_, &Service::is_ready);
  expect(found != coordinators_.end(), "no coordinator leads any more");
  return **found;
}

void SeveralCoordinators::round() {
  for (auto const& one : coordinators_) static_cast<void>(one->is_ready());
  auto const made = leader().put("/v1/groups/g" + std::to_string(groups_++), R"({"size":1})");
  expect(made.status == 201, "PUT group: " + made.body);
}

}  // namespace chorus::testing
