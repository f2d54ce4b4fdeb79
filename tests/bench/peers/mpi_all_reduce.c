/* MPI_Allreduce, compiled once with each MPI: see harness.h for what is measured and for the flags. */
#include <mpi.h>

#include "bound.h"
#include "harness.h"

static struct vectors* vectors;

static void prepare(void* state, struct vectors* ours) {
  (void)state;
  vectors = ours;
}

static void barrier(void* state) {
  (void)state;
  MPI_Barrier(MPI_COMM_WORLD);
}

static void all_reduce(void* state, int which) {
  (void)state;
  MPI_Allreduce(vectors->input[which], vectors->output, (int)vectors->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  die_with_parent();
  stay_on_core(argc, argv, told("OMPI_COMM_WORLD_RANK", "PMI_RANK"), told("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"));
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  struct peer const peer = {NULL, false, prepare, barrier, NULL, all_reduce};
  measure_all(argc, argv, &peer, (uint32_t)rank, (uint32_t)ranks);
  MPI_Finalize();
  return 0;
}
