"""The rules of the house that no linter knows: sizes, the marked surface, tests that mirror rooms, the vocabulary.

    python tools/house.py           what breaks a rule; exit 1 if anything does
    python tools/house.py --unused  public names with the places that use them, the least used first

A module of `jaxface` says in `__all__` what is public. A name without an underscore that is not listed is its room's
own: no other room, study, benchmark or page may use it. A name with an underscore is its module's own.
Standard library only.
"""

import ast
import collections
import pathlib
import re
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
LONGEST_FUNCTION, LONGEST_FILE = 45, 300
PAGES = ("docs", "README.md")
PROGRAMS = ("experiments", "configs", "benchmarks", "tests", "tools")
COUNTING = ("jaxface", "experiments", "configs", "docs", "README.md")  # a name that only tests use is not used

# The word that is used -> words for the same idea that are not, as parts of identifiers.
VOCABULARY = {
    "num_people": ("num_identities", "num_subjects"),
    "labels.dense": ("dense_ids",),
    "tol": ("tolerance",),
    "num_*": ("steps_in_segment", "inner_iters", "first_iters"),
    "block_size": ("tile_size", "chunk_size"),
    "center": ("centre", "centred", "centres"),
    "normalize": ("normalise", "normalised"),
    "color": ("colour",),
}


class Use(NamedTuple):
    """A name of `jaxface` that a file mentions."""

    file: pathlib.Path
    line: int
    module: str
    name: str
    is_export: bool = False  # imported by a package, to be imported from there again


