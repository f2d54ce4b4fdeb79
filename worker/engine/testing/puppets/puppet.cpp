#include "worker/engine/testing/puppets/puppet.hpp"

#include "worker/engine/trace/run_identity.hpp"

namespace chorus::engine::testing {

std::uint64_t digest_of(RunSpec const& spec) {
  auto const vector = plan::layouts(*spec.program, spec.sizes).input;
  std::vector<std::uint64_t> message_bytes;
  for (auto const& instruction : spec.program->instructions)
    if (instruction.op == plan::Opcode::send)
      message_bytes.push_back(vector.range(instruction.src_chunk, instruction.chunks).size() *
                              element_bytes(spec.dtype));
  return channel_digest(spec.program->channels[0].send_digest, message_bytes);
}

links::Open open_of(RunSpec const& spec, std::uint64_t eager_bytes) {
  return {spec.token, spec.fingerprint, digest_of(spec), 100, eager_bytes, 1, 0};
}

void Puppet::hold(std::shared_ptr<links::Link> link) {
  link_ = std::move(link);
  link_->start(*this);
  link_->flush();
}

void Puppet::send(links::FrameHeader header, std::vector<std::byte> payload) {
  sent_.push_back({header, std::move(payload)});
  refer(header, sent_.back().payload);
}

void Puppet::refer(links::FrameHeader header, std::span<std::byte const> payload) {
  to_send_.push_back({header, payload});
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

std::optional<links::FailureNotice> Puppet::failure_notice(links::FrameType type) const {
  auto const frame = find(type);
  if (!frame) return std::nullopt;
  return links::decode_failure_notice(frame->payload).value();
}

bool Puppet::next_frame(links::OutFrame& frame) {
  if (to_send_.empty()) return false;
  frame = to_send_.front();
  to_send_.pop_front();
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
