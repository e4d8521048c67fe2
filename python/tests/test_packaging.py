"""What is installed, from a checkout and from a wheel that has its own Java; and the documents."""

from __future__ import annotations

import email.parser
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gristway import java

ROOT = Path(__file__).resolve().parents[2]


def run(*words: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in an environment without this checkout's package, and shows its failure."""
    left_out = ("PYTHONPATH", "GRISTWAY_JAR")
    environment = {name: text for name, text in os.environ.items() if name not in left_out}
    # Setuptools is installed already, and the tests need no network.
    environment.update({"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1"}, **settings)
    done = subprocess.run(
        [str(each) for each in words],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def copy_checkout(folder: Path) -> Path:
    """Copies what a wheel is made of, but for the jar and its sources."""
    for name in ("gristway", "pom.xml", "LICENSE", "NOTICE", "THIRD-PARTY.md"):
        shutil.copy2(ROOT / name, folder)
    without = shutil.ignore_patterns("__pycache__", "tests")
    for name in ("python", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=without)
    return folder


def add_jar(checkout: Path) -> None:
    built = checkout / "target" / "launcher"
    built.mkdir(parents=True)
    shutil.copy(os.environ["GRISTWAY_JAR"], built / "gristway.jar")


def install(wheel: Path, folder: Path) -> Path:
    """Makes a new environment with nothing but the wheel in it, and returns its folder."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    run(*pip, "install", "--quiet", wheel)
    run(*pip, "check")
    return folder


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as content:
        return set(content.namelist())


def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as content:
        (name,) = (each for each in content.namelist() if each.endswith(".dist-info/METADATA"))
        return email.parser.BytesParser().parsebytes(content.read(name))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a checkout whose jar is missing: its launcher is asked to build it."""
    folder = tmp_path_factory.mktemp("wheel")
    checkout = folder / "a checkout"
    checkout.mkdir()
    copy_checkout(checkout)
    launcher = checkout / "gristway"
    launcher.write_text(
        '#!/bin/sh\ncd "$(dirname "$0")" && [ "$*" = --version ] && mkdir -p target/launcher &&'
        f' cp "{os.environ["GRISTWAY_JAR"]}" target/launcher/gristway.jar\n'
    )
    files = set(checkout.rglob("*"))
    run(sys.executable, "-m", "pip", "wheel", "--wheel-dir", folder, checkout / "python")
    new = {str(each.relative_to(checkout)) for each in set(checkout.rglob("*")) - files}
    assert {each for each in new if "__pycache__" not in each} == {
        "target",
        "target/launcher",
        "target/launcher/gristway.jar",
    }
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_the_package_the_jar_and_the_licences(wheel: Path) -> None:
    version = java.version()
    assert wheel.name == f"gristway-{version}-py3-none-any.whl"
    package = ROOT / "python" / "src" / "gristway"
    sources = {f"gristway/{each.name}" for each in package.iterdir() if each.is_file()}
    information = f"gristway-{version}.dist-info"
    content = names(wheel)
    assert sources <= content
    assert {each for each in content - sources if not each.startswith(information)} == {
        "gristway/gristway.jar",
        "gristway/version.txt",
    }
    assert "gristway/py.typed" in content
    for name in ("LICENSE", "NOTICE", "THIRD-PARTY.md"):
        assert f"{information}/licenses/{name}" in content
    told = metadata(wheel)
    assert told["Requires-Python"] == ">=3.10"
    assert told.get_all("Requires-Dist") is None
    assert told["License-Expression"] == "Apache-2.0 AND BSD-2-Clause AND BSL-1.0 AND MIT"


def test_the_licences_are_those_of_the_software_in_the_jar(wheel: Path) -> None:
    listed = (ROOT / "THIRD-PARTY.md").read_text(encoding="utf-8")
    licences = set(re.findall(r" \| (\w+(?:-[\w.]+)*) \|", listed)) - {"Licence", "Version"}
    licences = {each for each in licences if not each[0].isdigit()}
    assert licences == set(metadata(wheel)["License-Expression"].split(" AND "))


def test_an_installed_package_runs_from_its_own_jar(wheel: Path, tmp_path: Path) -> None:
    environment = install(wheel, tmp_path / "an environment")
    version = java.version()
    command = environment / "bin" / "gristway"
    assert run(command, "--version").stdout.startswith(f"gristway {version} (Java ")
    script = "import gristway, gristway.java as j; print(gristway.__version__, j.jar())"
    told = run(environment / "bin" / "python", "-c", script).stdout
    assert re.fullmatch(rf"{re.escape(version)} {environment}/lib/.*/gristway\.jar\n", told)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.bin").write_bytes(b"abc")
    run(command, "pack", tmp_path / "files", tmp_path / "d.gw")
    assert run(command, "cat", tmp_path / "d.gw", "a.bin").stdout == "abc"


HIDE_JAVA = """
for folder in /usr/lib/jvm /usr/java /opt; do
  [ ! -d "$folder" ] || mount --bind "$1" "$folder"
done
shift
exec "$@"
"""


READ = """
import sys, gristway
with gristway.Loader(sys.argv[1], batch_size=1, memory="64MiB") as loader:
    for data, labels in loader:
        print(*[bytes(each).decode() for each in data], *[int(each) for each in labels])
"""


@pytest.mark.thorough
def test_a_wheel_with_a_runtime_needs_no_java(tmp_path: Path, runtime_dir: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    add_jar(copy_checkout(checkout))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    told = run(checkout / "gristway", "wheel", tmp_path / "made", PATH=path).stdout
    (wheel,) = (tmp_path / "made").iterdir()
    assert told == f"{wheel}\n"
    machine = os.uname().machine
    assert re.fullmatch(rf"gristway-.*-py3-none-manylinux_2_\d+_{machine}\.whl", wheel.name)
    assert "GPL-2.0-only WITH Classpath-exception-2.0" in metadata(wheel)["License-Expression"]
    environment = install(wheel, tmp_path / "environment")
    (runtime,) = environment.glob("lib/python*/site-packages/gristway/runtime")
    assert (runtime / "legal/java.base/LICENSE").read_text().startswith("The GNU General Public")

    # No Java but its own can be seen: the usual folders are empty, there is no PATH to speak of.
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    empty = tmp_path / "empty"
    tools = tmp_path / "tools"
    empty.mkdir()
    tools.mkdir()
    for name in ("env", "mount", "sh"):
        (tools / name).symlink_to(str(shutil.which(name)))
    if subprocess.run([*unshare, "mount", "--bind", empty, "/opt"], capture_output=True).returncode:
        pytest.skip("this user may not hide folders from a process (unshare, mount)")
    hide = [*unshare, "sh", "-c", HIDE_JAVA, "sh", empty]
    bare = [*hide, "env", "-i", f"PATH={tools}", f"HOME={empty}"]
    gristway = environment / "bin" / "gristway"

    shown = "GRISTWAY_JAVA_OPTS=-XshowSettings:properties"
    assert f" java.home = {runtime}\n" in run(*bare, shown, gristway, "--version").stderr
    told = run(*bare, gristway, "--version").stdout
    assert told.startswith(f"gristway {java.version()} (Java ")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "grün.bin").write_bytes(b"abc")
    run(*bare, gristway, "pack", tmp_path / "files", tmp_path / "d.gw")
    assert run(*bare, gristway, "info", "--json", tmp_path / "d.gw").stdout.startswith("{")
    assert run(*bare, gristway, "cat", tmp_path / "d.gw", "grün.bin").stdout == "abc"
    read = [*bare, f"GRISTWAY_RUNTIME_DIR={runtime_dir}", environment / "bin" / "python", "-c"]
    assert run(*read, READ, tmp_path / "d.gw").stdout == "abc -1\n"

    shutil.rmtree(runtime)
    lost = subprocess.run([*bare, gristway, "--version"], capture_output=True, text=True)
    assert lost.returncode == 3
    assert lost.stderr.startswith("gristway: no Java 25 here: install one")


def test_a_wheel_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\necho No module named pip >&2\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"

    def refused(*arguments: str) -> tuple[int, str]:
        words = [ROOT / "gristway", "wheel", *arguments]
        done = subprocess.run(
            words, env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        assert done.stdout == ""
        return done.returncode, done.stderr

    assert refused("a", "b") == (2, "gristway: usage: gristway wheel [DEST]\n")
    assert refused("--fast") == (2, "gristway: usage: gristway wheel [DEST]\n")
    code, line = refused(str(tmp_path / "made"))
    assert code == 3
    assert line.startswith("gristway: no python3 with pip here: install both")
    assert not (tmp_path / "made").exists()


@pytest.fixture
def python_env(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Returns a function that starts scripts/python-env, with pins that say only `torch`."""
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "requirements-test.txt").write_text("torch==2.15.0\n")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "python-env", tmp_path / "scripts")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": path}
    own |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    left_out = ("GRISTWAY_PYTHON", "GRISTWAY_REQUIRE")
    inherited = {name: text for name, text in os.environ.items() if name not in left_out}

    def start(**settings: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [tmp_path / "scripts" / "python-env"],
            env={**inherited, **own, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return start


def test_the_test_environment_is_made_once_by_whoever_is_first(
    python_env: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    (tmp_path / "python" / "requirements-test.txt").write_text("# nothing\n")
    together = [started.communicate() for started in [python_env(), python_env()]]
    (first,) = {out for out, _ in together}
    assert Path(first.strip()).is_relative_to(tmp_path / "cache" / "gristway")
    assert "".join(err for _, err in together).count("installing") == 1
    assert python_env().communicate() == (first, "")
    run(first.strip(), "-c", "")

    assert python_env(GRISTWAY_PYTHON=sys.executable).communicate() == (f"{sys.executable}\n", "")
    wrong = python_env(GRISTWAY_PYTHON="/nosuch")
    assert wrong.communicate() == (
        "",
        "python-env: GRISTWAY_PYTHON names /nosuch, which cannot be run\n",
    )
    assert wrong.returncode == 2


@pytest.mark.thorough
def test_where_torch_cannot_be_installed_the_rest_is(
    python_env: Callable[..., subprocess.Popen[str]],
) -> None:
    out, err = python_env().communicate()
    run(out.strip(), "-c", "")
    assert "that failed; trying without PyTorch" in err
    again, err = python_env().communicate()
    assert again == out
    assert re.fullmatch(r"python-env: PyTorch could not be installed into .*\n", err)
    # Whoever cannot do without it tries again; once that is seen, it need not come to its end.
    retry = python_env(GRISTWAY_REQUIRE="python,torch")
    assert retry.stderr is not None
    assert "installing PyTorch" in retry.stderr.readline()
    os.killpg(retry.pid, signal.SIGKILL)
    retry.communicate()


def test_every_environment_variable_that_is_read_is_documented() -> None:
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    files = [ROOT / "build", ROOT / "gristway", ROOT / "python" / "tests" / "conftest.py"]
    for folder in ("python/src", "python/backend", "scripts"):
        files += [each for each in (ROOT / folder).rglob("*") if each.is_file()]
    read = {
        name
        for file in files
        if file.suffix != ".pyc"
        for name in re.findall(r"GRISTWAY_[A-Z_]+", file.read_text(encoding="utf-8"))
    }
    assert {name for name in read if f"`{name}`" not in page} == set()
    assert len(read) > 5
