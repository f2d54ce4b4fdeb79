#include "worker/service/parameters/shards/shard_maker.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/runtime/until_done_there.hpp"
#include "worker/parameters/log/push_log.hpp"
#include "worker/parameters/log/recovery.hpp"

namespace chorus::service {
namespace {

namespace asio = boost::asio;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using parameters::LogErrc;
using parameters::Shard;
using parameters::ShardSpec;

Problem why_not_here(Error const& error) {
  auto code = parameters::why_not_made(error).code;
  if (error.code == LogErrc::not_found) code = ProblemCode::parameter_lost;
  if (error.code == LogErrc::damaged) code = ProblemCode::log_damaged;
  if (error.code == LogErrc::misfit) code = ProblemCode::mismatch;
  return {code, error.detail};
}

asio::awaitable<Checked<std::unique_ptr<Shard>>> make_there(ShardSpec spec, parameters::ShardMemory memory,
                                                            Shard::Content content) {
  auto shard = Shard::make(std::move(spec), memory, content);
  if (!shard) co_return why_not_here(shard.error());
  co_return std::move(*shard);
}

Checked<std::unique_ptr<Shard>> recover_there(checkpoints::Files& files, std::string const& directory,
                                              ShardSpec const& spec, parameters::ShardMemory memory) {
  auto shard = parameters::recover(files, directory, spec, memory);
  if (!shard) return why_not_here(shard.error());
  return std::move(*shard);
}

constexpr std::chrono::minutes recovery_patience{10};  // for a whole log

}  // namespace

ShardMaker::Making ShardMaker::make(api::ShardAssignment assignment) {
  auto spec = ShardSpec::from(assignment);
  if (!spec) co_return spec.error();
  auto const content = assignment.fresh ? Shard::Content::initial : Shard::Content::to_come;
  co_return co_await asio::co_spawn(thread_.executor(), make_there(std::move(*spec), memory_, content),
                                    http::until_done_there());
}

ShardMaker::Making ShardMaker::recover(api::ShardAssignment assignment) {
  if (log_root_.empty()) co_return Problem(ProblemCode::unsupported, "this worker was started without --log-directory");
  auto spec = ShardSpec::from(assignment);
  if (!spec) co_return spec.error();
  auto directory = parameters::log_directory(log_root_, spec->parameter, spec->index);
  auto title = "recovering shard " + std::to_string(spec->index) + " of " + spec->parameter + " from its log";
  std::function<Checked<std::unique_ptr<Shard>>()> const work = [files = disk_.files(), directory, spec = *spec,
                                                                 memory = memory_] {
    return recover_there(*files, directory, spec, memory);
  };
  auto shard = co_await disk_.run(std::move(title), work, std::chrono::steady_clock::now() + recovery_patience);
  on_recovery_(shard.has_value());
  co_return shard;
}

}  // namespace chorus::service
