// Shards into checkpoints and back, under the one directory that the worker was given for them.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <string>

#include "http/api/parameters.hpp"
#include "worker/parameters/checkpoints/checkpoint.hpp"
#include "worker/parameters/serving/shard_book.hpp"

namespace chorus::service {

// On the control thread; files are read and written on a thread of its own. Everything given outlives it.
class CheckpointStore {
 public:
  // root: "" for a worker that keeps no checkpoints.
  CheckpointStore(std::string root, checkpoints::Files& files, parameters::ShardBook& book,
                  parameters::ShardMemory memory);
  ~CheckpointStore();  // joins the thread
  CheckpointStore(CheckpointStore const&) = delete;
  CheckpointStore& operator=(CheckpointStore const&) = delete;

  // Problems of all: unsupported without a directory, bad_request for a name, unavailable with what the operating
  // system says.
  boost::asio::awaitable<http::Checked<std::uint64_t>> next_number(std::string name);
  // Of the newest that is good. Problems: also not_found.
  boost::asio::awaitable<http::Checked<std::uint64_t>> newest_number(std::string name);
  // See ShardHost::hold, aim and keep_image: of all these shards, each with where it stands, or was. Problems: also
  // those of ShardBook::find.
  boost::asio::awaitable<http::Checked<api::CheckpointPlaces>> hold(std::string name, api::CheckpointPlaces shards);
  boost::asio::awaitable<http::Checked<api::CheckpointPlaces>> keep_images(std::string name,
                                                                           api::CheckpointPlaces places);
  // One file with these shards, named after this worker; gives its part of the manifest. Problems: also those of
  // ShardBook::find, misdirected for a shard that is not owned here.
  boost::asio::awaitable<http::Checked<std::string>> write(std::string name, std::string file,
                                                           api::CheckpointFile request, http::TimePoint deadline);
  // Problems: also invalid_field for parts that do not fit together.
  boost::asio::awaitable<std::optional<http::Problem>> commit(std::string name, api::CheckpointCommit request);

  // The shard as the checkpoint has it. Problems: also not_found; digest_mismatch for a checkpoint that is damaged,
  // with the name of the file; mismatch for another dtype or shape, or shards that cannot be cut anew.
  boost::asio::awaitable<http::Checked<std::unique_ptr<parameters::Shard>>> load(api::ShardAssignment assignment);

 private:
  [[nodiscard]] http::Checked<std::string> directory(std::string const& name) const;

  std::string const root_;
  checkpoints::Files& files_;
  parameters::ShardBook& book_;
  parameters::ShardMemory const memory_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace chorus::service
