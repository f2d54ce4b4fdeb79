// Creates shards on other threads, because initial values of gigabytes, and reading logs, take seconds.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/runtime/side_thread.hpp"
#include "http/api/parameters/parameters.hpp"
#include "worker/parameters/disk/disk.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::service {

// Used on the control thread only. The arguments outlive the object.
class ShardMaker {
 public:
  // log_root: "" for a worker without logs. on_recovery: called with the result of each recovery. `instead`: see
  // SideThread.
  using OnRecovery = std::function<void(bool recovered)>;
  ShardMaker(std::string log_root, parameters::Disk& disk, parameters::ShardMemory memory, OnRecovery on_recovery,
             boost::asio::any_io_executor instead)
      : log_root_(std::move(log_root)),
        disk_(disk),
        memory_(memory),
        on_recovery_(std::move(on_recovery)),
        thread_(std::move(instead)) {}
  ShardMaker(ShardMaker const&) = delete;
  ShardMaker& operator=(ShardMaker const&) = delete;

  using Making = boost::asio::awaitable<http::Checked<std::unique_ptr<parameters::Shard>>>;
  // Creates a shard with its initial values. Problems: invalid_field; unsupported if it needs a GPU and there is none;
  // unavailable for lack of memory.
  Making make(api::ShardAssignment assignment);
  // Creates a shard from its log. Problems: also unsupported without a directory of logs; parameter_lost if there is no
  // log; log_damaged, naming the file; mismatch if the log is of another shard; unavailable for a disk that does not
  // answer.
  Making recover(api::ShardAssignment assignment);

 private:
  std::string const log_root_;
  parameters::Disk& disk_;
  parameters::ShardMemory const memory_;
  OnRecovery const on_recovery_;
  http::SideThread thread_;
};

}  // namespace chorus::service
