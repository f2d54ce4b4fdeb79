// Caches the metadata of the ranks' tensors, so that a launch can be admitted without asking the workers.
//
// The answer to a commit has the new version of a rank's tensor, and a version is never given twice. A worker refuses a
// run that names another version than its tensor has, before a byte moves. The cache does not pay if tensors are put
// between launches. So an entry is used only after a launch that asked has found it to be right.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "http/api/collectives/groups.hpp"
#include "server/coordinator/admission/admission.hpp"

namespace chorus::coordinator {

// True if the operation leaves metadata that the next launch can use: every rank brings one tensor and keeps its shape,
// and ranks that have begun can undo their work when another rank refuses.
[[nodiscard]] bool leaves_known(AdmissionQuestion const& question, std::span<std::optional<RankTensor> const> ranks);

// Holds the most recently used tensors of groups in their present epochs. Used on one thread.
class TensorMetadataCache {
 public:
  explicit TensorMetadataCache(std::size_t most = 256) : most_(most) {}

  struct Known {
    std::vector<std::optional<RankTensor>> ranks;  // in rank order
    bool came_true = false;  // the entry was right the last time that it was compared with the workers' answers
  };
  // Null if the tensor is unknown; valid until the next call.
  [[nodiscard]] Known const* find(api::Group const& group, std::string const& tensor);

  void learn(api::Group const& group, std::string const& tensor, Known known);
  void forget(std::string const& group, std::string const& tensor);
  void forget(std::string const& group);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::uint32_t epoch = 0;
    std::uint64_t used = 0;
    Known known;
  };
  std::size_t const most_;
  std::uint64_t uses_ = 0;
  std::map<std::pair<std::string, std::string>, Entry> entries_;  // by group and tensor
};

}  // namespace chorus::coordinator
