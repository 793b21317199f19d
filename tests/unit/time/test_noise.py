"""Noise keeps nodes apart, also those of a program that seeds its random numbers."""

from __future__ import annotations

import random

from duetime.clock import noise


def test_noise_neither_follows_the_seed_of_the_program_nor_changes_its_numbers() -> None:
    before = random.getstate()
    try:
        random.seed(1)
        seeded = random.getstate()
        first = [noise() for _ in range(4)]
        assert random.getstate() == seeded
        random.seed(1)
        assert [noise() for _ in range(4)] != first
    finally:
        random.setstate(before)


def test_noise_is_a_part_of_one() -> None:
    numbers = [noise() for _ in range(1_000)]
    assert all(0 <= number < 1 for number in numbers)
    assert min(numbers) < 0.1 < 0.9 < max(numbers)
