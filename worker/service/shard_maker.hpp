// Shards are made on a thread of their own: initial values of gigabytes, and logs that are read, take seconds.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <string>

#include "http/api/parameters.hpp"
#include "worker/parameters/checkpoints/files.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::service {

// On the control thread. Everything given outlives it.
class ShardMaker {
 public:
  // log_root: "" for a worker that keeps no logs. on_recovery is told how each one went.
  using OnRecovery = std::function<void(bool recovered)>;
  ShardMaker(std::string log_root, checkpoints::Files& files, parameters::ShardMemory memory, OnRecovery on_recovery)
      : log_root_(std::move(log_root)), files_(files), memory_(memory), on_recovery_(std::move(on_recovery)) {}
  ~ShardMaker();  // joins the thread
  ShardMaker(ShardMaker const&) = delete;
  ShardMaker& operator=(ShardMaker const&) = delete;

  using Making = boost::asio::awaitable<http::Checked<std::unique_ptr<parameters::Shard>>>;
  // With its initial values. Problems: invalid_field; unsupported without a GPU, where it is to lie on one; unavailable
  // without memory.
  Making make(api::ShardAssignment assignment);
  // As its log has it. Problems: also unsupported without a directory of logs; parameter_lost where there is no log;
  // log_damaged, with the name of the file; mismatch where it is of another shard.
  Making recover(api::ShardAssignment assignment);

 private:
  std::string const log_root_;
  checkpoints::Files& files_;
  parameters::ShardMemory const memory_;
  OnRecovery const on_recovery_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace chorus::service
