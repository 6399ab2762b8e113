"""The rules of the house that no other tool knows: names, sizes of modules and folders, docstrings that say something.

``python -m tests.house`` compares the packages below ``pipeline/`` with ``tests/house.toml``, which holds the number of
violations of each rule that are left: a number there may fall and never rise. ``--lower`` writes today's lower numbers;
``--show RULE`` prints the places.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.paths import ROOT

COUNTS = ROOT / "tests" / "house.toml"
MOST_LINES, FEW_LINES, LEAST_LINES = 400, 80, 40
LEAST_MODULES, MOST_FOLDERS = 3, 12
LEAST_DUTY = len("A duty in words.")

#: Words that end like participles and are nouns, and why a class may end with one.
NOUNS = {
    "Bucketing": "the field's noun for rows in buckets",
    "Clustering": "Hudi's noun for rows laid out anew",
    "Finding": "a finding, what a check reports",
    "Listing": "a listing of files or names",
    "Locking": "the field's noun, as in optimistic locking",
    "Merging": "how rows are merged, beside bucketing and partitioning",
    "Naming": "how tables are named, as in naming scheme",
    "Optimized": "Hudi's name of the query type, read optimized",
    "Partitioning": "SQL's noun for the partitions of a table",
    "Ruling": "a ruling, the decision on a clause",
    "Warning": "a warning",
}
#: Participles that do not end with "ed" or "ing"; "Together" stands for what is together.
IRREGULAR = re.compile(
    r"Done|Drawn|Found|Given|Gone|Held|Kept|Known|Left|Made|Met|Said|Seen|Sent|Shown|Sought|Spent|Spoken|Spun|Stood|Taken|"
    r"Taught|Told|Thought|Together|Won|Worn|Written"
)


@dataclass(frozen=True)
class Violation:
    """A place that breaks a rule: the path below the root with a line if there is one, and what is wrong there."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class Module:
    """A parsed module. ``path``: relative to the directory of the packages."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """The number of its lines."""
        return len(self.text.splitlines())

    @property
    def is_init(self) -> bool:
        """Whether it is the module of a folder."""
        return self.path.name == "__init__.py"

    @property
    def dotted(self) -> str:
        """Its name in an import."""
        parts = self.path.parent.parts if self.is_init else self.path.with_suffix("").parts
        return ".".join(parts)

    @property
    def docstring(self) -> str:
        """Its docstring; empty if it has none."""
        return ast.get_docstring(self.tree) or ""

    def at(self, node: ast.stmt | ast.expr) -> str:
        """The place of a node."""
        return f"{self.path}:{node.lineno}"


def modules_below(directory: Path) -> list[Module]:
    """The modules below a directory of packages, by path. Raises SyntaxError."""
    modules = []
    for path in sorted(directory.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        modules.append(Module(path.relative_to(directory), text, ast.parse(text)))
    return modules


# -- names -------------------------------------------------------------------------------------------------------------


def is_participle(name: str) -> bool:
    """Whether the last word of a class name is a participle."""
    word = re.findall(r"[A-Z][a-z0-9]*", name)[-1:]
    if not word or word[0] in NOUNS:
        return False
    # Of a word like String or King no verb is left.
    return bool(IRREGULAR.fullmatch(word[0]) or re.search(r"[aeiouy].*[a-z](ed|ing)$", word[0], re.IGNORECASE))


def same_name(modules: Sequence[Module]) -> Iterator[Violation]:
    """Classes whose package has another one of their name."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places[module.path.parts[0], node.name].append(module.at(node))
    for (package, name), those in sorted(places.items()):
        for where in those[1:]:
            yield Violation(where, f"{package} has a class {name} in {those[0]} too; name one for what it is")


