/* The processor time of the worker of qos_sched: a turn without packets, and bursts. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ring.h>

#include "qos_sched.h"

#define FRAMES 2047
#define FRAME_BYTES 900
#define ROUNDS 200
#define TURNS 10000
#define BURSTS 1000
#define LARGEST 64
#define PIPES 16

static struct profile profile;

void complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

/* What a turn of the worker does before frames go on: 0 or more of them. */
static int turn(struct flow *flow, struct rte_mbuf **frames, uint32_t burst)
{
	uint32_t n = rte_ring_sc_dequeue_burst(flow->received, (void **)frames, burst, NULL);

	if (n > 0)
		rte_sched_port_enqueue(flow->sched, frames, n);
	return rte_sched_port_dequeue(flow->sched, frames, burst);
}

/* Cycles of `TURNS` turns that find nothing. */
static uint64_t empty_turns(struct flow *flow)
{
	struct rte_mbuf *frames[LARGEST];
	uint64_t start = rte_get_tsc_cycles();

	for (int i = 0; i < TURNS; i++)
		turn(flow, frames, LARGEST);
	return rte_get_tsc_cycles() - start;
}

/* Cycles until `BURSTS` bursts of `size` frames have left. */
static uint64_t bursts(struct flow *flow, struct rte_mbuf **frames, uint32_t size)
{
	struct rte_mbuf *out[LARGEST];
	uint64_t start, busy = 0;

	for (int i = 0; i < BURSTS; i++) {
		uint32_t left = size;

		for (uint32_t n = 0; n < size; n++)
			rte_sched_port_pkt_write(flow->sched, frames[n], 0, n % PIPES, 0, 0, RTE_COLOR_GREEN);
		rte_ring_enqueue_bulk(flow->received, (void **)frames, size, NULL);
		start = rte_get_tsc_cycles();
		while (left > 0)
			left -= (uint32_t)turn(flow, out, size);
		busy += rte_get_tsc_cycles() - start;
	}
	return busy;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int main(int argc, char **argv)
{
	char *arguments[] = {argv[0], "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "--log-level=error",
			     "-m512", "--lcores=0@0", NULL};
	static const uint32_t sizes[] = {1, 8, 32, 64};
	static struct flow flow;
	struct rte_mbuf *frames[LARGEST];
	uint64_t shortest = UINT64_MAX;

	if (argc < 2 || rte_eal_init(RTE_DIM(arguments) - 1, arguments) < 0 || !profile_read(argv[1], &profile))
		return EXIT_FAILURE;
	profile.port.name = "port";
	profile.port.rate = 12500000000;
	profile.port.mtu = 1522;
	struct rte_mempool *pool = rte_pktmbuf_pool_create("frames", FRAMES, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);

	flow.sched = scheduler_start(&profile);
	flow.received = rte_ring_create("received", 8192, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (flow.sched == NULL || flow.received == NULL || rte_pktmbuf_alloc_bulk(pool, frames, LARGEST) != 0)
		return EXIT_FAILURE;
	for (int n = 0; n < LARGEST; n++)
		rte_pktmbuf_append(frames[n], FRAME_BYTES);

	double cycles_per_ns = (double)rte_get_tsc_hz() / 1e9;

	/* The shortest of many rounds: others may have the processor. */
	for (int round = 0; round < ROUNDS; round++)
		shortest = least(shortest, empty_turns(&flow));
	double cycles = (double)shortest / TURNS;

	printf("turn without packets: %.0f cycles, %.0f ns; the sample drains after %.1f ms\n", cycles,
	       cycles / cycles_per_ns, cycles * 0.1);
	for (unsigned i = 0; i < RTE_DIM(sizes); i++) {
		shortest = UINT64_MAX;
		for (int round = 0; round < ROUNDS / 10; round++)
			shortest = least(shortest, bursts(&flow, frames, sizes[i]));
		double ns = (double)shortest / BURSTS / cycles_per_ns;

		printf("burst of %u: %.0f ns, %.0f ns a frame\n", sizes[i], ns, ns / sizes[i]);
	}
	return EXIT_SUCCESS;
}
