// A C program that is a worker: all members of the group "training" add up a vector, and check the sum.
//
//   all_reduce COORDINATOR_URL ID     e.g. all_reduce http://127.0.0.1:7070 w0, and so on for the others
#include <chorus/chorus.h>
#include <stdio.h>

enum { elements = 1000 };

static int fail(char const* what, chorus_error_t const* error) {
  fprintf(stderr, "%s: %s: %s\n", what, chorus_status_name(chorus_error_status(error)), chorus_error_text(error));
  uint32_t const* ranks = NULL;
  size_t const count = chorus_error_ranks(error, &ranks);
  for (size_t i = 0; i < count; ++i) fprintf(stderr, "  rank %u\n", ranks[i]);
  return 1;
}

// Rank r has r + i in element i. Blocks in the first round; in the second it computes while the call goes on.
static int train(chorus_worker_t* worker, chorus_group_t* group, chorus_error_t* error) {
  chorus_group_info_t info = {.size = sizeof info};
  if (chorus_group_describe(group, &info, error) != CHORUS_OK) return fail("describe", error);
  chorus_memory_t* memory = NULL;  // where the others read it without a copy
  if (chorus_memory_allocate(worker, elements * sizeof(float), &memory, error) != CHORUS_OK)
    return fail("allocate", error);
  float* const values = chorus_memory_data(memory);
  chorus_tensor_t const vector = {.data = values, .elements = elements, .dtype = CHORUS_F32};
  int wrong = 0;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < elements; ++i) values[i] = (float)(info.rank + (uint32_t)i);
    chorus_request_t* request = NULL;
    chorus_status_t status = round == 0 ? chorus_all_reduce(group, NULL, &vector, NULL, error)
                                        : chorus_all_reduce_async(group, NULL, &vector, NULL, &request, error);
    if (status == CHORUS_OK && request != NULL) status = chorus_request_wait(request, error);
    chorus_request_free(request);
    if (status != CHORUS_OK) return fail("all_reduce", error);
    float const ranks_sum = (float)(info.ranks * (info.ranks - 1) / 2);
    for (int i = 0; i < elements; ++i) wrong += values[i] != ranks_sum + (float)info.ranks * (float)i;
  }
  chorus_memory_free(memory);
  char const* path = "";
  if (chorus_group_path(group, &path, error) != CHORUS_OK) return fail("path", error);
  printf("rank %u of %u over %s: %s\n", info.rank, info.ranks, path, wrong == 0 ? "right" : "WRONG");
  if (chorus_barrier(group, NULL, error) != CHORUS_OK)
    return fail("barrier", error);  // none leaves before all are done
  return wrong != 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  chorus_error_t* const error = chorus_error_create();
  chorus_worker_options_t const options = {.size = sizeof options, .coordinator = argv[1], .id = argv[2]};
  chorus_worker_t* worker = NULL;
  chorus_group_t* group = NULL;
  int result = 0;
  if (chorus_worker_start(&options, &worker, error) != CHORUS_OK)
    result = fail("start", error);
  else if (chorus_worker_join(worker, "training", 30000, &group, error) != CHORUS_OK)
    result = fail("join", error);
  else
    result = train(worker, group, error);
  chorus_group_free(group);
  chorus_worker_free(worker);
  chorus_error_free(error);
  return result;
}
