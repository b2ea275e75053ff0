/* Command line, memory, processors, and the commands that arrive by standard input. */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_version.h>

#include "ports.h"
#include "qos_sched.h"

#define MEGABYTE (1024u * 1024u)
/* Frames that can wait anywhere in the device. The sample application has two million, 4.8 GB. */
#define FRAMES 65535u
#define FRAME_CACHE 256u
/* What the library puts around each, and without hugepages no two of them on one page. */
#define PAGE 4096u
#define FRAME_SPARE 256u
/* What the library takes beside frames, rings and queues. */
#define SPARE_MEGABYTES 64u
/* How long an idle thread sleeps where it shares a processor with hosts, ns. */
#define NAP 20000
#define IDLE_ROUNDS 2u
/* Real-time priority downstream. */
#define PRIORITY 50
#define INTERFACE_CHECK_MS 100
/* Exit status where another start would fail as well: options, profile, privileges, what the library refuses. */
#define EXIT_USELESS_TO_REPEAT 2
/* Processors with which each thread gets one of its own: one is left for hosts and commands. */
#define PROCESSORS_TO_SPIN 5

struct options {
	struct interfaces interfaces;
	const char *profile;
	/* Of the port, byte/s. */
	uint64_t rate;
	/* Largest frame that the scheduler counts with, without overhead. The interfaces may carry larger ones. */
	uint32_t mtu;
	uint32_t ring;
	uint32_t drain_us;
	bool is_mixed;
	struct bursts bursts;
};

struct processors {
	int numbers[PROCESSORS_TO_SPIN];
	int n;
};

static struct profile profile;
/* From --in to --out, and upstream. */
static struct flow downstream, upstream;
static atomic_bool is_over;
/* Of the thread that does the work of all: it runs, and before ordinary processes. */
static atomic_bool has_started, is_real_time;

void complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("qos-sched: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

/* ---- options ---- */

static bool read_bursts(const char *text, struct bursts *bursts)
{
	uint32_t *all[] = {&bursts->receive, &bursts->enqueue, &bursts->dequeue, &bursts->transmit};
	int used = 0;

	if (sscanf(text, "%u,%u,%u,%u%n", all[0], all[1], all[2], all[3], &used) != 4 || text[used] != '\0')
		return false;
	for (int i = 0; i < 4; i++)
		if (*all[i] < 1 || *all[i] > MAX_BURST)
			return false;
	return true;
}

static bool read_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{"in", required_argument, NULL, 'i'},      {"out", required_argument, NULL, 'o'},
		{"profile", required_argument, NULL, 'p'}, {"rate", required_argument, NULL, 'r'},
		{"mtu", required_argument, NULL, 'm'},
		{"frame-bytes", required_argument, NULL, 'f'}, {"bursts", required_argument, NULL, 'b'},
		{"ring", required_argument, NULL, 'q'},    {"nic-ring", required_argument, NULL, 'n'},
		{"drain-us", required_argument, NULL, 'd'}, {"mixed", no_argument, NULL, 'x'}, {0},
	};
	int option;

	*options = (struct options){
		.interfaces = {.frame_bytes = 1522, .ring_frames = 1024},
		.rate = 1250000000,
		.mtu = 1522,
		.ring = 8192,
		.drain_us = 100,
		.bursts = {64, 64, 32, 64},
	};
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'i': options->interfaces.in = optarg; break;
		case 'o': options->interfaces.out = optarg; break;
		case 'p': options->profile = optarg; break;
		case 'r': options->rate = strtoull(optarg, NULL, 10); break;
		case 'm': options->mtu = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'f': options->interfaces.frame_bytes = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'q': options->ring = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'n': options->interfaces.ring_frames = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'd': options->drain_us = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'x': options->is_mixed = true; break;
		case 'b':
			if (!read_bursts(optarg, &options->bursts)) {
				complain("--bursts %s: four numbers from 1 to %d, as 64,64,32,64", optarg, MAX_BURST);
				return false;
			}
			break;
		default: return false;
		}
	}
	if (options->interfaces.in == NULL || options->interfaces.out == NULL || options->profile == NULL) {
		complain("--in, --out and --profile are required");
		return false;
	}
	return true;
}

/* ---- the library ---- */

/* Those that this process may use, as many as matter. */
static struct processors allowed_processors(void)
{
	struct processors found = {.n = 0};
	cpu_set_t allowed;

	CPU_ZERO(&allowed);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return found;
	for (int i = 0; i < CPU_SETSIZE && found.n < PROCESSORS_TO_SPIN; i++)
		if (CPU_ISSET(i, &allowed))
			found.numbers[found.n++] = i;
	return found;
}

