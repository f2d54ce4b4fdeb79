"""Child processes that end: each has a time limit, and none outlives the run."""
import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path


class Failure(Exception):
    """Something that could not be measured, in words for people."""


class Workplace:
    """A directory in memory, which is removed with everything in it, and the services that run meanwhile."""

    def __enter__(self):
        in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.directory = Path(tempfile.mkdtemp(prefix="chorus-compare-", dir=in_memory))
        self._services = []
        self._names = 0
        return self

    def __exit__(self, *_):
        self.stop_services()
        shutil.rmtree(self.directory, ignore_errors=True)

    def new_path(self, name):
        self._names += 1
        return self.directory / f"{name}-{self._names}"

    def new_directory(self, name):
        path = self.new_path(name)
        path.mkdir()
        return path

    def start(self, name, command, **popen):
        """A service that runs until stop_services()."""
        log = self.new_path(name)
        with open(log, "wb") as errors:
            process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=errors, start_new_session=True, **popen)
        service = Service(name, process, log)
        self._services.append(service)
        return service

    def stop_services(self):
        while self._services:
            self._services.pop().stop()


class Service:
    def __init__(self, name, process, log):
        self.name, self.process, self._log = name, process, log

    @property
    def pid(self):
        return self.process.pid

    def wait_for_line(self, prefix, timeout=20):
        """What follows the prefix in the first line of the output that begins with it."""
        deadline = time.monotonic() + timeout
        received = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while selector.select(max(deadline - time.monotonic(), 0)):
                chunk = os.read(self.process.stdout.fileno(), 4096)
                received += chunk
                for line in received.decode(errors="replace").splitlines():
                    if line.startswith(prefix) and received.endswith(b"\n"):
                        return line[len(prefix):]
                if not chunk:
                    break
        raise Failure(f"{self.name} did not start: {self.last_words()}")

    def last_words(self):
        return last_line(self._log.read_text(errors="replace")) or "it said nothing"

    def stop(self):
        end(self.process)


def last_line(words):
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def end(process, patience=5):
    """Politely first: mpirun then ends its ranks by itself. Whatever else is left of the process group goes after it,
    and the memory that it shared."""
    shared = set()
    if process.poll() is None:
        shared = shared_files_of(process.pid)
        process.terminate()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    if process.stdout:
        process.stdout.close()
    for file in shared:
        file.unlink(missing_ok=True)


def shared_files_of(group):
    """Files in /dev/shm that the group's processes have mapped: who is killed cannot remove them any more."""
    found = set()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(directory.name)) != group:
                continue
            for line in (directory / "maps").read_text().splitlines():
                name = line.split(maxsplit=5)[-1]
                if name.startswith("/dev/shm/") and not name.endswith(" (deleted)"):
                    found.add(Path(name))
        except OSError:
            continue
    return found


def run(command, timeout, environment=None):
    """The output of a command, and why it is not all of it: None if it is."""
    command = list(map(str, command))
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                       env={**os.environ, **(environment or {})}, start_new_session=True)
        except OSError as error:
            return "", f"{command[0]}: {error.strerror}"
        output, problem = b"", None
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as expired:
            output, problem = expired.output or b"", f"not finished after {timeout:g} s"
        finally:
            end(process)
        if problem is None and process.returncode != 0:
            errors.seek(0)
            words = errors.read().decode(errors="replace")
            problem = telling_line(words) or f"ended with status {process.returncode}"
    return output.decode(errors="replace"), problem


def telling_line(words):
    """Of what a program said on stderr, the last line that is not a frame or a rule."""
    lines = [line.strip() for line in words.splitlines() if any(character.isalnum() for character in line)]
    return lines[-1][:200] if lines else ""


def run_for_json(command, timeout, environment=None):
    """The lines of output that are JSON objects, as far as there are any, and why there are no more."""
    output, problem = run(command, timeout, environment)
    found = []
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                problem = problem or f"not JSON: {line[:80]}"
    return found, problem


def need_json(command, timeout, environment=None):
    found, problem = run_for_json(command, timeout, environment)
    if problem or not found:
        raise Failure(problem or f"{command[0]} printed nothing")
    return found
