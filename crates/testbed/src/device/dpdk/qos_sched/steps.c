/* A test of the threads' steps, with rings for interfaces: where frames of a profile are put, whether a step did anything,
 * and how drops are counted. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>

#include "qos_sched.h"

#define FRAME_BYTES 60
#define FRAMES 2047
/* Frames that the sending interface has room for. */
#define ROOM 3
/* More than a queue holds. */
#define BURST 100

static struct profile profile;
static struct rte_mempool *pool;

void complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

/* An interface of the driver net_ring sends into the ring that it receives from. */
static struct rte_ring *start_interface(uint16_t port)
{
	struct rte_eth_conf configuration = {0};
	char name[RTE_RING_NAMESIZE];

	if (rte_eth_dev_configure(port, 1, 1, &configuration) != 0 ||
	    rte_eth_rx_queue_setup(port, 0, FRAMES, SOCKET_ID_ANY, NULL, pool) != 0 ||
	    rte_eth_tx_queue_setup(port, 0, FRAMES, SOCKET_ID_ANY, NULL) != 0 || rte_eth_dev_start(port) != 0)
		exit(EXIT_FAILURE);
	snprintf(name, sizeof(name), "ETH_RXTX0_net_ring%u", port);
	return rte_ring_lookup(name);
}

static struct rte_ring *ring(const char *name, unsigned entries)
{
	return rte_ring_create(name, entries, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

/* `what` is bytes from the type of the frame on, in hexadecimal. */
static struct rte_mbuf *frame(const char *what)
{
	struct rte_mbuf *made = rte_pktmbuf_alloc(pool);
	uint8_t *bytes = (uint8_t *)rte_pktmbuf_append(made, FRAME_BYTES);
	unsigned byte;

	memset(bytes, 0, FRAME_BYTES);
	for (bytes += 12; sscanf(what, "%2x", &byte) == 1; what += 2)
		*bytes++ = (uint8_t)byte;
	return made;
}

static struct rte_mbuf *received(struct flow *flow, struct rte_ring *card, const char *what)
{
	void *taken;

	rte_ring_enqueue(card, frame(what));
	if (!receive_step(flow) || rte_ring_dequeue(flow->received, &taken) != 0)
		exit(EXIT_FAILURE);
	return taken;
}

static void place(struct flow *flow, struct rte_ring *card, const char *what)
{
	uint32_t subport, pipe, class, queue;
	struct rte_mbuf *taken = received(flow, card, what);

	rte_sched_port_pkt_read_tree_path(flow->sched, taken, &subport, &pipe, &class, &queue);
	printf("subport %u pipe %u tc %u queue %u colour %d\n", subport, pipe, class, queue,
	       (int)rte_sched_port_pkt_read_color(taken));
	rte_pktmbuf_free(taken);
}

static void fill(struct flow *flow, struct rte_ring *card)
{
	void *taken;

	while (rte_ring_free_count(card) > ROOM)
		rte_ring_enqueue(card, frame("0800"));
	for (int i = 0; i < ROOM + 1; i++)
		rte_ring_enqueue(flow->scheduled, frame("0800"));
	printf("worked:");
	for (int i = 0; i < ROOM + 2; i++)
		printf(" %d", transmit_step(flow));
	rte_ring_dequeue(card, &taken);
	printf(" and with room: %d\n", transmit_step(flow));
}

static void work(struct flow *flow, struct rte_ring *card)
{
	bool worked = worker_step(flow);

	printf(" %d %u", worked, rte_ring_count(card));
}

/* Whether a worker that transmits worked, and frames that the interface has of it: bursts of two, and a rest. Without
 * the scheduler, which hands on some frames a round later. */
static void mixed(struct flow *flow, struct rte_ring *card)
{
	struct rte_sched_port *sched = flow->sched;
	void *taken;

	while (rte_ring_dequeue(card, &taken) == 0)
		;
	flow->sched = NULL;
	flow->is_mixed = true;
	flow->bursts.transmit = 2;
	flow->drain_cycles = UINT64_MAX;
	atomic_store(&flow->waits_for_bursts, true);
	printf("mixed:");
	for (int i = 0; i < 3; i++) {
		rte_ring_enqueue(flow->received, frame("0800"));
		work(flow, card);
	}
	work(flow, card);
	flow->drain_cycles = 0;
	printf(", after the drain:");
	work(flow, card);
	printf("\n");
	flow->sched = sched;
}

static void overflow(struct flow *flow, struct rte_ring *card, const char *what)
{
	for (int i = 0; i < BURST; i++) {
		struct rte_mbuf *taken = received(flow, card, what);

		rte_sched_port_enqueue(flow->sched, &taken, 1);
	}
	counters_copy(flow);
	counters_print(flow, flow, 0);
}

int main(int argc, char **argv)
{
	char *arguments[] = {argv[0], "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "--log-level=error",
			     "-m512", "--lcores=0@0", "--vdev=net_ring0", "--vdev=net_ring1", NULL};
	static struct flow flow = {.bursts = {1, 1, 1, 1}};

	if (argc < 3 || rte_eal_init(RTE_DIM(arguments) - 1, arguments) < 0 || !profile_read(argv[1], &profile))
		return EXIT_FAILURE;
	profile.port.name = "port";
	profile.port.rate = 1250000000;
	profile.port.mtu = 1522;
	pool = rte_pktmbuf_pool_create("frames", FRAMES, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);

	flow.profile = &profile;
	flow.sched = scheduler_start(&profile);
	flow.received = ring("received", 64);
	flow.scheduled = ring("scheduled", 64);
	flow.in_port = 0;
	flow.out_port = 1;
	struct rte_ring *in = start_interface(0), *out = start_interface(1);

	if (flow.sched == NULL || in == NULL || out == NULL)
		return EXIT_FAILURE;
	for (int i = 2; i < argc; i++)
		place(&flow, in, argv[i]);
	fill(&flow, out);
	mixed(&flow, out);
	overflow(&flow, in, argv[2]);
	return EXIT_SUCCESS;
}