static bool spins(const struct processors *processors)
{
	return processors->n >= PROCESSORS_TO_SPIN;
}

/* The buffer of a frame: a tag may be put back into it. */
static uint32_t buffer_bytes(const struct options *options)
{
	return RTE_PKTMBUF_HEADROOM + RTE_MAX(options->interfaces.frame_bytes, 2048u);
}

/* Memory that the library needs, MB. */
static uint32_t memory_needed(const struct options *options)
{
	struct rte_sched_subport_params *subports[MAX_SUBPORTS];
	uint64_t frame = RTE_ALIGN(sizeof(struct rte_mbuf) + buffer_bytes(options) + FRAME_SPARE, PAGE);

	for (int i = 0; i < MAX_SUBPORTS; i++)
		subports[i] = &profile.subports[i];
	uint64_t scheduler = rte_sched_port_get_memory_footprint(&profile.port, subports);
	return SPARE_MEGABYTES + (uint32_t)((FRAMES * frame + scheduler) / MEGABYTE);
}

static uint64_t free_huge_megabytes(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	unsigned long long pages = 0, kilobytes = 0;
	char line[128];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		sscanf(line, "HugePages_Free: %llu", &pages);
		sscanf(line, "Hugepagesize: %llu", &kilobytes);
	}
	if (file != NULL)
		fclose(file);
	return pages * kilobytes / 1024;
}

static bool start_library(const struct options *options, const struct processors *processors, bool *is_huge)
{
	char in[256], out[256], lcores[64], memory[32];
	uint32_t needed = memory_needed(options);
	int last = processors->n > 0 ? processors->numbers[processors->n - 1] : 0;
	int first = processors->n > 0 ? processors->numbers[0] : 0;

	*is_huge = free_huge_megabytes() >= needed;
	port_device(in, sizeof(in), 0, &options->interfaces);
	port_device(out, sizeof(out), 1, &options->interfaces);
	if (spins(processors))
		snprintf(lcores, sizeof(lcores), "--lcores=0@%d,1@%d,2@%d,3@%d", first, processors->numbers[1],
			 processors->numbers[2], processors->numbers[3]);
	else
		snprintf(lcores, sizeof(lcores), "--lcores=0@%d,1@%d", first, last);
	snprintf(memory, sizeof(memory), "-m%u", needed);
	/* No files: nothing of it is shared with other processes. */
	char *arguments[] = {"qos-sched", "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=error", lcores, memory,
			     in, out, *is_huge ? "--in-memory" : "--no-huge", NULL};
	if (rte_eal_init(RTE_DIM(arguments) - 1, arguments) < 0) {
		complain("DPDK cannot be started with %u MB of %s: %s", needed, *is_huge ? "hugepages" : "memory",
			 rte_strerror(rte_errno));
		return false;
	}
	return true;
}

static bool start_flow(struct flow *flow, const char *name, const struct options *options)
{
	unsigned flags = RING_F_SP_ENQ | RING_F_SC_DEQ;
	char ring[RTE_RING_NAMESIZE];

	snprintf(ring, sizeof(ring), "%s received", name);
	flow->received = rte_ring_create(ring, options->ring, SOCKET_ID_ANY, flags);
	snprintf(ring, sizeof(ring), "%s scheduled", name);
	flow->scheduled = rte_ring_create(ring, options->ring, SOCKET_ID_ANY, flags);
	if (flow->received == NULL || flow->scheduled == NULL) {
		complain("no memory for rings: %s", rte_strerror(rte_errno));
		return false;
	}
	flow->is_mixed = options->is_mixed;
	flow->bursts = options->bursts;
	flow->drain_cycles = rte_get_tsc_hz() / 1000000 * options->drain_us;
	return true;
}

static bool start_flows(const struct options *options)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create("frames", FRAMES, FRAME_CACHE, 0,
							   (uint16_t)buffer_bytes(options), SOCKET_ID_ANY);

	if (pool == NULL) {
		complain("no memory for frames: %s", rte_strerror(rte_errno));
		return false;
	}
	downstream.out_port = upstream.in_port = 1;
	downstream.profile = &profile;
	return start_flow(&downstream, "downstream", options) && start_flow(&upstream, "upstream", options) &&
	       ports_start(pool, options->interfaces.ring_frames);
}

/* ---- threads ---- */

static const step EVERYTHING[] = {receive_step, worker_step, transmit_step, NULL};
static const step EVERYTHING_MIXED[] = {receive_step, worker_step, NULL};
static const step RECEIVE[] = {receive_step, NULL};
static const step WORKER[] = {worker_step, NULL};
static const step TRANSMIT[] = {transmit_step, NULL};

