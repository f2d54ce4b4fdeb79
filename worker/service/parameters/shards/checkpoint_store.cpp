#include "worker/service/parameters/shards/checkpoint_store.hpp"

#include <algorithm>
#include <array>

#include "http/json/json.hpp"
#include "worker/parameters/checkpoints/leftovers.hpp"
#include "worker/parameters/checkpoints/write.hpp"
#include "worker/service/parameters/shards/checkpoint_load.hpp"
#include "worker/service/requests/identity.hpp"

namespace chorus::service {
namespace {

namespace asio = boost::asio;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using parameters::Shard;

constexpr std::uint64_t longest_hold_ms = 10'000;
constexpr std::chrono::minutes store_patience{10};  // for a whole file

std::string checkpoint_of(std::string const& name, std::uint64_t number) { return name + "/" + std::to_string(number); }

struct Written {
  parameters::ShardSpec spec;
  parameters::ShardImage image;
};

// Shape of the values for readers of the file: of whole rows, or empty, which is one dimension.
std::vector<std::uint64_t> shape_in_file(parameters::ShardSpec const& spec) {
  if (spec.row_elements == 0 || spec.shape.empty()) return {};
  auto shape = spec.shape;
  shape.front() = spec.elements() / spec.row_elements;
  return shape;
}

// What the parameter was made with, the same from all of its shards.
std::string metadata_of(parameters::ShardSpec const& spec) {
  constexpr std::array nonfinite{"accept", "reject", "zero"};
  return R"({"optimizer":)" + http::encode(spec.optimizer) + R"(,"initializer":)" + http::encode(spec.initializer) +
         R"(,"staleness":)" + std::to_string(spec.staleness) + R"(,"reduce":")" + (spec.averages ? "avg" : "sum") +
         R"(","nonfinite":")" + nonfinite.at(static_cast<std::size_t>(spec.nonfinite)) + R"("})";
}

// The following functions run on the disk's threads.
Checked<std::string> write_there(checkpoints::Files& files, std::string const& directory, std::uint64_t number,
                                 std::string const& file, std::vector<Written> const& written) {
  std::vector<checkpoints::ShardContent> contents;
  checkpoints::Manifest part;
  part.number = number;
  for (auto const& [spec, image] : written) {
    checkpoints::ShardContent content{spec.parameter,     spec.begin, spec.end, {}, http::encode(image.state),
                                      shape_in_file(spec)};
    for (auto const& array : image.arrays)
      content.arrays.push_back({array.name, array.dtype, array.elements_each, array.content.bytes});
    contents.push_back(std::move(content));
    checkpoints::ParameterRecord record{spec.parameter, std::string(name(spec.dtype)), spec.shape, metadata_of(spec)};
    if (std::ranges::find(part.parameters, record) == part.parameters.end())
      part.parameters.push_back(std::move(record));
  }
  auto record = checkpoints::write_file(files, directory, number, file, contents);
  if (!record) return checkpoint_problem(record.error());
  part.files.push_back(std::move(*record));
  return checkpoints::to_text(part);
}

Checked<bool> commit_there(checkpoints::Files& files, std::string const& directory,
                           api::CheckpointCommit const& request) {
  checkpoints::Manifest whole;
  whole.number = request.number;
  for (auto const& text : request.parts) {
    auto part = checkpoints::parse_manifest(text);
    if (!part) return Problem(ProblemCode::invalid_field, "a part of the manifest: " + part.error().detail);
    std::ranges::move(part->files, std::back_inserter(whole.files));
    for (auto& parameter : part->parameters)
      if (std::ranges::find(whole.parameters, parameter.name, &checkpoints::ParameterRecord::name) ==
          whole.parameters.end())
        whole.parameters.push_back(std::move(parameter));
  }
  if (auto const committed = checkpoints::commit(files, directory, whole); !committed)
    return checkpoint_problem(committed.error());
  if (request.keep > 0)
    if (auto const removed = checkpoints::remove_old(files, directory, request.keep); !removed)
      return checkpoint_problem(removed.error());
  return true;
}

// Checkpoints of other names are swept too: the disk may be full of their leftovers.
Checked<std::uint64_t> number_there(checkpoints::Files& files, std::string const& root, std::string const& directory) {
  checkpoints::sweep(files, root);
  if (auto const removed = checkpoints::remove_leftovers(files, directory); !removed)
    return checkpoint_problem(removed.error());
  if (auto const made = files.make_directory(directory); !made) return checkpoint_problem(made.error());
  auto const number = checkpoints::next_number(files, directory);
  if (!number) return checkpoint_problem(number.error());
  return *number;
}

Checked<std::uint64_t> newest_there(checkpoints::Files& files, std::string const& directory) {
  auto const newest = checkpoints::open_newest(files, directory);
  if (!newest) return checkpoint_problem(newest.error());
  return newest->checkpoint.manifest().number;
}

http::TimePoint until_patience_ends() { return std::chrono::steady_clock::now() + store_patience; }

}  // namespace

Checked<std::string> CheckpointStore::directory(std::string const& name) const {
  if (root_.empty()) return Problem(ProblemCode::unsupported, "this worker was started without --checkpoint-directory");
  if (!is_valid_worker_id(name))
    return Problem(ProblemCode::bad_request, "a checkpoint's name is 1 to 64 letters, digits and ._-");
  return root_ + "/" + name;
}

asio::awaitable<void> CheckpointStore::sweep() {
  if (root_.empty()) co_return;
  std::function<Checked<bool>()> const work = [files = disk_.files(), root = root_]() -> Checked<bool> {
    checkpoints::sweep(*files, root);
    return true;
  };
  auto title = "removing what checkpoints in " + root_ + " have left";
  // A failed removal is repeated by the next checkpoint.
  static_cast<void>(co_await disk_.run(std::move(title), work, until_patience_ends()));
}

