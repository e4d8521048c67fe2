"""The Java that runs Gristway and the jar that it runs, found as the `gristway` launcher does.

In this order: a runtime that lies in the package (a platform wheel has one), `GRISTWAY_JAVA_HOME`,
`JAVA_HOME`, the `java` on `PATH`, the usual folders. Each is judged by its `release` file, which
costs less than starting it: the first Java 25 is taken, or the first newer one if there is no 25.
"""

from __future__ import annotations

import functools
import glob
import locale
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from gristway.errors import MachineError

_PACKAGE = Path(__file__).resolve().parent
# In a checkout this file is python/src/gristway/java.py.
_CHECKOUT = _PACKAGE.parents[2]

# The modules of the checkout that the jar is made of, as the launcher has them.
_MODULES = ("core", "node", "simulator", "cli")

_FLAGS = (
    # Few threads and little memory: it runs beside a training job.
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    # Tables outside the heap grow with the dataset, not with the heap.
    "-XX:MaxDirectMemorySize=64g",
    "--enable-native-access=ALL-UNNAMED",
    "-Dstdout.encoding=UTF-8",
    "-Dstderr.encoding=UTF-8",
    "-Dfile.encoding=UTF-8",
    "-Dsun.jnu.encoding=UTF-8",
    # The JVM's own warnings go to stdout, into whatever reads it; most of them are of a start-up
    # cache that does not fit (another Java, a copied jar), which is harmless.
    "-Xlog:disable",
)