/* Before ordinary processes, which would delay it for milliseconds; and awake on time. A host that refuses is slower. */
static void set_real_time(void)
{
	struct sched_param priority = {.sched_priority = PRIORITY};

	atomic_store(&is_real_time, sched_setscheduler(0, SCHED_FIFO, &priority) == 0);
	prctl(PR_SET_TIMERSLACK, 1);
	atomic_store(&has_started, true);
}

static int thread(void *steps)
{
	bool naps = steps == EVERYTHING || steps == EVERYTHING_MIXED;
	struct timespec nap = {.tv_nsec = NAP};
	unsigned idle = 0;

	if (naps)
		set_real_time();
	while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
		bool worked = false;

		for (const step *next = steps; *next != NULL; next++)
			worked |= (*next)(&downstream) | (*next)(&upstream);
		idle = worked ? 0 : idle + 1;
		if (naps && idle >= IDLE_ROUNDS)
			nanosleep(&nap, NULL);
	}
	return 0;
}

static unsigned threads_of(const struct options *options)
{
	return options->is_mixed ? 2 : 3;
}

static void start_threads(const struct options *options, bool spin)
{
	static const step *const alone[] = {RECEIVE, WORKER, TRANSMIT};
	const step *everything = options->is_mixed ? EVERYTHING_MIXED : EVERYTHING;

	if (!spin) {
		rte_eal_remote_launch(thread, (void *)(uintptr_t)everything, 1);
		while (!atomic_load(&has_started))
			rte_delay_us_sleep(100);
		return;
	}
	for (unsigned i = 0; i < threads_of(options); i++)
		rte_eal_remote_launch(thread, (void *)(uintptr_t)alone[i], i + 1);
}

/* ---- commands ---- */

static void tell_counters(const struct options *options)
{
	static uint64_t missed;

	missed += ports_missed(options->interfaces.in) + ports_missed(options->interfaces.out);
	atomic_store_explicit(&downstream.counters_wanted, true, memory_order_release);
	while (atomic_load_explicit(&downstream.counters_wanted, memory_order_acquire))
		rte_delay_us_sleep(100);
	counters_print(&downstream, &upstream, missed);
}

static void wait_for_bursts(bool waits)
{
	atomic_store(&downstream.waits_for_bursts, waits);
	atomic_store(&upstream.waits_for_bursts, waits);
}

static void run_command(const char *command, const struct options *options)
{
	if (strcmp(command, "bursts") == 0)
		wait_for_bursts(true);
	else if (strcmp(command, "no-bursts") == 0)
		wait_for_bursts(false);
	else if (strcmp(command, "counters") == 0)
		tell_counters(options);
	else
		complain("unknown command: %s", command);
}

/* Until standard input ends, which it does when the testbed does; false if an interface is gone before. */
static bool command_loop(const struct options *options)
{
	char line[64];
	size_t length = 0;

	for (;;) {
		struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
		int ready = poll(&input, 1, INTERFACE_CHECK_MS);

		if (ready <= 0) {
			if (!ports_are_up(&options->interfaces))
				return false;
			continue;
		}
		if (read(STDIN_FILENO, line + length, 1) <= 0)
			return true;
		if (line[length] != '\n') {
			if (length + 1 < sizeof(line))
				length++;
			continue;
		}
		line[length] = '\0';
		if (!ports_are_up(&options->interfaces))
			return false;
		run_command(line, options);
		length = 0;
	}
}

int main(int argc, char **argv)
{
	struct options options;
	struct processors processors = allowed_processors();
	bool is_huge, is_good;

	if (!read_options(argc, argv, &options) || !profile_read(options.profile, &profile) || !ports_are_permitted())
		return EXIT_USELESS_TO_REPEAT;
	profile.port.name = "port";
	profile.port.rate = options.rate;
	profile.port.mtu = options.mtu;
	if (!ports_exist(&options.interfaces) || !start_library(&options, &processors, &is_huge) || !start_flows(&options))
		return EXIT_FAILURE;
	downstream.sched = scheduler_start(&profile);
	if (downstream.sched == NULL)
		return EXIT_USELESS_TO_REPEAT;
	start_threads(&options, spins(&processors));
	printf("{\"event\":\"ready\",\"version\":\"%s\",\"hugepages\":%s,\"threads\":%u,\"real_time\":%s}\n", rte_version(),
	       is_huge ? "true" : "false", spins(&processors) ? threads_of(&options) : 1, atomic_load(&is_real_time) ? "true" : "false");
	fflush(stdout);
	is_good = command_loop(&options);
	atomic_store(&is_over, true);
	rte_eal_mp_wait_lcore();
	ports_stop();
	rte_eal_cleanup();
	return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
