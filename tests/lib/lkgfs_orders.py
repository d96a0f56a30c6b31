# SPDX-License-Identifier: Apache-2.0
"""What lkgfs has to do with the events of a trial, as small as it can be said: a reference implementation.

A state and an event give the states that may follow. That there is more than one has one reason: a process that ends by itself
within two seconds after a change of its file may have done so because of it (kube-proxy does), and then the start that follows is
excused. Times are left out: trials here are longer than a test.

Events at once must come to what one order of them comes to; see together().
"""
import dataclasses

EVENTS = ("start", "end", "change", "sync", "reload", "update", "death")


@dataclasses.dataclass(frozen=True)
class State:
    """A document is a pair: the source of its base ("init" = the local file), and the number in the drop-in."""

    everything: bool  # trial.scope: all
    kills_are_told: bool = True  # Linux 6.15: how a process ended can be asked of its pidfd
    threshold: int = 0
    drop: int = 0  # what the drop-in on disk says
    assigned: str = "init"
    active: str = "init"
    good: str = "init"  # source of the last known good
    served: tuple = ("init", 0)
    stored: tuple = ("init", 0)  # the last known good as it was served
    bad: frozenset = frozenset()  # ids of sources; of local documents the pair
    trial: str = "idle"
    prior: int = 0
    changes: int = 0  # of what is served
    lives: tuple = ()  # of each process: `changes` when it read
    read: tuple = ()  # what those read that started since the last look
    excused: bool = False  # the next start may be

    def but(self, **changes):
        return dataclasses.replace(self, **changes)

    @property
    def healthy(self):
        return self.assigned not in self.bad and self.trial != "failed"


def publish(state, source, drop):
    """The merge of a source and the drop-in is what is to be served. Where everything is tried it is tried anew."""
    document = (source, drop)
    if document == state.served or document in state.bad:
        return state
    state = state.but(served=document, changes=state.changes + 1)
    return state.but(trial="running", prior=0) if state.everything else state


def roll_back(state):
    """What is on trial is bad; a source where there is another one than the good one, else the document."""
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
    """Of all processes. One that was killed did not end because of us."""
    ran_another = any(changes != state.changes for changes in state.lives)
    yield state.but(lives=(), excused=state.excused or (ran_another and (by_itself or not state.kills_are_told)))


def change(state, value):
    yield publish(state.but(drop=value), state.active, value)


def update(state, source):
    """Another ConfigMap: assigned, on trial, and what is followed."""
    state = state.but(assigned=source, active=source, trial="running", prior=0)
    yield publish(state, source, state.drop)


def nothing(state, _):
    """To look again, to read the configuration again, and to die must change nothing."""
    yield state


# A start is judged, and then the process reads: what comes in between is what it reads.
STEPS = {"start": (judge, read), "end": (end,), "change": (change,), "update": (update,), "sync": (nothing,), "reload": (nothing,),
         "death": (nothing,)}


def together(states, events):
    """@events: pairs (event, argument), whose steps may be taken in any order that keeps those of each."""
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
