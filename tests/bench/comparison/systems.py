"""Who takes part in the all_reduce contest, and how each is started."""
from collections import namedtuple

from .programs import chorus_binary
from .results import OWN

# `name` may end in /variant; of a system's variants the fastest counts. `link` is the transport; the figures also stand
# in the table of each link in `also`. `command(pace, ranks, sizes)` makes a command line that prints JSON rows.
Contender = namedtuple("Contender", "name link also command environment")

Pace = namedtuple("Pace", "seconds iterations warmup")

PEERS = ["openmpi", "mpich", "gloo"]

OPENMPI_TRANSPORTS = {
    "shm": ["--mca", "btl", "self,vader"],
    "tcp": ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"],
}
MPICH_TRANSPORTS = {
    "shm": [],
    "tcp": ["-genv", "MPIR_CVAR_NOLOCAL", "1", "-genv", "UCX_TLS", "tcp,self", "-genv", "UCX_NET_DEVICES", "lo"],
}
GLOO_ALGORITHMS = ["default", "halving_doubling"]


class Systems:
    def __init__(self, workplace, programs, bin_directory, bind):
        self._workplace, self._programs, self._bin, self._bind = workplace, programs, bin_directory, bind

    def contenders(self, links, peers):
        found = [self._chorus(link) for link in links]
        for link in links:
            if "openmpi" in peers:
                found.append(self._openmpi(link))
            if "mpich" in peers:
                found.append(self._mpich(link))
        if "gloo" in peers:
            found += [self._gloo(algorithm, links) for algorithm in GLOO_ALGORITHMS]
        return found

    def _chorus(self, link):
        def command(pace, ranks, sizes):
            return [chorus_binary(self._bin, "chorus-bench"), "--op", "all_reduce", "--ranks", ranks, "--link", link,
                    "--bytes", comma(sizes), "--algorithm", "auto", "--dtype", "f32", "--seconds", pace.seconds,
                    "--iterations", pace.iterations, "--warmup", pace.warmup, "--bind", self._bind,
                    "--json"]
        return Contender(OWN, link, [], command, {})

    def _harness(self, pace, sizes):
        """The flags that all peers' programs share."""
        return ["--shared", self._workplace.new_path("start-line"), "--bytes", comma(sizes), "--seconds", pace.seconds,
                "--iterations", pace.iterations, "--warmup", pace.warmup, "--bind", self._bind]

    def _openmpi(self, link):
        def command(pace, ranks, sizes):
            return ["mpirun.openmpi", "--oversubscribe", "-np", ranks, "--mca", "pml", "ob1", *OPENMPI_TRANSPORTS[link],
                    "--mca", "btl_vader_backing_directory", self._workplace.directory,
                    self._programs.path("openmpi_all_reduce"), *self._harness(pace, sizes)]
        environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                       "TMPDIR": str(self._workplace.directory)}
        return Contender("openmpi", link, [], command, environment)

    def _mpich(self, link):
        def command(pace, ranks, sizes):
            return ["mpirun.mpich", "-np", ranks, *MPICH_TRANSPORTS[link], self._programs.path("mpich_all_reduce"),
                    *self._harness(pace, sizes)]
        return Contender("mpich", link, [], command, {})

    def _gloo(self, algorithm, links):
        def command(pace, ranks, sizes):
            return [self._programs.path("gloo_all_reduce"), "--ranks", ranks, "--algorithm", algorithm,
                    "--store", self._workplace.new_directory("store"), *self._harness(pace, sizes)]
        return Contender(f"gloo/{algorithm}", "tcp", ["shm"] if "shm" in links else [], command, {})


def comma(sizes):
    return ",".join(map(str, sizes))
