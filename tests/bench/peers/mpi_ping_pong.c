/* MPI_Send and MPI_Recv to and fro between two ranks, compiled once with each MPI: half a round trip counts, as in
 * tests/bench/api/ping_pong.cpp. Flags: --bytes 4,1024 --seconds 0.3. Prints a JSON line for each size. */
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>

#include "arguments.h"
#include "harness.h"
#include "measure.h"

enum { TRIPS_MAX = 10000, TRIPS_MIN = 3, WARMUP = 5 };

static double seconds[TRIPS_MAX];
static uint32_t turns;
static bool wrong;

static void run(int rank, uint32_t* sent, uint32_t* received, int count, long trips) {
  for (long trip = 0; trip < trips; ++trip) {
    ++turns;
    if (rank == 0) sent[0] = sent[count - 1] = turns;
    double const begin = now_seconds();
    if (rank == 0) MPI_Send(sent, count, MPI_UINT32_T, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(received, count, MPI_UINT32_T, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(received, count, MPI_UINT32_T, 0, 0, MPI_COMM_WORLD);
    seconds[trip] = (now_seconds() - begin) / 2;
    wrong = wrong || received[0] != turns || received[count - 1] != turns;
  }
}

static void measure(int rank, size_t bytes, double wanted) {
  int const count = (int)(bytes / sizeof(uint32_t));
  uint32_t* const sent = new_pages(bytes);
  uint32_t* const received = new_pages(bytes);
  run(rank, sent, received, count, WARMUP);
  qsort(seconds, WARMUP, sizeof(double), compare_doubles);
  double const least = seconds[0] > 1e-9 ? seconds[0] : 1e-9;
  long trips = (long)(wanted / least / 2);
  trips = trips < TRIPS_MIN ? TRIPS_MIN : trips > TRIPS_MAX ? TRIPS_MAX : trips;
  MPI_Bcast(&trips, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  run(rank, sent, received, count, trips);
  if (rank == 0) {
    qsort(seconds, (size_t)trips, sizeof(double), compare_doubles);
    printf("{\"op\":\"ping_pong\",\"bytes\":%zu,\"iterations\":%ld,\"p50_us\":%.3f,\"correct\":%s}\n", bytes, trips,
           seconds[trips / 2] * 1e6, wrong ? "false" : "true");
    fflush(stdout);
  }
  free_pages(sent);
  free_pages(received);
}

static void stay_on(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char** argv) {
  die_with_parent();
  char const* const openmpi = getenv("OMPI_COMM_WORLD_RANK");
  char const* const mpich = getenv("PMI_RANK");
  stay_on(atoi(openmpi != NULL ? openmpi : mpich != NULL ? mpich : "0"));
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double const wanted = atof(argument(argc, argv, "--seconds", "0.3"));
  char* left = NULL;
  for (char const* at = argument(argc, argv, "--bytes", "4"); *at != 0; at = *left == ',' ? left + 1 : left)
    measure(rank, strtoull(at, &left, 10), wanted);
  MPI_Finalize();
  return 0;
}
