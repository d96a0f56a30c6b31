/* SPDX-License-Identifier: Apache-2.0 */
/* Pure decisions about candidates and holds: see lkg/lifecycle.h. */
#include <lkg/lifecycle.h>

const char *const lkg_try_phase_names[_LKG_TRY_PHASE_MAX + 1] = {
        [LKG_TRY_NONE] = "none",
        [LKG_TRY_ARMED] = "armed",
        [LKG_TRY_RUNNING] = "running",
};

const char *lkg_hold_mode_name(enum lkg_hold_mode mode)
{
        static const char *const names[_LKG_HOLD_MODE_MAX] = {
                [LKG_HOLD_FREE] = "",
                [LKG_HOLD_ON] = "hold",
                [LKG_HOLD_ROLLBACK] = "rollback",
                [LKG_HOLD_TRY_EXPIRED] = "try expired",
        };

        return (unsigned)mode < _LKG_HOLD_MODE_MAX ? names[mode] : "";
}

enum lkg_verdict lkg_decide(const struct lkg_hold *hold, enum lkg_candidate_state state, bool same, bool bad,
                            uint64_t active)
{
        switch (state) {
        case LKG_CANDIDATE_NAME_TAKEN: /* a kubeconfig is never hidden, not even by a hold */
                return active ? LKG_WITHDRAW : LKG_KEEP;
        case LKG_CANDIDATE_NONE:
                if (!active)
                        return LKG_KEEP;
                return hold->mode == LKG_HOLD_FREE ? LKG_WITHDRAW : LKG_WAIT;
        case LKG_CANDIDATE_INVALID:
                return LKG_REFUSE;
        case LKG_CANDIDATE_VALID:
                if (active && same)
                        return LKG_KEEP;
                if (active && bad)
                        return LKG_AVOID;
                return hold->mode == LKG_HOLD_FREE ? LKG_PUBLISH : LKG_WAIT;
        }
        return LKG_REFUSE;
}

struct lkg_hold lkg_hold_published(struct lkg_hold hold, uint64_t previous, uint64_t now_ns)
{
        if (hold.try_phase != LKG_TRY_ARMED)
                return hold;
        hold.try_phase = LKG_TRY_RUNNING;
        if (previous) /* otherwise nothing was served just now: go back to the generation active at the command */
                hold.try_previous = previous;
        hold.try_deadline_ns = now_ns + hold.try_duration_ns;
        return hold;
}

uint64_t lkg_hold_deadline(const struct lkg_hold *hold)
{
        return hold->try_phase == LKG_TRY_RUNNING ? hold->try_deadline_ns : UINT64_MAX;
}

static struct lkg_hold end_try(struct lkg_hold hold)
{
        hold.try_phase = LKG_TRY_NONE;
        hold.try_duration_ns = hold.try_previous = hold.try_deadline_ns = 0;
        return hold;
}

struct lkg_hold lkg_hold_tick(struct lkg_hold hold, uint64_t now_ns)
{
        uint64_t previous = hold.try_previous;

        if (hold.try_phase != LKG_TRY_RUNNING || now_ns < hold.try_deadline_ns)
                return hold;
        hold = end_try(hold);
        hold.mode = LKG_HOLD_TRY_EXPIRED;
        hold.generation = previous;
        return hold;
}

static struct lkg_hold_step refuse_hold(struct lkg_hold hold, int result, const char *why)
{
        return (struct lkg_hold_step){ hold, result, why };
}

static struct lkg_hold_step accept(struct lkg_hold hold)
{
        return (struct lkg_hold_step){ .next = hold };
}

static struct lkg_hold_step begin_try(struct lkg_hold hold, uint64_t duration_ns, uint64_t active)
{
        if (duration_ns == 0)
                return refuse_hold(hold, -EINVAL, "a try needs a duration above zero, like 5m");
        if (hold.try_phase != LKG_TRY_NONE)
                return refuse_hold(hold, -EBUSY, "another try has not ended yet; write now to commit first");
        if (hold.mode != LKG_HOLD_FREE)
                return refuse_hold(hold, -EBUSY, "the active generation is held; write off to hold first");
        if (!active)
                return refuse_hold(hold, -EBUSY,
                                   "nothing is served, so there would be nothing to go back to");
        hold.try_phase = LKG_TRY_ARMED;
        hold.try_previous = active;
        hold.try_duration_ns = duration_ns;
        return accept(hold);
}

struct lkg_hold_step lkg_hold_command(struct lkg_hold hold, enum lkg_hold_command command, uint64_t argument,
                                      bool known, uint64_t active)
{
        switch (command) {
        case LKG_CMD_HOLD_ON:
                if (hold.mode == LKG_HOLD_FREE)
                        hold.generation = active;
                /* A second `on` changes nothing. During a rollback, `on` keeps a new assignment from ending the pin. */
                if (hold.mode == LKG_HOLD_FREE || hold.mode == LKG_HOLD_ROLLBACK)
                        hold.mode = LKG_HOLD_ON;
                return accept(hold);
        case LKG_CMD_HOLD_OFF:
                hold.mode = LKG_HOLD_FREE;
                hold.generation = 0;
                return accept(hold);
        case LKG_CMD_ROLLBACK:
                if (!known)
                        return refuse_hold(hold, -EINVAL, "no such generation in history");
                hold = end_try(hold);
                if (hold.mode != LKG_HOLD_ON) /* a hold stays a hold; only its generation changes */
                        hold.mode = LKG_HOLD_ROLLBACK;
                hold.generation = argument;
                return accept(hold);
        case LKG_CMD_TRY:
                return begin_try(hold, argument, active);
        case LKG_CMD_COMMIT:
                if (hold.try_phase == LKG_TRY_NONE)
                        return refuse_hold(hold, -EINVAL, "there is no try to commit");
                return accept(end_try(hold));
        }
        return refuse_hold(hold, -EINVAL, "unknown command");
}
