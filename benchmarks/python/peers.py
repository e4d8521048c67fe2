"""The loaders that Gristway is compared with, each in an environment of its own.

They are installed from PyPI at pinned versions, outside the work tree, on top of the environment
that runs the benchmark: a path file makes its PyTorch visible, so that none is installed twice. A
package that a peer needs in another version lies in the peer's own environment, and wins there.
A peer that cannot be installed is reported with the line that says why.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

PINS = {
    "webdataset": "webdataset==1.0.2",
    "streaming": "mosaicml-streaming==0.13.0",
    "litdata": "litdata==0.2.76",
    "ffcv": "ffcv==1.0.2",
}

# What an environment must be able to do before it is used.
PROOFS = {
    "webdataset": "import webdataset, torch",
    "streaming": "import streaming, torch",
    "litdata": "import litdata, torch",
    "ffcv": "import ffcv.loader, ffcv.writer, torch",
}

# FFCV is built from source, against OpenCV and TurboJPEG. Debian's package of all of OpenCV draws
# in hundreds of others; these are the parts that FFCV calls and what they load. They are unpacked
# beside the environment, not installed.
FFCV_LIBRARIES = [
    "libopencv-core-dev",
    "libopencv-core406",
    "libopencv-imgproc-dev",
    "libopencv-imgproc406",
    "libturbojpeg0-dev",
    "libturbojpeg0",
    "libtbb12",
    "libtbbmalloc2",
    "libtbbbind-2-5",
    "libhwloc15",
    "liblapack3",
    "libblas3",
    "libgfortran5",
]


@dataclass(frozen=True)
class Environment:
    """Where a peer's Python is, or why there is none."""

    python: str
    version: str
    error: str = ""


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gristway"


@functools.cache
def environment(peer: str) -> Environment:
    """The environment of a peer, made on first use; one that fails is tried once a run."""
    pin = PINS[peer]
    base = sysconfig.get_path("purelib")
    # Another interpreter, another PyTorch below it or another pin is another environment.
    key = hashlib.sha256(f"{sys.version}\n{base}\n{pin}".encode()).hexdigest()[:8]
    folder = cache() / f"peers-{peer}-{key}"
    python = folder / "bin" / "python"
    version = pin.replace("==", " ")
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        print(f"installing {pin} into {folder}", file=sys.stderr)
        try:
            install(peer, folder, python, base)
        except subprocess.CalledProcessError as failure:
            return Environment("", version, why(failure.stdout))
        (folder / "complete").touch()
    return Environment(str(python), version)


def install(peer: str, folder: Path, python: Path, base: str) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    call([sys.executable, "-m", "venv", str(folder)])
    own = call([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    (Path(own.strip()) / "below.pth").write_text(base + "\n")
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", PINS[peer]]
    try:
        call(pip)
    except subprocess.CalledProcessError:
        if peer != "ffcv" or not shutil.which("apt-get"):
            raise
        # Not from pip's cache, nor into it: what is built is bound to this folder's libraries.
        call([*pip, "--no-cache-dir"], with_ffcv_libraries(folder / "libraries"))
    call([str(python), "-c", PROOFS[peer]])


def with_ffcv_libraries(folder: Path) -> dict[str, str]:
    """Unpacks what FFCV is built against; returns the environment in which a compiler finds it."""
    folder.mkdir()
    call(["apt-get", "download", "-q", *FFCV_LIBRARIES], folder=folder)
    for package in folder.glob("*.deb"):
        call(["dpkg", "-x", str(package), str(folder)])
    include = folder / "usr/include"
    # FFCV includes the header of all of OpenCV, which is not part of these packages.
    (include / "opencv4/opencv2/opencv.hpp").write_text(
        '#include "opencv2/core.hpp"\n#include "opencv2/imgproc.hpp"\n'
    )
    libraries = next(folder.glob("usr/lib/*-linux-gnu"))
    described = {
        "opencv4": "-lopencv_core -lopencv_imgproc",
        "libturbojpeg": "-lturbojpeg",
    }
    (libraries / "pkgconfig").mkdir(exist_ok=True)
    for name, link in described.items():
        (libraries / "pkgconfig" / f"{name}.pc").write_text(
            f"Name: {name}\nDescription: {name}\nVersion: 4\n"
            f"Libs: -L{libraries} {link}\nCflags: -I{include}/opencv4 -I{include}\n"
        )
    run_time = f"{libraries}:{libraries}/lapack:{libraries}/blas"
    return {
        "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
        "CPATH": f"{include}:{include}/opencv4",
        "LIBRARY_PATH": str(libraries),
        # The old kind of run path is searched for the libraries of libraries as well.
        "LDFLAGS": f"-Wl,-rpath,{run_time} -Wl,--disable-new-dtags",
    }


def call(
    command: list[str], variables: dict[str, str] | None = None, folder: Path | None = None
) -> str:
    return subprocess.run(
        command,
        check=True,
        cwd=folder,
        env={**os.environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ).stdout


def why(output: str) -> str:
    """The line of a failed installation that names the cause."""
    lines = [line.strip() for line in output.splitlines() if "rror" in line]
    # A compiler or Python names the cause before pip sums up that there was one.
    causes = [line for line in lines if "subprocess" not in line and "pip" not in line]
    return (causes or lines or [output.strip()[-200:] or "failed without a word"])[0]


if __name__ == "__main__":
    for name in sys.argv[1:] or PINS:
        print(name, environment(name))