_USUAL_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/*jdk*",
    "/opt/java/*",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)

# These are mostly system calls: the optimizing compiler would take more time than it saves.
_SHORT_COMMANDS = ("pack", "append", "verify", "unpack")


def find_java() -> Path:
    """Returns the `java` to run; raises MachineError where there is none that Gristway runs on."""
    _check_machine()
    newer = None
    for home in _java_homes():
        major = _major_version(home)
        if major == 25:
            return home / "bin" / "java"
        if major > 25 and newer is None:
            newer = home / "bin" / "java"
    if newer is None:
        raise MachineError(
            "no Java 25 here: install one (for example temurin-25-jdk) and, if it is in an unusual "
            "place, set GRISTWAY_JAVA_HOME to its folder"
        )
    return newer


@functools.cache
def jar() -> Path:
    """Returns the jar with Gristway's Java side.

    That is the one that `GRISTWAY_JAR` names, or else the one that is installed with this package;
    where the package is used straight from a checkout, it is the checkout's, which is built first
    if it is missing or older than its sources. Looked for once a process. Raises MachineError
    where there is none.
    """
    named = os.environ.get("GRISTWAY_JAR")
    if named:
        found = Path(named).absolute()
        if not found.is_file():
            raise MachineError(f"GRISTWAY_JAR names {named}, which is no file")
        return found
    installed = _PACKAGE / "gristway.jar"
    if installed.is_file():
        return installed
    launcher = _CHECKOUT / "gristway"
    if not (launcher.is_file() and (_CHECKOUT / "pom.xml").is_file()):
        raise MachineError(
            f"{installed} is missing: install gristway again (pip install --force-reinstall)"
        )
    built = _CHECKOUT / "target" / "launcher" / "gristway.jar"
    if _is_stale(built):
        # The launcher has the rules of building, and a lock; it tells on stderr what it does.
        outcome = subprocess.run(
            [launcher, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        if outcome.returncode != 0 or not built.is_file():
            raise MachineError(f"{built} could not be built: {launcher} --version says why")
    return built


def command() -> list[str]:
    """Returns how to start a node: java, its flags and the class path; the main class is to follow.

    Start it with `environment()`. Raises MachineError where Java or the jar is missing.
    """
    return _java("-Xmx512m")


def command_line(arguments: list[str]) -> list[str]:
    """Returns how to run the `gristway` command with these arguments, as the launcher runs it.

    Run it with `environment()`. Raises MachineError where Java or the jar is missing.
    """
    flags = ["-Xmx256m"]
    if arguments and arguments[0] in _SHORT_COMMANDS:
        flags.append("-XX:TieredStopAtLevel=1")
    if arguments and arguments[0] == "simulate":
        flags.append("-Xmx2g")  # a thousand nodes at once, and nothing to run beside
    return [*_java(*flags), "org.gristway.cli.Main", *arguments]


def environment() -> dict[str, str]:
    """Returns this process's environment, with a UTF-8 locale, for a process that runs Java.

    File names are bytes that Java decodes with the locale: in another one it cannot open all files.
    """
    result = dict(os.environ)
    # What is in effect tells more than a name: a locale that is not installed has no effect.
    if locale.nl_langinfo(locale.CODESET).upper() not in ("UTF-8", "UTF8"):
        result["LC_ALL"] = "C.UTF-8"
    return result


@functools.cache
def version() -> str:
    """Returns the version of this package, which is what `gristway --version` prints.

    The pom of the checkout is the only place that has it; the build writes it into the package.
    """
    written = _PACKAGE / "version.txt"
    if written.is_file():
        return written.read_text(encoding="utf-8").strip()
    pom = (_CHECKOUT / "pom.xml").read_text(encoding="utf-8")
    found = re.search(r"<artifactId>gristway</artifactId>\s*<version>([^<]+)</version>", pom)
    if found is None:
        raise MachineError(f"{_CHECKOUT / 'pom.xml'} has no version: it is not Gristway's")
    return found.group(1)


def _check_machine() -> None:
    machine = os.uname().machine if hasattr(os, "uname") else "unknown"
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64"):
        raise MachineError(
            f"Gristway runs on Linux on x86-64 and aarch64, and this is {sys.platform} on {machine}"
        )


def _java_homes() -> Iterator[Path]:
    """Yields the folders that may hold a Java, best first."""
    yield _PACKAGE / "runtime"
    for variable in ("GRISTWAY_JAVA_HOME", "JAVA_HOME"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]).absolute()
    on_path = shutil.which("java")
    if on_path is not None:
        # Most often a chain of links, of which only the last one lies in a Java's folder.
        yield Path(on_path).resolve().parent.parent
    for pattern in _USUAL_FOLDERS:
        for folder in sorted(glob.glob(os.path.expanduser(pattern))):
            yield Path(folder)


def _major_version(home: Path) -> int:
    """Returns the version of the Java in this folder, 0 if there is none that can be run."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return 0
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    found = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(found.group(1)) if found else 0


def _is_stale(built: Path) -> bool:
    """Tells whether the checkout's jar is missing or older than a source, as the launcher does."""
    try:
        time = built.stat().st_mtime_ns
    except OSError:
        return True
    roots = [_CHECKOUT / "pom.xml", _CHECKOUT / ".mvn"]
    for module in _MODULES:
        roots += [_CHECKOUT / module / "pom.xml", _CHECKOUT / module / "src" / "main"]
    return any(_is_newer(os.fspath(root), time) for root in roots)


def _is_newer(path: str, time: int) -> bool:
    """Tells whether a file, or anything in a folder, was changed after this time."""
    try:
        if os.stat(path).st_mtime_ns > time:
            return True
        if not os.path.isdir(path):
            return False
        with os.scandir(path) as entries:
            return any(
                _is_newer(entry.path, time)
                if entry.is_dir(follow_symlinks=False)
                else entry.stat(follow_symlinks=False).st_mtime_ns > time
                for entry in entries
            )
    except OSError:
        return False


def _java(*flags: str) -> list[str]:
    java = find_java()
    path = jar()
    words = [os.fspath(java), *flags, *_FLAGS]
    cache = path.with_suffix(".aot")
    if cache.is_file():
        words.append(f"-XX:AOTCache={cache}")
    words += os.environ.get("GRISTWAY_JAVA_OPTS", "").split()
    return [*words, "-cp", os.fspath(path)]
