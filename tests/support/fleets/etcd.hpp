// A cluster of etcd on loopback.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/held_port.hpp"
#include "tests/support/process.hpp"
#include "tests/support/scratch_directory.hpp"

namespace chorus::testing {

class Etcd {
 public:
  // Waits until etcd answers at `host`, one of this machine's addresses. Throws std::runtime_error if it does not.
  explicit Etcd(std::size_t members = 1, std::string host = "127.0.0.1");

  // Returns why etcd cannot run here, or "".
  [[nodiscard]] static std::string missing();

  [[nodiscard]] std::string urls() const;  // separated by commas
  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] std::uint16_t port(std::size_t member) const { return members_.at(member)->client.number(); }
  [[nodiscard]] std::string const& url(std::size_t member) const { return members_.at(member)->url; }
  void signal(std::size_t member, int number) { members_.at(member)->process->signal(number); }
  void kill(std::size_t member);
  void start(std::size_t member);       // starts a killed member again with its data
  void empty(std::size_t member);       // deletes the data of a killed member
  void set_aside(std::size_t member);   // puts the data of a killed member aside, so that it starts with nothing
  void bring_back(std::size_t member);  // exchanges the data of a killed member for what was put aside
  [[nodiscard]] bool answers(std::size_t member) const;
  // Returns the answer of the API, "" if there is none.
  std::string post(std::string const& path, std::string const& json) const;

 private:
  struct Member {
    std::string name;
    HeldPort client, peer;
    std::string url, directory;
    std::unique_ptr<Process> process;
  };
  std::string const host_;
  ScratchDirectory const here_;
  std::vector<std::unique_ptr<Member>> members_;
  bool is_new_ = true;
};

}  // namespace chorus::testing
