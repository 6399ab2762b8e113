"""Writes the descriptions of the settings models into pages of ``docs/`` and examples of ``conf/``.

``python -m docs.settings_reference`` writes them; a test compares the files with what it would write.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from binlake.settings import Settings
from lakemetastore.settings.service import MetastoreSettings

ROOT = Path(__file__).parents[1]

_WIDTH = 120
_INTRODUCTION = """# Configuration

One YAML file configures a stream. `conf/minimal.yaml` is the least that a stream needs; `conf/reference.yaml` shows
every setting with an example value; `conf/append.yaml`, `conf/copy_on_write.yaml` and `conf/hbase.yaml` are examples of
other kinds of tables.
`binlake config-schema` prints the JSON schema of the file, `binlake check CONF --show` prints all settings in effect
with secrets masked. binlake reports all mistakes of a file at once, each with its path and line, and ends with exit
code 2.

`${env:NAME}` and `${file:/path}` may stand anywhere in a text; they are replaced by the environment variable or by the
content of the file. A relative path starts at the directory of the settings file. `$${` writes a literal `${`. Inside
`{ }` of YAML such texts need quotes. Write secrets as references.

A path with `[]` stands for every item of a list, `<name>` for a name that you choose. This page is generated from the
settings model by `make docs`.
"""
_HEAD = """# Every setting, with an example or its default value. The comments are generated from the settings model.
# Names, types and defaults: docs/configuration.md, or `binlake config-schema`.
#
# Secrets never stand in this file: ${env:NAME} and ${file:/path} may be used inside any text. A relative file path
# starts at the directory of this file; $${ writes a literal ${. Quote such texts where they stand inside { }.
"""
_METASTORE_INTRODUCTION = """# Settings of the metastore

One YAML file configures a [metastore](metastore.md); `conf/metastore.yaml` shows every setting. References to secrets,
relative paths and mistakes are as in the [configuration of a stream](configuration.md), whose section `metastore` says
where the service is. `binlake config-schema --metastore` prints the JSON schema. This page is generated from the
settings model by `make docs`.
"""
_METASTORE_HEAD = """# Every setting of a metastore, with an example or its default value.
# The comments are generated from the settings model. Names, types and defaults: docs/metastore-settings.md.
# Secrets are written as ${env:NAME} or ${file:/path}.
"""
_SECTION_OF_OVERRIDES = "tables.overrides[]"

Node = Mapping[str, Any]


@dataclass(frozen=True)
class Field:
    """One setting. ``path``: from the top of the file; ``[]`` stands for an item, ``<name>`` for a free key."""

    path: str
    node: Node
    required: bool


@dataclass(frozen=True)
class Reference:
    """What is generated from a settings model: a page of the site, and the comments of an example."""

    model: type[BaseModel]
    introduction: str
    head: str
    page: Path
    example: Path


STREAM = Reference(Settings, _INTRODUCTION, _HEAD, ROOT / "docs" / "configuration.md", ROOT / "conf" / "reference.yaml")
METASTORE = Reference(
    MetastoreSettings,
    _METASTORE_INTRODUCTION,
    _METASTORE_HEAD,
    ROOT / "docs" / "metastore-settings.md",
    ROOT / "conf" / "metastore.yaml",
)


class SettingsSchema:
    """The JSON schema of a settings model, its references followed."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._schema: Node = model.model_json_schema()

    def sections(self) -> Iterator[tuple[str, str, list[Field]]]:
        """Path, description and fields of every section, in the order of the model; the whole file is path ''."""
        yield from self._section("", self._schema, "")

    def descriptions(self) -> dict[str, str]:
        """Path -> description, of every setting."""
        found = {f.path: str(f.node.get("description", "")) for _, _, fields in self.sections() for f in fields}
        common = {p: d for p, d in found.items() if p.startswith("tables.defaults.")}
        return {p.replace("tables.defaults", _SECTION_OF_OVERRIDES): d for p, d in common.items()} | found

    def _section(self, path: str, node: Node, description: str) -> Iterator[tuple[str, str, list[Field]]]:
        fields = list(self._fields(path, node))
        if path == _SECTION_OF_OVERRIDES:
            fields = [f for f in fields if f.path.endswith(".match")]
            description += " All settings of `tables.defaults` may be given, too."
        yield path, description, fields
        for field in fields:
            for suffix, inner in self._inside(field.node):
                yield from self._section(field.path + suffix, inner, str(field.node.get("description", "")))

    def _fields(self, path: str, node: Node) -> Iterator[Field]:
        for name, child in node.get("properties", {}).items():
            if "description" not in child:  # pydantic leaves out what the section itself says
                child = {**child, "description": self._resolved(child)["description"]}
            yield Field(f"{path}.{name}" if path else name, child, name in node.get("required", ()))

    def _inside(self, node: Node) -> Iterator[tuple[str, Node]]:
        """The sections that a setting holds, each with what its path needs."""
        for part in node.get("anyOf", [node]):
            if "$ref" in part:
                yield "", self._resolved(part)
            elif "$ref" in part.get("items", {}):
                yield "[]", self._resolved(part["items"])
            elif "$ref" in (held := _held(part)):
                yield ".<name>", self._resolved(held)

    def _resolved(self, node: Node) -> Node:
        found: Node = self._schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        return found


