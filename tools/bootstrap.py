"""Makes a virtual environment with the project and the extras it is asked for; quick when nothing changed.

    python3 tools/bootstrap.py VENV EXTRA [EXTRA ...]

Only the standard library is used, and only syntax that an old Python can read, so that it can say it is too old.
"""

import hashlib
import os
import subprocess
import sys

MINIMUM = (3, 11)


def fail(*lines):
    """Ends with a plain message."""
    sys.stderr.write("\n".join(("",) + lines + ("",)))
    sys.exit(1)


def fingerprint(root, extras):
    """Hash of what decides the installed packages."""
    digest = hashlib.sha256(" ".join(extras).encode())
    digest.update(sys.version.encode())
    with open(os.path.join(root, "pyproject.toml"), "rb") as file:
        digest.update(file.read())
    return digest.hexdigest()


def create(venv):
    """Makes the environment unless it is there."""
    python = os.path.join(venv, "bin", "python")
    if os.path.exists(python):
        return python
    if subprocess.call([sys.executable, "-m", "venv", venv]) != 0:
        fail(
            "Could not make a virtual environment in %s." % venv,
            "The command was: %s -m venv %s" % (sys.executable, venv),
            "On Debian and Ubuntu the module is a package of its own: apt-get install python3-venv",
        )
    return python


def install(python, root, extras):
    """Installs the project in place with its extras."""
    target = "%s[%s]" % (root, ",".join(extras))
    sys.stderr.write("Installing jaxface[%s] (once; about 700 MB) ...\n" % ",".join(extras))
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-input", "--editable", target]
    if subprocess.call(pip) != 0:
        fail(
            "The packages could not be installed; pip's own words are above.",
            "If they speak of connections or of no matching distribution, the package registry cannot be reached from",
            "here: check the network, a proxy (HTTPS_PROXY) or pip's index setting (pip config list), and run again.",
        )


def main(venv, *extras):
    """Entry point."""
    if sys.version_info < MINIMUM:
        found = ".".join(str(part) for part in sys.version_info[:3])
        fail(
            "jaxface needs Python %d.%d or newer; %s is %s." % (MINIMUM + (sys.executable, found)),
            "Name another one, for example: make %s PYTHON=python3.12" % os.environ.get("MAKECMDGOALS", "test"),
        )
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    mark = os.path.join(venv, "jaxface-installed-" + "-".join(extras))
    wanted = fingerprint(root, extras)
    if os.path.exists(mark):
        with open(mark) as file:
            if file.read() == wanted:
                return
    install(create(venv), root, extras)
    with open(mark, "w") as file:
        file.write(wanted)


if __name__ == "__main__":
    main(*sys.argv[1:])
