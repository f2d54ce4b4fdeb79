// Source of a target that is nothing but its precompiled header.
