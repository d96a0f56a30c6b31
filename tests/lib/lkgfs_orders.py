# SPDX-License-Identifier: Apache-2.0
"""A minimal reference implementation of how lkgfs handles the events of a trial.

A state and an event give the possible next states. There can be more than one for a single reason: a process that exits within
two seconds after a change of its file may have done so because of the change (as kube-proxy does), and then its next start is
excused. Times are left out: trials here last longer than a test.

Concurrent events must have the result of some order of them; see together().
"""
import dataclasses

EVENTS = ("start", "end", "change", "sync", "reload", "update", "death")


@dataclasses.dataclass(frozen=True)
class State:
    """A document is a pair: the source of its base ("init" = the local file), and the number in the drop-in."""

    everything: bool  # trial.scope: all
    kills_are_told: bool = True  # Linux 6.15: the exit status of a process can be read from its pidfd
    threshold: int = 0
    drop: int = 0  # the number in the drop-in on disk
    assigned: str = "init"
    active: str = "init"
    good: str = "init"  # source of the last known good
    served: tuple = ("init", 0)
    stored: tuple = ("init", 0)  # the last known good as it was served
    bad: frozenset = frozenset()  # ids of sources; of local documents the pair
    trial: str = "idle"
    prior: int = 0
    changes: int = 0  # how often the served document has changed
    lives: tuple = ()  # for each process: `changes` when it read
    read: tuple = ()  # what the processes read that started since the last look
    excused: bool = False  # the next start may be excused

    def but(self, **changes):
        return dataclasses.replace(self, **changes)

    @property
    def healthy(self):
        return self.assigned not in self.bad and self.trial != "failed"


def publish(state, source, drop):
    """Serve the merge of a source and the drop-in. If everything is tried, a new trial begins."""
    document = (source, drop)
    if document == state.served or document in state.bad:
        return state
    state = state.but(served=document, changes=state.changes + 1)
    return state.but(trial="running", prior=0) if state.everything else state


def roll_back(state):
    """What is on trial becomes bad: the source if it differs from the last known good, else the document."""
    culprit = state.active if state.active not in ("init", state.good) else state.served
    state = state.but(bad=state.bad | {culprit}, active=state.good, trial="failed")
    served = state.stored if state.everything else (state.good, state.drop)
    return state.but(served=served, changes=state.changes + 1)


def count(state, counts):
    if state.trial != "running" or not counts:
        return state
    return roll_back(state) if state.prior > state.threshold else state.but(prior=state.prior + 1)


def judge(state, _):
    for counts in (True, False) if state.excused else (True,):
        yield count(state.but(excused=False), counts)


def read(state, _):
    yield state.but(lives=state.lives + (state.changes,), read=state.read + (state.served,))


def end(state, by_itself):
    """All processes end. A killed process did not end because of its configuration."""
    ran_another = any(changes != state.changes for changes in state.lives)
    yield state.but(lives=(), excused=state.excused or (ran_another and (by_itself or not state.kills_are_told)))


def change(state, value):
    yield publish(state.but(drop=value), state.active, value)


def update(state, source):
    """Another ConfigMap: assigned, on trial, and followed."""
    state = state.but(assigned=source, active=source, trial="running", prior=0)
    yield publish(state, source, state.drop)


def nothing(state, _):
    """A sync, a reload or a crash of lkgfs must change nothing."""
    yield state


# A start is judged, then the process reads: it reads any change in between.
STEPS = {"start": (judge, read), "end": (end,), "change": (change,), "update": (update,), "sync": (nothing,), "reload": (nothing,),
         "death": (nothing,)}


def together(states, events):
    """@events: pairs (event, argument); their steps may interleave in any way that keeps the order within each event."""
    def walk(states, left):
        if not any(left):
            return states
        found = set()
        for i, steps in enumerate(left):
            if steps:
                (step, argument), *rest = steps
                following = {later for state in states for later in step(state, argument)}
                found |= walk(following, left[:i] + [rest] + left[i + 1:])
        return found

    return walk(frozenset(states), [[(step, argument) for step in STEPS[event]] for event, argument in events])
