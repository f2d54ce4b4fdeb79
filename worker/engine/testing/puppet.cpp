#include "worker/engine/testing/puppet.hpp"

namespace chorus::engine::testing {

void Puppet::hold(std::shared_ptr<links::Link> link) {
  link_ = std::move(link);
  link_->start(*this);
  link_->flush();
}

void Puppet::send(links::FrameHeader header, std::vector<std::byte> payload) {
  sent_.push_back({header, std::move(payload)});
  if (link_) link_->flush();
}

void Puppet::send_open(std::uint64_t run, std::uint32_t epoch, links::Open const& open,
                       std::string const& description) {
  links::OpenBytes bytes;
  links::FrameHeader header;
  header.type = links::FrameType::open;
  header.run = run;
  header.epoch = epoch;
  header.length = links::encode(open, description, bytes);
  send(header, {bytes.begin(), bytes.begin() + header.length});
}

void Puppet::send_data(std::uint64_t run, std::uint32_t epoch, std::uint32_t message, std::uint64_t offset,
                       std::size_t bytes) {
  links::FrameHeader header;
  header.run = run;
  header.epoch = epoch;
  header.message = message;
  header.offset = offset;
  header.length = static_cast<std::uint32_t>(bytes);
  send(header, std::vector<std::byte>(bytes));
}

std::optional<Puppet::Frame> Puppet::find(links::FrameType type) const {
  for (auto const& frame : received_)
    if (frame.header.type == type) return frame;
  return std::nullopt;
}

std::optional<links::Verdict> Puppet::verdict(links::FrameType type) const {
  auto const frame = find(type);
  if (!frame) return std::nullopt;
  return links::decode_verdict(frame->payload).value();
}

bool Puppet::next_frame(links::OutFrame& frame) {
  if (given_ == sent_.size()) return false;
  frame = {sent_[given_].header, sent_[given_].payload};
  ++given_;
  return true;
}

Status Puppet::frame_arrives(links::FrameHeader const& header) {
  received_.push_back({header, std::vector<std::byte>(header.length)});
  filled_ = 0;
  return ok();
}

std::span<std::byte> Puppet::payload_space() { return std::span(received_.back().payload).subspan(filled_); }

void Puppet::payload_at(std::span<std::byte const> payload) {
  received_.back().payload.assign(payload.begin(), payload.end());
}

Status Puppet::payload_arrived(std::size_t bytes) {
  filled_ += bytes;
  return ok();
}

}  // namespace chorus::engine::testing
