"""Some jobs of the trial in every build; `scripts/trial` runs as many as there is time for."""

from __future__ import annotations

import random

import pytest
import trial
from kills import THOROUGH

pytestmark = pytest.mark.limit(240)

# The same in every build, so that a build fails for what was changed. The thorough run draws anew.
SEEDS = (1, 3, 11, 101)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> trial.Source:
    return trial.Source(tmp_path_factory.mktemp("trial"))


def seeds() -> list[int]:
    first = random.SystemRandom().randrange(1 << 30)
    return list(range(first, first + 40)) if THOROUGH else list(SEEDS)


@pytest.mark.parametrize("seed", seeds())
def test_a_random_job_keeps_all_promises(seed: int, source: trial.Source) -> None:
    said: list[str] = []
    assert trial.attempt(seed, source, said.append), "\n".join(said)
