#!/usr/bin/env python3
"""Writes the pages of the reference that are made from the programs and from docs/openapi.json.

    tests/docs/reference.py [--check] [--binaries DIRECTORY]

docs/reference/cli/*.md from `--help` of the programs in DIRECTORY (build/release/bin), docs/reference/rest/*.md from
docs/openapi.json. With --check nothing is written: the exit status is 1 if a page differs from what would be written.
The tables of docs/reference/metrics.md, problems.md, optimizers.md and algorithms.md, and docs/openapi.json itself, are
written and checked by the tests of the code that they are made from (CHORUS_WRITE_DOCS=1).
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs/reference"
MADE = "<!-- Made by tests/docs/reference.py; do not edit. -->\n"
WIDTH = 120
# Values that --help takes from the machine it runs on.
OF_THE_MACHINE = {"--memory-limit-bytes"}
PLANNING = ["plan", "simulate", "algorithms", "crossover", "verify", "bench", "locality", "journal", "token", "health",
            "version"]  # fmt: skip
DIAGNOSIS = ["check", "events", "doctor", "top", "trace"]


def wrapped(text):
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def cell(text):
    return " ".join(text.replace("|", "\\|").split())


def row(*cells):
    return "| " + " | ".join(cell(one) for one in cells) + " |"


def table(head, rows):
    return "\n".join([row(*head), "|---" * len(head) + "|", *(row(*one) for one in rows)])


# --- command line -----------------------------------------------------------------------------------------------------


def help_of(binaries, program, words=()):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CHORUS_")}
    command = [str(binaries / program), *words, "--help"]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout


def sections(text):
    """The help of CLI11: what stands first, the usage, and (title, entries) of what follows; an entry is [name, text]."""
    lines = text.split("\n")
    about, usage, found = lines[0], "", []
    for line in lines[1:]:
        if line.startswith("Usage: "):
            usage = re.sub(r"^Usage: \S*?([\w-]+)(?= |$)", r"\1", line)
        elif re.fullmatch(r"[A-Z]\w+:", line):
            found.append((line[:-1], []))
        elif match := re.fullmatch(r"  (\S.*?)(?:  +(\S.*))?", line):
            if line.startswith("   "):
                found[-1][1][-1][1] += " " + line.strip()
            elif re.match(r"  -\S.* [a-z].*", line) and not match[2] and "(Env:" in line:
                name, _, rest = line.strip().partition(") ")
                found[-1][1].append([name + ")" if rest else name, rest])
            else:
                found[-1][1].append([match[1], match[2] or ""])
        elif line.startswith("      ") and found and found[-1][1]:
            found[-1][1][-1][1] += " " + line.strip()
    return about, usage, found


def option_row(name, text):
    """name: `--port UINT=7070 (Env:CHORUS_PORT)` and what else CLI11 puts there."""
    variable = re.search(r"\(Env:(\w+)\)", name)
    name = re.sub(r" ?\(Env:\w+\)", "", name)
    text = re.sub(r"(?<![`\w-])--[a-z][a-z-]+", lambda flag: f"`{flag[0]}`", text)
    needs = re.search(r" (Needs|Excludes): ((?:--\S+ ?)+)", name)
    if needs:
        name = name.replace(needs[0], "")
        text += f" ({needs[1].lower()} " + ", ".join(f"`{one}`" for one in needs[2].split()) + ")"
    required = " REQUIRED" in name
    name = name.replace(" REQUIRED", "")
    flags, _, kind = name.strip().partition(" ")
    default = ""
    if "=" in kind and not kind.startswith("{"):
        kind, _, default = kind.partition("=")
    kind = kind.replace(" ...", "")
    if limits := re.search(r":(?:INT|UINT) in \[(\d+) - (\d+)\]", kind):
        kind = kind.replace(limits[0], "")
        text += f"; {limits[1]} to {limits[2]}"
    kind = kind.replace(":POSITIVE", "").replace("TEXT:{", "{").replace("TEXT:", "")
    names = flags.split(",")
    if names[0] in OF_THE_MACHINE:
        default = ""
    shown = ", ".join(f"`{one}`" for one in names[:-1]) + (", " if len(names) > 1 else "")
    shown += f"`{names[-1]}{' ' + kind if kind else ''}`"
    if variable:
        shown += f"<br>`{variable[1]}`"
    return shown, "required" if required else f"`{default}`" if default else "", text.strip()


def options(entries):
    kept = [option_row(*one) for one in entries if not one[0].startswith(("-h,--help", "--version"))]
    return table(("option", "default", "meaning"), kept) if kept else ""


def program_page(binaries, program, note):
    about, usage, found = sections(help_of(binaries, program))
    entries = dict(found).get("Options", [])
    return f"# {program}\n\n{MADE}\n{wrapped(about)}\n\n```\n{usage}\n```\n\n{note}\n\n{options(entries)}\n"


def command_text(binaries, words):
    about, usage, found = sections(help_of(binaries, "chorus", words))
    found = dict(found)
    text = f"{'##' if len(words) == 1 else '###'} {words[-1] if len(words) == 1 else ' '.join(words)}\n\n"
    text += wrapped(f"`{' '.join(words)}`: {about}") + "\n\n" if len(words) > 1 else wrapped(about + ".") + "\n\n"
    text += f"```\n{usage}\n```\n\n"
    if found.get("Positionals"):
        rows = [option_row(*one) for one in found["Positionals"]]
        text += table(("argument", "default", "meaning"), rows) + "\n\n"
    if listed := options(found.get("Options", [])):
        text += listed + "\n\n"
    for name, _ in found.get("Subcommands", []):
        text += command_text(binaries, [*words, name])
    return text


def command_line(binaries):
    about, _, found = sections(help_of(binaries, "chorus"))
    found = dict(found)
    names = [name for name, _ in found["Subcommands"]]
    here = {name: "chorus_planning.md" if name in PLANNING else
            "chorus_diagnosis.md" if name in DIAGNOSIS else "chorus.md" for name in names}  # fmt: skip
    body = {page: "".join(command_text(binaries, [name]) if name != "bench" else
                          "## bench\n\nStarts [chorus-bench](chorus-bench.md) with the arguments that follow.\n\n"
                          for name in names if here[name] == page) for page in set(here.values())}  # fmt: skip
    listed = table(("command", "meaning"), [(f"[{name}]({here[name]}#{name})", text) for name, text in found["Subcommands"]])
    codes = "| exit code | meaning |\n|---|---|\n| 0 | done |\n| 1 | failed; the problem is printed |\n"
    codes += "| 2 | wrong usage; nothing was done |\n| 3 | no coordinator was reached |\n"
    asked = row("`--help`", "", "of the command that is named") + "\n" + row("`--version`", "", "which build this is")
    lead = "[The chorus command](../../guides/command_line.md) shows these commands at work."
    environment = "Every flag may come from the environment, by the name under it; a flag that is given counts more."
    return {
        "cli/chorus.md": f"# chorus\n\n{MADE}\n{wrapped(f'{about} {lead}')}\n\n{listed}\n\n## For every command\n\n"
        f"{options(found['Options'])}\n{asked}\n\n{codes}\n{body['chorus.md']}".rstrip() + "\n",
        "cli/chorus_planning.md": f"# chorus: plans, measurements, tokens\n\n{MADE}\n"
        + wrapped("Commands that work without a coordinator, `plan` in part. [chorus](chorus.md) has the others and the options "
                  "that every command takes.") + f"\n\n{body['chorus_planning.md']}".rstrip() + "\n",
        "cli/chorus_diagnosis.md": f"# chorus: diagnosis\n\n{MADE}\n"
        + wrapped("Commands that look at a running service. [chorus](chorus.md) has the others and the options that every "
                  "command takes.") + f"\n\n{body['chorus_diagnosis.md']}".rstrip() + "\n",
        "cli/chorus-coordinator.md": program_page(binaries, "chorus-coordinator", environment),
        "cli/chorus-worker.md": program_page(binaries, "chorus-worker", environment),
        "cli/chorus-bench.md": program_page(
            binaries, "chorus-bench", "`chorus bench` is the same program. Options without a default have one by the measurement."),
    }  # fmt: skip


# --- REST -------------------------------------------------------------------------------------------------------------

# Pages by the beginning of the path; the first that fits.
PAGES = [
    ("workers", "Workers", ("/v1/workers",)),
    ("groups", "Groups and members' calls", ("/v1/groups", "/v1/demo")),
    ("collectives", "Collectives, plans and simulations", ("/v1/collectives", "/v1/plans", "/v1/simulations")),
    ("tensors", "Tensors and clients' memory", ("/v1/tensors", "/v1/shm")),
    ("checkpoints", "Checkpoints", ("/v1/checkpoints",)),
    ("parameters", "Parameters", ("/v1/parameters", "/v1/shards")),
    ("watching", "Events, status, flight recorder, links",
     ("/v1/events", "/v1/status", "/v1/flight", "/v1/links", "/v1/progress", "/v1/clock", "/v1/probe", "/v1/link", "/v1/runs")),
    ("service", "Every service", ("/",)),
]  # fmt: skip
BETWEEN = ("between_services", "Between coordinator and workers")
BETWEEN_SHARDS = ("between_shards", "Between coordinator and workers: shards and checkpoints")


def problem_codes(operation):
    codes = {}
    for status, answer in operation["responses"].items():
        schema = answer.get("content", {}).get("application/problem+json", {}).get("schema", {})
        for part in schema.get("allOf", [])[1:]:
            for code in part["properties"]["code"]["enum"]:
                codes[code] = status
    return codes


def type_of(schema):
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}]({page_of_message(name)}#{name.lower()})"
    if schema.get("type") == "array":
        return "list of " + type_of(schema.get("items", {}))
    if "additionalProperties" in schema and isinstance(schema["additionalProperties"], dict):
        return "map to " + type_of(schema["additionalProperties"])
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return " or ".join(type_of(one) for one in schema[key])
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    kind = schema.get("type", "bytes or text" if not schema else "any")
    return " or ".join(kind) if isinstance(kind, list) else kind


def contents(content):
    shown = []
    for kind, what in content.items():
        schema = what.get("schema", {})
        named = "$ref" in schema or schema.get("type") == "array"
        shown.append(type_of(schema) if kind == "application/json" and named else f"`{kind}`")
    return ", ".join(shown)


def operation_text(method, path, operation, common):
    roles = operation["x-role"]
    same = len(set(roles.values())) == 1
    needs = f"role `{next(iter(roles.values()))}`" if same else ", ".join(f"`{r}` at the {s}" for s, r in roles.items())
    # The site and GitHub do not agree on the anchor of "GET /".
    text = ('<a id="get-root"></a>\n\n' if path == "/" else "") + f"## {method.upper()} {path}\n\n" + wrapped(operation["summary"] + ".") + "\n\n"
    if operation.get("description"):
        text += wrapped(operation["description"]) + "\n\n"
    text += f"At the {' and the '.join(operation['tags'])}; {needs}.\n\n"
    if operation.get("parameters"):
        rows = [(f"`{one['name']}`", one["in"] + (", required" if one.get("required") and one["in"] != "path" else ""),
                 type_of(one["schema"]), one.get("description", "")) for one in operation["parameters"]]  # fmt: skip
        text += table(("parameter", "in", "type", "meaning"), rows) + "\n\n"
    if body := operation.get("requestBody"):
        text += wrapped(f"Body{'' if body.get('required') else ' (optional)'}: {contents(body['content'])}.") + "\n\n"
    rows = []
    for status, answer in operation["responses"].items():
        if "application/problem+json" in answer.get("content", {}) or status.startswith("4"):
            continue
        headers = ", ".join(f"`{name}`" for name in answer.get("headers", {}))
        rows.append((status, answer["description"], contents(answer.get("content", {})), headers))
    text += table(("status", "meaning", "body", "headers"), rows) + "\n\n"
    own = {code: status for code, status in problem_codes(operation).items() if code not in common}
    if own:
        codes = ", ".join(f"{status} `{code}`" for code, status in sorted(own.items(), key=lambda one: (one[1], one[0])))
        text += wrapped(f"Problems: {codes}.") + "\n\n"
    return text


def page_of(path, operation):
    if set(operation["x-role"].values()) == {"join"} and path != "/v1/workers":
        return BETWEEN_SHARDS if path.startswith(("/v1/parameters", "/v1/checkpoints", "/v1/shards")) else BETWEEN
    return next((name, title) for name, title, heads in PAGES if path.startswith(heads))


LETTERS = [("a", "c"), ("d", "k"), ("l", "o"), ("p", "q"), ("r", "r"), ("s", "s"), ("t", "z")]


def page_of_message(name):
    first, last = next(pair for pair in LETTERS if pair[0] <= name[0].lower() <= pair[1])
    return f"messages_{first}_{last}.md"


def message_text(name, schema):
    text = f"## {name}\n\n"
    if schema.get("description"):
        text += wrapped(schema["description"]) + "\n\n"
    required = set(schema.get("required", []))
    rows = [(f"`{key}`", type_of(what), "yes" if key in required else "", what.get("description", ""))
            for key, what in schema.get("properties", {}).items()]  # fmt: skip
    if any(one[3] for one in rows):
        return text + table(("field", "type", "required", "meaning"), rows) + "\n\n"
    return text + table(("field", "type", "required"), [one[:3] for one in rows]) + "\n\n"


def rest():
    document = json.loads((ROOT / "docs/openapi.json").read_text())
    operations = [(method, path, operation) for path, ways in document["paths"].items() for method, operation in ways.items()]
    counts = {}
    for _, _, operation in operations:
        for code, status in problem_codes(operation).items():
            counts.setdefault(code, [0, status])[0] += 1
    common = {code: status for code, (count, status) in counts.items() if count > 0.9 * len(operations)}
    texts, listed = {}, {}
    for method, path, operation in operations:
        page = page_of(path, operation)
        texts[page] = texts.get(page, "") + operation_text(method, path, operation, common)
        anchor = re.sub(r"[^\w\- ]", "", f"{method} {path}".lower()).replace(" ", "-") if path != "/" else "get-root"
        listed.setdefault(page, []).append((f"[{method.upper()} {path}]({page[0]}.md#{anchor})", operation["summary"]))
    order = [(name, title) for name, title, _ in PAGES] + [BETWEEN, BETWEEN_SHARDS]
    index = f"# REST\n\n{MADE}\n" + wrapped(
        "Every operation of coordinator and workers, made from [openapi.json](../../openapi.json), which both services serve "
        "at `/openapi.json`. A token's role includes those before it: `read`, `submit`, `join`, `admin`; `open` needs none. "
        "Where GET stands, HEAD does. Lists are `{items, next_cursor}`. "
        "Every problem has a page of the [reference](../problems.md); [everything with curl](../../guides/cookbook.md) "
        "shows the operations at work.") + "\n\n"  # fmt: skip
    codes = ", ".join(f"{status} `{code}`" for code, status in sorted(common.items(), key=lambda one: (one[1], one[0])))
    index += wrapped(f"Nearly every operation can answer with these problems, which the pages do not repeat: {codes}.") + "\n\n"
    for page in order:
        index += f"## {page[1]}\n\n" + table(("operation", "meaning"), listed[page]) + "\n\n"
    letters = [f"[{first.upper()} to {last.upper()}](messages_{first}_{last}.md)" for first, last in LETTERS]
    index += "## Messages\n\n" + wrapped("The JSON objects by their first letter: " + ", ".join(letters) + ".") + "\n"
    pages = {"rest/index.md": index.rstrip() + "\n"}
    for page in order:
        pages[f"rest/{page[0]}.md"] = f"# {page[1]}\n\n{MADE}\n" + texts[page].rstrip() + "\n"
    for first, last in LETTERS:
        names = [name for name in document["components"]["schemas"] if first <= name[0].lower() <= last]
        text = f"# Messages {first.upper()}{f' to {last.upper()}' if last != first else ''}\n\n{MADE}\n" + wrapped(
            "The JSON objects of [REST](index.md). Fields that are not required may be left out.") + "\n\n"  # fmt: skip
        text += "".join(message_text(name, document["components"]["schemas"][name]) for name in names)
        pages[f"rest/messages_{first}_{last}.md"] = text.rstrip() + "\n"
    return pages


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page differs")
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "build/release/bin")
    arguments = parser.parse_args()
    pages = {**command_line(arguments.binaries), **rest()}
    stale = []
    for name, text in pages.items():
        path = DOCS / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not arguments.check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    for folder in ("cli", "rest"):
        for path in (DOCS / folder).glob("*.md"):
            if f"{folder}/{path.name}" not in pages:
                stale.append(f"{folder}/{path.name} (made by nothing)")
    if arguments.check:
        print(*(f"docs/reference/{one} is not what tests/docs/reference.py makes" for one in stale), sep="\n")
        print(f"{len(pages)} pages, {len(stale)} differ")
        return 1 if stale else 0
    print(f"{len(pages)} pages, {len(stale)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
