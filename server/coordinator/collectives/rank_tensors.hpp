// The tensors that the ranks of one collective bring: asked of the workers, or as their last answers were.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "http/api/collectives/groups.hpp"
#include "server/coordinator/admission/admission.hpp"
#include "server/coordinator/admission/tensor_metadata_cache.hpp"
#include "server/coordinator/membership/worker_client.hpp"

namespace chorus::coordinator {

// True for the codes with which a worker refuses a run because its tensor is not the admitted one.
[[nodiscard]] bool tells_another_tensor(http::ProblemCode code);

// Used on one thread.
class RankTensors {
 public:
  // Group, cache and client outlive the object.
  RankTensors(api::Group const& group, AdmissionQuestion question, TensorMetadataCache& cache, WorkerClient& workers);

  // Admits by the cached metadata. False if the workers must be asked.
  [[nodiscard]] bool admit_as_known();
  // False for an operation without tensors.
  [[nodiscard]] bool must_ask() const { return question_.op != Op::barrier; }
  // Asks the worker of a rank until the deadline. Once per rank; the ranks at the same time. Error: HttpErrc if the
  // worker has not answered, which refuse() makes a problem of.
  [[nodiscard]] boost::asio::awaitable<Status> ask(std::uint32_t rank, http::TimePoint deadline);
  void refuse(std::uint32_t rank, http::Problem why) { answers_[rank] = std::move(why); }
  [[nodiscard]] bool has_answered(std::uint32_t rank) const { return answers_[rank].has_value(); }
  // Admits by the answers. Problem: those of the ranks that refuse, or why their tensors do not go together.
  [[nodiscard]] std::optional<http::Problem> admit();

  // After an admission.
  [[nodiscard]] Admitted const& admitted() const { return *admitted_; }
  [[nodiscard]] bool went_by_known() const { return went_by_known_; }

  // Caches the tensors after the ranks have committed these versions. Once.
  void learn(std::vector<std::uint64_t> const& versions);
  // The cached metadata were wrong.
  void forget() { cache_.forget(group_.name, question_.tensor); }

 private:
  api::Group const& group_;
  AdmissionQuestion const question_;
  TensorMetadataCache& cache_;
  WorkerClient& workers_;
  std::vector<std::optional<http::Checked<RankTensor>>> answers_;  // by rank
  std::vector<std::optional<RankTensor>> tensors_;                 // by rank, as admitted
  std::optional<Admitted> admitted_;
  bool went_by_known_ = false;  // admitted by the cache
  bool came_true_ = false;      // the cache was right, as the answers showed
};

}  // namespace chorus::coordinator
