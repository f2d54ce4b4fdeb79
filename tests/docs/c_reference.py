#!/usr/bin/env python3
"""Writes docs/reference/c_api.md from the comments of library/include/chorus/*.h.

    tests/docs/c_reference.py [--check]

With --check nothing is written: the exit status is 1 if the page differs from what would be written. The comment before a
declaration becomes its text; a declaration without one is an error.
"""

import argparse
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "library/include/chorus"
PAGE = ROOT / "docs/reference/c_api.md"
WIDTH = 120
SECTIONS = {  # in the order of the page
    "status": "Version, statuses and errors",
    "worker": "Workers",
    "coordinator": "Coordinators",
    "memory": "Memory",
    "group": "Groups",
    "collectives": "Collectives",
    "request": "Requests",
    "message": "Messages",
}
INTRODUCTION = """# The C API

<!-- Made by tests/docs/c_reference.py from library/include/chorus/*.h; do not edit. -->

A C program is a worker by itself, as a program on the [C++ API](cpp_api.md) is: it joins a group, and calls collectives
on its own memory. It includes one header, and links `libchorus.so.0`: [linking a program](../guides/linking.md).
`examples/c_api/all_reduce.c` is a whole program.

```c
{example}
```

What holds for all functions:

- A function that can fail returns a `chorus_status_t`, takes a `chorus_error_t` last, which may be NULL, and puts what it
  makes where a pointer says; after a failure that is NULL.
- A NULL handle, a struct of a wrong size, an unknown number, and tensors that do not fit are `CHORUS_BAD_ARGUMENT` with a
  sentence that names the argument. A handle that was freed, and memory that is not there, are not noticed.
- Strings and lists that are handed over are copied. Tensors are not: their memory is in use until the call has ended.
- Structs with `size` may grow: a program that was compiled with an older header goes on, and so does one with a newer
  header that uses nothing new. Numbers of enumerations are for ever.
- No C++ exception comes out of the library. Errors are objects of the caller, not a state of the thread.

"""


class Mistake(Exception):
    pass


def paragraphs(comment):
    """Lines of a comment as wrapped paragraphs of Markdown."""
    text = " ".join(comment)
    text = re.sub(r"(?<![\w`])((?:chorus_|CHORUS_)\w+(?:\(\))?)", r"`\1`", text)
    text = re.sub(r"\bNULL\b(?!`)", "`NULL`", text)
    text = re.sub(r"(?<![\w`*])\*(\w+)", r"`*\1`", text)
    text = re.sub(r"<(\w[\w ]*)>", r"&lt;\1&gt;", text)
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def blocks(text, name):
    """(comment, declaration) of what stands between blank lines; a comment by itself has no declaration."""
    body = text.split("\n")
    begin = next(i for i, line in enumerate(body) if line.startswith("#ifndef"))
    found = [([line[2:].strip() for line in body[:begin]], [])]
    comment, lines = [], []
    skipping = False
    for line in body[begin:] + [""]:
        if line.startswith("#"):
            skipping = line.startswith("#if") or (skipping and not line.startswith("#endif"))
            if not re.match(r"#define CHORUS_VERSION", line):
                continue
        if skipping and not line.startswith("#define CHORUS_VERSION"):
            continue
        if line.startswith("//") and not lines:
            comment.append(line[2:].strip())
        elif line.strip():
            lines.append(line)
        elif lines:
            if not comment:
                raise Mistake(f"{name}: a declaration without a comment: {lines[0]}")
            found.append((comment, lines))
            comment, lines = [], []
    return found


def merged(found):
    """Functions that begin the calls of another header stand together, under the comment of the first."""
    result = []
    for comment, lines in found:
        if comment[0].startswith("Begins ") and result and result[-1][0][0].startswith("Begins "):
            result[-1][1].extend(lines)
        else:
            result.append((list(comment), list(lines)))
    return result


def section(name, title):
    text = (HEADERS / f"{name}.h").read_text()
    first, *rest = blocks(text, f"{name}.h")
    parts = [f"## {title}"]
    about, paragraph = [], []
    for line in first[0] + [""]:
        if line:
            paragraph.append(line)
        elif paragraph:
            about.append(paragraphs(paragraph))
            paragraph = []
    parts += about
    for comment, lines in merged(rest):
        declaration = "\n".join(lines)
        declared = re.search(r"CHORUS_API [^(]*?(\w+)\(", declaration)
        if declared:
            parts.append(f"### `{declared[1]}`")
            declaration = re.sub(r"^(CHORUS_API | {11})", "", declaration, flags=re.M)
        elif named := re.search(r"^} (\w+);|^typedef [^{]*?(\w+);", declaration, re.M):
            parts.append(f"### `{named[1] or named[2]}`")
        parts += [paragraphs(comment), f"```c\n{declaration}\n```"]
    return "\n\n".join(parts) + "\n"


def page():
    lines = (HEADERS / "chorus.h").read_text().split("\n")
    example = [line[5:] for line in lines if line.startswith("//   ")]
    text = INTRODUCTION.replace("{example}", "\n".join(example))
    return text + "\n".join(section(*one) for one in SECTIONS.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page differs")
    arguments = parser.parse_args()
    missing = {path.stem for path in HEADERS.glob("*.h")} - set(SECTIONS) - {"chorus"}
    if missing:
        print(f"library/include/chorus has headers that are in no section: {', '.join(sorted(missing))}")
        return 1
    try:
        text = page()
    except Mistake as mistake:
        print(mistake)
        return 1
    if PAGE.exists() and PAGE.read_text() == text:
        print("docs/reference/c_api.md is what the headers say")
        return 0
    if arguments.check:
        print("docs/reference/c_api.md is not what tests/docs/c_reference.py makes")
        return 1
    PAGE.write_text(text)
    print("docs/reference/c_api.md was written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
