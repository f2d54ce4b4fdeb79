// What ranks hold under a name, as far as it is known without asking them.
//
// The answer to a commit says at which version a rank's tensor stands, and no version is ever given twice. So a launch
// may be admitted by what the last one left: a worker refuses a run that names another version than its tensor has,
// before a byte moves. Whether that pays, only trying tells: where somebody puts new tensors between the launches, it
// never does. So nobody goes by it before a launch that asked has found what would have been gone by.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "http/api/groups.hpp"
#include "server/coordinator/admission.hpp"

namespace chorus::coordinator {

// Whether a launch may leave its tensors so that the next one knows them: every rank brings one and keeps its shape,
// and what ranks that have begun do is undone when another one refuses.
[[nodiscard]] bool leaves_known(AdmissionQuestion const& question, std::span<std::optional<RankTensor> const> ranks);

// One thread. Of groups in their present epoch; those that were used last.
class KnownTensors {
 public:
  explicit KnownTensors(std::size_t most = 256) : most_(most) {}

  struct Known {
    std::vector<std::optional<RankTensor>> ranks;  // in rank order
    bool came_true = false;                        // the last time that it could be held against what there was
  };
  // Null if nothing is known; valid until the next call.
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
