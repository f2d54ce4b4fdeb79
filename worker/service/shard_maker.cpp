#include "worker/service/shard_maker.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/until_done_there.hpp"
#include "worker/parameters/log/push_log.hpp"

namespace chorus::service {
namespace {

namespace asio = boost::asio;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using parameters::LogErrc;
using parameters::Shard;
using parameters::ShardSpec;

Problem to_problem(Error const& error) {
  auto code = parameters::why_not_made(error).code;
  if (error.code == LogErrc::not_found) code = ProblemCode::parameter_lost;
  if (error.code == LogErrc::damaged) code = ProblemCode::log_damaged;
  if (error.code == LogErrc::misfit) code = ProblemCode::mismatch;
  return {code, error.detail};
}

asio::awaitable<Checked<std::unique_ptr<Shard>>> make_there(ShardSpec spec, parameters::ShardMemory memory) {
  auto shard = Shard::make(std::move(spec), memory);
  if (!shard) co_return to_problem(shard.error());
  co_return std::move(*shard);
}

asio::awaitable<Checked<std::unique_ptr<Shard>>> recover_there(checkpoints::Files* files, std::string directory,
                                                               ShardSpec spec, parameters::ShardMemory memory) {
  auto shard = parameters::recover(*files, directory, std::move(spec), memory);
  if (!shard) co_return to_problem(shard.error());
  co_return std::move(*shard);
}

}  // namespace

ShardMaker::~ShardMaker() { thread_.join(); }

ShardMaker::Making ShardMaker::make(api::ShardAssignment assignment) {
  auto spec = ShardSpec::from(assignment);
  if (!spec) co_return spec.error();
  co_return co_await asio::co_spawn(thread_, make_there(std::move(*spec), memory_), http::until_done_there());
}

ShardMaker::Making ShardMaker::recover(api::ShardAssignment assignment) {
  if (log_root_.empty()) co_return Problem(ProblemCode::unsupported, "this worker was started without --log-directory");
  auto spec = ShardSpec::from(assignment);
  if (!spec) co_return spec.error();
  auto directory = parameters::log_directory(log_root_, spec->parameter, spec->index);
  auto shard = co_await asio::co_spawn(thread_, recover_there(&files_, std::move(directory), std::move(*spec), memory_),
                                       http::until_done_there());
  on_recovery_(shard.has_value());
  co_return shard;
}

}  // namespace chorus::service