def participle(modules: Sequence[Module]) -> Iterator[Violation]:
    """Classes whose name ends with a participle."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and is_participle(node.name):
                yield Violation(module.at(node), f"{node.name} is no noun; name the thing")


# -- modules and folders -----------------------------------------------------------------------------------------------


def long_module(modules: Sequence[Module]) -> Iterator[Violation]:
    """Modules with more lines than one idea takes."""
    for module in modules:
        if module.lines > MOST_LINES:
            yield Violation(str(module.path), f"{module.lines} lines; an idea has at most {MOST_LINES}")


def thin_module(modules: Sequence[Module]) -> Iterator[Violation]:
    """Modules of few lines whose docstring does not say why they stand alone."""
    for module in modules:
        if not module.is_init and module.lines < LEAST_LINES and "stands alone" not in module.docstring.lower():
            yield Violation(str(module.path), f"{module.lines} lines; merge it, or say why it 'stands alone'")


def small_module(modules: Sequence[Module]) -> Iterator[Violation]:
    """Modules that may be less than one idea."""
    for module in modules:
        if not module.is_init and LEAST_LINES <= module.lines < FEW_LINES:
            yield Violation(str(module.path), f"{module.lines} lines; an idea has {FEW_LINES}")


def thin_folder(modules: Sequence[Module]) -> Iterator[Violation]:
    """Folders with fewer modules, at or below them, than a folder is worth."""
    for folder in _folders(modules):
        count = len([one for one in modules if folder in one.path.parents and not one.is_init])
        if 0 < count < LEAST_MODULES:  # one without modules holds data
            yield Violation(str(folder), f"{count} modules; put them into the folder above")


def wide_folder(modules: Sequence[Module]) -> Iterator[Violation]:
    """Folders with more folders than are seen at a glance."""
    for folder, inside in _folders(modules).items():
        count = len([path for path in inside if path.suffix != ".py"])
        if count > MOST_FOLDERS:
            yield Violation(str(folder), f"{count} folders; at most {MOST_FOLDERS}")


def no_duty(modules: Sequence[Module]) -> Iterator[Violation]:
    """Folders whose ``__init__`` is missing or does not say what they are for."""
    said = {module.path.parent: module.docstring for module in modules if module.is_init}
    for folder in _folders(modules):
        if len(said.get(folder, "").partition("\n")[0]) < LEAST_DUTY:
            yield Violation(str(folder), "its __init__ does not say its duty in the first line")


def _folders(modules: Sequence[Module]) -> dict[Path, set[Path]]:
    """What is directly in each folder that has modules at or below it: modules and folders."""
    inside: dict[Path, set[Path]] = defaultdict(set)
    for module in modules:
        _ = inside[module.path.parent]
        below = [module.path, *module.path.parents][:-1] if not module.is_init else [*module.path.parents][:-1]
        for path in below:
            if path.parent != Path():
                inside[path.parent].add(path)
    return dict(sorted(inside.items()))


# -- classes -----------------------------------------------------------------------------------------------------------

#: Classes of libraries whose heirs, at any depth, are errors or models of data; and those whose heirs are interfaces.
_DATA = {"BaseModel", "Enum", "Exception", "NamedTuple", "StrEnum", "Struct", "TypedDict"}
_INTERFACES = {"ABC", "Protocol"}


@dataclass(frozen=True)
class _Class:
    """A class with its bases: the dotted name of the module that defines each, as imports say, and its name there."""

    module: Module
    node: ast.ClassDef
    bases: tuple[tuple[str, str], ...]

    def is_data(self, classes: dict[tuple[str, str], _Class]) -> bool:
        """Whether it is an error or a model of data."""
        return any(base[1] in _DATA or (base in classes and classes[base].is_data(classes)) for base in self.bases)

    @property
    def is_abstract(self) -> bool:
        """Whether it cannot be made by itself. An heir of an abstract class can."""
        marks = (mark for one in self.node.body if isinstance(one, ast.FunctionDef) for mark in one.decorator_list)
        named = any(base[1] in _INTERFACES for base in self.bases)
        return named or any(ast.unparse(mark).endswith("abstractmethod") for mark in marks)


def concrete_base(modules: Sequence[Module]) -> Iterator[Violation]:
    """Classes that inherit from a class of ours which can be made by itself: one object over two classes, where parts
    with names would say what they are. Errors and models of data may."""
    classes = {(one.module.dotted, one.node.name): one for module in modules for one in _classes(module)}
    for (_, name), one in sorted(classes.items()):
        for base in one.bases:
            if base in classes and not classes[base].is_abstract and not classes[base].is_data(classes):
                yield Violation(
                    one.module.at(one.node), f"{name} inherits from {base[1]}; give it a part of that class"
                )


def _classes(module: Module) -> Iterator[_Class]:
    origins: dict[str, str] = {}
    definitions: list[ast.ClassDef] = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            origins |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            definitions.append(node)
    for node in definitions:
        written = [ast.unparse(base).partition("[")[0] for base in node.bases]
        names = [(first, dot + rest) for first, dot, rest in (name.partition(".") for name in written)]
        full = [origins.get(first, f"{module.dotted}.{first}") + rest for first, rest in names]
        bases = tuple((place, name) for place, _, name in (name.rpartition(".") for name in full))
        yield _Class(module, node, bases)


# -- words -------------------------------------------------------------------------------------------------------------


def idle_docstring(modules: Sequence[Module]) -> Iterator[Violation]:
    """Docstrings that only point elsewhere."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for module in modules:
        for node in ast.walk(module.tree):
            text = ast.get_docstring(node) if isinstance(node, kinds) else None
            if text and re.match(r"(As|See) [^\n]*$", text) and ". " not in text:
                assert isinstance(node, kinds)
                yield Violation(module.at(node), f"{node.name}: {text!r} says nothing of it; say it, or leave it out")


