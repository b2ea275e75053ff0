/* What became of frames, as one line of JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "qos_sched.h"

/* Drops of each queue since the start: the library's own counters are cleared whenever they are read. */
static struct {
	uint64_t full;
	/* By early detection, while the queue had room. */
	uint64_t early;
} dropped[ALL_QUEUES];

void counters_copy(struct flow *flow)
{
	const struct rte_sched_port_params *port = &flow->profile->port;

	uint32_t readable = 0;

	for (uint32_t subport = 0; subport < port->n_subports_per_port; subport++)
		readable += flow->profile->subports[subport].n_pipes_per_subport_enabled * RTE_SCHED_QUEUES_PER_PIPE;
	for (uint32_t subport = 0; subport < port->n_subports_per_port; subport++) {
		uint32_t pipes = flow->profile->subports[subport].n_pipes_per_subport_enabled;
		uint32_t first = subport * port->n_pipes_per_subport * RTE_SCHED_QUEUES_PER_PIPE;

		/* Behind a smaller subport, queues have numbers for which the library gives no counters. */
		for (uint32_t queue = 0; queue < pipes * RTE_SCHED_QUEUES_PER_PIPE && first + queue < readable; queue++) {
			struct rte_sched_queue_stats stats = {0};
			uint32_t id = QUEUE_ID(subport, 0, queue);
			uint16_t length;

			if (rte_sched_queue_read_stats(flow->sched, first + queue, &stats, &length) != 0)
				continue;
			/* The library counts these among all that were dropped. */
			dropped[id].early += stats.n_pkts_cman_dropped;
			dropped[id].full += stats.n_pkts_dropped - stats.n_pkts_cman_dropped;
		}
	}
}

static uint64_t value(const atomic_uint_fast64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void counters_print(const struct flow *downstream, const struct flow *upstream, uint64_t missed)
{
	const char *separator = "";

	printf("{\"event\":\"counters\",\"missed\":%" PRIu64 ",\"received\":%" PRIu64 ",\"sent\":%" PRIu64
	       ",\"ring_full\":%" PRIu64 ",\"received_back\":%" PRIu64 ",\"sent_back\":%" PRIu64
	       ",\"ring_full_back\":%" PRIu64 ",\"queues\":[",
	       missed, value(&downstream->received_frames), value(&downstream->sent_frames), value(&downstream->ring_full_frames),
	       value(&upstream->received_frames), value(&upstream->sent_frames), value(&upstream->ring_full_frames));
	for (uint32_t id = 0; id < ALL_QUEUES; id++) {
		uint32_t queue = id % RTE_SCHED_QUEUES_PER_PIPE;
		uint32_t pipe = id / RTE_SCHED_QUEUES_PER_PIPE;

		if (dropped[id].full == 0 && dropped[id].early == 0)
			continue;
		printf("%s{\"subport\":%u,\"pipe\":%u,\"queue\":%u,\"full\":%" PRIu64 ",\"early\":%" PRIu64 "}", separator,
		       pipe / MAX_PIPES, pipe % MAX_PIPES, queue, dropped[id].full, dropped[id].early);
		separator = ",";
	}
	printf("]}\n");
	fflush(stdout);
}
