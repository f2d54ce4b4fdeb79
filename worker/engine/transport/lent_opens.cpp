#include "worker/engine/transport/lent_opens.hpp"

#include <algorithm>
#include <utility>

#include "worker/engine/transport/connection_owner.hpp"

namespace chorus::engine {

bool LentOpens::answer(RunOnLinks& run, ReceiveChannel& channel, links::Lend const& lend) {
  auto const& spec = run.spec();
  auto const is_written = run.may_be_written(channel, lend);
  if (!is_written) {
    channel.holds_open();
    undecided_.push_back({&channel, lend});
    owner_.heard(spec.run, channel.peer());
    return false;
  }
  if (*is_written) {
    connection_.send_borrow(spec.run, spec.epoch, {{links::Way::written, 0}, {}});
    channel.opened_to_writes();
    return true;
  }
  links::Borrow told;
  auto borrowed = owner_.borrow(spec, connection_.peer(), lend, told);
  connection_.send_borrow(spec.run, spec.epoch, told);
  channel.opened(std::move(borrowed));
  return true;
}

ReceiveChannel* LentOpens::decide(RunOnLinks& run) {
  auto const id = run.spec().run;
  auto const found = std::ranges::find_if(undecided_, [id](auto const& each) { return each.channel->run() == id; });
  if (found == undecided_.end() || !run.may_be_written(*found->channel, found->lend)) return nullptr;
  auto const [channel, lend] = *found;
  undecided_.erase(found);
  static_cast<void>(answer(run, *channel, lend));
  return channel;
}

void LentOpens::forget(ReceiveChannel const& channel) {
  std::erase_if(undecided_, [&channel](Undecided const& each) { return each.channel == &channel; });
}

}  // namespace chorus::engine