asio::awaitable<Checked<std::uint64_t>> CheckpointStore::next_number(std::string name) {
  auto const where = directory(name);
  if (!where) co_return where.error();
  std::function<Checked<std::uint64_t>()> const work = [files = disk_.files(), root = root_, directory = *where] {
    return number_there(*files, root, directory);
  };
  auto title = "beginning a checkpoint " + name;
  co_return co_await disk_.run(std::move(title), work, until_patience_ends());
}

asio::awaitable<Checked<std::uint64_t>> CheckpointStore::newest_number(std::string name) {
  auto const where = directory(name);
  if (!where) co_return where.error();
  std::function<Checked<std::uint64_t>()> const work = [files = disk_.files(), directory = *where] {
    return newest_there(*files, directory);
  };
  auto title = "looking for the newest checkpoint " + name;
  co_return co_await disk_.run(std::move(title), work, until_patience_ends());
}

asio::awaitable<Checked<api::CheckpointPlaces>> CheckpointStore::hold(std::string name, api::CheckpointPlaces shards) {
  auto const timeout = std::chrono::milliseconds(std::min(shards.timeout_ms, longest_hold_ms));
  auto const until = std::chrono::steady_clock::now() + timeout;
  for (auto& item : shards.items) {
    auto const host = book_.find(item.parameter, item.shard);
    if (!host) co_return host.error();
    auto place = co_await (*host)->hold(checkpoint_of(name, shards.number), until);
    if (!place) co_return place.error();
    item.clients = std::move(*place);
  }
  co_return shards;
}

asio::awaitable<Checked<api::CheckpointPlaces>> CheckpointStore::keep_images(std::string name,
                                                                             api::CheckpointPlaces places) {
  auto const checkpoint = checkpoint_of(name, places.number);
  std::vector<std::shared_ptr<parameters::ShardHost>> hosts;
  for (auto const& item : places.items) {
    auto host = book_.find(item.parameter, item.shard);
    if (!host) co_return host.error();
    hosts.push_back(std::move(*host));
  }
  // All shards first: a client may wait for one shard before it goes on with the next.
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (auto problem = hosts[i]->aim(checkpoint, places.items[i].clients)) co_return std::move(*problem);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    auto place = co_await hosts[i]->keep_image(checkpoint);
    if (!place) co_return place.error();
    places.items[i].clients = std::move(*place);
  }
  co_return places;
}

asio::awaitable<Checked<std::string>> CheckpointStore::write(std::string name, std::string file,
                                                             api::CheckpointFile request, http::TimePoint deadline) {
  auto const where = directory(name);
  if (!where) co_return where.error();
  std::vector<Written> written;
  for (auto const& wanted : request.shards) {
    auto const host = book_.find(wanted.parameter, wanted.shard);
    if (!host) co_return host.error();
    auto image = co_await (*host)->image_for(checkpoint_of(name, request.number), deadline);
    if (!image) co_return image.error();
    written.push_back({(*host)->spec(), std::move(*image)});
  }
  auto title = "writing checkpoint " + checkpoint_of(name, request.number);
  std::function<Checked<std::string>()> const work =
      [files = disk_.files(), directory = *where, number = request.number, file = std::move(file),
       written = std::make_shared<std::vector<Written> const>(std::move(written))] {
        return write_there(*files, directory, number, file, *written);
      };
  co_return co_await disk_.run(std::move(title), work, until_patience_ends());
}

asio::awaitable<std::optional<Problem>> CheckpointStore::discard(std::string name, std::string file,
                                                                 std::uint64_t number) {
  auto const where = directory(name);
  if (!where) co_return where.error();
  std::function<Checked<bool>()> const work = [files = disk_.files(), directory = *where, file = std::move(file),
                                               number]() -> Checked<bool> {
    if (auto const removed = checkpoints::discard_file(*files, directory, number, file); !removed)
      return checkpoint_problem(removed.error());
    return true;
  };
  auto title = "discarding checkpoint " + checkpoint_of(name, number);
  auto const done = co_await disk_.run(std::move(title), work, until_patience_ends());
  if (!done) co_return done.error();
  co_return std::nullopt;
}

asio::awaitable<std::optional<Problem>> CheckpointStore::commit(std::string name, api::CheckpointCommit request) {
  auto const where = directory(name);
  if (!where) co_return where.error();
  auto title = "committing checkpoint " + checkpoint_of(name, request.number);
  std::function<Checked<bool>()> const work = [files = disk_.files(), directory = *where,
                                               request = std::move(request)] {
    return commit_there(*files, directory, request);
  };
  auto const done = co_await disk_.run(std::move(title), work, until_patience_ends());
  if (!done) co_return done.error();
  co_return std::nullopt;
}

asio::awaitable<Checked<std::unique_ptr<Shard>>> CheckpointStore::load(api::ShardAssignment assignment) {
  auto const where = directory(assignment.checkpoint->name);
  if (!where) co_return where.error();
  auto spec = parameters::ShardSpec::from(assignment);
  if (!spec) co_return spec.error();
  auto title = "restoring shard " + std::to_string(assignment.shard) + " of " + assignment.parameter.name +
               " from checkpoint " + assignment.checkpoint->name;
  std::function<Checked<std::unique_ptr<Shard>>()> const work =
      [files = disk_.files(), directory = *where, number = assignment.checkpoint->number, spec = std::move(*spec),
       memory = memory_] { return load_shard(*files, directory, number, spec, memory); };
  co_return co_await disk_.run(std::move(title), work, until_patience_ends());
}

}  // namespace chorus::service
