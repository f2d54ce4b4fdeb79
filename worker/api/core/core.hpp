// A worker and its threads, as long as anybody uses something of it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "worker/api/members/member.hpp"
#include "worker/api/worker.hpp"
#include "worker/engine/program/plan_cache.hpp"
#include "worker/memory/regions/region_registry.hpp"
#include "worker/service/worker.hpp"

namespace chorus::embedded {

// Held by the Worker, which stops it, and by members, which may outlive that.
class Core : public std::enable_shared_from_this<Core> {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // See Worker.
  [[nodiscard]] static Result<std::shared_ptr<Core>> start(WorkerOptions options);
  explicit Core(service::WorkerOptions options, std::string const& log_level);
  ~Core();  // after stop(), if open() succeeded
  Core(Core const&) = delete;
  Core& operator=(Core const&) = delete;

  void stop();
  [[nodiscard]] Result<std::shared_ptr<Member>> join(std::string const& group, TimePoint deadline);
  [[nodiscard]] Result<std::shared_ptr<Member>> create(std::string const& group, GroupOptions const& options,
                                                       TimePoint deadline);
  [[nodiscard]] Status remove(std::string const& group, TimePoint deadline);
  [[nodiscard]] Result<Worker::Memory> allocate(std::size_t bytes);
  [[nodiscard]] Result<std::unique_ptr<memory::RegisteredMemory>> adopt(std::span<std::byte> bytes);
  [[nodiscard]] service::Identity const& identity() const { return service_.identity(); }

 private:
  // What is known of a group of this name.
  struct Known {
    std::shared_ptr<service::Assignment const> assignment;  // null: this worker is no member
    std::shared_ptr<Member> member;                         // of the last epoch that was joined
  };

  [[nodiscard]] Status open();
  void note(std::string const& group);  // on the control thread
  void end(Error why);
  // `wanted`: members without which an epoch is not the one that is waited for; null: any.
  [[nodiscard]] Result<std::shared_ptr<Member>> join(std::string const& group, TimePoint deadline,
                                                     GroupOptions const* wanted);
  [[nodiscard]] std::optional<std::string> unready();  // empty too after the end
  [[nodiscard]] Error why_not(std::string const& group, GroupOptions const* wanted);
  // Sends a request until it succeeds, cannot succeed any more, or the deadline. Returns the body of the answer.
  [[nodiscard]] Result<std::string> ask(http::Call const& call, TimePoint deadline);
  [[nodiscard]] Machinery machinery();
  void report(api::Trouble trouble);
  [[nodiscard]] std::vector<api::GroupCalls> calls();

  bool const has_coordinator_;
  boost::asio::io_context control_{1};
  service::Worker service_;
  engine::PlanCache plans_;
  memory::RegionRegistry regions_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Known> groups_;
  std::optional<Error> ended_;
};

}  // namespace chorus::embedded
