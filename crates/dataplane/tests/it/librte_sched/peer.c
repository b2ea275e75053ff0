/*
 * Drives librte_sched (DPDK 22.11) with packets and times from standard input, one command per line, and writes to
 * standard output what leaves and what is dropped.
 *
 * The library reads the processor's time-stamp counter. PR_SET_TSC makes every read of it a fault, whose handler answers
 * with the time of the script. A counter that runs at one count per byte of the port's rate makes time exact: the library
 * converts counts to bytes without rounding.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_red.h>
#include <rte_sched.h>

#define MBUFS 32767
#define SUBPORTS 8
#define PROFILES 256
#define RANGES 64
#define BURST 64
#define BEST_EFFORT RTE_SCHED_TRAFFIC_CLASS_BE
#define CLASSES RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE

static uint64_t counter;
static uint64_t counts_per_second;

/* The library asks for the frequency of the counter: this definition is found before that of librte_eal. */
uint64_t rte_get_tsc_hz(void)
{
	return counts_per_second;
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint8_t *code = (const uint8_t *)registers[REG_RIP];

	(void)info;
	if (code[0] != 0x0f || code[1] != 0x31) {
		signal(signal_number, SIG_DFL);
		return;
	}
	registers[REG_RAX] = (uint32_t)counter;
	registers[REG_RDX] = counter >> 32;
	registers[REG_RIP] += 2;
}

static void fail(const char *what)
{
	fprintf(stderr, "peer: %s\n", what);
	exit(1);
}

static uint64_t number(void)
{
	uint64_t value;

	if (scanf("%" SCNu64, &value) != 1)
		fail("a number is missing");
	return value;
}

static void read_classes(uint64_t rates[CLASSES])
{
	for (int i = 0; i < CLASSES; i++)
		rates[i] = number();
}

struct range {
	uint32_t first, last, profile;
};

/* A scheduler as it is described. */
static struct rte_sched_port_params port_params;
static struct rte_sched_subport_profile_params subport_profiles[SUBPORTS];
static struct rte_sched_pipe_params pipe_profiles[PROFILES];
static struct rte_sched_subport_params subports[SUBPORTS];
static uint32_t profile_of[SUBPORTS];
static struct range ranges[SUBPORTS][RANGES];
static uint32_t n_ranges[SUBPORTS];
static struct rte_sched_cman_params cman;
static uint32_t n_subports, n_pipe_profiles, has_red;
static struct rte_mempool *pool;

static void read_subport(void)
{
	struct rte_sched_subport_params *subport = &subports[n_subports];

	profile_of[n_subports] = number();
	subport->n_pipes_per_subport_enabled = number();
	for (int i = 0; i < CLASSES; i++)
		subport->qsize[i] = number();
	n_ranges[n_subports] = number();
	if (n_ranges[n_subports] > RANGES)
		fail("too many ranges");
	for (uint32_t i = 0; i < n_ranges[n_subports]; i++) {
		struct range *range = &ranges[n_subports][i];

		range->first = number();
		range->last = number();
		range->profile = number();
	}
	n_subports++;
}

static void read_pipe_profile(void)
{
	struct rte_sched_pipe_params *pipe = &pipe_profiles[n_pipe_profiles++];

	pipe->tb_rate = number();
	pipe->tb_size = number();
	read_classes(pipe->tc_rate);
	pipe->tc_period = number();
	pipe->tc_ov_weight = number();
	for (int i = 0; i < RTE_SCHED_BE_QUEUES_PER_PIPE; i++)
		pipe->wrr_weights[i] = number();
}

static void read_subport_profile(void)
{
	struct rte_sched_subport_profile_params *profile =
		&subport_profiles[port_params.n_subport_profiles++];

	profile->tb_rate = number();
	profile->tb_size = number();
	read_classes(profile->tc_rate);
	profile->tc_period = number();
}

static void read_red(void)
{
	uint32_t class = number();
	struct rte_red_params *red = &cman.red_params[class][number()];

	red->min_th = number();
	red->max_th = number();
	red->maxp_inv = number();
	red->wq_log2 = number();
	has_red = 1;
}

static struct rte_sched_port *start(uint32_t seed)
{
	struct rte_sched_port *port;

