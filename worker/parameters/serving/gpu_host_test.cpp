// Hosts of shards on a GPU: readers get one copy of each version, an image makes a backup, and a failing device loses
// its shard and nothing else.
#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "http/client/client.hpp"
#include "worker/devices/cuda/testing/gpu_double.hpp"
#include "worker/parameters/serving/shard_host.hpp"
#include "worker/parameters/serving/testing/run_story.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using devices::GpuErrc;
using devices::testing::GpuDouble;
using std::chrono::steady_clock;

constexpr std::size_t elements = 300'000;  // more than a slot holds

steady_clock::time_point soon() { return steady_clock::now() + std::chrono::seconds(20); }

devices::FoundGpus one_gpu() {
  devices::FoundGpus found;
  found.gpus.push_back(std::make_unique<GpuDouble>(0, 64 << 20));
  return found;
}

// A worker with one GPU and one shard.
class Worker {
 public:
  Worker(asio::io_context& io, std::string const& role)
      : client_(io.get_executor()),
        tools_{io.get_executor(),
               threads_.get_executor(),
               {client_, http::MessageChecksums::off},
               pool_,
               events(),
               1 << 30,
               {},
               &gpus_} {
    auto begun = assignment(1, role);
    begun.fresh = role == "owner";
    auto spec = ShardSpec::from(begun);
    REQUIRE(spec.has_value());
    auto shard = Shard::make(std::move(*spec), tools_.memory());
    REQUIRE(shard.has_value());
    host = std::make_shared<ShardHost>(tools_, std::move(*shard), begun);
  }
  // The shard's memory belongs to the GPU, so the host is destroyed first.
  ~Worker() {
    host = nullptr;
    threads_.join();
  }
  Worker(Worker const&) = delete;
  Worker& operator=(Worker const&) = delete;

  [[nodiscard]] static api::ShardAssignment assignment(std::uint32_t epoch, std::string const& role) {
    auto assignment = testing::plain({elements});
    assignment.parameter.device = "cuda";
    assignment.parameter.optimizer = api::parse_optimizer(R"({"name":"momentum"})").value();
    assignment.epoch = epoch;
    assignment.role = role;
    return assignment;
  }
  [[nodiscard]] Push gradient(std::uint64_t sequence) {
    Push push;
    push.client = {"c", 0};
    push.sequence = sequence;
    auto const block = pool_.acquire(elements * sizeof(float)).value();
    for (std::size_t i = 0; i < elements; ++i) {
      auto const value = static_cast<float>(i % 13);
      std::memcpy(block->data() + i * sizeof value, &value, sizeof value);
    }
    push.data = block;
    return push;
  }
  [[nodiscard]] std::shared_ptr<tensors::Block const> copied(std::span<std::byte const> bytes) {
    auto const block = pool_.acquire(bytes.size()).value();
    std::ranges::copy(bytes, block->data());
    return block;
  }
  [[nodiscard]] GpuDouble& gpu() const { return dynamic_cast<GpuDouble&>(gpus_[0].gpu()); }
  [[nodiscard]] devices::PinnedPool& pinned() const { return gpus_[0].pinned(); }
  [[nodiscard]] std::uint64_t downloaded() const { return gpus_[0].totals().use.out_bytes; }
  asio::awaitable<void> stop() {
    co_await host->stop();
    client_.close();
  }

  std::vector<std::string> losses;
  std::shared_ptr<ShardHost> host;

 private:
  ShardEvents events() {
    ShardEvents events;
    events.lost = [this](std::string const& parameter, std::uint32_t shard, std::string const& why) {
      losses.push_back(parameter + "/" + std::to_string(shard) + ": " + why);
    };
    return events;
  }

  asio::thread_pool threads_{2};
  tensors::Pool pool_{16 << 20, 256 << 20};
  devices::Gpus gpus_{one_gpu(), {.arena_bytes = 24 << 20, .pinned_bytes = 16 << 20}};
  http::Client client_;
  ShardTools tools_;
};

void tell(asio::awaitable<void> (*story)(Worker*, Worker*)) {
  asio::io_context io;
  Worker owner(io, "owner"), backup(io, "backup");
  testing::run_story(io, story(&owner, &backup));
  testing::run_story(io, owner.stop());
  testing::run_story(io, backup.stop());
}

asio::awaitable<void> pulls(Worker* owner, Worker*) {
  auto first = owner->gradient(0);
  auto const pushed = co_await owner->host->push(std::move(first), soon());
  CHECK(pushed.has_value());
  CHECK_FALSE(owner->host->view_now().has_value());
  ShardHost::ReadConstraints const constraints;
  auto const one = co_await owner->host->view(constraints, soon());
  auto const two = co_await owner->host->view(constraints, soon());
  CHECK(one.has_value());
  CHECK(two.has_value());
  if (!one || !two) co_return;
  CHECK(one->values == two->values);
  CHECK(one->version == 1);
  CHECK(owner->downloaded() == elements * sizeof(float));
  CHECK(owner->host->view_now()->values == one->values);
  float thirteenth = 0;
  std::memcpy(&thirteenth, one->values->data() + 12 * sizeof thirteenth, sizeof thirteenth);
  CHECK(thirteenth == -0.12F);
}

// Sends an owner's image like a Follower.
asio::awaitable<void> copy_to(Worker* owner, Worker* backup) {
  auto const image = co_await owner->host->image_for("c/1", soon());
  CHECK(image.has_value());
  if (!image) co_return;
  for (auto const& array : image->arrays) {
    ImagePiece piece{array.name, 7, 0, array.content.bytes.size()};
    auto const content = backup->copied(array.content.bytes);
    auto const problem = co_await backup->host->put_piece(std::move(piece), content, 1);
    CHECK_FALSE(problem.has_value());
  }
  auto state = image->state;
  auto const ended = co_await backup->host->end_image(7, std::move(state), image->history, 1);
  CHECK_FALSE(ended.has_value());
  CHECK_FALSE(backup->host->complete(image->state.position, image->history, 1).has_value());
}

