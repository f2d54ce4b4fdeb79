// The receiving end's part of lending GPU memory: the peer's memory is lent to this rank.
#include <algorithm>

#include "worker/engine/transport/connection_owner.hpp"
#include "worker/engine/transport/receive_connection.hpp"

namespace chorus::engine {

Status ReceiveConnection::place_arrived() {
  owner_.look_for_standstill();
  auto const& header = control_header();
  auto const place = links::decode_place(control_payload());
  if (place.has_error()) return refusals_.bad_frame(place.error().detail);
  auto* const channel = find(header.run);
  if (channel == nullptr && is_over(header.run)) return ok();
  if (channel == nullptr)
    return refusals_.bad_frame("memory of run " + std::to_string(header.run) + ", which nothing was borrowed for");
  if (auto const taken = channel->lies(header, *place); taken.has_error())
    return refusals_.bad_frame(taken.error().detail);
  owner_.touch(header.run);
  return ok();
}

// If both ranks use the same GPU, the two processes take turns on it, and each turn costs more than 100 us: so the peer
// also writes its reduced results into this rank's memory. That needs the peer to have borrowed this memory, which it
// may not have reported yet. Of two ranks only the greater one waits for the report, so that they never wait for each
// other.
Status ReceiveConnection::answer_lend(RunOnLinks& run, ReceiveChannel& channel, links::Lend const& lend) {
  auto const is_borrowed = run.may_be_written(channel, lend);
  if (!is_borrowed) {
    channel.holds_open();
    undecided_.push_back({&channel, lend});
    owner_.heard(run.spec().run, channel.peer());
    return ok();
  }
  auto const& spec = run.spec();
  if (*is_borrowed) {
    send_borrow(spec.run, spec.epoch, {{links::Way::written, 0}, {}});
    channel.opened_to_writes();
  } else {
    links::Borrow told;
    auto borrowed = owner_.borrow(run.spec(), peer(), lend, told);
    send_borrow(spec.run, spec.epoch, told);
    channel.opened(std::move(borrowed));
  }
  was_opened(run, channel);
  return ok();
}

void ReceiveConnection::decide(std::uint64_t run) {
  auto const is_of_run = [run](Undecided const& each) { return each.channel->run() == run; };
  auto const found = std::find_if(undecided_.begin(), undecided_.end(), is_of_run);
  auto* const known = found == undecided_.end() ? nullptr : owner_.find_run(run);
  if (known == nullptr || !known->may_be_written(*found->channel, found->lend)) return;
  auto const [channel, lend] = *found;
  undecided_.erase(found);
  static_cast<void>(answer_lend(*known, *channel, lend));
}

Status ReceiveConnection::written_arrived(links::FrameHeader const& header) {
  auto* const channel = find(header.run);
  if (channel == nullptr && is_over(header.run)) return ok();
  if (channel == nullptr)
    return refusals_.bad_frame("wrote frame of run " + std::to_string(header.run) + ", which has no room here");
  if (auto const written = channel->wrote(header); written.has_error())
    return refusals_.bad_frame(written.error().detail);
  owner_.touch(header.run);
  return ok();
}

}  // namespace chorus::engine