	counter = 0;
	counts_per_second = port_params.rate;
	port_params.name = "port";
	port_params.n_subports_per_port = n_subports;
	port_params.subport_profiles = subport_profiles;
	port_params.n_max_subport_profiles = SUBPORTS;
	cman.cman_mode = RTE_SCHED_CMAN_RED;
	for (uint32_t i = 0; i < n_subports; i++) {
		subports[i].pipe_profiles = pipe_profiles;
		subports[i].n_pipe_profiles = n_pipe_profiles;
		subports[i].n_max_pipe_profiles = PROFILES;
		subports[i].cman_params = has_red ? &cman : NULL;
		if (port_params.n_pipes_per_subport < subports[i].n_pipes_per_subport_enabled)
			port_params.n_pipes_per_subport = subports[i].n_pipes_per_subport_enabled;
	}
	port = rte_sched_port_config(&port_params);
	if (port == NULL)
		fail("the port is refused");
	for (uint32_t i = 0; i < n_subports; i++) {
		if (rte_sched_subport_config(port, i, &subports[i], profile_of[i]) != 0)
			fail("a subport is refused");
		for (uint32_t j = 0; j < n_ranges[i]; j++)
			for (uint32_t pipe = ranges[i][j].first; pipe <= ranges[i][j].last; pipe++)
				if (rte_sched_pipe_config(port, i, pipe, ranges[i][j].profile) != 0)
					fail("a pipe is refused");
	}
	rte_red_rand_seed = seed;
	rte_red_rand_val = rte_fast_rand();
	return port;
}

/* A port that is freed loses the packets of full queues, so each has a pool of its own. */
static void reset(struct rte_sched_port *port)
{
	if (port != NULL)
		rte_sched_port_free(port);
	rte_mempool_free(pool);
	pool = rte_pktmbuf_pool_create("packets", MBUFS, 0, 0, RTE_PKTMBUF_HEADROOM + 64, 0);
	if (pool == NULL)
		fail("no memory for packet buffers");
	memset(&port_params, 0, sizeof(port_params));
	memset(&cman, 0, sizeof(cman));
	n_subports = n_pipe_profiles = has_red = 0;
}

static struct rte_mbuf *packet(struct rte_sched_port *port, uint64_t handle, uint32_t subport, uint32_t pipe,
			       uint32_t queue, uint32_t colour, uint32_t bytes)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	uint32_t class = queue < BEST_EFFORT ? queue : BEST_EFFORT;

	if (mbuf == NULL)
		fail("no packet buffer is left");
	mbuf->pkt_len = bytes;
	mbuf->dynfield1[0] = handle;
	rte_sched_port_pkt_write(port, mbuf, subport, pipe, class, queue - class, colour);
	return mbuf;
}

static void enqueue(struct rte_sched_port *port, uint64_t handle)
{
	uint32_t subport = number(), pipe = number(), queue = number(), colour = number(), bytes = number();
	struct rte_mbuf *mbuf = packet(port, handle, subport, pipe, queue, colour, bytes);

	if (rte_sched_port_enqueue(port, &mbuf, 1) == 0)
		printf("d %" PRIu64 "\n", handle);
}

/* The library reads differences of less than 2^24 counts. */
static void call(struct rte_sched_port *port)
{
	struct rte_mbuf *mbufs[BURST];
	uint64_t time = number();
	uint32_t most = number();
	int sent;

	if (time - counter >= 1 << 24 || most > BURST)
		fail("a time or a burst is too long");
	counter = time;
	sent = rte_sched_port_dequeue(port, mbufs, most);
	printf("s");
	for (int i = 0; i < sent; i++) {
		printf(" %" PRIu32, mbufs[i]->dynfield1[0]);
		rte_pktmbuf_free(mbufs[i]);
	}
	printf("\n");
}

static void run_script(void)
{
	struct rte_sched_port *port = NULL;
	uint64_t handle = 0;
	char word[32];

	while (scanf("%31s", word) == 1) {
		if (strcmp(word, "e") == 0) {
			enqueue(port, handle++);
		} else if (strcmp(word, "c") == 0) {
			call(port);
		} else if (strcmp(word, "port") == 0) {
			reset(port);
			port_params.rate = number();
			port_params.mtu = number();
			port_params.frame_overhead = number();
		} else if (strcmp(word, "subport_profile") == 0) {
			read_subport_profile();
		} else if (strcmp(word, "pipe_profile") == 0) {
			read_pipe_profile();
		} else if (strcmp(word, "red") == 0) {
			read_red();
		} else if (strcmp(word, "subport") == 0) {
			read_subport();
		} else if (strcmp(word, "start") == 0) {
			port = start(number());
			handle = 0;
		} else if (strcmp(word, "end") == 0) {
			printf("end\n");
			fflush(stdout);
		} else {
			fail("an unknown command");
		}
	}
	reset(port);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	if (rte_eal_init(argc, argv) < 0)
		fail("the environment of DPDK does not start");
	sigaction(SIGSEGV, &action, NULL);
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0)
		fail("the time-stamp counter cannot be replaced");
	run_script();
	return 0;
}
