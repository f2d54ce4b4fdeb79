// Chorus in a C program: the one header to include. See docs/reference/c_api.md.
//
//   chorus_error_t* error = chorus_error_create();
//   chorus_worker_options_t options = {.size = sizeof options, .coordinator = "http://127.0.0.1:7070"};
//   chorus_worker_t* worker = NULL;
//   chorus_group_t* group = NULL;
//   if (chorus_worker_start(&options, &worker, error) != CHORUS_OK) ...
//   if (chorus_worker_join(worker, "training", 60000, &group, error) != CHORUS_OK) ...
//   chorus_tensor_t gradient = {.data = values, .elements = 1000, .dtype = CHORUS_F32};
//   if (chorus_all_reduce(group, NULL, &gradient, NULL, error) != CHORUS_OK) puts(chorus_error_text(error));
#ifndef CHORUS_CHORUS_H
#define CHORUS_CHORUS_H

#include <chorus/collectives.h>
#include <chorus/coordinator.h>
#include <chorus/group.h>
#include <chorus/memory.h>
#include <chorus/message.h>
#include <chorus/request.h>
#include <chorus/status.h>
#include <chorus/worker.h>

#endif
