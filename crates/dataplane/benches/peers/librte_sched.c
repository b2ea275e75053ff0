/* What DPDK's hierarchical scheduler (librte_sched) costs a packet, on one core and without a NIC.
 *
 *     cc -O3 -DALLOW_EXPERIMENTAL_API librte_sched.c $(pkg-config --cflags --libs libdpdk) -lm -o librte_sched
 *     ./librte_sched --scenario deep|shallow|shaped --pipes N [--packets N] [...]
 *
 * Prints one line of JSON. `cargo bench -p slicewise-dataplane --bench slices` builds and runs it;
 * docs/benchmarks/slices.md says what the scenarios mean and why they are set up this way.
 *
 * The library reads the time itself (TSC cycles, turned into bytes of the port's rate), so this
 * program runs in real time: nothing is simulated. Only enqueue and dequeue calls are timed; making
 * the packets and waiting for the next call's turn are not.
 *
 * A slice is a pipe with one queue of 64 packets in use, of traffic class 0 (strict priority within
 * the pipe), which is the library's cheapest: the best-effort class has four queues and a round
 * robin. Every other queue has the least length the library takes. Packets are mbufs without a data
 * room: the scheduler reads headers only, and packed headers miss the cache least.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_sched.h>

#define ROUND_PACKETS 2000u
#define BURST 64u
#define QUEUE_PACKETS 64u
#define FRAME_BYTES 1500u
#define WIRE_BYTES (FRAME_BYTES + RTE_SCHED_FRAME_OVERHEAD_DEFAULT)
#define HUGE_PAGE ((size_t)2 << 20)
/* A million backlogged pipes are spread over subports: a subport's arrays must stay below 4 GiB. */
#define PIPES_PER_SUBPORT_MAX (1u << 19)
/* Shaped: the pipes' maxima together are this part of the port. (The library's time advances by the
 * packets it sends, within a call too: the nearer the maxima come to the port, the more credit that
 * gives, and the longer it searches for it.) */
#define SHAPED_PART 8

enum scenario { DEEP, SHALLOW, SHAPED, SCENARIOS };
static const char *const scenarios[] = {"deep", "shallow", "shaped"};

static struct {
	enum scenario scenario;
	uint32_t pipes;
	uint64_t packets;
	uint64_t rate;       /* of the port, bytes/s */
	uint32_t depth;      /* packets waiting in a pipe, on average */
	uint32_t due;        /* shaped: packets that get their credit between two calls */
	uint32_t traffic_class;
	uint16_t data_room;  /* bytes of an mbuf's buffer */
	int small_pages;
} options = {.scenario = DEEP, .pipes = 4096, .packets = 1000000, .due = BURST};

static struct rte_sched_port *port;
static struct rte_mempool *pool;
static uint32_t subports, pipes_per_subport;
static uint64_t footprint;
static uint64_t random_state = 0x9e3779b97f4a7c15;

/* What was measured. */
static uint64_t busy_cycles; /* in calls to enqueue and dequeue */
static uint64_t longest_cycles; /* in one call to dequeue */
static uint64_t shaped_next; /* shaped: when the next call is due */
static uint64_t sent_packets, offered_packets, dropped_packets, calls;

static void die(const char *what)
{
	fprintf(stderr, "librte_sched: %s: %s\n", what, rte_strerror(rte_errno));
	exit(1);
}

/* xorshift64, and a multiplication instead of a modulus: the generator of the Rust side. */
static uint32_t random_below(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(((random_state >> 32) * limit) >> 32);
}

static double ns_of(uint64_t cycles)
{
	return (double)cycles * 1e9 / (double)rte_get_tsc_hz();
}

static uint64_t cycles_of(double ns)
{
	return (uint64_t)(ns * 1e-9 * (double)rte_get_tsc_hz());
}

/* The time in which all pipes together get the credit of one packet. The library takes the simplest
 * fraction of the port's rate within 1e-7 for a pipe's: with so small a part, one over an integer. */
static double shaped_packet_ns(void)
{
	double part = 1.0 / SHAPED_PART / options.pipes;
	double divisor = ceil(1 / (part + 1e-7));
	return WIRE_BYTES * 1e9 * divisor / options.pipes / (double)options.rate;
}

/* Memory for the library's tables and the mbufs: an external heap of anonymous pages, in which the
 * kernel is asked for transparent huge pages. They serve as hugepages do and need no
 * privilege; --small-pages shows what they are worth. */
