"""Builds the wheel of `gristway` from a checkout: setuptools, on a copy that has the jar in it.

The copy keeps the checkout clean: what is made for the wheel never lies among the sources. With
the setting `runtime=FOLDER` a Java runtime goes into the wheel too, which then is for one platform.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from setuptools import build_meta

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("LICENSE", "NOTICE", "THIRD-PARTY.md")
# As in the pom: two builds of the same sources give the same bytes.
SOURCE_DATE_EPOCH = "1735689600"
# By their numbers in ELF files.
PROCESSORS = {62: "x86_64", 183: "aarch64"}


class UnsupportedOperation(Exception):
    """What a build backend raises to say that it does not make source distributions."""


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, str] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds the wheel, and the jar before it if that is missing or older than its sources."""
    destination = os.path.abspath(wheel_directory)
    runtime = (config_settings or {}).get("runtime")
    jar = built_jar()
    options = {}
    with tempfile.TemporaryDirectory(prefix="gristway-wheel-") as folder:
        copy = Path(folder)
        lay_out(copy, jar)
        if runtime is not None:
            add_runtime(copy, Path(runtime))
            options = {"--build-option": ["--plat-name", platform_tag(Path(runtime))]}
        os.environ.setdefault("SOURCE_DATE_EPOCH", SOURCE_DATE_EPOCH)
        before = os.getcwd()
        os.chdir(copy)
        try:
            return build_meta.build_wheel(destination, options)
        finally:
            os.chdir(before)


def build_sdist(sdist_directory: str, config_settings: dict[str, str] | None = None) -> str:
    raise UnsupportedOperation("the sources are the checkout; build a wheel from it")


def built_jar() -> Path:
    """Returns the checkout's jar; its launcher builds it where that is needed."""
    launcher = CHECKOUT / "gristway"
    if not launcher.is_file():
        # Pip older than 21.3 builds a copy of this folder alone.
        raise SystemExit(f"gristway is built in a checkout, and {CHECKOUT} is none")
    if subprocess.run([launcher, "--version"], stdin=subprocess.DEVNULL).returncode != 0:
        raise SystemExit("gristway.jar could not be built")
    return CHECKOUT / "target" / "launcher" / "gristway.jar"


def lay_out(copy: Path, jar: Path) -> None:
    """Makes a project for setuptools: the package, with all that pyproject.toml says is in it."""
    project = CHECKOUT / "python"
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(project / name, copy)
    for name in DOCUMENTS:
        shutil.copy(CHECKOUT / name, copy)
    package = copy / "src" / "gristway"
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(project / "src" / "gristway", package, ignore=unwanted)
    shutil.copy(jar, package)
    (package / "version.txt").write_text(jar_version(jar) + "\n", encoding="utf-8")


def jar_version(jar: Path) -> str:
    """Returns what `gristway --version` prints, which Maven has put into the manifest."""
    with zipfile.ZipFile(jar) as content:
        manifest = content.read("META-INF/MANIFEST.MF").decode("utf-8")
    found = re.search(r"^Implementation-Version: (\S+)", manifest, re.MULTILINE)
    if found is None:
        raise SystemExit(f"{jar} has no version in its manifest")
    return found.group(1)


def add_runtime(copy: Path, runtime: Path) -> None:
    """Adds the runtime and its licence; of each module it keeps the notices, in `legal`."""
    # Links, which a wheel cannot hold, become what they lead to.
    shutil.copytree(runtime, copy / "src" / "gristway" / "runtime")
    file = copy / "pyproject.toml"
    before = file.read_text(encoding="utf-8")
    after = re.sub(
        r'^license = "(.*)"$',
        r'license = "\1 AND GPL-2.0-only WITH Classpath-exception-2.0"',
        before,
        flags=re.MULTILINE,
    )
    assert after != before
    file.write_text(after, encoding="utf-8")


def platform_tag(runtime: Path) -> str:
    """Returns what machines the runtime is for: their processor and the oldest glibc that does."""
    # Where the header of an ELF file names the processor.
    number = int.from_bytes((runtime / "bin" / "java").read_bytes()[18:20], "little")
    versions = {
        int(minor)
        for program in [*runtime.rglob("*.so"), *(runtime / "bin").iterdir()]
        for minor in re.findall(rb"\0GLIBC_2\.(\d+)", program.read_bytes())
    }
    if number not in PROCESSORS or not versions:
        raise SystemExit(f"{runtime} is no Java for Linux with glibc on x86-64 or aarch64")
    return f"manylinux_2_{max(versions)}_{PROCESSORS[number]}"
