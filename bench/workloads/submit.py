"""How fast jobs are stored: in bulk, one after another, and from many submitters at the same time."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Figure, median
from bench.setting import Setting

SUBMITTERS = 100


def bulk(setting: Setting) -> Iterator[Figure]:
    count, rates, bare = setting.scale.bulk, [], []
    for repeat in range(setting.scale.repeats):
        bare.append(setting.ceiling.bulk(count))
        with setting.stage.ground() as ground:
            rates.append(count / ground.client("bulk", count)["seconds"])
        setting.say(f"repeat {repeat + 1}: {rates[-1]:,.0f}/s, bare {bare[-1]:,.0f}/s")
    yield Figure(
        "bulk.rate",
        f"bulk submit, {count:,}",
        median(rates),
        "/s",
        median(bare),
        f"best {max(rates):,.0f}",
        {"rates": rates},
    )


def single(setting: Setting) -> Iterator[Figure]:
    count, many = setting.scale.single, setting.scale.concurrent
    bare = setting.ceiling.inserts(count, 1)
    with setting.stage.ground() as ground:
        rate = count / ground.client("single", count)["seconds"]
    yield Figure("single.rate", "single submit, one after the other", rate, "/s", bare)
    bare = setting.ceiling.inserts(many // SUBMITTERS, SUBMITTERS)
    with setting.stage.ground() as ground:
        rate = many / ground.client("concurrent", many, SUBMITTERS)["seconds"]
    yield Figure("concurrent.rate", f"single submit, {SUBMITTERS} at once", rate, "/s", bare)
