"""PUT and GET of one large tensor: a worker beside nginx, both held against a raw socket that moves the same bytes."""
from . import nginx
from .processes import Failure, need_json
from .results import median, readable_size
from .rounds import rotated
from .service import Cluster, port_of

TENSOR_BYTES = 64 << 20
SHARE_OF_SOCKET = 0.8
SLACK_BYTES = 64 << 20
SYSTEMS = ["raw socket", "chorus", "nginx"]


class Contest:
    def __init__(self, workplace, programs, bin_directory, calls, timeout):
        self._programs, self._calls, self._timeout = programs, calls, timeout
        self._cluster = Cluster(workplace, bin_directory, 1)
        self._nginx_port = nginx.start(workplace)
        self.times_us = {(system, method): [] for system in SYSTEMS for method in ("PUT", "GET")}

    def round(self, number):
        for turn in rotated([self._socket, self._worker, self._nginx], number):
            turn(number)

    def _socket(self, _):
        for line in need_json([self._programs.path("raw_socket"), "--bytes", TENSOR_BYTES, "--count", self._calls],
                              self._timeout):
            self._take("raw socket", line)

    def _worker(self, number):
        headers = f"Content-Type: application/octet-stream\\nTensor-Dtype: f32\\nTensor-Shape: {TENSOR_BYTES // 4}"
        port = port_of(self._cluster.workers[0])
        self._take("chorus", self._client(port, "PUT", "/v1/tensors/x", number, headers))
        self._take("chorus", self._client(port, "GET", "/v1/tensors/x", number, ""))

    def _nginx(self, number):
        for method in ("PUT", "GET"):
            self._take("nginx", self._client(self._nginx_port, method, "/x", number, ""))

    def resident_bytes(self):
        return self._cluster.resident_bytes(0)

    def _client(self, port, method, path, turn, headers):
        return need_json([self._programs.path("http_client"), "--port", port, "--method", method, "--path", path,
                          "--headers", headers, "--bytes", TENSOR_BYTES, "--count", self._calls, "--turn", turn],
                         self._timeout)[0]

    def _take(self, system, line):
        if not line["correct"]:
            raise Failure(f"{system} gave back other bytes than it got")
        self.times_us[system, line["method"]].append(median(line["times_us"]))


def measure(workplace, programs, bin_directory, rounds, calls, timeout):
    """Medians of each round in microseconds by (system, method), and the worker's largest resident memory."""
    contest = Contest(workplace, programs, bin_directory, calls, timeout)
    for number in range(rounds):
        contest.round(number)
    return contest.times_us, contest.resident_bytes()


def table(times_us):
    header = ["what", *[f"{system} ms" for system in SYSTEMS], "chorus GB/s", "of the socket", "nginx/chorus", "target",
              "reached"]
    rows = []
    for method in ("PUT", "GET"):
        socket, chorus, other = (median(times_us[system, method]) for system in SYSTEMS)
        share = socket / chorus
        rows.append([f"{method} {readable_size(TENSOR_BYTES)}",
                     *[f"{time / 1000:.1f}" for time in (socket, chorus, other)],
                     f"{TENSOR_BYTES / chorus / 1000:.2f}", f"{share:.0%}", f"{other / chorus:.2f}",
                     f"{SHARE_OF_SOCKET:.0%}", "yes" if share >= SHARE_OF_SOCKET else "NO"])
    return header, rows


def memory_table(resident_bytes):
    allowed = 2 * TENSOR_BYTES + SLACK_BYTES
    return (["what", "resident MiB", "target MiB", "reached"],
            [[f"a worker that was given {readable_size(TENSOR_BYTES)} again and again", f"{resident_bytes / 2**20:.0f}",
              f"{allowed >> 20}", "yes" if resident_bytes <= allowed else "NO"]])
