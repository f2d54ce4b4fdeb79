"""The small programs of tests/bench/peers, built where they are out of date."""
import shutil
import tempfile
from pathlib import Path

from .processes import Failure, run

SOURCES = Path(__file__).resolve().parent.parent / "peers"
FLAGS = ["-O3", "-march=native", "-Wall", "-Wextra", "-D_GNU_SOURCE"]

# What is built: compiler, source, what comes behind it.
RECIPES = {
    "openmpi_all_reduce": ("mpicc.openmpi", "mpi_all_reduce.c", []),
    "mpich_all_reduce": ("mpicc.mpich", "mpi_all_reduce.c", []),
    "openmpi_ping_pong": ("mpicc.openmpi", "mpi_ping_pong.c", []),
    "mpich_ping_pong": ("mpicc.mpich", "mpi_ping_pong.c", []),
    "gloo_all_reduce": ("g++", "gloo_all_reduce.cpp", ["-std=c++20", "-lgloo", "-pthread"]),
    "raw_socket": ("gcc", "raw_socket.c", []),
    "http_client": ("gcc", "http_client.c", []),
    "core_speed": ("gcc", "core_speed.c", ["-pthread"]),
    "memory_bandwidth": ("gcc", "memory_bandwidth.c", ["-pthread"]),
    "bare_all_reduce": ("gcc", "bare_all_reduce.c", []),
    "bare_pair": ("gcc", "bare_pair.c", []),
    "bare_fused": ("gcc", "bare_fused.c", []),
    "bare_launch": ("gcc", "bare_launch.c", []),
    "parameter_traffic": ("g++", "parameter_traffic.cpp", ["-std=c++20", "-pthread"]),
}


# What a compiler compiles and links if it is whole. Debian's openmpi-bin has mpicc.openmpi, and libopenmpi-dev the rest.
NOTHING = "int main(void) { return 0; }"
PROBES = {
    "mpicc.openmpi": "#include <mpi.h>\nint main(int argc, char** argv) { return MPI_Init(&argc, &argv); }",
    "mpicc.mpich": "#include <mpi.h>\nint main(int argc, char** argv) { return MPI_Init(&argc, &argv); }",
}


def what_is_missing(compiler):
    """Why nothing can be compiled with it, or None."""
    if not shutil.which(compiler):
        return f"{compiler} is not installed"
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "probe.c"
        source.write_text(PROBES.get(compiler, NOTHING) + "\n")
        _, problem = run([compiler, "-x", "c", source, "-o", source.with_suffix("")], timeout=60)
    if not problem:
        return None
    first = next((line.strip() for line in str(problem).splitlines() if line.strip()), "")
    return f"{compiler} is installed in part only, and compiles no small program: {first}"


class Programs:
    def __init__(self, directory):
        self._directory = Path(directory)

    def path(self, name):
        """Builds the program first where its sources are newer."""
        compiler, source, behind = RECIPES[name]
        binary = self._directory / name
        newest = max(file.stat().st_mtime for file in [*SOURCES.glob("*.h*"), SOURCES / source])
        if binary.exists() and binary.stat().st_mtime > newest:
            return binary
        if missing := what_is_missing(compiler):
            raise Failure(f"{missing}: docker/install-deps bench installs it")
        self._directory.mkdir(parents=True, exist_ok=True)
        unfinished = binary.with_suffix(".new")
        _, problem = run([compiler, *FLAGS, SOURCES / source, "-o", unfinished, *behind], timeout=120)
        if problem:
            raise Failure(f"{source} does not compile with {compiler}: {problem}")
        unfinished.replace(binary)
        return binary


def chorus_binary(directory, name):
    path = Path(directory) / name
    if not path.exists():
        raise Failure(f"{path} is missing: build it with `cmake --preset release && cmake --build --preset release "
                      f"--target {name}`, or say where it is with --bin")
    return path