def page(reference: Reference) -> str:
    """The page of all settings, as Markdown."""
    parts = [reference.introduction]
    for path, description, fields in SettingsSchema(reference.model).sections():
        rows = [f"| `{_name(f)}` | {_type(f.node)} | {_default(f)} | {_meaning(f.node)} |" for f in fields]
        heading = f"## `{path}`" if path else "## The whole file"
        table = ["| setting | type | default | meaning |", "| --- | --- | --- | --- |", *rows]
        parts.append("\n".join([heading, "", *([_text(description), ""] if description else []), *table, ""]))
    return "\n".join(parts)


def _name(field: Field) -> str:
    return field.path.rsplit(".", 1)[-1]


def _meaning(node: Node) -> str:
    return _text(str(node.get("description", ""))).replace("|", "\\|")


def _text(description: str) -> str:
    return " ".join(description.replace("``", "`").split())


def _default(field: Field) -> str:
    if field.required:
        return "required"
    if "default" not in field.node:
        return "`{}`" if field.node.get("type") == "object" else ""
    default = field.node["default"]
    return f"`{json.dumps(default)}`" if not isinstance(default, str) else f"`{default}`"


def _type(node: Node) -> str:
    if "anyOf" in node:
        return " or ".join(_type(part) for part in node["anyOf"])
    if "$ref" in node:
        return "section"
    if "enum" in node:
        return " or ".join(f"`{value}`" for value in node["enum"])
    if node["type"] == "array":
        inner = _type(node["items"])
        return f"list of {inner}s" if inner == "section" else f"list of {inner}"
    if node["type"] == "object":
        inner = _type(_held(node))
        return f"mapping to {inner}s" if inner == "section" else f"mapping to {inner}"
    return _scalar(node)


def _held(node: Node) -> Node:
    """What the values of a mapping with free keys are; empty for anything else."""
    kinds = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
    return next((kind for kind in kinds if isinstance(kind, Mapping)), {})


def _scalar(node: Node) -> str:
    if node.get("format") == "password":
        return "secret"
    names = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "null": "null",
    }
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {node[key]:g}" for key, sign in signs.items() if key in node]
    return " ".join([names[node["type"]], ", ".join(bounds)]).strip()


# -- the comments of the example ------------------------------------------------------------------------------


def commented(reference: Reference, text: str) -> str:
    """The settings file with a comment above each setting, made from its description; other comments go.

    Args:
        text: YAML of which every setting that gets a comment begins a line.
    """
    bare = [line for line in (_without_comment(line) for line in text.splitlines()) if line.strip()]
    descriptions, said = SettingsSchema(reference.model).descriptions(), set[str]()
    root = yaml.compose("\n".join(bare), yaml.SafeLoader)
    paths = dict(_paths(root, "")) if root is not None else {}
    lines = [reference.head.rstrip()]
    for number, line in enumerate(bare):
        path = paths.get(number, "")
        description = descriptions.get(path, "")
        if not line.startswith(" "):
            lines.append("")
        if description and description not in said:
            said.add(description)
            lines += _comment(description, len(line) - len(line.lstrip(" ")))
        lines.append(line)
    return "\n".join(lines) + "\n"


def _without_comment(line: str) -> str:
    return re.sub(r"(^|\s+)#\s.*$|^#$", "", line)


def _paths(node: yaml.Node, path: str) -> Iterator[tuple[int, str]]:
    """Line -> path, of all keys that begin a line; keys under a name of the user's own stand for ``<name>``."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _paths(item, f"{path}[]")
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        return
    for key, value in node.value:
        name = "<name>" if path in _FREE else key.value
        inner = f"{path}.{name}" if path else name
        yield key.start_mark.line, inner
        yield from _paths(value, inner)


_FREE = frozenset(
    {"source.schemas", "router.backends"} | {f"tables.{t}.columns.mask" for t in ("defaults", "overrides[]")}
)


def _comment(description: str, indent: int) -> list[str]:
    text = " ".join(description.replace("``", "").split())
    prefix = f"{' ' * indent}# "
    return textwrap.wrap(
        text, _WIDTH, initial_indent=prefix, subsequent_indent=prefix, break_long_words=False, break_on_hyphens=False
    )


def main() -> None:
    """Write the pages, and the comments of the examples."""
    for reference in (STREAM, METASTORE):
        reference.page.write_text(page(reference), encoding="utf-8")
        text = reference.example.read_text(encoding="utf-8")
        reference.example.write_text(commented(reference, text), encoding="utf-8")


if __name__ == "__main__":
    main()
