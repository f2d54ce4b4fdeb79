#!/usr/bin/env python3
"""Writes problems.py and the messages of the package from docs/reference/problems.md and docs/openapi.json.

python/tools/generate.py          write the files
python/tools/generate.py --check  exit with 1 where a file differs from what would be written
"""

import json
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python/src/chorus"
MADE = "Made by python/tools/generate.py; do not edit."

# Python names of messages that would otherwise be called as the objects of the library.
NAMES = {
    "Worker": "WorkerInfo",
    "Group": "GroupInfo",
    "Collective": "CollectiveRecord",
    "LocalReport": "CallReport",
    "Parameter": "ParameterInfo",
}
MODULES = {
    "groups": ("workers, groups, tensors and events", ["Worker", "Group", "TensorInfo", "LocalReport", "Event"]),
    "collectives": ("collectives and their progress", ["Collective", "RunProgress"]),
    "parameters": ("parameters and checkpoints", ["Parameter", "PushAnswer", "CheckpointAnswer"]),
    "plans": ("plans and simulations", ["PlanAnswer", "SimulationAnswer"]),
}
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def camel(code: str) -> str:
    return "".join(part.capitalize() for part in code.split("_"))


def problem_rows() -> Iterator[list[str]]:
    page = (ROOT / "docs/reference/problems.md").read_text()
    for line in re.findall(r"^\| `.*$", page, re.M):
        yield [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]


def problems() -> str:
    """One exception per code. Problems of status 404 derive from NotFound, what two ranks see from Mismatch."""
    rows = sorted(problem_rows(), key=lambda row: row[0] != "not_found")
    body = [f'"""One exception per problem code.\n\n{MADE}\n"""\n\nfrom .errors import ChorusError\n']
    for code, status, title, *_ in rows:
        base = "NotFound" if status == "404" and code != "not_found" else "ChorusError"
        if code == "deadline_exceeded":
            base = "ChorusError, TimeoutError"
        if code == "plan_mismatch":
            base = "Mismatch"
        body.append(f'\n\nclass {camel(code)}({base}, code="{code}"):\n    """{title} (status {status})."""\n')
    return "".join(body) + f"\n\n{listed([camel(row[0]) for row in rows])}"


def references(schema: dict[str, Any]) -> list[str]:
    return re.findall(r"#/components/schemas/(\w+)", json.dumps(schema))


def python_type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return NAMES.get(name, name)
    if "anyOf" in schema:
        return " | ".join(python_type(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list[{python_type(schema['items'])}]"
    return SCALARS[schema["type"]]


def message(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", [])
    lines = ["@dataclasses.dataclass(frozen=True)", f"class {NAMES.get(name, name)}:"]
    lines += [f'    """Message ``{name}`` of the REST interface."""', ""]
    fields: list[tuple[bool, str]] = []
    for field, kind in schema["properties"].items():
        written = python_type(kind)
        if field in required:
            fields.append((False, f"    {field}: {written}"))
        elif written.startswith("list["):
            fields.append((True, f"    {field}: {written} = dataclasses.field(default_factory=list)"))
        else:
            fields.append((True, f"    {field}: {written} | None = None"))
    lines += [text for _, text in sorted(fields, key=lambda field: field[0])]
    return "\n".join(lines)


def closure(roots: list[str], schemas: dict[str, Any], done: list[str]) -> None:
    """Appends roots and all that they refer to, what is referred to first."""
    for name in roots:
        if name not in done:
            closure([other for other in references(schemas[name]) if other != name], schemas, done)
            if name not in done:
                done.append(name)


def listed(names: list[str]) -> str:
    return "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names)) + "]\n"


def messages() -> Iterator[tuple[str, str]]:
    schemas = json.loads((ROOT / "docs/openapi.json").read_text())["components"]["schemas"]
    done: list[str] = []
    module_of: dict[str, str] = {}
    for module, (title, roots) in MODULES.items():
        before = len(done)
        closure(roots, schemas, done)
        here = done[before:]
        used: dict[str, set[str]] = {}
        for other in {other for name in here for other in references(schemas[name])} & module_of.keys():
            used.setdefault(module_of[other], set()).add(NAMES.get(other, other))
        module_of.update({name: module for name in here})
        bodies = [message(name, schemas[name]) for name in here]
        text = f'"""Messages about {title}.\n\n{MADE}\n"""\n\nimport dataclasses\n'
        text += "\n" * bool(used)
        text += "".join(f"from .{other} import {', '.join(sorted(names))}\n" for other, names in sorted(used.items()))
        text += "".join(f"\n\n{body}\n" for body in bodies)
        yield f"messages/{module}.py", f"{text}\n\n{listed([NAMES.get(name, name) for name in here])}"
    text = f'"""Messages of the REST interface.\n\n{MADE}\n"""\n\n'
    for module in sorted(MODULES):
        names = sorted(NAMES.get(name, name) for name in done if module_of[name] == module)
        text += f"from .{module} import (\n" + "".join(f"    {name},\n" for name in names) + ")\n"
    yield "messages/__init__.py", f"{text}\n{listed([NAMES.get(name, name) for name in done])}"


def main(arguments: list[str]) -> int:
    different = 0
    for name, text in [("problems.py", problems()), *messages()]:
        path = PACKAGE / name
        if "--check" in arguments:
            if not path.exists() or path.read_text() != text:
                print(f"python/src/chorus/{name} is not what python/tools/generate.py writes")
                different = 1
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return different


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