def told(modules: Sequence[Module]) -> Iterator[Violation]:
    """Lines with the word that could mean any of said, given, known, recorded and reported."""
    for module in modules:
        for number, line in enumerate(module.text.splitlines(), 1):
            if re.search(r"(?<![A-Za-z])_?told(?![a-z])", line):
                yield Violation(f"{module.path}:{number}", "told: who says what to whom?")


def local_of(*names: str) -> Callable[[Sequence[Module]], Iterator[Violation]]:
    """A rule against local names that say nothing: it counts their assignments."""

    def rule(modules: Sequence[Module]) -> Iterator[Violation]:
        for module in modules:
            for node in ast.walk(module.tree):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names:
                    yield Violation(module.at(node), f"{node.id}: name what it holds")

    return rule


# -- kinds and engines -------------------------------------------------------------------------------------------------

#: The modules that know what a table's kind, index or merge engine is; all others ask it for an answer.
HOMES = (
    "binlake/rows/merging/engines/",
    "binlake/rows/upsert/engines/",
    "binlake/settings/index.py",
    "binlake/settings/kinds.py",
    "binlake/settings/merging.py",
    "binlake/tables/kinds/",
    "hudilake/format/definition/",
    "hudilake/format/files/append.py",
)
#: What says of which kind or engine a table is, and leaves it to the asker what follows from it.
FLAGS = frozenset(
    {
        "appends",
        "by_writer",
        "has_record_index",
        "indexes_by_partition",
        "is_global",
        "keeps_keys",
        "keeps_state",
        "looks_up",
        "restates_deletes",
        "rewrites",
    }
)
#: Flags whose names other things have too: they count where a kind or a placement is asked.
SHARED_FLAGS = frozenset({"computed", "copies", "hashes"})
#: Names of a kind or an engine are for messages and files; who compares them decides what follows.
NAMED = frozenset({"engine", "index", "type"})
ROWS_KINDS = frozenset({"append", "upsert"})
_OF_KIND = re.compile(r"(^|_)(index|kind|merging|merge|placement)$")


