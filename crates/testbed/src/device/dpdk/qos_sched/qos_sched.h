/* The device under test of `--on dpdk`: the threads and rings of DPDK's sample application qos_sched around
 * librte_sched. Only this program links the library. */
#ifndef QOS_SCHED_H
#define QOS_SCHED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_sched.h>

/* The limits of the sample application. */
#define MAX_SUBPORTS 8
#define MAX_PIPES 4096
#define MAX_PIPE_PROFILES 256
#define MAX_SUBPORT_PROFILES 8
#define MAX_BURST 1024

/* A queue's number among all that there may be. */
#define QUEUE_ID(subport, pipe, queue) \
	((((uint32_t)(subport) * MAX_PIPES) + (pipe)) * RTE_SCHED_QUEUES_PER_PIPE + (queue))
#define ALL_QUEUES QUEUE_ID(MAX_SUBPORTS, 0, 0)

/* What a profile file says. */
struct profile {
	struct rte_sched_port_params port;
	struct rte_sched_subport_params subports[MAX_SUBPORTS];
	struct rte_sched_subport_profile_params subport_profiles[MAX_SUBPORT_PROFILES];
	struct rte_sched_pipe_params pipe_profiles[MAX_PIPE_PROFILES];
	/* Early detection, where there is any. */
	struct rte_sched_cman_params red;
	bool has_red;
	/* By subport. */
	int16_t subport_profile[MAX_SUBPORTS];
	/* By subport and pipe; -1 for none. */
	int16_t pipe_profile[MAX_SUBPORTS][MAX_PIPES];
	/* Queues of a pipe with room for frames, in order. */
	uint8_t active[MAX_SUBPORTS][RTE_SCHED_QUEUES_PER_PIPE];
	uint32_t n_active[MAX_SUBPORTS];
};

/* Burst sizes, named and ordered as in the sample's --bsz. */
struct bursts {
	uint32_t receive;
	uint32_t enqueue;
	uint32_t dequeue;
	uint32_t transmit;
};

/* Frames of one direction, and what its threads share of it. Each counter has one writer. */
struct flow {
	uint16_t in_port;
	uint16_t out_port;
	/* Whether the worker transmits, too; there is no second ring then. */
	bool is_mixed;
	struct bursts bursts;
	uint64_t drain_cycles;
	/* Both are missing on the way back, where frames keep their order. */
	const struct profile *profile;
	struct rte_sched_port *sched;
	struct rte_ring *received;
	struct rte_ring *scheduled;
	/* Whether the thread that transmits waits for whole bursts; otherwise it sends what is there. */
	atomic_bool waits_for_bursts;
	/* Whether the worker is to copy the counters of queues. */
	atomic_bool counters_wanted;
	/* Frames that the worker has dequeued, for a ring without room. */
	struct rte_mbuf *pending[MAX_BURST];
	uint32_t n_pending;
	/* Frames that the thread that transmits holds, and how many of them, from the first, are to be sent. */
	struct rte_mbuf *held[2 * MAX_BURST];
	uint32_t n_held;
	uint32_t n_due;
	uint64_t last_taken;
	atomic_uint_fast64_t received_frames;
	atomic_uint_fast64_t ring_full_frames;
	atomic_uint_fast64_t sent_frames;
};

/* The work of a thread for a direction, once; false if there was none. */
typedef bool (*step)(struct flow *);
bool receive_step(struct flow *flow);
bool worker_step(struct flow *flow);
bool transmit_step(struct flow *flow);

/* False, with a message, where the file cannot be used. */
bool profile_read(const char *path, struct profile *profile);

/* The scheduler of `profile`, whose port has name, rate and mtu; NULL, with a message, where the library refuses it. */
struct rte_sched_port *scheduler_start(struct profile *profile);

/* Called by the worker's thread: the library does not lock its counters. */
void counters_copy(struct flow *flow);
/* Prints one line of JSON. `missed` are frames for which a receiving interface had no room. */
void counters_print(const struct flow *downstream, const struct flow *upstream, uint64_t missed);

/* A message for people, as the last line of a program that ends. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
