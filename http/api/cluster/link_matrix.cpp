#include "http/api/cluster/link_matrix.hpp"

#include "http/api/described.hpp"

CHORUS_HTTP_MESSAGE(chorus::api::LinkMatrix)
