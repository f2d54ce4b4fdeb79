#include "collectives/model/time/resources.hpp"

#include <algorithm>

#include "collectives/model/time/copies.hpp"

namespace chorus::model {

// One message in progress, or one local instruction.
class Resources::Message {
 public:
  Message(double bytes, double segment_bytes, Interval ready)
      : bytes_(bytes), first_bytes_(std::min(bytes, segment_bytes)), ready_(ready), start_s_(ready.first_s) {}

  void wait_for(Port const& port) { start_s_ = std::max(start_s_, port.first_free_s); }

  // Bytes arrive at this rate unless another resource is slower.
  void start(double alpha_s, double byte_s) {
    auto const segment_s = first_bytes_ * byte_s;
    through_.first_s = start_s_ + alpha_s + segment_s;
    through_.last_s = std::max(through_.first_s + (bytes_ - first_bytes_) * byte_s, ready_.last_s + segment_s);
  }

  void occupy(Port& port, double alpha_s, double overhead_s, double byte_s) {
    auto const bytes_s = bytes_ * byte_s;
    port.first_free_s = start_s_ + overhead_s + first_bytes_ * byte_s;
    port.last_free_s = std::max(port.last_free_s, start_s_) + overhead_s + bytes_s;
    port.busy_s += bytes_s;
    through_.last_s = std::max(through_.last_s, port.last_free_s + alpha_s - overhead_s);
  }

  void share(Shared& shared, std::uint32_t round, double message_s, double byte_s) {
    if (shared.round != round) shared = {.begun_s = shared.begun_s, .work_s = shared.work_s, .round = round};
    auto const work_s = message_s + bytes_ * byte_s;
    shared.begun_s = std::min(shared.begun_s, start_s_);
    shared.work_s += work_s;
    shared.round_begun_s = std::min(shared.round_begun_s, start_s_);
    shared.round_first_s += message_s + first_bytes_ * byte_s;
    shared.round_work_s += work_s;
    through_.first_s = std::max(through_.first_s, shared.round_begun_s + shared.round_first_s);
    shared_s_ = std::max({shared_s_, shared.round_begun_s + shared.round_work_s, shared.begun_s + shared.work_s});
  }

  [[nodiscard]] Interval through() const {
    // On a port a message of one segment passes between the segments of long ones.
    auto const last_s = bytes_ <= first_bytes_ ? through_.first_s : std::max(through_.last_s, through_.first_s);
    auto const all_s = std::max(last_s, shared_s_);
    return {bytes_ <= first_bytes_ ? all_s : through_.first_s, all_s};
  }

