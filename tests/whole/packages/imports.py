"""What Python files import: of one file, and of all files that are imported with some."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path


def imports(file: Path) -> Iterator[tuple[str, bool]]:
    """Names that a file imports, and whether it does so as soon as it is imported itself.

    ``from a import b`` is ``a.b``, be ``b`` a module or not. What only type checkers import is left out.
    """

    def walk(node: ast.AST, *, at_once: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                yield from ((alias.name, at_once) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield from ((f"{child.module}.{alias.name}", at_once) for alias in child.names)
            else:
                yield from walk(child, at_once=at_once and not isinstance(child, ast.FunctionDef))

    return walk(ast.parse(file.read_text()), at_once=True)


def imported_with(files: Iterable[Path], roots: Iterable[Path]) -> Mapping[str, Path]:
    """Packages from elsewhere that are imported as soon as these files are, each with one file that imports it.

    Args:
        files: the files.
        roots: folders of packages whose files are followed.
    """
    folders = list(roots)
    waiting = list(files)
    read, packages = set(waiting), dict[str, Path]()
    while waiting:
        file = waiting.pop()
        for name in (name for name, at_once in imports(file) if at_once):
            own = [module for folder in folders for module in _modules(folder, name)]
            if not own:
                packages.setdefault(name.partition(".")[0], file)
            waiting += [module for module in own if module not in read]
            read.update(own)
    return packages


def _modules(folder: Path, name: str) -> list[Path]:
    """The files below a folder that run where a name is imported: those of its packages, and its own."""
    parts = name.split(".")
    places = [folder.joinpath(*parts[:count]) for count in range(1, len(parts) + 1)]
    files = [file for place in places for file in (place / "__init__.py", place.with_suffix(".py"))]
    return [file for file in files if file.is_file()]
