"""One clock for all work: parts of its time, and whether there is time for another step."""

import pytest

from exchangeable.runtime.clock import Clock, OutOfTime, Pace


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_parts_of_the_time_that_is_left() -> None:
    hand = Hand()
    clock = Clock(100.0, hand)
    hand.seconds = 20.0
    assert clock.part(0.25).deadline == 40.0
    assert clock.earlier(30.0).left == 50.0
    assert not clock.over
    hand.seconds = 120.0
    assert clock.over
    assert clock.part(0.5).deadline == 100.0
    assert not Clock(now=hand).limited
    assert Clock(now=hand).part(0.5).left == float("inf")


def test_work_is_given_up_unless_the_clock_is_patient() -> None:
    hand = Hand()
    Clock(1.0, hand).check()
    hand.seconds = 1.0
    with pytest.raises(OutOfTime, match="no time for it"):
        Clock(1.0, hand).check()
    Clock(1.0, hand, patient=True).check()


def test_a_step_is_begun_if_it_will_end_in_time() -> None:
    hand = Hand()
    pace = Pace(Clock(30.0, hand))
    told = []
    for moment in (10.0, 12.0, 18.0, 20.0, 22.0, 24.0, 26.0, 28.0):
        hand.seconds = moment
        pace.step()
        told.append((pace.goes_on(), pace.goes_on(reserve=5.0)))
    slow = (True, True)  # 10 s with what came before the first step, then 2, 6, 2 and 2
    assert told[:3] == [slow, slow, slow]
    assert told[3] == (True, False)  # 10 s are left, and a step may take 6
    assert told[4:] == [(True, True), (True, False), (True, False), (False, False)]
    assert (pace.first, pace.latest, pace.ended) == (10.0, 2.0, 28.0)
