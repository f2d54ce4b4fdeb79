// A backup applies the pushes of its owner in order, and refuses late ones of another owner, of an image that was given
// up, or of another history.
#include <doctest/doctest.h>

#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "worker/parameters/serving/testing/run_story.hpp"
#include "worker/parameters/serving/testing/workplace.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::ProblemCode;
using std::chrono::steady_clock;

using Said = std::optional<http::Problem>;

steady_clock::time_point soon() { return steady_clock::now() + std::chrono::seconds(20); }

api::ShardAssignment assignment(std::uint32_t epoch, std::string role, bool continues = true) {
  auto assignment = testing::plain({1});
  assignment.epoch = epoch;
  assignment.role = std::move(role);
  assignment.fresh = epoch == 1;
  assignment.continues = continues;
  return assignment;
}

// A backup of one element, which counts the pushes. Fresh in epoch 1, like its owner.
class Backup {
 public:
  Backup() {
    work_.tools.events.lost = [this](std::string const&, std::uint32_t, std::string const& why) {
      losses.push_back(why);
    };
    host = work_.serve(assignment(1, "backup"));
  }
  ~Backup() {
    testing::run_story(work_.io, host->stop());
    host.reset();
    work_.join();
    work_.client.close();
  }
  Backup(Backup const&) = delete;
  Backup& operator=(Backup const&) = delete;

  [[nodiscard]] Push push(std::string client, std::uint64_t sequence) {
    Push push;
    push.client = {std::move(client), 0};
    push.sequence = sequence;
    push.data = block(1);
    return push;
  }
  // Returns the backup's answer to a push of this epoch.
  Said take(LogEntry entry, std::uint32_t epoch) { return answer(host->follow(std::move(entry), epoch, soon())); }
  // Returns the backup's answer to a piece of an image.
  Said take_piece(std::uint64_t image, float value, std::uint32_t epoch) {
    return answer(host->put_piece({"values", image, 0, sizeof value}, block(value), epoch));
  }
  Said end_image(std::uint64_t image, std::uint64_t position, History const& history, std::uint32_t epoch) {
    api::ShardState state;
    state.version = state.position = position;
    return answer(host->end_image(image, std::move(state), history.now(), epoch));
  }
  // Makes the backup the owner and returns its value.
  float value_as_owner(std::uint32_t epoch) {
    REQUIRE_FALSE(host->assign(assignment(epoch, "owner")).has_value());
    auto const view = host->view_now();
    REQUIRE(view.has_value());
    float value = 0;
    std::memcpy(&value, view->values->data(), sizeof value);
    return value;
  }

  std::shared_ptr<ShardHost> host;
  std::vector<std::string> losses;  // reported to the coordinator

 private:
  static asio::awaitable<void> keep(asio::awaitable<Said> asked, Said* said) { *said = co_await std::move(asked); }
  Said answer(asio::awaitable<Said> asked) {
    Said said;
    testing::run_story(work_.io, keep(std::move(asked), &said));
    return said;
  }
  std::shared_ptr<tensors::Block const> block(float value) {
    auto block = work_.pool.acquire(sizeof value).value();
    std::memcpy(block->data(), &value, sizeof value);
    return block;
  }

  testing::Workplace work_;
};

ProblemCode code(Said const& said) {
  REQUIRE(said.has_value());
  return said->code;
}

}  // namespace

TEST_CASE("a push that a backup took from a former owner, and its present owner never had, is detected at once") {
  Backup backup;
  History others;  // of the next owner, which has taken the push of a, but not that of b
  CHECK_FALSE(backup.take({0, backup.push("b", 0), others.now()}, 1).has_value());
  CHECK_FALSE(backup.host->assign(assignment(2, "backup")).has_value());
  SUBCASE("when it is asked whether it is in step") {
    others.take(backup.push("a", 0));
    CHECK(code(backup.host->complete(1, others.now(), 2)) == ProblemCode::out_of_order);
    CHECK(backup.losses.empty());
  }
  SUBCASE("when it is sent the push that took that place") {
    CHECK(code(backup.take({0, backup.push("a", 0), others.now()}, 2)) == ProblemCode::out_of_order);
    CHECK(backup.losses.size() == 1);
  }
  SUBCASE("when it is sent what comes after that") {
    others.take(backup.push("a", 0));
    CHECK(code(backup.take({1, backup.push("b", 0), others.now()}, 2)) == ProblemCode::out_of_order);
    CHECK(backup.losses.size() == 1);
    CHECK_FALSE(backup.host->is_complete());
    CHECK(code(backup.host->assign(assignment(3, "owner"))) == ProblemCode::parameter_lost);
  }
}

TEST_CASE("a push that is sent twice, also under the next epoch of its owner, counts once") {
  Backup backup;
  History const owner;
  CHECK_FALSE(backup.take({0, backup.push("a", 0), owner.now()}, 1).has_value());
  CHECK_FALSE(backup.take({0, backup.push("a", 0), owner.now()}, 1).has_value());
  CHECK_FALSE(backup.host->assign(assignment(2, "backup")).has_value());
  CHECK_FALSE(backup.take({0, backup.push("a", 0), owner.now()}, 2).has_value());
  CHECK(backup.value_as_owner(3) == 1);
  CHECK(backup.losses.empty());
}

TEST_CASE("a backup in step that has missed a push tells the coordinator") {
  Backup backup;
  CHECK(code(backup.take({1, backup.push("a", 1), std::nullopt}, 1)) == ProblemCode::out_of_order);
  CHECK(backup.losses == std::vector<std::string>{"it has missed a push"});
  CHECK(code(backup.take({1, backup.push("a", 1), std::nullopt}, 1)) == ProblemCode::out_of_order);
  CHECK(backup.losses.size() == 1);
}

TEST_CASE("an owner of an earlier release sends no history, and is followed") {
  Backup backup;
  CHECK_FALSE(backup.take({0, backup.push("a", 0), std::nullopt}, 1).has_value());
  CHECK_FALSE(backup.host->complete(1, std::nullopt, 1).has_value());
  CHECK(backup.value_as_owner(2) == 1);
}

TEST_CASE("a piece of an image that was given up changes nothing if it arrives after a later image") {
  Backup backup;
  CHECK_FALSE(backup.host->assign(assignment(2, "backup", false)).has_value());
  History owner;
  owner.take(backup.push("a", 0));
  CHECK_FALSE(backup.take_piece(7, 1, 2).has_value());
  owner.take(backup.push("a", 1));
  CHECK_FALSE(backup.take_piece(9, 2, 2).has_value());
  CHECK(code(backup.take_piece(7, 1, 2)) == ProblemCode::out_of_order);
  CHECK_FALSE(backup.end_image(9, 2, owner, 2).has_value());
  CHECK_FALSE(backup.host->complete(2, owner.now(), 2).has_value());
  // The same piece arrives again.
  CHECK(code(backup.take_piece(9, 2, 2)) == ProblemCode::out_of_order);
  CHECK(backup.host->is_complete());
  // The next owner numbers images by another clock.
  CHECK_FALSE(backup.host->assign(assignment(3, "backup")).has_value());
  CHECK_FALSE(backup.take_piece(5, 4, 3).has_value());
  CHECK_FALSE(backup.end_image(5, 2, owner, 3).has_value());
  CHECK_FALSE(backup.host->complete(2, owner.now(), 3).has_value());
  CHECK(backup.value_as_owner(4) == 4);
}

}  // namespace chorus::parameters