 private:
  double bytes_, first_bytes_;
  Interval ready_;
  double start_s_;
  Interval through_;
  double shared_s_ = 0;  // when shared resources have done their work
};

Resources::Resources(Network const& network, std::uint64_t vector_bytes, std::uint64_t segment_bytes_max,
                     WireFormat codes)
    : network_(network),
      segment_bytes_(std::min(network.constants().segment_bytes, segment_bytes_max)),
      gamma_s_per_byte_(network.gamma_s_per_byte(vector_bytes)),
      codec_(network.constants().codec_of(codes)),
      send_ports_(network.ranks()),
      receive_ports_(network.ranks()) {
  for (auto const level : network.limited_levels()) {
    std::vector<Shared> const idle(network.ranks());
    uplinks_.push_back({level, network.uplink_s_per_byte(level), idle, idle});
  }
  shares_anything_ = !uplinks_.empty() || network.shares_cores();
  if (!network.shares_cores()) return;
  cores_.resize(network.ranks());
  threads_.resize(network.ranks());
  woken_.resize(network.ranks());
}

Interval Resources::carry_any(plan::Rank from, plan::Rank to, Hop const& hop, std::uint64_t bytes, Interval ready,
                              bool reduces) {
  auto const& constants = network_.constants();
  auto const beta = hop.beta_s_per_byte;
  auto const alpha_s = hop.alpha_s + copies_s(network_, from, to, bytes);
  auto const overhead_s = hop.overhead_s;
  auto const gamma = reduces ? gamma_s_per_byte_ : 0;
  send_ports_[from].bytes += bytes;
  Message message(static_cast<double>(bytes), static_cast<double>(segment_bytes_), ready);
  message.wait_for(send_ports_[from]);
  message.wait_for(receive_ports_[to]);
  message.start(alpha_s, beta + gamma);
  // The sender's next message may start while the receiver reduces; the receiver's may not.
  message.occupy(send_ports_[from], alpha_s, overhead_s, beta);
  message.occupy(receive_ports_[to], alpha_s, overhead_s, beta + gamma);
  if (!shares_anything_) return message.through();

  for (auto& [level, s_per_byte, out, in] : uplinks_) {
    auto const leaves = network_.group(level, from), enters = network_.group(level, to);
    if (leaves == enters) continue;
    message.share(out[leaves], round_, 0, s_per_byte);
    message.share(in[enters], round_, 0, s_per_byte);
  }
  if (!cores_.empty()) {
    auto const share = 1 / constants.host_cores;
    auto const message_s = constants.message_cpu_s, byte_s = constants.byte_cpu_s;
    message.share(threads_[from], round_, message_s, byte_s);
    message.share(threads_[to], round_, message_s, byte_s + gamma);
    message.share(cores_[network_.host(from)], round_, message_s * share, byte_s * share);
    auto const wake_s = woken_[to] == round_ ? 0 : network_.wake_s();
    woken_[to] = round_;
    message.share(cores_[network_.host(to)], round_, (message_s + wake_s) * share, (byte_s + gamma) * share);
  }
  return message.through();
}

Interval Resources::work(plan::Rank rank, std::uint64_t bytes, Interval ready, LocalWork kind) {
  auto const& constants = network_.constants();
  auto const gamma = kind == LocalWork::encoding    ? codec_.encode_s_per_byte
                     : kind == LocalWork::decoding  ? codec_.decode_s_per_byte
                     : kind == LocalWork::reduction ? gamma_s_per_byte_
                                                    : constants.gamma_s_per_byte;
  Message message(static_cast<double>(bytes), static_cast<double>(segment_bytes_), ready);
  message.start(0, gamma);
  if (!cores_.empty()) {
    message.share(threads_[rank], round_, 0, gamma);
    message.share(cores_[network_.host(rank)], round_, 0, gamma / constants.host_cores);
  }
  return message.through();
}

std::uint64_t Resources::most_sent_bytes() const {
  auto most = std::uint64_t{0};
  for (auto const& port : send_ports_) most = std::max(most, port.bytes);
  return most;
}

std::string Resources::bottleneck(double seconds) const {
  auto busiest_s = seconds / 2;
  std::string busiest = "latency";
  auto const consider = [&](auto const& resources, auto busy_s, auto const& name) {
    for (plan::Rank i = 0; i < resources.size(); ++i)
      if (busy_s(resources[i]) > busiest_s * (1 + 1e-6)) {
        busiest_s = busy_s(resources[i]);
        busiest = name(i);
      }
  };
  auto const of_port = [](Port const& port) { return port.busy_s; };
  auto const of_shared = [](Shared const& shared) { return shared.work_s; };
  consider(send_ports_, of_port, [](auto rank) { return "port of rank " + std::to_string(rank) + " (send)"; });
  consider(receive_ports_, of_port, [](auto rank) { return "port of rank " + std::to_string(rank) + " (receive)"; });
  consider(threads_, of_shared, [](auto rank) { return "data thread of rank " + std::to_string(rank); });
  consider(cores_, of_shared, [&](auto host) { return "cores of " + network_.name_of_group(Level::host, host); });
  for (auto const& uplinks : uplinks_) {
    auto const name_of = [&](plan::Rank group) {
      return (uplinks.level == Level::host ? "nic" : std::string(name(uplinks.level)) + " uplink") + " of " +
             network_.name_of_group(uplinks.level, group);
    };
    consider(uplinks.out, of_shared, [&](auto group) { return name_of(group) + " (send)"; });
    consider(uplinks.in, of_shared, [&](auto group) { return name_of(group) + " (receive)"; });
  }
  return busiest;
}

}  // namespace chorus::model
