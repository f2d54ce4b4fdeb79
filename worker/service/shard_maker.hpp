// Shards are made on a thread of their own: initial values of gigabytes, and logs that are read, take seconds.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <string>

#include "http/api/parameters.hpp"
#include "worker/parameters/checkpoints/files.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::service {

// On the control thread. Everything given outlives it.
class ShardMaker {
 public:
  // log_root: "" for a worker that keeps no logs.
  ShardMaker(std::string log_root, checkpoints::Files& files, tensors::Pool& pool)
      : log_root_(std::move(log_root)), files_(files), pool_(pool) {}
  ~ShardMaker();  // joins the thread
  ShardMaker(ShardMaker const&) = delete;
  ShardMaker& operator=(ShardMaker const&) = delete;

  using Making = boost::asio::awaitable<http::Checked<std::unique_ptr<parameters::Shard>>>;
  // With its initial values. Problems: invalid_field; unavailable without memory.
  Making make(api::ShardAssignment assignment);
  // As its log has it. Problems: also unsupported without a directory of logs; parameter_lost where there is no log;
  // log_damaged, with the name of the file; mismatch where it is of another shard.
  Making recover(api::ShardAssignment assignment);

 private:
  std::string const log_root_;
  checkpoints::Files& files_;
  tensors::Pool& pool_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace chorus::service