def module_of(path: pathlib.Path) -> str:
    """`jaxface/core/loops.py` -> `jaxface.core.loops`, a package by its own name."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def sources(*places: str) -> list[pathlib.Path]:
    """Python files below these places of the project."""
    return sorted(file for place in places for file in (ROOT / place).rglob("*.py"))


LIBRARY = {module_of(path): path for path in sources("jaxface")}
TREES = {name: ast.parse(path.read_text()) for name, path in LIBRARY.items()}


def ruffs_order(name: str) -> tuple[bool, bool, list[tuple[bool, int, str]]]:
    """The order in which ruff sorts `__all__`: constants, classes, the rest; eq6 before eq11."""
    parts = re.findall(r"\d+|\D+", name)
    natural = [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]
    return not name.isupper(), not name[0].isupper(), natural


def listed(tree: ast.Module) -> list[str] | None:
    """The names in `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [ast.literal_eval(item) for item in getattr(node.value, "elts", [])]
    return None


def defined(tree: ast.Module) -> dict[str, ast.stmt]:
    """Functions, classes and constants of a module."""
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            found |= dict.fromkeys(names, node)
    return found


def imported(tree: ast.Module) -> dict[str, str]:
    """Local name -> what it stands for in `jaxface`, dotted."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jaxface":
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "jaxface":
                    found[alias.asname or "jaxface"] = alias.name if alias.asname else "jaxface"
    return found


SURFACE = {name: listed(tree) for name, tree in TREES.items()}
DEFINED = {name: defined(tree) for name, tree in TREES.items()}
EXPORTED = {name: imported(tree) for name, tree in TREES.items() if LIBRARY[name].name == "__init__.py"}


def home(dotted: str) -> tuple[str, str] | None:
    """Module and name of `jaxface.room.module.name`, through re-exports; None for a module itself."""
    module, _, name = dotted.rpartition(".")
    if name in EXPORTED.get(module, {}) and name not in DEFINED[module]:
        target = EXPORTED[module][name]
        return None if target in LIBRARY else home(target)
    if dotted in LIBRARY or module not in LIBRARY:
        return None
    return (module, name) if name in DEFINED[module] else None


def mentioned(tree: ast.Module, path: pathlib.Path) -> list[Use]:
    """Every name of `jaxface` that a program uses."""
    local = imported(tree)
    found = []
    for node in ast.walk(tree):
        chains, is_export = [], False
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jaxface":
            chains, is_export = [f"{node.module}.{alias.name}" for alias in node.names], path.name == "__init__.py"
        elif isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            if first in local:
                chains = [f"{local[first]}.{rest}"]
        for chain in chains:
            place = home(chain)
            if place is not None:
                found.append(Use(path, getattr(node, "lineno", 0), *place, is_export))
    return found


def in_signatures(module: str) -> set[str]:
    """Classes that the public functions of a module take or return: whoever calls these holds them."""
    found = set()
    for name in SURFACE[module] or []:
        for node in ast.walk(DEFINED[module].get(name, ast.Pass())):
            signature = [getattr(node, "annotation", None), getattr(node, "returns", None)]
            found |= {n.id for part in signature if part is not None for n in ast.walk(part) if isinstance(n, ast.Name)}
    return found


def examples(text: str) -> ast.Module:
    """The Python examples of a page as one program, each at its own lines."""
    lines = [""] * (text.count("\n") + 1)
    for part in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S):
        first = text[: part.start(1)].count("\n")
        code = part.group(1).split("\n")
        lines[first : first + len(code)] = code
    return ast.parse("\n".join(lines))


BY_TAIL = collections.defaultdict(list)
for _module, _names in DEFINED.items():
    for _name in _names:
        BY_TAIL[f"{_module.rpartition('.')[2]}.{_name}"].append((_module, _name))
        for _package, _exports in EXPORTED.items():
            if _exports.get(_name) == f"{_module}.{_name}":
                BY_TAIL[f"{_package.rpartition('.')[2]}.{_name}"].append((_module, _name))


def of_page(path: pathlib.Path) -> list[Use]:
    """Names in the examples of a page, and those that its sentences spell `module.name`."""
    text = path.read_text()
    found = mentioned(examples(text), path)
    for match in re.finditer(r"`(?:\w+\.)*?(\w+\.\w+)[^`]*`", text):
        found += [Use(path, text[: match.start()].count("\n") + 1, *place) for place in BY_TAIL.get(match.group(1), [])]
    return found


def uses() -> list[Use]:
    """Every mention of a name of `jaxface` outside its own module."""
    found = []
    for path in [*LIBRARY.values(), *sources(*PROGRAMS)]:
        found += mentioned(ast.parse(path.read_text()), path)
    for place in PAGES:
        pages = [ROOT / place] if place.endswith(".md") else sorted((ROOT / place).glob("*.md"))
        found += [use for page in pages for use in of_page(page)]
    return [use for use in found if LIBRARY[use.module] != use.file]


def room(path: pathlib.Path) -> str:
    """The room that a file belongs to: of the library, or of the tests that mirror it."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] in ("jaxface", "tests") and len(parts) > 2 else "/".join(parts[:1])


def at(path: pathlib.Path, line: int) -> str:
    """A place as editors open it."""
    return f"{path.relative_to(ROOT)}:{line}"


def sizes() -> list[str]:
    """Functions and files that are too long, and places where the formatter is overruled."""
    found = []
    for name, path in LIBRARY.items():
        text = path.read_text()
        lines = text.count("\n")
        if lines > LONGEST_FILE:
            found.append(f"{at(path, 1)}: {lines} lines, of at most {LONGEST_FILE}")
        for node in ast.walk(TREES[name]):
            if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
                long = node.end_lineno - node.lineno + 1
                if long > LONGEST_FUNCTION:
                    found.append(
                        f"{at(path, node.lineno)}: {node.name} has {long} lines, of at most {LONGEST_FUNCTION}"
                    )
        found += [
            f"{at(path, number)}: fmt: {word} overrules the formatter"
            for number, line in enumerate(text.split("\n"), 1)
            for word in re.findall(r"# fmt: (skip|off)", line)
        ]
    return found


def surface(mentions: list[Use]) -> list[str]:
    """Modules without a marked surface, names used from outside that are not on it, and names on it without a use."""
    found = []
    used = collections.defaultdict(set, {name: in_signatures(name) for name in LIBRARY})
    for use in mentions:
        path = LIBRARY[use.module]
        if use.file.relative_to(ROOT).parts[0] in COUNTING and not use.is_export:
            used[use.module].add(use.name)
        if use.name.startswith("__"):
            continue
        if use.name.startswith("_") and not (use.file.is_relative_to(ROOT / "tests") and room(use.file) == room(path)):
            found.append(f"{at(use.file, use.line)}: {use.module}.{use.name} is its module's own")
        elif (
            not use.name.startswith("_")
            and room(use.file) != room(path)
            and use.name not in (SURFACE[use.module] or [])
        ):
            found.append(f"{at(use.file, use.line)}: {use.module}.{use.name} is its room's own, not in __all__")
    for name, path in LIBRARY.items():
        names = SURFACE[name]
        if names is None:
            found.append(f"{at(path, 1)}: no __all__")
            continue
        package = path.name == "__init__.py"
        for public in names:
            if package and not {public, f"{name}.{public}"} & {*EXPORTED[name], *DEFINED[name], *LIBRARY}:
                found.append(f"{at(path, 1)}: __all__ has {public}, neither imported nor defined nor a module here")
            elif not package and public not in DEFINED[name]:
                found.append(f"{at(path, 1)}: __all__ has {public}, which is not defined here")
            elif public in DEFINED[name] and public not in used[name]:
                found.append(f"{at(path, 1)}: {public} is public and nothing in library, studies or docs uses it")
        if names != sorted(names, key=ruffs_order):
            found.append(f"{at(path, 1)}: __all__ is not sorted")
    return found


def documented() -> list[str]:
    """Public functions and classes without a docstring, and public constants without a comment."""
    found = []
    for name, path in LIBRARY.items():
        lines = path.read_text().split("\n")
        for public in SURFACE[name] or []:
            node = DEFINED[name].get(public)
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                if not ast.get_docstring(node):
                    found.append(f"{at(path, node.lineno)}: {public} is public and has no docstring")
            elif node is not None and not any("#" in line for line in lines[node.lineno - 2 : node.end_lineno]):
                found.append(f"{at(path, node.lineno)}: {public} is a public constant without a comment")
    return found


def mirrored() -> list[str]:
    """Modules without a test module of their name."""
    modules = [
        path for path in LIBRARY.values() if path.name != "__init__.py" and len(path.relative_to(ROOT).parts) > 2
    ]
    return [
        f"{at(path, 1)}: no tests/{path.parent.name}/test_{path.name}"
        for path in modules
        if not (ROOT / "tests" / path.parent.name / f"test_{path.name}").is_file()
    ]


def vocabulary() -> list[str]:
    """Identifiers with a word that has another name in this house."""
    banned = {word: kept for kept, words in VOCABULARY.items() for word in words}
    pattern = re.compile(r"(?<![A-Za-z])(" + "|".join(banned) + r")(?![A-Za-z])")
    found = []
    for path in sources("jaxface", "experiments", "configs"):
        for node in ast.walk(ast.parse(path.read_text())):
            words = [
                getattr(node, field)
                for field in ("name", "id", "arg", "attr")
                if isinstance(getattr(node, field, None), str)
            ]
            for word in words:
                for match in pattern.findall(word):
                    if f"num_{match}" in word:
                        continue
                    found.append(f"{at(path, getattr(node, 'lineno', 1))}: {word}: the word here is {banned[match]}")
    return sorted(set(found))


def main() -> int:
    """The exit code: 1 if any rule is broken."""
    mentions = uses()
    if "--unused" in sys.argv:
        counts = collections.Counter((use.module, use.name) for use in mentions)
        for name in LIBRARY:
            for public in sorted(SURFACE[name] or DEFINED[name], key=lambda public, name=name: counts[name, public]):
                places = sorted({room(use.file) for use in mentions if (use.module, use.name) == (name, public)})
                print(f"{name}.{public}: {counts[name, public]} {' '.join(places)}")
        return 0
    found = [*sizes(), *surface(mentions), *documented(), *mirrored(), *vocabulary()]
    print("\n".join(found))
    print(f"house: {len(found)} places break a rule" if found else "house: every rule holds")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
