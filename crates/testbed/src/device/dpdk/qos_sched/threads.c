/* What the threads of the sample application do, one round at a time. */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ether.h>

#include "qos_sched.h"

#define TAG_BYTES 4
#define IPV4_DESTINATION 16
#define IPV4_BYTES 20
#define VLAN_MASK 0x0fff

static void count(atomic_uint_fast64_t *counter, uint64_t frames)
{
	atomic_fetch_add_explicit(counter, frames, memory_order_relaxed);
}

static bool is_tag(uint16_t type)
{
	return type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ;
}

/* Outer tag: subport. Inner tag: pipe. Last octet of the destination: queue, and first octet: colour. The sample reads
 * these places of any frame; here a frame without tags is of subport 0 and pipe 0, and one that is not IPv4 of queue 0. */
static void find_queue(const struct flow *flow, struct rte_mbuf *frame)
{
	const struct profile *profile = flow->profile;
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	uint32_t length = rte_pktmbuf_data_len(frame);
	uint32_t at = 2 * RTE_ETHER_ADDR_LEN;
	uint16_t vlan[2] = {0, 0};
	uint8_t first = 0, last = 0;
	uint16_t type = 0;

	for (int tags = 0; at + 2 <= length; tags++) {
		type = (uint16_t)(bytes[at] << 8 | bytes[at + 1]);
		if (tags == 2 || !is_tag(type) || at + TAG_BYTES > length)
			break;
		vlan[tags] = (uint16_t)(bytes[at + 2] << 8 | bytes[at + 3]) & VLAN_MASK;
		at += TAG_BYTES;
	}
	if (type == RTE_ETHER_TYPE_IPV4 && at + 2 + IPV4_BYTES <= length) {
		first = bytes[at + 2 + IPV4_DESTINATION];
		last = bytes[at + 2 + IPV4_DESTINATION + 3];
	}
	uint32_t subport = vlan[0] & (profile->port.n_subports_per_port - 1);
	uint32_t pipe = vlan[1] & (profile->subports[subport].n_pipes_per_subport_enabled - 1);
	uint32_t queue = profile->active[subport][last % profile->n_active[subport]];
	uint32_t class = RTE_MIN(queue, (uint32_t)RTE_SCHED_TRAFFIC_CLASS_BE);
	/* Two bits of the address, and three colours: the library would read beyond its curves. */
	uint32_t colour = RTE_MIN((uint32_t)first & 3, (uint32_t)RTE_COLOR_RED);
	rte_sched_port_pkt_write(flow->sched, frame, subport, pipe, class, queue - class, (enum rte_color)colour);
}

bool receive_step(struct flow *flow)
{
	struct rte_mbuf *frames[MAX_BURST];
	uint16_t n = rte_eth_rx_burst(flow->in_port, 0, frames, (uint16_t)flow->bursts.receive);

	if (n == 0)
		return false;
	count(&flow->received_frames, n);
	for (uint16_t i = 0; flow->sched != NULL && i < n; i++)
		find_queue(flow, frames[i]);
	/* All or none, as the sample. */
	if (rte_ring_sp_enqueue_bulk(flow->received, (void **)frames, n, NULL) == 0) {
		rte_pktmbuf_free_bulk(frames, n);
		count(&flow->ring_full_frames, n);
	}
	return true;
}

/* The sample waits in a loop for room in the second ring. This returns to it in the next round, for the transmit thread
 * may share a processor with this one. */
static bool has_handed_on(struct flow *flow)
{
	if (flow->n_pending == 0)
		return true;
	if (rte_ring_sp_enqueue_bulk(flow->scheduled, (void **)flow->pending, flow->n_pending, NULL) == 0)
		return false;
	flow->n_pending = 0;
	return true;
}

static bool schedule(struct flow *flow)
{
	struct rte_mbuf *frames[MAX_BURST];
	uint32_t n = rte_ring_sc_dequeue_burst(flow->received, (void **)frames, flow->bursts.enqueue, NULL);

	/* The library frees and counts what it drops. */
	if (n > 0)
		rte_sched_port_enqueue(flow->sched, frames, n);
	int out = rte_sched_port_dequeue(flow->sched, flow->pending, flow->bursts.dequeue);
	flow->n_pending = out > 0 ? (uint32_t)out : 0;
	return n > 0 || flow->n_pending > 0;
}

/* The sample waits in a loop until the interface has taken all; this returns to it in the next round. Whether
 * the interface took anything: where it does not, a thread that has no processor of its own must sleep. */
static bool send_due(struct flow *flow)
{
	uint16_t sent = rte_eth_tx_burst(flow->out_port, 0, flow->held, (uint16_t)flow->n_due);

	flow->n_due -= sent;
	flow->n_held -= sent;
	memmove(flow->held, flow->held + sent, flow->n_held * sizeof(flow->held[0]));
	count(&flow->sent_frames, sent);
	return sent > 0;
}

/* `n` frames more are held: whole bursts are due, and after a while without any, or if nobody waits, the rest. */
static void collected(struct flow *flow, uint32_t n)
{
	bool waits = atomic_load_explicit(&flow->waits_for_bursts, memory_order_relaxed);
	uint64_t now = rte_get_tsc_cycles();

	flow->n_held += n;
	if (n > 0)
		flow->last_taken = now;
	flow->n_due = flow->n_held - flow->n_held % flow->bursts.transmit;
	if (!waits || now - flow->last_taken > flow->drain_cycles)
		flow->n_due = flow->n_held;
	if (flow->n_due > 0)
		send_due(flow);
}

bool worker_step(struct flow *flow)
{
	bool worked;

	if (atomic_load_explicit(&flow->counters_wanted, memory_order_acquire)) {
		counters_copy(flow);
		atomic_store_explicit(&flow->counters_wanted, false, memory_order_release);
	}
	if (flow->is_mixed && flow->n_due > 0)
		return send_due(flow);
	if (!flow->is_mixed && !has_handed_on(flow))
		return false;
	if (flow->sched != NULL) {
		worked = schedule(flow);
	} else {
		flow->n_pending = rte_ring_sc_dequeue_burst(flow->received, (void **)flow->pending, flow->bursts.dequeue, NULL);
		worked = flow->n_pending > 0;
	}
	if (flow->is_mixed) {
		memcpy(flow->held + flow->n_held, flow->pending, flow->n_pending * sizeof(flow->held[0]));
		collected(flow, flow->n_pending);
	} else {
		has_handed_on(flow);
	}
	return worked;
}

bool transmit_step(struct flow *flow)
{
	bool waits = atomic_load_explicit(&flow->waits_for_bursts, memory_order_relaxed);
	struct rte_mbuf **behind = flow->held + flow->n_held;
	uint32_t n;

	if (flow->n_due > 0)
		return send_due(flow);
	if (waits)
		n = rte_ring_sc_dequeue_bulk(flow->scheduled, (void **)behind, flow->bursts.dequeue, NULL);
	else
		n = rte_ring_sc_dequeue_burst(flow->scheduled, (void **)behind, flow->bursts.dequeue, NULL);
	collected(flow, n);
	return n > 0;
}