def kind_flag(modules: Sequence[Module]) -> Iterator[Violation]:
    """Flags and names of kinds and engines that are asked outside their homes, and classes of theirs asked by
    ``isinstance``."""
    for module in modules:
        if not module.path.as_posix().startswith(HOMES):
            classes = _names_of_homes(module)
            for node in ast.walk(module.tree):
                if (what := _asked(node, classes)) is not None:
                    assert isinstance(node, ast.expr)
                    yield Violation(module.at(node), f"{what}: let the kind or engine answer")


def _names_of_homes(module: Module) -> set[str]:
    """What a module imports from the homes of kinds and engines."""
    homes = tuple(home.removesuffix(".py").rstrip("/").replace("/", ".") for home in HOMES)
    return {
        alias.asname or alias.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(homes)
        for alias in node.names
    }


def _asked(node: ast.AST, classes: set[str]) -> str | None:
    """What an expression asks a kind or an engine for to decide by itself; None if it does not."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        of_kind = node.attr in SHARED_FLAGS and _OF_KIND.search(_last_name(node.value)) is not None
        return ast.unparse(node) if node.attr in FLAGS or of_kind else None
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        named = (
            _OF_KIND.search(_last_name(one.value))
            if isinstance(one, ast.Attribute) and one.attr in NAMED
            else isinstance(one, ast.Constant) and one.value in ROWS_KINDS
            for one in sides
        )
        return ast.unparse(node) if any(named) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        asked = {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)}
        return ast.unparse(node) if asked & classes else None
    return None


def _last_name(node: ast.expr) -> str:
    """The last name of ``a.b.kind`` or ``kind``; empty for any other expression."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


RULES: dict[str, Callable[[Sequence[Module]], Iterator[Violation]]] = {
    "same_name": same_name,
    "participle": participle,
    "long_module": long_module,
    "thin_module": thin_module,
    "small_module": small_module,
    "thin_folder": thin_folder,
    "wide_folder": wide_folder,
    "no_duty": no_duty,
    "concrete_base": concrete_base,
    "idle_docstring": idle_docstring,
    "told": told,
    "local_found": local_of("found"),
    "local_at": local_of("at"),
    "kind_flag": kind_flag,
}


def mistakes(violations: dict[str, list[Violation]], allowed: dict[str, int]) -> list[str]:
    """One line for each rule with more violations than are left, or with fewer than the numbers say."""
    lines = []
    for rule, those in violations.items():
        most = allowed.get(rule, 0)
        if len(those) > most:
            lines += [f"{rule}: {one}" for one in those[: 5 if most else None]]
            lines.append(f"{rule}: {len(those)} violations, {most} allowed: mend the new one; --show {rule} prints all")
        elif len(those) < most:
            lines.append(f"{rule}: {len(those)} violations, {most} allowed: run python -m tests.house --lower")
    return lines


def lowered(violations: dict[str, list[Violation]], allowed: dict[str, int]) -> dict[str, int]:
    """The allowed numbers, none higher than before, and none for a rule without violations."""
    least = {rule: min(len(those), allowed.get(rule, 0)) for rule, those in violations.items()}
    return {rule: count for rule, count in least.items() if count}


def main(arguments: Sequence[str]) -> int:
    """Check the packages; 1 if a rule is broken more often than the numbers allow."""
    modules = modules_below(ROOT / "pipeline")
    violations = {name: list(rule(modules)) for name, rule in RULES.items()}
    if arguments[:1] == ["--show"]:
        sys.stdout.writelines(f"{one}\n" for one in violations[arguments[1]])
        return 0
    allowed = tomllib.loads(COUNTS.read_text(encoding="utf-8"))
    if arguments[:1] == ["--lower"]:
        head = "".join(line for line in COUNTS.read_text(encoding="utf-8").splitlines(True) if line.startswith("#"))
        allowed = lowered(violations, allowed)
        COUNTS.write_text(head + "".join(f"{rule} = {count}\n" for rule, count in allowed.items()), encoding="utf-8")
    wrong = mistakes(violations, allowed)
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
