#include "tests/support/fleets/etcd.hpp"

#include <httplib.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

namespace chorus::testing {
namespace {

std::string const program = "/usr/bin/etcd";

}  // namespace

std::string Etcd::missing() { return ::access(program.c_str(), X_OK) == 0 ? "" : program + " is not installed"; }

Etcd::Etcd(std::size_t members, std::string host) : host_(std::move(host)) {
  for (std::size_t i = 0; i < members; ++i) {
    auto member = std::make_unique<Member>();
    member->name = "m" + std::to_string(i);
    member->url = "http://" + host_ + ":" + member->client.text();
    member->directory = here_ / member->name;
    members_.push_back(std::move(member));
  }
  for (std::size_t i = 0; i < members; ++i) start(i);
  is_new_ = false;
  for (std::size_t i = 0; i < members; ++i)
    if (!eventually([&] { return answers(i); }, std::chrono::seconds(30)))
      throw std::runtime_error("etcd does not answer");
}

std::string Etcd::urls() const {
  std::string urls;
  for (auto const& member : members_) urls += (urls.empty() ? "" : ",") + member->url;
  return urls;
}

void Etcd::start(std::size_t i) {
  auto& member = *members_.at(i);
  std::string peers;
  for (auto const& one : members_)
    peers += (peers.empty() ? "" : ",") + one->name + "=http://" + host_ + ":" + one->peer.text();
  auto const peer = "http://" + host_ + ":" + member.peer.text();
  member.process = std::make_unique<Process>(std::vector<std::string>{program,
                                                                      "--name",
                                                                      member.name,
                                                                      "--data-dir",
                                                                      member.directory,
                                                                      "--listen-client-urls",
                                                                      member.url,
                                                                      "--advertise-client-urls",
                                                                      member.url,
                                                                      "--listen-peer-urls",
                                                                      peer,
                                                                      "--initial-advertise-peer-urls",
                                                                      peer,
                                                                      "--initial-cluster",
                                                                      peers,
                                                                      "--initial-cluster-state",
                                                                      "new",
                                                                      "--enable-v2=false",
                                                                      "--logger",
                                                                      "zap",
                                                                      "--log-level",
                                                                      "error",
                                                                      "--heartbeat-interval",
                                                                      "50",
                                                                      "--election-timeout",
                                                                      "500"});
}

void Etcd::kill(std::size_t i) {
  members_.at(i)->process->signal(SIGKILL);
  members_.at(i)->process->wait();
}

void Etcd::empty(std::size_t i) { std::filesystem::remove_all(members_.at(i)->directory); }

void Etcd::set_aside(std::size_t i) {
  auto const& directory = members_.at(i)->directory;
  std::filesystem::rename(directory, directory + ".aside");
}

void Etcd::bring_back(std::size_t i) {
  auto const& directory = members_.at(i)->directory;
  empty(i);
  std::filesystem::rename(directory + ".aside", directory);
}

bool Etcd::answers(std::size_t i) const {
  httplib::Client client(members_.at(i)->url);
  client.set_read_timeout(std::chrono::seconds(2));
  auto const answer = client.Get("/health");
  return answer && answer->status == 200;
}

std::string Etcd::post(std::string const& path, std::string const& json) const {
  httplib::Client client(members_.front()->url);
  client.set_read_timeout(std::chrono::seconds(5));
  auto const answer = client.Post(path, json, "application/json");
  return answer ? answer->body : "";
}

}  // namespace chorus::testing