asio::awaitable<void> takes_over(Worker* owner, Worker* backup) {
  for (std::uint64_t sequence = 0; sequence < 2; ++sequence) {
    auto push = owner->gradient(sequence);
    auto const pushed = co_await owner->host->push(std::move(push), soon());
    CHECK(pushed.has_value());
  }
  co_await copy_to(owner, backup);
  auto third = backup->gradient(2);
  LogEntry entry_of_third{2, std::move(third)};
  auto const followed = co_await backup->host->follow(std::move(entry_of_third), 1, soon());
  CHECK_FALSE(followed.has_value());

  owner->gpu().fail_after(3, GpuErrc::lost);
  auto same = owner->gradient(2);
  auto const refused = co_await owner->host->push(std::move(same), soon());
  CHECK(refused.has_error());
  CHECK(refused.error().code == http::ProblemCode::unavailable);
  CHECK(owner->losses == std::vector<std::string>{"w/0: cuda:0: the double was told to fail"});
  CHECK(owner->host->role() == ShardHost::Role::backup);
  CHECK_FALSE(owner->host->is_complete());
  auto const told = owner->host->assign(Worker::assignment(2, "owner"));
  CHECK(told.has_value());
  CHECK(told->code == http::ProblemCode::parameter_lost);
  auto again = owner->gradient(2);
  auto const elsewhere = co_await owner->host->push(std::move(again), soon());
  CHECK(elsewhere.error().code == http::ProblemCode::misdirected);
  // The worker has no other device for an image.
  auto const as_backup = owner->host->assign(Worker::assignment(3, "backup"));
  CHECK(as_backup.has_value());
  CHECK(as_backup->code == http::ProblemCode::unsupported);

  CHECK_FALSE(backup->host->assign(Worker::assignment(3, "owner")).has_value());
  auto repeated = backup->gradient(2);
  auto const duplicate = co_await backup->host->push(std::move(repeated), soon());
  CHECK(duplicate.has_value());
  CHECK(duplicate->duplicate);
  ShardHost::ReadConstraints const constraints{3, std::nullopt};
  auto const view = co_await backup->host->view(constraints, soon());
  CHECK(view.has_value());
  CHECK(view->version == 3);
}

asio::awaitable<void> backup_fails(Worker*, Worker* backup) {
  backup->gpu().fail_after(3, GpuErrc::lost);
  auto push = backup->gradient(0);
  LogEntry entry_of_push{0, std::move(push)};
  auto const first = co_await backup->host->follow(std::move(entry_of_push), 1, soon());
  CHECK(first.has_value());
  auto same = backup->gradient(0);
  LogEntry entry_of_same{0, std::move(same)};
  auto const second = co_await backup->host->follow(std::move(entry_of_same), 1, soon());
  CHECK(second.has_value());
  CHECK(second->code == http::ProblemCode::unavailable);
  CHECK(backup->losses.size() == 1);
  CHECK(backup->host->complete(0, std::nullopt, 1).has_value());
}

// Other work uses all pinned memory for a while.
asio::awaitable<void> waits_for_pinned_memory(Worker* owner, Worker*) {
  std::vector<devices::PinnedSlot> taken;
  for (;;) {
    auto slot = owner->pinned().take();
    if (!slot) break;
    taken.push_back(std::move(*slot));
  }
  auto gradient = owner->gradient(0);
  auto const refused = co_await owner->host->push(std::move(gradient), soon());
  CHECK(refused.error().code == http::ProblemCode::unavailable);
  auto value = owner->gradient(0);
  value.kind = PushKind::value;
  auto const waits = co_await owner->host->push(value, steady_clock::now() + std::chrono::milliseconds(50));
  CHECK(waits.error().code == http::ProblemCode::deadline_exceeded);
  CHECK(owner->losses == std::vector<std::string>{});
  taken.clear();
  auto const pushed = co_await owner->host->push(value, soon());
  CHECK(pushed.has_value());
  CHECK(pushed->version == 1);
}

asio::awaitable<void> pull_fails(Worker* owner, Worker*) {
  auto push = owner->gradient(0);
  auto const pushed = co_await owner->host->push(std::move(push), soon());
  CHECK(pushed.has_value());
  owner->gpu().fail_after(1, GpuErrc::failed);
  ShardHost::ReadConstraints const constraints;
  auto const refused = co_await owner->host->view(constraints, soon());
  CHECK(refused.error().code == http::ProblemCode::unavailable);
  // The device goes on working, and the shard is unchanged.
  auto const view = co_await owner->host->view(constraints, soon());
  CHECK(view.has_value());
  owner->gpu().fail_after(1, GpuErrc::lost);
  auto const image = co_await owner->host->image_for("c/1", soon());
  CHECK(image.has_error());
  CHECK(owner->losses.size() == 1);
}

}  // namespace

TEST_CASE("a version is copied from its GPU once, for the first pull") { tell(pulls); }
TEST_CASE("a device that fails loses its shard: the owner reports it, and a backup on another GPU takes over") {
  tell(takes_over);
}
TEST_CASE("a backup whose device fails accepts nothing more, and reports it once") { tell(backup_fails); }
TEST_CASE("a push waits for pinned memory, or is refused, and the shard stays") { tell(waits_for_pinned_memory); }
TEST_CASE("a copy that fails is a problem of the request; a device that is lost with it is one of the shard") {
  tell(pull_fails);
}

}  // namespace chorus::parameters
