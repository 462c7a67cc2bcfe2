"""Properties that are computed once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from generators.base.once import once


class Asked:
    def __init__(self, together: Barrier) -> None:
        self.together, self.count = together, 0

    @once
    def answer(self) -> int:
        self.count += 1
        return self.together.wait(5)


def test_two_objects_compute_at_the_same_time_and_each_once():
    together = Barrier(2)
    both = [Asked(together), Asked(together)]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda each: each.answer, both))  # the barrier breaks where one waits for the other
    assert sorted(answers) == [0, 1]
    assert [each.answer for each in both] == answers
    assert [each.count for each in both] == [1, 1]
