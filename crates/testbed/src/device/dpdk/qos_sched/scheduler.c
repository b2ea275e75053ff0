/* The scheduler of the library, from what the profile file says. */
#include <inttypes.h>

#include "qos_sched.h"

static bool start_subport(struct rte_sched_port *sched, struct profile *profile, uint32_t subport)
{
	struct rte_sched_subport_params *params = &profile->subports[subport];

	/* The sample gives all of them the first profile. */
	if (rte_sched_subport_config(sched, subport, params, (uint32_t)profile->subport_profile[subport]) != 0) {
		complain("the library refuses subport %u: its number of pipes, queue sizes, pipe profiles or curves of early "
			 "detection", subport);
		return false;
	}
	/* A pipe that is not configured has profile 0, too, and begins without credits. */
	for (uint32_t pipe = 0; pipe < params->n_pipes_per_subport_enabled; pipe++) {
		int number = profile->pipe_profile[subport][pipe];

		if (number >= 0 && rte_sched_pipe_config(sched, subport, pipe, number) != 0) {
			complain("the library refuses pipe %u of subport %u", pipe, subport);
			return false;
		}
	}
	return true;
}

struct rte_sched_port *scheduler_start(struct profile *profile)
{
	struct rte_sched_port *sched = rte_sched_port_config(&profile->port);

	if (sched == NULL) {
		complain("the library refuses the port or a subport profile: rates are 1 to %" PRIu64 " bytes/s, the port's",
			 profile->port.rate);
		return NULL;
	}
	for (uint32_t subport = 0; subport < profile->port.n_subports_per_port; subport++)
		if (!start_subport(sched, profile, subport))
			return NULL;
	return sched;
}
