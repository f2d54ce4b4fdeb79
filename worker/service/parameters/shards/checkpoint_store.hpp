// Writes shards into checkpoints and reads them back, under the one directory for this worker's checkpoints.
#pragma once

#include <memory>
#include <string>

#include "http/api/parameters/parameters.hpp"
#include "worker/parameters/checkpoints/checkpoint.hpp"
#include "worker/parameters/disk/disk.hpp"
#include "worker/parameters/serving/shard_book.hpp"

namespace chorus::service {

// Used on the control thread only; the disk's threads read and write the files. The arguments outlive the object.
class CheckpointStore {
 public:
  // root: "" for a worker without checkpoints.
  CheckpointStore(std::string root, parameters::Disk& disk, parameters::ShardBook& book, parameters::ShardMemory memory)
      : root_(std::move(root)), disk_(disk), book_(book), memory_(memory) {}
  CheckpointStore(CheckpointStore const&) = delete;
  CheckpointStore& operator=(CheckpointStore const&) = delete;

  // Problems of all: unsupported without a directory; bad_request for a name; unavailable with the operating system's
  // error, or with the call that has not returned; deadline_exceeded.

  // Removes files that earlier processes of workers have left half written; see checkpoints::sweep.
  boost::asio::awaitable<void> sweep();
  // Number for the next checkpoint. Removes unfinished checkpoints of this name: only one is made at a time.
  boost::asio::awaitable<http::Checked<std::uint64_t>> next_number(std::string name);
  // Number of the newest good checkpoint. Problems: also not_found.
  boost::asio::awaitable<http::Checked<std::uint64_t>> newest_number(std::string name);
  // See ShardHost::hold, aim and keep_image, here for several shards, each with its current or former place. Problems:
  // also those of ShardBook::find.
  boost::asio::awaitable<http::Checked<api::CheckpointPlaces>> hold(std::string name, api::CheckpointPlaces shards);
  boost::asio::awaitable<http::Checked<api::CheckpointPlaces>> keep_images(std::string name,
                                                                           api::CheckpointPlaces places);
  // Writes one file with these shards, named after this worker, and returns its part of the manifest. Problems: also
  // those of ShardBook::find; misdirected for a shard that is not owned here.
  boost::asio::awaitable<http::Checked<std::string>> write(std::string name, std::string file,
                                                           api::CheckpointFile request, http::TimePoint deadline);
  // Discards a checkpoint: removes what write() has written for it, or still writes.
  boost::asio::awaitable<std::optional<http::Problem>> discard(std::string name, std::string file,
                                                               std::uint64_t number);
  // Problems: also invalid_field for parts that do not fit together.
  boost::asio::awaitable<std::optional<http::Problem>> commit(std::string name, api::CheckpointCommit request);

  // Reads a shard from the checkpoint. Problems: also not_found; digest_mismatch for a damaged checkpoint, naming the
  // file; mismatch for another dtype or shape, or for shards that cannot be divided differently.
  boost::asio::awaitable<http::Checked<std::unique_ptr<parameters::Shard>>> load(api::ShardAssignment assignment);

 private:
  [[nodiscard]] http::Checked<std::string> directory(std::string const& name) const;

  std::string const root_;
  parameters::Disk& disk_;
  parameters::ShardBook& book_;
  parameters::ShardMemory const memory_;
};

}  // namespace chorus::service
