#!/usr/bin/env python3
"""Checks the pages of the documentation: links and anchors, width and length, navigation, routes.

    tests/docs/check_pages.py

Every link of README.md, CHANGELOG.md, SECURITY.md and docs/ leads to a file and an anchor that exist, in the repository
and on the site. Lines of prose have at most 120 columns; rows of tables, blocks of code and links that cannot be wrapped
are exempt. Pages have at most 300 lines; those that are longer are listed in LONG with a reason. Every page is in the
navigation of mkdocs.yml and in docs/index.md. Every route that a page names is an operation of
docs/openapi.json, and every page that a source names exists.
"""

import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH, LENGTH = 120, 300
EXAMPLES = {"PUT /echo"}  # routes that are no operations
LONG = {
    "docs/reference/algorithms.md": "printed by `chorus algorithms --markdown`: one section per algorithm",
    "docs/reference/benchmarks.md": "made by tests/bench/page: every measured figure, on one page",
    "docs/reference/c_api.md": "made by tests/docs/c_reference.py: one section per function of the header",
    "docs/guides/runbooks.md": "one section per alert; alerts link to them",
}


def without_code(text):
    return re.sub(r"^```.*?^```$", lambda match: "\n" * match[0].count("\n"), text, flags=re.M | re.S)


def github_slug(title):
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def site_slug(title):
    """As python-markdown's toc makes it."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def anchors(text):
    """Anchors that both GitHub and the site have."""
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for title in re.findall(r"^#+ +(.*?)\s*#*$", without_code(text), re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        if github_slug(title) == site_slug(title):
            found.add(github_slug(title))
    return found


def links(text):
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", without_code(text)))


def check_links(page, text, texts):
    for url in links(text):
        if re.match(r"(https?|mailto):", url):
            continue
        path, _, fragment = url.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"link to {url}: no such file"
        elif fragment and target.suffix == ".md" and fragment not in anchors(texts.get(target) or target.read_text()):
            yield f"link to {url}: no such heading, or the site and GitHub name it differently"


def check_width(text):
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        code = code != line.startswith("```")
        if len(line) > WIDTH and not code and not line.startswith(("|", "![", "```")) and " " in line.strip():
            yield f"line {number} has {len(line)} columns, at most {WIDTH}"


def routes():
    """Patterns of (method, path) of every operation of docs/openapi.json."""
    paths = json.loads((ROOT / "docs/openapi.json").read_text())["paths"]
    for path, ways in paths.items():
        pattern = re.sub(r"\\{[^}]*\\}", "[^/]+(?:/[^/]+)*?", re.escape(path))
        for method in ways:
            yield re.compile(f"{method.upper()} {pattern}$")


def check_routes(text, known):
    for method, path in re.findall(r"\b(GET|PUT|POST|DELETE|HEAD) (/[^\s`\"')|\]]*)", text):
        path = re.split(r"[?#]", path)[0].rstrip(".,;:/") or "/"
        route = f"{'GET' if method == 'HEAD' else method} {path}"
        if route not in EXAMPLES and not any(pattern.match(route) for pattern in known):
            yield f"{route}: docs/openapi.json has no such operation"


def check_mentions():
    """Sources, scripts and rules name pages that exist."""
    for root, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in ("build", "docs", "node_modules")]
        for file in files:
            path = pathlib.Path(root, file)
            if path.suffix in (".cpp", ".hpp", ".cu", ".inc", ".h", ".c", ".py", ".js", ".mjs", ".yml", ".yaml", ".txt", ""):
                for name in set(re.findall(r"\bdocs/[\w/]+\.(?:md|json|svg)\b", path.read_text(errors="replace"))):
                    if not (ROOT / name).exists():
                        yield f"{path.relative_to(ROOT)} names {name}, which does not exist"


def main():
    known = list(routes())
    pages = sorted((ROOT / "docs").rglob("*.md"))
    fronts = [ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md")]
    texts = {page: page.read_text() for page in fronts + pages}
    navigation = (ROOT / "mkdocs.yml").read_text()
    index = texts[ROOT / "docs/index.md"]
    rest = texts[ROOT / "docs/reference/rest/index.md"]
    wrong = list(check_mentions())
    for page, text in texts.items():
        name = page.relative_to(ROOT).as_posix()
        found = [*check_links(page, text, texts), *check_routes(text, known)]
        if name not in LONG:
            found += check_width(text)
        lines = text.count("\n")
        if page in pages:
            inner = page.relative_to(ROOT / "docs").as_posix()
            if f" {inner}" not in navigation:
                found.append("not in the navigation of mkdocs.yml")
            listed = f"({inner})" in index or inner.startswith("reference/rest/") and f"({page.name}" in rest
            if not listed and inner != "index.md":
                found.append("not in docs/index.md")
            if lines > LENGTH and name not in LONG:
                found.append(f"{lines} lines, at most {LENGTH}")
        wrong += [f"{name}: {one}" for one in found]
    if texts[ROOT / "README.md"].count("\n") > 150:
        wrong.append("README.md: more than 150 lines")
    if texts[ROOT / "CHANGELOG.md"].count("\n") > 200:
        wrong.append("CHANGELOG.md: more than 200 lines")
    print("\n".join(wrong))
    print(f"{len(texts)} pages, {len(wrong)} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
