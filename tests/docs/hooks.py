"""mkdocs hooks: links from pages to files of the repository outside docs/ become the names of these files."""

import logging
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
log = logging.getLogger("mkdocs.chorus")


def on_page_markdown(markdown, page, config, files):
    here = ROOT / "docs" / pathlib.PurePosixPath(page.file.src_path).parent

    def shown(match):
        target = (here / match[2]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return match[0]
        if not target.exists():
            log.warning("%s links to %s, which does not exist", page.file.src_path, match[2])
        path = target.relative_to(ROOT).as_posix() if target.is_relative_to(ROOT) else match[2]
        return f"`{path}`" if match[1].strip("`") in (path, target.name) else f"{match[1]} (`{path}`)"

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(shown, part) for part in parts)
