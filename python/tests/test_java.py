"""Which Java and which jar the package runs, and how: the same as the launcher."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristway import java
from gristway.errors import MachineError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    java.jar.cache_clear()
    java.version.cache_clear()
    yield
    java.jar.cache_clear()
    java.version.cache_clear()


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java: the folder that is the user's home there."""
    for name in ("GRISTWAY_JAVA_HOME", "JAVA_HOME", "GRISTWAY_JAVA_OPTS"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(home / "bin"))
    own = tuple(each for each in java._USUAL_FOLDERS if each.startswith("~"))
    monkeypatch.setattr(java, "_USUAL_FOLDERS", own)
    return home


def make_java(folder: Path, version: str, *, script: str = "") -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (folder / "release").write_text(f'IMPLEMENTOR="Someone"\nJAVA_VERSION="{version}"\n')
    return program


def test_without_java_one_line_says_what_to_install(bare: Path) -> None:
    with pytest.raises(MachineError) as caught:
        java.find_java()
    assert str(caught.value).startswith("no Java 25 here: install one")
    assert "GRISTWAY_JAVA_HOME" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.kind == "environment"


def test_the_first_java_25_is_taken(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_home = make_java(bare / ".jdks" / "jdk-25", "25.0.1")
    assert java.find_java() == in_home

    on_path = make_java(tmp_path / "elsewhere", "25")
    links = [bare / "bin" / "java", bare / "java-link"]
    links[0].parent.mkdir()
    links[0].symlink_to(links[1])
    links[1].symlink_to(on_path)
    assert java.find_java() == on_path

    for name in ("JAVA_HOME", "GRISTWAY_JAVA_HOME"):
        named = make_java(tmp_path / name, "25.0.3")
        monkeypatch.setenv(name, str(tmp_path / name))
        assert java.find_java() == named

    monkeypatch.setattr(java, "_PACKAGE", tmp_path / "package")
    assert java.find_java() == named
    bundled = make_java(tmp_path / "package" / "runtime", "25.0.3")
    assert java.find_java() == bundled


def test_25_is_preferred_to_a_newer_one_and_an_older_one_is_none(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_java(bare / ".jdks" / "a-17", "17.0.9")
    with pytest.raises(MachineError):
        java.find_java()
    newer = make_java(bare / ".jdks" / "b-26", "26-ea")
    make_java(bare / ".jdks" / "c-27", "27")
    assert java.find_java() == newer
    right = make_java(bare / ".jdks" / "d-25", "25")
    assert java.find_java() == right
    right.chmod(0o644)
    assert java.find_java() == newer


def test_it_is_the_java_that_the_launcher_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launchers() -> Path:
        script = '. "$1/scripts/jdk.sh" && find_jdk java && echo "$JAVA_HOME"'
        words = ["bash", "-c", script, "gristway", str(ROOT)]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        return Path(done.stdout.strip(), "bin", "java")

    monkeypatch.delenv("GRISTWAY_JAVA_HOME", raising=False)
    assert java.find_java() == launchers()
    for name, version in (("old", "17"), ("right", "25.0.9"), ("newer", "26")):
        make_java(tmp_path / name, version)
        monkeypatch.setenv("GRISTWAY_JAVA_HOME", str(tmp_path / name))
        assert java.find_java() == launchers()
        monkeypatch.delenv("GRISTWAY_JAVA_HOME")
        monkeypatch.setenv("PATH", f"{tmp_path / name / 'bin'}:{os.environ['PATH']}")
        assert java.find_java() == launchers()


@pytest.mark.parametrize("platform, machine", [("darwin", "arm64"), ("linux", "riscv64")])
def test_another_machine_is_told_in_one_line(
    platform: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["x"] * 4 + [machine]
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(names))
    with pytest.raises(MachineError, match=rf"this is {platform} on {machine}$"):
        java.find_java()


def test_the_named_jar_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRISTWAY_JAR", "my.jar")
    with pytest.raises(MachineError, match=r"GRISTWAY_JAR names my\.jar, which is no file"):
        java.jar()
    (tmp_path / "my.jar").touch()
    assert java.jar() == tmp_path / "my.jar"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a launcher that counts its starts and makes an empty jar."""
    root = tmp_path / "checkout"
    source = root / java._MODULES[0] / "src" / "main" / "java" / "A.java"
    source.parent.mkdir(parents=True)
    for file in (source, root / "pom.xml"):
        file.touch()
        os.utime(file, (1000, 1000))
    folder = source.parent
    while folder != root:
        os.utime(folder, (1000, 1000))
        folder = folder.parent
    launcher = root / "gristway"
    launcher.write_text(
        '#!/bin/sh\ncd "$(dirname "$0")"\necho "$@" >>starts\n'
        "mkdir -p target/launcher && touch target/launcher/gristway.jar\n"
    )
    launcher.chmod(0o755)
    package = root / "python" / "src" / "gristway"
    package.mkdir(parents=True)
    monkeypatch.delenv("GRISTWAY_JAR")
    monkeypatch.setattr(java, "_PACKAGE", package)
    monkeypatch.setattr(java, "_CHECKOUT", root)
    return root


def starts(checkout: Path) -> list[str]:
    return (checkout / "starts").read_text().splitlines()


def test_the_launcher_builds_the_checkouts_jar_when_a_source_is_newer(checkout: Path) -> None:
    jar = checkout / "target" / "launcher" / "gristway.jar"
    assert java.jar() == jar
    assert starts(checkout) == ["--version"]

    # Fresh now, and looked at once a process.
    java.jar.cache_clear()
    assert java.jar() == jar
    assert starts(checkout) == ["--version"]
    os.utime(jar, (2000, 2000))
    java.jar.cache_clear()
    assert java.jar() == jar
    assert starts(checkout) == ["--version"]

    source = checkout / java._MODULES[0] / "src" / "main" / "java" / "A.java"
    os.utime(source, (3000, 3000))
    assert java.jar() == jar
    assert starts(checkout) == ["--version"]
    java.jar.cache_clear()
    assert java.jar() == jar
    assert starts(checkout) == ["--version", "--version"]


def test_a_failing_build_and_an_incomplete_installation_are_one_line_each(checkout: Path) -> None:
    (checkout / "gristway").write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(MachineError, match=r"could not be built: .*/gristway --version says why"):
        java.jar()
    (checkout / "gristway").unlink()
    with pytest.raises(MachineError, match=r"gristway\.jar is missing: install gristway again"):
        java.jar()
    installed = checkout / "python" / "src" / "gristway" / "gristway.jar"
    installed.touch()
    assert java.jar() == installed


def test_the_jar_is_stale_by_the_same_sources_as_the_launchers() -> None:
    launcher = (ROOT / "gristway").read_text(encoding="utf-8")
    named = re.findall(r'"\$root"/\{([a-z,]+)\}/(pom\.xml|src/main)', launcher)
    assert named == [(",".join(java._MODULES), "pom.xml"), (",".join(java._MODULES), "src/main")]


@pytest.mark.parametrize(
    "arguments", [["pack", "a b", "c.gw"], ["info", "x.gw", "--json"], ["simulate"], []]
)
@pytest.mark.parametrize("with_cache", [False, True])
def test_the_command_line_runs_as_the_launcher_runs_it(
    arguments: list[str],
    with_cache: bool,
    bare: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "scripts", checkout / "scripts")
    shutil.copy(ROOT / "gristway", checkout)
    jar = checkout / "target" / "launcher" / "gristway.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    if with_cache:
        jar.with_suffix(".aot").touch()
    program = make_java(tmp_path / "java", "25", script='printf "%s\\n" "$0" "$@"')
    monkeypatch.setenv("GRISTWAY_JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("GRISTWAY_JAVA_OPTS", " -Xmx1g  -Dx=y")
    monkeypatch.setenv("GRISTWAY_JAR", str(jar))

    ours = java.command_line(arguments)
    monkeypatch.setenv("PATH", os.defpath)
    done = subprocess.run(
        [checkout / "gristway", *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    launchers = done.stdout.splitlines()

    assert ours[0] == launchers[0] == str(program)
    split = launchers.index("-jar")
    assert launchers[split + 1 :] == [str(jar), *arguments]
    assert ours[split:] == ["-cp", str(jar), "org.gristway.cli.Main", *arguments]
    assert sorted(ours[1:split]) == sorted(launchers[1:split])
    assert ours[split - 2 : split] == ["-Xmx1g", "-Dx=y"]

    # A node gets more memory and both compilers.
    node = set(java.command())
    assert node - set(ours) == {"-Xmx512m"}
    assert set(ours) - node - {"org.gristway.cli.Main", *arguments} <= {
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-Xmx2g",
    }


def run_command(*arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
    start = "import sys; from gristway.command import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", start, *map(str, arguments)],
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def test_the_version_is_what_the_command_prints() -> None:
    done = run_command("--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == ["gristway", java.version()]


def test_the_version_is_one_for_maven_and_for_python() -> None:
    # Anything else would need to be translated, and would differ between the two.
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", java.version())


def test_exit_codes_and_complaints_are_the_commands_own(tmp_path: Path) -> None:
    done = run_command("info", tmp_path / "nosuch.gw")
    assert done.returncode == 2
    assert "nosuch.gw" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "xx_XX.UTF-8"])
def test_names_beyond_ascii_are_packed_in_any_locale(locale: str, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "grün-€.bin").write_bytes(b"green")
    done = run_command("pack", tmp_path / "files", tmp_path / "d.gw", LC_ALL=locale)
    assert done.returncode == 0, done.stderr
    assert run_command("ls", tmp_path / "d.gw", LC_ALL=locale).stdout == "grün-€.bin\n"


def test_without_java_the_command_says_so_and_exits_with_3(tmp_path: Path) -> None:
    start = (
        "import sys; from gristway import command, java; java._USUAL_FOLDERS = ();"
        "sys.exit(command.main())"
    )
    settings = {name: os.environ[name] for name in ("PYTHONPATH", "GRISTWAY_JAR")}
    done = subprocess.run(
        [sys.executable, "-c", start, "--version"],
        env={**settings, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert re.fullmatch(r"gristway: no Java 25 here: install one .*\n", done.stderr)


def test_on_windows_one_line_says_where_it_runs() -> None:
    program = "import sys; sys.platform = 'win32'; import gristway"
    failed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    last = failed.stderr.splitlines()[-1]
    assert last.startswith("ImportError: Gristway runs on Linux"), failed.stderr