static int socket_of_heap(size_t bytes)
{
	size_t length = RTE_ALIGN_CEIL(bytes, HUGE_PAGE);
	char *memory = mmap(NULL, length + HUGE_PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		die("no memory");
	memory = RTE_PTR_ALIGN_CEIL(memory, HUGE_PAGE);
	madvise(memory, length, options.small_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
	if (rte_malloc_heap_create("sched") != 0 ||
	    rte_malloc_heap_memory_add("sched", memory, length, NULL, length / HUGE_PAGE, HUGE_PAGE) != 0)
		die("cannot make a heap");
	return rte_malloc_heap_get_socket("sched");
}

/* The port: every pipe may use all of it, unless the scenario shapes. */
static void build(void)
{
	int shaped = options.scenario == SHAPED;
	subports = (options.pipes + PIPES_PER_SUBPORT_MAX - 1) / PIPES_PER_SUBPORT_MAX;
	pipes_per_subport = options.pipes / subports;

	uint64_t pipe_rate = shaped ? options.rate / SHAPED_PART / options.pipes : options.rate;
	struct rte_sched_pipe_params pipe = {
		.tb_rate = pipe_rate,
		.tb_size = shaped ? 2 * WIRE_BYTES : 1000000,
		.tc_period = 10000, /* ms: so long that the limits of traffic classes never bind */
		.tc_ov_weight = 1,
		.wrr_weights = {1, 1, 1, 1},
	};
	struct rte_sched_subport_profile_params whole_port = {
		.tb_rate = options.rate, .tb_size = 100000000, .tc_period = 10000,
	};
	struct rte_sched_subport_params subport = {
		.n_pipes_per_subport_enabled = pipes_per_subport,
		.pipe_profiles = &pipe, .n_pipe_profiles = 1, .n_max_pipe_profiles = 1,
	};
	for (int i = 0; i < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; i++)
		whole_port.tc_rate[i] = options.rate;
	subport.qsize[RTE_SCHED_TRAFFIC_CLASS_BE] = 1;
	pipe.tc_rate[RTE_SCHED_TRAFFIC_CLASS_BE] = pipe_rate;
	subport.qsize[options.traffic_class] = QUEUE_PACKETS;
	pipe.tc_rate[options.traffic_class] = pipe_rate;

	struct rte_sched_port_params params = {
		.name = "port", .rate = options.rate, .mtu = FRAME_BYTES,
		.frame_overhead = RTE_SCHED_FRAME_OVERHEAD_DEFAULT,
		.n_subports_per_port = 1, .n_pipes_per_subport = pipes_per_subport,
		.subport_profiles = &whole_port, .n_subport_profiles = 1, .n_max_subport_profiles = 1,
	};
	struct rte_sched_subport_params *one[] = {&subport};
	footprint = (uint64_t)rte_sched_port_get_memory_footprint(&params, one) * subports;
	params.n_subports_per_port = subports;

	uint32_t mbufs = options.pipes * options.depth + 8 * BURST;
	size_t element = sizeof(struct rte_mbuf) + options.data_room + 128;
	params.socket = socket_of_heap(footprint + (size_t)mbufs * (element + 16) + ((size_t)256 << 20));
	port = rte_sched_port_config(&params);
	if (port == NULL)
		die("rte_sched_port_config");
	for (uint32_t s = 0; s < subports; s++) {
		if (rte_sched_subport_config(port, s, &subport, 0) != 0)
			die("rte_sched_subport_config");
		for (uint32_t p = 0; p < pipes_per_subport; p++)
			if (rte_sched_pipe_config(port, s, p, 0) != 0)
				die("rte_sched_pipe_config");
	}
	pool = rte_pktmbuf_pool_create("mbufs", mbufs, 256, 0, options.data_room, params.socket);
	if (pool == NULL)
		die("rte_pktmbuf_pool_create");
}

/* What a classifier would have done before the scheduler sees the packet. */
static void address(struct rte_mbuf *packet, uint32_t pipe)
{
	packet->pkt_len = FRAME_BYTES;
	rte_sched_port_pkt_write(port, packet, pipe / pipes_per_subport, pipe % pipes_per_subport,
				 options.traffic_class, 0, RTE_COLOR_GREEN);
}

static void enqueue(struct rte_mbuf **packets, uint32_t count)
{
	if (count == 0)
		return;
	uint64_t start = rte_rdtsc();
	int accepted = rte_sched_port_enqueue(port, packets, count);
	busy_cycles += rte_rdtsc() - start;
	offered_packets += count;
	dropped_packets += count - (uint32_t)accepted;
}

static uint32_t dequeue(struct rte_mbuf **packets, uint32_t count)
{
	static uint64_t previous;
	uint64_t start = rte_rdtsc();
	/* Shaped: the library multiplies time differences in 32 bits: after a silence of 2^24 cycles (another
	 * process had the CPU) its clock has lost them. What is due comes later by as much. */
	if (previous != 0)
		shaped_next += (start - previous) >> 24 << 24;
	previous = start;
	start = rte_rdtsc();
	uint32_t got = (uint32_t)rte_sched_port_dequeue(port, packets, count);
	uint64_t took = rte_rdtsc() - start;
	busy_cycles += took;
	sent_packets += got;
	longest_cycles = RTE_MAX(longest_cycles, took);
	calls++;
	return got;
}

/* Enqueue packets to one pipe, or with UINT32_MAX each to a random pipe. Packets that find a queue
 * full go back to the mempool; backlogs are chosen such that there are none. */
static void offer(struct rte_mbuf **packets, uint32_t count, uint32_t pipe)
{
	for (uint32_t i = 0; i < count; i++)
		address(packets[i], pipe == UINT32_MAX ? random_below(options.pipes) : pipe);
	enqueue(packets, count);
}

/* deep: `depth` packets wait in a pipe on average; 64 leave, 64 arrive at random pipes. */
static void run_deep(uint64_t packets)
{
	struct rte_mbuf *burst[BURST];
	for (uint64_t until = sent_packets + packets; sent_packets < until;) {
		uint32_t got = dequeue(burst, BURST);
		offer(burst, got, UINT32_MAX);
	}
}

/* shallow: 64 packets arrive at random pipes of an empty scheduler and all leave. */
static void run_shallow(uint64_t packets)
{
	struct rte_mbuf *burst[BURST];
	if (rte_pktmbuf_alloc_bulk(pool, burst, BURST) != 0)
		die("no mbufs");
	for (uint64_t until = sent_packets + packets; sent_packets < until;) {
		offer(burst, BURST, UINT32_MAX);
		for (uint32_t got = 0; got < BURST;)
			got += dequeue(burst + got, BURST - got);
	}
	rte_pktmbuf_free_bulk(burst, BURST);
}

/* shaped: every pipe has packets waiting and is at its maximum; what leaves a pipe comes back to it.
 * Before each call the time passes in which `due` packets get the credit they need. A call that comes
 * late is followed at once by the next, until they are on time again. With 64 due a call, up to 64
 * more are due already: so a call finds 64, and need not visit all pipes to learn that there are no
 * more. That spares the library most visits in vain. */
static void run_shaped(uint64_t packets)
{
	struct rte_mbuf *burst[BURST];
	uint64_t interval = cycles_of(options.due * shaped_packet_ns());
	for (uint64_t until = sent_packets + packets; sent_packets < until; shaped_next += interval) {
		while (rte_rdtsc() < shaped_next)
			rte_pause();
		uint32_t got = dequeue(burst, BURST);
		enqueue(burst, got); /* the address is still in the mbuf */
		if (got < BURST && options.due == BURST) /* nothing is left over: rounding ate it */
			shaped_next += interval;
	}
}

/* Pipes begin one after the other, in random order, over the time in which a pipe's rate is worth
 * one packet: so their token buckets fill at times spread evenly, as those of unrelated slices do. */
static void begin_shaped(void)
{
	struct rte_mbuf *burst[QUEUE_PACKETS];
	uint32_t *order = malloc(options.pipes * sizeof(*order));
	for (uint32_t i = 0; i < options.pipes; i++) {
		uint32_t j = random_below(i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	uint64_t gap = cycles_of(shaped_packet_ns());
	/* Two packet times of a pipe pass first: then every bucket is full. */
	uint64_t start = rte_rdtsc() + 2 * gap * options.pipes;
	for (uint32_t i = 0; i < options.pipes; i++) {
		while (rte_rdtsc() < start + i * gap)
			enqueue(burst, dequeue(burst, BURST));
		if (rte_pktmbuf_alloc_bulk(pool, burst, options.depth) != 0)
			die("no mbufs");
		offer(burst, options.depth, order[i]);
	}
	free(order);
}

static void run(uint64_t packets)
{
	if (options.scenario == DEEP)
		run_deep(packets);
	else if (options.scenario == SHALLOW)
		run_shallow(packets);
	else
		run_shaped(packets);
}

/* Bring the scheduler to its steady state. */
static void begin(void)
{
	struct rte_mbuf *burst[QUEUE_PACKETS];
	if (options.scenario == SHALLOW) {
		run(100000);
	} else if (options.scenario == SHAPED) {
		begin_shaped();
		shaped_next = rte_rdtsc();
		run(options.pipes);
	} else {
		/* All pipes equally full to begin with: two turns of each make their lengths differ. */
		for (uint32_t pipe = 0; pipe < options.pipes; pipe++) {
			if (rte_pktmbuf_alloc_bulk(pool, burst, options.depth) != 0)
				die("no mbufs");
			offer(burst, options.depth, pipe);
		}
		run(2ull * options.pipes * options.depth);
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Other processes interrupt some rounds: the median of the rounds is what the library costs. */
static void measure(void)
{
	uint64_t rounds = options.packets / ROUND_PACKETS;
	double *cost = calloc(rounds, sizeof(double)), *longest = calloc(rounds, sizeof(double));
	offered_packets = dropped_packets = calls = 0;
	uint64_t first = sent_packets;
	for (uint64_t round = 0; round < rounds; round++) {
		uint64_t before = sent_packets;
		busy_cycles = longest_cycles = 0;
		run(ROUND_PACKETS);
		cost[round] = ns_of(busy_cycles) / (double)(sent_packets - before);
		longest[round] = ns_of(longest_cycles) / 1e3;
	}
	qsort(cost, rounds, sizeof(double), ascending);
	qsort(longest, rounds, sizeof(double), ascending);
	printf("{\"scenario\":\"%s\",\"pipes\":%u,\"traffic_class\":%u,\"gbits\":%.3f,\"ns_per_packet\":%.1f,"
	       "\"longest_call_us\":%.2f,\"packets_per_call\":%.3f,\"drop_ratio\":%.5f,"
	       "\"bytes_per_pipe\":%" PRIu64 "}\n",
	       scenarios[options.scenario], options.pipes, options.traffic_class,
	       (double)options.rate * 8e-9, cost[rounds / 2], longest[rounds / 2],
	       (double)(sent_packets - first) / (double)calls,
	       (double)dropped_packets / (double)offered_packets, footprint / options.pipes);
}

static void parse(int count, char **arguments)
{
	static const struct option known[] = {
		{"scenario", 1, 0, 's'}, {"pipes", 1, 0, 'p'},   {"packets", 1, 0, 'n'},
		{"gbits", 1, 0, 'g'},    {"depth", 1, 0, 'd'},   {"traffic-class", 1, 0, 't'},
		{"due", 1, 0, 'u'}, {"data-room", 1, 0, 'r'}, {"small-pages", 0, 0, '4'}, {0}};
	double gbits = 0;
	for (int c; (c = getopt_long(count, arguments, "", known, NULL)) != -1;) {
		switch (c) {
		case 's':
			for (options.scenario = 0; options.scenario < SCENARIOS; options.scenario++)
				if (strcmp(scenarios[options.scenario], optarg) == 0)
					break;
			break;
		case 'p': options.pipes = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'n': options.packets = strtoull(optarg, NULL, 10); break;
		case 'g': gbits = strtod(optarg, NULL); break;
		case 'd': options.depth = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'u': options.due = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 't': options.traffic_class = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'r': options.data_room = (uint16_t)strtoul(optarg, NULL, 10); break;
		case '4': options.small_pages = 1; break;
		default: exit(2);
		}
	}
	if (options.scenario == SCENARIOS || !rte_is_power_of_2(options.pipes) || options.packets < ROUND_PACKETS ||
	    options.depth > QUEUE_PACKETS || options.traffic_class > RTE_SCHED_TRAFFIC_CLASS_BE) {
		fprintf(stderr, "librte_sched: --scenario deep|shallow|shaped --pipes <power of two>"
				" --packets <at least 2000> --depth <at most 64> --traffic-class <at most 12>\n");
		exit(2);
	}
	if (options.depth == 0) /* at most 4 million mbufs in all */
		options.depth = options.scenario == SHAPED ? 4 : RTE_MAX(1u, RTE_MIN(16u, (4u << 20) / options.pipes));
	if (gbits == 0) /* shaped: slow enough for a call that visits every pipe to end in time */
		gbits = options.scenario == SHAPED ? RTE_MIN(20.0, 20.0 * 4096 / options.pipes) : 100;
	options.rate = (uint64_t)(gbits * 1e9 / 8);
}

int main(int count, char **arguments)
{
	parse(count, arguments);
	/* One lcore that may run on any CPU it was given, so that it need not wait for a busy one. */
	char lcores[16 * CPU_SETSIZE] = "0@(", *end = lcores + strlen(lcores);
	cpu_set_t cpus;
	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			end += sprintf(end, "%s%d", end[-1] == '(' ? "" : ",", cpu);
	strcpy(end, ")");
	char *eal[] = {"librte_sched", "--lcores", lcores, "--no-pci", "--no-telemetry", "--no-shconf",
		       "--log-level=4", "--no-huge", "-m", "64"};
	if (rte_eal_init(RTE_DIM(eal), eal) < 0)
		die("rte_eal_init");
	/* The library's clock runs in whole 256ths of a cycle per byte, rounded down: at most 2 % too
	 * fast. A rate that needs no rounding keeps it exact. */
	uint64_t ticks = (rte_get_tsc_hz() << 8) / options.rate + 1;
	options.rate = (rte_get_tsc_hz() << 8) / ticks;
	build();
	begin();
	measure();
	fflush(stdout);
	_exit(0); /* freeing millions of packets one by one takes longer than the run */
}
