/* Flags of the small programs here, each `--name value`; C and C++. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value that follows `--name`; `otherwise` where the flag is not given. */
static inline char const* argument(int argc, char** argv, char const* name, char const* otherwise) {
  for (int i = 1; i + 1 < argc; i += 2)
    if (strcmp(argv[i], name) == 0) return argv[i + 1];
  return otherwise;
}

/* Ends the program with status 2 where the flag is not given. */
static inline char const* needed_argument(int argc, char** argv, char const* name) {
  char const* const value = argument(argc, argv, name, NULL);
  if (value == NULL) {
    fprintf(stderr, "%s is needed\n", name);
    exit(2);
  }
  return value;
}

/* Ends the program with status 2 where the text is not a number. */
static inline double number_of(char const* name, char const* text) {
  char* end = NULL;
  errno = 0;
  double const value = text == NULL ? -1 : strtod(text, &end);
  if (text == NULL || end == text || *end != '\0' || errno != 0 || value < 0) {
    fprintf(stderr, "%s needs a number, not %s\n", name, text == NULL ? "nothing" : text);
    exit(2);
  }
  return value;
}

static inline double number_argument(int argc, char** argv, char const* name, char const* otherwise) {
  return number_of(name, argument(argc, argv, name, otherwise));
}
